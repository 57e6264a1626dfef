/* lua_sinks_read.c - the options of a measurement, read from a Lua table that
** scripts/sinklab/measure has checked and filled. */
#include "lua/lua_sinks.h"
#include <string.h>

/* Where the options are and what keeps their arrays alive. */
typedef struct reader {
  lua_State *L;
  int index, anchor;
  const char *what;
  long samples;
} reader;

static int get (const reader *r, const char *key) {
  lua_pushstring (r->L, key);
  return lua_rawget (r->L, r->index);
}

/* Room that lives as long as the anchor. */
static void *room (const reader *r, size_t count, size_t size) {
  void *p = lua_newuserdatauv (r->L, (count + 1) * size, 0);
  luaL_ref (r->L, r->anchor);
  return p;
}

/* Numbers in double, one a sample or, *wide becomes 1, one a token of it; NULL
** for nil. wide NULL: one a sample only. */
static const double *labels (const reader *r, const char *key, int tokens,
                             int *wide) {
  const sl_tensor *t;
  double *x;
  char text[128];
  size_t count;
  int is_wide;
  if (get (r, key) == LUA_TNIL) {
    lua_pop (r->L, 1);
    return NULL;
  }
  t = sl_lua_field_tensor (r->L, r->what, key, 0);
  is_wide = t->ndim == 2 && t->dim[1] == tokens;
  if (t->ndim < 1 || t->dim[0] != r->samples ||
      !(t->ndim == 1 || (wide && is_wide)))
    sl_lua_fail (r->L,
                 "%s.%s: expected shape (%ld)%s, one number a sample%s, got %s",
                 r->what, key, r->samples, wide ? " or (samples, tokens)" : "",
                 wide ? " or token" : "",
                 sl_shape_text (t->ndim, t->dim, text, sizeof text));
  if (wide) *wide = is_wide;
  count = (size_t)r->samples * (is_wide ? (size_t)tokens : 1);
  x = room (r, count, sizeof *x);
  sl_tensor_to_doubles (t, x);
  lua_pop (r->L, 1);
  return x;
}

static int integer (const reader *r, const char *key, lua_Integer def,
                    lua_Integer least, lua_Integer most, const char *range) {
  const lua_Integer n = sl_lua_integer (r->L, r->index, r->what, key, def);
  if (n < least || n > most)
    sl_lua_fail (r->L, "%s.%s: got %lld, allowed is %s", r->what, key,
                 (long long)n, range);
  return (int)n;
}

/* Length of the list at key, on top of the stack; 0 (and nil there) without. */
static int list (const reader *r, const char *key, int most) {
  const int type = get (r, key);
  if (type == LUA_TNIL) return 0;
  if (type != LUA_TTABLE || lua_rawlen (r->L, -1) > (size_t)most)
    sl_lua_fail (r->L, "%s.%s: expected a list of at most %d, got %s", r->what,
                 key, most, luaL_typename (r->L, -1));
  return (int)lua_rawlen (r->L, -1);
}

static void read_thresholds (const reader *r, sl_measuring *m) {
  const int n = list (r, "thresholds", SL_MOST_THRESHOLDS);
  double *curve = room (r, (size_t)n, sizeof *curve);
  for (int i = 0; i < n; i++) {
    int is_number;
    lua_rawgeti (r->L, -1, i + 1);
    curve[i] = lua_tonumberx (r->L, -1, &is_number);
    if (!is_number)
      sl_lua_fail (r->L, "%s.thresholds[%d]: expected a number, got %s",
                   r->what, i + 1, luaL_typename (r->L, -1));
    lua_pop (r->L, 1);
  }
  lua_pop (r->L, 1);
  m->thresholds = n;
  m->curve = curve;
}

/* One of { layer, head }, counted from 1. */
static int pair (lua_State *L, int i) {
  int is_number;
  const lua_Integer n =
      (lua_rawgeti (L, -1, i), lua_tointegerx (L, -1, &is_number));
  lua_pop (L, 1);
  return is_number && n >= 1 && n <= INT32_MAX ? (int)n - 1 : -1;
}

static void read_keep (const reader *r, sl_measuring *m) {
  const int n = list (r, "keep", 1 << 20);
  sl_head_name *keep = room (r, (size_t)n, sizeof *keep);
  for (int i = 0; i < n; i++) {
    if (lua_rawgeti (r->L, -1, i + 1) != LUA_TTABLE)
      sl_lua_fail (r->L, "%s.keep[%d]: expected { layer, head }, got %s",
                   r->what, i + 1, luaL_typename (r->L, -1));
    keep[i] = (sl_head_name){ pair (r->L, 1), pair (r->L, 2) };
    lua_pop (r->L, 1);
  }
  lua_pop (r->L, 1);
  m->keeps = n;
  m->keep = keep;
}

static void read_measures (const reader *r, sl_measuring *m) {
  const int n = list (r, "measures", 64);
  for (int i = 0; i < n; i++) {
    const char *name = (lua_rawgeti (r->L, -1, i + 1), lua_tostring (r->L, -1));
    unsigned group = SL_MEASURE_LOGITS;
    while (group > 0 &&
           (name == NULL || strcmp (sl_measure_group_name (group), name) != 0))
      group /= 2;
    if (group == 0)
      sl_lua_fail (r->L,
                   "%s.measures[%d]: '%s'; expected columns, share, norms or "
                   "logits",
                   r->what, i + 1, name ? name : luaL_typename (r->L, -1));
    m->measures |= group;
    lua_pop (r->L, 1);
  }
  lua_pop (r->L, 1);
}

static void read_labels (const reader *r, sl_measuring *m) {
  sl_labels *l = &m->labels;
  int wide = 0;
  l->trigger = labels (r, "trigger", m->tokens, &l->trigger_wide);
  l->length = labels (r, "length", m->tokens, NULL);
  l->start = labels (r, "start", m->tokens, NULL);
  l->documents = labels (r, "documents", m->tokens, &wide);
  if (l->documents && !wide)
    sl_lua_fail (r->L, "%s.documents: expected a number for each of %d tokens",
                 r->what, m->tokens);
  l->group = labels (r, "group", m->tokens, &l->group_wide);
  l->groups = integer (r, "groups", l->group ? 1 : 0, l->group ? 1 : 0,
                       l->group ? 1 << 20 : 0, l->group ? "1 to 2^20" : "none");
}

void sl_lua_read_measuring (lua_State *L, int index, int anchor,
                            const char *what, long samples, sl_measuring *m,
                            sl_dtype *dtype) {
  const reader r = { L, index, anchor, what, samples };
  const char *const count = "1 to 2^24", *const extra = "0 to 2^16";
  sl_error e;
  *m = (sl_measuring){ 0 };
  m->layers = integer (&r, "layers", 0, 1, 1 << 24, count);
  m->heads = integer (&r, "heads", 0, 1, 1 << 24, count);
  m->tokens = integer (&r, "tokens", 0, 1, 1 << 24, count);
  m->virtual_keys = integer (&r, "virtual_keys", 0, 0, 1 << 16, extra);
  m->registers = integer (&r, "registers", 0, 0, 1 << 16, extra);
  /* Hidden states have no rows of weights: there these stay at values that pass.
  ** The defaults for attention are the schema's. */
  m->share_rows = integer (&r, "share_rows", 1, 1, 1 << 24, count);
  m->null_mass = sl_lua_boolean (L, index, what, "null_mass", 0);
  m->maps = sl_lua_boolean (L, index, what, "maps", 0);
  m->threshold = sl_lua_number (L, index, what, "threshold", 0);
  m->dormant = sl_lua_number (L, index, what, "dormant", 0);
  read_labels (&r, m);
  read_thresholds (&r, m);
  read_keep (&r, m);
  read_measures (&r, m);
  if (sl_dtype_parse (sl_lua_string (L, index, what, "dtype", "f64"), dtype,
                      &e) < 0)
    sl_lua_raise (L, &e);
}
