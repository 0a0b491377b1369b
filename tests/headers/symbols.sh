#!/bin/sh
# What the shared library exports is what tests/headers/symbols.txt lists and what the public headers declare.
#   tests/headers/symbols.sh LIBRARY [--accept]      (--accept rewrites the list)
set -eu
library=$1
list=tests/headers/symbols.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

nm -D --defined-only "$library" | awk '{ print $NF }' | LC_ALL=C sort >"$scratch/exported"
# A declaration is SW_API up to its semicolon; its name stands before the first opening parenthesis.
cat include/shardwright/*.h | grep -v '^#define' | tr '\n' ' ' | grep -oE 'SW_API[^;(]*\bsw_[a-z0-9_]+ *\(' |
    grep -oE 'sw_[a-z0-9_]+ *\($' | tr -d ' (' | LC_ALL=C sort -u >"$scratch/declared"

if [ "${2:-}" = --accept ]; then
    cp "$scratch/exported" "$list"
fi
failed=0
diff -u --label "$list" --label "exported by the library" "$list" "$scratch/exported" || failed=1
diff -u --label "declared in the headers" --label "exported by the library" \
    "$scratch/declared" "$scratch/exported" || failed=1
[ "$failed" -eq 0 ] || echo "help: tests/headers/symbols.sh LIBRARY --accept, and say so in CHANGES.md"
exit "$failed"
