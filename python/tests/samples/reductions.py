"""Reductions, scans, and functions along an axis."""
import math

from . import peers
from .case import ALL, INTEGERS, NUMBERS, Call, np
from .sample import Sample

SPECIAL = "sums"
WIDE = {"low": -9, "high": 10}  # also excludes the limits of integers


def over_axes(least=0, special=SPECIAL, ties=False, high=4, limits=None, listed=False, **choices):
    """Draws a tensor, and axes, one axis or no axis; sometimes keepdim. listed: a single axis is a tuple, too."""
    def draw(case):
        shape = case.shape(low=1 if least else 0, high=high, least=least)
        named = {"keepdim": True} if case.chance() else {}
        named |= {name: case.choice(values) for name, values in choices.items() if case.chance() and case.aim == "values"}
        kinks = (0,) if choices else ()
        within = limits if case.dtype == "i64" and limits else {}
        x = case.tensor(shape, special=special, kinks=kinks, repeats=not (ties and case.aim == "gradient"), **within)
        if shape and case.chance(0.8):
            axes = case.axes(len(shape))
            return Call(x, axes if listed or len(axes) > 1 or case.chance() else axes[0], **named)
        return Call(x, **named)
    return draw


def along(special=SPECIAL, high=4):
    def draw(case):
        shape = case.shape(low=1, high=high)
        return Call(case.tensor(shape, special=special), case.axis(len(shape)))
    return draw


def reducing(function, default=None):
    """Calls NumPy's function with its names of arguments; the axes may be missing."""
    def reduced(x, dim=None, keepdim=False, **named):
        axes = tuple(range(x.ndim)) if dim is None else dim
        return function(x, axes, keepdim, **named)
    return reduced


def wide(x):
    return x if x.dtype.kind == "f" else x.astype("int64")


def flat_index(which):
    """Returns the row-major index of the first extremum among all elements of the reduced axes."""
    def index(x, dim=None, keepdim=False):
        axes = sorted(a % x.ndim for a in (range(x.ndim) if dim is None else np.atleast_1d(dim)))
        kept = [a for a in range(x.ndim) if a not in axes]
        moved = x.transpose(kept + axes).reshape([x.shape[a] for a in kept] + [-1])
        found = which(moved, axis=-1)
        return found.reshape([1 if a in axes else x.shape[a] for a in range(x.ndim)]) if keepdim else found
    return index


def numpys(name, prepared=lambda x: x):
    return reducing(lambda x, axes, keep: getattr(np, name)(prepared(x), axis=axes, keepdims=keep))


def magnitude(x, dim=None, keepdim=False, **named):
    """Returns the sum of absolute values."""
    axes = tuple(range(x.ndim)) if dim is None else dim
    return np.nansum(np.abs(np.where(np.isfinite(x), x, 0)), axis=axes, keepdims=keepdim)


def reduction_rows():
    return [
        Sample("sum", over_axes(), numpys("sum", wide), peers.reduction("sum"), dtypes=ALL,
               result="accumulated", scale=magnitude, ulps=32),
        Sample("mean", over_axes(limits=WIDE), numpys("mean", lambda x: x.astype("float64")), peers.reduction("mean"),
               differs=(*INTEGERS, "bool"), dtypes=ALL, result="floating", scale=magnitude, ulps=32),
        Sample("prod", over_axes(special="tame", high=2), numpys("prod", wide),
               peers.flat_reduction("prod"), dtypes=ALL, result="accumulated", ulps=400),
        # For one axis that is not a tuple, max and min return indices, too.
        Sample("max", over_axes(least=1, special=True, ties=True, listed=True), numpys("max"), "amax", dtypes=ALL, ulps=0),
        Sample("min", over_axes(least=1, special=True, ties=True, listed=True), numpys("min"), "amin", dtypes=ALL, ulps=0),
        Sample("argmax", over_axes(least=1, special=True), flat_index(np.argmax if np else None),
               peers.flat_reduction("argmax"), dtypes=ALL, result="i64", gradient=False, differs=("bool",)),
        Sample("argmin", over_axes(least=1, special=True), flat_index(np.argmin if np else None),
               peers.flat_reduction("argmin"), dtypes=NUMBERS, result="i64", gradient=False),
        Sample("any", over_axes(special=True), numpys("any"), peers.reduction("any"), differs=("u8",),
               dtypes=ALL, result="bool", gradient=False),
        Sample("all", over_axes(special=True), numpys("all"), peers.reduction("all"), differs=("u8",),
               dtypes=ALL, result="bool", gradient=False),
        Sample("count_nonzero", over_axes(special=True), numpys("count_nonzero"), None, dtypes=ALL, result="i64",
               gradient=False)]  # PyTorch's function has no keepdim


def variance(x, axes, keep, correction=1):
    count = math.prod(x.shape[axis] for axis in np.atleast_1d(np.array(axes, "int64")))
    squares = np.sum((x - np.mean(x, axis=axes, keepdims=True)) ** 2, axis=axes, keepdims=keep)
    return squares / max(count - correction, 0)


def log_of_sum(x, axes, keep):
    if not x.size:
        return np.log(np.sum(np.exp(x), axis=axes, keepdims=keep))
    largest = np.max(x, axis=axes, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0)
    result = np.log(np.sum(np.exp(x - largest), axis=axes, keepdims=True)) + largest
    return result if keep else np.squeeze(result, axis=axes)


def size(x, axes, keep, p=2):
    if p == math.inf:
        return np.max(np.abs(x), axis=axes, keepdims=keep)
    if p == 0:
        return np.sum(x != 0, axis=axes, keepdims=keep).astype("float64")
    return np.sum(np.abs(x) ** p, axis=axes, keepdims=keep) ** (1 / p)


def norms(case):
    call = over_axes(least=1)(case)
    p = case.choice([2, 1, 3, 0, math.inf] if case.aim == "values" else [2, 1, 3])
    shape = call.args[0].array.shape
    x = case.tensor(shape, special=SPECIAL, kinks=(0,), repeats=case.aim != "gradient")
    return Call(x, *([p] if len(call.args) == 1 else [p, call.args[1]]), **call.named)


def statistic_rows():
    return [
        Sample("logsumexp", over_axes(), reducing(log_of_sum), peers.reduction("logsumexp"), ulps=32,
               scale=lambda x, *a, **named: 1),
        Sample("var", over_axes(correction=[0, 2]), reducing(variance), peers.reduction("var"), ulps=64, scale="whole"),
        Sample("std", over_axes(correction=[0, 2]), reducing(lambda *how, **named: np.sqrt(variance(*how, **named))),
               peers.reduction("std"), ulps=64, scale="whole"),
        Sample("norm", norms, lambda x, p=2, dim=None, keepdim=False: reducing(size)(x, dim, keepdim, p=p), peers.norm,
               ulps=64)]


def soft(x, dim):
    largest = np.max(x, axis=dim, keepdims=True) if x.size else 0
    powers = np.exp(x - largest)
    return powers / np.sum(powers, axis=dim, keepdims=True)


def log_soft(x, dim=-1):
    centred = x - (np.max(x, axis=dim, keepdims=True) if x.size else 0)
    return centred - np.log(np.sum(np.exp(centred), axis=dim, keepdims=True))


def axis_rows():
    return [
        Sample("softmax", along(special=True), soft, ulps=64),
        Sample("log_softmax", along(special=SPECIAL), log_soft, ulps=64, scale="whole"),
        Sample("cumsum", along(), lambda x, dim: np.cumsum(wide(x), axis=dim), dtypes=ALL, result="accumulated", ulps=32,
               scale=lambda x, dim: np.cumsum(np.abs(np.where(np.isfinite(x), x, 0)), axis=dim)),
        Sample("cumprod", along(special="tame"), lambda x, dim: np.cumprod(wide(x), axis=dim), dtypes=ALL,
               result="accumulated", ulps=400)]


ROWS = [*reduction_rows(), *statistic_rows(), *axis_rows()]
