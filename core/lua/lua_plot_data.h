/* lua_plot_data.h - the data of a panel: numbers, names, ranges and ticks.
**
** Each function reads a field of the table at 'index'. It raises a sentence that
** names 'what' and the field. Copies are userdata on the stack: they live as long
** as it is not popped. */
#ifndef SL_LUA_PLOT_DATA_H
#define SL_LUA_PLOT_DATA_H
#include "lua/lua_common.h"
#include "plot/figure.h"

/* Pushes the field without metamethods; its type. */
int sl_lua_raw_field (lua_State *L, int index, const char *key);

/* A tensor of two axes, or a table of rows, as [*rows][*cols]. */
const double *sl_lua_matrix (lua_State *L, int index, const char *what,
                             const char *key, size_t *rows, size_t *cols);
/* A list of *n numbers (*n 0: any number of them, which is set), or NULL. */
const double *sl_lua_list (lua_State *L, int index, const char *what,
                           const char *key, size_t *n);
/* Both ends of a range. Both 0: none is given; NaN: "data", or one of two is
** missing. */
void sl_lua_range (lua_State *L, int index, const char *what, const char *low,
                   const char *high, double *min, double *max);
/* A list of *n strings, which the table keeps alive; NULL and 0 for nil. */
const char *const *sl_lua_names (lua_State *L, int index, const char *what,
                                 const char *key, size_t *n);
/* A list of places, and in the field key_names their names. */
void sl_lua_marks (lua_State *L, int index, const char *what, const char *key,
                   const char *key_names, sl_marks *m);
#endif
