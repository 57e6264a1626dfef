/* session.h - a Lua state with sinklab in it, and how code is run in it. */
#ifndef SL_SESSION_H
#define SL_SESSION_H
#include "program/program.h"
#include <lua.h>

enum { SL_PATH = 1024 };

/* Everything that one process running Lua has; the state's extra space points
** here, and so does its registry: a coroutine made before sinklab was loaded
** into its program has an empty extra space. */
typedef struct sl_session {
  lua_State *L;
  sl_context context;
  size_t unaccounted; /* bytes of tensors that the collector was not told of */
  lua_State *failed;  /* NULL, or the thread of a function that raised an error
                      ** while C code ran it; the error is on top of its
                      ** stack */
  void *reserve;      /* for sl_session_free_reserve */
  int traceback;      /* 1: errors end with a Lua traceback */
  int quiet;          /* 1: errors and failed claims only */
  char scripts[SL_PATH]; /* holds sinklab/ and experiments/ */
} sl_session;

/* Chunks of the library are named "@<sinklab>/FILE.lua", so that errors can be
** blamed on the nearest line that is not the library's. */
#define SL_LIBRARY_CHUNK "@<sinklab>/"

/* A state with the standard libraries, "sinklab.core" and "sinklab" ready to be
** required. 'threads' as in sl_pool_new. -1 and a sentence on failure; close is
** allowed after a failure too. */
int sl_session_open (sl_session *s, int threads, sl_error *e);
void sl_session_close (sl_session *s);

/* Modules are looked for in 'folder', then in the folders of SINKLAB_PATH (':'
** between them), and nowhere else. */
void sl_session_path (sl_session *s, const char *folder);

/* From now on reading or assigning an undeclared global raises. */
void sl_session_strict (sl_session *s);

/* Call the function below n_args arguments. LUA_OK with n_results on the stack,
** or an error code with its message (a string, or the object that core.quit
** raised) on the top. */
int sl_session_call (sl_session *s, int n_args, int n_results);

/* Load a script file as text under the name 'shown'; -1 and a sentence. */
int sl_session_load (sl_session *s, const char *path, const char *shown,
                     sl_error *e);

/* Replace coroutine.resume and coroutine.wrap by functions that keep track of
** the running Lua thread, so that a signal reaches it. */
void sl_session_coroutines (lua_State *L);

/* Replace io.read, io.lines, io.open and the methods read and lines of files by
** functions whose waits the first signal ends. */
void sl_session_reading (lua_State *L);

/* sl_stop_signals and the first SIGPIPE set sl_interrupted and raise an error in
** the running Lua code 100000 instructions later: before that, a library
** function whose C loop was stopped stores its results. */
void sl_session_watch (sl_session *s);
/* A second Ctrl-C before the first one has stopped the code ends the process.
** With presses > 0 (default 0), so many of them only print a message. */
void sl_session_patience (int presses);
/* Count the 100000 instructions from now on. */
void sl_session_grace (lua_State *L);
/* Give back the memory that is kept for closing the record of a run after the
** script has used up all other. */
void sl_session_free_reserve (sl_session *s);
/* Forget an interrupt that has been reported. */
void sl_session_calm (sl_session *s);

/* Close the run of the session when the process exits while its Lua state is
** open, as by os.exit (). Called from Lua. */
void sl_session_at_exit (sl_session *s);

/* Put sinklab into a Lua state that another program made, which stays its
** owner: "sinklab.core" and the library can be required afterwards, and the
** state's package.path and signals are as before. -1 and a sentence. */
int sl_session_join (sl_session *s, lua_State *L, int threads, sl_error *e);

/* The session of a Lua state that has one. */
sl_session *sl_lua_session (lua_State *L);

/* Opens "sinklab.core": the C half of the library, as one table. */
int sl_lua_open_core (lua_State *L);

/* core.quit (status) raised this: 1, and the status. */
int sl_session_quits (sl_session *s, int index, int *status);

/* "FILE:LINE: " of the nearest active function outside the library, or "". */
void sl_lua_push_where (lua_State *L);

/* Pushes "FILE:LINE: " of the nearest line of a script and the public name of
** the function that it called; an empty text and nil where there is none. */
void sl_lua_push_origin (lua_State *L);
#endif
