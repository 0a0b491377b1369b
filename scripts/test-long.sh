#!/bin/sh
# The tests that take too long for every change: clang, the planner preset, -O2, the thread sanitizer, valgrind,
# coverage with its bars, and an hour of fuzzing over all targets (SW_FUZZ_SECONDS for each).
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
    else
        failed=1
        tail -n 30 "build/long/$name.log"
        echo "$name: FAILED, see build/long/$name.log"
    fi
}

preset() {
    cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs" && ctest --preset "$1" -L 'unit|property|fuzz|golden|headers|mpi'
}

# The planner side asks for nothing of the runtime: no MPI and no math library among what it loads.
planner_alone() {
    preset planner && ! ldd build/planner/bin/shardwright build/dev/bin/shardwright | grep -E 'libmpi|blas|dnnl|libm\.'
}

optimised() {
    cmake --preset release -B build/release-test -DSW_TESTS=ON -DSW_WERROR=ON && cmake --build build/release-test -j "$jobs" &&
        ctest --test-dir build/release-test -j "$jobs" --output-on-failure -L 'unit|property|fuzz|golden|mpi'
}

valgrind_units() {
    command -v valgrind >/dev/null || { echo "skipped: valgrind is not here"; return 0; }
    for test in build/dev/tests/unit.*; do
        valgrind --quiet --error-exitcode=1 --leak-check=full "$test" || return 1
    done
}

step clang preset clang
step planner planner_alone
step optimised optimised
step faults sh tests/fault/kill.sh build/release-test/bin --long
step tsan preset tsan
step valgrind valgrind_units
step coverage scripts/coverage.sh
step fuzz scripts/fuzz.sh "${SW_FUZZ_SECONDS:-600}"
exit "$failed"
