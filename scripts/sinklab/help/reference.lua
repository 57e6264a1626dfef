--- reference.lua - the library's schemas and the plugins' own words as a page of
-- Markdown.
local core = require "sinklab.core"
local help = require "sinklab.help"
local text = require "sinklab.base.text"

local reference = {}

-- The files of a first hour; the others follow by their names.
local first = { "cli/options", "record/run", "task/init", "task/base", "task/trigger",
  "task/context", "task/text", "model/init", "model/init_values", "train/init",
  "train/optim", "train/schedule", "measure/sinks", "plot/init", "core_api/figure",
  "core_api/tensor", "core_api/ops", "core_api/generator",
  "core_api/attention" }

--- Text that Markdown shows as it is.
local function plain(s)
  return (s:gsub("[*<>|]", { ["*"] = "\\*", ["<"] = "&lt;", [">"] = "&gt;",
    ["|"] = "\\|" }))
end

--- The files with public names, in order: list of { file, entries }.
function reference.sections()
  local by_file, list = {}, {}
  for _, entry in ipairs(help.index()) do
    local f = entry.file
    if f and not by_file[f] then
      by_file[f] = { file = f, entries = {}, rank = #first + 1 }
      list[#list + 1] = by_file[f]
      for i, name in ipairs(first) do
        if name == f.name then by_file[f].rank = i end
      end
    end
    if f then table.insert(by_file[f].entries, entry) end
  end
  table.sort(list, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return a.file.name < b.file.name
  end)
  return list
end

--- The title of a section, as a heading.
local function heading(section)
  return (section.file.title or section.file.name):gsub("%.$", "")
end

local function anchor(title)
  return (title:lower():gsub("[^%w %-_]", ""):gsub(" ", "-"))
end

local function put_paragraphs(out, paragraphs)
  for _, p in ipairs(paragraphs or {}) do
    out[#out + 1] = p.block and "```text\n" .. p.text .. "\n```" or plain(p.text)
    out[#out + 1] = ""
  end
end

local function put_entry(out, entry)
  local function put(s) out[#out + 1] = s end
  put("### `" .. help.call(entry) .. "`")
  put ""
  put(plain(entry.summary or ""))
  put ""
  put_paragraphs(out, entry.paragraphs)
  for _, p in ipairs(entry.params or {}) do
    put(("- `%s`%s"):format(p.names, p.text ~= "" and ": " .. plain(p.text) or ""))
  end
  if #(entry.params or {}) > 0 then put "" end
  for _, tag in ipairs { { "return", "Returns" }, { "error", "Raises on" },
    { "source", "Source:" } } do
    if entry[tag[1]] then
      put(tag[2] .. " " .. plain(entry[tag[1]]) .. "\\")
    end
  end
  -- A line break needs a line after it.
  if out[#out]:sub(-1) == "\\" then
    out[#out] = out[#out]:sub(1, -2)
    put ""
  end
  if entry.example then put("```lua example\n" .. entry.example .. "\n```\n") end
end

local function put_plugin(out, p)
  out[#out + 1] = ("### `%s`\n\n%s. A %s.%s"):format(p.name, plain(p.doc), p.shape,
    #p.properties > 0 and " Properties: " .. table.concat(p.properties, "; ") .. "."
      or "")
  out[#out + 1] = ""
  for _, o in ipairs(p.options) do
    local range = o.choices and text.alternatives(o.choices)
        or o.min and ("%s to %s"):format(o.min, o.max) or "true or false"
    out[#out + 1] = ("- `%s`: %s (%s), default %s"):format(o.name, plain(o.doc), range,
      tostring(o.default))
  end
  if #p.options > 0 then out[#out + 1] = "" end
end

--- The plugins that come with sinklab, by name: those of one folder.
local function shipped()
  local out, home = {}, core.plugin "softmax".path:match "^(.*)/"
  for _, p in ipairs(core.plugins()) do
    if p.path:match "^(.*)/" == home then out[#out + 1] = core.plugin(p.path) end
  end
  table.sort(out, function(a, b) return a.name < b.name end)
  return out
end

--- The whole page.
function reference.markdown()
  local out = { [[
# Reference

Everything that scripts and the prompt can use, made from the schemas in
`scripts/sinklab/` by `build/sinklab run docs/generate.lua`; at the prompt `?NAME` shows
the same. `{ options }`
stands for a table of the options listed; every option that is not "needed" may be left
out.
Every example runs as it stands after `local lab = require "sinklab"`.
]] }
  local sections = reference.sections()
  for _, section in ipairs(sections) do
    local title = heading(section)
    out[#out + 1] = ("- [%s](#%s)"):format(plain(title:match "^(.-): " or title),
      anchor(title))
  end
  out[#out + 1] = "- [plugins](#plugins)\n"
  for _, section in ipairs(sections) do
    out[#out + 1] = "## " .. plain(heading(section)) .. "\n"
    put_paragraphs(out, section.file.paragraphs)
    for _, entry in ipairs(section.entries) do put_entry(out, entry) end
  end
  out[#out + 1] = "## plugins\n"
  for _, p in ipairs(shipped()) do put_plugin(out, p) end
  return (table.concat(out, "\n"):gsub("\n\n\n+", "\n\n"):gsub("%s*$", "\n"))
end

return reference
