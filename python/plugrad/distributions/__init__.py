"""Probability distributions with PyTorch's names: samples, with gradients where the distribution can be reparametrised,
logarithms of densities, moments, entropies and divergences."""

from . import constraints as constraints, transforms as transforms
from .composed import Independent, MixtureSameFamily, TransformedDistribution
from .continuous import Cauchy, Exponential, Gumbel, Laplace, Pareto, Uniform, Weibull
from .discrete import Bernoulli, Binomial, Categorical, Geometric, Multinomial, OneHotCategorical, Poisson
from .distribution import Distribution, ExponentialFamily
from .gammas import Beta, Chi2, Dirichlet, Gamma, StudentT
from .kl import kl_divergence, register_kl
from .normal import HalfNormal, LogNormal, MultivariateNormal, Normal
from .registry import biject_to, transform_to
from .transforms import identity_transform

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential",
           "ExponentialFamily", "Gamma", "Geometric", "Gumbel", "HalfNormal", "Independent", "Laplace", "LogNormal",
           "MixtureSameFamily", "Multinomial", "MultivariateNormal", "Normal", "OneHotCategorical", "Pareto", "Poisson",
           "StudentT", "TransformedDistribution", "Uniform", "Weibull", "biject_to", "constraints", "identity_transform",
           "kl_divergence", "register_kl", "transform_to", "transforms"]
