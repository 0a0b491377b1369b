#!/bin/sh
# A public header compiles by itself, with every warning an error, in C99, C17 and C++17.
#   tests/headers/compile-alone.sh C_COMPILER HEADER
set -eu
cc=$1
header=$2
case $cc in
*clang*) cxx=${cc%clang*}clang++${cc##*clang} ;;
*) cxx=${CXX:-c++} ;;
esac
flags="-Wall -Wextra -Wpedantic -Wundef -Werror -Iinclude -fsyntax-only"

for standard in c99 c17; do
    echo "#include \"shardwright/$header\"" | "$cc" -std=$standard -Wstrict-prototypes $flags -x c -
done
echo "#include \"shardwright/$header\"" | "$cxx" -std=c++17 $flags -x c++ -
