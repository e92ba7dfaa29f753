"""A backend for plugrad: `plugrad.Device("npu")`."""

from pathlib import Path


def plugin_directory() -> Path:
    return Path(__file__).parent / "plugins-v0"
