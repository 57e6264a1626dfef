--- check.lua - what every test_<topic>.lua begins and ends with.
--
--   local check = require "check"
--   check.test("what is promised", function() check.equal(1 + 1, 2) end)
--   check.done()
--
-- A failed check ends its test, not the file; done() raises if any test failed, so
-- sinklab exits with 1. SINKLAB_TEST_ONLY=text runs the tests whose name has it.
local check = {}
local passed, failures = 0, {}

local function show(value)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local keys, out = {}, {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for i, key in ipairs(keys) do
    out[i] = tostring(key) .. " = " .. show(value[key])
  end
  return "{ " .. table.concat(out, ", ") .. " }"
end

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b and math.type(a) == math.type(b)
  end
  for key in pairs(a) do if not same(a[key], b[key]) then return false end end
  for key in pairs(b) do if a[key] == nil then return false end end
  return true
end

local function fail(level, message, ...) error(message:format(...), level + 1) end

local function prefix(what) return what and what .. ": " or "" end

--- Both are the same value of the same type; tables by what they hold.
function check.equal(got, want, what)
  if not same(got, want) then
    fail(2, "%sgot %s, want %s", prefix(what), show(got), show(want))
  end
end

--- |got - want| <= atol + rtol |want|; numbers, or lists of as many.
function check.close(got, want, atol, rtol, what)
  rtol = rtol or 0
  if type(want) == "table" then
    if type(got) ~= "table" or #got ~= #want then
      fail(2, "%sgot %s, want %d numbers", prefix(what), show(got), #want)
    end
  else
    got, want = { got }, { want }
  end
  for i, w in ipairs(want) do
    local g = got[i]
    if type(g) ~= "number" or not (math.abs(g - w) <= atol + rtol * math.abs(w)) then
      fail(2, "%s[%d]: got %s, want %.17g, difference %s, atol %.3g, rtol %.3g",
        prefix(what), i, type(g) == "number" and ("%.17g"):format(g) or show(g), w,
        type(g) == "number" and ("%.3g"):format(g - w) or "-", atol, rtol)
    end
  end
end

-- Functions check.NAME(got, bound, what): two numbers that compare as it says.
for name, holds in pairs {
  above = function(a, b) return a > b end, below = function(a, b) return a < b end,
  at_least = function(a, b) return a >= b end, at_most = function(a, b) return a <= b end,
} do
  check[name] = function(got, bound, what)
    if type(got) ~= "number" or not holds(got, bound) then
      fail(2, "%sgot %s, want a number %s %s", prefix(what), show(got),
        name:gsub("_", " "), show(bound))
    end
  end
end

--- The text contains `part` (plain, not a pattern).
function check.contains(text, part, what)
  if type(text) ~= "string" or not text:find(part, 1, true) then
    fail(2, "%sgot %s, want a text with %q", prefix(what), show(text), part)
  end
end

--- f (...) raises an error whose text contains `part`; returns the text.
function check.raises(part, f, ...)
  local ok, message = pcall(f, ...)
  if ok then fail(2, "nothing was raised, want an error with %q", part) end
  message = tostring(message)
  if not message:find(part, 1, true) then
    fail(2, "raised %q, want an error with %q", message, part)
  end
  return message
end

--- Run one test; garbage is collected before and after, so that an object that is
-- freed too early or twice shows here and not in a later test.
function check.test(name, f)
  local only = os.getenv "SINKLAB_TEST_ONLY"
  if only and not name:find(only, 1, true) then return end
  collectgarbage()
  local ok, message = xpcall(f, function(m) return tostring(m) end)
  collectgarbage()
  if ok then
    passed = passed + 1
  else
    failures[#failures + 1] = name
    print("FAILED " .. name .. "\n  " .. message)
  end
end

--- Report; raises if a test failed or none ran.
function check.done()
  print(("%d passed, %d failed"):format(passed, #failures))
  if #failures > 0 then
    error("failed: " .. table.concat(failures, "; "), 0)
  end
  if passed == 0 then error("no test ran", 0) end
end

return check
