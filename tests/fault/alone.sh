#!/bin/sh
# One rank that fails alone, out of memory in a step, in loading, on a full disk, while the others wait for it or go on:
# all are gone within 5 s, with status 3 and one message that names the rank and what failed there, and the checkpoint
# before it is whole.
#   tests/fault/alone.sh BIN_FOLDER
set -u
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
export PATH="$bin:$PATH" LC_ALL=C
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0
limit=5

# run ARGUMENT...: of scripts/mpi-run.sh; status and seconds are left in variables.
run() {
    begin=$(date +%s)
    timeout 50 sh scripts/mpi-run.sh "$@" >"$T/out" 2>"$T/err" </dev/null
    status=$?
    seconds=$(($(date +%s) - begin))
}

complain() {
    echo "$*: status $status, $seconds s"
    cat "$T/out" "$T/err"
    failed=1
}

# ends WHAT MESSAGE: with this message alone.
ends() {
    { [ "$status" -eq 3 ] && [ "$seconds" -le "$limit" ] && [ ! -s "$T/out" ] &&
        [ "$(grep -Ec '^(shardwright: |\{)' "$T/err")" -eq 1 ] && grep -Eq "$2" "$T/err"; } || complain "$1"
}

shardwright init examples/models/byte-llama --layers 1 -o "$T/model" -q || exit 1
text="--text LICENSE --seq-len 64 --threads 1 --mesh tp=2 -q"
train="shardwright-mpi train $T/model $text --lr 1e-3 --batch 2 --save $T/run --resume --steps"
# shellcheck disable=SC2086 # words
run 2 $train 1
[ "$status" -eq 0 ] || complain "without a fault"
limit=$((limit + seconds)) # a job takes that long to start and to end, under a sanitizer or beside others

# alone FAULT MESSAGE ARGUMENT...: the fault of one rank, while the others are in a collective.
alone() {
    export SW_FAULT="$1:alloc"
    message=$2
    shift 2
    run "$@"
    ends "$SW_FAULT of $*" "$message"
    unset SW_FAULT
}

memory='.*no memory for a'
# shellcheck disable=SC2086
{
    alone all_gather:rank=1:after=3 "^shardwright: rank 1: linear: no memory" 2 $train 3
    alone all_gather:rank=1:after=6 "^shardwright: rank 1: backward of linear: no memory" 2 $train 3
    alone reduce_scatter:rank=0:after=0 "^shardwright: rank 0: $memory" 2 shardwright-mpi eval "$T/model" $text
    alone all_reduce:rank=1:after=0 "^shardwright: rank 1: $memory" 2 \
        shardwright-mpi generate "$T/model" --prompt-text abc --threads 1 --mesh tp=2 -q
    alone all_gather:rank=3:after=7 '^\{"error":\{"status":"no_memory","what":"rank 3: backward of linear: no memory' 4 \
        shardwright-mpi check "$T/model" --threads 1 --mesh cp=2,tp=2 --json
    alone agree:rank=1:after=9 "^shardwright: rank 1: " 2 $train 3

    # both at once: one of them speaks
    fault=after=3:alloc
    run 1 env SW_FAULT=all_gather:rank=0:$fault $train 3 : -n 1 env SW_FAULT=all_gather:rank=1:$fault $train 3
    ends "both ranks" "^shardwright: rank 0: linear: no memory"

    for fault in write:after=0:error=ENOSPC create:after=0:error=EACCES; do # of a disk that only rank 1 has
        run 1 $train 3 : -n 1 env SW_FAULT=$fault $train 3
        ends "$fault" "^shardwright: rank 1: $T/run.partial-.*/dense-pp0-tp1.safetensors: cannot "
    done
    shardwright verify "$T/run" >"$T/out" 2>"$T/err" || complain "the checkpoint"
    run 2 $train 3
    { [ "$status" -eq 0 ] && grep -q "step 3 written" "$T/out"; } || complain "afterwards"
}
exit "$failed"
