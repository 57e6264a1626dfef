/* reading.c - Lua's own functions that read: the first signal ends their wait. */
#include "base/interrupt.h"
#include "lua/session.h"
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Signals restart system calls (base/interrupt.h), so that no write is cut. A
** read that waits for a terminal or a pipe would go on waiting: while one of
** Lua's functions reads, signals end system calls. */
static void restart (int on) {
  for (const int *number = sl_stop_signals; *number; number++) {
    struct sigaction action;
    if (sigaction (*number, NULL, &action)) continue;
    action.sa_flags =
        on ? action.sa_flags | SA_RESTART : action.sa_flags & ~SA_RESTART;
    sigaction (*number, &action, NULL);
  }
}

/* Whether the value is an open regular file of Lua, which nothing waits for: its
** reads, one a line, are spared the system calls of restart (). */
static int is_regular (lua_State *L, int index) {
  const luaL_Stream *s = luaL_testudata (L, index, LUA_FILEHANDLE);
  struct stat info;
  return s && s->closef && fstat (fileno (s->f), &info) == 0 &&
         S_ISREG (info.st_mode);
}

/* Upvalues: the function of Lua; whether it returns a function that reads. */
static int read_with (lua_State *L) {
  const int iterates = lua_toboolean (L, lua_upvalueindex (2));
  const int waits = !is_regular (L, 1);
  int status, results;
  lua_pushvalue (L, lua_upvalueindex (1));
  lua_insert (L, 1);
  if (!waits) {
    lua_call (L, lua_gettop (L) - 1, LUA_MULTRET);
    return lua_gettop (L);
  }
  restart (0);
  status = lua_pcall (L, lua_gettop (L) - 1, LUA_MULTRET, 0);
  restart (1);
  if (status != LUA_OK) return lua_error (L);
  results = lua_gettop (L);
  /* the first captured value of the function that lines () returns is its file */
  if (iterates && lua_getupvalue (L, 1, 1) && !is_regular (L, -1)) {
    lua_pushvalue (L, 1);
    lua_pushboolean (L, 0);
    lua_pushcclosure (L, read_with, 2);
    lua_replace (L, 1);
  }
  if (iterates) lua_settop (L, results);
  return results;
}

/* t[name] = read_with, for the table t on the top of the stack. */
static void replace (lua_State *L, const char *name) {
  if (lua_getfield (L, -1, name) != LUA_TFUNCTION) {
    lua_pop (L, 1);
    return;
  }
  lua_pushboolean (L, strcmp (name, "lines") == 0);
  lua_pushcclosure (L, read_with, 2);
  lua_setfield (L, -2, name);
}

void sl_session_reading (lua_State *L) {
  lua_getglobal (L, LUA_IOLIBNAME);
  replace (L, "read");
  replace (L, "lines");
  replace (L, "open"); /* of a pipe that nobody writes */
  lua_pop (L, 1);
  luaL_getmetatable (L, LUA_FILEHANDLE);
  lua_getfield (L, -1, "__index");
  replace (L, "read");
  replace (L, "lines");
  lua_pop (L, 2);
}
