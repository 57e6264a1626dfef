/* lua_tokenizer.c - text to token ids and back, from Lua. */
#include "base/memory.h"
#include "lm/tokenizer.h"
#include "lua/lua_lm.h"
#include <string.h>

#define TOKENIZER "sinklab.lm.tokenizer"

static int tokenizer_release (lua_State *L) {
  sl_tokenizer **box = sl_lua_check_object (L, 1, TOKENIZER);
  sl_tokenizer_free (*box);
  *box = NULL;
  return 0;
}

static sl_tokenizer *check_tokenizer (lua_State *L) {
  sl_tokenizer **box = sl_lua_check_object (L, 1, TOKENIZER);
  sl_lua_argument (L, *box != NULL, 1, "this tokenizer has been closed");
  return *box;
}

/* tokenizer (handle of a file, or path of a tokenizer.json or its folder) ->
** tokenizer, or nil and a sentence */
static int tokenizer_open (lua_State *L) {
  const char *path = lua_tostring (L, 1);
  const sl_weights *w = path == NULL ? sl_lua_check_weights (L, 1) : NULL;
  sl_tokenizer **box = lua_newuserdatauv (L, sizeof *box, 0);
  sl_error e;
  *box = NULL;
  luaL_setmetatable (L, TOKENIZER);
  *box = path != NULL ? sl_tokenizer_open_path (path, &e)
                      : sl_tokenizer_open (w, &e);
  return *box != NULL ? 1 : sl_lua_nil (L, &e);
}

static void set_id (lua_State *L, const char *name, int32_t id) {
  if (id < 0) return;
  lua_pushinteger (L, id);
  lua_setfield (L, -2, name);
}

/* t:about () -> { kind=, pre=, note=, size=, bos=, eos=, unknown=, add_bos=,
** said_bos= };
** absent properties are nil */
static int tokenizer_about (lua_State *L) {
  const sl_tokenizer *t = check_tokenizer (L);
  const sl_tokenizer_about about = sl_tokenizer_about_of (t);
  lua_createtable (L, 0, 8);
  lua_pushstring (L, about.kind);
  lua_setfield (L, -2, "kind");
  lua_pushstring (L, about.pre);
  lua_setfield (L, -2, "pre");
  if (*about.note) {
    lua_pushstring (L, about.note);
    lua_setfield (L, -2, "note");
  }
  lua_pushinteger (L, (lua_Integer)sl_tokenizer_vocabulary (t)->n);
  lua_setfield (L, -2, "size");
  set_id (L, "bos", about.bos);
  set_id (L, "eos", about.eos);
  set_id (L, "unknown", about.unknown);
  if (about.add_bos >= 0) {
    lua_pushboolean (L, about.add_bos);
    lua_setfield (L, -2, "add_bos");
    lua_pushboolean (L, about.said_bos);
    lua_setfield (L, -2, "said_bos");
  }
  return 1;
}

/* Ids in a block of Lua's, so that nothing is lost when Lua raises. */
typedef struct ids_box {
  sl_token_ids ids;
} ids_box;

static int ids_release (lua_State *L) {
  ids_box *box = lua_touserdata (L, 1);
  sl_free (box->ids.id);
  box->ids = (sl_token_ids){ 0 };
  return 0;
}

static ids_box *push_box (lua_State *L) {
  ids_box *box = lua_newuserdatauv (L, sizeof *box, 0);
  box->ids = (sl_token_ids){ 0 };
  sl_lua_own (L, "sinklab.lm.ids", ids_release);
  return box;
}

/* t:encode (text, special) -> list of ids, or nil and a sentence */
static int tokenizer_encode (lua_State *L) {
  sl_tokenizer *t = check_tokenizer (L);
  size_t n;
  const char *text = sl_lua_check_text (L, 2, &n);
  const int special = lua_toboolean (L, 3);
  ids_box *box = push_box (L);
  sl_error e;
  if (sl_tokenizer_encode (t, text, n, special, &box->ids, &e) < 0)
    return sl_lua_nil (L, &e);
  lua_createtable (L, box->ids.n < 1 << 26 ? (int)box->ids.n : 1 << 26, 0);
  for (size_t i = 0; i < box->ids.n; i++) {
    lua_pushinteger (L, box->ids.id[i]);
    lua_rawseti (L, -2, (lua_Integer)i + 1);
  }
  sl_free (box->ids.id);
  box->ids = (sl_token_ids){ 0 };
  return 1;
}

/* t:decode (list of ids, special) -> text */
static int tokenizer_decode (lua_State *L) {
  const sl_tokenizer *t = check_tokenizer (L);
  const int special = lua_toboolean (L, 3);
  lua_Integer count;
  size_t length;
  ids_box *box;
  sl_error e;
  char *text;
  luaL_Buffer b;
  sl_lua_check_type (L, 2, LUA_TTABLE);
  count = luaL_len (L, 2);
  box = push_box (L);
  for (lua_Integer i = 1; i <= count; i++) {
    int whole;
    lua_Integer id;
    lua_geti (L, 2, i);
    id = lua_tointegerx (L, -1, &whole);
    if (!whole || id < INT32_MIN || id > INT32_MAX)
      return sl_lua_fail (L, "decode: number %lld of the ids is %s",
                          (long long)i, luaL_tolstring (L, -1, NULL));
    lua_pop (L, 1);
    if (sl_token_ids_add (&box->ids, (int32_t)id, &e) < 0)
      return sl_lua_raise (L, &e);
  }
  text = sl_tokenizer_decode (t, box->ids.n, box->ids.id, special, &length, &e);
  if (text == NULL) return sl_lua_raise (L, &e);
  /* the block is Lua's to free while Lua allocates */
  sl_free (box->ids.id);
  box->ids = (sl_token_ids){ (int32_t *)(void *)text, 0, 0 };
  memcpy (luaL_buffinitsize (L, &b, length), text, length);
  luaL_pushresultsize (&b, length);
  return 1;
}

/* t:token (id) -> its text in the vocabulary, kind (a number); or nil */
static int tokenizer_token (lua_State *L) {
  const sl_vocabulary *v = sl_tokenizer_vocabulary (check_tokenizer (L));
  const lua_Integer id = sl_lua_check_integer (L, 2);
  const char *text;
  size_t n;
  if (id < 0 || (size_t)id >= v->n) {
    lua_pushnil (L);
    return 1;
  }
  text = sl_vocabulary_text (v, (size_t)id, &n);
  lua_pushlstring (L, text, n);
  lua_pushinteger (L, v->kind[id]);
  return 2;
}

/* t:id (text in the vocabulary) -> id or nil */
static int tokenizer_id (lua_State *L) {
  const sl_vocabulary *v = sl_tokenizer_vocabulary (check_tokenizer (L));
  size_t n;
  const char *text = sl_lua_check_text (L, 2, &n);
  const int32_t id = sl_vocabulary_find (v, text, n);
  if (id < 0)
    lua_pushnil (L);
  else
    lua_pushinteger (L, id);
  return 1;
}

void sl_lua_open_tokenizer (lua_State *L) {
  static const luaL_Reg meta[] = { { "__gc", tokenizer_release },
                                   { "__close", tokenizer_release },
                                   { NULL, NULL } };
  static const luaL_Reg methods[] = {
    { "about", tokenizer_about },   { "encode", tokenizer_encode },
    { "decode", tokenizer_decode }, { "token", tokenizer_token },
    { "id", tokenizer_id },         { NULL, NULL },
  };
  sl_lua_class (L, TOKENIZER, meta, methods);
  luaL_getsubtable (L, -1, "lm");
  lua_pushcfunction (L, tokenizer_open);
  lua_setfield (L, -2, "tokenizer");
  lua_pop (L, 1);
}
