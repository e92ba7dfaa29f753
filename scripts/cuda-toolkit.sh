#!/bin/bash
# Downloads nvcc, so that any machine can compile the CUDA plugin: about 300 MB by pip, without root and without a GPU.
#   cuda-toolkit.sh [FOLDER]    by default build/cuda-toolkit
# The last line of its output is the setting that cmake needs: export CUDACXX=/.../bin/nvcc
set -euo pipefail
cd "$(dirname "$0")/.."

version=13.0
folder=$(realpath -m "${1:-build/cuda-toolkit}")
root=$folder/nvidia/cu${version%%.*}
nvcc=$root/bin/nvcc

works() {  # returns whether this nvcc compiles a kernel
  local scratch status=0
  scratch=$(mktemp -d)
  echo '__global__ void nothing(int* p) { *p = 0; }' >"$scratch/try.cu"
  "$1" -std=c++20 -c "$scratch/try.cu" -o "$scratch/try.o" >"$scratch/log" 2>&1 || status=1
  if [ "$status" != 0 ]; then cat "$scratch/log" >&2; fi
  rm -r "$scratch"
  return "$status"
}

if [ ! -x "$nvcc" ]; then
  python=${PYTHON:-python3}
  if ! "$python" -m pip --version >/dev/null 2>&1; then
    echo "cuda-toolkit.sh: $python has no pip (Debian: python3-pip); set PYTHON to use another one" >&2
    exit 1
  fi
  packages=()
  for part in cuda-nvcc cuda-runtime cuda-cccl cuda-crt nvvm; do packages+=("nvidia-$part==$version.*"); done
  echo "downloading nvcc $version into $folder"
  "$python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps \
    --target "$folder" "${packages[@]}"
fi
# nvcc searches lib64 for its libraries; the packages install them in lib.
if [ ! -e "$root/lib64" ]; then ln -s lib "$root/lib64"; fi

if ! works "$nvcc"; then
  echo "cuda-toolkit.sh: $nvcc cannot compile a kernel; remove $folder and run this again" >&2
  exit 1
fi
echo "export CUDACXX=$nvcc"
