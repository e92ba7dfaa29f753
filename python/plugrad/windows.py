"""Windows by the names of torch.signal.windows: tensors of M weights. sym gives symmetric windows, for filters; without it
the window is a period of M elements, as PyTorch's hann_window and similar functions return by default.

>>> from plugrad import windows
>>> windows.bartlett(3)
Tensor([0. 1. 0.])
"""

from collections.abc import Callable, Iterable
from math import pi as _pi
from typing import Any

from . import _plugrad
from ._plugrad import Tensor

_Window = Callable[[Tensor, float], Tensor]  # of the places 0, 1, ... and the last place


def _made(formula: _Window, M: int, sym: bool, options: dict[str, Any]) -> Tensor:
    dtype, recorded = options.get("dtype"), options.get("requires_grad", False)
    unknown = set(options) - {"dtype", "device", "requires_grad"}
    if unknown:
        raise TypeError(f"[windows] there is no parameter {unknown.pop()!r}: dtype, device and requires_grad expected")
    if M < 0:
        raise ValueError(f"[windows] M is {M}: give 0 or more")
    dtype = _plugrad.float32 if dtype is None else dtype
    if M < 2:
        window = _plugrad.ones(M, dtype=dtype, device=options.get("device"))
    else:
        places = _plugrad.arange(0, M, dtype="f64", device=options.get("device"))
        window = formula(places, float(M - 1 if sym else M)).to(dtype)
    return window.requires_grad_() if recorded else window


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """a[0] - a[1] cos(t) + a[2] cos(2 t) - ..., where t goes from 0 to 2 pi."""
    weights = list(a)
    if not weights:
        raise ValueError("[windows.general_cosine] a has no elements: give one or more")

    def formula(places: Tensor, last: float) -> Tensor:
        total = _plugrad.zeros_like(places)
        for i, weight in enumerate(weights):
            total = total + (-1) ** i * weight * (places * (2 * _pi * i / last)).cos()
        return total
    return _made(formula, M, sym, options)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """alpha - (1 - alpha) cos(t)."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.54 - 0.46 cos(t)."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.5 - 0.5 cos(t)."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """0.42 - 0.5 cos(t) + 0.08 cos(2 t)."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The four cosines of Nuttall's window."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """Half a period of a sine."""
    return _made(lambda places, last: ((places + 0.5) * (_pi / (last + 1))).sin(), M, sym, options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A triangle from 0 on."""
    return _made(lambda places, last: 1 - (places * (2 / last) - 1).abs(), M, sym, options)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """e^(-x^2 / 2) of the distance from the middle, divided by std."""
    if std <= 0:
        raise ValueError(f"[windows.gaussian] std is {std}: give a positive number")
    return _made(lambda places, last: (((places - last / 2) / std) ** 2 * -0.5).exp(), M, sym, options)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """e^(-distance / tau) from center, by default the middle."""
    if tau <= 0:
        raise ValueError(f"[windows.exponential] tau is {tau}: give a positive number")
    if center is not None and sym:
        raise ValueError("[windows.exponential] a symmetric window has its center in the middle: leave center out")
    return _made(lambda places, last: ((places - (last / 2 if center is None else center)).abs() * (-1 / tau)).exp(), M, sym,
                 options)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """I0(beta sqrt(1 - x^2)) / I0(beta), where x goes from -1 to 1."""
    if beta < 0:
        raise ValueError(f"[windows.kaiser] beta is {beta}: give 0 or more")

    def formula(places: Tensor, last: float) -> Tensor:
        distance = places * (2 / last) - 1
        inside = _plugrad.clamp(1 - distance * distance, 0.0)
        return _plugrad.i0(inside.sqrt() * beta) / _plugrad.i0(_plugrad.full_like(places, beta))
    return _made(formula, M, sym, options)
