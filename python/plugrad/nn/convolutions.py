"""Convolutions as modules."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from .. import _plugrad
from .._plugrad import Tensor
from .module import OfOne

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_Extents: TypeAlias = int | Sequence[int]


class _Base(OfOne):
    """Weight and bias, which start uniform in +-1/sqrt(in / groups * the kernel's elements)."""

    _function: Callable[..., Tensor]
    _rank: int
    _transposed = False

    def _make(self, in_channels: int, out_channels: int, kernel_size: _Extents, groups: int, bias: bool, dtype: Any,
              device: Any) -> None:
        kernel = (kernel_size,) * self._rank if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(kernel) != self._rank or min(kernel) < 1 or min(in_channels, out_channels, groups) < 1 or \
                in_channels % groups or out_channels % groups:
            raise ValueError(f"[{type(self).__name__}] {in_channels} and {out_channels} channels, groups {groups}, kernel "
                             f"{kernel}: expected positive numbers, groups that divide both, and {self._rank} extents")
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        bound = (second // groups * prod(kernel)) ** -0.5
        self.weight = _plugrad.rand((first, second // groups, *kernel), dtype, device, -bound, bound, requires_grad=True)
        self.bias = _plugrad.rand((out_channels,), dtype, device, -bound, bound, requires_grad=True) if bias else None
        self.in_channels, self.out_channels, self.kernel_size, self.groups = in_channels, out_channels, kernel, groups

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"


class _Conv(_Base):
    """Convolution: x (n, in, ..) -> (n, out, ..); weight (out, in / groups, ..), bias (out). Both start uniform in
    +-1/sqrt(in / groups * the kernel's elements). padding may be "valid" or "same". Raises ValueError for numbers that do
    not fit."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Extents, stride: _Extents = 1,
                 padding: _Extents | str = 0, dilation: _Extents = 1, groups: int = 1, bias: bool = True,
                 dtype: Any = None, device: Any = None) -> None:
        self._make(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def forward(self, x: Tensor) -> Tensor:
        return type(self)._function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


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
    for numbers that do not fit."""

    _transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Extents, stride: _Extents = 1,
                 padding: _Extents = 0, output_padding: _Extents = 0, groups: int = 1, bias: bool = True,
                 dilation: _Extents = 1, dtype: Any = None, device: Any = None) -> None:
        self._make(in_channels, out_channels, kernel_size, groups, bias, dtype, device)
        self.stride, self.padding, self.output_padding, self.dilation = stride, padding, output_padding, dilation

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
