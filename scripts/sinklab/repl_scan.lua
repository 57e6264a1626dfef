--- repl_scan.lua - where the end of an unfinished piece of Lua stands: in which string,
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

--- Read a text up to its end.
-- @return { string = the quote ('"', "'" or "[") that is open, from = where its contents
--         begin, comment = true in one, brackets = { { char, at }, ... } that are open }
function scan.read(text)
  local state, i = { brackets = {} }, 1
  local open = state.brackets
  while i <= #text do
    local c = text:sub(i, i)
    if text:find("^%-%-", i) then
      local last, unclosed = long_bracket(text, i + 2)
      if not last then
        last = text:find("\n", i, true)
        unclosed = last == nil
      end
      if unclosed then
        state.comment = true
        return state
      end
      i = last + 1
    elseif c == '"' or c == "'" then
      local at = i + 1
      while at <= #text and text:sub(at, at) ~= c do
        at = at + (text:sub(at, at) == "\\" and 2 or 1)
      end
      if at > #text then
        state.string, state.from = c, i + 1
        return state
      end
      i = at + 1
    elseif c == "[" and long_bracket(text, i) then
      local last, unclosed = long_bracket(text, i)
      if unclosed then
        state.string, state.from = "[", text:match("^%[=*%[()", i)
        return state
      end
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
  local function skip_to(at) i = at end
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
      skip_to(after)
    elseif text:find("^%-%-", i) then
      skip_to((long_bracket(text, i + 2) or text:find("\n", i, true) or #text) + 1)
    elseif text:find('^["\']', i) then
      local quote, at = text:sub(i, i), i + 1
      while at <= #text and text:sub(at, at) ~= quote do
        at = at + (text:sub(at, at) == "\\" and 2 or 1)
      end
      skip_to(at + 1)
    else
      skip_to((long_bracket(text, i) or i) + 1)
    end
  end
end

return scan
