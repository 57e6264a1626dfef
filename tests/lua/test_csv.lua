-- test_csv.lua - lab.csv: what is written comes back, what others write is read.
local check = require "check"
local process = require "process"
local lab = require "sinklab"

local folder = process.folder "csv"
local path = folder .. "/t.csv"

check.test("numbers, words, quotes and holes come back as they were", function()
  local names = { "step", "what", "x,y" }
  local rows = { { 1, "plain", 0.1 }, { 2, 'say "no"', 1e300 }, { 3, "a,b\nc", nil },
    { 4, "12", -1 / 3 }, { 5, nil, math.huge }, { 6, "", -math.huge } }
  assert(lab.csv.save(path, names, rows))
  local t = assert(lab.csv.load(path))
  check.equal(t.names, names)
  check.equal(#t.rows, 6)
  check.equal(t.rows[1], rows[1])
  check.equal(t.rows[2], rows[2])
  check.equal({ t.rows[3][1], t.rows[3][2] }, { 3, "a,b\nc" })
  check.equal(t.rows[3][3] ~= t.rows[3][3], true, "an empty cell of numbers is NaN")
  check.equal(t.columns.what, { "plain", 'say "no"', "a,b\nc", "12", "", "" })
  check.equal(t.rows[4][3], -1 / 3)
  check.equal({ t.rows[5][3], t.rows[6][3] }, { math.huge, -math.huge })
  check.equal(t.columns.step, { 1, 2, 3, 4, 5, 6 })
  check.equal(lab.csv.text({ "x" }, { { 0 / 0 } }), "x\nnan\n")
end)

check.test("tensors go in and out", function()
  local x = lab.tensor { { 1.5, 2 }, { 3, 4 }, { 5, 6 } }
  assert(lab.csv.save(path, { "a", "b" }, x))
  check.equal(process.read(path), "a,b\n1.5,2.0\n3.0,4.0\n5.0,6.0\n")
  local t = assert(lab.csv.load(path))
  check.equal(lab.tensor(t.rows):totable(), x:totable())
  check.raises("2 names need a tensor (rows, 2), got (3, 3)", lab.csv.text, { "a", "b" },
    lab.zeros { 3, 3 })
  check.raises("lab.csv.text: row 1 must be a list of cells, got 1", lab.csv.text,
    { "a" }, { 1 })
  check.raises("lab.csv.save: row 1 must be a list of cells, got 1", lab.csv.save, path,
    { "a" }, { 1 })
end)

check.test("a column is numbers or text as a whole; no cell is lost", function()
  process.write(path, "n,hole,id,hash,mixed,quoted,empty\n"
    .. "1,,007,1e5,1e5,\"1\",\n,2.5,010,123e456,x,2,\n3,-inf,,0,,3,\n")
  local c = assert(lab.csv.load(path)).columns
  local function words(list)
    local out = {}
    for i, value in ipairs(list) do out[i] = math.type(value) and value ~= value
      and "NaN" or value end
    return out
  end
  check.equal(words(c.n), { 1, "NaN", 3 })
  check.equal(words(c.hole), { "NaN", 2.5, -math.huge })
  check.equal(c.id, { "007", "010", "" })
  check.equal(c.hash, { "1e5", "123e456", "0" })
  check.equal(c.mixed, { "1e5", "x", "" })
  check.equal(c.quoted, { "1", "2", "3" })
  check.equal(words(c.empty), { "NaN", "NaN", "NaN" })
  -- Texts that read like numbers come back as texts.
  local texts = { { "1e5" }, { "nan" }, { "-inf" }, { "12" }, { "" } }
  assert(lab.csv.save(path, { "t" }, texts))
  check.equal(assert(lab.csv.load(path)).columns.t, { "1e5", "nan", "-inf", "12", "" })
  check.equal(lab.csv.text({ "t" }, { { "007" }, { true } }), "t\n007\ntrue\n")
end)

check.test("two columns of one name are refused", function()
  process.write(path, "a,b,a\n1,2,3\n")
  check.equal(select(2, lab.csv.load(path)),
    path .. ": two columns have the name 'a'")
  check.raises("lab.csv.text: two columns have the name 'a'", lab.csv.text,
    { "a", "b", "a" }, {})
end)

check.test("what is no file is refused at once", function()
  process.shell(("cd '%s' && rm -f pipe zeros && mkfifo pipe && ln -s /dev/zero zeros")
    :format(folder))
  for _, name in ipairs { "pipe", "zeros" } do
    check.equal(select(2, lab.csv.load(folder .. "/" .. name)),
      ("%s/%s: cannot read: it is not a file"):format(folder, name))
  end
end)

check.test("Windows line ends, a byte order mark, no newline at the end", function()
  process.write(path, "\xEF\xBB\xBFa,b\r\n1,\"x\"\"y\"\r\n2,z")
  local t = assert(lab.csv.load(path))
  check.equal(t.names, { "a", "b" })
  check.equal(t.rows, { { 1, 'x"y' }, { 2, "z" } })
end)

check.test("what is not well-formed is said with its record", function()
  for text, why in pairs {
    ["a,b\n1,2\n1,2,3\n"] = "record 3 has 3 cells, the first one names 2",
    ['a\n"open'] = "record 2: a quote is not closed",
    ['a\n"x"y\n'] = "record 2: text after a closing quote",
    ["a\nx\ry\n"] = "record 2: a carriage return that no newline follows",
    [""] = "it is empty" } do
    process.write(path, text)
    local none, message = lab.csv.load(path)
    check.equal(none, nil)
    check.contains(message, path .. ": " .. why)
  end
  check.equal((lab.csv.load(folder .. "/missing")), nil)
  check.equal((lab.csv.save(folder, { "a" }, {})), nil)
  check.raises("row 1 must be a list of cells, got 3", lab.csv.text, { "a" }, { 3 })
end)

check.done()
