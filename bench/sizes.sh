#!/bin/bash
# Prints the megabytes that a C++ program needs to run a language model: examples/llm, the core, the plugin cpu and the
# libraries that they load, stripped; and those of libtorch, if bench/install_peers.sh installed libtorch.
# sizes.sh [BUILD]    BUILD: a finished build, by default build
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/prefix" > /dev/null
cmake -S examples -B "$folder/examples" -DCMAKE_PREFIX_PATH="$folder/prefix" > "$folder/log"
cmake --build "$folder/examples" --target llm > "$folder/log"

# The libraries that a file loads and that a minimal Debian lacks.
loaded_by() {
  local system='/libplugrad|/lib(c|m|pthread|dl|rt)[.]so|/ld-linux'
  ldd "$1" | awk '$3 ~ "^/" {print $3}' | grep -v -E "$system" || true
}

megabytes() {
  awk -v bytes="$1" -v name="$2" 'BEGIN {printf "%9.1f MB  %s\n", bytes / 1e6, name}'
}

print_sizes() {
  mapfile -t files < <(realpath "$@" | sort -u)
  mkdir -p "$folder/stripped"
  total=0
  for each in "${files[@]}"; do
    strip -o "$folder/stripped/file" "$each" 2> /dev/null || cp "$each" "$folder/stripped/file"
    bytes=$(stat -c %s "$folder/stripped/file")
    total=$((total + bytes))
    megabytes "$bytes" "$(basename "$each")"
  done
  megabytes "$total" together
}

core=$(find "$folder/prefix" -name 'libplugrad.so')
cpu=$(find "$folder/prefix" -name 'libplugrad-backend-cpu.so')
echo "plugrad:"
# shellcheck disable=SC2046  # paths without blanks
print_sizes "$folder/examples/llm" "$core" "$cpu" $(loaded_by "$folder/examples/llm") $(loaded_by "$cpu")

torch=$(find build-peers/venv/lib -name libtorch_cpu.so 2> /dev/null | head -1)
if [ -n "$torch" ]; then
  echo "libtorch, for the CPU alone:"
  lib=$(dirname "$torch")
  # shellcheck disable=SC2046
  print_sizes "$torch" "$lib/libtorch.so" "$lib/libc10.so" $(loaded_by "$torch" | grep -v -i -e cuda -e nvidia -e cupti)
fi
