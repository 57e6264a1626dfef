-- test_waits.lua - every wait ends on the first signal: SIGINT, in the long tests SIGTERM
-- too.
local check = require "check"
local process = require "process"

local folder = process.folder "waits"
local binary = os.getenv "SINKLAB_BINARY"
local hostile = binary:match "^(.*)/[^/]*$" .. "/tests/hostile/"
local signals = os.getenv "SINKLAB_SOAK" == "1" and { "INT", "TERM" } or { "INT" }
local LIMIT = 3 -- seconds between the signal and the end, on a busy machine

process.shell(("mkfifo '%s/silent' '%s/other'"):format(folder, folder))

--- Start sinklab with a standard input that is open and silent, wait, send one signal.
-- @param before  shell command that runs meanwhile
-- @return how long it took to end, its status and what it printed
local function interrupted(arguments, signal, before)
  local r = process.shell(([[
    cd '%s' || exit 9
    sleep 30 >silent & holder=$!
    %s
    '%s' %s <silent >out 2>err &
    child=$!
    sleep 0.3
    kill -%s $child
    started=$(date +%%s%%N)
    ( sleep 10; kill -9 $child ) >/dev/null 2>&1 & watchdog=$!
    wait $child; code=$?
    ended=$(date +%%s%%N)
    kill $watchdog $holder $helper
    echo $(( (ended - started) / 1000000 )) $code
  ]]):format(folder, before or "helper=", binary, arguments, signal))
  local ms, code = r.out:match "(%d+) (%d+)"
  return tonumber(ms) / 1000, tonumber(code), process.read(folder .. "/err")
end

local function script(name, text)
  process.write(("%s/%s.lua"):format(folder, name), text)
  return ("run %s.lua"):format(name)
end

local cases = {
  ["io.read"] = script("read", "io.read()"),
  ["io.read, everything"] = script("read_all", 'io.read "a"'),
  ["io.stdin:read in pcall"] = script("method", "pcall(io.stdin.read, io.stdin) "
    .. "for i = 1, 1e9 do end"),
  ["io.lines"] = script("lines", "for line in io.lines() do print(line) end"),
  ["io.open of a pipe"] = script("open", 'io.open("other"):read()'),
  ["a coroutine that reads"] = script("co", "coroutine.wrap(function() io.read() end)()"),
  ["a loop"] = script("loop", "while true do end"),
  ["the prompt's input"] = "",
  ["a script in a pipe"] = "run other",
  ["plugin info"] = ("plugin info '%sstart_sleeps.so'"):format(hostile),
  ["plugin check"] = ("plugin check '%sstart_spins.so' --timeout=60"):format(hostile),
  ["plugin list"] = "plugin list",
  ["lab.sweep"] = script("sweep", [[
    require "sinklab".sweep({ 1, 2, 3, 4 }, function() while true do end end,
      { workers = 2 })]]),
}

for name, arguments in pairs(cases) do
  check.test("the first signal ends " .. name, function()
    for _, signal in ipairs(signals) do
      local before = name == "plugin list"
          and ("helper=; mkdir -p plugins; cp '%sstart_sleeps.so' plugins/")
            :format(hostile) or nil
      local seconds, code, err = interrupted(arguments, signal, before)
      check.at_most(seconds, LIMIT, signal .. " " .. err)
      check.equal(code ~= 0, true, ("%s: %d %s"):format(signal, code, err))
    end
  end)
end

check.test("the first signal ends the wait for an index that another process holds",
  function()
    process.shell(("mkdir -p '%s/runs/a' && echo '{}' >'%s/runs/a/run.json'"):format(
      folder, folder))
    check.equal(process.run({ "runs", "list" }, { folder = folder }).code, 0)
    process.write(folder .. "/hold.lua", [[
      local core = require "sinklab.core"
      local d = assert(core.database("runs/index.sqlite", true))
      assert(d:run "BEGIN EXCLUSIVE")
      os.execute "sleep 20"]])
    local index
        = process.shell(("ls -a '%s/runs'"):format(folder)).out:match "(%S*index%S*)"
    check.equal(index ~= nil, true)
    process.write(folder .. "/hold.lua", (process.read(folder .. "/hold.lua")
      :gsub("index%.sqlite", (index:gsub("%%", "%%%%")))))
    local seconds, _, err = interrupted("runs list", "INT",
      ("'%s' run hold.lua </dev/null & helper=$!; sleep 0.3"):format(binary))
    check.at_most(seconds, LIMIT, err)
  end)

check.done()
