"""Models with weights of 2, 4 or 8 bits an element.

>>> import plugrad
>>> from plugrad import nn, quantization
>>> model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
>>> quantization.quantize_(model, bits=4, group_size=32)
['0', '2']
>>> model(plugrad.zeros((1, 64))).shape
(1, 10)

quantize_ makes codes of a model's own weights. load_gptq_ and load_awq_ read codes made by GPTQ (Frantar et al., 2023) and
AWQ (Lin et al., 2024) from the tensors of their safetensors files. GGUF.get_quantized reads the codes of a GGUF file.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _plugrad
from ._modes import no_grad
from ._plugrad import Tensor
from ._results import Quantized
from .nn import Embedding, Linear, Module, MultiheadAttention, QuantizedEmbedding, QuantizedLinear

__all__ = ["load_awq_", "load_gptq_", "quantize_"]

_WORD = 32  # bits
# AWQ: the column of each four bits of a word, from the low bits on.
_AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)


def _inner(model: Module, *kinds: Any) -> Iterator[tuple[str, Module, str, Any]]:
    """Yields (full name, the module that has it, the name in that module, the module) for modules of exactly these kinds
    whose calls a layer of codes can answer: without hooks, and not in an attention that reads their weight."""
    for path, owner in list(model.named_modules()):
        for name, module in list(owner._members()):
            reads_weight = isinstance(owner, MultiheadAttention)
            if type(module) in kinds and not reads_weight and "_forward_hooks" not in vars(module):
                yield f"{path}.{name}" if path else name, owner, name, module


def _put(made: list[tuple[Module, str, Module, Module]]) -> None:
    """Puts each new layer in the place of its old one."""
    for owner, name, old, new in made:
        new.training = old.training
        setattr(owner, name, new)


def quantize_(model: Module, bits: int = 4, group_size: int = 32, *, symmetric: bool = False, scale_dtype: Any = "f16",
              embeddings: bool = False, filter: Callable[[str, Module], bool] | None = None) -> list[str]:
    """Replaces the linear layers inside a model by nn.QuantizedLinear, in place. Returns the names of the replaced layers.

    bits, group_size, symmetric, scale_dtype: as for plugrad.quantize. These layers stay as they are: layers with
    an in_features that group_size does not divide, layers of derived classes or with hooks, and the projection of
    nn.MultiheadAttention. embeddings: embeddings
    become nn.QuantizedEmbedding; a weight that a linear layer shares with an embedding gets codes in each of them.
    filter(name, layer): whether to replace a layer. Raises ValueError for bits other than 2, 4 or 8, for a group_size that
    is not a multiple of 16, and for a model that is itself a layer: use QuantizedLinear.from_linear.
    """
    if isinstance(model, (Linear, Embedding)):
        raise ValueError(f"[quantize_] the model is one {type(model).__name__}: use nn.QuantizedLinear.from_linear or "
                         "nn.QuantizedEmbedding.from_embedding")
    if group_size < 16 or group_size % 16:
        raise ValueError(f"[quantize_] group_size is {group_size}, expected a multiple of 16")
    _plugrad.quantize(_plugrad.zeros((1, 16)), bits, 16, symmetric, scale_dtype)  # checks the others
    found: list[tuple[Module, str, Module, Module]] = []
    names: list[str] = []
    made: dict[int, Module] = {}  # a layer may have several names
    for name, owner, attribute, layer in _inner(model, Linear, *[Embedding] * embeddings):
        columns = layer.in_features if isinstance(layer, Linear) else layer.embedding_dim
        if columns % group_size or (filter and not filter(name, layer)):
            continue
        if id(layer) not in made:
            settings = bits, group_size, symmetric, scale_dtype
            made[id(layer)] = (QuantizedLinear.from_linear(layer, *settings) if isinstance(layer, Linear)
                               else QuantizedEmbedding.from_embedding(layer, *settings))
        found.append((owner, attribute, layer, made[id(layer)]))
        names.append(name)
    _put(found)
    return names


def _unpacked(words: Tensor, bits: int) -> Tensor:
    """The numbers in words (rows, columns) of i32, from the low bits on: (rows, columns, numbers)."""
    shifts = _plugrad.arange(0, _WORD, bits, dtype="i32", device=words.device)
    return words.unsqueeze(2).bitwise_right_shift(shifts).bitwise_and(2**bits - 1)


def _packed(numbers: Tensor, bits: int) -> Tensor:
    """Numbers (n, k) as bytes (n, k bits / 8)."""
    parts = numbers.to("i32").unflatten(1, (-1, 8 // bits))
    shifts = _plugrad.arange(0, 8, bits, dtype="i32", device=numbers.device)
    return parts.bitwise_left_shift(shifts).sum(2).to("u8")


def _pairs(scales: Tensor, zeros: Tensor) -> Tensor:
    """Scales and minima (n, groups, 2) in f32, for scales and zeros (groups, n)."""
    s = scales.to("f32").transpose(0, 1)
    return _plugrad.stack([s, -s * zeros.to("f32").transpose(0, 1)], -1)


def _bits_of(words: Tensor, numbers: int, name: str, what: str) -> int:
    bits = words.numel() * _WORD // numbers
    if bits not in (2, 4, 8) or words.numel() * _WORD % numbers:
        raise NotImplementedError(f"[{what}] the weight of '{name}' has {words.numel() * _WORD / numbers:g} bits an "
                                  "element: 2, 4 and 8 can be loaded")
    return bits


def _demand_shapes(found: dict[str, Tensor], name: str, what: str, **expected: tuple[int, ...]) -> None:
    for part, shape in expected.items():
        if part in found and tuple(found[part].shape) != shape:
            raise ValueError(f"[{what}] '{name}.{part}' is {tuple(found[part].shape)}, expected {shape}")


def _groups_of(found: dict[str, Tensor], rows: int, name: str, what: str) -> int:
    groups = found["scales"].shape[0] if found["scales"].ndim == 2 else 0
    if not groups or rows % groups or rows // groups % 16:
        raise ValueError(f"[{what}] '{name}.scales' is {tuple(found['scales'].shape)}, expected (groups, n), with groups of "
                         f"a multiple of 16 of the {rows} inputs")
    return groups


def _made(layer: Linear, weight: Quantized, found: dict[str, Tensor], order: Tensor | None = None) -> QuantizedLinear:
    bias = found["bias"].to(layer.bias.dtype).clone() if layer.bias is not None else None
    return QuantizedLinear(layer.in_features, layer.out_features, weight, bias, order)


def _gptq(name: str, layer: Linear, found: dict[str, Tensor], added: int) -> QuantizedLinear:
    words, what = found["qweight"].to("i32"), "load_gptq_"  # (in bits / 32, out)
    rows, columns = layer.in_features, layer.out_features
    bits, groups = _bits_of(words, rows * columns, name, what), _groups_of(found, rows, name, what)
    _demand_shapes(found, name, what, qweight=(rows * bits // _WORD, columns), qzeros=(groups, columns * bits // _WORD),
                   scales=(groups, columns), g_idx=(rows,))
    codes = _unpacked(words, bits).transpose(1, 2).flatten(0, 1).transpose(0, 1)
    zeros = (_unpacked(found["qzeros"].to("i32"), bits).flatten(1) + added).bitwise_and(2**bits - 1)
    order = None
    if "g_idx" in found:
        places = found["g_idx"].to("i64")
        turns = _plugrad.arange(0, rows, dtype="i64", device=places.device) // (rows // groups)
        if not _plugrad.equal(places, turns):  # its columns were quantised in the order of their importance
            order = places.argsort(stable=True)
            if not _plugrad.equal(places[order], turns):
                raise NotImplementedError(f"[load_gptq_] the groups of '{name}' have different lengths: widen its weight")
            codes = codes.index_select(1, order)
    return _made(layer, Quantized(_packed(codes, bits), _pairs(found["scales"], zeros)), found, order)


def _awq(name: str, layer: Linear, found: dict[str, Tensor]) -> QuantizedLinear:
    words, what = found["qweight"].to("i32"), "load_awq_"  # (in, out bits / 32)
    rows, columns = layer.in_features, layer.out_features
    if _bits_of(words, rows * columns, name, what) != 4:
        raise NotImplementedError(f"[load_awq_] the weight of '{name}' does not have 4 bits an element")
    groups = _groups_of(found, rows, name, what)
    _demand_shapes(found, name, what, qweight=(rows, columns // 8), qzeros=(groups, columns // 8), scales=(groups, columns))
    places = sorted(range(8), key=_AWQ_COLUMNS.__getitem__)
    codes, zeros = (_unpacked(each.to("i32"), 4)[:, :, places].flatten(1) for each in (words, found["qzeros"]))
    return _made(layer, Quantized(_packed(codes.transpose(0, 1), 4), _pairs(found["scales"], zeros)), found)


def _load(model: Module, tensors: Mapping[str, Tensor], what: str,
          make: Callable[[str, Linear, dict[str, Tensor]], QuantizedLinear]) -> list[str]:
    rest, made, names = dict(tensors), list[tuple[Module, str, Module, Module]](), list[str]()
    wanted = set(model.state_dict())
    for name, owner, attribute, layer in _inner(model, Linear):
        if f"{name}.qweight" not in rest:
            continue
        needed = ["qweight", "qzeros", "scales", *["bias"] * (layer.bias is not None)]
        missing = [each for each in needed if f"{name}.{each}" not in rest]
        if missing:
            raise ValueError(f"[{what}] the tensors have '{name}.qweight', but not {', '.join(missing)}")
        found = {each: rest.pop(f"{name}.{each}") for each in (*needed, "g_idx") if f"{name}.{each}" in rest}
        with no_grad():
            made.append((owner, attribute, layer, make(name, layer, found).to(layer.weight.device)))
        wanted -= {f"{name}.weight", f"{name}.bias"}
        names.append(name)
    unknown = [name for name in rest if name.endswith(".qweight")]
    if unknown:
        raise ValueError(f"[{what}] the model has no linear layer for {', '.join(unknown)}")
    if wanted != set(rest):
        odd = sorted(wanted ^ set(rest))
        raise ValueError(f"[{what}] {odd[0]} is {'missing in the tensors' if odd[0] in wanted else 'not in the model'}; in "
                         f"all {len(odd)} names differ")
    model.load_state_dict(rest, strict=False)
    _put(made)
    return names


def load_gptq_(model: Module, tensors: Mapping[str, Tensor], *, checkpoint_format: str = "gptq") -> list[str]:
    """Loads a model quantised by GPTQ, in place: linear layers with codes become nn.QuantizedLinear, and all other tensors
    are copied. Returns the names of the replaced layers.

    tensors: those of the safetensors files, such as plugrad.load returns: qweight, qzeros, scales, and g_idx where columns
    were reordered. checkpoint_format: "gptq", in which zeros are stored less 1, or "gptq_v2". Raises ValueError for tensors
    that the model lacks, the reverse, and shapes that do not fit; NotImplementedError for codes of 3 bits. The model is then
    unchanged.
    """
    if checkpoint_format not in ("gptq", "gptq_v2"):
        raise ValueError(f"[load_gptq_] checkpoint_format is {checkpoint_format!r}, expected 'gptq' or 'gptq_v2'")
    added = 1 if checkpoint_format == "gptq" else 0
    return _load(model, tensors, "load_gptq_", lambda name, layer, found: _gptq(name, layer, found, added))


def load_awq_(model: Module, tensors: Mapping[str, Tensor]) -> list[str]:
    """Loads a model quantised by AWQ (its GEMM format of 4 bits), in place, as load_gptq_ does."""
    return _load(model, tensors, "load_awq_", _awq)
