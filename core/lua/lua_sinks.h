/* lua_sinks.h - measurements between Lua tables and core. */
#ifndef SL_LUA_SINKS_H
#define SL_LUA_SINKS_H
#include "lua/lua_common.h"
#include "sinks/sinks.h"

/* Reads the options in the table at 'index' into m, without output. What m
** points to are userdata kept alive by the table at 'anchor'. Raises on
** mistakes, which 'what' begins. */
void sl_lua_read_measuring (lua_State *L, int index, int anchor,
                            const char *what, long samples, sl_measuring *m,
                            sl_dtype *dtype);
/* Pushes the table that measure_sinks returns. */
void sl_lua_push_sinks (lua_State *L, const sl_sinks *s, const sl_measuring *m,
                        sl_dtype dtype);
#endif
