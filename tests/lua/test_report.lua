-- test_report.lua - the report of runs: what the page holds, what it must never hold, and
-- what is said of directories that are no runs or broken ones.
local check = require "check"
local process = require "process"
local runs = require "report_runs"
local core = require "sinklab.core"
local lab = require "sinklab"
local maps = require "sinklab.report.maps"

local folder = process.folder "report"
local made = runs.make(folder, "a", "--note=" .. runs.hostile)

local function report(words, options)
  local arguments = { "report" }
  for _, word in ipairs(words) do arguments[#arguments + 1] = word end
  options = options or {}
  options.folder = options.folder or folder
  return process.run(arguments, options)
end

--- check.contains without the page in the message.
local function has(text, part)
  if not text:find(part, 1, true) then error(("the page lacks %q"):format(part), 2) end
end

local function page(path) return process.read(folder .. "/" .. path) end

--- The data that the page's script reads.
local function data_of(text)
  return assert(lab.json.decode(text:match
    '<script type="application/json" id="data">(.-)</script>'))
end

local function copy(from, to)
  check.equal(process.shell(("rm -rf %s/%s; cp -r %s/%s %s/%s"):format(folder, to, folder,
    from, folder, to)).code, 0)
  return folder .. "/" .. to .. "/"
end

check.test("base64: RFC 4648, section 10, and all bytes", function()
  local cases = { [""] = "", f = "Zg==", fo = "Zm8=", foo = "Zm9v", foob = "Zm9vYg==",
    fooba = "Zm9vYmE=", foobar = "Zm9vYmFy", ["\xff\xfe\xfd"] = "//79" }
  for bytes, text in pairs(cases) do check.equal(maps.base64(bytes), text) end
end)

check.test("run:report writes one page with everything", function()
  check.equal(made.code, 2, made.err)
  check.contains(made.out, "a/report.html\n")
  local text = page "a/report.html"
  check.below(#text, 2000000)
  for _, part in ipairs { "<h2 id=\"run-1\">Run</h2>", "1 of 2 claims hold", "✓ holds",
    "✗ fails", "what does not hold", "complete: it ran to its end", "first_mean",
    "train.steps", "options in effect",
    "data:image/png;base64,iVBORw0KGgo", "plugins that were loaded", "sha256:" } do
    has(text, part)
  end
  local data = data_of(text)
  check.equal(data[1].name, "a")
  check.equal({ data[1].heads[1].label, data[1].heads[2].label }, { "softmax", "relu" })
  check.equal(data[1].heads[1].samples, 16)
  check.equal(data[1].heads[1].maps.mean.shape, { 2, 2, 8, 8 })
  check.equal(data[1].heads[1].maps.output_norms.shape, { 2, 2, 8 })
  check.equal(#data[1].heads[1].maps.mean.values, (2 * 2 * 8 * 8 * 4 + 2) // 3 * 4)
  check.equal(data[1].curves[1].columns[1].values, { 5, 10, 15, 20 })
  -- Nothing is fetched: no address but of the drawing language.
  check.equal(text:gsub("http://www%.w3%.org/2000/svg", ""):find("https?://"), nil)
  check.equal(text:find '<link[^>]*href="[^d]', nil)
end)

check.test("the record names the maps and the report", function()
  local record = assert(lab.json.decode(page "a/run.json"))
  check.equal(record.results.softmax.sinks.maps, { mean = "softmax-mean.npy",
    std = "softmax-std.npy", output_norms = "softmax-output_norms.npy" })
  local listed = {}
  for _, name in ipairs(record.files) do listed[name] = true end
  for _, name in ipairs { "softmax-mean.npy", "relu-std.npy", "report.html" } do
    check.equal(listed[name], true, name)
  end
  check.equal(record.status, "complete")
end)

check.test("hostile text stays text", function()
  local text = page "a/report.html"
  check.equal(text:find("<script>window.hacked", 1, true), nil)
  check.equal(text:find("<img src=x", 1, true), nil)
  check.equal(select(2, text:gsub("</script>", "")), 2)
  has(text, "&lt;/script&gt;&lt;script&gt;")
  has(text, "é\u{1F600}")
  -- Not even in names of files, labels, keys, or as bytes that are no text.
  local path = copy("a", "hostile")
  local record = assert(lab.json.decode(process.read(path .. "run.json")))
  record.options["<b>" .. runs.hostile] = { runs.hostile, { runs.hostile } }
  record.results[runs.hostile] = { [runs.hostile] = runs.hostile, sinks = {
    heads = { { [runs.hostile] = 1 }, 3 } } }
  record.status, record.script = runs.hostile, { runs.hostile }
  record.error = runs.hostile
  record.files[#record.files + 1] = runs.hostile .. ".png"
  record.files[#record.files + 1] = "../../etc/passwd.png"
  record.claims[3], record.plugins = runs.hostile, { runs.hostile }
  record.results.number = 3
  process.write(path .. "run.json", lab.json.encode(record))
  local r = report { "hostile", "a" }
  check.equal(r.code, 0, r.err)
  text = page "report.html"
  check.equal(text:find("<script>window.hacked", 1, true), nil)
  check.equal(text:find("<b>", 1, true), nil)
  has(text, "status: &lt;/script&gt;")
  has(text, "the record lists a file &#39;../../etc/passwd.png&#39; outside")
  check.equal(text:find("root:", 1, true), nil)
end)

check.test("records of other shapes give a page or a sentence", function()
  local path = process.folder "report/odd" .. "/"
  local shapes = {
    '{ "options": [1, 2], "results": [{}, 3], "claims": [1, null], "files": [null, {}] }',
    '{ "options": {}, "results": {}, "claims": {}, "files": {}, "plugins": 1 }',
    '{ "options": {}, "results": { "a": { "sinks": 1 }, "b": { "sinks": { "heads": [1],'
      .. ' "maps": 2 } }, "c": { "sinks": { "maps": { "mean": "../x.npy" } } } },'
      .. ' "claims": [], "files": [] }',
  }
  for i, text in ipairs(shapes) do
    process.write(path .. "run.json", text)
    local r = report { "odd" }
    check.equal(r.code, 0, "shape " .. i .. ": " .. r.err)
  end
  has(page "odd/report.html", "a map named &#39;../x.npy&#39; is outside")
end)

check.test("the same run gives the same bytes", function()
  local pages = {}
  for i = 1, 2 do
    check.equal(report({ "a", "hostile", "--out=same.html" }).code, 0)
    pages[i] = page "same.html"
  end
  check.equal(pages[1] == pages[2], true)
end)

check.test("two runs side by side", function()
  local b = runs.make(folder, "b", "--layers=1", "--note=b")
  check.equal(b.code, 2, b.err)
  local r = report { "a/", "b", "--out=both.html" }
  check.equal({ r.code, r.out }, { 0, "both.html\n" }, r.err)
  local text = page "both.html"
  has(text, "<title>a, b – sinklab report</title>")
  has(text, "options that differ")
  has(text, '<th scope="row">layers</th><td class="n">2</td><td class="n">1</td>')
  has(text, "results that several have")
  check.equal(text:find('<th scope="row">seed</th><td class="n">3</td><td', 1, true), nil)
  local data = data_of(text)
  check.equal({ data[1].heads[1].layers, data[2].heads[1].layers }, { 2, 1 })
end)

check.test("large runs stay under 2 MB, and say what they leave out", function()
  local path = process.folder "report/large" .. "/"
  check.equal(lab.zeros({ 12, 12, 120, 120 }):save_npy(path .. "m-mean.npy"), true)
  local heads, files = {}, { "m-mean.npy" }
  for i = 1, 144 * 3 do
    heads[i] = { layer = (i - 1) // 12 + 1, head = i % 12, first_mean = 1 / 3 }
  end
  local results = { m = { sinks = { samples = 5, heads = heads } } }
  for i = 1, 4000 do results.m["value" .. i] = ("x"):rep(900) end
  for i = 1, 5 do
    files[#files + 1] = i .. ".png"
    process.write(path .. i .. ".png", "\x89PNG\r\n\x1a\n" .. ("\0"):rep(200000))
  end
  process.write(path .. "run.json", lab.json.encode { options = {}, results = results,
    claims = lab.json.array {}, files = files, status = "complete" })
  local r = report { "large" }
  check.equal(r.code, 0, r.err)
  local text = page "large/report.html"
  check.below(#text, 2000000, #text)
  for _, part in ipairs { "more heads are in run.json", "more rows are in run.json",
    "4.png is left out: the figures would make" } do
    has(text, part)
  end
  local found = data_of(text)[1].heads[1]
  check.equal(found.block, 5)
  check.equal(found.maps.mean.shape, { 12, 12, 25, 25 })
end)

--- The page of 200 runs, each made by make (path); it is under 2 MB.
local function page_of_many(name, make)
  local base, names = process.folder("report/" .. name), {}
  for i = 1, 200 do
    names[i] = ("%s/r%03d"):format(name, i)
    make(("%s/r%03d"):format(base, i))
  end
  names[#names + 1] = "--out=" .. name .. ".html"
  local r = report(names)
  check.equal(r.code, 0, r.err)
  local text = page(name .. ".html")
  check.below(#text, 2000000, #text)
  return text
end

check.test("many runs stay under 2 MB, with the claims of the first ones", function()
  local text = page_of_many("many", function(path)
    process.shell(("cp -r '%s/a' '%s'"):format(folder, path))
  end)
  has(text, "176 of the 200 runs are shown in these tables only")
  check.equal(#data_of(text), 24)
  local _, claims = text:gsub("what does not hold", "")
  check.at_least(claims, 24)
end)

check.test("long logs of many runs stay under 2 MB", function()
  local lines = { "step,a,b,c,d,e,f,g" }
  for i = 1, 400 do
    lines[i + 1] = ("%d"):format(i) .. (",%.17g"):format(1 / (3 * i)):rep(7)
  end
  local log = table.concat(lines, "\n") .. "\n"
  local record = { options = {}, results = {}, claims = lab.json.array {},
    files = { "train-m.csv", "train-n.csv" }, status = "failed",
    error = ("x"):rep(100000) }
  for i = 1, 200 do record.files[#record.files + 1] = ("y"):rep(100) .. i end
  local text = page_of_many("logs", function(path)
    assert(core.make_folders(path))
    process.write(path .. "/run.json", lab.json.encode(record))
    process.write(path .. "/train-m.csv", log)
    process.write(path .. "/train-n.csv", log)
  end)
  has(text, "<li>150 more</li>")
  local curves = 0
  for _, run in ipairs(data_of(text)) do
    for _, curve in ipairs(run.curves) do
      local step = curve.columns[1].values
      check.at_least(curve.every, 2)
      check.equal({ step[1], step[2], step[#step] }, { 1, 1 + curve.every, 400 })
      curves = curves + 1
    end
  end
  check.equal(curves, 48)
end)

check.test("tables that the script printed are in the page", function()
  process.write(folder .. "/t.lua", [[
    local run = require "sinklab".run()
    run:table({ "name", "x<y" }, { { "one", 1 }, { "two", "0.250" } }, "both of them")
    run:table({ "a", "a" }, { { 1, 2 } })
    run:report()]])
  local r = process.run({ "run", "t.lua", "--out=t", "--quiet" }, { folder = folder })
  check.equal(r.code, 0, r.err)
  local html = page "t/report.html"
  for _, part in ipairs { "<caption>both of them</caption>", "x&lt;y", "0.250",
    "<caption>table 2</caption>" } do
    has(html, part)
  end
  check.equal(process.read(folder .. "/t/table-1.csv"), "name,x<y\none,1\ntwo,0.25\n")
  check.equal(process.read(folder .. "/t/table-2.csv"), "a,a (2)\n1,2\n")
end)

check.test("pooling keeps the largest in size, and position 1 by itself", function()
  -- 1 x 1 x 400 x 400: blocks of 2 from position 2 on, the last one of 1.
  local t = lab.zeros({ 1, 1, 400, 400 }, "f64")
  t:set(1, 1, 1, 1, 0.5)
  t:set(1, 1, 3, 1, 0.25)
  t:set(1, 1, 400, 400, -2)
  t:set(1, 1, 399, 398, 1)
  t:set(1, 1, 2, 2, 0 / 0)
  local encoded = maps.encode { { problems = {}, heads = { { label = "x",
    tensors = { mean = t } } } } }[1][1]
  check.equal(encoded.block, 2)
  check.equal(encoded.maps.mean.shape, { 1, 1, 201, 201 })
  check.close(encoded.first[1], 0.25 / 399, 1e-12)
  local bytes = process.shell(("printf %%s '%s' | base64 -d | od -An -tf4 -v -w4"):format(
    encoded.maps.mean.values:sub(1, 4 * 1000)))
  local at = {}
  for v in bytes.out:gmatch "[^%s]+" do at[#at + 1] = tonumber(v) end
  check.close({ at[1], at[2], at[202], at[203] }, { 0.5, 0, 0.25, 0 }, 0)
  local tail = process.shell(("printf %%s '%s' | base64 -d | od -An -tf4 -v -w4"):format(
    encoded.maps.mean.values:sub(-16 * 4))) -- 16 letters are 3 numbers
  check.close(tonumber(tail.out:match "([^%s]+)%s*$"), -2, 0)
end)

check.test("broken and unfinished runs are reported as what they are", function()
  local path = copy("a", "broken")
  os.remove(path .. "softmax-heads.png")
  process.write(path .. "relu-heads.png", "no picture")
  process.write(path .. "softmax-mean.npy", "\x93NUMPY")
  process.write(path .. "relu-std.npy", process.read(path .. "relu-output_norms.npy"))
  process.write(path .. "train-softmax.csv", 'step,loss\n1,"2')
  process.write(path .. "train-relu.csv", "a,b\nx,y\n")
  local text = process.read(path .. "run.json")
  process.write(path .. "run.json", (text:gsub('"status": "complete"',
    '"status": "running"')))
  local r = report { "broken" }
  check.equal(r.code, 0, r.err)
  local html = page "broken/report.html"
  for _, part in ipairs { "softmax-heads.png is missing", "relu-heads.png is no PNG file",
    "softmax-mean.npy", "train-softmax.csv: record 2: a quote is not closed",
    "train-relu.csv: no numbers in it",
    "relu-std.npy: expected 4 axes with something in them, got shape (2, 2, 8)",
    "softmax: no map of the mean weights",
    "died: the process ended without closing the record" } do
    has(html, part)
  end
  check.equal(#data_of(html)[1].heads, 1)
  process.write(path .. "run.json", (text:gsub('"status": "complete"',
    '"status": "failed", "error": "s.lua:1: <bad>"')))
  check.equal(report({ "broken" }).code, 0)
  has(page "broken/report.html", "s.lua:1: &lt;bad&gt;")
end)

check.test("what is no run is refused in one sentence", function()
  process.folder "report/nothing"
  process.write(folder .. "/nothing/run.json", "{ broken")
  process.folder "report/other"
  process.write(folder .. "/other/run.json", '{ "name": 1 }')
  local cases = {
    { { "absent" }, "report: absent: no such folder" },
    { { "s.lua" }, "s.lua: this is a file; a report is made of a run directory" },
    { { "." }, "no run.json in it: this is no run directory\n  try: sinklab report ./" },
    { { "nothing" }, "nothing/run.json" },
    { { "other" }, "other/run.json: not the record of a run: it has no options" },
    { { "a", "absent" }, "absent: no such folder" },
    { {}, "RUN_DIR" },
    { { "a", "--out=no/such/x.html" }, "no/such/x.html" },
    { { "a", "--to=x" }, "no option '--to=x'" },
  }
  for i, case in ipairs(cases) do
    local r = report(case[1])
    check.equal(r.code, 1, "case " .. i)
    check.contains(r.err, case[2])
    check.equal(r.out, "")
  end
end)

check.done()
