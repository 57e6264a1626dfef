--- send.lua - Lua values as text that another process of this program reads back.
--
-- Numbers keep every bit. Plain data goes both ways; a function goes to a worker with
-- the variables that it captures: plain data is copied, modules are required again there.
local core = require "sinklab.core"

local send = {}

local MOST_DEEP = 100

-- Tables with a metatable that are plain data all the same.
local plain_classes = { ["sinklab.options"] = true }

local function fail(message, ...) error(message:format(...), 0) end

--- The name under which a value was required, or nil.
local function module_of(value)
  for name, loaded in pairs(package.loaded) do
    if rawequal(loaded, value) and name ~= "_G" then return name end
  end
end

local write

local function write_function(f, out, path, state)
  if not state.functions then fail("%s is a function", path) end
  if debug.getinfo(f, "S").what == "C" then
    fail("%s is a function of C; call it inside a function of the script", path)
  end
  if state.seen[f] then
    out[#out + 1] = ("R(%d)"):format(state.seen[f])
    return
  end
  state.count = state.count + 1
  state.seen[f] = state.count
  -- Captured variables come later, because the function itself may be among them.
  out[#out + 1] = ("F(%d,%q,function()return "):format(state.count,
    string.dump(f, state.functions == "bare"))
  for i = 1, math.huge do
    local name, value = debug.getupvalue(f, i)
    if not name then break end
    if i > 1 then out[#out + 1] = "," end
    if name == "_ENV" then
      out[#out + 1] = "_G"
    else
      write(value, out, ("'%s', which %s captures,"):format(name, path), state)
    end
  end
  out[#out + 1] = " end)"
end

--- The keys of a table beside 1 to n, in an order that depends on nothing else: equal
-- tables have equal texts.
local function sorted_keys(t, n, path)
  local keys = {}
  for key in next, t do
    if math.type(key) ~= "integer" or key < 1 or key > n then
      if type(key) ~= "string" and type(key) ~= "number" and type(key) ~= "boolean" then
        fail("%s has a %s as a key", path, type(key))
      end
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, function(a, b) return ("%q"):format(a) < ("%q"):format(b) end)
  return keys
end

local function write_table(t, out, path, state)
  local meta = getmetatable(t)
  local class = type(meta) == "table" and rawget(meta, "__name")
  if meta ~= nil and not plain_classes[class] then
    fail("%s is %s; only plain data can be sent: make it inside the function", path,
      class and "a " .. tostring(class) or "a table with a metatable")
  end
  if state.seen[t] then fail("%s contains itself", path) end
  state.seen[t], state.depth = true, state.depth + 1
  if state.depth > MOST_DEEP then fail("%s nests deeper than %d", path, MOST_DEEP) end
  out[#out + 1] = "{"
  local n = #t
  for i = 1, n do
    write(rawget(t, i), out, ("%s[%d]"):format(path, i), state)
    out[#out + 1] = ","
  end
  for _, key in ipairs(sorted_keys(t, n, path)) do
    out[#out + 1] = ("[%q]="):format(key)
    write(t[key], out, ("%s.%s"):format(path, tostring(key)), state)
    out[#out + 1] = ","
  end
  out[#out + 1] = "}"
  state.seen[t], state.depth = nil, state.depth - 1
end

function write(value, out, path, state)
  local kind = type(value)
  if kind == "number" or kind == "string" or kind == "boolean" or kind == "nil" then
    out[#out + 1] = ("%q"):format(value)
    return
  end
  local module = state.functions and module_of(value)
  if module then
    out[#out + 1] = ("M%q"):format(module)
  elseif kind == "table" then
    write_table(value, out, path, state)
  elseif kind == "function" then
    write_function(value, out, path, state)
  else
    fail("%s is a %s; only plain data can be sent: make it inside the function", path,
      core.is_tensor(value) and "tensor" or kind)
  end
end

--- A value as text, or nil and the part of it that cannot be sent.
-- @param what       the value as messages call it
-- @param functions  true: functions and modules may go too (to a worker, not back);
--                   "bare": functions without names and lines, to be compared
function send.write(value, what, functions)
  local out = { "return " }
  local ok, message = pcall(write, value, out, what,
    { functions = functions, seen = {}, count = 0, depth = 0 })
  if not ok then return nil, message end
  return table.concat(out)
end

--- The functions that a text may call: F, a function from its number, its code and
-- its captured values; R, one of these again; M, a module.
local function builders()
  local known = {}
  local function rebuild(number, code, captured)
    local f = assert(load(code, "function", "b"))
    known[number] = f
    local values = table.pack(captured())
    for i = 1, values.n do debug.setupvalue(f, i, values[i]) end
    return f
  end
  return { F = rebuild, R = function(number) return known[number] end, M = require,
    _G = _G }
end

--- The value of such a text; nil and a message if it is none.
function send.read(text, functions)
  local chunk, message = load(text, "=message", "t", functions and builders() or {})
  if not chunk then return nil, message end
  return chunk()
end

--- The text with 0 in place of each string; nil if one is not closed.
local function without_strings(text)
  local out, at = {}, 1
  while true do
    local first = text:find('"', at, true)
    out[#out + 1] = text:sub(at, first and first - 1)
    if not first then return table.concat(out, "0") end
    local last, escaped = first, nil
    repeat
      last = text:find('["\\]', last + 1)
      if not last then return nil end
      escaped = text:sub(last, last) == "\\"
      if escaped then last = last + 1 end
    until not escaped
    at = last + 1
  end
end

-- The words in the text of plain data.
local data_words = { ["return"] = true, ["true"] = true, ["false"] = true,
  ["nil"] = true }

--- The value of a text of plain data from a file that anybody may have written; nil if
-- it is something else. A text with other words, comments or long strings is not run.
function send.read_data(text)
  local rest = without_strings(text)
  if not rest or rest:find "[^%w%s{}%[%]=,.()/+-]" or rest:find "%-%-"
      or rest:find "%[[%[=]" then
    return nil
  end
  rest = rest:gsub("0x[%x.]+p?[+-]?%d*", "0"):gsub("%d[%d.]*e?[+-]?%d*", "0")
  for word in rest:gmatch "%a%w*" do
    if not data_words[word] then return nil end
  end
  local chunk = load(text, "=data", "t", {})
  local ok, value = pcall(chunk or error)
  return ok and value or nil
end

return send
