#!/bin/sh
# Build the release and the benchmark, and run it. Arguments are passed on (--strict: a missed bar is a failure).
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/release
{ cmake --preset release && cmake --build --preset release; } >build/release/build.log 2>&1 || {
    tail -n 30 build/release/build.log
    exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
build/release/bin/plan_bench build/release/bin/shardwright "$scratch" "$@"
