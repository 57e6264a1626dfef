--- settings.lua - settings of a model file: used, harmless, or refused by name.
--
-- A model whose file says more than this library follows would be computed almost right.
-- So settings are looked up through `watch`, which records every key that is read. What
-- remains is harmless (listed by `sinklab model info`) or, if its name says that it
-- changes results, refused.
local core = require "sinklab.core"

local settings = {}

-- Names that change results, as Lua patterns: keys of config.json, and keys of GGUF
-- behind the architecture's name. Every key of a block that is read (rope_scaling) is
-- one of them.
local refused = {
  hf = { "^rope", "^rotary", "^no_rope", "^attn", "^attention", "^query_", "^qk_",
    "^use_qk_", "window", "sliding", "alibi", "softcap", "^logit", "multiplier$",
    "_scale$", "^scale_", "scaling", "bidirectional", "^quantization", "^swiglu" },
  gguf = { "^attention%.", "^rope%.", "_scale$", "^expert_", "^ssm%.", "^wkv%.",
    "^leading_dense", "^interleave", "^nextn", "softcap", "window", "alibi" },
}

-- Exceptions: dropout and initialisation act in training only, biases are tensors of
-- the file, precision of intermediate results is this library's own.
local harmless = {
  hf = { "dropout", "pdrop", "^attention_bias$", "^attn_impl", "_in_fp32$",
    "^attn_uses_sequence_id$", "^rope_theta$", "^rotary_emb_base$", "^attn_type$",
    "^logits_to_keep$", "^rope_scaling%.finetuned$", "^attention_types$",
    "^max_window_layers$", "^attn_config%.model_type$", "^init", "%.rope_theta$",
    "%.init_config$", "%.attn_type$", "%.attn_impl$", "%.attn_uses_sequence_id$",
    "%.attn_pdrop$", "^num_ln_in_parallel_attn$" },
  gguf = { "^rope%.scaling%.finetuned$", "^rope%.dimension_count$",
    "^rope%.freq_base$" },
}

local function matches(list, key)
  for _, pattern in ipairs(list) do if key:find(pattern) then return true end end
  return false
end

--- A table of settings rather than a list or one value.
local function is_block(value)
  return type(value) == "table" and #value == 0 and next(value) ~= nil
end

--- `values` for reading: seen[path] is set for every key that is looked up, with a dot
-- between the names of blocks.
function settings.watch(values, seen, prefix)
  prefix = prefix or ""
  return setmetatable({}, { __index = function(_, key)
    local value, path = values[key], prefix .. tostring(key)
    seen[path] = true
    return is_block(value) and settings.watch(value, seen, path .. ".") or value
  end })
end

--- The settings of `first`, and of `second` where it has none.
function settings.over(first, second)
  return setmetatable({}, { __index = function(_, key)
    local own, other = first[key], second[key]
    if own ~= nil then return own end
    return other
  end })
end

--- Whether a setting that nothing has read may change results. A switch that is off and
-- a value that is null do not.
local function is_refused(form, path, value)
  if value == false or value == core.json_null then return false end
  if matches(harmless[form], path) then return false end
  return form == "hf" and path:find("%.") ~= nil or matches(refused[form], path)
end

--- Refuse settings that would change results and that nothing has read.
-- @param self    reader of a file: form, name, refuse; keys of GGUF (a vocabulary is not
--                read for its key)
-- @param values  all settings
-- @param seen    of settings.watch
-- @return the keys that are ignored as harmless, sorted
function settings.check(self, values, seen)
  local ignored, own = {}, self.form == "gguf" and self.name .. "." or ""
  local function walk(block, prefix)
    local keys = prefix == "" and self.keys or {}
    for key in pairs(keys[1] and {} or block) do keys[#keys + 1] = tostring(key) end
    table.sort(keys)
    for _, key in ipairs(keys) do
      local path = prefix .. key
      if path:sub(1, #own) ~= own then
        goto continue
      elseif seen[path] then
        if is_block(block[key]) then walk(block[key], path .. ".") end
      else
        if is_refused(self.form, path:sub(#own + 1), block[key]) then
          self:refuse("%s is a setting that this library does not follow", path)
        end
        ignored[#ignored + 1] = path
      end
      ::continue::
    end
  end
  walk(values, "")
  return ignored
end

return settings
