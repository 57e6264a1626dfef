/* lua_program.c - programs in Lua: recorded, replayed, checked. */
#include "base/memory.h"
#include "lua/lua_tensor.h"
#include <string.h>

#define REPLICA "sinklab.replica"
#define RECORDING "sinklab.recording"

/* Recording. */

static int program_release (lua_State *L) {
  sl_program **box = sl_lua_check_object (L, 1, SL_LUA_PROGRAM);
  sl_program *p = *box;
  *box = NULL;
  sl_program_free (p);
  return 0;
}

/* What is being recorded ends with the function that record calls; after an
** error in it the program, which the script does not get, is freed. The box is user
** value 1. */
static int recording_close (lua_State *L) {
  int *done = sl_lua_check_object (L, 1, RECORDING);
  sl_program **box;
  lua_getiuservalue (L, 1, 1);
  box = lua_touserdata (L, -1);
  if (*done || box == NULL || *box == NULL) return 0;
  *done = 1;
  sl_program_end (sl_lua_context (L), *box);
  sl_program_free (*box);
  *box = NULL;
  return 0;
}

/* record (f, ...) -> program, and what f (...) returned. Operations that f runs
** are recorded; an error in f ends the recording and is passed on. */
static int program_record (lua_State *L) {
  sl_program **box;
  sl_error e;
  int n = lua_gettop (L), *done;
  sl_lua_check_type (L, 1, LUA_TFUNCTION);
  luaL_checkstack (L, 8, "record");
  done = lua_newuserdatauv (L, sizeof *done, 1);
  *done = 0;
  luaL_setmetatable (L, RECORDING);
  box = lua_newuserdatauv (L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable (L, SL_LUA_PROGRAM);
  lua_pushvalue (L, -1);
  lua_setiuservalue (L, -3, 1);
  lua_rotate (L, 1, 2); /* recording, program, f, arguments */
  lua_toclose (L, 1);
  *box = sl_program_begin (sl_lua_context (L), &e);
  if (*box == NULL) return sl_lua_raise (L, &e);
  lua_call (L, n - 1, LUA_MULTRET);
  sl_program_end (sl_lua_context (L), *box);
  *done = 1;
  return lua_gettop (L) - 1;
}

/* Programs. */

/* program:want (tensor), :loss (tensor), :input (tensor) -> program */
static int mark (lua_State *L,
                 int (*set) (sl_program *p, sl_tensor *t, sl_error *e)) {
  sl_error e;
  sl_program *p = sl_lua_check_program (L, 1);
  if (set (p, sl_lua_check_tensor (L, 2), &e) < 0) return sl_lua_raise (L, &e);
  lua_settop (L, 1);
  return 1;
}

static int program_want (lua_State *L) {
  return mark (L, sl_program_want);
}
static int program_loss (lua_State *L) {
  return mark (L, sl_program_loss);
}
static int program_input (lua_State *L) {
  return mark (L, sl_program_input);
}

/* program:check { samples = 0, seed = 0 } -> the largest difference between
** backward and differences of forward, over max (1, largest gradient). samples:
** the number of elements of the wanted tensors that are checked; 0: all. */
static int program_check (lua_State *L) {
  static const char *const keys[] = { "samples", "seed", NULL };
  static const char what[] = "program:check";
  const sl_program *p = sl_lua_check_program (L, 1);
  lua_Integer samples, seed;
  double worst;
  sl_error e;
  lua_settop (L, 2);
  sl_lua_known (L, 2, what, keys);
  samples = sl_lua_integer (L, 2, what, "samples", 0);
  seed = sl_lua_integer (L, 2, what, "seed", 0);
  if (samples < 0)
    return sl_lua_fail (L, "%s.samples: must be 0 (all) or more, got %lld",
                        what, (long long)samples);
  if (sl_program_check (p, (size_t)samples, (uint64_t)seed, &worst, &e) < 0)
    return sl_lua_raise (L, &e);
  lua_pushnumber (L, worst);
  return 1;
}

/* program:text () -> one line an operation: number, name, shapes */
static int program_text (lua_State *L) {
  const sl_program *p = sl_lua_check_program (L, 1);
  luaL_Buffer b;
  char *text = sl_program_text (p), *to;
  size_t n;
  if (text == NULL) return luaL_error (L, "not enough memory");
  n = strlen (text);
  sl_free (text); /* only its length was wanted: Lua's memory comes first */
  to = luaL_buffinitsize (L, &b, n + 1);
  text = sl_program_text (p);
  if (text == NULL) return luaL_error (L, "not enough memory");
  memcpy (to, text, n);
  sl_free (text);
  luaL_pushresultsize (&b, n);
  return 1;
}

static int program_len (lua_State *L) {
  const sl_program *p = sl_lua_check_program (L, 1);
  lua_pushinteger (L, (lua_Integer)sl_program_nodes (p));
  return 1;
}

static int program_tostring (lua_State *L) {
  sl_program **box = sl_lua_check_object (L, 1, SL_LUA_PROGRAM);
  if (*box == NULL)
    lua_pushliteral (L, "program (closed)");
  else
    lua_pushfstring (L, "program: %d operations", (int)sl_program_nodes (*box));
  return 1;
}

/* Replicas. */

typedef struct replica_box {
  sl_replica *replica; /* NULL: closed; it keeps the program alive */
  const sl_program *program;
  int busy; /* a program that calls the script is running in it */
} replica_box;

static int replica_release (lua_State *L) {
  replica_box *box = sl_lua_check_object (L, 1, REPLICA);
  sl_replica *r = box->replica;
  sl_lua_argument (L, !box->busy, 1, "this replica is running");
  box->replica = NULL;
  sl_replica_free (r);
  return 0;
}

static replica_box *check_replica (lua_State *L) {
  replica_box *box = sl_lua_check_object (L, 1, REPLICA);
  sl_lua_argument (L, box->replica != NULL, 1, "this replica has been closed");
  sl_lua_argument (L, !box->busy, 1, "this replica is running");
  return box;
}

/* program:replica () -> buffers of its own to run the program in */
static int program_replica (lua_State *L) {
  const sl_program *p = sl_lua_check_program (L, 1);
  replica_box *box = lua_newuserdatauv (L, sizeof *box, 0);
  size_t kb;
  sl_error e;
  *box = (replica_box){ 0 };
  luaL_setmetatable (L, REPLICA);
  box->replica = sl_replica_new (p, &e);
  if (box->replica == NULL) return sl_lua_raise (L, &e);
  box->program = p;
  kb = sl_replica_bytes (box->replica) / 1024; /* unseen by the collector */
  if (kb > 0 && lua_gc (L, LUA_GCISRUNNING))
    lua_gc (L, LUA_GCSTEP, (int)(kb < 1 << 20 ? kb : 1 << 20));
  return 1;
}

/* An option 0 .. 2^32 - 1. */
static uint32_t word_option (lua_State *L, const char *what, const char *key) {
  lua_Integer n = sl_lua_integer (L, 2, what, key, 0);
  if (n >= 0 && n <= UINT32_MAX) return (uint32_t)n;
  return (uint32_t)sl_lua_fail (L, "%s.%s: must be 0 to 4294967295, got %lld",
                                what, key, (long long)n);
}

/* replica:forward { seed = 0, step = 0, first_sample = 0 } -> replica */
static int replica_forward (lua_State *L) {
  static const char *const keys[] = { "seed", "step", "first_sample", NULL };
  static const char what[] = "replica:forward";
  replica_box *box = check_replica (L);
  sl_draw draw;
  int status;
  lua_settop (L, 2);
  sl_lua_known (L, 2, what, keys);
  draw.seed = (uint64_t)sl_lua_integer (L, 2, what, "seed", 0);
  draw.step = word_option (L, what, "step");
  draw.first_sample = word_option (L, what, "first_sample");
  box->busy = 1;
  status = sl_replica_forward (box->replica, &draw, NULL);
  box->busy = 0;
  if (status < 0) return sl_lua_raise (L, sl_replica_error (box->replica));
  lua_settop (L, 1);
  return 1;
}

/* replica:backward ([seed 1]) -> replica; adds seed times the gradients of the
** loss */
static int replica_backward (lua_State *L) {
  const replica_box *box = check_replica (L);
  sl_replica_backward (box->replica, sl_lua_opt_number (L, 2, 1));
  lua_settop (L, 1);
  return 1;
}

/* replica:zero () -> replica, with gradients zero */
static int replica_zero (lua_State *L) {
  const replica_box *box = check_replica (L);
  sl_replica_zero (box->replica);
  lua_settop (L, 1);
  return 1;
}

/* The numbers at v as if they were a tensor: for copies, not to be kept. */
static sl_tensor borrow (sl_storage *s, const sl_view *v, sl_dtype dtype) {
  sl_tensor t = { .refs = 1, .storage = s, .ndim = v->ndim };
  *s = (sl_storage){ .refs = 1, .dtype = dtype, .data = v->data };
  memcpy (t.dim, v->dim, sizeof t.dim);
  memcpy (t.stride, v->stride, sizeof t.stride);
  return t;
}

static int push_copy (lua_State *L, const sl_view *v, sl_dtype dtype) {
  sl_storage storage;
  sl_tensor from = borrow (&storage, v, dtype);
  sl_error e;
  sl_tensor *t = sl_tensor_new (dtype, v->ndim, v->dim, &e);
  if (t != NULL && sl_tensor_copy (t, &from, &e) < 0) {
    sl_tensor_release (t);
    t = NULL;
  }
  return sl_lua_tensor_or_raise (L, t, &e);
}

/* replica:value (tensor) -> a copy of its numbers after the last forward */
static int replica_value (lua_State *L) {
  const replica_box *box = check_replica (L);
  const sl_tensor *t = sl_lua_check_tensor (L, 2);
  sl_view v = sl_replica_value (box->replica, t);
  if (v.data != NULL) return push_copy (L, &v, t->storage->dtype);
  return sl_lua_fail (L,
                      "value: the program neither made nor uses this tensor");
}

/* replica:gradient (tensor) -> a copy of its gradient */
static int replica_gradient (lua_State *L) {
  const replica_box *box = check_replica (L);
  const sl_tensor *t = sl_lua_check_tensor (L, 2);
  sl_view v = sl_replica_gradient (box->replica, t);
  if (v.data != NULL) return push_copy (L, &v, t->storage->dtype);
  return sl_lua_fail (
      L, sl_program_uses (box->program, t)
             ? "gradient: not computed for this tensor; call program:want with "
               "it before program:replica ()"
             : "gradient: the program neither made nor uses this tensor");
}

/* replica:set (tensor, values) -> replica; values for one of the program's
** inputs: a tensor, a nested list or a number, of the same shape */
static int replica_set (lua_State *L) {
  const replica_box *box = check_replica (L);
  const sl_tensor *t = sl_lua_check_tensor (L, 2), *from;
  sl_dtype dtype = t->storage->dtype;
  sl_view v = sl_replica_value (box->replica, t);
  sl_storage storage;
  sl_tensor to = borrow (&storage, &v, dtype);
  sl_error e;
  lua_settop (L, 3);
  if (v.data == NULL || v.data == sl_tensor_view (t).data ||
      !sl_program_is_input (box->program, t))
    return sl_lua_fail (L,
                        "set: this tensor is not an input of the program; call "
                        "program:input with it before program:replica ()");
  from = luaL_testudata (L, 3, SL_LUA_TENSOR) ? sl_lua_check_tensor (L, 3)
                                              : sl_lua_tensor_of (L, 3, dtype);
  if (sl_tensor_copy (&to, from, &e) < 0) return sl_lua_raise (L, &e);
  lua_settop (L, 1);
  return 1;
}

static int replica_tostring (lua_State *L) {
  const replica_box *box = sl_lua_check_object (L, 1, REPLICA);
  if (box->replica == NULL)
    lua_pushliteral (L, "replica (closed)");
  else
    lua_pushfstring (L, "replica of %d operations, %d kB",
                     (int)sl_program_nodes (box->program),
                     (int)(sl_replica_bytes (box->replica) / 1024));
  return 1;
}

void sl_lua_open_program (lua_State *L) {
  static const luaL_Reg program_meta[] = {
    { "__gc", program_release },
    { "__close", program_release },
    { "__len", program_len },
    { "__tostring", program_tostring },
    { NULL, NULL },
  };
  static const luaL_Reg program[] = {
    { "want", program_want },
    { "loss", program_loss },
    { "input", program_input },
    { "replica", program_replica },
    { "check", program_check },
    { "text", program_text },
    { NULL, NULL },
  };
  static const luaL_Reg replica_meta[] = {
    { "__gc", replica_release },
    { "__close", replica_release },
    { "__tostring", replica_tostring },
    { NULL, NULL },
  };
  static const luaL_Reg replica[] = {
    { "forward", replica_forward },
    { "backward", replica_backward },
    { "zero", replica_zero },
    { "value", replica_value },
    { "gradient", replica_gradient },
    { "set", replica_set },
    { NULL, NULL },
  };
  static const luaL_Reg recording_meta[] = {
    { "__close", recording_close },
    { "__gc", recording_close },
    { NULL, NULL },
  };
  sl_lua_class (L, SL_LUA_PROGRAM, program_meta, program);
  sl_lua_class (L, REPLICA, replica_meta, replica);
  sl_lua_class (L, RECORDING, recording_meta, &(luaL_Reg){ NULL, NULL });
  lua_pushcfunction (L, program_record);
  lua_setfield (L, -2, "record");
}
