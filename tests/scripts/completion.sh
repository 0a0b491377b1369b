#!/bin/sh
# Completion offers every command, and every option of each command's --help.
#   tests/scripts/completion.sh BIN_FOLDER
# Exit: 0 it does, 1 it does not, 77 no bash here.
set -eu
cd "$(dirname "$0")/../.."
bin=$(cd "$1" && pwd)
command -v bash >/dev/null 2>&1 || { echo "skipped: bash is not here"; exit 77; }
export PATH="$bin:$PATH"
failed=0

# What is offered for a line whose last word is being written.
complete_line() {
    bash -c '
        . scripts/completion/shardwright.bash
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _shardwright "$1"
        printf "%s\n" "${COMPREPLY[@]}"' completion "$@"
}

expect() { # expect WANTED WORD...: the offer for these words, on one line
    wanted=$1
    shift
    offered=$(complete_line "$@" | LC_ALL=C sort | tr '\n' ' ' | sed 's/ *$//')
    [ "$offered" = "$wanted" ] && return
    printf 'for: %s\n  offered:  %s\n  expected: %s\n' "$*" "$offered" "$wanted"
    failed=1
}

# Each command of a program has a manual.
commands_of() {
    for page in docs/man/"$1"-*.1; do
        basename "$page" .1 | sed "s/^$1-//"
    done | grep -v '^mpi' | LC_ALL=C sort
}

expect_program() { # expect_program PROGRAM: its commands, and the options of each
    expect "--help --version $(commands_of "$1" | tr '\n' ' ' | sed 's/ *$//')" "$1" ""
    for command in $(commands_of "$1"); do
        # The table's lines only: the description may speak of other commands' options.
        listed=$("$1" "$command" --help | sed -n '/^Options:/,/^$/p' | grep -oE -- '--[a-z][a-z0-9-]*' |
            LC_ALL=C sort -u | tr '\n' ' ' | sed 's/ *$//')
        expect "$listed" "$1" "$command" --
    done
}

expect_program shardwright
[ ! -x "$bin/shardwright-mpi" ] || expect_program shardwright-mpi
expect "explain" shardwright ex
expect "--loss-parallel" shardwright plan MODEL --lo
expect "README.md" shardwright plan READ
expect "README.md" shardwright plan MODEL --overrides READ
expect "README.md" shardwright plan MODEL -o READ
expect "README.md" shardwright shard MODEL --plan READ
expect "examples" shardwright shard MODEL --mesh tp=2 -o exam
expect "README.md" shardwright verify IN --against READ
expect "" shardwright plan MODEL --mesh READ
expect "" shardwright plan MODEL --nothing
exit "$failed"
