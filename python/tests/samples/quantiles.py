"""Quantiles, medians, modes and histograms."""
from . import peers
from .case import ALL, FLOATS, NUMBERS, Call, Operand, np
from .moments import with_holes
from .order import part, peer_part
from .reductions import over_axes
from .sample import Sample

# --- Quantiles.


def quantiles(special="sums", listed=False):
    """Draws a tensor, one or several places, and axes. Some places are at elements, and some are between elements."""
    def draw(case):
        call = over_axes(least=1, special=special, ties=True)(case)
        places = [0.0, 0.25, 0.5, 0.75, 1.0]
        q = [case.choice(places) for _ in range(case.integer(1, 3))] if listed else case.choice(places)
        if listed and case.aim == "values" and case.dtype in FLOATS and case.chance():
            q = Operand(np.array(q), case.dtype)
        named = {"interpolation": case.choice(["linear", "lower", "higher", "midpoint", "nearest"])} if case.chance() else {}
        return Call(call.args[0], q, *call.args[1:], **call.named, **named)
    return draw


def quantile(name):
    def computed(x, q, dim=None, keepdim=False, interpolation="linear"):
        return getattr(np, name)(x.astype("float64"), q, axis=dim, keepdims=keepdim, method=interpolation)
    return computed


def quantile_rows():
    rows = []
    for name, prepared in (("quantile", lambda draw: draw), ("nanquantile", lambda draw: with_holes(draw, 2))):
        for variant, listed in (("", False), ("of several places", True)):
            rows.append(Sample(name, prepared(quantiles("tame", listed)), quantile(name), peers.quantile(name), dtypes=ALL,
                               result="floating", ulps=4, scale="whole", differs=("f16", "bf16"), variant=variant,
                               ties="of equal elements, PyTorch's sort chooses any"))
    return rows


# --- Middles and frequencies.

def lines(special=True):
    def draw(case):
        shape = case.shape(low=1, least=1)
        x = case.tensor(shape, special=special, low=-2, high=3, repeats=case.aim != "gradient")
        return Call(x, case.axis(len(shape)), **({"keepdim": True} if case.chance() else {}))
    return draw


def middle(x, dim=None, keepdim=False):
    """Returns the lower middle of the elements that are not NaN."""
    ordered = np.sort(x, axis=dim)
    last = np.sum(~np.isnan(x), axis=dim, keepdims=True) - 1
    found = np.take_along_axis(ordered, np.maximum(last, 0) // 2, axis=dim)
    return found if keepdim else np.squeeze(found, axis=dim)


def lone_middle(x):
    return middle(x.reshape(-1), 0)


def frequent(x):
    """Returns the last position of the smallest of the most frequent elements of a vector."""
    counts = np.sum(x[:, None] == x, axis=0)
    best = min((-counts[i], np.isnan(x[i]), x[i], -i) for i in range(len(x)))
    return -best[-1]


def along_axis(function):
    def computed(x, dim, keepdim=False):
        found = np.apply_along_axis(function, dim, x)
        return np.expand_dims(found, dim) if keepdim else found
    return computed


def middle_rows():
    whole = with_holes(lambda case: Call(case.tensor(case.shape(least=1), repeats=case.aim != "gradient")))
    exact = {"dtypes": NUMBERS, "accepts": ("bool",), "ulps": 0}
    return [
        Sample("nanmedian", with_holes(lines()), middle, peer_part("nanmedian", 0), call=part("nanmedian", 0),
               variant="along an axis", ties="of equal elements, PyTorch chooses any", **exact),
        Sample("nanmedian", whole, lone_middle, **exact),
        # With NaN, PyTorch's result depends on its sort
        Sample("mode", lines("finite"), along_axis(lambda x: x[frequent(x)]), peer_part("mode", 0), call=part("mode", 0),
               **exact | {"dtypes": ALL, "accepts": ()}),
        Sample("mode", lines(), along_axis(frequent), None, call=part("mode", 1), variant="places",
               dtypes=ALL, result="i64", gradient=False)]


# --- Histograms.

def histograms(case):
    shape = case.shape()
    if case.chance(0.3):
        return Call(case.tensor(shape, special=False, repeats=False, low=-4, high=4), case.choice([1, 3, 5]))
    x = case.tensor(shape, special="sums")
    x = Operand(np.floor(x.base * 4) / 4, x.dtype, x.views)  # many elements are on edges
    return Call(x, case.choice([1, 2, 4, 8]), *case.choice([(-4.0, 4.0), (-2.0, 2.0), (0.0, 4.0)]))


def histogram(x, bins=100, min=0.0, max=0.0):
    flat = x.reshape(-1)
    if min == max == 0:
        min, max = (flat.min(), flat.max()) if flat.size else (0.0, 1.0)
        min, max = (min - 1, max + 1) if min == max else (min, max)
    inside = flat[(flat >= min) & (flat <= max)]
    return np.histogram(inside, bins, (min, max))[0].astype("float64")


def histogram_rows():
    # PyTorch divides in the dtype of the tensor
    return [Sample("histc", histograms, histogram, ulps=0, gradient=False, differs=("f16", "bf16"))]


ROWS = [*quantile_rows(), *middle_rows(), *histogram_rows()]
