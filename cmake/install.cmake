# What is installed: headers, libraries, programs, manuals, the CMake package and the pkg-config files. The
# installed tree can be moved: nothing in it holds an absolute path of ours. Without the runtime side nothing of it
# is installed.
include(CMakePackageConfigHelpers)

# What belongs to one library: itself, its program, its headers, the manuals of its program.
function(sw_install library umbrella manuals)
  install(TARGETS ${library} EXPORT ${library}-targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  sw_headers_of(headers ${umbrella})
  list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/include/shardwright/")
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/shardwright)
  foreach(page IN LISTS manuals)
    get_filename_component(section "${page}" LAST_EXT)
    string(SUBSTRING "${section}" 1 1 section)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
  install(EXPORT ${library}-targets NAMESPACE shardwright:: DESTINATION ${sw_package_dir})
endfunction()

set(sw_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardwright)
file(GLOB manuals CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.[1357]")
set(runtime_manuals ${manuals})
list(FILTER runtime_manuals INCLUDE REGEX "/shardwright-mpi[^/]*$")
list(FILTER manuals EXCLUDE REGEX "/shardwright-mpi[^/]*$")

sw_install(shardwright shardwright.h "${manuals}")
install(TARGETS shardwright-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set(sw_completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions) # each file found by its program's name
install(FILES scripts/completion/shardwright.bash RENAME shardwright DESTINATION ${sw_completions})
if(SW_RUNTIME)
  sw_install(shardwright-rt runtime.h "${runtime_manuals}")
  install(TARGETS shardwright-mpi-program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES scripts/completion/shardwright.bash RENAME shardwright-mpi DESTINATION ${sw_completions})
  if(SW_ONEDNN)
    install(FILES cmake/FindOneDNN.cmake DESTINATION ${sw_package_dir})
  endif()
endif()

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
  set(sw_pc_more_libs "\nLibs.private:")
else()
  set(sw_pc_requires "Requires")
  set(sw_pc_more_libs "")
endif()
configure_file(cmake/shardwright.pc.in shardwright.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shardwright.pc DESTINATION ${sw_pc_dir})
if(SW_RUNTIME)
  set(sw_pc_products "")
  if(SW_ONEDNN)
    set(sw_pc_products "-ldnnl")
  endif()
  set(sw_pc_threads "")
  if(TARGET OpenMP::OpenMP_C)
    set(sw_pc_threads ${OpenMP_C_FLAGS})
  endif()
  configure_file(cmake/shardwright-rt.pc.in shardwright-rt.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/shardwright-rt.pc DESTINATION ${sw_pc_dir})
endif()
