"""Pooling as modules, over the last 1 to 3 dims. plugrad.max_pool2d and so on document the results."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from .. import _plugrad
from ._calls import Calls

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
           "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
           "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]

_Extents: TypeAlias = int | Sequence[int]


class _Pool(Calls):
    """A function of a tensor, or of a tensor, indices and an output size."""

    return_indices = False

    def forward(self, *given: Any, **named: Any) -> Any:
        return super().forward(*given, **({"return_indices": True} if self.return_indices else {}), **named)


class _MaxPool(_Pool):
    _shown = 5

    def __init__(self, kernel_size: _Extents, stride: _Extents | None = None, padding: _Extents = 0,
                 dilation: _Extents = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        self._keep(kernel_size=kernel_size, stride=kernel_size if stride is None else stride, padding=padding,
                   dilation=dilation, ceil_mode=ceil_mode)
        self.return_indices = return_indices


class _AvgPool(_Pool):
    _shown = 3

    def __init__(self, kernel_size: _Extents, stride: _Extents | None = None, padding: _Extents = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True, **divisor: Any) -> None:
        self._keep(kernel_size=kernel_size, stride=kernel_size if stride is None else stride, padding=padding,
                   ceil_mode=ceil_mode, count_include_pad=count_include_pad, **divisor)


class _LPPool(_Pool):
    _shown = 4

    def __init__(self, norm_type: float, kernel_size: _Extents, stride: _Extents | None = None,
                 ceil_mode: bool = False) -> None:
        self._keep(norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode)


class _MaxUnpool(_Pool):
    _shown = 3

    def __init__(self, kernel_size: _Extents, stride: _Extents | None = None, padding: _Extents = 0) -> None:
        self._keep(kernel_size=kernel_size, stride=kernel_size if stride is None else stride, padding=padding)


class _AdaptiveAvgPool(_Pool):
    _shown = 1

    def __init__(self, output_size: _Extents) -> None:
        self._keep(output_size=output_size)


class _AdaptiveMaxPool(_Pool):
    _shown = 1

    def __init__(self, output_size: _Extents, return_indices: bool = False) -> None:
        self._keep(output_size=output_size)
        self.return_indices = return_indices


class MaxPool1d(_MaxPool):
    """The largest element of each window."""

    _function = staticmethod(_plugrad.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window."""

    _function = staticmethod(_plugrad.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of each window."""

    _function = staticmethod(_plugrad.max_pool3d)


class AvgPool1d(_AvgPool):
    """The mean of each window."""

    _function = staticmethod(_plugrad.avg_pool1d)


class AvgPool2d(_AvgPool):
    """The mean of each window."""

    _function = staticmethod(_plugrad.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window."""

    _function = staticmethod(_plugrad.avg_pool3d)


class LPPool1d(_LPPool):
    """The norm of each window."""

    _function = staticmethod(_plugrad.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window."""

    _function = staticmethod(_plugrad.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window."""

    _function = staticmethod(_plugrad.lp_pool3d)


class MaxUnpool1d(_MaxUnpool):
    """A tensor of zeros with the elements of x at the indices that a max pooling returned."""

    _function = staticmethod(_plugrad.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """A tensor of zeros with the elements of x at the indices that a max pooling returned."""

    _function = staticmethod(_plugrad.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """A tensor of zeros with the elements of x at the indices that a max pooling returned."""

    _function = staticmethod(_plugrad.max_unpool3d)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of output_size windows."""

    _function = staticmethod(_plugrad.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of output_size windows."""

    _function = staticmethod(_plugrad.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of output_size windows."""

    _function = staticmethod(_plugrad.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of output_size windows."""

    _function = staticmethod(_plugrad.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of output_size windows."""

    _function = staticmethod(_plugrad.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of output_size windows."""

    _function = staticmethod(_plugrad.adaptive_max_pool3d)
