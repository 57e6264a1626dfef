/* lua_versions.c - the libraries that this program runs with. */
#include "lua/lua_common.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <cairo.h>
#include <jansson.h>
#include <nettle/version.h>
#include <pcre2.h>
#include <sqlite3.h>
#include <stdio.h>
#include <zlib.h>

/* libraries () -> list of { name, version }: of the loaded library if it reports
** one, else of its headers at build time. */
static int libraries (lua_State *L) {
  char nettle[32], pcre2[64] = "";
  const struct {
    const char *name, *version;
  } list[] = { { "Lua", LUA_VERSION_MAJOR "." LUA_VERSION_MINOR
                                          "." LUA_VERSION_RELEASE },
               { "cairo", CAIRO_VERSION_STRING },
               { "jansson", JANSSON_VERSION },
               { "nettle", nettle },
               { "PCRE2", pcre2 },
               { "SQLite", sqlite3_libversion () },
               { "zlib", zlibVersion () } };
  snprintf (nettle, sizeof nettle, "%d.%d", NETTLE_VERSION_MAJOR,
            NETTLE_VERSION_MINOR);
  pcre2_config (PCRE2_CONFIG_VERSION, pcre2);
  lua_newtable (L);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    lua_createtable (L, 2, 0);
    lua_pushstring (L, list[i].name);
    lua_rawseti (L, -2, 1);
    lua_pushstring (L, list[i].version);
    lua_rawseti (L, -2, 2);
    lua_rawseti (L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

void sl_lua_open_versions (lua_State *L) {
  lua_pushcfunction (L, libraries);
  lua_setfield (L, -2, "libraries");
}
