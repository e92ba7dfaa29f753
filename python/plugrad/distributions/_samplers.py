"""Samples that need more than a formula of uniform or normal numbers. Except for binomial, the host reads no element, so
they can be part of compiled steps: loops have a fixed number of rounds."""

import math
from functools import cache
from typing import Any

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Tensor
from ..array_api import finfo
from ..autograd import Function

_ROUNDS = 10  # a round of standard_gamma accepts more than 95 %
_TERMS = 260  # of the series of gamma_slope, up to a concentration of 100


def _uniform(like: Tensor) -> Tensor:
    """Uniform numbers in (0, 1]."""
    return 1 - _plugrad.rand(tuple(like.shape), dtype=like.dtype, device=like.device)


def _normal(like: Tensor) -> Tensor:
    return _plugrad.randn(tuple(like.shape), dtype=like.dtype, device=like.device)


@no_grad()
def _draw_gamma(alpha: Tensor) -> Tensor:
    """Marsaglia and Tsang, A Simple Method for Generating Gamma Variables, 2000. A concentration below 1 is raised by 1, and
    the sample multiplied by a power of a uniform number (section 6). Returns logarithms: samples may be too small for the
    dtype."""
    small = alpha < 1
    d = _plugrad.where(small, alpha + 1, alpha) - 1 / 3
    c = 1 / (9 * d).sqrt()
    made, done = d, small & False  # rejected in all rounds: the mode
    for _ in range(_ROUNDS):
        z = _normal(alpha)
        v = (1 + c * z) ** 3
        accepted = (v > 0) & (_uniform(alpha).log() < 0.5 * z * z + d - d * v + d * _plugrad.where(v > 0, v, 1.0).log())
        made = _plugrad.where(accepted & ~done, d * v, made)
        done = done | accepted
    return made.log() + _plugrad.where(small, _uniform(alpha).log() / alpha, 0.0)


def _slope_by_series(alpha: Tensor, log_x: Tensor) -> Tensor:
    """-(dP/dalpha) / (x dP/dx) for the regularised lower incomplete gamma function P(alpha, x), by its power series: with
    M = sum x^n / ((alpha + 1) .. (alpha + n)), it is -(M (ln x - digamma(alpha + 1)) + dM/dalpha) / alpha."""
    x = log_x.exp()
    term, total = _plugrad.ones_like(x), _plugrad.ones_like(x)
    harmonic, slope = _plugrad.zeros_like(x), _plugrad.zeros_like(x)
    for n in range(1, _TERMS):
        term = term * (x / (alpha + n))
        harmonic = harmonic - 1 / (alpha + n)
        total, slope = total + term, slope + term * harmonic
    return -(total * (log_x - _plugrad.digamma(alpha + 1)) + slope) / alpha


def _slope_by_quantile(alpha: Tensor, log_x: Tensor) -> Tensor:
    """The derivative of the Cornish-Fisher expansion of the quantile x(alpha, z) for a fixed normal quantile z, divided by
    x, for a large alpha."""
    x = log_x.exp()
    root = alpha.sqrt()
    z = (x - alpha) / root
    for _ in range(6):
        z = (x - alpha - (z * z - 1) / 3 - (z ** 3 - 7 * z) / (36 * root)
             + (3 * z ** 4 + 7 * z * z - 16) / (810 * alpha)
             - (9 * z ** 5 + 256 * z ** 3 - 433 * z) / (38880 * alpha * root)) / root
    return (1 + z / (2 * root) - (z ** 3 - 7 * z) / (72 * alpha * root)
            + (3 * z ** 4 + 7 * z * z - 16) / (810 * alpha ** 2)
            - 1.5 * (9 * z ** 5 + 256 * z ** 3 - 433 * z) / (38880 * alpha ** 2 * root)) / x


@cache
def _precise(device: str) -> str:
    """f64, or f32 on a device without kernels for f64."""
    try:
        _plugrad.digamma(_plugrad.ones((1,), dtype="f64", device=device)).log()
        return "f64"
    except NotImplementedError:
        return "f32"


@no_grad()
def gamma_slope(alpha: Tensor, log_x: Tensor) -> Tensor:
    """The derivative of the logarithm of a sample x of Gamma(alpha, 1) for alpha, at a fixed probability (implicit
    reparametrisation: Figurnov et al., 2018). Computed in f64, if the device can."""
    dtype = _precise(str(alpha.device))
    a, at = alpha.to(dtype), log_x.to(dtype)
    is_large = a > 100
    small = _slope_by_series(_plugrad.where(is_large, 1.0, a), _plugrad.where(is_large, 0.0, at))
    large = _slope_by_quantile(_plugrad.where(is_large, a, 200.0), _plugrad.where(is_large, at, math.log(200)))
    return _plugrad.where(is_large, large, small).to(alpha.dtype)


class _LogGamma(Function):
    @staticmethod
    def forward(ctx: Any, alpha: Tensor) -> Tensor:
        log_x = _draw_gamma(alpha.detach())
        ctx.save_for_backward(alpha, log_x)
        return log_x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        alpha, log_x = ctx.saved_tensors
        return grad * gamma_slope(alpha, log_x)


def log_gamma_sample(alpha: Tensor) -> Tensor:
    """Logarithms of samples of Gamma(alpha, 1), with gradients for alpha."""
    made: Tensor = _LogGamma.apply(alpha)
    return made


def standard_gamma(alpha: Tensor) -> Tensor:
    """Samples of Gamma(alpha, 1), with gradients for alpha."""
    return log_gamma_sample(alpha).exp().clamp(min=float(finfo(alpha.dtype).smallest_normal))


@no_grad()
def poisson(rate: Tensor) -> Tensor:
    """Samples of the Poisson distribution: by inversion for rates below 10, else by PTRS of Hormann, The Transformed
    Rejection Method for Generating Poisson Random Variables, 1993."""
    is_small = rate < 10
    low, high = _plugrad.where(is_small, rate, 1.0), _plugrad.where(is_small, 10.0, rate)
    u, probability = _uniform(rate), (-low).exp()
    below, counted = probability, _plugrad.zeros_like(rate)
    for number in range(1, 60):
        counted = _plugrad.where(u > below, float(number), counted)
        probability = probability * low / number
        below = below + probability
    b = 0.931 + 2.53 * high.sqrt()
    a, inverse, v_r = -0.059 + 0.02483 * b, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    made, done = high.floor(), is_small & False
    for _ in range(2 * _ROUNDS):
        u, v = _uniform(rate) - 0.5, _uniform(rate)
        us = 0.5 - u.abs()
        k = ((2 * a / us.clamp(min=1e-30) + b) * u + high + 0.43).floor()
        valid = (k >= 0) & ((us >= 0.013) | (v <= us))
        right = k * high.log() - high - _plugrad.lgamma(k.clamp(min=0.0) + 1)
        left = (v * inverse / (a / (us * us).clamp(min=1e-30) + b)).log()
        accepted = valid & (((us >= 0.07) & (v <= v_r)) | (left <= right))
        made = _plugrad.where(accepted & ~done, k, made)
        done = done | accepted
    return _plugrad.where(is_small, counted, made)


@no_grad()
def binomial(count: Tensor, probability: Tensor) -> Tensor:
    """Samples of the binomial distribution, as sums of trials: the time grows with the largest count."""
    most = int(math.ceil(float(count.max()))) if count.numel() else 0
    made = _plugrad.zeros_like(probability)
    for trial in range(most):
        made = made + ((_plugrad.rand(tuple(made.shape), dtype=made.dtype, device=made.device) < probability)
                       & (count > trial)).to(made.dtype)
    return made
