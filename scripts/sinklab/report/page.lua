--- page.lua - the part of a report that is plain HTML: options of a run, claims,
-- options, results, figures. It is complete without JavaScript.
local core = require "sinklab.core"
local json = require "sinklab.base.json"
local maps = require "sinklab.report.maps"
local words = require "sinklab.report.words"

local escape, shown = words.escape, words.shown

-- Bytes: of all tables, of all figures at most.
local TABLES, FIGURES = 400000, 600000
-- Heads of a measurement in a table.
local MOST_HEADS = 256
-- Problems of a run that are named.
local MOST_PROBLEMS = 50
-- Runs with sections of their own; others are in the tables side by side only.
local MOST_RUNS = 24

local Page = {}
Page.__index = Page

local function new_page()
  return setmetatable({ out = {}, tables = TABLES, figures = {} }, Page)
end

function Page:put(format, ...)
  self.out[#self.out + 1] = select("#", ...) > 0 and format:format(...) or format
end

--- Columns of numbers alone: their heads stand to the right too.
local function numeric_columns(names, rows)
  local numeric = {}
  for j = 1, #names do
    local any, all = false, true
    for _, row in ipairs(rows) do
      local blank = row[j] == nil or row[j] == json.null
      any, all = any or not blank, all and (blank or type(row[j]) == "number")
    end
    numeric[j] = any and all
  end
  return numeric
end

--- A table that scrolls by itself where it is too wide. Rows are lists of cells, the
-- first of which heads its row, with a class where they have one. Rows that do not fit
-- the page are counted.
function Page:table(caption, names, rows, class)
  local lines, heads, left_out = {}, {}, 0
  local numeric = numeric_columns(names, rows)
  for _, row in ipairs(rows) do
    local cells = {}
    for j = 1, #names do
      local text = escape(shown(row[j]))
      local n = (numeric[j] or type(row[j]) == "number") and ' class="n"' or ""
      cells[j] = j == 1 and ('<th scope="row"%s>%s</th>'):format(n, text)
          or ("<td%s>%s</td>"):format(n, text)
    end
    local line = ("<tr%s>"):format(row.class and ' class="' .. row.class .. '"' or "")
        .. table.concat(cells) .. "</tr>"
    self.tables = self.tables - #line
    if self.tables < 0 then
      left_out = left_out + 1
    else
      lines[#lines + 1] = line
    end
  end
  for j, name in ipairs(names) do
    heads[j] = ('<th scope="col"%s>%s</th>'):format(numeric[j] and ' class="n"' or "",
      escape(name))
  end
  local label = escape(caption)
  self.tables = self.tables - #table.concat(heads)
  self:put(('<div class="wide" role="region" tabindex="0" aria-label="%s">'
    .. '<table class="%s">'
    .. "<caption>%s</caption><thead><tr>%s</tr></thead>\n<tbody>%s</tbody></table></div>")
    :format(label, class or "", label, table.concat(heads), table.concat(lines, "\n")))
  if left_out > 0 then
    self:put("<p class=\"note\">%d more rows are in run.json.</p>", left_out)
  end
end

local function sorted_keys(t, leave)
  local keys = {}
  for key in pairs(t) do
    if not (leave and leave[key]) then keys[#keys + 1] = tostring(key) end
  end
  table.sort(keys)
  return keys
end

-- One run.

local status_words = {
  complete = "complete: it ran to its end",
  running = "running: a process works in it",
  died = "died: the process ended without closing the record; everything that it lists"
    .. " was complete when it was written",
  interrupted = "interrupted: what was added before the signal is here",
  failed = "failed",
}

function Page:facts(run)
  local r = run.record
  local list = { { "script", run.script }, { "directory", run.name },
    { "started", r.started }, { "seconds", r.wall_s }, { "seed", r.seed },
    { "precision", r.dtype }, { "threads", r.threads }, { "instruction set", r.isa },
    { "sinklab", r.sinklab } }
  self:put '<dl class="facts">'
  for _, fact in ipairs(list) do
    self:put("<div><dt>%s</dt><dd>%s</dd></div>", fact[1], escape(shown(fact[2])))
  end
  self:put "</dl>"
  local known = status_words[run.status]
  self:put(('<p class="status %s">%s</p>'):format(known and run.status or "unknown",
    escape(known or "status: " .. run.status)))
  if type(r.error) == "string" then
    self:put("<pre class=\"error\">" .. escape(r.error) .. "</pre>")
  end
end

function Page:problems(run)
  if #run.problems == 0 then return end
  table.sort(run.problems)
  self:put '<div class="problems" role="note"><h3>What could not be read</h3><ul>'
  for i = 1, math.min(#run.problems, MOST_PROBLEMS) do
    self:put("<li>" .. escape(shown(run.problems[i])) .. "</li>")
  end
  if #run.problems > MOST_PROBLEMS then
    self:put("<li>%d more</li>", #run.problems - MOST_PROBLEMS)
  end
  self:put "</ul></div>"
end

function Page:claims(run)
  local claims = run.record.claims
  if #claims == 0 then return end
  local rows, held = {}, 0
  for i, c in ipairs(claims) do
    if type(c) ~= "table" then c = { text = c } end
    if c.holds == true then held = held + 1 end
    local holds = c.holds == true
    rows[i] = { holds and "✓ holds" or "✗ fails", c.text, c.value, c.op, c.bound,
      class = holds and "holds" or "fails" }
  end
  self:put("<h3>Claims</h3>")
  self:table(("%d of %d claims hold"):format(held, #claims),
    { "", "claim", "value", "", "bound" }, rows, "claims")
end

function Page:options(run)
  local rows = {}
  for _, key in ipairs(sorted_keys(run.record.options)) do
    rows[#rows + 1] = { key, run.record.options[key] }
  end
  if #rows == 0 then return end
  self:put "<h3>Options</h3>"
  self:table("options in effect", { "option", "value" }, rows)
end

local head_first = { "layer", "head", "first_mean", "first_min", "first_std", "row_mass",
  "first_over_rowsum", "contribution", "entropy", "rate" }

--- Columns of a table of heads: the usual ones in their order, then every other
-- number.
local function head_columns(heads)
  local seen, rest, names = {}, {}, {}
  for _, head in ipairs(heads) do
    for key, value in pairs(type(head) == "table" and head or {}) do
      if type(value) == "number" then seen[key] = true end
    end
  end
  for _, key in ipairs(head_first) do
    if seen[key] then names[#names + 1], seen[key] = key, nil end
  end
  for key in pairs(seen) do rest[#rest + 1] = tostring(key) end
  table.sort(rest)
  return table.move(rest, 1, #rest, #names + 1, names)
end

function Page:heads(label, heads)
  local names, rows = head_columns(heads), {}
  for i = 1, math.min(#heads, MOST_HEADS) do
    local row = {}
    for j, name in ipairs(names) do
      row[j] = type(heads[i]) == "table" and heads[i][name] or nil
    end
    rows[i] = row
  end
  if #names == 0 then return end
  self:table(label .. ": sinks of each head, means over plain rows", names, rows, "heads")
  if #heads > MOST_HEADS then
    self:put("<p class=\"note\">%d more heads are in run.json.</p>", #heads - MOST_HEADS)
  end
end

--- path -> value of the plain values in a table, without lists of tables.
local function leaves(t, prefix, into)
  for _, key in ipairs(sorted_keys(t)) do
    local value = t[key]
    if value == nil then value = t[tonumber(key)] end
    local path = prefix == "" and key or prefix .. "." .. key
    if type(value) == "table" and #value == 0 and next(value) then
      leaves(value, path, into)
    elseif type(value) ~= "table" or type(value[1]) ~= "table" then
      into[#into + 1] = { path, value }
    end
  end
  return into
end

--- Rows of name and one value for each list.
-- @param keep  function (how many lists have it, whether they differ): whether to show it
local function beside(lists, keep)
  local names, values = {}, {}
  for i, list in ipairs(lists) do
    for _, pair in ipairs(list) do
      if not values[pair[1]] then
        values[pair[1]] = {}
        names[#names + 1] = pair[1]
      end
      values[pair[1]][i] = pair[2]
    end
  end
  local rows = {}
  for _, name in ipairs(names) do
    local row, differs, there = { name }, false, 0
    for i = 1, #lists do
      row[i + 1] = values[name][i]
      differs = differs or shown(row[i + 1]) ~= shown(row[2])
      if row[i + 1] ~= nil then there = there + 1 end
    end
    if not keep or keep(there, differs) then rows[#rows + 1] = row end
  end
  return rows
end

function Page:results(run)
  if #run.labels == 0 then return end
  self:put "<h3>Results</h3>"
  local lists, names = {}, { "result" }
  for i, label in ipairs(run.labels) do
    names[i + 1], lists[i] = label, leaves(run.record.results[label], "", {})
  end
  self:table("by label, as added by the script", names, beside(lists))
  for _, label in ipairs(run.labels) do
    local sinks = run.record.results[label].sinks
    if type(sinks) == "table" and type(sinks.heads) == "table" and #sinks.heads > 0 then
      self:heads(label, sinks.heads)
    end
  end
end

--- A place for each figure of a run: figures get the room that the rest leaves.
function Page:figures_of(run)
  if #run.figures == 0 then return end
  self:put "<h3>Figures</h3><div class=\"figures\">"
  for _, name in ipairs(run.figures) do
    self:put ""
    self.figures[#self.figures + 1] = { place = #self.out, name = name,
      path = run.folder .. "/" .. name .. ".png" }
  end
  self:put "</div>"
end

--- Put the figures in their places.
-- @param room  bytes that they may have
function Page:draw_figures(room)
  local left = math.min(FIGURES, room * 3 // 4)
  for _, figure in ipairs(self.figures) do
    local title = escape(shown(figure.name))
    local bytes, why = core.file_read(figure.path)
    local text
    if not bytes then
      text = "<p class=\"note\">" .. escape(why) .. "</p>"
    elseif bytes:sub(1, 8) ~= "\x89PNG\r\n\x1a\n" then
      text = "<p class=\"note\">" .. title .. ".png is no PNG file.</p>"
    elseif #bytes > left then
      text = "<p class=\"note\">" .. title .. ".png is left out: the figures would make"
          .. " this page too large. It is in the run directory.</p>"
    else
      text = "<figure><img alt=\"figure " .. title .. "\" src=\"data:image/png;base64,"
          .. maps.base64(bytes) .. "\"><figcaption>" .. title .. "</figcaption></figure>"
    end
    left = left - #text * 3 // 4
    self.out[figure.place] = text
  end
end

--- The tables that the script printed by run:table.
function Page:printed(run)
  local tables = run.record.tables
  if type(tables) ~= "table" or #tables == 0 then return end
  self:put "<h3>Tables</h3>"
  for i, t in ipairs(tables) do
    if type(t) == "table" and type(t.names) == "table" and type(t.rows) == "table" then
      local names, rows = {}, {}
      for j, name in ipairs(t.names) do names[j] = shown(name) end
      for k, row in ipairs(t.rows) do
        rows[k] = type(row) == "table" and row or { row }
      end
      self:table(t.title and shown(t.title) or ("table %d"):format(i), names, rows)
    end
  end
end

function Page:rest(run)
  local rows = {}
  for i, p in ipairs(type(run.record.plugins) == "table" and run.record.plugins or {}) do
    if type(p) == "table" then rows[i] = { p.name, p.version, p.hash } end
  end
  if #rows > 0 then
    self:put "<h3>Plugins</h3>"
    self:table("plugins that were loaded", { "name", "version", "hash" }, rows)
  end
  self:put(("<h3>Files</h3><p class=\"files\">%s</p>"):format(escape(
    shown(#run.record.files > 0 and run.record.files or "none"))))
end

-- Several runs.

function Page:compare(runs)
  local rest = self.tables // 2 -- for the tables of single runs
  self.tables = self.tables - rest
  local names, options, results = { "" }, {}, {}
  for i, run in ipairs(runs) do
    names[i + 1] = run.name
    options[i], results[i] = {}, {}
    for _, key in ipairs(sorted_keys(run.record.options)) do
      table.insert(options[i], { key, run.record.options[key] })
    end
    for _, label in ipairs(run.labels) do
      leaves(run.record.results[label], label, results[i])
    end
  end
  self:put "<section aria-labelledby=\"compare\"><h2 id=\"compare\">Side by side</h2>"
  local rows = beside(options, function(_, differs) return differs end)
  if #rows > 0 then
    self:table("options that differ", names, rows)
  else
    self:put "<p>The options of these runs are the same.</p>"
  end
  rows = beside(results, function(there) return there > 1 end)
  if #rows > 0 then
    self:table("results that several have", names, rows)
  else
    self:put "<p>These runs have no result in common.</p>"
  end
  if #runs > MOST_RUNS then
    self:put(("<p class=\"note\">%d of the %d runs are shown in these tables only: a "
      .. "report of one run shows all of it.</p>"):format(#runs - MOST_RUNS, #runs))
  end
  self:put "</section>"
  self.tables = math.max(self.tables, 0) + rest
end

--- The plain HTML of the runs: the summary, and the rest.
-- @param room  bytes that they may have: figures are left out beyond it
-- @return summary, details
local function html(runs, room)
  local page, first = new_page(), nil
  if #runs > 1 then page:compare(runs) end
  runs = table.move(runs, 1, math.min(#runs, MOST_RUNS), 1, {})
  for i, run in ipairs(runs) do
    page:put(("<section aria-labelledby=\"run-%d\"><h2 id=\"run-%d\">%s</h2>")
      :format(i, i, #runs > 1 and escape(run.name) or "Run"))
    page:facts(run)
    page:problems(run)
    page:claims(run)
    page:printed(run)
    page:put "</section>"
  end
  first, page.out = table.concat(page.out, "\n"), {}
  for i, run in ipairs(runs) do
    local of = #runs > 1 and ": " .. escape(run.name) or ""
    page:put(("<section aria-labelledby=\"more-%d\"><h2 id=\"more-%d\">Record%s</h2>")
      :format(i, i, of))
    page:figures_of(run)
    page:results(run)
    page:options(run)
    page:rest(run)
    page:put "</section>"
  end
  page:draw_figures(room - #first - #table.concat(page.out, "\n"))
  return first, table.concat(page.out, "\n")
end

return { html = html, MOST_RUNS = MOST_RUNS }
