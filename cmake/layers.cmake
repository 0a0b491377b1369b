# Helpers that turn folders of src/ into libraries and programs.

set(sw_planner_libraries PkgConfig::SW_DEPS Threads::Threads)

# One folder of src/ as the object library sw_<name>. A folder without sources is passed over. SHARED_INSIDE: a
# shared library exports all its functions (cmake/exports.cmake), and is the first to find its own.
function(sw_layer name)
  cmake_parse_arguments(arg "SHARED_INSIDE" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.c")
  if(NOT sources)
    return()
  endif()
  add_library(sw_${name} OBJECT ${sources})
  set_target_properties(sw_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
  if(arg_SHARED_INSIDE AND BUILD_SHARED_LIBS)
    set_target_properties(sw_${name} PROPERTIES C_VISIBILITY_PRESET default)
    target_compile_options(sw_${name} PRIVATE -fno-semantic-interposition)
  endif()
  target_link_libraries(sw_${name} PRIVATE sw_flags ${sw_planner_libraries} ${arg_LINK})
endfunction()

# The objects of several layers, as generator expressions.
function(sw_objects_of out)
  set(objects)
  foreach(layer IN LISTS ARGN)
    if(TARGET sw_${layer})
      list(APPEND objects $<TARGET_OBJECTS:sw_${layer}>)
    endif()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# The installed library <name>, shared or static as BUILD_SHARED_LIBS says, exporting what its umbrella header
# declares. The archive INTERNAL has the same objects and is for programs and tests, which use functions that the
# library does not export.
function(sw_library name)
  cmake_parse_arguments(arg "SHARED_INSIDE" "UMBRELLA;INTERNAL;ON_TOP_OF" "LAYERS;LINK" ${ARGN})
  sw_objects_of(objects ${arg_LAYERS})
  add_library(${name} ${objects})
  add_library(shardwright::${name} ALIAS ${name})
  target_link_libraries(${name} PUBLIC ${arg_ON_TOP_OF} PRIVATE ${sw_planner_libraries} ${arg_LINK})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${name} PROPERTIES
    LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(BUILD_SHARED_LIBS)
    sw_version_script(${name}.map ${arg_UMBRELLA} ${arg_SHARED_INSIDE})
    target_link_options(${name} PRIVATE
      -Wl,--version-script=${PROJECT_BINARY_DIR}/${name}.map -Wl,-Bsymbolic-functions)
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS "${PROJECT_BINARY_DIR}/${name}.map")
    if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
      target_link_options(${name} PRIVATE -Wl,--no-undefined)
    endif()
  endif()

  add_library(${arg_INTERNAL} STATIC ${objects})
  set_target_properties(${arg_INTERNAL} PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(${arg_INTERNAL} PRIVATE ${sw_planner_libraries} PUBLIC ${arg_LINK})
endfunction()

# The program <name> from src/<FOLDER>. All but main.c is the object library sw_<FOLDER>, which joins the archive
# INTERNAL, so that tests reach it.
function(sw_program name)
  cmake_parse_arguments(arg "" "FOLDER;INTERNAL" "LINK" ${ARGN})
  set(libraries sw_flags ${sw_planner_libraries} ${arg_LINK})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/*.c")
  list(FILTER sources EXCLUDE REGEX "/main\\.c$")
  add_library(sw_${arg_FOLDER} OBJECT ${sources})
  target_link_libraries(sw_${arg_FOLDER} PRIVATE ${libraries})
  target_sources(${arg_INTERNAL} PRIVATE $<TARGET_OBJECTS:sw_${arg_FOLDER}>)
  target_link_libraries(${arg_INTERNAL} PRIVATE ${CMAKE_DL_LIBS}) # plugins
  add_executable(${name}-program "${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/main.c")
  target_link_libraries(${name}-program PRIVATE ${libraries} ${arg_INTERNAL})
  set_target_properties(${name}-program PROPERTIES OUTPUT_NAME ${name})
endfunction()
