"""Tensors in files: safetensors, NumPy's .npy and .npz, and GGUF. The package has these names at its top."""

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar

from . import _plugrad
from ._archive import is_archive, load_archive, save_archive
from ._plugrad import Tensor
from ._results import Quantized

__all__ = ["GGUF", "GGUFTensor", "TensorSlice", "load", "load_npy", "load_npz", "open_gguf", "safe_open", "save", "save_npy",
           "save_npz"]

_Self = TypeVar("_Self", bound="_OpenFile")


class _Rows(Protocol):
    def get(self, name: str, device: Any = None) -> Tensor: ...
    def rows(self, name: str, first: int, last: int, device: Any = None) -> Tensor: ...


class TensorSlice:
    """A tensor in an open file. x[key] reads only the rows needed for the key."""

    def __init__(self, file: _Rows, name: str, dtype: str, shape: tuple[int, ...], device: Any) -> None:
        self._file, self._name, self._dtype, self._shape, self._device = file, name, dtype, list(shape), device

    def get_shape(self) -> list[int]:
        """Returns the extents of the whole tensor."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """Returns the dtype by its name in the file: "F32", "BF16", "Q4_K"."""
        return self._dtype

    def __getitem__(self, key: Any) -> Tensor:
        keys = key if isinstance(key, tuple) else (key,)
        if not keys or len(self._shape) < 1 + (self._dtype[0] == "Q"):
            return self._file.get(self._name, self._device)[key]
        first, rest = keys[0], keys[1:]
        if isinstance(first, slice) and (first.step is None or first.step > 0):
            start, stop, step = first.indices(self._shape[0])
            part = self._file.rows(self._name, start, max(start, stop), self._device)
            return part[(slice(None, None, step), *rest)]
        if isinstance(first, int) and not isinstance(first, bool) and -self._shape[0] <= first < self._shape[0]:
            row = first % self._shape[0]
            return self._file.rows(self._name, row, row + 1, self._device)[(0, *rest)]
        return self._file.get(self._name, self._device)[key]


class _OpenFile:
    _path: Any
    _opened: Any

    @property
    def _file(self) -> Any:
        if self._opened is None:
            raise ValueError(f"[{os.fspath(self._path)}] is closed: open it again to read it")
        return self._opened

    def keys(self) -> list[str]:
        """Returns the names of the tensors."""
        names: list[str] = self._file.keys()
        return names

    def close(self) -> None:
        """Closes the file. A with statement does this at its end."""
        self._opened = None

    def __len__(self) -> int:
        return len(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class safe_open(_OpenFile):
    """An open safetensors file. It reads single tensors, as the package safetensors does.

    framework is accepted and ignored: tensors are plugrad's. device: the tensors' device. Raises OSError where the file is
    missing or damaged.

    >>> with plugrad.safe_open("model.safetensors") as file:
    ...     weight = file.get_tensor("weight")
    """

    def __init__(self, filename: Any, framework: str = "plugrad", device: Any = None) -> None:
        self._path, self._device = filename, device
        self._opened = _plugrad._open_safetensors(filename)

    def metadata(self) -> dict[str, str] | None:
        """Returns the file's map of texts, or None if the map is empty."""
        texts: dict[str, str] = self._file.metadata()
        return texts or None

    def get_tensor(self, name: str) -> Tensor:
        """Reads a tensor. Raises ValueError for an unknown name."""
        tensor: Tensor = self._file.get(name, self._device)
        return tensor

    def get_slice(self, name: str) -> TensorSlice:
        """Returns an object whose subscripts read a part of the tensor. Raises ValueError for an unknown name."""
        dtype, shape = self._file.info(name)
        return TensorSlice(self._file, name, dtype, shape, self._device)


class GGUFTensor(NamedTuple):
    """A GGUF file's description of a tensor."""

    type: str  # as ggml names it: "F32", "Q4_K"
    shape: tuple[int, ...]  # row-major: ggml's extents in reverse order
    nbytes: int


class GGUF(_OpenFile):
    """An open GGUF file. It reads single tensors; opening it reads only the header.

    device: the tensors' device. Raises OSError where the file is missing or damaged.
    """

    def __init__(self, path: Any, device: Any = None) -> None:
        self._path, self._device = path, device
        self._opened = _plugrad._open_gguf(path)
        self._metadata: dict[str, Any] | None = None

    @property
    def version(self) -> int:
        """The version of the format: 2 or 3."""
        number: int = self._file.version()
        return number

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata by key: numbers, bools, texts, and lists of them."""
        if self._metadata is None:
            self._metadata = self._file.metadata()
        return self._metadata

    def info(self, name: str) -> GGUFTensor:
        """Returns the type, the shape and the size of a tensor. Raises ValueError for an unknown name."""
        return GGUFTensor(*self._file.info(name))

    def get_tensor(self, name: str) -> Tensor:
        """Reads a tensor. F32, F16, BF16, F64 and integers keep their dtype; quantised tensors become f32.

        Raises ValueError for an unknown name, and NotImplementedError for a type that cannot be decoded.
        """
        tensor: Tensor = self._file.get(name, self._device)
        return tensor

    def get_quantized(self, name: str) -> Quantized:
        """Reads a quantised matrix (n, k) as codes and scales, without widening it: see plugrad.quantize. Codes of 3 bits
        are widened to 4, codes of 5 and 6 bits to 8.

        Raises ValueError for an unknown name, and NotImplementedError for other types and ranks.
        """
        weight: Quantized = self._file.quantized(name, self._device)
        return weight

    def get_slice(self, name: str) -> TensorSlice:
        """Returns an object whose subscripts read and decode a part of the tensor."""
        info = self.info(name)
        return TensorSlice(self._file, name, info.type, info.shape, self._device)

    def raw(self, name: str) -> bytes:
        """Returns the bytes of a tensor as they lie in the file: blocks, row by row."""
        data: bytes = self._file.raw(name)
        return data


def open_gguf(path: Any, device: Any = None) -> GGUF:
    """Opens a GGUF file: GGUF(path, device)."""
    return GGUF(path, device)


def load_npy(path: Any, device: Any = None) -> Tensor:
    """Returns the array of a .npy file; it tracks no gradient.

    Elements are bool, int8 .. int64, uint8 or float16 .. float64, of either byte order. Raises OSError for a missing or
    damaged file, and for other types of elements, with advice.
    """
    return _plugrad._load_npy(path, device)


def load_npz(path: Any, device: Any = None) -> dict[str, Tensor]:
    """Returns the arrays of a .npz file by name; they track no gradient. Raises OSError as load_npy does."""
    return dict(_plugrad._load_npz(path, device))


def save_npy(tensor: Tensor, path: Any) -> None:
    """Writes a tensor to a .npy file: all of it or nothing. Raises OSError with the reason, and ValueError for bf16."""
    _plugrad._save_npy(tensor, path)


def save_npz(tensors: Mapping[str, Tensor], path: Any, compress: bool = False) -> None:
    """Writes tensors by name to a .npz file, packed if `compress` is set: all of it or nothing.

    Raises OSError with the reason, and ValueError for bf16, because NumPy has no bf16.
    """
    _plugrad._save_npz(_named(tensors), path, compress)


def _named(tensors: Any) -> dict[str, Tensor]:
    if not isinstance(tensors, Mapping) or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in tensors.items()):
        raise TypeError("[save] a dict of tensors by name expected: {'weight': tensor}")
    return dict(tensors)


def _suffix(path: Any) -> str:
    return os.path.splitext(os.fsdecode(path))[1].lower()


_TORCH = (".pt", ".pth", ".tar", ".ckpt", ".bin")  # suffixes of PyTorch's files


def _is_named(obj: Any) -> bool:
    return isinstance(obj, Mapping) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in obj.items())


def save(obj: Any, path: Any, metadata: Any = None, *, pickle_module: Any = None, pickle_protocol: int = 2,
         _use_new_zipfile_serialization: bool = True) -> None:
    """Writes a file, all of it or nothing. The suffix of the path selects the format:

    .npy holds one tensor, .npz tensors by name, .safetensors tensors by name and a map of texts, the metadata. .pt, .pth,
    .tar, .ckpt and .bin are PyTorch's: they hold tensors, numbers, texts, and lists, tuples, dicts and sets of them, and
    torch.load reads them. With any other suffix, tensors by name become safetensors, and other objects PyTorch's
    file. path may be an open binary file: PyTorch's format is written to it. The last three arguments are PyTorch's and
    have no effect. Raises OSError with the reason, and TypeError for objects that the file cannot hold.
    """
    if hasattr(path, "write"):
        return save_archive(obj, path)
    suffix = _suffix(path)
    is_torch = suffix in _TORCH or suffix not in (".npy", ".npz", ".safetensors") and not _is_named(obj)
    if (suffix in (".npy", ".npz") or is_torch) and metadata:
        raise ValueError(f"[save] a {suffix} file holds no metadata: save as .safetensors")
    if is_torch:
        return save_archive(obj, path)
    tensors = obj
    if suffix == ".npy":
        if not isinstance(tensors, Tensor):
            raise TypeError("[save] a .npy file holds one tensor: save several by name as .npz or .safetensors")
        save_npy(tensors, path)
    elif suffix == ".npz":
        save_npz(tensors, path)
    else:
        _plugrad._save_safetensors(_named(tensors), path, metadata)


def _place(map_location: Any) -> Any:
    """Returns the device of PyTorch's map_location. A function, such as lambda storage, location: storage, means cpu."""
    if isinstance(map_location, Mapping):
        map_location = next(iter(map_location.values()), None)
    return "cpu" if callable(map_location) else map_location


def load(path: Any, device: Any = None, *, map_location: Any = None, pickle_module: Any = None,
         weights_only: bool | None = None, mmap: bool | None = None, encoding: str = "utf-8") -> Any:
    """Returns the tensors of a file by name, or the tensor of a .npy file; they track no gradient.

    The suffix tells the format: .npy, .npz, .gguf. A file that begins as PyTorch's, or an open binary file, gives the object
    given to torch.save: tensors, numbers, texts, and lists, dicts and sets of them. All other files are safetensors.
    map_location: PyTorch's name of device. Later arguments are PyTorch's and have no effect: a file never runs code. Raises
    OSError where the file is missing or damaged, or names unsupported objects.
    """
    device = _place(map_location) if device is None else device
    if hasattr(path, "read") or _suffix(path) not in (".npy", ".npz", ".gguf", ".safetensors") and is_archive(path):
        return load_archive(path, device)
    suffix = _suffix(path)
    if suffix == ".npy":
        return load_npy(path, device)
    if suffix == ".npz":
        return load_npz(path, device)
    if suffix == ".gguf":
        with GGUF(path, device) as file:
            return {name: file.get_tensor(name) for name in file.keys()}
    return dict(_plugrad._load_safetensors(path, device))
