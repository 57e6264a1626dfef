-- test_hostile_plugins.lua - plugins that crash, hang, end or outlive the process that
-- loads them: the sentence and the status of every command, and nothing left running.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local build = os.getenv "SINKLAB_BINARY":match "^(.*)/[^/]*$"
local long = os.getenv "SINKLAB_SOAK" == "1"
local hostile = build .. "/tests/hostile/"

-- The plugins of tests/bad/hostile.c that do not load, with their sentences.
local cases = {
  start_crashes = "loading it ends the process by signal 11 (Segmentation fault)",
  start_aborts = "loading it ends the process by signal 6 (Aborted)",
  start_bus = "loading it ends the process by signal 7 (Bus error)",
  start_exits_0 = "loading it ends the process with status 0",
  start_exits_at_once = "loading it ends the process with status 0",
  start_exits_3 = "loading it ends the process with status 3",
  start_forks = "loading it leaves a process running",
  start_forks_many = "loading it leaves a process running",
  start_forks_session = "loading it leaves a process running",
  start_forks_twice = "loading it leaves a process running",
  start_kills_parent = "loading it ends the process by signal 9 (Killed)",
  start_kills_group = "loading it ends the process by signal 9 (Killed)",
  start_overflows = "loading it ends the process by signal 11 (Segmentation fault)",
  end_crashes = "unloading it ends the process by signal 11 (Segmentation fault)",
  end_exits = "unloading it ends the process with status 5",
  atexit_crashes = "unloading it ends the process by signal 11 (Segmentation fault)",
  missing_symbol = "cannot be loaded: undefined symbol: nobody_has_this",
  wild_name = "loading it ends the process by signal 11 (Segmentation fault)",
  wild_options = "loading it ends the process by signal 11 (Segmentation fault)",
  control_name = [[calls itself 'a\x1b[31m\nb\u{202e}'; expected 'control_name']],
  validate_crashes = "asking for its default options ends the process by signal 11",
  validate_exits = "asking for its default options ends the process with status 0",
}
local endless = "loading it does not return within 5 s"
-- Each of them takes the time of the trial.
local slow = {
  start_spins = endless,
  start_sleeps = endless,
  start_ignores_signals = endless,
  start_stops = endless,
  start_stops_parent = "loading it ends the process by signal 9 (Killed)",
  end_sleeps = "unloading it does not return within 5 s",
}

local function shell(...) return process.shell((...):format(select(2, ...))) end

--- A folder with the plugins of these names, and the made files, and their sentences.
local function folder_of(name, wanted)
  local folder, sentences = process.folder(name), {}
  for case, sentence in pairs(wanted) do
    check.equal(shell("cp '%s%s.so' '%s/'", hostile, case, folder).code, 0, case)
    sentences[case] = sentence
  end
  return folder, sentences
end

--- Files that are no plugins, made in the folder.
local function add_made(folder, sentences)
  local good = process.read(build .. "/plugins/relu.so")
  local function put(name, bytes, sentence)
    process.write(("%s/%s.so"):format(folder, name), bytes)
    sentences[name] = sentence
  end
  put("empty", "", "not a shared object (0 bytes, no ELF header)")
  put("words", "hello\n", "not a shared object (6 bytes, no ELF header)")
  put("cut", good:sub(1, #good // 2), "cut.so: ")
  put("other_machine", good:sub(1, 18) .. "\xf3\0" .. good:sub(21),
    "built for another machine: ELF machine 243, here ")
  put("other_class", good:sub(1, 4) .. "\1" .. good:sub(6),
    "built for another machine: ELF class 1, here 2")
  put("program", good:sub(1, 16) .. "\2" .. good:sub(18), "ELF type 2, not 3")
  put("renamed", good, "calls itself 'relu'; expected 'renamed', like the file")
  put("red\27[31m\u{202E}\nline", "x", "not a shared object (1 bytes, no ELF header)")
  check.equal(shell("mkfifo '%s/fifo.so'; truncate -s 1T '%s/huge.so'; cp '%s' '%s'",
    folder, folder, build .. "/tests/bad/major.so", folder).code, 0)
  sentences.fifo, sentences.huge = "it is not a file", "it has more than 268435456 bytes"
  sentences.major = "built for ABI 2.0, this sinklab speaks 1.0"
end

local marks = 0
--- Run sinklab with these plugins; nothing that it started may live on.
local function run(folder, ...)
  marks = marks + 1
  local mark = ("hostile-%d-%s"):format(marks, folder:gsub("%W", "-"))
  local r = process.run({ ... }, { folder = folder,
    env = { SINKLAB_PLUGIN_PATH = folder, SINKLAB_MARK = mark } })
  -- one that was killed may take a moment to go
  local look = "grep -ls 'SINKLAB_MARK=%s' /proc/[0-9]*/environ"
  local left = shell(look .. " && sleep 0.2", mark)
  if left.out ~= "" then left = shell(look, mark) end
  check.equal(left.out, "", table.concat({ ... }, " "))
  return r
end

--- No control character but newlines, and no text that turns its direction.
local function check_plain(text)
  check.equal(text:find "[\0-\9\11-\31\127]", nil, text)
  check.equal(text:find("\u{202E}", 1, true), nil, text)
  check.equal(text:find("\u{9B}", 1, true), nil, text)
  check.equal(utf8.len(text) ~= nil, true, text)
end

local function check_listing(folder, sentences, doctor)
  local r = run(folder, "plugin", "list")
  check.equal(r.code, 0, r.err)
  check.equal(r.err, "")
  check_plain(r.out)
  for name, sentence in pairs(sentences) do
    local line = r.out:match(("\n%s [^\n]*"):format(name:match "^[%w_]+"))
        or r.out:match(("\n%s\\[^\n]*"):format(name:match "^[%w_]+"))
    check.contains(line or name, "does not load: ")
    check.contains(line or name, sentence)
  end
  if not doctor then return end
  r = run(folder, "doctor")
  check.equal(r.code, 1, r.err)
  check_plain(r.out)
  for _, sentence in pairs(sentences) do check.contains(r.out, sentence) end
end

local script = process.write(process.folder "script" .. "/a.lua", [[
local lab = require "sinklab"
local options = lab.options { name = { default = "relu", doc = "a plugin" } }
local run = lab.run()
lab.row_weights(lab.mechanism(options.name), lab.zeros { 1, 1, 4, 4 })
run:finish()
]])

local function check_one(folder, name, sentence)
  local r = run(folder, "plugin", "info", name)
  check.equal(r.code, 1, name)
  check.contains(r.err, sentence)
  check_plain(r.err)
  if not long and name ~= "start_crashes" then return end
  r = run(folder, "plugin", "check", name)
  check.equal(r.code, 1, name)
  check.contains(r.out, sentence)
  r = run(folder, "run", script, "--out=out", "--name=" .. name)
  check.equal(r.code, 1, name)
  check.contains(r.err, sentence)
  check.equal(lab.json.decode(process.read(folder .. "/out/run.json")).status, "failed")
  shell("rm -rf '%s/out'", folder)
end

check.test("list, doctor, info: one sentence, one status, nothing left", function()
  local folder, sentences = folder_of("quick", cases)
  add_made(folder, sentences)
  check_listing(folder, sentences, true)
  for name, sentence in pairs(sentences) do check_one(folder, name, sentence) end
end)

check.test("an endless constructor", function()
  local folder = folder_of("endless", { start_spins = endless })
  check_listing(folder, { start_spins = endless }, long)
end)

if long then
  check.test("endless and stopped plugins, in every command", function()
    local folder, sentences = folder_of("slow", slow)
    check_listing(folder, sentences, true)
    for name, sentence in pairs(sentences) do check_one(folder, name, sentence) end
  end)
end

check.test("a constructor that reads finds no input; control characters", function()
  local folder = folder_of("words", { start_reads = "", control_doc = "" })
  local r = run(folder, "plugin", "info", "start_reads")
  check.equal(r.code, 0, r.err)
  for _, words in ipairs { { "plugin", "list" }, { "plugin", "info", "control_doc" } } do
    r = run(folder, table.unpack(words))
    check.equal(r.code, 0, r.err)
    check_plain(r.out)
    check.contains(r.out, [[red \x1b[31m, \u{9b}, \u{202e}, \xff]])
  end
end)

check.test("exit () and fork () in a kernel", function()
  local folder = folder_of("kernels", { kernel_exits = "", kernel_forks = "" })
  local r = run(folder, "plugin", "check", "kernel_exits", "--only=runs")
  check.equal(r.code, 1)
  check.contains(r.out, "ended the process with status 0 in")
  r = run(folder, "plugin", "check", "kernel_forks", "--only=runs")
  check.equal(r.code, 1)
  check.contains(r.out, "left a process running")
  r = run(folder, "run", script, "--out=out", "--name=kernel_exits")
  check.equal(r.code, 1)
  check.contains(r.err, "the process was ended by exit () in C code, as of a plugin")
  local record = lab.json.decode(process.read(folder .. "/out/run.json"))
  check.equal(record.status, "failed")
  check.contains(record.error, "exit () in C code")
end)

check.test("a file that is overwritten while it is loaded changes nothing", function()
  local folder = process.folder "overwritten"
  check.equal(shell("cp '%s/plugins/relu.so' '%s/'", build, folder).code, 0)
  local file = process.write(folder .. "/a.lua", [[
local lab = require "sinklab"
local relu = lab.mechanism "./relu.so"
local x = lab.tensor { { -1, 2 }, { 3, 4 } }:reshape { 1, 1, 2, 2 }
local before = lab.row_weights(relu, x)
assert(io.open("relu.so", "w")):close() -- every page of it is gone
local after = lab.row_weights(relu, x)
print(lab.max_abs_error(before, after):item())
print(pcall(lab.mechanism, "./relu.so"))
]])
  local r = run(folder, "run", file)
  check.equal(r.code, 0, r.err)
  check.contains(r.out, "0.0\nfalse\t")
  check.contains(r.out, "relu.so: changed since it was loaded")
end)

check.test("one that stands before sinklab's own is named, also in run.json", function()
  local folder = process.folder "shadow"
  check.equal(shell("mkdir '%s/plugins' && cp '%s/plugins/relu.so' '%s/plugins/'", folder,
    build, folder).code, 0)
  local r = run(folder, "run", script, "--out=out")
  check.equal(r.code, 0, r.err)
  local said = ("sinklab: %s/plugins/relu.so stands before sinklab's own plugin relu\n")
  local _, times = r.err:gsub("stands before", "")
  check.equal(times, 1, r.err)
  check.contains(r.err, said:format(folder))
  local record = lab.json.decode(process.read(folder .. "/out/run.json"))
  check.equal(record.plugins[1].shadows, build .. "/plugins/relu.so")
  check.equal(record.plugins[1].path, folder .. "/plugins/relu.so")
end)

check.test("a signal at any moment of plugin check leaves nothing running", function()
  local folder = folder_of("signals", { start_spins = "", kernel_forks = "" })
  local seed = 13
  math.randomseed(seed)
  for i = 1, long and 50 or 6 do
    local mark = ("signal-%d-%s"):format(i, folder:gsub("%W", "-"))
    local name = i % 3 == 0 and "start_spins" or i % 3 == 1 and "relu" or "kernel_forks"
    local signal = ({ "INT", "TERM", "KILL" })[i % (long and 3 or 2) + 1]
    local after = math.random() * 0.3
    local r = shell([[
      cd '%s'
      env SINKLAB_PLUGIN_PATH=. SINKLAB_MARK='%s' '%s' plugin check %s </dev/null &
      child=$!; sleep %.3f; kill -%s $child; wait $child; code=$?
      sleep 0.3
      grep -ls 'SINKLAB_MARK=%s' /proc/[0-9]*/environ >&2
      exit $code]], folder, mark, os.getenv "SINKLAB_BINARY", name, after, signal, mark)
    local where = ("%s, %s after %.3f s (seed %d, %d)"):format(name, signal, after,
      seed, i)
    check.equal(r.err:find "/proc/", nil, where .. r.err)
  end
end)

check.done()
