"""Functions that create tensors."""

from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, empty, from_dlpack, full, ones, zeros

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace",
           "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]


def _unshared(what: str) -> ValueError:
    return ValueError(f"[asarray] {what} needs a copy, which copy=False forbids: leave copy out")


def _of_tensor(x: Tensor, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    if dtype is None and device is None:
        return x.clone() if copy else x
    made: Tensor = x.to(dtype=dtype, device=device, copy=bool(copy))
    if copy is False and not made.is_same(x):
        raise _unshared("another dtype or device")
    return made


def _of_array(array: Any, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    """Shares the memory of an array if plugrad has its dtype, and copies the array otherwise."""
    try:
        shared = from_dlpack(array)
    except ValueError:  # Tensor() converts the array to a wider dtype
        if copy is False:
            raise
        return Tensor(array, dtype=dtype, device=device)
    return _of_tensor(shared, dtype, device, copy)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Makes a tensor of a number, nested sequences, an array (DLPack or the buffer protocol) or a tensor.

    dtype: by default whole numbers become i64, fractions become f32, and arrays keep their dtype. copy: True always copies,
    False never copies, and None copies if necessary: tensors and DLPack arrays of the same dtype and device share their
    memory. Raises ValueError if copy=False and a copy is necessary. The result for a tensor is in the graph of the tensor.
    """
    if isinstance(obj, Tensor):
        return _of_tensor(obj, dtype, device, copy)
    if hasattr(obj, "__dlpack__") and getattr(obj, "ndim", True):
        return _of_array(obj, dtype, device, copy)
    if copy is False:
        raise _unshared(f"{type(obj).__name__}")
    if dtype is None:
        dtype = _plugrad._dtype_of_numbers(obj)
    return Tensor(obj, dtype=dtype, device=device, requires_grad=False)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of x's shape with any elements. dtype and device are by default those of x."""
    return _plugrad.empty_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: complex, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of x's shape whose elements are fill_value. dtype and device are by default those of x."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype,
                device=x.device if device is None else device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones in x's shape. dtype and device are by default those of x."""
    return _plugrad.ones_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in x's shape. dtype and device are by default those of x."""
    return _plugrad.zeros_like(x, dtype=dtype, device=device)


def arange(start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None,
           device: Any = None) -> Tensor:
    """The numbers start, start + step, ... up to stop, excluding stop. Without stop, the numbers from 0 up to start,
    excluding start."""
    return _plugrad.arange(start, stop, step, dtype=dtype, device=device)


def linspace(start: complex, stop: complex, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """num numbers at equal distances from start to stop, excluding stop if endpoint is False."""
    if isinstance(start, complex) or isinstance(stop, complex):
        wide = None if dtype is None else "f64" if _plugrad.DType(dtype) == "c128" else "f32"
        first, last = complex(start), complex(stop)
        return _plugrad.complex(linspace(first.real, last.real, num, dtype=wide, device=device, endpoint=endpoint),
                                linspace(first.imag, last.imag, num, dtype=wide, device=device, endpoint=endpoint))
    if endpoint:
        return _plugrad.linspace(start, stop, num, dtype=dtype, device=device)
    return _plugrad.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix with 1 on diagonal number k and 0 elsewhere. n_cols is n_rows by default."""
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return _plugrad.eye(n_rows, columns, dtype=dtype, device=device)
    row, column = _plugrad.arange(n_rows, device=device).unsqueeze(1), _plugrad.arange(columns, device=device)
    return (row + k == column).to(dtype="f32" if dtype is None else dtype)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of all points of a grid: one tensor for each given array. As in NumPy, "xy" swaps the first two axes
    of the results; PyTorch's default is "ij"."""
    grids: tuple[Tensor, ...] = _plugrad.meshgrid(list(arrays), indexing=indexing)
    return list(grids)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of the last two axes on and below diagonal number k, 0 above it."""
    return _plugrad.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The elements of the last two axes on and above diagonal number k, 0 below it."""
    return _plugrad.triu(x, k)
