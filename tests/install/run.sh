#!/bin/sh
# Install the shared and the static package into scratch folders, move each, and build and run the examples
# against it in both ways: pkg-config with a plain compiler, and find_package.
#   tests/install/run.sh SCRATCH_FOLDER SW_RUNTIME
set -eu
scratch=$1
runtime=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
model=$root/examples/models/llama-3.2-1b
cc=${CC:-cc}
rm -rf "$scratch"
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)

fail() {
    echo "install: $*"
    exit 1
}

run_quietly() {
    "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "$1 failed"; }
}

# check_output PROGRAM: what the example prints, line by line.
check_output() {
    "$1" "$model" dp=2,tp=4 model.layers.0. >"$scratch/printed" || fail "$1 exited with $?"
    diff -u --label expected --label printed "$root/tests/install/plan_model.txt" "$scratch/printed" || fail "$1 prints something else"
}

# check_plugin PROGRAM PLUGIN: an override names its function.
check_plugin() {
    "$1" plan "$model" --mesh tp=4 --overrides "$root/examples/plugin.yaml" --plugin "$2" >"$scratch/printed" ||
        fail "$1 does not take $2"
    grep -q 'computed by acme_mlp (local_compute)' "$scratch/printed" || fail "$2 is not named in the plan"
}

# try KIND BUILD_SHARED_LIBS BUILD_TYPE
try() {
    kind=$1
    build=$scratch/build-$kind
    run_quietly cmake -S "$root" -B "$build" -G Ninja -DBUILD_SHARED_LIBS="$2" -DCMAKE_BUILD_TYPE="$3" \
        -DSW_TESTS=OFF -DSW_WERROR=ON -DSW_RUNTIME="$runtime" -DCMAKE_INSTALL_PREFIX="$scratch/first-$kind"
    run_quietly cmake --build "$build"
    run_quietly cmake --install "$build"

    # A package can be moved.
    prefix=$scratch/$kind
    mv "$scratch/first-$kind" "$prefix"
    pc=$(find "$prefix" -name shardwright.pc)
    lib=$(dirname "$(dirname "$pc")")
    export PKG_CONFIG_PATH="$(dirname "$pc")" LD_LIBRARY_PATH="$lib"
    ! grep -rIl "$scratch" "$prefix" || fail "the files above hold an absolute path"

    # shellcheck disable=SC2046
    run_quietly "$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror "$root/examples/plan_model.c" \
        $(pkg-config --cflags --libs shardwright) -o "$scratch/plan_model-pc-$kind"
    check_output "$scratch/plan_model-pc-$kind"
    # shellcheck disable=SC2046
    run_quietly "$cc" -std=c99 -Wall -Wextra -Wpedantic -Werror -shared -fPIC "$root/examples/plugin.c" \
        $(pkg-config --cflags shardwright) -o "$scratch/plugin-pc-$kind.so"
    check_plugin "$prefix/bin/shardwright" "$scratch/plugin-pc-$kind.so"

    run_quietly cmake -S "$root/examples" -B "$scratch/examples-$kind" -G Ninja -DCMAKE_PREFIX_PATH="$prefix"
    run_quietly cmake --build "$scratch/examples-$kind"
    check_output "$scratch/examples-$kind/plan_model"
    check_plugin "$prefix/bin/shardwright" "$scratch/examples-$kind/plugin.so"

    "$prefix/bin/shardwright" --version >/dev/null || fail "the installed program does not run"
    for page in "$root"/docs/man/*.1; do
        case $runtime,$page in OFF,*/shardwright-mpi*) continue ;; esac
        [ ! -f "$page" ] || [ -f "$prefix/share/man/man1/$(basename "$page")" ] || fail "no manual $(basename "$page")"
    done
}

try shared ON RelWithDebInfo
ldd "$scratch/plan_model-pc-shared" | grep -q 'libshardwright\.so' || fail "the shared library was not used"
try static OFF Debug
! ldd "$scratch/plan_model-pc-static" | grep -q 'libshardwright\.so' || fail "the static library was not used"
rm -rf "$scratch"
