/* lua_common.c - arguments checked, tensors wrapped. */
#include "lua/lua_common.h"
#include "base/memory.h"
#include "lua/session.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Told to the collector in portions, so that small tensors cost nothing. */
enum { ACCOUNT_BYTES = 256 * 1024 };

sl_context *sl_lua_context (lua_State *L) {
  return &sl_lua_session (L)->context;
}

static int push_data (lua_State *L) {
  lua_pushlstring (L, lua_touserdata (L, 1), (size_t)lua_tointeger (L, 2));
  return 1;
}

void sl_lua_push_bytes (lua_State *L, char *data, size_t n) {
  int status;
  lua_pushcfunction (L, push_data);
  lua_pushlightuserdata (L, data);
  lua_pushinteger (L, (lua_Integer)n);
  status = lua_pcall (L, 2, 1, 0);
  sl_free (data);
  if (status != LUA_OK) lua_error (L);
}

void sl_lua_class (lua_State *L, const char *name, const luaL_Reg *meta,
                   const luaL_Reg *methods) {
  luaL_newmetatable (L, name);
  luaL_setfuncs (L, meta, 0);
  if (methods) {
    lua_newtable (L);
    luaL_setfuncs (L, methods, 0);
    sl_lua_name_methods (L, name);
    lua_setfield (L, -2, "__index");
  }
  lua_pop (L, 1);
}

void sl_lua_own (lua_State *L, const char *name, lua_CFunction release) {
  if (luaL_newmetatable (L, name)) {
    lua_pushcfunction (L, release);
    lua_setfield (L, -2, "__gc");
  }
  lua_setmetatable (L, -2);
}

/* Tensors. */

static int tensor_release (lua_State *L) {
  sl_tensor **box = sl_lua_check_object (L, 1, SL_LUA_TENSOR);
  sl_tensor *t = *box;
  *box = NULL;
  sl_tensor_release (t);
  return 0;
}

void sl_lua_tensor_metatable (lua_State *L) {
  static const luaL_Reg owner[] = { { "__gc", tensor_release },
                                    { "__close", tensor_release },
                                    { NULL, NULL } };
  if (luaL_newmetatable (L, SL_LUA_TENSOR)) luaL_setfuncs (L, owner, 0);
}

/* An empty box: valid before anything can fail. */
static int tensor_box (lua_State *L) {
  sl_tensor **box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = NULL;
  sl_lua_tensor_metatable (L);
  lua_setmetatable (L, -2);
  return 1;
}

/* The collector sees a pointer where there are megabytes: tell it, so that
** garbage tensors are freed in time. */
static void account (lua_State *L, const sl_tensor *t) {
  sl_session *s = sl_lua_session (L);
  if (t->refs != 1 || t->storage->refs != 1) return; /* a view, or shared */
  s->unaccounted += t->storage->count * sl_dtype_size (t->storage->dtype);
  if (s->unaccounted < ACCOUNT_BYTES) return;
  if (lua_gc (L, LUA_GCISRUNNING)) {
    size_t kb = s->unaccounted / 1024;
    lua_gc (L, LUA_GCSTEP, (int)(kb < 1 << 20 ? kb : 1 << 20));
  }
  s->unaccounted = 0;
}

void sl_lua_push_tensor (lua_State *L, sl_tensor *t) {
  int status = LUA_ERRMEM;
  if (lua_checkstack (L, 8)) {
    lua_pushcfunction (L, tensor_box);
    status = lua_pcall (L, 0, 1, 0);
  }
  if (status != LUA_OK) {
    sl_tensor_release (t);
    if (status == LUA_ERRMEM) luaL_error (L, "not enough memory");
    lua_error (L);
  }
  *(sl_tensor **)lua_touserdata (L, -1) = t;
  account (L, t);
}

/* Arguments. */

/* The argument in messages; the first one of a method is its object. */
int sl_lua_wrong_argument (lua_State *L, int arg, const char *said) {
  const char *name;
  sl_lua_push_origin (L);
  name = lua_tostring (L, -1);
  if (name && strchr (name, ':') && --arg == 0)
    return sl_lua_fail (L, "its object: %s; call it with ':'", said);
  return sl_lua_fail (L, "argument %d: %s", arg, said);
}

static int wrong_kind (lua_State *L, int arg, const char *expected) {
  const char *got = luaL_typename (L, arg);
  if (luaL_getmetafield (L, arg, "__name") == LUA_TSTRING)
    got = lua_tostring (L, -1);
  if (strncmp (got, "sinklab.", 8) == 0) got += 8;
  return sl_lua_wrong_argument (
      L, arg, lua_pushfstring (L, "expected %s, got %s", expected, got));
}

void sl_lua_check_type (lua_State *L, int arg, int type) {
  if (lua_type (L, arg) != type)
    wrong_kind (L, arg, lua_pushfstring (L, "a %s", lua_typename (L, type)));
}

lua_Integer sl_lua_check_integer (lua_State *L, int arg) {
  int whole;
  const lua_Integer n = lua_tointegerx (L, arg, &whole);
  if (whole && lua_type (L, arg) == LUA_TNUMBER) return n;
  if (lua_type (L, arg) != LUA_TNUMBER) wrong_kind (L, arg, "a whole number");
  sl_lua_wrong_argument (L, arg,
                         lua_pushfstring (L, "expected a whole number, got %f",
                                          lua_tonumber (L, arg)));
  return 0;
}

lua_Number sl_lua_check_number (lua_State *L, int arg) {
  if (lua_type (L, arg) != LUA_TNUMBER) wrong_kind (L, arg, "a number");
  return lua_tonumber (L, arg);
}

const char *sl_lua_check_text (lua_State *L, int arg, size_t *n) {
  if (lua_type (L, arg) != LUA_TSTRING) wrong_kind (L, arg, "a string");
  return lua_tolstring (L, arg, n);
}

const char *sl_lua_check_string (lua_State *L, int arg) {
  return sl_lua_check_text (L, arg, NULL);
}

lua_Integer sl_lua_opt_integer (lua_State *L, int arg, lua_Integer def) {
  return lua_isnoneornil (L, arg) ? def : sl_lua_check_integer (L, arg);
}

lua_Number sl_lua_opt_number (lua_State *L, int arg, lua_Number def) {
  return lua_isnoneornil (L, arg) ? def : sl_lua_check_number (L, arg);
}

const char *sl_lua_opt_string (lua_State *L, int arg, const char *def) {
  return lua_isnoneornil (L, arg) ? def : sl_lua_check_string (L, arg);
}

void *sl_lua_check_object (lua_State *L, int arg, const char *class) {
  void *box = luaL_testudata (L, arg, class);
  if (!box) wrong_kind (L, arg, lua_pushfstring (L, "a %s", class + 8));
  return box;
}

sl_tensor *sl_lua_check_tensor (lua_State *L, int index) {
  sl_tensor **box = sl_lua_check_object (L, index, SL_LUA_TENSOR);
  sl_lua_argument (L, *box != NULL, index, "this tensor has been closed");
  return *box;
}

sl_tensor *sl_lua_opt_tensor (lua_State *L, int index) {
  return lua_isnoneornil (L, index) ? NULL : sl_lua_check_tensor (L, index);
}

sl_program *sl_lua_check_program (lua_State *L, int index) {
  sl_program **box = sl_lua_check_object (L, index, SL_LUA_PROGRAM);
  sl_lua_argument (L, *box != NULL, index, "this program has been closed");
  return *box;
}

/* Options tables. */

/* 0 without a table; raises for anything that is not one. */
static int is_table (lua_State *L, int index, const char *what) {
  sl_error e;
  if (lua_isnoneornil (L, index)) return 0;
  if (lua_istable (L, index)) return 1;
  sl_fail (&e, "%s: expected a table of options, got %s", what,
           luaL_typename (L, index));
  return sl_lua_raise (L, &e);
}

/* The type of field 'key', whose value is pushed. Raw, so that the strict
** tables of lab.options can be passed as they are. */
static int push_field (lua_State *L, int index, const char *what,
                       const char *key) {
  if (!is_table (L, index, what)) {
    lua_pushnil (L);
    return LUA_TNIL;
  }
  lua_pushstring (L, key);
  return lua_rawget (L, index);
}

static int wrong_type (lua_State *L, const char *what, const char *key,
                       const char *expected) {
  sl_error e;
  sl_fail (&e, "%s.%s: expected %s, got %s", what, key, expected,
           luaL_typename (L, -1));
  return sl_lua_raise (L, &e);
}

double sl_lua_number (lua_State *L, int index, const char *what,
                      const char *key, double def) {
  int type = push_field (L, index, what, key);
  double value = type == LUA_TNUMBER ? lua_tonumber (L, -1) : def;
  if (type != LUA_TNUMBER && type != LUA_TNIL)
    wrong_type (L, what, key, "number");
  lua_pop (L, 1);
  return value;
}

lua_Integer sl_lua_integer (lua_State *L, int index, const char *what,
                            const char *key, lua_Integer def) {
  int type = push_field (L, index, what, key), whole = 1;
  lua_Integer value = def;
  if (type == LUA_TNUMBER) {
    value = lua_tointegerx (L, -1, &whole);
    if (!whole) {
      sl_error e;
      sl_fail (&e, "%s.%s: expected a whole number, got %.17g", what, key,
               lua_tonumber (L, -1));
      sl_lua_raise (L, &e);
    }
  } else if (type != LUA_TNIL)
    wrong_type (L, what, key, "a whole number");
  lua_pop (L, 1);
  return value;
}

int sl_lua_int (lua_State *L, int index, const char *what, const char *key,
                int def) {
  const lua_Integer n = sl_lua_integer (L, index, what, key, def);
  if (n >= INT_MIN && n <= INT_MAX) return (int)n;
  return sl_lua_fail (L, "%s.%s: %lld is out of range", what, key,
                      (long long)n);
}

int sl_lua_boolean (lua_State *L, int index, const char *what, const char *key,
                    int def) {
  int type = push_field (L, index, what, key);
  int value = type == LUA_TBOOLEAN ? lua_toboolean (L, -1) : def;
  if (type != LUA_TBOOLEAN && type != LUA_TNIL)
    wrong_type (L, what, key, "boolean");
  lua_pop (L, 1);
  return value;
}

const char *sl_lua_string (lua_State *L, int index, const char *what,
                           const char *key, const char *def) {
  int type = push_field (L, index, what, key);
  const char *value = type == LUA_TSTRING ? lua_tostring (L, -1) : def;
  if (type != LUA_TSTRING && type != LUA_TNIL)
    wrong_type (L, what, key, "string");
  lua_pop (L, 1);
  return value;
}

/* The type of the boxed value at the top of the stack, for an error. */
static const char *what_is (lua_State *L, const void *box) {
  return box ? "a closed one" : luaL_typename (L, -1);
}

sl_tensor *sl_lua_field_tensor (lua_State *L, const char *what, const char *key,
                                int i) {
  sl_tensor **box = luaL_testudata (L, -1, SL_LUA_TENSOR);
  char place[32] = "";
  if (box && *box) return *box;
  if (i > 0) snprintf (place, sizeof place, "[%d]", i);
  sl_lua_fail (L, "%s.%s%s: expected a tensor, got %s", what, key, place,
               what_is (L, box));
  return NULL;
}

sl_program *sl_lua_field_program (lua_State *L, const char *what) {
  sl_program **box = luaL_testudata (L, -1, SL_LUA_PROGRAM);
  if (box && *box) return *box;
  sl_lua_fail (L, "%s.program: expected a program, got %s", what,
               what_is (L, box));
  return NULL;
}

void sl_lua_known (lua_State *L, int index, const char *what,
                   const char *const *keys) {
  size_t n = 0;
  sl_error e;
  if (!is_table (L, index, what)) return;
  while (keys[n]) n++;
  lua_pushnil (L);
  while (lua_next (L, index)) {
    const char *key;
    size_t i = 0;
    lua_pop (L, 1);
    if (lua_type (L, -1) != LUA_TSTRING) {
      sl_fail (&e, "%s: expected named options, got the key [%s]", what,
               luaL_tolstring (L, -1, NULL));
      sl_lua_raise (L, &e);
    }
    key = lua_tostring (L, -1);
    while (i < n && strcmp (keys[i], key) != 0) i++;
    if (i < n) continue;
    sl_fail_unknown (&e, key, n, keys, "%s: no option '%s'", what, key);
    sl_lua_raise (L, &e);
  }
}
