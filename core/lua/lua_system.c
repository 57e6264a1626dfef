/* lua_system.c - the machine for the scripts: files, clock,
** terminal, signals, and errors blamed on the right line. */
#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/interrupt.h"
#include "base/isa.h"
#include "lua/lua_common.h"
#include "lua/session.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define FOLDER_HANDLE "sinklab.folder"
#define LOCK_HANDLE "sinklab.lock"

/* raise (text): an error at the nearest line outside the library. */
static int system_raise (lua_State *L) {
  sl_lua_blame (L, sl_lua_check_string (L, 1));
  return lua_error (L);
}

/* quit (status): end the script now, without a message. */
static int system_quit (lua_State *L) {
  int status = (int)sl_lua_check_integer (L, 1);
  int *box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = status;
  luaL_newmetatable (L, SL_LUA_QUIT);
  lua_setmetatable (L, -2);
  return lua_error (L);
}

/* interrupted () -> the number of the signal that asked to stop, or nil. */
static int system_interrupted (lua_State *L) {
  if (sl_interrupted)
    lua_pushinteger (L, sl_interrupted);
  else
    lua_pushnil (L);
  return 1;
}

/* stop_if_interrupted (): raises "interrupted" if so. */
static int system_stop_if_interrupted (lua_State *L) {
  if (!sl_interrupted) return 0;
  return sl_lua_fail (L, "interrupted");
}

/* pending_interrupt (): a library function that was stopped has results to store:
** the error is raised 100000 instructions later (see sl_session_watch). */
static int system_pending_interrupt (lua_State *L) {
  if (sl_interrupted) sl_session_grace (L);
  return 0;
}

/* nearest (word, names) -> the name to suggest for a misspelt word, or nil. */
static int system_nearest (lua_State *L) {
  const char *word = sl_lua_check_string (L, 1), **names;
  lua_Integer n;
  sl_lua_check_type (L, 2, LUA_TTABLE);
  n = luaL_len (L, 2);
  sl_lua_argument (L, n >= 0 && n < 100000, 2, "too many names");
  names = lua_newuserdatauv (L, (size_t)(n + 1) * sizeof *names, 0);
  for (lua_Integer i = 0; i < n; i++) {
    sl_lua_argument (L, lua_rawgeti (L, 2, i + 1) == LUA_TSTRING, 2,
                     "expected a list of strings");
    names[i] = lua_tostring (L, -1); /* kept alive by the list */
    lua_pop (L, 1);
  }
  lua_pushstring (L, sl_nearest (word, (size_t)n, names));
  return 1;
}

/* clock () -> seconds on a clock that never jumps. */
static int system_clock (lua_State *L) {
  lua_pushnumber (L, sl_now ());
  return 1;
}

/* utc ([format]) -> the time of day; the default is "2026-01-31T12:00:00Z". */
static int system_utc (lua_State *L) {
  const char *format = sl_lua_opt_string (L, 1, "%Y-%m-%dT%H:%M:%SZ");
  time_t now = time (NULL);
  struct tm parts;
  char text[128];
  gmtime_r (&now, &parts);
  lua_pushlstring (L, text, strftime (text, sizeof text, format, &parts));
  return 1;
}

/* escape (text [, lines]) -> the text with control characters, characters that hide
** or turn the direction of writing, and bytes that are not UTF-8 escaped; 'lines':
** newlines and tabs stay. */
static int system_escape (lua_State *L) {
  const int lines = lua_toboolean (L, 2);
  luaL_Buffer out;
  size_t n;
  const char *s = luaL_tolstring (L, 1, &n);
  luaL_buffinit (L, &out);
  for (size_t taken; n > 0; s += taken, n -= taken) {
    sl_shown_part part;
    taken = sl_show_next (s, n, lines, &part);
    luaL_addlstring (&out, part.text, part.n);
  }
  luaL_pushresult (&out);
  return 1;
}

static int stream_argument (lua_State *L) {
  static const char *const streams[] = { "stdin", "stdout", "stderr", NULL };
  return luaL_checkoption (L, 1, "stdout", streams); /* its descriptor */
}

/* is_terminal ([stream]): "stdin", "stdout" (default) or "stderr". */
static int system_is_terminal (lua_State *L) {
  lua_pushboolean (L, isatty (stream_argument (L)));
  return 1;
}

/* read_line () -> a line of standard input, without its newline; nil at its end
** or after a signal, which would not end a plain read. */
static int system_read_line (lua_State *L) {
  luaL_Buffer line;
  luaL_buffinit (L, &line);
  while (sl_wait_to_read (STDIN_FILENO)) {
    char c;
    if (read (STDIN_FILENO, &c, 1) <= 0) break;
    if (c == '\n') {
      luaL_pushresult (&line);
      return 1;
    }
    luaL_addchar (&line, c);
  }
  luaL_pushfail (L);
  return 1;
}

/* columns ([stream]) -> width of the terminal behind it, or nil. */
static int system_columns (lua_State *L) {
  struct winsize size;
  if (ioctl (stream_argument (L), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    lua_pushinteger (L, size.ws_col);
  else
    luaL_pushfail (L);
  return 1;
}

/* quiet () -> true after --quiet. */
static int system_quiet (lua_State *L) {
  lua_pushboolean (L, sl_lua_session (L)->quiet);
  return 1;
}

static int system_threads (lua_State *L) {
  lua_pushinteger (L, sl_pool_workers (sl_lua_context (L)->pool));
  return 1;
}

static int system_isa (lua_State *L) {
  lua_pushstring (L, sl_isa_name (sl_isa_current ()));
  return 1;
}

/* Files. true, or nil and a sentence. */

static int outcome (lua_State *L, int status, const sl_error *e) {
  if (status != 0) return sl_lua_nil (L, e);
  lua_pushboolean (L, 1);
  return 1;
}

static int system_file_write (lua_State *L) {
  size_t n;
  const char *path = sl_lua_check_string (L, 1);
  const char *data = sl_lua_check_text (L, 2, &n);
  sl_error e;
  return outcome (L, sl_file_write (path, data, n, &e), &e);
}

/* file_read (path) -> the bytes of a regular file, or nil and a sentence. */
static int system_file_read (lua_State *L) {
  sl_error e;
  size_t n;
  char *data = sl_file_read (sl_lua_check_string (L, 1), 0, &n, &e);
  if (!data) return sl_lua_nil (L, &e);
  sl_lua_push_bytes (L, data, n);
  return 1;
}

static int system_make_folders (lua_State *L) {
  sl_error e;
  return outcome (L, sl_make_folders (sl_lua_check_string (L, 1), &e), &e);
}

/* make_folder (path) -> true if it is new, false if the name is taken. */
static int system_make_folder (lua_State *L) {
  sl_error e;
  int made = sl_make_folder (sl_lua_check_string (L, 1), &e);
  if (made < 0) return sl_lua_nil (L, &e);
  lua_pushboolean (L, made);
  return 1;
}

/* file_stamp (path) -> a text that is another one after every write. */
static int system_file_stamp (lua_State *L) {
  char stamp[128];
  sl_error e;
  if (sl_file_stamp (sl_lua_check_string (L, 1), stamp, sizeof stamp, &e) != 0)
    return sl_lua_nil (L, &e);
  lua_pushstring (L, stamp);
  return 1;
}

static int system_file_exists (lua_State *L) {
  lua_pushboolean (L, sl_file_exists (sl_lua_check_string (L, 1)));
  return 1;
}

static int system_folder_exists (lua_State *L) {
  lua_pushboolean (L, sl_folder_exists (sl_lua_check_string (L, 1)));
  return 1;
}

static int system_sha256 (lua_State *L) {
  char digits[65];
  sl_error e;
  if (sl_file_sha256 (sl_lua_check_string (L, 1), digits, &e) != 0)
    return sl_lua_nil (L, &e);
  lua_pushstring (L, digits);
  return 1;
}

static int folder_close (lua_State *L) {
  DIR **box = sl_lua_check_object (L, 1, FOLDER_HANDLE);
  if (*box) closedir (*box);
  *box = NULL;
  return 0;
}

/* folder (path) -> the names in it, without "." and "..", unsorted. */
static int system_folder (lua_State *L) {
  const char *path = sl_lua_check_string (L, 1);
  DIR **box = lua_newuserdatauv (L, sizeof *box, 0);
  const struct dirent *entry;
  *box = NULL;
  sl_lua_own (L, FOLDER_HANDLE, folder_close);
  lua_newtable (L);
  *box = opendir (path);
  if (!*box) {
    sl_error e;
    sl_fail (&e, "%s: %s", path, strerror (errno));
    return sl_lua_nil (L, &e);
  }
  for (lua_Integer n = 0; (entry = readdir (*box));) {
    if (strcmp (entry->d_name, ".") == 0 || strcmp (entry->d_name, "..") == 0)
      continue;
    lua_pushstring (L, entry->d_name);
    lua_rawseti (L, -2, ++n);
  }
  closedir (*box);
  *box = NULL;
  return 1;
}

static int system_remove_tree (lua_State *L) {
  sl_error e;
  return outcome (L, sl_remove_tree (sl_lua_check_string (L, 1), &e), &e);
}

/* The lock of a folder; its path is the user value. */

static int lock_release (lua_State *L) {
  int *lock = sl_lua_check_object (L, 1, LOCK_HANDLE);
  lua_getiuservalue (L, 1, 1);
  if (*lock >= 0) sl_folder_unlock (lua_tostring (L, -1), *lock);
  *lock = -1;
  return 0;
}

/* lock_folder (path) -> a lock, released by lock:release () or with the object;
** or nil, a sentence, and whether somebody else holds it. */
static int system_lock_folder (lua_State *L) {
  const char *path = sl_lua_check_string (L, 1);
  int *lock = lua_newuserdatauv (L, sizeof *lock, 1), held;
  sl_error e;
  *lock = -1;
  lua_pushvalue (L, 1);
  lua_setiuservalue (L, -2, 1);
  luaL_setmetatable (L, LOCK_HANDLE);
  *lock = sl_folder_lock (path, &held, &e);
  if (*lock >= 0) return 1;
  sl_lua_nil (L, &e);
  lua_pushboolean (L, held);
  return 3;
}

static int system_folder_locked (lua_State *L) {
  lua_pushboolean (L, sl_folder_locked (sl_lua_check_string (L, 1)));
  return 1;
}

/* this_process () -> the name of this machine, the number of this process. */
static int system_this_process (lua_State *L) {
  char name[256] = "";
  if (gethostname (name, sizeof name - 1) != 0) name[0] = '\0';
  lua_pushstring (L, name);
  lua_pushinteger (L, getpid ());
  return 2;
}

/* process_lives (number) -> whether this machine has such a process. */
static int system_process_lives (lua_State *L) {
  lua_Integer pid = sl_lua_check_integer (L, 1);
  lua_pushboolean (L, pid > 0 && pid <= INT_MAX &&
                          (kill ((pid_t)pid, 0) == 0 || errno != ESRCH));
  return 1;
}

void sl_lua_open_system (lua_State *L) {
  static const luaL_Reg functions[] = {
    { "raise", system_raise },
    { "name", sl_lua_name },
    { "quit", system_quit },
    { "interrupted", system_interrupted },
    { "stop_if_interrupted", system_stop_if_interrupted },
    { "nearest", system_nearest },
    { "clock", system_clock },
    { "utc", system_utc },
    { "escape", system_escape },
    { "is_terminal", system_is_terminal },
    { "columns", system_columns },
    { "read_line", system_read_line },
    { "pending_interrupt", system_pending_interrupt },
    { "quiet", system_quiet },
    { "threads", system_threads },
    { "isa", system_isa },
    { "file_read", system_file_read },
    { "file_write", system_file_write },
    { "make_folders", system_make_folders },
    { "make_folder", system_make_folder },
    { "file_stamp", system_file_stamp },
    { "file_exists", system_file_exists },
    { "folder_exists", system_folder_exists },
    { "sha256", system_sha256 },
    { "folder", system_folder },
    { "remove_tree", system_remove_tree },
    { "lock_folder", system_lock_folder },
    { "folder_locked", system_folder_locked },
    { "this_process", system_this_process },
    { "process_lives", system_process_lives },
    { NULL, NULL },
  };
  static const luaL_Reg lock_methods[] = { { "release", lock_release },
                                           { NULL, NULL } };
  static const luaL_Reg lock_meta[] = { { "__gc", lock_release },
                                        { "__close", lock_release },
                                        { NULL, NULL } };
  const sl_session *s = sl_lua_session (L);
  sl_lua_class (L, LOCK_HANDLE, lock_meta, lock_methods);
  luaL_setfuncs (L, functions, 0);
  lua_pushliteral (L, SINKLAB_VERSION);
  lua_setfield (L, -2, "version");
  lua_pushliteral (L, LUA_RELEASE);
  lua_setfield (L, -2, "lua_release");
  lua_pushstring (L, s->scripts);
  lua_setfield (L, -2, "scripts");
}
