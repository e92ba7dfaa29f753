#!/bin/bash
# Makes Debian packages, one for each component.
#   package.sh [BUILD]   builds in BUILD (build-deb) for the prefix /usr, and writes the packages to BUILD/packages
# Needs the packages that scripts/install.sh build gpu distributed installs, and dpkg-dev. Makes no CUDA package without
# nvcc, no package of a communicator without its engine, and no Python package without /usr/bin/python3, its headers and
# venv.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-deb}

if ! command -v dpkg-shlibdeps >/dev/null; then
  echo "package.sh: dpkg-shlibdeps is missing; install dpkg-dev" >&2
  exit 1
fi
export CMAKE_GENERATOR=Ninja
mkdir -p "$build"
python=(-DPLUGRAD_PYTHON=OFF)
headers=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null || true)
if [ -e "$headers/Python.h" ] && /usr/bin/python3 -m venv "$build/venv" 2>/dev/null; then
  "$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check 'nanobind>=3.1'
  python=(-DPLUGRAD_PYTHON=ON "-DPython_EXECUTABLE=$(realpath "$build")/venv/bin/python")
else
  echo "left out: the Python package (python3-dev and python3-venv are not installed)"
fi
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DPLUGRAD_TESTS=OFF \
  -DPLUGRAD_BENCH=OFF "${python[@]}" \
  ${PLUGRAD_CUDA_ARCHITECTURES:+"-DPLUGRAD_CUDA_ARCHITECTURES=$PLUGRAD_CUDA_ARCHITECTURES"} >"$build/configure.log"
cmake --build "$build" --parallel "$(nproc)"
rm -rf "$build/packages"
(cd "$build" && cpack -B packages >cpack.log) || { cat "$build/cpack.log" >&2; exit 1; }
rm -rf "$build/packages/_CPack_Packages"
ls "$build"/packages/*.deb
