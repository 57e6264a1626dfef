/* stop.c - how a signal or the end of the process stops Lua code, wherever it
** runs. */
#include "base/escape.h"
#include "base/interrupt.h"
#include "lua/lua_common.h"
#include "lua/session.h"
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Instructions between a signal and the error it becomes. */
enum { INTERRUPT_GRACE = 100000 };

/* Coroutines. A signal has to reach the Lua thread that runs, which may be a
** coroutine: resume and wrap keep a list of the running ones, each above its
** resumer. Lua's own functions keep none. */

typedef struct running {
  lua_State *L;
  struct running *below;
} running;
static running *volatile top_running;

/* Resume co with the n arguments on the top of L. The number of results, moved
** to L, or -1 with an error there. */
static int resume (lua_State *L, lua_State *co, int n) {
  running r = { co, top_running };
  int got = 0, status;
  if (!lua_checkstack (co, n)) {
    lua_pushliteral (L, "too many arguments to resume");
    return -1;
  }
  lua_xmove (L, co, n);
  atomic_signal_fence (memory_order_seq_cst); /* r is whole when it is read */
  top_running = &r;
  status = lua_resume (co, L, n, &got);
  top_running = r.below;
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove (co, L, 1);
    return -1;
  }
  if (!lua_checkstack (L, got + 1)) {
    lua_pop (co, got);
    lua_pushliteral (L, "too many results to resume");
    return -1;
  }
  lua_xmove (co, L, got);
  return got;
}

static int co_resume (lua_State *L) {
  lua_State *co = lua_tothread (L, 1);
  int n;
  luaL_argexpected (L, co, 1, "coroutine");
  n = resume (L, co, lua_gettop (L) - 1);
  lua_pushboolean (L, n >= 0);
  lua_insert (L, n >= 0 ? -(n + 1) : -2);
  return n >= 0 ? n + 1 : 2;
}

/* An error in a wrapped coroutine is its resumer's, and it is closed. */
static int co_wrapped (lua_State *L) {
  lua_State *co = lua_tothread (L, lua_upvalueindex (1));
  int n = resume (L, co, lua_gettop (L)), status;
  if (n >= 0) return n;
  status = lua_status (co);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_pop (L, 1);
    lua_resetthread (co); /* its error is on its stack again */
    lua_xmove (co, L, 1);
  }
  if (lua_type (L, -1) == LUA_TSTRING) {
    luaL_where (L, 1);
    lua_insert (L, -2);
    lua_concat (L, 2);
  }
  return lua_error (L);
}

static int co_wrap (lua_State *L) {
  lua_State *co;
  luaL_checktype (L, 1, LUA_TFUNCTION);
  co = lua_newthread (L);
  lua_pushvalue (L, 1);
  lua_xmove (L, co, 1);
  lua_pushcclosure (L, co_wrapped, 1);
  return 1;
}

void sl_session_coroutines (lua_State *L) {
  static const luaL_Reg functions[] = { { "resume", co_resume },
                                        { "wrap", co_wrap },
                                        { NULL, NULL } };
  lua_getglobal (L, LUA_COLIBNAME);
  luaL_setfuncs (L, functions, 0);
  lua_pop (L, 1);
}

/* Signals. Our handler sets the flag by sl_interrupt, then asks Lua to stop.
** lua_sethook may be called from a signal handler. */

static running bottom;
static volatile sig_atomic_t grace = INTERRUPT_GRACE, patience;

static void stop_soon (void);

/* Code that catches the error and goes on is interrupted again after a tenth of
** the instructions, so that a loop around pcall ends too. */
static void interrupt_hook (lua_State *L, lua_Debug *ar) {
  (void)ar;
  if (!sl_interrupted) { /* reported while this coroutine was suspended */
    lua_sethook (L, NULL, 0, 0);
    return;
  }
  if (grace > 1) grace /= 10;
  stop_soon ();
  sl_lua_push_where (L);
  lua_pushliteral (L, "interrupted");
  lua_concat (L, 2);
  lua_error (L);
}

static void stop_soon (void) {
  for (running *r = top_running; r; r = r->below)
    lua_sethook (r->L, interrupt_hook, LUA_MASKCOUNT, grace);
}

void sl_session_grace (lua_State *L) {
  lua_sethook (L, interrupt_hook, LUA_MASKCOUNT, INTERRUPT_GRACE);
}

void sl_session_patience (int presses) {
  patience = presses;
}

static void on_signal (int number) {
  static const char said[] = "\nstopping at the next safe place; Ctrl-C once "
                             "more ends sinklab\n";
  if (number == SIGINT && sl_interrupted && patience > 0) {
    int code = errno;
    patience--;
    if (write (STDERR_FILENO, said, sizeof said - 1) < 0) patience = 0;
    errno = code;
    return;
  }
  sl_interrupt (number);
  stop_soon ();
}

/* The reader of the output has gone. Ignored from then on: the output that is
** still written would raise the signal again. */
static void on_pipe (int number) {
  signal (number, SIG_IGN);
  if (!sl_interrupted) sl_interrupted = number;
  stop_soon ();
}

void sl_session_watch (sl_session *s) {
  struct sigaction action = { .sa_handler = on_pipe, .sa_flags = SA_RESTART };
  sigemptyset (&action.sa_mask);
  bottom.L = s->L;
  top_running = &bottom;
  sl_stop_signals_handle (on_signal);
  sigaction (SIGPIPE, &action, NULL);
}

void sl_session_calm (sl_session *s) {
  lua_sethook (s->L, NULL, 0, 0);
  grace = INTERRUPT_GRACE;
  sl_interrupted = 0;
}

/* The end of the process. os.exit () and exit () end it while Lua code runs: the
** record of the run is closed first. */

static sl_session *open_session;
static pid_t opener;          /* a forked child closes no run of its parent */
static lua_CFunction os_exit; /* nothing else of Lua ends a process */

/* Lua: (argument of os.exit) -> nothing; closes the run, if there is one. */
static int close_run (lua_State *L) {
  luaL_getsubtable (L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  if (lua_getfield (L, -1, "sinklab.record.run") != LUA_TTABLE) return 0;
  lua_getfield (L, -1, "exit");
  lua_pushvalue (L, 1);
  lua_call (L, 1, 0);
  return 0;
}

/* A function other than os.exit calls exit (), as a kernel of a plugin may. */
static int is_foreign (lua_State *L, lua_Debug *ar) {
  lua_CFunction f;
  lua_getinfo (L, "f", ar);
  f = lua_tocfunction (L, -1);
  lua_pop (L, 1);
  return f != NULL && f != os_exit;
}

static void on_exit_of_process (void) {
  static const char ended[] =
      "the process was ended by exit () in C code, as of "
      "a plugin";
  lua_State *L;
  lua_Debug ar;
  int foreign = 0;
  if (!open_session || opener != getpid ()) return;
  L = top_running ? top_running->L : open_session->L;
  open_session = NULL;
  if (!lua_checkstack (L, 4)) return;
  lua_pushcfunction (L, close_run);
  if (!lua_getstack (L, 0, &ar))
    lua_pushnil (L);
  else if ((foreign = is_foreign (L, &ar)))
    lua_pushstring (L, ended);
  else if (!lua_getlocal (L, &ar, 1)) /* the argument of os.exit */
    lua_pushnil (L);
  if (lua_pcall (L, 1, 0, 0) != LUA_OK) sl_complain (lua_tostring (L, -1));
  if (!foreign) return;
  sl_complain (ended);
  fflush (NULL);
  _exit (1);
}

static int forget_session (lua_State *L) {
  sl_session **s = lua_touserdata (L, 1);
  if (open_session == *s) open_session = NULL;
  return 0;
}

void sl_session_at_exit (sl_session *s) {
  static int installed;
  lua_State *L = s->L;
  const int top = lua_gettop (L);
  sl_session **guard = lua_newuserdatauv (L, sizeof *guard, 0);
  *guard = s;
  lua_createtable (L, 0, 1);
  lua_pushcfunction (L, forget_session);
  lua_setfield (L, -2, "__gc");
  lua_setmetatable (L, -2);
  lua_rawsetp (L, LUA_REGISTRYINDEX, &open_session);
  open_session = s;
  opener = getpid ();
  lua_getglobal (L, LUA_OSLIBNAME);
  if (lua_istable (L, -1) && lua_getfield (L, -1, "exit") == LUA_TFUNCTION)
    os_exit = lua_tocfunction (L, -1);
  lua_settop (L, top);
  if (!installed) installed = atexit (on_exit_of_process) == 0;
}
