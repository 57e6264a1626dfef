/* lua_process.c - the worker processes of lab.sweep. */
#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "lua/lua_common.h"

#define PROCESS "sinklab.process"

enum { MOST_ARGUMENTS = 32, MOST_PROCESSES = 4096 };

static sl_process **check_process (lua_State *L, int index) {
  sl_process **box = sl_lua_check_object (L, index, PROCESS);
  sl_lua_argument (L, *box != NULL, index, "this process has been stopped");
  return box;
}

/* process (argument...) -> a new process of this program with these arguments; or
** nil and a sentence */
static int process_start (lua_State *L) {
  char file[1024], *argv[MOST_ARGUMENTS + 2] = { file };
  const int n = lua_gettop (L);
  sl_process **box;
  sl_error e;
  sl_lua_argument (L, n <= MOST_ARGUMENTS, 1, "too many arguments");
  for (int i = 1; i <= n; i++)
    argv[i] = (char *)(uintptr_t)sl_lua_check_string (L, i);
  if (sl_executable_file (file, sizeof file, &e) < 0) return sl_lua_nil (L, &e);
  box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable (L, PROCESS);
  *box = sl_process_start (argv, &e);
  return *box != NULL ? 1 : sl_lua_nil (L, &e);
}

static int outcome (lua_State *L, int status, const sl_error *e) {
  if (status < 0) return sl_lua_nil (L, e);
  lua_pushboolean (L, 1);
  return 1;
}

/* process:send (text) -> true; nil and a sentence */
static int process_send (lua_State *L) {
  sl_process **box = check_process (L, 1);
  size_t n;
  const char *text = sl_lua_check_text (L, 2, &n);
  sl_error e;
  return outcome (L, sl_process_send (*box, text, n, &e), &e);
}

/* process:receive () -> a message; false: it is incomplete so far; nil and a
** sentence: there are no more messages */
static int process_receive (lua_State *L) {
  sl_process **box = check_process (L, 1);
  char *data;
  size_t n;
  sl_error e;
  const int got = sl_process_receive (*box, &data, &n, &e);
  if (got < 0) return sl_lua_nil (L, &e);
  if (got > 0) {
    sl_lua_push_bytes (L, data, n);
    return 1;
  }
  lua_pushboolean (L, 0);
  return 1;
}

/* process:stop () -> the way it ended, in words */
static int process_stop (lua_State *L) {
  sl_process **box = check_process (L, 1), *p = *box;
  char how[128];
  *box = NULL;
  sl_process_stop (p, how, sizeof how);
  lua_pushstring (L, how);
  return 1;
}

static int process_collect (lua_State *L) {
  sl_process **box = sl_lua_check_object (L, 1, PROCESS), *p = *box;
  char how[128];
  *box = NULL;
  sl_process_stop (p, how, sizeof how);
  return 0;
}

/* process_wait (list, seconds) -> the index of a process with a message to
** receive; nil: there was none within that time, or a signal came */
static int process_wait (lua_State *L) {
  const double seconds = sl_lua_check_number (L, 2);
  const lua_Integer n = (sl_lua_check_type (L, 1, LUA_TTABLE), luaL_len (L, 1));
  sl_process **list;
  int found;
  sl_lua_argument (L, n >= 0 && n <= MOST_PROCESSES, 1, "too many processes");
  list = lua_newuserdatauv (L, (size_t)(n + 1) * sizeof *list, 0);
  for (lua_Integer i = 0; i < n; i++) {
    sl_process **box;
    lua_rawgeti (L, 1, i + 1);
    box = luaL_testudata (L, -1, PROCESS);
    sl_lua_argument (L, box && *box, 1, "expected processes that run");
    list[i] = *box;
    lua_pop (L, 1); /* the list keeps it */
  }
  found = sl_process_wait (list, (int)n, seconds);
  if (found < 0)
    lua_pushnil (L);
  else
    lua_pushinteger (L, found + 1);
  return 1;
}

/* In a worker. parent_begin () -> true; parent_receive () -> a message or nil;
** parent_send (text) -> true. nil and a sentence. */
static int parent_begin (lua_State *L) {
  sl_error e;
  return outcome (L, sl_parent_begin (&e), &e);
}

static int parent_receive (lua_State *L) {
  size_t n;
  char *data = sl_parent_receive (&n);
  if (data != NULL) {
    sl_lua_push_bytes (L, data, n);
    return 1;
  }
  lua_pushnil (L);
  return 1;
}

static int parent_send (lua_State *L) {
  size_t n;
  const char *text = sl_lua_check_text (L, 1, &n);
  sl_error e;
  return outcome (L, sl_parent_send (text, n, &e), &e);
}

void sl_lua_open_process (lua_State *L) {
  static const luaL_Reg functions[] = {
    { "process", process_start },     { "process_wait", process_wait },
    { "parent_begin", parent_begin }, { "parent_receive", parent_receive },
    { "parent_send", parent_send },   { NULL, NULL }
  };
  static const luaL_Reg methods[] = { { "send", process_send },
                                      { "receive", process_receive },
                                      { "stop", process_stop },
                                      { NULL, NULL } };
  static const luaL_Reg meta[] = { { "__gc", process_collect },
                                   { "__close", process_collect },
                                   { NULL, NULL } };
  sl_lua_class (L, PROCESS, meta, methods);
  luaL_setfuncs (L, functions, 0);
}
