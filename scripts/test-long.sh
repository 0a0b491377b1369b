#!/bin/sh
# The tests that take too long for every change: clang's analyzer, clang, the planner preset, no oneDNN, MPICH, -O2,
# all tests under the sanitizers, collectives beyond 2^31 elements, all families over all meshes, the thread
# sanitizer, valgrind, coverage with its bars, and an hour of fuzzing over all targets (SW_FUZZ_SECONDS for each).
#   scripts/test-long.sh [STEP...]     (all steps without a name)
# Exit: 0 all passed, 1 otherwise; every step is run.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${SW_JOBS:-$(nproc)}
mkdir -p build/long
failed=0

wanted=" $* "

step() {
    name=$1
    shift
    case $wanted in *" $name "* | "  ") ;; *) return ;; esac
    if "$@" >"build/long/$name.log" 2>&1; then
        echo "$name: ok"
        grep '^skipped: ' "build/long/$name.log" | sed 's/^/  /'
    else
        failed=1
        tail -n 30 "build/long/$name.log"
        echo "$name: FAILED, see build/long/$name.log"
    fi
}

# The checks of clang-tidy that CI has no time for.
analyze() {
    cmake --preset dev && scripts/tidy.sh --analyze build/dev
}

preset() {
    cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs" && ctest --preset "$1" -L 'unit|property|fuzz|golden|headers|mpi'
}

# A program loads nothing of the runtime: no MPI, no math library, no threads of kernels. What ldd does not list at
# all (no such file, no program) is a failure too.
loads_no_runtime() {
    loaded=$(ldd "$1") && echo "$1: $loaded" && echo "$loaded" | grep -q 'libc\.so' &&
        ! echo "$loaded" | grep -E 'lib(mpi|mpich|open-rte|shardwright-rt|dnnl|gomp|omp|m)\.|blas|mkl'
}

# The planner side asks for nothing of the runtime, alone and beside it.
planner_alone() {
    preset planner && loads_no_runtime build/planner/bin/shardwright &&
        [ ! -e build/planner/bin/shardwright-mpi ] &&
        cmake --preset dev && cmake --build --preset dev -j "$jobs" --target shardwright-program &&
        loads_no_runtime build/dev/bin/shardwright
}

# Kernels and what is made of them, by our own products; no program loads the library.
onednn_off() {
    cmake --preset onednn-off && cmake --build --preset onednn-off -j "$jobs" &&
        ctest --preset onednn-off -R '^(unit\.(kernel|tensor|dtensor)|property|golden\.mpi)' &&
        loaded=$(ldd build/onednn-off/bin/shardwright-mpi) && ! echo "$loaded" | grep dnnl
}

# The other MPI, on as many ranks as it is fast with. Beside Open MPI its commands have names of their own.
mpich() {
    for tool in mpicc.mpich mpiexec.mpich; do
        command -v "$tool" >/dev/null || { echo "skipped: $tool is not here (packages mpich, libmpich-dev)"; return 0; }
    done
    cmake --preset dev -B build/mpich -DMPI_C_COMPILER=mpicc.mpich -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.mpich)" &&
        cmake --build build/mpich -j "$jobs" && ldd build/mpich/bin/shardwright-mpi | grep -q libmpich &&
        ctest --test-dir build/mpich --output-on-failure --no-tests=error -R '^mpi\..*\.n[12]$|^fault\.ranks$'
}

optimised() {
    cmake --preset release -B build/release-test -DSW_TESTS=ON -DSW_WERROR=ON && cmake --build build/release-test -j "$jobs" &&
        ctest --test-dir build/release-test -j "$jobs" --output-on-failure -L 'unit|property|fuzz|golden|mpi'
}

# Collectives over more elements than an int counts, on two ranks with two buffers of 2 GiB each.
large() {
    kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
    [ "$kib" -gt $((10 * 1024 * 1024)) ] || { echo "skipped: collectives beyond 2^31 elements want 10 GiB, $((kib / 1024)) MiB are free"; return 0; }
    scripts/mpi-run.sh 2 build/release-test/tests/mpi.large
}

# Every family over every kind of mesh is what one rank is.
matrix() {
    for ranks in 2 4 8; do
        scripts/mpi-run.sh "$ranks" build/release-test/tests/mpi.equality matrix || return 1
    done
}

valgrind_units() {
    command -v valgrind >/dev/null || { echo "skipped: valgrind is not here"; return 0; }
    for test in build/dev/tests/unit.*; do
        valgrind --quiet --error-exitcode=1 --leak-check=full "$test" || return 1
    done
}

step analyze analyze
step clang preset clang
step planner planner_alone
step onednn-off onednn_off
step mpich mpich
step optimised optimised
step large large
step matrix matrix
step faults sh tests/fault/kill.sh build/release-test/bin --long
step asan preset asan
step tsan preset tsan
step valgrind valgrind_units
step coverage scripts/coverage.sh
step fuzz scripts/fuzz.sh "${SW_FUZZ_SECONDS:-600}"
exit "$failed"
