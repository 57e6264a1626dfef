/* lua_attention.h - mechanisms, shared by the files that bind attention. */
#ifndef SL_LUA_ATTENTION_H
#define SL_LUA_ATTENTION_H
#include "attention/attention.h"
#include "lua/lua_common.h"

/* The mechanism at 'index'; raises for anything else. */
const sl_mechanism *sl_lua_check_mechanism (lua_State *L, int index);
/* The field 'mechanism' of an options table; it stays on the stack. */
const sl_mechanism *sl_lua_mechanism (lua_State *L, int table,
                                      const char *what);
#endif
