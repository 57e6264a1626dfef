# What the tests of docs/extending.md share: blocks of the page as text and as files.
set(EXTENDING_PAGE ${PROJECT_SOURCE_DIR}/docs/extending.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${EXTENDING_PAGE})
set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)

# extending_block(name out): ${out} is the block that begins with "/* name - ".
function(extending_block name out)
  file(READ ${EXTENDING_PAGE} page)
  string(FIND "${page}" "/* ${name} - " from)
  if(from EQUAL -1)
    message(FATAL_ERROR "docs/extending.md has no block ${name}")
  endif()
  string(SUBSTRING "${page}" ${from} -1 block)
  string(FIND "${block}" "```" length)
  string(SUBSTRING "${block}" 0 ${length} block)
  set(${out} "${block}" PARENT_SCOPE)
endfunction()

# extending_write(name text): generated/name, touched only where it changes.
function(extending_write name text)
  file(WRITE ${generated}/new "${text}")
  file(COPY_FILE ${generated}/new ${generated}/${name} ONLY_IF_DIFFERENT)
endfunction()
