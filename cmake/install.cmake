# What is installed: headers, the library, the program, manuals, the CMake package and the pkg-config file. The
# installed tree can be moved: nothing in it holds an absolute path of ours.
include(CMakePackageConfigHelpers)

if(NOT TARGET shardwright)
  return()
endif()

install(TARGETS shardwright EXPORT shardwright-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/shardwright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET shardwright-program)
  install(TARGETS shardwright-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES scripts/completion/shardwright.bash RENAME shardwright
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

foreach(section 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.${section}")
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()

set(sw_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardwright)
install(EXPORT shardwright-targets NAMESPACE shardwright:: DESTINATION ${sw_package_dir})
configure_package_config_file(cmake/shardwrightConfig.cmake.in shardwrightConfig.cmake
                              INSTALL_DESTINATION ${sw_package_dir})
# Before 1.0 a minor version may break what was there.
write_basic_package_version_file(shardwrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardwrightConfig.cmake ${PROJECT_BINARY_DIR}/shardwrightConfigVersion.cmake
        DESTINATION ${sw_package_dir})

# The way from the folder of the .pc file up to the prefix, for a prefix relative to the file.
set(sw_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(sw_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(sw_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  file(RELATIVE_PATH sw_pc_up "/${sw_pc_dir}" "/")
  string(REGEX REPLACE "/$" "" sw_pc_up "${sw_pc_up}")
  set(sw_pc_prefix "\${pcfiledir}/${sw_pc_up}")
  set(sw_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(sw_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(sw_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# A static library asks its user to link what it uses, a shared one brings it along.
if(BUILD_SHARED_LIBS)
  set(sw_pc_requires "Requires.private")
  set(sw_pc_libs "-L\${libdir} -lshardwright\nLibs.private: -pthread")
else()
  set(sw_pc_requires "Requires")
  set(sw_pc_libs "-L\${libdir} -lshardwright -pthread")
endif()
configure_file(cmake/shardwright.pc.in shardwright.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shardwright.pc DESTINATION ${sw_pc_dir})
