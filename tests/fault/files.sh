#!/bin/sh
# Ranks that have other files under what should be the same: on every host its own. Each way of being different ends
# all ranks with one line that names the rank, status 1, and nothing computed.
#   tests/fault/files.sh BIN_FOLDER
set -u
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
export PATH="$bin:$PATH" LC_ALL=C
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0

complain() {
    echo "$*: status $status"
    cat "$T/out" "$T/err"
    failed=1
}

# eval_apart FOLDER TEXT OPTION PLAN PLAN: rank 0 has $T/0 and the first plan; the status is left in a variable.
eval_apart() {
    timeout 60 sh scripts/mpi-run.sh 1 shardwright-mpi eval "$T/0" --text "$T/text" --seq-len 16 --threads 1 "$3" "$4" : \
        -n 1 shardwright-mpi eval "$1" --text "$2" --seq-len 16 --threads 1 "$3" "$5" >"$T/out" 2>"$T/err" </dev/null
    status=$?
}

# refused WHAT: with one line of ours.
refused() {
    { [ "$status" -eq 1 ] && [ ! -s "$T/out" ] && grep -q "^shardwright: $1" "$T/err" &&
        [ "$(grep -c '^shardwright: ' "$T/err")" -eq 1 ]; } || complain "$1"
}

head -c 2000 LICENSE >"$T/text"
shardwright init examples/models/byte-llama --layers 1 --seed 1 -o "$T/0" -q || exit 1
shardwright init examples/models/byte-llama --layers 1 --seed 2 -o "$T/seed" -q || exit 1
cp -R "$T/0" "$T/config"
sed 's/"rms_norm_eps": [^,]*/"rms_norm_eps": 0.25/' "$T/0/config.json" >"$T/config/config.json"
cp -R "$T/0" "$T/late" # the last byte of the last tensor, of which nobody takes a sample
size=$(wc -c <"$T/0/model.safetensors")
printf '\101' | dd of="$T/late/model.safetensors" bs=1 seek=$((size - 1)) conv=notrunc 2>/dev/null
sed 's/e/o/' "$T/text" >"$T/other-text"
shardwright plan "$T/0" --mesh tp=2 -o "$T/plan" -q 2>/dev/null || exit 1
shardwright plan "$T/0" --mesh tp=2 --no-sp -o "$T/other-plan" -q 2>/dev/null || exit 1

other='is not what rank 0 has'
eval_apart "$T/0" "$T/text" --mesh tp=2 tp=2
[ "$status" -eq 0 ] || complain "the same files"
eval_apart "$T/config" "$T/text" --mesh tp=2 tp=2
refused "rank 1: $T/config: $other"
eval_apart "$T/seed" "$T/text" --mesh tp=2 tp=2
refused "rank 1: $T/seed: $other"
eval_apart "$T/late" "$T/text" --mesh dp=2 dp=2
refused "model.norm.weight: ranks 0 and 1 have read different values"
eval_apart "$T/0" "$T/other-text" --mesh tp=2 tp=2
refused "rank 1: $T/other-text: $other"
eval_apart "$T/0" "$T/text" --plan "$T/plan" "$T/other-plan"
refused "rank 1: the plan: $other"
exit "$failed"
