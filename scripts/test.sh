#!/bin/sh
# Everything that `make test` runs: the dev build with all tests and checks, the sanitizer build with the tests
# that run code, and a short run of each fuzz target. Says what it does, details only of what fails, and ends
# with one line of numbers. Exit: 0 all passed, 1 otherwise.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=${SW_JOBS:-$(nproc)}
passed=0
failed=0
skipped=0

seconds() { date +%s; }

finish() {
    [ "$skipped" -eq 0 ] || echo "$skipped skipped"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] || exit 1
    exit 0
}

# Configure and build a preset. Without a build there is nothing to test: stop.
build() {
    mkdir -p "build/$1"
    start=$(seconds)
    if ! { cmake --preset "$1" && cmake --build --preset "$1" -j "$jobs"; } >"build/$1/build.log" 2>&1; then
        grep -E 'error|Error|FAILED|undefined' -A 5 "build/$1/build.log" | head -n 60
        echo "build $1: FAILED, see build/$1/build.log"
        failed=$((failed + 1))
        finish
    fi
    echo "build $1: ok ($(($(seconds) - start)) s)"
}

# Value of an attribute of the first <testsuite> of a JUnit file.
attribute() { sed -n "/<testsuite/,/>/s/.*[[:space:]]$2=\"\([0-9]*\)\".*/\1/p" "$1" | head -n 1; }

# Run the tests of a preset and add up its numbers.
run_tests() {
    preset=$1
    shift
    folder=$PWD/build/$preset
    start=$(seconds)
    rm -f "$folder/junit.xml"
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error --output-junit "$folder/junit.xml" "$@" \
        >"$folder/test.log" 2>&1
    if [ ! -s "$folder/junit.xml" ]; then
        tail -n 20 "$folder/test.log"
        failed=$((failed + 1))
        return
    fi
    all=$(attribute "$folder/junit.xml" tests)
    bad=$(attribute "$folder/junit.xml" failures)
    left=$(($(attribute "$folder/junit.xml" skipped) + $(attribute "$folder/junit.xml" disabled)))
    passed=$((passed + all - bad - left))
    failed=$((failed + bad))
    skipped=$((skipped + left))
    if [ "$bad" -ne 0 ]; then
        grep -vE '^ *Start +[0-9]+:|Test +#[0-9]+:.*(Passed|Skipped)' "$folder/test.log" | tail -n 200
    fi
    echo "test $preset: $((all - bad - left)) passed, $bad failed, $left skipped ($(($(seconds) - start)) s)"
    # A program passes when some of its cases are skipped: say how many, and why (without the shared folder the
    # reasons are many and alike).
    log=$folder/Testing/Temporary/LastTest.log
    cases=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test(s).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
    [ "$cases" -eq 0 ] || echo "  $cases cases of those programs skipped:"
    grep -hoE 'skipped: .*' "$log" | sort -u >"$folder/skipped"
    head -n 3 "$folder/skipped" | sed 's/^/  /'
    more=$(($(wc -l <"$folder/skipped") - 3))
    [ "$more" -le 0 ] || echo "  and $more more reasons, see build/$preset/skipped"
}

run_fuzz() {
    output=$(scripts/fuzz.sh 5 2>&1)
    status=$?
    echo "$output"
    ok=$(echo "$output" | grep -c '^fuzz .* inputs in')
    passed=$((passed + ok))
    case $status in
    0) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
}

build dev
run_tests dev
build asan
# Of the programs on ranks the even jobs, of their command lines one each: test-long.sh has all of them.
run_tests asan -L 'unit|property|fuzz|golden|mpi' -E '^mpi\..*\.n[36]$|^golden\.mpi-[^-]*-'
run_fuzz
finish
