--- complete.lua - the candidates of the Tab key at the prompt.
local core = require "sinklab.core"
local experiments = require "sinklab.cli.experiments"
local help = require "sinklab.help"
local scan = require "sinklab.prompt.scan"

local keywords = { "and", "break", "do", "else", "elseif", "end", "false", "for",
  "function", "goto", "if", "in", "local", "nil", "not", "or", "repeat", "return", "then",
  "true", "until", "while" }

-- Calls whose string is the name of a file.
local file_calls = { save = true, load = true, load_npy = true, save_npy = true,
  load_npz = true, save_npz = true, load_safetensors = true, save_safetensors = true,
  open = true, dofile = true, loadfile = true, sha256 = true, lines = true }

-- Option keys whose string is the name of a plugin, and the plugin's shape.
local plugin_keys = { attention = "any", mechanism = "mechanism", gate = "gate" }

--- The value of a chain of names such as "lab.task" without running anything of a
-- script: raw in tables of the user, through pairs in lab's own.
local function value_of(chain, globals)
  local value = globals
  for name in chain:gmatch "[%a_][%w_]*" do
    if type(value) ~= "table" then return nil end
    local found = rawget(value, name)
    if found == nil and help.class_of(value) == nil then
      local meta = getmetatable(value)
      if meta and meta.__name == "sinklab" then
        local ok, part = pcall(function() return value[name] end)
        found = ok and part or nil
      end
    end
    value = found
  end
  return value
end

local tensor_fields = { "shape", "dtype", "ndim", "count" }

local function add(set, name, kind)
  if type(name) == "string" and name:match "^[%a_][%w_]*$" then set[name] = kind end
end

--- Names behind "value." or "value:", also through metatables.
local function members(value, methods_only)
  local set = {}
  local class = help.class_of(value)
  for _, entry in ipairs(class and help.index() or {}) do
    local of, name = entry.name:match "^([%w_.]+):([%w_]+)$"
    if of == class then add(set, name, "function") end
  end
  local meta = debug.getmetatable(value)
  if meta and type(meta.methods) == "table" then -- tensors
    for name in pairs(meta.methods) do add(set, name, "function") end
    for _, name in ipairs(tensor_fields) do add(set, name, "field") end
  end
  if class == "mechanism" then
    for name, v in pairs(debug.getuservalue(value, 1)) do add(set, name, type(v)) end
  end
  local lab = meta and meta.__name == "sinklab" and meta.__pairs
  if lab then
    for name, v in pairs(value) do add(set, name, type(v)) end
  elseif type(value) == "table" then
    for name, v in next, value do add(set, name, type(v)) end
  end
  local seen = 0
  local index = meta and meta.__index
  while type(index) == "table" and seen < 10 do
    for name, v in next, index do add(set, name, type(v)) end
    local above = getmetatable(index)
    index, seen = type(above) == "table" and above.__index, seen + 1
  end
  local out = {}
  for name, kind in pairs(set) do
    if not methods_only or kind == "function" then out[#out + 1] = name end
  end
  return out
end

--- The first list with the second behind it.
local function joined(list, more) return table.move(more, 1, #more, #list + 1, list) end

local function plugins(shape)
  local out = {}
  for _, p in ipairs(core.plugins()) do
    if not p.shadowed then
      local ok, d = pcall(core.plugin, p.path)
      local fits = ok and (shape == "any" or (shape == "gate") == (d.shape == "gate"))
      if fits then out[#out + 1] = p.name end
    end
  end
  return out
end

--- Files that begin with a path; folders end in "/".
local function files(stem)
  local folder, first = stem:match "^(.*/)(.-)$"
  folder, first = folder or "", first or stem
  local home = os.getenv "HOME"
  local where = folder == "" and "." or (folder:gsub("^~/", (home or "~") .. "/"))
  local out = {}
  for _, name in ipairs(core.folder(where) or {}) do
    if name:sub(1, #first) == first and (first ~= "" or name:sub(1, 1) ~= ".") then
      local path = folder .. name
      local is_folder = core.folder_exists(where .. "/" .. name)
      out[#out + 1] = path .. (is_folder and "/" or "")
    end
  end
  return out
end

--- The call around the brackets that are open: its entry, and the keys that lead from
-- its options table to the innermost one; nil where there is none.
local function call_around(text, brackets, globals)
  local path = {}
  for i = #brackets, 1, -1 do
    local before = text:sub(1, brackets[i][2] - 1)
    local key = before:match "([%a_][%w_]*)%s*=%s*$"
    local name = before:match "([%a_][%w_.:]*)%s*$"
    if brackets[i][1] == "{" and key then
      table.insert(path, 1, key)
    elseif name and brackets[i][1] ~= "[" then
      local entry = help.find(name, globals)
      return entry, path
    elseif brackets[i][1] == "[" then
      return nil
    end
  end
end

--- The options that may be given in that table, as help.options gives them.
local function options_at(entry, path)
  local options = help.options(entry)
  for _, key in ipairs(path) do
    local option
    for _, o in ipairs(options) do if o[1] == key then option = o end end
    options = option and help.fields(option[3]) or {}
  end
  return options
end

--- Inside a string: plugins, the choices of an option, modules or files.
local function in_string(text, state, globals)
  local before = text:sub(1, state.from - 2)
  local stem = text:sub(state.from)
  local key = before:match "([%a_][%w_]*)%s*=%s*{?%s*$"
  local entry, path = call_around(text, state.brackets, globals)
  if key and before:match "{%s*$" and path and path[#path] == key then
    path[#path] = nil -- attention = { "relu", ...
  end
  if key and plugin_keys[key] then return plugins(plugin_keys[key]), stem end
  if key and entry then
    for _, o in ipairs(options_at(entry, path)) do
      if o[1] == key and o[3].choices then return o[3].choices, stem end
    end
  end
  local call = before:match "([%a_][%w_]*)%s*%(?%s*$"
  if call == "mechanism" then return plugins "any", stem end
  if call == "require" then return { "sinklab" }, stem end
  if file_calls[call] then return files(stem), stem end
  if stem:find "[/.]" then return files(stem), stem end
  return joined(plugins "any", files(stem)), stem
end

--- Keys of the options table that the cursor is in, if it stands where a key does.
local function option_keys(text, state, stem, globals)
  local open = state.brackets[#state.brackets]
  if not open or open[1] ~= "{" then return end
  local before = text:sub(1, #text - #stem)
  if not before:match "[{,;]%s*$" then return end
  local entry, path = call_around(text, state.brackets, globals)
  if not entry then return end
  local given, out = {}, {}
  for key in text:sub(open[2]):gmatch "([%a_][%w_]*)%s*=[^=]" do given[key] = true end
  for _, o in ipairs(options_at(entry, path)) do
    if not given[o[1]] then out[#out + 1] = o[1] .. " = " end
  end
  return #out > 0 and out or nil
end

local function names(globals)
  local out = table.move(keywords, 1, #keywords, 1, {})
  for name in next, globals do
    if type(name) == "string" and name:match "^[%a_][%w_]*$" then out[#out + 1] = name end
  end
  return out
end

local commands = { "%help", "%run ", "%time ", "%who" }

--- The candidates at the cursor, and the part that is typed already.
local function candidates(text, globals)
  local asked = text:match "^%s*%?%??%s*(.*)$"
  if asked then
    local out = help.names()
    for _, p in ipairs(core.plugins()) do out[#out + 1] = p.name end
    for _, name in ipairs(experiments.names()) do out[#out + 1] = name end
    return out, (asked:gsub("^[\"']", ""))
  end
  local script = text:match "^%s*%%run%s+(%S*)$"
  if script then
    return joined(files(script), experiments.names()), script
  end
  if text:match "^%s*%%%w*$" then return commands, text:match "%%%w*$" end
  text = text:gsub("^%s*%%time%s", "")
  local state = scan.read(text)
  if state.comment then return {}, "" end
  if state.string then return in_string(text, state, globals) end
  local chain, separator, stem = text:match "([%a_][%w_.]*)([.:])([%w_]*)$"
  if chain then
    local value = value_of(chain, globals)
    if value == nil then return {}, stem end
    return members(value, separator == ":"), stem
  end
  stem = text:match "([%a_][%w_]*)$" or ""
  local keys = option_keys(text, state, stem, globals)
  if keys then return keys, stem end
  if stem == "" then return {}, stem end
  return names(globals), stem
end

--- The effect of Tab.
-- @param text     the input up to the cursor, with its earlier lines
-- @param globals  the variables of the prompt
-- @return the text to insert (may be ""), and the sorted list of candidates
return function(text, globals)
  local found, stem = candidates(text, globals)
  local list, seen = {}, {}
  for _, name in ipairs(found) do
    if name:sub(1, #stem) == stem and not seen[name] then
      list[#list + 1], seen[name] = name, true
    end
  end
  table.sort(list)
  local common = list[1]
  for _, name in ipairs(list) do
    while name:sub(1, #common) ~= common do common = common:sub(1, -2) end
  end
  -- Half a character is none.
  while common and not utf8.len(common) and #common > #stem do
    common = common:sub(1, -2)
  end
  for i, name in ipairs(list) do list[i] = name:gsub("%s*=?%s*$", "") end
  return common and common:sub(#stem + 1) or "", list
end
