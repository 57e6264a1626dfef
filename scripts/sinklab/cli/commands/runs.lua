--- runs.lua - sinklab runs list, show, compare, best, export, prune, restore and
-- rebuild.
local core = require "sinklab.core"
local command = require "sinklab.cli.command"
local entries = require "sinklab.record.entries"
local json = require "sinklab.base.json"
local strings = require "sinklab.base.strings"
local text = require "sinklab.base.text"

local print = strings.print

local folder = { "runs", "DIR", kind = "folder",
  doc = "where the run directories are, default runs" }
local as_json = { "json", doc = "print JSON" }
local filter = { "FILTER", "a condition", many = true, optional = true }
local filters = [[
A filter is KEY=VALUE, or with != < <= > >= or ~ (contains) in place of =, quoted where
the shell would read it: script~theorem2  'lr<=1e-3'  'softmax.train.steps<9000'. KEY is
a column (script, status, started, wall_s, seed, dtype, threads, isa, claims, failed), an
option or the path of a result in run.json; option. or result. before it says which.
All filters must hold.]]

--- The runs that the words of the command line are about.
local function open(given)
  local found = require "sinklab.record.runs" (given.runs)
  if not core.folder_exists(found.folder) then
    command.refuse("no folder '%s': the runs are looked for in it\n  try: --runs=DIR",
      found.folder)
  end
  return found
end

--- The first value; if there is none the command ends with the message.
local function must(value, message)
  if value == nil then command.refuse("%s", message) end
  return value, message
end

local order = { "folder", "script", "status", "started", "wall_s", "seed", "dtype",
  "threads", "isa", "sinklab", "claims", "failed", "error", "value" }

local function print_record(t) print(json.encode(t, entries.json_options)) end

local function print_json(list)
  local out = json.array {}
  for i, run in ipairs(list) do out[i] = json.object(run, order) end
  print_record(out)
end

local function print_runs(runs, list, given)
  if given.json then return print_json(list) end
  if #list == 0 then
    print("no runs" .. (given.filtered and " for which this holds" or "") .. " in "
      .. runs.folder)
  else
    print(text.table(runs:rows(list)))
  end
end

local function list(words, given)
  local runs = open(given)
  given.filtered = #words > 0
  print_runs(runs, must(runs:list { where = words, limit = given.limit }), given)
end

local function number(value)
  if type(value) == "number" then return ("%.6g"):format(value) end
  return value == nil and "-" or tostring(value)
end

--- A value cut to one line of a table.
local function cell(value)
  value = number(value)
  return #value > 60 and value:sub(1, 57) .. "..." or value
end

-- More results than these are shown without details of a measurement, unless --all.
local MANY = 60
-- Results of single heads, minima and maxima over heads, names of files.
local details = { "%.heads%.%d", "%.sinks%..*%.min$", "%.sinks%..*%.max$", "%.maps%." }

local function is_detail(name)
  for _, pattern in ipairs(details) do
    if name:find(pattern) then return true end
  end
  return false
end

--- The names of results to show, in order, and how many are left out.
local function shown(values, all)
  local names, left = {}, 0
  for name in pairs(values) do names[#names + 1] = name end
  table.sort(names)
  if all or #names <= MANY then return names, 0 end
  local few = {}
  for _, name in ipairs(names) do
    if is_detail(name) then
      left = left + 1
    else
      few[#few + 1] = name
    end
  end
  return few, left
end

local function show(words, given)
  local fields = require "sinklab.record.fields"
  local record, where = must(open(given):show(words[1]))
  if given.json then return print_record(record) end
  print(("%s\n%s, %s, %s s, %s, %s threads, %s, sinklab %s"):format(where,
    cell(record.script), cell(record.started), number(record.wall_s), cell(record.status),
    number(record.threads), cell(record.isa), cell(record.sinklab)))
  if record.error then print("error: " .. tostring(record.error)) end
  for _, part in ipairs { "options", "results" } do
    local rows, values = {}, fields[part](record)
    local names, left = shown(values, given.all)
    for i, name in ipairs(names) do rows[i] = { name, cell(values[name]) } end
    if #rows > 0 then print("\n" .. text.table({ part, "" }, rows)) end
    if left > 0 then
      print(("and %d of single heads, least and most of heads, files of maps: "
        .. "--all shows them"):format(left))
    end
  end
  if #record.claims > 0 then print "" end
  for _, c in ipairs(record.claims) do
    print(("%s  %s: %s %s %s"):format(c.holds and "holds" or "FAILS", c.text,
      number(c.value), c.op, number(c.bound)))
  end
end

local function compare(words, given)
  local c = must(open(given):compare(words[1], words[2]))
  if given.json then
    for _, part in ipairs { "options", "results" } do
      json.array(c[part])
      for _, d in ipairs(c[part]) do
        json.object(d, { "name", "a", "b", "difference" })
      end
    end
    return print_record(json.object(c, { "a", "b", "options", "results" }))
  end
  print(("a  %s\nb  %s"):format(c.a, c.b))
  for _, part in ipairs { "options", "results" } do
    local rows = {}
    for i, d in ipairs(c[part]) do
      rows[i] = { d.name, cell(d.a), cell(d.b), d.difference and number(d.difference)
        or "" }
    end
    if #rows > 0 then
      print("\n" .. text.table({ part == "options" and "options that differ" or part, "a",
        "b", "b - a" }, rows))
    elseif part == "options" then
      print "\nthe options are the same"
    end
  end
end

local function best(words, given)
  local runs = open(given)
  local metric = table.remove(words, 1)
  given.filtered = true
  print_runs(runs, must(runs:best(metric, { where = words, largest = given.largest,
    limit = given.limit })), given)
end

local function export(words, given)
  local form = table.remove(words, 1)
  if form ~= "csv" then
    command.refuse("runs export: unknown format '%s'; expected csv", form)
  end
  local csv = must(open(given):csv { where = words })
  if given.to then
    must(core.file_write(given.to, csv))
  else
    io.write(csv)
  end
end

--- Whether the person at the terminal agrees; nil where there is no terminal to ask on.
local function agrees(question)
  if not core.is_terminal "stdin" or not core.is_terminal "stdout" then return nil end
  io.write(question .. " [y/N] ")
  io.flush()
  local answer = core.read_line()
  return answer ~= nil and answer:lower():match "^%s*y" ~= nil
end

local function count(n) return ("%d run%s"):format(n, n == 1 and "" or "s") end

local function prune(words, given)
  local runs = open(given)
  local found = must(runs:prune { where = words, really = given.yes })
  given.filtered = true
  if given.json or #found == 0 then return print_runs(runs, found, given) end
  print(text.table(runs:rows(found)))
  local yes = given.yes
  if not yes then
    yes = agrees(("Move %s to %s/.trash?"):format(count(#found), runs.folder))
    if yes then must(runs:prune { where = words, really = true }) end
  end
  if yes then
    print(("%s moved to %s/.trash: sinklab runs restore brings them back"):format(
      count(#found), runs.folder))
  elseif yes == nil then
    print(("%s would be moved to the trash: --yes moves"):format(count(#found)))
  else
    print "no run was moved"
  end
end

local function empty_trash(runs, given)
  local n = #must(runs:trash())
  local yes = given.yes or n > 0 and agrees(("Remove %s for good?"):format(count(n)))
  if n == 0 then
    print("no runs in the trash of " .. runs.folder)
  elseif yes then
    print(("%s removed for good"):format(count(must(runs:empty_trash()))))
  elseif yes == nil then
    print(("%s would be removed for good: --yes removes"):format(count(n)))
  else
    print "no run was removed"
  end
end

local function restore(words, given)
  local runs = open(given)
  if given.empty then
    if #words > 0 or given.all then
      command.refuse "runs restore: --empty takes neither a run nor --all"
    end
    return empty_trash(runs, given)
  end
  if #words == 0 and not given.all then
    local list = must(runs:trash())
    if given.json then return print_json(list) end
    if #list == 0 then return print("no runs in the trash of " .. runs.folder) end
    print(text.table(runs:rows(list)))
    return print "RUN or --all brings back, --empty removes for good"
  end
  local back = must(runs:restore(not given.all and words or nil))
  print(("%s restored"):format(count(#back)))
end

local function rebuild(_, given)
  print(("%d runs"):format(must(open(given):rebuild())))
end

--- The names of the runs in runs/, and of the newest, for a shell.
local function names()
  local out = { "last" }
  for _, name in ipairs(core.folder "runs" or {}) do
    if core.file_exists("runs/" .. name .. "/run.json") then out[#out + 1] = name end
  end
  return out
end

local run = { "RUN", "a run: its directory, a part of the name that only it has, or last",
  complete = names }
return {
  doc = "list, compare, export, prune and restore runs",
  text = "The runs are the directories in runs/. An index beside them (index.sqlite) is\n"
    .. "updated from the directories by every command.\n\n" .. filters,
  actions = {
    { name = "list", doc = "list the runs, oldest first", text = filters,
      words = { filter },
      options = { { "limit", "N", kind = "count", doc = "only the newest N" }, folder,
        as_json },
      run = list },
    { name = "show", doc = "show the options, results and claims of one run",
      words = { run },
      options = { { "all", doc = "also results of single heads" }, folder,
        as_json },
      run = show },
    { name = "compare", doc = "show the options and results in which two runs differ",
      words = { { "A", "a run", complete = names },
        { "B", "another run", complete = names } },
      options = { folder, as_json }, run = compare },
    { name = "best", doc = "list the runs with the smallest value of a result",
      text = filters,
      words = { { "METRIC", "the path of a result, such as softmax.train.steps" },
        filter },
      options = { { "largest", doc = "largest value first" },
        { "limit", "N", kind = "count", doc = "number of runs, default 10" }, folder,
        as_json },
      run = best },
    { name = "export", doc = "write one line of CSV for each run", text = filters,
      words = { { "csv", "a format: csv", complete = { "csv" } }, filter },
      options = { { "to", "FILE", kind = "file",
        doc = "file to write, default standard output" }, folder },
      run = export },
    { name = "prune", doc = "move run directories to the trash", text = filters .. [[


They are shown first, and moved to the folder .trash beside them once a person at the
terminal agrees, or with --yes. A run in which a process works is refused.]],
      words = { { "FILTER", "a condition: which runs", many = true } },
      options = { { "yes", doc = "move them without asking" }, folder, as_json },
      run = prune },
    { name = "restore", doc = "list the trash, bring runs back, or empty it",
      words = { { "RUN", "a run in the trash", many = true, optional = true } },
      options = { { "all", doc = "bring back every run" },
        { "empty", doc = "remove the runs in the trash for good; asks at a terminal" },
        { "yes", doc = "do not ask" }, folder, as_json },
      run = restore },
    { name = "rebuild", doc = "rebuild the index from the directories", words = {},
      options = { folder }, run = rebuild },
  },
}
