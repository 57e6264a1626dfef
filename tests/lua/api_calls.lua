--- api_calls.lua - a worker of the API fuzzer: calls public functions with arguments of
-- which some were replaced at random.
--
--   SINKLAB_CALLS="SEED COUNT LOG" sinklab run api_calls.lua
--
-- Good calls are those of the examples of the reference, taken down by a hook. Every
-- call is written to LOG before it is made, so that a crash and a hang name theirs. One
-- line on standard output for every fault; "N calls, M errors" at the end.
local contexts = require "sinklab.cli.context"
local core = require "sinklab.core"
local help = require "sinklab.help"
local lab = require "sinklab"
local schema = require "sinklab.base.schema"

local seed, count, log_path = os.getenv "SINKLAB_CALLS":match "^(%d+) (%d+) (.*)$"
seed, count = math.tointeger(seed), math.tointeger(count)
-- The longest call in seconds; a sanitizer is slow.
local LONGEST = tonumber(os.getenv "SINKLAB_LONGEST_CALL" or 2)
math.randomseed(seed)
lab.threads(1)
contexts.enter { arguments = {} }

local out = io.stdout
function _G.print() end
function io.write() end

-- Options that ask for as much work as they say, and functions that wait, start
-- processes or are another's test.
local WORK = { steps = true, seeds = true, n = true, starts = true, n_seq = true,
  seconds = true, batches = true, tries = true, iterations = true, sampled = true,
  eval = true, samples = true, batch = true, count = true,
  repeats = true, workers = true, every = true }
local SKIPPED = { ["lab.threads"] = true, ["lab.sweep"] = true, ["lab.run"] = true,
  ["lab.lm.speed"] = true, ["lab.certify"] = true, ["lab.options"] = true }

-- Good calls: entry -> lists of arguments.
local good, entries, by_function = {}, {}, {}
for _, described in ipairs(help.index()) do
  local entry = described.schema
  if entry and not entry.is_value and not SKIPPED[entry.name] then
    entries[#entries + 1] = entry
  end
end
table.sort(entries, function(a, b) return a.name < b.name end)

local by_name = {}
for _, entry in ipairs(entries) do by_name[entry.name] = entry end

--- The entry of a method that is a function of C, of the object at `level`.
local function method_entry(f, level)
  local _, object = debug.getlocal(level + 1, 1)
  local meta = type(object) == "userdata" and getmetatable(object)
  local class = type(meta) == "table" and rawget(meta, "__name")
  local methods = class and rawget(meta, "__index")
  for name, method in next, type(methods) == "table" and methods or {} do
    if method == f then return by_name[class:match "[%w_]+$" .. ":" .. name] end
  end
end

local function called(chunk)
  local from = debug.getinfo(4, "S")
  if not from or from.source ~= chunk then return end
  local info = debug.getinfo(3, "fS")
  local entry = schema.entry(info.func) or info.what == "C" and method_entry(info.func, 3)
  if not entry or SKIPPED[entry.name] then return end
  local arguments, i = { n = 0 }, 1
  local step = info.what == "C" and 1 or -1
  while true do
    local name, value = debug.getlocal(3, step * i)
    if not name then break end
    arguments[i], arguments.n, i = value, i, i + 1
  end
  local list = good[entry] or {}
  good[entry] = list
  if #list < 8 then
    arguments.f = info.func
    list[#list + 1] = arguments
  end
end

for _, entry in ipairs(entries) do
  local chunk = "=" .. entry.name
  local f = load('local lab = require "sinklab" ' .. entry.example, chunk, "t")
  if f then
    debug.sethook(function() called(chunk) end, "c")
    pcall(f)
    debug.sethook()
  end
end

-- Values that nobody expects.
local cyclic = {}
cyclic[1], cyclic.self = cyclic, cyclic
local function raises() error("raised by the fuzzer", 0) end
local closed = lab.zeros { 2 }
getmetatable(closed).__close(closed)
local strange = {
  function() return nil end, function() return true end, function() return false end,
  function() return 0 / 0 end, function() return 1 / 0 end, function() return -1 / 0 end,
  function() return -1 end, function() return 0 end, function() return 0.5 end,
  function() return 1 end, function() return 1 << 31 end, function() return 1 << 53 end,
  function() return 1 << 62 end, function() return math.mininteger end,
  function() return "" end, function() return "f64" end, function() return "\0\xff" end,
  function() return ("long "):rep(200000) end, function() return {} end,
  function() return { 1, nil, 3, n = 3 } end, function() return { 1, 2 } end,
  function() return { { 1 }, { "x" } } end, function() return cyclic end,
  function() return setmetatable({}, { __index = raises, __newindex = raises,
    __len = raises, __pairs = raises, __call = raises, __tostring = raises }) end,
  function() return closed end, function() return lab.zeros({}, "f64") end,
  function() return lab.zeros { 0, 3 } end,
  function() return lab.ones({ 2, 3 }, "f64") end,
  function() return lab.ones { 2, 3, 4 } end, function() return raises end,
  function() return print end, function() return function() return 1 end end,
  function() return coroutine.create(raises) end, function() return io.stdout end,
  function() return lab.generator(1) end, function() return { code = 3 } end,
}

local function any() return strange[math.random(#strange)]() end

local function is_large(value)
  return type(value) == "number" and (value ~= value or math.abs(value) > 100)
end

--- A copy of a table of arguments with one or two values replaced, in tables inside too.
local function changed(values, n, depth)
  local keys, copy = {}, {}
  for key, value in next, values do copy[key] = value end
  for i = 1, n do keys[i] = i end
  if depth > 0 then
    for key in next, values do if key ~= "f" then keys[#keys + 1] = key end end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  end
  if #keys == 0 then return copy end
  local key = keys[math.random(#keys)]
  local value = copy[key]
  if type(value) == "table" and not getmetatable(value) and depth < 3
      and math.random() < 0.7 then
    copy[key] = changed(value, 0, depth + 1)
  else
    value = any()
    if not (WORK[key] and is_large(value)) then copy[key] = value end
  end
  return copy
end

--- Arguments of the entry as its schema has them.
local made = {
  number = function() return math.random() end, integer = function() return 2 end,
  boolean = function() return true end, string = function() return "x" end,
  table = function() return {} end, tensor = function() return lab.ones { 2, 2 } end,
  ["function"] = function() return function() return 1 end end,
}
local function one(rule)
  if rule.default ~= nil then return rule.default end
  if rule.choices then return rule.choices[math.random(#rule.choices)] end
  local kind = made[rule[1]:match "[%w_]+"]
  return kind and kind() or any()
end
local function from_schema(entry)
  local arguments, n = {}, 0
  if entry.method then
    n = 1
    local list = good[entry]
    arguments[1] = list and list[1][1] or any()
  end
  for _, rule in ipairs(entry.args) do
    n = n + 1
    arguments[n] = one(rule)
  end
  if entry.options then
    n = n + 1
    local options = {}
    for _, rule in ipairs(entry.options) do
      if math.random() < 0.5 and rule.name ~= "..." then
        local value = math.random() < 0.5 and one(rule) or any()
        if not (WORK[rule.name] and is_large(value)) then options[rule.name] = value end
      end
    end
    arguments[n] = options
  end
  arguments.n = n
  return arguments
end

--- The function of a public name, "lab.json.encode"; nil for a method.
local function public(name)
  local value = lab
  if name:find(":", 1, true) then return nil end
  for part in name:sub(5):gmatch "%w[%w_]*" do value = value[part] end
  return (type(value) == "function" or getmetatable(value)) and value or nil
end

local function shown(value, depth)
  local kind = type(value)
  if kind == "string" then return ("%q"):format(value:sub(1, 40)) end
  if kind ~= "table" or getmetatable(value) or depth > 2 then
    if kind == "userdata" or kind == "table" then return "a " .. kind end
    return tostring(value)
  end
  local parts = {}
  for key, inner in next, value do
    parts[#parts + 1] = tostring(key) .. " = " .. shown(inner, depth + 1)
  end
  table.sort(parts)
  return "{ " .. table.concat(parts, ", ") .. " }"
end

local function fault(what, message)
  out:write(what, "\n    ", tostring(message), "\n")
end

-- Where the functions called are, and this file as it stands in messages.
local here = debug.getinfo(1, "S").short_src
local log = assert(io.open(log_path, "w"))
local errors, calls = 0, 0

--- Whether the text of an error is one: FILE:LINE: NAME ...
local function is_good(message)
  if type(message) ~= "string" then return false end
  if message == "not enough memory" or message == "raised by the fuzzer" then
    return true
  end
  local place, rest = message:match "^(.-):%d+: (.*)$"
  if not place or not (place == here or here:find(place, 1, true)) then return false end
  -- A function may hand its arguments to another public one: lab.sinks.
  return rest:find "^lab%.%l" or rest:find "^[%l_.]+:%l"
end

for i = 1, count do
  local entry = entries[math.random(#entries)]
  local list = good[entry]
  local arguments
  if list and math.random() < 0.7 then
    arguments = list[math.random(#list)]
  else
    arguments = from_schema(entry)
  end
  local f = arguments.f or list and list[1].f or public(entry.name)
  if f then
    local n = arguments.n
    arguments = changed(arguments, n, 0)
    if math.random() < 0.3 then arguments = changed(arguments, n, 0) end
    if math.random() < 0.05 and entry.name ~= "lab.train" then n = math.random(0, n) end
    -- A training takes as long as it is asked to.
    if entry.name == "lab.train" then
      if arguments[3] == nil then arguments[3] = {} end
      if type(arguments[3]) == "table" then rawset(arguments[3], "steps", 3) end
      n = 3
    end
    local parts = {}
    for k = 1, n do parts[k] = shown(arguments[k], 0) end
    local text = entry.name .. " (" .. table.concat(parts, ", ") .. ")"
    log:seek "set"
    log:write(i, ": ", text, "\n\n")
    log:flush()
    local start = core.clock()
    local ok, message = pcall(f, table.unpack(arguments, 1, n))
    local took = core.clock() - start
    calls = calls + 1
    if took > LONGEST then fault(text, ("took %.1f s"):format(took)) end
    if not ok then
      errors = errors + 1
      if not is_good(message) then fault(text, message) end
    end
  end
end
out:write(("%d calls of %d functions, %d errors\n"):format(calls, #entries, errors))
