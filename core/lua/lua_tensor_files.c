/* lua_tensor_files.c - tensors in .npy and safetensors files, from Lua. */
#include "lua/lua_tensor.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/safetensors.h"
#include <stdlib.h>
#include <string.h>

#define TENSORS_HANDLE "sinklab.tensors"

static int saved (lua_State *L, int status, const sl_error *e) {
  if (status < 0) return sl_lua_nil (L, e);
  lua_pushboolean (L, 1);
  return 1;
}

/* load_npy (path) -> tensor, or nil and a sentence */
static int files_load_npy (lua_State *L) {
  sl_error e;
  sl_tensor *t = sl_npy_read (sl_lua_check_string (L, 1), &e);
  if (t == NULL) return sl_lua_nil (L, &e);
  sl_lua_push_tensor (L, t);
  return 1;
}

/* save_npy (path, tensor), t:save_npy (path) -> true, or nil and a sentence */
static int files_save_npy (lua_State *L) {
  sl_error e;
  const sl_tensor *t = sl_lua_check_tensor (L, 2);
  return saved (L, sl_npy_write (sl_lua_check_string (L, 1), t, &e), &e);
}

static int method_save_npy (lua_State *L) {
  sl_error e;
  const sl_tensor *t = sl_lua_check_tensor (L, 1);
  return saved (L, sl_npy_write (sl_lua_check_string (L, 2), t, &e), &e);
}

/* Raise for the string at 'index' if it has a NUL, with which files end it. */
static void check_text (lua_State *L, const char *what, int index) {
  size_t n;
  const char *text = lua_tolstring (L, index, &n);
  if (strlen (text) != n)
    sl_lua_fail (L, "%s: '%.100s' goes on after a NUL, which no file can hold",
                 what, text);
}

/* The number of entries of the table at 'arg', whose keys must be strings and
** so must be its values for meta, tensors else. */
static size_t entries (lua_State *L, const char *what, int arg, int meta) {
  size_t n = 0;
  for (lua_pushnil (L); lua_next (L, arg); lua_pop (L, 1), n++) {
    const int found = meta ? lua_type (L, -1) == LUA_TSTRING
                           : luaL_testudata (L, -1, SL_LUA_TENSOR) != NULL;
    if (lua_type (L, -2) != LUA_TSTRING)
      sl_lua_fail (L, "%s: names must be strings, got %s", what,
                   luaL_typename (L, -2));
    check_text (L, what, -2);
    if (!found)
      sl_lua_fail (L, "%s: '%.100s' must be a %s, got %s", what,
                   lua_tostring (L, -2), meta ? "string" : "tensor",
                   luaL_typename (L, -1));
    if (meta)
      check_text (L, what, -1);
    else if (*(sl_tensor **)lua_touserdata (L, -1) == NULL)
      sl_lua_fail (L, "%s: '%.100s' must be a tensor, got a closed one", what,
                   lua_tostring (L, -2));
  }
  return n;
}

static int by_name (const void *a, const void *b) {
  return strcmp (((const sl_named *)a)->name, ((const sl_named *)b)->name);
}

static int by_key (const void *a, const void *b) {
  return strcmp (((const sl_meta *)a)->key, ((const sl_meta *)b)->key);
}

/* Arguments: path, { name = tensor } and, where the format has a place for it,
** { key = string }. Names come sorted, so equal tables give equal files. */
static int save_tensors (lua_State *L, const char *what, int with_meta,
                         int (*write) (const char *path, const sl_tensors *s,
                                       sl_error *e)) {
  const char *path = sl_lua_check_string (L, 1);
  sl_tensors s = { 0 };
  sl_error e;
  size_t n, n_meta = 0;
  sl_lua_check_type (L, 2, LUA_TTABLE);
  if (with_meta && !lua_isnoneornil (L, 3))
    sl_lua_check_type (L, 3, LUA_TTABLE);
  lua_settop (L, with_meta ? 3 : 2);
  n = entries (L, what, 2, 0);
  if (lua_istable (L, 3)) n_meta = entries (L, what, 3, 1);
  /* the strings and tensors are kept alive by the tables */
  s.item = lua_newuserdatauv (L, (n + 1) * sizeof *s.item, 0);
  s.meta = lua_newuserdatauv (L, (n_meta + 1) * sizeof *s.meta, 0);
  lua_pushnil (L);
  while (lua_next (L, 2)) {
    s.item[s.n].name = (char *)(uintptr_t)lua_tostring (L, -2);
    s.item[s.n++].tensor = sl_lua_check_tensor (L, -1);
    lua_pop (L, 1);
  }
  if (n_meta > 0) {
    lua_pushnil (L);
    while (lua_next (L, 3)) {
      s.meta[s.n_meta].key = (char *)(uintptr_t)lua_tostring (L, -2);
      s.meta[s.n_meta++].value = (char *)(uintptr_t)lua_tostring (L, -1);
      lua_pop (L, 1);
    }
  }
  qsort (s.item, s.n, sizeof *s.item, by_name);
  qsort (s.meta, s.n_meta, sizeof *s.meta, by_key);
  return saved (L, write (path, &s, &e), &e);
}

/* save_safetensors (path, { name = tensor }, [{ key = string }]) -> true, or
** nil and a sentence. */
static int files_save_safetensors (lua_State *L) {
  return save_tensors (L, "save_safetensors", 1, sl_safetensors_write);
}

/* save_npz (path, { name = tensor }) -> true, or nil and a sentence. */
static int files_save_npz (lua_State *L) {
  return save_tensors (L, "save_npz", 0, sl_npz_write);
}

static int tensors_release (lua_State *L) {
  sl_tensors_free (sl_lua_check_object (L, 1, TENSORS_HANDLE));
  return 0;
}

static int load_tensors (lua_State *L,
                         int (*read) (const char *path, sl_tensors *s,
                                      sl_error *e)) {
  const char *path = sl_lua_check_string (L, 1);
  sl_tensors *s = lua_newuserdatauv (L, sizeof *s, 0);
  sl_error e;
  *s = (sl_tensors){ 0 };
  sl_lua_own (L, TENSORS_HANDLE, tensors_release);
  if (read (path, s, &e) < 0) return sl_lua_nil (L, &e);
  lua_newtable (L);
  for (size_t i = 0; i < s->n; i++) {
    sl_tensor *t = s->item[i].tensor;
    s->item[i].tensor = NULL; /* Lua's from here on */
    sl_lua_push_tensor (L, t);
    lua_setfield (L, -2, s->item[i].name);
  }
  lua_newtable (L);
  for (size_t i = 0; i < s->n_meta; i++) {
    lua_pushstring (L, s->meta[i].value);
    lua_setfield (L, -2, s->meta[i].key);
  }
  sl_tensors_free (s);
  return 2;
}

/* load_safetensors (path) -> { name = tensor }, { key = string }, or nil and a
** sentence */
static int files_load_safetensors (lua_State *L) {
  return load_tensors (L, sl_safetensors_read);
}

/* load_npz (path) -> { name = tensor }, { member that is not read = why }, or nil
** and a sentence */
static int files_load_npz (lua_State *L) {
  return load_tensors (L, sl_npz_read);
}

void sl_lua_open_tensor_files (lua_State *L) {
  static const luaL_Reg functions[] = {
    { "load_npy", files_load_npy },
    { "save_npy", files_save_npy },
    { "load_npz", files_load_npz },
    { "save_npz", files_save_npz },
    { "load_safetensors", files_load_safetensors },
    { "save_safetensors", files_save_safetensors },
    { NULL, NULL },
  };
  static const luaL_Reg methods[] = {
    { "save_npy", method_save_npy },
    { NULL, NULL },
  };
  luaL_setfuncs (L, functions, 0);
  sl_lua_tensor_metatable (L);
  sl_lua_tensor_methods (L, methods);
  lua_pop (L, 1);
}
