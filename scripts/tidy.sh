#!/bin/sh
# clang-tidy over one folder of src/ (or all), with the compile commands of a build folder.
#   scripts/tidy.sh BUILD [FOLDER]
# Exit: 0 clean, 1 warnings, 77 no clang-tidy 14 here (another version has other checks).
set -eu
cd "$(dirname "$0")/.."
build=$1
folder=${2:-.}
tool=${CLANG_TIDY:-clang-tidy}

if ! "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "skipped: $tool 14 is not here"
    exit 77
fi
find "src/$folder" -name '*.c' | LC_ALL=C sort | xargs -r -n 4 "$tool" --quiet -p "$build"
