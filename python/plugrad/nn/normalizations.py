"""Normalisation as modules. Weights start at 1 and biases at 0. With affine=False or elementwise_affine=False a module has
neither weight nor bias."""

from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Tensor
from . import init
from .module import Module, OfOne

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
           "LayerNorm", "LocalResponseNorm", "RMSNorm", "SyncBatchNorm"]


class _Scaled(OfOne):
    """A module with a weight, which starts at 1, and a bias, which starts at 0."""

    weight: Tensor | None
    bias: Tensor | None = None

    def reset_parameters(self) -> None:
        """Sets the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _filled(shape: Sequence[int], value: float, dtype: Any, device: Any) -> Tensor:
    return _plugrad.full(tuple(shape), value, dtype=dtype or _plugrad.get_default_dtype(), device=device, requires_grad=True)


class LayerNorm(_Scaled):
    """Subtracts the mean over the last axes, which have the extents normalized_shape, divides by sqrt(variance + eps),
    multiplies by weight and adds bias."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.weight = _filled(self.normalized_shape, 1, dtype, device) if elementwise_affine else None
        self.bias = _filled(self.normalized_shape, 0, dtype, device) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_Scaled):
    """Divides by sqrt(m + eps), where m is the mean of squares over the last axes, which have the extents normalized_shape,
    and multiplies by weight."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = _filled(self.normalized_shape, 1, dtype, device) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Scaled):
    """Normalises groups of the channels of x (n, c, ..), multiplies by weight (c) and adds bias (c). Raises ValueError if
    num_groups does not divide num_channels."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        if num_groups < 1 or num_channels < 1 or num_channels % num_groups:
            raise ValueError(f"[GroupNorm] {num_groups} groups do not divide {num_channels} channels")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = _filled((num_channels,), 1, dtype, device) if affine else None
        self.bias = _filled((num_channels,), 0, dtype, device) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class _Statistics(_Scaled):
    """Weight and bias (c), and the buffers running_mean, running_var and num_batches_tracked."""

    _ranks: tuple[int, ...]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: Any = None, dtype: Any = None) -> None:
        if num_features < 1:
            raise ValueError(f"[{type(self).__name__}] the number of channels must be at least 1, got {num_features}")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = _filled((num_features,), 1, dtype, device) if affine else None
        self.bias = _filled((num_features,), 0, dtype, device) if affine else None
        if track_running_stats:
            kind = dtype or _plugrad.get_default_dtype()
            self.register_buffer("running_mean", _plugrad.zeros((num_features,), dtype=kind, device=device))
            self.register_buffer("running_var", _plugrad.ones((num_features,), dtype=kind, device=device))
            self.register_buffer("num_batches_tracked", _plugrad.zeros((), dtype="i64", device=device))
        else:
            self.running_mean = self.running_var = self.num_batches_tracked = None

    def reset_running_stats(self) -> None:
        """Sets the running statistics to mean 0 and variance 1, of no batches."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            with no_grad():
                self.running_mean.fill_(0)
                self.running_var.fill_(1)
                self.num_batches_tracked.fill_(0)

    def _next_momentum(self) -> float:
        """Counts a batch. Returns the fraction by which the running statistics move towards those of the batch."""
        if not self.training or self.num_batches_tracked is None:
            return self.momentum or 0.0
        with no_grad():
            self.num_batches_tracked.add_(1)
        return 1 / int(self.num_batches_tracked) if self.momentum is None else self.momentum

    def _check(self, x: Tensor) -> None:
        if x.ndim not in self._ranks:
            expected = " or ".join(map(str, self._ranks))
            raise ValueError(f"[{type(self).__name__}] x has shape {x.shape}: expected {expected} dims")

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, " \
               f"track_running_stats={self.track_running_stats}"


class BatchNorm1d(_Statistics):
    """Normalises each channel of x (n, c) or (n, c, l): in training by the statistics of the batch, and otherwise by the
    running statistics. A batch moves the running statistics towards its own statistics by the fraction momentum; with
    momentum=None they are the means over all batches."""

    _ranks: tuple[int, ...] = 2, 3

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        return _plugrad.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                                   self.training or self.running_mean is None, self._next_momentum(), self.eps)


class BatchNorm2d(BatchNorm1d):
    """BatchNorm1d for x (n, c, h, w)."""

    _ranks: tuple[int, ...] = (4,)


class BatchNorm3d(BatchNorm1d):
    """BatchNorm1d for x (n, c, d, h, w)."""

    _ranks: tuple[int, ...] = (5,)


class SyncBatchNorm(BatchNorm1d):
    """BatchNorm1d, 2d or 3d for x (n, c, ..), which in training normalises by the statistics of the batches of all processes
    of a group; n may differ between them. All processes call it. Without init_process_group, and on one process, it is
    BatchNorm."""

    _ranks: tuple[int, ...] = 2, 3, 4, 5

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: _plugrad._ProcessGroup | None = None, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        self.process_group = process_group

    def forward(self, x: Tensor) -> Tensor:
        by_batch = self.training or self.running_mean is None
        if not by_batch or not _plugrad._is_initialized() or (self.process_group or _plugrad._world()).size() == 1:
            return super().forward(x)
        self._check(x)
        return _plugrad._sync_batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                                         self._next_momentum(), self.eps, self.process_group)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: _plugrad._ProcessGroup | None = None) -> Module:
        """Returns the module with every BatchNorm in it, or itself, replaced by a SyncBatchNorm of the same parameters and
        buffers."""
        if isinstance(module, BatchNorm1d) and not isinstance(module, SyncBatchNorm):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                       process_group)
            made.weight, made.bias = module.weight, module.bias
            for name, buffer in module.named_buffers():
                made.register_buffer(name, buffer)
            return made.train(module.training)
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        return module


class InstanceNorm1d(_Statistics):
    """Normalises each channel of x (c, l), or of each element of a batch x (n, c, l)."""

    _ranks: tuple[int, ...] = 2, 3

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        batched = x.ndim == self._ranks[-1]
        out = _plugrad.instance_norm(x if batched else x.unsqueeze(0), self.running_mean, self.running_var, self.weight,
                                     self.bias, self.training or self.running_mean is None, self._next_momentum(),
                                     self.eps)
        return out if batched else out.squeeze(0)


class InstanceNorm2d(InstanceNorm1d):
    """InstanceNorm1d for x (n, c, h, w) or (c, h, w)."""

    _ranks: tuple[int, ...] = 3, 4


class InstanceNorm3d(InstanceNorm1d):
    """InstanceNorm1d for x (n, c, d, h, w) or (c, d, h, w)."""

    _ranks: tuple[int, ...] = 4, 5


class LocalResponseNorm(OfOne):
    """Divides by (k + alpha m)^beta, where m is the mean of squares of the `size` channels around each channel."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
