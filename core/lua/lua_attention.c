/* lua_attention.c - attention, gates, mixers and positions.
**
** The options { } are those of scripts/sinklab/core_api/attention.lua, which
** checks them for scripts; the library calls these functions itself. */
#include "lua/lua_attention.h"
#include <string.h>

/* A field of the options table that is a tensor; it stays on the stack. NULL:
** nil. */
static sl_tensor *tensor_field (lua_State *L, int table, const char *what,
                                const char *key, int needed) {
  lua_pushstring (L, key);
  if (lua_rawget (L, table) == LUA_TNIL && !needed) return NULL;
  return sl_lua_field_tensor (L, what, key, 0);
}

/* Which keys are seen. */
static sl_visibility visibility (lua_State *L, int table, const char *what) {
  return (sl_visibility){ sl_lua_boolean (L, table, what, "causal", 1),
                          sl_lua_int (L, table, what, "window", 0) };
}

/* The layer, counted from 1 in scripts. */
static int layer (lua_State *L, int table, const char *what) {
  const int n = sl_lua_int (L, table, what, "layer", 1);
  if (n >= 1) return n - 1;
  return sl_lua_fail (L, "%s.layer: %d; layers count from 1", what, n);
}

/* A tensor that may be there, appended to 'in'; returns whether it is. */
static int optional (lua_State *L, int table, const char *what, const char *key,
                     sl_tensor **in, int *n) {
  sl_tensor *t = tensor_field (L, table, what, key, 0);
  if (t) in[(*n)++] = t;
  return t != NULL;
}

static int apply (lua_State *L, const char *op, const void *attr, int n,
                  sl_tensor *const *in) {
  sl_error e;
  sl_tensor *out = sl_apply_named (sl_lua_context (L), op, attr, n, in, &e);
  if (!out) return sl_lua_raise (L, &e);
  sl_lua_push_tensor (L, out);
  return 1;
}

/* attention { } -> (b, t, heads * width of a value) */
static int attention (lua_State *L) {
  static const char what[] = "attention";
  sl_attention_attr a = { 0 };
  sl_tensor *in[6];
  int n = 3;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  lua_settop (L, 1);
  in[0] = tensor_field (L, 1, what, "q", 1);
  in[1] = tensor_field (L, 1, what, "k", 1);
  in[2] = tensor_field (L, 1, what, "v", 1);
  a.mechanism = sl_lua_mechanism (L, 1, what);
  a.heads = sl_lua_int (L, 1, what, "heads", 1);
  a.kv_heads = sl_lua_int (L, 1, what, "kv_heads", a.heads);
  a.d_head =
      in[0]->ndim == 3 && a.heads > 0 ? (int)(in[0]->dim[2] / a.heads) : 1;
  a.d_head = sl_lua_int (L, 1, what, "d_head", a.d_head);
  a.scale = sl_lua_number (L, 1, what, "scale", sl_default_scale (a.d_head));
  a.alibi = sl_lua_boolean (L, 1, what, "alibi", 0);
  a.recompute_from = sl_lua_int (L, 1, what, "recompute_from", 0);
  a.layer = layer (L, 1, what);
  a.virtual_keys = sl_lua_int (L, 1, what, "virtual_keys", 0);
  a.visibility = visibility (L, 1, what);
  a.has_param = optional (L, 1, what, "param", in, &n);
  a.has_length = optional (L, 1, what, "length", in, &n);
  a.has_first_key = optional (L, 1, what, "first_key", in, &n);
  return apply (L, "attention", &a, n, in);
}

/* gate { } -> the shape of o */
static int gate (lua_State *L) {
  static const char what[] = "gate";
  sl_attention_attr a = { 0 };
  sl_tensor *in[4];
  int n = 1;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  lua_settop (L, 1);
  in[0] = tensor_field (L, 1, what, "o", 1);
  a.mechanism = sl_lua_mechanism (L, 1, what);
  a.heads = sl_lua_int (L, 1, what, "heads", 1);
  a.layer = layer (L, 1, what);
  optional (L, 1, what, "z", in, &n);
  a.has_param = optional (L, 1, what, "param", in, &n);
  a.has_length = optional (L, 1, what, "length", in, &n);
  return apply (L, "gate", &a, n, in);
}

/* mixer { } -> (b, t, heads * d_out); inputs that the plugin leaves out are not in
** the list */
static int mixer (lua_State *L) {
  static const char what[] = "mixer";
  enum { MOST = SL_MAX_IN - 2 };
  sl_attention_attr a = { 0 };
  sl_tensor *in[SL_MAX_IN];
  int n = 0, list;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  lua_settop (L, 1);
  lua_pushliteral (L, "inputs");
  if (lua_rawget (L, 1) != LUA_TTABLE || lua_rawlen (L, -1) > MOST)
    return sl_lua_fail (
        L, "%s.inputs: expected a list of at most %d tensors, got %s", what,
        MOST, luaL_typename (L, -1));
  list = lua_gettop (L);
  for (; n < (int)lua_rawlen (L, list); n++) {
    lua_rawgeti (L, list, n + 1);
    in[n] = sl_lua_field_tensor (L, what, "inputs", n + 1);
  }
  a.mechanism = sl_lua_mechanism (L, 1, what);
  a.heads = sl_lua_int (L, 1, what, "heads", 1);
  a.d_head = sl_lua_int (L, 1, what, "d_head", 1);
  a.scale = sl_lua_number (L, 1, what, "scale", sl_default_scale (a.d_head));
  a.visibility = visibility (L, 1, what);
  a.layer = layer (L, 1, what);
  a.has_param = optional (L, 1, what, "param", in, &n);
  a.has_length = optional (L, 1, what, "length", in, &n);
  return apply (L, "mixer", &a, n, in);
}

/* row_weights (mechanism, scores (b, h, t, t), [{ }]) -> weights (b, h, t, t) */
static int row_weights (lua_State *L) {
  static const char what[] = "row_weights";
  sl_attention_attr a = { .mechanism = sl_lua_check_mechanism (L, 1) };
  sl_tensor *in[4] = { sl_lua_check_tensor (L, 2) };
  int n = 1;
  lua_settop (L, 3);
  if (lua_isnil (L, 3)) {
    lua_newtable (L);
    lua_replace (L, 3);
  }
  a.d_head = sl_lua_int (L, 3, what, "d_head", 1);
  a.offset = sl_lua_int (L, 3, what, "offset", 0);
  a.visibility = visibility (L, 3, what);
  a.has_param = optional (L, 3, what, "param", in, &n);
  a.has_length = optional (L, 3, what, "length", in, &n);
  a.has_first_key = optional (L, 3, what, "first_key", in, &n);
  return apply (L, "row_weights", &a, n, in);
}

/* rope (x (b, t, h * d_head), { }) -> the shape of x */
static int rope (lua_State *L) {
  static const char what[] = "rope";
  static const char *const pairs[] = { "interleaved", "half" };
  sl_tensor *in[3] = { sl_lua_check_tensor (L, 1) };
  sl_rope_attr a = { 0 };
  int n = 1;
  const char *name;
  sl_lua_check_type (L, 2, LUA_TTABLE);
  name = sl_lua_string (L, 2, what, "pairs", pairs[0]);
  if (strcmp (name, pairs[0]) != 0 && strcmp (name, pairs[1]) != 0)
    return sl_lua_fail (L, "rope.pairs: '%s'; expected 'interleaved' or 'half'",
                        name);
  a.pairs = strcmp (name, pairs[1]) == 0 ? SL_ROPE_HALF : SL_ROPE_INTERLEAVED;
  a.d_head = sl_lua_int (L, 2, what, "d_head", 0);
  a.base = sl_lua_number (L, 2, what, "base", 10000);
  a.offset = (ptrdiff_t)sl_lua_integer (L, 2, what, "offset", 0);
  a.rotated = sl_lua_int (L, 2, what, "rotated", 0);
  a.magnitude = sl_lua_number (L, 2, what, "magnitude", 1);
  a.has_divisors = optional (L, 2, what, "divisors", in, &n);
  a.has_positions = optional (L, 2, what, "positions", in, &n);
  return apply (L, "rope", &a, n, in);
}

/* ---- positions ---- */

static ptrdiff_t check_count (lua_State *L, int arg, lua_Integer most) {
  const lua_Integer n = sl_lua_check_integer (L, arg);
  sl_lua_argument (L, n >= 1 && n <= most, arg,
                   lua_pushfstring (L, "expected 1 to %I", most));
  return (ptrdiff_t)n;
}

/* A new tensor of these doubles, pushed. */
static int push_doubles (lua_State *L, sl_dtype dtype, int ndim,
                         const ptrdiff_t *dim, const double *x) {
  sl_error e;
  size_t n = 1;
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &e);
  if (!t) return sl_lua_raise (L, &e);
  for (int i = 0; i < ndim; i++) n *= (size_t)dim[i];
  sl_tensor_from_doubles (t, n, x, &e);
  sl_lua_push_tensor (L, t);
  return 1;
}

/* sinusoidal (n, d [, dtype = "f32"]) -> (n, d): sin at odd columns, cos at
** even. */
static int sinusoidal (lua_State *L) {
  const ptrdiff_t dim[2] = { check_count (L, 1, 1 << 24),
                             check_count (L, 2, 1 << 16) };
  sl_dtype dtype;
  sl_error e;
  double *table;
  if (sl_dtype_parse (sl_lua_opt_string (L, 3, "f32"), &dtype, &e) < 0)
    return sl_lua_raise (L, &e);
  table =
      lua_newuserdatauv (L, (size_t)dim[0] * (size_t)dim[1] * sizeof *table, 0);
  sl_sinusoidal (dim[0], dim[1], table);
  return push_doubles (L, dtype, 2, dim, table);
}

/* alibi_slopes (heads [, dtype = "f32"]) -> (heads) */
static int alibi_slopes (lua_State *L) {
  const ptrdiff_t heads = check_count (L, 1, 1 << 16);
  sl_dtype dtype;
  sl_error e;
  double *slopes;
  if (sl_dtype_parse (sl_lua_opt_string (L, 2, "f32"), &dtype, &e) < 0)
    return sl_lua_raise (L, &e);
  slopes = lua_newuserdatauv (L, (size_t)heads * sizeof *slopes, 0);
  sl_alibi_slopes ((int)heads, slopes);
  return push_doubles (L, dtype, 1, &heads, slopes);
}

void sl_lua_open_attention (lua_State *L) {
  static const luaL_Reg functions[] = { { "attention", attention },
                                        { "row_weights", row_weights },
                                        { "gate", gate },
                                        { "mixer", mixer },
                                        { "rope", rope },
                                        { "sinusoidal", sinusoidal },
                                        { "alibi_slopes", alibi_slopes },
                                        { NULL, NULL } };
  luaL_setfuncs (L, functions, 0);
}
