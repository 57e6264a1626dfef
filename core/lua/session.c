/* session.c - a Lua state with sinklab in it, and how code is run in it. */
#include "lua/session.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "lua/lua_common.h"
#include <stdlib.h>
#include <string.h>

static const size_t LARGEST_SOURCE = 64u << 20;
/* Bytes for the modules that close a record, the record as text, and a report. */
static const size_t RESERVE = 16u << 20;

/* Source text. */

/* 'read': sl_file_read for files of the library, which a signal must not stop;
** sl_stream_read for scripts. */
static int load_text (lua_State *L, const char *path, const char *chunk,
                      char *(*read) (const char *path, size_t limit, size_t *n,
                                     sl_error *e),
                      sl_error *e) {
  size_t n, skip = 0;
  char *text = read (path, LARGEST_SOURCE, &n, e);
  int status;
  if (!text) return -1;
  if (n >= 3 && memcmp (text, "\xEF\xBB\xBF", 3) == 0) skip = 3;
  if (text[skip] == '#') /* "#!/usr/bin/env ...": the newline stays */
    while (skip < n && text[skip] != '\n') skip++;
  status = luaL_loadbufferx (L, text + skip, n - skip, chunk, "t");
  sl_free (text);
  if (status == LUA_OK) return 0;
  sl_fail (e, "%s", lua_tostring (L, -1));
  /* Only a syntax error names the file, a long name by its end. */
  if (strncmp (e->text, chunk + 1, strlen (chunk + 1)) != 0 &&
      strncmp (e->text, "...", 3) != 0)
    sl_fail_within (e, "%s", chunk + 1);
  lua_pop (L, 1);
  return -1;
}

int sl_session_load (sl_session *s, const char *path, const char *shown,
                     sl_error *e) {
  const char *chunk = lua_pushfstring (s->L, "@%s", shown);
  if (load_text (s->L, path, chunk, sl_stream_read, e) != 0) {
    lua_pop (s->L, 1);
    return -1;
  }
  lua_remove (s->L, -2);
  return 0;
}

/* "sinklab", "sinklab.NAME" and "experiments.lib.NAME" come from the scripts
** folder and from nowhere else, so no file of a user can stand in for them by
** accident. The file is NAME.lua or NAME/init.lua. */
static int library_searcher (lua_State *L) {
  const char *name = luaL_checkstring (L, 1);
  const char *scripts = lua_tostring (L, lua_upvalueindex (1));
  const char *file, *path, *chunk, *end = "";
  sl_error e;
  if (strcmp (name, "sinklab") != 0 && strncmp (name, "sinklab.", 8) != 0 &&
      strncmp (name, "experiments.lib.", 16) != 0)
    return 0;
  file = luaL_gsub (L, name, ".", "/");
  path = lua_pushfstring (L, "%s/%s.lua", scripts, file);
  if (!sl_file_exists (path)) {
    end = "/init";
    path = lua_pushfstring (L, "%s/%s%s.lua", scripts, file, end);
  }
  if (strncmp (file, "sinklab/", 8) == 0)
    file += 8;
  else if (strcmp (file, "sinklab") == 0)
    file = "init", end = "";
  chunk = lua_pushfstring (L, SL_LIBRARY_CHUNK "%s%s.lua", file, end);
  if (!sl_file_exists (path)) {
    lua_pushfstring (L, "no file '%s'", path);
    return 1;
  }
  if (load_text (L, path, chunk, sl_file_read, &e) != 0)
    return luaL_error (L, "error loading module '%s': %s", name, e.text);
  lua_pushstring (L, path);
  return 2;
}

/* package.searchers: preload, the library, then Lua's own. */
static void add_searcher (lua_State *L, const char *scripts) {
  lua_getglobal (L, "package");
  lua_getfield (L, -1, "searchers");
  for (lua_Integer i = luaL_len (L, -1); i >= 2; i--) {
    lua_rawgeti (L, -1, i);
    lua_rawseti (L, -2, i + 1);
  }
  lua_pushstring (L, scripts);
  lua_pushcclosure (L, library_searcher, 1);
  lua_rawseti (L, -2, 2);
  lua_pop (L, 2);
}

/* package[field] = the patterns with every folder in place of '%'. */
static void set_path (lua_State *L, const char *field, const char *patterns,
                      const char *folder) {
  const char *rest = getenv ("SINKLAB_PATH");
  lua_getglobal (L, "package");
  luaL_gsub (L, patterns, "%", folder);
  for (; rest && *rest; rest += strspn (rest, ":")) {
    size_t n = strcspn (rest, ":");
    lua_pushlstring (L, rest, n);
    luaL_gsub (L, patterns, "%", lua_tostring (L, -1));
    lua_remove (L, -2);
    lua_pushliteral (L, ";");
    lua_insert (L, -2);
    lua_concat (L, 3);
    rest += n;
  }
  lua_setfield (L, -2, field);
  lua_pop (L, 1);
}

void sl_session_path (sl_session *s, const char *folder) {
  set_path (s->L, "path", "%/?.lua;%/?/init.lua", folder);
  set_path (s->L, "cpath", "%/?.so", folder);
}

/* Open and close. */

static const char session_key; /* of the registry */

sl_session *sl_lua_session (lua_State *L) {
  sl_session **place = lua_getextraspace (L);
  if (!*place && lua_checkstack (L, 1)) {
    lua_rawgetp (L, LUA_REGISTRYINDEX, &session_key);
    *place = lua_touserdata (L, -1);
    lua_pop (L, 1);
  }
  return *place;
}

/* Argument: session. */
static int open_library (lua_State *L) {
  sl_session *s = lua_touserdata (L, 1);
  lua_pushvalue (L, 1);
  lua_rawsetp (L, LUA_REGISTRYINDEX, &session_key);
  luaL_requiref (L, "sinklab.core", sl_lua_open_core, 0);
  add_searcher (L, s->scripts);
  sl_session_at_exit (s);
  return 0;
}

/* Argument: session. Runs protected, since all of it may run out of memory. */
static int open_state (lua_State *L) {
  luaL_openlibs (L);
  sl_session_coroutines (L);
  sl_session_reading (L);
  open_library (L);
  sl_session_path (lua_touserdata (L, 1), ".");
  return 0;
}

static int open_in (sl_session *s, lua_State *L, lua_CFunction opener,
                    sl_error *e) {
  int status;
  s->L = L;
  *(sl_session **)lua_getextraspace (L) = s;
  lua_pushcfunction (L, opener);
  lua_pushlightuserdata (L, s);
  status = lua_pcall (L, 1, 0, 0) == LUA_OK
               ? 0
               : sl_fail (e, "%s", lua_tostring (L, -1));
  if (status != 0) lua_pop (L, 1);
  return status;
}

static int open_context (sl_session *s, int threads, sl_error *e) {
  memset (s, 0, sizeof *s);
  if (sl_data_folder (s->scripts, sizeof s->scripts, e) != 0) return -1;
  return sl_context_init (&s->context, threads, e);
}

int sl_session_open (sl_session *s, int threads, sl_error *e) {
  lua_State *L;
  if (open_context (s, threads, e) != 0) return -1;
  s->reserve = malloc (RESERVE); /* never touched: costs no memory yet */
  L = luaL_newstate ();
  if (!L || !s->reserve) return sl_fail (e, "not enough memory to start Lua");
  return open_in (s, L, open_state, e);
}

int sl_session_join (sl_session *s, lua_State *L, int threads, sl_error *e) {
  if (open_context (s, threads, e) != 0) return -1;
  if (open_in (s, L, open_library, e) == 0) return 0;
  /* the state lives on: it must not find s */
  *(sl_session **)lua_getextraspace (L) = NULL;
  lua_pushnil (L);
  lua_rawsetp (L, LUA_REGISTRYINDEX, &session_key);
  return -1;
}

void sl_session_free_reserve (sl_session *s) {
  free (s->reserve);
  s->reserve = NULL;
}

void sl_session_close (sl_session *s) {
  sl_session_free_reserve (s);
  if (s->L) {
    sl_stop_signals_handle (SIG_DFL);
    lua_close (s->L);
  }
  s->L = NULL;
  sl_context_free (&s->context);
}

/* Calls and their errors. */

/* "FILE:LINE: message" of the library is replaced by the line of the script that
** called the library. An error that the library did not
** mean to raise keeps its own place as well. Every other error is left alone at
** once: to find a level takes as many steps as there are levels above it, and
** after a stack overflow there are 200 000. */
static void blame_script (lua_State *L) {
  static const char library[] = SL_LIBRARY_CHUNK;
  const char *text = lua_tostring (L, 1);
  lua_Debug ar;
  if (strncmp (text, library + 1, sizeof library - 2) != 0) return;
  for (int level = 0; lua_getstack (L, level, &ar); level++) {
    const char *place, *what;
    size_t n;
    lua_getinfo (L, "Sl", &ar);
    if (ar.currentline <= 0) continue;
    if (strncmp (ar.source, SL_LIBRARY_CHUNK, strlen (SL_LIBRARY_CHUNK)) != 0)
      continue;
    place = lua_pushfstring (L, "%s:%d: ", ar.short_src, ar.currentline);
    n = strlen (place);
    if (strncmp (text, place, n) != 0) continue;
    what = strncmp (text + n, "attempt to ", 11) == 0 ? text : text + n;
    sl_lua_blame (L, what);
    lua_replace (L, 1);
    return;
  }
}

/* Lua: (value, module, name or nil) -> the text that the module, or its function
** of this name, makes of the value. */
static int ask (lua_State *L) {
  lua_getglobal (L, "require");
  lua_pushvalue (L, 2);
  lua_call (L, 1, 1);
  if (!lua_isnil (L, 3)) lua_getfield (L, -1, lua_tostring (L, 3));
  lua_pushvalue (L, 1);
  lua_call (L, 1, 1);
  return 1;
}

/* The value at 1 becomes this text; if that fails, it stays as it is. */
static void replace_by (lua_State *L, const char *module, const char *name) {
  lua_pushcfunction (L, ask);
  lua_pushvalue (L, 1);
  lua_pushstring (L, module);
  lua_pushstring (L, name);
  if (lua_pcall (L, 3, 1, 0) == LUA_OK && lua_isstring (L, -1))
    lua_replace (L, 1);
  else
    lua_pop (L, 1);
}

static int message (lua_State *L) {
  const sl_session *s = sl_lua_session (L);
  lua_settop (L, 1);
  if (luaL_testudata (L, 1, SL_LUA_QUIT)) return 1;
  if (lua_type (L, 1) == LUA_TNUMBER)
    lua_tostring (L, 1); /* in its place */
  else if (lua_type (L, 1) != LUA_TSTRING) {
    if (luaL_callmeta (L, 1, "__tostring") && lua_isstring (L, -1))
      lua_replace (L, 1);
    else {
      lua_settop (L, 1);
      lua_pushfstring (L, "the error raised is a %s, not a text",
                       luaL_typename (L, 1));
      if (lua_istable (L, 1)) replace_by (L, "sinklab.prompt.show", "text");
      if (lua_type (L, 1) == LUA_TSTRING) {
        lua_pushliteral (L, ": ");
        lua_pushvalue (L, 1);
        lua_concat (L, 3);
      }
      lua_replace (L, 1);
    }
  }
  blame_script (L);
  lua_settop (L, 1);
  if (strstr (lua_tostring (L, 1), "attempt to call a nil value ("))
    replace_by (L, "sinklab.prompt.undefined", NULL);
  if (s->traceback) luaL_traceback (L, L, lua_tostring (L, 1), 1);
  return 1;
}

int sl_session_call (sl_session *s, int n_args, int n_results) {
  int base = lua_gettop (s->L) - n_args, status;
  lua_pushcfunction (s->L, message);
  lua_insert (s->L, base);
  status = lua_pcall (s->L, n_args, n_results, base);
  lua_remove (s->L, base);
  return status;
}

int sl_session_quits (sl_session *s, int index, int *status) {
  const int *value = luaL_testudata (s->L, index, SL_LUA_QUIT);
  if (value) *status = *value;
  return value != NULL;
}

/* Globals that were never declared. */

static int undeclared_read (lua_State *L) {
  const char *names[256], *name = luaL_tolstring (L, 2, NULL);
  size_t n = 0;
  sl_error e;
  lua_pushnil (L);
  while (lua_next (L, 1)) {
    lua_pop (L, 1);
    if (lua_type (L, -1) == LUA_TSTRING && n < sizeof names / sizeof *names)
      names[n++] = lua_tostring (L, -1);
  }
  sl_fail_unknown (&e, name, n, names, "undeclared global '%s'", name);
  return luaL_error (L, "%s", e.text);
}

static int undeclared_write (lua_State *L) {
  return luaL_error (L, "assignment to undeclared global '%s' (make it local)",
                     luaL_tolstring (L, 2, NULL));
}

void sl_session_strict (sl_session *s) {
  static const luaL_Reg strict[] = { { "__index", undeclared_read },
                                     { "__newindex", undeclared_write },
                                     { NULL, NULL } };
  lua_pushglobaltable (s->L);
  luaL_newlib (s->L, strict);
  lua_setmetatable (s->L, -2);
  lua_pop (s->L, 1);
}
