--- doctor.lua - sinklab doctor: is all well here, and what a report of trouble needs.
local core = require "sinklab.core"
local json = require "sinklab.base.json"

local function join(list, key)
  local out = {}
  for i, item in ipairs(list) do out[i] = key and item[key] or item end
  return #out > 0 and table.concat(out, ", ") or "none"
end

local function show(found)
  local libraries = {}
  for i, l in ipairs(found.libraries) do libraries[i] = l.name .. " " .. l.version end
  local t = found.terminal
  local rows = {
    { "sinklab", found.sinklab .. " with " .. join(libraries) },
    { "processor", found.processor },
    { "instruction set", found.isa },
    { "threads", tostring(found.threads) },
    { "matrix product", ("its own, one call: %.3g GFLOP/s in f32, %.3g in f64"):format(
      found.gemm.f32, found.gemm.f64) },
    { "scripts", found.scripts },
    { "plugins", join(found.plugins.found) },
    { "terminal", t.is_terminal
      and ("%s, %d columns, colours: %s, %s"):format(t.kind, t.columns, t.colour,
        t.utf8 and "UTF-8" or "ASCII")
      or "none: output goes elsewhere" },
  }
  for _, row in ipairs(rows) do print(("%-15s  %s"):format(row[1], row[2])) end
  for _, p in ipairs(found.plugins.broken) do
    print(("%-15s  %s"):format("does not load", p.message))
  end
  for _, path in ipairs(found.plugins.shadowed) do
    print(("%-15s  %s has the name of one before it"):format("shadowed", path))
  end
  print "\nself-test"
  for _, test in ipairs(found.tests) do
    print(("  %-4s  %s: %s"):format(test.holds and "ok" or "FAIL", test.name,
      test.figure))
  end
end

local function as_json(found)
  for _, name in ipairs { "found", "broken", "shadowed" } do
    json.array(found.plugins[name])
  end
  return json.encode(json.object(found, { "sinklab", "well", "libraries", "processor",
    "isa", "threads", "gemm", "scripts", "plugins", "terminal", "tests" }))
end

return {
  doc = "versions, machine, plugins, terminal, and a self-test of a second",
  text = [[
Status 0: the self-test holds and every plugin loads; 1 otherwise.]],
  options = { { "json", doc = "print JSON" } },
  run = function(_, given)
    local found = require "sinklab.cli.doctor".look()
    found.well = #found.plugins.broken == 0
    for _, test in ipairs(found.tests) do found.well = found.well and test.holds end
    if given.json then
      print(as_json(found))
    else
      show(found)
    end
    if not found.well then core.quit(1) end
  end,
}
