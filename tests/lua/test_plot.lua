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
  check.raises("expected one matrix, got a measurement of all heads (try lab.plot.heads)",
    plot.heat, { mean = lab.ones { 1, 1, 2, 2 } })
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
  check.contains(text, "softmax  1 to 0.01\n")
  check.contains(text, "across: 1 to 100 (log)")
  check.contains(text, "512 samples")
  assert(f:save(folder .. "/lines.png"))
end)

check.test("bands over runs", function()
  local runs = { { x = { 0, 2 }, y = { 0, 2 } }, { x = { 0, 1, 2 }, y = { 3, 3, 3 } },
    { x = { 0, 1 }, y = { 6, 7 } } }
  local function bar(list, bands)
    local values = {}
    for i, v in ipairs(list) do values[i] = { v } end
    return plot.bars({ "a" }, { { runs = values } }, { bands = bands }):text(80)
  end
  -- numpy of { 1, 2, 9, 4 }: std (ddof 1) 3.5590, over sqrt 4 1.7795; percentiles 25,
  -- 50 and 75: 1.75, 3, 5.25.
  check.contains(bar({ 1, 2, 9, 4 }, "range"), "4 (1 to 9)")
  check.contains(bar({ 1, 2, 9, 4 }, "std"), "4 (0.441 to 7.559)")
  check.contains(bar({ 1, 2, 9, 4 }, "sem"), "4 (2.22 to 5.78)")
  check.contains(bar({ 1, 2, 9, 4 }, "quartiles"), "3 (1.75 to 5.25)")
  check.contains(bar({ 7 }, "std"), "7 (7 to 7)")
  -- Between its points a run is a straight line; outside it is not there: at 0, 1, 2
  -- the means are 3, 11/3 and 2.5.
  local text = plot.lines({ { runs = runs } }, { ylabel = "loss", samples = 9 }):text(80)
  check.contains(text, "3 to 2.5")
  check.contains(text, "loss: mean and range of 3 runs, 9 samples")
  local one = plot.lines({ { runs = { { y = { 1, 2 } } } } }, { caption = "mine" })
    :text(80)
  check.contains(one, "mine; mean and range of 1 run")
end)

check.test("curves of trainings", function()
  local function training(scale)
    local log = {}
    for i = 1, 4 do
      log[i] = { step = 10 * i, loss = scale / i, max_abs_error = scale, lr = 1,
        time = i }
    end
    log[4].probe = 5
    return { steps = 40, log = log }
  end
  local a, b = training(1), training(2)
  check.contains(plot.lines({ { log = a } }):text(80), "1 to 0.25")
  check.contains(plot.lines({ { log = a.log, key = "max_abs_error" } }):text(80),
    "1 to 1")
  check.contains(plot.lines({ { log = a, key = "probe" } }):text(80), "across: 40 to 40")
  local text = plot.lines({ { label = "softmax", runs = { a, b.log } } },
    { xlabel = "step", ylabel = "loss" }):text(80)
  check.contains(text, "1.5 to 0.375")
  check.contains(text, "across: 10 to 40")
  check.raises("no such option 'los' (did you mean 'loss'?)", plot.lines,
    { { log = a, key = "los" } })
end)

check.test("points and bars", function()
  local text = plot.scatter({ { label = "heads", x = { 1, 2 }, y = { 3, 4 } } },
    { xlabel = "sink", samples = 7, ymin = 0, ymax = 8, yticks = { 0, 4, 8 },
      xticks = { at = { 1, 2 }, names = { "one", "two" } } }):text(60)
  check.contains(text, "heads")
  check.contains(text, "up: 0 to 8")
  text = plot.bars({ "softmax", "relu" }, { { label = "layer 1", y = { 1, 0 / 0 } } },
    { ylabel = "sink", scale = "log" }):text(60)
  check.contains(text, "softmax layer 1")
  check.contains(text, "(log)")
  check.raises("lab.plot.bars.series[1].y has 1 numbers, but the series has 2 points",
    plot.bars, { "a", "b" }, { { y = { 1 } } })
  check.raises("the first argument must be a list of names", plot.bars, {}, {})
  check.raises("bars.names[2]: expected a string, got number", plot.bars,
    { "a", 2 }, { { y = { 1, 2 } } })
  check.raises("give one of y, runs and log", plot.lines,
    { { y = { 1 }, runs = { {} } } })
  check.raises("x, low and high come from its runs", plot.lines,
    { { x = { 1 }, runs = { { 1 } } } })
  check.raises("x must ascend for a band over runs, but 1 follows 2", plot.lines,
    { { runs = { { x = { 2, 1 }, y = { 1, 1 } } } } })
  check.raises("has 1 x for 2 y", plot.lines,
    { { runs = { { x = { 1 }, y = { 1, 1 } } } } })
  check.raises("no such option 'x'", plot.bars, { "a" }, { { x = { 1 }, y = { 1 } } })
  check.raises("key names a column of a log", plot.lines, { { y = { 1 }, key = "loss" } })
  check.raises("aspect is 7", plot.scatter, { { y = { 1 } } }, { aspect = 7 })
  check.raises("size is 21: 0.3 to 20 inches", plot.heat, causal(2), { size = 21 })
end)

check.test("small multiples", function()
  local list = {}
  for i = 1, 4 do
    list[i] = { series = { { label = "s", y = { i, i } } }, ylabel = "loss" }
  end
  local f = plot.grid(list, { rows = { "1 layer", "2 layers" },
    columns = { "short", "long" }, samples = 5 })
  local text = f:text(80)
  for _, name in ipairs { "1 layer", "2 layers", "short", "long", "loss, 5 samples",
    "up: 0.91 to 4.09" } do
    check.contains(text, name)
  end
  assert(f:save(folder .. "/grid.pdf"))
  local maps = plot.grid({ { data = causal(3) }, { data = { { 5, 5 }, { 5, 5 } } } })
  check.contains(maps:text(80), "0 .:-=+*#%@ 5")
  check.raises("3 names of rows, but 4 panels in 2 columns make 2", plot.grid, list,
    { rows = { "a", "b", "c" }, columns = 2 })
  check.raises("panel 2 is a heat map, but panel 1 is a line plot", plot.grid,
    { list[1], { data = causal(2) } })
  check.raises("kind' is 'bar'; it must be lines, scatter or bars", plot.panels,
    { { kind = "bar", series = {} } })
end)

check.test("tokens, and the first key left out", function()
  local text = plot.heat(causal(3), { tokens = { "the", "cat", "sat" }, samples = 1 })
    :text(80)
  check.contains(text, "the @@")
  check.contains(text, "query\n")
  check.contains(text, "attention weight, 1 sample")
  text = plot.heat(lab.tensor(causal(3)), { without_first = true,
    keys = { "a", "b", "c" } }):text(80)
  check.contains(text, "  b")
  check.contains(text, "Key 1 is left out.")
  check.contains(text, "0 .:-=+*#%@ 0.5")
  check.contains(text, "attention weight, sample count not given")
  local w = lab.full({ 1, 2, 3, 3 }, 0.25)
  text = plot.heads({ mean = w, samples = 12 }, { without_first = true }):text(80)
  check.contains(text, "attention weight, 12 samples")
  check.contains(text, "0 .:-=+*#%@ 0.25")
  check.raises("2 tokens for 3 queries and 3 keys", plot.heat, causal(3),
    { tokens = { "a", "b" } })
  check.raises("keys[1]: expected a string, got number", plot.heat, causal(2),
    { keys = { 1, 2 } })
  check.raises("leaves nothing of 1 columns", plot.heat, { { 1 } },
    { without_first = true })
  check.raises("with a first column that is no position", plot.heat, causal(3),
    { without_first = true, lead = "null" })
end)

check.test("a grid of what was measured", function()
  local found = { samples = 9, mean = lab.full({ 1, 2, 3, 3 }, 0.5),
    std = lab.full({ 1, 2, 3, 3 }, 0.25) }
  local text = plot.heads(found, { show = "std" }):text(80)
  check.contains(text, "standard deviation, 9 samples")
  check.contains(text, "1 ------")
  check.raises("show = \"contribution\" needs the norms of values", plot.heads, found,
    { show = "contribution" })
  found.output_norms = lab.tensor { { { 4, 2, 0 }, { 2, 1, 1 } } }
  text = plot.heads(found, { show = "contribution" }):text(80)
  check.contains(text, "1 @@++..") -- 2, 1, 0 of 2
  check.contains(text, "0 .:-=+*#%@ 2")
  check.contains(text, "contribution")
  check.raises("show needs the result of lab.sinks", plot.heads, found.mean,
    { show = "std" })
  check.raises("null = true is for show", plot.heads, found,
    { show = "std", null = true })
  check.raises("'show' is 'weight'; it must be weights, std or contribution", plot.heads,
    found, { show = "weight" })
end)

check.test("every picture of docs/figures.md is there", function()
  local source = arg[0]:match "^(.*)/tests/lua/[^/]*$"
  local text, n = process.read(source .. "/docs/figures.md"), 0
  for name in text:gmatch '<img src="([^"]*)"' do
    check.equal(process.read(source .. "/docs/" .. name):sub(1, 4), "\x89PNG", name)
    check.contains(text, 'save "' .. name, "drawn by a block")
    n = n + 1
  end
  check.equal(n, 9)
end)

check.test("what is refused", function()
  check.raises("lab.plot.heat: no such option 'vmim' (did you mean 'vmin'?)",
    plot.heat, causal(2), { vmim = 0 })
  check.raises("option 'palette' is 'blue'; it must be blues, viridis, cividis, magma, "
    .. "greys or rdbu", plot.heat, causal(2), { palette = "blue" })
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
  check.raises("series[1]: no such option 'labl' (did you mean 'label'?)", plot.lines,
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
  local sinks = { mean = lab.full({ 2, 2, 3, 3 }, 0.5),
    std = lab.full({ 2, 2, 3, 3 }, 0.25) }
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
