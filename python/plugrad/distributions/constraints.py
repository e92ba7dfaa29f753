"""Sets of values: of the parameters of distributions, and of samples. PyTorch's names."""

from typing import Any

from .. import _plugrad, linalg
from .._plugrad import Tensor

__all__ = ["Constraint", "boolean", "dependent", "greater_than", "greater_than_eq", "half_open_interval", "independent",
           "integer_interval", "interval", "less_than", "lower_cholesky", "multinomial", "nonnegative",
           "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "real", "real_vector",
           "simplex", "unit_interval"]


class Constraint:
    """A set. check(value) returns a bool for each element, or for each event of event_dim axes."""

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"[constraints] {type(self).__name__} has no check")

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in vars(self).items() if not name.startswith("_"))
        name = type(self).__name__.removeprefix("_").lower()
        return f"{name}({numbers})" if numbers else name


class _Dependent(Constraint):
    """A set that depends on other parameters, or on the distribution."""


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # False for NaN


class interval(Constraint):
    """lower_bound <= x <= upper_bound."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return _tensor((value >= self.lower_bound) & (value <= self.upper_bound))


class half_open_interval(interval):
    """lower_bound <= x < upper_bound."""

    def check(self, value: Tensor) -> Tensor:
        return _tensor((value >= self.lower_bound) & (value < self.upper_bound))


class integer_interval(interval):
    """Whole numbers with lower_bound <= x <= upper_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _is_whole(value) & super().check(value)


class greater_than(Constraint):
    """x > lower_bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return _tensor(value > self.lower_bound)


class greater_than_eq(greater_than):
    """x >= lower_bound."""

    def check(self, value: Tensor) -> Tensor:
        return _tensor(value >= self.lower_bound)


class less_than(Constraint):
    """x < upper_bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return _tensor(value < self.upper_bound)


class _IntegerFrom(greater_than_eq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _is_whole(value) & super().check(value)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6 * value.shape[-1])


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class multinomial(Constraint):
    """Counts with a sum of upper_bound, along the last axis."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return _tensor(((value >= 0) & _is_whole(value)).all(-1) & (value.sum(-1) <= self.upper_bound))


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value == value.tril()).all(-1).all(-1) & (value.diagonal(0, -2, -1) > 0).all(-1)


class _PositiveDefinite(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        symmetric = ((value - value.mT).abs() <= 1e-6 * (1 + value.abs())).all(-1).all(-1)
        return symmetric & (linalg.eigvalsh(value) > 0).all(-1)


class independent(Constraint):
    """A set of events, with `reinterpreted_batch_ndims` more axes than base_constraint's."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        made = self.base_constraint.check(value)
        for _ in range(self.reinterpreted_batch_ndims):
            made = made.all(-1)
        return made


def _tensor(made: Any) -> Tensor:
    """For type checkers: bounds may be numbers or tensors."""
    checked: Tensor = made
    return checked


def _is_whole(value: Tensor) -> Tensor:
    return value == _plugrad.floor(value) if value.is_floating_point() else value == value


boolean = _Boolean()
dependent = _Dependent()
real = _Real()
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer = _IntegerFrom(0)
positive_integer = _IntegerFrom(1)
simplex = _Simplex()
one_hot = _OneHot()
lower_cholesky = _LowerCholesky()
positive_definite = _PositiveDefinite()
