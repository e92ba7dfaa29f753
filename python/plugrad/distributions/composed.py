"""Distributions made of other distributions."""

import copy
from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Tensor
from . import constraints
from .constraints import Constraint
from .discrete import Categorical
from .distribution import Distribution, sum_last
from .transforms import ComposeTransform, Transform

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution whose last batch axes are axes of an event: log_prob sums over them."""

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None) -> None:
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise ValueError(f"[Independent] reinterpreted_batch_ndims is {n}: expected 0 to {len(batch)}")
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        super().__init__(batch[:len(batch) - n], batch[len(batch) - n:] + base_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Constraint:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def expand(self, batch_shape: Sequence[int]) -> "Independent":
        made, shape = copy.copy(self), tuple(batch_shape)
        made.base_dist = self.base_dist.expand(shape + self._event_shape[:self.reinterpreted_batch_ndims])
        made._batch_shape = shape
        return made

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of f(x) for a sample x of another distribution. transforms: a transform, or a list of transforms,
    called in turn."""

    def __init__(self, base_distribution: Distribution, transforms: Transform | Sequence[Transform],
                 validate_args: bool | None = None) -> None:
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        whole = ComposeTransform(self.transforms)
        base = base_distribution
        shape = whole.forward_shape(base.batch_shape + base.event_shape)
        event_dim = max(whole.codomain.event_dim, len(base.event_shape) + whole.codomain.event_dim - whole.domain.event_dim)
        if extra := whole.domain.event_dim - len(base.event_shape):
            base = Independent(base, extra) if extra > 0 else base
        self.base_dist = base
        super().__init__(shape[:len(shape) - event_dim], shape[len(shape) - event_dim:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Constraint:
        if not self.transforms:
            return self.base_dist.support
        codomain = self.transforms[-1].codomain
        extra = len(self._event_shape) - codomain.event_dim
        return constraints.independent(codomain, extra) if extra else codomain

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, x: Tensor) -> Tensor:
        for each in self.transforms:
            x = each(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        total: Any = 0.0
        event_dim, y = len(self._event_shape), value
        for each in reversed(self.transforms):
            x = each._inverse(y)
            event_dim += each.domain.event_dim - each.codomain.event_dim
            total = total - sum_last(each.log_abs_det_jacobian(x, y), event_dim - each.domain.event_dim)
            y = x
        made: Tensor = total + sum_last(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))
        return made

    def cdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for each in reversed(self.transforms):
            value, sign = each._inverse(value), sign * each.sign
        made: Tensor = sign * (self.base_dist.cdf(value) - 0.5) + 0.5
        return made

    def icdf(self, value: Tensor) -> Tensor:
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        return self._through(self.base_dist.icdf(sign * (value - 0.5) + 0.5))

    def expand(self, batch_shape: Sequence[int]) -> "TransformedDistribution":
        made, shape = copy.copy(self), tuple(batch_shape)
        whole = ComposeTransform(self.transforms).inverse_shape(shape + self._event_shape)
        made.base_dist = self.base_dist.expand(whole[:len(whole) - len(self.base_dist.event_shape)])
        made._batch_shape = shape
        return made

    def __repr__(self) -> str:
        return f"TransformedDistribution({self.base_dist!r}, {self.transforms!r})"


class MixtureSameFamily(Distribution):
    """A mixture: component_distribution has a last batch axis of components, of which mixture_distribution, a Categorical,
    draws one."""

    def __init__(self, mixture_distribution: Categorical, component_distribution: Distribution,
                 validate_args: bool | None = None) -> None:
        batch = component_distribution.batch_shape
        if not isinstance(mixture_distribution, Categorical) or not batch \
                or mixture_distribution.probs.shape[-1] != batch[-1]:
            raise ValueError("[MixtureSameFamily] give a Categorical with a class for each of the last batch axis of "
                             f"component_distribution, whose batch_shape is {batch}")
        self.mixture_distribution, self.component_distribution = mixture_distribution, component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    @property
    def support(self) -> Constraint:
        return self.component_distribution.support

    def _weights(self) -> Tensor:
        probs = self.mixture_distribution.probs
        return probs.reshape(tuple(probs.shape) + (1,) * len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self.component_distribution.mean).sum(-1 - len(self._event_shape))

    @property
    def variance(self) -> Tensor:
        axis, each = -1 - len(self._event_shape), self.component_distribution
        return (self._weights() * (each.variance + each.mean ** 2)).sum(axis) - self.mean ** 2

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self.component_distribution.sample(sample_shape)
        axis = drawn.ndim - 1 - len(self._event_shape)
        place = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        index = place.reshape(tuple(place.shape) + (1,) * (1 + len(self._event_shape)))
        return drawn.gather(axis, index.expand((*place.shape, 1, *self._event_shape))).squeeze(axis)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        each = self.component_distribution.log_prob(value.unsqueeze(-1 - len(self._event_shape)))
        return _plugrad.logsumexp(each + self.mixture_distribution.logits, -1)

    def cdf(self, value: Tensor) -> Tensor:
        return (self.component_distribution.cdf(value.unsqueeze(-1)) * self.mixture_distribution.probs).sum(-1)

    def expand(self, batch_shape: Sequence[int]) -> "MixtureSameFamily":
        made, shape = copy.copy(self), tuple(batch_shape)
        made.component_distribution = self.component_distribution.expand((*shape, self._weights().shape[len(
            self.mixture_distribution.batch_shape)]))
        made.mixture_distribution, made._batch_shape = self.mixture_distribution.expand(shape), shape
        return made
