--- test_lm_models.lua - every architecture against reference values of other programs.
--
-- tests/models/arch holds a tiny random model of each, in one form or both; its manifest
-- says where the values come from and the tolerance. SINKLAB_MODELS=DIR, a folder with
-- arch/manifest.json, tests the models there instead.
local lab = require "sinklab"
local check = require "check"
local source = os.getenv "SINKLAB_MODELS" or arg[0]:match "^(.*)/lua/[^/]*$" .. "/models"
local arch = source .. "/arch/"

local function text_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local manifest = assert(lab.json.decode(text_of(arch .. "manifest.json")))

--- Largest |a - b|, b of any shape with as many numbers.
local function difference(a, b)
  return (a:reshape(b.shape) - b):abs():max():item()
end

for _, model in ipairs(manifest.models) do
  for _, file in ipairs(model.files) do
    check.test(file.path, function()
      local opened = assert(lab.lm.open(arch .. file.path))
      for _, values in ipairs(file.values) do
        local ids = lab.load_npy(arch .. values.ids)
        local logits = opened:logits(ids)
        check.close(difference(logits, lab.load_npy(arch .. values.logits)), 0,
          values.tolerance.logits, 0, file.path .. " logits")
        local sinks = lab.lm.sinks(opened, ids:totable(), { maps = true, loss = false })
        check.close(difference(sinks.mean, lab.load_npy(arch .. values.att)), 0,
          values.tolerance.att, 0, file.path .. " attention")
      end
    end)
  end
end

check.test("both forms of one model", function()
  local ids = lab.load_npy(arch .. "llama_gqa/ids_T24.npy")
  local gguf = assert(lab.lm.open(arch .. "llama_gqa/model.gguf"))
  local hf = assert(lab.lm.open(arch .. "llama_gqa/hf"))
  check.close(difference(gguf:logits(ids), hf:logits(ids)), 0, 2e-5, 0, "logits")
  for head = 1, 4 do
    local one = { ids = ids, layer = 2, head = head }
    check.close(difference(gguf:attention(one), hf:attention(one)), 0, 1e-5, 0, "weights")
  end
end)

check.test("a sequence alone, in a batch, padded on either side", function()
  local model = assert(lab.lm.open(arch .. "gpt2/hf"))
  local rope = assert(lab.lm.open(arch .. "gpt_oss/model.gguf"))
  local a, b = { 5, 9, 33, 7, 60, 2, 41 }, { 11, 4, 70 }
  for _, m in ipairs { model, rope } do
    local alone_a, alone_b = m:logits(a), m:logits(b)
    local right = m:logits({ a, { 11, 4, 70, 0, 0, 0, 0 } }, { length = { 7, 3 } })
    check.close(difference(right:narrow(1, 1, 1), alone_a), 0, 2e-6, 0, "beside")
    check.close(difference(right:narrow(1, 2, 1):narrow(2, 1, 3), alone_b), 0, 2e-6, 0,
      "right padding")
    local left = m:logits({ a, { 0, 0, 0, 0, 11, 4, 70 } }, {
      first_key = { { 0, 0, 0, 0, 0, 0, 0 }, { 1, 2, 3, 4, 4, 4, 4 } },
      positions = { { 0, 1, 2, 3, 4, 5, 6 }, { 0, 0, 0, 0, 0, 1, 2 } } })
    check.close(difference(left:narrow(1, 2, 1):narrow(2, 5, 3), alone_b), 0, 2e-6, 0,
      "left padding")
  end
end)

check.done()
