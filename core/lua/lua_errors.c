/* lua_errors.c - errors that name the public function and blame the script's line. */
#include "lua/lua_common.h"
#include "lua/session.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Registry: function -> its public name, "lab.softmax" or "tensor:reshape". */
static const char names_key;

static void push_names (lua_State *L) {
  if (lua_rawgetp (L, LUA_REGISTRYINDEX, &names_key) == LUA_TTABLE) return;
  lua_pop (L, 1);
  lua_newtable (L);
  lua_newtable (L);
  lua_pushliteral (L, "k");
  lua_setfield (L, -2, "__mode");
  lua_setmetatable (L, -2);
  lua_pushvalue (L, -1);
  lua_rawsetp (L, LUA_REGISTRYINDEX, &names_key);
}

int sl_lua_name (lua_State *L) {
  luaL_checktype (L, 1, LUA_TFUNCTION);
  luaL_checktype (L, 2, LUA_TSTRING);
  lua_settop (L, 2);
  push_names (L);
  lua_insert (L, 1);
  lua_rawset (L, 1);
  return 0;
}

void sl_lua_name_methods (lua_State *L, const char *name) {
  const int methods = lua_gettop (L), names = methods + 1;
  push_names (L);
  for (lua_pushnil (L); lua_next (L, methods); lua_pop (L, 1)) {
    lua_pushvalue (L, -1);
    lua_pushfstring (L, "%s:%s", name + strlen ("sinklab."),
                     lua_tostring (L, -3));
    lua_rawset (L, names);
  }
  lua_pop (L, 1);
}

void sl_lua_push_origin (lua_State *L) {
  lua_Debug ar;
  luaL_checkstack (L, 6, NULL);
  push_names (L);
  lua_pushnil (L);
  for (int level = 0; lua_getstack (L, level, &ar); level++) {
    lua_getinfo (L, "Slf", &ar);
    if (ar.currentline > 0 &&
        strncmp (ar.source, SL_LIBRARY_CHUNK, strlen (SL_LIBRARY_CHUNK)) != 0) {
      lua_pop (L, 1);
      lua_pushfstring (
          L, "%s:%d: ", *ar.source == '@' ? ar.source + 1 : ar.short_src,
          ar.currentline);
      lua_replace (L, -3);
      return;
    }
    if (lua_rawget (L, -3) == LUA_TSTRING)
      lua_replace (L, -2);
    else
      lua_pop (L, 1);
  }
  lua_pop (L, 2);
  lua_pushliteral (L, "");
  lua_pushnil (L);
}

void sl_lua_push_where (lua_State *L) {
  sl_lua_push_origin (L);
  lua_pop (L, 1);
}

/* The part of the name that the text, which may begin with its end, lacks:
** "lab." of "lab.softmax" for "softmax: ...". */
static size_t lacks (const char *name, const char *text) {
  const size_t whole = strlen (name);
  for (size_t i = 0; i < whole; i++) {
    const size_t n = whole - i;
    if (i > 0 && name[i - 1] != '.' && name[i - 1] != ':') continue;
    if (strncmp (text, name + i, n) == 0 && text[n] && strchr (":.", text[n]))
      return i;
  }
  return whole;
}

void sl_lua_blame (lua_State *L, const char *text) {
  const char *name;
  sl_lua_push_origin (L);
  name = lua_tostring (L, -1);
  if (name) {
    const size_t n = lacks (name, text);
    lua_pushlstring (L, name, n);
    lua_pushstring (L, name[n] ? "" : ": ");
    lua_concat (L, 2);
  } else
    lua_pushliteral (L, "");
  lua_remove (L, -2);
  lua_pushstring (L, text);
  lua_concat (L, 3);
}

int sl_lua_raise (lua_State *L, const sl_error *e) {
  sl_session *s = sl_lua_session (L);
  if (s->failed) {
    luaL_checkstack (L, 1, e->text);
    lua_xmove (s->failed, L, 1);
    s->failed = NULL;
    return lua_error (L);
  }
  sl_lua_blame (L, e->text);
  return lua_error (L);
}

int sl_lua_fail (lua_State *L, const char *format, ...) {
  sl_error e;
  va_list args;
  va_start (args, format);
  vsnprintf (e.text, sizeof e.text, format, args);
  va_end (args);
  return sl_lua_raise (L, &e);
}

int sl_lua_nil (lua_State *L, const sl_error *e) {
  luaL_pushfail (L);
  lua_pushstring (L, e->text);
  return 2;
}
