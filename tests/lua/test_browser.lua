-- test_browser.lua - the report in a real browser: hover, click, keys, switches, themes,
-- a phone, paper, hostile text, and no word on the console.
local check = require "check"
local process = require "process"
local runs = require "report_runs"
local lab = require "sinklab"

local browse = assert(os.getenv "SINKLAB_BROWSE", "SINKLAB_BROWSE is not set")
local folder = process.folder "browser"

--- Commands of tests/browse/browse.c; the lines that eval printed, as values.
local function drive(commands)
  process.write(folder .. "/commands", table.concat(commands, "\n") .. "\n")
  local r = process.shell(("cd '%s' && '%s' <commands"):format(folder, browse))
  if r.code == 77 then
    print(r.err)
    print "skipped: no Chromium here"
    os.exit(0)
  end
  check.equal(r.code, 0, r.err)
  local values, n = {}, 0
  for line in r.out:gmatch "[^\n]+" do
    if line:match "^console:" then error("the console has: " .. line, 2) end
    n = n + 1
    -- The decoder takes objects and lists alone.
    values[n] = assert(lab.json.decode("[" .. line .. "]"))[1]
  end
  return values, n
end

drive { "open /dev/null" } -- is there a browser?
runs.make(folder, "a", "--note=" .. runs.hostile)
runs.make(folder, "b", "--layers=1", "--note=plain")
local mean = assert(lab.load_npy(folder .. "/a/softmax-mean.npy"))
local norms = assert(lab.load_npy(folder .. "/a/softmax-output_norms.npy"))

--- As the page writes numbers.
local function words(x)
  local s = ("%.4g"):format(x)
  return tonumber(s) == 0 and "0" or s
end

--- The number at the end of what the page reads out, and what stands before it.
local function said(text)
  local where, number = text:match "^(.*): ([%d.e+-]+)$"
  return where, tonumber(number)
end

local readout = 'eval document.getElementById("readout").textContent'

--- All elements of a selector, as a list in JavaScript.
local function all(selector)
  return ("[...document.querySelectorAll(`%s`)]"):format(selector)
end

--- Something of each of them.
local function each(selector, of)
  return ("eval %s.map((e) => %s)"):format(all(selector), of)
end

--- How many of them are so.
local function count(selector, is)
  return ("eval %s.filter((e) => %s).length"):format(all(selector), is)
end

--- Choose a value of a list, then look at something.
local function choose(id, value, look)
  return ("eval (() => { const s = document.getElementById('%s'); s.value = '%s'; "
    .. "s.dispatchEvent(new Event('change')); return %s; })()"):format(id, value, look)
end

--- Something of the rectangles p of the panes.
local function panes(look)
  return ("eval ((p) => %s)(%s.map((e) => e.getBoundingClientRect()))"):format(look,
    all ".pane")
end

-- A pixel of the map after the next frame, with which a change of theme reaches the page.
-- Read from a copy: repeated reads of the page's own canvas make the browser warn.
local pixel = [[eval new Promise((done) => requestAnimationFrame(() => {
  const page = document.querySelector('.map canvas');
  const copy = document.createElement('canvas');
  copy.width = page.width;
  copy.height = page.height;
  const context = copy.getContext('2d', { willReadFrequently: true });
  context.drawImage(page, 0, 0);
  done([...context.getImageData(7, 0, 1, 1).data]);
}))]]
pixel = pixel:gsub("%s*\n%s*", " ")

check.test("hover, click, keys: the values of the arrays", function()
  local v = drive { "size 1100 900", "open a/report.html",
    "hover .pane_.map 0.19 0.56", readout, -- query 5, key 2
    "click .pane_.map 0.31 0.81", readout, -- query 7, key 3
    each(".pane[data-pane='0'] .bars tbody tr", "Number(e.children[1].textContent)"),
    "key ArrowUp", "key ArrowRight", readout, "key Home", readout, "key End",
    "key PageUp", readout,
    'eval document.activeElement.className',
    'eval document.querySelectorAll(".pane[data-pane=\'0\'] .bars rect.here").length' }
  local function at(q, k) return mean:get(1, 1, q, k) end
  local function same(text, q, k, what)
    local where, number = said(text:match "^[^;]*")
    check.equal(where, ("softmax: query %d, key %d"):format(q, k), what)
    check.close(number, tonumber(words(at(q, k))), 1e-9, 1e-3, what)
  end
  same(v[1], 5, 2, "hover")
  same(v[2], 7, 3, "click")
  check.equal(#v[3], 8)
  for k = 1, 8 do check.close(v[3][k], at(7, k), 1e-9, 1e-3, "row 7, key " .. k) end
  same(v[4], 6, 4, "arrow keys")
  same(v[5], 6, 1, "Home")
  same(v[6], 1, 8, "End, PageUp")
  check.equal(v[7], "map")
  check.equal(v[8], 1)
end)

check.test("heads, quantities and models are switched", function()
  local v = drive { "size 1100 900", "open a/report.html",
    each("#overview button", "e.getAttribute('aria-label')"),
    "click #overview_button:nth-of-type(4)",
    "eval document.querySelector('.pane h3').textContent",
    each("#overview button", "e.getAttribute('aria-pressed')"),
    "click #kind-contribution", "click .pane_.map 0.06 0.94", readout,
    "eval document.querySelector('.pane .note').textContent",
    "click #log", "eval document.querySelector('.scale').textContent",
    "click #log", "click #kind-mean", "click #without-first",
    "eval document.querySelector('.map canvas').width", readout,
    "click #kind-std", "eval document.querySelector('.pane .note').textContent",
    -- The second model's pane goes, then the first becomes the other one.
    "eval document.querySelectorAll('.pane').length",
    choose("source-b", -1, "document.querySelectorAll('.pane').length"),
    choose("source-a", 1, "document.querySelector('.pane h3').textContent"),
    choose("curve-column", "max_abs_error",
      "document.querySelector('#curve-plot svg').getAttribute('aria-label')"),
    "click #curve-log",
    "eval document.querySelectorAll('#curve-plot > svg path').length" }
  local first = 0
  for q = 2, 8 do first = first + mean:get(2, 2, q, 1) / 7 end
  local where, number = said(v[1][4])
  check.equal(where, "layer 2 head 2, weight on position 1")
  check.close(number, first, 1e-9, 1e-3, "weight on position 1")
  check.equal(v[2], "softmax, layer 2 head 2")
  check.equal(v[3], { "false", "false", "false", "true" })
  where, number = said(v[4]:match "^[^;]*")
  check.equal(where, "softmax: query 8, key 1")
  check.close(number, mean:get(2, 2, 8, 1) * norms:get(2, 2, 1), 1e-9, 1e-3,
    "contribution")
  check.contains(v[5], "contribution: mean weight times mean norm")
  check.contains(v[6], "(logarithmic)")
  check.equal(v[7], 7)
  check.contains(v[8], "key 2")
  check.contains(v[9], "standard deviation of the weight over samples (16 samples)")
  check.equal(v[10], 2)
  check.equal(v[11], 1)
  check.equal(v[12], "relu, layer 2 head 2")
  check.contains(v[13], "max_abs_error over training steps: softmax from ")
  check.equal(v[14], 2)
end)

check.test("hostile text is shown and does nothing", function()
  local v, n = drive { "open a/report.html",
    "eval [window.hacked, window.hacked2].map(String)",
    "eval document.querySelector('.claims tbody td').textContent",
    "eval document.querySelectorAll('img').length" }
  check.equal(n, 3)
  check.equal(v[1], { "undefined", "undefined" })
  check.equal(v[2], runs.hostile .. " 100 % of it")
  check.equal(v[3], 2) -- the figures
end)

check.test("two runs side by side, one with fewer layers", function()
  local r = process.run({ "report", "a", "b", "--out=both.html" }, { folder = folder })
  check.equal(r.code, 0, r.err)
  local v = drive { "size 1100 900", "open both.html",
    "eval [...document.querySelectorAll('#source-b option')].map((o) => o.textContent)",
    choose("source-b", 2, all ".pane h3" .. ".map((h) => h.textContent)"),
    panes "[p[0].top === p[1].top, p[0].right <= p[1].left]",
    "click #overview_button:nth-of-type(3)",
    "eval document.querySelectorAll('.pane')[1].textContent" }
  check.equal(v[1], { "nothing", "a: softmax", "a: relu", "b: softmax", "b: relu" })
  check.equal(v[2], { "a: softmax, layer 1 head 1", "b: softmax, layer 1 head 1" })
  check.equal(v[3], { true, true })
  check.contains(v[4], "This model has no such head.")
end)

check.test("a phone, dark mode, paper", function()
  local v = drive { "size 390 800", "theme light", "open a/report.html",
    "eval document.documentElement.scrollWidth",
    panes "p[0].bottom <= p[1].top",
    "eval getComputedStyle(document.body).backgroundColor",
    pixel,
    "theme dark",
    "eval getComputedStyle(document.body).backgroundColor",
    pixel,
    "media print", "eval getComputedStyle(document.getElementById('controls')).display" }
  check.equal(v[1], 390)
  check.equal(v[2], true)
  check.equal(v[3], "rgb(255, 255, 255)")
  check.equal(v[4], { 247, 251, 255, 255 })
  check.equal(v[5], "rgb(15, 20, 25)")
  check.equal(v[6], { 16, 24, 32, 255 })
  check.equal(v[7], "none")
end)

check.test("what a screen reader and a keyboard need", function()
  local v = drive { "open a/report.html",
    count("input, select", "!e.labels.length"),
    count("button", "!e.getAttribute('aria-label')"),
    count("img", "!e.alt"),
    count("table", "e.closest('section') && !e.caption && !e.closest('details')"),
    "eval " .. all "h1, h2, h3, h4" .. ".map((h) => Number(h.tagName[1]))"
      .. ".every((n, i, list) => i === 0 || n <= list[i - 1] + 1)",
    "eval document.documentElement.lang",
    "key Tab", "eval document.activeElement.className",
    "eval document.getElementById('readout').getAttribute('aria-live')",
    -- Tab reaches a head's button, and Enter presses it.
    "eval (document.querySelectorAll('#overview button')[1].focus(), 0)", "key Enter",
    "eval document.querySelector('.pane h3').textContent" }
  check.equal({ v[1], v[2], v[3], v[4] }, { 0, 0, 0, 0 })
  check.equal(v[5], true)
  check.equal(v[6], "en")
  check.equal(v[7], "skip")
  check.equal(v[8], "polite")
  check.equal(v[10], "softmax, layer 1 head 2")
end)

check.done()
