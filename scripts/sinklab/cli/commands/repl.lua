--- repl.lua - sinklab repl: the prompt itself is the host's (core/lua/repl.c).
return {
  doc = "start the prompt, as sinklab alone does; run a piped script",
  text = [[With a pipe on standard input, its whole text is run as one script.]],
  options = { { "out", "DIR", kind = "folder",
    doc = "where results go (default runs/repl-<UTC time>)" } },
  run = function(_, given, context)
    context.out = given.out
    return "prompt"
  end,
}
