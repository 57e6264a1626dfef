--- run.lua - the function of trial.lua that a process of lab.sweep runs.
return require("experiments.lib.trial").run
