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

-- What is for files that are no scripts, by the end of their names.
local others = { gguf = "sinklab model info", safetensors = "sinklab model info",
  so = "sinklab plugin check", html = "a browser:", png = "an image viewer:" }

--- The script's file and what errors call it.
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

--- What can be done about --help and options before a script runs: print what it says
-- of itself; refuse options if it can have none. True if it is to run, which with
-- --help ends at its lab.options.
local function before(path, shown)
  if not core.host.help and #core.host.arguments == 0 then return true end
  local file <close>, why = io.open(path)
  if not file then command.refuse("%s", why) end
  local may_have_options = file:read "a":find("options", 1, true) ~= nil
  if not core.host.help then
    if not may_have_options then options.unread() end
    return true
  end
  print("sinklab run " .. shown .. " [--key=VALUE ...]\n")
  for _, line in ipairs(experiments.header(path)) do print(line) end
  print "\nOptions of every script: --out=DIR --threads=N --quiet --traceback"
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
    doc = "where a script's results go (default runs/<script>-<UTC time>)" } },
  others = true,
  helps = true,
  run = function(words, given)
    local host = core.host
    host.out, host.script = given.out, words[1]
    local path, shown = find(words[1])
    if not before(path, shown) then return end
    host.shown = shown
    -- As lua itself sets it.
    rawset(_G, "arg", table.move(host.arguments, 1, #host.arguments, 1,
      { [0] = shown }))
    return "script", path, shown
  end,
}
