"""Attention over several heads, and transformers: layers, encoder and decoder."""

import copy
import math
from collections.abc import Callable
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from . import init
from .layers import Dropout, Linear
from .containers import ModuleList
from .module import Module
from .normalizations import LayerNorm

__all__ = ["MultiheadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]

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


class _TransformerLayer(Module):
    """What layers of encoders and decoders share: self-attention, and a network of two linear layers."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = "relu", layer_norm_eps: float = 1e-5,
                 batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise ValueError(f"[{type(self).__name__}] activation '{activation}' is unknown: relu, gelu or a function "
                             "expected")
        # For a function of the package the name is stored, because the function itself cannot be copied or pickled.
        self.activation = next((name for name, each in _ACTIVATIONS.items() if each is activation), activation)
        self.norm_first = norm_first

        def attention() -> MultiheadAttention:
            return MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)
        self.self_attn = attention()
        if self._norms == 3:
            self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, device, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, device, dtype)
        for i in range(1, self._norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype))
        for i in range(1, self._norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))

    _norms: int
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout

    def _attended(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

    def _fed_forward(self, x: Tensor, last: Dropout) -> Tensor:
        activation = _ACTIVATIONS[self.activation] if isinstance(self.activation, str) else self.activation
        return last(self.linear2(self.dropout(activation(self.linear1(x)))))


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention, followed by a network of two linear layers. Each of these two parts has dropout; its result is added
    to its input, and the sum is normalised.

    activation: "relu", "gelu" or a function. norm_first: normalises the input of each part instead of the sum.
    """

    _norms = 2

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        """Returns a tensor of the shape of src. src: as the query of MultiheadAttention. src_mask, src_key_padding_mask: as
        its attn_mask and key_padding_mask."""
        if self.norm_first:
            x = src + self._attended(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return x + self._fed_forward(self.norm2(x), self.dropout2)
        x = self.norm1(src + self._attended(src, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._fed_forward(x, self.dropout2))


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to the encoder's result, and a network of two linear layers. Each of these three parts has
    dropout; its result is added to its input, and the sum is normalised.

    activation: "relu", "gelu" or a function. norm_first: normalises the input of each part instead of the sum.
    """

    _norms = 3

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """Returns a tensor of the shape of tgt. tgt: as the query of MultiheadAttention; memory: as its key and value in
        the second part. The masks: as its attn_mask and key_padding_mask in the first and second part."""
        first = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        second = memory, memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            x = tgt + self._attended(self.norm1(tgt), *first)
            x = x + self._remembered(self.norm2(x), *second)
            return x + self._fed_forward(self.norm3(x), self.dropout3)
        x = self.norm1(tgt + self._attended(tgt, *first))
        x = self.norm2(x + self._remembered(x, *second))
        return self.norm3(x + self._fed_forward(x, self.dropout3))

    def _remembered(self, x: Tensor, memory: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        return self.dropout2(self.multihead_attn(x, memory, memory, padding, False, mask, is_causal=is_causal)[0])


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


class TransformerDecoder(Module):
    """Calls num_layers copies of a decoder layer in turn, and then the norm, if given."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """As TransformerDecoderLayer's."""
        for layer in self.layers:
            tgt = layer(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal,
                        memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder and a decoder, each with a norm behind its layers (Vaswani et al., 2017). custom_encoder, custom_decoder:
    in place of encoder and decoder. The weights of matrices start by xavier_uniform_."""

    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
                 dim_feedforward: int = 2048, dropout: float = 0.1,
                 activation: str | Callable[[Tensor], Tensor] = "relu", custom_encoder: Module | None = None,
                 custom_decoder: Module | None = None, layer_norm_eps: float = 1e-5, batch_first: bool = False,
                 norm_first: bool = False, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias,
                  device, dtype)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*shared), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*shared), num_decoder_layers, norm())
        for each in self.parameters():
            if each.ndim > 1:
                init.xavier_uniform_(each)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor:
        """Returns the decoder's result for tgt and the encoder's result for src."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        made: Tensor = self.decoder(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask,
                                    tgt_is_causal, memory_is_causal)
        return made

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Returns the attn_mask (sz, sz) with which a query attends to itself and to what is before it: 0 there, else
        -inf."""
        full = _plugrad.full((sz, sz), -math.inf, dtype=dtype or _plugrad.get_default_dtype(), device=device)
        return full.triu(1)
