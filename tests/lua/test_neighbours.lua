-- test_neighbours.lua - sinklab beside numpy and a stock Lua: docs/neighbours.md.
local check = require "check"
local process = require "process"
local core = require "sinklab.core"
local lab = require "sinklab"

local folder = process.folder "neighbours"
local here = debug.getinfo(1, "S").source:match "^@(.*)/tests/lua/"
local binary = os.getenv "SINKLAB_BINARY"

--- The blocks of the guide in this language, by the file that the line before names.
local function blocks(language)
  local text, out = process.read(here .. "/docs/neighbours.md"), {}
  for name, block in text:gmatch("`([%w_.]+)`:\n\n```" .. language .. "\n(.-)```") do
    out[name] = block
  end
  return out
end

local function has(command)
  return process.shell("command -v " .. command .. " >/dev/null 2>&1").code == 0
end

check.test("npz: tensors by name, there and back", function()
  local path = folder .. "/t.npz"
  local x, y = lab.arange(6):reshape { 2, 3 }, lab.tensor({ 1, 2 }, "f64")
  assert(lab.save_npz(path, { x = x, y = y }))
  local t = assert(lab.load_npz(path))
  check.equal(t.x:totable(), x:totable())
  check.equal({ t.x.dtype, t.y.dtype, t.y:totable() }, { "f32", "f64", { 1.0, 2.0 } })
  local golden = assert(lab.load_npz(here .. "/tests/golden/numpy.npz"))
  check.equal(next(golden) ~= nil, true)
  local none, message = lab.load_npz(folder)
  check.equal(none, nil)
  check.contains(message, "it is a folder")
  check.raises("save_npz: 'x' must be a tensor, got number", lab.save_npz, path,
    { x = 3 })
end)

check.test("files of other programs: every type of number, foreign members", function()
  local io_folder = here .. "/tests/golden/io/"
  local want = { { 0.0, 1.0, 2.0 }, { 3.0, 4.0, 5.0 } }
  for _, name in ipairs { "t_f2", "t_f4", "t_f4_be", "t_f8", "t_f8_be", "t_i1", "t_i2",
    "t_i4", "t_i4_be", "t_i8", "t_u1", "t_u2", "t_u4", "t_u8", "py2long" } do
    local t = assert(lab.load_npy(io_folder .. name .. ".npy"))
    check.equal(t:totable(), want, name)
    local single = name:match "f[24]" or name == "py2long"
    check.equal(t.dtype, single and "f32" or "f64", name)
  end
  check.equal(assert(lab.load_npy(io_folder .. "t__bool.npy")):totable(),
    { { 0.0, 1.0, 1.0 }, { 1.0, 1.0, 1.0 } })
  for name, kind in pairs { t_c8 = "type '<c8'", struct = "a structured type",
    strings = "type '<U2'" } do
    check.contains(select(2, lab.load_npy(io_folder .. name .. ".npy")),
      name .. ".npy: has elements of " .. kind)
  end
  local t, skipped = assert(lab.load_npz(io_folder .. "mixed.npz"))
  check.equal({ t.w.shape, #t.n.shape, t.names }, { { 2, 2 }, 0, nil })
  check.contains(skipped["names.npy"], "has elements of type '<U1'")
  t, skipped = assert(lab.load_npz(io_folder .. "readme.npz"))
  check.equal(t.w ~= nil, true)
  check.equal(skipped, { ["README.txt"] = "it is no .npy file" })
  check.equal({ lab.load_npz(io_folder .. "emptyzip.npz") }, { {}, {} })
  t = assert(lab.load_npz(io_folder .. "uni.npz"))
  check.equal({ t["ü"].count, t["日本"].count }, { 2, 1 })
  for name, kind in pairs { BF16 = "f32", F16 = "f32", I64 = "f64", U8 = "f64",
    BOOL = "f64", mixed = "f64" } do
    local tensors = assert(lab.load_safetensors(io_folder .. "s_" .. name
      .. ".safetensors"))
    local found, values = tensors.a or tensors.ids, { 0.0, 1.0, 2.0, 3.0 }
    if name == "BOOL" then values = { 0.0, 1.0, 0.0, 1.0 } end
    if name == "mixed" then values = { 0.0, 1.0 } end
    check.equal({ found.dtype, found:totable() }, { kind, values }, name)
  end
end)

-- Bit 11 of the flags in the local header says that a name is UTF-8.
check.test("npz: names beyond ASCII are marked as UTF-8", function()
  local path = folder .. "/names.npz"
  for name, marked in pairs { plain = false, ["ü"] = true } do
    assert(lab.save_npz(path, { [name] = lab.arange(2) }))
    local flags = ("<I2"):unpack(process.read(path), 7)
    check.equal(flags & 0x800 ~= 0, marked, name)
    check.equal(assert(lab.load_npz(path))[name]:totable(), { 0.0, 1.0 })
  end
end)

local python = "/usr/bin/python3"
if process.shell(python .. " -c 'import numpy' 2>/dev/null").code ~= 0 then
  python = "python3"
end

if process.shell(python .. " -c 'import numpy' 2>/dev/null").code == 0 then
  check.test("the numpy example: the same forward pass from the saved weights", function()
    for name, block in pairs(blocks "lua") do
      process.write(folder .. "/" .. name, block)
    end
    for name, block in pairs(blocks "python") do
      process.write(folder .. "/" .. name, block)
    end
    local r = process.run({ "run", "to_numpy.lua", "--quiet", "--out=out" },
      { folder = folder })
    check.equal(r.code, 0, r.err)
    r = process.shell(("cd '%s' && %s same.py"):format(folder, python))
    check.equal(r.code, 0, r.err)
    check.contains(r.out, "largest difference ")
  end)
else
  print "skipped: there is no python3 with numpy"
end

local module = binary:match "^(.*)/" .. "/lua"
local sanitized = process.shell(("LC_ALL=C grep -q __asan_init '%s/sinklab.so'")
  :format(module))
if not has "lua5.4" then
  print "skipped: there is no lua5.4"
elseif sanitized.code == 0 then
  print "skipped: a sanitizer's library cannot be loaded into lua5.4"
else
  local function stock(words)
    return process.shell(("cd '%s' && LUA_CPATH='%s/?.so' lua5.4 %s"):format(folder,
      module, words))
  end

  check.test("a stock Lua: a script with options, its run and its record", function()
    for name, block in pairs(blocks "lua") do
      process.write(folder .. "/" .. name, block)
    end
    local r = stock "stock.lua --steps=20 --out=stock --quiet"
    check.equal(r.code, 0, r.err)
    local record = assert(lab.json.decode(process.read(folder .. "/stock/run.json")))
    check.equal({ record.status, record.options.steps, record.script },
      { "complete", 20, "stock.lua" })
    check.equal(record.results.softmax.train.steps, 20)
  end)

  check.test("a stock Lua: coroutines from before, errors, an open run", function()
    process.write(folder .. "/s.lua", [[
      local co = coroutine.wrap(function()
        coroutine.yield()
        return require "sinklab".arange(3):sum():item()
      end)
      co()
      local lab = require "sinklab"
      assert(co() == 3)
      assert(select(2, pcall(lab.zeros, "x")):find "zeros")
      lab.run()]])
    local r = stock "s.lua --out=open"
    check.equal(r.code, 0, r.err)
    local record = assert(lab.json.decode(process.read(folder .. "/open/run.json")))
    check.equal({ record.status, record.error },
      { "failed", "the program ended before run:finish()" })
    process.write(folder .. "/t.lua", "require 'sinklab'.options { n = 1 }")
    r = stock "t.lua --threads=2"
    check.equal(r.code, 1)
    check.contains(r.err, "--threads: only `sinklab run t.lua` takes it")
    r = stock "-e 'require [[sinklab]].trian()'"
    check.equal(r.code, 1)
    check.contains(r.err, "did you mean lab.train?")
    process.shell(("mkdir -p '%s/alone' && cp '%s/sinklab.so' '%s/alone/'"):format(folder,
      module, folder))
    r = process.shell(("cd '%s/alone' && LUA_CPATH='./?.so' lua5.4 -e "
      .. "'require [[sinklab]]'"):format(folder))
    check.contains(r.err, "the installation of sinklab around it is not complete")
  end)
end

check.test("os.exit and run:finish close a run once", function()
  process.write(folder .. "/f.lua", [[
    local run = require "sinklab".run()
    run:claim("no", 1, ">", 2)
    run:finish()
    assert(not pcall(run.finish, run))]])
  local r = process.run({ "run", "f.lua", "--quiet", "--out=f" }, { folder = folder })
  check.equal(r.code, 2, r.err)
  check.equal(core.file_exists(folder .. "/f/run.json"), true)
end)

check.done()
