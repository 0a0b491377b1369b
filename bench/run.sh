#!/bin/sh
# Build the release and the benchmarks, and run them. Arguments are passed on (--strict: a missed bar is a failure).
# SW_BENCH_SCRATCH: an existing folder for scratch files (the temporary one otherwise). The checkpoint benchmark needs
# 8.6 GB there, on the disk that is to be measured; with less it is skipped and says so.
# Exit: 0 all ran, 1 a bar was missed or a benchmark failed.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/release
{ cmake --preset release && cmake --build --preset release; } >build/release/build.log 2>&1 || {
    tail -n 30 build/release/build.log
    exit 1
}
scratch=$(mktemp -d "${SW_BENCH_SCRATCH:-${TMPDIR:-/tmp}}/shardwright-bench-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
failed=0
build/release/bin/plan_bench build/release/bin/shardwright "$scratch" "$@" || failed=1
rm -rf "${scratch:?}"/*
status=0
build/release/bin/checkpoint_bench "$scratch" "$@" || status=$?
[ "$status" -eq 0 ] || [ "$status" -eq 77 ] || failed=1
# Only with the runtime side.
if [ -x build/release/bin/shardwright-mpi ]; then
    scripts/mpi-run.sh 2 build/release/bin/shardwright-mpi bench redistribute "$@" || failed=1
    TMPDIR="$scratch" scripts/mpi-run.sh 2 build/release/bin/shardwright-mpi bench mesh "$@" || failed=1
    build/release/bin/shardwright-mpi bench ops "$@" || failed=1
    build/release/bin/shardwright-mpi bench model --threads 1 "$@" || failed=1
    [ "$(nproc)" -eq 1 ] || build/release/bin/shardwright-mpi bench model --threads 2 "$@" || failed=1
fi
exit "$failed"
