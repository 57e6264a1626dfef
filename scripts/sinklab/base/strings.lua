--- strings.lua - text that every reader of UTF-8 can read; numbers that are not finite.
local strings = {}

--- How CSV files, records and filters write numbers that are not finite.
strings.not_finite = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }

--- The word for a number that is not finite.
function strings.number_word(x)
  return x ~= x and "nan" or x > 0 and "inf" or "-inf"
end

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
