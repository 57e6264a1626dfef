/* lua_plot.c - figures: a table that scripts/sinklab/plot has checked in, a
** "sinklab.figure" out. */
#include "base/memory.h"
#include "lua/lua_plot_data.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIGURE "sinklab.figure"
#define TEXT "sinklab.figure_text"

/* ---- figures ---- */

static sl_figure **box_of (lua_State *L, int index) {
  return sl_lua_check_object (L, index, FIGURE);
}

static sl_figure *check_figure (lua_State *L, int index) {
  sl_figure *f = *box_of (L, index);
  sl_lua_argument (L, f != NULL, index, "this figure has been closed");
  return f;
}

static int figure_close (lua_State *L) {
  sl_figure **box = box_of (L, 1), *f = *box;
  *box = NULL;
  sl_figure_free (f);
  return 0;
}

/* The texts that every kind of panel has; the others, and switches. */
#define TAKE_TEXT(to, key) to.key = sl_lua_string (L, index, what, #key, NULL)
#define TAKE_FLAG(to, key) to.key = sl_lua_boolean (L, index, what, #key, 0)
#define TAKE_TITLES(to)                                                \
  TAKE_TEXT (to, title), TAKE_TEXT (to, side), TAKE_TEXT (to, xlabel), \
      TAKE_TEXT (to, ylabel)

static int add_heat (lua_State *L, sl_figure *f, int index, const char *what,
                     sl_error *e) {
  lua_Integer first;
  sl_heat h = { 0 };
  TAKE_TITLES (h);
  TAKE_TEXT (h, quantity);
  TAKE_TEXT (h, palette);
  TAKE_TEXT (h, lead);
  TAKE_FLAG (h, log);
  TAKE_FLAG (h, mask_upper);
  first = sl_lua_integer (L, index, what, "first_key", 1);
  h.first_key = first > 0 ? (size_t)first : 1;
  h.keys.name = sl_lua_names (L, index, what, "keys", &h.keys.n);
  h.queries.name = sl_lua_names (L, index, what, "queries", &h.queries.n);
  sl_lua_range (L, index, what, "vmin", "vmax", &h.min, &h.max);
  h.data = sl_lua_matrix (L, index, what, "data", &h.rows, &h.cols);
  return sl_figure_heat (f, &h, e);
}

/* Field "series", a list of tables; its length in *count. n: the numbers in each
** list of a series, 0: any. */
static const sl_series *take_series (lua_State *L, int panel, const char *of,
                                     size_t n, int *count) {
  sl_series *series;
  size_t length;
  int all;
  sl_lua_raw_field (L, panel, "series");
  all = lua_gettop (L);
  length = lua_rawlen (L, all);
  if (length > 1000)
    sl_lua_fail (L, "%s.series: at most 1000 series, got %zu", of, length);
  *count = (int)length;
  series = lua_newuserdatauv (L, (length + 1) * sizeof *series, 0);
  memset (series, 0, (length + 1) * sizeof *series);
  for (int i = 0; i < *count; i++) {
    sl_series *s = &series[i];
    char what[120];
    int index;
    luaL_checkstack (L, 16, "series");
    snprintf (what, sizeof what, "%s.series[%d]", of, i + 1);
    lua_rawgeti (L, all, i + 1);
    index = lua_gettop (L);
    s->n = n;
    TAKE_TEXT ((*s), label);
    TAKE_FLAG ((*s), markers);
    TAKE_FLAG ((*s), points);
    s->y = sl_lua_list (L, index, what, "y", &s->n);
    s->x = sl_lua_list (L, index, what, "x", &s->n);
    s->low = sl_lua_list (L, index, what, "low", &s->n);
    s->high = sl_lua_list (L, index, what, "high", &s->n);
  }
  return series;
}

static int add_lines (lua_State *L, sl_figure *f, int index, const char *what,
                      sl_error *e) {
  sl_lines lines = { 0 };
  TAKE_TITLES (lines);
  TAKE_FLAG (lines, xlog);
  TAKE_FLAG (lines, ylog);
  lines.aspect = sl_lua_number (L, index, what, "aspect", 0);
  sl_lua_range (L, index, what, "xmin", "xmax", &lines.xmin, &lines.xmax);
  sl_lua_range (L, index, what, "ymin", "ymax", &lines.ymin, &lines.ymax);
  sl_lua_marks (L, index, what, "xticks", "xticks_names", &lines.xticks);
  sl_lua_marks (L, index, what, "yticks", "yticks_names", &lines.yticks);
  lines.series = take_series (L, index, what, 0, &lines.n);
  return sl_figure_lines (f, &lines, e);
}

static int add_bars (lua_State *L, sl_figure *f, int index, const char *what,
                     sl_error *e) {
  sl_bars bars = { 0 };
  TAKE_TITLES (bars);
  TAKE_FLAG (bars, ylog);
  bars.aspect = sl_lua_number (L, index, what, "aspect", 0);
  sl_lua_range (L, index, what, "ymin", "ymax", &bars.ymin, &bars.ymax);
  sl_lua_marks (L, index, what, "yticks", "yticks_names", &bars.yticks);
  bars.name = sl_lua_names (L, index, what, "names", &bars.groups);
  bars.series = take_series (L, index, what, bars.groups, &bars.n);
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
  sl_lua_check_type (L, 1, LUA_TTABLE);
  lua_settop (L, 1);
  what = sl_lua_string (L, 1, "figure", "what", "figure");
  spec.title = sl_lua_string (L, 1, what, "title", NULL);
  spec.caption = sl_lua_string (L, 1, what, "caption", NULL);
  spec.shared = sl_lua_boolean (L, 1, what, "shared", 0);
  spec.rows = sl_lua_int (L, 1, what, "rows", 1);
  spec.columns = sl_lua_int (L, 1, what, "columns", 1);
  spec.size = sl_lua_number (L, 1, what, "size", 0);
  spec.dpi = sl_lua_int (L, 1, what, "dpi", SL_DEFAULT_DPI);
  sl_lua_raw_field (L, 1, "panels");
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
  const char *path = sl_lua_check_string (L, 2);
  sl_error e;
  if (sl_figure_check_path (path, &e)) return sl_lua_raise (L, &e);
  if (sl_figure_save (f, path, &e)) return sl_lua_nil (L, &e);
  lua_pushboolean (L, 1);
  return 1;
}

/* Text from core, freed when Lua has taken it or raised. */
static int text_release (lua_State *L) {
  char **box = sl_lua_check_object (L, 1, TEXT), *text = *box;
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
  lua_Integer columns = sl_lua_opt_integer (L, 2, style.columns);
  sl_lua_argument (L, columns >= SL_LEAST_COLUMNS && columns <= SL_MOST_COLUMNS,
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
