--- figure.lua - figures: what lab.plot gives.
--
-- This file documents core/lua/lua_plot.c; nothing in it runs.

--- Write the figure to a file.
-- @param path  ends with .png, .svg or .pdf
-- @return true, or nil and a message
-- @error another ending
-- @example
--   assert(lab.plot.heat({ { 1, 0 }, { 0.5, 0.5 } }):save "map.png")
function figure:save(path) end

--- The figure as text for a terminal, coloured if standard output is one.
-- @param columns  20 to 1000, default the terminal's
-- @return text
-- @example
--   print(lab.plot.heat({ { 1, 0 }, { 0.5, 0.5 } }):text(40))
function figure:text(columns) end

--- Free the figure now; the collector would later.
-- @return nothing
-- @example
--   lab.plot.heat({ { 1, 0 }, { 0.5, 0.5 } }):close()
function figure:close() end
