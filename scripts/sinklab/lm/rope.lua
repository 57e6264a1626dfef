--- rope.lua - rotary positions of a model: which numbers rotate, by which angles.
local core = require "sinklab.core"
local rotary = require "sinklab.layers.rotary"

local rope = {}

--- The number of a scaling under one of these names.
local function setting(self, what, value, default)
  if value == nil or value == core.json_null then value = default end
  if value == nil then self:refuse("the scaling of rotary positions has no %s", what) end
  if type(value) ~= "number" or not (value > 0 and value < 1e12) then
    self:refuse("%s of the scaling of rotary positions is %s; "
      .. "it must be a number above 0", what, tostring(value))
  end
  return value
end

--- The block of config.json that later files have: that of layers with full attention,
-- and that of layers with a window.
local function rope_parameters(self)
  local o = self.metadata.rope_parameters
  if type(o) ~= "table" then return {}, {} end
  if type(o.full_attention) ~= "table" then return o, {} end
  return o.full_attention, type(o.sliding_attention) == "table" and o.sliding_attention
      or {}
end

--- Type and settings of the scaling of a GGUF file, or nil. llama.cpp multiplies YaRN's
-- factor with attn_factor and yarn_attn_factor.
local function gguf_scaling(self)
  local function get(key) return (self:value { gguf = "rope." .. key }) end
  local kind, factor = get "scaling.type", get "scaling.factor" or get "scale_linear"
  if kind == nil and factor then kind = "linear" end
  if kind == nil or kind == "none" then return nil end
  if kind == "longrope" then return "none" end -- its tables are tensors
  local o = { factor = factor,
    original_max_position_embeddings = get "scaling.original_context_length" }
  if kind == "yarn" then
    o.beta_fast, o.beta_slow = get "scaling.yarn_beta_fast", get "scaling.yarn_beta_slow"
    local ext = get "scaling.yarn_ext_factor"
    if ext and ext >= 0 and ext ~= 1 then
      self:refuse("rope.scaling.yarn_ext_factor is %g; this library follows 1", ext)
    end
    o.attention_factor = rotary.yarn_magnitude(factor or 1, 1)
        * (get "scaling.attn_factor" or 1)
        * (get "scaling.yarn_attn_factor" or 1)
  end
  return kind, o
end

--- Type and settings of the scaling in either form, or nil.
local function scaling_of(self, c)
  if self.form == "gguf" then return gguf_scaling(self) end
  local o = self.metadata.rope_scaling
  if type(o) ~= "table" then o = rope_parameters(self) end
  if type(o.rope_theta) == "number" then c.rope_base = o.rope_theta end
  local kind, old = o.rope_type, o.type
  if kind == nil then kind = old end
  if kind == nil or kind == "default" then return nil end
  if kind == "su" then kind = "longrope" end
  return kind, o
end

--- The factor of longrope's queries and keys: 1 where the context was not extended.
local function long_magnitude(self, c, given, original)
  if given ~= nil and given ~= core.json_null then
    return setting(self, "attention_factor", given)
  end
  local factor = c.context / original
  return factor > 1 and math.sqrt(1 + math.log(factor) / math.log(original)) or 1
end

--- YaRN's factor by a block's mscale and mscale_all_dim, which count as a pair (0: not
-- given), as in transformers.
local function mscale_magnitude(self, o, factor)
  local function given(key)
    local value = o[key]
    if value == nil or value == core.json_null or value == 0 then return nil end
    return setting(self, key, value)
  end
  local one, all = given "mscale", given "mscale_all_dim"
  if (one == nil) ~= (all == nil) then
    self:refuse("the scaling of rotary positions has %s without %s",
      one and "mscale" or "mscale_all_dim", one and "mscale_all_dim" or "mscale")
  end
  return rotary.yarn_magnitude(factor, one or 1)
      / (one and rotary.yarn_magnitude(factor, all) or 1)
end

--- The arguments of a method of rotary.scalings.
local function settings_of(self, c, kind, o, base)
  local settings = { base = base, factor = setting(self, "factor", o.factor) }
  if kind ~= "linear" then
    settings.original = setting(self, "original_max_position_embeddings",
      o.original_max_position_embeddings, c.context)
  end
  if kind == "llama3" then
    settings.low = setting(self, "low_freq_factor", o.low_freq_factor)
    settings.high = setting(self, "high_freq_factor", o.high_freq_factor)
  elseif kind == "yarn" then
    settings.beta_fast = setting(self, "beta_fast", o.beta_fast, 32)
    settings.beta_slow = setting(self, "beta_slow", o.beta_slow, 1)
    settings.truncate = o.truncate ~= false
    settings.magnitude = setting(self, "attention_factor", o.attention_factor,
      mscale_magnitude(self, o, settings.factor))
  end
  return settings
end

--- c.rope: { base, rotated, pairs, divisors, magnitude }, local_base for layers with a
-- window; `long` and `short` divisors with `original` where the length decides.
function rope.read(self, entry, c)
  local full, near = rope_parameters(self)
  local part = self:value { hf = { "partial_rotary_factor", "rotary_pct" } }
      or full.partial_rotary_factor or entry.rotary_part or 1
  if type(part) ~= "number" or not (part > 0 and part <= 1) then
    self:refuse("the rotary part of a head is %s; it must be above 0 and at most 1",
      tostring(part))
  end
  local out = { pairs = c.positions == "rope" and "half" or "interleaved",
    local_base = c.local_rope_base or entry.local_base }
  if self.form == "gguf" then
    out.rotated = self:size "rotated" or c.d_head
  else
    out.rotated = math.floor(c.d_head * part)
    if near.rope_type ~= nil and near.rope_type ~= "default" then
      self:refuse("rotary positions of layers with a window are scaled by '%s', which "
        .. "this library does not follow", tostring(near.rope_type))
    end
    out.local_base = near.rope_theta and setting(self, "base in layers with a window",
      near.rope_theta) or out.local_base
  end
  if out.rotated % 2 ~= 0 or out.rotated < 2 or out.rotated > c.d_head then
    self:refuse("%d numbers of a head would turn by rotary positions; "
      .. "it must be an even number from 2 to the width of a head, %d",
      out.rotated, c.d_head)
  end
  local kind, o = scaling_of(self, c)
  out.base, c.rope = c.rope_base, out
  if kind == "longrope" then
    out.long, out.short = o.long_factor, o.short_factor
    out.original = setting(self, "original_max_position_embeddings",
      self.metadata.original_max_position_embeddings, o.original_max_position_embeddings)
    out.magnitude = long_magnitude(self, c, o.attention_factor, out.original)
  elseif kind and kind ~= "none" then
    local method = rotary.scalings[kind]
    if not method then
      self:refuse("rotary positions are scaled by '%s'; this library follows default, "
        .. "linear, llama3, yarn and longrope", tostring(kind))
    end
    local settings = settings_of(self, c, kind, o, out.base)
    out.divisors, out.magnitude = method(settings, out.rotated // 2)
    out.scaling = ("%s x%g"):format(kind, settings.factor)
  elseif self.form == "gguf" then
    out.original = self:value { gguf = "rope.scaling.original_context_length" }
    if out.original then
      out.magnitude = long_magnitude(self, c,
        self:value { gguf = "rope.scaling.attn_factor" }, out.original)
    end
  end
end

return rope
