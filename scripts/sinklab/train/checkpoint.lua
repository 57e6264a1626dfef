--- checkpoint.lua - lab.train's checkpoints: checkpoint = { path = , every = }.
--
-- The file holds the parameters, the optimizer's state, and as metadata the settings,
-- the counters and the log. Data are drawn by seed and step, so the step is their place.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local json = require "sinklab.base.json"
local live = require "sinklab.record.live"
local strings = require "sinklab.base.strings"

local what = "lab.train"
local checkpoint = {}
local Checkpoint = { __index = {} }

--- The rows of lab.train's option `checkpoint`.
checkpoint.rows = {
  { "path", "string", required = true, doc = "of the safetensors file" },
  { "every", "number", default = 30, min = 0, unit = "seconds",
    doc = "between writes; also written at the end and when a signal ends the training" },
}

--- A number as the shortest of two texts that keep every bit.
local function number_text(x)
  local short = ("%.15g"):format(x)
  return tonumber(short) == x and short or ("%.17g"):format(x)
end

--- Settings by name, as texts: equal settings, equal texts.
local function flat(into, name, value)
  if type(value) == "table" then
    for key, inner in pairs(value) do flat(into, name .. "." .. key, inner) end
  else
    into[name] = type(value) == "number" and number_text(value) or tostring(value)
  end
  return into
end

--- What decides the bits of a training. The loss of the untrained model stands for the
-- initial parameters, the task and the mechanism's code.
local function settings_of(o, trainer, model, task, shard, groups, optimizer, schedule)
  local loss = trainer:evaluate(shard)
  local settings = flat({}, "optimizer", optimizer)
  for name, value in pairs { schedule = schedule, stop = o.stop, seed = o.seed,
    batch = o.batch, shard = shard, groups = groups, steps = o.steps,
    log_every = o.log_every, model = tostring(model), task = task.name,
    dtype = model.dtype, ["loss of the untrained model"] = loss,
    ["probes.every"] = o.probes and o.probes.sinks.every } do
    flat(settings, name, value)
  end
  return settings
end

local function refuse_changed(path, old, new)
  local names = {}
  for name in pairs(new) do names[name] = true end
  for name in pairs(old) do names[name] = true end
  local sorted = {}
  for name in pairs(names) do sorted[#sorted + 1] = name end
  table.sort(sorted)
  for _, name in ipairs(sorted) do
    if old[name] ~= new[name] then
      check.fail("%s: checkpoint '%s' is of another training: %s was %s, is now %s; "
        .. "remove the file to start over", what, path, name, old[name] or "not set",
        new[name] or "not set")
    end
  end
end

--- Numbers of a table whose NaN and infinities JSON kept as texts.
local function numbers(t)
  for key, value in pairs(t) do t[key] = strings.not_finite[value] or value end
  return t
end

--- The checkpoint of a training, or nil without the option.
-- @param trained  { trainer, model, task, shard, groups, optimizer, schedule }
function checkpoint.new(o, trained)
  if not o.checkpoint then return nil end
  local trainer, model = trained.trainer, trained.model
  return setmetatable({ path = o.checkpoint.path, every = o.checkpoint.every,
    trainer = trainer, model = model, written = core.clock(),
    settings = settings_of(o, trainer, model, trained.task, trained.shard,
      trained.groups, trained.optimizer, trained.schedule) }, Checkpoint)
end

--- Read the file, if there is one: the last progress and the log up to it, with the
-- parameters and the trainer as they were; or nil.
function Checkpoint.__index:read()
  local path = self.path
  live.remove_temporary(path:match "^(.*)/" or ".", path:match "[^/]*$")
  local file, message, code = io.open(path, "rb")
  if not file then
    if code == 2 then return nil end -- ENOENT
    check.fail("%s: checkpoint %s", what, message)
  end
  file:close()
  local tensors, metadata = core.load_safetensors(path)
  if not tensors then check.fail("%s: checkpoint %s", what, metadata) end
  local kept = metadata.sinklab_checkpoint and json.decode(metadata.sinklab_checkpoint)
  local state = self.trainer:state()
  local parameters = self.model.params.flat
  if not kept or not tensors.parameters then
    check.fail("%s: '%s' is no checkpoint of a training", what, path)
  end
  refuse_changed(path, kept.settings, self.settings)
  for name, tensor in pairs { parameters = parameters,
    state = state.count > 0 and state or nil } do
    local read = tensors[name]
    if not read or read.count ~= tensor.count or read.dtype ~= tensor.dtype then
      check.fail("%s: checkpoint '%s': tensor '%s' does not fit the model", what, path,
        name)
    end
    tensor:copy(read)
  end
  for _, entry in ipairs(kept.log) do numbers(entry) end
  local p = numbers(kept.progress)
  self.trainer:resume(p.step, p.seconds)
  return p, kept.log
end

--- Write the file, whole or not at all.
function Checkpoint.__index:write(p, log)
  local state = self.trainer:state()
  local ok, message = core.save_safetensors(self.path, {
    parameters = self.model.params.flat, state = state.count > 0 and state or nil,
  }, { sinklab_checkpoint = json.encode({ settings = self.settings, progress = p,
    log = json.array(log) }, { not_finite = "text" }) })
  if not ok then check.fail("%s: checkpoint %s", what, message) end
  self.written = core.clock()
end

--- Write it if it is time.
function Checkpoint.__index:tick(p, log)
  if core.clock() - self.written >= self.every then self:write(p, log) end
end

return checkpoint
