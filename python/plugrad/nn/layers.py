"""Linear layers, embeddings, dropout, and layers that change shape or resolution."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Tensor
from . import init
from ._calls import Calls
from .module import Module, OfOne

__all__ = ["AlphaDropout", "Bilinear", "ChannelShuffle", "CosineSimilarity", "Dropout", "Dropout1d", "Dropout2d",
           "Dropout3d", "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold", "Identity", "Linear",
           "PairwiseDistance", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold", "Upsample"]


class Linear(OfOne):
    """y = x W^T + b for x (.., in) -> (.., out); weight (out, in), bias (out). Both start uniform in +-1/sqrt(in).

    Raises ValueError for sizes below 1, and for x whose last extent is not `in`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight, self.bias = _plugrad._linear(in_features, out_features, bias, dtype, device)

    def reset_parameters(self) -> None:
        """Draws weight and bias again."""
        _redraw(self, self.in_features ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def _redraw(module: Any, bound: float) -> None:
    init.uniform_(module.weight, -bound, bound)
    if module.bias is not None:
        init.uniform_(module.bias, -bound, bound)


class Bilinear(Module):
    """x1 A x2 + b for each of out_features matrices A: x1 (.., in1), x2 (.., in2) -> (.., out)."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        bound = in1_features ** -0.5
        self.weight = _plugrad.rand((out_features, in1_features, in2_features), dtype, device, -bound, bound,
                                    requires_grad=True)
        self.bias = _plugrad.rand((out_features,), dtype, device, -bound, bound, requires_grad=True) if bias else None

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return _plugrad.bilinear(x1, x2, self.weight, self.bias)

    def reset_parameters(self) -> None:
        """Draws weight and bias again."""
        _redraw(self, self.in1_features ** -0.5)

    def extra_repr(self) -> str:
        return f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, " \
               f"bias={self.bias is not None}"


class Embedding(OfOne):
    """The rows of weight (n, d) at indices (i64, any shape): (.., d). The weight starts with standard normal numbers.

    padding_idx: a row that starts at 0 and gets no gradient. Raises ValueError for a padding_idx out of range.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *, device: Any = None,
                 dtype: Any = None) -> None:
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.weight = _rows(num_embeddings, embedding_dim, padding_idx, dtype, device)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None) -> "Embedding":
        """Returns an embedding with a copy of these rows. The rows are frozen unless freeze is False."""
        made = cls(1, 1)
        made.num_embeddings, made.embedding_dim = embeddings.shape
        made.padding_idx = padding_idx
        made.weight = embeddings.detach().clone().requires_grad_()
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, indices: Tensor) -> Tensor:
        return _plugrad.embedding(self.weight, indices, self.padding_idx)

    def reset_parameters(self) -> None:
        """Draws the rows again; the row padding_idx becomes 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0.0

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _rows(count: int, extent: int, padding_idx: int | None, dtype: Any, device: Any) -> Tensor:
    if count < 1 or extent < 1:
        raise ValueError(f"[Embedding] sizes must be at least 1: {count} rows of {extent}")
    if padding_idx is not None and not -count <= padding_idx < count:
        raise ValueError(f"[Embedding] padding_idx {padding_idx} is out of range for {count} rows")
    weight = _plugrad.randn((count, extent), dtype=dtype or _plugrad.get_default_dtype(), device=device)
    if padding_idx is not None:
        with no_grad():
            weight[padding_idx] = 0.0
    return weight.requires_grad_()


class EmbeddingBag(Module):
    """The sums, means or largest elements of rows of weight for bags of indices: plugrad.embedding_bag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, *, mode: str = "mean", include_last_offset: bool = False,
                 padding_idx: int | None = None, device: Any = None, dtype: Any = None) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.mode, self.include_last_offset, self.padding_idx = mode, include_last_offset, padding_idx
        self.weight = _rows(num_embeddings, embedding_dim, padding_idx, dtype, device)

    def forward(self, indices: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return _plugrad.embedding_bag(self.weight, indices, offsets, self.mode, per_sample_weights,
                                      self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        last = ", include_last_offset=True" if self.include_last_offset else ""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{last}, mode={self.mode!r}{padding}"


class Identity(OfOne):
    """Returns x itself. The constructor ignores its arguments."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return x


class _Dropout(OfOne):
    """In training, sets elements to 0 with probability p and divides the remaining elements by 1 - p; otherwise returns x.
    `inplace` exists for programs for PyTorch and has no effect."""

    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        return type(self)._function(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    __doc__ = _Dropout.__doc__
    _function = staticmethod(_plugrad.dropout)


class Dropout1d(_Dropout):
    """Dropout of whole channels of x (n, c, l) or (c, l)."""

    _function = staticmethod(_plugrad.dropout1d)


class Dropout2d(_Dropout):
    """Dropout of whole channels of x (n, c, h, w) or (c, h, w)."""

    _function = staticmethod(_plugrad.dropout2d)


class Dropout3d(_Dropout):
    """Dropout of whole channels of x (n, c, d, h, w) or (c, d, h, w)."""

    _function = staticmethod(_plugrad.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout for SELU, which preserves mean and variance."""

    _function = staticmethod(_plugrad.alpha_dropout)


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels."""

    _function = staticmethod(_plugrad.feature_alpha_dropout)


class Flatten(OfOne):
    """Joins the dims start_dim .. end_dim into a single dim."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(OfOne):
    """Splits a dim into several dims of these extents; a single extent may be -1."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _Function(Calls, OfOne):
    """A function of a tensor."""


class PixelShuffle(_Function):
    """plugrad.pixel_shuffle(x, upscale_factor)."""

    _function = staticmethod(_plugrad.pixel_shuffle)

    def __init__(self, upscale_factor: int) -> None:
        self._keep(upscale_factor=upscale_factor)


class PixelUnshuffle(_Function):
    """plugrad.pixel_unshuffle(x, downscale_factor)."""

    _function = staticmethod(_plugrad.pixel_unshuffle)

    def __init__(self, downscale_factor: int) -> None:
        self._keep(downscale_factor=downscale_factor)


class ChannelShuffle(_Function):
    """plugrad.channel_shuffle(x, groups)."""

    _function = staticmethod(_plugrad.channel_shuffle)

    def __init__(self, groups: int) -> None:
        self._keep(groups=groups)


class Upsample(_Function):
    """plugrad.nn.functional.interpolate of x with these arguments."""

    _function = staticmethod(_plugrad.interpolate)

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                 align_corners: bool | None = None, recompute_scale_factor: bool | None = None) -> None:
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self._keep(size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
                   recompute_scale_factor=recompute_scale_factor)

    def extra_repr(self) -> str:
        size = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{size}, mode={self.mode!r}"


class Fold(_Function):
    """plugrad.nn.functional.fold of x with these arguments."""

    _function = staticmethod(_plugrad.fold)

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        self._keep(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class Unfold(_Function):
    """plugrad.nn.functional.unfold of x with these arguments."""

    _function = staticmethod(_plugrad.unfold)

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        self._keep(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


class CosineSimilarity(Module):
    """The cosine of the angle between x1 and x2 along a dim."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return _plugrad.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dim."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.p, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return _plugrad.pairwise_distance(x1, x2, self.p, self.eps, self.keepdim)
