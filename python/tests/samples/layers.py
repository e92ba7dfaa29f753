"""Normalisation of single channels and across channels, and sums of rows selected by lists of indices."""
from .case import Call, Operand, np
from .networks import affine, optional, over_root
from .sample import Sample

TAME = "tame"

# --- Normalisation.


def instances(case):
    channels = case.integer(1, 3)
    x = case.tensor((case.extent(1), channels, *case.shape(low=1, high=2, least=2)), special=TAME)
    named = {name: optional(case, (channels,)) for name in ("weight", "bias")}
    if case.chance() or case.aim == "gradient":
        named["eps"] = 0.5
    if case.chance(0.6):
        return Call(x, None, None, **named)
    variance = case.tensor((channels,), special=False, low=0.5)
    return Call(x, case.tensor((channels,), special=TAME), variance, use_input_stats=False, **named)


def instance_norm(x, mean, variance, weight=None, bias=None, use_input_stats=True, eps=1e-5):
    shape = (-1, *[1] * (x.ndim - 2))
    if use_input_stats:
        y = over_root(x, tuple(range(2, x.ndim)), eps)
    else:
        y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    return affine(y, weight, bias, shape)


def responses(case):
    x = case.tensor((case.extent(1), case.integer(1, 5), *case.shape(low=1, high=2, least=1)), special=TAME)
    named = {"alpha": [0.5, 2.0], "beta": [0.5, 1.0], "k": [0.5, 2.0]}
    named = {name: case.choice(values) for name, values in named.items() if case.chance()}
    return Call(x, case.integer(1, 4), **named)


def response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    padding = [(0, 0)] * x.ndim
    padding[1] = (size // 2, (size - 1) // 2)
    squares = np.pad(x * x, padding)
    means = sum(squares[:, i:i + x.shape[1]] for i in range(size)) / size
    return x / (k + alpha * means) ** beta


def normalisation_rows():
    # Lines whose elements are nearly equal magnify rounding by 1 / sqrt(eps).
    return [
        Sample("instance_norm", instances, instance_norm, ulps=4000, halves=8, scale=lambda *args, **named: 4,
               constants=True),
        # PyTorch takes f32 and f64
        Sample("local_response_norm", responses, response_norm, ulps=16, differs=("f16", "bf16"))]


# --- Bags of rows.

def lists(case, rows):
    """Draws indices (b, n), or indices (n) and the offsets of bags, sometimes including the end."""
    if case.chance():
        return case.tensor((case.extent(1), case.extent(1)), dtype="i64", low=0, high=rows), {}
    indices = case.tensor((case.extent(1),), dtype="i64", low=0, high=rows)
    count = indices.array.size
    offsets = np.sort(case.random.integers(0, count + 1, case.integer(0, 3)))
    named = {"offsets": np.concatenate([[0], offsets]).astype("int64")}
    if case.chance(0.3):
        named = {"offsets": np.append(named["offsets"], count), "include_last_offset": True}
    return indices, named | {"offsets": Operand(named["offsets"], "i64")}


def bags(mode):
    def draw(case):
        rows = case.integer(1, 4)
        weight = case.tensor((rows, case.extent(1)), special=TAME, repeats=False)
        indices, named = lists(case, rows)
        if mode == "sum" and case.chance():
            named["per_sample_weights"] = case.tensor(indices.array.shape, special=TAME)
        if case.chance(0.3):
            named["padding_idx"] = case.integer(0, rows - 1)
        return Call(weight, indices, mode=mode, **named)
    return draw


def bagged(weight, indices, offsets=None, mode="mean", per_sample_weights=None, include_last_offset=False,
           padding_idx=None):
    factors = np.ones(indices.shape) if per_sample_weights is None else per_sample_weights
    if offsets is None:
        listed = list(zip(indices, factors, strict=True))
    else:
        ends = offsets[1:] if include_last_offset else np.append(offsets[1:], len(indices))
        listed = [(indices[a:b], factors[a:b]) for a, b in zip(offsets, ends)]
    join = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    found = np.zeros((len(listed), weight.shape[1]))
    for i, (bag, factor) in enumerate(listed):
        counted = bag != padding_idx
        if np.any(counted):
            found[i] = join(weight[bag[counted]] * factor[counted][:, None], axis=0)
    return found


def bag_rows():
    near = {"result": "first", "ulps": 16, "scale": lambda *args, **named: 16}
    return [Sample("embedding_bag", bags(mode), bagged, variant="" if mode == "mean" else f"of {mode}",
                   **near) for mode in ("mean", "sum", "max")]


ROWS = [*normalisation_rows(), *bag_rows()]
