/* lua_json.c - JSON read into Lua values, by jansson. Writing is json.lua's. */
#include "base/json_load.h"
#include "lua/lua_common.h"

#define JSON_HANDLE "sinklab.json"
enum { DEEPEST = 200, MARKS = 2 };

static int json_release (lua_State *L) {
  json_t **box = sl_lua_check_object (L, 1, JSON_HANDLE);
  json_decref (*box);
  *box = NULL;
  return 0;
}

/* Whether arrays and objects nest at most 'levels' deep. */
static int is_shallow (const json_t *value, int levels) {
  const char *key;
  json_t *field;
  if (!json_is_array (value) && !json_is_object (value)) return 1;
  if (levels == 0) return 0;
  for (size_t i = 0; i < json_array_size (value); i++)
    if (!is_shallow (json_array_get (value, i), levels - 1)) return 0;
  json_object_foreach ((json_t *)value, key, field) {
    if (!is_shallow (field, levels - 1)) return 0;
  }
  return 1;
}

static void push_json (lua_State *L, const json_t *value);

static void push_array (lua_State *L, const json_t *value) {
  size_t n = json_array_size (value);
  lua_createtable (L, n < 1 << 20 ? (int)n : 1 << 20, 0);
  if (n == 0) { /* only a mark tells it from an empty object */
    lua_pushvalue (L, -1);
    lua_pushliteral (L, "array");
    lua_rawset (L, MARKS);
  }
  for (size_t i = 0; i < n; i++) {
    push_json (L, json_array_get (value, i));
    lua_rawseti (L, -2, (lua_Integer)i + 1);
  }
}

static void push_object (lua_State *L, const json_t *value) {
  const char *key;
  json_t *field;
  lua_newtable (L);
  json_object_foreach ((json_t *)value, key, field) {
    push_json (L, field);
    lua_setfield (L, -2, key);
  }
}

static void push_json (lua_State *L, const json_t *value) {
  luaL_checkstack (L, 4, "JSON");
  switch (json_typeof (value)) {
  case JSON_OBJECT: push_object (L, value); break;
  case JSON_ARRAY: push_array (L, value); break;
  case JSON_STRING:
    lua_pushlstring (L, json_string_value (value), json_string_length (value));
    break;
  case JSON_INTEGER: lua_pushinteger (L, json_integer_value (value)); break;
  case JSON_REAL: lua_pushnumber (L, json_real_value (value)); break;
  case JSON_TRUE: lua_pushboolean (L, 1); break;
  case JSON_FALSE: lua_pushboolean (L, 0); break;
  case JSON_NULL: lua_pushlightuserdata (L, NULL); break;
  }
}

/* json_decode (text, marks) -> value, or nil and a sentence. null is
** core.json_null; marks[t] becomes "array" for empty arrays t; text after the
** value, a repeated key, a NUL in a key and deep nesting are errors. */
static int json_decode_text (lua_State *L) {
  size_t n;
  const char *text = sl_lua_check_text (L, 1, &n);
  json_t **box;
  json_error_t trouble;
  sl_lua_check_type (L, MARKS, LUA_TTABLE);
  box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = NULL;
  sl_lua_own (L, JSON_HANDLE, json_release);
  *box = sl_json_load (
      text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
      &trouble);
  if (!*box) {
    sl_error e;
    sl_fail (&e, "JSON, line %d, column %d: %s", trouble.line, trouble.column,
             trouble.text);
    return sl_lua_nil (L, &e);
  }
  if (!is_shallow (*box, DEEPEST)) {
    sl_error e;
    sl_fail (&e, "JSON: nested deeper than %d", DEEPEST);
    return sl_lua_nil (L, &e);
  }
  push_json (L, *box);
  json_decref (*box);
  *box = NULL;
  return 1;
}

void sl_lua_open_json (lua_State *L) {
  lua_pushcfunction (L, json_decode_text);
  lua_setfield (L, -2, "json_decode");
  lua_pushlightuserdata (L, NULL);
  lua_setfield (L, -2, "json_null");
}
