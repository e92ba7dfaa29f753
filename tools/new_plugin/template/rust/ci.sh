#!/bin/sh
# Builds the plugin and tests it. Needs cargo with Rust 1.63, a C++ compiler, pkg-config and plugrad's SDK; PKG_CONFIG_PATH
# says where the SDK is, unless that is the system's prefix.
set -e
cd "$(dirname "$0")"
cargo test --offline
cargo build --release --offline
mkdir -p build
plugin=build/libplugrad-backend-@NAME@.so  # the core looks for files named like this
cp target/release/libplugrad_backend_@IDENTIFIER@.so "$plugin"

if command -v plugrad-conform >/dev/null; then
  plugrad-conform --require-tier0 --train --jobs 2 "$plugin"
else
  echo "left out: conformance (plugrad-conform is not installed)"
fi
if command -v plugrad >/dev/null; then
  PLUGRAD_PLUGIN_PATH=$PWD/build PLUGRAD_FALLBACK=error \
    plugrad train --data moons --epochs 20 --device @NAME@:0 --out build/run
else
  echo "left out: training (plugrad is not installed)"
fi
if python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("plugrad_torch") is None)' 2>/dev/null; then
  python3 torch_test.py "$plugin"
else
  echo "left out: PyTorch (python3 has no package plugrad-torch)"
fi
