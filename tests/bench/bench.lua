--- bench.lua - how fast training is, against the machine and against PyTorch.
--
-- Every figure is a median over rounds in which what is compared runs in turn on the
-- same pinned processors: a loop of multiply-adds, one thread, more threads, PyTorch.
-- FLOPs count the matrix products of forward and backward over full squares of
-- attention, also where causal halves are skipped.
--
--   cmake --build build --target bench      everything but PyTorch
--   build/sinklab_bench --help              what else it does
--   build/sinklab_bench --peer --profile --write=docs/performance.md
local lab = require "sinklab"
local bench = require "bench"
local core = require "sinklab.core"

local opt = lab.options {
  config = { default = { "1l1h", "2l2h", "4l4h", "d64", "d256", "attention1024",
    "attention4096" },
    doc = "what to measure; also attention32768, or layers/heads/d/L/B as 2/2/16/16/128",
  },
  mechanism = { default = "softmax", doc = "mechanism of every configuration" },
  compare = { default = "",
    doc = "another mechanism (a name or a path), run in the same rounds" },
  workers = { default = { 1, 2 }, doc = "numbers of threads", min = 1, max = 64 },
  rounds = { default = 5, doc = "rounds of each figure", min = 1 },
  seconds = { default = 0.4, doc = "seconds of a round", above = 0 },
  peer = { default = false, doc = "run PyTorch too" },
  python = { default = "/usr/bin/python3", doc = "interpreter with PyTorch" },
  profile = { default = false,
    doc = "where the time of a step goes, operation by operation" },
  json = { default = false, doc = "one JSON object instead of a table" },
  markdown = { default = false, doc = "tables in Markdown" },
  write = { default = "",
    doc = "a Markdown file whose part between two marks is replaced; profiles go to "
      .. "NAME-profile.csv beside it" },
}

local named = {
  ["1l1h"] = { 1, 1, 16, 16, 128 },
  ["2l2h"] = { 2, 2, 16, 16, 128 },
  ["4l4h"] = { 4, 4, 16, 16, 128 },
  d64 = { 4, 4, 64, 64, 64 },
  d256 = { 4, 8, 256, 256, 8 },
}
-- Of attention alone.
local HEADS, WIDTH = 8, 64

local function config(name)
  local tokens = name:match "^attention(%d+)$"
  if tokens then
    local T = math.tointeger(tokens)
    return { name = name, tokens = T, flop = 6 * 2 * HEADS * T * T * WIDTH,
      peer = "attention," .. T }
  end
  local n = named[name] or { name:match "^(%d+)/(%d+)/(%d+)/(%d+)/(%d+)$" }
  if #n ~= 5 then
    error(("--config=%s: neither a known name nor layers/heads/d/L/B"):format(name), 0)
  end
  for i = 1, 5 do n[i] = math.tointeger(n[i]) end
  local layers, heads, d, L, B = table.unpack(n)
  -- Projections and the products of attention, each once forward and twice backward;
  -- the first layer's inputs need no gradient.
  local P, A = 2 * B * L * d * heads * d, 2 * B * heads * L * L * d
  return { name = name, layers = layers, heads = heads, d = d, L = L, batch = B,
    flop = layers * (12 * P + 6 * A) - 3 * P,
    peer = table.concat({ layers, heads, d, L, B }, ",") }
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

--- Train a fresh model for about `seconds`; steps a second, and the profile.
local function train(c, mechanism, seconds, steps, profile)
  local residual = c.layers > 1
  local task = lab.task.trigger_mean { d_model = c.d, seq_len = c.L, residual = residual }
  local model = lab.model.attention_only { task = task, layers = c.layers,
    heads = c.heads, residual = residual,
    attention = { mechanism = mechanism, scale = 1 } }
  local log = lab.train(model, task, { batch = c.batch, steps = steps, eval = 0,
    optimizer = lab.optim.adam { lr = 1e-4, betas = { 0.9, 0.95 } }, quiet = true,
    log_every = steps, stop = { seconds = seconds }, profile = profile })
  return log.steps_per_s, log.profile
end

--- One round on the pool in use: runs a second, and extra bytes of attention.
local function round(c, mechanism)
  if c.tokens then
    local seconds, extra = bench.attention(mechanism, HEADS, c.tokens, WIDTH, opt.seconds)
    return 1 / seconds, extra
  end
  return (train(c, mechanism, opt.seconds, 1000000000))
end

local function measure(c)
  local found, rates, shares = { name = c.name, flop = c.flop, threads = {} }, {}, {}
  local ratios = {}
  for _, n in ipairs(opt.workers) do rates[n], shares[n], ratios[n] = {}, {}, {} end
  for _ = 1, opt.rounds do
    for _, n in ipairs(opt.workers) do
      bench.threads(n)
      local before = bench.peak(0.03)
      local rate, extra = round(c, opt.mechanism)
      local peak = (before + bench.peak(0.03)) / 2
      table.insert(rates[n], rate)
      table.insert(shares[n], rate * c.flop / peak)
      if opt.compare ~= "" then table.insert(ratios[n], round(c, opt.compare) / rate) end
      found.extra_bytes = extra
    end
  end
  for i, n in ipairs(opt.workers) do
    local rate = median(rates[n])
    found.threads[i] = { threads = n, rate = rate, ms = 1e3 / rate,
      samples_per_s = c.batch and rate * c.batch, gflops = rate * c.flop / 1e9,
      share_of_peak = median(shares[n]), compared = median(ratios[n]) }
  end
  local first, last = found.threads[1], found.threads[#found.threads]
  found.speedup = last.rate / first.rate
  return found
end

--- What a command prints, or nil.
local function output(command)
  local pipe = io.popen(command)
  local text = pipe:read "a"
  return pipe:close() and text or nil
end

local function peer(c)
  local text = output(("'%s' '%s/peer.py' %s %g"):format(opt.python, bench.source,
    c.peer, opt.seconds))
  return text and lab.json.decode(text) or { skipped = "it could not be run" }
end

--- The time of a step by operation: { what, microseconds }, the largest first.
local function profile(c)
  bench.threads(1)
  local _, p = train(c, opt.mechanism, 2 * opt.seconds, 1000000000, true)
  local by_name, lines, known = {}, {}, 0
  local function add(what, seconds)
    if not by_name[what] then
      by_name[what] = { what = what, us = 0 }
      lines[#lines + 1] = by_name[what]
    end
    by_name[what].us = by_name[what].us + seconds / p.steps * 1e6
  end
  for _, node in ipairs(p.nodes) do
    add(node.op, node.forward)
    if node.backward > 0 then add(node.op .. " backward", node.backward) end
    known = known + node.forward + node.backward
  end
  add("the rest of a replay", p.busy - known)
  add("sum of gradients", p.gather)
  add("optimizer", p.update)
  table.sort(lines, function(a, b) return a.us > b.us end)
  return { steps = p.steps, us = (p.replay + p.gather + p.update) / p.steps * 1e6,
    lines = lines }
end

local function machine()
  local m = { isa = core.isa(), threads = {} }
  for i, n in ipairs(opt.workers) do
    m.pinned = bench.threads(n)
    local t = { threads = n, peak_gflops = bench.peak(opt.seconds / 2) / 1e9 }
    local rate, kernel = bench.sgemm(1024, n, opt.seconds)
    t.sgemm_gflops = rate and rate / 1e9
    m.openblas = kernel
    m.threads[i] = t
  end
  local lscpu = output "lscpu 2>/dev/null" or ""
  m.cpus = math.tointeger(lscpu:match "CPU%(s%):%s*(%d+)")
  m.l1d, m.l2, m.l3 = lscpu:match "L1d cache:%s*([^\n]+)",
      lscpu:match "L2 cache:%s*([^\n]+)", lscpu:match "L3 cache:%s*([^\n]+)"
  return m
end

-- How it is shown.

-- Of the column with the rate of the other mechanism, as a share of the first.
local compared = opt.compare:match "([^/]*)$":gsub("%.so$", "")

local markdown = opt.markdown or opt.write ~= ""
local text = {}

local function say(line) text[#text + 1] = line end

local function describe(m)
  local lines = { ("machine: %s processors, %s; caches L1d %s, L2 %s, L3 %s%s"):format(
    m.cpus or "?", m.isa, m.l1d or "?", m.l2 or "?", m.l3 or "?",
    m.pinned and "" or "; threads could not be pinned") }
  for _, t in ipairs(m.threads) do
    local peer = t.sgemm_gflops
        and ("%.1f GFLOP/s (%s)"):format(t.sgemm_gflops, m.openblas) or "not installed"
    lines[#lines + 1] = ("%d thread%s: multiply-adds %.1f GFLOP/s, "
      .. "OpenBLAS sgemm 1024 %s"):format(t.threads, t.threads == 1 and "" or "s",
      t.peak_gflops, peer)
  end
  return lines
end

local function cell(x, format) return x and format:format(x) or "-" end

local function rows(results)
  local list = { { "configuration", "MFLOP", "threads", "ms", "runs/s", "samples/s",
    "GFLOP/s", "of peak", "speed-up", "x PyTorch" } }
  if opt.compare ~= "" then table.insert(list[1], compared) end
  for _, r in ipairs(results) do
    for i, t in ipairs(r.threads) do
      list[#list + 1] = { i == 1 and r.name or "",
        i == 1 and ("%.4g"):format(r.flop / 1e6) or "", tostring(t.threads),
        ("%.4g"):format(t.ms), ("%.4g"):format(t.rate),
        cell(t.samples_per_s, "%.0f"), ("%.1f"):format(t.gflops),
        ("%.0f %%"):format(100 * t.share_of_peak),
        ("%.2f"):format(t.rate / r.threads[1].rate),
        cell(r.peer and r.peer.rate and t.rate / r.peer.rate, "%.1f"),
        t.compared and ("%.0f %%"):format(100 * t.compared) }
    end
  end
  return list
end

local function show(list)
  local widths = {}
  for _, row in ipairs(list) do
    for i, text in ipairs(row) do widths[i] = math.max(widths[i] or 0, #text) end
  end
  for k, row in ipairs(list) do
    local out = {}
    for i, text in ipairs(row) do
      out[i] = i == 1 and text .. (" "):rep(widths[i] - #text)
          or (" "):rep(widths[i] - #text) .. text
    end
    say(markdown and "| " .. table.concat(out, " | ") .. " |"
      or table.concat(out, "  "))
    if markdown and k == 1 then say("|" .. ("---|"):rep(#row)) end
  end
end

local function show_memory(r)
  if r.extra_bytes then
    say(("%s: %.1f MB beyond inputs, outputs and their gradients"):format(r.name,
      r.extra_bytes / 1e6))
  end
end

local function show_peer(r)
  local p = r.peer
  say(p.skipped and ("%s: PyTorch skipped: %s"):format(r.name, p.skipped)
    or ("%s: PyTorch %s with %s, %s: %.4g runs/s"):format(r.name, p.torch, p.blas,
      p.settings, p.rate))
end

local function show_profile(r)
  say(("\n%s: %.1f us a step on one thread, %s"):format(r.name, r.profile.us,
    opt.mechanism))
  if markdown then say "" end
  local list = { { "where", "us", "share" } }
  for _, line in ipairs(r.profile.lines) do
    list[#list + 1] = { line.what, ("%.2f"):format(line.us),
      ("%.1f %%"):format(100 * line.us / r.profile.us) }
  end
  show(list)
end

--- Replace the text between the marks of a Markdown file by `new`.
local function write(path, new)
  local first, last = "<!-- measured -->\n", "<!-- end of measurements -->"
  local file <close> = assert(io.open(path))
  local old = file:read "a"
  local _, from = old:find(first, 1, true)
  local to = from and old:find(last, from, true)
  if not to then error(path .. ": no marks " .. first .. last .. " in it", 0) end
  assert(core.file_write(path, old:sub(1, from) .. new .. old:sub(to)))
end

--- Write the profiles beside the Markdown file: one row for each operation.
local function write_profiles(path, results)
  local lines = { "configuration,where,us_per_step,share" }
  for _, r in ipairs(results) do
    for _, line in ipairs(r.profile and r.profile.lines or {}) do
      lines[#lines + 1] = ("%s,%s,%.2f,%.4f"):format(r.name, line.what, line.us,
        line.us / r.profile.us)
    end
  end
  if #lines == 1 then return end
  assert(core.file_write((path:gsub("%.md$", "") .. "-profile.csv"),
    table.concat(lines, "\n") .. "\n"))
end

local configs = {}
for i, name in ipairs(opt.config) do configs[i] = config(name) end
local report = { mechanism = opt.mechanism, compare = opt.compare, machine = machine(),
  results = {} }
for i, c in ipairs(configs) do
  if not opt.json then io.stderr:write("measuring ", c.name, "\n") end
  local r = measure(c)
  if opt.peer then r.peer = peer(c) end
  if opt.profile and not c.tokens then r.profile = profile(c) end
  report.results[i] = r
end
if opt.json then
  say(lab.json.encode(report))
else
  for _, line in ipairs(describe(report.machine)) do
    say(line)
    if markdown then say "" end
  end
  say(("mechanism: %s; medians of %d rounds of %g s\n"):format(opt.mechanism,
    opt.rounds, opt.seconds))
  show(rows(report.results))
  say ""
  for _, r in ipairs(report.results) do
    show_memory(r)
    if r.peer then show_peer(r) end
    if markdown and (r.peer or r.extra_bytes) then say "" end
  end
  for _, r in ipairs(report.results) do
    if r.profile and opt.write == "" then show_profile(r) end
  end
end
text = table.concat(text, "\n") .. "\n"
if opt.write == "" then
  io.write(text)
else
  write(opt.write, text)
  write_profiles(opt.write, report.results)
end
