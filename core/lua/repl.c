/* repl.c - the prompt: read, run, print. */
#include "lua/repl.h"
#include "base/escape.h"
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
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY_LINES = 2000, CTRL_C = 3, TAB = 9, CTRL_U = 21, CTRL_V = 22 };

/* Line editing. */

typedef struct editor {
  sl_session *s;
  const char *before; /* the lines of this input above the one being typed */
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

static int complete (editor *ed, wchar_t *key);

/* The next character. Ctrl-C kills the line and enters a Ctrl-C in its place, by
** which read_input recognizes it. Tab becomes the completed text. (Keys bound to
** functions or macros would do too, but libedit never frees these.) */
static int read_key (EditLine *line, wchar_t *key) {
  static const char enter_ctrl_c[] = { CTRL_V, CTRL_C, '\n', '\0' };
  mbstate_t state;
  memset (&state, 0, sizeof state);
  for (;;) {
    char byte;
    ssize_t n;
    size_t used;
    if (!sl_wait_to_read (STDIN_FILENO)) {
      if (sl_interrupted != SIGINT) return -1;
      sl_interrupted = 0;
      byte = CTRL_C;
      n = 1;
    } else
      n = read (STDIN_FILENO, &byte, 1);
    if (n <= 0) return (int)n;
    if (byte == TAB) {
      if (complete (editor_of (line), key)) return 1;
      continue;
    }
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

static int editor_open (editor *ed, sl_session *s) {
  el_rfunc_t key = read_key;
  HistEvent event;
  memset (ed, 0, sizeof *ed);
  ed->s = s;
  ed->before = "";
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

/* scripts/sinklab/prompt/init.lua reads the inputs. */

/* Lua: (name, arguments...) calls sinklab.prompt's function of that name. */
static int call_repl (lua_State *L) {
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab.prompt");
  lua_call (L, 1, 1);
  lua_pushvalue (L, 1);
  lua_gettable (L, -2);
  lua_replace (L, 1);
  lua_pop (L, 1);
  lua_call (L, lua_gettop (L) - 1, LUA_MULTRET);
  return lua_gettop (L);
}

/* Call sinklab.prompt's function below its n arguments; as sl_session_call. */
static int ask (sl_session *s, const char *name, int n, int n_results) {
  lua_pushcfunction (s->L, call_repl);
  lua_insert (s->L, -(n + 1));
  lua_pushstring (s->L, name);
  lua_insert (s->L, -(n + 1));
  return sl_session_call (s, n + 1, n_results);
}

/* Lua: lab = require "sinklab". */
static int set_lab (lua_State *L) {
  lua_getglobal (L, "require");
  lua_pushliteral (L, "sinklab");
  lua_call (L, 1, 1);
  lua_setglobal (L, "lab");
  return 0;
}

static void complain (lua_State *L) {
  fflush (stdout);
  sl_complain (lua_tostring (L, -1));
}

/* Run the function at the top of the stack and show its results. */
static int evaluate (sl_session *s, int silent) {
  lua_State *L = s->L;
  int base = lua_gettop (L) - 1, code;
  code = sl_session_call (s, 0, LUA_MULTRET);
  if (code != LUA_OK) return code;
  lua_pushboolean (L, silent);
  lua_insert (L, base + 1);
  return ask (s, "show", lua_gettop (L) - base, 0);
}

/* Completion. */

/* A name in the columns of a list; its width in bytes is near enough. */
static void show_names (lua_State *L, int list) {
  enum { MOST = 120, GAP = 2 };
  struct winsize size;
  lua_Integer n = luaL_len (L, list), shown = n < MOST ? n : MOST;
  size_t widest = 1, columns;
  lua_Integer across, rows;
  columns = ioctl (STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
                ? size.ws_col
                : 80;
  for (lua_Integer i = 1; i <= shown; i++) {
    lua_rawgeti (L, list, i);
    if (lua_rawlen (L, -1) > widest) widest = lua_rawlen (L, -1);
    lua_pop (L, 1);
  }
  across = (lua_Integer)(columns / (widest + GAP));
  if (across < 1) across = 1;
  rows = (shown + across - 1) / across;
  for (lua_Integer row = 1; row <= rows; row++) {
    for (lua_Integer i = row; i <= shown; i += rows) {
      lua_rawgeti (L, list, i);
      printf ("%-*s", i + rows <= shown ? (int)(widest + GAP) : 0,
              lua_tostring (L, -1));
      lua_pop (L, 1);
    }
    putchar ('\n');
  }
  if (n > shown) printf ("... %lld more\n", (long long)(n - shown));
}

/* The Tab key. The completed text is returned as if it were typed: its first
** character in *key, the rest pushed; 0: there is none. Several candidates are
** listed. */
static int complete (editor *ed, wchar_t *key) {
  const LineInfo *line = el_line (ed->line);
  lua_State *L = ed->s->L;
  const int top = lua_gettop (L);
  const char *insert;
  int typed = 0;
  lua_pushstring (L, ed->before);
  lua_pushlstring (L, line->buffer, (size_t)(line->cursor - line->buffer));
  lua_concat (L, 2);
  if (ask (ed->s, "complete", 1, 2) == LUA_OK) {
    insert = lua_tostring (L, -2);
    if (insert && *insert) {
      mbstate_t state;
      size_t used;
      memset (&state, 0, sizeof state);
      used = mbrtowc (key, insert, strlen (insert), &state);
      if (used <= strlen (insert)) {
        el_push (ed->line, insert + used);
        typed = 1;
      }
    } else if (luaL_len (L, -1) > 1) {
      putchar ('\n');
      show_names (L, lua_gettop (L));
      fflush (stdout);
      el_set (ed->line, EL_REFRESH);
    } else
      el_beep (ed->line);
  } else
    el_beep (ed->line);
  lua_settop (L, top);
  return typed;
}

/* One input from the terminal, of one or more lines. 0 with a function on the
** stack and *silent set; 1: nothing to run; -1: the end of the input. */
static int read_input (editor *ed, int *silent) {
  sl_session *s = ed->s;
  lua_State *L = s->L;
  const int base = lua_gettop (L) + 1; /* the text so far */
  const char *what;
  lua_pushliteral (L, "");
  for (ed->more = 0;; ed->more = 1) {
    int n = 0;
    const char *line;
    ed->before = lua_tostring (L, base);
    line = el_gets (ed->line, &n);
    if (line && n > 0 && line[0] == CTRL_C) {
      lua_settop (L, base - 1);
      return 1;
    }
    if (!line || n <= 0) {
      fputs ("\n", stdout);
      lua_settop (L, base - 1);
      return ed->more ? 1 : -1;
    }
    lua_pushstring (L, line);
    lua_concat (L, 2);
    lua_pushvalue (L, base);
    if (ask (s, "read", 1, 3) != LUA_OK) {
      complain (L);
      lua_settop (L, base - 1);
      return 1;
    }
    what = lua_tostring (L, base + 1);
    if (strcmp (what, "more") != 0) break;
    lua_settop (L, base);
  }
  remember (ed, lua_tostring (L, base));
  *silent = lua_toboolean (L, base + 3);
  lua_settop (L, base + 2);
  if (strcmp (what, "run") == 0) {
    lua_replace (L, base);
    lua_settop (L, base);
    return 0;
  }
  if (strcmp (what, "error") == 0) complain (L);
  lua_settop (L, base - 1);
  return 1;
}

static int converse (sl_session *s) {
  enum { PATIENCE = 1 }; /* presses of Ctrl-C that an impatient person adds */
  editor ed;
  int code = LUA_OK, silent = 0, read, status;
  if (editor_open (&ed, s) != 0) {
    editor_close (&ed);
    lua_pushliteral (s->L, "lines cannot be edited on this terminal");
    return LUA_ERRRUN;
  }
  printf ("sinklab %s  (?NAME or %%help for help, Ctrl-D leaves)\n",
          SINKLAB_VERSION);
  while ((read = read_input (&ed, &silent)) >= 0) {
    sl_session_patience (PATIENCE);
    code = read == 0 ? evaluate (s, silent) : LUA_OK;
    sl_session_patience (0);
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

/* Lua: the whole of the standard input. */
static int read_all (lua_State *L) {
  luaL_Buffer text;
  ssize_t n;
  luaL_buffinit (L, &text);
  while (sl_wait_to_read (STDIN_FILENO)) {
    n = read (STDIN_FILENO, luaL_prepbuffer (&text), LUAL_BUFFERSIZE);
    if (n <= 0) break;
    luaL_addsize (&text, (size_t)n);
  }
  luaL_pushresult (&text);
  return 1;
}

static int run_input (sl_session *s) {
  int code;
  lua_pushcfunction (s->L, read_all);
  code = sl_session_call (s, 0, 1);
  if (sl_interrupted) { /* half a program is not run */
    lua_pushliteral (s->L, "interrupted");
    return LUA_ERRRUN;
  }
  if (code == LUA_OK) code = ask (s, "piped", 1, 1);
  return code == LUA_OK ? evaluate (s, 0) : code;
}

int sl_repl (sl_session *s) {
  int code;
  lua_pushcfunction (s->L, set_lab);
  code = sl_session_call (s, 0, 0);
  if (code != LUA_OK) return code;
  return isatty (STDIN_FILENO) ? converse (s) : run_input (s);
}
