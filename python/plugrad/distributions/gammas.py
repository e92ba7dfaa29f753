"""The gamma distribution and distributions whose samples come from gamma samples."""

import math
from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from . import constraints
from ._samplers import log_gamma_sample, standard_gamma
from .distribution import Distribution, ExponentialFamily, as_tensors

__all__ = ["Beta", "Chi2", "Dirichlet", "Gamma", "StudentT"]


class Gamma(ExponentialFamily):
    """The density rate^concentration x^(concentration - 1) e^(-rate x) / Gamma(concentration)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _tensors: tuple[str, ...] = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = as_tensors(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended(sample_shape)
        return standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a = self.concentration
        return _plugrad.xlogy(a, self.rate) + _plugrad.xlogy(a - 1, value) - self.rate * value - _plugrad.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + _plugrad.lgamma(a) + (1 - a) * _plugrad.digamma(a)


class Chi2(Gamma):
    """The sum of df squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self.df, = as_tensors(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)

    _tensors = ("df", "concentration", "rate")


class Dirichlet(ExponentialFamily):
    """The density prod x_i^(concentration_i - 1) / B(concentration) on the simplex; concentration (.., n)."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _tensors = ("concentration",)

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("[Dirichlet] concentration must have at least 1 dim")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        rest = (self.concentration - 1).clamp(min=0.0)
        return rest / rest.sum(-1, True)

    @property
    def variance(self) -> Tensor:
        total, mean = self.concentration.sum(-1, True), self.mean
        return mean * (1 - mean) / (total + 1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return log_gamma_sample(self.concentration.expand(self._extended(sample_shape))).softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        a = self.concentration
        return _plugrad.xlogy(a - 1, value).sum(-1) + _plugrad.lgamma(a.sum(-1)) - _plugrad.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, n = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (_plugrad.lgamma(a).sum(-1) - _plugrad.lgamma(total) - (n - total) * _plugrad.digamma(total)
                - ((a - 1) * _plugrad.digamma(a)).sum(-1))


class Beta(ExponentialFamily):
    """The density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B(concentration1, concentration0) on [0, 1]."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _tensors = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = as_tensors(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total ** 2 * (total + 1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inner = (a - 1) / (a + b - 2)  # else the densities are largest at an end
        return _plugrad.where((a > 1) & (b > 1), inner, (a > b).to(a.dtype))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended(sample_shape)
        x, y = (log_gamma_sample(each.expand(shape)) for each in (self.concentration1, self.concentration0))
        return (x - y).sigmoid()

    def _log_beta(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return _plugrad.lgamma(a) + _plugrad.lgamma(b) - _plugrad.lgamma(a + b)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (_plugrad.xlogy(self.concentration1 - 1, value) + _plugrad.xlogy(self.concentration0 - 1, 1 - value)
                - self._log_beta())

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (self._log_beta() - (a - 1) * _plugrad.digamma(a) - (b - 1) * _plugrad.digamma(b)
                + (a + b - 2) * _plugrad.digamma(a + b))


class StudentT(Distribution):
    """loc + scale z / sqrt(c / df) for a standard normal z and a chi-squared c of df degrees of freedom."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _tensors = ("df", "loc", "scale")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = as_tensors(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return _plugrad.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale ** 2 * self.df / (self.df - 2)
        without = _plugrad.where(self.df > 1, math.inf, _plugrad.full_like(finite, math.nan))
        return _plugrad.where(self.df > 2, finite, without)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended(sample_shape)
        half = 0.5 * self.df.expand(shape)
        z = _plugrad.randn(shape, dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * z * (half / standard_gamma(half)).sqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        z, df = (value - self.loc) / self.scale, self.df
        normaliser = (self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi) + _plugrad.lgamma(0.5 * df)
                      - _plugrad.lgamma(0.5 * (df + 1)))
        return -0.5 * (df + 1) * (z ** 2 / df).log1p() - normaliser

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        log_beta = _plugrad.lgamma(half) + 0.5 * math.log(math.pi) - _plugrad.lgamma(half + 0.5)
        return (self.scale.log() + (half + 0.5) * (_plugrad.digamma(half + 0.5) - _plugrad.digamma(half))
                + 0.5 * self.df.log() + log_beta)
