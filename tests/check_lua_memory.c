/* check_lua_memory.c - bindings when Lua runs out of memory: nothing leaks. */
#include "base/memory_test.h"
#include "lua/lua_common.h"
#include "lua/session.h"
#include "support/suite.h"
#include <stdlib.h>

/* An allocator that refuses to grow once 'left' blocks have been given. */
typedef struct limit {
  lua_Alloc alloc;
  void *context;
  long left; /* negative: no limit */
} limit;

static void *limited (void *context, void *p, size_t old, size_t size) {
  limit *l = context;
  if (size > (p ? old : 0)) {
    if (l->left == 0) return NULL;
    if (l->left > 0) l->left--;
  }
  return l->alloc (l->context, p, old, size);
}

static int push_new_tensor (lua_State *L) {
  ptrdiff_t dim = 10;
  sl_error e;
  sl_tensor *t = sl_tensor_new (SL_F64, 1, &dim, &e);
  ck_assert_ptr_nonnull (t);
  sl_lua_push_tensor (L, t);
  return 1;
}

START_TEST (push_releases) {
  sl_session s;
  sl_error e;
  limit l = { .left = -1 };
  int failures = 0, status;
  size_t live;
  ck_assert_msg (sl_session_open (&s, 1, &e) == 0, "%s", e.text);
  l.alloc = lua_getallocf (s.L, &l.context);
  lua_setallocf (s.L, limited, &l);
  lua_gc (s.L, LUA_GCCOLLECT);
  live = sl_alloc_live ();
  /* Every allocation of the way fails once. */
  do {
    lua_pushcfunction (s.L, push_new_tensor);
    l.left = failures;
    status = sl_session_call (&s, 0, 1);
    l.left = -1;
    if (status != LUA_OK) {
      ck_assert_int_eq (status, LUA_ERRMEM);
      lua_pop (s.L, 1);
      lua_gc (s.L, LUA_GCCOLLECT);
      ck_assert_msg (sl_alloc_live () == live,
                     "%zu blocks held after failure %d, want %zu",
                     sl_alloc_live (), failures, live);
    }
    failures++;
  } while (status != LUA_OK && failures < 1000);
  ck_assert_int_eq (status, LUA_OK);
  ck_assert_int_gt (failures, 1);
  ck_assert_ptr_nonnull (sl_lua_check_tensor (s.L, -1));
  lua_pop (s.L, 1);
  lua_gc (s.L, LUA_GCCOLLECT);
  ck_assert_uint_eq (sl_alloc_live (), live);
  sl_session_close (&s);
}
END_TEST

/* A state that sinklab could not join has no session. */
START_TEST (a_failed_join_leaves_no_session) {
  lua_State *L = luaL_newstate ();
  limit l = { .left = -1 };
  sl_session s;
  sl_error e;
  int failures = 0, status;
  ck_assert_ptr_nonnull (L);
  luaL_openlibs (L);
  l.alloc = lua_getallocf (L, &l.context);
  lua_setallocf (L, limited, &l);
  do {
    l.left = failures;
    status = sl_session_join (&s, L, 1, &e);
    l.left = -1;
    ck_assert_ptr_eq (sl_lua_session (L), status == 0 ? &s : NULL);
    if (status != 0) sl_context_free (&s.context);
    failures++;
  } while (status != 0 && failures < 10000);
  ck_assert_int_eq (status, 0);
  ck_assert_int_gt (failures, 10);
  lua_close (L);
  sl_context_free (&s.context);
}
END_TEST

START_TEST (garbage_is_collected_in_time) {
  /* 400 tensors of 1 MB made and dropped: without telling the collector, all
  ** would be alive at once. */
  enum { TENSORS = 400, MEGABYTE = 1 << 17 };
  sl_session s;
  sl_error e;
  size_t most = 0, before;
  ck_assert_msg (sl_session_open (&s, 1, &e) == 0, "%s", e.text);
  before = sl_alloc_live ();
  for (int i = 0; i < TENSORS; i++) {
    ptrdiff_t dim = MEGABYTE;
    sl_lua_push_tensor (s.L, sl_tensor_new (SL_F64, 1, &dim, &e));
    lua_pop (s.L, 1);
    if (sl_alloc_live () - before > most) most = sl_alloc_live () - before;
  }
  ck_assert_msg (most < 200, "%zu blocks were alive at once", most);
  sl_session_close (&s);
}
END_TEST

START_TEST (models_leave_nothing) {
  /* Make, train, measure and drop models, as a long session at the prompt
  ** does. */
  static const char code[] =
      "local lab = require 'sinklab'\n"
      "return function()\n"
      "  local t = lab.task.trigger_mean { d_model = 4, seq_len = 5 }\n"
      "  local m = lab.model.attention_only { task = t, layers = 2,\n"
      "    residual = true, attention = { mechanism = 'softmax' } }\n"
      "  lab.train(m, t, { steps = 2, batch = 8, eval = 8, quiet = true })\n"
      "  local s = lab.sinks(m, t:batch { n = 8 })\n"
      "  pcall(lab.train, m, t, { steps = 'x' })\n"
      "end";
  sl_session s;
  sl_error e;
  size_t blocks = 0;
  setenv ("SINKLAB_PLUGIN_PATH", SINKLAB_TEST_BUILD "/plugins", 1);
  ck_assert_msg (sl_session_open (&s, 2, &e) == 0, "%s", e.text);
  ck_assert_msg (luaL_loadstring (s.L, code) == LUA_OK &&
                     sl_session_call (&s, 0, 1) == LUA_OK,
                 "%s", lua_tostring (s.L, -1));
  for (int i = 1; i <= 110; i++) {
    lua_pushvalue (s.L, -1);
    ck_assert_msg (sl_session_call (&s, 0, 0) == LUA_OK, "%s",
                   lua_tostring (s.L, -1));
    if (i != 10 && i != 110) continue;
    lua_gc (s.L, LUA_GCCOLLECT);
    if (i == 10)
      blocks = sl_alloc_live ();
    else
      ck_assert_msg (sl_alloc_live () == blocks,
                     "%zu blocks held after 110 models, %zu after 10",
                     sl_alloc_live (), blocks);
  }
  sl_session_close (&s);
  ck_assert_uint_gt (blocks, 0);
}
END_TEST

/* Lua: number (table, key) through sl_lua_number and the others. */
static int read_fields (lua_State *L) {
  static const char *const known[] = { "lr", "steps", "fast", "name", NULL };
  lua_settop (L, 1);
  sl_lua_known (L, 1, "f", known);
  lua_pushnumber (L, sl_lua_number (L, 1, "f", "lr", 0.5));
  lua_pushinteger (L, sl_lua_integer (L, 1, "f", "steps", 7));
  lua_pushboolean (L, sl_lua_boolean (L, 1, "f", "fast", 1));
  lua_pushstring (L, sl_lua_string (L, 1, "f", "name", "x"));
  return 4;
}

START_TEST (fields) {
  static const struct {
    const char *table, *want;
  } cases[] = {
    { "", "0.5 7 true x" },
    { "nil", "0.5 7 true x" },
    { "{}", "0.5 7 true x" },
    { "{ lr = 1, steps = 2, fast = false, name = 'y' }", "1.0 2 false y" },
    { "{ steps = 3.0 }", "0.5 3 true x" },
    { "setmetatable({}, { __index = error })", "0.5 7 true x" },
    { "1", "f: expected a table of options, got number" },
    { "{ lr = '1' }", "f.lr: expected number, got string" },
    { "{ steps = 1.5 }", "f.steps: expected a whole number, got 1.5" },
    { "{ steps = {} }", "f.steps: expected a whole number, got table" },
    { "{ fast = 1 }", "f.fast: expected boolean, got number" },
    { "{ name = 1 }", "f.name: expected string, got number" },
    { "{ stpes = 1 }", "f: no option 'stpes' (did you mean 'steps'?)" },
    { "{ 1 }", "f: expected named options, got the key [1]" },
  };
  sl_session s;
  sl_error e;
  ck_assert_msg (sl_session_open (&s, 1, &e) == 0, "%s", e.text);
  lua_register (s.L, "f", read_fields);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *code = lua_pushfstring (
        s.L,
        "local ok, a, b, c, d = pcall(function() return f(%s) end)\n"
        "return ok and table.concat({ tostring(a), tostring(b), tostring(c), d "
        "}"
        ", ' ') or a:gsub('^.-:1: ', '')",
        cases[i].table);
    ck_assert_msg (luaL_loadstring (s.L, code) == LUA_OK &&
                       sl_session_call (&s, 0, 1) == LUA_OK,
                   "%s: %s", cases[i].table, lua_tostring (s.L, -1));
    ck_assert_str_eq (lua_tostring (s.L, -1), cases[i].want);
    lua_settop (s.L, 0);
  }
  sl_session_close (&s);
}
END_TEST

SUITE_MAIN ("lua_memory", push_releases, a_failed_join_leaves_no_session,
            garbage_is_collected_in_time, models_leave_nothing, fields)
