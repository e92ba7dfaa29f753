#!/bin/bash
# Runs clang-tidy with the checks of .clang-tidy on the sources of core, SDK, tools, plugins and the reference backend. Needs
# the version of clang-tidy that pyproject.toml names: other versions find other things.
#   tidy.sh [FILE ...]   all of these sources by default
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/pinned.sh
pinned clang-tidy
if [ $# -eq 0 ]; then
  folders=(core sdk/conformance process tools/plugrad tools/train backends/reference plugins/sim)
  mapfile -t files < <(find "${folders[@]}" -name '*.cpp')
  set -- "${files[@]}"
fi
# The sources of a unity build are not in its compile_commands.json, so the flags are given here.
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -n 1 sh -c '"$0" --quiet "$1" -- -x c++ -std=c++20 -I. -Icore/include \
  -Isdk/include -Iplugins/sim/include -Ibackends/reference/include -Ibackends/cpu/include -Ibackends/vulkan/include \
  -DBOOST_DLL_USE_STD_FS -DPLUGRAD_VERSION=\"0\" 2>/dev/null || { echo "tidy.sh: $1"; exit 1; }' "$tool"
