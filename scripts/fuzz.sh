#!/bin/sh
# Build the libFuzzer targets and run each for some seconds.
#   scripts/fuzz.sh SECONDS [TARGET...]
# New inputs are kept in build/fuzz/found/TARGET; a crash is written beside them and its path printed.
# Exit: 0 nothing found, 1 a fault, 77 no clang here.
set -eu
cd "$(dirname "$0")/.."
seconds=$1
shift
jobs=${SW_JOBS:-$(nproc)}

if ! command -v clang >/dev/null 2>&1; then
    echo "skipped: clang is not here"
    exit 77
fi
mkdir -p build/fuzz
{ cmake --preset fuzz && cmake --build --preset fuzz -j "$jobs"; } >build/fuzz/build.log 2>&1 || {
    tail -n 30 build/fuzz/build.log
    exit 1
}
[ $# -gt 0 ] || set -- $(find tests/fuzz -maxdepth 1 -name '*.c' -exec basename {} .c \; | LC_ALL=C sort)
if [ $# -eq 0 ]; then
    echo "skipped: no fuzz targets"
    exit 77
fi

run_one() {
    name=$1
    found=build/fuzz/found/$name
    mkdir -p "$found"
    seeds=tests/fuzz/corpus/$name
    [ -d "$seeds" ] || seeds=
    # A hostile input may take at most 5 s and 512 MiB (sanitizers included).
    # shellcheck disable=SC2086
    if ! build/fuzz/bin/fuzz-"$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -print_final_stats=1 \
        -artifact_prefix="$found/" "$found" $seeds >"$found.log" 2>&1; then
        tail -n 40 "$found.log"
        echo "fuzz $name: FAILED, see $found.log"
        return 1
    fi
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log") inputs in $seconds s"
}

failed=0
running=0
pids=
for name in "$@"; do
    run_one "$name" &
    pids="$pids $!"
    running=$((running + 1))
    if [ "$running" -ge "$jobs" ]; then
        for pid in $pids; do wait "$pid" || failed=1; done
        pids=
        running=0
    fi
done
for pid in $pids; do wait "$pid" || failed=1; done
exit "$failed"
