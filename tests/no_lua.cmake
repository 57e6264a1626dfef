# No object of LIBRARY asks for a symbol of Lua, and the look-up itself works.
execute_process(COMMAND ${NM} -u ${LIBRARY}
  OUTPUT_VARIABLE undefined RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT undefined MATCHES "[ _]memcpy")
  message(FATAL_ERROR "${NM} -u ${LIBRARY}: status ${status}, no memcpy there")
endif()
string(REGEX MATCHALL "[^a-z]luaL?_[a-z_]+" lua "${undefined}")
if(lua)
  message(FATAL_ERROR "${LIBRARY} asks for symbols of Lua: ${lua}")
endif()
