#!/bin/sh
# Sessions in documents do what they show. In a block fenced by ```console, a line "$ shardwright ...", "$ shardwright-mpi ..."
# or "$ mpirun ... shardwright-mpi ..." is run, and so are a few that prepare files; the lines below it are what it prints. A line
# "..." stands for any lines, and numbers with a point may differ by a thousandth: kernels round as the machine can. Other
# commands (make, cc) are passed over, and those of shardwright-mpi where it was not built.
# The commands of a page run in order in one folder, which has what the source root has; what they write is gone afterwards.
#   tests/scripts/documents-run.sh BIN_FOLDER PAGE...
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
bin=$(cd "$1" && pwd)
shift
export PATH="$bin:$PATH" NO_COLOR=1 COLUMNS=100
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
n_run=0
runnable='^(shardwright|mkdir|head|tail|ls) '
[ ! -x "$bin/shardwright-mpi" ] || runnable='^(shardwright|mkdir|head|tail|ls|(mpirun -n [0-9]+ )?shardwright-mpi) '

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
        function same(a, b,    n, i, x, y) {
            if (a == b) return 1
            n = split(a, x, " ")
            if (n != split(b, y, " ")) return 0
            for (i = 1; i <= n; i++) {
                if (x[i] == y[i]) continue
                if (x[i] !~ /^[0-9]+\.[0-9]+$/ || y[i] !~ /^[0-9]+\.[0-9]+$/) return 0
                if ((x[i] - y[i]) ^ 2 > (x[i] / 1000) ^ 2) return 0
            }
            return 1
        }
        NR == FNR { want[++n] = $0; next }
        { got[++m] = $0 }
        END {
            at = 1
            may_skip = 0
            for (i = 1; i <= n; i++) {
                if (want[i] == "...") { may_skip = 1; continue }
                while (may_skip && at <= m && !same(want[i], got[at])) at++
                if (at > m || !same(want[i], got[at])) {
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
    rm -rf "$scratch"/*.cmd "$scratch"/*.want "$scratch/root"
    split_page "$page"
    mkdir "$scratch/root"
    for entry in "$root"/*; do
        [ "$entry" = "$root/build" ] || ln -s "$entry" "$scratch/root"
    done
    cd "$scratch/root"
    for cmd in "$scratch"/*.cmd; do
        [ -f "$cmd" ] || continue
        grep -qE "$runnable" "$cmd" || continue
        sed -i 's|^mpirun -n |sh scripts/mpi-run.sh |' "$cmd" # which knows this machine
        n_run=$((n_run + 1))
        sh "$cmd" </dev/null 2>&1 | sed '/^shardwright: [a-z]*: .* left/d' >"$scratch/out" # no progress, which says how slow it is
        if ! compare "${cmd%.cmd}.want" "$scratch/out" >"$scratch/differs"; then
            echo "$page: $(cat "$cmd")"
            cat "$scratch/differs"
            failed=1
        fi
    done
    cd "$root"
done
echo "$n_run commands"
exit "$failed"
