"""Tensors with automatic differentiation, on devices that are plugins.

>>> from plugrad import Tensor
>>> x = Tensor([-1.0, 2.0, 3.0])
>>> y = (x.relu() * x).sum()
>>> y.backward()
>>> x.grad
Tensor([0. 4. 6.])
"""

import builtins as _builtins
import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from . import _plugrad

_plugrad._wrap_functions(_plugrad)  # first: other modules take functions from it

# The names of the array API standard. The core is imported later: its functions, such as std, follow PyTorch.
from .array_api import (__array_api_version__ as __array_api_version__,
                        __array_namespace_info__ as __array_namespace_info__, asarray as asarray, astype as astype,
                        bitwise_invert as bitwise_invert, bool as bool, broadcast_arrays as broadcast_arrays,
                        broadcast_to as broadcast_to, can_cast as can_cast, conj as conj,
                        cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum, e as e,
                        expand_dims as expand_dims, finfo as finfo, iinfo as iinfo, imag as imag, inf as inf,
                        isdtype as isdtype, matrix_transpose as matrix_transpose, nan as nan, newaxis as newaxis,
                        permute_dims as permute_dims, pi as pi, real as real, result_type as result_type,
                        unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
                        unique_values as unique_values, unstack as unstack, vecdot as vecdot)
from ._plugrad import *  # noqa: F403  (all names of the core, including ops added later)
from ._copies import (as_strided_copy as as_strided_copy, diagonal_copy as diagonal_copy, expand_copy as expand_copy,
                      narrow_copy as narrow_copy, permute_copy as permute_copy,
                      split_with_sizes_copy as split_with_sizes_copy, squeeze_copy as squeeze_copy, t_copy as t_copy,
                      transpose_copy as transpose_copy, unbind_copy as unbind_copy, unfold_copy as unfold_copy,
                      unsqueeze_copy as unsqueeze_copy, view_copy as view_copy)
from ._compile import Compiled as Compiled, CompileFigures as CompileFigures, compile as compile
from ._drawing import Dot as Dot, draw_dot as draw_dot
from ._histograms import histogramdd as histogramdd
from ._results import MinMax as MinMax, Quantized as Quantized, ValuesIndices as ValuesIndices
from ._neighbours import nextafter as nextafter
from ._summary import Summary as Summary, summary as summary
from ._short_time import istft as istft, stft as stft
from ._saved_model import SavedModel as SavedModel, load_model as load_model
from ._factors import (cholesky as cholesky, cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve,
                       det as det, inverse as inverse, logdet as logdet, lu_solve as lu_solve, lu_unpack as lu_unpack,
                       matrix_exp as matrix_exp, ormqr as ormqr, pinverse as pinverse, qr as qr, slogdet as slogdet,
                       svd as svd, triangular_solve as triangular_solve)
from . import (accelerator as accelerator, amp as amp, array_api as array_api, autograd as autograd, cuda as cuda,
               data as data, distributed as distributed, fft as fft, files as files, func as func, linalg as linalg,
               masked as masked, nn as nn, onnx as onnx, optim as optim, optimize as optimize,
               profiler as profiler, quantization as quantization, special as special, testing as testing, text as text,
               training as training, utils as utils, windows as windows)
from .files import (GGUF as GGUF, load as load, load_npy as load_npy, load_npz as load_npz, open_gguf as open_gguf,
                    safe_open as safe_open, save as save, save_npy as save_npy, save_npz as save_npz)
from .backends import cudnn as _cudnn  # sets `backends` to a callable module, in place of the core's function
from ._einops import serve as _serve_einops
from ._subclasses import serve as _serve_subclasses
from ._generator import Generator as Generator
from ._printing import set_printoptions as set_printoptions
from .amp import autocast as autocast
from .func import vmap as vmap
from .autograd import (Function as Function, checkpoint as checkpoint, detect_anomaly as detect_anomaly,
                       enable_grad as enable_grad, gradcheck as gradcheck, gradgradcheck as gradgradcheck,
                       hessian as hessian, inference_mode as inference_mode, jacobian as jacobian, jvp as jvp,
                       no_grad as no_grad, set_grad_enabled as set_grad_enabled, vjp as vjp)

__version__ = "0.1.0"


def tensor(data: _Any, dtype: _Any = None, device: _Any = None, requires_grad: _builtins.bool = False) -> _plugrad.Tensor:
    """Makes a tensor with a copy of numbers, nested lists or an array. As in PyTorch, whole numbers become i64 and fractions
    f32 unless dtype is given, and the tensor tracks a gradient only with requires_grad."""
    if dtype is None:
        dtype = _plugrad._dtype_of_numbers(data)
    return _plugrad.Tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def as_tensor(data: _Any, dtype: _Any = None, device: _Any = None) -> _plugrad.Tensor:
    """Returns data itself if it is a tensor, converted to dtype and device if they are given. Other data become a new
    tensor, as in `tensor`."""
    if not isinstance(data, _plugrad.Tensor):
        return tensor(data, dtype, device)
    return data if dtype is None and device is None else data.to(dtype=dtype, device=device)


def from_numpy(array: _Any) -> _plugrad.Tensor:
    """Returns a tensor that shares the array's memory. The array must be writable, and plugrad must have its dtype."""
    return _plugrad.from_dlpack(array)


def is_tensor(x: object) -> _builtins.bool:
    """Returns whether x is a Tensor."""
    return isinstance(x, _plugrad.Tensor)


def numel(x: _plugrad.Tensor) -> _builtins.int:
    """Returns the number of elements of x."""
    return x.numel()


def is_gpu_available() -> _builtins.bool:
    """Returns whether there is a GPU of any kind."""
    return _plugrad.Device.is_gpu_available()


def is_available(device: str) -> _builtins.bool:
    """Returns whether there is a device of this name. Does not open the device."""
    return (device if ":" in device else f"{device}:0") in _plugrad.devices()


_threads: _builtins.int | None = None


def set_num_threads(n: _builtins.int) -> None:
    """Sets the number of threads that the device cpu computes with. Raises ValueError for n below 1, and once the cpu is in
    use."""
    global _threads
    if n < 1:
        raise ValueError(f"[set_num_threads] {n} threads: at least 1 expected")
    _plugrad.set_device_options("cpu", {"threads": n})
    _threads = n


def get_num_threads() -> _builtins.int:
    """Returns the number that set_num_threads set, or otherwise the number of processors that this process may use."""
    return _threads or len(_os.sched_getaffinity(0))


def set_float32_matmul_precision(precision: str) -> None:
    """Sets the precision of matmul of f32. "highest" computes in f32; "high" and "medium" may round the inputs to TF32 on
    devices that have TF32. Raises ValueError for other names."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"[set_float32_matmul_precision] '{precision}' is unknown: highest, high or medium expected")
    _plugrad.set_tf32(precision != "highest")


def empty_cache(device: _Any = None) -> _builtins.int:
    """Releases the memory of a device that the core keeps for later tensors. device: by default the default device. Returns
    the number of released bytes."""
    return (_plugrad.default_device() if device is None else _plugrad.Device(device)).trim()


def use_deterministic_algorithms(mode: _builtins.bool, *, warn_only: _builtins.bool = False) -> None:
    """The same as set_deterministic(mode); warn_only has no effect."""
    _plugrad.set_deterministic(mode)


def t(input: _plugrad.Tensor) -> _plugrad.Tensor:
    """Returns the transpose of a matrix, or a tensor of fewer axes unchanged."""
    return input.t()


def detach(input: _plugrad.Tensor) -> _plugrad.Tensor:
    """Returns a tensor with the same memory, outside the graph."""
    return input.detach()


def is_floating_point(input: _plugrad.Tensor) -> _builtins.bool:
    """Returns whether the dtype is a floating dtype."""
    return input.is_floating_point()


def is_complex(input: _plugrad.Tensor) -> _builtins.bool:
    """Returns whether the dtype is complex."""
    return input.is_complex()


def initial_seed() -> _builtins.int:
    """Returns the seed of the default device's generator."""
    return _plugrad.generator_state()[0]


def seed() -> _builtins.int:
    """Seeds the generators of all devices from the system's source of randomness. Returns the seed."""
    number = _builtins.int.from_bytes(_os.urandom(8), "little") >> 1
    _plugrad.manual_seed(number)
    return number


if _TYPE_CHECKING:
    from . import distributions as distributions
else:
    def __getattr__(name: str) -> _Any:
        """Imports plugrad.distributions when a program first refers to it: it takes a tenth of the package's import."""
        if name == "distributions":
            return _importlib.import_module("plugrad.distributions")
        raise AttributeError(f"module 'plugrad' has no attribute '{name}'")


_serve_einops()
_serve_subclasses()

# Names of PyTorch.
dtype = _plugrad.DType
is_grad_enabled = _plugrad.grad_enabled
float, int = _plugrad.f32, _plugrad.i32
device = _plugrad.Device
get_rng_state, set_rng_state = _plugrad.generator_state, _plugrad.set_generator_state

# `from plugrad import *` does not replace Python's own sum, min and so on. Programs call them as plugrad.sum.
__all__ = sorted({"distributions"} | {name for name in globals()
                                      if not name.startswith("_") and not hasattr(_builtins, name)})
