--- words.lua - values of a record as text of a page.
local json = require "sinklab.base.json"
local valid_utf8 = require "sinklab.base.strings".valid_utf8

-- Bytes of one value.
local CELL = 300

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
  ["'"] = "&#39;" }

--- Bytes that are not UTF-8 and control characters become U+FFFD, then what HTML would
-- take for markup is escaped.
local function escape(s)
  local text = valid_utf8(s):gsub("[%z\1-\8\11\12\14-\31\127]", "\u{FFFD}")
  return (text:gsub("[&<>\"']", entities))
end

local function number(x)
  if x ~= x then return "NaN" end
  if math.type(x) == "integer" then return tostring(x) end
  return ("%.6g"):format(x)
end

--- A value of the record in words.
local function shown(value)
  if value == nil or value == json.null then return "–" end
  if type(value) == "number" then return number(value) end
  if type(value) == "table" then
    local words = {}
    for i, v in ipairs(value) do words[i] = shown(v) end
    if #words == 0 then
      for key, v in pairs(value) do words[#words + 1] = key .. " = " .. shown(v) end
      table.sort(words)
    end
    value = table.concat(words, ", ")
  end
  local text = tostring(value)
  local cut = #text > CELL and (utf8.offset(text, 0, CELL) or CELL) - 1
  return cut and text:sub(1, cut) .. "…" or text
end

return { escape = escape, shown = shown }
