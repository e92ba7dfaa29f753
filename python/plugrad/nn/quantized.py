"""Layers with weights of 2, 4 or 8 bits an element. plugrad.quantization makes them of the layers of a model."""

from collections.abc import Sequence
from typing import Any, Self

from .. import _plugrad
from .._plugrad import Tensor
from .._results import Quantized
from .module import OfOne, Parameter

__all__ = ["QuantizedEmbedding", "QuantizedLinear"]


class _OfCodes(OfOne):
    """A module with a weight (n, k) in the buffers codes and scales: see plugrad.quantize."""

    _keeps_dtype = ("scales",)
    codes: Tensor
    scales: Tensor

    def _set(self, weight: Sequence[Tensor], rows: int, columns: int) -> None:
        codes, scales = weight
        name, bits = type(self).__name__, codes.shape[-1] * 8 // columns if columns > 0 and codes.ndim else 0
        if bits not in (2, 4, 8) or tuple(codes.shape) != (rows, columns * bits // 8):
            raise ValueError(f"[{name}] codes are {tuple(codes.shape)}, expected (n, k bits / 8) with n {rows}, k {columns} "
                             "and 2, 4 or 8 bits")
        if scales.ndim != 3 or scales.shape[0] != rows or not scales.shape[1]:
            raise ValueError(f"[{name}] scales are {tuple(scales.shape)}, expected ({rows}, groups, 1 or 2)")
        _plugrad.dequantize(codes[:1], scales[:1], bits)  # its error names groups and dtypes that do not fit
        self.bits, self.group_size = bits, columns // scales.shape[1]
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)

    def dequantize(self, dtype: Any = "f32") -> Tensor:
        """Returns the weight (n, k)."""
        return _plugrad.dequantize(self.codes, self.scales, self.bits, dtype)

    def _stored(self) -> str:
        return f"bits={self.bits}, group_size={self.group_size}"


class QuantizedLinear(_OfCodes):
    """y = x W^T + b for x (.., in) -> (.., out), where the weight W (out, in) is stored as codes of 2, 4 or 8 bits.

    weight: codes (out, in bits / 8) and scales (out, groups, 1 or 2), as plugrad.quantize returns them. bias: (out),
    a parameter, or a tensor that becomes one. order: the places of x's last axis (i64, in) that meet the columns of the
    weight; without it they meet in turn. The weight gets no gradient; gradients flow to x and to the bias. to() keeps the
    dtype of scales. Raises ValueError for shapes that do not fit.
    """

    def __init__(self, in_features: int, out_features: int, weight: Quantized | Sequence[Tensor],
                 bias: Tensor | None = None, order: Tensor | None = None) -> None:
        self.in_features, self.out_features = in_features, out_features
        self._set(weight, out_features, in_features)
        for name, tensor, extent in (("bias", bias, out_features), ("order", order, in_features)):
            if tensor is not None and tuple(tensor.shape) != (extent,):
                raise ValueError(f"[QuantizedLinear] {name} is {tuple(tensor.shape)}, expected ({extent},)")
        self.bias = bias if bias is None or isinstance(bias, Parameter) else Parameter(bias)
        self.order: Tensor | None
        if order is None:
            self.order = None
        elif str(order.dtype) != "i64":
            raise ValueError(f"[QuantizedLinear] order has dtype {order.dtype}, expected i64")
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
    f32 unless given; to() changes it. Raises ValueError for shapes that do not fit.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, weight: Quantized | Sequence[Tensor],
                 dtype: Any = None) -> None:
        self.num_embeddings, self.embedding_dim, self.dtype = num_embeddings, embedding_dim, dtype or "f32"
        self._set(weight, num_embeddings, embedding_dim)

    def _convert(self, dtype: Any) -> None:
        self.dtype = dtype

    @classmethod
    def from_embedding(cls, embedding: Any, bits: int = 4, group_size: int = 32, symmetric: bool = False,
                       scale_dtype: Any = "f16") -> Self:
        """Returns a layer with the rows of an nn.Embedding in codes. Raises ValueError for a group_size that does not divide
        embedding_dim."""
        weight = _plugrad.quantize(embedding.weight, bits, group_size, symmetric, scale_dtype)
        return cls(embedding.num_embeddings, embedding.embedding_dim, weight, embedding.weight.dtype)

    def forward(self, indices: Tensor) -> Tensor:
        rows = indices.flatten()
        scales = _plugrad.embedding(self.scales.flatten(1), rows).unflatten(1, self.scales.shape[1:])
        found = _plugrad.dequantize(_plugrad.embedding(self.codes, rows), scales, self.bits, self.dtype)
        return found.reshape((*indices.shape, self.embedding_dim))

    def as_linear(self, x: Tensor) -> Tensor:
        """Returns x (.., d) times the transpose of the weight: (.., n). Language models use it for the logits of tokens."""
        return _plugrad.quantized_matmul(x, self.codes, self.scales)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}, {self._stored()}"
