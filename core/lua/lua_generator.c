/* lua_generator.c - core.generator: where a script's random numbers come from.
**
** A generator is a seed, and a count of the draws made: each draw has the next
** stream number. So the same calls in the same order give the same numbers, and
** a recorded sampler keeps its streams when the trainer replays it under the
** trainer's own seed, step and samples. */
#include "lua/lua_tensor.h"
#include "ops/ops.h"
#include <math.h>

#define GENERATOR "sinklab.generator"

typedef struct generator {
  uint64_t seed;
  uint32_t stream; /* of the next draw */
  sl_dtype dtype;
} generator;

static const char *const dtype_key[] = { "dtype", NULL };

/* { dtype = } at 'arg', and nothing behind it. */
static sl_dtype option_dtype (lua_State *L, int arg, const char *what,
                              sl_dtype def) {
  sl_error e;
  const char *name;
  if (lua_gettop (L) > arg)
    sl_lua_fail (L, "%s: argument %d is one too many", what, arg + 1);
  sl_lua_known (L, arg, what, dtype_key);
  name = sl_lua_string (L, arg, what, "dtype", NULL);
  if (name && sl_dtype_parse (name, &def, &e)) {
    sl_fail_within (&e, "%s.dtype", what);
    sl_lua_raise (L, &e);
  }
  return def;
}

static double number (lua_State *L, int arg, const char *what,
                      const char *name) {
  if (lua_type (L, arg) == LUA_TNUMBER) return lua_tonumber (L, arg);
  return sl_lua_fail (L, "%s: %s must be a number, got %s", what, name,
                      luaL_typename (L, arg));
}

/* generator (seed, [{ dtype = "f32" }]); seed: a whole number >= 0 */
static int generator_new (lua_State *L) {
  int whole;
  const lua_Integer seed = lua_tointegerx (L, 1, &whole);
  if (!whole || seed < 0 || lua_type (L, 1) != LUA_TNUMBER)
    return sl_lua_fail (
        L, "generator: the seed must be a whole number from 0, got %s",
        luaL_tolstring (L, 1, NULL));
  const sl_dtype dtype = option_dtype (L, 2, "generator", SL_F32);
  generator *g = lua_newuserdatauv (L, sizeof *g, 0);
  *g = (generator){ (uint64_t)seed, 0, dtype };
  luaL_setmetatable (L, GENERATOR);
  return 1;
}

/* Run a random op under g's seed, with g's next stream. */
static int draw (lua_State *L, generator *g, const char *name, sl_dtype dtype,
                 sl_random_attr *attr, int n_in, sl_tensor *const *in) {
  sl_context *c = sl_lua_context (L);
  const sl_draw before = c->draw;
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_error e = { "" };
  const sl_op *op = sl_op_find (dtype, name, &e);
  int status = -1;
  if (g->stream == UINT32_MAX) {
    sl_fail (&e, "%s: this generator has made its 2^32 - 1 draws", name);
  } else if (op) {
    attr->stream = g->stream;
    c->draw = (sl_draw){ .seed = g->seed };
    status = sl_apply (c, op, attr, n_in, in, out, &e);
    c->draw = before;
  }
  if (status) return sl_lua_raise (L, &e);
  g->stream++;
  sl_lua_push_tensor (L, out[0]);
  return 1;
}

/* Distributions of one or two numbers, with the words for these in messages. */
static const struct {
  const char *name, *a, *b;
} distributions[] = {
  { "uniform", "the lower bound", "the upper bound" },
  { "normal", "the mean", "the standard deviation" },
  { "randint", "the lowest value", "the highest value" },
  { "bernoulli", "the probability", NULL },
};
enum { N_DISTRIBUTIONS = sizeof distributions / sizeof *distributions };

/* g:NAME (a, [b], shape, [{ dtype = }]); upvalue 1 is the distribution. */
static int generator_draw (lua_State *L) {
  const int i = (int)lua_tointeger (L, lua_upvalueindex (1));
  const char *name = distributions[i].name, *b = distributions[i].b;
  generator *g = sl_lua_check_object (L, 1, GENERATOR);
  sl_random_attr attr = { .a = number (L, 2, name, distributions[i].a) };
  int at = 3;
  if (b) attr.b = number (L, at++, name, b);
  attr.ndim = sl_lua_check_shape (L, at, 0, attr.dim, name);
  const sl_dtype dtype = option_dtype (L, at + 1, name, g->dtype);
  return draw (L, g, name, dtype, &attr, 0, NULL);
}

/* Probabilities are finite, none below 0, not all 0. A sampler that is replayed
** with others draws NaN. */
static void check_probabilities (lua_State *L, const sl_tensor *p) {
  const sl_view v = sl_tensor_view (p);
  double most = 0;
  if (v.ndim != 1) return; /* the operation refuses it */
  for (size_t i = 0; i < sl_view_count (&v); i++) {
    const double x = sl_view_get (&v, p->storage->dtype, i);
    if (!(x >= 0) || isinf (x))
      sl_lua_fail (L,
                   "categorical: probability %d is %f; it must be a finite "
                   "number, at least 0",
                   (int)i + 1, x);
    if (x > most) most = x;
  }
  if (most == 0 && v.dim[0] > 0)
    sl_lua_fail (L, "categorical: all probabilities are 0");
}

/* g:categorical (probabilities, shape, [{ dtype = }]): a tensor (k), whose
** precision the result has, or a list of numbers */
static int generator_categorical (lua_State *L) {
  generator *g = sl_lua_check_object (L, 1, GENERATOR);
  sl_random_attr attr = { 0 };
  sl_tensor *p = NULL;
  sl_dtype dtype = g->dtype;
  if (!lua_istable (L, 2)) {
    p = sl_lua_check_tensor (L, 2);
    dtype = p->storage->dtype;
  }
  attr.ndim = sl_lua_check_shape (L, 3, 0, attr.dim, "categorical");
  dtype = option_dtype (L, 4, "categorical", dtype);
  if (!p) {
    p = sl_lua_tensor_of (L, 2, dtype);
    lua_replace (L, 2);
  }
  check_probabilities (L, p);
  return draw (L, g, "categorical", dtype, &attr, 1, &p);
}

/* g:full (shape, x, [{ dtype = }]) */
static int generator_full (lua_State *L) {
  const generator *g = sl_lua_check_object (L, 1, GENERATOR);
  ptrdiff_t dim[SL_MAX_DIMS];
  const int ndim = sl_lua_check_shape (L, 2, 0, dim, "full");
  const double x = number (L, 3, "full", "the value");
  return sl_lua_new_full (L, option_dtype (L, 4, "full", g->dtype), ndim, dim,
                          x);
}

/* g:fill (shape, f, [{ dtype = }]): f (buffer, step, first_sample) fills the
** buffer, which is zero before. In a program f is called at each replay, on one
** thread: slower than operations, for what they cannot say. step counts the
** trainer's steps from 1 and is 0 elsewhere; first_sample says which sequence
** of the batch, from 0, is the buffer's first. */
static int generator_fill (lua_State *L) {
  const generator *g = sl_lua_check_object (L, 1, GENERATOR);
  ptrdiff_t dim[SL_MAX_DIMS];
  const int ndim = sl_lua_check_shape (L, 2, 0, dim, "fill");
  const sl_dtype dtype = option_dtype (L, 4, "fill", g->dtype);
  if (!lua_isfunction (L, 3))
    return sl_lua_fail (
        L, "fill: expected a function (buffer, step, first_sample), got %s",
        luaL_typename (L, 3));
  return sl_lua_fill (L, 3, dtype, ndim, dim);
}

/* g:arange (n, [{ dtype = }]) -> 0, 1, ... n - 1 */
static int generator_arange (lua_State *L) {
  const generator *g = sl_lua_check_object (L, 1, GENERATOR);
  ptrdiff_t dim[SL_MAX_DIMS];
  number (L, 2, "arange", "the length");
  sl_lua_check_shape (L, 2, 0, dim, "arange");
  return sl_lua_new_arange (L, option_dtype (L, 3, "arange", g->dtype), dim[0]);
}

/* g:one_hot (ids, classes): in the precision of the ids */
static int generator_one_hot (lua_State *L) {
  sl_lua_check_object (L, 1, GENERATOR);
  lua_pushvalue (L, lua_upvalueindex (1)); /* the operation of that name */
  lua_replace (L, 1);
  lua_call (L, lua_gettop (L) - 1, 1);
  return 1;
}

static int generator_tostring (lua_State *L) {
  const generator *g = sl_lua_check_object (L, 1, GENERATOR);
  lua_pushfstring (L, "generator: seed %I, %s, %I draws made",
                   (LUAI_UACINT)g->seed, sl_dtype_name (g->dtype),
                   (LUAI_UACINT)g->stream);
  return 1;
}

void sl_lua_open_generator (lua_State *L) {
  static const luaL_Reg methods[] = {
    { "categorical", generator_categorical },
    { "full", generator_full },
    { "fill", generator_fill },
    { "arange", generator_arange },
    { NULL, NULL },
  };
  lua_pushcfunction (L, generator_new);
  lua_setfield (L, -2, "generator");
  luaL_newmetatable (L, GENERATOR);
  lua_pushcfunction (L, generator_tostring);
  lua_setfield (L, -2, "__tostring");
  luaL_newlib (L, methods);
  for (int i = 0; i < N_DISTRIBUTIONS; i++) {
    lua_pushinteger (L, i);
    lua_pushcclosure (L, generator_draw, 1);
    lua_setfield (L, -2, distributions[i].name);
  }
  lua_getfield (L, -3, "one_hot");
  lua_pushcclosure (L, generator_one_hot, 1);
  lua_setfield (L, -2, "one_hot");
  sl_lua_name_methods (L, GENERATOR);
  lua_setfield (L, -2, "__index");
  lua_pop (L, 1);
}
