--- fields.lua - the options and results of a record by name, as the index, filters and
-- tables of runs have them.
local json = require "sinklab.base.json"
local strings = require "sinklab.base.strings"

local fields = {}

-- A longer list of numbers is a curve, not a result to search for.
local LONGEST_LIST = 64

--- A value as the index has it: booleans as text, "inf" as the number it stands for. NaN
-- stays the text "nan", as SQL has none.
local function plain(value)
  if type(value) == "boolean" then return tostring(value) end
  return value ~= "nan" and strings.not_finite[value] or value
end

--- Store the leaves of a table in `into` by their paths, lists by their numbers from 1.
-- With `quote`, keys that hold a dot are in quotes.
-- @return whether two leaves have the same path
local function put_leaves(t, prefix, into, quote)
  local twice = false
  if #t > LONGEST_LIST then return twice end
  for key, value in pairs(t) do
    if quote and tostring(key):find(".", 1, true) then key = '"' .. key .. '"' end
    local path = prefix .. key
    if type(value) == "table" then
      twice = put_leaves(value, path .. ".", into, quote) or twice
    elseif value ~= json.null then
      twice = twice or into[path] ~= nil
      into[path] = plain(value)
    end
  end
  return twice
end

--- The leaves of a table as path -> value. Where two paths would be one (a label "a.b"
-- beside a table b in "a"), the keys with dots are in quotes.
local function flatten(t)
  local out = {}
  if not put_leaves(t, "", out) then return out end
  out = {}
  put_leaves(t, "", out, true)
  return out
end

--- A list of plain values as on the command line: softmax,relu. nil: it is not one.
local function listed(t)
  local words, n = {}, 0
  for _ in pairs(t) do n = n + 1 end
  for i, v in ipairs(t) do
    if type(v) == "table" then return nil end
    words[i] = tostring(v)
  end
  return #words == n and table.concat(words, ",") or nil
end

--- The options of a record by name; tables in tables by their paths.
function fields.options(record)
  local out = {}
  for name, value in pairs(record.options) do
    name = tostring(name)
    if type(value) == "table" then
      out[name] = listed(value)
      if not out[name] then put_leaves(value, name .. ".", out) end
    elseif type(value) == "boolean" then
      out[name] = tostring(value)
    elseif value ~= json.null then
      out[name] = value
    end
  end
  return out
end

--- The results of a record, path -> value: softmax.train.steps.
function fields.results(record) return flatten(record.results) end

return fields
