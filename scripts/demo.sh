#!/bin/bash
# Trains a network in one command on a bare Debian 12, as root or with sudo. Installs missing packages, builds into
# build/, trains on Fashion-MNIST with the CPU plugin, and writes a checkpoint, a picture and results.json to build/demo/.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh build data

. scripts/ccache.sh

mkdir -p build/demo
log=build/demo/build.log
options=(-DCMAKE_BUILD_TYPE=Release)
# A new tree builds only the parts that the demo runs: the core, two plugins, the program, and kernels for this machine
# alone. A configured tree keeps its settings.
if [ ! -e build/CMakeCache.txt ]; then
  options+=(-DPLUGRAD_TESTS=OFF -DPLUGRAD_BENCH=OFF -DPLUGRAD_CUDA=OFF -DPLUGRAD_VULKAN=OFF -DPLUGRAD_AUTHOR_TOOLS=OFF
            -DPLUGRAD_CPU_SIMD=native -DPLUGRAD_CPU_LINALG=OFF)
fi
echo "building into build/ (the log: $log)"
started=$SECONDS
if ! cmake -G Ninja -B build -S . "${options[@]}" >"$log" 2>&1 ||
   ! cmake --build build --parallel "$(nproc)" --target plugrad-cli plugrad-backend-cpu plugrad-backend-reference \
     >>"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "demo.sh: the build failed; see $log" >&2
  exit 1
fi
echo "built in $((SECONDS - started)) s"
if grep -q '^PLUGRAD_CPU_SIMD:.*=native$' build/CMakeCache.txt; then
  lacks=
  if grep -q '^PLUGRAD_CPU_LINALG:.*=OFF$' build/CMakeCache.txt; then lacks=", and no linear algebra"; fi
  echo "the CPU plugin has kernels for this machine's instructions alone$lacks;" \
       "cmake --preset release configures a full build"
fi

build/bin/plugrad backends
build/bin/plugrad train --data fashion-mnist --device cpu --out build/demo

field() {  # field NAME: prints a field's value in results.json, which has one field per line
  sed -n "s/^  \"$1\": //p" build/demo/results.json | sed 's/,$//; s/^"//; s/"$//'
}
if [ "$(field plugin_mapped)" = null ]; then
  echo "demo.sh: the training process had no plugin file mapped" >&2
  exit 1
fi
echo
awk -v accuracy="$(field test_accuracy)" -v epochs="$(field epochs)" -v seconds="$(field seconds)" \
    -v rate="$(field images_per_second)" 'BEGIN {
  printf "test accuracy  %.2f%% after %d epochs\n", 100 * accuracy, epochs
  printf "time           %.1f s, including reading the data; %d images/s\n", seconds, rate
}'
echo "device         $(field device): $(field device_description)"
echo "plugin         $(field plugin)"
echo "mapped into the process:"
echo "  $(field plugin_mapping)"
echo "picture        build/demo/loss.svg"
echo "try            build/bin/plugrad eval --checkpoint build/demo/checkpoint.safetensors"
