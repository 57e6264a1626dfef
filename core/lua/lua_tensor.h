/* lua_tensor.h - arguments that bindings of tensors and operations share. */
#ifndef SL_LUA_TENSOR_H
#define SL_LUA_TENSOR_H
#include "lua/lua_common.h"

/* An axis argument, counted from 1 or backwards from -1, for t: from 0. Raises
** "WHAT: axis 4 of shape (2, 3): must be 1 to 2 or -2 to -1". */
int sl_lua_check_axis (lua_State *L, int arg, const sl_tensor *t,
                       const char *what);

/* A shape argument: a list of sizes, or one size. Returns the number of axes.
** With 'open' one size may be -1. */
int sl_lua_check_shape (lua_State *L, int arg, int open,
                        ptrdiff_t dim[SL_MAX_DIMS], const char *what);

/* A dtype argument by name; none or nil: def. */
sl_dtype sl_lua_opt_dtype (lua_State *L, int arg, sl_dtype def);

/* Push t, or raise e if it is NULL. */
int sl_lua_tensor_or_raise (lua_State *L, sl_tensor *t, const sl_error *e);

/* Push a new tensor of the shape 'dim' in which every element is x; a new
** tensor (n) with 0, 1, ... n - 1, exact or refused. */
int sl_lua_new_full (lua_State *L, sl_dtype dtype, int ndim,
                     const ptrdiff_t *dim, double x);
int sl_lua_new_arange (lua_State *L, sl_dtype dtype, ptrdiff_t n);

/* Raise when the program that is being recorded uses t: it would not repeat
** what WHAT is about to do. */
void sl_lua_not_recorded (lua_State *L, const sl_tensor *t, const char *what);

/* Push a new tensor with the numbers of a nested list, or with one number. */
sl_tensor *sl_lua_tensor_of (lua_State *L, int arg, sl_dtype dtype);

/* Push a tensor that the Lua function at stack index 'function' has filled:
** function (buffer, step, first_sample), with a zero-filled buffer of this
** shape and precision, at once and at each replay of the program that is being
** recorded, which becomes serial. Raises what the function raises. */
int sl_lua_fill (lua_State *L, int function, sl_dtype dtype, int ndim,
                 const ptrdiff_t *dim);

/* The metatable on top of the stack has a table "methods"; add these. */
void sl_lua_tensor_methods (lua_State *L, const luaL_Reg *methods);

/* The parts of sl_lua_open_tensor. */
void sl_lua_open_views (lua_State *L);
void sl_lua_open_tensor_files (lua_State *L);
#endif
