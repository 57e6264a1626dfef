/* lua_tensor.c - tensors in Lua: made, read, changed. Indices count from 1. */
#include "lua/lua_tensor.h"
#include "base/memory.h"
#include <string.h>

/* Constructors. */

/* The shape of the nested list at 'arg', by its first elements. */
static int list_shape (lua_State *L, int arg, ptrdiff_t dim[SL_MAX_DIMS]) {
  int ndim = 0, top = lua_gettop (L);
  lua_pushvalue (L, arg);
  for (; lua_istable (L, -1); ndim++) {
    if (ndim == SL_MAX_DIMS)
      sl_lua_fail (L, "tensor: lists nested deeper than %d", SL_MAX_DIMS);
    luaL_checkstack (L, 4, "tensor");
    dim[ndim] = (ptrdiff_t)lua_rawlen (L, -1);
    lua_rawgeti (L, -1, 1);
  }
  lua_settop (L, top);
  return ndim;
}

/* Store the list on top of the stack as axis 'axis'; *at runs in order. */
static void store_list (lua_State *L, const sl_tensor *t, int axis,
                        size_t *at) {
  sl_view v = sl_tensor_view (t);
  if (axis == t->ndim) {
    if (lua_type (L, -1) != LUA_TNUMBER)
      sl_lua_fail (L, "tensor: element %zu: expected a number, got %s", *at + 1,
                   luaL_typename (L, -1));
    sl_view_set (&v, t->storage->dtype, (*at)++, lua_tonumber (L, -1));
    return;
  }
  if (!lua_istable (L, -1))
    sl_lua_fail (L, "tensor: %s on level %d, expected a list of %td",
                 luaL_typename (L, -1), axis + 1, t->dim[axis]);
  if (lua_rawlen (L, -1) != (lua_Unsigned)t->dim[axis])
    sl_lua_fail (L,
                 "tensor: a list of %llu on level %d, expected %td like the "
                 "first one there",
                 (unsigned long long)lua_rawlen (L, -1), axis + 1,
                 t->dim[axis]);
  for (ptrdiff_t i = 0; i < t->dim[axis]; i++) {
    lua_rawgeti (L, -1, i + 1);
    store_list (L, t, axis + 1, at);
    lua_pop (L, 1);
  }
}

sl_tensor *sl_lua_tensor_of (lua_State *L, int arg, sl_dtype dtype) {
  ptrdiff_t dim[SL_MAX_DIMS];
  size_t at = 0;
  int ndim;
  sl_tensor *t;
  sl_error e;
  if (!lua_istable (L, arg) && lua_type (L, arg) != LUA_TNUMBER)
    sl_lua_fail (L, "tensor: expected a number or a nested list, got %s",
                 luaL_typename (L, arg));
  ndim = list_shape (L, arg, dim);
  t = sl_tensor_new (dtype, ndim, dim, &e);
  sl_lua_tensor_or_raise (L, t, &e);
  luaL_checkstack (L, SL_MAX_DIMS + 4, "tensor");
  lua_pushvalue (L, arg);
  store_list (L, t, 0, &at);
  lua_pop (L, 1);
  return t;
}

/* tensor (nested list or number, [dtype "f32"]) */
static int tensor_tensor (lua_State *L) {
  sl_lua_tensor_of (L, 1, sl_lua_opt_dtype (L, 2, SL_F32));
  return 1;
}

static int filled (lua_State *L, const char *what, double x, int dtype_arg) {
  ptrdiff_t dim[SL_MAX_DIMS];
  const int ndim = sl_lua_check_shape (L, 1, 0, dim, what);
  return sl_lua_new_full (L, sl_lua_opt_dtype (L, dtype_arg, SL_F32), ndim, dim,
                          x);
}

/* zeros (shape, [dtype]), ones (shape, [dtype]), full (shape, value,
** [dtype]) */
static int tensor_zeros (lua_State *L) {
  return filled (L, "zeros", 0, 2);
}
static int tensor_ones (lua_State *L) {
  return filled (L, "ones", 1, 2);
}
static int tensor_full (lua_State *L) {
  return filled (L, "full", sl_lua_check_number (L, 2), 3);
}

/* arange (n, [dtype]) -> 0, 1, ... n - 1 */
static int tensor_arange (lua_State *L) {
  ptrdiff_t dim[SL_MAX_DIMS];
  sl_lua_check_integer (L, 1);
  sl_lua_check_shape (L, 1, 0, dim, "arange");
  return sl_lua_new_arange (L, sl_lua_opt_dtype (L, 2, SL_F32), dim[0]);
}

/* is_tensor (value) */
static int tensor_is (lua_State *L) {
  lua_pushboolean (L, luaL_testudata (L, 1, SL_LUA_TENSOR) != NULL);
  return 1;
}

/* Elements. */

/* t:item () -> the only element, as a number */
static int tensor_item (lua_State *L) {
  const sl_tensor *t = sl_lua_check_tensor (L, 1);
  sl_view v = sl_tensor_view (t);
  char shape[SL_SHAPE_TEXT];
  if (sl_view_count (&v) != 1)
    return sl_lua_fail (L, "item: shape %s is not one number",
                        sl_shape_text (t->ndim, t->dim, shape, sizeof shape));
  lua_pushnumber (L, sl_view_get (&v, t->storage->dtype, 0));
  return 1;
}

/* The element that the ndim indices from argument 2 on name, as a view of one
** number; 'extra' arguments follow. */
static sl_view element (lua_State *L, const sl_tensor *t, int extra,
                        const char *what) {
  sl_view v = sl_tensor_view (t);
  ptrdiff_t offset = 0;
  char shape[SL_SHAPE_TEXT];
  sl_shape_text (t->ndim, t->dim, shape, sizeof shape);
  if (lua_gettop (L) != 1 + t->ndim + extra)
    sl_lua_fail (L, "%s: got %d indices for shape %s", what,
                 lua_gettop (L) - 1 - extra, shape);
  for (int i = 0; i < t->ndim; i++) {
    lua_Integer index = sl_lua_check_integer (L, 2 + i);
    lua_Integer at = index < 0 ? index + t->dim[i] : index - 1;
    if (index == 0 || at < 0 || at >= t->dim[i])
      sl_lua_fail (L, "%s: index %lld on axis %d is outside shape %s", what,
                   (long long)index, i + 1, shape);
    offset += at * t->stride[i];
  }
  v.ndim = 0;
  v.data =
      (char *)v.data + offset * (ptrdiff_t)sl_dtype_size (t->storage->dtype);
  return v;
}

/* t:get (i, j, ...) -> number */
static int tensor_get (lua_State *L) {
  const sl_tensor *t = sl_lua_check_tensor (L, 1);
  sl_view v = element (L, t, 0, "get");
  lua_pushnumber (L, sl_view_get (&v, t->storage->dtype, 0));
  return 1;
}

/* t:set (i, j, ..., x) -> t */
static int tensor_set (lua_State *L) {
  const sl_tensor *t = sl_lua_check_tensor (L, 1);
  sl_view v = element (L, t, 1, "set");
  const double x = sl_lua_check_number (L, 2 + t->ndim);
  sl_lua_not_recorded (L, t, "set");
  sl_view_set (&v, t->storage->dtype, 0, x);
  lua_settop (L, 1);
  return 1;
}

/* t:fill (x) -> t */
static int tensor_fill (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  double x = sl_lua_check_number (L, 2);
  sl_lua_not_recorded (L, t, "fill");
  sl_tensor_fill (t, x);
  lua_settop (L, 1);
  return 1;
}

/* t:copy (from) -> t with the numbers of 'from', a tensor of the same shape */
static int tensor_copy (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  const sl_tensor *from = sl_lua_check_tensor (L, 2);
  sl_error e;
  sl_lua_not_recorded (L, t, "copy");
  if (sl_tensor_copy (t, from, &e) < 0) return sl_lua_raise (L, &e);
  lua_settop (L, 1);
  return 1;
}

/* t:clone () -> a row-major copy; recorded */
static int tensor_clone (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1);
  sl_error e;
  return sl_lua_tensor_or_raise (
      L, sl_apply_named (sl_lua_context (L), "copy", NULL, 1, &t, &e), &e);
}

/* t:to (dtype) -> t itself if it has this precision, else a converted copy */
static int tensor_to (lua_State *L) {
  sl_tensor *t = sl_lua_check_tensor (L, 1), *copy;
  sl_dtype dtype;
  sl_error e;
  sl_lua_check_string (L, 2);
  dtype = sl_lua_opt_dtype (L, 2, SL_F32);
  lua_settop (L, 1);
  if (dtype == t->storage->dtype) return 1;
  sl_lua_not_recorded (L, t, "to");
  copy = sl_tensor_new (dtype, t->ndim, t->dim, &e);
  if (copy != NULL && sl_tensor_copy (copy, t, &e) < 0) {
    sl_tensor_release (copy);
    copy = NULL;
  }
  return sl_lua_tensor_or_raise (L, copy, &e);
}

static void push_list (lua_State *L, const sl_tensor *t, int axis, size_t *at) {
  sl_view v = sl_tensor_view (t);
  ptrdiff_t n;
  if (axis == t->ndim) {
    lua_pushnumber (L, sl_view_get (&v, t->storage->dtype, (*at)++));
    return;
  }
  n = t->dim[axis];
  lua_createtable (L, n < 1 << 24 ? (int)n : 1 << 24, 0);
  for (ptrdiff_t i = 0; i < n; i++) {
    push_list (L, t, axis + 1, at);
    lua_rawseti (L, -2, i + 1);
  }
}

/* t:totable () -> nested lists; a number for shape () */
static int tensor_totable (lua_State *L) {
  const sl_tensor *t = sl_lua_check_tensor (L, 1);
  size_t at = 0;
  luaL_checkstack (L, SL_MAX_DIMS + 4, "totable");
  push_list (L, t, 0, &at);
  return 1;
}

/* Metatable. */

static int field_shape (lua_State *L, const sl_tensor *t) {
  lua_createtable (L, t->ndim, 0);
  for (int i = 0; i < t->ndim; i++) {
    lua_pushinteger (L, t->dim[i]);
    lua_rawseti (L, -2, i + 1);
  }
  return 1;
}

static int field_dtype (lua_State *L, const sl_tensor *t) {
  lua_pushstring (L, sl_dtype_name (t->storage->dtype));
  return 1;
}

static int field_ndim (lua_State *L, const sl_tensor *t) {
  lua_pushinteger (L, t->ndim);
  return 1;
}

static int field_count (lua_State *L, const sl_tensor *t) {
  sl_view v = sl_tensor_view (t);
  lua_pushinteger (L, (lua_Integer)sl_view_count (&v));
  return 1;
}

static const struct {
  const char *name;
  int (*push) (lua_State *L, const sl_tensor *t);
} fields[] = {
  { "shape", field_shape },
  { "dtype", field_dtype },
  { "ndim", field_ndim },
  { "count", field_count },
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* Raise for a name that a tensor does not have; the methods are upvalue 1. */
static int no_such_name (lua_State *L) {
  enum { MAX_NAMES = 256 };
  const char *names[MAX_NAMES], *name;
  size_t n = 0;
  sl_error e;
  if (lua_type (L, 2) != LUA_TSTRING)
    return sl_lua_fail (
        L,
        "a tensor is not indexed by a %s; t:get (i, ...) reads an "
        "element, t:select (axis, i) a part",
        luaL_typename (L, 2));
  for (; n < N_FIELDS; n++) names[n] = fields[n].name;
  lua_pushnil (L);
  while (n < MAX_NAMES && lua_next (L, lua_upvalueindex (1))) {
    lua_pop (L, 1);
    if (lua_type (L, -1) == LUA_TSTRING) names[n++] = lua_tostring (L, -1);
  }
  name = lua_tostring (L, 2);
  sl_fail_unknown (&e, name, n, names,
                   "a tensor has no field or method '%.100s'", name);
  return sl_lua_raise (L, &e);
}

static int tensor_index (lua_State *L) {
  const char *name;
  lua_pushvalue (L, 2);
  if (lua_rawget (L, lua_upvalueindex (1)) != LUA_TNIL) return 1;
  if (lua_type (L, 2) == LUA_TSTRING) {
    name = lua_tostring (L, 2);
    for (int i = 0; i < N_FIELDS; i++)
      if (strcmp (name, fields[i].name) == 0)
        return fields[i].push (L, sl_lua_check_tensor (L, 1));
  }
  lua_settop (L, 2);
  return no_such_name (L);
}

static int tensor_tostring (lua_State *L) {
  sl_tensor **box = sl_lua_check_object (L, 1, SL_LUA_TENSOR);
  char *text;
  luaL_Buffer b;
  if (*box == NULL) {
    lua_pushliteral (L, "tensor (closed)");
    return 1;
  }
  /* Lua's memory first: nothing may jump while 'text' is held. */
  luaL_buffinitsize (L, &b, 20000);
  text = sl_tensor_text (*box);
  if (text == NULL) return luaL_error (L, "not enough memory");
  memcpy (luaL_buffaddr (&b), text, strlen (text));
  luaL_addsize (&b, strlen (text));
  sl_free (text);
  luaL_pushresult (&b);
  return 1;
}

static int tensor_len (lua_State *L) {
  const sl_tensor *t = sl_lua_check_tensor (L, 1);
  if (t->ndim == 0)
    return sl_lua_fail (L, "a tensor of shape () has no length");
  lua_pushinteger (L, t->dim[0]);
  return 1;
}

static int tensor_eq (lua_State *L) {
  sl_tensor **a = luaL_testudata (L, 1, SL_LUA_TENSOR),
            **b = luaL_testudata (L, 2, SL_LUA_TENSOR);
  lua_pushboolean (L, a != NULL && b != NULL && *a != NULL && *a == *b);
  return 1;
}

void sl_lua_tensor_methods (lua_State *L, const luaL_Reg *methods) {
  lua_getfield (L, -1, "methods");
  luaL_setfuncs (L, methods, 0);
  sl_lua_name_methods (L, SL_LUA_TENSOR);
  lua_pop (L, 1);
}

void sl_lua_open_tensor (lua_State *L) {
  static const luaL_Reg functions[] = {
    { "tensor", tensor_tensor },
    { "zeros", tensor_zeros },
    { "ones", tensor_ones },
    { "full", tensor_full },
    { "arange", tensor_arange },
    { "is_tensor", tensor_is },
    { NULL, NULL },
  };
  static const luaL_Reg methods[] = {
    { "item", tensor_item }, { "totable", tensor_totable },
    { "get", tensor_get },   { "set", tensor_set },
    { "fill", tensor_fill }, { "copy", tensor_copy },
    { "to", tensor_to },     { "clone", tensor_clone },
    { NULL, NULL },
  };
  static const luaL_Reg meta[] = {
    { "__tostring", tensor_tostring },
    { "__len", tensor_len },
    { "__eq", tensor_eq },
    { NULL, NULL },
  };
  luaL_setfuncs (L, functions, 0);
  sl_lua_tensor_metatable (L);
  luaL_setfuncs (L, meta, 0);
  lua_newtable (L);
  lua_pushvalue (L, -1);
  lua_setfield (L, -3, "methods");
  lua_pushcclosure (L, tensor_index, 1);
  lua_setfield (L, -2, "__index");
  sl_lua_tensor_methods (L, methods);
  lua_pop (L, 1);
  sl_lua_open_views (L);
  sl_lua_open_tensor_files (L);
}
