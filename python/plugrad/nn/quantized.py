"""Layers with weights of 2, 4 or 8 bits an element. plugrad.quantization makes them of the layers of a model."""

from collections.abc import Sequence
from typing import Any, Self

from .. import _plugrad
from .._plugrad import Tensor
from .._results import Quantized
from .module import OfOne

__all__ = ["QuantizedEmbedding", "QuantizedLinear"]


class _OfCodes(OfOne):
    """A module with a weight (n, k) in the buffers codes and scales: see plugrad.quantize."""

    _keeps_dtype = ("scales",)
    codes: Tensor
    scales: Tensor

    def _set(self, weight: Sequence[Tensor], columns: int) -> None:
        codes, scales = weight
        if codes.ndim != 2 or not columns or codes.shape[1] * 8 % columns:
            raise ValueError(f"[{type(self).__name__}] codes are {tuple(codes.shape)}, expected (n, k bits / 8) for k "
                             f"{columns}")
        self.bits, self.group_size = codes.shape[1] * 8 // columns, columns // scales.shape[1]
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        _plugrad.dequantize(codes[:1], scales[:1], self.bits)  # its error names shapes that do not fit

    def dequantize(self, dtype: Any = "f32") -> Tensor:
        """Returns the weight (n, k)."""
        return _plugrad.dequantize(self.codes, self.scales, self.bits, dtype)

    def _stored(self) -> str:
        return f"bits={self.bits}, group_size={self.group_size}"


class QuantizedLinear(_OfCodes):
    """y = x W^T + b for x (.., in) -> (.., out), where the weight W (out, in) is stored as codes of 2, 4 or 8 bits.

    weight: codes (out, in bits / 8) and scales (out, groups, 1 or 2), as plugrad.quantize returns them. bias: (out). order:
    the places of x's last axis (i64, in) that meet the columns of the weight; without it they meet in turn. The weight
    gets no gradient; gradients flow to x and to the bias. to() keeps the dtype of scales. Raises ValueError for shapes that
    do not fit.
    """

    def __init__(self, in_features: int, out_features: int, weight: Quantized | Sequence[Tensor],
                 bias: Tensor | None = None, order: Tensor | None = None) -> None:
        self.in_features, self.out_features = in_features, out_features
        self._set(weight, in_features)
        for name, tensor, extent in (("codes", self.codes, out_features), ("bias", bias, out_features),
                                     ("order", order, in_features)):
            if tensor is not None and tensor.shape[0] != extent:
                raise ValueError(f"[QuantizedLinear] {name} is {tuple(tensor.shape)}, expected an extent of {extent}")
        self.bias = bias
        self.order: Tensor | None
        if order is None:
            self.order = None
        else:
            self.register_buffer("order", order)

    @classmethod
    def from_linear(cls, linear: Any, bits: int = 4, group_size: int = 32, symmetric: bool = False,
                    scale_dtype: Any = "f16") -> Self:
        """Returns a layer with the weight of an nn.Linear in codes, and with the same bias. Raises ValueError for a
        group_size that does not divide in_features."""
        weight = _plugrad.quantize(linear.weight, bits, group_size, symmetric, scale_dtype)
        return cls(linear.in_features, linear.out_features, weight, linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.order is not None:
            x = x.index_select(-1, self.order)
        out = _plugrad.quantized_matmul(x, self.codes, self.scales)
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
                f"{self._stored()}")


class QuantizedEmbedding(_OfCodes):
    """The rows of a weight (n, d) at indices (i64, any shape): (.., d), where the weight is stored as codes.

    weight: codes (n, d bits / 8) and scales (n, groups, 1 or 2), as plugrad.quantize returns them. dtype: of the results,
    f32 unless given. Raises ValueError for shapes that do not fit.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, weight: Quantized | Sequence[Tensor],
                 dtype: Any = None) -> None:
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype or "f32"
        self._set(weight, embedding_dim)
        if self.codes.shape[0] != num_embeddings:
            raise ValueError(f"[QuantizedEmbedding] codes have {self.codes.shape[0]} rows, expected {num_embeddings}")

    @classmethod
    def from_embedding(cls, embedding: Any, bits: int = 4, group_size: int = 32, symmetric: bool = False,
                       scale_dtype: Any = "f16") -> Self:
        """Returns a layer with the rows of an nn.Embedding in codes. Raises ValueError for a group_size that does not divide
        embedding_dim."""
        weight = _plugrad.quantize(embedding.weight, bits, group_size, symmetric, scale_dtype)
        return cls(embedding.num_embeddings, embedding.embedding_dim, weight, embedding.weight.dtype)

    def forward(self, indices: Tensor) -> Tensor:
        rows = indices.flatten()
        found = _plugrad.dequantize(self.codes[rows], self.scales[rows], self.bits, self.dtype)
        return found.reshape((*indices.shape, self.embedding_dim))

    def as_linear(self, x: Tensor) -> Tensor:
        """Returns x (.., d) times the transpose of the weight: (.., n). Language models use it for the logits of tokens."""
        return _plugrad.quantized_matmul(x, self.codes, self.scales)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, {self._stored()}"
