--- lab.model: models made of attention, described by a table and built from the layers of
-- sinklab.layers.
local core = require "sinklab.core"
local attention = require "sinklab.model.attention"
local check = require "sinklab.base.check"
local init_values = require "sinklab.model.init_values"
local layer = require "sinklab.model.layer"
local mlp = require "sinklab.layers.mlp"
local norm = require "sinklab.layers.norm"
local Model = require "sinklab.model.object"
local params = require "sinklab.model.params"
local run_attention = require "sinklab.layers.attention".forward
local run_block = require "sinklab.layers.block".forward
local schema = require "sinklab.base.schema"

local model = {}

-- Options of every model.
local shared = {
  { "task", "task", required = true, doc = [[gives seq_len, and d_model (numbers) or vocab
    (token ids)]] },
  { "layers", "integer", default = 1, min = 1, max = 1024, doc = "how many" },
  { "heads", "integer", default = 1, min = 1, max = 1024, doc = "in each layer" },
  { "kv_heads", "integer", min = 1, max = 1024, default_doc = "heads",
    doc = "key/value heads; divides heads" },
  { "attention", "string table", default = "softmax", keys = attention.rows,
    doc = "a plugin's name, or a table" },
  { "registers", "integer", default = 0, min = 0, max = 4096, doc = [[learned tokens
    before the first one, dropped before the output (Darcet et al. 2024, arXiv
    2309.16588)]] },
  { "init", "function", default = init_values.normal(0.02),
    default_doc = "lab.init.normal(0.02)", doc = "of the matrices" },
  { "seed", "integer", default = 0, min = 0, doc = "of the parameters" },
  { "dtype", "string", default = "f32", choices = { "f32", "f64" },
    doc = "of the parameters" },
}

--- A model whose parameters are not planned yet, but for its registers.
local function new(kind, o, a, c)
  local self = setmetatable({ kind = kind, options = o, config = c,
    task_name = o.task.name, seq_len = o.task.seq_len, dtype = o.dtype,
    heads = o.heads, layers = o.layers, outer = {}, blocks = {}, outputs = {},
    attention = a, mechanism_text = a.name, mechanism = a.mechanism,
    registers = o.registers, params = params.plan() }, Model)
  if o.registers > 0 then
    self.outer.registers = self.params:add("registers", { o.registers, a.d_model },
      o.init)
  end
  return self
end

--- Make the parameters, and put them into what was planned.
local function make(self)
  local o, plan = self.options, self.params
  plan:make(o.seed, o.dtype)
  self.outer, self.blocks = plan:bind(self.outer), plan:bind(self.blocks)
  for i, block in ipairs(self.blocks) do self.outputs[i] = block.o.weight end
  return self
end

--- The config of sinklab.layers, as far as attention goes.
local function config_of(a)
  return { d_model = a.d_model, heads = a.heads, kv_heads = a.kv_heads,
    d_head = a.d_head, scale = a.scale, causal = a.causal,
    alibi = a.positions == "alibi" }
end

model.attention_only = schema.func("lab.model.attention_only", {
  doc = [[The paper's model: x <- x + MHA(x), or MHA(x) alone; no norm, MLP, positions or
    bias; every head as wide as the model unless d_head says otherwise.

    The scale of scores is 1 here (the paper's).]],
  options = schema.join(shared, {
    { "d_head", "integer", min = 1, max = 1 << 20, default_doc = "the task's d_model",
      doc = "width of a head" },
    { "residual", "boolean", default = false, doc = "x + MHA(x)" } }),
  returns = "model; print (model) lists its parameters",
  errors = "a task of token ids, sizes that do not divide, an option not allowed",
  source = "Ran-Milo 2026, arXiv 2603.11487",
  example = [[local task = lab.task.trigger_mean { residual = true }
print(lab.model.attention_only { task = task, layers = 2, heads = 2,
  residual = true, attention = { mechanism = "relu", gate = "sigmoid_gate" } })]],
}, function(o)
  local what = "lab.model.attention_only"
  local d = o.task.d_model
  if not d then
    check.fail("%s: task '%s' gives token ids; this model reads numbers "
      .. "(try lab.model.transformer)", what, tostring(o.task.name))
  end
  local a = attention.options(what, o.attention,
    { scale = 1, heads = o.heads, kv_heads = o.kv_heads or o.heads,
      d_model = d, d_head = o.d_head or d, positions = "none",
      tokens = o.task.seq_len + o.registers })
  local c = config_of(a)
  local self = new("attention_only", o, a, c)
  for i = 1, o.layers do
    self.blocks[i] = layer.attention(self.params, i, c, a, { init = o.init })
  end
  self.run_layer = o.residual and run_block or run_attention
  return make(self)
end)

local transformer_options = schema.join(shared, {
  { "d_model", "integer", min = 1, max = 1 << 20,
    default_doc = "64 with token ids, else the task's",
    doc = "width of the residual stream" },
  { "d_head", "integer", min = 1, max = 1 << 20, default_doc = "d_model / heads",
    doc = "width of a head" },
  { "norm", "string", default = "layer", choices = { "layer", "rms", "none" },
    doc = "of every norm" },
  { "norm_place", "string", default = "pre", choices = layer.norm_places,
    doc = [["pre": of the inputs of attention and MLP; "post": of the sums; "output": of
    what attention and MLP add (OLMo 2); "sandwich": of inputs and what they add (Gemma
    2)]] },
  { "norm_eps", "number", default = 1e-5, above = 0, doc = "added to the variance" },
  { "qk_norm", "string", choices = norm.qk_kinds, default_doc = "none", doc = [[norm of
    queries and keys: "head" (each head, one gamma), "heads" (each head, its own gamma,
    layer norm) or "full" (all heads as one vector)]] },
  { "clip_qkv", "number", above = 0, default_doc = "none",
    doc = "bound of the absolute values of queries, keys and values" },
  { "mlp", "string", default = "gelu", choices = { "none", "relu", "gelu", "gelu_tanh",
    "silu", "swiglu", "geglu", "geglu_tanh", "reglu", "clamped_swiglu" },
    doc = [[activation of the MLP; the last five have a gate (Shazeer 2020, arXiv
    2002.05202; clamped_swiglu: gpt-oss)]] },
  { "d_mlp", "integer", min = 1, max = 1 << 20,
    default_doc = "4 d_model", doc = "hidden width" },
  { "parallel", "boolean", default = false, doc = [[attention and MLP both read the
    layer's input (GPT-NeoX)]] },
  { "mlp_norm", "boolean", default = true, doc = [[false, in a parallel block: the MLP
    reads what attention reads, through the same norm (Phi-2)]] },
  { "positions", "string", default = "learned", choices = { "none", "learned",
    "sinusoidal", "rotary", "rotary_half", "alibi" }, doc = [[rotary turns interleaved
    pairs, rotary_half the pairs k and k + d_head / 2]] },
  { "rope_base", "number", default = 10000, above = 1, doc = "of rotary angles" },
  { "rope_local_base", "number", above = 1, default_doc = "rope_base",
    doc = "the same in layers with a window (Gemma 3)" },
  { "rotary_part", "number", default = 1, above = 0, max = 1,
    doc = "the share of a head that rotates" },
  { "rope_scaling", "table", fields = {
    { "type", "string", required = true, choices = { "linear", "llama3", "yarn" },
      doc = "the method, as in config.json of transformers" },
    { "factor", "number", required = true, min = 1,
      doc = "of the length of the context" },
    { "original_context", "number", min = 1, default_doc = "context",
      doc = "llama3, yarn: of the unscaled positions", unit = "tokens" },
    { "low_freq_factor", "number", above = 0, default = 1, doc = "llama3" },
    { "high_freq_factor", "number", above = 0, default = 4, doc = "llama3" },
    { "beta_fast", "number", above = 0, default = 32, doc = "yarn", unit = "rotations" },
    { "beta_slow", "number", above = 0, default = 1, doc = "yarn", unit = "rotations" } },
    doc = [[rotary angles scaled for a longer context; not in layers with a
    rope_local_base]] },
  { "context", "integer", min = 1, max = 1 << 24, default_doc = "seq_len",
    doc = "positions of the learned table" },
  { "bias", "boolean string", default = false, choices = { "qkv" }, doc = [[biases in
    every linear map and norm; "qkv": of queries, keys and values only (Qwen 2)]] },
  { "embedding_scale", "number string", default = 1, choices = { "sqrt" },
    doc = [[of the token embeddings; "sqrt": sqrt (d_model) (Gemma)]] },
  { "embedding_norm", "boolean", default = false,
    doc = "a norm of the embeddings (BLOOM)" },
  { "logit_softcap", "number", above = 0, default_doc = "none",
    doc = "s: logits are s tanh (logits / s) (Gemma 2)" },
  { "tied", "boolean", default = false, doc = "unembed with the token embedding" },
})

--- Raise for options that do not go together.
local function check_transformer(what, o, d, d_head)
  local task = o.task
  local rotated = math.floor(d_head * o.rotary_part)
  local function refuse(...) check.fail(what .. ": " .. ...) end
  if task.d_model and d ~= task.d_model then
    check.fail("%s: d_model is %d, but task '%s' gives vectors of width %d", what, d,
      task.name, task.d_model)
  elseif o.tied and not (task.vocab and task.d_output == task.vocab) then
    refuse "tied needs a task with token ids in and out"
  elseif not o.d_head and d % o.heads ~= 0 then
    check.fail("%s: d_model %d is not a multiple of %d heads (give d_head)", what, d,
      o.heads)
  elseif (o.context or task.seq_len) < task.seq_len then
    check.fail("%s: context is %d, but task '%s' has sequences of %d tokens", what,
      o.context, task.name, task.seq_len)
  elseif o.norm == "none" and (o.qk_norm or o.embedding_norm) then
    refuse "qk_norm and embedding_norm need a norm, and norm is \"none\""
  elseif not o.mlp_norm and not o.parallel then
    refuse "mlp_norm = false needs a parallel block"
  elseif o.parallel and o.norm_place ~= "pre" then
    check.fail("%s: norm_place \"%s\" does not go with a parallel block", what,
      o.norm_place)
  elseif not o.positions:match "^rotary"
      and (o.rotary_part < 1 or o.rope_scaling or o.rope_local_base) then
    refuse "rotary_part, rope_scaling and rope_local_base need rotary positions"
  elseif o.rotary_part < 1 and (rotated < 2 or rotated % 2 ~= 0) then
    check.fail("%s: rotary_part %g rotates %d numbers of a head of %d; "
      .. "it must be an even number from 2", what, o.rotary_part, rotated, d_head)
  end
end

model.transformer = schema.func("lab.model.transformer", {
  doc = [[A transformer: embedding, blocks of attention and MLP, unembedding.

    The scale of scores is 1 / sqrt (d_head) unless `attention` says otherwise.
    Soft-capped scores are attention = { mechanism = { "softcap_softmax", cap = 50 } },
    learned sink logits attention = "sinklogit", windows in some layers attention = {
    window = { 8, 0 } }.]],
  options = transformer_options,
  returns = "model; print (model) lists its parameters",
  errors = "sizes that do not divide, an option not allowed",
  example = [[local task = lab.task.trigger_mean {}
print(lab.model.transformer { task = task, heads = 2, norm = "rms",
  mlp = "swiglu", positions = "rotary" })]],
}, function(o)
  local what = "lab.model.transformer"
  local task = o.task
  local d = o.d_model or task.d_model or 64
  local d_head = o.d_head or d // o.heads
  check_transformer(what, o, d, d_head)
  local a = attention.options(what, o.attention,
    { scale = 1 / math.sqrt(d_head), heads = o.heads,
      kv_heads = o.kv_heads or o.heads, d_model = d, d_head = d_head,
      positions = o.positions, qk_norm = o.qk_norm, clip = o.clip_qkv,
      tokens = task.seq_len + o.registers })
  local c, kind = config_of(a), mlp.kinds[o.mlp]
  c.norm, c.norm_eps = o.norm ~= "none" and o.norm or nil, o.norm_eps
  c.qk_norm, c.clip, c.parallel = o.qk_norm, o.clip_qkv, o.parallel
  c.d_ffn, c.logit_softcap = o.d_mlp or 4 * d, o.logit_softcap
  c.activation, c.gating = kind and kind.activation, kind and kind.gating
  local scale = o.embedding_scale == "sqrt" and math.sqrt(d) or o.embedding_scale
  c.embedding_scale = scale ~= 1 and scale or nil

  local self = new("transformer", o, a, c)
  local plan, outer, bias = self.params, self.outer, o.bias == true
  if task.vocab then
    outer.embedding = { weight = plan:add("token_embedding", { task.vocab, d }, o.init) }
  end
  if o.positions == "learned" then
    outer.positions = plan:add("position_embedding", { o.context or task.seq_len, d },
      o.init)
  end
  if o.embedding_norm then
    outer.embedding_norm = layer.norm(plan, "embedding_norm", c, { d }, bias)
  end
  for i = 1, o.layers do self.blocks[i] = layer.block(plan, i, c, a, kind, o) end
  if c.norm and o.norm_place ~= "post" then
    outer.final_norm = layer.norm(plan, "final_norm", c, { d }, bias)
  end
  if o.tied then
    outer.unembedding = outer.embedding
  elseif task.vocab or task.d_output ~= d then
    outer.unembedding = { weight = plan:add("unembedding", { task.d_output, d }, o.init) }
  end
  self.run_layer = run_block
  make(self)
  if self.outer.positions then
    self.positions = self.outer.positions:narrow(1, 1, task.seq_len)
  elseif o.positions == "sinusoidal" then
    self.positions = core.sinusoidal(task.seq_len, d, o.dtype)
  end
  return self
end)

return model
