"""Functions over the parameters of a module: limits of gradients, parameters as a single vector, parametrizations; and
sequences of different lengths (rnn)."""

from collections.abc import Iterable

from ... import _plugrad
from ..._modes import no_grad
from ..._plugrad import Tensor
from . import parametrizations as parametrizations, parametrize as parametrize, rnn as rnn

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "parametrizations", "parametrize", "rnn",
           "vector_to_parameters"]


def _listed(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """Multiplies the gradients by max_norm / (total + 1e-6) if this factor is below 1, where total is the norm of all
    gradients as a vector. Returns total. error_if_nonfinite: raises RuntimeError, before it multiplies, for a NaN or
    infinite total; this check waits for the device. foreach is accepted: all gradients are clipped together."""
    listed = _listed(parameters)
    if error_if_nonfinite:
        total = _plugrad.clip_grad_norm_(listed, float("inf"), norm_type)
        if not bool(_plugrad.isfinite(total)):
            raise RuntimeError(f"[clip_grad_norm_] the norm of the gradients is {total:g}")
    return _plugrad.clip_grad_norm_(listed, max_norm, norm_type)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limits each element of the gradients to [-clip_value, clip_value]."""
    _plugrad.clip_grad_value_(_listed(parameters), clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns the elements of all parameters as a vector."""
    return _plugrad.cat([each.reshape(-1) for each in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes the elements of a vector into the parameters. Raises ValueError where the numbers of elements differ."""
    listed = list(parameters)
    count = sum(each.numel() for each in listed)
    if vec.shape != (count,):
        raise ValueError(f"[vector_to_parameters] a vector of shape {vec.shape} for {count} elements")
    at = 0
    with no_grad():
        for each in listed:
            each.copy_(vec[at:at + each.numel()].reshape(each.shape))
            at += each.numel()
