"""Distributions of whole numbers and of classes."""

import math
from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Tensor
from ..array_api import finfo
from . import constraints
from ._samplers import binomial, poisson
from .constraints import Constraint
from .distribution import Distribution, ExponentialFamily, as_tensors

__all__ = ["Bernoulli", "Binomial", "Categorical", "Geometric", "Multinomial", "OneHotCategorical", "Poisson"]


class _OfOdds(ExponentialFamily):
    """Parameters are either probs or logits, their log-odds; the other one follows."""

    _tensors: tuple[str, ...] = ("probs", "logits")
    probs: Tensor
    logits: Tensor

    def _set(self, name: str, probs: Any, logits: Any, *more: Any) -> tuple[Tensor, ...]:
        if (probs is None) == (logits is None):
            raise ValueError(f"[{name}] give either probs or logits, not " + ("none" if probs is None else "both"))
        value, *rest = as_tensors(probs if logits is None else logits, *more)
        eps = float(finfo(value.dtype).eps)
        if logits is None:
            inner = value.clamp(eps, 1 - eps)
            self.probs, self.logits, self._derived = value, inner.log() - (-inner).log1p(), "logits"
        else:
            self.probs, self.logits, self._derived = value.sigmoid(), value, "probs"
        return tuple(rest)


class Bernoulli(_OfOdds):
    """1 with the probability probs, else 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set("Bernoulli", probs, logits)
        super().__init__(self.probs.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return _plugrad.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = _plugrad.rand(self._extended(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return (u < self.probs).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return value * self.logits - _plugrad.softplus(self.logits)

    def entropy(self) -> Tensor:
        return _plugrad.softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _listed(2, self, self.probs, expand)


def _listed(count: int, of: Distribution, like: Tensor, expand: bool) -> Tensor:
    values = _plugrad.arange(count, dtype=like.dtype, device=like.device).reshape(-1, *[1] * len(of.batch_shape))
    return values.expand((count, *of.batch_shape)) if expand else values


class Geometric(_OfOdds):
    """The number of failures before the first success, each trial a success with the probability probs."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set("Geometric", probs, logits)
        super().__init__(self.probs.shape, validate_args=validate_args)
        if self._validates and not _plugrad._is_recording() and not bool((self.probs > 0).all()):
            raise ValueError(f"[Geometric] probs must be above 0: {self.probs!r}")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return _plugrad.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = 1 - _plugrad.rand(self._extended(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        failing = _plugrad.where((self.probs == 1) & (value == 0), 0.0, self.probs)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return (_plugrad.softplus(self.logits) - self.probs * self.logits) / self.probs


class Binomial(_OfOdds):
    """The number of successes in total_count trials, each with the probability probs. Samples take a time proportional to
    the largest count."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    _tensors = ("total_count", "probs", "logits")

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:
        self.total_count, = self._set("Binomial", probs, logits, total_count)
        self.total_count = self.total_count.to(self.probs.dtype)
        super().__init__(self.probs.shape, validate_args=validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().minimum(self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended(sample_shape)
        return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self.total_count
        choices = _plugrad.lgamma(n + 1) - _plugrad.lgamma(value + 1) - _plugrad.lgamma(n - value + 1)
        return choices + value * self.logits - n * _plugrad.softplus(self.logits)

    def entropy(self) -> Tensor:
        values = self.enumerate_support(False)
        log_prob = self.log_prob(values)
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if not bool((self.total_count == most).all()):
            raise NotImplementedError("[Binomial] the counts of the batch differ, so the support has no common list")
        return _listed(most + 1, self, self.probs, expand)


class Poisson(ExponentialFamily):
    """The probability rate^k e^(-rate) / k!."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _tensors = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.rate, = as_tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return poisson(self.rate.expand(self._extended(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return _plugrad.xlogy(value, self.rate) - self.rate - _plugrad.lgamma(value + 1)


class Categorical(Distribution):
    """A class from 0 to n - 1, by probs (.., n), which are scaled to the sum 1, or by logits (.., n), their logarithms up to
    a constant."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _tensors = ("probs", "logits")

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError(f"[{type(self).__name__}] give either probs or logits, not "
                             + ("none" if probs is None else "both"))
        given: Any = logits if probs is None else probs
        if given.ndim < 1:
            raise ValueError(f"[{type(self).__name__}] probs and logits must have at least 1 dim")
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
            eps = float(finfo(probs.dtype).eps)
            self.logits, self._derived = self.probs.clamp(eps, 1 - eps).log(), "logits"
        else:
            self._derived = "probs"
            self.logits = given - _plugrad.logsumexp(given, -1, True)
            self.probs = self.logits.exp()
        super().__init__(given.shape[:-1], self._event(given.shape[-1]), validate_args)

    def _event(self, classes: int) -> tuple[int, ...]:
        return ()

    @property
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.probs.shape[-1] - 1)

    @property
    def mean(self) -> Tensor:
        return _plugrad.full(self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Returns classes, i64."""
        shape = tuple(sample_shape) + self._batch_shape
        noise = -(-(1 - _plugrad.rand((*shape, self.probs.shape[-1]), dtype=self.probs.dtype, device=self.probs.device))
                  .log()).log()
        return (self.probs.log() + noise).argmax(-1)  # the largest of Gumbel samples

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        index = value.to("i64").unsqueeze(-1)
        shape = _plugrad.broadcast_shapes(tuple(index.shape[:-1]), self._batch_shape)
        logits = self.logits.expand((*shape, self.logits.shape[-1]))
        return logits.gather(-1, index.expand((*shape, 1))).squeeze(-1)

    def entropy(self) -> Tensor:
        return -(self.probs * self.logits.clamp(min=float(finfo(self.logits.dtype).min))).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return _listed(self.probs.shape[-1], self, _plugrad.zeros((), dtype="i64", device=self.probs.device), expand)


class OneHotCategorical(Categorical):
    """As Categorical, with classes as vectors (n) that are 1 at the class and 0 elsewhere."""

    def _event(self, classes: int) -> tuple[int, ...]:
        return (classes,)

    @property
    def support(self) -> Constraint:
        return constraints.one_hot

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return _plugrad.one_hot(index, self.probs.shape[-1]).to(self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(super().sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        return (value * _plugrad.where(value == 0, 0.0, self.logits)).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.probs.shape[-1]
        values = _plugrad.eye(n, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape(n, *[1] * len(self._batch_shape), n)
        return values.expand((n, *self._batch_shape, n)) if expand else values


class Multinomial(Distribution):
    """The counts of classes in total_count draws, by probs or logits (.., n) as in Categorical."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _tensors = ("probs", "logits")

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int) or total_count < 0:
            raise ValueError(f"[Multinomial] total_count is {total_count!r}: expected a whole number of at least 0")
        each = Categorical(probs, logits, validate_args)
        self.total_count, self.probs, self.logits, self._derived = total_count, each.probs, each.logits, each._derived
        super().__init__(each.batch_shape, each.probs.shape[-1:], validate_args)

    @property
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def entropy(self) -> Tensor:
        each = Binomial(self.total_count, self.probs, validate_args=False)
        counts = each.enumerate_support(False)
        repeats = (each.log_prob(counts).exp() * _plugrad.lgamma(counts + 1)).sum((0, -1))
        alone = self.total_count * Categorical(self.probs, validate_args=False).entropy()
        return alone - math.lgamma(self.total_count + 1) + repeats

    @no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        each = Categorical(self.probs, validate_args=False)
        drawn = each.sample((self.total_count, *sample_shape))
        return _plugrad.one_hot(drawn, self.probs.shape[-1]).sum(0).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        choices = _plugrad.lgamma(value.sum(-1) + 1) - _plugrad.lgamma(value + 1).sum(-1)
        return choices + (value * _plugrad.where(value == 0, 0.0, self.logits)).sum(-1)
