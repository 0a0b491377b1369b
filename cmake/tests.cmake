# Helpers that turn files and folders of tests/ into CTest tests. Every test has a label: the kind of test.

set(SW_TEST_TIMEOUT 120 CACHE STRING "Seconds that a test may take; sanitizers that are slow need more")

# A cmocka program from `source`, linked with the archive of the planner side or of the runtime side.
function(sw_cmocka_program name source archive)
  add_executable(${name} "${source}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support")
  target_compile_definitions(${name} PRIVATE
    SW_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SW_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE sw_flags sw_test_support ${archive} PkgConfig::SW_DEPS PkgConfig::CMOCKA m)
endfunction()

# One cmocka test: `label`.`folder`.`file`.
function(sw_cmocka_test label folder source archive)
  get_filename_component(stem "${source}" NAME_WE)
  string(REGEX REPLACE "^test_" "" stem "${stem}")
  set(name ${label}.${stem})
  if(folder)
    set(name ${label}.${folder}.${stem})
  endif()
  sw_cmocka_program(${name} "${source}" ${archive})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  # Threads that wait must leave the cores to the other tests.
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${SW_TEST_TIMEOUT}
                       ENVIRONMENT "OMP_WAIT_POLICY=PASSIVE")
endfunction()

# What a test that starts MPI finds in its environment: one thread a rank, and no word of MPI's own leaks.
set(sw_mpi_environment
  "MPIEXEC=${MPIEXEC_EXECUTABLE}" OMP_NUM_THREADS=1 ASAN_OPTIONS=fast_unwind_on_malloc=0
  "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/mpi/lsan.supp:print_suppressions=0")

# One cmocka program run at several numbers of ranks: mpi.`file`.n`ranks`.
function(sw_mpi_test source)
  cmake_parse_arguments(arg "" "" "RANKS" ${ARGN})
  get_filename_component(stem "${source}" NAME_WE)
  string(REGEX REPLACE "^test_" "" stem "${stem}")
  sw_cmocka_program(mpi.${stem} "${source}" sw_internal_rt)
  target_link_libraries(mpi.${stem} PRIVATE sw_mpi_support MPI::MPI_C)
  foreach(n IN LISTS arg_RANKS)
    set(name mpi.${stem}.n${n})
    add_test(NAME ${name} COMMAND sh scripts/mpi-run.sh ${n} $<TARGET_FILE:mpi.${stem}>
             WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set_tests_properties(${name} PROPERTIES LABELS mpi PROCESSORS ${n} TIMEOUT ${SW_TEST_TIMEOUT}
                         ENVIRONMENT "${sw_mpi_environment}")
  endforeach()
endfunction()

# A library for the tests of --plugin: tests/plugins/<name>.so.
function(sw_test_plugin source)
  get_filename_component(stem "${source}" NAME_WE)
  add_library(plugin.${stem} MODULE "${source}")
  set_target_properties(plugin.${stem} PROPERTIES
    PREFIX "" OUTPUT_NAME ${stem} SUFFIX .so LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/plugins")
  target_link_libraries(plugin.${stem} PRIVATE sw_flags)
endfunction()

# A fuzz target's corpus replayed by a plain program, so that every build checks it.
function(sw_fuzz_replay source)
  get_filename_component(stem "${source}" NAME_WE)
  add_executable(fuzz.${stem} "${source}" "${PROJECT_SOURCE_DIR}/tests/support/fuzz_replay.c")
  set_target_properties(fuzz.${stem} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  target_include_directories(fuzz.${stem} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support")
  target_link_libraries(fuzz.${stem} PRIVATE sw_flags ${sw_test_libraries})
  add_test(NAME fuzz.${stem} COMMAND fuzz.${stem} "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${stem}")
  set_tests_properties(fuzz.${stem} PROPERTIES LABELS fuzz TIMEOUT ${SW_TEST_TIMEOUT})
endfunction()

# The same target as a libFuzzer program: fuzz-<name>.
function(sw_fuzz_target source)
  get_filename_component(stem "${source}" NAME_WE)
  add_executable(fuzz-${stem} "${source}")
  target_include_directories(fuzz-${stem} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support")
  target_link_libraries(fuzz-${stem} PRIVATE sw_flags ${sw_test_libraries})
  target_link_options(fuzz-${stem} PRIVATE -fsanitize=fuzzer)
endfunction()

# A shell test. Exit status 77 means: cannot run here, and the output says why.
function(sw_script_test name label)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 600 SKIP_RETURN_CODE 77)
endfunction()
