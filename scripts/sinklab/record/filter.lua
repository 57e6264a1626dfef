--- filter.lua - conditions on runs, "lr<=1e-3", as SQL with bound values.
local check = require "sinklab.base.check"
local strings = require "sinklab.base.strings"
local index = require "sinklab.record.index"

local filter = {}

local operators = { ["="] = true, ["!="] = true, ["<"] = true, ["<="] = true,
  [">"] = true, [">="] = true, ["~"] = true }

local columns = { folder = true }
for _, name in ipairs(index.columns) do columns[name] = true end

--- Everything that a filter or a metric may name, for all runs of an open index.
-- @return { db = db, option = { name = id ... }, result = { path = id ... } }, or nil
--         and a message
function filter.names(db)
  local rows, message = db:rows [[select id, kind, name from names n
    where exists (select 1 from fields f where f.name = n.id)]]
  if not rows then return nil, message end
  local known = { db = db, option = {}, result = {} }
  for _, row in ipairs(rows) do known[row.kind][row.name] = row.id end
  return known
end

--- The SQL for the value of a key in run r, and the values bound in it. nil: there
-- is no such key.
local function value_of(key, known)
  local kind, name = key:match "^(%l+)%.(.+)$"
  if kind ~= "option" and kind ~= "result" then
    kind, name = nil, key
    if columns[key] then return "r." .. key, {} end
  end
  for _, each in ipairs { "option", "result" } do
    if (kind or each) == each and known[each][name] then
      return "(select value from fields f where f.name = ? and f.run = r.id)",
        { known[each][name] }
    end
  end
end

local function unknown(what, key, known)
  local names = {}
  for name in pairs(columns) do names[#names + 1] = name end
  for _, kind in ipairs { "option", "result" } do
    for name in pairs(known[kind]) do names[#names + 1] = name end
  end
  table.sort(names)
  check.fail("%s: no run has '%s'%s", what, key, check.did_you_mean(key, names,
    "; it is a column, an option or the path of a result"))
end

--- SQL for the value of a metric, and the values bound in it.
function filter.value(metric, known)
  local sql, bound = value_of(metric, known)
  if not sql then unknown("runs", metric, known) end
  return sql, bound
end

--- KEY OP VALUE. A label may hold = itself: of the places to cut, the first one with a
-- known key before it is taken.
local function parse(condition, known)
  local first
  for at = 2, #condition do
    for _, width in ipairs { 2, 1 } do
      local op = condition:sub(at, at + width - 1)
      if operators[op] and #op == width then
        local key = condition:sub(1, at - 1):match "^%s*(.-)%s*$"
        local value = condition:sub(at + width):match "^%s*(.-)%s*$"
        local sql, bound = value_of(key, known)
        if sql then return sql, bound, op, value end
        first = first or key
        break
      end
    end
  end
  if not first then
    check.fail("runs: the condition '%s' must be KEY=VALUE, or with != < <= > >= or ~",
      condition)
  end
  unknown("runs", first, known)
end

--- Whether a key has numbers and no text but "nan", in all runs.
local function is_number(sql, bound, known)
  local twice = table.move(bound, 1, #bound, #bound + 1, { table.unpack(bound) })
  local rows = known.db:rows(([[select distinct typeof (%s) = 'text' as is_text
    from runs r where %s <> 'nan']]):format(sql, sql), table.unpack(twice))
  for _, row in ipairs(rows or {}) do
    if row.is_text == 1 then return false end
  end
  return rows ~= nil and #rows > 0
end

--- SQL that holds where all conditions do, and the values bound in it. Numbers are
-- compared with numbers, text with text.
-- @param where  a list of texts
-- @param known  from filter.names
-- @error a condition that cannot be read, an unknown key, text for a key that has only
--        numbers
function filter.sql(where, known)
  local terms, values = {}, {}
  for i, condition in ipairs(where) do
    if type(condition) ~= "string" then
      check.fail("runs: condition %d must be a string, got a %s", i, type(condition))
    end
    local sql, bound, op, value = parse(condition, known)
    local number = tonumber(value) or value ~= "nan" and strings.not_finite[value]
    if not number and value ~= "nan" and op ~= "~" and is_number(sql, bound, known) then
      check.fail("runs: the condition '%s': the value must be a number, as in all runs; "
        .. "got '%s'", condition, value)
    end
    table.move(bound, 1, #bound, #values + 1, values)
    if op == "~" then
      terms[i] = ("instr (coalesce (%s, ''), ?) > 0"):format(sql)
      values[#values + 1] = value
    elseif number and (op == "=" or op == "!=") then
      -- A seed is a number, a version may look like one.
      terms[i] = ("%s %s in (?, ?)"):format(sql, op == "=" and "" or "not")
      values[#values + 1], values[#values + 2] = number, value
    else
      -- In SQL text is larger than every number.
      terms[i] = ("(typeof (%s) %s 'text' and %s %s ?)"):format(sql,
        number and "<>" or "=", sql, op)
      table.move(bound, 1, #bound, #values + 1, values)
      values[#values + 1] = number or value
    end
  end
  return #terms > 0 and table.concat(terms, " and ") or "1", values
end

return filter
