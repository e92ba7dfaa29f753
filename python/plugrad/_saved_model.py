"""Models saved by compiled functions."""

import os
from typing import Any

from . import _plugrad
from ._plugrad import Tensor


class SavedModel:
    """A model saved by `Compiled.save`, on one device."""

    def __init__(self, path: str | os.PathLike[str], device: Any = None, mmap: bool = True) -> None:
        self._model = _plugrad._load_model(path, device, mmap)

    @property
    def inputs(self) -> list[tuple[tuple[int, ...], _plugrad.DType]]:
        """The shapes and dtypes of the inputs."""
        return list(self._model.inputs())

    @property
    def outputs(self) -> list[tuple[tuple[int, ...], _plugrad.DType]]:
        """The shapes and dtypes of the results."""
        return list(self._model.outputs())

    def __call__(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Returns the result, or a tuple of several results. Raises ValueError for inputs of wrong shapes, dtypes or
        devices, and TypeError for inputs that are not tensors."""
        made: list[Tensor] = self._model.call(list(inputs))
        return made[0] if len(made) == 1 else tuple(made)

    def explain(self) -> str:
        """Describes the model as `Compiled.explain` describes a compiled function."""
        return str(self._model.explain())


def load_model(path: str | os.PathLike[str], device: Any = None, mmap: bool = True) -> SavedModel:
    """Reads a model saved by `Compiled.save`, with its weights to the device.

    mmap: whether large weights are pages of the file, on devices with the host's memory; processes share them. The file must
    stay as it is then: replace it by renaming another. Raises OSError for a file that is missing, damaged or of a later
    version, and for a model that needs more memory than the device has.
    """
    return SavedModel(path, device, mmap)
