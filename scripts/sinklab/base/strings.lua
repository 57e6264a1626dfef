--- strings.lua - text that every reader of UTF-8 can read, and that is safe to show;
-- numbers that are not finite.
local core = require "sinklab.core"

local strings = {}

--- How CSV files, records and filters write numbers that are not finite.
strings.not_finite = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

--- The word for a number that is not finite.
function strings.number_word(x)
  return x ~= x and "nan" or x > 0 and "inf" or "-inf"
end

--- The text as a terminal may show it: control characters, characters that hide or turn
-- the direction of writing, and bytes that are not UTF-8 are escaped. strings.visible
-- (text, true) keeps newlines and tabs.
strings.visible = core.escape

--- print for text of the outside world.
function strings.print(s) print(core.escape(s, true)) end

--- A line of such text on standard error.
function strings.complain(s) io.stderr:write(core.escape(s, true), "\n") end

--- The string with U+FFFD in place of each byte that is not UTF-8.
function strings.valid_utf8(s)
  if utf8.len(s) then return s end
  local out, i = {}, 1
  while i <= #s do
    local ok, bad = utf8.len(s, i)
    out[#out + 1] = s:sub(i, ok and #s or bad - 1)
    if ok then break end
    out[#out + 1] = "\u{FFFD}"
    i = bad + 1
  end
  return table.concat(out)
end

return strings
