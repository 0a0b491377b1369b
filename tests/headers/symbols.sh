#!/bin/sh
# What a shared library exports as its ABI is what tests/headers/NAME.txt lists, and what the headers of its umbrella
# header declare. Whatever else it exports (for our own runtime library) has another version.
#   tests/headers/symbols.sh LIBRARY UMBRELLA.h [--accept]      (--accept rewrites the list)
set -eu
library=$1
umbrella=$2
list=tests/headers/symbols-${umbrella%.h}.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

nm -D --defined-only "$library" | awk '$NF ~ /^sw_.*@@SHARDWRIGHT_[0-9]+$/ { sub(/@@.*/, "", $NF); print $NF }' |
    LC_ALL=C sort >"$scratch/exported"
nm -D --defined-only "$library" | awk '{ print $NF }' | grep -vE '@@SHARDWRIGHT_(PRIVATE_)?[0-9.]+$|^SHARDWRIGHT_' |
    sed "s|^|$library exports without a version: |" >"$scratch/bare"
headers=$(sed -n 's/^#include "\([a-z_]*\.h\)".*/\1/p' "include/shardwright/$umbrella" | grep -v '^shardwright\.h$') || true
# A declaration is SW_API up to its semicolon; its name stands before the first opening parenthesis.
(cd include/shardwright && cat $headers /dev/null) | grep -v '^#define' | tr '\n' ' ' |
    grep -oE 'SW_API[^;(]*\bsw_[a-z0-9_]+ *\(' | grep -oE 'sw_[a-z0-9_]+ *\($' | tr -d ' (' |
    LC_ALL=C sort -u >"$scratch/declared"

if [ "${3:-}" = --accept ]; then
    cp "$scratch/exported" "$list"
fi
failed=0
diff -u --label "$list" --label "exported by the library" "$list" "$scratch/exported" || failed=1
diff -u --label "declared in the headers" --label "exported by the library" \
    "$scratch/declared" "$scratch/exported" || failed=1
[ ! -s "$scratch/bare" ] || { cat "$scratch/bare"; failed=1; }
[ "$failed" -eq 0 ] || echo "help: tests/headers/symbols.sh LIBRARY $umbrella --accept, and say so in CHANGES.md"
exit "$failed"
