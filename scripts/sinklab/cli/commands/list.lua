--- list.lua - sinklab list: the experiments, each in one line.
local experiments = require "sinklab.cli.experiments"
local strings = require "sinklab.base.strings"

local print = strings.print

return {
  doc = "list the experiments",
  run = function()
    local width = 0
    for _, name in ipairs(experiments.names()) do width = math.max(width, #name) end
    for _, name in ipairs(experiments.names()) do
      local purpose = experiments.header(experiments.path(name))[1]
      print(("%s%s  %s"):format(name, (" "):rep(width - #name), purpose or ""))
    end
  end,
}
