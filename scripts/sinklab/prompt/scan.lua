--- scan.lua - where the end of an unfinished piece of Lua stands: in which string,
-- in which brackets, behind which name.
local scan = {}

local closers = { ["("] = ")", ["["] = "]", ["{"] = "}" }

--- The end of a long bracket that opens at `i` ([[ or [=[), or nil if none does; the
-- text's end + 1 if it is not closed.
local function long_bracket(text, i)
  local level = text:match("^%[(=*)%[", i)
  if not level then return end
  local _, last = text:find("]" .. level .. "]", i + #level + 2, true)
  return last or #text + 1, last == nil
end

--- The end of the string, comment or long bracket that begins at `i`, or nil if none
-- does; and whether it is not closed.
local function opaque(text, i)
  if text:find("^%-%-", i) then
    local last, unclosed = long_bracket(text, i + 2)
    if last then return last, unclosed end
    last = text:find("\n", i, true)
    return last or #text + 1, last == nil
  elseif text:find("^[\"']", i) then
    local quote, at = text:sub(i, i), i + 1
    while at <= #text and text:sub(at, at) ~= quote do
      at = at + (text:sub(at, at) == "\\" and 2 or 1)
    end
    return at, at > #text
  elseif text:find("^%[", i) then
    return long_bracket(text, i)
  end
end

--- The keys of the table constructor that opens at `at`: a list of names, and a list of
-- where their values begin.
function scan.table_keys(text, at)
  local keys, values, depth, i = {}, {}, 0, at
  while i <= #text do
    local last = opaque(text, i)
    local c = text:sub(i, i)
    if last then
      i = last
    elseif closers[c] then
      depth = depth + 1
    elseif c == ")" or c == "]" or c == "}" then
      depth = depth - 1
      if depth == 0 then break end
    end
    if depth == 1 and (i == at or c == "," or c == ";") and not last then
      local rest = i + 1
      while true do -- past comments
        rest = text:find("%S", rest) or #text + 1
        if not text:find("^%-%-", rest) then break end
        rest = opaque(text, rest) + 1
      end
      local key, value = text:match("^([%a_][%w_]*)%s*=()[^=]", rest)
      keys[#keys + 1], values[#values + 1] = key, value
    end
    i = i + 1
  end
  return keys, values
end

--- Read a text up to its end.
-- @return { string = the quote ('"', "'" or "[") that is open, from = where its contents
--         begin, comment = true in one, brackets = { { char, at }, ... } that are open }
function scan.read(text)
  local state, i = { brackets = {} }, 1
  local open = state.brackets
  while i <= #text do
    local c = text:sub(i, i)
    local last, unclosed = opaque(text, i)
    if unclosed then
      if c == "-" then
        state.comment = true
      else
        state.string, state.from = c, text:match("^%[=*%[()", i) or i + 1
      end
      return state
    elseif last then
      i = last + 1
    else
      if closers[c] then
        open[#open + 1] = { c, i }
      elseif #open > 0 and closers[open[#open][1]] == c then
        open[#open] = nil
      end
      i = i + 1
    end
  end
  return state
end

--- Whether a chunk has a `local` of its own outside every block: such a variable is
-- gone when the chunk ends. Returns its first name.
function scan.outer_local(text)
  local depth, i = 0, 1
  while i <= #text do
    local word, after = text:match("^([%a_][%w_]*)()", i)
    if word then
      if depth == 0 and word == "local" then
        local rest = text:sub(after)
        return rest:match "^%s*function%s+([%a_][%w_]*)" or rest:match "^%s*([%a_][%w_]*)"
      elseif word == "function" or word == "do" or word == "then" or word == "repeat" then
        depth = depth + 1
      elseif word == "end" or word == "until" or word == "elseif" then
        depth = depth - 1
      end
      i = after
    else
      i = (opaque(text, i) or i) + 1
    end
  end
end

return scan
