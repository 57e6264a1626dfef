--- mechanisms.lua - writes docs/mechanisms.md from the plugins' descriptions and a run.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local help_text = require "sinklab.help.text"

local docs, fail = {}, check.fail

--- The first comment of a plugin's source, without its stars: lines.
local function comment_of(folder, name)
  local path = ("%s/%s.c"):format(folder, name)
  local file <close> = io.open(path, "rb")
      or fail("write_docs: cannot read %s (run it in the source tree, or give --sources)",
        path)
  local comment = file:read "a":match "^/%*%s*(.-)%s*%*/"
  if not comment then fail("write_docs: %s does not begin with a comment", path) end
  return (comment:gsub("\n%*%* ?", "\n"):gsub("^%S+ %- ", ""))
end

--- The part of the comment after "Sinks:", as one line.
local function sinks_of(comment)
  local said = comment:match "\nSinks:%s*(.-)$" or ""
  return (said:gsub("%s+", " "):gsub("%.$", ""))
end

--- Links to the cited works, each once.
local function sources_of(comment)
  local list, seen = {}, {}
  for id in comment:gmatch "arXiv%s+(%d%d%d%d%.%d%d%d%d%d)" do
    if not seen[id] then
      seen[id] = true
      list[#list + 1] = ("[%s](https://arxiv.org/abs/%s)"):format(id, id)
    end
  end
  return table.concat(list, ", ")
end

local function escaped(cell) return (tostring(cell):gsub("|", "\\|")) end

--- A table in Markdown.
local function grid(names, rows)
  local lines = { "| " .. table.concat(names, " | ") .. " |",
    "|" .. ("---|"):rep(#names) }
  for i, row in ipairs(rows) do
    local cells = {}
    for j = 1, #names do cells[j] = escaped(row[j] == nil and "" or row[j]) end
    lines[i + 2] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(lines, "\n")
end

--- The learned parts of a plugin: its parameters, and the matrices of its inputs.
local function learned_by(plugin)
  local names = {}
  for i, p in ipairs(plugin.params) do names[i] = p.name end
  for _, z in ipairs(plugin.inputs) do names[#names + 1] = z.name .. " (matrix)" end
  return #names > 0 and table.concat(names, ", ") or "none"
end

--- Every check by name: "ok", "-" (does not apply) or "FAIL".
local function checks_of(name)
  local states, ok = {}, 0
  for _, r in ipairs(core.check_plugin(name, 1, 60)) do
    states[r.name] = r.state
    if r.state == "ok" then ok = ok + 1 end
  end
  return states, ok
end

--- The plugins of the entries, each once, in their order.
local function plugins_of(entries)
  local list, seen = {}, {}
  for _, entry in ipairs(entries) do
    for _, part in ipairs { "mechanism", "gate" } do
      local name = entry.attention[part]
      if type(name) == "table" then name = name[1] end
      if name and not seen[name] then
        seen[name] = true
        list[#list + 1] = name
      end
    end
  end
  return list
end

local function settings_of(entry)
  local words = {}
  for key, value in pairs(entry.attention) do
    if type(value) ~= "table" then
      words[#words + 1] = ("%s = %s"):format(key,
        type(value) == "string" and ('"%s"'):format(value) or tostring(value))
    else
      local inner = {}
      for k, v in pairs(value) do
        inner[#inner + 1] = (k == 1 and "" or k .. " = ")
            .. (type(v) == "string" and ('"%s"'):format(v) or tostring(v))
      end
      table.sort(inner)
      words[#words + 1] = ("%s = { %s }"):format(key, table.concat(inner, ", "))
    end
  end
  table.sort(words, function(a, b)
    local first, second = a:match "^mechanism" ~= nil, b:match "^mechanism" ~= nil
    if first ~= second then return first end
    return a < b
  end)
  return "`{ " .. table.concat(words, ", ") .. " }`"
end

--- One plugin's section.
local function section(plugin, comment)
  local facts = {}
  local function fact(name, text)
    if text ~= "" then facts[#facts + 1] = ("- %s: %s"):format(name, text) end
  end
  local properties = table.concat(plugin.properties, "; ")
  fact("declared properties", properties ~= "" and properties or "none")
  fact("learned", learned_by(plugin))
  fact("sources", sources_of(comment))
  fact("sinks in the literature", sinks_of(comment))
  local out = { ("### %s"):format(plugin.name), "",
    ("%s %s, a %s: %s."):format(plugin.name, plugin.version, plugin.shape, plugin.doc),
    "", table.concat(facts, "\n"), "", "```text", comment, "```", "" }
  if #plugin.options > 0 then
    local rows = {}
    for i, o in ipairs(plugin.options) do
      local default = type(o.default) == "number" and ("%.10g"):format(o.default)
          or tostring(o.default)
      rows[i] = { "`" .. o.name .. "`", default, help_text.range(o), o.doc }
    end
    out[#out + 1] = grid({ "option", "default", "allowed", "" }, rows)
    out[#out + 1] = ""
  end
  for _, p in ipairs(plugin.params) do
    out[#out + 1] = ("Parameter `%s` of each head: %s."):format(p.name, p.doc)
    out[#out + 1] = ""
  end
  return table.concat(out, "\n")
end

--- Write the file.
-- @param path
-- @param given  { sources = folder of the plugins' .c files, entries = { { label,
--               attention }, ... } that were measured, names, rows = the table of what
--               was measured, settings = the options of the run }
function docs.write(path, given)
  local order, known = {}, {}
  local checks = core.checks()
  local summary, check_rows, sections = {}, {}, {}
  local check_names = { "mechanism" }
  for i, c in ipairs(checks) do check_names[i + 1] = c.name end
  for i, name in ipairs(plugins_of(given.entries)) do
    local plugin = core.plugin(name)
    local comment = comment_of(given.sources, name)
    local states, ok = checks_of(name)
    order[i], known[name] = name, plugin
    summary[i] = { ("[%s](#%s)"):format(name, name), plugin.shape, plugin.doc,
      ("%d ok"):format(ok) }
    check_rows[i] = { name }
    for j, c in ipairs(checks) do check_rows[i][j + 1] = states[c.name] or "" end
    sections[i] = section(plugin, comment)
  end
  local configured = {}
  for i, entry in ipairs(given.entries) do
    configured[i] = { entry.label, settings_of(entry) }
  end
  local s = given.settings
  local out = { "# Mechanisms", "",
    "The following command writes this page, from the plugins' own descriptions, the",
    "results of `sinklab plugin check`, and the run that it starts:", "",
    ("    sinklab run experiments/mechanisms.lua --seed=%d --seeds=%d --max_steps=%d "
      .. "--write_docs=%s"):format(s.seed, s.seeds, s.max_steps, path), "",
    grid({ "mechanism", "shape", "purpose", "checks" }, summary), "",
    "[The plugins](#the-plugins) has the formula, options, declared properties and",
    "sources of each.", "", "## On the trigger-conditional mean", "",
    ([[
One layer of one head, width %d, %d tokens, batches of %d, Adam with rate %g,
seeds %d to %d, at most %d steps. A run stops when the largest error of a batch is below
%g. The error in the table is the largest on 4096 fresh sequences. The other columns are
means over plain rows of %d sequences with the trigger at %d; [measures.md](measures.md)
defines them. *Mass on no token* is the null mass, or the weight on a key bias.
*Contribution* is taken before a gate. `a to b` are the smallest and largest seed.
`-` means that a run did not reach the stop, or that the mechanism has no such number.
]]):format(s.d_model, s.seq_len, s.batch_size, s.lr, s.seed, s.seed + s.seeds - 1,
      s.max_steps, s.stop_max_abs_error, s.samples, s.trigger_pos),
    grid(given.names, given.rows), "",
    "Each label stands for this `attention` option of the model, with `scale = 1`:", "",
    grid({ "label", "attention" }, configured), "",
    "## Checks", "",
    "Results of `sinklab plugin check NAME`; `-` means that a check does not apply.", "",
    grid(check_names, check_rows), "",
    "## The plugins", "",
    table.concat(sections, "\n") }
  local written, message = core.file_write(path, table.concat(out, "\n"))
  if not written then fail("%s", message) end
end

return docs
