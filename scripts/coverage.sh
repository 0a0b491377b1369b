#!/bin/sh
# Line and branch coverage of src/ by unit, property, golden and fuzz replay tests, one row a folder.
#   scripts/coverage.sh [--files]      (--files: one row a file)
# Exit: 0 at or above the bars, 1 below them.
set -eu
cd "$(dirname "$0")/.."
LINE_BAR=95
BRANCH_BAR=85
jobs=${SW_JOBS:-$(nproc)}
per_file=0
[ "${1:-}" != --files ] || per_file=1

mkdir -p build/coverage
# A test that limits the size of files keeps a program from writing its counters: not on its standard error.
export GCOV_ERROR_FILE="$PWD/build/coverage/gcov-errors.log"
{ cmake --preset coverage && cmake --build --preset coverage -j "$jobs"; } >build/coverage/build.log
find build/coverage -name '*.gcda' -delete
ctest --test-dir build/coverage -j "$jobs" -L 'unit|property|fuzz|golden' >build/coverage/test.log ||
    { tail -n 20 build/coverage/test.log; exit 1; }

find "$PWD/build/coverage/CMakeFiles" -path '*/src/*' -name '*.gcno' | LC_ALL=C sort >build/coverage/counters
(cd build/coverage && xargs gcov -b -n <counters 2>/dev/null) |
    awk -v root="$PWD/" -v per_file="$per_file" -v line_bar="$LINE_BAR" -v branch_bar="$BRANCH_BAR" '
    /^File / {
        file = substr($0, 7, length($0) - 7)
        sub(root, "", file)
        wanted = file ~ /^src\/.*\.c$/
        key = file
        if (!per_file) sub(/\/[^\/]*$/, "", key)
    }
    wanted && /^(Lines executed|Taken at least once):/ {
        split($0, part, /[:% ]+/)
        kind = /^Lines/ ? "l" : "b"
        if ((kind, file) in seen) next # the sum over all files stands in the last block
        seen[kind, file] = 1
        percent = kind == "l" ? part[3] : part[5]
        n = $NF
        all[kind, key] += n; hit[kind, key] += n * percent / 100
        all[kind, "total"] += n; hit[kind, "total"] += n * percent / 100
        keys[key] = 1
    }
    function rate(kind, key) { return all[kind, key] ? 100 * hit[kind, key] / all[kind, key] : 100 }
    function row(key) {
        return sprintf("%-32s %6d lines %5.1f %%  %6d branches %5.1f %%", key, all["l", key], rate("l", key),
                       all["b", key], rate("b", key))
    }
    END {
        for (key in keys)
            print row(key) | "sort"
        close("sort")
        print row("total")
        if (rate("l", "total") < line_bar || rate("b", "total") < branch_bar) {
            printf "below the bars: %d %% of lines, %d %% of branches\n", line_bar, branch_bar
            exit 1
        }
    }'
