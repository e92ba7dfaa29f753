"""Convolutions as modules."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from .. import _plugrad
from .._plugrad import Tensor
from . import init
from .module import OfOne

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_Extents: TypeAlias = int | Sequence[int]
_MODES = ("zeros", "reflect", "replicate", "circular")


class _Base(OfOne):
    """Weight and bias. Both start uniform in +-1/sqrt(in / groups * the kernel's elements)."""

    _function: Callable[..., Tensor]
    _rank: int
    _transposed = False
    padding_mode = "zeros"
    stride: tuple[int, ...]

    @property
    def transposed(self) -> bool:
        """True for a transposed convolution."""
        return self._transposed

    def _make(self, in_channels: int, out_channels: int, kernel_size: _Extents, groups: int, bias: bool, dtype: Any,
              device: Any) -> None:
        kernel = self._spread(kernel_size)
        if len(kernel) != self._rank or min(kernel) < 1 or min(in_channels, out_channels, groups) < 1 or \
                in_channels % groups or out_channels % groups:
            raise ValueError(f"[{type(self).__name__}] {in_channels} and {out_channels} channels, groups {groups}, kernel "
                             f"{kernel}: expected positive numbers, groups that divide both, and {self._rank} extents")
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        bound = (second // groups * prod(kernel)) ** -0.5
        self.weight = _plugrad.rand((first, second // groups, *kernel), dtype, device, -bound, bound, requires_grad=True)
        self.bias = _plugrad.rand((out_channels,), dtype, device, -bound, bound, requires_grad=True) if bias else None
        self.in_channels, self.out_channels, self.kernel_size, self.groups = in_channels, out_channels, kernel, groups

    def reset_parameters(self) -> None:
        """Draws weight and bias again."""
        bound = prod(self.weight.shape[1:]) ** -0.5
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def _spread(self, extents: _Extents) -> tuple[int, ...]:
        return (extents,) * self._rank if isinstance(extents, int) else tuple(extents)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        for name, plain in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name, self._spread(plain))
            parts += [f"{name}={value}"] * (value != self._spread(plain))
        parts += [f"groups={self.groups}"] * (self.groups != 1) + ["bias=False"] * (self.bias is None)
        parts += [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros")
        return ", ".join(parts)


class _Conv(_Base):
    """Convolution: x (n, in, ..) -> (n, out, ..); weight (out, in / groups, ..), bias (out). Both start uniform in
    +-1/sqrt(in / groups * the kernel's elements). padding may be "valid" or "same". padding_mode "zeros",
    "reflect", "replicate" or "circular" selects the elements of the padding. Raises ValueError for an unknown padding_mode,
    and for channels, groups or kernel extents that do not fit together."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Extents, stride: _Extents = 1,
                 padding: _Extents | str = 0, dilation: _Extents = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        if padding_mode not in _MODES:
            raise ValueError(f"[{type(self).__name__}] padding_mode '{padding_mode}' is unknown: one of {', '.join(_MODES)} "
                             "expected")
        self.padding_mode = padding_mode
        self._make(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.dilation = self._spread(stride), self._spread(dilation)
        self.padding = padding if isinstance(padding, str) else self._spread(padding)

    def _around(self) -> list[int]:
        """Returns the numbers of elements to add before and after each spatial axis, the last axis first."""
        if self.padding == "valid":
            return [0] * (2 * self._rank)
        if isinstance(self.padding, tuple):
            return [each for extent in reversed(self.padding) for each in (extent, extent)]
        spans = [step * (extent - 1) for step, extent in zip(self.dilation, self.kernel_size)]
        return [each for span in reversed(spans) for each in (span // 2, span - span // 2)]

    def forward(self, x: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            x, padding = _plugrad.pad(x, self._around(), self.padding_mode), 0
        return type(self)._function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    __doc__ = _Conv.__doc__
    _function, _rank = staticmethod(_plugrad.conv1d), 1


class Conv2d(_Conv):
    __doc__ = _Conv.__doc__
    _function, _rank = staticmethod(_plugrad.conv2d), 2


class Conv3d(_Conv):
    __doc__ = _Conv.__doc__
    _function, _rank = staticmethod(_plugrad.conv3d), 3


class _ConvTranspose(_Base):
    """Transposed convolution: x (n, in, ..) -> (n, out, ..); weight (in, out / groups, ..), bias (out). Raises ValueError
    for channels, groups or kernel extents that do not fit together."""

    _transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Extents, stride: _Extents = 1,
                 padding: _Extents = 0, output_padding: _Extents = 0, groups: int = 1, bias: bool = True,
                 dilation: _Extents = 1, device: Any = None, dtype: Any = None) -> None:
        self._make(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.padding, self.output_padding, self.dilation = map(
            self._spread, (stride, padding, output_padding, dilation))

    def forward(self, x: Tensor) -> Tensor:
        return type(self)._function(x, self.weight, self.bias, self.stride, self.padding, self.output_padding,
                                    self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    _function, _rank = staticmethod(_plugrad.conv_transpose1d), 1


class ConvTranspose2d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    _function, _rank = staticmethod(_plugrad.conv_transpose2d), 2


class ConvTranspose3d(_ConvTranspose):
    __doc__ = _ConvTranspose.__doc__
    _function, _rank = staticmethod(_plugrad.conv_transpose3d), 3
