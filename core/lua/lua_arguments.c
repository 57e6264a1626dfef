/* lua_arguments.c - the arguments that bindings of tensors share: axes, shapes,
** precisions. Axes count from 1. */
#include "lua/lua_tensor.h"

/* A wrong argument in a message: a number itself, else its type. */
static const char *shown (lua_State *L, int arg) {
  return lua_type (L, arg) == LUA_TNUMBER ? luaL_tolstring (L, arg, NULL)
                                          : luaL_typename (L, arg);
}

int sl_lua_check_axis (lua_State *L, int arg, const sl_tensor *t,
                       const char *what) {
  int whole;
  const lua_Integer axis = lua_tointegerx (L, arg, &whole);
  char shape[SL_SHAPE_TEXT];
  if (!whole || lua_type (L, arg) != LUA_TNUMBER)
    return sl_lua_fail (L, "%s: an axis must be a whole number, got %s", what,
                        shown (L, arg));
  if (axis >= 1 && axis <= t->ndim) return (int)axis - 1;
  if (axis <= -1 && axis >= -t->ndim) return (int)axis + t->ndim;
  if (t->ndim == 0)
    return sl_lua_fail (L, "%s: a tensor of shape () has no axis", what);
  return sl_lua_fail (
      L, "%s: axis %lld of shape %s: must be 1 to %d or -%d to -1", what,
      (long long)axis, sl_shape_text (t->ndim, t->dim, shape, sizeof shape),
      t->ndim, t->ndim);
}

/* A size on top of the stack. */
static ptrdiff_t check_size (lua_State *L, int open, const char *what) {
  int whole;
  lua_Integer n = lua_tointegerx (L, -1, &whole);
  if (whole && lua_type (L, -1) == LUA_TNUMBER && (n >= 0 || (open && n == -1)))
    return (ptrdiff_t)n;
  return sl_lua_fail (L, "%s: a size must be a whole number from 0%s, got %s",
                      what, open ? " (or -1)" : "", shown (L, -1));
}

int sl_lua_check_shape (lua_State *L, int arg, int open,
                        ptrdiff_t dim[SL_MAX_DIMS], const char *what) {
  lua_Unsigned n;
  if (lua_type (L, arg) == LUA_TNUMBER) {
    lua_pushvalue (L, arg);
    dim[0] = check_size (L, open, what);
    lua_pop (L, 1);
    return 1;
  }
  if (!lua_istable (L, arg))
    sl_lua_fail (L, "%s: expected a shape such as { 2, 3 }, got %s", what,
                 luaL_typename (L, arg));
  n = lua_rawlen (L, arg);
  if (n > SL_MAX_DIMS)
    sl_lua_fail (L, "%s: %llu axes are too many: at most %d", what,
                 (unsigned long long)n, SL_MAX_DIMS);
  for (lua_Unsigned i = 0; i < n; i++) {
    lua_rawgeti (L, arg, (lua_Integer)i + 1);
    dim[i] = check_size (L, open, what);
    lua_pop (L, 1);
  }
  return (int)n;
}

sl_dtype sl_lua_opt_dtype (lua_State *L, int arg, sl_dtype def) {
  sl_error e;
  if (lua_isnoneornil (L, arg)) return def;
  if (sl_dtype_parse (sl_lua_check_string (L, arg), &def, &e) < 0)
    sl_lua_raise (L, &e);
  return def;
}

int sl_lua_tensor_or_raise (lua_State *L, sl_tensor *t, const sl_error *e) {
  if (t == NULL) return sl_lua_raise (L, e);
  sl_lua_push_tensor (L, t);
  return 1;
}

void sl_lua_not_recorded (lua_State *L, const sl_tensor *t, const char *what) {
  const sl_program *p = sl_lua_context (L)->recording;
  if (p == NULL || !sl_program_uses (p, t)) return;
  sl_lua_fail (
      L,
      "%s: the program that is being recorded uses this tensor and would "
      "not repeat this; only operations are recorded",
      what);
}

int sl_lua_new_full (lua_State *L, sl_dtype dtype, int ndim,
                     const ptrdiff_t *dim, double x) {
  sl_error e;
  sl_tensor *t = sl_tensor_new (dtype, ndim, dim, &e);
  if (t != NULL && x != 0) sl_tensor_fill (t, x);
  return sl_lua_tensor_or_raise (L, t, &e);
}

int sl_lua_new_arange (lua_State *L, sl_dtype dtype, ptrdiff_t n) {
  sl_tensor *t;
  sl_error e;
  if (dtype == SL_F32 && n > (1 << 24) + 1)
    sl_lua_fail (L, "arange: %td numbers are not exact in f32; use f64", n);
  t = sl_tensor_new (dtype, 1, &n, &e);
  if (t != NULL) {
    const sl_view v = sl_tensor_view (t);
    for (ptrdiff_t i = 0; i < n; i++)
      sl_view_set (&v, dtype, (size_t)i, (double)i);
  }
  return sl_lua_tensor_or_raise (L, t, &e);
}
