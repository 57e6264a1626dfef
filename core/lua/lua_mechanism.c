/* lua_mechanism.c - plugins with their options, as scripts hold them. */
#include "lua/lua_attention.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MECHANISM "sinklab.mechanism"
/* In the registry: the userdata of every mechanism alive, by its address. */
#define INTERNED "sinklab.mechanisms"

const sl_mechanism *sl_lua_check_mechanism (lua_State *L, int index) {
  return *(const sl_mechanism **)sl_lua_check_object (L, index, MECHANISM);
}

const sl_mechanism *sl_lua_mechanism (lua_State *L, int table,
                                      const char *what) {
  lua_pushliteral (L, "mechanism");
  lua_rawget (L, table);
  if (luaL_testudata (L, -1, MECHANISM))
    return sl_lua_check_mechanism (L, lua_gettop (L));
  sl_lua_fail (L, "%s.mechanism: expected a mechanism, got %s", what,
               luaL_typename (L, -1));
  return NULL;
}

void sl_lua_set_text (lua_State *L, const char *key, const char *text) {
  lua_pushstring (L, text);
  lua_setfield (L, -2, key);
}

static void set_properties (lua_State *L, uint32_t declared) {
  lua_newtable (L);
  for (const sl_property *q = sl_properties; q->name; q++) {
    lua_pushboolean (L, (declared & q->flag) != 0);
    lua_setfield (L, -2, q->name);
  }
  lua_setfield (L, -2, "properties");
}

void sl_lua_push_option (lua_State *L, const sl_option *o, double value) {
  lua_Integer whole;
  if (o->type == SL_CHOICE)
    lua_pushstring (L, o->choices[(int)value]);
  else if (o->type == SL_BOOL)
    lua_pushboolean (L, value != 0);
  else if (o->type == SL_INT && lua_numbertointeger (value, &whole))
    lua_pushinteger (L, whole);
  else
    lua_pushnumber (L, value);
}

/* The values in effect, by name. */
static void set_options (lua_State *L, const sl_mechanism *m) {
  const sl_option *o = m->loaded->plugin[SL_F64]->options;
  sl_setting value;
  lua_newtable (L);
  for (int i = 0; sl_mechanism_option (m, i, &value) == 0; i++) {
    sl_lua_push_option (L, &o[i], value.number);
    lua_setfield (L, -2, value.name);
  }
  lua_setfield (L, -2, "options");
}

/* Append an element of a list of parameters or inputs to the table on the top of
** the stack, and leave it open; 0: these options leave it out. */
static int add_element (lua_State *L, const char *name, sl_width width,
                        int init, double scale) {
  static const char *const inits[] = { "default", "const", "normal",
                                       "uniform" };
  if (width.per_dhead == 0 && width.fixed == 0) return 0;
  lua_createtable (L, 0, 6);
  sl_lua_set_text (L, "name", name);
  sl_lua_set_text (L, "init", inits[init]);
  lua_pushnumber (L, scale);
  lua_setfield (L, -2, "scale");
  lua_pushinteger (L, width.per_dhead);
  lua_setfield (L, -2, "width_per_dhead");
  lua_pushinteger (L, width.fixed);
  lua_setfield (L, -2, "width_fixed");
  lua_pushvalue (L, -1);
  lua_rawseti (L, -3, luaL_len (L, -3) + 1);
  return 1;
}

/* Parameters and inputs that these options do not leave out. */
static void set_lists (lua_State *L, const sl_mechanism *m) {
  lua_newtable (L);
  for (const sl_param *p = m->params; p->name; p++)
    if (add_element (L, p->name, p->width, p->init, p->scale)) {
      sl_lua_set_text (L, "doc", p->doc);
      lua_pop (L, 1);
    }
  lua_setfield (L, -2, "params");
  lua_newtable (L);
  for (const sl_input *p = m->inputs; p->name; p++)
    if (add_element (L, p->name, p->width, p->init, p->scale)) {
      lua_pushboolean (L, p->shared);
      lua_setfield (L, -2, "shared");
      lua_pop (L, 1);
    }
  lua_setfield (L, -2, "inputs");
}

/* mechanism:params_count (d_head): numbers of parameters of one head. */
static int params_count (lua_State *L) {
  const sl_mechanism *m = sl_lua_check_mechanism (L, 1);
  const lua_Integer d = sl_lua_check_integer (L, 2);
  sl_lua_argument (L, d >= 1 && d <= INT_MAX, 2, "d_head must be 1 or more");
  lua_pushinteger (L, sl_mechanism_params (m, (int)d));
  return 1;
}

/* mechanism:output_width (d_head, t): numbers that a head gives for a token, in
** sequences of t tokens. */
static int output_width (lua_State *L) {
  const sl_mechanism *m = sl_lua_check_mechanism (L, 1);
  const lua_Integer d = sl_lua_check_integer (L, 2),
                    t = sl_lua_check_integer (L, 3);
  sl_error e;
  int width;
  sl_lua_argument (L, d >= 1 && d <= INT_MAX, 2, "d_head must be 1 or more");
  sl_lua_argument (L, t >= 1 && t <= INT_MAX / 2, 3, "t must be 1 or more");
  width = sl_mechanism_output (m, (int)d, (int)t, &e);
  if (width < 0) return sl_lua_raise (L, &e);
  lua_pushinteger (L, width);
  return 1;
}

static void push_mechanism (lua_State *L, const sl_mechanism *m) {
  const sl_loaded *l = m->loaded;
  const sl_plugin *p = l->plugin[SL_F64];
  luaL_checkstack (L, 8, "mechanism");
  lua_getfield (L, LUA_REGISTRYINDEX, INTERNED);
  if (lua_rawgetp (L, -1, m) == LUA_TUSERDATA) {
    lua_remove (L, -2);
    return;
  }
  lua_pop (L, 1);
  *(const sl_mechanism **)lua_newuserdatauv (L, sizeof m, 1) = m;
  luaL_setmetatable (L, MECHANISM);
  lua_newtable (L);
  sl_lua_set_text (L, "name", l->name);
  sl_lua_set_text (L, "version", p->version);
  sl_lua_set_text (L, "doc", p->doc);
  sl_lua_set_text (L, "path", l->path);
  sl_lua_set_text (L, "hash", l->hash);
  sl_lua_set_text (L, "shape", sl_plugin_shape (p));
  lua_pushboolean (L, p->row || (p->mixer && p->mixer->weights));
  lua_setfield (L, -2, "has_weights");
  set_properties (L, p->properties);
  set_options (L, m);
  set_lists (L, m);
  lua_pushcfunction (L, params_count);
  lua_setfield (L, -2, "params_count");
  lua_pushcfunction (L, output_width);
  lua_setfield (L, -2, "output_width");
  lua_setiuservalue (L, -2, 1);
  lua_pushvalue (L, -1);
  lua_rawsetp (L, -3, m);
  lua_remove (L, -2);
}

static int mechanism_index (lua_State *L) {
  sl_lua_check_mechanism (L, 1);
  lua_getiuservalue (L, 1, 1);
  lua_pushvalue (L, 2);
  lua_rawget (L, -2);
  return 1;
}

/* "relu (normaliser = earlier)" */
static int mechanism_text (lua_State *L) {
  const sl_mechanism *m = sl_lua_check_mechanism (L, 1);
  const sl_option *o = m->loaded->plugin[SL_F64]->options;
  sl_setting value;
  luaL_Buffer b;
  int n = 0;
  luaL_buffinit (L, &b);
  luaL_addstring (&b, m->loaded->name);
  for (; sl_mechanism_option (m, n, &value) == 0; n++) {
    luaL_addstring (&b, n ? ", " : " (");
    luaL_addstring (&b, value.name);
    luaL_addstring (&b, " = ");
    if (o[n].type == SL_REAL || o[n].type == SL_INT)
      lua_pushfstring (L, "%f", value.number);
    else {
      sl_lua_push_option (L, &o[n], value.number);
      luaL_tolstring (L, -1, NULL);
      lua_remove (L, -2);
    }
    luaL_addvalue (&b);
  }
  if (n) luaL_addchar (&b, ')');
  luaL_pushresult (&b);
  return 1;
}

static int by_name (const void *a, const void *b) {
  return strcmp (((const sl_setting *)a)->name, ((const sl_setting *)b)->name);
}

/* Whether the plugin's option of this name is true or false. */
static int is_boolean (const sl_loaded *l, const char *name) {
  const sl_option *o = l->plugin[SL_F64]->options;
  for (; o && o->name; o++)
    if (strcmp (o->name, name) == 0) return o->type == SL_BOOL;
  return 1; /* unknown: sl_mechanism_new says so */
}

/* The key at -2 and the value at -1 of an options table. */
static sl_setting setting (lua_State *L, const sl_loaded *l) {
  sl_setting s = { NULL, 0, NULL };
  if (lua_type (L, -2) != LUA_TSTRING)
    sl_lua_fail (L, "%s: expected named options, got a key of type %s", l->name,
                 luaL_typename (L, -2));
  s.name = lua_tostring (L, -2);
  switch (lua_type (L, -1)) {
  case LUA_TNUMBER: s.number = lua_tonumber (L, -1); return s;
  case LUA_TSTRING: s.text = lua_tostring (L, -1); return s;
  case LUA_TBOOLEAN:
    s.number = lua_toboolean (L, -1);
    if (is_boolean (l, s.name)) return s;
  }
  sl_lua_fail (L,
               "%s: option %s is a %s; 'sinklab plugin info %s' lists the "
               "options and their values",
               l->name, s.name, luaL_typename (L, -1), l->name);
  return s;
}

/* The name of a plugin; a table in its place, which is how models take one,
** gets told how to say it here. */
static const char *name_argument (lua_State *L) {
  if (lua_istable (L, 1) && lua_rawgeti (L, 1, 1) == LUA_TSTRING)
    sl_lua_fail (L,
                 "mechanism: expected the name of a plugin, got a table (write "
                 "lab.mechanism(\"%.60s\", { OPTION = VALUE }))",
                 lua_tostring (L, -1));
  if (lua_type (L, 1) != LUA_TSTRING)
    sl_lua_fail (L, "mechanism: expected the name of a plugin, got %s",
                 luaL_typename (L, 1));
  return lua_tostring (L, 1);
}

/* mechanism (name [, options]): a plugin, found by name or path, with the
** values of its options. Equal arguments give the same object. */
static int mechanism (lua_State *L) {
  const char *name = name_argument (L);
  const int has_options = !lua_isnoneornil (L, 2);
  const sl_loaded *l;
  const sl_mechanism *m;
  sl_setting *s = NULL;
  int n = 0;
  sl_error e;
  if (has_options) sl_lua_check_type (L, 2, LUA_TTABLE);
  l = sl_lua_plugin (L, name);
  if (has_options) {
    size_t count = 0;
    for (lua_pushnil (L); lua_next (L, 2); lua_pop (L, 1)) count++;
    s = lua_newuserdatauv (L, (count + 1) * sizeof *s, 0);
    for (lua_pushnil (L); lua_next (L, 2); lua_pop (L, 1))
      s[n++] = setting (L, l);
    /* one of several mistakes is always the same one */
    if (n) qsort (s, (size_t)n, sizeof *s, by_name);
  }
  m = sl_mechanism_new (l, n, s, &e);
  if (!m) return sl_lua_raise (L, &e);
  push_mechanism (L, m);
  return 1;
}

void sl_lua_open_mechanism (lua_State *L) {
  luaL_newmetatable (L, MECHANISM);
  lua_pushcfunction (L, mechanism_index);
  lua_setfield (L, -2, "__index");
  lua_pushcfunction (L, mechanism_text);
  lua_setfield (L, -2, "__tostring");
  lua_pop (L, 1);
  lua_newtable (L);
  lua_createtable (L, 0, 1);
  lua_pushliteral (L, "v");
  lua_setfield (L, -2, "__mode");
  lua_setmetatable (L, -2);
  lua_setfield (L, LUA_REGISTRYINDEX, INTERNED);
  lua_pushcfunction (L, mechanism);
  lua_setfield (L, -2, "mechanism");
}
