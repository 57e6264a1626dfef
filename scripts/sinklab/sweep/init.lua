--- sweep.lua - lab.sweep: many small runs, each in a process of its own.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local schema = require "sinklab.base.schema"
local send = require "sinklab.sweep.send"
local store = require "sinklab.sweep.store"
local contexts = require "sinklab.cli.context"
local progress = require "sinklab.base.progress"

--- All combinations of a grid's values, as points.
local function combine(what, grid)
  local names, points = {}, { {} }
  for name, values in pairs(grid) do
    if type(name) ~= "string" or type(values) ~= "table" or #values == 0 then
      check.fail("%s: option 'grid' must be { name = { value, ... }, ... }; look at '%s'",
        what, tostring(name))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local more = {}
    for _, point in ipairs(points) do
      for _, value in ipairs(grid[name]) do
        local copy = { [name] = value }
        for key, known in pairs(point) do copy[key] = known end
        more[#more + 1] = copy
      end
    end
    points = more
  end
  return points
end

--- What every point runs, as text for a worker and as text that tells whether it has
-- changed, and the texts of the points: data that cannot be sent is refused before a
-- process is started.
local function prepare(what, o, points)
  local sent = { run = o.run, with = o.with, path = package.path, cpath = package.cpath }
  local job, message = send.write(sent, "sent", true)
  if not job then
    check.fail("%s: %s", what, (message:gsub("sent%.(%a+)", "option '%1'")))
  end
  sent.path, sent.cpath = nil, nil
  local bare, texts = assert(send.write(sent, "sent", "bare")), {}
  for i, point in ipairs(points) do
    texts[i], message = send.write(point, ("point %d"):format(i), false)
    if not texts[i] then check.fail("%s: %s", what, message) end
  end
  return job, bare, texts
end

--- A worker that knows its job; nil and a message.
local function start(job)
  local process, message = core.process("run",
    core.scripts .. "/sinklab/sweep/worker.lua", "--threads=1", "--quiet")
  if not process then return nil, message end
  local ok, why = process:send(job)
  if not ok then return nil, ("%s; it %s"):format(why, process:stop()) end
  return { process = process }
end

local function close(workers)
  for _, worker in ipairs(workers) do worker.process:stop() end
end

local Workers = { __close = close }

--- Give the next point without a result to a worker; false if there is none.
local function feed(state, worker)
  local i = state.next
  while state.results[i] do i = i + 1 end
  state.next = i
  if i > #state.points then return false end
  state.next = i + 1
  worker.point, worker.since = i, core.clock()
  -- A worker that has gone shows when it is received from.
  worker.process:send(("return{number=%d,point=%s}"):format(i,
    state.texts[i]:match "^return (.*)$"))
  return true
end

local function finish(state, worker, ok, value)
  local i = worker.point
  local entry = { point = state.points[i], seconds = core.clock() - worker.since }
  if ok then entry.result = value else entry.failed = value end
  state.results[i], worker.point = entry, nil
  if state.store then
    local kept, message = state.store:put(state.texts[i], entry)
    if not kept then check.fail("lab.sweep: %s", message) end
  end
  state.done = state.done + 1
  state.failed = state.failed + (ok and 0 or 1)
  if state.on_result then state.on_result(entry, i) end
end

--- Read the result of a worker; false when the worker has ended.
local function receive(state, worker)
  local text = worker.process:receive()
  if text == false then return true end
  if not text then
    finish(state, worker, false, "the worker " .. worker.process:stop())
    return false
  end
  local answer = send.read(text)
  local ok, value = answer[1], answer[2]
  if ok then value = send.read(value) end
  finish(state, worker, ok, value)
  return true
end

--- An option of the sweep, else that of the command line.
local function chosen(o, name)
  if o[name] ~= nil then return o[name] end
  return contexts.current()[name]
end

--- End the workers that have had a point for longer than allowed; the points fail.
local function end_late(state, workers, timeout)
  for i = #workers, 1, -1 do
    local worker = workers[i]
    if worker.point and core.clock() - worker.since > timeout then
      worker.process:stop()
      table.remove(workers, i)
      finish(state, worker, false, ("took longer than the timeout, %g s"):format(timeout))
    end
  end
end

--- Take the entries that a store has, so that these points are not run again.
local function recall(state, retry_failed)
  for i, text in ipairs(state.texts) do
    local known = state.store:get(text)
    if known and not (known.failed and retry_failed) then
      state.results[i] = { point = state.points[i], result = known.result,
        failed = known.failed, seconds = known.seconds, kept = true }
      state.done, state.kept = state.done + 1, state.kept + 1
      state.failed = state.failed + (known.failed and 1 or 0)
    end
  end
end

local function show(state, running)
  local parts = { ("%s  %d of %d"):format(state.label, state.done, #state.points) }
  if state.failed > 0 then parts[#parts + 1] = state.failed .. " failed" end
  if running then parts[#parts + 1] = running .. " running" end
  local took, new = core.clock() - state.started, state.done - state.kept
  return parts, new > 0 and took / new * (#state.points - state.done)
end

local sweep = schema.func("lab.sweep", {
  doc = [[Run a function for many points, several at a time, each in a fresh process.

    Made for many small trainings: seeds times learning rates, a table of mechanisms. A
    worker process has one thread, serves one point after another and starts in a few
    milliseconds. Points and results are plain data: numbers (every bit of them, NaN
    too), strings, booleans, tables of these.

    The function is sent with the variables that it captures: plain data (also the table
    of lab.options) as it is at the call, modules such as `lab` by name, other functions
    of the script likewise. A task, a model or a tensor cannot be sent: make it inside.
    Each point gets these values as they were at the call, whatever another point has done
    to them, and math.random seeded by its number in the list. Its output goes to standard
    error. An error in it fails its point only, as does a crash.

    With `out` every result is kept in a file as it comes. The same sweep with the same
    `out` takes from there what it has and runs the rest; points that failed stay failed
    unless `retry_failed`. If the function or a value that it captures has changed, it is
    refused unless `fresh`.

    On Ctrl-C the workers are ended and the sweep returns the results that it has, with
    `interrupted`; points without a result have failed = "interrupted".]],
  options = {
    { "points", "table", doc = "list of points, anything plain; or" },
    { "grid", "table", doc = [[{ name = { value, ... }, ... }: every combination, names in
      alphabetical order, the last one changing fastest]] },
    { "run", "function string",
      required = "a function (point, with), or a module's name", doc = [[(point, with) ->
      a plain value, or the name of a module that returns such a function]] },
    { "with", "any", doc = "plain data passed to every call" },
    { "workers", "integer", min = 1, max = 1024,
      default_doc = "as many as this script has threads",
      doc = "processes at a time" },
    { "out", "string", doc = "folder that keeps the results, made if need be" },
    { "retry_failed", "boolean", default_doc = "the value of --retry-failed",
      doc = "run the points that `out` has as failed again" },
    { "fresh", "boolean", default_doc = "the value of --fresh",
      doc = "forget the results that `out` has" },
    { "timeout", "number", above = 0,
      doc = "seconds for a point, after which its worker is ended and it fails" },
    { "label", "string", default = "sweep", doc = "for the progress line" },
    { "on_result", "function",
      doc = "(entry, index), called as results come in, not for kept ones" },
    { "quiet", "boolean", default_doc = "the value of --quiet",
      doc = "no progress line" },
  },
  returns = [[list in the order of the points: { point =, result =, seconds = } or { point
    =, failed = message, seconds = }, with kept = true if it was in `out`; fields `failed`
    (how many), `wall_s` and, after Ctrl-C, `interrupted`]],
  errors = "data that cannot be sent, by name",
  example = [[
    local runs = lab.sweep {
      grid = { seed = { 0, 1 }, lr = { 1e-3, 3e-3 } },
      run = function (p)
        local task = lab.task.trigger_mean {}
        local model = lab.model.attention_only { task = task, seed = p.seed }
        local log = lab.train(model, task, { steps = 20, seed = p.seed, eval = 0,
          optimizer = lab.optim.adam { lr = p.lr } })
        return { loss = log.loss }
      end }
    for _, r in ipairs(runs) do print(r.point.lr, r.point.seed, r.result.loss) end]],
}, function(o)
  local what = "lab.sweep"
  if (o.points == nil) == (o.grid == nil) then
    check.fail("%s: give either 'points' or 'grid'", what)
  end
  local points = o.points or combine(what, o.grid)
  local job, bare, texts = prepare(what, o, points)
  local state = { points = points, texts = texts, results = {}, next = 1, done = 0,
    kept = 0, failed = 0, label = o.label, on_result = o.on_result,
    started = core.clock() }
  if o.out then
    local opened, message = store.open(o.out, bare, chosen(o, "fresh"))
    if not opened then check.fail("%s: %s", what, message) end
    state.store = opened
    recall(state, chosen(o, "retry_failed"))
  end
  local line = progress.new { quiet = o.quiet }
  local workers <close> = setmetatable({}, Workers)
  local most = math.min(o.workers or core.threads(), #points)
  while state.done < #points and not core.interrupted() do
    while #workers < most and state.done + #workers < #points do
      local worker, message = start(job)
      if not worker and #workers == 0 then check.fail("%s: %s", what, message) end
      if not worker then -- no more processes or descriptors: fewer workers
        most = #workers
      elseif not feed(state, worker) then
        worker.process:stop()
        most = #workers
      else
        workers[#workers + 1] = worker
      end
    end
    local processes = {}
    for i, worker in ipairs(workers) do processes[i] = worker.process end
    local i = core.process_wait(processes, 0.25)
    if i then
      local worker = workers[i]
      if not receive(state, worker) or not worker.point and not feed(state, worker) then
        table.remove(workers, i)
      end
    end
    if o.timeout then end_late(state, workers, o.timeout) end
    line:show(show(state, #workers))
  end
  local results = state.results
  results.failed, results.wall_s = state.failed, core.clock() - state.started
  if core.interrupted() then
    results.interrupted = true
    for i, point in ipairs(points) do
      results[i] = results[i] or { point = point, failed = "interrupted", seconds = 0 }
    end
    core.pending_interrupt()
  end
  line:close((show(state)), progress.duration(results.wall_s))
  return results
end)

return sweep
