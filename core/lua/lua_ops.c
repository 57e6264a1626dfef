/* lua_ops.c - every operation of ops/ops.h as a function, method or operator.
**
** One line of the table below a function. Tensor arguments come first; a number
** in their place becomes a tensor of shape () in the precision of the first
** tensor. Axes count from 1, or backwards from -1. An options table comes
** last. */
#include "lua/lua_tensor.h"
#include "ops/ops.h"
#include <string.h>

typedef union attributes {
  sl_axis_attr axis;
  sl_reduce_attr reduce;
  sl_one_hot_attr one_hot;
  sl_gelu_attr gelu;
  sl_norm_attr norm;
  sl_cross_entropy_attr cross_entropy;
} attributes;

/* How the arguments behind the tensors read. */
typedef struct binding binding;
typedef struct arguments {
  const binding *f;
  int n;     /* inputs */
  int first; /* stack index of inputs[0]; they stay there */
  int rest;  /* stack index of what follows the inputs */
  sl_tensor *in[SL_MAX_IN];
  attributes attr;
} arguments;

struct binding {
  const char *name;
  int min, max; /* inputs */
  void (*read) (lua_State *L, arguments *a);
  int function_only;  /* not a method of tensors */
  double def;         /* default of the one number in the options */
  const char *option; /* its name */
};

static int is_operand (lua_State *L, int arg) {
  return lua_type (L, arg) == LUA_TNUMBER ||
         luaL_testudata (L, arg, SL_LUA_TENSOR) != NULL;
}

/* in[0..n-1] from stack slots first ..; numbers are replaced by tensors
** there. */
static void read_inputs (lua_State *L, arguments *a) {
  const char *name = a->f->name;
  sl_dtype dtype = SL_F32;
  int tensors = 0;
  for (int i = 0; i < a->n; i++) {
    const int at = a->first + i;
    if (!is_operand (L, at))
      sl_lua_fail (L, "%s: input %d must be a tensor or a number, got %s", name,
                   i + 1, luaL_typename (L, at));
    if (lua_type (L, at) == LUA_TNUMBER) continue;
    a->in[i] = sl_lua_check_tensor (L, at);
    if (tensors++ == 0) dtype = a->in[i]->storage->dtype;
  }
  if (tensors == 0)
    sl_lua_fail (L, "%s: at least one input must be a tensor", name);
  for (int i = 0; i < a->n; i++) {
    const int at = a->first + i;
    sl_error e;
    if (lua_type (L, at) != LUA_TNUMBER) continue;
    sl_tensor *t = sl_tensor_scalar (dtype, lua_tonumber (L, at), &e);
    sl_lua_tensor_or_raise (L, t, &e);
    lua_replace (L, at);
    a->in[i] = t;
  }
}

/* The leading arguments: operands, and nil between or behind them where inputs
** are optional. What follows starts at a->rest. */
static void take_inputs (lua_State *L, arguments *a, int first) {
  const binding *f = a->f;
  int at = first, end = first;
  while (at - first < f->max && (is_operand (L, at) || lua_isnil (L, at)))
    if (!lua_isnil (L, at++)) end = at;
  a->first = first;
  a->n = end - first;
  a->rest = at;
  if (a->n < f->min) {
    if (at <= lua_gettop (L) && a->n == at - first)
      sl_lua_fail (L, "%s: input %d must be a tensor or a number, got %s",
                   f->name, a->n + 1, luaL_typename (L, at));
    sl_lua_fail (L, "%s: got %d inputs, needs %s%d", f->name, a->n,
                 f->min < f->max ? "at least " : "", f->min);
  }
  read_inputs (L, a);
}

static void no_more (lua_State *L, const arguments *a, int from) {
  if (lua_gettop (L) >= from && !lua_isnil (L, from))
    sl_lua_fail (L, "%s: argument %d is one too many", a->f->name, from);
}

/* (inputs ...) */
static void read_plain (lua_State *L, arguments *a) {
  take_inputs (L, a, 1);
  no_more (L, a, a->rest);
}

/* (inputs ..., [axis], default the last) */
static void read_axis (lua_State *L, arguments *a) {
  take_inputs (L, a, 1);
  a->attr.axis.axis = -1;
  if (!lua_isnoneornil (L, a->rest))
    a->attr.axis.axis = sl_lua_check_axis (L, a->rest, a->in[0], a->f->name);
  else if (a->in[0]->ndim == 0)
    sl_lua_fail (L, "%s: a tensor of shape () has no axis", a->f->name);
  no_more (L, a, a->rest + 1);
}

/* (x, axis, index, ...): the axis lies behind the first input. */
static void read_along (lua_State *L, arguments *a) {
  sl_tensor *x;
  if (!luaL_testudata (L, 1, SL_LUA_TENSOR))
    sl_lua_fail (L, "%s: input 1 must be a tensor, got %s", a->f->name,
                 luaL_typename (L, 1));
  x = sl_lua_check_tensor (L, 1);
  luaL_checkinteger (L, 2);
  const int axis = sl_lua_check_axis (L, 2, x, a->f->name);
  lua_remove (L, 2);
  read_plain (L, a);
  a->attr.axis.axis = axis;
}

/* ({ inputs }, axis) */
static void read_list (lua_State *L, arguments *a) {
  lua_Unsigned n;
  if (!lua_istable (L, 1))
    sl_lua_fail (L, "%s: expected a list of tensors, got %s", a->f->name,
                 luaL_typename (L, 1));
  n = lua_rawlen (L, 1);
  if (n < 1 || n > SL_MAX_IN)
    sl_lua_fail (L, "%s: %llu tensors, allowed are 1 to %d", a->f->name,
                 (unsigned long long)n, SL_MAX_IN);
  no_more (L, a, 3);
  lua_settop (L, 2);
  for (lua_Unsigned i = 1; i <= n; i++) lua_rawgeti (L, 1, (lua_Integer)i);
  a->first = 3;
  a->n = (int)n;
  read_inputs (L, a);
  a->attr.axis.axis = sl_lua_check_axis (L, 2, a->in[0], a->f->name);
}

/* (x, [axis or { axes }], { keep =, correction = }) */
static void read_reduce (lua_State *L, arguments *a) {
  static const char *const keys[] = { "keep", NULL };
  static const char *const var_keys[] = { "keep", "correction", NULL };
  const int is_var = strcmp (a->f->name, "var") == 0;
  const char *name = a->f->name;
  int options, axes;
  take_inputs (L, a, 1);
  axes = a->rest;
  if (a->n == 1 && lua_isnil (L, 2)) axes = 2; /* nil: all axes */
  options = axes + 1;
  if (lua_type (L, axes) == LUA_TNUMBER) {
    a->attr.reduce.axes = 1u << sl_lua_check_axis (L, axes, a->in[0], name);
  } else if (lua_istable (L, axes) && lua_rawlen (L, axes) > 0) {
    const lua_Unsigned n = lua_rawlen (L, axes);
    for (lua_Unsigned i = 1; i <= n; i++) {
      lua_rawgeti (L, axes, (lua_Integer)i);
      const unsigned bit =
          1u << sl_lua_check_axis (L, lua_gettop (L), a->in[0], name);
      if (a->attr.reduce.axes & bit)
        sl_lua_fail (L, "%s: axis %lld is there twice", name,
                     (long long)lua_tointeger (L, -1));
      a->attr.reduce.axes |= bit;
      lua_pop (L, 1);
    }
  } else if (lua_istable (L, axes)) {
    options = axes;
  } else if (!lua_isnoneornil (L, axes))
    sl_lua_fail (L, "%s: expected an axis or a list of axes, got %s", name,
                 luaL_typename (L, axes));
  sl_lua_known (L, options, name, is_var ? var_keys : keys);
  a->attr.reduce.keep = sl_lua_boolean (L, options, name, "keep", 0);
  if (is_var) {
    const lua_Integer c = sl_lua_integer (L, options, name, "correction", 0);
    if (c < 0 || c > 1 << 30)
      sl_lua_fail (L, "var.correction: %lld is outside 0 to 2^30",
                   (long long)c);
    a->attr.reduce.correction = (int)c;
  }
  no_more (L, a, options + 1);
}

/* (ids, classes) */
static void read_one_hot (lua_State *L, arguments *a) {
  int whole;
  take_inputs (L, a, 1);
  a->attr.one_hot.classes = (ptrdiff_t)lua_tointegerx (L, a->rest, &whole);
  if (!whole || lua_type (L, a->rest) != LUA_TNUMBER)
    sl_lua_fail (
        L, "one_hot: the number of classes must be a whole number, got %s",
        luaL_tolstring (L, a->rest, NULL));
  no_more (L, a, a->rest + 1);
}

/* (inputs ..., { option = number }) */
static double read_option (lua_State *L, arguments *a) {
  const char *const keys[] = { a->f->option, NULL };
  take_inputs (L, a, 1);
  sl_lua_known (L, a->rest, a->f->name, keys);
  no_more (L, a, a->rest + 1);
  return sl_lua_number (L, a->rest, a->f->name, a->f->option, a->f->def);
}

static void read_norm (lua_State *L, arguments *a) {
  a->attr.norm.eps = read_option (L, a);
}

static void read_cross_entropy (lua_State *L, arguments *a) {
  a->attr.cross_entropy.ignore = read_option (L, a);
}

static void read_gelu (lua_State *L, arguments *a) {
  static const char *const keys[] = { "approximate", NULL };
  take_inputs (L, a, 1);
  sl_lua_known (L, a->rest, "gelu", keys);
  a->attr.gelu.approximate =
      sl_lua_boolean (L, a->rest, "gelu", "approximate", 0);
  no_more (L, a, a->rest + 1);
}

/* name, fewest and most inputs, arguments */
static const binding bindings[] = {
  { "add", 2, 2, read_plain, 0, 0, NULL },
  { "sub", 2, 2, read_plain, 0, 0, NULL },
  { "mul", 2, 2, read_plain, 0, 0, NULL },
  { "div", 2, 2, read_plain, 0, 0, NULL },
  { "pow", 2, 2, read_plain, 0, 0, NULL },
  { "maximum", 2, 2, read_plain, 0, 0, NULL },
  { "minimum", 2, 2, read_plain, 0, 0, NULL },
  { "eq", 2, 2, read_plain, 0, 0, NULL },
  { "ne", 2, 2, read_plain, 0, 0, NULL },
  { "lt", 2, 2, read_plain, 0, 0, NULL },
  { "le", 2, 2, read_plain, 0, 0, NULL },
  { "gt", 2, 2, read_plain, 0, 0, NULL },
  { "ge", 2, 2, read_plain, 0, 0, NULL },
  { "where", 3, 3, read_plain, 0, 0, NULL },
  { "neg", 1, 1, read_plain, 0, 0, NULL },
  { "exp", 1, 1, read_plain, 0, 0, NULL },
  { "log", 1, 1, read_plain, 0, 0, NULL },
  { "tanh", 1, 1, read_plain, 0, 0, NULL },
  { "sigmoid", 1, 1, read_plain, 0, 0, NULL },
  { "relu", 1, 1, read_plain, 0, 0, NULL },
  { "silu", 1, 1, read_plain, 0, 0, NULL },
  { "gelu", 1, 1, read_gelu, 0, 0, NULL },
  { "abs", 1, 1, read_plain, 0, 0, NULL },
  { "sqrt", 1, 1, read_plain, 0, 0, NULL },
  { "square", 1, 1, read_plain, 0, 0, NULL },
  { "sin", 1, 1, read_plain, 0, 0, NULL },
  { "cos", 1, 1, read_plain, 0, 0, NULL },
  { "sum", 1, 1, read_reduce, 0, 0, NULL },
  { "mean", 1, 1, read_reduce, 0, 0, NULL },
  { "max", 1, 1, read_reduce, 0, 0, NULL },
  { "var", 1, 1, read_reduce, 0, 0, NULL },
  { "argmax", 1, 1, read_axis, 0, 0, NULL },
  { "cumsum", 1, 1, read_axis, 0, 0, NULL },
  { "softmax", 1, 1, read_axis, 0, 0, NULL },
  { "log_softmax", 1, 1, read_axis, 0, 0, NULL },
  { "concat", 1, SL_MAX_IN, read_list, 1, 0, NULL },
  { "one_hot", 1, 1, read_one_hot, 0, 0, NULL },
  { "embedding", 2, 2, read_plain, 1, 0, NULL },
  { "gather", 2, 2, read_along, 0, 0, NULL },
  { "scatter_add", 3, 3, read_along, 0, 0, NULL },
  { "matmul", 2, 2, read_plain, 0, 0, NULL },
  { "linear", 2, 3, read_plain, 0, 0, NULL },
  { "layer_norm", 1, 3, read_norm, 0, 1e-5, "eps" },
  { "rms_norm", 1, 2, read_norm, 0, 1e-6, "eps" },
  { "cross_entropy", 2, 2, read_cross_entropy, 1, -100, "ignore" },
  { "mse", 2, 2, read_plain, 1, 0, NULL },
  { "max_abs_error", 2, 2, read_plain, 1, 0, NULL },
};
enum { N_BINDINGS = sizeof bindings / sizeof *bindings };

static int apply (lua_State *L, const binding *f) {
  arguments a = { .f = f };
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_error e = { "" };
  const sl_op *op;
  int n = 0;
  luaL_checkstack (L, SL_MAX_IN + SL_MAX_OUT + 8, f->name);
  f->read (L, &a);
  op = sl_op_find (a.in[0]->storage->dtype, f->name, &e);
  if (!op || sl_apply (sl_lua_context (L), op, &a.attr, a.n, a.in, out, &e))
    return sl_lua_raise (L, &e);
  for (; n < SL_MAX_OUT && out[n]; n++) sl_lua_push_tensor (L, out[n]);
  return n;
}

static int call (lua_State *L) {
  return apply (L, lua_touserdata (L, lua_upvalueindex (1)));
}

/* Lua gives a unary metamethod its operand twice. */
static int negate (lua_State *L) {
  lua_settop (L, 1);
  return call (L);
}

static void push_binding (lua_State *L, const char *name, lua_CFunction f) {
  for (int i = 0; i < N_BINDINGS; i++) {
    if (strcmp (bindings[i].name, name) != 0) continue;
    lua_pushlightuserdata (L, (void *)&bindings[i]);
    lua_pushcclosure (L, f, 1);
    return;
  }
}

void sl_lua_open_ops (lua_State *L) {
  static const struct {
    const char *event, *op;
    lua_CFunction f;
  } operators[] = { { "__add", "add", call }, { "__sub", "sub", call },
                    { "__mul", "mul", call }, { "__div", "div", call },
                    { "__pow", "pow", call }, { "__unm", "neg", negate } };
  sl_lua_tensor_metatable (L);
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    push_binding (L, operators[i].op, operators[i].f);
    lua_setfield (L, -2, operators[i].event);
  }
  lua_getfield (L, -1, "methods");
  for (int i = 0; i < N_BINDINGS; i++) {
    push_binding (L, bindings[i].name, call);
    if (!bindings[i].function_only) {
      lua_pushvalue (L, -1);
      lua_setfield (L, -3, bindings[i].name);
    }
    lua_setfield (L, -4, bindings[i].name);
  }
  lua_pop (L, 2);
}
