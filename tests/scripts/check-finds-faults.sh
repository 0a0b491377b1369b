#!/bin/sh
# The checks of scripts/check.sh can fail: a fault of each kind is planted in a copy of the tree and has to be
# named, and what only looks like a fault must not be.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

tree=$scratch/tree
mkdir -p "$tree/docs/reference" "$tree/src/plan" "$tree/src/mesh" "$tree/src/io" "$tree/src/cli" "$tree/src/comm" "$tree/include/shardwright"
cp -r "$root/scripts" "$tree"
cp "$root/docs/layers.txt" "$tree/docs"
for folder in plan io cli; do
    echo '# x' >"$tree/src/$folder/README.md"
done

# plant FILE, text on stdin
plant() { cat >"$tree/$1"; }
expect() { grep -qF -- "$1" "$scratch/out" || { echo "not found: $1"; failed=1; }; }
refuse() { ! grep -qF -- "$1" "$scratch/out" || { echo "found, but is fine: $1"; failed=1; }; }

printf '/* x */\n#include "plan/role.h"\n#include "base/map.h"\n' | plant src/mesh/layer.c
printf '/* x */\n#include <mpi.h>\n#include <dnnl.h>\n' | plant src/plan/mpi.c
printf '/* x */\n#include <mpi.h>\n#include <dnnl.h>\n' | plant src/comm/mpi.c
printf '/* x */\n/* strcpy(a, b) */ char *s = "sprintf(x)";\nint y = atoi(s); // rand()\nint z = my_atoi(s);\n' | plant src/cli/call.c
printf '/* x */\nvoid f(void) { printf("x"); }\n' | plant src/io/print.c
printf '/* x */\nvoid f(void) { printf("x"); }\n' | plant src/cli/print.c
printf '/* x */\nvoid *f(void) { return malloc(3); }\n' | plant src/io/memory.c
{ echo '/* x */'; seq 1000 | sed 's/.*/int a&;/'; } | plant src/io/long.c
printf 'int x;\n' | plant src/io/first.c
printf '/* x */\nint x; \n' | plant src/io/space.c
printf '# A b\n\n[a](nowhere.md), [b](#no-such), [c](#a-b), [d](layers.txt), `[e](f.md)`\n' | plant docs/x.md
printf '# Findings\n\n`known`\n' | plant docs/reference/findings.md
printf '/* x */\nint a = f(SW_SEVERITY_ERROR,\n "unknown"), b = f(SW_SEVERITY_NOTE, "known");\n' | plant src/plan/find.c

if sh "$tree/scripts/check.sh" >"$scratch/out" 2>&1; then
    echo "check.sh passes a tree of faults"
    failed=1
fi
expect 'src/mesh/layer.c:2: src/mesh may not use src/plan'
refuse 'src/mesh/layer.c:3'
expect 'src/plan/mpi.c:2: this header is for'
expect 'src/plan/mpi.c:3: this header is for src/kernel only'
refuse 'src/comm/mpi.c:2'
expect 'src/comm/mpi.c:3: this header is for src/kernel only'
refuse 'src/cli/call.c:2'
expect 'src/cli/call.c:3: atoi is not used here'
refuse 'src/cli/call.c:4'
expect 'src/io/print.c:2: printf is not used here'
refuse 'src/cli/print.c'
expect 'src/io/memory.c:2: malloc is not used here'
expect 'src/io/long.c:1001: more than 900 lines'
expect 'src/io/first.c:1: does not open with a comment'
expect 'src/io/space.c:2: trailing space'
expect 'docs/x.md:3: link to nowhere.md leads nowhere'
expect 'docs/x.md:3: #no-such: no such heading'
refuse '#a-b'
refuse 'layers.txt leads'
refuse 'f.md'
expect 'finding code unknown is not described'
refuse 'finding code known'
expect 'src/mesh/README.md:1: missing'
[ "$failed" -eq 0 ] || cat "$scratch/out"
exit "$failed"
