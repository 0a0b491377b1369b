#!/bin/sh
# The main jobs on what the project holds itself: plan a published model, make a small one with random weights, train
# it for about a minute on the project's own pages, go on writing where a page begins, prove the plan of four ranks, and take
# the first steps once more on them.
#   scripts/demo.sh BIN_FOLDER [STEPS]
# Everything is written to a new folder, which the last line names; curve.svg there is the loss, drawn.
set -eu
cd "$(dirname "$0")/.."
bin=$1
steps=${2:-1300}
out=${SW_DEMO_OUT:-$(mktemp -d "${TMPDIR:-/tmp}/shardwright-demo.XXXXXX")}
mkdir -p "$out"

# Show a command as it can be typed, and run it.
run() {
    echo
    printf '$'
    for word in "$@"; do
        case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "${word##"$bin"/}" ;; esac
    done
    printf '\n'
    "$@"
}

run "$bin/shardwright" plan "${MODEL:-examples/models/llama-3.2-1b}" --mesh "${MESH:-dp=2,tp=4}"
[ -x "$bin/shardwright-mpi" ] || exit 0

cat README.md docs/*.md docs/concepts/*.md docs/reference/*.md docs/decisions/*.md 2>/dev/null >"$out/pages.txt" || true
run "$bin/shardwright" init examples/models/byte-llama -o "$out/random" --seed 1
run "$bin/shardwright-mpi" train "$out/random" --text "$out/pages.txt" --steps "$steps" --lr 3e-3 --warmup 20 \
    --batch 8 --seq-len 128 --save "$out/trained" --csv "$out/curve.csv" --svg "$out/curve.svg"
run "$bin/shardwright-mpi" generate "$out/trained" --prompt-text 'A plan is ' --max-new 120 --temperature 0.7 --seed 1
echo
awk -F, 'NR == 2 { first = $2 } { last = $2 } END { printf "loss %.2f at the first step, %.2f at the last\n", first, last }' "$out/curve.csv"

echo
echo "Four ranks, cp=2, tp=2: the plan proved, then the same first steps on one rank and on four"
run sh scripts/mpi-run.sh 4 "$bin/shardwright-mpi" check "$out/random" --mesh cp=2,tp=2
for mesh in tp=1 cp=2,tp=2; do
    ranks=1
    [ "$mesh" = tp=1 ] || ranks=4
    run sh scripts/mpi-run.sh "$ranks" "$bin/shardwright-mpi" train "$out/random" --text "$out/pages.txt" --steps 5 --lr 3e-3 \
        --batch 8 --seq-len 128 --mesh "$mesh" --save "$out/steps-$mesh" --quiet
done
run "$bin/shardwright" verify "$out/steps-cp=2,tp=2"
run "$bin/shardwright" merge "$out/steps-cp=2,tp=2" -o "$out/merged" -q
run "$bin/shardwright-mpi" eval "$out/merged" --text LICENSE --quiet
echo "everything is in $out"
