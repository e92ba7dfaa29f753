"""Transforms from real numbers to a constraint."""

from collections.abc import Callable
from typing import Any

from . import constraints
from .constraints import Constraint
from .transforms import (AffineTransform, ComposeTransform, ExpTransform, IndependentTransform, LowerCholeskyTransform,
                         SigmoidTransform, SoftmaxTransform, StickBreakingTransform, Transform, identity_transform)

__all__ = ["biject_to", "transform_to"]

def _to_interval(constraint: Any) -> Transform:
    width = constraint.upper_bound - constraint.lower_bound
    return ComposeTransform([SigmoidTransform(), AffineTransform(constraint.lower_bound, width)])


def _found(constraint: Constraint, for_simplex: Callable[[], Transform], name: str) -> Transform:
    if constraint is constraints.real:
        return identity_transform
    if isinstance(constraint, constraints.independent):
        return IndependentTransform(_found(constraint.base_constraint, for_simplex, name),
                                    constraint.reinterpreted_batch_ndims)
    if isinstance(constraint, constraints.interval) and not constraint.is_discrete:
        return SigmoidTransform() if constraint is constraints.unit_interval else _to_interval(constraint)
    if isinstance(constraint, constraints.greater_than) and not constraint.is_discrete:
        shift = AffineTransform(constraint.lower_bound, 1)
        return ExpTransform() if constraint in (constraints.positive, constraints.nonnegative) else \
            ComposeTransform([ExpTransform(), shift])
    if isinstance(constraint, constraints.less_than):
        return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])
    if constraint is constraints.simplex:
        return for_simplex()
    if constraint is constraints.lower_cholesky:
        return LowerCholeskyTransform()
    raise NotImplementedError(f"[{name}] there is no transform to {constraint!r}")


def biject_to(constraint: Constraint) -> Transform:
    """A bijection from real numbers to a constraint."""
    return _found(constraint, StickBreakingTransform, "biject_to")


def transform_to(constraint: Constraint) -> Transform:
    """A transform from real numbers to a constraint that suits optimisation; it may not be a bijection."""
    return _found(constraint, SoftmaxTransform, "transform_to")
