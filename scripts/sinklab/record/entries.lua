--- entries.lua - results as run.json and train-LABEL.csv hold them.
local csv = require "sinklab.base.csv"
local json = require "sinklab.base.json"

--- json_options: how records are written (lab.json.encode).
local entries = { json_options = { not_finite = "text" } }

-- The order of keys; others come after them, sorted.
local train_keys = { "steps", "stopped_by", "loss", "max_abs_error", "wall_s",
  "steps_per_s" }
local eval_keys = { "samples", "max_abs_error", "mse", "loss" }
local csv_keys = { "step", "loss", "max_abs_error", "lr", "time" }
local head_keys = { "layer", "head", "first_mean", "first_min", "first_std",
  "first_all", "trigger_first", "row_mass", "first_over_rowsum", "contribution",
  "entropy", "value_norm", "rate" }
local sinks_keys = { "samples", "threshold", "maps", "first", "first_over_rowsum",
  "row_mass", "contribution", "heads" }

--- A copy of a table without its functions, tensors and the key `leave`.
local function plain(t, leave)
  local out = {}
  for key, value in pairs(t) do
    if key ~= leave and type(value) ~= "function" and type(value) ~= "userdata" then
      out[key] = value
    end
  end
  return out
end

entries.plain = plain

--- The record of a result of lab.train.
function entries.train(log)
  local out = plain(log, "log")
  out.eval = nil
  return json.object(out, train_keys)
end


--- The record of an evaluation.
function entries.eval(eval) return json.object(plain(eval), eval_keys) end

--- The record of a result of lab.sinks.
function entries.sinks(sinks)
  local out = plain(sinks.record and sinks:record() or sinks)
  local heads = out.heads or {}
  out.heads = json.array {}
  for i, head in ipairs(heads) do
    out.heads[i] = json.object(plain(head), head_keys)
  end
  for _, key in ipairs { "first", "first_over_rowsum", "row_mass", "contribution" } do
    if type(out[key]) == "table" then
      out[key] = json.object(plain(out[key]), { "min", "mean", "max" })
    end
  end
  return json.object(out, sinks_keys)
end

--- A training log as CSV: the usual columns first, then the probes, sorted.
function entries.csv(log)
  local columns, seen, probes = {}, {}, {}
  for _, key in ipairs(csv_keys) do seen[key] = true end
  for _, entry in ipairs(log) do
    for key in pairs(entry) do
      if not seen[key] then
        seen[key] = true
        probes[#probes + 1] = key
      end
    end
  end
  table.sort(probes, function(a, b) return tostring(a) < tostring(b) end)
  table.move(csv_keys, 1, #csv_keys, 1, columns)
  table.move(probes, 1, #probes, #columns + 1, columns)
  local rows = {}
  for i, entry in ipairs(log) do
    rows[i] = {}
    for j, key in ipairs(columns) do rows[i][j] = entry[key] end
  end
  return csv.text(columns, rows)
end

--- The record of a table, { title, names, rows }, and the table as CSV, in which texts
-- that read as numbers are numbers, and a name that comes again gets its column's number.
function entries.table(names, rows, title)
  local kept, cells, heads, seen = json.array {}, {}, {}, {}
  for j, name in ipairs(names) do
    heads[j] = seen[name] and ("%s (%d)"):format(name, j) or name
    seen[name] = true
  end
  for i, row in ipairs(rows) do
    kept[i], cells[i] = json.array {}, {}
    for j = 1, #names do
      kept[i][j] = row[j] == nil and json.null or row[j]
      cells[i][j] = tonumber(row[j]) or row[j]
    end
  end
  return json.object({ title = title, names = json.array(plain(names)), rows = kept },
    { "title", "names", "rows" }), csv.text(heads, cells)
end

local operators = {
  [">="] = function(a, b) return a >= b end,
  ["<="] = function(a, b) return a <= b end,
  [">"] = function(a, b) return a > b end,
  ["<"] = function(a, b) return a < b end,
  ["=="] = function(a, b) return a == b end,
}

--- A number with enough digits to differ from `other`, unless they are equal.
local function number_text(x, other)
  if x ~= x then return "NaN" end
  for digits = 6, 17, 4 do
    local format = ("%%.%dg"):format(digits)
    if x == other or format:format(x) ~= format:format(other) then
      return format:format(x)
    end
  end
  return ("%.17g"):format(x)
end

--- The record of a claim, and its line on the terminal.
function entries.claim(claim, value, op, bound)
  local holds = operators[op](value, bound)
  return json.object({ text = claim, value = value, op = op, bound = bound,
    holds = holds }, { "text", "value", "op", "bound", "holds" }),
    ("%s  %s: %s %s %s"):format(holds and "holds" or "FAILS", claim,
      number_text(value, bound), op, number_text(bound, value))
end

return entries
