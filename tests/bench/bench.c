/* bench.c - sinklab_bench: the benchmark's host. What needs the machine is
** here, as the Lua module "bench"; what is measured and how it is shown is
** bench.lua. */
#include "attention/attention.h"
#include "base/clock.h"
#include "base/isa.h"
#include "bench/attention.h"
#include "bench/machine.h"
#include "lua/lua_common.h"
#include "lua/session.h"
#include <stdio.h>
#include <string.h>

/* bench.threads (n): the session's pool becomes one of n pinned workers. */
static int threads (lua_State *L) {
  sl_context *c = sl_lua_context (L);
  sl_error e;
  sl_pool *pool = sl_pool_new ((int)luaL_checkinteger (L, 1), &e);
  if (pool == NULL) return sl_lua_raise (L, &e);
  sl_pool_free (c->pool);
  c->pool = pool;
  lua_pushboolean (L, bench_pin (pool) == 0);
  return 1;
}

/* bench.peak (seconds) -> f32 operations a second of all workers */
static int peak (lua_State *L) {
  lua_pushnumber (
      L, bench_peak_rate (sl_lua_context (L)->pool, luaL_checknumber (L, 1)));
  return 1;
}

/* bench.sgemm (n, threads, seconds) -> rate, kernel; or nil, why not */
static int sgemm (lua_State *L) {
  char kernel[64];
  double rate;
  sl_error e;
  if (bench_sgemm ((int)luaL_checkinteger (L, 1), (int)luaL_checkinteger (L, 2),
                   luaL_checknumber (L, 3), &rate, kernel, &e) < 0)
    return sl_lua_nil (L, &e);
  lua_pushnumber (L, rate);
  lua_pushstring (L, kernel);
  return 2;
}

/* bench.attention (mechanism, heads, t, d, seconds) -> seconds of the fastest
** run, bytes of all workers beyond inputs and outputs. At least one run. */
static int attention (lua_State *L) {
  const double seconds = luaL_checknumber (L, 5), start = sl_now ();
  double best = 0;
  sl_error e;
  bench_attention *b = bench_attention_new (
      sl_lua_context (L), luaL_checkstring (L, 1),
      (int)luaL_checkinteger (L, 2), (int)luaL_checkinteger (L, 3),
      (int)luaL_checkinteger (L, 4), &e);
  if (b == NULL) return sl_lua_raise (L, &e);
  do {
    const double from = sl_now ();
    double took;
    bench_attention_run (b);
    took = sl_now () - from;
    if (best == 0 || took < best) best = took;
  } while (sl_now () - start < seconds);
  lua_pushnumber (L, best);
  lua_pushinteger (L, (lua_Integer)bench_attention_extra (b));
  bench_attention_free (b);
  return 2;
}

/* Adds the module and enters the context from which lab.options reads. Argument:
** argv from the first option on, NULL-ended. */
static int prepare (lua_State *L) {
  static const luaL_Reg module[] = { { "threads", threads },
                                     { "peak", peak },
                                     { "sgemm", sgemm },
                                     { "attention", attention },
                                     { NULL, NULL } };
  char **argument = lua_touserdata (L, 1);
  luaL_getsubtable (L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  luaL_newlib (L, module);
  lua_pushliteral (L, SINKLAB_BENCH_SOURCE);
  lua_setfield (L, -2, "source");
  lua_setfield (L, -2, "bench");
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.cli.context");
  lua_call (L, 1, 1);
  lua_getfield (L, -1, "enter");
  lua_newtable (L);
  lua_newtable (L);
  for (lua_Integer n = 0; *argument; argument++) {
    if (strcmp (*argument, "--help") == 0) {
      lua_pushboolean (L, 1);
      lua_setfield (L, -3, "help");
      continue;
    }
    lua_pushstring (L, *argument);
    lua_rawseti (L, -2, ++n);
  }
  lua_setfield (L, -2, "arguments");
  lua_call (L, 1, 0);
  return 0;
}

int main (int argc, char **argv) {
  sl_session s = { 0 };
  sl_error e = { "" };
  sl_isa isa;
  int status = 0;
  (void)argc;
  if (sl_isa_choose (&isa, &e) < 0 || sl_session_open (&s, 1, &e) < 0) {
    fprintf (stderr, "sinklab_bench: %s\n", e.text);
    sl_session_close (&s);
    return 1;
  }
  s.quiet = 1;
  sl_session_watch (&s);
  lua_pushcfunction (s.L, prepare);
  lua_pushlightuserdata (s.L, argv + 1);
  if (sl_session_call (&s, 1, 0) != LUA_OK)
    status = 1;
  else if (sl_session_load (&s, SINKLAB_BENCH_SOURCE "/bench.lua", "bench.lua",
                            &e) < 0) {
    lua_pushstring (s.L, e.text);
    status = 1;
  } else if (sl_session_call (&s, 0, 0) != LUA_OK)
    status = sl_session_quits (&s, -1, &status) ? status : 1;
  if (status != 0 && lua_isstring (s.L, -1))
    fprintf (stderr, "sinklab_bench: %s\n", lua_tostring (s.L, -1));
  sl_session_close (&s);
  return status;
}
