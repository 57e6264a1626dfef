--- doc.lua - the texts of schemas, and files of the library: their title and code.
local doc = {}

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

--- The text of a schema: its first sentence, and the paragraphs that follow: a list of
-- { text, block = keeps its lines }.
function doc.text(text) return summary_of(dedented(text)) end

--- An example of a schema.
function doc.code_text(text)
  return (table.concat(dedented(text), "\n"):gsub("%s+$", ""))
end

--- A file of the library, with the title and the text of the comment at its top.
-- @return { path, title, paragraphs as those of doc.text, lines }; or nil and a message
function doc.file(path)
  local file, why = io.open(path, "rb")
  if not file then return nil, why end
  local lines, comment = {}, {}
  for line in file:lines() do append(lines, line) end
  file:close()
  while lines[#comment + 1] and lines[#comment + 1]:match "^%-%-" do
    append(comment, (lines[#comment + 1]:gsub("^%-+ ?", "")))
  end
  local title, rest = summary_of(comment)
  return { path = path, title = title:gsub("^[%w_]+%.lua %- ", ""), paragraphs = rest,
    lines = lines }
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
