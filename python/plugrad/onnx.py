"""ONNX models, which run on every device.

A call takes NumPy arrays or tensors, by position or by name, and returns tensors:

    model = plugrad.onnx.load("resnet50.onnx", device="cuda")
    scores = model(pixels)           # or model(pixels=pixels), or model({"pixels": pixels})
    print(scores.numpy())

The first call for a set of shapes runs op by op, the second records, later calls replay.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import _plugrad
from ._plugrad import Tensor

__all__ = ["Declaration", "OnnxModel", "load"]

# NumPy's dtypes that a wider dtype carries: the name, NumPy's dtype of the copy, and whether the bits are kept.
_CARRIED = {"uint16": ("int32", False), "uint32": ("int64", False), "uint64": ("int64", True)}


class Declaration(NamedTuple):
    """An input or an output, as the file declares it."""

    name: str
    type: str  # "float32", "sequence of int64"
    shape: tuple[int | str | None, ...] | None  # extents, symbols and unknown extents; None for an unknown shape


def _carried(array: Any) -> Any:
    name = str(getattr(array, "dtype", ""))
    if isinstance(array, Tensor) or name not in _CARRIED:
        return array
    dtype, keeps_bits = _CARRIED[name]
    return array.view(dtype) if keeps_bits else array.astype(dtype)


def _array(value: Any, declared: str) -> Any:
    """A NumPy array of a tensor, in the declared dtype of unsigned integers."""
    if value is None or isinstance(value, list):
        return None if value is None else [_array(each, declared.removeprefix("sequence of ")) for each in value]
    array = value.numpy()
    if declared not in _CARRIED or str(array.dtype) != _CARRIED[declared][0]:
        return array
    return array.view(declared) if _CARRIED[declared][1] else array.astype(declared)


class OnnxModel:
    """An ONNX model on one device: see plugrad.onnx.load."""

    def __init__(self, path: str | os.PathLike[str], device: Any = None, bind: Mapping[str, Any] | None = None,
                 record: bool = True, lanes: int = 1, memory: int = 0, mmap: bool = True) -> None:
        constants = {name: self._tensor(value, device) for name, value in (bind or {}).items()}
        self._path = os.fspath(path)
        self._model = _plugrad._load_onnx(path, device, constants, record, lanes, memory, mmap)
        self._inputs = [Declaration(*each) for each in self._model.inputs()]
        self._outputs = [Declaration(*each) for each in self._model.outputs()]
        self._device: str = self._model.device()

    @staticmethod
    def _tensor(value: Any, device: Any) -> Tensor:
        return value if isinstance(value, Tensor) else Tensor(_carried(value), device=device)

    @property
    def inputs(self) -> list[Declaration]:
        """The inputs, in the order of positional arguments."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[Declaration]:
        """The outputs, in the order of the results."""
        return list(self._outputs)

    def _arguments(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        given = list(args)
        if len(given) == 1 and isinstance(given[0], Mapping):
            named = {**given.pop(), **named}
        declared = self._inputs
        values: dict[str, Any] = {each.name: value for each, value in zip(declared, given)}
        names = [each.name for each in declared]
        wrong = [name for name in named if name not in names or name in values]
        if wrong or len(given) > len(names):
            what = f"the input {wrong[0]!r} is unknown or given twice" if wrong else f"{len(given)} inputs are given"
            raise TypeError(f"[{self._path}] {what}: the model's inputs are {', '.join(names) or 'none'}")
        values.update(named)
        missing = [each.name for each in declared if each.name not in values and not each.type.startswith("optional")]
        if missing:
            raise TypeError(f"[{self._path}] the input {missing[0]!r} is missing: the model's inputs are {', '.join(names)}")
        return [self._value(values.get(name)) for name in names]

    def _value(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(each, Tensor) or hasattr(each, "dtype") for each in value):
            return [self._tensor(each, self._device) for each in value]
        return self._tensor(value, self._device)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Returns the output, or a tuple of several: tensors, lists of tensors for sequences, None for absent values.

        args, named: NumPy arrays or tensors of the model's dtypes; also one mapping of names. Arrays of uint16 become i32,
        uint32 i64, and uint64 i64 with the same bits. Raises TypeError for unknown and missing inputs, ValueError for
        inputs that differ from `inputs`, and NotImplementedError for a form of an operator that is not implemented.
        """
        made: list[Any] = self._model.call(self._arguments(args, named))
        return made[0] if len(made) == 1 else tuple(made)

    def run(self, output_names: list[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """Returns outputs as NumPy arrays, as onnxruntime.InferenceSession.run does, unsigned integers in their own dtype.
        None stands for all outputs."""
        made: list[Any] = self._model.call(self._arguments((), input_feed))
        names = [each.name for each in self._outputs]
        unknown = [name for name in output_names or () if name not in names]
        if unknown:
            raise ValueError(f"[{self._path}] there is no output {unknown[0]!r}: the outputs are {', '.join(names)}")
        arrays = [_array(value, each.type) for each, value in zip(self._outputs, made)]
        return arrays if output_names is None else [arrays[names.index(name)] for name in output_names]

    def save(self, path: str | os.PathLike[str], *args: Any, **named: Any) -> None:
        """Writes a model for plugrad.load_model, for inputs of these shapes. Raises NotImplementedError for a model that
        cannot be recorded with them."""
        self._model.save(path, self._arguments(args, named))

    def explain(self) -> str:
        """Lists the recordings, and says which calls run op by op, and why."""
        return str(self._model.explain())


def load(path: str | os.PathLike[str], device: Any = None, bind: Mapping[str, Any] | None = None,
         record: bool = True, lanes: int = 1, memory: int = 0, mmap: bool = True) -> OnnxModel:
    """Reads an ONNX model.

    device: where it runs. bind: inputs that never change, by name; they may decide shapes and branches, and calls leave them
    out. record: whether calls are recorded and replayed. lanes: the most calls that run at once, from several threads;
    each lane has its own recordings and temporary memory, and all share the weights; further calls wait. memory: the
    most bytes of the device's memory for calls, their results until they return and what is kept to replay them, without
    the weights; a call that needs more drops what is kept for other shapes, and then raises MemoryError; 0: as many as the
    device has. mmap: whether large
    weights are pages of the file, on devices with the host's memory; processes share them. The file must stay as it is then:
    replace it by renaming another. Raises OSError for a file that is missing or damaged, and NotImplementedError with a list
    of all operators that are not implemented.
    """
    return OnnxModel(path, device, bind, record, lanes, memory, mmap)
