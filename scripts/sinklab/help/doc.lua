--- doc.lua - reads the doc comments of Lua files: what help and reference are made of.
--
-- A doc comment starts with three dashes and stands right above what it documents:
--
--   --- One sentence.
--   --
--   -- More, in paragraphs.
--   -- @param name   text, which may go on in the next line
--   -- @param a, b   names that share a text; two spaces end the names
--   -- @return text
--   -- @error text
--   -- @source where a formula comes from
--   -- @example
--   --   print(1 + 1)
--
-- A blank comment line ends a tag; the example ends where the indentation does.
local doc = {}

--- The lines of a comment without their dashes.
local function stripped(lines)
  local out = {}
  for i, line in ipairs(lines) do
    out[i] = line:gsub("^%-%-%-? ?", ""):gsub("%s+$", "")
  end
  return out
end

--- "a, b  text" -> the names "a, b" and the text; names alone have no text.
local function names_and_text(s)
  local names, text = s:match "^(.-)%s%s+(.*)$"
  if names then return names, text end
  if s:find "^[%w_., ]+$" and (s:find "," or not s:find " ") then return s, "" end
  return s:match "^(%S+)%s*(.*)$"
end

local function append(list, line) list[#list + 1] = line end

--- Paragraphs of lines: joined by spaces, but a line that is indented stays a line.
local function paragraphs(lines)
  local out, open = {}, false
  for _, line in ipairs(lines) do
    if line == "" then
      open = false
    elseif line:match "^  " then
      local last = out[#out]
      if last and last.block and open then
        last.text = last.text .. "\n" .. line:sub(3)
      else
        append(out, { text = line:sub(3), block = true })
      end
      open = true
    elseif open and not out[#out].block then
      out[#out].text = out[#out].text .. " " .. line
    else
      append(out, { text = line })
      open = true
    end
  end
  return out
end

--- The first sentence of a text and the rest, or nil. A sentence ends before a capital
-- letter, a bracket or a quote: not in "e.g. this" or "1. 5".
local function sentence(s)
  local from = 1
  while true do
    local stop, start = s:match("()[.!?]%s+()%S", from)
    if not stop then return s end
    if s:find("^[%u%(`\"\"]", start) then return s:sub(1, stop), s:sub(start) end
    from = start
  end
end

local function summary_of(lines)
  local rest = paragraphs(lines)
  local first = table.remove(rest, 1)
  local summary, more = sentence(first and first.text or "")
  if more then table.insert(rest, 1, { text = more }) end
  return summary, rest
end

--- Lines of a long string that stands indented in a file, without the indentation.
local function dedented(text)
  local lines, least = {}, math.huge
  for line in text:gmatch "[^\n]*" do
    append(lines, (line:gsub("%s+$", "")))
    if #lines > 1 and line:find "%S" then
      least = math.min(least, #line:match "^ *")
    end
  end
  for i = 1, #lines do
    if #lines[i]:match "^ *" >= least then lines[i] = lines[i]:sub(least + 1) end
  end
  return lines
end

--- The text of a schema: its first sentence, and its paragraphs as doc.comment's.
function doc.text(text) return summary_of(dedented(text)) end

--- An example of a schema.
function doc.code_text(text)
  return (table.concat(dedented(text), "\n"):gsub("%s+$", ""))
end

--- The tags of a comment, each with its lines, and the lines outside them.
local function tags_of(lines)
  local tags, text, tag = {}, {}, nil
  for _, line in ipairs(stripped(lines)) do
    local name, rest = line:match "^@(%a+)%s*(.*)$"
    if name then
      tag = { name = name, lines = { rest } }
      append(tags, tag)
    elseif tag and tag.name == "example" and (line:match "^  " or line == "") then
      append(tag.lines, line:sub(3))
    elseif tag and line:match "^%s+%S" then
      append(tag.lines, line:match "^%s*(.*)$")
    else
      tag = nil
      append(text, line)
    end
  end
  return tags, text
end

--- What one comment says.
-- @param lines  of the comment, with their dashes
-- @return { summary, paragraphs = { { text, block = keeps its lines } }, params = { {
--         names, text } }, ["return"], error, source, example } of texts
function doc.comment(lines)
  local tags, text = tags_of(lines)
  local out = { params = {} }
  for _, t in ipairs(tags) do
    if t.name == "example" then
      out.example = table.concat(t.lines, "\n", 2):gsub("%s+$", "")
    elseif t.name == "param" then
      local names, said = names_and_text(table.concat(t.lines, " "))
      append(out.params, { names = names, text = said })
    else
      local said = table.concat(t.lines, " ")
      out[t.name] = out[t.name] and out[t.name] .. "; " .. said or said
    end
  end
  out.summary, out.paragraphs = summary_of(text)
  return out
end

local definitions = {
  "^local function ([%w_]+)%s*%((.-)%)",
  "^function ([%w_.:]+)%s*%((.-)%)",
  "^([%w_.]+) = function%s*%((.-)%)",
  "^return function%s*%((.-)%)",
  "^([%w_.]+) = ",
}

local function definition(line)
  for _, pattern in ipairs(definitions) do
    local name, arguments = line:match(pattern)
    if name and pattern:match "^%^return" then return "", name end
    if name then return name, arguments end
  end
end

--- The doc comments of a Lua file.
-- @return { path, title, paragraphs, lines, entries = { what doc.comment gives, with
--         name, arguments (text; nil where no function follows) and line of what is
--         documented } }; or nil and a message
function doc.file(path)
  local file, why = io.open(path, "rb")
  if not file then return nil, why end
  local lines = {}
  for line in file:lines() do append(lines, line) end
  file:close()
  local out = { path = path, entries = {}, lines = lines }
  local i = 1
  while i <= #lines do
    if lines[i]:match "^%-%-%-" then
      local first = i
      while lines[i] and lines[i]:match "^%-%-" do i = i + 1 end
      local entry = doc.comment(table.move(lines, first, i - 1, 1, {}))
      local name, arguments = definition(lines[i] or "")
      if first == 1 and not name then
        out.title = entry.summary:gsub("^[%w_]+%.lua %- ", "")
        out.paragraphs = entry.paragraphs
      elseif name then
        entry.name, entry.arguments, entry.line = name, arguments, i
        append(out.entries, entry)
      end
    else
      i = i + 1
    end
  end
  return out
end

--- The code of a function from its first line: up to the line "end" in its column.
function doc.code(file, first)
  local out, indent = {}, file.lines[first]:match "^%s*"
  for i = first, #file.lines do
    append(out, file.lines[i])
    if i > first and file.lines[i]:match("^" .. indent .. "end[,)]*%s*$")
        or i == first and file.lines[i]:match "%f[%w]end%s*[,)]*$" then
      break
    end
  end
  return table.concat(out, "\n")
end

return doc
