--- plugin.lua - sinklab plugin list, info, check and new.
local core = require "sinklab.core"
local json = require "sinklab.json"
local text = require "sinklab.text"

local function refuse(message, ...) error(message:format(...), 0) end

local function did_you_mean(word, names, otherwise)
  local near = core.nearest(word, names)
  return near and (" (did you mean '%s'?)"):format(near) or otherwise or ""
end

local actions, usage = {}, {}

usage.list = "plugin list"
function actions.list()
  local rows, first = {}, {}
  for i, p in ipairs(core.plugins()) do
    local shadowed = p.shadowed and "shadowed by " .. first[p.name] or ""
    first[p.name] = first[p.name] or p.path
    -- A file that does not load is still there: the reason stands in its place.
    local ok, d = pcall(core.plugin, p.path)
    rows[i] = { p.name, ok and d.version or "", ok and d.shape or "",
      ok and d.doc or "does not load: " .. tostring(d), p.path, shadowed }
  end
  if #rows == 0 then
    print "no plugins were found"
  else
    print(text.table({ "name", "version", "shape", "purpose", "file", "" }, rows))
  end
end

local function range(o)
  if o.choices then return text.alternatives(o.choices) end
  return o.min and ("%s to %s"):format(o.min, o.max) or "true or false"
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

usage.info = "plugin info NAME"
function actions.info(name)
  local p = core.plugin(name)
  print(("%s %s: %s"):format(p.name, p.version, p.doc))
  print(("file    %s\nsha256  %s\nshape   %s\nclaims  %s"):format(p.path, p.hash,
    p.shape, #p.claims > 0 and table.concat(p.claims, ", ") or "none"))
  for _, other in ipairs(core.plugins()) do
    if other.name == p.name and other.path ~= p.path then
      print(("%s %s"):format(other.shadowed and "shadows" or "hidden by", other.path))
    end
  end
  for i, o in ipairs(p.options) do
    if i == 1 then print "\noptions, with their defaults" end
    print(("  %s=%s  %s (%s)"):format(o.name, o.default, o.doc, range(o)))
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

--- "check" options: name, kind and default.
local function known_checks()
  local names = {}
  for i, c in ipairs(core.checks()) do names[i] = c.name end
  return names
end

local function report(plugin, results, seed)
  local rows, failed = {}, {}
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

usage.check = "plugin check NAME|PATH [--seed=N] [--timeout=S] [--only=CHECK,...] [--json]"
function actions.check(name, given)
  local seed, seconds = given.seed or 1, given.timeout or 20
  if given.only == "" then
    refuse("--only: expected some of %s", table.concat(known_checks(), ", "))
  end
  local results, held = core.check_plugin(name, seed, seconds, given.only), true
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

usage.new = "plugin new row|gate|mix NAME [--dir=FOLDER]"
function actions.new(shape, name, given)
  if given.dir == "" then refuse "--dir: expected a folder, got ''" end
  require "sinklab.scaffold" (shape, name, given.dir)
end

--- Options of the command line by action: what a value must be.
local function whole(s)
  return s:match "^%d+$" and math.tointeger(tonumber(s)), "a whole number from 0"
end
local function seconds(s)
  local n = s:match "^[%d.]+$" and tonumber(s)
  return n and n > 0 and n <= 86400 and n, "seconds, above 0 and at most 86400"
end
local function words(s) return s, "text" end
local options = {
  check = { seed = whole, timeout = seconds, only = words, json = false },
  new = { dir = words },
}

local function read_options(action)
  local known, given, names = options[action] or {}, {}, {}
  for name in pairs(known) do names[#names + 1] = "--" .. name end
  for _, argument in ipairs(core.host.arguments) do
    local name, value = argument:match "^%-%-([^=]*)=(.*)$"
    name = name or argument:sub(3)
    local kind = known[name]
    if kind == nil then
      refuse("no option '%s' here%s", argument, did_you_mean("--" .. name, names,
        "\n  try: sinklab " .. usage[action]))
    elseif kind == false then
      if value then refuse("--%s takes no value, got '%s'", name, value) end
      given[name] = true
    else
      if not value then refuse("--%s needs a value: write --%s=VALUE", name, name) end
      local read, expected = kind(value)
      if not read then refuse("--%s: expected %s, got '%s'", name, expected, value) end
      given[name] = read
    end
  end
  core.host.arguments = {} -- read: nothing is left over
  return given
end

--- How many words follow an action.
local arity = { list = 0, info = 1, check = 1, new = 2 }
local names = { "list", "info", "check", "new" }

return function(action, ...)
  if core.host.help then
    for _, name in ipairs(names) do print("sinklab " .. usage[name]) end
    if action == "check" then
      for _, c in ipairs(core.checks()) do print(("  %-16s %s"):format(c.name, c.doc)) end
    end
    return
  end
  if not action then
    refuse("plugin needs to be told what: sinklab plugin %s NAME",
      table.concat(names, "|"))
  end
  if not actions[action] then
    refuse("plugin: no action '%s'%s", action, did_you_mean(action, names,
      ": it is " .. text.alternatives(names)))
  end
  local n = select("#", ...)
  if n > arity[action] then
    refuse("unexpected argument '%s': sinklab %s", (select(arity[action] + 1, ...)),
      usage[action])
  elseif n < arity[action] then
    refuse("plugin %s needs a %s: sinklab %s", action,
      action == "new" and n == 0 and "shape and a name" or "name", usage[action])
  end
  local given = read_options(action)
  if arity[action] == 2 then
    local shape, name = ...
    actions[action](shape, name, given)
  else
    actions[action](..., given)
  end
end
