#!/bin/sh
# Checks of the source tree that need no compiler, in a second or two: layers, banned calls, file length, first
# comments, trailing space, links in documents, finding codes and statuses against their pages, READMEs.
# Prints FILE:LINE: what is wrong. Exit: 0 clean, 1 something was found.
set -u
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
findings=$scratch/findings
: >"$findings"

MAX_FILE_LINES=900

report() { cat >>"$findings"; }

# Files that git knows or would add; without git, everything but build folders.
list_files() {
    git ls-files -co --exclude-standard 2>/dev/null || find . -type f -not -path './.git/*' -not -path './build/*' | cut -c3-
}
list_files | LC_ALL=C sort -u | while read -r file; do [ -f "$file" ] && echo "$file"; done >"$scratch/files"
only() { grep -E "$1" "$scratch/files"; }

# FILE:LINE:CODE of C files, without comments and string contents.
code_of() {
    awk '
        FNR == 1 { in_comment = 0 }
        {
            line = $0
            out = ""
            while (line != "") {
                if (in_comment) {
                    at = index(line, "*/")
                    if (at == 0) { line = ""; break }
                    line = substr(line, at + 2)
                    in_comment = 0
                } else if (match(line, /^[^"\/\047]+/)) {
                    out = out substr(line, 1, RLENGTH)
                    line = substr(line, RLENGTH + 1)
                } else if (substr(line, 1, 2) == "/*") {
                    in_comment = 1
                    line = substr(line, 3)
                } else if (substr(line, 1, 2) == "//") {
                    line = ""
                } else if (match(line, /^"([^"\\]|\\.)*"/) && out !~ /^ *#/) {
                    out = out "\"\""
                    line = substr(line, RLENGTH + 1)
                } else if (match(line, /^\047([^\047\\]|\\.)+\047/)) {
                    out = out "0"
                    line = substr(line, RLENGTH + 1)
                } else {
                    out = out substr(line, 1, 1)
                    line = substr(line, 2)
                }
            }
            if (out !~ /^ *$/)
                print FILENAME ":" FNR ":" out
        }' "$@" </dev/null
}

only '\.[ch]$' >"$scratch/c_files"
# shellcheck disable=SC2046
code_of $(cat "$scratch/c_files") >"$scratch/code"
# Libraries: everything in src but the programs.
grep -E '^src/' "$scratch/code" | grep -vE '^src/cli(-mpi)?/' >"$scratch/library_code"

check_layers() {
    for dir in src/*/; do
        layer=$(basename "$dir")
        allowed=$(sed -n "s/^$layer *: *//p" docs/layers.txt)
        if ! grep -qE "^$layer *:" docs/layers.txt; then
            echo "docs/layers.txt:1: has no line for src/$layer"
            continue
        fi
        grep -E "^src/$layer/[^:]*:[0-9]+: *# *include \"" "$scratch/code" | while IFS= read -r hit; do
            used=$(echo "$hit" | sed -n 's/.*include "\([a-z-]*\)\/.*/\1/p')
            case " $layer base shardwright $allowed " in
            *" $used "*) [ -n "$used" ] || echo "${hit%%: *}: include paths start at src/" ;;
            *) echo "$(echo "$hit" | cut -d: -f1,2): src/$layer may not use src/$used (docs/layers.txt)" ;;
            esac
        done
    done
    # MPI and the math library each have their places on the runtime side.
    grep -E '^(src|include|examples)/.*include <mpi[a-z_]*\.h' "$scratch/code" | grep -vE '^src/(comm|cli-mpi)/' |
        sed 's/:[^:]*$/: this header is for src\/comm and src\/cli-mpi only/'
    grep -E '^(src|include|examples)/.*include <(oneapi\/dnnl\/|cblas|dnnl|mkl|omp)[a-z_]*\.h' "$scratch/code" |
        grep -vE '^src/kernel/' | sed 's/:[^:]*$/: this header is for src\/kernel only/'
}

# banned FILE_OF_CODE "names" "reason"
banned() {
    names=$(echo "$2" | tr ' ' '|')
    grep -E "(^|[^A-Za-z0-9_.>])($names) *\(" "$1" | while IFS= read -r hit; do
        call=$(echo "$hit" | grep -oE "(^|[^A-Za-z0-9_.>])($names) *\(" | head -n 1 | tr -cd 'A-Za-z0-9_')
        echo "$(echo "$hit" | cut -d: -f1,2): $call is not used here: $3"
    done
}

check_calls() {
    banned "$scratch/code" "sprintf vsprintf atoi atol atoll atof strtok alloca rand srand gets" \
        "it cannot report a failure or a size"
    # Tests may: their texts are their own, and the sanitizers watch.
    grep -v '^tests/' "$scratch/code" >"$scratch/shipped_code"
    banned "$scratch/shipped_code" "strcpy strcat stpcpy" "it cannot report a failure or a size"
    banned "$scratch/library_code" "printf fprintf vprintf vfprintf puts fputs putchar perror exit _exit abort" \
        "a library reports through its result"
    grep -v '^src/base/alloc\.c:' "$scratch/library_code" >"$scratch/allocating"
    banned "$scratch/allocating" "malloc calloc realloc free strdup strndup asprintf" "memory goes through base/alloc.h"
    banned "$scratch/library_code" "setlocale putenv setenv srandom random localtime gmtime strerror" \
        "it is not safe with several threads"
}

check_files() {
    while read -r file; do
        lines=$(wc -l <"$file")
        [ "$lines" -le "$MAX_FILE_LINES" ] || echo "$file:$lines: more than $MAX_FILE_LINES lines; split it by its subjects"
        head -n 1 "$file" | grep -q '^/\*' || echo "$file:1: does not open with a comment on what it is for"
    done <"$scratch/c_files"
    only '^(tests/golden|tests/fuzz/corpus|tests/data|tests/parity/data)/|^LICENSE$' >"$scratch/verbatim"
    grep -vxFf "$scratch/verbatim" "$scratch/files" | while read -r file; do
        grep -InE '[[:blank:]]+$' "$file" | sed "s|^\([0-9]*\):.*|$file:\1: trailing space|"
        [ -z "$(tail -c 1 "$file" | tr -d '\n')" ] || ! grep -Iq . "$file" || echo "$file:1: no newline at the end"
    done
    # Spelled apart so that this line does not find itself.
    only '^(src|include|tests|scripts|examples|bench|cmake)/' | grep -vxFf "$scratch/verbatim" | while read -r file; do
        grep -InE '\b(TO''DO|FIX''ME|XX''X)\b' "$file" | sed "s|^\([0-9]*\):.*|$file:\1: unfinished work is written in the tracker|"
    done
    only '\.sh$' | while read -r file; do
        sh -n "$file" 2>&1 | sed "s|^|$file:1: |"
    done
}

# Relative links of Markdown pages lead to files, and their anchors to headings.
check_links() {
    only '\.md$' | while read -r page; do
        folder=$(dirname "$page")
        awk '/^```/ { fenced = !fenced } !fenced { gsub(/`[^`]*`/, ""); print FNR ":" $0 }' "$page" |
            grep -oE '^[0-9]+:|\]\([^)# ]*(#[^)]*)?\)' | while read -r piece; do
            case $piece in
            [0-9]*) line=${piece%:}; continue ;;
            esac
            target=$(echo "$piece" | sed 's/^](\(.*\))$/\1/')
            path=${target%%#*}
            case $target in
            *://* | mailto:*) continue ;;
            '#'*) path=$page ;;
            /*) echo "$page:$line: absolute link $target" ; continue ;;
            *) path=$folder/$path ;;
            esac
            if [ ! -e "$path" ]; then
                echo "$page:$line: link to $target leads nowhere"
            elif [ "${target#*#}" != "$target" ]; then
                headings "$path" | grep -qxF "${target#*#}" || echo "$page:$line: $target: no such heading"
            fi
        done
    done
}

# Anchors of a page, as hosts of Markdown make them from headings.
headings() {
    sed -n 's/^##* *//p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Codes, statuses and folders against the pages that describe them. A finding's code stands after its severity.
check_pages() {
    page=docs/reference/findings.md
    if [ -f "$page" ]; then
        # shellcheck disable=SC2046
        finding_codes $(grep '^src/' "$scratch/c_files") | LC_ALL=C sort -u | while read -r code; do
            grep -qF "\`$code\`" "$page" || echo "$page:1: finding code $code is not described"
        done
    fi
    page=docs/reference/exit-codes.md
    if [ -f "$page" ]; then
        grep -oE '^ +SW_(OK|E_[A-Z_]+)' include/shardwright/error.h | tr -d ' ' | while read -r name; do
            grep -qF "\`$name\`" "$page" || echo "$page:1: status $name is not described"
        done
    fi
    for dir in src/*/; do
        [ -f "$dir/README.md" ] || echo "${dir}README.md:1: missing: what is here, what is not, where to start reading"
    done
}

finding_codes() {
    cat "$@" </dev/null | tr '\n' ' ' | grep -oE 'SW_SEVERITY_(NOTE|WARNING|ERROR), *"[a-z0-9_]+"' |
        grep -oE '"[a-z0-9_]+"$' | tr -d '"'
}

check_layers | report
check_calls | report
check_files | report
check_links | report
check_pages | report

if [ -s "$findings" ]; then
    LC_ALL=C sort -u "$findings"
    echo "check: $(LC_ALL=C sort -u "$findings" | wc -l) findings" >&2
    exit 1
fi
