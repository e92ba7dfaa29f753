"""Loads the native library, once."""
import importlib.metadata
import os
from pathlib import Path

import torch


def _require_version():
    """The library fits one minor version of PyTorch, which the version of the package names: 0.1.0+torch2.15."""
    try:
        built_for = importlib.metadata.version("plugrad-torch").partition("+torch")[2]
    except importlib.metadata.PackageNotFoundError:  # in a source tree
        return
    if built_for and torch.__version__.split(".")[:2] != built_for.split("."):
        raise ImportError(f"this package plugrad-torch is for PyTorch {built_for}, but this is PyTorch {torch.__version__}: "
                          "install the package for this version")


def load():
    """Returns the library's ops. PLUGRAD_TORCH_LIBRARY names another file, such as the one of a build tree."""
    file = os.environ.get("PLUGRAD_TORCH_LIBRARY")
    if not file:
        _require_version()
        file = str(Path(__file__).parent / "libplugrad_torch.so")
    if not Path(file).exists():
        raise ImportError(f"plugrad-torch has no library at {file}: install the package again")
    try:
        torch.ops.load_library(file)
    except OSError as error:
        raise ImportError(f"plugrad-torch cannot load {file}; is the package plugrad beside it? {error}") from error
    return torch.ops.plugrad_torch


ops = load()
