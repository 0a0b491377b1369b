# Compiler options of everything that is built here, carried by the interface target sw_flags. It is never
# exported: a user's flags are the user's business.
add_library(sw_flags INTERFACE)
target_compile_definitions(sw_flags INTERFACE _GNU_SOURCE)
target_include_directories(sw_flags INTERFACE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
target_compile_options(sw_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings
  -Wundef -fno-common -ffp-contract=off)

if(SW_WERROR)
  target_compile_options(sw_flags INTERFACE -Werror)
endif()

# Hardening of what is shipped. Fortify needs an optimised build and gets in the way of the sanitizers.
if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
  target_compile_options(sw_flags INTERFACE
    $<$<CONFIG:Release,RelWithDebInfo>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong>)
endif()
