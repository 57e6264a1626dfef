/* lua_sinks.c - attention sinks, measured: of a program over a batch, or of
** attention that runs at once. */
#include "lua/lua_sinks.h"
#include "sinks/collect.h"

#define FOUND "sinklab.measured"
#define COLLECTOR "sinklab.sink_collector"

/* What was measured, owned until it has been turned into tables. */
static int release (lua_State *L) {
  sl_sinks **found = sl_lua_check_object (L, 1, FOUND);
  sl_sinks *s = *found;
  *found = NULL;
  sl_sinks_free (s);
  return 0;
}

static sl_sinks **new_found (lua_State *L) {
  sl_sinks **found = lua_newuserdatauv (L, sizeof *found, 0);
  *found = NULL;
  luaL_setmetatable (L, FOUND);
  lua_toclose (L, -1);
  return found;
}

/* The tensors of a list, in a userdata that is pushed; NULL for nil. The table
** of options keeps them alive. */
static sl_tensor **get_list (lua_State *L, int index, const char *what,
                             const char *key, int *n) {
  sl_tensor **list;
  int type, table;
  lua_pushstring (L, key);
  type = lua_rawget (L, index);
  table = lua_gettop (L);
  *n = 0;
  if (type == LUA_TNIL) return NULL;
  if (type != LUA_TTABLE || lua_rawlen (L, table) > 4096)
    sl_lua_fail (L, "%s.%s: expected a list of at most 4096 tensors, got %s",
                 what, key, luaL_typename (L, table));
  *n = (int)lua_rawlen (L, table);
  list = lua_newuserdatauv (L, (size_t)(*n + 1) * sizeof *list, 0);
  for (int i = 0; i < *n; i++) {
    lua_rawgeti (L, table, i + 1);
    list[i] = sl_lua_field_tensor (L, what, key, i + 1);
    lua_pop (L, 1);
  }
  return list;
}

/* measure_sinks { program =, inputs = { }, batch = { }, output = { W_O, ... }
** or nil, layers =, heads =, tokens =, group =, groups =, virtual_keys = 0,
** registers = 0, null_mass = false, dtype = of the maps, "f64", and the options
** of lab.sinks }
** -> { samples, tokens, threshold, heads = { { layer =, head =, first_mean =,
**      ... }, ... }; with maps: mean, std = tensors (layers, heads, query, key)
**      and null_mass_map = mean mass on nothing, then on every key before the
**      tokens: (layers, heads, query, 1 + virtual_keys + registers); with keep:
**      kept = a list of the same a head; column, ... = tensors (layers, heads,
**      position) }
*/
static int measure_sinks (lua_State *L) {
  static const char what[] = "lab.sinks";
  sl_sinks_spec spec = { 0 };
  sl_sinks **found;
  sl_dtype dtype;
  sl_error e;
  int n;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  luaL_checkstack (L, 40, what);
  lua_settop (L, 1);
  lua_newtable (L); /* 2: keeps arrays alive */
  lua_pushliteral (L, "program");
  lua_rawget (L, 1);
  spec.program = sl_lua_field_program (L, what);
  spec.inputs = get_list (L, 1, what, "inputs", &spec.n_inputs);
  spec.batch = (const sl_tensor *const *)get_list (L, 1, what, "batch", &n);
  if (n != spec.n_inputs || n < 1 || spec.batch[0]->ndim < 1)
    return sl_lua_fail (
        L,
        "%s: %d inputs and %d tensors of a batch, allowed is one with "
        "samples on its first axis for each of 1 or more inputs",
        what, spec.n_inputs, n);
  sl_lua_read_measuring (L, 1, 2, what, (long)spec.batch[0]->dim[0],
                         &spec.measuring, &dtype);
  spec.measuring.output =
      (const sl_tensor *const *)get_list (L, 1, what, "output", &n);
  if (spec.measuring.output != NULL && n != spec.measuring.layers)
    return sl_lua_fail (L, "%s.output: %d matrices for %d layers", what, n,
                        spec.measuring.layers);
  found = new_found (L);
  *found = sl_sinks_measure (sl_lua_context (L), &spec, &e);
  if (*found == NULL) return sl_lua_raise (L, &e);
  sl_lua_push_sinks (L, *found, &spec.measuring, dtype);
  return 1;
}

/* row_classes { samples =, tokens =, trigger =, length =, start =, documents =
** } -> (samples, tokens): 0 plain, 1 first, 2 trigger, 3 boundary, 4 padded. */
static int row_classes (lua_State *L) {
  static const char what[] = "row_classes";
  sl_measuring m;
  sl_dtype dtype;
  sl_tensor *t;
  sl_error e;
  ptrdiff_t dim[2];
  double *x;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  luaL_checkstack (L, 40, what);
  lua_settop (L, 1);
  lua_newtable (L); /* 2: keeps arrays alive */
  dim[0] = (ptrdiff_t)sl_lua_integer (L, 1, what, "samples", 1);
  sl_lua_read_measuring (L, 1, 2, what, (long)dim[0], &m, &dtype);
  dim[1] = m.tokens;
  t = sl_tensor_new (SL_F64, 2, dim, &e);
  if (t == NULL) return sl_lua_raise (L, &e);
  sl_lua_push_tensor (L, t);
  if (sl_measuring_check (&m, (long)dim[0], &e) < 0)
    return sl_lua_raise (L, &e);
  x = (double *)t->storage->data + t->offset;
  sl_row_classes (&m, (long)dim[0], x);
  return 1;
}

/* ---- a collector ---- */

typedef struct box {
  sl_collector *collector; /* NULL: finished */
  sl_measuring measuring;  /* its arrays are in the first user value */
  sl_dtype dtype;
  long samples, batch; /* in all, at most at once */
  int watching;
  long failed; /* sample whose watching ended early, from 1; 0: none */
} box;

static box *check_box (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, COLLECTOR);
  if (b->collector == NULL)
    sl_lua_fail (L, "sink_collector: it has been finished");
  return b;
}

static void stop_watching (lua_State *L, box *b) {
  if (b->watching) sl_lua_context (L)->observer = NULL;
  b->watching = 0;
}

static int free_box (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, COLLECTOR);
  stop_watching (L, b);
  sl_collect_free (b->collector);
  b->collector = NULL;
  return 0;
}

/* sink_collector { samples =, batch = 1 (sequences of one call), and what
** measure_sinks takes but the program's } -> collector of attention that runs
** at once. */
static int sink_collector (lua_State *L) {
  static const char what[] = "lab.sinks.collect";
  sl_collect_spec spec = { .parts = 1, .calls = 1 };
  box *b;
  sl_error e;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  luaL_checkstack (L, 40, what);
  lua_settop (L, 1);
  b = lua_newuserdatauv (L, sizeof *b, 2);
  *b = (box){ 0 };
  luaL_setmetatable (L, COLLECTOR);
  lua_newtable (L);
  b->samples = (long)sl_lua_integer (L, 1, what, "samples", 1);
  b->batch = (long)sl_lua_integer (L, 1, what, "batch", 1);
  if (b->samples < 1 || b->batch < 1 || b->samples > UINT32_MAX ||
      b->batch > b->samples)
    return sl_lua_fail (
        L,
        "%s: %ld samples, %ld at once; allowed is 1 to 2^32 - 1, and not "
        "more at once than in all",
        what, b->samples, b->batch);
  sl_lua_read_measuring (L, 1, 3, what, b->samples, &b->measuring, &b->dtype);
  lua_setiuservalue (L, 2, 1);
  if (sl_measuring_check (&b->measuring, b->samples, &e) < 0)
    return sl_lua_raise (L, &e);
  spec.measuring = b->measuring;
  spec.samples = b->samples;
  spec.shard = b->batch;
  b->collector = sl_collect_new (&spec, &e);
  if (b->collector == NULL) return sl_lua_raise (L, &e);
  return 1;
}

/* A place 1 .. most, from 0. */
static long index_argument (lua_State *L, int arg, long most) {
  const lua_Integer n = sl_lua_check_integer (L, arg);
  sl_lua_argument (L, n >= 1 && n <= most, arg, "out of range");
  return (long)n - 1;
}

/* collector:begin (sample, n, layer, head): from now on attention that runs at
** once is watched: n sequences from 'sample' on, the calls being those of
** 'layer' and the ones above, with heads from 'head' on. */
static int collector_begin (lua_State *L) {
  box *b = check_box (L);
  sl_context *c = sl_lua_context (L);
  const long first = index_argument (L, 2, b->samples);
  const long n = index_argument (L, 3, b->batch) + 1;
  const int layer = (int)index_argument (L, 4, b->measuring.layers);
  const int head = (int)index_argument (L, 5, b->measuring.heads);
  if (c->observer != NULL)
    return sl_lua_fail (L, "sink_collector: another one is watching already");
  sl_lua_argument (L, first + n <= b->samples, 3,
                   "more than there are samples");
  sl_collect_begin (b->collector, 0, first, n);
  sl_collect_calls (b->collector, 0, layer, head);
  c->observer = (void *)(uintptr_t)sl_collect_observer (b->collector, 0);
  c->applied = 0;
  b->watching = 1;
  return 0;
}

/* collector:done (sample that ended early or nil): no more is watched, every
** W_O is forgotten. What was begun and not ended cannot be taken back, so
** finish will refuse. */
static int collector_done (lua_State *L) {
  box *b = check_box (L);
  if (b->failed == 0) b->failed = (long)sl_lua_opt_integer (L, 2, 0);
  stop_watching (L, b);
  sl_collect_end (b->collector, 0);
  for (int l = 0; l < b->measuring.layers; l++)
    sl_collect_output (b->collector, l, NULL, NULL);
  lua_pushnil (L);
  lua_setiuservalue (L, 1, 2);
  return 0;
}

/* collector:output (layer, W_O or nil): until done, which lets go of it. */
static int collector_output (lua_State *L) {
  box *b = check_box (L);
  const int layer = (int)index_argument (L, 2, b->measuring.layers);
  const sl_tensor *w = sl_lua_opt_tensor (L, 3);
  sl_error e;
  if (sl_collect_output (b->collector, layer, w, &e) < 0)
    return sl_lua_raise (L, &e);
  if (lua_getiuservalue (L, 1, 2) != LUA_TTABLE) {
    lua_pop (L, 1);
    lua_newtable (L);
    lua_pushvalue (L, -1);
    lua_setiuservalue (L, 1, 2);
  }
  lua_pushvalue (L, 3);
  lua_rawseti (L, -2, layer + 1);
  return 0;
}

/* collector:finish () -> what measure_sinks returns. */
static int collector_finish (lua_State *L) {
  box *b = check_box (L);
  sl_error e;
  sl_sinks **found;
  if (b->failed > 0)
    return sl_lua_fail (
        L,
        "sinks: watching sample %ld ended with an error, so a part of it is "
        "missing",
        b->failed);
  lua_settop (L, 1);
  found = new_found (L);
  *found = sl_collect_finish (b->collector, &e);
  stop_watching (L, b);
  sl_collect_free (b->collector);
  b->collector = NULL;
  if (*found == NULL) return sl_lua_raise (L, &e);
  sl_lua_push_sinks (L, *found, &b->measuring, b->dtype);
  return 1;
}

/* { name = its group: "rows", "columns", ... } of all measures of heads. */
static void push_measures (lua_State *L) {
  sl_measure m;
  lua_newtable (L);
  for (int i = 0; (m = sl_row_measure_of (i)).name != NULL; i++) {
    lua_pushstring (L, sl_measure_group_name (m.group));
    lua_setfield (L, -2, m.name);
  }
  for (int i = 0; (m = sl_segment_measure_of (i)).name != NULL; i++) {
    lua_pushstring (L, sl_measure_group_name (m.group));
    lua_setfield (L, -2, m.name);
  }
}

void sl_lua_open_sinks (lua_State *L) {
  static const luaL_Reg methods[] = { { "begin", collector_begin },
                                      { "done", collector_done },
                                      { "output", collector_output },
                                      { "finish", collector_finish },
                                      { NULL, NULL } };
  static const luaL_Reg meta[] = { { "__gc", free_box }, { NULL, NULL } };
  static const luaL_Reg found[] = { { "__gc", release },
                                    { "__close", release },
                                    { NULL, NULL } };
  sl_lua_class (L, FOUND, found, NULL);
  sl_lua_class (L, COLLECTOR, meta, methods);
  lua_pushcfunction (L, measure_sinks);
  lua_setfield (L, -2, "measure_sinks");
  lua_pushcfunction (L, sink_collector);
  lua_setfield (L, -2, "sink_collector");
  lua_pushcfunction (L, row_classes);
  lua_setfield (L, -2, "row_classes");
  push_measures (L);
  lua_setfield (L, -2, "sink_measures");
}
