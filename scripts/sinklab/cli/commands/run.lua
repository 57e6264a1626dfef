--- run.lua - sinklab run: finds the script; the host runs it.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local command = require "sinklab.cli.command"
local experiments = require "sinklab.cli.experiments"
local options = require "sinklab.cli.options"

-- As given, else under the scripts folder, with or without "experiments/" and ".lua".
local places = {}
for _, prefix in ipairs { "", "experiments/" } do
  for _, suffix in ipairs { "", ".lua" } do
    places[#places + 1] = { prefix = prefix, suffix = suffix }
  end
end

-- Commands for files that are no scripts, by extension.
local others = { gguf = "sinklab model info", safetensors = "sinklab model info",
  so = "sinklab plugin check", html = "a browser:", png = "an image viewer:" }

--- The script's file and its name in errors.
local function find(name)
  for _, here in ipairs { true, false } do
    for _, p in ipairs(places) do
      if p.prefix == "" or not here then
        local shown = p.prefix .. name .. p.suffix
        local path = here and shown or core.scripts .. "/" .. shown
        if core.file_exists(path) and not core.folder_exists(path) then
          local other = others[path:match "%.(%w+)$"]
          if other then
            command.refuse("%s is no script\n  try: %s %s", shown, other, path)
          end
          return path, shown
        end
      end
    end
  end
  local short = name:match "([^/]*)$":gsub("%.lua$", "")
  command.refuse("no script '%s' here or in %s%s", name, core.scripts,
    check.did_you_mean(short, experiments.names(),
      "\n  sinklab list shows the experiments"))
end

--- Before a script runs: with --help print the comment at its top; refuse options if it
-- can have none. Returns whether it is to run; with --help its lab.options ends it.
local function before(path, shown, context)
  if not context.help and #context.arguments == 0 then return true end
  local file <close>, why = io.open(path)
  if not file then command.refuse("%s", why) end
  local may_have_options = file:read "a":find("options", 1, true) ~= nil
  if not context.help then
    if not may_have_options then options.unread() end
    return true
  end
  print("sinklab run " .. shown .. " [--key=VALUE ...]\n")
  for _, line in ipairs(experiments.header(path)) do print(line) end
  print("\nOptions of every script: --out=DIR --fresh --retry-failed --threads=N --quiet "
    .. "--traceback")
  if not may_have_options then print "It has no options of its own." end
  return may_have_options
end

return {
  doc = "run a script or an experiment",
  usage = "run SCRIPT [--key=VALUE ...]",
  text = [[
SCRIPT is a file as given, else one under the folder of scripts that comes with
sinklab, with or without experiments/ and .lua. Every --KEY=VALUE sets one of the
script's own options; --help after the script lists them with types and defaults.]],
  hint = "sinklab list shows the experiments",
  words = { { "SCRIPT", "a script", complete = function()
    return experiments.names(), "file"
  end } },
  options = { { "out", "DIR", kind = "folder",
    doc = "where a script's results go (default runs/<script>-<UTC time>)" },
    { "fresh", doc = "forget the points of sweeps that --out has" },
    { "retry-failed", doc = "run the points of sweeps that failed in --out again" } },
  others = true,
  helps = true,
  run = function(words, given, context)
    context.out, context.script = given.out, words[1]
    context.fresh, context.retry_failed = given.fresh, given["retry-failed"]
    local path, shown = find(words[1])
    if not before(path, shown, context) then return end
    context.shown = shown
    math.randomseed(0) -- two runs are equal; an option `seed` takes its place
    -- As lua itself sets it.
    rawset(_G, "arg", table.move(context.arguments, 1, #context.arguments, 1,
      { [0] = shown }))
    return "script", path, shown
  end,
}
