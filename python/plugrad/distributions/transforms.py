"""Invertible functions of samples, and the logarithms of their Jacobian determinants. PyTorch's names."""

import math
from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from ..array_api import finfo
from . import constraints
from .constraints import Constraint
from .distribution import sum_last

__all__ = ["AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform",
           "LowerCholeskyTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
           "SoftplusTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform"]


class Transform:
    """y = f(x), from domain to codomain. log_abs_det_jacobian(x, y): ln |dy/dx|, summed over the axes of an event."""

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective: bool = True
    sign: Any = 1  # of the derivative of an elementwise bijection

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"[{type(self).__name__}] has no forward function")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"[{type(self).__name__}] has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError(f"[{type(self).__name__}] has no Jacobian determinant")

    @property
    def inv(self) -> "Transform":
        """The inverse transform."""
        return _Inverse(self)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of y for x of a shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of x for y of a shape."""
        return tuple(shape)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            same if isinstance(same := vars(self)[name] == vars(other)[name], bool) else bool(same.all())
            for name in vars(self))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class _Inverse(Transform):
    def __init__(self, of: Transform) -> None:
        self.of = of
        self.domain, self.codomain, self.bijective, self.sign = of.codomain, of.domain, of.bijective, of.sign

    def __call__(self, x: Tensor) -> Tensor:
        return self.of._inverse(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.of.log_abs_det_jacobian(y, x)

    @property
    def inv(self) -> Transform:
        return self.of

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.of.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return self.of.forward_shape(shape)


class ComposeTransform(Transform):
    """Several transforms in turn."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in parts)
        self.sign = 1
        for part in self.parts:
            self.sign = self.sign * part.sign
        if self.parts:
            self.domain, self.codomain = self.parts[0].domain, self.parts[-1].codomain
            if extra := self._event_dim() - self.domain.event_dim:
                self.domain = constraints.independent(self.domain, extra)
            if extra := self._event_dim() - self.codomain.event_dim:
                self.codomain = constraints.independent(self.codomain, extra)

    def _event_dim(self) -> int:
        return max((max(part.domain.event_dim, part.codomain.event_dim) for part in self.parts), default=0)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inverse(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return _plugrad.zeros_like(x)
        total: Any = 0
        for part in self.parts:
            z = part(x)
            total = total + sum_last(part.log_abs_det_jacobian(x, z), self._event_dim() - part.domain.event_dim)
            x = z
        made: Tensor = total
        return made

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)


identity_transform = ComposeTransform([])


class AffineTransform(Transform):
    """loc + scale x. event_dim: the axes of an event."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0) -> None:
        self.loc, self.scale, self.event_dim = loc, scale, event_dim
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (1 if self.scale > 0 else -1)

    def __call__(self, x: Tensor) -> Tensor:
        made: Tensor = self.loc + self.scale * x
        return made

    def _inverse(self, y: Tensor) -> Tensor:
        made: Tensor = (y - self.loc) / self.scale
        return made

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale if isinstance(self.scale, Tensor) else _plugrad.full_like(x, self.scale)
        return sum_last((scale.abs().log() + _plugrad.zeros_like(x)), self.event_dim)


class ExpTransform(Transform):
    """e^x."""

    codomain = constraints.positive

    def __call__(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x^exponent for x > 0."""

    domain = codomain = constraints.positive

    def __init__(self, exponent: Any) -> None:
        self.exponent = exponent

    def __call__(self, x: Tensor) -> Tensor:
        made: Tensor = x ** self.exponent
        return made

    def _inverse(self, y: Tensor) -> Tensor:
        made: Tensor = y ** (1 / self.exponent)
        return made

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        made: Tensor = (self.exponent * y / x).abs().log()
        return made


def _inside(y: Tensor) -> Tensor:
    """Probabilities, kept from 0 and 1 by rounding, so that logarithms stay finite."""
    info = finfo(y.dtype)
    return y.clamp(float(info.smallest_normal), 1 - float(info.eps))


class SigmoidTransform(Transform):
    """1 / (1 + e^-x)."""

    codomain = constraints.unit_interval

    def __call__(self, x: Tensor) -> Tensor:
        return _inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -_plugrad.softplus(-x) - _plugrad.softplus(x)


class SoftplusTransform(Transform):
    """ln(1 + e^x)."""

    codomain = constraints.positive

    def __call__(self, x: Tensor) -> Tensor:
        return _plugrad.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -_plugrad.softplus(-x)


class TanhTransform(Transform):
    """tanh x."""

    codomain = constraints.interval(-1.0, 1.0)

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return _plugrad.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - _plugrad.softplus(-2 * x))


class AbsTransform(Transform):
    """|x|, which is not invertible; the inverse returns y."""

    codomain = constraints.nonnegative
    bijective = False

    def __call__(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """The softmax along the last axis, which is not invertible; the inverse returns logarithms."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = False

    def __call__(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """From vectors (n - 1) to the simplex (n): each number is the part of the rest that its share takes."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _offset(self, x: Tensor, count: int) -> Tensor:
        return _plugrad.arange(count, 0, -1, dtype=x.dtype, device=x.device).log()

    def __call__(self, x: Tensor) -> Tensor:
        z = _inside((x - self._offset(x, x.shape[-1])).sigmoid())
        rest = (1 - z).cumprod(-1)
        one = _plugrad.ones_like(x[..., :1])
        return _plugrad.cat([z, one], -1) * _plugrad.cat([one, rest], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        shares = y[..., :-1]
        rest = (1 - shares.cumsum(-1)).clamp(min=float(finfo(y.dtype).smallest_normal))
        return shares.log() - rest.log() + self._offset(y, shares.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        z = x - self._offset(x, x.shape[-1])
        return (-z + -_plugrad.softplus(-z) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """From matrices to lower triangular matrices with a positive diagonal: e^x on the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __call__(self, x: Tensor) -> Tensor:
        return x.tril(-1) + _plugrad.diag_embed(x.diagonal(0, -2, -1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + _plugrad.diag_embed(y.diagonal(0, -2, -1).log())


class IndependentTransform(Transform):
    """A transform whose events have more axes."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int) -> None:
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, reinterpreted_batch_ndims)
        self.codomain = constraints.independent(base_transform.codomain, reinterpreted_batch_ndims)
        self.bijective, self.sign = base_transform.bijective, base_transform.sign

    def __call__(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inverse(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)


class ReshapeTransform(Transform):
    """Events of another shape, with the same number of elements."""

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int]) -> None:
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(f"[ReshapeTransform] shapes {self.in_shape} and {self.out_shape} have different numbers of "
                             "elements")
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def __call__(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _plugrad.zeros(tuple(x.shape[:x.ndim - len(self.in_shape)]), dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:len(shape) - len(self.in_shape)], *self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (*shape[:len(shape) - len(self.out_shape)], *self.in_shape)
