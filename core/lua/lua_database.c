/* lua_database.c - SQLite for Lua: databases and statements.
**
** The statements are in scripts/sinklab/record/index.lua; here values
** are bound, never pasted into SQL. Failures return nil and a sentence. */
#include "base/interrupt.h"
#include "lua/lua_common.h"
#include <poll.h>
#include <sqlite3.h>
#include <string.h>

#define DATABASE_HANDLE "sinklab.database"
#define STATEMENT_HANDLE "sinklab.statement"
/* Other processes lock the file for milliseconds; a stopped process unlocks it
** when it ends. */
enum { PATIENCE_MS = 30000, HURRY_MS = 500, NAP_MS = 5 };

static int database_close (lua_State *L) {
  sqlite3 **box = sl_lua_check_object (L, 1, DATABASE_HANDLE);
  for (sqlite3_stmt *s = NULL; *box && (s = sqlite3_next_stmt (*box, s));)
    sqlite3_reset (s);     /* an error in between has left it running */
  sqlite3_close_v2 (*box); /* with its last statement */
  *box = NULL;
  lua_pushnil (L);
  lua_setiuservalue (L, 1, 1);
  return 0;
}

static int statement_close (lua_State *L) {
  sqlite3_stmt **box = sl_lua_check_object (L, 1, STATEMENT_HANDLE);
  sqlite3_finalize (*box);
  *box = NULL;
  return 0;
}

static sqlite3 *open_database (lua_State *L) {
  sqlite3 **box = sl_lua_check_object (L, 1, DATABASE_HANDLE);
  if (!*box) luaL_error (L, "the database has been closed");
  return *box;
}

/* Pushes nil, a sentence and the kind of failure: "busy", "corrupt", "unwritable"
** or "other". */
static int trouble (lua_State *L, sqlite3 *db, const char *what) {
  static const struct {
    int code;
    const char *name;
  } names[] = {
    { SQLITE_BUSY, "busy" },           { SQLITE_CORRUPT, "corrupt" },
    { SQLITE_NOTADB, "corrupt" },      { SQLITE_READONLY, "unwritable" },
    { SQLITE_CANTOPEN, "unwritable" }, { SQLITE_PERM, "unwritable" },
  };
  const char *name = "other";
  int code = sqlite3_errcode (db) & 0xff;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].code == code) name = names[i].name;
  lua_pushnil (L);
  lua_pushfstring (L, "%s: %s", what, sqlite3_errmsg (db));
  lua_pushstring (L, name);
  return 3;
}

/* Bind the Lua value at 'at', nil, a boolean, a number or a string, as value i.
** The text of a string is not copied. */
static void bind_value (lua_State *L, sqlite3_stmt *s, int i, int at) {
  int code;
  size_t size;
  const char *text;
  switch (lua_type (L, at)) {
  case LUA_TNIL: code = sqlite3_bind_null (s, i); break;
  case LUA_TBOOLEAN:
    code = sqlite3_bind_int (s, i, lua_toboolean (L, at));
    break;
  case LUA_TNUMBER:
    code = lua_isinteger (L, at)
               ? sqlite3_bind_int64 (s, i, lua_tointeger (L, at))
               : sqlite3_bind_double (s, i, lua_tonumber (L, at));
    break;
  default:
    text = sl_lua_check_text (L, at, &size);
    code = sqlite3_bind_text64 (s, i, text, size, SQLITE_STATIC, SQLITE_UTF8);
  }
  if (code != SQLITE_OK)
    luaL_error (L, "value %d of the statement: %s", i, sqlite3_errstr (code));
}

/* Bind the Lua values from 'first' on, which stay on the stack while the
** statement runs. */
static void bind_values (lua_State *L, sqlite3_stmt *s, int first) {
  int n = lua_gettop (L) - first + 1, wanted = sqlite3_bind_parameter_count (s);
  if (n != wanted)
    luaL_error (L, "the statement takes %d values, got %d", wanted, n);
  for (int i = 1; i <= n; i++) bind_value (L, s, i, first + i - 1);
}

/* Pushes the statement prepared from SQL at index 2, an object that frees itself.
** NULL: a failure, for trouble (). */
static sqlite3_stmt *new_statement (lua_State *L, sqlite3 *db) {
  size_t n;
  const char *sql = sl_lua_check_text (L, 2, &n), *tail = NULL;
  sqlite3_stmt **box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = NULL;
  sl_lua_own (L, STATEMENT_HANDLE, statement_close);
  if (n > 1000000) luaL_error (L, "a statement of %d bytes", (int)n);
  if (sqlite3_prepare_v2 (db, sql, (int)n, box, &tail) != SQLITE_OK)
    return NULL;
  if (!*box || tail[strspn (tail, " \n\t;")] != '\0')
    luaL_error (L, "expected one SQL statement");
  return *box;
}

/* The statement of SQL at index 2, which it replaces on the stack; the database
** keeps it for the next time. NULL: a failure, for trouble (). */
static sqlite3_stmt *prepare (lua_State *L, sqlite3 *db) {
  sqlite3_stmt **box, *s;
  lua_getiuservalue (L, 1, 1);
  lua_pushvalue (L, 2);
  lua_rawget (L, -2);
  box = lua_touserdata (L, -1);
  s = box ? *box : NULL;
  if (!s) {
    lua_pop (L, 1);
    s = new_statement (L, db);
    if (!s) return NULL;
    lua_pushvalue (L, 2);
    lua_pushvalue (L, -2);
    lua_rawset (L, -4);
  }
  lua_replace (L, 2);
  lua_pop (L, 1);
  return s;
}

static int failed_step (lua_State *L, sqlite3 *db, sqlite3_stmt *s) {
  int results = trouble (L, db, sqlite3_db_filename (db, "main"));
  sqlite3_reset (s);
  return results;
}

/* Run the statement to its end; 0, or the results of a failure. */
static int run_once (lua_State *L, sqlite3 *db, sqlite3_stmt *s) {
  int code;
  do code = sqlite3_step (s);
  while (code == SQLITE_ROW);
  if (code != SQLITE_DONE) return failed_step (L, db, s);
  sqlite3_reset (s);
  return 0;
}

/* db:run (sql, values...) -> rows changed; or nil, sentence, kind. */
static int database_run (lua_State *L) {
  sqlite3 *db = open_database (L);
  sqlite3_stmt *s = prepare (L, db);
  int failure;
  if (!s) return trouble (L, db, sqlite3_db_filename (db, "main"));
  bind_values (L, s, 3);
  failure = run_once (L, db, s);
  if (failure) return failure;
  lua_pushinteger (L, sqlite3_changes (db));
  return 1;
}

/* db:run_each (sql, values) -> true: the statement once for every group of as many
** values as it takes; or nil, sentence, kind. */
static int database_run_each (lua_State *L) {
  sqlite3 *db = open_database (L);
  lua_Integer n = luaL_len (L, 3);
  sqlite3_stmt *s = prepare (L, db);
  int width;
  if (!s) return trouble (L, db, sqlite3_db_filename (db, "main"));
  width = sqlite3_bind_parameter_count (s);
  if (width == 0 || n % width != 0)
    return luaL_error (L, "the statement takes groups of %d values", width);
  luaL_checkstack (L, width, NULL);
  for (lua_Integer i = 0; i < n; i += width) {
    int failure;
    for (int j = 1; j <= width; j++) {
      lua_rawgeti (L, 3, i + j);
      bind_value (L, s, j, 3 + j);
    }
    failure = run_once (L, db, s);
    if (failure) return failure;
    lua_settop (L, 3);
  }
  lua_pushboolean (L, 1);
  return 1;
}

static void push_column (lua_State *L, sqlite3_stmt *s, int i) {
  switch (sqlite3_column_type (s, i)) {
  case SQLITE_INTEGER: lua_pushinteger (L, sqlite3_column_int64 (s, i)); break;
  case SQLITE_FLOAT: lua_pushnumber (L, sqlite3_column_double (s, i)); break;
  case SQLITE_NULL: lua_pushnil (L); break;
  default:
    lua_pushlstring (L, (const char *)sqlite3_column_text (s, i),
                     (size_t)sqlite3_column_bytes (s, i));
  }
}

/* db:rows (sql, values...) -> a list of tables, column name -> value (NULL is
** left out); or nil, sentence, kind. */
static int database_rows (lua_State *L) {
  sqlite3 *db = open_database (L);
  sqlite3_stmt *s = prepare (L, db);
  int code;
  if (!s) return trouble (L, db, sqlite3_db_filename (db, "main"));
  bind_values (L, s, 3);
  lua_newtable (L);
  for (lua_Integer row = 1; (code = sqlite3_step (s)) == SQLITE_ROW; row++) {
    int columns = sqlite3_column_count (s);
    lua_createtable (L, 0, columns);
    for (int i = 0; i < columns; i++) {
      push_column (L, s, i);
      lua_setfield (L, -2, sqlite3_column_name (s, i));
    }
    lua_rawseti (L, -2, row);
  }
  if (code != SQLITE_DONE) return failed_step (L, db, s);
  sqlite3_reset (s);
  return 1;
}

/* Whether to try again while another process holds the database. Once this one is
** told to stop it waits for half a second: its record is still entered. */
static int wait_for_others (void *nothing, int tries) {
  (void)nothing;
  poll (NULL, 0, NAP_MS);
  return tries * NAP_MS < (sl_interrupted ? HURRY_MS : PATIENCE_MS);
}

/* database (path, create) -> an open database; or nil, sentence, kind. Without
** 'create' a missing file is a failure. */
static int database_open (lua_State *L) {
  const char *path = sl_lua_check_string (L, 1);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  sqlite3 **box = lua_newuserdatauv (L, sizeof *box, 1);
  *box = NULL;
  luaL_setmetatable (L, DATABASE_HANDLE);
  /* Refused after the first time. SQLite's count of its memory, which is not used
  ** here, takes a lock for every block. */
  sqlite3_config (SQLITE_CONFIG_MEMSTATUS, 0);
  lua_newtable (L); /* its statements by SQL */
  lua_setiuservalue (L, -2, 1);
  if (lua_toboolean (L, 2)) flags |= SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2 (path, box, flags, NULL) != SQLITE_OK) {
    if (!*box) return luaL_error (L, "out of memory");
    return trouble (L, *box, path);
  }
  sqlite3_busy_handler (*box, wait_for_others, NULL);
  sqlite3_db_config (*box, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config (*box, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  return 1;
}

void sl_lua_open_database (lua_State *L) {
  static const luaL_Reg methods[] = { { "run", database_run },
                                      { "run_each", database_run_each },
                                      { "rows", database_rows },
                                      { "close", database_close },
                                      { NULL, NULL } };
  static const luaL_Reg meta[] = { { "__gc", database_close },
                                   { "__close", database_close },
                                   { NULL, NULL } };
  sl_lua_class (L, DATABASE_HANDLE, meta, methods);
  lua_pushcfunction (L, database_open);
  lua_setfield (L, -2, "database");
}
