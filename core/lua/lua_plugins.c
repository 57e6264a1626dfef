/* lua_plugins.c - the plugins on the search path, and the description of one. */
#include "base/escape.h"
#include "base/memory.h"
#include "base/process.h"
#include "lua/lua_attention.h"

#define FOUND_HANDLE "sinklab.plugins_found"

static int found_release (lua_State *L) {
  sl_found **box = sl_lua_check_object (L, 1, FOUND_HANDLE);
  sl_free (*box);
  *box = NULL;
  return 0;
}

/* plugins () -> { { name, path, shadowed }, ... }: everything on the search
** path, without loading it. */
static int plugins (lua_State *L) {
  sl_found **box = lua_newuserdatauv (L, sizeof *box, 0);
  sl_error e;
  int n;
  *box = NULL;
  sl_lua_own (L, FOUND_HANDLE, found_release);
  n = sl_plugin_list (box, &e);
  if (n < 0) return sl_lua_raise (L, &e);
  lua_createtable (L, n, 0);
  for (int i = 0; i < n; i++) {
    const sl_found *found = &(*box)[i];
    lua_createtable (L, 0, 3);
    sl_lua_set_text (L, "name", found->name);
    sl_lua_set_text (L, "path", found->path);
    lua_pushboolean (L, found->shadowed);
    lua_setfield (L, -2, "shadowed");
    lua_rawseti (L, -2, i + 1);
  }
  return 1;
}

const sl_loaded *sl_lua_plugin (lua_State *L, const char *name) {
  sl_error e;
  const sl_loaded *loaded = sl_plugin_load (name, &e);
  if (!loaded) sl_lua_raise (L, &e);
  if (!*loaded->shadows || sl_parent_exists ()) return loaded;
  if (lua_rawgetp (L, LUA_REGISTRYINDEX, loaded) == LUA_TNIL) {
    sl_complain (lua_pushfstring (L, "%s stands before sinklab's own plugin %s",
                                  loaded->path, loaded->name));
    lua_pop (L, 1);
    lua_pushboolean (L, 1);
    lua_rawsetp (L, LUA_REGISTRYINDEX, loaded);
  }
  lua_pop (L, 1);
  return loaded;
}

/* A table { name, version, path, hash, shadows } on the top of the stack. */
static void push_identity (lua_State *L, const sl_loaded *loaded) {
  lua_createtable (L, 0, 9);
  sl_lua_set_text (L, "name", loaded->name);
  sl_lua_set_text (L, "version", loaded->plugin[SL_F64]->version);
  sl_lua_set_text (L, "path", loaded->path);
  sl_lua_set_text (L, "hash", loaded->hash);
  if (*loaded->shadows) sl_lua_set_text (L, "shadows", loaded->shadows);
}

/* plugins_loaded () -> identities, the last loaded first. */
static int plugins_loaded (lua_State *L) {
  lua_newtable (L);
  for (const sl_loaded *p = sl_plugin_loaded (); p; p = p->next) {
    push_identity (L, p);
    lua_rawseti (L, -2, luaL_len (L, -2) + 1);
  }
  return 1;
}

static void set_properties (lua_State *L, uint32_t declared) {
  lua_newtable (L);
  for (const sl_property *q = sl_properties; q->name; q++)
    if (declared & q->flag) {
      lua_pushstring (L, q->text);
      lua_rawseti (L, -2, luaL_len (L, -2) + 1);
    }
  lua_setfield (L, -2, "properties");
}

static void set_options (lua_State *L, const sl_option *o) {
  lua_newtable (L);
  for (lua_Integer i = 1; o && o->name; o++, i++) {
    lua_createtable (L, 0, 6);
    sl_lua_set_text (L, "name", o->name);
    sl_lua_set_text (L, "doc", o->doc);
    sl_lua_push_option (L, o, o->def);
    lua_setfield (L, -2, "default");
    if (o->type == SL_CHOICE) {
      lua_newtable (L);
      for (int j = 0; o->choices[j]; j++) {
        lua_pushstring (L, o->choices[j]);
        lua_rawseti (L, -2, j + 1);
      }
      lua_setfield (L, -2, "choices");
    } else if (o->type != SL_BOOL) {
      sl_lua_push_option (L, o, o->min);
      lua_setfield (L, -2, "min");
      sl_lua_push_option (L, o, o->max);
      lua_setfield (L, -2, "max");
    }
    lua_rawseti (L, -2, i);
  }
  lua_setfield (L, -2, "options");
}

static void set_width (lua_State *L, sl_width w) {
  lua_pushinteger (L, w.per_dhead);
  lua_setfield (L, -2, "per_dhead");
  lua_pushinteger (L, w.fixed);
  lua_setfield (L, -2, "fixed");
}

/* The initial values of a parameter or a matrix, as text. */
static void set_init (lua_State *L, int init, double scale,
                      const char *otherwise) {
  if (init == SL_CONST)
    lua_pushfstring (L, "starts at %f", scale);
  else if (init == SL_NORMAL)
    lua_pushfstring (L, "starts normal, deviation %f", scale);
  else if (init == SL_UNIFORM)
    lua_pushfstring (L, "starts uniform, -%f to %f", scale, scale);
  else
    lua_pushstring (L, otherwise);
  lua_setfield (L, -2, "init");
}

static void set_params (lua_State *L, const sl_param *p) {
  lua_newtable (L);
  for (lua_Integer i = 1; p && p->name; p++, i++) {
    lua_createtable (L, 0, 5);
    sl_lua_set_text (L, "name", p->name);
    sl_lua_set_text (L, "doc", p->doc);
    set_width (L, p->width);
    set_init (L, p->init, p->scale, "starts at 0");
    lua_rawseti (L, -2, i);
  }
  lua_setfield (L, -2, "params");
}

static void set_inputs (lua_State *L, const sl_input *p) {
  lua_newtable (L);
  for (lua_Integer i = 1; p && p->name; p++, i++) {
    lua_createtable (L, 0, 5);
    sl_lua_set_text (L, "name", p->name);
    set_width (L, p->width);
    set_init (L, p->init, p->scale, "starts as other matrices do");
    lua_pushboolean (L, p->shared);
    lua_setfield (L, -2, "shared");
    lua_rawseti (L, -2, i);
  }
  lua_setfield (L, -2, "inputs");
}

/* plugin (name, try) -> its identity, doc, shape, properties, options, and the
** parameters and inputs that it has by default. 'try': a child tries it first,
** also if it came with sinklab. */
static int plugin (lua_State *L) {
  const char *name = sl_lua_check_string (L, 1);
  const sl_loaded *loaded;
  const sl_mechanism *m;
  const sl_plugin *p;
  sl_error e;
  if (lua_toboolean (L, 2) && sl_plugin_try (name, &e))
    return sl_lua_raise (L, &e);
  loaded = sl_lua_plugin (L, name);
  m = sl_mechanism_new (loaded, 0, NULL, &e);
  if (!m) return sl_lua_raise (L, &e);
  p = loaded->plugin[SL_F64];
  push_identity (L, loaded);
  sl_lua_set_text (L, "doc", p->doc);
  sl_lua_set_text (L, "shape", sl_plugin_shape (p));
  set_properties (L, p->properties);
  set_options (L, p->options);
  set_params (L, m->params);
  set_inputs (L, m->inputs);
  return 1;
}

void sl_lua_open_plugins (lua_State *L) {
  static const luaL_Reg functions[] = { { "plugins", plugins },
                                        { "plugins_loaded", plugins_loaded },
                                        { "plugin", plugin },
                                        { NULL, NULL } };
  luaL_setfuncs (L, functions, 0);
}
