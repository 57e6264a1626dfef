/* lua_sinks.c - attention sinks, measured. */
#include "lua/lua_common.h"
#include "sinks/sinks.h"
#include <math.h>
#include <stddef.h>

#define FOUND "sinklab.measured"

/* What was measured, owned until it has been turned into tables. */
static int release (lua_State *L) {
  sl_sinks **found = luaL_checkudata (L, 1, FOUND);
  sl_sinks *s = *found;
  *found = NULL;
  sl_sinks_free (s);
  return 0;
}

static const char what[] = "measure_sinks";

static int get (lua_State *L, int index, const char *key) {
  lua_pushstring (L, key);
  return lua_rawget (L, index);
}

static sl_tensor *element (lua_State *L, const char *key, int i) {
  sl_tensor **t = luaL_testudata (L, -1, SL_LUA_TENSOR);
  sl_error e;
  if (t == NULL || *t == NULL) {
    if (i > 0)
      sl_fail (&e, "%s.%s[%d]: expected a tensor, got %s", what, key, i,
               t ? "a closed one" : luaL_typename (L, -1));
    else
      sl_fail (&e, "%s.%s: expected a tensor, got %s", what, key,
               t ? "a closed one" : luaL_typename (L, -1));
    sl_lua_raise (L, &e);
  }
  return *t;
}

/* The tensors of a list, in a userdata that is pushed; NULL for nil. The table
** of options keeps them alive. */
static sl_tensor **get_list (lua_State *L, int index, const char *key, int *n) {
  sl_tensor **list;
  sl_error e;
  const int type = get (L, index, key), table = lua_gettop (L);
  *n = 0;
  if (type == LUA_TNIL) return NULL;
  if (type != LUA_TTABLE || lua_rawlen (L, table) > 4096) {
    sl_fail (&e, "%s.%s: expected a list of at most 4096 tensors, got %s", what,
             key, luaL_typename (L, table));
    sl_lua_raise (L, &e);
  }
  *n = (int)lua_rawlen (L, table);
  list = lua_newuserdatauv (L, (size_t)(*n + 1) * sizeof *list, 0);
  for (int i = 0; i < *n; i++) {
    lua_rawgeti (L, table, i + 1);
    list[i] = element (L, key, i + 1);
    lua_pop (L, 1);
  }
  return list;
}

/* One number a sample, in double; NULL for nil. */
static const double *get_labels (lua_State *L, int index, const char *key,
                                 ptrdiff_t samples) {
  sl_tensor *t;
  double *labels;
  sl_error e;
  char text[128];
  if (get (L, index, key) == LUA_TNIL) return NULL;
  t = element (L, key, 0);
  if (t->ndim != 1 || t->dim[0] != samples) {
    sl_fail (&e, "%s.%s: expected shape (%td), one number a sample, got %s",
             what, key, samples,
             sl_shape_text (t->ndim, t->dim, text, sizeof text));
    sl_lua_raise (L, &e);
  }
  labels = lua_newuserdatauv (L, (size_t)(samples + 1) * sizeof *labels, 0);
  sl_tensor_to_doubles (t, labels);
  return labels;
}

static int get_count (lua_State *L, int index, const char *key) {
  const lua_Integer n = sl_lua_integer (L, index, what, key, 0);
  sl_error e;
  if (n < 1 || n > 1 << 24) {
    sl_fail (&e, "%s.%s: got %lld, allowed is 1 to 2^24", what, key,
             (long long)n);
    sl_lua_raise (L, &e);
  }
  return (int)n;
}

static int get_extra (lua_State *L, int index, const char *key) {
  const lua_Integer n = sl_lua_integer (L, index, what, key, 0);
  sl_error e;
  if (n < 0 || n > 1 << 16) {
    sl_fail (&e, "%s.%s: got %lld, allowed is 0 to 2^16", what, key,
             (long long)n);
    sl_lua_raise (L, &e);
  }
  return (int)n;
}

/* The heads as a list of tables. */
static void push_heads (lua_State *L, const sl_sinks *s) {
  static const struct {
    const char *name;
    size_t offset;
  } numbers[] = {
#define NUMBER(name) { #name, offsetof (sl_head_sinks, name) }
    NUMBER (first_mean),    NUMBER (first_min),  NUMBER (first_std),
    NUMBER (first_all),     NUMBER (row_mass),   NUMBER (abs_mass),
    NUMBER (trigger_first), NUMBER (proxy),      NUMBER (entropy),
    NUMBER (contribution),  NUMBER (value_norm), NUMBER (rate),
#undef NUMBER
  };
  /* absent where there is no such thing */
  static const struct {
    const char *name;
    size_t offset;
  } some[] = {
    { "virtual_mass", offsetof (sl_head_sinks, virtual_mass) },
    { "null_mass", offsetof (sl_head_sinks, null_mass) },
  };
  const struct {
    const char *name;
    size_t offset;
  } counts[] = {
    { "plain_rows", offsetof (sl_head_sinks, plain_rows) },
    { "trigger_rows", offsetof (sl_head_sinks, trigger_rows) },
    { "empty_rows", offsetof (sl_head_sinks, empty_rows) },
  };
  const int n = s->layers * s->heads;
  lua_createtable (L, n, 0);
  for (int i = 0; i < n; i++) {
    const char *head = (const char *)&s->head[i];
    lua_createtable (L, 0, 16);
    lua_pushinteger (L, i / s->heads + 1);
    lua_setfield (L, -2, "layer");
    lua_pushinteger (L, i % s->heads + 1);
    lua_setfield (L, -2, "head");
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
      lua_pushnumber (L, *(const double *)(head + numbers[k].offset));
      lua_setfield (L, -2, numbers[k].name);
    }
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
      const double x = *(const double *)(head + some[k].offset);
      if (isnan (x)) continue;
      lua_pushnumber (L, x);
      lua_setfield (L, -2, some[k].name);
    }
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
      lua_pushinteger (L, *(const long *)(head + counts[k].offset));
      lua_setfield (L, -2, counts[k].name);
    }
    lua_rawseti (L, -2, i + 1);
  }
}

/* (layers, heads, query, columns) */
static void push_map (lua_State *L, const sl_sinks *s, const double *map,
                      int columns, sl_dtype dtype) {
  const ptrdiff_t dim[4] = { s->layers, s->heads, s->tokens, columns };
  sl_error e;
  sl_tensor *t = sl_tensor_new (dtype, 4, dim, &e);
  if (t == NULL) sl_lua_raise (L, &e);
  sl_tensor_from_doubles (t, (size_t)(dim[0] * dim[1] * dim[2] * dim[3]), map,
                          &e);
  sl_lua_push_tensor (L, t);
}

/* measure_sinks { program =, inputs = { }, batch = { }, layers =, heads =,
** tokens =, trigger = tensor or nil (from 0, negative: none), length = tensor
** or nil, output = { W_O, ... } or nil, maps = false, threshold = 0.3, dtype =
** of the maps, "f64", prefix = 0 (keys before the tokens in every attention),
** registers = 0 (tokens before those of the batch), null_mass = false (what
** weights leave is mass on nothing) }
** -> { samples, threshold, heads = { { layer =, head =, first_mean =, ... },
**      ... }; with maps: mean, std = tensors (layers, heads, query, key),
**      outside = mean mass on nothing, then on every key before the tokens:
**      (layers, heads, query, 1 + prefix + registers) } */
static int measure_sinks (lua_State *L) {
  static const char *const keys[] = {
    "program", "inputs",    "batch",     "layers", "heads",     "tokens",
    "trigger", "length",    "output",    "maps",   "threshold", "dtype",
    "prefix",  "registers", "null_mass", NULL
  };
  sl_sinks_spec spec = { 0 };
  sl_sinks **found;
  sl_dtype dtype;
  sl_error e;
  int n;
  luaL_checktype (L, 1, LUA_TTABLE);
  luaL_checkstack (L, 40, what);
  lua_settop (L, 1);
  sl_lua_known (L, 1, what, keys);
  if (get (L, 1, "program") != LUA_TUSERDATA) {
    sl_fail (&e, "%s.program: expected a program, got %s", what,
             luaL_typename (L, -1));
    return sl_lua_raise (L, &e);
  }
  spec.program = sl_lua_check_program (L, lua_gettop (L));
  spec.inputs = get_list (L, 1, "inputs", &spec.n_inputs);
  spec.batch = (const sl_tensor *const *)get_list (L, 1, "batch", &n);
  if (n != spec.n_inputs || n < 1 || spec.batch[0]->ndim < 1) {
    sl_fail (&e,
             "%s: %d inputs and %d tensors of a batch, allowed is one with "
             "samples on its first axis for each of 1 or more inputs",
             what, spec.n_inputs, n);
    return sl_lua_raise (L, &e);
  }
  spec.layers = get_count (L, 1, "layers");
  spec.heads = get_count (L, 1, "heads");
  spec.tokens = get_count (L, 1, "tokens");
  spec.trigger = get_labels (L, 1, "trigger", spec.batch[0]->dim[0]);
  spec.length = get_labels (L, 1, "length", spec.batch[0]->dim[0]);
  spec.output = (const sl_tensor *const *)get_list (L, 1, "output", &n);
  if (spec.output != NULL && n != spec.layers) {
    sl_fail (&e, "%s.output: %d matrices for %d layers", what, n, spec.layers);
    return sl_lua_raise (L, &e);
  }
  spec.prefix = get_extra (L, 1, "prefix");
  spec.registers = get_extra (L, 1, "registers");
  spec.null_mass = sl_lua_boolean (L, 1, what, "null_mass", 0);
  spec.maps = sl_lua_boolean (L, 1, what, "maps", 0);
  spec.threshold = sl_lua_number (L, 1, what, "threshold", 0.3);
  if (sl_dtype_parse (sl_lua_string (L, 1, what, "dtype", "f64"), &dtype, &e) <
      0)
    return sl_lua_raise (L, &e);
  found = lua_newuserdatauv (L, sizeof *found, 0);
  *found = NULL;
  luaL_setmetatable (L, FOUND);
  lua_toclose (L, -1);
  *found = sl_sinks_measure (sl_lua_context (L), &spec, &e);
  if (*found == NULL) return sl_lua_raise (L, &e);

  lua_createtable (L, 0, 5);
  lua_pushinteger (L, (*found)->samples);
  lua_setfield (L, -2, "samples");
  lua_pushnumber (L, (*found)->threshold);
  lua_setfield (L, -2, "threshold");
  push_heads (L, *found);
  lua_setfield (L, -2, "heads");
  if (spec.maps) {
    push_map (L, *found, (*found)->mean, (*found)->tokens, dtype);
    lua_setfield (L, -2, "mean");
    push_map (L, *found, (*found)->std, (*found)->tokens, dtype);
    lua_setfield (L, -2, "std");
    push_map (L, *found, (*found)->outside, (*found)->extra, dtype);
    lua_setfield (L, -2, "outside");
  }
  return 1;
}

void sl_lua_open_sinks (lua_State *L) {
  luaL_newmetatable (L, FOUND);
  lua_pushcfunction (L, release);
  lua_setfield (L, -2, "__gc");
  lua_pushcfunction (L, release);
  lua_setfield (L, -2, "__close");
  lua_pop (L, 1);
  lua_pushcfunction (L, measure_sinks);
  lua_setfield (L, -2, "measure_sinks");
}
