/* lua_lm_files.c - files of language models and their weights, from Lua. */
#include "lm/linear.h"
#include "lua/lua_lm.h"
#include "lua/lua_tensor.h"
#include <stdint.h>
#include <string.h>

#define FILE_HANDLE "sinklab.lm.weights"
#define WEIGHT "sinklab.lm.weight"

/* A weight in Lua keeps its file alive. */
typedef struct weight_box {
  sl_weights *file; /* NULL: closed */
  sl_weight weight;
} weight_box;

static int file_release (lua_State *L) {
  sl_weights **box = sl_lua_check_object (L, 1, FILE_HANDLE);
  sl_weights_release (*box);
  *box = NULL;
  return 0;
}

sl_weights *sl_lua_check_weights (lua_State *L, int arg) {
  sl_weights **box = sl_lua_check_object (L, arg, FILE_HANDLE);
  sl_lua_argument (L, *box != NULL, arg, "this file has been closed");
  return *box;
}

static int weight_release (lua_State *L) {
  weight_box *box = sl_lua_check_object (L, 1, WEIGHT);
  sl_weights_release (box->file);
  box->file = NULL;
  return 0;
}

static weight_box *check_weight (lua_State *L, int arg) {
  weight_box *box = sl_lua_check_object (L, arg, WEIGHT);
  sl_lua_argument (L, box->file != NULL, arg, "this weight has been closed");
  return box;
}

static int push_weight (lua_State *L, sl_weights *file, const sl_weight *w) {
  weight_box *box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = (weight_box){ NULL, *w };
  luaL_setmetatable (L, WEIGHT);
  box->file = sl_weights_retain (file);
  return 1;
}

static void push_shape (lua_State *L, const sl_weight *w) {
  lua_createtable (L, w->ndim, 0);
  for (int i = 0; i < w->ndim; i++) {
    lua_pushinteger (L, w->dim[i]);
    lua_rawseti (L, -2, i + 1);
  }
}

/* { name=, type=, shape=, bytes= } */
static void push_about (lua_State *L, const sl_weight *w) {
  lua_createtable (L, 0, 4);
  lua_pushstring (L, w->name);
  lua_setfield (L, -2, "name");
  lua_pushstring (L, w->type->name);
  lua_setfield (L, -2, "type");
  push_shape (L, w);
  lua_setfield (L, -2, "shape");
  lua_pushinteger (L, (lua_Integer)w->bytes);
  lua_setfield (L, -2, "bytes");
}

/* Files. */

/* open (path) -> handle, or nil and a sentence */
static int files_open (lua_State *L) {
  const char *path = sl_lua_check_string (L, 1);
  sl_weights **box = lua_newuserdatauv (L, sizeof *box, 0);
  sl_error e;
  *box = NULL;
  luaL_setmetatable (L, FILE_HANDLE);
  *box = sl_weights_open (path, &e);
  return *box != NULL ? 1 : sl_lua_nil (L, &e);
}

/* handle:about () -> { format=, version=, path=, folder=, bytes= } */
static int file_about (lua_State *L) {
  const sl_weights *w = sl_lua_check_weights (L, 1);
  const sl_gguf *g = sl_weights_gguf (w);
  lua_createtable (L, 0, 5);
  lua_pushstring (L, g != NULL ? "gguf" : "safetensors");
  lua_setfield (L, -2, "format");
  if (g != NULL) {
    lua_pushinteger (L, g->version);
    lua_setfield (L, -2, "version");
  }
  lua_pushstring (L, sl_weights_path (w));
  lua_setfield (L, -2, "path");
  lua_pushstring (L, sl_weights_folder (w));
  lua_setfield (L, -2, "folder");
  lua_pushinteger (L, (lua_Integer)sl_weights_bytes (w));
  lua_setfield (L, -2, "bytes");
  return 1;
}

/* handle:keys () -> the names of the metadata, in the file's order */
static int file_keys (lua_State *L) {
  const sl_weights *w = sl_lua_check_weights (L, 1);
  const sl_gguf *g = sl_weights_gguf (w);
  size_t n;
  const sl_meta *meta = sl_weights_meta (w, &n);
  if (g != NULL) n = g->n_values;
  lua_createtable (L, n < 1 << 20 ? (int)n : 1 << 20, 0);
  for (size_t i = 0; i < n; i++) {
    lua_pushstring (L, g != NULL ? g->value[i].key : meta[i].key);
    lua_rawseti (L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static void push_element (lua_State *L, const sl_gguf_value *v,
                          const char **cursor) {
  const char *at = *cursor;
  const int64_t whole = v->type == SL_GGUF_STRING || sl_gguf_is_real (v)
                            ? 0
                            : sl_gguf_whole (v, &at);
  size_t n;
  if (v->type == SL_GGUF_STRING) {
    const char *text = sl_gguf_string (v, cursor, &n);
    lua_pushlstring (L, text, n);
    return;
  }
  if (v->type == SL_GGUF_BOOL)
    lua_pushboolean (L, whole != 0);
  else if (sl_gguf_is_real (v) || (v->type == SL_GGUF_U64 && whole < 0)) {
    lua_pushnumber (L, sl_gguf_real (v, cursor));
    return;
  } else
    lua_pushinteger (L, whole);
  *cursor = at;
}

/* handle:value (key) -> number, boolean, string, list of such; or nil */
static int file_value (lua_State *L) {
  const sl_weights *w = sl_lua_check_weights (L, 1);
  const char *key = sl_lua_check_string (L, 2);
  const sl_gguf *g = sl_weights_gguf (w);
  const sl_gguf_value *v = g != NULL ? sl_gguf_find (g, key) : NULL;
  const char *cursor = v != NULL ? v->at : NULL;
  size_t n;
  const sl_meta *meta = sl_weights_meta (w, &n);
  lua_settop (L, 2);
  if (v != NULL && !v->is_array) {
    push_element (L, v, &cursor);
    return 1;
  }
  if (v != NULL) {
    lua_createtable (L, v->count < 1 << 20 ? (int)v->count : 1 << 20, 0);
    for (size_t i = 0; i < v->count; i++) {
      push_element (L, v, &cursor);
      lua_rawseti (L, -2, (lua_Integer)i + 1);
    }
    return 1;
  }
  for (size_t i = 0; i < n; i++)
    if (strcmp (meta[i].key, key) == 0) {
      lua_pushstring (L, meta[i].value);
      return 1;
    }
  lua_pushnil (L);
  return 1;
}

/* handle:tensors () -> list of { name=, type=, shape=, bytes= } */
static int file_tensors (lua_State *L) {
  const sl_weights *file = sl_lua_check_weights (L, 1);
  const size_t n = sl_weights_count (file);
  lua_createtable (L, n < 1 << 20 ? (int)n : 1 << 20, 0);
  for (size_t i = 0; i < n; i++) {
    push_about (L, sl_weights_get (file, i));
    lua_rawseti (L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* handle:weight (name) -> weight, or nil and a sentence if there is none or its
** type is not read */
static int file_weight (lua_State *L) {
  sl_weights *file = sl_lua_check_weights (L, 1);
  sl_error e;
  const sl_weight *w = sl_weights_find (file, sl_lua_check_string (L, 2), &e);
  if (w == NULL) return sl_lua_nil (L, &e);
  if (sl_weight_readable (w, &e) < 0) {
    sl_fail_within (&e, "%s", sl_weights_path (file));
    return sl_lua_nil (L, &e);
  }
  return push_weight (L, file, w);
}

/* Weights. */

/* w:tensor ([dtype "f32"]) */
static int weight_tensor (lua_State *L) {
  const weight_box *box = check_weight (L, 1);
  const sl_dtype dtype = sl_lua_opt_dtype (L, 2, SL_F32);
  sl_error e;
  return sl_lua_tensor_or_raise (
      L, sl_weight_tensor (&box->weight, box->file, dtype, &e), &e);
}

/* Raise unless n places from 'start' on (from 1) are on w's first axis. */
static void check_part (lua_State *L, const sl_weight *w, const char *what,
                        lua_Integer start, lua_Integer n) {
  const ptrdiff_t size = w->ndim > 0 ? w->dim[0] : 0;
  char shape[SL_SHAPE_TEXT];
  /* a part of a vector may cut a block in two */
  if (w->ndim >= 2 && start >= 1 && n >= 0 && start - 1 <= size &&
      n <= size - (start - 1))
    return;
  sl_lua_fail (
      L,
      "%s: start %lld with length %lld is not on the first axis of the "
      "weight '%.100s' of shape %s%s",
      what, (long long)start, (long long)n, w->name,
      sl_shape_text (w->ndim, w->dim, shape, sizeof shape),
      w->ndim < 2 ? ", which needs two axes" : "");
}

/* w:narrow (start, length), counted from 1: these along the first axis */
static int weight_narrow (lua_State *L) {
  const weight_box *box = check_weight (L, 1);
  const lua_Integer first = sl_lua_check_integer (L, 2);
  const lua_Integer n = sl_lua_check_integer (L, 3);
  sl_weight part;
  check_part (L, &box->weight, "narrow", first, n);
  part = sl_weight_narrow (&box->weight, (ptrdiff_t)first - 1, (ptrdiff_t)n);
  return push_weight (L, box->file, &part);
}

/* w:select (i), counted from 1: this one, without the first axis */
static int weight_select (lua_State *L) {
  const weight_box *box = check_weight (L, 1);
  const lua_Integer i = sl_lua_check_integer (L, 2);
  sl_weight part;
  check_part (L, &box->weight, "select", i, 1);
  part = sl_weight_select (&box->weight, (ptrdiff_t)i - 1);
  return push_weight (L, box->file, &part);
}

/* w:nonfinite () -> how many numbers are infinite or NaN, index of the first
** one (row-major, from 0) or nil */
static int weight_nonfinite (lua_State *L) {
  const weight_box *box = check_weight (L, 1);
  size_t where = 0, n = sl_weight_nonfinite (&box->weight, &where);
  lua_pushinteger (L, (lua_Integer)n);
  if (n > 0)
    lua_pushinteger (L, (lua_Integer)where);
  else
    lua_pushnil (L);
  return 2;
}

static int weight_tostring (lua_State *L) {
  const weight_box *box = sl_lua_check_object (L, 1, WEIGHT);
  char shape[SL_SHAPE_TEXT];
  if (box->file == NULL)
    lua_pushliteral (L, "weight (closed)");
  else
    lua_pushfstring (
        L, "weight '%s' %s %s", box->weight.name,
        sl_shape_text (box->weight.ndim, box->weight.dim, shape, sizeof shape),
        box->weight.type->name);
  return 1;
}

/* A method (upvalue 1) or a field of the weight. */
static int weight_index (lua_State *L) {
  enum { ROOM = 24 };
  const char *names[ROOM], *name = sl_lua_check_string (L, 2);
  size_t n = 0;
  sl_error e;
  lua_settop (L, 2);
  lua_pushvalue (L, 2);
  if (lua_rawget (L, lua_upvalueindex (1)) != LUA_TNIL) return 1;
  push_about (L, &check_weight (L, 1)->weight);
  if (lua_getfield (L, -1, name) != LUA_TNIL) return 1;
  lua_pop (L, 1);
  lua_pushvalue (L, lua_upvalueindex (1));
  for (int table = 4; table <= 5; table++) { /* fields, methods */
    lua_pushnil (L);
    while (n < ROOM && lua_next (L, table)) {
      lua_pop (L, 1);
      names[n++] = lua_tostring (L, -1);
    }
  }
  sl_fail_unknown (&e, name, n, names,
                   "a weight has no field or method '%.100s'", name);
  return sl_lua_raise (L, &e);
}

/* linear (x, weight, [bias]) */
static int files_linear (lua_State *L) {
  sl_tensor *x = sl_lua_check_tensor (L, 1);
  const weight_box *box = check_weight (L, 2);
  const sl_tensor *bias = sl_lua_opt_tensor (L, 3);
  sl_error e;
  sl_lua_not_recorded (L, x, "lm.linear");
  return sl_lua_tensor_or_raise (
      L, sl_weight_linear (sl_lua_context (L)->pool, x, &box->weight, bias, &e),
      &e);
}

/* embedding (weight, ids, [dtype "f32"]); ids: a tensor or nested list */
static int files_embedding (lua_State *L) {
  const weight_box *box = check_weight (L, 1);
  const sl_dtype dtype = sl_lua_opt_dtype (L, 3, SL_F32);
  sl_error e;
  lua_settop (L, 2);
  if (luaL_testudata (L, 2, SL_LUA_TENSOR) == NULL) {
    sl_lua_tensor_of (L, 2, SL_F64);
    lua_replace (L, 2);
  }
  return sl_lua_tensor_or_raise (
      L,
      sl_weight_embedding (&box->weight, sl_lua_check_tensor (L, 2), dtype, &e),
      &e);
}

void sl_lua_open_lm_files (lua_State *L) {
  static const luaL_Reg functions[] = {
    { "open", files_open },
    { "linear", files_linear },
    { "embedding", files_embedding },
    { NULL, NULL },
  };
  static const luaL_Reg file_meta[] = {
    { "__gc", file_release },
    { "__close", file_release },
    { NULL, NULL },
  };
  static const luaL_Reg file_methods[] = {
    { "about", file_about },
    { "keys", file_keys },
    { "value", file_value },
    { "tensors", file_tensors },
    { "weight", file_weight },
    { "close", file_release },
    { NULL, NULL },
  };
  static const luaL_Reg weight_meta[] = {
    { "__gc", weight_release },
    { "__close", weight_release },
    { "__tostring", weight_tostring },
    { NULL, NULL },
  };
  static const luaL_Reg weight_methods[] = {
    { "tensor", weight_tensor },
    { "narrow", weight_narrow },
    { "select", weight_select },
    { "nonfinite", weight_nonfinite },
    { NULL, NULL },
  };
  sl_lua_class (L, FILE_HANDLE, file_meta, file_methods);
  sl_lua_class (L, WEIGHT, weight_meta, weight_methods);
  luaL_getmetatable (L, WEIGHT);
  lua_getfield (L, -1, "__index"); /* where weight_index looks for methods */
  lua_pushcclosure (L, weight_index, 1);
  lua_setfield (L, -2, "__index");
  lua_pop (L, 1);
  luaL_getsubtable (L, -1, "lm");
  luaL_setfuncs (L, functions, 0);
  lua_pop (L, 1);
}
