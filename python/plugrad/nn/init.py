"""Functions that write initial values of parameters in place, without recording; each function returns its tensor. fan_in
and fan_out of a tensor (out, in, ..) are `in` and `out` times the product of the further extents. The functions raise
ValueError for integers, for bounds in the wrong order, and, if they need fan_in or fan_out, for fewer than 2 dims."""

from .._plugrad import Tensor
from .._plugrad import (_init_calculate_gain as calculate_gain, _init_constant_ as constant_, _init_eye_ as eye_,
                        _init_kaiming_normal_ as kaiming_normal_, _init_kaiming_uniform_ as kaiming_uniform_,
                        _init_normal_ as normal_, _init_orthogonal_ as orthogonal_, _init_trunc_normal_ as trunc_normal_,
                        _init_uniform_ as uniform_, _init_xavier_normal_ as xavier_normal_,
                        _init_xavier_uniform_ as xavier_uniform_)

__all__ = ["calculate_gain", "constant_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_",
           "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_"]


def ones_(tensor: Tensor) -> Tensor:
    """Fills the tensor with 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills the tensor with 0."""
    return constant_(tensor, 0.0)
