#!/bin/sh
# clang-tidy over src/ (or one folder of it), with the compile commands of a build folder. A file that was clean
# is passed over until it, a header or .clang-tidy changes.
#   scripts/tidy.sh [--analyze] BUILD [FOLDER]
# --analyze: also the checks that walk all paths of a function, which take thirty times as long (make ci-long).
# Exit: 0 clean, 1 warnings, 77 no clang-tidy 14 here (another version has other checks).
set -eu
cd "$(dirname "$0")/.."
checks='-clang-analyzer-*'
name=tidy
if [ "$1" = --analyze ]; then
    checks=
    name=analyze
    shift
fi
build=$1
folder=${2:-}
jobs=${SW_JOBS:-$(nproc)}
tool=${CLANG_TIDY:-clang-tidy}

if ! "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "skipped: $tool 14 is not here"
    exit 77
fi
stamps=$build/$name
mkdir -p "$stamps"
common=$(find src include -name '*.h' -print0 | LC_ALL=C sort -z | xargs -0 cat .clang-tidy | sha1sum | cut -c1-16)

# Files whose stamp is missing, as FILE STAMP.
find "src/$folder" -name '*.c' | LC_ALL=C sort | while read -r file; do
    stamp=$stamps/$common-$(sha1sum <"$file" | cut -c1-16)
    [ -e "$stamp" ] || echo "$file $stamp"
done >"$stamps/todo$folder"

# The largest first, so that no job is left alone with them. The inner shell stamps what was clean.
# shellcheck disable=SC2016
while read -r file stamp; do
    echo "$(wc -l <"$file") $file $stamp"
done <"$stamps/todo$folder" | sort -rn | cut -d' ' -f2- |
    xargs -r -P "$jobs" -n 2 sh -c '"$0" --quiet --checks="$2" -p "$1" "$3" 2>/dev/null && : >"$4"' "$tool" "$build" "$checks"
