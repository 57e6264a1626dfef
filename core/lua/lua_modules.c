/* lua_modules.c - everything that "sinklab.core" is made of. */
#include "lua/lua_common.h"
#include "lua/session.h"

static const struct {
  const char *name;
  void (*open) (lua_State *L);
} modules[] = {
  { "system", sl_lua_open_system },
  { "json", sl_lua_open_json },
  { "versions", sl_lua_open_versions },
  { "database", sl_lua_open_database },
  { "process", sl_lua_open_process },
  { "tensor", sl_lua_open_tensor },
  { "ops", sl_lua_open_ops },
  { "generator", sl_lua_open_generator },
  { "fill", sl_lua_open_fill },
  { "program", sl_lua_open_program },
  { "mechanism", sl_lua_open_mechanism },
  { "attention", sl_lua_open_attention },
  { "train", sl_lua_open_train },
  { "sinks", sl_lua_open_sinks },
  { "hidden", sl_lua_open_hidden },
  { "plugins", sl_lua_open_plugins },
  { "check", sl_lua_open_check },
  { "plot", sl_lua_open_plot },
  { "lm files", sl_lua_open_lm_files },
  { "tokenizer", sl_lua_open_tokenizer },
};

int sl_lua_open_core (lua_State *L) {
  lua_newtable (L);
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
    int top = lua_gettop (L);
    modules[i].open (L);
    if (lua_gettop (L) != top)
      return luaL_error (L, "the opener of '%s' left %d values on the stack",
                         modules[i].name, lua_gettop (L) - top);
  }
  return 1;
}
