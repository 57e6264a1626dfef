--- strings.lua - text that every reader of UTF-8 can read.
local strings = {}

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
