"""Modules that learn the extents of their inputs from the first call. Until then they have no parameters: call the model
once, or load a state, before an optimiser, requires_grad_ or an initialiser takes its parameters. After that their class is
the class without "Lazy"."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

from .._plugrad import Tensor
from .convolutions import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .layers import Linear
from .module import Module
from .normalizations import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
           "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
           "LazyInstanceNorm3d", "LazyLinear"]


class _Lazy(Module):
    """Keeps the arguments of the class that it becomes."""

    _becomes: ClassVar[Any]
    _axis: ClassVar[int]  # of the input, with the extent that the constructor takes first
    _rank: ClassVar[int]  # the least rank of an input

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._given = arguments, named
        inspect.signature(self._becomes).bind(1, *arguments, **named)  # raises TypeError

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not arguments and not named:
            raise TypeError(f"[{type(self).__name__}] the call has no input")
        x = arguments[0] if arguments else next(iter(named.values()))
        if x.ndim < self._rank:
            raise ValueError(f"[{type(self).__name__}] x has the shape {x.shape}: expected at least {self._rank} dims")
        self._become(x.shape[self._axis])
        return self(*arguments, **named)

    def _become(self, extent: int) -> None:
        (arguments, named), training = self._given, self.training
        rest = {name: value for name, value in vars(self).items() if name != "_given"}
        made = self._becomes(extent, *arguments, **named)
        vars(self).clear()
        self.__class__ = self._becomes
        vars(self).update(rest | vars(made))
        self.training = training

    def _before_load(self, state: Mapping[str, Tensor], prefix: str) -> None:
        for name in ("weight", "running_mean"):
            if prefix + name in state:
                return self._become(self._extent(state[prefix + name].shape))

    def _extent(self, shape: tuple[int, ...]) -> int:
        """The extent that belongs to the shape of a loaded weight, or of a running mean."""
        return shape[0]

    def extra_repr(self) -> str:
        arguments, named = self._given
        return ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in named.items())])


class LazyLinear(_Lazy):
    """LazyLinear(out_features, bias=True, device=None, dtype=None): becomes Linear with the last extent of x."""

    _becomes, _axis, _rank = Linear, -1, 1

    def _extent(self, shape: tuple[int, ...]) -> int:
        return shape[1]


class _LazyConvolution(_Lazy):
    def _extent(self, shape: tuple[int, ...]) -> int:
        arguments, named = self._given
        groups: int = inspect.signature(self._becomes).bind(1, *arguments, **named).arguments.get("groups", 1)
        return shape[0] if self._becomes._transposed else shape[1] * groups


class LazyConv1d(_LazyConvolution):
    """As Conv1d without in_channels: becomes Conv1d with the channels of x."""

    _becomes, _axis, _rank = Conv1d, -2, 2


class LazyConv2d(_LazyConvolution):
    """As Conv2d without in_channels: becomes Conv2d with the channels of x."""

    _becomes, _axis, _rank = Conv2d, -3, 3


class LazyConv3d(_LazyConvolution):
    """As Conv3d without in_channels: becomes Conv3d with the channels of x."""

    _becomes, _axis, _rank = Conv3d, -4, 4


class LazyConvTranspose1d(_LazyConvolution):
    """As ConvTranspose1d without in_channels: becomes ConvTranspose1d with the channels of x."""

    _becomes, _axis, _rank = ConvTranspose1d, -2, 2


class LazyConvTranspose2d(_LazyConvolution):
    """As ConvTranspose2d without in_channels: becomes ConvTranspose2d with the channels of x."""

    _becomes, _axis, _rank = ConvTranspose2d, -3, 3


class LazyConvTranspose3d(_LazyConvolution):
    """As ConvTranspose3d without in_channels: becomes ConvTranspose3d with the channels of x."""

    _becomes, _axis, _rank = ConvTranspose3d, -4, 4


class LazyBatchNorm1d(_Lazy):
    """As BatchNorm1d without num_features: becomes BatchNorm1d with the channels of x."""

    _becomes, _axis, _rank = BatchNorm1d, 1, 2


class LazyBatchNorm2d(_Lazy):
    """As BatchNorm2d without num_features: becomes BatchNorm2d with the channels of x."""

    _becomes, _axis, _rank = BatchNorm2d, 1, 4


class LazyBatchNorm3d(_Lazy):
    """As BatchNorm3d without num_features: becomes BatchNorm3d with the channels of x."""

    _becomes, _axis, _rank = BatchNorm3d, 1, 5


class LazyInstanceNorm1d(_Lazy):
    """As InstanceNorm1d without num_features: becomes InstanceNorm1d with the channels of x."""

    _becomes, _axis, _rank = InstanceNorm1d, -2, 2


class LazyInstanceNorm2d(_Lazy):
    """As InstanceNorm2d without num_features: becomes InstanceNorm2d with the channels of x."""

    _becomes, _axis, _rank = InstanceNorm2d, -3, 3


class LazyInstanceNorm3d(_Lazy):
    """As InstanceNorm3d without num_features: becomes InstanceNorm3d with the channels of x."""

    _becomes, _axis, _rank = InstanceNorm3d, -4, 4
