/* lua_lm.h - what bindings of language models share. Their functions are in the
** table "lm" of sinklab.core. */
#ifndef SL_LUA_LM_H
#define SL_LUA_LM_H
#include "lm/weights.h"
#include "lua/lua_common.h"

/* A file that lm.open gave and nobody has closed. */
sl_weights *sl_lua_check_weights (lua_State *L, int arg);
#endif
