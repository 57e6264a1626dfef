/* main.c - the command line: opens a session, lets the library find and run
** the command (scripts/sinklab/cli/command.lua), sets the exit status. */
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/isa.h"
#include "lua/lua_common.h"
#include "lua/repl.h"
#include "lua/session.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, ERROR = 1, CLAIM_FAILED = 2, SIGNALLED = 128 };

/* The command line: the options that the executable reads for every command,
** and the rest, which the library reads. */
typedef struct arguments {
  int threads, quiet, traceback, help, n;
  char **rest;
} arguments;

/* errno of the first write to standard output that failed; UNKNOWN where Lua or
** stdio has swallowed it. */
enum { UNKNOWN = -1 };
static int output_error;

static void flush_output (void) {
  int failed = ferror (stdout);
  errno = 0;
  if (fflush (stdout) != 0) failed = 1;
  if (failed && !output_error) output_error = errno ? errno : UNKNOWN;
}

static int complain (const char *text) {
  sl_complain (text);
  return ERROR;
}

static int parse_threads (const char *text, int *threads, sl_error *e) {
  char *end;
  long value;
  errno = 0;
  value = strtol (text, &end, 10);
  if (!*text || *end || errno || value < 0 || value > SL_POOL_MOST)
    return sl_fail (e,
                    "--threads: expected a whole number from 0 (all) to %d, "
                    "got '%s'",
                    SL_POOL_MOST, text);
  *threads = (int)value;
  return 0;
}

/* Splits argv into the executable's options and the rest. */
static int parse (arguments *a, int argc, char **argv, sl_error *e) {
  memset (a, 0, sizeof *a);
  a->rest = argv;
  for (int i = 0; i < argc; i++) {
    char *s = argv[i];
    if (strcmp (s, "--help") == 0 || strcmp (s, "-h") == 0)
      a->help = 1;
    else if (strcmp (s, "--quiet") == 0)
      a->quiet = 1;
    else if (strcmp (s, "--traceback") == 0)
      a->traceback = 1;
    else if (strcmp (s, "--threads") == 0)
      return sl_fail (e, "--threads needs a value: write --threads=VALUE");
    else if (strncmp (s, "--threads=", 10) == 0) {
      if (parse_threads (s + 10, &a->threads, e) != 0) return -1;
    } else
      a->rest[a->n++] = s;
  }
  return 0;
}

/* How a script ended, for the record of its run. */
typedef struct ending {
  const char *outcome, *text;
} ending;

/* Lua: finish (status, message) of sinklab.record.run with an ending -> true if
** every claim held. Strings are made in here, where a lack of memory is an
** error like others. */
static int finish (lua_State *L) {
  const ending *end = lua_touserdata (L, 1);
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.record.run");
  lua_call (L, 1, 1);
  lua_getfield (L, -1, "finish");
  lua_pushstring (L, end->outcome);
  lua_pushstring (L, end->text);
  lua_call (L, 2, 1);
  return 1;
}

/* Lua: main of sinklab.cli.command with the arguments and whether --help is
** among them -> the work that is left: nil, "prompt", or "script", its file and
** the name that errors call it. */
static int library_command (lua_State *L) {
  const arguments *a = lua_touserdata (L, 1);
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.cli.command");
  lua_call (L, 1, 1);
  lua_getfield (L, -1, "main");
  lua_createtable (L, a->n, 0);
  for (int i = 0; i < a->n; i++) {
    lua_pushstring (L, a->rest[i]);
    lua_rawseti (L, -2, i + 1);
  }
  lua_pushboolean (L, a->help);
  lua_call (L, 2, 3);
  return 3;
}

static int start (sl_session *s, const arguments *a) {
  sl_error e;
  sl_isa isa;
  if (sl_isa_choose (&isa, &e) != 0 || sl_session_open (s, a->threads, &e) != 0)
    return complain (e.text);
  s->traceback = a->traceback;
  s->quiet = a->quiet;
  sl_session_watch (s);
  return OK;
}

/* The exit status of a call that has ended with 'code' (Lua's), its result or
** error on the top of the stack; the record of the run is closed. */
static int conclude (sl_session *s, int code) {
  lua_State *L = s->L;
  int status = OK, held = 1, signal_number = sl_interrupted;
  ending end = { "complete", NULL };
  sl_session_calm (s);
  sl_session_free_reserve (s);
  if (signal_number)
    end.outcome = "interrupted", status = SIGNALLED + signal_number;
  else if (code != LUA_OK && !sl_session_quits (s, -1, &status))
    end.outcome = "failed", status = ERROR;
  if (code != LUA_OK && status != OK) end.text = lua_tostring (L, -1);
  flush_output ();
  if (end.text) complain (end.text);
  lua_pushcfunction (L, finish);
  lua_pushlightuserdata (L, &end);
  code = sl_session_call (s, 1, 1);
  if (code != LUA_OK) {
    complain (lua_tostring (L, -1));
    return status == OK ? ERROR : status;
  }
  held = lua_toboolean (L, -1);
  return status == OK && !held ? CLAIM_FAILED : status;
}

static int run_script (sl_session *s, const char *path, const char *shown) {
  char folder[SL_PATH];
  const char *slash = strrchr (path, '/');
  size_t n = slash ? (size_t)(slash - path) : 0;
  sl_error e;
  if (n >= sizeof folder)
    return complain ("the path of the script is too long");
  memcpy (folder, path, n);
  folder[n] = '\0';
  sl_session_path (s, n > 0 ? folder : slash ? "/" : ".");
  if (sl_session_load (s, path, shown, &e) != 0) return complain (e.text);
  sl_session_strict (s);
  return conclude (s, sl_session_call (s, 0, 1));
}

/* The work that the command has left; its three results are on the stack. */
static int remaining_work (sl_session *s) {
  const char *what = lua_tostring (s->L, -3);
  if (what && strcmp (what, "prompt") == 0) return conclude (s, sl_repl (s));
  if (what && strcmp (what, "script") == 0)
    return run_script (s, lua_tostring (s->L, -2), lua_tostring (s->L, -1));
  return conclude (s, LUA_OK);
}

static int run_command (int argc, char **argv) {
  sl_session s;
  arguments a;
  sl_error e;
  int status, code;
  if (parse (&a, argc, argv, &e) != 0) return complain (e.text);
  memset (&s, 0, sizeof s);
  status = start (&s, &a);
  if (status == OK) {
    lua_pushcfunction (s.L, library_command);
    lua_pushlightuserdata (s.L, &a);
    code = sl_session_call (&s, 1, 3);
    status = code == LUA_OK ? remaining_work (&s) : conclude (&s, code);
  }
  sl_session_close (&s);
  return status;
}

/* Standard streams that the caller has closed would become the next files that
** are opened, and get the printed text. */
static void open_streams (void) {
  int file;
  do file = open ("/dev/null", O_RDWR);
  while (file >= 0 && file <= STDERR_FILENO);
  if (file >= 0) close (file);
}

/* The exit status once all output is written. A failed write is an error, so a
** full disk never looks like success; except to a reader that has closed the
** pipe (| head). */
static int end_output (int status) {
  flush_output ();
  if (!output_error || status == SIGNALLED + SIGPIPE) return status;
  if (output_error == EPIPE) return status == OK ? SIGNALLED + SIGPIPE : status;
  fprintf (stderr, "sinklab: standard output cannot be written%s%s\n",
           output_error == UNKNOWN ? "" : ": ",
           output_error == UNKNOWN ? "" : strerror (output_error));
  return status == OK ? ERROR : status;
}

int main (int argc, char **argv) {
  open_streams ();
  return end_output (run_command (argc > 0 ? argc - 1 : 0, argv + 1));
}
