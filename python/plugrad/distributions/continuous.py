"""Distributions of real numbers whose samples are formulas of a uniform number."""

import math
from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from ..array_api import finfo
from . import constraints
from .constraints import Constraint
from .distribution import Distribution, as_tensors

__all__ = ["Cauchy", "Exponential", "Gumbel", "Laplace", "Pareto", "Uniform", "Weibull"]

_EULER = 0.57721566490153286


class _ByInverse(Distribution):
    """A distribution whose samples are icdf of a uniform number."""

    has_rsample = True

    def _open_uniform(self, sample_shape: Sequence[int], like: Tensor) -> Tensor:
        """Uniform numbers in (0, 1)."""
        tiny = 0.5 * float(finfo(like.dtype).eps)
        return _plugrad.rand(self._extended(sample_shape), dtype=like.dtype, device=like.device).clamp(tiny, 1 - tiny)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(self._open_uniform(sample_shape, vars(self)[self._tensors[0]]))


class Uniform(_ByInverse):
    """Equal densities in [low, high)."""

    arg_constraints = {"low": constraints.real, "high": constraints.real}
    _tensors = ("low", "high")

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = as_tensors(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validates and not _plugrad._is_recording() and not bool((self.low < self.high).all()):
            raise ValueError(f"[Uniform] low must be below high, got {self.low!r} and {self.high!r}")

    @property
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return _plugrad.full_like(self.low, math.nan)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _plugrad.rand(self._extended(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return _plugrad.where((value >= self.low) & (value < self.high), -(self.high - self.low).log(), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + value * (self.high - self.low)

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


class Exponential(_ByInverse):
    """The density rate e^(-rate x) for x >= 0."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    _tensors = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.rate, = as_tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return _plugrad.zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate ** -2

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class _LocScale(_ByInverse):
    """A distribution with a place and a positive scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _tensors = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = as_tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standardised(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (value - self.loc) / self.scale


class Laplace(_LocScale):
    """The density e^(-|x - loc| / scale) / (2 scale)."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale ** 2

    def log_prob(self, value: Tensor) -> Tensor:
        return -self._standardised(value).abs() - (2 * self.scale).log()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standardised(value)
        below, above = _plugrad.where(z < 0, z, 0.0), _plugrad.where(z < 0, 0.0, z)
        return _plugrad.where(z < 0, 0.5 * below.exp(), 1 - 0.5 * (-above).exp())

    def icdf(self, value: Tensor) -> Tensor:
        from_middle = value - 0.5
        return self.loc - self.scale * from_middle.sign() * (-2 * from_middle.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


class Cauchy(_LocScale):
    """The density 1 / (pi scale (1 + ((x - loc) / scale)^2)). It has neither mean nor variance: both are NaN or infinite."""

    @property
    def mean(self) -> Tensor:
        return _plugrad.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return _plugrad.full_like(self.loc, math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - self.scale.log() - (self._standardised(value) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return _plugrad.atan(self._standardised(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * _plugrad.tan(math.pi * (value - 0.5))

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class Gumbel(_LocScale):
    """The distribution e^(-e^(-(x - loc) / scale)) of largest values."""

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def variance(self) -> Tensor:
        return (math.pi * self.scale) ** 2 / 6

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standardised(value)
        return -z - (-z).exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standardised(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + 1 + _EULER


class Weibull(_ByInverse):
    """The distribution 1 - e^(-(x / scale)^concentration) for x >= 0."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _tensors = ("scale", "concentration")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = as_tensors(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, k: float) -> Tensor:
        return _plugrad.lgamma(1 + k / self.concentration).exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1.0)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return _plugrad.where(k > 1, self.scale * ((k - 1).clamp(min=0.0) / k) ** (1 / k), 0.0)

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2 * (self._moment(2.0) - self._moment(1.0) ** 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        z, k = value / self.scale, self.concentration
        return (k / self.scale).log() + (k - 1) * z.log() - z ** k

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -(-(value / self.scale) ** self.concentration).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()) ** (1 / self.concentration)

    def entropy(self) -> Tensor:
        return _EULER * (1 - 1 / self.concentration) + (self.scale / self.concentration).log() + 1


class Pareto(_ByInverse):
    """The density alpha scale^alpha / x^(alpha + 1) for x >= scale."""

    arg_constraints = {"scale": constraints.positive, "alpha": constraints.positive}
    _tensors = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = as_tensors(scale, alpha)
        super().__init__(self.scale.shape, validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        return _plugrad.where(self.alpha > 1, self.alpha * self.scale / (self.alpha - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha
        return _plugrad.where(a > 2, self.scale ** 2 * a / ((a - 1) ** 2 * (a - 2)), math.inf)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return self.alpha.log() + self.alpha * self.scale.log() - (self.alpha + 1) * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (1 - value) ** (-1 / self.alpha)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + 1 / self.alpha
