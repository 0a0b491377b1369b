#!/bin/sh
# Rewrite what golden cases expect with what the program prints now. Review the result with git diff.
#
#   scripts/accept-golden.sh CASE...     (names of folders in tests/golden; "all" for every case)
#
# The program is taken from build/dev/bin; another folder can be given in SW_BIN.
set -eu
cd "$(dirname "$0")/.."
bin=${SW_BIN:-build/dev/bin}

[ $# -gt 0 ] || { echo "usage: scripts/accept-golden.sh CASE... | all" >&2; exit 2; }
[ -x "$bin/shardwright" ] || { echo "accept-golden: no $bin/shardwright; help: make build" >&2; exit 1; }
[ "$1" != all ] || set -- $(cd tests/golden && ls)
for name in "$@"; do
    status=0
    sh scripts/run-golden.sh "$bin" "tests/golden/$name" --accept || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || exit "$status"
    echo "$name"
done
