#!/bin/bash
# Installs what bench/compare.py and bench/python measure beside plugrad, from PyPI into build-peers/venv: micrograd;
# PyTorch, whose libtorch bench/peer_torch.cpp is linked with, and NumPy, which it wants. 3 GB on x86-64, where the package
# brings CUDA. Debian's libtorch-dev (0.9 GB) serves as well; neither is needed to build or test plugrad.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build-peers/venv
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
  echo "install_peers.sh: $python cannot make a virtual environment: install python3-venv, or set PYTHON" >&2
  exit 1
fi
if [ ! -x "$venv/bin/python" ]; then "$python" -m venv "$venv"; fi
"$venv/bin/pip" install --quiet --disable-pip-version-check numpy torch micrograd
"$venv/bin/python" -c 'import torch; print("libtorch", torch.__version__, "in", torch.__path__[0])'
