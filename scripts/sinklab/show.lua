--- show.lua - how the prompt prints results: tables with their keys sorted.
local DEEPEST, MOST = 3, 60

local rank = { number = 1, string = 2 }

--- Numbers first, then strings, then the rest by what tostring says.
local function before(a, b)
  local ra, rb = rank[type(a)] or 3, rank[type(b)] or 3
  if ra ~= rb then return ra < rb end
  if ra == 3 then a, b = tostring(a), tostring(b) end
  return a < b
end

local function key_text(key)
  if type(key) == "string" and key:match "^[%a_][%w_]*$" then return key end
  if type(key) == "string" then return ("[%q]"):format(key) end
  return "[" .. tostring(key) .. "]"
end

local text

local function table_text(t, indent, depth, seen)
  if seen[t] then return "{ ... the same table again }" end
  if next(t) == nil then return "{}" end
  if depth >= DEEPEST then return "{ ... }" end
  seen[t] = true
  local keys, lines, size = {}, {}, 0
  for key in next, t do keys[#keys + 1] = key end
  table.sort(keys, before)
  local inner = indent .. "  "
  for i, key in ipairs(keys) do
    if i > MOST then
      lines[#lines + 1] = ("... %d more"):format(#keys - MOST)
      break
    end
    local value = text(t[key], inner, depth + 1, seen)
    -- A list's own counting says what the keys would.
    lines[#lines + 1] = key == i and value or key_text(key) .. " = " .. value
    size = size + #lines[#lines] + 2
  end
  seen[t] = nil
  local joined = table.concat(lines, ", ")
  if size + #indent < 72 and not joined:find "\n" then
    return "{ " .. joined .. " }"
  end
  return "{\n" .. inner .. table.concat(lines, ",\n" .. inner) .. "\n" .. indent
      .. "}"
end

function text(value, indent, depth, seen)
  if type(value) == "table" then
    local meta = getmetatable(value)
    if type(meta) ~= "table" or not meta.__tostring then
      return table_text(value, indent, depth, seen)
    end
  elseif type(value) == "string" and depth > 0 then
    return (("%q"):format(value):gsub("\\\n", "\\n"))
  end
  return (tostring(value):gsub("\n", "\n" .. indent))
end

--- Print every value, each from a line of its own.
return function(...)
  for i = 1, select("#", ...) do
    print(text(select(i, ...), "", 0, {}))
  end
end
