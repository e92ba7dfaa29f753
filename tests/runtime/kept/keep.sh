#!/bin/bash
# Keeps plugins of the current contract as binaries: keep.sh BUILD, after a build of the plugin c11. Run it and commit its
# output whenever the layout of abi.h changes; older files stay.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")"
source=../../..
machine=$(uname -m)
layout=$(sed -n 's/^#define PLUGRAD_LAYOUT_0 0x\([0-9a-f]*\)ull.*/\1/p' $source/sdk/include/plugrad/sdk/abi.h)
strip -o "c11-$layout-$machine.so" "$build/test-plugins/libplugrad-backend-c11.so"
c++ -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -fvisibility-inlines-hidden -I $source/sdk/include \
  $source/examples/plugin/npu.cpp -Wl,--version-script=$source/sdk/plugin.map -Wl,-z,defs,-z,now,-z,relro -s \
  -o "npu-$layout-$machine.so"
ls -l ./*"$layout"*
