/* main.c - the command line: finds the command, runs it, sets the exit
** status. */
#include "base/file.h"
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
enum { MAX_THREADS = 1024 };

/* The options that the host takes for every command that runs Lua. */
typedef struct arguments {
  int threads, quiet, traceback, help;
  const char *out;       /* NULL: runs/<script>-<time> */
  int n_words, n;        /* arguments without dashes; the other ones: */
  char *word[3], **rest; /* --key=VALUE, for the script */
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
  fprintf (stderr, "sinklab: %s\n", text);
  return ERROR;
}

static int parse_threads (const char *text, int *threads, sl_error *e) {
  char *end;
  long value;
  errno = 0;
  value = strtol (text, &end, 10);
  if (!*text || *end || errno || value < 0 || value > MAX_THREADS)
    return sl_fail (e,
                    "--threads: expected a whole number from 0 (all) to %d, "
                    "got '%s'",
                    MAX_THREADS, text);
  *threads = (int)value;
  return 0;
}

/* Takes the host's options and at most 'words' words out of argv; what is left
** is the script's. */
static int parse (arguments *a, int words, int argc, char **argv, sl_error *e) {
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
    else if (strncmp (s, "--threads=", 10) == 0) {
      if (parse_threads (s + 10, &a->threads, e) != 0) return -1;
    } else if (strncmp (s, "--out=", 6) == 0) {
      a->out = s + 6;
      if (!*a->out) return sl_fail (e, "--out: expected a folder, got ''");
    } else if (strcmp (s, "--threads") == 0 || strcmp (s, "--out") == 0)
      return sl_fail (e, "%s needs a value: write %s=VALUE", s, s);
    else if (strncmp (s, "--", 2) == 0)
      a->rest[a->n++] = s;
    else if (a->n_words == words || *s == '-')
      return sl_fail (e, "unexpected argument '%s': options are --key=VALUE",
                      s);
    else
      a->word[a->n_words++] = s;
  }
  return 0;
}

/* Only scripts have options of their own. */
static int no_options (const arguments *a) {
  sl_error e;
  if (a->n == 0) return 0;
  sl_fail (&e, "no option '%s' here\n  try: sinklab help", a->rest[0]);
  return complain (e.text);
}

/* Lua: the table core.host, what the library must know of the command line. */
static int set_host (lua_State *L) {
  const arguments *a = lua_touserdata (L, 1);
  luaL_getsubtable (L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield (L, -1, "sinklab.core");
  lua_newtable (L);
  lua_pushboolean (L, a->help);
  lua_setfield (L, -2, "help");
  lua_pushstring (L, a->out);
  lua_setfield (L, -2, "out");
  if (a->n_words > 0) {
    lua_pushstring (L, a->word[0]);
    lua_setfield (L, -2, "script");
  }
  lua_createtable (L, a->n, 0);
  for (int i = 0; i < a->n; i++) {
    lua_pushstring (L, a->rest[i]);
    lua_rawseti (L, -2, i + 1);
  }
  lua_setfield (L, -2, "arguments");
  lua_setfield (L, -2, "host");
  return 0;
}

/* Lua: finish (status, message) of sinklab.run -> true if every claim held. */
static int finish (lua_State *L) {
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.run");
  lua_call (L, 1, 1);
  lua_getfield (L, -1, "finish");
  lua_pushvalue (L, 1);
  lua_pushvalue (L, 2);
  lua_call (L, 2, 1);
  return 1;
}

/* Lua: command (name, arguments...) of the library. */
static int library_command (lua_State *L) {
  int n = lua_gettop (L);
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.command");
  lua_call (L, 1, 1);
  lua_pushvalue (L, 1);
  lua_gettable (L, -2);
  lua_replace (L, 1);
  lua_settop (L, n);
  lua_call (L, n - 1, 1);
  return 1;
}

static int start (sl_session *s, arguments *a) {
  sl_error e;
  sl_isa isa;
  if (sl_isa_choose (&isa, &e) != 0 || sl_session_open (s, a->threads, &e) != 0)
    return complain (e.text);
  s->traceback = a->traceback;
  s->quiet = a->quiet;
  lua_pushcfunction (s->L, set_host);
  lua_pushlightuserdata (s->L, a);
  if (sl_session_call (s, 1, 0) != LUA_OK)
    return complain (lua_tostring (s->L, -1));
  sl_session_watch (s);
  return OK;
}

/* The exit status of a call that has ended with 'code' (Lua's), its result or
** error on the top of the stack; the record of the run is closed. */
static int conclude (sl_session *s, int code) {
  lua_State *L = s->L;
  int status = OK, held = 1, signal_number = sl_interrupted;
  const char *outcome = "complete", *text = NULL;
  sl_session_calm (s);
  if (signal_number)
    outcome = "interrupted", status = SIGNALLED + signal_number;
  else if (code != LUA_OK && !sl_session_quits (s, -1, &status))
    outcome = "failed", status = ERROR;
  if (code != LUA_OK && status != OK) text = lua_tostring (L, -1);
  flush_output ();
  if (text) complain (text);
  lua_pushcfunction (L, finish);
  lua_pushstring (L, outcome);
  lua_pushstring (L, text);
  code = sl_session_call (s, 2, 1);
  if (code != LUA_OK) {
    complain (lua_tostring (L, -1));
    return status == OK ? ERROR : status;
  }
  held = lua_toboolean (L, -1);
  return status == OK && !held ? CLAIM_FAILED : status;
}

/* Scripts: as given, else under the scripts folder, with or without
** "experiments/" and ".lua". 'shown' is what errors call it. */
static int find_script (const sl_session *s, const char *name, char *path,
                        const char **shown) {
  static const struct {
    int in_scripts;
    const char *prefix, *suffix;
  } places[] = {
    { 0, "", "" },     { 0, "", ".lua" },         { 1, "", "" },
    { 1, "", ".lua" }, { 1, "experiments/", "" }, { 1, "experiments/", ".lua" }
  };
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    const char *folder = places[i].in_scripts ? s->scripts : "";
    int n = snprintf (path, SL_PATH, "%s%s%s%s%s", folder, *folder ? "/" : "",
                      places[i].prefix, name, places[i].suffix);
    if (n >= SL_PATH || !sl_file_exists (path) || sl_folder_exists (path))
      continue;
    *shown = path + (*folder ? strlen (folder) + 1 : 0);
    return 0;
  }
  return -1;
}

/* Lua: (arguments, name shown): arg, as lua itself sets it, and
** core.host.shown. */
static int set_arg (lua_State *L) {
  const arguments *a = lua_touserdata (L, 1);
  lua_createtable (L, a->n, 1);
  lua_pushvalue (L, 2);
  lua_rawseti (L, -2, 0);
  for (int i = 0; i < a->n; i++) {
    lua_pushstring (L, a->rest[i]);
    lua_rawseti (L, -2, i + 1);
  }
  lua_setglobal (L, "arg");
  luaL_getsubtable (L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield (L, -1, "sinklab.core");
  lua_getfield (L, -1, "host");
  lua_pushvalue (L, 2);
  lua_setfield (L, -2, "shown");
  return 0;
}

static int call_library (sl_session *s, const char *name, int n,
                         const char *const *text) {
  lua_pushcfunction (s->L, library_command);
  lua_pushstring (s->L, name);
  for (int i = 0; i < n; i++) lua_pushstring (s->L, text[i]);
  return sl_session_call (s, n + 1, 1);
}

static int run_script (sl_session *s, arguments *a) {
  char path[SL_PATH], folder[SL_PATH], *slash;
  const char *shown;
  sl_error e;
  if (find_script (s, a->word[0], path, &shown) != 0) {
    const char *name = a->word[0];
    return conclude (s, call_library (s, "no_script", 1, &name));
  }
  if (a->help || a->n > 0) {
    const char *names[] = { path, shown };
    int code = call_library (s, "before_script", 2, names);
    if (code != LUA_OK || !lua_toboolean (s->L, -1)) return conclude (s, code);
  }
  snprintf (folder, sizeof folder, "%s", path);
  slash = strrchr (folder, '/');
  if (slash)
    *slash = '\0';
  else
    snprintf (folder, sizeof folder, ".");
  sl_session_path (s, *folder ? folder : "/");
  lua_pushcfunction (s->L, set_arg);
  lua_pushlightuserdata (s->L, a);
  lua_pushstring (s->L, shown);
  if (sl_session_call (s, 2, 0) != LUA_OK)
    return complain (lua_tostring (s->L, -1));
  if (sl_session_load (s, path, shown, &e) != 0) return complain (e.text);
  sl_session_strict (s);
  return conclude (s, sl_session_call (s, 0, 1));
}

/* Commands: the arguments after the command's name -> exit status. */

static int with_session (int words, int argc, char **argv,
                         int (*body) (sl_session *, arguments *)) {
  sl_session s;
  arguments a;
  sl_error e;
  int status;
  if (parse (&a, words, argc, argv, &e) != 0) return complain (e.text);
  memset (&s, 0, sizeof s);
  status = start (&s, &a);
  if (status == OK) status = body (&s, &a);
  sl_session_close (&s);
  return status;
}

static int run_body (sl_session *s, arguments *a) {
  if (a->n_words == 0)
    return complain ("run needs a script: sinklab run SCRIPT [--key=VALUE ...]"
                     "\n  sinklab list shows the experiments");
  return run_script (s, a);
}

static int list_body (sl_session *s, arguments *a) {
  return no_options (a) ? ERROR
                        : conclude (s, call_library (s, "list", 0, NULL));
}

static int plugin_body (sl_session *s, arguments *a) {
  const char *words[] = { a->word[0], a->word[1], a->word[2] };
  return conclude (s, call_library (s, "plugin", a->n_words, words));
}

static int repl_body (sl_session *s, arguments *a) {
  return no_options (a) ? ERROR : conclude (s, sl_repl (s));
}

static int command_run (int argc, char **argv) {
  return with_session (1, argc, argv, run_body);
}

static int command_list (int argc, char **argv) {
  return with_session (0, argc, argv, list_body);
}

static int command_plugin (int argc, char **argv) {
  return with_session (3, argc, argv, plugin_body);
}

static int command_repl (int argc, char **argv) {
  return with_session (0, argc, argv, repl_body);
}

static int command_version (int argc, char **argv) {
  sl_error e;
  sl_isa isa;
  (void)argv;
  if (argc > 0) return complain ("version takes no arguments");
  if (sl_isa_choose (&isa, &e) != 0) return complain (e.text);
  printf ("sinklab %s (%s, %s)\n", SINKLAB_VERSION, sl_isa_name (isa),
          LUA_RELEASE);
  return OK;
}

static int command_help (int argc, char **argv);

static const struct {
  const char *name, *usage, *doc;
  int (*run) (int argc, char **argv);
} commands[] = {
  { "run", "run SCRIPT [--key=VALUE ...]", "run a script or an experiment",
    command_run },
  { "repl", "repl", "the prompt (also: sinklab alone); runs a piped script",
    command_repl },
  { "list", "list", "the experiments, each in one line", command_list },
  { "plugin", "plugin list|info|check|new ...",
    "attention mechanisms: found, described, tried, begun", command_plugin },
  { "version", "version", "version, instruction set and Lua", command_version },
  { "help", "help", "this text", command_help },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int command_help (int argc, char **argv) {
  (void)argc, (void)argv;
  puts ("sinklab: a laboratory for attention sinks\n\nCommands:");
  for (int i = 0; i < COMMANDS; i++)
    printf ("  sinklab %-30s %s\n", commands[i].usage, commands[i].doc);
  puts ("\nOptions of every script (its own: sinklab run SCRIPT --help):\n"
        "  --out=DIR      where results go (default runs/<script>-<UTC time>)\n"
        "  --threads=N    worker threads; 0 = all (default)\n"
        "  --quiet        no progress lines: results, claims and errors only\n"
        "  --traceback    show the Lua stack with an error\n"
        "\nExit status: 0 it ran and every claim held, 1 an error, 2 it ran and"
        " a claim\ndid not hold, 130 or 143 interrupted.");
  return OK;
}

static int unknown_command (const char *word) {
  const char *names[COMMANDS], *near, *end = strrchr (word, '.');
  sl_error e;
  for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
  near = sl_nearest (word, COMMANDS, names);
  if (near)
    sl_fail (&e, "no command '%s' (did you mean '%s'?)", word, near);
  else if (sl_file_exists (word) || (end && strcmp (end, ".lua") == 0))
    sl_fail (&e, "no command '%s'\n  try: sinklab run %s", word, word);
  else
    sl_fail (&e, "no command '%s'\n  try: sinklab help", word);
  return complain (e.text);
}

/* Standard streams that the caller has closed would become the next files that
** are opened, and get what is printed. */
static void open_streams (void) {
  int file;
  do file = open ("/dev/null", O_RDWR);
  while (file >= 0 && file <= STDERR_FILENO);
  if (file >= 0) close (file);
}

/* The exit status once all output is written. What could not be written is an
** error: on a full disk nothing looks like success. A reader that has gone
** (| head) knows it already. */
static int end_output (int status) {
  flush_output ();
  if (!output_error || status == SIGNALLED + SIGPIPE) return status;
  if (output_error == EPIPE) return status == OK ? SIGNALLED + SIGPIPE : status;
  fprintf (stderr, "sinklab: standard output cannot be written%s%s\n",
           output_error == UNKNOWN ? "" : ": ",
           output_error == UNKNOWN ? "" : strerror (output_error));
  return status == OK ? ERROR : status;
}

static int run_command (int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "repl";
  if (strcmp (word, "--help") == 0 || strcmp (word, "-h") == 0) word = "help";
  if (strcmp (word, "--version") == 0) word = "version";
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp (word, commands[i].name) == 0)
      return commands[i].run (argc > 2 ? argc - 2 : 0, argv + 2);
  if (strncmp (word, "--", 2) == 0) /* options of the REPL */
    return command_repl (argc - 1, argv + 1);
  return unknown_command (word);
}

int main (int argc, char **argv) {
  open_streams ();
  return end_output (run_command (argc, argv));
}
