#!/bin/bash
# Builds plugrad for aarch64 on a machine of another kind, in build-aarch64, and runs tests there under qemu.
#   cross.sh [CTEST-ARGUMENT ...]   the arguments choose among the quick tests, as in: cross.sh --tests-regex '^cpu\.'
# Without arguments it runs the tests of the core on the CPU backend, of the loader, of files and of the tools, in half an
# hour. Other quick tests repeat these on test devices, or are whole runs of plugrad-conform, which take hours under qemu.
# Needs Debian 12 or later, and root or sudo for the compiler. Debian's arm64 libraries go to build-aarch64/sysroot.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build-aarch64
sysroot=$folder/sysroot
libraries=(libboost-dev libboost-program-options-dev zlib1g-dev nlohmann-json3-dev libhwy-dev libeigen3-dev libgtest-dev)

scripts/install.sh build test data cross

# Downloads the libraries and their dependencies with a separate apt state that ignores this machine's packages.
make_sysroot() {
  local apt=$folder/apt each target
  rm -rf "$apt" "$sysroot.new"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$sysroot.new"
  : >"$apt/status"
  local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=0
    -o APT::Sandbox::User="$(id -un)" -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
  apt-get "${options[@]}" update
  apt-get "${options[@]}" --yes --download-only install "${libraries[@]}"
  for each in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$each" "$sysroot.new"; done
  # Makes absolute links relative, because they would point outside the sysroot.
  find "$sysroot.new" -type l -lname '/*' | while read -r each; do
    target=$sysroot.new$(readlink "$each")
    ln -sfnr "$target" "$each"
  done
  mv "$sysroot.new" "$sysroot"
  rm -rf "$apt"
}

mkdir -p "$folder"
if [ ! -d "$sysroot" ]; then make_sysroot; fi
. scripts/ccache.sh
# The toolchain file names the compilers.
unset CC CXX
export CMAKE_GENERATOR=Ninja
cmake --preset aarch64
cmake --build --preset aarch64 --parallel "$(nproc)"

# Tests that the emulators do not support: qemu reports a program that cannot be started only by an exit status, and keeps
# the locks of other threads locked in a forked process; proot does not pass SIGSTOP on.
beyond='ThatCannotStartIsAWarning|Truncated.IsAnErrorOfTheProgram|Fork.AChildComputesWhile|/stop_'
echo "left out: $beyond"
chosen=("$@")
if [ $# -eq 0 ]; then
  topics='cpu|runtime|streams|io|Files|tools|training|contract|PrivateOps|BFloat16|Ops|Grades|References|c11'
  chosen=(--tests-regex "^($topics)")
  echo "left out: what the emulators repeat on other devices (scripts/cross.sh --tests-regex . runs all quick tests)"
fi
# qemu runs a single program. proot also runs the programs that the tests start under qemu.
proot -q "qemu-aarch64 -L $sysroot" ctest --preset aarch64 --parallel "$(nproc)" --label-regex '^quick$' \
  --exclude-regex "$beyond" "${chosen[@]}"
