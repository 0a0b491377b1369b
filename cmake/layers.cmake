# Helpers that turn folders of src/ into libraries and programs.

# One folder of src/ as the object library sw_<name>. A folder without sources is passed over.
function(sw_layer name)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.c")
  if(NOT sources)
    return()
  endif()
  add_library(sw_${name} OBJECT ${sources})
  set_target_properties(sw_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(sw_${name} PRIVATE sw_flags PkgConfig::SW_DEPS Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY SW_LAYERS ${name})
endfunction()

# The objects of several layers, as generator expressions.
function(sw_objects_of out)
  set(objects)
  foreach(layer IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:sw_${layer}>)
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# The installed library <name>, shared or static as BUILD_SHARED_LIBS says. The archive sw_internal has the same
# objects and is for the program and the tests, which use functions that the library does not export.
function(sw_library name)
  cmake_parse_arguments(arg "" "" "LAYERS" ${ARGN})
  sw_objects_of(objects ${arg_LAYERS})
  if(NOT objects)
    return()
  endif()
  add_library(${name} ${objects})
  add_library(shardwright::${name} ALIAS ${name})
  target_link_libraries(${name} PRIVATE PkgConfig::SW_DEPS Threads::Threads)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${name} PROPERTIES
    LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  if(BUILD_SHARED_LIBS AND NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()

  add_library(sw_internal STATIC ${objects})
  set_target_properties(sw_internal PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(sw_internal PRIVATE PkgConfig::SW_DEPS Threads::Threads)
endfunction()

# The program <name> from src/<FOLDER>. All but main.c is the object library sw_<FOLDER>, so that tests reach it.
function(sw_program name)
  cmake_parse_arguments(arg "" "FOLDER" "LIBRARY_LAYERS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/*.c")
  list(FILTER sources EXCLUDE REGEX "/main\\.c$")
  if(sources)
    add_library(sw_${arg_FOLDER} OBJECT ${sources})
    target_link_libraries(sw_${arg_FOLDER} PRIVATE sw_flags PkgConfig::SW_DEPS Threads::Threads)
    target_sources(sw_internal PRIVATE $<TARGET_OBJECTS:sw_${arg_FOLDER}>)
    target_link_libraries(sw_internal PRIVATE ${CMAKE_DL_LIBS}) # plugins
  endif()
  file(GLOB main CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/main.c")
  if(NOT main)
    return()
  endif()
  add_executable(${name}-program ${main})
  target_link_libraries(${name}-program PRIVATE sw_flags sw_internal PkgConfig::SW_DEPS Threads::Threads)
  set_target_properties(${name}-program PROPERTIES OUTPUT_NAME ${name})
endfunction()
