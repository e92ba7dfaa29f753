"""What all distributions share."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Tensor
from . import constraints
from .constraints import Constraint

__all__ = ["Distribution", "ExponentialFamily"]

Shape = tuple[int, ...]


def as_tensors(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of a common shape, dtype and device."""
    given = [each for each in values if isinstance(each, Tensor)]
    dtype = given[0].dtype if given else _plugrad.get_default_dtype()
    device = given[0].device if given else None
    made = [each if isinstance(each, Tensor) else Tensor(each, dtype=dtype, device=device, requires_grad=False)
            for each in values]
    return tuple(_plugrad.broadcast_tensors(*made))


def sum_last(x: Tensor, axes: int) -> Tensor:
    """The sum over the last axes."""
    return x.sum(tuple(range(x.ndim - axes, x.ndim))) if axes else x


class Distribution:
    """Distributions of tensors of event_shape, one for each element of batch_shape.

    sample(sample_shape) has the shape sample_shape + batch_shape + event_shape. Parameters are numbers or tensors, which
    broadcast. validate_args: checks parameters, and the values given to log_prob and others, and raises ValueError for
    values outside; by default on, but never in compiled steps, where no element can be read.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample: bool = False
    has_enumerate_support: bool = False
    _tensors: tuple[str, ...] = ()  # the attributes with tensors of batch_shape + more axes
    _derived: str = ""  # the parameter that follows from another one, and so needs no check
    _validates_by_default: ClassVar[bool] = True

    def __init__(self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
                 validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        self._validates = Distribution._validates_by_default if validate_args is None else validate_args
        if not self._validates or _plugrad._is_recording():
            return
        for name, constraint in self.arg_constraints.items():
            value = vars(self).get(name)
            if value is None or name == self._derived or isinstance(constraint, constraints._Dependent):
                continue
            if not bool(constraint.check(value).all()):
                raise ValueError(f"[{type(self).__name__}] {name} has values outside of {constraint!r}: {value!r}")

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check values by default."""
        Distribution._validates_by_default = value

    @property
    def batch_shape(self) -> Shape:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """The set of samples."""
        raise NotImplementedError(f"[{type(self).__name__}] has no support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"[{type(self).__name__}] has no mean")

    @property
    def mode(self) -> Tensor:
        """The value of the largest probability or density."""
        raise NotImplementedError(f"[{type(self).__name__}] has no mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element."""
        raise NotImplementedError(f"[{type(self).__name__}] has no variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Returns a sample without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Returns a sample with gradients for the parameters, by the reparametrisation of the distribution."""
        raise NotImplementedError(f"[{type(self).__name__}] has no reparametrised samples: use sample() and log_prob()")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability, or density, at value."""
        raise NotImplementedError(f"[{type(self).__name__}] has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample of at most value."""
        raise NotImplementedError(f"[{type(self).__name__}] has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf."""
        raise NotImplementedError(f"[{type(self).__name__}] has no icdf")

    def entropy(self) -> Tensor:
        """The mean of -log_prob."""
        raise NotImplementedError(f"[{type(self).__name__}] has no entropy")

    def perplexity(self) -> Tensor:
        """e to the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first axis; expand: for each distribution of the batch."""
        raise NotImplementedError(f"[{type(self).__name__}] cannot list its support")

    def expand(self, batch_shape: Sequence[int]) -> Any:
        """The distribution with parameters expanded to batch_shape."""
        made, shape = copy.copy(self), tuple(batch_shape)
        for name in self._tensors:
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                setattr(made, name, value.expand(shape + tuple(value.shape[len(self._batch_shape):])))
        made._batch_shape = shape
        return made

    def _extended(self, sample_shape: Sequence[int]) -> Shape:
        return tuple(sample_shape) + self._batch_shape + self._event_shape

    def _check_value(self, value: Any) -> None:
        if not self._validates or _plugrad._is_recording():
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"[{type(self).__name__}] the value is a {type(value).__name__}: expected a tensor")
        wanted = self._batch_shape + self._event_shape
        try:
            fits = value.ndim >= len(self._event_shape) and len(_plugrad.broadcast_shapes(tuple(value.shape), wanted)) >= 0
        except ValueError:
            fits = False
        if not fits or tuple(value.shape[value.ndim - len(self._event_shape):]) != self._event_shape:
            raise ValueError(f"[{type(self).__name__}] the value has the shape {value.shape}: it must broadcast with "
                             f"batch_shape {self._batch_shape} and end with event_shape {self._event_shape}")
        if not bool(self.support.check(value).all()):
            raise ValueError(f"[{type(self).__name__}] the value is outside of the support, {self.support!r}: {value!r}")

    def __repr__(self) -> str:
        def shown(value: Any) -> str:
            return repr(value) if value.numel() == 1 else f"{tuple(value.shape)}"
        values = {name: vars(self).get(name) for name in self._tensors}
        inner = ", ".join(f"{name}: {shown(value)}" for name, value in values.items() if isinstance(value, Tensor))
        return f"{type(self).__name__}({inner})"


class ExponentialFamily(Distribution):
    """Distributions whose density is exp(<natural parameters, statistics> - log normaliser), times a base measure."""
