"""Functions of networks: products, convolution, pooling, normalisation, attention."""
import math

from . import peers
from .case import ALL, INTEGERS, Call, epsilon, np
from .reductions import soft
from .sample import Sample

TAME = "tame"


def products(case):
    """Draws matrices, batches that broadcast, and vectors."""
    m, k, n = case.extent(), case.extent(), case.extent()
    batch = case.shape(high=2)
    left, right = (k,) if case.chance(0.2) else (m, k), (k,) if case.chance(0.2) else (k, n)
    if len(left) == 2 and case.chance():
        left = batch + left
    if len(right) == 2 and case.chance():
        right = case.beside(batch) + right
    return Call(case.tensor(left, special=TAME), case.tensor(right, special=TAME))


def product(a, b):
    return np.matmul(a.astype("int64"), b.astype("int64")).astype(bool) if a.dtype == bool else np.matmul(a, b)


def linears(case):
    k, n = case.extent(), case.extent()
    x, weight = case.tensor((*case.shape(high=2), k), special=TAME), case.tensor((n, k), special=TAME)
    return Call(x, weight, case.tensor((n,), special=TAME)) if case.chance() else Call(x, weight)


def linear(x, weight, bias=0):
    return x @ weight.T + bias


def embeddings(case):
    rows, columns = case.extent(1), case.extent()
    return Call(case.tensor((rows, columns)), case.tensor(case.shape(high=3), dtype=case.choice(INTEGERS), low=0, high=rows))


def dropouts(case):
    x = case.tensor(case.shape(), special="finite")
    return Call(x, case.choice([0.0, 1.0])) if case.chance() else Call(x, 0.5, False)


def dropped(x, p, training=True):
    return x * 0 if training and p == 1 else x


def dense_rows():
    terms = {"ulps": 48, "scale": lambda a, b, *bias: np.max(np.abs(a), initial=0) * np.max(np.abs(b), initial=0) * 5}
    return [
        Sample("matmul", products, product, dtypes=ALL, differs=("bool",), promotes=True, **terms),
        Sample("linear", linears, linear, **terms),
        Sample("embedding", embeddings, lambda weight, index: weight[index.astype("int64")],
               lambda weight, index: weight[index.long()], dtypes=ALL, ulps=0, result="first"),
        Sample("dropout", dropouts, dropped, peers.dropout, ulps=0)]


# --- Convolution.

def per_axis(case, axes, low, high):
    """Draws a number for all axes, or a number for each axis."""
    return case.integer(low, high) if case.chance() else tuple(case.integer(low, high) for _ in range(axes))


def numbers(value, axes):
    return (value,) * axes if isinstance(value, int) else tuple(value) * (axes // len(value))


def convolutions(axes):
    def draw(case):
        groups = case.choice([1, 1, 2])
        inner, outer = case.integer(1, 2), groups * case.integer(1, 2)
        kernel = tuple(case.integer(1, 3 if axes < 3 else 2) for _ in range(axes))
        named = {name: per_axis(case, axes, low, 2) for name, low in (("stride", 1), ("padding", 0), ("dilation", 1))
                 if case.chance()}
        if groups > 1:
            named["groups"] = groups
        dilation = numbers(named.get("dilation", 1), axes)
        spatial = tuple(d * (k - 1) + case.integer(1, 3) for k, d in zip(kernel, dilation))
        batch = (case.integer(1, 2),) if case.chance(0.7) else ()
        x = case.tensor((*batch, inner * groups, *spatial), special=TAME, smooth=True)
        weight = case.tensor((outer, inner, *kernel), special=TAME, smooth=True)
        return Call(x, weight, *([case.tensor((outer,), special=TAME, smooth=True)] if case.chance() else []), **named)
    return draw


def windows(x, kernel, stride, padding, dilation, value=0.0):
    """Returns the windows of the last axes: (.., positions, windows)."""
    axes = len(kernel)
    x = np.pad(x, [(0, 0)] * (x.ndim - axes) + [(each, each) for each in padding], constant_values=value)
    spans = tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation))
    found = np.lib.stride_tricks.sliding_window_view(x, spans, axis=tuple(range(-axes, 0)))
    return found[(..., *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]


def convolution(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    axes = weight.ndim - 2
    batched = x if x.ndim == axes + 2 else x[None]
    parts = windows(batched, weight.shape[2:], numbers(stride, axes), numbers(padding, axes), numbers(dilation, axes))
    inner, outer, letters = weight.shape[1], weight.shape[0] // groups, "xyz"[:axes]
    kernels = letters.upper()
    out = np.concatenate([
        np.einsum(f"nc{letters}{kernels},oc{kernels}->no{letters}", parts[:, g * inner:(g + 1) * inner],
                  weight[g * outer:(g + 1) * outer]) for g in range(groups)], axis=1)
    out = out + (0 if bias is None else bias.reshape(-1, *[1] * axes))
    return out if x.ndim == axes + 2 else out[0]


def transposed_convolutions(case):
    groups = case.choice([1, 1, 2])
    channels, outer, kernel = groups * case.integer(1, 2), case.integer(1, 2), (case.integer(1, 3), case.integer(1, 3))
    stride, dilation = per_axis(case, 2, 1, 2), per_axis(case, 2, 1, 2)
    named = {"stride": stride, "dilation": dilation, "groups": groups}
    if all(each == 2 for each in numbers(stride, 2)) and case.chance():
        named["output_padding"] = 1
    spatial = tuple(case.integer(1, 3) for _ in range(2))
    if case.chance():
        full = [(x - 1) * s + d * (k - 1) for x, s, d, k in zip(spatial, numbers(stride, 2), numbers(dilation, 2), kernel)]
        named["padding"] = tuple(case.integer(0, min(2, each // 2)) for each in full)
    x = case.tensor((*((case.integer(1, 2),) if case.chance(0.7) else ()), channels, *spatial), special=TAME, smooth=True)
    return Call(x, case.tensor((channels, outer, *kernel), special=TAME, smooth=True),
                *([case.tensor((outer * groups,), special=TAME, smooth=True)] if case.chance() else []), **named)


def transposed_convolution(x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Adds a window to the result for each element of x."""
    batched = x if x.ndim == 4 else x[None]
    s, p, extra, d = (numbers(each, 2) for each in (stride, padding, output_padding, dilation))
    (n, channels, h, w), (_, outer, kh, kw) = batched.shape, weight.shape
    out = np.zeros((n, outer * groups, (h - 1) * s[0] + d[0] * (kh - 1) + extra[0] + 1,
                    (w - 1) * s[1] + d[1] * (kw - 1) + extra[1] + 1))
    for g in range(groups):
        part = slice(g * channels // groups, (g + 1) * channels // groups)
        terms = np.einsum("nchw,coij->nohwij", batched[:, part], weight[part])
        for i in range(kh):
            for j in range(kw):
                out[:, g * outer:(g + 1) * outer, i * d[0]:i * d[0] + h * s[0]:s[0], j * d[1]:j * d[1] + w * s[1]:s[1]][
                    :, :, :h, :w] += terms[..., i, j]
    out = out[:, :, p[0]:out.shape[2] - p[0], p[1]:out.shape[3] - p[1]] + (0 if bias is None else bias.reshape(-1, 1, 1))
    return out if x.ndim == 4 else out[0]


def convolution_rows():
    terms = {"ulps": 64, "scale": lambda x, weight, *more, **named: 40}
    return [*(Sample(f"conv{axes}d", convolutions(axes), convolution, **terms) for axes in (1, 2, 3)),
            Sample("conv_transpose2d", transposed_convolutions, transposed_convolution, **terms)]


# --- Pooling.

def pools(axes, **choices):
    def draw(case):
        kernel = per_axis(case, axes, 1, 3)
        each = numbers(kernel, axes)
        named = {}
        if case.chance():
            named["stride"] = per_axis(case, axes, 1, 3)
        if case.chance():
            named["padding"] = tuple(case.integer(0, k // 2) for k in each)
        if "dilation" in choices and case.chance():
            named["dilation"] = per_axis(case, axes, 1, 2)
        if "count_include_pad" in choices and case.chance():
            named["count_include_pad"] = False
        dilation = numbers(named.get("dilation", 1), axes)
        spatial = tuple(d * (k - 1) + case.integer(1, 3) for k, d in zip(each, dilation))
        shape = (*((case.integer(1, 2),) if case.chance(0.7) else ()), case.integer(1, 2), *spatial)
        special = True if "dilation" in choices else TAME
        return Call(case.tensor(shape, special=special, repeats=case.aim == "values"), kernel, **named)
    return draw


def pooled(axes, function, value):
    def pool(x, kernel, stride=None, padding=0, dilation=1, count_include_pad=True):
        kernel = numbers(kernel, axes)
        how = (kernel, numbers(kernel if stride is None else stride, axes), numbers(padding, axes), numbers(dilation, axes))
        parts = windows(x, *how, value=value if count_include_pad else math.nan)
        return function(parts, axis=tuple(range(-axes, 0)))
    return pool


def adaptive(case):
    batch = (case.integer(1, 2),) if case.chance(0.7) else ()
    shape = (*batch, case.integer(1, 2), case.integer(1, 6), case.integer(1, 6))
    return Call(case.tensor(shape, special=TAME), (case.integer(1, 4), case.integer(1, 4)))


def adaptive_means(x, size):
    out = np.empty((*x.shape[:-2], *size))
    (h, w), (oh, ow) = x.shape[-2:], size
    for i in range(oh):
        for j in range(ow):
            part = x[..., i * h // oh:-(-(i + 1) * h // oh), j * w // ow:-(-(j + 1) * w // ow)]
            out[..., i, j] = part.mean(axis=(-2, -1))
    return out


def pooling_rows():
    means = {"ulps": 32, "scale": lambda *args, **named: 4}
    largest, mean = (np.max, np.nanmean) if np else (None, None)
    return [
        *(Sample(f"max_pool{axes}d", pools(axes, dilation=True), pooled(axes, largest, -math.inf), ulps=0)
          for axes in (1, 2)),
        *(Sample(f"avg_pool{axes}d", pools(axes, count_include_pad=True), pooled(axes, mean, 0.0), **means)
          for axes in (1, 2)),
        Sample("adaptive_avg_pool2d", adaptive, adaptive_means, **means)]


# --- Normalisation.

def optional(case, shape, low=None):
    return case.tensor(shape, special=TAME, low=low) if case.chance(0.7) else None


def normalisations(bias):
    def draw(case):
        inner = case.shape(low=1, high=2, least=1)
        x = case.tensor((*case.shape(high=2), *inner), special=TAME)
        weights = [optional(case, inner)] + ([optional(case, inner)] if bias else [])
        return Call(x, inner, *weights, **({"eps": 0.5} if case.chance() or case.aim == "gradient" else {}))
    return draw


def over_root(x, axes, eps, centre=True):
    x = x - np.mean(x, axis=axes, keepdims=True) if centre else x
    return x / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + eps)


def affine(y, weight, bias, shape=None):
    y = y if weight is None else y * (weight if shape is None else weight.reshape(shape))
    return y if bias is None else y + (bias if shape is None else bias.reshape(shape))


def layer_norm(x, shape, weight=None, bias=None, eps=1e-5):
    return affine(over_root(x, tuple(range(-len(shape), 0)), eps), weight, bias)


def channelled(case, low=2, least=1):
    channels = case.integer(1, 4)
    return channels, (case.extent(least), channels, *case.shape(high=2, least=1))


def groups(case):
    count = case.choice([1, 2])
    channels = count * case.integer(1, 2)
    x = case.tensor((case.extent(2), channels, *case.shape(low=1, high=2, least=2)), special=TAME)
    return Call(x, count, optional(case, (channels,)), optional(case, (channels,)),
                **({"eps": 0.5} if case.chance() or case.aim == "gradient" else {}))


def group_norm(x, count, weight=None, bias=None, eps=1e-5):
    y = over_root(x.reshape(x.shape[0], count, -1), -1, eps).reshape(x.shape)
    return affine(y, weight, bias, (-1, *[1] * (x.ndim - 2)))


def batches(case):
    channels, shape = channelled(case, least=2)
    x = case.tensor(shape, special=TAME)
    weights = {"weight": optional(case, (channels,)), "bias": optional(case, (channels,))}
    eps = {"eps": 0.5} if case.chance() or case.aim == "gradient" else {}
    if case.chance():
        return Call(x, None, None, **weights, training=True, **eps)
    low = {"low": 0.5}
    return Call(x, case.tensor((channels,), special=TAME), case.tensor((channels,), special=False, **low), **weights, **eps)


def batch_norm(x, mean, variance, weight=None, bias=None, training=False, eps=1e-5):
    shape = (-1, *[1] * (x.ndim - 2))
    if training:
        y = over_root(x, tuple(axis for axis in range(x.ndim) if axis != 1), eps)
    else:
        y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    return affine(y, weight, bias, shape)


def rms_norm(case):
    call = normalisations(False)(case)
    return Call(*call.args, eps=0.5) if case.chance() or case.aim == "gradient" else call


def root_mean_square(x, shape, weight=None, eps=None, dtype=None):
    return affine(over_root(x, tuple(range(-len(shape), 0)), epsilon(dtype) if eps is None else eps, centre=False), weight,
                  None)


def normalisation_rows():
    # Lines whose elements are nearly equal magnify rounding by 1 / sqrt(eps).
    loose = {"ulps": 4000, "halves": 8, "scale": lambda *args, **named: 4}
    return [Sample("layer_norm", normalisations(True), layer_norm, **loose),
            Sample("rms_norm", rms_norm, root_mean_square, told=True, **loose),
            Sample("group_norm", groups, group_norm, **loose),
            Sample("batch_norm", batches, batch_norm, constants=True, **loose)]


# --- Attention.

def attentions(case):
    length, keys, width, values = (case.extent(1) for _ in range(4))
    batch = case.shape(high=2, least=1)
    shapes = [(*batch, length, width), (*case.beside(batch), keys, width)]
    shapes.append((*shapes[1][:-2], keys, values))
    named = {}
    if case.chance(0.3):
        named["is_causal"] = True
    elif case.chance():
        named["attn_mask"] = case.tensor((length, keys), dtype="bool" if case.chance() else None, special=False)
    if case.chance(0.3):
        named["scale"] = 0.25
    return Call(*(case.tensor(shape, low=-2, high=2, special=False) for shape in shapes), **named)


def attention(query, key, value, attn_mask=None, is_causal=False, scale=None):
    scores = query @ np.swapaxes(key, -1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = np.tril(np.ones(scores.shape[-2:], bool))
    if attn_mask is not None and attn_mask.dtype == bool:
        scores = np.where(attn_mask, scores, -np.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = np.nan_to_num(soft(scores, -1), nan=0.0)
    return weights @ value


def rotations(case):
    pairs = case.extent()
    shape = (*case.shape(high=2), 2 * pairs)
    angles = (*case.beside(shape[:-1]), pairs)
    named = {"interleaved": True} if case.chance() else {}
    return Call(*(case.tensor(each, special=TAME) for each in (shape, angles, angles)), **named)


def rotated(x, cos, sin, interleaved=False):
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    parts = [a * cos - b * sin, b * cos + a * sin]
    return np.stack(parts, axis=-1).reshape(x.shape) if interleaved else np.concatenate(parts, axis=-1)


def attention_rows():
    return [Sample("scaled_dot_product_attention", attentions, attention, peers.attention, ulps=64,
                   scale=lambda *args, **named: 10, result="first"),
            Sample("rotary_embedding", rotations, rotated, None, ulps=8,
                   scale=lambda *args, **named: 32)]  # PyTorch has no such function


ROWS = [*dense_rows(), *convolution_rows(), *pooling_rows(), *normalisation_rows(), *attention_rows()]
