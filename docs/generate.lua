--- generate.lua - write what is made from the doc comments and the commands' table.
--
-- build/sinklab run docs/generate.lua writes docs/reference.md, the man pages and the
-- shells' completions anew; with --check it writes nothing and ends with status 1 if one
-- of them is not what it should be.
local lab = require "sinklab"
local core = require "sinklab.core"
local opt = lab.options { check = { default = false, doc = "only say what is stale" } }

local manual = require "sinklab.help.manual"
local reference = require "sinklab.help.reference"
local completion = require "sinklab.cli.commands.completion".scripts
local folder = arg[0]:match "^(.*)/[^/]*$" or "."
local pages = {
  { "reference.md", reference.markdown },
  { "sinklab.1", manual.commands },
  { "sinklab.3", manual.library },
  { "completion/sinklab", function() return completion.bash end },
  { "completion/_sinklab", function() return completion.zsh end },
  { "completion/sinklab.fish", function() return completion.fish end },
}

local stale = {}
for _, page in ipairs(pages) do
  local path, want = folder .. "/" .. page[1], page[2]()
  local file = io.open(path, "rb")
  local have = file and file:read "a"
  if file then file:close() end
  if have ~= want then
    stale[#stale + 1] = path
    if not opt.check then
      assert(core.file_write(path, want))
      print("wrote " .. path)
    end
  end
end
if opt.check and #stale > 0 then
  error(("%s: not what the doc comments say\n  try: build/sinklab run docs/generate.lua")
    :format(table.concat(stale, ", ")), 0)
end
