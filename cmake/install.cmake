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
install(FILES docs/sinklab.1 DESTINATION share/man/man1)
install(FILES docs/sinklab.3 DESTINATION share/man/man3)
install(FILES docs/completion/sinklab
        DESTINATION share/bash-completion/completions)
install(FILES docs/completion/_sinklab DESTINATION share/zsh/site-functions)
install(FILES docs/completion/sinklab.fish
        DESTINATION share/fish/vendor_completions.d)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION share/doc/sinklab)
# In docs/ there too, where README.md links to them.
install(DIRECTORY docs DESTINATION share/doc/sinklab
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png"
        PATTERN completion EXCLUDE)

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
