--- plugin.lua - sinklab plugin list, info, check and new.
local core = require "sinklab.core"
local command = require "sinklab.cli.command"
local help_text = require "sinklab.help.text"
local json = require "sinklab.base.json"
local progress = require "sinklab.base.progress"
local strings = require "sinklab.base.strings"
local text = require "sinklab.base.text"

local print = strings.print

local function list()
  local rows, first = {}, {}
  for i, p in ipairs(core.plugins()) do
    local shadowed = p.shadowed and "shadowed by " .. first[p.name] or ""
    first[p.name] = first[p.name] or p.path
    -- A file that does not load is still there: the reason stands in its place.
    local ok, d = pcall(core.plugin, p.path, true)
    rows[i] = { p.name, ok and d.version or "", ok and d.shape or "",
      ok and d.doc or "does not load: " .. tostring(d), p.path, shadowed }
  end
  if #rows == 0 then
    print "no plugins were found"
  else
    print(text.table({ "name", "version", "shape", "purpose", "file", "" }, rows))
  end
end

--- "4", "d_head", "2 d_head + 1": numbers of a head; nil for none.
local function width(w)
  local parts = {}
  if w.per_dhead > 0 then
    parts[1] = (w.per_dhead > 1 and w.per_dhead .. " " or "") .. "d_head"
  end
  if w.fixed > 0 then parts[#parts + 1] = tostring(w.fixed) end
  return #parts > 0 and table.concat(parts, " + ")
end

local function info(words)
  local name = words[1]
  local p = core.plugin(name)
  print(("%s %s: %s"):format(p.name, p.version, p.doc))
  print(("file        %s\nsha256      %s\nshape       %s\nproperties  %s"):format(p.path,
    p.hash, p.shape, #p.properties > 0 and table.concat(p.properties, ", ") or "none"))
  for _, other in ipairs(core.plugins()) do
    if other.name == p.name and other.path ~= p.path then
      print(("%s %s"):format(other.shadowed and "shadows" or "hidden by", other.path))
    end
  end
  for i, o in ipairs(p.options) do
    if i == 1 then print "\noptions, with their defaults" end
    print(("  %s=%s  %s (%s)"):format(o.name, o.default, o.doc, help_text.range(o)))
  end
  for i, q in ipairs(p.params) do
    if i == 1 then print "\nparameters of each head" end
    local w = width(q)
    print(("  %s  %s (%s)"):format(q.name, q.doc, w and w .. ", " .. q.init
      or "left out by default"))
  end
  for i, z in ipairs(p.inputs) do
    if i == 1 then print "\ninputs, projected from the layer's input" end
    local w = width(z)
    print(("  %s  %s"):format(z.name, w and ("%s %s, %s"):format(w,
      z.shared and "for all heads" or "for each head", z.init)
      or "left out by default"))
  end
end

local function known_checks()
  local names = {}
  for i, c in ipairs(core.checks()) do names[i] = c.name end
  return names
end

local function report(plugin, results, seed)
  local rows, failed = {}, {}
  if results[1].name == "load" and results[1].state == "FAIL" then
    print("load: " .. results[1].why) -- nothing else was tried
    return
  end
  for i, r in ipairs(results) do
    rows[i] = { r.name, r.state, r.figure ~= "" and r.figure or "see below" }
    if r.state == "FAIL" then failed[#failed + 1] = r end
  end
  print(text.table({ "check", "", "figure" }, rows))
  for _, r in ipairs(failed) do print(("\n%s: %s"):format(r.name, r.why)) end
  if #failed == 0 then
    print(("\n%s: all checks hold (seed %d)"):format(plugin, seed))
    return
  end
  local names = {}
  for i, r in ipairs(failed) do names[i] = r.name end
  print(("\nagain: sinklab plugin check %s --only=%s --seed=%d"):format(plugin,
    table.concat(names, ","), seed))
end

local function check(words, given)
  local name = words[1]
  local seed, seconds = given.seed or 1, given.timeout or 20
  if given.only == "" then
    command.refuse("--only: expected some of %s", table.concat(known_checks(), ", "))
  end
  local work <close> = progress.work("plugin check", 0)
  local results, held = core.check_plugin(name, seed, seconds, given.only,
    function(done, total)
      work.total = total
      work:at(done)
    end), true
  for _, r in ipairs(results) do held = held and r.state ~= "FAIL" end
  if given.json then
    local list = json.array {}
    for i, r in ipairs(results) do
      list[i] = json.object(r, { "name", "state", "figure", "why", "seconds" })
    end
    print(json.encode(json.object({ plugin = name, seed = seed, held = held,
      checks = list }, { "plugin", "seed", "held", "checks" })))
  else
    report(name, results, seed)
  end
  -- Not 2: that is for claims of a run.
  if not held then core.quit(1) end
end

local function new(words, given)
  require "sinklab.cli.new_plugin" (words[1], words[2], given.dir)
end

--- Names that a shell may complete.
local function names()
  local out = {}
  for i, p in ipairs(core.plugins()) do out[i] = p.name end
  return out, "file"
end

return {
  doc = "list, describe, check or create attention mechanisms",
  actions = {
    { name = "list", doc = "list every plugin on the search path", run = list },
    { name = "info", doc = "version, purpose, properties, options, parameters, files",
      words = { { "NAME", "a name", complete = names } }, run = info },
    { name = "check", doc = "test gradients, declared properties and memory use",
      text = [[
Tests gradients against finite differences, every declared property, reads and writes of
memory, the same bits on every thread, huge scores and long rows. Each check runs in its
own process. Exit status: 0 if all checks pass, else 1.]],
      words = { { "NAME|PATH", "a name", complete = names } },
      options = {
        { "seed", "N", kind = "whole", doc = "chooses the numbers, default 1" },
        { "timeout", "S", kind = "seconds", doc = "limits each check, default 20" },
        { "only", "CHECK,...", complete = known_checks,
          doc = "some of the checks below" },
        { "json", doc = "print the table as JSON" },
      },
      more = function()
        print "\nChecks:"
        for _, c in ipairs(core.checks()) do
          print(("  %-16s %s"):format(c.name, c.doc))
        end
      end,
      run = check },
    { name = "new", doc = "create a folder with a working plugin",
      text = [[
The folder NAME also gets a Makefile, a CMakeLists.txt and a README. Nothing that
exists is overwritten.]],
      words = { { "row|gate|mixer", "a shape", complete = { "row", "gate", "mixer" } },
        { "NAME", "a name" } },
      options = { { "dir", "FOLDER", kind = "folder",
        doc = "where to write it, default here" } },
      run = new },
  },
}
