--- new_plugin.lua - sinklab plugin new: a folder with a plugin that works as it is.
local core = require "sinklab.core"
local check = require "sinklab.base.check"
local command = require "sinklab.cli.command"
local text = require "sinklab.base.text"

local refuse = command.refuse

-- Shape and the key of a script's attention table that takes it.
local shapes = { row = "mechanism", gate = "gate", mixer = "mechanism" }
local shape_names = { "row", "gate", "mixer" }

-- Targets that the generated build files have already.
local reserved = { all = true, check = true, clean = true, edit_cache = true,
  help = true, install = true, rebuild_cache = true, test = true, package = true }

local function check_name(name)
  if not name:match "^[%a_][%w_]*$" or #name > 63 then
    refuse("plugin new: '%s' is no name for a plugin: expected a letter, then letters, "
      .. "digits and underscores, at most 63", name)
  end
  if reserved[name] then
    refuse("plugin new: '%s' is the name of a target of make or CMake", name)
  end
  for _, p in ipairs(core.plugins()) do
    if p.name == name then
      refuse("plugin new: there is a plugin '%s': %s", name, p.path)
    end
  end
end

local function read(path)
  local file, why = io.open(path, "rb")
  if not file then refuse("plugin new: %s", why) end
  local all = file:read "a"
  file:close()
  return all
end

local function write(path, content)
  local ok, why = core.file_write(path, content)
  if not ok then refuse("plugin new: %s", why) end
end

--- Write folder/name with its source, build files, README. Refuses an existing path.
return function(shape, name, folder)
  if not shapes[shape] then
    refuse("plugin new: no shape '%s'%s", shape, check.did_you_mean(shape, shape_names,
      ": it is " .. text.alternatives(shape_names)))
  end
  check_name(name)
  local path = folder and folder .. "/" .. name or name
  if core.folder_exists(path) or core.file_exists(path) then
    refuse("plugin new: %s exists already; nothing was written", path)
  end
  local templates = core.scripts .. "/templates/"
  local values = { NAME = name, SHAPE = shape, KEY = shapes[shape] }
  local files = { [name .. ".c"] = read(templates .. "template_" .. shape .. ".c")
    :gsub("template_" .. shape, name) }
  for _, file in ipairs { "CMakeLists.txt", "Makefile", "README.md" } do
    files[file] = read(templates .. file):gsub("@(%u+)@", values)
  end
  local ok, why = core.make_folders(path)
  if not ok then refuse("plugin new: %s", why) end
  for file, content in pairs(files) do write(path .. "/" .. file, content) end
  print(("%s: a %s plugin\n  cd %s && make check"):format(path, shape, path))
end
