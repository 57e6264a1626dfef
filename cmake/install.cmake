# cmake --install build --prefix P: a tree that works wherever it is put. The
# layout is fixed (lib, not lib64) because the executable finds its parts from
# where it stands: ../share/sinklab/scripts and ../lib/sinklab/plugins.
include(CMakePackageConfigHelpers)
install(TARGETS sinklab RUNTIME DESTINATION bin)
install(TARGETS ${PLUGINS} LIBRARY DESTINATION lib/sinklab/plugins)
install(TARGETS sinklab_module LIBRARY DESTINATION lib/lua/5.4)
install(DIRECTORY scripts/sinklab scripts/experiments
        DESTINATION share/sinklab/scripts FILES_MATCHING PATTERN "*.lua")
install(DIRECTORY scripts/templates scripts/data DESTINATION share/sinklab/scripts)
install(DIRECTORY include/sinklab DESTINATION include
        FILES_MATCHING PATTERN "*.h")

# Man pages and completions, written by the executable. A cross build cannot run
# it unless CMAKE_CROSSCOMPILING_EMULATOR is set.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(pages ${PROJECT_BINARY_DIR}/pages)
  file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS scripts/sinklab/*.lua)
  add_custom_command(
    OUTPUT ${pages}/sinklab.1 ${pages}/sinklab.3 ${pages}/sinklab
           ${pages}/_sinklab ${pages}/sinklab.fish
    COMMAND ${CMAKE_COMMAND} -E env
            SINKLAB_SCRIPTS=${PROJECT_SOURCE_DIR}/scripts $<TARGET_FILE:sinklab>
            run ${PROJECT_SOURCE_DIR}/docs/generate.lua --pages=${pages}
            > ${PROJECT_BINARY_DIR}/pages.log
    DEPENDS sinklab ${page_sources} ${PROJECT_SOURCE_DIR}/docs/generate.lua
    COMMENT "Generating the man pages and completions" VERBATIM)
  add_custom_target(pages ALL DEPENDS ${pages}/sinklab.1)
  install(FILES ${pages}/sinklab.1 DESTINATION share/man/man1)
  install(FILES ${pages}/sinklab.3 DESTINATION share/man/man3)
  install(FILES ${pages}/sinklab DESTINATION share/bash-completion/completions)
  install(FILES ${pages}/_sinklab DESTINATION share/zsh/site-functions)
  install(FILES ${pages}/sinklab.fish
          DESTINATION share/fish/vendor_completions.d)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/doc/sinklab)
# In docs/ there too, where README.md links to them.
install(DIRECTORY docs DESTINATION share/doc/sinklab
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png")

# For plugin authors: pkg-config, and find_package(sinklab).
configure_file(cmake/sinklab.pc.in sinklab.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sinklab.pc DESTINATION lib/pkgconfig)
configure_package_config_file(cmake/sinklabConfig.cmake.in sinklabConfig.cmake
  INSTALL_DESTINATION lib/cmake/sinklab)
write_basic_package_version_file(sinklabConfigVersion.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES cmake/SinklabPlugin.cmake
  ${PROJECT_BINARY_DIR}/sinklabConfig.cmake
  ${PROJECT_BINARY_DIR}/sinklabConfigVersion.cmake
  DESTINATION lib/cmake/sinklab)
