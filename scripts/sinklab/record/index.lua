--- index.lua - the index of many runs: SQLite beside the run directories.
--
-- The run directories are the data; runs/index.sqlite is a searchable copy of their
-- run.json. Each use first updates it from the directories that have changed, so a writer
-- that was killed or did not use the index does no harm.
local core = require "sinklab.core"
local json = require "sinklab.base.json"
local live = require "sinklab.record.live"

local index = { file = "index.sqlite" }

-- An index with another number is rebuilt: the tables below have changed.
local VERSION = 2
local schema = {
  [[create table runs (folder text primary key, stamp text not null, script text,
    status text, started text, wall_s real, seed, dtype text, threads integer, isa text,
    sinklab text, error text, claims integer, failed integer) without rowid]],
  -- kind: 'option' or 'result'; name: a path such as softmax.train.steps.
  [[create table fields (folder text not null, kind text not null, name text not null,
    value, primary key (folder, kind, name)) without rowid]],
  "create index by_name on fields (kind, name)",
}
--- Of every run in the index, beside its folder.
index.columns = { "script", "status", "started", "wall_s", "seed", "dtype", "threads",
  "isa", "sinklab", "error", "claims", "failed" }
local columns = index.columns

-- A longer list of numbers is a curve, not a result to search for.
local LONGEST_LIST = 64

--- Call `change` inside a transaction: all of it is kept, or nothing.
local function transaction(db, change)
  local ok, message, kind = db:run "begin immediate"
  if not ok then return nil, message, kind end
  local fine, result, why = pcall(change)
  if fine and result then
    ok, message = db:run "commit"
    if ok then return result end
    result, why = nil, message
  end
  db:run "rollback"
  if not fine then error(result, 0) end
  return nil, why
end

--- The leaves of a table as path -> value, lists by their numbers from 1.
local function flatten(t, prefix, into)
  if #t > LONGEST_LIST then return into end
  for key, value in pairs(t) do
    local path = prefix == "" and tostring(key) or prefix .. "." .. key
    if type(value) == "table" then
      flatten(value, path, into)
    elseif value ~= json.null then
      if type(value) == "boolean" then value = tostring(value) end
      into[path] = value
    end
  end
  return into
end

--- A list of plain values as on the command line: softmax,relu. nil: it is not one.
local function listed(t)
  local words, n = {}, 0
  for _ in pairs(t) do n = n + 1 end
  for i, v in ipairs(t) do
    if type(v) == "table" then return nil end
    words[i] = tostring(v)
  end
  return #words == n and table.concat(words, ",") or nil
end

--- The options of a record by name; tables in tables by their paths.
function index.options(record)
  local out = {}
  for name, value in pairs(record.options) do
    name = tostring(name)
    if type(value) == "table" then
      out[name] = listed(value)
      if not out[name] then flatten(value, name, out) end
    elseif type(value) == "boolean" then
      out[name] = tostring(value)
    elseif value ~= json.null then
      out[name] = value
    end
  end
  return out
end

--- The results of a record, path -> value: softmax.train.steps.
function index.results(record) return flatten(record.results, "", {}) end

local function is_record(t)
  return type(t) == "table" and type(t.options) == "table"
      and type(t.results) == "table" and type(t.claims) == "table"
end

--- The content of a run directory's run.json; or nil and a message.
function index.read(folder)
  local path = folder .. "/run.json"
  local stamp, message = core.file_stamp(path) -- nor a pipe, which would never end
  if not stamp then return nil, message end
  local file
  file, message = io.open(path, "rb")
  if not file then return nil, message end
  local text = file:read "a"
  file:close()
  local record, why = json.decode(text or "")
  if not record then return nil, path .. ": " .. why end
  if not is_record(record) then return nil, path .. ": not the record of a run" end
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

--- Put one run into the index in place of its old rows. A record that cannot be
-- read is listed with the status "unreadable" and the reason.
local function put(db, name, stamp, folder)
  local record, why = index.read(folder)
  if record then record.status = live.status(record, folder) end
  record = record or { status = "unreadable", error = why, options = {}, results = {},
    claims = {} }
  local failed = 0
  for _, claim in ipairs(record.claims) do
    if type(claim) == "table" and claim.holds == false then failed = failed + 1 end
  end
  local values = { name, stamp }
  for i, column in ipairs(columns) do values[i + 2] = scalar(column, record[column]) end
  values[#columns + 1], values[#columns + 2] = #record.claims, failed
  local marks = ("?, "):rep(#columns + 1) .. "?"
  local ok, message = db:run("delete from fields where folder = ?", name)
  if not ok then return nil, message end
  ok, message = db:run(("insert or replace into runs (folder, stamp, %s) values (%s)")
    :format(table.concat(columns, ", "), marks),
    table.unpack(values, 1, #columns + 2))
  if not ok then return nil, message end
  for kind, fields in pairs { option = index.options(record),
    result = index.results(record) } do
    for field, value in pairs(fields) do
      ok, message = db:run("insert into fields values (?, ?, ?, ?)", name, kind, field,
        value)
      if not ok then return nil, message end
    end
  end
  return true
end

--- The tables, made if the file is new or of another version, or if `anew`.
local function prepare(db, path, anew)
  local found, message, kind = db:rows "pragma user_version"
  if not found then return nil, message, kind end
  if found[1].user_version == VERSION and not anew then return true end
  return transaction(db, function()
    -- Another process may have been quicker.
    local again, why = db:rows "pragma user_version"
    if not again then return nil, why end
    local version = again[1].user_version
    if version == VERSION and not anew then return true end
    if version > VERSION then
      return nil, ("%s: written by a newer sinklab (version %d; this one reads %d)")
        :format(path, version, VERSION)
    end
    for _, statement in ipairs { "drop table if exists fields",
      "drop table if exists runs", table.unpack(schema) } do
      local ok, trouble = db:run(statement)
      if not ok then return nil, trouble end
    end
    return db:run("pragma user_version = " .. VERSION)
  end)
end

local function explain(path, message, kind)
  if kind == "corrupt" then
    message = message .. "\n  try: sinklab runs rebuild"
    return nil, message, kind
  elseif not core.folder_exists(path:match "^(.*)/") then
    return nil, "no folder " .. path:match "^(.*)/"
  end
  return nil, message, kind
end

--- Open the index of the run directories in `base`, making it if need be.
local function open(base, anew)
  local path = base .. "/" .. index.file
  local db, message, kind = core.database(path, true)
  if not db then return explain(path, message, kind) end
  -- A commit survives a killed process; after a power failure run.json is still there.
  local ok
  ok, message, kind = db:rows "pragma synchronous = off"
  if ok then ok, message, kind = prepare(db, path, anew) end
  if not ok then
    db:close()
    return explain(path, message, kind)
  end
  return db
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
    local stays = row.status == live.status(row, base .. "/" .. row.folder)
    known[row.folder] = stays and row.stamp or "died"
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
  if #changed == 0 and next(known) == nil then return true end
  return transaction(db, function()
    for _, run in ipairs(changed) do
      local ok, why = put(db, run.name, run.stamp, base .. "/" .. run.name)
      if not ok then return nil, why end
    end
    for name in pairs(known) do
      for _, statement in ipairs { "delete from fields where folder = ?",
        "delete from runs where folder = ?" } do
        local ok, why = db:run(statement, name)
        if not ok then return nil, why end
      end
    end
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
  ok, message = transaction(db, function() return put(db, name, stamp, folder) end)
  db:close()
  return ok, message
end

--- Rebuild the index of `base` from the directories alone.
-- @return the number of runs, or nil and a message
function index.rebuild(base)
  local db, message, kind = open(base, true)
  if kind == "corrupt" then
    -- Only now: a file that another process has open is better left in its place.
    for _, tail in ipairs { "", "-journal" } do
      os.remove(base .. "/" .. index.file .. tail)
    end
    db, message = open(base, true)
  end
  if not db then return nil, message end
  local ok, rows
  ok, message = refresh(db, base)
  if ok then rows, message = db:rows "select count (*) as n from runs" end
  db:close()
  return rows and rows[1].n, message
end

return index
