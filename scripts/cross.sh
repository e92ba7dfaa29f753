#!/bin/bash
# Builds plugrad for aarch64 on a machine of another kind, in build-aarch64, and runs tests there under qemu.
#   cross.sh [CTEST-ARGUMENT ...]   the arguments choose among the quick tests, as in: cross.sh --tests-regex '^cpu\.'
# Without arguments it runs those of the core on the CPU backend, of the loader, of files and of the tools, in half an hour.
# The others repeat them on devices for tests, or are whole runs of plugrad-conform, which take hours under qemu.
# Needs Debian 12 or later, and root or sudo for the compiler. Debian's arm64 libraries go to build-aarch64/sysroot.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build-aarch64
sysroot=$folder/sysroot
libraries=(libboost-dev libboost-program-options-dev zlib1g-dev nlohmann-json3-dev libhwy-dev libeigen3-dev libgtest-dev)

scripts/install.sh build test data cross

# Downloads the libraries with all that they need, by an apt of its own that knows nothing of this machine's packages.
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
  # Links to absolute paths would lead out of the root.
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

# What the emulators cannot do: qemu tells of a program that cannot be started by an exit status alone, and leaves the locks
# of other threads locked in a forked process; proot passes no SIGSTOP on.
beyond='ThatCannotStartIsAWarning|Truncated.IsAnErrorOfTheProgram|Fork.AChildComputesWhile|/stop_'
echo "left out: $beyond"
chosen=("$@")
if [ $# -eq 0 ]; then
  topics='cpu|runtime|streams|io|Files|tools|training|contract|PrivateOps|BFloat16|Ops|Grades|References|c11'
  chosen=(--tests-regex "^($topics)")
  echo "left out: what the emulators repeat on other devices (scripts/cross.sh --tests-regex . runs all quick tests)"
fi
# qemu runs one program; proot gives it also to the programs that the tests start.
proot -q "qemu-aarch64 -L $sysroot" ctest --preset aarch64 --parallel "$(nproc)" --label-regex '^quick$' \
  --exclude-regex "$beyond" "${chosen[@]}"
