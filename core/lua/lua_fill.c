/* lua_fill.c - the operation behind t:fill: a function of the script fills a
** tensor, at once and at every replay.
**
** The function runs in a Lua thread of its own, so that an error in it ends in
** lua_pcall and never jumps over the C code of a replay. The error stays on
** that thread's stack until sl_lua_raise raises it again where the replay was
** asked for. */
#include "base/denormals.h"
#include "base/interrupt.h"
#include "lua/lua_tensor.h"
#include "lua/session.h"
#include <string.h>

/* Instructions of a function between two looks at sl_interrupted. */
enum { POLL = 100000 };

/* A userdata; the registry holds it under 'key' while an operation needs it. */
typedef struct fill {
  sl_session *session;
  lua_State *L;      /* user value 1; its stack: the function, the buffer */
  sl_tensor *buffer; /* retained: the script may close its own reference */
  int key, busy;
} fill;

typedef struct fill_attr {
  fill *fill;
} fill_attr;

static fill *fill_of (const void *attr) {
  return ((const fill_attr *)attr)->fill;
}

static int shapes (sl_shape_query *q, sl_error *e) {
  const sl_tensor *b = fill_of (q->attr)->buffer;
  (void)e;
  q->n_out = 1;
  q->out[0].ndim = b->ndim;
  memcpy (q->out[0].dim, b->dim, sizeof b->dim);
  return 0;
}

static void poll (lua_State *L, lua_Debug *ar) {
  (void)ar;
  if (sl_interrupted) luaL_error (L, "interrupted");
}

/* Zeros, then the results of the function. While it runs nothing is
** recorded: a program repeats the call, not what happened in it. */
static void forward (const sl_run *r) {
  fill *f = fill_of (r->attr);
  sl_context *c = &f->session->context;
  sl_program *recording = c->recording;
  int status;
  if (f->busy) {
    sl_fail (r->error, "fill: its function is already running");
    return;
  }
  sl_tensor_fill (f->buffer, 0);
  lua_pushvalue (f->L, 1);
  lua_pushvalue (f->L, 2);
  lua_pushinteger (f->L, r->draw->step);
  lua_pushinteger (f->L, r->draw->first_sample);
  lua_sethook (f->L, poll, LUA_MASKCOUNT, POLL);
  c->recording = NULL;
  f->busy = 1;
  const sl_denormals before = sl_denormals_set (SL_DENORMALS_KEEP);
  status = lua_pcall (f->L, 3, 0, 0);
  sl_denormals_set (before);
  f->busy = 0;
  c->recording = recording;
  if (status != LUA_OK) {
    sl_fail (r->error, "fill: its function raised an error");
    f->session->failed = f->L;
    return;
  }
  memcpy (r->out[0].data, f->buffer->storage->data,
          f->buffer->storage->count *
              sl_dtype_size (f->buffer->storage->dtype));
}

static void release (const void *attr) {
  fill *f = fill_of (attr);
  sl_tensor_release (f->buffer);
  f->buffer = NULL;
  luaL_unref (f->L, LUA_REGISTRYINDEX, f->key); /* f is garbage from here on */
}

/* One object for each precision: that is how sl_apply tells them apart. */
#define FILL                                                               \
  {                                                                        \
    .name = "fill", .flags = SL_OP_NO_GRADIENT | SL_OP_SERIAL,             \
    .attr_size = sizeof (fill_attr), .shapes = shapes, .forward = forward, \
    .release = release                                                     \
  }
static const sl_op ops[] = { FILL, FILL };
static const sl_op *const f32[] = { &ops[SL_F32], NULL };
static const sl_op *const f64[] = { &ops[SL_F64], NULL };
static const sl_op_list lists[] = { { f32 }, { f64 } };

static const sl_op_list *pick (sl_dtype dtype) {
  return &lists[dtype];
}

int sl_lua_fill (lua_State *L, int function, sl_dtype dtype, int ndim,
                 const ptrdiff_t *dim) {
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_error e = { "" };
  fill_attr attr;
  sl_context *c = sl_lua_context (L);
  fill *f = lua_newuserdatauv (L, sizeof *f, 1);
  *f = (fill){ .session = sl_lua_session (L) };
  f->L = lua_newthread (L);
  lua_setiuservalue (L, -2, 1);
  lua_pushvalue (L, function);
  sl_lua_tensor_or_raise (L, sl_tensor_new (dtype, ndim, dim, &e), &e);
  f->buffer = sl_lua_check_tensor (L, -1);
  lua_xmove (L, f->L, 2);
  f->key = luaL_ref (L, LUA_REGISTRYINDEX);
  sl_tensor_retain (f->buffer);
  attr.fill = f;
  if (sl_apply (c, &ops[dtype], &attr, 0, NULL, out, &e) < 0) {
    release (&attr);
    return sl_lua_raise (L, &e);
  }
  if (c->recording == NULL) release (&attr); /* else the program does it */
  sl_lua_push_tensor (L, out[0]);
  return 1;
}

void sl_lua_open_fill (lua_State *L) {
  if (sl_op_add_list (pick) < 0) luaL_error (L, "fill: too many op lists");
}
