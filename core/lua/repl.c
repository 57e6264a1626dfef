/* repl.c - the prompt: read, run, print. */
#include "lua/repl.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "lua/lua_common.h"
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 2000, CTRL_C = 3, CTRL_U = 21, CTRL_V = 22 };

/* Line editing. */

typedef struct editor {
  EditLine *line;
  History *history;
  char file[SL_PATH]; /* "" where there is no place for it */
  int more;           /* the prompt is for the rest of an input */
} editor;

static editor *editor_of (EditLine *line) {
  editor *ed = NULL;
  el_get (line, EL_CLIENTDATA, &ed);
  return ed;
}

static char *prompt (EditLine *line) {
  static char first[] = "> ", rest[] = ">> ";
  return editor_of (line)->more ? rest : first;
}

/* The next character. Ctrl-C becomes: kill the line, enter a Ctrl-C in its
** place; read_input knows it by that. (Binding a key to a function or a macro
** of our own would do too, but libedit never frees those.) */
static int read_key (EditLine *line, wchar_t *key) {
  static const char enter_ctrl_c[] = { CTRL_V, CTRL_C, '\n', '\0' };
  mbstate_t state;
  memset (&state, 0, sizeof state);
  for (;;) {
    char byte;
    ssize_t n = read (STDIN_FILENO, &byte, 1);
    size_t used;
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return (int)n;
    used = mbrtowc (key, &byte, 1, &state);
    if (used == (size_t)-2) continue; /* more bytes follow */
    if (used == (size_t)-1) {         /* no character: drop it */
      memset (&state, 0, sizeof state);
      continue;
    }
    if (*key == CTRL_C) {
      el_push (line, enter_ctrl_c);
      *key = CTRL_U;
    }
    return 1;
  }
}

/* $XDG_STATE_HOME/sinklab/history, or the same under ~/.local/state. */
static void find_history (editor *ed) {
  const char *state = getenv ("XDG_STATE_HOME"), *home = getenv ("HOME");
  int n = -1;
  if (state && *state == '/')
    n = snprintf (ed->file, sizeof ed->file, "%s/sinklab", state);
  else if (home && *home)
    n = snprintf (ed->file, sizeof ed->file, "%s/.local/state/sinklab", home);
  if (n < 0 || n + 9 > (int)sizeof ed->file ||
      sl_make_folders (ed->file, NULL) != 0)
    ed->file[0] = '\0'; /* typing works without a past */
  else
    strcat (ed->file, "/history");
}

static int editor_open (editor *ed) {
  el_rfunc_t key = read_key;
  HistEvent event;
  memset (ed, 0, sizeof *ed);
  setlocale (LC_CTYPE, "");
  if (MB_CUR_MAX == 1) setlocale (LC_CTYPE, "C.UTF-8");
  ed->line = el_init ("sinklab", stdin, stdout, stderr);
  ed->history = history_init ();
  if (!ed->line || !ed->history) return -1;
  find_history (ed);
  history (ed->history, &event, H_SETSIZE, HISTORY_LINES);
  history (ed->history, &event, H_SETUNIQUE, 1);
  if (*ed->file) history (ed->history, &event, H_LOAD, ed->file);
  el_set (ed->line, EL_CLIENTDATA, ed);
  el_set (ed->line, EL_PROMPT, prompt);
  el_set (ed->line, EL_EDITOR, "emacs");
  el_set (ed->line, EL_HIST, history, ed->history);
  el_set (ed->line, EL_SIGNAL, 1);
  el_set (ed->line, EL_GETCFN, key);
  el_set (ed->line, EL_SETTY, "-d", "-isig", NULL); /* Ctrl-C is a key */
  el_source (ed->line, NULL);                       /* the user's ~/.editrc */
  return 0;
}

static void editor_close (editor *ed) {
  if (ed->history) history_end (ed->history);
  if (ed->line) el_end (ed->line);
}

static void remember (editor *ed, const char *text) {
  HistEvent event;
  if (text[strspn (text, " \t\n")] == '\0') return;
  history (ed->history, &event, H_ENTER, text);
  if (*ed->file) history (ed->history, &event, H_SAVE, ed->file);
}

/* Evaluation. */

/* Lua: lab = require "sinklab". */
static int set_lab (lua_State *L) {
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab");
  lua_call (L, 1, 1);
  lua_setglobal (L, "lab");
  return 0;
}

/* Lua: (silent, results...): keep the first result in "_", and print them. */
static int show (lua_State *L) {
  int n = lua_gettop (L);
  lua_pushvalue (L, 2);
  lua_setglobal (L, "_");
  if (lua_toboolean (L, 1)) return 0;
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.show");
  lua_call (L, 1, 1);
  lua_replace (L, 1);
  lua_call (L, n - 1, 0);
  return 0;
}

/* Text at the top of the stack becomes a function: "return TEXT" if that
** compiles, else TEXT. On failure the message takes its place. */
static int compile (lua_State *L) {
  size_t n;
  const char *text = lua_tolstring (L, -1, &n), *expression;
  int status;
  expression = lua_pushfstring (L, "return %s", text);
  status = luaL_loadbufferx (L, expression, lua_rawlen (L, -1), "=stdin", "t");
  if (status != LUA_OK) {
    lua_pop (L, 1);
    status = luaL_loadbufferx (L, text, n, "=stdin", "t");
  }
  lua_replace (L, -3);
  lua_pop (L, 1);
  return status;
}

/* The syntax error at the top of the stack says that the input is not over. */
static int is_incomplete (lua_State *L) {
  static const char mark[] = "<eof>";
  size_t n;
  const char *text = lua_tolstring (L, -1, &n);
  return n >= sizeof mark - 1 &&
         strcmp (text + n - (sizeof mark - 1), mark) == 0;
}

static int is_silenced (const char *text) {
  size_t n = strlen (text);
  while (n > 0 && strchr (" \t\n", text[n - 1])) n--;
  return n > 0 && text[n - 1] == ';';
}

/* Run the function at the top of the stack and print its results; as
** sl_session_call. */
static int evaluate (sl_session *s, int silent) {
  lua_State *L = s->L;
  int base = lua_gettop (L) - 1;
  int code = sl_session_call (s, 0, LUA_MULTRET);
  if (code == LUA_OK && lua_gettop (L) > base) {
    lua_pushcfunction (L, show);
    lua_insert (L, base + 1);
    lua_pushboolean (L, silent);
    lua_insert (L, base + 2);
    code = sl_session_call (s, lua_gettop (L) - base - 1, 0);
  }
  return code;
}

static void complain (lua_State *L) {
  fflush (stdout);
  fprintf (stderr, "sinklab: %s\n", lua_tostring (L, -1));
}

/* One input from the terminal: as many lines as make a whole. 0 with a function
** on the stack and *silent set; 1: nothing to run; -1: the end. */
static int read_input (sl_session *s, editor *ed, int *silent) {
  lua_State *L = s->L;
  lua_pushliteral (L, "");
  for (ed->more = 0;; ed->more = 1) {
    int n = 0;
    const char *line;
    signal (SIGTERM, SIG_DFL); /* nothing runs: it may end us here */
    line = el_gets (ed->line, &n);
    sl_session_watch (s);
    if (line && n > 0 && line[0] == CTRL_C) {
      lua_pop (L, 1);
      return 1;
    }
    if (!line || n <= 0) {
      fputs ("\n", stdout);
      lua_pop (L, 1);
      return ed->more ? 1 : -1;
    }
    lua_pushstring (L, line);
    lua_concat (L, 2);
    lua_pushvalue (L, -1);
    if (compile (L) == LUA_OK || !is_incomplete (L)) break;
    lua_pop (L, 1);
  }
  remember (ed, lua_tostring (L, -2));
  *silent = is_silenced (lua_tostring (L, -2));
  lua_remove (L, -2);
  if (lua_isfunction (L, -1)) return 0;
  complain (L);
  lua_pop (L, 1);
  return 1;
}

static int converse (sl_session *s) {
  editor ed;
  int code = LUA_OK, silent = 0, read, status;
  if (editor_open (&ed) != 0) {
    editor_close (&ed);
    lua_pushliteral (s->L, "lines cannot be edited on this terminal");
    return LUA_ERRRUN;
  }
  printf ("sinklab %s  (Ctrl-D leaves; a line that ends in ; prints nothing)\n",
          SINKLAB_VERSION);
  while ((read = read_input (s, &ed, &silent)) >= 0) {
    code = read == 0 ? evaluate (s, silent) : LUA_OK;
    sl_session_calm (s); /* an interrupt has been seen by now */
    if (code == LUA_OK) continue;
    if (sl_session_quits (s, -1, &status)) break;
    complain (s->L);
    lua_settop (s->L, 0);
    code = LUA_OK;
  }
  editor_close (&ed);
  return code;
}

/* Lua: the whole of the standard input, compiled. */
static int load_input (lua_State *L) {
  luaL_Buffer text;
  size_t n;
  luaL_buffinit (L, &text);
  do {
    n = fread (luaL_prepbuffer (&text), 1, LUAL_BUFFERSIZE, stdin);
    luaL_addsize (&text, n);
  } while (n > 0);
  luaL_pushresult (&text);
  if (compile (L) != LUA_OK) return lua_error (L);
  return 1;
}

static int run_input (sl_session *s) {
  int code;
  lua_pushcfunction (s->L, load_input);
  code = sl_session_call (s, 0, 1);
  return code == LUA_OK ? evaluate (s, 0) : code;
}

int sl_repl (sl_session *s) {
  int code;
  lua_pushcfunction (s->L, set_lab);
  code = sl_session_call (s, 0, 0);
  if (code != LUA_OK) return code;
  return isatty (STDIN_FILENO) ? converse (s) : run_input (s);
}
