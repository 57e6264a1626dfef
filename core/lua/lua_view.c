/* lua_view.c - views in Lua: new looks at a tensor. Axes count from 1. */
#include "lua/lua_tensor.h"

/* An index argument 1..size or -size..-1 of axis i: from 0. */
static ptrdiff_t check_index (lua_State *L, int arg, const sl_tensor *t, int i,
                              const char *what) {
  lua_Integer index = sl_lua_check_integer (L, arg), size = t->dim[i];
  if (index >= 1 && index <= size) return index - 1;
  if (index <= -1 && index >= -size) return index + size;
  return sl_lua_fail (L,
                      "%s: index %lld is outside axis %d, which has size %lld",
                      what, (long long)index, i + 1, (long long)size);
}

/* t:narrow (axis, start, length) -> elements start, start + 1, ... */
static int view_narrow (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  int axis = sl_lua_check_axis (L, 2, t, "narrow");
  lua_Integer start = sl_lua_check_integer (L, 3), size = t->dim[axis];
  lua_Integer length = sl_lua_check_integer (L, 4);
  lua_Integer from = start < 0 ? start + size : start - 1;
  sl_error e;
  if (start == 0 || from < 0 || from > size || length < 0 ||
      length > size - from)
    return sl_lua_fail (
        L,
        "narrow: start %lld with length %lld does not fit axis %d, which "
        "has size %lld",
        (long long)start, (long long)length, axis + 1, (long long)size);
  return sl_lua_tensor_or_raise (
      L, sl_tensor_narrow (t, axis, (ptrdiff_t)from, (ptrdiff_t)length, &e),
      &e);
}

/* t:select (axis, index) -> the part at this index, without the axis */
static int view_select (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  int axis = sl_lua_check_axis (L, 2, t, "select");
  ptrdiff_t index = check_index (L, 3, t, axis, "select");
  sl_error e;
  return sl_lua_tensor_or_raise (L, sl_tensor_select (t, axis, index, &e), &e);
}

/* t:transpose (a, b) -> the two axes exchanged */
static int view_transpose (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  int a = sl_lua_check_axis (L, 2, t, "transpose");
  int b = sl_lua_check_axis (L, 3, t, "transpose");
  sl_error e;
  return sl_lua_tensor_or_raise (L, sl_tensor_transpose (t, a, b, &e), &e);
}

/* t:reshape { size, ... } -> the same numbers in another shape; one size may be
** -1. A view where that is possible, else a (recorded) copy. */
static int view_reshape (lua_State *L) {
  ptrdiff_t dim[SL_MAX_DIMS];
  sl_tensor *t = sl_lua_check_tensor (L, 1), *copy, *r;
  int ndim = sl_lua_check_shape (L, 2, 1, dim, "reshape");
  sl_view v = sl_tensor_view (t);
  sl_error e;
  if (sl_view_contiguous (&v) || sl_tensor_can_reshape (t, ndim, dim))
    return sl_lua_tensor_or_raise (L, sl_tensor_reshape (t, ndim, dim, &e), &e);
  copy = sl_apply_named (sl_lua_context (L), "copy", NULL, 1, &t, &e);
  if (copy == NULL) return sl_lua_raise (L, &e);
  r = sl_tensor_reshape (copy, ndim, dim, &e);
  sl_tensor_release (copy);
  return sl_lua_tensor_or_raise (L, r, &e);
}

/* t:broadcast { size, ... } -> repeated to a larger shape */
static int view_broadcast (lua_State *L) {
  ptrdiff_t dim[SL_MAX_DIMS];
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  int ndim = sl_lua_check_shape (L, 2, 0, dim, "broadcast");
  sl_error e;
  return sl_lua_tensor_or_raise (L, sl_tensor_broadcast (t, ndim, dim, &e), &e);
}

void sl_lua_open_views (lua_State *L) {
  static const luaL_Reg methods[] = {
    { "narrow", view_narrow },       { "select", view_select },
    { "transpose", view_transpose }, { "reshape", view_reshape },
    { "broadcast", view_broadcast }, { NULL, NULL },
  };
  sl_lua_tensor_metatable (L);
  sl_lua_tensor_methods (L, methods);
  lua_pop (L, 1);
}
