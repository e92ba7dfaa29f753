"""Attention over several heads, and the layers of a transformer's encoder."""

import copy
from collections.abc import Callable
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from . import init
from .layers import Dropout, Linear
from .containers import ModuleList
from .module import Module
from .normalizations import LayerNorm

__all__ = ["MultiheadAttention", "TransformerEncoder", "TransformerEncoderLayer"]

_ACTIVATIONS = {"relu": _plugrad.relu, "gelu": _plugrad.gelu}


class MultiheadAttention(Module):
    """Projects query, key and value, splits them into heads, computes the attention of each head, and projects the joined
    results (Vaswani et al., 2017). Parameters and their names are those of torch.nn.MultiheadAttention.

    kdim, vdim: the number of elements of a key and of a value; by default embed_dim. Raises ValueError unless num_heads
    divides embed_dim.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *,
                 kdim: int | None = None, vdim: int | None = None, batch_first: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"[MultiheadAttention] {num_heads} heads do not divide embed_dim {embed_dim}")
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim, self.head_dim = kdim or embed_dim, vdim or embed_dim, embed_dim // num_heads

        def projection(rows: int, columns: int) -> Tensor:
            made = _plugrad.zeros((rows, columns), dtype=dtype, device=device, requires_grad=True)
            return init.xavier_uniform_(made)
        self.in_proj_weight = self.q_proj_weight = self.k_proj_weight = self.v_proj_weight = self.in_proj_bias = None
        if (kdim or embed_dim) == (vdim or embed_dim) == embed_dim:
            self.in_proj_weight = projection(3 * embed_dim, embed_dim)
        else:
            self.q_proj_weight = projection(embed_dim, embed_dim)
            self.k_proj_weight = projection(embed_dim, kdim or embed_dim)
            self.v_proj_weight = projection(embed_dim, vdim or embed_dim)
        if bias:
            self.in_proj_bias = _plugrad.zeros((3 * embed_dim,), dtype=dtype, device=device, requires_grad=True)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Returns (output, weights): output has the shape of query; weights are (n, l, s), or (n, heads, l, s) without
        average_attn_weights, or None without need_weights. The call is faster without need_weights.

        query (l, n, embed_dim), key (s, n, kdim), value (s, n, vdim); n is the first dim with batch_first, and may be
        omitted. key_padding_mask (n, s): True, or -inf, where a key has no weight. attn_mask (l, s) or (n * heads, l, s):
        True, or -inf, where a query does not attend to a key. is_causal: query i attends to the keys 0 .. i; without effect
        if attn_mask is given.
        """
        return _plugrad._multi_head_attention(
            query, key, value, self.num_heads, self.in_proj_weight, self.q_proj_weight, self.k_proj_weight,
            self.v_proj_weight, self.in_proj_bias, self.out_proj.weight, self.out_proj.bias, key_padding_mask, need_weights,
            attn_mask, average_attn_weights, is_causal, self.dropout if self.training else 0.0, self.batch_first)


class TransformerEncoderLayer(Module):
    """Self-attention, followed by a network of two linear layers. Each of these two parts has dropout; its result is added
    to its input, and the sum is normalised.

    activation: "relu", "gelu" or a function. norm_first: normalises the input of each part instead of the sum.
    """

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = "relu", layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise ValueError(f"[TransformerEncoderLayer] activation '{activation}' is unknown: relu, gelu or a function "
                             "expected")
        # For a function of the package the name is stored, because the function itself cannot be copied or pickled.
        self.activation = next((name for name, each in _ACTIVATIONS.items() if each is activation), activation)
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device,
                                            dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.dropout, self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout), Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        """Returns a tensor of the shape of src. src: as the query of MultiheadAttention. src_mask, src_key_padding_mask: as
        its attn_mask and key_padding_mask."""
        if self.norm_first:
            x = src + self._attended(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return x + self._fed_forward(self.norm2(x))
        x = self.norm1(src + self._attended(src, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._fed_forward(x))

    def _attended(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _fed_forward(self, x: Tensor) -> Tensor:
        activation = _ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation
        return self.dropout2(self.linear2(self.dropout(activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Calls num_layers copies of an encoder layer in turn, and then the norm, if given."""

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.norm = norm

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal)
        return src if self.norm is None else self.norm(src)
