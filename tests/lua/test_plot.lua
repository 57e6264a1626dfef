-- test_plot.lua - lab.plot: what figures take, what they refuse, what they write.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "plot"
local plot = lab.plot

local function causal(n)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for j = 1, n do rows[i][j] = j <= i and 1 / i or 0 end
  end
  return rows
end

local function read(name)
  local f = assert(io.open(folder .. "/" .. name, "rb"))
  local text = f:read "a"
  f:close()
  return text
end

check.test("a heat map of a tensor and of a table are the same figure", function()
  local rows = causal(4)
  local a = plot.heat(rows, { title = "uniform", samples = 10 })
  local b = plot.heat(lab.tensor(rows, "f64"), { title = "uniform", samples = 10 })
  assert(a:save(folder .. "/a.png"))
  assert(b:save(folder .. "/b.png"))
  check.equal(read "a.png" == read "b.png", true)
  check.contains(read "a.png", "\x89PNG")
  check.equal(a:text(80), b:text(80))
end)

check.test("a figure in the terminal", function()
  local text = plot.heat({ { 1, 0 }, { 0.5, 0 / 0 } }, { title = "two",
    caption = "made up", samples = 1, mask_upper = true }):text(40)
  check.equal(text, table.concat({ "two", "query position", "1 @@  ", "2 ++??", "  1 2",
    "key position", "attention weight", "0 .:-=+*#%@ 1", "made up, 1 sample",
    "Grey: no value. Light grey: keys after the", "query." }, "\n"):gsub(
    "after the\nquery", "after\nthe query"))
end)

check.test("all three formats, and what cannot be written", function()
  local f = plot.heat(causal(4))
  for name, start in pairs { ["f.png"] = "\x89PNG", ["f.pdf"] = "%PDF",
    ["f.svg"] = "<?xml" } do
    check.equal(f:save(folder .. "/" .. name), true)
    check.equal(read(name):sub(1, #start), start)
  end
  check.raises("did you mean 'png'?", f.save, f, folder .. "/f.pgn")
  check.raises("needs the extension .png, .svg or .pdf", f.save, f, folder .. "/f")
  local ok, message = f:save(folder .. "/no/such/f.png")
  check.equal(ok, nil)
  check.contains(message, "f.png")
end)

check.test("the range of the colours", function()
  local function scale(data, o)
    return plot.heat(data, o):text(80):match "weight\n([^\n]*)"
  end
  check.equal(scale { { 0, 0.25 } }, "0 .:-=+*#%@ 1")
  check.equal(scale { { -1, 2 } }, "-1 .:-=+*#%@ 2")
  check.equal(scale({ { 0, 0.25 } }, { vmin = 0 }), "0 .:-=+*#%@ 0.25")
  check.equal(scale({ { 0.1, 0.25 } }, { vmax = "data" }), "0.1 .:-=+*#%@ 0.25")
  check.equal(scale({ { 0, 3 } }, { vmin = 1, vmax = 2 }), "<1 .:-=+*#%@ >2")
  check.equal(plot.heat({ { 0.01, 1 } }, { log = true }):text(80)
    :match "%(log%)\n([^\n]*)", "0.01 .:-=+*#%@ 1")
end)

check.test("a grid of heads", function()
  local w = lab.zeros { 2, 3, 4, 4 }
  w:fill(0.25)
  w:select(1, 2):select(1, 3):fill(1)
  local f = plot.heads(w, { title = "softmax", samples = 1000 })
  local text = f:text(120)
  for l = 1, 2 do
    for h = 1, 3 do check.contains(text, ("layer %d head %d"):format(l, h)) end
  end
  check.contains(text, "\nattention weight, 1000 samples")
  check.contains(text, "1 --------") -- a quarter
  check.contains(text, "1 @@@@@@@@") -- one
  assert(f:save(folder .. "/heads.svg"))
  check.contains(plot.heads(lab.zeros { 5, 2, 3, 3 }):text(100), "layer 5")
  check.raises("expected a tensor (layers, heads, queries, keys), got shape (2, 2)",
    plot.heads, lab.zeros { 2, 2 })
  check.raises("got table", plot.heads, { 1 })
end)

check.test("panels of both kinds", function()
  local f = plot.panels({
    { title = "mean", data = causal(3), vmin = 0, vmax = 1 },
    { title = "std", data = causal(3), vmin = 0, quantity = "standard deviation" },
    { title = "loss", series = { { y = { 3, 2, 1 }, label = "train" } },
      ylog = true, xlabel = "step" },
  }, { columns = 2, title = "three", caption = "seed 0" })
  local text = f:text(80)
  check.contains(text, "mean   ")
  check.contains(text, "standard deviation")
  check.contains(text, "3 to 1")
  assert(f:save(folder .. "/panels.pdf"))
  check.raises("panel 2: no such option 'tittle' (did you mean 'title'?)",
    plot.panels, { { data = causal(2) }, { data = causal(2), tittle = "x" } })
  check.raises("expected a list of panels", plot.panels, {})
  check.raises("panel 1: option 'data' is missing", plot.panels, { { title = "x" } })
end)

check.test("lines", function()
  local x = lab.tensor({ 1, 10, 100 }, "f64")
  local f = plot.lines({
    { x = x, y = { 1, 0.1, 0.01 }, low = { 0.5, 0.05, 0 }, high = { 2, 0.2, 0.02 },
      label = "softmax", markers = true },
    { y = { 1, 0 / 0, 3 }, label = "ReLU" } }, { xlog = true, ylog = true,
    title = "error", xlabel = "step", ylabel = "largest error", samples = 512 })
  local text = f:text(60)
  check.contains(text, "softmax\n")
  check.contains(text, "1 to 0.01")
  check.contains(text, "across: 1 to 100 (log)")
  check.contains(text, "512 samples")
  assert(f:save(folder .. "/lines.png"))
end)

check.test("what is refused", function()
  check.raises("lab.plot.heat: no such option 'vmim' (did you mean 'vmin'?)",
    plot.heat, causal(2), { vmim = 0 })
  check.raises("option 'palette' is 'blue'; it must be blues, viridis or rdbu",
    plot.heat, causal(2), { palette = "blue" })
  check.raises("got a tensor of shape (2, 3, 4)", plot.heat, lab.zeros { 2, 3, 4 })
  check.raises("data[2] has 1 numbers, but the first row has 2", plot.heat,
    { { 1, 2 }, { 3 } })
  check.raises("data[1][2]: expected a number, got string", plot.heat,
    { { 1, "x" } })
  check.raises("data[2]: expected a row of numbers, got number", plot.heat,
    { { 1 }, 2 })
  check.raises("expected a tensor or a table of rows, got nil", plot.heat)
  check.raises("0 x 0 cells", plot.heat, {})
  check.raises("vmin is 2 and vmax is 1", plot.heat, causal(2),
    { vmin = 2, vmax = 1 })
  check.raises("expected a number or \"data\", got date", plot.heat, causal(2),
    { vmin = "date" })
  check.raises("both ends must be above 0", plot.heat, causal(2),
    { log = true, vmin = 0 })
  check.raises("not UTF-8", plot.heat, causal(2), { title = "\xff" })
  check.raises("expected a list of series", plot.lines, {})
  check.raises("series[1].x has 2 numbers, but the series has 3 points",
    plot.lines, { { x = { 1, 2 }, y = { 1, 2, 3 } } })
  check.raises("series[2].y is empty", plot.lines,
    { { y = { 1 } }, { y = {} } })
  check.raises("no option 'labl' (did you mean 'label'?)", plot.lines,
    { { y = { 1 }, labl = "x" } })
  check.raises("only one edge of its band, 'low'", plot.lines,
    { { y = { 1 }, low = { 1 } } })
  check.raises("the figure's title has 5000 bytes", plot.heat, causal(2),
    { title = ("x"):rep(5000) })
end)

check.test("the caller's line is blamed", function()
  local line = debug.getinfo(1, "l").currentline + 1
  local message = check.raises("rows", function() plot.heat(3) end)
  check.contains(message, "test_plot.lua:" .. line .. ":")
end)

check.test("a closed figure says so", function()
  local f <close> = plot.heat(causal(2))
  f:close()
  check.raises("this figure has been closed", f.text, f)
  check.equal(tostring(f), "figure (closed)")
  f:close()
  check.raises("20 to 1000 columns", function() plot.heat(causal(2)):text(5) end)
end)

check.test("mean and standard deviation of a head, side by side", function()
  local sinks = { mean = lab.full({ 2, 2, 3, 3 }, 0.5), std = lab.full({ 2, 2, 3, 3 }, 0.25) }
  local mean, std = plot.mean_and_std(sinks, { layer = 2, title = "relu",
    letters = { "c", "d" } })
  check.equal(mean.title, "(c) relu, mean")
  check.equal(std.title, "(d) relu, std (max 0.2)")
  check.equal({ mean.vmin, mean.vmax, std.vmin, std.vmax }, { 0, 1, 0, 1 })
  check.equal(std.data.shape, { 3, 3 })
  plot.panels({ mean, std }, { columns = 2 })
  check.raises("what lab.sinks gave", plot.mean_and_std, {})
  check.raises("no such option 'heads'", plot.mean_and_std, sinks, { heads = 1 })
end)

check.test("figures are collected", function()
  local big = lab.zeros { 500, 500 }
  for _ = 1, 200 do plot.heat(big) end
end)

check.done()
