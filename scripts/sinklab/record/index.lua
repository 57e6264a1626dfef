--- index.lua - the index of many runs: SQLite beside the run directories.
--
-- The run directories are the data; runs/index.sqlite is a searchable copy of their
-- run.json. Each use first updates it from the directories that have changed, so a writer
-- that was killed or did not use the index does no harm.
local core = require "sinklab.core"
local fields = require "sinklab.record.fields"
local json = require "sinklab.base.json"
local progress = require "sinklab.base.progress"

local index = { file = "index.sqlite" }

-- An index with another number is rebuilt: the tables below have changed.
local VERSION = 3
local schema = {
  [[create table runs (id integer primary key, folder text not null unique,
    stamp text not null, script text, status text, started text, wall_s real, seed,
    dtype text, threads integer, isa text, sinklab text, error text, claims integer,
    failed integer)]],
  -- kind: 'option' or 'result'; name: a path such as softmax.train.steps.
  [[create table names (id integer primary key, kind text not null, name text not null,
    unique (kind, name))]],
  -- name, run: the id of a name and of a run.
  [[create table fields (name integer not null, run integer not null, value,
    primary key (name, run)) without rowid]],
}
--- Of every run in the index, beside its folder.
index.columns = { "script", "status", "started", "wall_s", "seed", "dtype", "threads",
  "isa", "sinklab", "error", "claims", "failed" }
local columns = index.columns

-- Runs that are put into the index at once: another process writes between batches.
local BATCH = 200

--- Call `change` inside a transaction: all of it is kept, or nothing.
local function transaction(db, change)
  local ok, message, kind = db:run "begin immediate"
  if not ok then return nil, message, kind end
  local fine, result, why, kind_of = pcall(change)
  if fine and result then
    ok, why, kind_of = db:run "commit"
    if ok then return result end
  end
  db:run "rollback"
  if fine then return nil, why, kind_of end
  if type(result) ~= "table" then error(result, 0) end
  return nil, result[1], result[2] -- of run ()
end

--- Whether a record of this status is that of a run that died: no process works in its
-- folder (record/live.lua).
local function has_died(status, folder)
  return status == "running" and not core.folder_locked(folder)
end

--- The content of a run directory's run.json, with the status "died" in place of
-- "running" if no process works there; or nil and a message.
-- @param more  a key that must be a table too, beside options, results and claims
function index.read(folder, more)
  local path = folder .. "/run.json"
  local text, message = core.file_read(path)
  if not text then return nil, message end
  local record, why = json.decode(text)
  if type(record) ~= "table" then
    return nil, ("%s: %s"):format(path, why or "not the record of a run")
  end
  for _, key in ipairs { "options", "results", "claims", more } do
    if type(record[key]) ~= "table" then
      return nil, ("%s: not the record of a run: it has no %s"):format(path, key)
    end
  end
  if has_died(record.status, folder) then record.status = "died" end
  return record
end

-- Columns that are numbers: other values are stored as null.
local numeric = { wall_s = true, threads = true }

--- Numbers and text go in as they are; anything else is nothing.
local function scalar(column, value)
  if type(value) == "number" or type(value) == "string" and not numeric[column] then
    return value
  end
end

--- A run as the index has it: the values of its columns from `folder` on, its options
-- and results. A record that cannot be read has the status "unreadable" and the reason.
local function read_run(name, stamp, folder)
  local record, why = index.read(folder)
  record = record or { status = "unreadable", error = why, options = {}, results = {},
    claims = {} }
  local failed = 0
  for _, claim in ipairs(record.claims) do
    if type(claim) == "table" and claim.holds == false then failed = failed + 1 end
  end
  local values = { name, stamp }
  for i, column in ipairs(columns) do values[i + 2] = scalar(column, record[column]) end
  values[#columns + 1], values[#columns + 2] = #record.claims, failed
  return { name = name, values = values, option = fields.options(record),
    result = fields.results(record) }
end

--- A statement that must succeed inside a transaction: its failure is raised, and the
-- transaction returns it.
local function run(db, sql, ...)
  local rows, message, kind = db[sql:find "^select" and "rows" or "run"](db, sql, ...)
  if not rows then error { message, kind } end
  return rows
end

local function forget(db, name)
  local found = run(db, "select id from runs where folder = ?", name)[1]
  if not found then return end
  run(db, "delete from fields where run = ? and name in (select id from names)", found.id)
  run(db, "delete from runs where id = ?", found.id)
end

local insert_run = ("insert into runs (folder, stamp, %s) values (%s)"):format(
  table.concat(columns, ", "), ("?, "):rep(#columns + 1) .. "?")

--- Add the number that a name has in the index to `ids`, those of its kind.
local function add_name(db, ids, kind, name)
  run(db, "insert or ignore into names (kind, name) values (?, ?)", kind, name)
  local found = run(db, "select id from names where kind = ? and name = ?", kind, name)
  ids[name] = found[1].id
end

--- Put runs, from read_run, into the index in place of their old rows.
-- @param known  { option =, result = } the numbers of names so far
local function put(db, known, list)
  for _, one in ipairs(list) do
    forget(db, one.name)
    run(db, insert_run, table.unpack(one.values, 1, #columns + 2))
    one.id = run(db, "select last_insert_rowid () as id")[1].id
  end
  for kind, ids in pairs(known) do
    local rows, n = {}, 0
    for _, one in ipairs(list) do
      for name, value in pairs(one[kind]) do
        if not ids[name] then add_name(db, ids, kind, name) end
        rows[n + 1], rows[n + 2], rows[n + 3] = ids[name], one.id, value
        n = n + 3
      end
    end
    local ok, message, what = db:run_each("insert into fields values (?, ?, ?)", rows)
    if not ok then error { message, what } end
  end
  return true
end

local function new_names() return { option = {}, result = {} } end

--- The tables, indexes, views and triggers of a database, as text.
local function structure(db)
  local rows, message, kind = db:rows "select type, name, sql from sqlite_schema"
  if not rows then return nil, message, kind end
  local out = {}
  for i, row in ipairs(rows) do
    out[i] = table.concat({ row.type, row.name, row.sql }, " ")
  end
  table.sort(out)
  return table.concat(out, "\n")
end

local function make_tables(db)
  for _, statement in ipairs(schema) do run(db, statement) end
  return run(db, "pragma user_version = " .. VERSION)
end

--- The structure that the tables above give.
local right
local function right_structure()
  if not right then
    local db <close> = assert(core.database(":memory:", true))
    make_tables(db)
    right = assert(structure(db))
  end
  return right
end

--- Make the tables of a new file, or find those of this version.
-- @return true; or nil, a message and a kind, "foreign" for a database that is no index
--         of this version
local function prepare(db, path)
  return transaction(db, function()
    local found = run(db, "select user_version as version from pragma_user_version")[1]
    if found.version > VERSION then
      return nil, ("%s: written by a newer sinklab (version %d; this one reads %d)")
        :format(path, found.version, VERSION)
    end
    local there, why, kind = structure(db)
    if not there then return nil, why, kind end
    if there == "" and found.version == 0 then
      make_tables(db)
    elseif there ~= right_structure() then
      return nil, path .. ": not an index of runs", "foreign"
    end
    return true
  end)
end

--- Move a file that is no index out of the way of a new one.
local function set_aside(path)
  if not core.quiet() then
    io.stderr:write(("%s: not an index of runs; now %s.aside, and a new one is made\n")
      :format(path, path))
  end
  os.remove(path .. "-journal")
  return os.rename(path, path .. ".aside")
end

--- Open the index of the run directories in `base`, making it if need be.
local function open(base)
  local path = base .. "/" .. index.file
  local message, kind
  for _ = 1, 2 do
    local db, ok
    db, message, kind = core.database(path, true)
    if db then
      -- A commit survives a killed process; after a power failure run.json is there.
      ok, message, kind = db:rows "pragma synchronous = off"
      if ok then ok, message, kind = prepare(db, path) end
      if ok then return db end
      db:close()
    end
    if kind ~= "corrupt" and kind ~= "foreign" or not set_aside(path) then break end
  end
  if not core.folder_exists(base) then return nil, "no folder " .. base end
  return nil, message, kind
end

--- Names of the run directories in `base`, sorted.
local function folders(base)
  local list, message = core.folder(base)
  if not list then return nil, message end
  local names = {}
  for _, name in ipairs(list) do
    if core.file_exists(base .. "/" .. name .. "/run.json") then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

--- Update the index from the directories that are new, changed or gone.
local function refresh(db, base)
  local known, names, message = {}, nil, nil
  names, message = folders(base)
  if not names then return nil, message end
  local rows
  rows, message = db:rows "select folder, stamp, status from runs"
  if not rows then return nil, message end
  for _, row in ipairs(rows) do
    local died = has_died(row.status, base .. "/" .. row.folder)
    known[row.folder] = died and "died" or row.stamp
  end
  local changed = {}
  for _, name in ipairs(names) do
    -- The stamp is read before the record: a write in between is seen next time.
    local stamp = core.file_stamp(base .. "/" .. name .. "/run.json") or "no file"
    if stamp ~= known[name] then
      changed[#changed + 1] = { name = name, stamp = stamp }
    end
    known[name] = nil
  end
  local ids = new_names()
  local work <close> = progress.work("index of " .. base, #changed)
  for from = 1, #changed, BATCH do
    local batch = {}
    for i = from, math.min(from + BATCH - 1, #changed) do
      local name = changed[i].name
      batch[#batch + 1] = read_run(name, changed[i].stamp, base .. "/" .. name)
    end
    local ok, why, kind = transaction(db, function() return put(db, ids, batch) end)
    if not ok then return nil, why, kind end
    work:at(from + #batch - 1)
    core.stop_if_interrupted()
  end
  if next(known) == nil then return true end
  return transaction(db, function()
    for name in pairs(known) do forget(db, name) end
    return true
  end)
end

--- An index in memory, for a folder in which nothing can be written.
local function in_memory()
  local db, message = core.database(":memory:", true)
  if not db then return nil, message end
  local ok
  ok, message = prepare(db, ":memory:")
  if ok then return db end
  db:close()
  return nil, message
end

--- The index of `base`, up to date. The caller closes it.
-- @return an open database, or nil and a message
function index.open(base)
  local message, kind
  for _, way in ipairs { open, in_memory } do
    local db, ok
    db, message, kind = way(base)
    if db then
      ok, message, kind = refresh(db, base)
      if ok then return db end
      db:close()
    end
    if kind ~= "unwritable" then break end
  end
  return nil, message
end

--- Put the run in `folder`, whose run.json has just been written, into the index beside
-- it. A folder that the user chose gets no index unless there is one already.
-- @param chosen  true: the folder is the user's choice, not runs/...
-- @return true, or nil and a message
function index.update(folder, chosen)
  local base, name = folder:match "^(.*)/([^/]+)/*$"
  if not base then base, name = ".", folder end
  if name == "." or name == ".." then return true end
  if chosen and not core.file_exists(base .. "/" .. index.file) then return true end
  local stamp, message = core.file_stamp(folder .. "/run.json")
  if not stamp then return nil, message end
  local db
  db, message = open(base)
  if not db then return nil, message end
  local ok
  ok, message = transaction(db, function()
    return put(db, new_names(), { read_run(name, stamp, folder) })
  end)
  db:close()
  return ok, message
end

--- Rebuild the index of `base` from the directories alone.
-- @return the number of runs, or nil and a message
function index.rebuild(base)
  local db, message = open(base)
  if not db then return nil, message end
  local ok, rows
  ok, message = transaction(db, function()
    for _, name in ipairs { "fields", "names", "runs" } do
      run(db, "delete from " .. name)
    end
    return true
  end)
  if ok then ok, message = refresh(db, base) end
  if ok then rows, message = db:rows "select count (*) as n from runs" end
  db:close()
  return rows and rows[1].n, message
end

return index
