--- generate.lua - the pages that are made from the schemas and the commands' table.
--
-- build/sinklab run docs/generate.lua writes docs/reference.md, or with --check ends with
-- status 1 if that file is stale. With --pages=FOLDER, as the build calls it, it writes
-- the man pages and the completions of the shells, which are installed and not committed.
local lab = require "sinklab"
local core = require "sinklab.core"
local opt = lab.options {
  check = { default = false, doc = "fail if docs/reference.md is stale" },
  pages = { default = "", doc = "write the pages that are installed to this folder" },
}

local function write(path, text)
  assert(core.file_write(path, text))
  print("wrote " .. path)
end

if opt.pages ~= "" then
  local manual = require "sinklab.help.manual"
  local completion = require "sinklab.cli.commands.completion".scripts
  assert(core.make_folders(opt.pages))
  for name, text in pairs { ["sinklab.1"] = manual.commands(),
     ["sinklab.3"] = manual.library(), sinklab = completion.bash,
     _sinklab = completion.zsh,
    ["sinklab.fish"] = completion.fish } do
    write(opt.pages .. "/" .. name, text)
  end
  return
end

local path = (arg[0]:match "^(.*)/[^/]*$" or ".") .. "/reference.md"
local file <close> = io.open(path, "rb")
local text = require "sinklab.help.reference".markdown()
if file and file:read "a" == text then return end
if opt.check then
  error(path .. ": not what the schemas say\n"
    .. "  try: build/sinklab run docs/generate.lua", 0)
end
write(path, text)
