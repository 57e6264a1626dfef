/* module.c - sinklab as a module of a stock Lua 5.4: require "sinklab".
**
** The program that loads it owns the Lua state, the signals and the exit
** status; a run is closed by run:finish (). */
#include "base/file.h"
#include "base/isa.h"
#include "lua/lua_common.h"
#include "lua/session.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the registry: the userdata that frees the session when the state is closed.
** It is the first of sinklab's objects, so it is the last to be collected. */
#define HOLDER "sinklab.session"

/* Its address gives the file of the module. */
static const char here;

static int close_session (lua_State *L) {
  sl_session *s = lua_touserdata (L, 1);
  if (s) sl_context_free (&s->context);
  return 0;
}

/* The module stands in lib/lua/5.4 of an installation, whose executable is in
** bin, or in lua of a build tree, which is the executable's folder. */
static int find_place (sl_error *e) {
  static const char *const candidates[] = { "%s/../../../bin/sinklab",
                                            "%s/../sinklab" };
  Dl_info info;
  char folder[PATH_MAX], path[PATH_MAX + 64], file[PATH_MAX];
  if (!dladdr (&here, &info) || !realpath (info.dli_fname, folder))
    return sl_fail (e, "cannot find the file of the module sinklab");
  *strrchr (folder, '/') = '\0';
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    snprintf (path, sizeof path, candidates[i], folder);
    if (!realpath (path, file)) continue;
    *strrchr (file, '/') = '\0';
    return sl_set_program_folder (file, e);
  }
  return sl_fail (
      e, "%s: the installation of sinklab around it is not complete", folder);
}

/* SINKLAB_THREADS: worker threads; not set: all. */
static int threads_asked (sl_error *e) {
  const char *text = getenv ("SINKLAB_THREADS");
  char *end;
  long n;
  if (!text || !*text) return 0;
  n = strtol (text, &end, 10);
  if (*end || n < 0 || n > SL_POOL_MOST)
    return sl_fail (e, "SINKLAB_THREADS=%s: expected a number from 0 to %d",
                    text, SL_POOL_MOST);
  return (int)n;
}

__attribute__ ((visibility ("default"))) int luaopen_sinklab (lua_State *L);

int luaopen_sinklab (lua_State *L) {
  sl_session *s;
  sl_error e;
  sl_isa isa;
  int threads;
  luaL_checkversion (L);
  if (sl_lua_session (L))
    return luaL_error (L, "sinklab has been loaded into this program already");
  s = lua_newuserdatauv (L, sizeof *s, 0);
  memset (s, 0, sizeof *s);
  lua_newtable (L);
  lua_pushcfunction (L, close_session);
  lua_setfield (L, -2, "__gc");
  lua_setmetatable (L, -2);
  threads = threads_asked (&e);
  if (threads < 0 || find_place (&e) != 0 || sl_isa_choose (&isa, &e) != 0 ||
      sl_session_join (s, L, threads, &e) != 0)
    return luaL_error (L, "sinklab: %s", e.text);
  lua_setfield (L, LUA_REGISTRYINDEX, HOLDER);
  lua_getglobal (L, "require");
  lua_pushvalue (L, -1);
  lua_pushliteral (L, "sinklab.cli.stock_lua");
  lua_call (L, 1, 0);
  lua_pushliteral (L, "sinklab");
  lua_call (L, 1, 1);
  return 1;
}
