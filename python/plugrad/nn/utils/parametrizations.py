"""Parametrizations of weights, with PyTorch's names."""

from typing import Any

from ... import _plugrad
from ..._modes import no_grad
from ..._plugrad import Tensor
from ..module import Module
from .parametrize import register_parametrization

__all__ = ["spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """g v / |v|, where |v| is the norm over all axes but dim, or over all axes if dim is None."""

    def __init__(self, dim: int | None) -> None:
        self.dim = None if dim == -1 else dim

    def _norm(self, v: Tensor) -> Tensor:
        axes = [axis for axis in range(v.ndim) if self.dim is None or axis != self.dim % v.ndim]
        return _plugrad.sqrt((v * v).sum(axes, keepdim=True)) if self.dim is not None else _plugrad.sqrt((v * v).sum())

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        return v * (g / self._norm(v))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return self._norm(weight), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Makes a parameter the product of a length and a direction, g v / |v|: Salimans and Kingma, Weight Normalization, 2016.
    parametrizations.NAME.original0 is g, and original1 is v. dim: the axis that keeps a length for each index; None or
    -1, as in PyTorch: a single length. Returns the module. Raises ValueError for an axis out of range."""
    weight: Any = getattr(module, name, None)
    if isinstance(weight, Tensor) and dim is not None and not -1 <= dim < weight.ndim:
        raise ValueError(f"[weight_norm] dim is {dim}: expected an axis from 0 to {weight.ndim - 1}, or None")
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """The weight divided by an estimate of its largest singular value, by power iterations: u^T W v."""

    def __init__(self, weight: Tensor, n_power_iterations: int, eps: float, dim: int) -> None:
        self.dim, self.eps, self.n_power_iterations = dim % max(weight.ndim, 1), eps, n_power_iterations
        if weight.ndim > 1:
            matrix = self._matrix(weight)
            u, v = (_plugrad.randn((extent,), dtype=weight.dtype, device=weight.device) for extent in matrix.shape)
            self.register_buffer("_u", _plugrad.normalize(u, axis=0, eps=eps))
            self.register_buffer("_v", _plugrad.normalize(v, axis=0, eps=eps))
            self._iterate(matrix, 15)

    _u: Tensor
    _v: Tensor

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    @no_grad()
    def _iterate(self, matrix: Tensor, count: int) -> None:
        matrix = matrix.detach()
        for _ in range(count):
            self._u.copy_(_plugrad.normalize(matrix @ self._v, axis=0, eps=self.eps))
            self._v.copy_(_plugrad.normalize(matrix.T @ self._u, axis=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return _plugrad.normalize(weight, axis=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / (self._u.clone() @ (matrix @ self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> Module:
    """Divides a parameter by its largest singular value, seen as a matrix with the rows of axis dim (Miyato et al., Spectral
    Normalization for Generative Adversarial Networks, 2018). Each access in training makes n_power_iterations steps of the
    estimate. dim: by default 1 for transposed convolutions, else 0. Returns the module. Raises ValueError for numbers out of
    range."""
    weight: Any = getattr(module, name, None)
    if not isinstance(weight, Tensor) or n_power_iterations < 1 or not eps > 0:
        raise ValueError(f"[spectral_norm] '{name}' must be a parameter, n_power_iterations ({n_power_iterations}) at least "
                         f"1, and eps ({eps}) above 0")
    axis = dim if dim is not None else int(getattr(module, "transposed", False))
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, eps, axis))
