"""Discrete Fourier transforms by the names of NumPy's and PyTorch's fft.

fft computes X[k] = sum over j of x[j] e^(-2 pi i j k / n). Results are complex64, and complex128 for float64 and complex128;
those of irfft and hfft are float32 and float64. n and s are lengths: a longer axis is cut, a shorter one padded with zeros.
norm says what is divided by the number n of elements: "backward" (None) the backward transforms, "forward" the forward ones,
and "ortho" both by its root. dim may be called axis, or axes. All have gradients. They raise ValueError for lengths below 1
and unfit axes, and for complex operands where real ones are expected.

>>> from plugrad import fft, tensor
>>> fft.rfft(tensor([1.0, 0.0, 0.0, 0.0]))
Tensor([1.+0.j 1.+0.j 1.+0.j], dtype=c64)
"""

from collections.abc import Sequence

from . import _plugrad
from ._plugrad import Device, DType, Tensor

_Axes = int | Sequence[int] | None


def _norm(norm: str | None) -> str:
    return "backward" if norm is None else norm


def _listed(axes: _Axes) -> Sequence[int]:
    return () if axes is None else (axes,) if isinstance(axes, int) else axes


def _chosen(name: str, s: _Axes, dim: _Axes, axes: _Axes) -> tuple[Sequence[int], Sequence[int]]:
    """The lengths and the axes; without axes, the core chooses them."""
    if dim is not None and axes is not None:
        raise TypeError(f"[fft.{name}] 'dim' is given twice: once as 'axes'")
    return _listed(s), _listed(axes if dim is None else dim)


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None) -> Tensor:
    """The transform along dim, complex."""
    return _plugrad._fft_fft(input, n, dim if axis is None else axis, _norm(norm))


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None) -> Tensor:
    """The inverse of fft: the backward transform along dim."""
    return _plugrad._fft_ifft(input, n, dim if axis is None else axis, _norm(norm))


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None) -> Tensor:
    """The first n // 2 + 1 elements of the transform of real numbers; the others are their conjugates."""
    return _plugrad._fft_rfft(input, n, dim if axis is None else axis, _norm(norm))


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None) -> Tensor:
    """The inverse of rfft: n real numbers, by default 2 (m - 1) from m."""
    return _plugrad._fft_irfft(input, n, dim if axis is None else axis, _norm(norm))


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None) -> Tensor:
    """The n real numbers of the transform of input, the first n // 2 + 1 elements; the others are their conjugates."""
    return _plugrad._fft_hfft(input, n, dim if axis is None else axis, _norm(norm))


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, axis: int | None = None) -> Tensor:
    """The inverse of hfft: the first n // 2 + 1 elements."""
    return _plugrad._fft_ihfft(input, n, dim if axis is None else axis, _norm(norm))


def fftn(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """fft along several dims: all of them, or the last ones if s is given."""
    sizes, over = _chosen("fftn", s, dim, axes)
    return _plugrad._fft_fftn(input, sizes, over, _norm(norm))


def ifftn(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """The inverse of fftn."""
    sizes, over = _chosen("ifftn", s, dim, axes)
    return _plugrad._fft_ifftn(input, sizes, over, _norm(norm))


def rfftn(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """rfft along the last of the dims, then fft along the others."""
    sizes, over = _chosen("rfftn", s, dim, axes)
    return _plugrad._fft_rfftn(input, sizes, over, _norm(norm))


def irfftn(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """The inverse of rfftn."""
    sizes, over = _chosen("irfftn", s, dim, axes)
    return _plugrad._fft_irfftn(input, sizes, over, _norm(norm))


def hfftn(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """fft along all dims but the last, then hfft along the last."""
    sizes, over = _chosen("hfftn", s, dim, axes)
    return _plugrad._fft_hfftn(input, sizes, over, _norm(norm))


def ihfftn(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """The inverse of hfftn."""
    sizes, over = _chosen("ihfftn", s, dim, axes)
    return _plugrad._fft_ihfftn(input, sizes, over, _norm(norm))


def fft2(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """fftn along two dims, by default the last ones."""
    return fftn(input, s, (-2, -1) if dim is None and axes is None else dim, norm, axes=axes)


def ifft2(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """ifftn along two dims, by default the last ones."""
    return ifftn(input, s, (-2, -1) if dim is None and axes is None else dim, norm, axes=axes)


def rfft2(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """rfftn along two dims, by default the last ones."""
    return rfftn(input, s, (-2, -1) if dim is None and axes is None else dim, norm, axes=axes)


def irfft2(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """irfftn along two dims, by default the last ones."""
    return irfftn(input, s, (-2, -1) if dim is None and axes is None else dim, norm, axes=axes)


def hfft2(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """hfftn along two dims, by default the last ones."""
    return hfftn(input, s, (-2, -1) if dim is None and axes is None else dim, norm, axes=axes)


def ihfft2(input: Tensor, s: _Axes = None, dim: _Axes = None, norm: str | None = None, *, axes: _Axes = None) -> Tensor:
    """ihfftn along two dims, by default the last ones."""
    return ihfftn(input, s, (-2, -1) if dim is None and axes is None else dim, norm, axes=axes)


def fftfreq(n: int, d: float = 1.0, *, dtype: DType | str | None = None, device: Device | str | None = None) -> Tensor:
    """The frequencies (n,) of a transform's elements in cycles per unit of the spacing d: 0, 1, .., -1 divided by n d."""
    return _plugrad._fft_fftfreq(n, d, _plugrad.float32 if dtype is None else dtype,
                                 _plugrad.default_device() if device is None else device)


def rfftfreq(n: int, d: float = 1.0, *, dtype: DType | str | None = None, device: Device | str | None = None) -> Tensor:
    """The frequencies (n // 2 + 1,) of rfft's elements: 0, 1, .., n // 2 divided by n d."""
    return _plugrad._fft_rfftfreq(n, d, _plugrad.float32 if dtype is None else dtype,
                                  _plugrad.default_device() if device is None else device)


def fftshift(input: Tensor, dim: _Axes = None, *, axes: _Axes = None) -> Tensor:
    """input with the frequency 0 moved from the beginning to the middle of each dim."""
    return _plugrad._fft_fftshift(input, _listed(dim if axes is None else axes))


def ifftshift(input: Tensor, dim: _Axes = None, *, axes: _Axes = None) -> Tensor:
    """The inverse of fftshift."""
    return _plugrad._fft_ifftshift(input, _listed(dim if axes is None else axes))
