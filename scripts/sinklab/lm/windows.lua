--- windows.lua - how many keys a query of each layer sees, from a model's settings.
local windows = {}

--- Whether each layer has a window, as the list of config.json says; nil without a list.
local function listed(self, c)
  local kinds, key = self:value { gguf = "attention.sliding_window_pattern",
    hf = { "layer_types" } }
  if type(kinds) ~= "table" then return nil end
  if #kinds ~= c.layers then
    self:refuse("%s is a list of %d for %d layers", key, #kinds, c.layers)
  end
  local has_window = { full_attention = false, sliding_attention = true, [false] = false,
    [true] = true }
  local out = {}
  for layer, kind in ipairs(kinds) do
    out[layer] = has_window[kind]
    if out[layer] == nil then
      self:refuse("%s of layer %d is '%s'; this library follows full_attention and "
        .. "sliding_attention", key, layer, tostring(kind))
    end
  end
  return out
end

--- Every n-th layer sees all keys: n.
local function period(self, rule)
  local n, key = self:value { gguf = "attention.sliding_window_pattern",
    hf = { "sliding_window_pattern", "_sliding_window_pattern" } }
  if n == nil or type(n) == "table" then return rule end
  n = math.type(n) and math.tointeger(n)
  if not n or n < 1 then
    self:refuse("%s must be a whole number from 1: every n-th layer sees all keys", key)
  end
  return n
end

--- The number of layers, from the first, that have no window.
local function full_layers(self)
  local n = self:value { hf = { "max_window_layers" } } or 0
  if not (math.type(n) and math.tointeger(n)) or n < 0 then
    self:refuse("max_window_layers must be a whole number from 0")
  end
  return n
end

--- The window of each layer: keys that a query sees, itself among them; 0: all.
-- @param entry  of the architecture; its `windows` says which layers have one
function windows.read(self, entry, c)
  local size, rule = self:size "window" or self.defaults.window or 0, entry.windows
  local kinds = listed(self, c)
  local switched_on = rule ~= "late"
  if rule == "late" and self.form == "hf" then
    switched_on = self.metadata.use_sliding_window == true
  end
  if not rule or not switched_on then size = 0 end
  if math.type(rule) == "integer" then rule = period(self, rule) end
  local full_before = rule == "late" and full_layers(self) or 0
  local out = {}
  for layer = 1, c.layers do
    local windowed = rule == "all" or math.type(rule) == "integer" and layer % rule ~= 0
        or rule == "late" and layer > full_before
    if kinds then
      windowed = kinds[layer]
      if windowed and size == 0 then
        self:refuse("layer %d has a sliding window and the file gives it no size", layer)
      end
    end
    out[layer] = windowed and size or 0
  end
  return out
end

return windows
