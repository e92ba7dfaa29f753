"""Functions that other functions express in one or two steps."""
from .algebra import added, plus
from .case import ALL, FLOATS, INTEGERS, NUMBERS, Call, Operand, np
from .elementwise import pair
from .moments import integrals
from .sample import Sample, one

TAME = "tame"


def summed(x, a, b, beta=1, alpha=1):
    return (beta * x if beta else 0) + alpha * np.sum(a @ b, axis=0, dtype=a.dtype)


def outer(x, a, b, beta=1, alpha=1):
    return (beta * x if beta else 0) + alpha * np.outer(a, b)


def bounds(case):
    shape = case.shape()
    x = case.tensor(shape, kinks=(0, 1, 2))
    return Call(x, case.integer(0, 2)) if case.chance() else Call(x, case.tensor(case.beside(shape), shift=0.005))


def scaled(case):
    a, _ = pair(case, special="tame")
    return Call(a, case.tensor(case.beside(a.array.shape), dtype="i64", low=-3, high=4))


def times_power(a, b):
    return a.astype("float64") * 2.0**b


def reversed_differences(case):
    a, b = pair(case, special="tame")
    return Call(a, b, **({"alpha": 2} if case.chance() else {}))


def arithmetic_rows():
    sums = {"ulps": 64, "scale": lambda *args, **named: 1600, "dtypes": NUMBERS, "differs": ("f16", "bf16"),
            "accepts": ("bool",)}
    whole = (*INTEGERS, "bool")
    limits = {"dtypes": NUMBERS, "accepts": ("bool",), "promotes": True, "ulps": 0}
    return [
        Sample("addbmm", plus("bij", "bjk", "ik"), summed, **sums), Sample("addr", plus("i", "j", "ij"), outer, **sums),
        Sample("rsub", reversed_differences, lambda a, b, alpha=1: b - alpha * a, dtypes=NUMBERS, promotes=True, ulps=2,
               scale=lambda a, b, alpha=1: np.abs(a.astype("float64")) * alpha),
        Sample("clamp_min", bounds, "maximum", ties="of a number, PyTorch's changed in 2.15", **limits),
        Sample("clamp_max", bounds, "minimum", ties="of a number, PyTorch's changed in 2.15", **limits),
        Sample("ldexp", scaled, times_power, result="first", ulps=4, accepts=whole),
        Sample("ldexp", scaled, times_power, dtypes=whole, result="f32", ulps=4, gradient=False, accepts=FLOATS,
               variant="of whole numbers"),
        Sample("angle", one(), lambda x: np.where(x != x, np.nan, np.where(x < 0, np.pi, 0)), dtypes=ALL,
               result="floating", ulps=1)]


# --- Functions of elements at positions.

def running(y, points, dim):
    y = np.moveaxis(y.astype("float64"), dim, -1)
    if not isinstance(points, float):
        points = np.diff(points.astype("float64") if points.ndim == 1 else np.moveaxis(points.astype("float64"), dim, -1))
    return np.moveaxis(np.cumsum((y[..., 1:] + y[..., :-1]) / 2 * points, axis=-1), -1, dim)


def peer_running(y, points, dim):
    import torch
    named = {"dx": points} if isinstance(points, float) else {"x": points}
    found = torch.cumulative_trapezoid(y, dim=dim, **named)
    return found if found.is_floating_point() else found.float()


def flats(case):
    return Call(case.tensor(case.shape(high=2)), *([case.integer(-2, 2)] if case.chance() else []))


def firsts(case):
    named = {"fill_value": case.integer(-2, 2)} if case.chance() else {}
    return Call(case.tensor(case.shape(low=1)), size=case.integer(0, 9), **named)


def first_places(x, size, fill_value=-1):
    found = np.argwhere(x)[:size]
    return np.concatenate([found, np.full((size - len(found), x.ndim), fill_value)])


def place_rows():
    return [
        Sample("cumulative_trapezoid", integrals, running, peer_running, dtypes=ALL, result="floating", ulps=16,
               scale=lambda *args: 64, differs=("i8", "u8", "bool")),
        Sample("diagflat", flats, lambda x, k=0: np.diagflat(x, k), dtypes=ALL, ulps=0),
        Sample("nonzero_static", firsts, first_places, dtypes=ALL, ulps=0, result="i64", gradient=False)]


# --- Histograms with their edges.

def weighted(case):
    shape = case.shape()
    x = case.tensor(shape, special="sums")
    x = Operand(np.floor(x.base * 4) / 4, x.dtype, x.views)  # many elements are on edges
    named = {"weight": case.tensor(shape, special=False, low=0, high=2)} if case.chance() else {}
    low, high = case.choice([(-4.0, 4.0), (-2.0, 2.0), (0.0, 4.0)])
    return Call(x, case.choice([1, 2, 4, 8]), range=(low, high), **named)


def edged(x, bins, range, weight=None):
    inside = (x >= range[0]) & (x <= range[1])
    found, edges = np.histogram(x[inside], bins, range, weights=None if weight is None else weight[inside])
    return [found, edges]


def histogram_rows():
    return [Sample("histogram", weighted, edged, ulps=16, scale=lambda *args, **named: 16, differs=("f16", "bf16"),
                   gradient=False)]


ROWS = [*arithmetic_rows(), *place_rows(), *histogram_rows()]
