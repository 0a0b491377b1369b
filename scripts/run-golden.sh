#!/bin/sh
# Run one golden case and compare what it prints with what it should print.
#
#   scripts/run-golden.sh BIN_FOLDER CASE_FOLDER [--accept]
#
# CASE_FOLDER holds  cmd     a shell line, run from the source root with BIN_FOLDER first in PATH
#                    stdout  exactly what it prints (absent: nothing)
#                    stderr  exactly what it reports (absent: not compared)
#                    status  its exit status (absent: 0)
#                    needs   optional: paths that must exist; without them the case is skipped (exit 77)
# $T in cmd is a fresh empty folder. $SW_SHARED and $T are written in the outputs by these names.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
bin=$(cd "$1" && pwd)
case_dir=$(cd "$2" && pwd)
accept=${3:-}

export SW_SHARED="${SW_SHARED:-../shared}" LC_ALL=C NO_COLOR=1 COLUMNS=100 PATH="$bin:$PATH"
T=$(mktemp -d)
export T
scratch=$(mktemp -d)
trap 'rm -rf "$T" "$scratch"' EXIT
cd "$root"

if [ -f "$case_dir/needs" ]; then
    while read -r path; do
        path=$(eval "echo $path")
        [ -e "$path" ] || { echo "skipped: $path is not here"; exit 77; }
    done <"$case_dir/needs"
fi

status=0
sh -c "$(cat "$case_dir/cmd")" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
for stream in out err; do
    sed -e "s|$T|\$T|g" -e "s|$SW_SHARED|\$SW_SHARED|g" "$scratch/$stream" >"$scratch/std$stream"
done

if [ "$accept" = --accept ]; then
    cp "$scratch/stdout" "$case_dir/stdout"
    cp "$scratch/stderr" "$case_dir/stderr"
    echo "$status" >"$case_dir/status"
    for file in stdout stderr; do
        [ -s "$case_dir/$file" ] || [ "$file" = stderr ] || rm -f "$case_dir/$file"
    done
    exit 0
fi

failed=0
want=0
[ ! -f "$case_dir/status" ] || want=$(cat "$case_dir/status")
if [ "$status" -ne "$want" ]; then
    echo "exit status $status, expected $want"
    cat "$scratch/stderr"
    failed=1
fi
expected=/dev/null
[ ! -f "$case_dir/stdout" ] || expected=$case_dir/stdout
diff -u --label expected/stdout --label stdout "$expected" "$scratch/stdout" || failed=1
if [ -f "$case_dir/stderr" ]; then
    diff -u --label expected/stderr --label stderr "$case_dir/stderr" "$scratch/stderr" || failed=1
fi
[ "$failed" -eq 0 ] || echo "the case: $case_dir/cmd (scripts/accept-golden.sh rewrites it)"
exit "$failed"
