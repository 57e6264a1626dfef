/* lua_hidden.c - measurements of the residual stream. */
#include "lua/lua_sinks.h"
#include "sinks/hidden.h"

#define HIDDEN "sinklab.hidden"
#define FOUND "sinklab.hidden_found"

typedef struct box {
  sl_hidden *hidden; /* NULL: finished */
} box;

static box *check_box (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, HIDDEN);
  if (b->hidden == NULL) sl_lua_fail (L, "hidden: it has been finished");
  return b;
}

static int free_box (lua_State *L) {
  box *b = sl_lua_check_object (L, 1, HIDDEN);
  sl_hidden_free (b->hidden);
  b->hidden = NULL;
  return 0;
}

static int free_found (lua_State *L) {
  sl_hidden_result **found = sl_lua_check_object (L, 1, FOUND);
  sl_hidden_result_free (*found);
  *found = NULL;
  return 0;
}

/* hidden_measures { layers =, tokens =, samples = 1, length =, start =,
** documents =, and the options of lab.sinks.hidden } */
static int hidden_measures (lua_State *L) {
  static const char what[] = "hidden_measures";
  sl_hidden_spec spec = { 0 };
  sl_measuring m;
  sl_dtype dtype;
  sl_error e;
  box *b;
  sl_lua_check_type (L, 1, LUA_TTABLE);
  luaL_checkstack (L, 40, what);
  lua_settop (L, 1);
  b = lua_newuserdatauv (L, sizeof *b, 1);
  *b = (box){ 0 };
  luaL_setmetatable (L, HIDDEN);
  lua_newtable (L); /* 3: keeps arrays alive */
  spec.samples = (long)sl_lua_integer (L, 1, what, "samples", 1);
  if (spec.samples < 1 || spec.samples > UINT32_MAX)
    return sl_lua_fail (L, "%s.samples: got %ld, allowed is 1 to 2^32 - 1",
                        what, spec.samples);
  sl_lua_read_measuring (L, 1, 3, what, spec.samples, &m, &dtype);
  spec.layers = m.layers;
  spec.tokens = m.tokens;
  spec.labels = m.labels;
  spec.massive = sl_lua_number (L, 1, what, "massive", 0);
  spec.ratio = sl_lua_number (L, 1, what, "ratio", 0);
  spec.similar = sl_lua_number (L, 1, what, "similar", 0);
  spec.noise = sl_lua_number (L, 1, what, "noise", 0);
  spec.bos = sl_lua_number (L, 1, what, "bos", 0);
  lua_setiuservalue (L, 2, 1);
  b->hidden = sl_hidden_new (&spec, &e);
  return b->hidden ? 1 : sl_lua_raise (L, &e);
}

/* hidden:add (layer, states (b, t, d), first sample = 1) */
static int add (lua_State *L) {
  box *b = check_box (L);
  const lua_Integer layer = sl_lua_check_integer (L, 2);
  const sl_tensor *x = sl_lua_check_tensor (L, 3);
  const lua_Integer first = sl_lua_opt_integer (L, 4, 1);
  sl_error e;
  sl_lua_argument (L, layer >= 0 && layer < INT32_MAX, 2, "out of range");
  sl_lua_argument (L, first >= 1 && first <= UINT32_MAX, 4, "out of range");
  if (sl_hidden_add (b->hidden, (int)layer, (long)first - 1, x, &e) < 0)
    return sl_lua_raise (L, &e);
  return 0;
}

static void set_number (lua_State *L, const char *name, double x) {
  lua_pushnumber (L, x);
  lua_setfield (L, -2, name);
}

static void set_integer (lua_State *L, const char *name, long n) {
  lua_pushinteger (L, n);
  lua_setfield (L, -2, name);
}

static void push_state (lua_State *L, const sl_state *s, int layer) {
  lua_createtable (L, 0, 16);
  set_integer (L, "layer", layer);
  set_number (L, "first_norm", s->first_norm);
  set_number (L, "other_norm", s->other_norm);
  set_number (L, "peak", s->peak);
  set_number (L, "max_norm", s->max_norm);
  set_number (L, "largest_max_norm", s->max_norm_all);
  set_number (L, "kurtosis", s->kurtosis);
  set_number (L, "channel_kurtosis", s->channel_kurtosis);
  set_number (L, "median", s->median);
  set_number (L, "massive", s->massive);
  set_integer (L, "sequences", s->sequences);
  set_integer (L, "segments", s->segments);
  lua_createtable (L, SL_TOP, 0);
  for (int i = 0; i < SL_TOP && s->top[i].position; i++) {
    lua_createtable (L, 0, 4);
    set_number (L, "value", s->top[i].value);
    set_integer (L, "sample", s->top[i].sample + 1);
    set_integer (L, "position", s->top[i].position);
    set_integer (L, "channel", s->top[i].channel);
    lua_rawseti (L, -2, i + 1);
  }
  lua_setfield (L, -2, "top");
}

static void push_secondary (lua_State *L, const sl_hidden_result *r) {
  static const char *const kinds[] = { "noise", "secondary", "bos" };
  lua_createtable (L, r->secondaries < 1 << 20 ? (int)r->secondaries : 1 << 20,
                   8);
  for (long i = 0; i < r->secondaries; i++) {
    const sl_secondary *s = &r->secondary[i];
    lua_createtable (L, 0, 5);
    set_integer (L, "sample", s->sample + 1);
    set_integer (L, "position", s->position);
    set_integer (L, "lifetime", s->lifetime);
    set_integer (L, "layer", s->first);
    lua_pushstring (L, kinds[s->kind]);
    lua_setfield (L, -2, "kind");
    lua_rawseti (L, -2, i + 1);
  }
  for (int k = 0; k < 3; k++)
    set_integer (L, kinds[k], r->secondary_of_kind[k]);
  set_integer (L, "anchor", r->anchor);
  set_integer (L, "first_layer", r->window_first);
  set_integer (L, "last_layer", r->window_last);
}

/* hidden:finish () -> { states = { { layer = 0, first_norm =, ... }, ... },
** norms = tensor (1 + layers, tokens), secondary = { { sample =, position =,
** lifetime =, layer =, kind = }, ..., noise =, secondary =, bos = counts,
** anchor =, first_layer =, last_layer = } } */
static int finish (lua_State *L) {
  box *b = check_box (L);
  sl_hidden_result **found;
  ptrdiff_t dim[2];
  sl_tensor *norms;
  sl_error e;
  lua_settop (L, 1);
  found = lua_newuserdatauv (L, sizeof *found, 0);
  *found = NULL;
  luaL_setmetatable (L, FOUND);
  lua_toclose (L, -1);
  *found = sl_hidden_finish (b->hidden, &e);
  sl_hidden_free (b->hidden);
  b->hidden = NULL;
  if (*found == NULL) return sl_lua_raise (L, &e);
  lua_createtable (L, 0, 3);
  lua_createtable (L, (*found)->layers + 1, 0);
  for (int l = 0; l <= (*found)->layers; l++) {
    push_state (L, &(*found)->state[l], l);
    lua_rawseti (L, -2, l + 1);
  }
  lua_setfield (L, -2, "states");
  dim[0] = (*found)->layers + 1;
  dim[1] = (*found)->tokens;
  norms = sl_tensor_new (SL_F64, 2, dim, &e);
  if (norms == NULL) return sl_lua_raise (L, &e);
  sl_tensor_from_doubles (norms, (size_t)(dim[0] * dim[1]), (*found)->norm, &e);
  sl_lua_push_tensor (L, norms);
  lua_setfield (L, -2, "norms");
  push_secondary (L, *found);
  lua_setfield (L, -2, "secondary");
  return 1;
}

void sl_lua_open_hidden (lua_State *L) {
  static const luaL_Reg methods[] = { { "add", add },
                                      { "finish", finish },
                                      { NULL, NULL } };
  static const luaL_Reg meta[] = { { "__gc", free_box }, { NULL, NULL } };
  static const luaL_Reg found[] = { { "__gc", free_found },
                                    { "__close", free_found },
                                    { NULL, NULL } };
  sl_lua_class (L, FOUND, found, NULL);
  sl_lua_class (L, HIDDEN, meta, methods);
  lua_pushcfunction (L, hidden_measures);
  lua_setfield (L, -2, "hidden_measures");
}
