#!/bin/sh
# Lint the manuals, and compare the options of each command's --help with its manual page.
#   scripts/manuals.sh [BIN_FOLDER]      (programs that are not there are passed over)
# Exit: 0 clean, 1 findings, 77 no mandoc here.
set -eu
cd "$(dirname "$0")/.."
bin=${1:-}
failed=0

pages=$(find docs/man -name '*.[1357]' | LC_ALL=C sort)
if [ -z "$pages" ]; then
    echo "skipped: no manuals yet"
    exit 77
fi
if ! command -v mandoc >/dev/null 2>&1; then
    echo "skipped: mandoc is not here"
    exit 77
fi
# Advice about things that only a system's own pages have (a link to every page of a section) is left out.
# shellcheck disable=SC2086
mandoc -T lint -W style $pages 2>&1 | grep -vE 'referenced manual not found|operating system explicitly specified' && failed=1

# Long options as words: of a help text, and of the OPTIONS of a manual (mdoc writes "--" as Fl Fl or Fl -).
options_of_help() { "$bin/$1" "$2" --help | grep -oE -- '--[a-z][a-z0-9-]*' | LC_ALL=C sort -u; }
options_of_manual() { mandoc -T ascii "$1" | col -b | grep -oE -- '--[a-z][a-z0-9-]*' | LC_ALL=C sort -u; }

if [ -n "$bin" ]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    for page in docs/man/shardwright-*.1; do
        [ -f "$page" ] || continue
        command=$(basename "$page" .1)
        case $command in
        shardwright-mpi) continue ;;
        shardwright-mpi-*) program=shardwright-mpi ;;
        *) program=shardwright ;;
        esac
        [ -x "$bin/$program" ] || continue
        command=${command#"$program"-}
        options_of_help "$program" "$command" >"$scratch/help"
        options_of_manual "$page" >"$scratch/manual"
        diff -u --label "$command --help" --label "$page" "$scratch/help" "$scratch/manual" || failed=1
    done
fi
exit "$failed"
