"""PyTorch's files: a zip with a pickle, which names tensors, and with the elements of the tensors. PyTorch and plugrad read
each other's files.

In general a pickle can call any function. Here it can call the functions that rebuild tensors, and containers of the
standard library; reading refuses a file that names anything else.
"""

import contextlib
import io
import os
import pickle
import secrets
import struct
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

from . import _plugrad
from ._plugrad import Device, DType, Tensor

__all__ = ["is_archive", "load_archive", "save_archive"]

_STORAGES: dict[str, str] = {name: storage for name, _, storage, _, _ in _plugrad._dtype_names()}
_DTYPES: dict[str, str] = {name: long for name, long, _, _, _ in _plugrad._dtype_names()}
_HEADER = 30  # bytes of an entry before its name
_ZIP = b"PK\x03\x04"
_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the magic number of PyTorch before 1.6, as a pickle


# --- Writing.

_PythonPickler: Any = getattr(pickle, "_Pickler")  # the pickler in C cannot name objects of packages that are not installed


class _Pickler(_PythonPickler):  # type: ignore[misc]
    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=2)
        self.elements: list[Tensor] = []
        self._keys: dict[tuple[Any, ...], str] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> Any:
        known = self.memo.get(id(obj))
        if known is None and isinstance(obj, Tensor):
            return self._save_tensor(obj)
        if isinstance(obj, DType):
            return self._save_global("torch", _DTYPES[str(obj)])
        if isinstance(obj, Device):
            self._save_global("torch", "device")
            super().save((str(obj),))
            return self.write(pickle.REDUCE)
        if type(obj).__module__.startswith("plugrad") and isinstance(obj, tuple):
            obj = tuple(obj)
        return super().save(obj, save_persistent_id)

    def _save_global(self, module: str, name: str) -> None:
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def _save_tensor(self, tensor: Tensor) -> None:
        """Tensors with the same view of the same memory, such as tied weights, share a storage."""
        plain = tensor.detach()
        view = (str(plain.device), plain.data_ptr(), plain.shape, plain.strides, str(plain.dtype))
        if view not in self._keys or not plain.numel():
            self._keys[view] = str(len(self.elements))
            self.elements.append(plain)
        strides: list[int] = []
        stride = 1
        for extent in reversed(plain.shape):
            strides.insert(0, stride)
            stride *= max(extent, 1)
        if tensor._is_parameter:
            self._save_global("torch._utils", "_rebuild_parameter")
            self.write(pickle.MARK)
        self._save_global("torch._utils", "_rebuild_tensor_v2")
        self.write(pickle.MARK)
        self.write(pickle.MARK)
        super().save("storage")
        self._save_global("torch", _STORAGES[str(plain.dtype)])
        super().save(self._keys[view])
        super().save("cpu")
        super().save(plain.numel())
        self.write(pickle.TUPLE + pickle.BINPERSID)
        tracks: Any = tensor.requires_grad and not tensor._is_parameter
        hooks: OrderedDict[str, Any] = OrderedDict()
        for part in (0, tuple(plain.shape), tuple(strides), tracks, hooks):
            super().save(part)
        self.write(pickle.TUPLE + pickle.REDUCE)
        if tensor._is_parameter:
            super().save(bool(tensor.requires_grad))
            super().save(OrderedDict())
            self.write(pickle.TUPLE + pickle.REDUCE)
        self.memoize(tensor)

    def save_global(self, obj: Any, name: Any = None) -> Any:
        if (obj.__module__, obj.__qualname__) not in (*_PLAIN, ("_codecs", "encode")):
            raise TypeError(f"[save] a {obj.__qualname__} cannot be saved: tensors, numbers, texts, and lists, tuples, "
                            "dicts and sets of them can. Save its state_dict() instead")
        return super().save_global(obj, name)


def _written(obj: Any, file: Any, name: str) -> None:
    text = io.BytesIO()
    pickler = _Pickler(text)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        def put(entry: str, data: bytes) -> None:
            info = zipfile.ZipInfo(f"{name}/{entry}")
            # Elements begin at a multiple of 64 bytes, so that a reader can map them.
            start = archive.start_dir + _HEADER + len(info.filename)
            info.extra = struct.pack("<HH", 0x4246, (-start - 4) % 64) + b"Z" * ((-start - 4) % 64)
            archive.writestr(info, data)
        put("data.pkl", text.getvalue())
        put(".format_version", b"1")
        put("byteorder", b"little")
        for key, tensor in enumerate(pickler.elements):
            put(f"data/{key}", tensor.__reduce__()[1][0])
        put("version", b"3\n")


def save_archive(obj: Any, path: Any) -> None:
    """Writes to a path or to an open binary file. A path holds either the whole file or its former contents.

    Raises TypeError for an object that cannot be saved, and ValueError for a path with the character 0."""
    if hasattr(path, "write"):
        return _written(obj, path, "archive")
    target = os.fsdecode(path)
    if "\0" in target:
        raise ValueError("[path] a path holds the character '\\0': files have no such names")
    folder, name = os.path.split(os.path.abspath(target))
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            _written(obj, file, os.path.splitext(name)[0] or "archive")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


# --- Reading.

class _Callable:
    """A function that a pickle may call. It has no attributes that the pickle could set."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setattr__(self, name: str, value: Any) -> None:
        raise ValueError("sets attributes of a function")


class _Storage:
    """The elements of tensors, as a tensor (n)."""

    __slots__ = ("elements",)

    def __init__(self, elements: Tensor) -> None:
        self.elements = elements


def _rebuild(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, *_: Any) -> Tensor:
    if not isinstance(storage, _Storage):
        raise ValueError("has a tensor without elements")
    count = storage.elements.numel()
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride) or offset < 0 or any(each < 0 for each in (*size, *stride)):
        raise ValueError(f"has a tensor of shape {size} and strides {stride}")
    last = offset + sum((extent - 1) * step for extent, step in zip(size, stride)) if 0 not in size else -1
    if last >= count:
        raise ValueError(f"has a tensor of shape {size} beyond its {count} elements")
    view = storage.elements.as_strided(size, stride, offset).detach()
    return view.requires_grad_() if requires_grad else view


def _rebuild_parameter(data: Tensor, requires_grad: bool, *_: Any) -> Tensor:
    data = data.requires_grad_()
    return data if requires_grad else data.requires_grad_(False)


_PLAIN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict, ("collections", "defaultdict"): defaultdict,
    ("collections", "Counter"): Counter,
    **{("builtins", each.__name__): each
       for each in (set, frozenset, complex, slice, dict, list, tuple, int, float, bool, str)}}
_BUILT: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild, ("torch._utils", "_rebuild_tensor"): _rebuild,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter, ("torch", "Size"): tuple, ("torch", "device"): str,
    ("torch.nn.parameter", "Parameter"): _rebuild_parameter}
_MODULES = {"__builtin__": "builtins"}  # names of Python 2, which protocol 2 uses


class _Unpickler(pickle.Unpickler):
    def __init__(self, text: bytes, read: Callable[[str], bytes], device: Any) -> None:
        super().__init__(io.BytesIO(text))
        self._read, self._device, self._storages = read, device, dict[str, _Storage]()

    def find_class(self, module: str, name: str) -> Any:
        key = (_MODULES.get(module, module), name)
        if key in _PLAIN:
            return _PLAIN[key]
        if key in _BUILT:
            return _Callable(_BUILT[key])
        if module == "_codecs" and name == "encode":  # how protocol 2 writes bytes
            return _Callable(lambda text, coding: text.encode("latin1"))
        if module in ("torch", "torch.storage"):
            for short, long in _DTYPES.items():
                if name == long:
                    return DType(short)
                if name == _STORAGES[short]:
                    return short
        raise ValueError(f"names {module}.{name}: only tensors, numbers, texts, and lists, dicts and sets of them are read, "
                         "because anything else could run code. Save state_dict() instead of objects")

    def persistent_load(self, pid: Any) -> _Storage:
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or pid[1] not in _STORAGES:
            raise ValueError(f"names elements that are no storage: {str(pid)[:80]}")
        _, dtype, key, _, count = pid
        if key not in self._storages:
            data = self._read(f"data/{key}")
            if not isinstance(count, int) or len(data) < count * DType(dtype).itemsize:
                raise ValueError(f"has {len(data)} bytes in storage {key}, but {count} elements of {dtype}")
            data = data[:count * DType(dtype).itemsize]
            self._storages[key] = _Storage(_plugrad._unpickle(data, dtype, (count,), str(self._device), 0))
        return self._storages[key]


# The exceptions that a damaged zip or pickle raises.
_DAMAGES = (zipfile.BadZipFile, pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError,
            TypeError, struct.error, NotImplementedError, RecursionError, OverflowError, ImportError)


def is_archive(path: Any) -> bool:
    """Returns whether a file begins like a file of PyTorch; False for a path that cannot be read."""
    try:
        if hasattr(path, "read"):
            at = path.tell()
            begins = path.read(16)
            path.seek(at)
        else:
            with open(path, "rb") as file:
                begins = file.read(16)
    except OSError:
        return False
    return bool(begins[:4] == _ZIP or begins[:15] == _LEGACY)


def load_archive(path: Any, device: Any = None) -> Any:
    """Reads a file of torch.save or save_archive. Raises OSError for a damaged file, and for a file that names functions."""
    shown = "the file" if hasattr(path, "read") else os.fsdecode(path)
    where = _plugrad.default_device() if device is None else device if isinstance(device, Device) else Device(str(device))
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {info.filename.partition("/")[2]: info for info in archive.infolist()}
            if "data.pkl" not in entries:
                raise ValueError("is a zip without data.pkl: no file of torch.save")

            def read(name: str) -> bytes:
                if name not in entries:
                    raise ValueError(f"has no {name}")
                if entries[name].compress_type != zipfile.ZIP_STORED or entries[name].flag_bits & 1:
                    raise ValueError(f"has packed or encrypted bytes in {name}: torch.save writes none")
                return archive.read(entries[name])
            if "byteorder" in entries and read("byteorder").strip() != b"little":
                raise ValueError("was written on a machine whose numbers begin with the most significant byte")
            return _Unpickler(read("data.pkl"), read, where).load()
    except _DAMAGES as error:
        if not hasattr(path, "read") and _first_bytes(path) == _LEGACY:
            error = ValueError("was written by PyTorch before 1.6: load it there, and save it again")
        text = str(error) or type(error).__name__
        raise OSError(f"[load] {shown} {'' if isinstance(error, ValueError) else 'is damaged: '}{text}") from None


def _first_bytes(path: Any) -> bytes:
    with open(path, "rb") as file:
        return file.read(len(_LEGACY))
