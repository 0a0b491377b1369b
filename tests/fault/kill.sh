#!/bin/sh
# Crash safety of shard, merge and reshard. Each is killed, or its disk fails, at every single call that changes the
# disk (SW_FAULT of base/disk.h), and it is killed at random moments. After each of them the output is absent, the
# old one, or the right one, bit for bit; a rerun completes; and nothing partial stays behind it.
#   tests/fault/kill.sh BIN_FOLDER [--long]
# Exit: 0 it holds, 1 it does not.
set -eu
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
long=${2:-}
export PATH="$bin:$PATH" LC_ALL=C

# Memory is a disk that answers at once: the order of calls is what is tested here, not the device.
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
    T=$(mktemp -d /dev/shm/shardwright-fault-XXXXXX)
else
    T=$(mktemp -d)
fi
trap 'rm -rf "$T"' EXIT
failed=0
n_points=0

fail() {
    echo "FAILED: $*"
    failed=1
}

# Warnings about what the models are like are no matter here.
quietly() { "$@" -q >"$T/said" 2>&1 || { cat "$T/said"; exit 1; }; }

# ---- models and what should come out ----

quietly shardwright init tests/data/models/tiny-llama --layers 1 -o "$T/model"
quietly shardwright init tests/data/models/tiny-mixtral --layers 1 -o "$T/experts"
quietly shardwright shard "$T/model" --mesh tp=2 -o "$T/shards"
quietly shardwright shard "$T/experts" --mesh tp=2 --ep 2 -o "$T/expert-shards"
quietly shardwright shard "$T/model" --mesh tp=1 -o "$T/old"
quietly shardwright verify "$T/shards" --against "$T/model"
quietly shardwright verify "$T/expert-shards" --against "$T/experts"

# Each case: a name and the command without -o.
cases() {
    echo "shard shard $T/model --mesh tp=4"
    echo "merge merge $T/shards --max-shard-size 20KB"
    echo "reshard reshard $T/shards --mesh tp=4"
    if [ -n "$long" ]; then
        echo "shard-experts shard $T/experts --mesh dp=2,tp=2 --ep 4"
        echo "merge-experts merge $T/expert-shards"
        echo "reshard-experts reshard $T/expert-shards --mesh tp=2,ep=2"
    fi
}

out=$T/out
reset() { # absent or old
    rm -rf "$out" "$out".partial-*
    [ "$1" = absent ] || cp -R "$T/old" "$out"
}
has_partial() { ls -d "$out".partial-* >/dev/null 2>&1; }

# What the output is: absent, old, right, or wrong.
state() {
    if [ ! -e "$out" ]; then
        echo absent
    elif diff -r "$out" "$T/right-$1" >/dev/null 2>&1; then
        echo right
    elif diff -r "$out" "$T/old" >/dev/null 2>&1; then
        echo old
    else
        echo wrong
    fi
}

# The output after a fault: what was there before, or the right one.
expect_sound() { # NAME BEFORE WHERE
    now=$(state "$1")
    case $now in
    right | "$2") ;;
    *) fail "$1 ($2): the output is $now after $3" ;;
    esac
}

expect_rerun() { # NAME WHERE COMMAND...
    name=$1
    where=$2
    shift 2
    "$@" --replace -o "$out" -q 2>"$T/said" || fail "$name: the rerun after $where fails: $(cat "$T/said")"
    [ "$(state "$name")" = right ] || fail "$name: the output is $(state "$name") after $where and a rerun"
    ! has_partial || fail "$name: a partial folder is left after $where and a rerun"
}

# What a kill left behind, under a name that says nothing: whoever reads it finds all of the model, or refuses it. It
# can also be what is left of the old output, after the two were exchanged: that one is of $T/model.
expect_no_half() { # NAME WHERE
    has_partial || return 0
    case $1 in *experts) model=$T/experts ;; tall-*) model=$T/tall ;; *) model=$T/model ;; esac
    rm -rf "$T/renamed"
    mv "$out".partial-* "$T/renamed"
    if shardwright ls "$T/renamed" >/dev/null 2>&1 && ! shardwright diff "$T/renamed" "$T/model" -q >/dev/null 2>&1 &&
        ! shardwright diff "$T/renamed" "$model" -q >"$T/said" 2>&1; then
        fail "$1: what $2 left is read as a checkpoint: $(cat "$T/said")"
    fi
    mv "$T/renamed" "$out.partial-1"
}

# ---- at every call ----

# Kill at call number n of those that change the disk, for every n that there is.
kill_everywhere() { # NAME BEFORE FLAG COMMAND...
    name=$1
    before=$2
    flag=$3
    shift 3
    n=0
    while :; do
        reset "$before"
        status=0
        # shellcheck disable=SC2086
        SW_FAULT=any:after=$n:kill "$@" $flag -o "$out" -q >/dev/null 2>&1 || status=$?
        expect_sound "$name" "$before" "a kill at call $n"
        if [ "$status" -eq 0 ]; then
            [ "$(state "$name")" = right ] || fail "$name: done, but the output is $(state "$name")"
            break
        fi
        [ "$status" -eq 137 ] || fail "$name: exit $status at call $n, expected a kill"
        expect_no_half "$name" "a kill at call $n"
        expect_rerun "$name" "a kill at call $n" "$@"
        n=$((n + 1))
    done
    n_points=$((n_points + n))
    echo "$name ($before): killed at each of $n calls"
}

# A full disk at each call: told, and taken away.
fail_everywhere() { # NAME BEFORE FLAG COMMAND...
    name=$1
    before=$2
    flag=$3
    shift 3
    for call in mkdir create allocate write sync rename; do
        n=0
        while :; do
            reset "$before"
            status=0
            # shellcheck disable=SC2086
            SW_FAULT=$call:after=$n:error=ENOSPC "$@" $flag -o "$out" -q >"$T/said" 2>&1 || status=$?
            [ "$status" -ne 0 ] || break
            [ "$status" -eq 3 ] || fail "$name: exit $status when $call $n fails, expected 3: $(cat "$T/said")"
            grep -q 'No space left on device' "$T/said" || fail "$name: $call $n fails, and it says: $(cat "$T/said")"
            now=$(state "$name")
            # The last sync of the folder above comes when the output has its name already.
            [ "$now" = "$before" ] || { [ "$now" = right ] && [ "$call" = sync ]; } ||
                fail "$name ($before): the output is $now when $call $n fails"
            [ "$now" = right ] || ! has_partial || fail "$name: a partial folder is left when $call $n fails"
            n=$((n + 1))
        done
        [ "$(state "$name")" = right ] || fail "$name: done, but the output is $(state "$name")"
        n_points=$((n_points + n))
    done
    echo "$name ($before): no space at each call"
}

while read -r name command; do
    # shellcheck disable=SC2086
    quietly shardwright $command -o "$T/right-$name"
    # shellcheck disable=SC2086
    kill_everywhere "$name" absent "" shardwright $command
    # shellcheck disable=SC2086
    kill_everywhere "$name" old --replace shardwright $command
    # shellcheck disable=SC2086
    fail_everywhere "$name" absent "" shardwright $command
    # shellcheck disable=SC2086
    fail_everywhere "$name" old --replace shardwright $command
done <<CASES
$(cases)
CASES

# ---- at random moments ----

now_ms() { date +%s%3N; }

quietly shardwright init tests/data/models/tiny-llama --layers 200 -o "$T/tall"
quietly shardwright shard "$T/tall" --mesh tp=2 -o "$T/tall-shards"
wanted=${long:+150} # kills of each command
wanted=${wanted:-20}
seed=${SW_SEED:-1}
echo "random kills: seed $seed"

kill_at_random() { # NAME COMMAND...
    name=$1
    shift
    start=$(now_ms)
    quietly "$@" -o "$T/right-$name"
    span=$(($(now_ms) - start + 1))
    first_span=$span
    i=0
    n_killed=0
    while [ "$n_killed" -lt "$wanted" ] && [ "$i" -lt $((4 * wanted)) ]; do
        before=absent
        flag=
        [ $((i % 2)) -eq 0 ] || { before=old; flag=--replace; }
        delay=$(awk -v seed="$seed$i$name" -v span="$span" 'BEGIN {
            for (k = 1; k <= length(seed); k++) h = (h * 31 + index("0123456789abcdefghijklmnopqrstuvwxyz-", substr(seed, k, 1))) % 1000003
            printf "%.4f", (h % 1000) / 1000 * span / 1000 + 0.0005 }')
        reset "$before"
        status=0
        # timeout(1) would not wait until the killed process is gone, and with it its locks.
        # shellcheck disable=SC2086
        "$@" $flag -o "$out" -q >/dev/null 2>&1 &
        pid=$!
        sleep "$delay"
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || status=$?
        expect_sound "$name" "$before" "a kill after $delay s"
        if [ "$status" -ne 0 ]; then
            n_killed=$((n_killed + 1))
        else
            span=$((span * 4 / 5 + 1)) # it was over before: the machine is less busy now
        fi
        expect_no_half "$name" "a kill after $delay s"
        expect_rerun "$name" "a kill after $delay s" "$@"
        i=$((i + 1))
    done
    n_points=$((n_points + n_killed))
    [ "$n_killed" -eq "$wanted" ] || fail "$name: only $n_killed of $i runs were killed"
    echo "$name: $n_killed of $i runs of $first_span ms killed at random moments"
}
kill_at_random tall-shard shardwright shard "$T/tall" --mesh tp=4
kill_at_random tall-merge shardwright merge "$T/tall-shards"
kill_at_random tall-reshard shardwright reshard "$T/tall-shards" --mesh tp=4

# ---- what is no crash ----

# Asked to stop, it takes its partial folder away and ends by the signal.
reset absent
status=0
timeout -s TERM 0.01 shardwright shard "$T/tall" --mesh tp=8 -o "$out" -q >/dev/null 2>&1 || status=$?
! has_partial || fail "SIGTERM leaves a partial folder"

# A reader never takes a partial folder for a checkpoint.
reset absent
SW_FAULT=rename:after=0:kill shardwright shard "$T/model" --mesh tp=2 -o "$out" -q >/dev/null 2>&1 || true
partial=$(ls -d "$out".partial-*)
for command in "verify $partial" "ls $partial" "merge $partial -o $T/x"; do
    # shellcheck disable=SC2086
    if shardwright $command >"$T/said" 2>&1; then
        fail "'$command' takes a partial folder"
    fi
    grep -q 'unfinished output' "$T/said" || fail "'$command' says: $(cat "$T/said")"
done

# A file system that is too small is told of before anything is written.
small=$T/small
mkdir "$small"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=200k tmpfs "$small" 2>/dev/null; then
    trap 'umount "$small" 2>/dev/null || true; rm -rf "$T"' EXIT
    status=0
    shardwright shard "$T/tall" --mesh tp=2 -o "$small/out" -q >"$T/said" 2>&1 || status=$?
    [ "$status" -eq 3 ] || fail "too small a disk: exit $status, expected 3"
    grep -q 'needs [0-9]* bytes, [0-9]* are free' "$T/said" || fail "too small a disk: it says $(cat "$T/said")"
    [ -z "$(ls -A "$small")" ] || fail "too small a disk: something is left: $(ls -A "$small")"
    umount "$small"
else
    echo "a disk that is too small: skipped, nothing can be mounted here"
fi

[ "$failed" -ne 0 ] || echo "$n_points faults, each left the output absent, old or right, and a rerun completed"
exit "$failed"
