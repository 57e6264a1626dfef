/* lua_check.c - plugin check. */
#include "check/check.h"
#include "lua/lua_common.h"

/* Calls the function at index 5, which shows progress; its errors are ignored. */
static void report (void *data, int done, int total) {
  lua_State *L = data;
  lua_pushvalue (L, 5);
  lua_pushinteger (L, done);
  lua_pushinteger (L, total);
  if (lua_pcall (L, 2, 0, 0) != LUA_OK) lua_pop (L, 1);
}

/* check_plugin (name, seed, seconds, only or nil, function (done, total) or
** nil) -> { { name, state, figure, why, seconds }, ... }; state is "ok", "FAIL"
** or "-". */
static int check_plugin (lua_State *L) {
  static const char *const states[] = {
    [SL_CHECK_FAILED] = "FAIL", [SL_CHECK_OK] = "ok", [SL_CHECK_NONE] = "-"
  };
  const char *name = sl_lua_check_string (L, 1);
  const sl_check_settings s = { .seed = (uint64_t)sl_lua_check_integer (L, 2),
                                .seconds = sl_lua_check_number (L, 3),
                                .only = sl_lua_opt_string (L, 4, NULL),
                                .report = lua_isfunction (L, 5) ? report : NULL,
                                .data = L };
  sl_check_result *r = lua_newuserdatauv (L, SL_MAX_CHECKS * sizeof *r, 0);
  sl_error e;
  const int n = sl_check_plugin (name, &s, r, &e);
  if (n < 0) return sl_lua_raise (L, &e);
  lua_createtable (L, n, 0);
  for (int i = 0; i < n; i++) {
    lua_createtable (L, 0, 5);
    lua_pushstring (L, r[i].name);
    lua_setfield (L, -2, "name");
    lua_pushstring (L, states[r[i].state]);
    lua_setfield (L, -2, "state");
    lua_pushstring (L, r[i].figure);
    lua_setfield (L, -2, "figure");
    lua_pushstring (L, r[i].why);
    lua_setfield (L, -2, "why");
    lua_pushnumber (L, r[i].seconds);
    lua_setfield (L, -2, "seconds");
    lua_rawseti (L, -2, i + 1);
  }
  return 1;
}

/* checks () -> { { name, doc }, ... }: all checks, in order. */
static int checks (lua_State *L) {
  lua_newtable (L);
  for (int i = 0; sl_check_name (i); i++) {
    lua_createtable (L, 0, 2);
    lua_pushstring (L, sl_check_name (i));
    lua_setfield (L, -2, "name");
    lua_pushstring (L, sl_check_doc (i));
    lua_setfield (L, -2, "doc");
    lua_rawseti (L, -2, i + 1);
  }
  return 1;
}

void sl_lua_open_check (lua_State *L) {
  static const luaL_Reg functions[] = { { "check_plugin", check_plugin },
                                        { "checks", checks },
                                        { NULL, NULL } };
  luaL_setfuncs (L, functions, 0);
}
