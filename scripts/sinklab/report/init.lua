--- report.lua - the report of runs: one HTML file that needs nothing else.
--
-- It is made from the run directories alone (docs/run.md), so it can be repeated at any
-- time, also for runs of other machines. The template is scripts/templates/report.html
-- with its style and its scripts; docs/report.md describes the page.
local core = require "sinklab.core"
local json = require "sinklab.base.json"
local maps = require "sinklab.report.maps"
local page = require "sinklab.report.page"
local read = require "sinklab.report.read"
local words = require "sinklab.report.words"

-- Bytes of a page.
local MOST_BYTES = 2000000

local report = {}

local function template(name)
  local text, why = core.file_read(core.scripts .. "/templates/" .. name)
  if not text then core.raise(why) end
  return text
end

--- Put values in place of {{name}}; they are not searched again.
local function fill(text, values)
  return (text:gsub("{{(%w+)}}", function(name)
    return values[name] or core.raise(("report.html asks for {{%s}}"):format(name))
  end))
end

--- JSON inside <script>: no "<" that could end or comment the element.
local function data_text(value) return (json.encode(value):gsub("<", "\\u003c")) end

local function title_of(runs)
  local names = {}
  for i, run in ipairs(runs) do names[i] = run.name end
  return #names < 4 and table.concat(names, ", ")
      or ("%s and %d more"):format(names[1], #names - 1)
end

--- The report of run directories as HTML.
-- @param folders  list of their paths
-- @return html; or nil and one sentence
function report.html(folders)
  local runs, data = {}, json.array {}
  for i, folder in ipairs(folders) do
    local run, why = read.run(folder, i <= page.MOST_RUNS)
    if not run then return nil, why end
    runs[i] = run
  end
  local shown = table.move(runs, 1, math.min(#runs, page.MOST_RUNS), 1, {})
  local heads = maps.encode(shown)
  read.fit_curves(shown)
  for i, run in ipairs(shown) do
    data[i] = { name = run.name, heads = heads[i], curves = json.array(run.curves) }
  end
  local values = { title = words.escape(title_of(runs)), style = template "report.css",
    summary = "", details = "", data = data_text(data),
    script = template "report.js" .. template "report_curves.js",
    version = words.escape(core.version) }
  local around = template "report.html"
  values.summary, values.details = page.html(runs, MOST_BYTES - #fill(around, values))
  return fill(around, values)
end

--- Write the report of run directories.
-- @param folders  list of their paths
-- @param path     of the file; default report.html in the folder, of several runs in
--                 the current one
-- @return path; or nil and one sentence
function report.write(folders, path)
  path = path or (#folders == 1 and folders[1]:gsub("/*$", "") .. "/report.html")
      or "report.html"
  local text, why = report.html(folders)
  if not text then return nil, why end
  local ok, message = core.file_write(path, text)
  if not ok then return nil, message end
  return path
end

return report
