/* lua_ops.c - every operation as a function, method or operator.
**
** The signature of an operation (sl_arguments and the options of its sl_op)
** says how its arguments are read. A number in the place of a tensor becomes a
** tensor of shape () in the precision of the first tensor. Axes count from 1,
** or backwards from -1. */
#include "lua/lua_tensor.h"
#include "ops/op.h"
#include <string.h>

enum { MAX_OPTIONS = 8, ATTR_BYTES = 256 };

typedef struct arguments {
  const sl_op *op;
  int n;     /* inputs */
  int first; /* stack index of inputs[0]; they stay there */
  int rest;  /* stack index of the first argument after the inputs */
  sl_tensor *in[SL_MAX_IN];
  union {
    int axis;       /* SL_ARGS_AXIS, ALONG, LIST */
    unsigned axes;  /* SL_ARGS_AXES */
    ptrdiff_t size; /* SL_ARGS_SIZE */
    char bytes[ATTR_BYTES];
  } attr;
} arguments;

static int is_operand (lua_State *L, int arg) {
  return lua_type (L, arg) == LUA_TNUMBER ||
         luaL_testudata (L, arg, SL_LUA_TENSOR) != NULL;
}

/* in[0..n-1] from stack slots first ..; numbers are replaced by tensors
** there. */
static void read_inputs (lua_State *L, arguments *a) {
  const char *name = a->op->name;
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
  const sl_op *op = a->op;
  int at = first, end = first;
  while (at - first < op->max_in && (is_operand (L, at) || lua_isnil (L, at)))
    if (!lua_isnil (L, at++)) end = at;
  a->first = first;
  a->n = end - first;
  a->rest = at;
  if (a->n < op->min_in) {
    if (at <= lua_gettop (L) && a->n == at - first)
      sl_lua_fail (L, "%s: input %d must be a tensor or a number, got %s",
                   op->name, a->n + 1, luaL_typename (L, at));
    sl_lua_fail (L, "%s: got %d inputs, needs %s%d", op->name, a->n,
                 op->min_in < op->max_in ? "at least " : "", op->min_in);
  }
  read_inputs (L, a);
}

static void no_more (lua_State *L, const arguments *a, int from) {
  if (lua_gettop (L) >= from && !lua_isnil (L, from))
    sl_lua_fail (L, "%s: argument %d is one too many", a->op->name, from);
}

/* The options table at 'index' into the attributes, and nothing behind it. */
static void read_options (lua_State *L, arguments *a, int index) {
  const char *name = a->op->name, *keys[MAX_OPTIONS + 1] = { NULL };
  const sl_option *o = a->op->options;
  if (o == NULL) {
    no_more (L, a, index);
    return;
  }
  for (int i = 0; i < MAX_OPTIONS && o[i].name; i++) keys[i] = o[i].name;
  sl_lua_known (L, index, name, keys);
  for (; o->name; o++) {
    char *to = a->attr.bytes + o->offset;
    if (o->type == SL_REAL) {
      *(double *)(void *)to = sl_lua_number (L, index, name, o->name, o->def);
    } else if (o->type == SL_BOOL) {
      *(int *)(void *)to =
          sl_lua_boolean (L, index, name, o->name, o->def != 0);
    } else {
      const lua_Integer i =
          sl_lua_integer (L, index, name, o->name, (lua_Integer)o->def);
      if ((double)i < o->min || (double)i > o->max)
        sl_lua_fail (L, "%s.%s: %lld is outside %.0f to %.0f", name, o->name,
                     (long long)i, o->min, o->max);
      *(int *)(void *)to = (int)i;
    }
  }
  no_more (L, a, index + 1);
}

static void read_inputs_only (lua_State *L, arguments *a) {
  take_inputs (L, a, 1);
  read_options (L, a, a->rest);
}

static void read_axis (lua_State *L, arguments *a) {
  take_inputs (L, a, 1);
  a->attr.axis = -1;
  if (!lua_isnoneornil (L, a->rest))
    a->attr.axis = sl_lua_check_axis (L, a->rest, a->in[0], a->op->name);
  else if (a->in[0]->ndim == 0)
    sl_lua_fail (L, "%s: a tensor of shape () has no axis", a->op->name);
  read_options (L, a, a->rest + 1);
}

static void read_along (lua_State *L, arguments *a) {
  sl_tensor *x;
  if (!luaL_testudata (L, 1, SL_LUA_TENSOR))
    sl_lua_fail (L, "%s: input 1 must be a tensor, got %s", a->op->name,
                 luaL_typename (L, 1));
  x = sl_lua_check_tensor (L, 1);
  sl_lua_check_integer (L, 2);
  a->attr.axis = sl_lua_check_axis (L, 2, x, a->op->name);
  lua_remove (L, 2);
  read_inputs_only (L, a);
}

static void read_list (lua_State *L, arguments *a) {
  lua_Unsigned n;
  if (!lua_istable (L, 1))
    sl_lua_fail (L, "%s: expected a list of tensors, got %s", a->op->name,
                 luaL_typename (L, 1));
  n = lua_rawlen (L, 1);
  if (n < 1 || n > SL_MAX_IN)
    sl_lua_fail (L, "%s: %llu tensors, allowed are 1 to %d", a->op->name,
                 (unsigned long long)n, SL_MAX_IN);
  read_options (L, a, 3);
  lua_settop (L, 2);
  for (lua_Unsigned i = 1; i <= n; i++) lua_rawgeti (L, 1, (lua_Integer)i);
  a->first = 3;
  a->n = (int)n;
  read_inputs (L, a);
  a->attr.axis = sl_lua_check_axis (L, 2, a->in[0], a->op->name);
}

static void read_axes (lua_State *L, arguments *a) {
  const char *name = a->op->name;
  int at;
  take_inputs (L, a, 1);
  at = a->n == 1 && lua_isnil (L, 2) ? 2 : a->rest; /* nil: all axes */
  if (lua_type (L, at) == LUA_TNUMBER) {
    a->attr.axes = 1u << sl_lua_check_axis (L, at, a->in[0], name);
  } else if (lua_istable (L, at) && lua_rawlen (L, at) > 0) {
    const lua_Unsigned n = lua_rawlen (L, at);
    for (lua_Unsigned i = 1; i <= n; i++) {
      lua_rawgeti (L, at, (lua_Integer)i);
      const unsigned bit =
          1u << sl_lua_check_axis (L, lua_gettop (L), a->in[0], name);
      if (a->attr.axes & bit)
        sl_lua_fail (L, "%s: axis %lld is there twice", name,
                     (long long)lua_tointeger (L, -1));
      a->attr.axes |= bit;
      lua_pop (L, 1);
    }
  } else if (lua_istable (L, at)) {
    at--; /* the options themselves */
  } else if (!lua_isnoneornil (L, at))
    sl_lua_fail (L, "%s: expected an axis or a list of axes, got %s", name,
                 luaL_typename (L, at));
  read_options (L, a, at + 1);
}

static void read_size (lua_State *L, arguments *a) {
  int whole;
  take_inputs (L, a, 1);
  a->attr.size = (ptrdiff_t)lua_tointegerx (L, a->rest, &whole);
  if (!whole || lua_type (L, a->rest) != LUA_TNUMBER)
    sl_lua_fail (L, "%s: argument %d must be a whole number, got %s",
                 a->op->name, a->rest, luaL_tolstring (L, a->rest, NULL));
  read_options (L, a, a->rest + 1);
}

/* Upvalue 1 is the number of the op. */
static int call (lua_State *L) {
  static void (*const read[]) (lua_State * L, arguments * a) = {
    [SL_ARGS_INPUTS] = read_inputs_only, [SL_ARGS_AXIS] = read_axis,
    [SL_ARGS_AXES] = read_axes,          [SL_ARGS_ALONG] = read_along,
    [SL_ARGS_LIST] = read_list,          [SL_ARGS_SIZE] = read_size
  };
  const int number = (int)lua_tointeger (L, lua_upvalueindex (1));
  arguments a = { .op = sl_op_at (SL_F64, number) };
  sl_tensor *out[SL_MAX_OUT] = { NULL };
  sl_error e = { "" };
  int n = 0;
  luaL_checkstack (L, SL_MAX_IN + SL_MAX_OUT + 8, a.op->name);
  read[a.op->arguments](L, &a);
  if (sl_apply (sl_lua_context (L), sl_op_at (a.in[0]->storage->dtype, number),
                &a.attr, a.n, a.in, out, &e) < 0)
    return sl_lua_raise (L, &e);
  for (; n < SL_MAX_OUT && out[n]; n++) sl_lua_push_tensor (L, out[n]);
  return n;
}

/* Lua gives a unary metamethod its operand twice. */
static int negate (lua_State *L) {
  lua_settop (L, 1);
  return call (L);
}

static const struct {
  const char *event, *op;
} operators[] = { { "__add", "add" }, { "__sub", "sub" }, { "__mul", "mul" },
                  { "__div", "div" }, { "__pow", "pow" }, { "__unm", "neg" } };

/* The functions into the table on top of the stack. */
void sl_lua_open_ops (lua_State *L) {
  const sl_op *op;
  sl_lua_tensor_metatable (L);
  lua_getfield (L, -1, "methods");
  for (int i = 0; (op = sl_op_at (SL_F64, i)) != NULL; i++) {
    if (op->arguments == SL_ARGS_NONE) continue;
    if (op->attr_size > ATTR_BYTES)
      luaL_error (L, "%s: attributes of more than %d bytes", op->name,
                  ATTR_BYTES);
    lua_pushinteger (L, i);
    lua_pushcclosure (L, strcmp (op->name, "neg") == 0 ? negate : call, 1);
    for (size_t k = 0; k < sizeof operators / sizeof *operators; k++)
      if (strcmp (operators[k].op, op->name) == 0) {
        lua_pushvalue (L, -1);
        lua_setfield (L, -4, operators[k].event);
      }
    if (!(op->flags & SL_OP_FUNCTION)) {
      lua_pushvalue (L, -1);
      lua_setfield (L, -3, op->name);
    }
    lua_setfield (L, -4, op->name);
  }
  lua_pop (L, 2);
}
