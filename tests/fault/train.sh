#!/bin/sh
# A rank that is killed or fails while ranks load, train or save: all are gone within 5 s with a status that is not
# zero, and the checkpoint of --save is absent or whole; a rerun goes on from it.
#   tests/fault/train.sh BIN_FOLDER
set -u
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
export PATH="$bin:$PATH" LC_ALL=C
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0
limit=5

# train STEPS: the run, taken up where it is; its status and seconds are left in variables.
train() {
    begin=$(date +%s)
    timeout 60 sh scripts/mpi-run.sh 2 shardwright-mpi train "$T/model" --text LICENSE --lr 1e-3 --seq-len 16 --batch 2 \
        --threads 1 --steps "$1" --mesh tp=2 --save "$T/run" --save-every 1 --resume -q >"$T/out" 2>"$T/err" </dev/null
    status=$?
    seconds=$(($(date +%s) - begin))
}

complain() {
    echo "$*: status $status, $seconds s"
    cat "$T/err"
    failed=1
}

shardwright init examples/models/byte-llama --layers 1 -o "$T/model" -q || exit 1
train 1
[ "$status" -eq 0 ] || complain "without a fault"
limit=$((limit + seconds)) # a job takes that long to start and to end, under a sanitizer or beside others

steps=1
for fault in agree:rank=1:after=0 agree:rank=1:after=4 all_gather:rank=1:after=2 reduce_scatter:rank=0:after=5 \
    broadcast:rank=1:after=0 broadcast:rank=0:after=1 agree:rank=1:after=12; do
    steps=$((steps + 2))
    SW_FAULT="$fault:kill"
    export SW_FAULT
    train "$steps"
    { [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ "$seconds" -le "$limit" ] && ! grep -q written "$T/out"; } ||
        complain "$SW_FAULT"
    unset SW_FAULT
    shardwright verify "$T/run" >"$T/out" 2>"$T/err" || complain "$fault: the checkpoint"
    train "$steps"
    { [ "$status" -eq 0 ] && grep -q "step $steps written" "$T/out"; } || complain "after $fault"
    [ "$(ls -d "$T"/run.partial-* 2>/dev/null | wc -l)" -eq 0 ] || complain "$fault: something partial is left"
done
exit "$failed"
