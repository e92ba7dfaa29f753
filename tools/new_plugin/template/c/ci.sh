#!/bin/sh
# Builds the plugin and runs its tests. Needs CMake 3.25, compilers for C and C++20 and plugrad's SDK;
# -DCMAKE_PREFIX_PATH=PREFIX says where plugrad is installed, unless that is the system's prefix.
set -e
cd "$(dirname "$0")"
cmake -S . -B build "$@"
cmake --build build
ctest --test-dir build --output-on-failure
