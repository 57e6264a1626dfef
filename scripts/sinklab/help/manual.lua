--- manual.lua - the man pages: sinklab (1) from the table of commands, sinklab (3) from
-- the schemas.
local core = require "sinklab.core"
local command = require "sinklab.cli.command"
local help = require "sinklab.help"
local reference = require "sinklab.help.reference"

local manual = {}

--- Text that roff shows as it is.
local function plain(s)
  s = s:gsub("\\", "\\e"):gsub("%-", "\\-")
  return (s:gsub("^([.'])", "\\&%1"):gsub("\n([.'])", "\n\\&%1"))
end

--- Code or a listing: lines stay lines.
local function block(s) return ".nf\n" .. plain(s) .. "\n.fi" end

local function header(section, out)
  out[#out + 1] = ('.TH SINKLAB %d "" "sinklab %s" "%s"'):format(section, core.version,
    section == 1 and "User Commands" or "Lua Library")
end

local function put_options(out, options)
  for _, o in ipairs(options) do
    out[#out + 1] = ".TP\n.B " .. plain(command.option_text(o))
    out[#out + 1] = plain(o.doc)
  end
end

--- A command as a heading with its text and options below.
local function put_command(out, name, spec)
  out[#out + 1] = ".SS " .. plain(command.usage(name, spec))
  out[#out + 1] = plain((spec.doc:gsub("^%l", string.upper))) .. "."
  if spec.text then out[#out + 1] = ".PP\n" .. plain(spec.text) end
  put_options(out, spec.options or {})
end

--- Everything that has no other place: list of { title, { name, text }, ... }.
local sections = {
  { "EXIT STATUS",
    { "0", "It ran, and every claim held." },
    { "1", "An error: one or two lines on standard error say what, which value, what was "
      .. "allowed and where." },
    { "2", "It ran, and a claim did not hold." },
    { "128 + N", "Ended by signal N: Ctrl-C (130), a closed pipe (141), SIGTERM (143), "
      .. "SIGHUP (129), SIGXFSZ (153). Training stops between steps; the record is saved "
      .. "and says interrupted." } },
  { "ENVIRONMENT",
    { "SINKLAB_ISA", "The instruction set to use instead of the best one: x86-64, "
      .. "x86-64-v3 or x86-64-v4 (on arm64: arm64)." },
    { "SINKLAB_PLUGIN_PATH", "Folders, separated by colons, in which plugins are looked "
      .. "for after ./plugins and before those beside the executable and the installed "
      .. "ones." },
    { "SINKLAB_SCRIPTS", "The folder of scripts to use instead of the installed one." },
    { "SINKLAB_PATH", "Folders, separated by colons, in which require looks after the "
      .. "folder of the script." },
    { "NO_COLOR, COLORTERM, COLUMNS", "No colours in the terminal if NO_COLOR is not "
      .. "empty; 24-bit ones if COLORTERM is truecolor; the width where the terminal "
      .. "does not tell it." },
    { "XDG_STATE_HOME", "Where the history of the prompt is kept, default "
      .. "~/.local/state." } },
  { "FILES",
    { "share/sinklab/scripts", "The Lua half of the library, and the experiments; this "
      .. "and the next are relative to the folder above that of the executable." },
    { "lib/sinklab/plugins", "The installed plugins." },
    { "runs/SCRIPT-TIME/", "In the current folder: the run directory, if --out does not "
      .. "name another. It holds run.json (options, versions, results, claims), "
      .. "train-*.csv (the course of training), figures as PNG, SVG and PDF, weights as "
      .. "safetensors and arrays as .npy." },
    { "~/.local/state/sinklab/history", "The lines typed at the prompt." } },
  { "EXAMPLES",
    { "sinklab run theorem2", "Train softmax and ReLU attention on the trigger task and "
      .. "compare their sinks." },
    { "sinklab run theorem2 --num_layers=4 --num_heads=4 --attention=relu",
      "The same for a larger model and one mechanism." },
    { "sinklab new experiment NAME", "Begin an experiment of your own." } },
}

--- sinklab (1).
function manual.commands()
  local out = {}
  header(1, out)
  out[#out + 1] = ".SH NAME\nsinklab \\- a laboratory for attention sinks\n.SH SYNOPSIS"
  for _, name in ipairs(command.names) do
    local spec = command.find(name)
    for _, action in ipairs(spec.actions or { spec }) do
      local whole = spec.actions and name .. " " .. action.name or name
      out[#out + 1] = ".B sinklab " .. plain(command.usage(whole, action, true))
          .. "\n.br"
    end
  end
  out[#out + 1] = [[
.SH DESCRIPTION
An attention sink is attention mass parked on a fixed, content\-free position, usually
the first token.
.B sinklab
trains small models whose task, mechanism and schedule are stated in a page of Lua,
measures their sinks, draws them, and records everything in a folder. Attention
mechanisms are plugins written in C.
.SH COMMANDS]]
  for _, name in ipairs(command.names) do
    local spec = command.find(name)
    if spec.actions and spec.text then
      out[#out + 1] = ".SS " .. plain(name) .. "\n" .. plain(spec.text)
    end
    for _, action in ipairs(spec.actions or { spec }) do
      put_command(out, spec.actions and name .. " " .. action.name or name, action)
    end
  end
  out[#out + 1] = ".SH OPTIONS OF EVERY COMMAND"
  put_options(out, command.host_options)
  for _, section in ipairs(sections) do
    out[#out + 1] = ".SH " .. section[1]
    for i = 2, #section do
      out[#out + 1] = ".TP\n.B " .. plain(section[i][1]) .. "\n" .. plain(section[i][2])
    end
  end
  out[#out + 1] = ".SH SEE ALSO\nsinklab (3)"
  return table.concat(out, "\n") .. "\n"
end

local function put_entry(out, entry)
  out[#out + 1] = ".SS " .. plain(help.call(entry))
  out[#out + 1] = plain(entry.summary or "")
  for _, p in ipairs(entry.paragraphs or {}) do
    out[#out + 1] = ".PP"
    out[#out + 1] = p.block and block(p.text) or plain(p.text)
  end
  for _, p in ipairs(entry.params or {}) do
    out[#out + 1] = ".TP\n.I " .. plain(p.names) .. "\n" .. plain(p.text)
  end
  for _, tag in ipairs { { "return", "Returns" }, { "error", "Raises on" },
    { "source", "Source:" } } do
    if entry[tag[1]] then
      out[#out + 1] = ".PP\n" .. tag[2] .. " " .. plain(entry[tag[1]])
    end
  end
  if entry.example then out[#out + 1] = ".PP\n" .. block(entry.example) end
end

--- sinklab (3).
function manual.library()
  local out = {}
  header(3, out)
  out[#out + 1] = [[
.SH NAME
sinklab \- the library of scripts and of the prompt of sinklab
.SH SYNOPSIS
.B local lab = require """sinklab"""
.SH DESCRIPTION
.I { options }
stands for a table of the options listed. At the prompt
.BI ? NAME
shows the same as this page.]]
  for _, section in ipairs(reference.sections()) do
    out[#out + 1] = ".SH " .. plain((section.file.title or ""):gsub("%.$", ""):upper())
    for _, p in ipairs(section.file.paragraphs or {}) do
      out[#out + 1] = ".PP"
      out[#out + 1] = p.block and block(p.text) or plain(p.text)
    end
    for _, entry in ipairs(section.entries) do put_entry(out, entry) end
  end
  out[#out + 1] = ".SH SEE ALSO\nsinklab (1)"
  return table.concat(out, "\n") .. "\n"
end

return manual
