#!/bin/bash
# Installs the missing packages that plugrad needs for building and testing. Needs Debian 12 or later, and root or sudo.
# install.sh [GROUP ...], groups: build gpu distributed test data python bench cross; all but cross by default.
# Prints nothing if no package is missing, and never removes a package.
set -euo pipefail

# a|b: either suffices; the first is installed if both are missing. Debian's two versions of Boost conflict.
declare -A packages=(
  [build]="g++ cmake ninja-build zlib1g-dev nlohmann-json3-dev libhwy-dev libeigen3-dev libxbyak-dev
    libboost-dev|libboost1.81-dev libboost-program-options-dev|libboost-program-options1.81-dev"
  [gpu]="libvulkan-dev glslc"
  [distributed]="libgloo-dev libopenmpi-dev openmpi-bin libmpich-dev mpich"
  [test]="libgtest-dev pkg-config python3 mesa-vulkan-drivers vulkan-validationlayers ocl-icd-opencl-dev pocl-opencl-icd"
  [data]="dataset-fashion-mnist"
  [python]="python3-dev python3-venv python3-pip ca-certificates ccache graphviz"
  [bench]="libbenchmark-dev"
  [cross]="g++-aarch64-linux-gnu qemu-user proot"
)

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

wanted=()
for group in "${@:-build gpu distributed test data python bench}"; do
  for name in $group; do
    if [ -z "${packages[$name]:-}" ]; then
      echo "install.sh: there is no group '$name'; the groups are: build gpu distributed test data python bench cross" >&2
      exit 2
    fi
    # shellcheck disable=SC2206  # the list is split at blanks on purpose
    wanted+=(${packages[$name]})
  done
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install.sh: this system has no apt. Install the equivalents of these packages, then build with cmake:" >&2
  echo "  ${wanted[*]}" >&2
  exit 1
fi

missing=()
for choice in "${wanted[@]}"; do
  IFS='|' read -ra names <<<"$choice"
  found=no
  for name in "${names[@]}"; do
    if is_installed "$name"; then found=yes; fi
  done
  if [ "$found" = no ]; then missing+=("${names[0]}"); fi
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=(env)
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install.sh: packages are missing, and sudo is not installed. Run as root:" >&2
    echo "  apt-get install --no-install-recommends --no-remove ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo env)
fi

apt_get() {
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}
echo "installing: ${missing[*]}"
# Package lists may be missing or old: tries the existing lists, then updates them.
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1 ||
   ! apt_get install --no-install-recommends --no-remove "${missing[@]}" 2>/dev/null; then
  apt_get update
  apt_get install --no-install-recommends --no-remove "${missing[@]}"
fi
