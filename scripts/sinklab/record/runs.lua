--- runs.lua - lab.runs: many runs found, compared, exported, pruned and restored.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local csv = require "sinklab.base.csv"
local fields = require "sinklab.record.fields"
local filter = require "sinklab.record.filter"
local index = require "sinklab.record.index"
local live = require "sinklab.record.live"
local text = require "sinklab.base.text"

local methods, Runs = {}, { __name = "sinklab.runs" }
Runs.__index = methods

--- Runs without columns of the index itself.
local function shown(rows, message)
  for _, row in ipairs(rows or {}) do row.id, row.stamp = nil, nil end
  return rows, message
end

--- The runs of an open index for which `where`, a list of texts such as "lr<=1e-3",
-- holds, oldest first; at most the newest `limit`.
local function select_runs(db, where, limit)
  local known, message = filter.names(db)
  if not known then return nil, message end
  local terms, values = filter.sql(where, known)
  values[#values + 1] = limit or -1
  return shown(db:rows(([[select * from (select * from runs r where %s
    order by started desc, stamp desc limit ?) order by started, stamp]])
    :format(terms), table.unpack(values)))
end

local runs = schema.func("lab.runs", {
  doc = [[The runs in a folder.

    Runs are found by the records in their directories; an index beside them
    (index.sqlite) makes that quick and is brought up to date by every call.]],
  args = { { "folder", "string", default = "runs" } },
  returns = [[an object with :list, :show, :compare, :best, :csv, :prune, :trash,
    :restore, :empty_trash and :rebuild]],
  example = [[print(lab.runs "runs")]],
}, function(folder)
  folder = folder:gsub("(.)/+$", "%1")
  if folder == "" then check.fail "lab.runs: the folder is ''" end
  return setmetatable({ folder = folder }, Runs)
end)

methods.list = schema.func("runs:list", {
  doc = "The runs, oldest first.",
  options = {
    { "where", "table", default = {}, doc = [[a list of conditions that must all hold, KEY
      OP VALUE with OP one of = != < <= > >= and ~ (contains): "script~theorem2",
      "lr<=1e-3", "softmax.train.steps<9000". KEY is a column (script, status, started,
      wall_s, seed, dtype, threads, isa, claims, failed ...), an option or the path of a
      result; `option.` or `result.` before it says which.]] },
    { "limit", "integer", min = 1, doc = "at most so many, the newest" },
  },
  returns = [[a list of { folder, script, status, started, wall_s, seed, dtype, threads,
    isa, sinklab, error, claims, failed }; nil and a message if there is no such folder]],
  errors = "an unknown key, with the nearest one",
  example = [[
    local list = lab.runs "runs":list { where = { "status=complete" }, limit = 5 }]],
}, function(self, o)
  local db <close>, message = index.open(self.folder)
  if not db then return nil, message end
  return select_runs(db, o.where, o.limit)
end)

--- The folder of the run that `name` means: a directory's name, the beginning or a part
-- of exactly one, a path, or "last".
local function find(self, name)
  local db <close>, trouble = index.open(self.folder)
  if not db then return nil, trouble end
  local rows, message = db:rows "select folder from runs order by started, stamp"
  if not rows then return nil, message end
  if #rows == 0 then return nil, "no runs in " .. self.folder end
  if name == "last" then return self.folder .. "/" .. rows[#rows].folder end
  local begins, within, names = {}, {}, {}
  for i, row in ipairs(rows) do
    names[i] = row.folder
    if row.folder == name then return self.folder .. "/" .. name end
    local at = row.folder:find(name, 1, true)
    if at == 1 then begins[#begins + 1] = row.folder end
    if at then within[#within + 1] = row.folder end
  end
  if core.file_exists(name .. "/run.json") then return (name:gsub("(.)/+$", "%1")) end
  local found = #begins > 0 and begins or within
  if #found == 1 then return self.folder .. "/" .. found[1] end
  if #found > 1 then
    return nil, ("'%s' could be %d runs: %s%s"):format(name, #found,
      table.concat(found, ", ", 1, math.min(#found, 4)), #found > 4 and ", ..." or "")
  end
  return nil, ("no run '%s' in %s%s"):format(name, self.folder,
    check.did_you_mean(name, names))
end

methods.show = schema.func("runs:show", {
  doc = "The record of one run.",
  args = {
    { "name", "string",
      doc = [[a directory's name, a part of it that only one has, a path, or "last"]] },
  },
  returns = [[the table in its run.json, with the status "died" if it says "running" and
    no process works there, and its directory; or nil and a message]],
  example = [[local record, folder = lab.runs "runs":show "last"]],
}, function(self, name)
  local folder, message = find(self, name)
  if not folder then return nil, message end
  local record
  record, message = index.read(folder)
  if not record then return nil, message end
  return record, folder
end)

--- Where two tables differ: name -> { a, b }, sorted by name.
local function differences(a, b, same_too)
  local names, out = {}, {}
  for name in pairs(a) do names[#names + 1] = name end
  for name in pairs(b) do if a[name] == nil then names[#names + 1] = name end end
  table.sort(names)
  for _, name in ipairs(names) do
    local left, right = a[name], b[name]
    if same_too or left ~= right then
      local both = type(left) == "number" and type(right) == "number"
      out[#out + 1] = { name = name, a = left, b = right,
        difference = both and right - left or nil }
    end
  end
  return out
end

methods.compare = schema.func("runs:compare", {
  doc = "Two runs side by side.",
  args = {
    { "first_run", "string", doc = "as for runs:show" },
    { "second_run", "string", doc = "as for runs:show" },
  },
  returns = [[{ a, b = their directories, options, results = lists of { name, a, b,
    difference = b - a for numbers } }: the options that differ, and the results that
    both or one of them has; or nil and a message]],
  example = [[local c = lab.runs "runs":compare("last", "last")]],
}, function(self, a, b)
  local left, folder_a = self:show(a)
  if not left then return nil, folder_a end
  local right, folder_b = self:show(b)
  if not right then return nil, folder_b end
  return { a = folder_a, b = folder_b,
    options = differences(fields.options(left), fields.options(right)),
    results = differences(fields.results(left), fields.results(right), true) }
end)

methods.best = schema.func("runs:best", {
  doc = "The runs with the smallest (or largest) value of a result.",
  args = {
    { "metric", "string",
      doc = [[the path of a result, such as "softmax.train.steps", or a column]] },
  },
  options = {
    { "largest", "boolean", default = false,
      doc = "the largest first, not the smallest" },
    { "where", "table", default = {}, doc = "as for runs:list" },
    { "limit", "integer", default = 10, min = 1, doc = "at most so many" },
  },
  returns = "a list as :list gives, each with `value`; or nil and a message",
  errors = "a metric that no run has, with the nearest one",
  example = [[local fast = lab.runs "runs":best("wall_s", { limit = 3 })]],
}, function(self, metric, o)
  local db <close>, trouble = index.open(self.folder)
  if not db then return nil, trouble end
  local known, message = filter.names(db)
  if not known then return nil, message end
  local value, bound = filter.value(metric, known)
  local terms, values = filter.sql(o.where, known)
  -- The metric stands in the statement twice, before and after the conditions.
  local all = table.move(bound, 1, #bound, 1, {})
  table.move(values, 1, #values, #all + 1, all)
  all[#all + 1] = o.limit
  return shown(db:rows(([[select * from (select *, %s as value from runs r where %s)
    where typeof (value) in ('integer', 'real') order by value %s, started, stamp
    limit ?]]):format(value, terms, o.largest and "desc" or "asc"), table.unpack(all)))
end)

methods.csv = schema.func("runs:csv", {
  doc = [[Every run as a line of CSV: the columns of :list, then each option as
    option.NAME and each result as result.PATH; a cell is empty where a run has no
    such value.]],
  options = { { "where", "table", default = {}, doc = "as for runs:list" } },
  returns = "text; or nil and a message",
  example = [[local csv = lab.runs "runs":csv()]],
}, function(self, o)
  local db <close>, trouble = index.open(self.folder)
  if not db then return nil, trouble end
  local list, message = select_runs(db, o.where)
  if not list then return nil, message end
  local values
  values, message = db:rows [[select folder, kind || '.' || n.name as name, value
    from fields f join names n on n.id = f.name join runs r on r.id = f.run]]
  if not values then return nil, message end
  local of, names = {}, {}
  for _, run in ipairs(list) do of[run.folder] = {} end
  for _, f in ipairs(values) do
    if of[f.folder] then
      if not names[f.name] then
        names[f.name] = true
        names[#names + 1] = f.name
      end
      of[f.folder][f.name] = f.value
    end
  end
  table.sort(names)
  local head = { "folder", table.unpack(index.columns) }
  table.move(names, 1, #names, #head + 1, head)
  local rows = {}
  for i, run in ipairs(list) do
    rows[i] = { run.folder }
    for j, c in ipairs(index.columns) do rows[i][j + 1] = run[c] end
    for j, name in ipairs(names) do
      rows[i][#index.columns + 1 + j] = of[run.folder][name]
    end
  end
  return csv.text(head, rows)
end)

-- Runs that are pruned go here, in the folder of the runs.
local TRASH = ".trash"

local function trash_of(self) return runs(self.folder .. "/" .. TRASH) end

--- Move a run directory, under another name if its own is taken there.
-- @return its new name; or nil and a message: it could not be moved, or a process works
--         in it
local function move(from, base, name)
  local free, n = name, 1
  local function taken(path) return core.file_exists(path) or core.folder_exists(path) end
  while taken(base .. "/" .. free) do
    n = n + 1
    free = name .. "-" .. n
  end
  local to = base .. "/" .. free
  local ok, message = os.rename(from, to)
  if not ok then return nil, message end
  if not core.folder_locked(to) then return free end
  -- A process has opened it in this moment.
  ok, message = os.rename(to, from)
  return nil, ok and live.message(from) or message
end

methods.prune = schema.func("runs:prune", {
  doc = [[Move run directories to the folder .trash beside them, from where runs:restore
    brings them back and runs:empty_trash removes them for good.]],
  options = {
    { "where", "table", required = "a list of conditions",
      doc = "conditions as for runs:list; at least one" },
    { "really", "boolean", default = false,
      doc = "move them; without it they are only listed" },
  },
  returns = [[the list of runs, as :list gives; nil and a message on failure, which leaves
    the rest in place, or if a process works in one of them: then none is moved]],
  errors = [[no condition: "status~" holds for every run]],
  example = [[local would_go = lab.runs "runs":prune { where = { "status=failed" } }]],
}, function(self, o)
  if #o.where == 0 then
    check.fail "runs:prune: no condition; try: where = { \"status=failed\" }"
  end
  local list, message = self:list { where = o.where }
  if not list then return nil, message end
  for _, run in ipairs(list) do
    local folder = self.folder .. "/" .. run.folder
    if core.folder_locked(folder) then
      return nil, live.message(folder) .. "; no run was moved"
    end
  end
  if not o.really or #list == 0 then return list end
  local trash = trash_of(self).folder
  local made, why = core.make_folder(trash)
  if made == nil then return nil, why end
  for _, run in ipairs(list) do
    local ok, trouble = move(self.folder .. "/" .. run.folder, trash, run.folder)
    if not ok then return nil, trouble end
  end
  local db <close>, trouble = index.open(self.folder) -- forgets them
  if not db then return nil, trouble end
  return list
end)

methods.trash = schema.func("runs:trash", {
  doc = "The runs that runs:prune has moved away, oldest first.",
  returns = "a list as :list gives; or nil and a message",
  example = [[print(#lab.runs "runs":trash())]],
}, function(self)
  local trash = trash_of(self)
  if not core.folder_exists(trash.folder) then return {} end
  return trash:list()
end)

methods.restore = schema.func("runs:restore", {
  doc = "Bring runs back from the trash.",
  args = { { "names", "table", default_doc = "all of them",
    doc = "of the runs, each as for runs:show", optional = true } },
  returns = [[their names, with a number after one that has been taken meanwhile; or nil
    and a message, which leaves the rest in the trash]],
  example = [[local back = lab.runs "runs":restore()]],
}, function(self, names)
  local trash, from, back = trash_of(self), {}, {}
  local list, trouble = {}, nil
  if not names then list, trouble = self:trash() end
  if not list then return nil, trouble end
  for i, run in ipairs(list) do from[i] = run.folder end
  for i, name in ipairs(names or {}) do
    local folder, message = find(trash, name)
    if not folder then return nil, message end
    from[i] = folder:match "[^/]+$"
  end
  for i, name in ipairs(from) do
    local new, why = move(trash.folder .. "/" .. name, self.folder, name)
    if not new then return nil, why end
    back[i] = new
  end
  return back
end)

methods.empty_trash = schema.func("runs:empty_trash", {
  doc = "Remove the runs in the trash for good. Links in them are not followed.",
  returns = "how many there were; or nil and a message",
  example = [[local n = lab.runs "runs":empty_trash()]],
}, function(self)
  local list, message = self:trash()
  if not list then return nil, message end
  local ok, why = core.remove_tree(trash_of(self).folder)
  if not ok then return nil, why end
  return #list
end)

methods.rebuild = schema.func("runs:rebuild", {
  doc = "Rebuild the index from the directories.",
  returns = "the number of runs; or nil and a message",
  example = [[local n = lab.runs "runs":rebuild()]],
}, function(self)
  return index.rebuild(self.folder)
end)

methods.rows = schema.func("runs:rows", {
  doc = "Rows of text for a list of runs, under a row of column names.",
  args = { { "list", "table", list = "runs", of = "table", doc = "from runs:list" } },
  returns = "names, rows: for lab.text.table",
  example = [[print(lab.text.table(lab.runs "runs":rows {}))]],
}, function(_, list)
  local rows, valued = {}, list[1] and list[1].value ~= nil
  for i, run in ipairs(list) do
    local claims = run.claims or 0
    rows[i] = { run.folder, run.status, ("%.1f"):format(run.wall_s or 0),
      claims == 0 and "-" or ("%d of %d"):format(claims - run.failed, claims),
      valued and ("%.6g"):format(run.value) or nil }
  end
  return { "run", "status", "wall_s", "claims hold", valued and "value" or nil }, rows
end)

function Runs:__tostring()
  local list, message = self:list { limit = 20 }
  if not list then return "runs: " .. message end
  if #list == 0 then return "no runs in " .. self.folder end
  return "runs in " .. self.folder .. "\n" .. text.table(methods.rows(self, list))
end

return runs
