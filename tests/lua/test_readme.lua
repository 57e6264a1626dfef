-- test_readme.lua - every fenced block of README.md and docs/*.md does what it says.
--
--   sh     commands, run one by one in a folder that has build, include, scripts and
--          tests
--   lua, c  a file, under the name in its first comment, for the commands after it
--   repl   a session at the prompt: check_lua_repl.c types the README's, check_session.c
--          those of docs/
--   json, text, lua example  shown, not run here
--   experiment  commands that take minutes: test_experiments.lua runs them --quick
-- The README's two first commands are .ci/run's: here only that it calls them.
local check = require "check"
local process = require "process"

local binary = os.getenv "SINKLAB_BINARY"
local build = binary:match "^(.*)/[^/]*$"
local source = arg[0]:match "^(.*)/tests/lua/[^/]*$"

--- { kind, text, line } of every fenced block.
local function blocks(text)
  local out, open, n = {}, nil, 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    local fence = line:match "^```(.*)$"
    if fence and open then
      open.text = table.concat(open.lines, "\n") .. "\n"
      out[#out + 1], open = open, nil
    elseif fence then
      open = { kind = fence, lines = {}, line = n }
    elseif open then
      open.lines[#open.lines + 1] = line
    end
  end
  assert(not open, "a block is not closed")
  return out
end

local kinds = {}

function kinds.sh(block, folder)
  for _, line in ipairs(block.lines) do
    local result = process.shell(("cd '%s' && HOME='%s/home' && %s </dev/null"):format(
      folder, folder, line))
    if result.code ~= 0 then
      error(("%s\nended with %d and printed\n%s%s"):format(line, result.code,
        result.out, result.err), 0)
    end
  end
end

local function keep(block, folder)
  local name = block.lines[1]:match "([%w_]+%.%w+)"
  assert(name, "the first line names no file")
  process.write(folder .. "/" .. name, block.text)
end

kinds.lua, kinds.c = keep, keep

-- A prompt needs a terminal: check_lua_repl.c and check_session.c type these.
function kinds.repl() end
function kinds.experiment() end
function kinds.json() end
kinds["lua example"] = function() end -- of docs/reference.md: test_help.lua runs them
function kinds.text() end

-- A page with a test of its own.
local elsewhere = { ["neighbours.md"] = "test_neighbours.lua" }

local listing = process.shell(("ls '%s'/README.md '%s'/docs/*.md"):format(source, source))
for path in listing.out:gmatch "[^\n]+" do
  local name = path:match "([^/]*)$"
  local folder = process.folder("readme-" .. name)
  local listed = elsewhere[name] and {} or blocks(process.read(path))
  for _, folders in ipairs { { build, "build" }, { source .. "/include", "include" },
    { source .. "/scripts", "scripts" }, { source .. "/tests", "tests" } } do
    process.shell(("ln -s '%s' '%s/%s'"):format(folders[1], folder, folders[2]))
  end
  for _, block in ipairs(listed) do
    check.test(("%s:%d (%s)"):format(name, block.line, block.kind), function()
      local run = kinds[block.kind]
      if not run then error("blocks of this kind are not tested: " .. block.kind, 0) end
      run(block, folder)
    end)
  end
end

check.test("the README's first commands are what .ci/run calls", function()
  local readme = process.read(source .. "/README.md")
  check.contains(readme,
    "\n    scripts/setup && build/sinklab run experiments/theorem2.lua\n")
  check.contains(readme,
    "\n    scripts/setup && ctest --test-dir build --output-on-failure\n")
end)

check.test("the files from a script to a kernel are there, at most 30", function()
  local page = process.read(source .. "/docs/extending.md")
  local part = page:match "\n## From a script to a kernel and back\n(.*)"
  local folder, n = "", 0
  for row in part:gmatch "\n| [^|`]*`?[^|]* | ([^\n]*) |" do
    for name in row:gmatch "`([^`]*)`" do
      if name:find "/" then folder = name:match "^(.*/)" end
      if not name:find "/$" then
        local path = name:find "/" and name or folder .. name
        local file <close> = io.open(source .. "/" .. path)
        if not file then error(path .. " is not there", 0) end
        n = n + 1
      end
    end
  end
  check.at_most(n, 30)
  check.at_least(n, 20)
end)

check.test("every file that the README names is there", function()
  for path in process.read(source .. "/README.md"):gmatch "%]%(([%w_/.-]+)%)" do
    local file <close> = io.open(source .. "/" .. path)
    if not file then error("README.md names " .. path .. ", which is not there", 0) end
  end
end)

check.done()
