/* lua_attention.h - mechanisms, shared by the files that bind attention. */
#ifndef SL_LUA_ATTENTION_H
#define SL_LUA_ATTENTION_H
#include "attention/attention.h"
#include "lua/lua_common.h"

/* The plugin, found by name or path; raises if it does not load. One that stands
** before a plugin of sinklab's own is named on standard error, once. */
const sl_loaded *sl_lua_plugin (lua_State *L, const char *name);
/* The mechanism at 'index'; raises for anything else. */
const sl_mechanism *sl_lua_check_mechanism (lua_State *L, int index);
/* The field 'mechanism' of an options table; it stays on the stack. */
const sl_mechanism *sl_lua_mechanism (lua_State *L, int table,
                                      const char *what);

/* t[key] = text, for the table t on the top of the stack. */
void sl_lua_set_text (lua_State *L, const char *key, const char *text);

/* Push a value of a plugin's option: text, boolean, integer or number. */
void sl_lua_push_option (lua_State *L, const sl_option *o, double value);
#endif
