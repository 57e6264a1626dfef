--- process.lua - the sinklab binary run from a test: arguments in, exit status and
-- what it printed out. SINKLAB_BINARY names it, SINKLAB_TEST_SCRATCH a folder that
-- tests may write to; ctest sets both.
local process = {}

local binary = assert(os.getenv "SINKLAB_BINARY", "SINKLAB_BINARY is not set")
local scratch = assert(os.getenv "SINKLAB_TEST_SCRATCH",
  "SINKLAB_TEST_SCRATCH is not set")
local count = 0

local function quote(s) return "'" .. s:gsub("'", [['\'']]) .. "'" end

function process.read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

function process.write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
  return path
end

--- Resident memory of this process in kB; 0 where the system does not tell.
function process.memory()
  local file <close> = io.open "/proc/self/status"
  if not file then return 0 end
  return tonumber(file:read "a":match "VmRSS:%s*(%d+)") or 0
end

--- A new empty folder for one test.
function process.folder(name)
  local path = scratch .. "/" .. name
  assert(os.execute("rm -rf " .. quote(path) .. " && mkdir -p " .. quote(path)))
  return path
end

--- Run a shell command. @return { code, out, err }; code is negative for a signal.
function process.shell(command)
  count = count + 1
  local out, err = scratch .. "/out" .. count, scratch .. "/err" .. count
  local _, how, code = os.execute(("{ %s\n} >%s 2>%s"):format(command, quote(out),
    quote(err)))
  local result = { code = how == "exit" and code or -code, out = process.read(out),
    err = process.read(err) }
  os.remove(out)
  os.remove(err)
  return result
end

local function command_line(arguments, options)
  local words = {}
  if options.folder then words[1] = "cd " .. quote(options.folder) .. " &&" end
  words[#words + 1] = "env"
  for name, value in pairs(options.env or {}) do
    words[#words + 1] = quote(name .. "=" .. value)
  end
  words[#words + 1] = quote(binary)
  for _, argument in ipairs(arguments) do words[#words + 1] = quote(argument) end
  return table.concat(words, " ")
end

--- Run sinklab. options: folder to run in, env, input (standard input, default none).
-- @return { code, out, err }
function process.run(arguments, options)
  options = options or {}
  local input = "/dev/null"
  if options.input then
    input = process.write(scratch .. "/input", options.input)
  end
  return process.shell(command_line(arguments, options) .. " <" .. quote(input))
end

--- Run sinklab, wait until its standard output has `ready`, send a signal, wait.
function process.signalled(arguments, signal, ready, options)
  local out = scratch .. "/ready"
  process.write(out, "")
  return process.shell(([[
    %s </dev/null >%s &
    child=$!
    tries=0
    until grep -q %s %s || [ $tries -ge 600 ]; do
      sleep 0.05; tries=$((tries + 1))
    done
    kill -%s $child
    wait $child
    code=$?
    cat %s
    exit $code]]):format(command_line(arguments, options or {}),
    quote(out), quote(ready), quote(out), signal, quote(out)))
end

return process
