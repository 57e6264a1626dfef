--- valid_utf8.lua - text that every reader of UTF-8 can read.

--- Bytes that are not UTF-8 become U+FFFD.
return function(s)
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
