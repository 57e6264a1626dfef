--- run.lua - the function of training.lua that a process of lab.sweep runs.
return require("experiments.lib.training").run
