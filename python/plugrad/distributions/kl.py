"""The Kullback-Leibler divergence of distributions."""

import math
from collections.abc import Callable
from typing import Any

from .. import _plugrad, linalg
from .._plugrad import Tensor
from .composed import Independent
from .continuous import Exponential, Laplace, Uniform
from .discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from .distribution import Distribution, sum_last
from .gammas import Beta, Chi2, Dirichlet, Gamma
from .normal import HalfNormal, LogNormal, MultivariateNormal, Normal

__all__ = ["kl_divergence", "register_kl"]

_rules: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable[[Any, Any], Tensor]], Callable[[Any, Any], Tensor]]:
    """A decorator for a function of two distributions that computes their divergence."""
    def register(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
        _rules[type_p, type_q] = function
        return function
    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean of ln p(x) - ln q(x) for x of p, of the shape of the batches. Raises NotImplementedError for a pair without a
    formula."""
    for kind_p in type(p).__mro__:
        for kind_q in type(q).__mro__:
            if (kind_p, kind_q) in _rules and _is_same_kind(p, kind_p) and _is_same_kind(q, kind_q):
                return _rules[kind_p, kind_q](p, q)
    raise NotImplementedError(f"[kl_divergence] there is no formula for {type(p).__name__} and {type(q).__name__}: use "
                              "samples and log_prob, or register_kl")


def _is_same_kind(of: Distribution, kind: type) -> bool:
    """Whether a formula for this kind holds: classes that share code with Normal have other densities."""
    return not isinstance(of, (HalfNormal, LogNormal)) or kind is not Normal


@register_kl(Normal, Normal)
def _(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale) ** 2
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale) ** 2 - 1 - ratio.log())


@register_kl(LogNormal, LogNormal)
@register_kl(HalfNormal, HalfNormal)
def _(p: Normal, q: Normal) -> Tensor:
    return _rules[Normal, Normal](p, q)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    shape = tuple(_plugrad.broadcast_shapes(p.batch_shape, q.batch_shape))
    p, q = p.expand(shape), q.expand(shape)
    ratio = linalg.solve_triangular(q.scale_tril, p.scale_tril, upper=False)
    away = linalg.solve_triangular(q.scale_tril, (q.loc - p.loc).unsqueeze(-1), upper=False)
    return q._log_det() - p._log_det() + 0.5 * ((ratio ** 2).sum((-2, -1)) + (away ** 2).sum((-2, -1)) - p.loc.shape[-1])


@register_kl(Uniform, Uniform)
def _(p: Uniform, q: Uniform) -> Tensor:
    made = ((q.high - q.low) / (p.high - p.low)).log()
    return _plugrad.where((q.low > p.low) | (q.high < p.high), math.inf, made)


@register_kl(Exponential, Exponential)
def _(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Laplace, Laplace)
def _(p: Laplace, q: Laplace) -> Tensor:
    away, ratio = (p.loc - q.loc).abs(), p.scale / q.scale
    return -ratio.log() + away / q.scale + ratio * (-away / p.scale).exp() - 1


@register_kl(Gamma, Gamma)
@register_kl(Chi2, Chi2)
def _(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    return (b * (p.rate / q.rate).log() + _plugrad.lgamma(b) - _plugrad.lgamma(a) + (a - b) * _plugrad.digamma(a)
            + (q.rate - p.rate) * (a / p.rate))


@register_kl(Beta, Beta)
def _(p: Beta, q: Beta) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    return (q._log_beta() - p._log_beta() + (a - c) * _plugrad.digamma(a) + (b - d) * _plugrad.digamma(b)
            + (c + d - a - b) * _plugrad.digamma(a + b))


@register_kl(Dirichlet, Dirichlet)
def _(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1, True)
    normalisers = (_plugrad.lgamma(total.squeeze(-1)) - _plugrad.lgamma(a).sum(-1) - _plugrad.lgamma(b.sum(-1))
                   + _plugrad.lgamma(b).sum(-1))
    return normalisers + ((a - b) * (_plugrad.digamma(a) - _plugrad.digamma(total))).sum(-1)


@register_kl(Bernoulli, Bernoulli)
def _(p: Bernoulli, q: Bernoulli) -> Tensor:
    made = p.probs * (p.logits - q.logits) + _plugrad.softplus(q.logits) - _plugrad.softplus(p.logits)
    is_outside = ((q.probs == 0) & (p.probs > 0)) | ((q.probs == 1) & (p.probs < 1))
    return _plugrad.where(is_outside, math.inf, made)


@register_kl(Binomial, Binomial)
def _(p: Binomial, q: Binomial) -> Tensor:
    each = _rules[Bernoulli, Bernoulli](p, q)
    return _plugrad.where(p.total_count > q.total_count, math.inf,
                          _plugrad.where(p.total_count == q.total_count, p.total_count * each,
                                         _plugrad.full_like(each, math.nan)))


@register_kl(Geometric, Geometric)
def _(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _(p: Poisson, q: Poisson) -> Tensor:
    is_zero = p.rate == 0
    ratio = _plugrad.where(is_zero, 1.0, p.rate).log() - _plugrad.where(is_zero, 1.0, q.rate).log()
    return p.rate * ratio - p.rate + q.rate


@register_kl(Categorical, Categorical)
@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: Categorical, q: Categorical) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = _plugrad.where((q.probs == 0) & (p.probs > 0), math.inf, each)
    return _plugrad.where(p.probs == 0, 0.0, each).sum(-1)


@register_kl(Independent, Independent)
def _(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("[kl_divergence] the numbers of reinterpreted_batch_ndims differ")
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
