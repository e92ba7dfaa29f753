"""Statistics that ignore NaN, several statistics at once, and sampled functions."""
from . import peers
from .case import ALL, FLOATS, INTEGERS, NUMBERS, NUMPY_NAMES, Call, Operand, np
from .reductions import WIDE, along, magnitude, numpys, over_axes, reducing, variance, wide
from .sample import Sample

TAME = "tame"


def with_holes(draw, at=1):
    """Sets some elements of the first operand to NaN; for gradients, not all elements of a line. at: the position of the
    axes."""
    def drawn(case):
        call = draw(case)
        x, axes = call.args[0], call.args[at:]
        if x.dtype not in FLOATS or case.chance(0.4):
            return call
        holed = Operand(np.where(case.random.random(x.base.shape) < 0.3, np.nan, x.base), x.dtype, x.views)
        counts = np.sum(~np.isnan(holed.array), axis=axes[0] if axes else None)
        return call if case.aim != "values" and np.any(counts == 0) else Call(holed, *call.args[1:], **call.named)
    return drawn


def variance_without_nan(x, axes, keep, correction=1):
    count = np.sum(~np.isnan(x), axis=axes, keepdims=True)
    centred = np.where(np.isnan(x), 0, x - np.nansum(x, axis=axes, keepdims=True) / count)
    found = np.where(count > 0, np.sum(centred**2, axis=axes, keepdims=True) / np.maximum(count - correction, 0), np.nan)
    return found if keep else np.squeeze(found, axis=axes)


def rooted(function):
    return lambda *args, **named: np.sqrt(function(*args, **named))


def with_mean(function):
    """Returns the function's result and the mean."""
    def both(x, axes, keep, **named):
        return [function(x, axes, keep, **named), np.mean(x, axis=axes, keepdims=keep)]
    return both


def reduction_rows():
    sums = {"dtypes": ALL, "ulps": 16, "scale": magnitude}
    spread = {"ulps": 16, "scale": "whole"}
    corrections = over_axes(special=TAME, correction=[0, 2])
    return [
        Sample("nansum", with_holes(over_axes()), numpys("nansum", wide), peers.reduction("nansum"), result="accumulated",
               **sums),
        Sample("nanmean", with_holes(over_axes()), numpys("nanmean"), peers.reduction("nanmean"),
               **sums | {"dtypes": FLOATS}),
        Sample("nanvar", with_holes(corrections), reducing(variance_without_nan), None, **spread),
        Sample("nanstd", with_holes(corrections), reducing(rooted(variance_without_nan)), None, **spread),
        Sample("var_mean", corrections, reducing(with_mean(variance)), peers.reduction("var_mean"), **spread),
        Sample("std_mean", corrections, reducing(with_mean(rooted(variance))), peers.reduction("std_mean"), **spread),
        Sample("logcumsumexp", along(special=True), lambda x, dim: np.logaddexp.accumulate(x, axis=dim), ulps=16,
               scale=lambda x, dim: 1)]


def extremes(case):
    shape = case.shape(least=1)
    x = case.tensor(shape, repeats=case.aim != "gradient")
    named = {"keepdim": True} if case.chance() else {}
    return Call(x, **named, **({"dim": case.axis(len(shape))} if shape and case.chance(0.7) else {}))


def least_and_largest(x, dim=None, keepdim=False):
    return [function(x, axis=dim, keepdims=keepdim) for function in (np.min, np.max)]


# --- Statistics of several variables.

def observations(case):
    shape = case.shape(high=2, least=1)
    if case.aim != "values" and shape:
        shape = (*shape[:-1], 3)  # a covariance of one observation is NaN
    count = shape[-1] if shape else 1
    named = {"correction": case.choice([0, 2])} if case.chance() and case.aim == "values" else {}
    if shape and case.chance(0.4):
        named["fweights"] = case.tensor((count,), dtype="i64", low=1, high=4)
    if count > 1 and case.chance(0.4):
        named["aweights"] = case.tensor((count,), dtype=case.dtype if case.dtype in FLOATS else "f32", low=0.25, high=2,
                                        special=False)
    return Call(case.tensor(shape, special=False, smooth=True, **WIDE if case.dtype in INTEGERS else {}), **named)


def covariance(x, correction=1, fweights=None, aweights=None):
    return np.cov(np.atleast_1d(x).astype("float64"), ddof=correction, fweights=fweights, aweights=aweights)


def different(case):
    """Draws rows of variables with different elements."""
    shape = (case.integer(1, 4), case.integer(3, 5))[case.integer(0, 1):]
    values = case.random.permutation(int(np.prod(shape))).reshape(shape)
    return Call(Operand(values / 4 - 2 if case.dtype in FLOATS else values.astype(NUMPY_NAMES[case.dtype]), case.dtype))


def correlations(x):
    return np.clip(np.corrcoef(x), -1, 1)


def variable_rows():
    near, whole = {"ulps": 32, "scale": lambda *args, **named: 16}, (*INTEGERS, "bool")
    return [Sample("cov", observations, covariance, peers.cov, result="first", accepts=whole, **near),
            Sample("cov", observations, covariance, dtypes=whole, accepts=FLOATS, result="f32", gradient=False,
                   differs=("bool",), variant="of whole numbers", **near),
            Sample("corrcoef", different, correlations, dtypes=NUMBERS, accepts=("bool",), result="floating", ulps=8,
                   scale=lambda x: 1)]


# --- Sampled functions.

def integrals(case):
    shape, within = case.shape(low=1), WIDE if case.dtype in INTEGERS else {}
    axis = case.axis(len(shape))
    y, along_last = case.tensor(shape, special=TAME, **within), axis in (-1, len(shape) - 1)
    if case.chance(0.4):
        return Call(y, case.choice([0.5, 2.0]), axis)
    return Call(y, case.tensor(shape[-1:] if along_last and case.chance() else shape, special=TAME, **within), axis)


def integral(y, points, dim):
    y = y.astype("float64")
    if isinstance(points, float):
        return np.trapezoid(y, dx=points, axis=dim)
    return np.trapezoid(y, points.astype("float64"), axis=dim)


def slopes(case):
    shape = case.shape(low=1, high=3, least=3)
    axes = tuple(sorted(axis % len(shape) for axis in case.axes(len(shape)))) if case.chance() else tuple(range(len(shape)))
    named = {"dim": axes} if len(axes) < len(shape) or case.chance() else {}
    if case.chance():
        named["edge_order"] = 2
    spacing = case.choice([1.0, 0.5, [0.5 * (axis + 1) for axis in axes], None])
    if spacing is None:
        spacing = [Operand(np.cumsum(case.random.choice([0.5, 1.0, 2.0], shape[axis])),
                           case.dtype if case.dtype in FLOATS else "f32") for axis in axes]
    return Call(case.tensor(shape, special=TAME, **WIDE if case.dtype in INTEGERS else {}), spacing, **named)


def differences(x, spacing, dim=None, edge_order=1):
    found = np.gradient(x, *(spacing if isinstance(spacing, list) else [spacing]), axis=dim, edge_order=edge_order)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def around(x, *args, **named):
    """Returns the size of the terms of a slope."""
    return 8 * np.max(np.abs(x))


def function_rows():
    return [
        # PyTorch adds and subtracts in the dtype
        Sample("trapezoid", integrals, integral, peers.trapezoid, dtypes=ALL, result="floating", ulps=16,
               scale=lambda *args: 64, differs=("i8", "u8", "bool")),
        Sample("gradient", slopes, differences, peers.gradient, dtypes=NUMBERS, accepts=("bool",), result="floating",
               promotes=True, ulps=16, scale=around, differs=("u8",))]


ROWS = [*reduction_rows(),
        Sample("aminmax", extremes, least_and_largest, dtypes=ALL, ulps=0), *variable_rows(), *function_rows()]
