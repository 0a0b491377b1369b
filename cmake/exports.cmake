# Which functions a shared library exports, as a version script made of its public headers.

# Public functions have the version SHARDWRIGHT_<major>: only that is ABI. With SHARED_INSIDE the rest is exported as
# SHARDWRIGHT_PRIVATE_<version>, for the runtime library of the very same version and for nobody else.
function(sw_version_script out umbrella shared_inside)
  set(folder "${PROJECT_SOURCE_DIR}/include/shardwright")
  set(public)
  sw_headers_of(headers ${umbrella})
  foreach(header IN LISTS headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${folder}/${header}")
    file(READ "${folder}/${header}" text)
    string(REPLACE ";" "." text "${text}") # which separates lists here
    # A declaration is SW_API up to its end; its name stands before the first opening parenthesis.
    string(REGEX MATCHALL "\nSW_API[^.(]*sw_[a-z0-9_]+\\(" declarations "${text}")
    foreach(declaration IN LISTS declarations)
      string(REGEX REPLACE ".*[^a-z0-9_](sw_[a-z0-9_]+)\\($" "\\1" name "${declaration}")
      string(APPEND public "    ${name};\n")
    endforeach()
  endforeach()
  set(script)
  if(public)
    string(APPEND script "SHARDWRIGHT_${PROJECT_VERSION_MAJOR} {\n    global:\n${public}};\n")
  endif()
  string(APPEND script "SHARDWRIGHT_PRIVATE_${PROJECT_VERSION} {\n")
  if(shared_inside)
    string(APPEND script "    global: sw_*;\n")
  endif()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${out}" CONTENT "${script}    local: *;\n};\n")
endfunction()

# The headers that an umbrella header includes, and itself.
function(sw_headers_of out umbrella)
  set(path "${PROJECT_SOURCE_DIR}/include/shardwright/${umbrella}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(STRINGS "${path}" lines REGEX "^#include \"[a-z_]+\\.h\"")
  list(TRANSFORM lines REPLACE ".*\"(.*)\".*" "\\1")
  list(REMOVE_ITEM lines shardwright.h)
  set(${out} ${lines} ${umbrella} PARENT_SCOPE)
endfunction()
