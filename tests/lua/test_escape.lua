-- test_escape.lua - text of the outside world on a terminal: what is escaped, what is
-- shown as it is, and that every way to the terminal escapes.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"

local folder = process.folder "escape"
local evil = "a\27[31mb\u{9B}2J\u{202E}c\u{2066}\255\127\rd"
local shown = [[a\x1b[31mb\u{9b}2J\u{202e}c\u{2066}\xff\x7f\rd]]

check.test("escapes: controls, hidden and turning characters, bytes that are not UTF-8",
  function()
    local cases = {
      [evil] = shown, ["\0\1\31"] = [[\x00\x01\x1f]], ["\n\t"] = [[\n\t]],
      ["\u{80}\u{9F}\u{A0}"] = [[\u{80}\u{9f}]] .. "\u{A0}",
      ["\u{AD}\u{61C}\u{200B}\u{200E}\u{2028}\u{2069}\u{FEFF}\u{E0041}"] =
        [[\u{ad}\u{61c}\u{200b}\u{200e}\u{2028}\u{2069}\u{feff}\u{e0041}]],
      ["\xc0\xaf"] = [[\xc0\xaf]], ["\xe0\x80\xaf"] = [[\xe0\x80\xaf]],
      ["\xed\xa0\x80"] = [[\xed\xa0\x80]], ["\xf4\x90\x80\x80"] = [[\xf4\x90\x80\x80]],
      ["\xe2\x82"] = [[\xe2\x82]], ["\xe2\x82x"] = [[\xe2\x82x]], ["\x80"] = [[\x80]],
    }
    for text, want in pairs(cases) do check.equal(core.escape(text), want) end
    for _, plain in ipairs { "", "na\u{EF}ve \\x1b", "\u{1F469}\u{200D}\u{1F52C}",
      "e\u{301}", "\u{5E9}\u{644}", "\u{FFFD}\u{10FFFF}" } do
      check.equal(core.escape(plain), plain)
    end
    check.equal(core.escape("a\n\tb\r", true), "a\n\tb\\r")
    check.equal(core.escape(12), "12")
  end)

--- What the command wrote has the escapes, and no byte that a terminal would obey.
local function check_safe(what, text, want)
  check.contains(text, want or shown, what)
  for _, bad in ipairs { "[\0-\8\11-\31\127]", "\u{9B}", "\u{202E}", "\u{2066}",
    "\255" } do
    check.equal(text:find(bad), nil, what .. ": " .. text)
  end
end

local function run(...) return process.run({ ... }, { folder = folder }) end

check.test("errors of the command line", function()
  for _, words in ipairs { { evil }, { "run", evil },
    { "plugin", "info", evil }, { "plugin", "info", "./" .. evil .. ".so" },
    { "model", "info", evil }, { "help", evil }, { "report", evil },
    { "run", "--" .. evil .. "=1", "theorem2" }, { "--threads=" .. evil } } do
    local r = run(table.unpack(words))
    check.equal(r.code, 1, words[1])
    check_safe(table.concat(words, " "), r.err)
    check.equal(r.out, "")
  end
end)

check.test("errors of scripts, in Lua and C, and what os.exit leaves", function()
  local function script(text)
    process.write(folder .. "/evil.lua", "local evil = " .. ("%q"):format(evil):gsub("\r",
      "\\r"):gsub("\\\r", "\\r") .. "\nlocal lab = require 'sinklab'\n" .. text)
    return run("run", "evil.lua")
  end
  for _, text in ipairs { "error(evil, 0)", "error(setmetatable({}, { __tostring = "
    .. "function() return evil end }))", "lab.mechanism(evil)",
    "lab.zeros({ 1 }, evil)", "assert(nil, evil)" } do
    local r = script(text)
    check.equal(r.code, 1, text)
    check_safe(text, r.err)
  end
end)

check.test("names of runs, labels and options", function()
  check.equal(process.shell(("mkdir -p '%s/runs/%s'"):format(folder, evil)).code, 0)
  local json = require "sinklab.base.json"
  process.write(("%s/runs/%s/run.json"):format(folder, evil), json.encode { script = evil,
    status = "complete", options = { [evil] = evil }, results = { [evil] = 1 },
    claims = { { text = evil, holds = false } }, plugins = {} })
  for _, words in ipairs { { "runs", "list" }, { "runs", "show", "runs/" .. evil } } do
    local r = run(table.unpack(words))
    check.equal(r.code, 0, r.err)
    check_safe(table.concat(words, " "), r.out, [[a\x1b[31mb\u{9b}2J\u{202e}c\u{2066}]])
  end
end)

check.test("figures in the terminal and values at the prompt", function()
  process.write(folder .. "/figure.lua", ([[
    local lab = require "sinklab"
    local evil = (%s):gsub("\255", "")
    print(lab.plot.lines({ { label = evil, x = { 1, 2 }, y = { 1, 2 } } },
      { title = evil, xlabel = evil, ylabel = evil }))
    print(lab.plot.bars({ evil, "b" }, { { label = evil, y = { 1, 2 } } },
      { title = evil }))
    print(lab.plot.heat({ { 1, 0 }, { 0, 1 } }, { title = evil, tokens = { evil, "b" } }))
  ]]):format('"' .. evil:gsub(".", function(c) return ("\\%d"):format(c:byte()) end)
    .. '"'))
  local r = process.run({ "run", "figure.lua" }, { folder = folder,
    env = { LC_ALL = "C.UTF-8" } })
  check.equal(r.code, 0, r.err)
  check_safe("figure", r.out .. r.err, [[a [31mb\u{9b}2J\u{202e}c\u{2066}]])
  local show = require "sinklab.prompt.show"
  check_safe("prompt", show.text { evil, { [evil] = 1 } })
  check_safe("prompt", show.text(evil))
end)

check.done()
