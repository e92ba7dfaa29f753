#!/bin/sh
# Builds the plugin of a language: build.sh zig|go|pascal|ada FOLDER. pkg-config finds the SDK; set PKG_CONFIG_PATH if
# plugrad is not in the system's prefix. Zig is the command in $ZIG (zig).
set -e
if [ $# -ne 2 ]; then
  echo "build.sh: a language and a folder expected: build.sh zig|go|pascal|ada FOLDER" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
language=$1
mkdir -p "$2"
cd "$2"
pkg-config --exists --print-errors plugrad-sdk
sdk=$(pkg-config --variable=prefix plugrad-sdk)
libraries=$(pkg-config --variable=libdir plugrad-sdk)
plugin=libplugrad-backend-$language.so  # the core looks for files named like this
map=$(pkg-config --variable=map plugrad-sdk)  # exports the entry alone
loops="-L$libraries -lplugrad-loops -lstdc++ -lm -Wl,--version-script=$map"

data() { python3 "$here/generate.py" "$sdk/share/plugrad/abi" "$language" "$1"; }

case $language in
  zig)
    cp "$here/zig/npu.zig" .
    data abi.zig
    ${ZIG:-zig} build-obj npu.zig -O ReleaseFast -fPIC -lc
    c++ -shared -o "$plugin" npu.o $loops
    ;;
  go)
    cp "$here"/go/* .
    # Go's own linker would export each function that C calls.
    CGO_CFLAGS="-I$sdk/include" go build -buildmode=c-archive -o npu.a .
    c++ -shared -o "$plugin" -Wl,--whole-archive npu.a -Wl,--no-whole-archive $loops
    ;;
  pascal)
    cp "$here/pascal/npu.pas" .
    data plugrad.pas
    gcc=$(dirname "$(gcc -print-file-name=libstdc++.so)")
    fpc -v0 -O2 -Cg -o"$plugin" -Fl"$libraries" -Fl"$gcc" npu.pas
    ;;
  ada)
    cp "$here"/ada/* .
    data plugrad.ads
    gcc -c -O2 -fPIC plugrad.ads
    gcc -c -O2 -fPIC npu.adb
    c++ -shared -o "$plugin" npu.o plugrad.o $loops
    ;;
  *)
    echo "build.sh: '$language' is unknown: give zig, go, pascal or ada" >&2
    exit 2
    ;;
esac
