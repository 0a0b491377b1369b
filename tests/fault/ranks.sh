#!/bin/sh
# Whatever happens to one rank, all are gone within 5 s: a fault at the entry of each collective, a killed rank,
# ranks that call different collectives, a rank that does not come. What we find ourselves ends with status 3 and one
# line of ours.
#   tests/fault/ranks.sh PROGRAM      (the program of tests/fault/ranks.c)
set -u
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
limit=5

# run RANKS ARGUMENT...: run the job; its status, seconds and lines are left in variables.
run() {
    begin=$(date +%s)
    timeout 30 sh scripts/mpi-run.sh "$1" "$program" ${2:+"$2"} >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    seconds=$(($(date +%s) - begin))
    n_lines=$(grep -c '^shardwright: ' "$scratch/err")
}

complain() {
    echo "$*: status $status, $seconds s, $n_lines lines of ours"
    cat "$scratch/err"
    failed=1
}

run 4
{ [ "$status" -eq 0 ] && grep -qx done "$scratch/out"; } || complain "without a fault"
limit=$((limit + seconds)) # a job takes that long to start and to end, under a sanitizer or beside others

for ranks in 2 4; do
    for call in agree all_gather reduce_scatter all_reduce all_to_all exchange broadcast; do
        for rank in 0 $((ranks - 1)); do
            export SW_FAULT="$call:rank=$rank:after=0:error"
            run "$ranks"
            { [ "$status" -eq 3 ] && [ "$n_lines" -eq 1 ] && [ "$seconds" -le "$limit" ] &&
                grep -q "^shardwright: rank $rank: .*a fault for a test" "$scratch/err"; } || complain "$SW_FAULT of $ranks"
        done
        export SW_FAULT="$call:rank=$((ranks - 1)):after=0:kill"
        run "$ranks"
        { [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ "$seconds" -le "$limit" ] && [ "$n_lines" -eq 0 ] &&
            ! grep -q done "$scratch/out"; } || complain "$SW_FAULT of $ranks"
    done
    for call in all_gather reduce_scatter all_reduce; do # the others wait in the window
        export SW_FAULT="$call:rank=0:after=0:kill"
        run "$ranks" quick
        { [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ "$seconds" -le "$limit" ] && [ "$n_lines" -eq 0 ] &&
            ! grep -q done "$scratch/out"; } || complain "$SW_FAULT of $ranks, quick"
    done
done
unset SW_FAULT

run 4 differ
{ [ "$status" -eq 3 ] && [ "$n_lines" -eq 1 ] && [ "$seconds" -le "$limit" ] &&
    grep -q 'all_reduce(F32 64) is called by member 0, all_gather(F32 1,64,1) by member 3' "$scratch/err"; } ||
    complain "different calls"
run 3 absent
{ [ "$status" -eq 3 ] && [ "$n_lines" -ge 1 ] && [ "$seconds" -le "$limit" ] &&
    grep -q 'all_reduce(F32 64) over tp: not all of its 3 ranks came within 1 s' "$scratch/err"; } || complain "an absent rank"

exit "$failed"
