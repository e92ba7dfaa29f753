"""Products of many matrices: reflections and the exponential."""

from . import _plugrad
from ._plugrad import Tensor

# --- Reflections, as LAPACK stores them: x - tau (v . x) v, where v begins with zeros and a 1.


def _reflections(input: Tensor, tau: Tensor) -> list[tuple[Tensor, Tensor]]:
    """(v, tau) of each column: (.., m, 1) and (.., 1, 1)."""
    rows, columns = input.shape[-2:]
    one = _plugrad.eye(rows, columns, dtype=input.dtype, device=input.device)
    lower = input.tril(-1) + one
    return [(lower[..., i:i + 1], tau[..., i:i + 1].unsqueeze(-1)) for i in range(tau.shape[-1])]


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product Q other, or other Q if left is False, for the square Q of linalg.householder_product(input, tau); with
    transpose Q^T."""
    reflections = _reflections(input, tau)
    product = other if left else other.transpose(-2, -1)
    for v, factor in reversed(reflections) if left != transpose else reflections:
        product = product - factor * v @ (v.transpose(-2, -1) @ product)
    return product if left else product.transpose(-2, -1)


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns (.., m, n) of the product of the reflections in the columns of input (.., m, n)."""
    rows, columns = input.shape[-2:]
    one = _plugrad.eye(rows, columns, dtype=input.dtype, device=input.device).expand(*input.shape)
    return ormqr(input, tau, one)


# --- The exponential.


def matrix_exp(A: Tensor) -> Tensor:
    """The sum of A^k / k! for square matrices: Taylor's series of A / 2^s, squared s times. Waits for the device."""
    if not A.shape[-1] or not A.numel():
        return A.clone()
    size = float(A.detach().abs().sum(-2).amax())
    squarings = 0
    while size > 0.5 and squarings < 1024:
        size, squarings = size / 2, squarings + 1
    scaled = A / 2.0**squarings
    one = _plugrad.eye(A.shape[-1], dtype=scaled.dtype, device=A.device).expand(*A.shape)
    total = one
    for k in range(14, 0, -1):  # 0.5^15 / 15! is below the epsilon of f64
        total = one + scaled @ total / k
    for _ in range(squarings):
        total = total @ total
    return total
