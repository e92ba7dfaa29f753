"""Activation functions as modules. `inplace` exists for programs for PyTorch and has no effect: the result is a new
tensor."""

from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from ._calls import Calls
from .module import OfOne, Parameter

__all__ = ["CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
           "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SiLU", "Sigmoid", "Softmax", "Softmin",
           "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold", "softmax"]


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """e^x divided by its sum along a dim."""
    return _plugrad.softmax(x, dim)


class _Activation(Calls, OfOne):
    """A function of a tensor and numbers."""

    inplace = False

    def forward(self, x: Tensor) -> Any:
        """Passes arguments by position, which takes less time than passing them by name."""
        if not self._arguments:
            return type(self)._function(x)
        return type(self)._function(x, *[getattr(self, name) for name in self._arguments])

    def extra_repr(self) -> str:
        return ", ".join([text for text in [super().extra_repr()] if text] + ["inplace=True"] * self.inplace)


class _Inplace(_Activation):
    def __init__(self, inplace: bool = False) -> None:
        self.inplace = inplace


class ReLU(_Inplace):
    """x where it is above 0, else 0; gradient 0 at 0."""

    _function = staticmethod(_plugrad.relu)


class ReLU6(_Inplace):
    """x limited to [0, 6]."""

    _function = staticmethod(_plugrad.relu6)


class SELU(_Inplace):
    """s x where x is positive, else s a (e^x - 1), with s = 1.0507 and a = 1.6733."""

    _function = staticmethod(_plugrad.selu)


class SiLU(_Inplace):
    """x sigmoid(x)."""

    _function = staticmethod(_plugrad.silu)


class Mish(_Inplace):
    """x tanh(ln(1 + e^x))."""

    _function = staticmethod(_plugrad.mish)


class Hardsigmoid(_Inplace):
    """x / 6 + 1 / 2, limited to [0, 1]."""

    _function = staticmethod(_plugrad.hardsigmoid)


class Hardswish(_Inplace):
    """x hardsigmoid(x)."""

    _function = staticmethod(_plugrad.hardswish)


class Tanh(_Activation):
    """Hyperbolic tangent."""

    _function = staticmethod(_plugrad.tanh)


class Sigmoid(_Activation):
    """1 / (1 + e^-x)."""

    _function = staticmethod(_plugrad.sigmoid)


class LogSigmoid(_Activation):
    """ln(sigmoid(x)), without overflow."""

    _function = staticmethod(_plugrad.logsigmoid)


class Softsign(_Activation):
    """x / (1 + |x|)."""

    _function = staticmethod(_plugrad.softsign)


class Tanhshrink(_Activation):
    """x - tanh(x)."""

    _function = staticmethod(_plugrad.tanhshrink)


class ELU(_Activation):
    """x where it is positive, else alpha (e^x - 1)."""

    _function = staticmethod(_plugrad.elu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha=alpha)
        self.inplace = inplace


class CELU(_Activation):
    """x where it is positive, else alpha (e^(x / alpha) - 1)."""

    _function = staticmethod(_plugrad.celu)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        self._keep(alpha=alpha)
        self.inplace = inplace


class LeakyReLU(_Activation):
    """x where it is positive, else negative_slope x."""

    _function = staticmethod(_plugrad.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        self._keep(negative_slope=negative_slope)
        self.inplace = inplace


class Hardtanh(_Activation):
    """x limited to [min_val, max_val]."""

    _function = staticmethod(_plugrad.hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        self._keep(min_val=min_val, max_val=max_val)
        self.inplace = inplace


class Threshold(_Activation):
    """x where it is above threshold, else value."""

    _function = staticmethod(_plugrad.threshold)

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        self._keep(threshold=threshold, value=value)
        self.inplace = inplace


class Softplus(_Activation):
    """ln(1 + e^(beta x)) / beta; x itself where beta x is above threshold."""

    _function = staticmethod(_plugrad.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        self._keep(beta=beta, threshold=threshold)


class Softshrink(_Activation):
    """x moved towards 0 by lambd, and 0 where |x| is at most lambd."""

    lambd: float
    _function = staticmethod(_plugrad.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        self._keep(lambd=lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Activation):
    """x, but 0 where |x| is at most lambd."""

    lambd: float
    _function = staticmethod(_plugrad.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        self._keep(lambd=lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class GELU(OfOne):
    """x times the standard normal distribution function of x; approximate="tanh" approximates it by a tanh."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Along(_Activation):
    """A function along a dim."""

    def __init__(self, dim: int = -1) -> None:
        self._keep(dim=dim)


class Softmax(_Along):
    """e^x divided by its sum along a dim, so that the results along the dim add up to 1."""

    _function = staticmethod(_plugrad.softmax)


class LogSoftmax(_Along):
    """x - ln(sum(e^x)) along a dim."""

    _function = staticmethod(_plugrad.log_softmax)


class Softmin(_Along):
    """softmax(-x) along a dim."""

    _function = staticmethod(_plugrad.softmin)


class GLU(_Along):
    """The first half of x along a dim times the sigmoid of the second half."""

    _function = staticmethod(_plugrad.glu)


class PReLU(OfOne):
    """x where it is positive, else weight x. The weight is a parameter: a single number, or a number for each channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        self.num_parameters = num_parameters
        self.weight = Parameter([init] * num_parameters, dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.prelu(x, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(OfOne):
    """x where it is positive, else slope x. In training each element draws its slope uniformly from [lower, upper];
    otherwise the slope is the mean of lower and upper."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.rrelu(x, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"
