#!/bin/bash
# Formats the sources in C, C++ and CUDA with the style in .clang-format.
#   format.sh          rewrites the files
#   format.sh --check  changes nothing, and fails if a file differs
# Needs the version of clang-format that pyproject.toml names: other versions format differently. `pip install '.[test]'`
# installs it, and scripts/test.sh does so in build/venv.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/pinned.sh
pinned clang-format

case "${1:-}" in
  '') action=(-i) ;;
  --check) action=(--dry-run --Werror) ;;
  *)
    echo "format.sh: there is no option '$1'; the option is --check" >&2
    exit 2
    ;;
esac
find backends bench bridges core examples plugins process python sdk tests tools -type f \
  \( -name '*.c' -o -name '*.cpp' -o -name '*.cu' -o -name '*.h' -o -name '*.hpp' \) -print0 |
  xargs -0 -P "$(nproc)" -n 50 "$tool" "${action[@]}"
