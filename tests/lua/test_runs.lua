-- test_runs.lua - sinklab runs and lab.runs: the index follows the directories.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"
local lab = require "sinklab"

local folder = process.folder "runs"

local script = [[
-- What the tests run.
local lab = require "sinklab"
local opt = lab.options { seed = 1, lr = 0.1, attention = { "softmax", "relu" } }
local run = lab.run()
run:add("a=b", { train = { steps = opt.seed * 10, loss = opt.lr } })
run:claim("small", opt.lr, "<", 0.5)
]]

local function sinklab(words) return process.run(words, { folder = folder }) end

--- Five runs: seeds 1 to 4 at one learning rate each, and one that fails.
local function five_runs()
  process.shell("rm -rf '" .. folder .. "/runs'")
  process.write(folder .. "/s.lua", script)
  process.write(folder .. "/bad.lua", "require 'sinklab'.run() error 'no luck'")
  for seed = 1, 4 do
    local r = sinklab { "run", "s.lua", "--seed=" .. seed, "--lr=" .. seed / 5,
      "--quiet" }
    check.equal(r.code, seed > 2 and 2 or 0, r.err)
  end
  check.equal(sinklab { "run", "bad.lua", "--quiet" }.code, 1)
  return lab.runs(folder .. "/runs")
end

local function seeds(list)
  local out = {}
  for i, run in ipairs(list) do out[i] = run.seed end
  return out
end

check.test("runs are listed with what their records say", function()
  local list = assert(five_runs():list())
  check.equal(#list, 5)
  check.equal(seeds(list), { 1, 2, 3, 4 })
  local one = list[4]
  check.equal({ one.script, one.status, one.claims, one.failed, one.dtype },
    { "s.lua", "complete", 1, 1, "f32" })
  check.equal({ list[5].status, list[5].error }, { "failed", "bad.lua:1: no luck" })
  local r = sinklab { "runs", "list" }
  check.equal(r.code, 0, r.err)
  -- The first column is as wide as its longest name: "-2" if two began in one second.
  check.contains(r.out:gsub(" +", " "), one.folder .. " complete")
  check.contains(r.out, "0 of 1")
  check.contains(tostring(lab.runs(folder .. "/runs")), one.folder)
end)

check.test("filters: columns, options, results; every operator", function()
  local runs = five_runs()
  for condition, want in pairs { ["seed=2"] = { 2 }, ["seed!=2"] = { 1, 3, 4 },
    ["lr<0.4"] = { 1 }, ["lr<=0.4"] = { 1, 2 }, ["lr > 0.4"] = { 3, 4 },
    ["a=b.train.steps>=20"] = { 2, 3, 4 }, ["script~s.l"] = { 1, 2, 3, 4 },
    ["attention=softmax,relu"] = { 1, 2, 3, 4 }, ["option.seed=3"] = { 3 },
    ["result.a=b.train.loss<0.3"] = { 1 }, ["script<5"] = {},
    ["seed<1e3"] = { 1, 2, 3, 4 },
    ["script<t"] = { 1, 2, 3, 4 }, ["script>t"] = {} } do
    check.equal(seeds(assert(runs:list { where = { condition, "status=complete" } })),
      want, condition)
  end
  check.equal(seeds(assert(runs:list { where = { "seed>1", "lr<0.7" } })), { 2, 3 })
  check.equal(seeds(assert(runs:list { where = { "seed>0" }, limit = 2 })), { 3, 4 })
  check.equal(#assert(runs:list { where = { "error~luck" } }), 1)
  check.raises("no run has 'atention' (did you mean 'attention'?)", runs.list, runs,
    { where = { "atention=softmax" } })
  check.raises("must be KEY=VALUE", runs.list, runs, { where = { "softmax" } })
  -- Text is larger than numbers in SQL: 'wall_s<5s' must not be every run.
  for _, condition in ipairs { "wall_s<5s", "seed=one", "lr!=", "a=b.train.steps>=x" } do
    check.raises(("the condition '%s': the value must be a number"):format(condition),
      runs.list, runs, { where = { condition } })
    local r = sinklab { "runs", "prune", condition, "--yes" }
    check.equal(r.code, 1)
    check.equal(#assert(runs:list()), 5)
  end
  -- What looks like SQL is a value like any other.
  check.equal(#assert(runs:list { where = { "script=x' or '1'='1" } }), 0)
end)

check.test("best: the smallest or the largest value of a result", function()
  local runs = five_runs()
  local best = assert(runs:best("a=b.train.loss", { limit = 2 }))
  check.equal({ best[1].value, best[2].value, #best }, { 0.2, 0.4, 2 })
  best = assert(runs:best("a=b.train.steps", { largest = true, where = { "seed<4" } }))
  check.equal({ best[1].value, best[2].value, best[3].value }, { 30, 20, 10 })
  check.raises("no run has 'a=b.train.step' (did you mean 'a=b.train.steps'?)", runs.best,
    runs, "a=b.train.step")
end)

check.test("show and compare find runs by name, part of it, path and 'last'", function()
  local runs = five_runs()
  local list = assert(runs:list { where = { "seed>0" } })
  local record, where = assert(runs:show(list[2].folder))
  check.equal({ record.seed, where }, { 2, folder .. "/runs/" .. list[2].folder })
  check.equal(select(2, assert(runs:show "bad-")), folder .. "/runs/"
    .. runs:list { where = { "status=failed" } }[1].folder)
  check.equal(assert(runs:show(where)).seed, 2)
  check.equal(assert(runs:show "last").status, "failed")
  check.contains(select(2, runs:show "s-"), "could be 4 runs: ")
  check.contains(select(2, runs:show "nothing"), "no run 'nothing' in ")
  local c = assert(runs:compare(list[1].folder, list[3].folder))
  check.equal(#c.options, 2)
  check.equal(c.options[2], { name = "seed", a = 1, b = 3, difference = 2 })
  check.close(c.results[1].difference, 0.4, 1e-15)
  local r = sinklab { "runs", "compare", list[1].folder, list[3].folder }
  check.contains(r.out:gsub(" +", " "), "seed 1 3 2")
  r = sinklab { "runs", "show", "last", "--json" }
  check.equal(assert(lab.json.decode(r.out)).error, "bad.lua:1: no luck")
  r = sinklab { "runs", "show", list[3].folder }
  check.contains(r.out, "FAILS  small: 0.6 < 0.5")
end)

check.test("show: of many results those of single heads only with --all", function()
  five_runs()
  for _, count in ipairs { 1, 9 } do -- numbers of each of eight heads
    process.write(folder .. "/heads.lua", ([[
      local heads = {}
      for i = 1, 8 do
        heads[i] = { first_mean = i }
        for k = 2, %d do heads[i]["n" .. k] = k end
      end
      require "sinklab".run():add("m", { sinks = { heads = heads, first = { mean = 0.25,
        max = 80 } } }) ]]):format(count))
    check.equal(sinklab({ "run", "heads.lua", "--quiet" }).code, 0)
    local short = sinklab({ "runs", "show", "last" }).out
    local all = sinklab({ "runs", "show", "last", "--all" }).out
    check.contains(short, "m.sinks.first.mean")
    check.equal(short:find("heads.7.first_mean", 1, true) ~= nil, count == 1)
    check.equal(short:find("m.sinks.first.max", 1, true) ~= nil, count == 1)
    check.equal(short:find("and 73 of single heads", 1, true) ~= nil, count == 9)
    check.contains(all, "m.sinks.heads.7.first_mean")
    check.contains(all, "m.sinks.first.max")
  end
end)

check.test("export: a line a run, quoted where CSV needs it", function()
  five_runs()
  local r = sinklab { "runs", "export", "csv", "seed=2" }
  check.equal(r.code, 0, r.err)
  local lines = {}
  for line in r.out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  check.equal(#lines, 2)
  check.contains(lines[1], ",option.attention,option.lr,option.seed,")
  check.contains(lines[2], ',"softmax,relu",0.4,2,0.4,20')
  check.equal(sinklab({ "runs", "export", "csv", "--to=all.csv" }).code, 0)
  local _, n = process.read(folder .. "/all.csv"):gsub("\n", "")
  check.equal(n, 6)
end)

check.test("prune moves to the trash only what the filter says", function()
  local runs = five_runs()
  local one = runs:list()[5].folder
  process.shell(("cd '%s' && mkdir -p kept && touch kept/x && "
    .. "ln -s ../../kept runs/%s/link && ln -s ../kept runs/other"):format(folder, one))
  local r = sinklab { "runs", "prune", "status=failed" }
  check.contains(r.out, "1 run would be moved to the trash: --yes moves")
  check.equal(#runs:list(), 5)
  check.contains(sinklab({ "runs", "prune", "status=failed", "--yes" }).out,
    "1 run moved to runs/.trash")
  check.equal(seeds(runs:list()), { 1, 2, 3, 4 })
  check.equal(#assert(runs:trash()), 1)
  check.contains(sinklab({ "runs", "restore" }).out, one)
  check.equal(assert(runs:restore { "bad-" }), { one })
  check.equal(#runs:list(), 5)
  check.equal(select(2, runs:restore { "bad-" }),
    "no runs in " .. runs.folder .. "/.trash")
  -- A name that is taken meanwhile gets a number.
  assert(runs:prune { where = { "status=failed" }, really = true })
  process.shell(("cp -r '%s/runs/.trash/%s' '%s/runs'"):format(folder, one, folder))
  check.equal(assert(runs:restore()), { one .. "-2" })
  check.equal(#assert(runs:prune { where = { "status=failed" }, really = true }), 2)
  -- Trash that cannot be listed is a message.
  local path = folder .. "/runs/.trash/index.sqlite"
  check.equal(#assert(runs:trash()), 2)
  do
    local db <close> = assert(core.database(path))
    assert(db:run "pragma user_version = 99")
  end
  check.contains(select(2, runs:restore()), "written by a newer sinklab (version 99")
  os.remove(path)
  check.contains(sinklab({ "runs", "restore", "--empty" }).out,
    "2 runs would be removed for good: --yes removes")
  check.contains(sinklab({ "runs", "restore", "--empty", "--yes" }).out, "2 runs removed")
  check.equal(#assert(runs:trash()), 0)
  check.equal(core.folder_exists(folder .. "/runs/.trash"), false)
  check.equal(core.file_exists(folder .. "/kept/x"), true)
  check.equal(sinklab({ "runs", "prune" }).code, 1)
  check.raises("no condition", runs.prune, runs, { where = {} })
end)

-- Ends when the file `go` is there.
local waiting = [[
local lab = require "sinklab"
local run = lab.run()
print "ready"
while not io.open "go" do lab.zeros { 100, 100 } end
run:add("a", { done = 1 })
]]

check.test("a run in which a process works is running, and nobody else's", function()
  five_runs()
  process.write(folder .. "/wait.lua", waiting)
  local binary = os.getenv "SINKLAB_BINARY"
  process.shell(([[cd '%s' && rm -f go
    for name in live dead; do
      '%s' run wait.lua --quiet --out=runs/$name </dev/null >$name.out 2>&1 &
      echo $! >$name.pid
    done
    for name in live dead; do
      until grep -q ready $name.out; do sleep 0.05; done
    done
    kill -9 $(cat dead.pid)]]):format(folder, binary))
  local runs, status = lab.runs(folder .. "/runs"), {}
  for _ = 1, 100 do -- until the system has ended the killed one
    for _, run in ipairs(assert(runs:list())) do status[run.folder] = run.status end
    if status.dead == "died" then break end
    process.shell "sleep 0.05"
  end
  check.equal({ status.live, status.dead }, { "running", "died" })
  check.equal(assert(runs:show "dead").status, "died")
  local pid = process.read(folder .. "/live.pid"):match "%d+"
  check.equal(assert(runs:show "live").pid, tonumber(pid))
  for _, words in ipairs { { "run", "s.lua", "--out=runs/live" },
    { "runs", "prune", "status~", "--yes" } } do
    local r = sinklab(words)
    check.equal(r.code, 1)
    check.contains(r.err, "runs/live: a process works in it (process " .. pid .. " on ")
  end
  check.equal(#assert(runs:list()), 7)
  check.contains(sinklab({ "runs", "prune", "status=died", "--yes" }).out, "1 run moved")
  check.equal(sinklab({ "run", "s.lua", "--quiet", "--out=runs/.trash/dead" }).code, 0)
  process.write(folder .. "/go", "")
  for _ = 1, 200 do
    if assert(runs:show "live").status == "complete" then break end
    process.shell "sleep 0.05"
  end
  check.equal(assert(runs:show "live").results.a.done, 1)
  check.equal(core.file_exists(folder .. "/runs/live/.lock"), false)
end)

check.test("the directories are the truth: gone, edited, damaged, no index", function()
  local runs = five_runs()
  local list = runs:list()
  process.shell("rm -r '" .. folder .. "/runs/" .. list[1].folder .. "'")
  process.write(folder .. "/runs/" .. list[2].folder .. "/run.json", '{"options": ')
  local now = assert(runs:list())
  check.equal({ #now, now[1].status }, { 4, "unreadable" })
  check.contains(now[1].error, "JSON, line 1")
  check.equal(#assert(runs:list()), 4)
  local r2 = sinklab { "runs", "list", "--runs=nowhere" }
  check.equal(r2.code, 1)
  check.contains(r2.err, "no folder 'nowhere'")
end)

check.test("an index that is none of ours is set aside and made anew", function()
  local runs = five_runs()
  local path = folder .. "/runs/index.sqlite"
  local hostile = {
    sentence = function() process.write(path, "this is no database, but text") end,
    cut = function() process.write(path, process.read(path):sub(1, 5000)) end,
    view = { "drop table fields",
      "create view fields as select 1 as name, 1 as run, 'x' as value" },
    columns = { "alter table runs add column more text" },
    trigger = { "create trigger t after insert on runs begin delete from fields; end" },
    foreign = { "drop table runs", "drop table fields", "drop table names",
      "create table diary (day text)", "insert into diary values ('1 May')",
      "pragma user_version = 0" },
  }
  for name, statements in pairs(hostile) do
    assert(runs:list())
    if type(statements) == "function" then
      statements()
    else
      local db <close> = assert(core.database(path))
      for _, statement in ipairs(statements) do assert(db:run(statement)) end
    end
    local was = process.read(path)
    local r = sinklab { "runs", "list" }
    check.equal(r.code, 0, name .. ": " .. r.err)
    check.contains(r.err, "runs/index.sqlite: not an index of runs; now ", name)
    check.equal(process.read(path .. ".aside") == was, true, name)
    check.equal(#assert(runs:list()), 5, name)
    check.equal(seeds(assert(runs:list { where = { "lr<0.5", "a=b.train.steps>10" } })),
      { 2 }, name)
  end
  do
    local db <close> = assert(core.database(path))
    assert(db:run "pragma user_version = 99")
  end
  check.contains(select(2, runs:list()), "written by a newer sinklab (version 99")
  process.shell("rm '" .. path .. "'*")
  check.equal(assert(runs:rebuild()), 5)
end)

check.test("many runs are indexed in batches, between which others write", function()
  local base = process.folder "many"
  for i = 1, 450 do
    local name = ("%s/r%03d"):format(base, i)
    core.make_folder(name)
    process.write(name .. "/run.json", ('{"options":{"i":%d},"results":{"x":%d.5,'
      .. '"y":[1,2]},"claims":[],"status":"complete"}'):format(i, i))
  end
  local runs = lab.runs(base)
  check.equal(#assert(runs:list { where = { "x<100", "y.2=2" } }), 99)
  check.equal(#assert(runs:list { where = { "i=450" } }), 1)
  check.equal(assert(runs:best("x", { limit = 1, largest = true }))[1].value, 450.5)
end)

check.test("numbers that are not finite are found and told apart", function()
  local where = process.folder "wild"
  process.write(where .. "/s.lua", [[
    local lab = require "sinklab"
    local x = lab.options { x = "1" }.x
    local wild = { nan = 0 / 0, inf = math.huge, ["-inf"] = -math.huge }
    lab.run():add("m", { loss = wild[x] or tonumber(x), list = { 0 / 0 } })]])
  for _, x in ipairs { "1", "nan", "inf", "-inf" } do
    local r = process.run({ "run", "s.lua", "--x=" .. x, "--out=runs/r" .. x, "--quiet" },
      { folder = where })
    check.equal(r.code, 0, r.err)
  end
  local runs = lab.runs(where .. "/runs")
  for condition, want in pairs { ["m.loss=nan"] = "rnan", ["m.loss=inf"] = "rinf",
    ["m.loss=-inf"] = "r-inf", ["m.loss>1e300"] = "rinf", ["m.loss<-1e300"] = "r-inf",
    ["m.loss=1"] = "r1", ["m.list.1=nan"] = "r-inf r1 rinf rnan" } do
    local found = {}
    for i, run in ipairs(assert(runs:list { where = { condition } })) do
      found[i] = run.folder
    end
    table.sort(found)
    check.equal(table.concat(found, " "), want, condition)
  end
  check.raises("the value must be a number", runs.list, runs, { where = { "m.loss<x" } })
  check.equal(assert(runs:show "rnan").results.m.loss, "nan")
  check.equal(assert(runs:best "m.loss")[1].folder, "r-inf")
end)

check.test("results whose paths would be one are told apart", function()
  local base = process.folder "dots"
  core.make_folder(base .. "/r")
  process.write(base .. "/r/run.json", '{"options":{},"results":{"a.b":{"c":1},'
    .. '"a":{"b.c":2,"b":{"c":3}},"lr=0.1":{"x":4}},"claims":[]}')
  local values = {}
  for _, one in ipairs(assert(lab.runs(base):compare("r", "r")).results) do
    values[one.name] = one.a
  end
  check.equal(values, { ['"a.b".c'] = 1, ['a."b.c"'] = 2, ["a.b.c"] = 3,
    ['"lr=0.1".x'] = 4 })
  for condition, n in pairs { ['"a.b".c=1'] = 1, ["a.b.c=3"] = 1, ["a.b.c=1"] = 0 } do
    check.equal(#assert(lab.runs(base):list { where = { condition } }), n, condition)
  end
end)

check.test("records that others wrote: odd types, pipes, control characters", function()
  local base = folder .. "/odd"
  process.shell("rm -rf '" .. base .. "'")
  local function record(name, json)
    process.shell("mkdir -p '" .. base .. "/" .. name .. "'")
    process.write(base .. "/" .. name .. "/run.json", json)
  end
  record("a", '{"options":{"lr":1,"n":[[1,2],{"b":3}]},"results":{},"claims":[],'
    .. '"wall_s":"long","threads":"two","status":"red\\u001b[31m\\n"}')
  record("b", '{"options":[1,true],"results":{"x":1},"claims":{}}')
  process.shell("mkdir -p '" .. base .. "/c' && mkfifo '" .. base .. "/c/run.json'")
  local runs = lab.runs(base)
  local status = {}
  for _, run in ipairs(assert(runs:list())) do status[run.folder] = run end
  check.equal({ status.a.wall_s, status.a.threads }, {})
  check.equal(status.c.status, "unreadable")
  check.contains(status.c.error, "it is not a file")
  local shown = tostring(runs)
  check.contains(shown, [[red\x1b[31m\n]])
  check.equal(select(2, shown:gsub("\n", "\n")), 5, "one line a run")
  local options = {}
  for _, o in ipairs(assert(runs:compare("a", "b")).options) do
    options[#options + 1] = ("%s %s %s"):format(o.name, o.a, o.b)
  end
  check.equal(options, { "1 nil 1", "2 nil true", "lr 1 nil", "n.1.1 1 nil",
    "n.1.2 2 nil", "n.2.b 3 nil" })
  local none, why = runs:show "c"
  check.equal(none, nil)
  check.contains(why, "it is not a file")
end)

check.test("an index that cannot be written is made in memory", function()
  local runs = five_runs()
  local index = folder .. "/runs/index.sqlite"
  -- A folder in its place serves also where the user may write everywhere.
  process.shell("rm '" .. index .. "' && mkdir '" .. index .. "'")
  check.equal(#assert(runs:list()), 5)
  check.equal(#assert(runs:best("wall_s")), 5)
  local record = assert(runs:show "last")
  check.equal(record.status, "failed")
  local n, why = runs:rebuild()
  check.equal(n, nil)
  check.contains(why, "unable to open database file")
end)

check.test("a folder that the user chose gets no index", function()
  process.write(folder .. "/s.lua", script)
  check.equal(sinklab({ "run", "s.lua", "--quiet", "--out=mine/first" }).code, 0)
  check.equal(core.file_exists(folder .. "/mine/index.sqlite"), false)
  check.equal(#assert(lab.runs(folder .. "/mine"):list()), 1)
  check.equal(sinklab({ "run", "s.lua", "--quiet", "--out=mine/second" }).code, 0)
  check.equal(#assert(lab.runs(folder .. "/mine"):list()), 2)
end)

check.test("runs begun in the same second get directories of their own", function()
  process.shell("rm -rf '" .. folder .. "/runs'")
  process.write(folder .. "/s.lua", script)
  local binary = os.getenv "SINKLAB_BINARY"
  process.shell(("cd '%s' && for i in 1 2 3 4 5 6; do "
    .. "'%s' run s.lua --seed=$i --quiet & done; wait"):format(folder, binary))
  local list = assert(lab.runs(folder .. "/runs"):list())
  local found = seeds(list)
  table.sort(found)
  check.equal(found, { 1, 2, 3, 4, 5, 6 })
end)

check.test("eight writers killed at random lose no committed record", function()
  process.shell("rm -rf '" .. folder .. "/runs'")
  process.write(folder .. "/writer.lua", [[
local core, index = require "sinklab.core", require "sinklab.record.index"
local who = require "sinklab".options { who = 1 }.who
local log <close> = io.open("committed" .. who, "w")
log:setvbuf "no"
for i = 1, 100000 do
  local folder = ("runs/w%d-%d"):format(who, i)
  core.make_folders(folder)
  assert(core.file_write(folder .. "/run.json", '{"options": {"who": ' .. who
    .. '}, "results": {"n": ' .. i .. '}, "claims": [], "status": "complete"}'))
  assert(index.update(folder))
  log:write(folder:sub(6), "\n")
end]])
  -- Each is killed some hundredths of a second after its first commit (generator with
  -- seed 7), the others writing on.
  local state, kills = 7, {}
  for who = 1, 8 do
    state = (state * 1103515245 + 12345) % 2147483648
    kills[who] = ("tries=0; until [ -s committed%d ] || [ $tries -ge 600 ]; do "
      .. "sleep 0.05; tries=$((tries + 1)); done; sleep 0.%02d; kill -9 $p%d"):format(who,
      2 + state // 65536 % 30, who)
  end
  local starts = {}
  for who = 1, 8 do
    starts[who] = ("'%s' run writer.lua --who=%d --threads=1 & p%d=$!"):format(
      os.getenv "SINKLAB_BINARY", who, who)
  end
  process.shell(("cd '%s'; %s; %s; wait"):format(folder, table.concat(starts, "\n"),
    table.concat(kills, "; ")):gsub("& p(%d)=$!;", "& p%1=$!\n"))
  local db <close> = assert(core.database(folder .. "/runs/index.sqlite"))
  local there, committed = {}, 0
  for _, row in ipairs(assert(db:rows "select folder from runs")) do
    there[row.folder] = true
  end
  for who = 1, 8 do
    for name in process.read(folder .. "/committed" .. who):gmatch "(%S+)\n" do
      committed = committed + 1
      if not there[name] then
        error(("%s was committed and is lost (seed 7)"):format(name))
      end
    end
  end
  check.equal(assert(db:rows "pragma integrity_check"), { { integrity_check = "ok" } })
  if committed < 8 then error(("only %d records were committed"):format(committed)) end
  -- Every directory with a whole record is in the list, also those never committed.
  check.at_least(#assert(lab.runs(folder .. "/runs"):list()), committed)
end)

check.test("wrong use raises at the caller's line", function()
  check.raises("lab.runs: the folder must be a string, got 3", lab.runs, 3)
  local runs = lab.runs(folder .. "/runs")
  check.raises("runs:list: no such option 'were' (did you mean 'where'?)", runs.list,
    runs, { were = {} })
  check.raises("runs:show: the name must be a string, got nil", runs.show, runs)
  local none, message = lab.runs(folder .. "/missing"):list()
  check.equal(none, nil)
  check.contains(message, "no folder ")
end)

check.done()
