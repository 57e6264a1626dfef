-- test_schedule.lua - named schedules against golden values, by hand, and their mistakes.
local check = require "check"
local core = require "sinklab.core"
local lab = require "sinklab"

local golden = debug.getinfo(1, "S").source:match "^@(.*)/lua/[^/]*$"
  .. "/golden/optim/schedules/"
local schedule = lab.schedule

check.test("golden schedules", function()
  local wsd = { lr = 1e-2, min = 1e-3, warmup = 10, decay_start = 34, steps = 50 }
  local cases = { wsd = schedule.wsd(wsd),
    warmup_cosine = schedule.warmup_cosine { lr = 1e-2, min = 1e-3, warmup = 10,
      steps = 50 },
    step = schedule.step { lr = 1e-2, factor = 0.5, every = 15, steps = 50 } }
  wsd.shape = "sqrt"
  cases.wsd_sqrt = schedule.wsd(wsd)
  for name, points in pairs(cases) do
    local got = {}
    for t = 0, 49 do got[t + 1] = schedule.at(points, t) end
    local want = assert(core.load_npy(golden .. name .. ".npy")):to("f64"):totable()
    check.equal({ #want, #points <= 8 }, { 50, true })
    check.close(got, want, 1e-15, 1e-12, name)
  end
end)

check.test("named schedules are lists of points", function()
  check.equal(schedule.constant { lr = 0.5 }, { { 0, 0.5, "hold" } })
  check.equal(schedule.linear { from = 1, to = 3, steps = 4 },
    { { 0, 1, "linear" }, { 4, 3, "hold" } })
  local wsd = schedule.wsd { lr = 1, warmup = 2, decay_start = 4, steps = 9,
    shape = "sqrt" }
  check.equal(wsd, { { 0, 0.5, "linear" }, { 1, 1, "hold" }, { 4, 1, "sqrt" },
    { 8, 0, "hold" } })
  check.equal(schedule.at(wsd, 5), 0.5)
  check.equal(schedule.at({ { 0, 1, "linear" }, { 10, 2 } }, 5), 1.5)
  local step = schedule.step { lr = 1, factor = 0.5, every = 10, steps = 100 }
  check.equal({ #step, step[3][2] }, { 10, 0.25 })
  check.equal(#schedule.step { lr = 1, factor = 0.5, every = 10, steps = 95 }, 10)
end)

check.test("constant, linear, and cosines without warm-up", function()
  local function at(want, name, o, step)
    check.close(schedule.at(schedule[name](o), step), want, 1e-15, 0, name)
  end
  at(3e-4, "constant", { lr = 3e-4 }, 12345)
  local line = { from = 1, to = 3, steps = 4 }
  for step, want in pairs { [0] = 1, [1] = 1.5, [99] = 3 } do
    at(want, "linear", line, step)
  end
  at(1, "warmup_cosine", { lr = 1, steps = 10 }, 0)
  at(0.5, "warmup_cosine", { lr = 1, steps = 11 }, 5)
  at(1, "warmup_cosine", { lr = 1, warmup = 1, steps = 12 }, 0)
  at(0.5, "warmup_cosine", { lr = 1, warmup = 1, steps = 12 }, 6)
  -- training runs steps 0 to steps - 1: the last one has the rate min
  local last = { lr = 1, min = 0.25, warmup = 3, steps = 20 }
  at(0.25, "warmup_cosine", last, 19)
  at(0.25 + 0.75 * (1 + math.cos(math.pi * 7 / 16)) / 2, "warmup_cosine", last, 10)
end)

check.test("wsd without a warm-up, and with decay right behind it", function()
  local none = schedule.wsd { lr = 1, decay_start = 0, steps = 11 }
  check.close(schedule.at(none, 5), 0.5, 1e-15, 0)
  local tight = schedule.wsd { lr = 1, warmup = 4, decay_start = 4, steps = 9 }
  for step, want in pairs { [1] = 0.5, [4] = 1, [6] = 0.5, [8] = 0 } do
    check.close(schedule.at(tight, step), want, 1e-15, 0, step)
  end
end)

check.test("mistakes in schedules are named", function()
  local function refuse(part, name, o)
    check.raises("lab.schedule." .. name .. ": " .. part, schedule[name], o)
  end
  refuse("no such option 'shpe' (did you mean 'shape'?)", "wsd", { shpe = "sqrt" })
  refuse("option 'steps' is missing", "linear", { from = 1, to = 0 })
  refuse("option 'lr' must be a number, got 'x'", "constant", { lr = "x" })
  refuse("option 'lr' is -1; it must be at least 0", "constant", { lr = -1 })
  refuse("option 'steps' must be a whole number, got 2.5", "linear",
    { from = 1, to = 0, steps = 2.5 })
  refuse("option 'steps' is 0; it must be at least 1", "linear",
    { from = 1, to = 0, steps = 0 })
  refuse("option 'shape' is 'cube'; it must be linear or sqrt", "wsd",
    { lr = 1, decay_start = 1, steps = 9, shape = "cube" })
  refuse("option 'steps' is 6; it must be at least warmup + 2, 7", "warmup_cosine",
    { lr = 1, warmup = 5, steps = 6 })
  refuse("option 'decay_start' is 4; it must be at least warmup, 5", "wsd",
    { lr = 1, warmup = 5, decay_start = 4, steps = 50 })
  refuse("option 'steps' is 9; it must be at least decay_start + 2, 10", "wsd",
    { lr = 1, decay_start = 8, steps = 9 })
  refuse("option 'every' is 1; it must be at least steps / 100000, 10", "step",
    { lr = 1, factor = 0.5, every = 1, steps = 1e6 })
  local function at(part, points) check.raises(part, core.schedule_at, points, 0) end
  at("no points", {})
  at("expected a list of points, got nil", nil)
  at("point 2 is not { step, value, curve }", { { 0, 1 }, 7 })
  at("point 1 is not { step, value, curve }", { { "0", 1 } })
  at("no curve 'cosin' (did you mean 'cosine'?)", { { 0, 1, "cosin" } })
  at("point 2 is at step 0, not after point 1", { { 1, 1 }, { 0, 1 } })
end)

check.done()
