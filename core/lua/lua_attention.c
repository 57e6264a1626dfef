/* lua_attention.c - mechanisms, attention and positions. */
#include "attention/attention.h"
#include "lua/lua_common.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MECHANISM "sinklab.mechanism"
/* In the registry: the userdata of every mechanism alive, by its address. */
#define INTERNED "sinklab.mechanisms"

/* ------------------------------------------------------------------ mechanisms */

static const sl_mechanism *check_mechanism (lua_State *L, int index) {
  return *(const sl_mechanism **)luaL_checkudata (L, index, MECHANISM);
}

static void set_text (lua_State *L, const char *key, const char *text) {
  lua_pushstring (L, text);
  lua_setfield (L, -2, key);
}

static void set_claims (lua_State *L, uint32_t flags) {
  static const struct {
    uint32_t flag;
    const char *name;
  } claims[] = { { SL_NONNEGATIVE, "nonnegative" },
                 { SL_SUMS_TO_ONE, "sums_to_one" },
                 { SL_SHIFT_INVARIANT, "shift_invariant" },
                 { SL_KINKED, "kinked" },
                 { SL_CAUSAL_ONLY, "causal_only" },
                 { SL_NULL_MASS, "null_mass" } };
  lua_createtable (L, 0, 6);
  for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
    lua_pushboolean (L, (flags & claims[i].flag) != 0);
    lua_setfield (L, -2, claims[i].name);
  }
  lua_setfield (L, -2, "claims");
}

/* The values in effect, by name. */
static void set_options (lua_State *L, const sl_mechanism *m) {
  const sl_option *o = m->loaded->plugin[SL_F64]->options;
  sl_setting value;
  lua_newtable (L);
  for (int i = 0; sl_mechanism_option (m, i, &value) == 0; i++) {
    if (o[i].type == SL_CHOICE)
      lua_pushstring (L, value.text);
    else if (o[i].type == SL_BOOL)
      lua_pushboolean (L, value.number != 0);
    else if (o[i].type == SL_INT)
      lua_pushinteger (L, (lua_Integer)value.number);
    else
      lua_pushnumber (L, value.number);
    lua_setfield (L, -2, value.name);
  }
  lua_setfield (L, -2, "options");
}

/* The fields that parameters and inputs share. */
static void set_start (lua_State *L, const char *name, sl_width width, int init,
                       double scale) {
  static const char *const inits[] = { "default", "const", "normal",
                                       "uniform" };
  set_text (L, "name", name);
  set_text (L, "init", inits[init]);
  lua_pushnumber (L, scale);
  lua_setfield (L, -2, "scale");
  lua_pushinteger (L, width.per_dhead);
  lua_setfield (L, -2, "width_per_dhead");
  lua_pushinteger (L, width.fixed);
  lua_setfield (L, -2, "width_fixed");
}

static int left_out (sl_width w) {
  return w.per_dhead == 0 && w.fixed == 0;
}

/* Parameters and inputs that these options do not leave out. */
static void set_lists (lua_State *L, const sl_mechanism *m) {
  lua_newtable (L);
  for (const sl_param *p = m->params; p->name; p++) {
    if (left_out (p->width)) continue;
    lua_createtable (L, 0, 6);
    set_start (L, p->name, p->width, p->init, p->scale);
    set_text (L, "doc", p->doc);
    lua_rawseti (L, -2, luaL_len (L, -2) + 1);
  }
  lua_setfield (L, -2, "params");
  lua_newtable (L);
  for (const sl_input *p = m->inputs; p->name; p++) {
    if (left_out (p->width)) continue;
    lua_createtable (L, 0, 6);
    set_start (L, p->name, p->width, p->init, p->scale);
    lua_pushboolean (L, p->shared);
    lua_setfield (L, -2, "shared");
    lua_rawseti (L, -2, luaL_len (L, -2) + 1);
  }
  lua_setfield (L, -2, "inputs");
}

/* mechanism:params_count (d_head): numbers of parameters of one head. */
static int params_count (lua_State *L) {
  const sl_mechanism *m = check_mechanism (L, 1);
  const lua_Integer d = luaL_checkinteger (L, 2);
  luaL_argcheck (L, d >= 1 && d <= INT_MAX, 2, "d_head must be 1 or more");
  lua_pushinteger (L, sl_mechanism_params (m, (int)d));
  return 1;
}

static void push_mechanism (lua_State *L, const sl_mechanism *m) {
  const sl_loaded *l = m->loaded;
  const sl_plugin *p = l->plugin[SL_F64];
  luaL_checkstack (L, 8, "mechanism");
  lua_getfield (L, LUA_REGISTRYINDEX, INTERNED);
  if (lua_rawgetp (L, -1, m) == LUA_TUSERDATA) {
    lua_remove (L, -2);
    return;
  }
  lua_pop (L, 1);
  *(const sl_mechanism **)lua_newuserdatauv (L, sizeof m, 1) = m;
  luaL_setmetatable (L, MECHANISM);
  lua_newtable (L);
  set_text (L, "name", l->name);
  set_text (L, "version", p->version);
  set_text (L, "doc", p->doc);
  set_text (L, "path", l->path);
  set_text (L, "hash", l->hash);
  set_text (L, "shape", p->row ? "row" : p->gate ? "gate" : "mix");
  set_claims (L, p->flags);
  set_options (L, m);
  set_lists (L, m);
  lua_pushcfunction (L, params_count);
  lua_setfield (L, -2, "params_count");
  lua_setiuservalue (L, -2, 1);
  lua_pushvalue (L, -1);
  lua_rawsetp (L, -3, m);
  lua_remove (L, -2);
}

static int mechanism_index (lua_State *L) {
  check_mechanism (L, 1);
  lua_getiuservalue (L, 1, 1);
  lua_pushvalue (L, 2);
  lua_rawget (L, -2);
  return 1;
}

/* "relu (normaliser = earlier)" */
static int mechanism_text (lua_State *L) {
  const sl_mechanism *m = check_mechanism (L, 1);
  const sl_option *o = m->loaded->plugin[SL_F64]->options;
  sl_setting value;
  luaL_Buffer b;
  int n = 0;
  luaL_buffinit (L, &b);
  luaL_addstring (&b, m->loaded->name);
  for (; sl_mechanism_option (m, n, &value) == 0; n++) {
    luaL_addstring (&b, n ? ", " : " (");
    luaL_addstring (&b, value.name);
    luaL_addstring (&b, " = ");
    if (value.text)
      lua_pushstring (L, value.text);
    else if (o[n].type == SL_BOOL)
      lua_pushstring (L, value.number != 0 ? "true" : "false");
    else
      lua_pushfstring (L, "%f", value.number);
    luaL_addvalue (&b);
  }
  if (n) luaL_addchar (&b, ')');
  luaL_pushresult (&b);
  return 1;
}

static int by_name (const void *a, const void *b) {
  return strcmp (((const sl_setting *)a)->name, ((const sl_setting *)b)->name);
}

/* Whether the plugin's option of this name is true or false. */
static int is_boolean (const sl_loaded *l, const char *name) {
  const sl_option *o = l->plugin[SL_F64]->options;
  for (; o && o->name; o++)
    if (strcmp (o->name, name) == 0) return o->type == SL_BOOL;
  return 1; /* unknown: sl_mechanism_new says so */
}

/* The key at -2 and the value at -1 of an options table. */
static sl_setting setting (lua_State *L, const sl_loaded *l) {
  sl_setting s = { NULL, 0, NULL };
  sl_error e;
  if (lua_type (L, -2) != LUA_TSTRING) {
    sl_fail (&e, "%s: expected named options, got a key of type %s", l->name,
             luaL_typename (L, -2));
    sl_lua_raise (L, &e);
  }
  s.name = lua_tostring (L, -2);
  switch (lua_type (L, -1)) {
  case LUA_TNUMBER: s.number = lua_tonumber (L, -1); return s;
  case LUA_TSTRING: s.text = lua_tostring (L, -1); return s;
  case LUA_TBOOLEAN:
    s.number = lua_toboolean (L, -1);
    if (is_boolean (l, s.name)) return s;
  }
  sl_fail (&e,
           "%s: option %s is a %s; 'sinklab plugin info %s' tells what is "
           "allowed",
           l->name, s.name, luaL_typename (L, -1), l->name);
  sl_lua_raise (L, &e);
  return s;
}

/* mechanism (name [, options]): a plugin, found by name or path, with the values of
** its options. Equal arguments give the same object. */
static int mechanism (lua_State *L) {
  const char *name = luaL_checkstring (L, 1);
  const int has_options = !lua_isnoneornil (L, 2);
  const sl_loaded *l;
  const sl_mechanism *m;
  sl_setting *s = NULL;
  int n = 0;
  sl_error e;
  if (has_options) luaL_checktype (L, 2, LUA_TTABLE);
  l = sl_plugin_load (name, &e);
  if (!l) return sl_lua_raise (L, &e);
  if (has_options) {
    size_t count = 0;
    for (lua_pushnil (L); lua_next (L, 2); lua_pop (L, 1)) count++;
    s = lua_newuserdatauv (L, (count + 1) * sizeof *s, 0);
    for (lua_pushnil (L); lua_next (L, 2); lua_pop (L, 1))
      s[n++] = setting (L, l);
    /* one of several mistakes is always the same one */
    if (n) qsort (s, (size_t)n, sizeof *s, by_name);
  }
  m = sl_mechanism_new (l, n, s, &e);
  if (!m) return sl_lua_raise (L, &e);
  push_mechanism (L, m);
  return 1;
}

/* ------------------------------------------------------------------- operations */

/* A field of the options table that is a tensor; it stays on the stack. NULL: nil. */
static sl_tensor *tensor_field (lua_State *L, int table, const char *what,
                                const char *key, int needed) {
  sl_tensor **box;
  sl_error e;
  lua_pushstring (L, key);
  if (lua_rawget (L, table) == LUA_TNIL && !needed) return NULL;
  box = luaL_testudata (L, -1, SL_LUA_TENSOR);
  if (box && *box) return *box;
  sl_fail (&e, "%s.%s: expected a tensor, got %s", what, key,
           box ? "one that has been closed" : luaL_typename (L, -1));
  sl_lua_raise (L, &e);
  return NULL;
}

static int int_field (lua_State *L, int table, const char *what,
                      const char *key, int def) {
  const lua_Integer n = sl_lua_integer (L, table, what, key, def);
  sl_error e;
  if (n >= INT_MIN && n <= INT_MAX) return (int)n;
  sl_fail (&e, "%s.%s: %lld is out of range", what, key, (long long)n);
  return sl_lua_raise (L, &e);
}

/* What 'attention' and 'apply_mechanism' share: which keys are seen, and the inputs
** param and length, appended to 'in'. */
static void common_fields (lua_State *L, int table, const char *what,
                           sl_attention_attr *a, sl_tensor **in, int *n) {
  sl_tensor *t;
  a->visibility.causal = sl_lua_boolean (L, table, what, "causal", 1);
  a->visibility.window = int_field (L, table, what, "window", 0);
  t = tensor_field (L, table, what, "param", 0);
  if (t) in[(*n)++] = t;
  a->has_param = t != NULL;
  t = tensor_field (L, table, what, "length", 0);
  if (t) in[(*n)++] = t;
  a->has_length = t != NULL;
}

static int apply (lua_State *L, const char *op, const void *attr, int n,
                  sl_tensor *const *in) {
  sl_error e;
  sl_tensor *out = sl_apply_named (sl_lua_context (L), op, attr, n, in, &e);
  if (!out) return sl_lua_raise (L, &e);
  sl_lua_push_tensor (L, out);
  return 1;
}

/* attention { q =, k =, v =, mechanism =, heads =, kv_heads = heads, d_head = width
** of q / heads, scale = 1 / sqrt (d_head), causal = true, window = 0 (none), alibi =
** false, param = (heads, n) or nil, length = (b) or nil, recompute_from = 256 }
** -> (b, t, heads * width of a value). q (b, t, heads * d_head), k (b, t, kv_heads *
** d_head), v (b, t, kv_heads * dv). */
static int attention (lua_State *L) {
  static const char what[] = "attention";
  static const char *const keys[] = {
    "q",        "k",      "v",      "mechanism",      "heads",
    "kv_heads", "d_head", "scale",  "causal",         "window",
    "alibi",    "param",  "length", "recompute_from", NULL
  };
  sl_attention_attr a = { 0 };
  sl_tensor *in[5];
  int n = 3;
  sl_error e;
  luaL_checktype (L, 1, LUA_TTABLE);
  lua_settop (L, 1);
  sl_lua_known (L, 1, what, keys);
  in[0] = tensor_field (L, 1, what, "q", 1);
  in[1] = tensor_field (L, 1, what, "k", 1);
  in[2] = tensor_field (L, 1, what, "v", 1);
  lua_pushliteral (L, "mechanism");
  lua_rawget (L, 1);
  if (!luaL_testudata (L, -1, MECHANISM)) {
    sl_fail (&e, "%s.mechanism: expected a mechanism, got %s", what,
             luaL_typename (L, -1));
    return sl_lua_raise (L, &e);
  }
  a.mechanism = check_mechanism (L, lua_gettop (L));
  a.heads = int_field (L, 1, what, "heads", 1);
  a.kv_heads = int_field (L, 1, what, "kv_heads", a.heads);
  a.d_head =
      in[0]->ndim == 3 && a.heads > 0 ? (int)(in[0]->dim[2] / a.heads) : 1;
  a.d_head = int_field (L, 1, what, "d_head", a.d_head);
  a.scale = sl_lua_number (L, 1, what, "scale",
                           a.d_head > 0 ? 1 / sqrt (a.d_head) : 1);
  a.alibi = sl_lua_boolean (L, 1, what, "alibi", 0);
  a.recompute_from = int_field (L, 1, what, "recompute_from", 0);
  common_fields (L, 1, what, &a, in, &n);
  return apply (L, "attention", &a, n, in);
}

/* apply_mechanism (mechanism, scores (b, h, t, t) [, { param =, length =, causal =
** true, window = 0, d_head = 1 }]) -> weights of the same shape. d_head gives the
** width of parameters that depend on it. */
static int apply_mechanism (lua_State *L) {
  static const char what[] = "apply_mechanism";
  static const char *const keys[] = { "param",  "length", "causal",
                                      "window", "d_head", NULL };
  sl_attention_attr a = { .mechanism = check_mechanism (L, 1) };
  sl_tensor *in[3] = { sl_lua_check_tensor (L, 2) };
  int n = 1;
  lua_settop (L, 3);
  if (lua_isnil (L, 3)) {
    lua_newtable (L);
    lua_replace (L, 3);
  }
  sl_lua_known (L, 3, what, keys);
  a.d_head = int_field (L, 3, what, "d_head", 1);
  common_fields (L, 3, what, &a, in, &n);
  return apply (L, "mechanism", &a, n, in);
}

/* rope (x (b, t, h * d_head), { d_head =, pairs = "interleaved" or "half", base =
** 10000, offset = 0 }): turned by position, offset being that of the first token. */
static int rope (lua_State *L) {
  static const char what[] = "rope";
  static const char *const keys[] = { "d_head", "pairs", "base", "offset",
                                      NULL };
  static const char *const pairs[] = { "interleaved", "half" };
  sl_tensor *x = sl_lua_check_tensor (L, 1);
  sl_rope_attr a = { 0 };
  const char *name;
  sl_error e;
  luaL_checktype (L, 2, LUA_TTABLE);
  sl_lua_known (L, 2, what, keys);
  name = sl_lua_string (L, 2, what, "pairs", pairs[0]);
  if (strcmp (name, pairs[0]) != 0 && strcmp (name, pairs[1]) != 0) {
    sl_fail (&e, "rope.pairs: '%s'; expected 'interleaved' or 'half'", name);
    return sl_lua_raise (L, &e);
  }
  a.pairs = strcmp (name, pairs[1]) == 0 ? SL_ROPE_HALF : SL_ROPE_INTERLEAVED;
  a.d_head = int_field (L, 2, what, "d_head", 0);
  a.base = sl_lua_number (L, 2, what, "base", 10000);
  a.offset = (ptrdiff_t)sl_lua_integer (L, 2, what, "offset", 0);
  return apply (L, "rope", &a, 1, &x);
}

/* ------------------------------------------------------------------- positions */

static ptrdiff_t check_count (lua_State *L, int arg, lua_Integer most) {
  const lua_Integer n = luaL_checkinteger (L, arg);
  luaL_argcheck (L, n >= 1 && n <= most, arg,
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

/* sinusoidal (n, d [, dtype = "f32"]) -> (n, d): sin at odd columns, cos at even. */
static int sinusoidal (lua_State *L) {
  const ptrdiff_t dim[2] = { check_count (L, 1, 1 << 24),
                             check_count (L, 2, 1 << 16) };
  sl_dtype dtype;
  sl_error e;
  double *table;
  if (sl_dtype_parse (luaL_optstring (L, 3, "f32"), &dtype, &e) < 0)
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
  if (sl_dtype_parse (luaL_optstring (L, 2, "f32"), &dtype, &e) < 0)
    return sl_lua_raise (L, &e);
  slopes = lua_newuserdatauv (L, (size_t)heads * sizeof *slopes, 0);
  sl_alibi_slopes ((int)heads, slopes);
  return push_doubles (L, dtype, 1, &heads, slopes);
}

void sl_lua_open_attention (lua_State *L) {
  static const luaL_Reg functions[] = { { "mechanism", mechanism },
                                        { "attention", attention },
                                        { "apply_mechanism", apply_mechanism },
                                        { "rope", rope },
                                        { "sinusoidal", sinusoidal },
                                        { "alibi_slopes", alibi_slopes },
                                        { NULL, NULL } };
  if (sl_attention_register () != 0)
    luaL_error (L, "there is no room for the operations of attention");
  luaL_newmetatable (L, MECHANISM);
  lua_pushcfunction (L, mechanism_index);
  lua_setfield (L, -2, "__index");
  lua_pushcfunction (L, mechanism_text);
  lua_setfield (L, -2, "__tostring");
  lua_pop (L, 1);
  lua_newtable (L);
  lua_createtable (L, 0, 1);
  lua_pushliteral (L, "v");
  lua_setfield (L, -2, "__mode");
  lua_setmetatable (L, -2);
  lua_setfield (L, LUA_REGISTRYINDEX, INTERNED);
  luaL_setfuncs (L, functions, 0);
}
