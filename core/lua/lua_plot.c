/* lua_plot.c - figures: a table that scripts/sinklab/plot has checked in, a
** "sinklab.figure" out. */
#include "base/memory.h"
#include "lua/lua_common.h"
#include "plot/figure.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIGURE "sinklab.figure"
#define TEXT "sinklab.figure_text"

static int get (lua_State *L, int index, const char *key) {
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
static const double *matrix (lua_State *L, int index, const char *what,
                             const char *key, size_t *rows, size_t *cols) {
  char name[160], row[200];
  double *data;
  sl_tensor *t;
  get (L, index, key);
  snprintf (name, sizeof name, "%s.%s", what, key);
  t = tensor_at (L, -1, name);
  if (t) {
    char shape[128];
    if (t->ndim != 2)
      sl_lua_fail (
          L, "%s: expected a matrix (queries, keys), got a tensor of shape %s",
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
static const double *list (lua_State *L, int index, const char *what,
                           const char *key, size_t *n) {
  char name[160];
  size_t count;
  double *data;
  sl_tensor *t;
  luaL_checkstack (L, 8, "series");
  if (get (L, index, key) == LUA_TNIL) return NULL;
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

/* ---- figures ---- */

static sl_figure **box_of (lua_State *L, int index) {
  return luaL_checkudata (L, index, FIGURE);
}

static sl_figure *check_figure (lua_State *L, int index) {
  sl_figure *f = *box_of (L, index);
  luaL_argcheck (L, f, index, "this figure has been closed");
  return f;
}

static int figure_close (lua_State *L) {
  sl_figure **box = box_of (L, 1), *f = *box;
  *box = NULL;
  sl_figure_free (f);
  return 0;
}

/* Both ends of a range: left free, given, or ("data", or one of two missing)
** from the data. */
static void take_range (lua_State *L, int index, const char *what,
                        const char *low, const char *high, double *min,
                        double *max) {
  const char *key[2] = { low, high };
  double *end[2] = { min, max };
  int given = 0;
  for (int i = 0; i < 2; i++) {
    int type = get (L, index, key[i]);
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
static const char *const *names (lua_State *L, int index, const char *what,
                                 const char *key, size_t *n) {
  const char **name;
  int at;
  *n = 0;
  luaL_checkstack (L, 8, "names");
  if (get (L, index, key) == LUA_TNIL) return NULL;
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
static void take_marks (lua_State *L, int index, const char *what,
                        const char *key, const char *key_names, sl_marks *m) {
  size_t n;
  m->n = 0;
  m->at = list (L, index, what, key, &m->n);
  m->name = names (L, index, what, key_names, &n);
  if (m->name && n != m->n)
    sl_lua_fail (L, "%s.%s has %zu names for %zu places", what, key_names, n,
                 m->n);
}

static int add_heat (lua_State *L, sl_figure *f, int index, const char *what,
                     sl_error *e) {
  lua_Integer first;
  sl_heat h = { 0 };
  h.title = sl_lua_string (L, index, what, "title", NULL);
  h.side = sl_lua_string (L, index, what, "side", NULL);
  h.xlabel = sl_lua_string (L, index, what, "xlabel", NULL);
  h.ylabel = sl_lua_string (L, index, what, "ylabel", NULL);
  h.quantity = sl_lua_string (L, index, what, "quantity", NULL);
  h.palette = sl_lua_string (L, index, what, "palette", NULL);
  h.lead = sl_lua_string (L, index, what, "lead", NULL);
  h.log = sl_lua_boolean (L, index, what, "log", 0);
  h.mask_upper = sl_lua_boolean (L, index, what, "mask_upper", 0);
  first = sl_lua_integer (L, index, what, "first_key", 1);
  h.first_key = first > 0 ? (size_t)first : 1;
  h.keys.name = names (L, index, what, "keys", &h.keys.n);
  h.queries.name = names (L, index, what, "queries", &h.queries.n);
  take_range (L, index, what, "vmin", "vmax", &h.min, &h.max);
  h.data = matrix (L, index, what, "data", &h.rows, &h.cols);
  return sl_figure_heat (f, &h, e);
}

static void take_series (lua_State *L, int index, const char *what,
                         sl_series *s) {
  s->label = sl_lua_string (L, index, what, "label", NULL);
  s->markers = sl_lua_boolean (L, index, what, "markers", 0);
  s->points = sl_lua_boolean (L, index, what, "points", 0);
  s->y = list (L, index, what, "y", &s->n);
  s->x = list (L, index, what, "x", &s->n);
  s->low = list (L, index, what, "low", &s->n);
  s->high = list (L, index, what, "high", &s->n);
}

/* The list at field "series"; its stack index, and its length in *n. */
static int series_at (lua_State *L, int index, const char *what, int *n) {
  get (L, index, "series");
  if (lua_rawlen (L, -1) > 1000)
    sl_lua_fail (L, "%s.series: at most 1000 series, got %zu", what,
                 (size_t)lua_rawlen (L, -1));
  *n = (int)lua_rawlen (L, -1);
  return lua_gettop (L);
}

/* Pushes element i of that list, a table; 'name' gets what errors call it. */
static int one_series (lua_State *L, int all, const char *what, int i,
                       char name[120]) {
  luaL_checkstack (L, 16, "series");
  snprintf (name, 120, "%s.series[%d]", what, i + 1);
  lua_rawgeti (L, all, i + 1);
  return lua_gettop (L);
}

static int add_lines (lua_State *L, sl_figure *f, int index, const char *what,
                      sl_error *e) {
  sl_lines lines = { 0 };
  sl_series *series;
  int all;
  lines.title = sl_lua_string (L, index, what, "title", NULL);
  lines.side = sl_lua_string (L, index, what, "side", NULL);
  lines.xlabel = sl_lua_string (L, index, what, "xlabel", NULL);
  lines.ylabel = sl_lua_string (L, index, what, "ylabel", NULL);
  lines.xlog = sl_lua_boolean (L, index, what, "xlog", 0);
  lines.ylog = sl_lua_boolean (L, index, what, "ylog", 0);
  lines.aspect = sl_lua_number (L, index, what, "aspect", 0);
  take_range (L, index, what, "xmin", "xmax", &lines.xmin, &lines.xmax);
  take_range (L, index, what, "ymin", "ymax", &lines.ymin, &lines.ymax);
  take_marks (L, index, what, "xticks", "xticks_names", &lines.xticks);
  take_marks (L, index, what, "yticks", "yticks_names", &lines.yticks);
  all = series_at (L, index, what, &lines.n);
  series = lua_newuserdatauv (L, (size_t)(lines.n + 1) * sizeof *series, 0);
  memset (series, 0, (size_t)(lines.n + 1) * sizeof *series);
  for (int i = 0; i < lines.n; i++) {
    char name[120];
    int at = one_series (L, all, what, i, name);
    take_series (L, at, name, &series[i]);
  }
  lines.series = series;
  return sl_figure_lines (f, &lines, e);
}

static int add_bars (lua_State *L, sl_figure *f, int index, const char *what,
                     sl_error *e) {
  sl_bars bars = { 0 };
  sl_bar_series *series;
  int all;
  bars.title = sl_lua_string (L, index, what, "title", NULL);
  bars.side = sl_lua_string (L, index, what, "side", NULL);
  bars.xlabel = sl_lua_string (L, index, what, "xlabel", NULL);
  bars.ylabel = sl_lua_string (L, index, what, "ylabel", NULL);
  bars.ylog = sl_lua_boolean (L, index, what, "ylog", 0);
  bars.aspect = sl_lua_number (L, index, what, "aspect", 0);
  take_range (L, index, what, "ymin", "ymax", &bars.ymin, &bars.ymax);
  take_marks (L, index, what, "yticks", "yticks_names", &bars.yticks);
  bars.name = names (L, index, what, "names", &bars.groups);
  all = series_at (L, index, what, &bars.n);
  series = lua_newuserdatauv (L, (size_t)(bars.n + 1) * sizeof *series, 0);
  memset (series, 0, (size_t)(bars.n + 1) * sizeof *series);
  for (int i = 0; i < bars.n; i++) {
    char name[120];
    int at = one_series (L, all, what, i, name);
    size_t n = bars.groups;
    series[i].label = sl_lua_string (L, at, name, "label", NULL);
    series[i].y = list (L, at, name, "y", &n);
    series[i].low = list (L, at, name, "low", &n);
    series[i].high = list (L, at, name, "high", &n);
  }
  bars.series = series;
  return sl_figure_bars (f, &bars, e);
}

static const struct {
  const char *name;
  int (*add) (lua_State *L, sl_figure *f, int index, const char *what,
              sl_error *e);
} kinds[] = { { "heat", add_heat },
              { "lines", add_lines },
              { "bars", add_bars } };
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void add_panel (lua_State *L, sl_figure *f, int index,
                       const char *what) {
  const char *kind = sl_lua_string (L, index, what, "kind", "heat");
  for (int i = 0; i < N_KINDS; i++) {
    sl_error e;
    if (strcmp (kind, kinds[i].name) != 0) continue;
    if (kinds[i].add (L, f, index, what, &e)) {
      sl_fail_within (&e, "%s", what);
      sl_lua_raise (L, &e);
    }
    return;
  }
}

/* figure { what =, title =, caption =, rows =, columns =, shared =, dpi =,
** size =, panels = { { kind = "heat" | "lines" | "bars", ... }, ... } } ->
** figure. Raises on wrong use; 'what' names the caller in sentences. */
static int figure_new (lua_State *L) {
  sl_figure_spec spec = { 0 };
  sl_figure **box;
  sl_error e;
  const char *what;
  size_t n;
  luaL_checktype (L, 1, LUA_TTABLE);
  lua_settop (L, 1);
  what = sl_lua_string (L, 1, "figure", "what", "figure");
  spec.title = sl_lua_string (L, 1, what, "title", NULL);
  spec.caption = sl_lua_string (L, 1, what, "caption", NULL);
  spec.shared = sl_lua_boolean (L, 1, what, "shared", 0);
  spec.rows = sl_lua_int (L, 1, what, "rows", 1);
  spec.columns = sl_lua_int (L, 1, what, "columns", 1);
  spec.size = sl_lua_number (L, 1, what, "size", 0);
  spec.dpi = sl_lua_int (L, 1, what, "dpi", SL_DEFAULT_DPI);
  get (L, 1, "panels");
  n = lua_rawlen (L, 2);
  box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable (L, FIGURE);
  *box = sl_figure_new (&spec, &e);
  if (!*box) {
    sl_fail_within (&e, "%s", what);
    return sl_lua_raise (L, &e);
  }
  for (size_t i = 1; i <= n; i++) {
    char name[100];
    if (n == 1)
      snprintf (name, sizeof name, "%.60s", what);
    else
      snprintf (name, sizeof name, "%.60s: panel %zu", what, i);
    lua_rawgeti (L, 2, (lua_Integer)i);
    add_panel (L, *box, 4, name);
    lua_settop (L, 3);
  }
  return 1;
}

/* figure:save (path) -> true, or nil and a sentence when the file cannot be
** written. A path without .png, .svg or .pdf raises. */
static int figure_save (lua_State *L) {
  sl_figure *f = check_figure (L, 1);
  const char *path = luaL_checkstring (L, 2);
  sl_error e;
  if (sl_figure_check_path (path, &e)) return sl_lua_raise (L, &e);
  if (sl_figure_save (f, path, &e)) return sl_lua_nil (L, &e);
  lua_pushboolean (L, 1);
  return 1;
}

/* Text from core, freed when Lua has taken it or raised. */
static int text_release (lua_State *L) {
  char **box = luaL_checkudata (L, 1, TEXT), *text = *box;
  *box = NULL;
  sl_free (text);
  return 0;
}

static int push_text (lua_State *L, const sl_figure *f, sl_text_style style) {
  char **box = lua_newuserdatauv (L, sizeof *box, 0);
  size_t n;
  sl_error e;
  *box = NULL;
  luaL_setmetatable (L, TEXT);
  *box = sl_figure_text (f, style, &e);
  if (!*box) return sl_lua_raise (L, &e);
  n = strlen (*box);
  lua_pushlstring (L, *box, n - (n > 0)); /* print ends the last line */
  sl_free (*box);
  *box = NULL;
  return 1;
}

/* figure:text ([columns]) -> the figure as lines for standard output:
** coloured on a terminal, plain characters elsewhere. columns: 20 to 1000,
** default the terminal's. */
static int figure_text (lua_State *L) {
  sl_figure *f = check_figure (L, 1);
  sl_text_style style = sl_text_style_for (STDOUT_FILENO);
  lua_Integer columns = luaL_optinteger (L, 2, style.columns);
  luaL_argcheck (L, columns >= SL_LEAST_COLUMNS && columns <= SL_MOST_COLUMNS,
                 2, "20 to 1000 columns are allowed");
  style.columns = (int)columns;
  return push_text (L, f, style);
}

static int figure_tostring (lua_State *L) {
  sl_figure *f = *box_of (L, 1);
  if (f) return push_text (L, f, sl_text_style_for (STDOUT_FILENO));
  lua_pushliteral (L, "figure (closed)");
  return 1;
}

void sl_lua_open_plot (lua_State *L) {
  static const luaL_Reg functions[] = { { "figure", figure_new },
                                        { NULL, NULL } };
  static const luaL_Reg methods[] = { { "save", figure_save },
                                      { "text", figure_text },
                                      { "close", figure_close },
                                      { NULL, NULL } };
  static const luaL_Reg meta[] = { { "__gc", figure_close },
                                   { "__close", figure_close },
                                   { "__tostring", figure_tostring },
                                   { NULL, NULL } };
  static const luaL_Reg text[] = { { "__gc", text_release }, { NULL, NULL } };
  sl_lua_class (L, TEXT, text, NULL);
  sl_lua_class (L, FIGURE, meta, methods);
  luaL_setfuncs (L, functions, 0);
}
