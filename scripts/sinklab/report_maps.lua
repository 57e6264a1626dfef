--- report_maps.lua - maps of heads for the report: pooled to what a page may hold, as
-- base64 of 32-bit floats.
local json = require "sinklab.json"

local maps = {}

--- What is shown of a head, in this order, and the axes of its array:
-- (layers, heads, queries, keys), or (layers, heads, positions).
maps.kinds = { "mean", "std", "output_norms" }
maps.axes = { mean = 4, std = 4, output_norms = 3 }

-- Numbers that all maps of a report may have together: 700 kB of base64.
local MOST_VALUES = 130000

local letters = {}
for c in ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):gmatch "." do
  letters[#letters + 1] = c
end

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

local function divide_up(a, b) return (a + b - 1) // b end

--- The smallest side of a block of cells with which everything fits.
local function block_for(runs)
  local block = 0
  repeat
    block = block + 1
    local count = 0
    for _, run in ipairs(runs) do
      for _, heads in ipairs(run.heads) do
        for _, tensor in pairs(heads.tensors) do
          local shape, n = tensor.shape, 1
          for axis, size in ipairs(shape) do
            n = n * (axis > 2 and divide_up(size, block) or size)
          end
          count = count + n
        end
      end
    end
  until count <= MOST_VALUES or block >= 4096
  return block
end

--- Largest in absolute value of each block of a head's map (a list of rows), row by row.
local function pooled(rows, block, out)
  local columns = #rows[1]
  for r = 1, #rows, block do
    for c = 1, columns, block do
      local most
      for i = r, math.min(r + block - 1, #rows) do
        local row = rows[i]
        for j = c, math.min(c + block - 1, columns) do
          local v = row[j]
          if v == v and (not most or math.abs(v) > math.abs(most)) then most = v end
        end
      end
      out[#out + 1] = most or 0 / 0
    end
  end
end

local function pack(values)
  local parts = {}
  for i = 1, #values, 100 do
    local n = math.min(100, #values - i + 1)
    parts[#parts + 1] = string.pack("<" .. ("f"):rep(n), table.unpack(values, i, i + n - 1))
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
    divide_up(shape[3], block), shape[4] and divide_up(shape[4], block) }, values = maps.base64(pack(values)) }
end

--- The maps of all runs for the page: a list for each run of { label, samples, layers,
-- heads, queries, keys, block, maps = kind -> { shape, values } }.
function maps.encode(runs)
  local block, out = block_for(runs), {}
  for i, run in ipairs(runs) do
    out[i] = json.array {}
    for k, heads in ipairs(run.heads) do
      local shape = heads.tensors.mean.shape
      local one = { label = heads.label, samples = heads.samples, layers = shape[1],
        heads = shape[2], queries = shape[3], keys = shape[4], block = block, maps = {} }
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
