--- new.lua - sinklab new experiment: a commented script that runs.
local core = require "sinklab.core"
local command = require "sinklab.cli.command"
local experiments = require "sinklab.cli.experiments"
local strings = require "sinklab.base.strings"

local print = strings.print

local function check_name(name)
  if not name:match "^%a[%w_-]*$" or #name > 63 then
    command.refuse("new experiment: '%s' is no name: expected a letter, then letters, "
      .. "digits, - and _, at most 63", name)
  end
  for _, known in ipairs(experiments.names()) do
    if known == name then
      command.refuse("new experiment: there is an experiment '%s' already: %s", name,
        experiments.path(name))
    end
  end
end

local function experiment(words, given)
  local name = words[1]:gsub("%.lua$", "")
  check_name(name)
  local path = (given.dir and given.dir .. "/" or "") .. name .. ".lua"
  if core.file_exists(path) then
    command.refuse("new experiment: %s exists already; nothing was written", path)
  end
  local from <close> = assert(io.open(core.scripts .. "/templates/experiment.lua", "rb"))
  local text = from:read "a":gsub("@NAME@", name)
  local ok, message = true, nil
  if given.dir then ok, message = core.make_folders(given.dir) end
  if ok then ok, message = core.file_write(path, text) end
  if not ok then command.refuse("new experiment: %s", message) end
  print(("wrote %s\n\n  sinklab run %s --help\n  sinklab run %s"):format(path, path,
    path))
end

return {
  doc = "create an experiment of your own",
  actions = {
    { name = "experiment", doc = "write NAME.lua, a commented script that runs",
      words = { { "NAME", "a name" } },
      options = { { "dir", "FOLDER", kind = "folder",
        doc = "folder for it, default the current one" } },
      run = experiment },
  },
}
