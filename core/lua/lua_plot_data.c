/* lua_plot_data.c - the data of a panel: numbers, names, ranges and ticks. */
#include "lua/lua_plot_data.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int sl_lua_raw_field (lua_State *L, int index, const char *key) {
  lua_pushstring (L, key);
  return lua_rawget (L, index);
}

/* ---- numbers: tensors or tables, copied into userdata on the stack ---- */

static double *scratch (lua_State *L, size_t count) {
  if (count > SIZE_MAX / 2 / sizeof (double))
    luaL_error (L, "not enough memory");
  return lua_newuserdatauv (L, (count ? count : 1) * sizeof (double), 0);
}

static sl_tensor *tensor_at (lua_State *L, int index, const char *what) {
  sl_tensor **box = luaL_testudata (L, index, SL_LUA_TENSOR);
  if (box && !*box) sl_lua_fail (L, "%s: this tensor has been closed", what);
  return box ? *box : NULL;
}

/* The numbers of the list at the top of the stack, into 'out'. */
static void take_numbers (lua_State *L, size_t n, double *out,
                          const char *what) {
  for (size_t i = 0; i < n; i++) {
    if (lua_rawgeti (L, -1, (lua_Integer)i + 1) != LUA_TNUMBER)
      sl_lua_fail (L, "%s[%zu]: expected a number, got %s", what, i + 1,
                   luaL_typename (L, -1));
    out[i] = lua_tonumber (L, -1);
    lua_pop (L, 1);
  }
}

/* Field 'key' as a matrix; pushes the field and the copy. */
const double *sl_lua_matrix (lua_State *L, int index, const char *what,
                             const char *key, size_t *rows, size_t *cols) {
  char name[160], row[200];
  double *data;
  sl_tensor *t;
  sl_lua_raw_field (L, index, key);
  snprintf (name, sizeof name, "%s.%s", what, key);
  t = tensor_at (L, -1, name);
  if (t) {
    char shape[128];
    if (t->ndim != 2)
      sl_lua_fail (L,
                   "%s: expected a sl_lua_matrix (queries, keys), got a tensor "
                   "of shape %s",
                   name, sl_shape_text (t->ndim, t->dim, shape, sizeof shape));
    *rows = (size_t)t->dim[0], *cols = (size_t)t->dim[1];
    data = scratch (L, *rows * *cols);
    sl_tensor_to_doubles (t, data);
    return data;
  }
  if (!lua_istable (L, -1))
    sl_lua_fail (L, "%s: expected a tensor or a table of rows, got %s", name,
                 luaL_typename (L, -1));
  *rows = lua_rawlen (L, -1), *cols = 0;
  if (*rows > 0 && lua_rawgeti (L, -1, 1) == LUA_TTABLE)
    *cols = lua_rawlen (L, -1);
  lua_settop (L, lua_gettop (L) - (*rows > 0));
  if (*cols > 0 && *rows > SIZE_MAX / *cols)
    luaL_error (L, "not enough memory");
  data = scratch (L, *rows * *cols);
  for (size_t r = 0; r < *rows; r++) {
    snprintf (row, sizeof row, "%s[%zu]", name, r + 1);
    if (lua_rawgeti (L, -2, (lua_Integer)r + 1) != LUA_TTABLE)
      sl_lua_fail (L, "%s: expected a row of numbers, got %s", row,
                   luaL_typename (L, -1));
    if (lua_rawlen (L, -1) != *cols)
      sl_lua_fail (L, "%s has %zu numbers, but the first row has %zu", row,
                   (size_t)lua_rawlen (L, -1), *cols);
    take_numbers (L, *cols, data + r * *cols, row);
    lua_pop (L, 1);
  }
  return data;
}

/* Field 'key' as a list of *n numbers (*n 0: any number of them, which is
** set), or NULL for nil; pushes the field and the copy. */
const double *sl_lua_list (lua_State *L, int index, const char *what,
                           const char *key, size_t *n) {
  char name[160];
  size_t count;
  double *data;
  sl_tensor *t;
  luaL_checkstack (L, 8, "series");
  if (sl_lua_raw_field (L, index, key) == LUA_TNIL) return NULL;
  snprintf (name, sizeof name, "%s.%s", what, key);
  t = tensor_at (L, -1, name);
  if (t && t->ndim != 1) {
    char shape[128];
    sl_lua_fail (L, "%s: expected a tensor of one axis, got shape %s", name,
                 sl_shape_text (t->ndim, t->dim, shape, sizeof shape));
  }
  if (!t && !lua_istable (L, -1))
    sl_lua_fail (L, "%s: expected a tensor or a list of numbers, got %s", name,
                 luaL_typename (L, -1));
  count = t ? (size_t)t->dim[0] : lua_rawlen (L, -1);
  if (*n > 0 && count != *n)
    sl_lua_fail (L, "%s has %zu numbers, but the series has %zu points", name,
                 count, *n);
  if (count == 0) sl_lua_fail (L, "%s is empty", name);
  *n = count;
  data = scratch (L, count);
  if (t)
    sl_tensor_to_doubles (t, data);
  else {
    lua_pushvalue (L, -2);
    take_numbers (L, count, data, name);
    lua_pop (L, 1);
  }
  return data;
}

/* Both ends of a range: left free, given, or ("data", or one of two missing)
** from the data. */
void sl_lua_range (lua_State *L, int index, const char *what, const char *low,
                   const char *high, double *min, double *max) {
  const char *key[2] = { low, high };
  double *end[2] = { min, max };
  int given = 0;
  for (int i = 0; i < 2; i++) {
    int type = sl_lua_raw_field (L, index, key[i]);
    *end[i] = NAN;
    given += type != LUA_TNIL;
    if (type == LUA_TNUMBER)
      *end[i] = lua_tonumber (L, -1);
    else if (type != LUA_TNIL && (type != LUA_TSTRING ||
                                  strcmp (lua_tostring (L, -1), "data") != 0))
      sl_lua_fail (
          L, "%s.%s: expected a number or \"data\", got %s", what, key[i],
          type == LUA_TSTRING ? lua_tostring (L, -1) : luaL_typename (L, -1));
    lua_pop (L, 1);
  }
  if (given == 0) *min = *max = 0;
  if (given == 2 && *min >= *max)
    sl_lua_fail (L, "%s: %s is %g and %s is %g: the first must be smaller",
                 what, low, *min, high, *max);
}

/* A list of strings, kept alive on the stack; *n 0 for nil. */
const char *const *sl_lua_names (lua_State *L, int index, const char *what,
                                 const char *key, size_t *n) {
  const char **name;
  int at;
  *n = 0;
  luaL_checkstack (L, 8, "names");
  if (sl_lua_raw_field (L, index, key) == LUA_TNIL) return NULL;
  if (!lua_istable (L, -1))
    sl_lua_fail (L, "%s.%s: expected a list of strings, got %s", what, key,
                 luaL_typename (L, -1));
  at = lua_gettop (L);
  *n = lua_rawlen (L, at);
  name = lua_newuserdatauv (L, (*n + 1) * sizeof *name, 0);
  for (size_t i = 0; i < *n; i++) {
    if (lua_rawgeti (L, at, (lua_Integer)i + 1) != LUA_TSTRING)
      sl_lua_fail (L, "%s.%s[%zu]: expected a string, got %s", what, key, i + 1,
                   luaL_typename (L, -1));
    name[i] = lua_tostring (L, -1); /* the table holds on to it */
    lua_pop (L, 1);
  }
  return name;
}

/* Field 'key': a list of places, and key_names their names. */
void sl_lua_marks (lua_State *L, int index, const char *what, const char *key,
                   const char *key_names, sl_marks *m) {
  size_t n;
  m->n = 0;
  m->at = sl_lua_list (L, index, what, key, &m->n);
  m->name = sl_lua_names (L, index, what, key_names, &n);
  if (m->name && n != m->n)
    sl_lua_fail (L, "%s.%s has %zu names for %zu places", what, key_names, n,
                 m->n);
}
