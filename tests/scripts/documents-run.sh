#!/bin/sh
# Sessions in documents do what they show. In a block fenced by ```console, a line "$ shardwright ..." or
# "$ mpirun ... shardwright-mpi ..." is run from the source root, and the lines below it are what it prints; a line
# "..." stands for any lines. Other commands (make, cc) are passed over, and those for ranks where shardwright-mpi was
# not built.
#   tests/scripts/documents-run.sh BIN_FOLDER PAGE...
set -eu
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
shift
export PATH="$bin:$PATH" NO_COLOR=1 COLUMNS=100
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
n_run=0
runnable='^shardwright '
[ ! -x "$bin/shardwright-mpi" ] || runnable='^(shardwright|mpirun -n [0-9]+ shardwright-mpi) '

# Writes N.cmd and N.want for each command of a page.
split_page() {
    awk -v out="$scratch" '
        /^```/ { in_session = /^```console/; name = ""; next }
        !in_session { next }
        /^\$ / {
            n++
            name = sprintf("%s/%03d", out, n)
            print substr($0, 3) >(name ".cmd")
            printf "" >(name ".want")
            next
        }
        name != "" { print >(name ".want") }' "$1"
}

# The printed lines (second file) are the wanted ones (first file), "..." matching any run of lines.
compare() {
    awk '
        NR == FNR { want[++n] = $0; next }
        { got[++m] = $0 }
        END {
            at = 1
            may_skip = 0
            for (i = 1; i <= n; i++) {
                if (want[i] == "...") { may_skip = 1; continue }
                while (may_skip && at <= m && got[at] != want[i]) at++
                if (at > m || got[at] != want[i]) {
                    printf "  expected: %s\n  printed:  %s\n", want[i], (at > m ? "(the end)" : got[at])
                    exit 1
                }
                at++
                may_skip = 0
            }
            if (!may_skip && at <= m) { printf "  printed beyond what is shown: %s\n", got[at]; exit 1 }
        }' "$1" "$2"
}

for page in "$@"; do
    rm -f "$scratch"/*.cmd "$scratch"/*.want
    split_page "$page"
    for cmd in "$scratch"/*.cmd; do
        [ -f "$cmd" ] || continue
        grep -qE "$runnable" "$cmd" || continue
        sed -i 's|^mpirun -n |sh scripts/mpi-run.sh |' "$cmd" # which knows this machine
        n_run=$((n_run + 1))
        sh "$cmd" >"$scratch/out" 2>&1 </dev/null || true
        if ! compare "${cmd%.cmd}.want" "$scratch/out" >"$scratch/differs"; then
            echo "$page: $(cat "$cmd")"
            cat "$scratch/differs"
            failed=1
        fi
    done
done
echo "$n_run commands"
exit "$failed"
