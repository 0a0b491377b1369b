#!/bin/sh
# Format every C file with the project's .clang-format; with --check only say what differs.
# Exit: 0 clean, 1 differences, 77 no clang-format 14 here (another version would format some lines differently).
set -eu
cd "$(dirname "$0")/.."
tool=${CLANG_FORMAT:-clang-format}

if ! "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
    echo "skipped: $tool 14 is not here"
    exit 77
fi
mode="-i"
[ "${1:-}" != --check ] || mode="--dry-run -Werror"
# shellcheck disable=SC2086
find src include tests examples bench -name '*.[ch]' -print0 | xargs -0 -r "$tool" $mode
