--- run.lua - lab.run: the run directory, its record run.json, and claims.
--
-- The keys of run.json are an interface: docs/run.md describes them.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local json = require "sinklab.base.json"
local schema = require "sinklab.base.schema"
local strings = require "sinklab.base.strings"
local contexts = require "sinklab.cli.context"
local options = require "sinklab.cli.options"
local entries = require "sinklab.record.entries"
local index = require "sinklab.record.index"
local live = require "sinklab.record.live"
local text = require "sinklab.base.text"

local fail = check.fail
local module, methods = {}, {}

local record_keys = { "sinklab", "script", "options", "seed", "dtype", "threads",
  "isa", "host", "pid", "started", "wall_s", "status", "error", "plugins", "results",
  "claims", "tables", "files" }
local label_row = { "label", "string", doc = "letters, digits and _ . - = +" }
local name_row = { "name", "string", doc = label_row.doc }
local cannot_write = "a file that cannot be written"

--- A label is part of file names.
local function check_label(what, label)
  if not label:match "^%w[%w_.=+-]*$" then
    fail("%s: the label '%s' must be letters, digits and _ . - = +", what, label)
  end
end

--- Raise the message of a write that failed.
local function must(ok, message)
  if not ok then fail("%s", message) end
end

-- The record.

local function plugins_used()
  local list, loaded = json.array {}, core.plugins_loaded()
  table.sort(loaded, function(a, b) return a.name < b.name end)
  for i, p in ipairs(loaded) do
    list[i] = json.object({ name = p.name, version = p.version, path = p.path,
      hash = "sha256:" .. p.hash, shadows = p.shadows },
      { "name", "version", "path", "hash", "shadows" })
  end
  return list
end

local function write_record(self)
  local record = self.record
  record.wall_s = (core.clock() - self.clock) * 1000 // 1 / 1000
  record.plugins = plugins_used()
  must(core.file_write(self.folder .. "/run.json",
    json.encode(record, entries.json_options) .. "\n"))
end

--- Write the record. After an interrupt the script ends here: its results so far are
-- kept, and its next step (measuring, drawing, claiming) does not start.
local function save(self)
  write_record(self)
  core.stop_if_interrupted()
end

--- Put the record into the index of runs. The directory is the record, so a failure of
-- the index is a warning.
local function put_in_index(self)
  local ok, message = index.update(self.folder, self.chosen)
  if not ok and not core.quiet() then
    strings.complain(("the index of runs: %s"):format(message))
  end
end

--- Write a file of the run by write (path, ...), and add its name to the record.
local function write_file(self, name, write, ...)
  must(write(self.folder .. "/" .. name, ...))
  local files = self.record.files
  for _, known in ipairs(files) do
    if known == name then return end
  end
  files[#files + 1] = name
end

-- Results.

-- Maps of a measurement that are kept as arrays, LABEL-NAME.npy; of more numbers than
-- this (64 MB) none are.
local maps, MOST_NUMBERS = { "mean", "std", "output_norms" }, 1 << 24

--- Save them; their file names by map, or nil.
local function save_maps(self, label, sinks)
  local names
  for _, map in ipairs(maps) do
    local tensor = rawget(sinks, map)
    if core.is_tensor(tensor) and tensor.count <= MOST_NUMBERS then
      names = names or {}
      names[map] = label .. "-" .. map .. ".npy"
      write_file(self, names[map], core.save_npy, tensor)
    end
  end
  return names and json.object(names, maps)
end

methods.csv = schema.func("run:csv", {
  doc = "Write a training log as train-<label>.csv.",
  args = { label_row, { "log", "table", list = "entries", of = "table",
    doc = "of the result of lab.train" } },
  errors = "a label that is no part of a file name",
  example = [[
    local run = lab.run()
    run:csv("mine", { { step = 1, loss = 0.5, lr = 1e-3, time = 0.1 } })]],
}, function(self, label, log)
  check_label("run:csv", label)
  write_file(self, "train-" .. label .. ".csv", core.file_write, entries.csv(log))
  save(self)
end)

methods.add = schema.func("run:add", {
  doc = "Add results under a label; run[label] gives them back.",
  args = { label_row,
    { "results", "table", doc = [[{ train = from lab.train, sinks = from lab.sinks, eval
      = { samples =, max_abs_error =, ... } (default train.eval) } and any more names with
      numbers, strings and tables of them. A training's log is also written as
      train-<label>.csv, the maps of a measurement as <label>-mean.npy, <label>-std.npy
      and <label>-output_norms.npy]] },
  },
  errors = "a label that is taken, results that JSON has no form for",
  example = [[
    local run = lab.run()
    run:add("softmax", { eval = { samples = 1000, max_abs_error = 0.004 },
      note = "a note" })]],
}, function(self, label, results)
  check_label("run:add", label)
  if methods[label] or rawget(self, label) ~= nil then
    fail("run:add: the label '%s' is taken by run.%s itself", label, label)
  end
  if self.added[label] then fail("run:add: '%s' has been added before", label) end
  local out = entries.plain(results)
  if results.train then out.train = entries.train(results.train) end
  local eval = results.eval or (results.train and results.train.eval)
  out.eval = eval and entries.eval(eval)
  if results.sinks then out.sinks = entries.sinks(results.sinks) end
  json.encode(out) -- raises before anything is kept
  if results.sinks then out.sinks.maps = save_maps(self, label, results.sinks) end
  self.record.results[label] = json.object(out, { "train", "eval", "sinks" })
  self.labels[#self.labels + 1] = label
  self.added[label] = results
  if results.train and results.train.log then
    self:csv(label, results.train.log)
  else
    save(self)
  end
end)

-- Files.

methods.figure = schema.func("run:figure", {
  doc = "Save a figure (lab.plot) as NAME.png, NAME.svg and NAME.pdf.",
  args = { name_row, { "figure", "figure" } },
  errors = cannot_write,
  example = [[
    local run = lab.run()
    run:figure("map", lab.plot.heat { { 1, 0 }, { 0.5, 0.5 } })]],
}, function(self, name, figure)
  check_label("run:figure", name)
  for _, extension in ipairs { "png", "svg", "pdf" } do
    write_file(self, name .. "." .. extension, function(path)
      return figure:save(path)
    end)
  end
  save(self)
end)

methods.array = schema.func("run:array", {
  doc = "Save a tensor as NAME.npy.",
  args = { name_row, { "tensor", "tensor" } },
  errors = cannot_write,
  example = [[
    local run = lab.run()
    run:array("weights", lab.arange(3))]],
}, function(self, name, tensor)
  check_label("run:array", name)
  write_file(self, name .. ".npy", core.save_npy, tensor)
  save(self)
end)

methods.weights = schema.func("run:weights", {
  doc = "Save a model's parameters as NAME.safetensors.",
  args = { name_row, { "model", "model" } },
  errors = cannot_write,
  example = [[
    local run = lab.run()
    run:weights("softmax", lab.model.attention_only {
      task = lab.task.trigger_mean {} })]],
}, function(self, name, model)
  check_label("run:weights", name)
  write_file(self, name .. ".safetensors", function(path) return model:save(path) end)
  save(self)
end)

methods.report = schema.func("run:report", {
  doc = [[Write the run's report, report.html: options, tables, claims, figures,
    training curves and heads to look into, in one file that needs no other. It shows
    what has been added so far, and is made again when the run ends; `sinklab report`
    makes it of any run directory, or of several.]],
  returns = "path of the file",
  errors = cannot_write,
  example = [[
    local run = lab.run()
    print(run:report())]],
}, function(self)
  save(self)
  write_file(self, "report.html", function()
    return require "sinklab.report".write { self.folder }
  end)
  self.reported = true
  save(self)
  return self.folder .. "/report.html"
end)

methods.table = schema.func("run:table", {
  doc = [[Print an aligned table, and keep it: in the record, as table-N.csv, numbered
    from 1, and in the report.]],
  args = { { "names", "table", doc = "of the columns" },
    { "rows", "table", doc = "lists of as many cells, strings or numbers" },
    { "title", "string", optional = true, doc = "for the report" } },
  example = [[lab.run():table({ "head", "weight" }, { { 1, 0.99 }, { 2, 0.5 } })]],
}, function(self, names, rows, title)
  print(text.table(names, rows))
  local tables, csv = self.record.tables, nil
  tables[#tables + 1], csv = entries.table(names, rows, title)
  write_file(self, ("table-%d.csv"):format(#tables), core.file_write, csv)
  save(self)
end)

-- Claims.

methods.claim = schema.func("run:claim", {
  doc = "State a claim about the run and record whether it holds.",
  args = {
    { "claim", "string", doc = "the claim in words" },
    { "value", "number", nan = true, doc = "with NaN no claim holds" },
    { "op", "string", choices = { ">=", "<=", ">", "<", "==" } },
    { "bound", "number", nan = true },
  },
  returns = "whether it holds; if one claim of a script does not, sinklab exits with 2",
  example = [[lab.run():claim("softmax: the head sinks", 0.998, ">=", 0.98)]],
}, function(self, claim, value, op, bound)
  local entry, line = entries.claim(claim, value, op, bound)
  local claims = self.record.claims
  claims[#claims + 1] = entry
  print(line)
  save(self)
  return entry.holds
end)

-- The end and the beginning.

local function all_hold(self)
  for _, claim in ipairs(self.record.claims) do
    if not claim.holds then return false end
  end
  return true
end

local open, finish
local held = true -- every claim of the runs that are closed

methods.finish = schema.func("run:finish", {
  doc = [[Close the record: the run is complete. `sinklab run` does this by itself at
    the end of a script; a script that is run by a stock Lua calls it, or its record
    says that the program ended without.]],
  returns = "whether every claim holds",
  example = "print(lab.run():finish())",
}, function(self)
  if open ~= self then fail "run:finish: the run is closed already" end
  return finish "complete"
end)

--- The host calls this when the script has ended: "complete", "failed" with the error,
-- or "interrupted". Returns whether every claim holds.
function finish(status, message)
  if status == "complete" then options.unread() end
  local self = open
  if not self then return held end
  open = nil
  self.record.status = status
  if status == "failed" then self.record.error = message end
  write_record(self)
  if self.reported then -- its page still says "running"
    must(require "sinklab.report".write { self.folder })
  end
  if self.lock then self.lock:release() end
  put_in_index(self)
  if not core.quiet() then
    strings.complain(("%s after %.1f s: %s"):format(status, self.record.wall_s,
      self.folder))
  end
  held = all_hold(self) and held
  return held
end

module.finish = finish

--- The host calls this when the process ends by os.exit (code), or by the exit of other
-- C code: then the code is a sentence.
function module.exit(code)
  if not open then return end
  local good = code == nil or code == true or code == 0
  local why = type(code) == "string" and code or ("os.exit (%s)"):format(tostring(code))
  finish(good and "complete" or "failed", not good and why or nil)
end

--- Open the run of a context (cli/context.lua): its script, shown, out and options.
function module.open(context)
  if open and context.script then
    fail "lab.run: this script has opened its run already"
  end
  if open then module.finish "complete" end
  local script = context.shown or "repl"
  local values = context.options or {}
  if context.out then must(core.make_folders(context.out)) end
  local folder, trouble = context.out, nil
  if not folder then folder, trouble = live.new_folder(script) end
  must(folder, trouble)
  local lock, why, held = live.take(folder)
  if held then
    fail("lab.run: %s; wait for its end, or choose another --out", why)
  elseif not lock then
    strings.complain(why .. ": nothing keeps other processes out of this folder")
  end
  live.remove_temporary(folder)
  local labels = {} -- of results, in the order of adding
  local host, pid = core.this_process()
  local seed, dtype = rawget(values, "seed"), rawget(values, "dtype")
  local self = setmetatable({ folder = folder, chosen = context.out ~= nil, lock = lock,
    clock = core.clock(), added = {}, reported = false,
    labels = labels, record = json.object({
      sinklab = core.version, script = script,
      options = json.object(entries.plain(values)),
      seed = seed == nil and json.null or seed,
      dtype = dtype == nil and "f32" or dtype,
      threads = core.threads(), isa = core.isa(), host = host, pid = pid,
      started = core.utc(), status = "running", results = json.object({}, labels),
      claims = json.array {}, tables = json.array {}, files = json.array {},
    }, record_keys) }, {
      __name = "sinklab.run",
      __index = function(self, key)
        if methods[key] then return methods[key] end
        local added = rawget(self, "added")[key]
        if added == nil then
          local names = {}
          for name in pairs(methods) do names[#names + 1] = name end
          for name in pairs(self.added) do names[#names + 1] = name end
          fail("run.%s: nothing was added under this label%s", tostring(key),
            check.did_you_mean(key, names))
        end
        return added
      end,
      __tostring = function(self) return "run in " .. self.folder end,
      -- The Lua state is closed before the record: the end of a program of a stock Lua.
      __gc = function(self)
        if open ~= self then return end
        finish("failed", "the program ended before run:finish()")
      end,
    })
  open = self
  save(self)
  put_in_index(self)
  return self
end

module.run = schema.func("lab.run", {
  doc = [[Open the run, a directory where everything is written, and its record.

    The directory is runs/<script>-<UTC time> or that of --out (files of the same
    names in it are replaced). The record is on the disk from now on with the status
    "running", and is "complete", "failed" or "interrupted" in the end. A script has one
    run. In the REPL a new run ends the one before.]],
  returns = "run; run[label] is the table that run:add was given",
  errors = "a second run of a script, a directory that cannot be made",
  example = [[
    local run = lab.run()
    print(run.folder)]],
}, function()
  local context = contexts.current()
  if context.help then
    print "It has no options of its own."
    core.quit(0)
  end
  options.unread()
  return module.open(context)
end)

return module
