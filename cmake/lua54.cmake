# PkgConfig::LUA, a Lua 5.4: distributions name its pkg-config file differently.
pkg_search_module(LUA IMPORTED_TARGET
                  lua5.4 lua-5.4 lua54 lua>=5.4)
if(NOT LUA_FOUND OR LUA_VERSION VERSION_GREATER_EQUAL 5.5)
  if(LUA_FOUND)
    set(found "found only Lua ${LUA_VERSION}")
  else()
    set(found "pkg-config knows none")
  endif()
  message(FATAL_ERROR "sinklab needs the development files of Lua 5.4: "
          "${found}; try: scripts/setup")
endif()
