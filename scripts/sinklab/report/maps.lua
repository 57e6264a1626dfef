--- maps.lua - maps of heads for the report: pooled to the size limit of a page, as
-- base64 of 32-bit floats.
local json = require "sinklab.base.json"

local maps = {}

--- The maps of a head, in the order of the page, and the axes of their arrays:
-- (layers, heads, queries, keys), or (layers, heads, positions).
maps.kinds = { "mean", "std", "output_norms" }
maps.axes = { mean = 4, std = 4, output_norms = 3 }

-- Numbers that all maps of a report may have together: 700 kB of base64.
local MOST_VALUES = 130000

local letters = {}
local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
for c in alphabet:gmatch "." do letters[#letters + 1] = c end

--- Base64 (RFC 4648) of bytes.
function maps.base64(bytes)
  local out = {}
  for i = 1, #bytes - 2, 3 do
    local n = string.unpack(">I3", bytes, i)
    out[#out + 1] = letters[(n >> 18) + 1] .. letters[(n >> 12 & 63) + 1]
        .. letters[(n >> 6 & 63) + 1] .. letters[(n & 63) + 1]
  end
  local rest = #bytes % 3
  if rest == 1 then
    local n = bytes:byte(-1)
    out[#out + 1] = letters[(n >> 2) + 1] .. letters[(n << 4 & 63) + 1] .. "=="
  elseif rest == 2 then
    local n = string.unpack(">I2", bytes, #bytes - 1)
    out[#out + 1] = letters[(n >> 10) + 1] .. letters[(n >> 4 & 63) + 1]
        .. letters[(n << 2 & 63) + 1] .. "="
  end
  return table.concat(out)
end

--- Blocks along an axis of n positions: the first one alone, as sinks are on it, then
-- every `block` of the others.
local function blocks(n, block) return 1 + (n + block - 2) // block end

--- First and last position of block i.
local function ends(i, block, n)
  if i == 1 then return 1, 1 end
  return (i - 2) * block + 2, math.min((i - 1) * block + 1, n)
end

--- How many numbers a model's maps have with blocks of this side.
local function count_of(heads, block)
  local count = 0
  for _, tensor in pairs(heads.tensors) do
    local n = 1
    for axis, size in ipairs(tensor.shape) do
      n = n * (axis > 2 and blocks(size, block) or size)
    end
    count = count + n
  end
  return count
end

--- The sides of blocks with which everything fits: the largest model is made smaller
-- until then. Models of thousands of heads may not fit at all; they keep two columns.
local function choose_blocks(models)
  local total = 0
  for _, heads in ipairs(models) do
    heads.block = 1
    heads.count = count_of(heads, 1)
    total = total + heads.count
  end
  while total > MOST_VALUES do
    local most
    for _, heads in ipairs(models) do
      local shape = heads.tensors.mean.shape
      local coarsest = heads.block >= math.max(shape[3], shape[4])
      if not coarsest and (not most or heads.count > most.count) then most = heads end
    end
    if not most then return end
    total = total - most.count
    most.block = most.block + 1
    most.count = count_of(most, most.block)
    total = total + most.count
  end
end

--- Largest in absolute value of each block of a head's map (a list of rows), row by row.
local function pooled(rows, block, out)
  local n, columns = #rows, #rows[1]
  for r = 1, blocks(n, block) do
    local top, bottom = ends(r, block, n)
    for c = 1, blocks(columns, block) do
      local left, right = ends(c, block, columns)
      local most
      for i = top, bottom do
        local row = rows[i]
        for j = left, right do
          local v = row[j]
          if v == v and (not most or math.abs(v) > math.abs(most)) then most = v end
        end
      end
      out[#out + 1] = most or 0 / 0
    end
  end
end

--- Mean weight on position 1 of the rows after the first (of the only one), by head.
local function first_weights(mean)
  local shape, out = mean.shape, json.array {}
  for l = 1, shape[1] do
    for h = 1, shape[2] do
      local column = mean:select(1, l):select(1, h):select(2, 1)
      if shape[3] > 1 then column = column:narrow(1, 2, shape[3] - 1) end
      out[#out + 1] = column:mean():item()
    end
  end
  return out
end

local function pack(values)
  local parts = {}
  for i = 1, #values, 100 do
    local n = math.min(100, #values - i + 1)
    parts[#parts + 1] = string.pack("<" .. ("f"):rep(n),
      table.unpack(values, i, i + n - 1))
  end
  return table.concat(parts)
end

local function encoded(tensor, block)
  local shape, values = tensor.shape, {}
  for l = 1, shape[1] do
    local layer = tensor:select(1, l)
    for h = 1, shape[2] do
      local head = layer:select(1, h):totable()
      if #shape == 3 then head = { head } end
      pooled(head, block, values)
    end
  end
  return { shape = json.array { shape[1], shape[2],
    blocks(shape[3], block), shape[4] and blocks(shape[4], block) },
    values = maps.base64(pack(values)) }
end

--- The maps of all runs for the page: a list for each run of { label, samples, layers,
-- heads, queries, keys, block, first = weight on position 1 by head, maps = kind ->
-- { shape, values } }.
function maps.encode(runs)
  local models, out = {}, {}
  for _, run in ipairs(runs) do
    table.move(run.heads, 1, #run.heads, #models + 1, models)
  end
  choose_blocks(models)
  for i, run in ipairs(runs) do
    out[i] = json.array {}
    for k, heads in ipairs(run.heads) do
      local shape, block = heads.tensors.mean.shape, heads.block
      local one = { label = heads.label, samples = heads.samples, layers = shape[1],
        heads = shape[2], queries = shape[3], keys = shape[4], block = block,
        first = first_weights(heads.tensors.mean), maps = {} }
      for kind, tensor in pairs(heads.tensors) do
        local s = tensor.shape
        local fits = s[1] == shape[1] and s[2] == shape[2]
            and s[3] == (kind == "output_norms" and shape[4] or shape[3])
            and (#s == 3 or s[4] == shape[4])
        if fits then
          one.maps[kind] = encoded(tensor, block)
        else
          run.problems[#run.problems + 1] = ("%s-%s.npy has shape (%s), the mean (%s)")
              :format(heads.label, kind, table.concat(s, ", "), table.concat(shape, ", "))
        end
      end
      out[i][k] = one
    end
  end
  return out
end

return maps
