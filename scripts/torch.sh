#!/bin/bash
# Makes the package plugrad-torch for versions of PyTorch, and tests each.
#   torch.sh [VERSION ...]   versions of PyTorch, by default 2.15.0
# The wheels go to build/wheels. Each version has an environment in build/torch-VERSION, with PyTorch from PyPI: 3 GB on
# x86-64, where PyTorch's package contains CUDA. Needs a release build, for its plugins, and the wheel of plugrad that
# scripts/test.sh makes.
# PLUGRAD_TORCH_TESTS chooses tests, as pytest's -k does.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/ccache.sh
export CMAKE_GENERATOR=Ninja

versions=("${@:-2.15.0}")
# The package plugrad brings the plugins cpu and reference; the release build has the others.
devices=cpu:0,reference:0
for file in test-plugins/libplugrad-backend-sim.so lib/plugrad/plugins-v0/libplugrad-backend-vulkan.so \
  test-plugins/libplugrad-backend-cuda-emu.so; do
  name=$(basename "$file" .so)
  if [ -e "build/$file" ]; then devices+=,${name#libplugrad-backend-}:0
  else echo "left out: plugrad-torch on ${name#libplugrad-backend-}, which is not built"; fi
done
core=$(ls build/wheels/plugrad-0*.whl 2>/dev/null | tail -n 1 || true)
if [ -z "$core" ]; then
  echo "torch.sh: there is no wheel of plugrad: run scripts/test.sh, or pip wheel --no-deps -w build/wheels ." >&2
  exit 1
fi

# The SDK as a plugin's author has it.
cmake --install build --prefix "$PWD/build/torch-sdk" --component sdk >/dev/null

quietly() {  # quietly LOG COMMAND ...: prints the output only if the command fails
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

for version in "${versions[@]}"; do
  venv=build/torch-$version log=build/torch-$version.log
  if [ ! -x "$venv/bin/python" ]; then "${PYTHON:-/usr/bin/python3}" -m venv "$venv"; fi
  pip=("$venv/bin/python" -m pip --disable-pip-version-check)
  quietly "$log" "${pip[@]}" install --no-cache-dir "torch==$version" 'scikit-build-core>=0.11' \
    numpy pytest expecttest hypothesis
  quietly "$log" "${pip[@]}" install --no-deps --force-reinstall "$core"
  rm -f build/wheels/plugrad_torch-*"${version%.*}"-*.whl
  quietly "$log" "${pip[@]}" wheel --no-build-isolation --no-deps --wheel-dir build/wheels ./bridges/torch
  quietly "$log" "${pip[@]}" install --no-deps --force-reinstall build/wheels/plugrad_torch-*"${version%.*}"-*.whl
  echo "PyTorch $version:"
  PLUGRAD_PLUGIN_PATH=$PWD/build/test-plugins:$PWD/build/lib/plugrad/plugins-v0 \
    PLUGRAD_TORCH_DEVICES=$devices PLUGRAD_TOOL=$PWD/build/bin/plugrad \
    PLUGRAD_SDK=$PWD/build/torch-sdk \
    "$venv/bin/python" -m pytest --quiet -p no:cacheprovider -rs ${PLUGRAD_TORCH_TESTS:+-k "$PLUGRAD_TORCH_TESTS"} \
    bridges/torch/tests
done
