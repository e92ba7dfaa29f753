"""Normal distributions and their relatives."""

import math
from collections.abc import Sequence
from typing import Any

from .. import _plugrad, linalg
from .._plugrad import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import ExponentialFamily, as_tensors

__all__ = ["HalfNormal", "LogNormal", "MultivariateNormal", "Normal"]

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


class Normal(ExponentialFamily):
    """The normal distribution with mean loc and standard deviation scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support: Constraint = constraints.real
    has_rsample = True
    _tensors = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = as_tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended(sample_shape)
        return self.loc + self.scale * _plugrad.randn(shape, dtype=self.loc.dtype, device=self.loc.device)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return -0.5 * ((value - self.loc) / self.scale) ** 2 - self.scale.log() - _LOG_ROOT

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 0.5 * (1 + _plugrad.erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * math.sqrt(2) * _plugrad.erfinv(2 * value - 1)

    def entropy(self) -> Tensor:
        return 0.5 + _LOG_ROOT + self.scale.log()


class HalfNormal(Normal):
    """The distribution of |x| for a normal x with mean 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    _tensors = ("scale", "loc")

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return _plugrad.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2 * (1 - 2 / math.pi)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return super().rsample(sample_shape).abs()

    def log_prob(self, value: Tensor) -> Tensor:
        return _plugrad.where(value >= 0, super().log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * super().cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return super().entropy() - math.log(2)


class LogNormal(Normal):
    """The distribution of e^x for a normal x with mean loc and standard deviation scale."""

    support = constraints.positive

    @property
    def mean(self) -> Tensor:
        return (self.loc + 0.5 * self.scale ** 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale ** 2).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale ** 2
        return square.expm1() * (2 * self.loc + square).exp()

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return super().rsample(sample_shape).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        logarithm = value.log()
        return -0.5 * ((logarithm - self.loc) / self.scale) ** 2 - self.scale.log() - _LOG_ROOT - logarithm

    def cdf(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return 0.5 * (1 + _plugrad.erf((value.log() - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value: Tensor) -> Tensor:
        return super().icdf(value).exp()

    def entropy(self) -> Tensor:
        return super().entropy() + self.loc


class MultivariateNormal(ExponentialFamily):
    """The normal distribution of vectors (n) with mean loc (.., n) and one of covariance_matrix, precision_matrix, its
    inverse, and scale_tril (.., n, n), the covariance's Cholesky factor. Raises ValueError unless exactly one is given."""

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True
    _tensors = ("loc", "scale_tril")

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
                 scale_tril: Tensor | None = None, validate_args: bool | None = None) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        names = [name for name, value in given.items() if value is not None]
        if len(names) != 1:
            raise ValueError("[MultivariateNormal] give one of covariance_matrix, precision_matrix and scale_tril, not "
                             f"{len(names)}")
        matrix: Any = given[names[0]]
        batch = _plugrad.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand(tuple(batch) + tuple(loc.shape[-1:]))
        vars(self)[names[0]] = matrix.expand(tuple(batch) + tuple(matrix.shape[-2:]))
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        if names[0] == "covariance_matrix":
            self.scale_tril = linalg.cholesky(matrix).expand(tuple(batch) + tuple(matrix.shape[-2:]))
        elif names[0] == "precision_matrix":
            self.scale_tril = linalg.cholesky(linalg.inv(matrix)).expand(tuple(batch) + tuple(matrix.shape[-2:]))
        vars(self).pop("covariance_matrix", None), vars(self).pop("precision_matrix", None)

    scale_tril: Tensor

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance (.., n, n)."""
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return linalg.inv(self.covariance_matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return (self.scale_tril ** 2).sum(-1)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        z = _plugrad.randn(self._extended(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        rest = (value - self.loc).unsqueeze(-1)
        factor = self.scale_tril.expand(tuple(rest.shape[:-2]) + tuple(self.scale_tril.shape[-2:]))
        z = linalg.solve_triangular(factor, rest, upper=False).squeeze(-1)
        return -0.5 * (z ** 2).sum(-1) - self._log_det() - self.loc.shape[-1] * _LOG_ROOT

    def _log_det(self) -> Tensor:
        return self.scale_tril.diagonal(0, -2, -1).log().sum(-1)

    def entropy(self) -> Tensor:
        return self.loc.shape[-1] * (0.5 + _LOG_ROOT) + self._log_det()
