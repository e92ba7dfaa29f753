"""Further arithmetic of one or two tensors, signs, and the results for infinities and NaN."""
from . import peers
from .case import ALL, FLOATS, INTEGERS, LARGEST, NUMBERS, Call, Operand, np
from .elementwise import drawn_with, pair
from .sample import Sample, one


def floating(name):
    """Returns NumPy's function of two arrays, computed in float64."""
    return lambda a, b: getattr(np, name)(np.asarray(a, "float64"), np.asarray(b, "float64"))


def two(number=False, first=False, low=None, **how):
    """Draws two operands. The second operand may be a number; with `first` the first operand may be, too. low: the lower
    limit of the second operand for gradients."""
    def draw(case):
        a, b = pair(case, dtypes=ALL, **how)
        if low is not None and case.aim != "values":
            b = case.tensor(b.array.shape, low=low, **how)
        if number and case.chance(0.3):
            value = case.choice([0.5, 2.5, 3.0]) if case.dtype in FLOATS else case.integer(0, 3)
            return Call(value, b) if first and case.chance() else Call(a, value)
        return Call(a, b)
    return draw


def largest_finite(*args):
    """Returns the largest finite magnitude among the operands for each element."""
    sizes = [np.abs(np.asarray(each, "float64")) for each in args]
    return np.max(np.stack(np.broadcast_arrays(*(np.where(np.isfinite(each), each, 0) for each in sizes))), axis=0)


def times_log(a, b):
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    return np.where((a == 0) & ~np.isnan(b), 0, a * np.log(b))


def pair_rows():
    every = {"dtypes": ALL, "promotes": True, "result": "floating"}
    whole = (*INTEGERS, "bool")  # PyTorch takes floating dtypes only
    apart = {"kinks": (0,)}
    return [
        Sample("copysign", two(number=True, **apart), floating("copysign"), ulps=0.5, **every),
        Sample("hypot", two(), floating("hypot"), ulps=4, differs=whole, **every),
        Sample("logaddexp", two(), floating("logaddexp"), ulps=8, scale=largest_finite, differs=whole, **every),
        Sample("logaddexp2", two(), floating("logaddexp2"), ulps=8, scale=largest_finite, differs=whole, **every),
        Sample("xlogy", two(number=True, first=True, low=0.25, **apart), times_log, ulps=8, **every),
        Sample("float_power", two(number=True, first=True), floating("float_power"), dtypes=ALL, result="f64", ulps=16),
        *(Sample(name, two(), name, dtypes=ALL, promotes=True, ulps=0) for name in ("fmax", "fmin"))]


def steps(case):
    shape = case.shape()
    return Call(case.tensor(shape), case.tensor(case.beside(shape)))


def step(x, values):
    if x.dtype == bool:
        return x | values
    return np.where(x > 0, 1, np.where(x == 0, values, 0)).astype(np.result_type(x, values))


def between(case):
    shape = case.shape()
    a, b = (case.tensor(each, special="tame") for each in (shape, case.beside(shape)))
    return Call(a, b, case.choice([0.25, 0.5, -1.0]) if case.chance() else case.tensor(case.beside(shape), special="tame"))


def replaced(x, nan=0, posinf=None, neginf=None, dtype=None):
    if x.dtype.kind != "f":
        return x
    above, below = LARGEST[dtype] if posinf is None else posinf, -LARGEST[dtype] if neginf is None else neginf
    return np.where(np.isnan(x), nan, np.where(x == np.inf, above, np.where(x == -np.inf, below, x)))


def odds(case):
    eps = [case.choice([0.125, 0.25])] if case.chance() else []
    if case.aim == "gradient":
        return Call(case.tensor(case.shape(), low=0.1, high=0.9, kinks=(0.125, 0.25, 0.75, 0.875)), *eps)
    within = {"low": 0, "high": 1} if case.dtype in FLOATS and case.chance(0.8) else {}
    return Call(case.tensor(case.shape(), **within), *eps)


def log_odds(x, eps=None):
    x = x.astype("float64") if eps is None else np.clip(x, eps, 1 - eps)
    return np.log(x / (1 - x))


def value_rows():
    every = {"dtypes": ALL, "ulps": 0}
    truth = {**every, "result": "bool", "gradient": False}
    angle = {"dtypes": ALL, "result": "floating", "ulps": 2}
    numbers = {"nan": [0.0, 1.5, np.inf], "posinf": [2.0, -np.inf], "neginf": [-2.0, 0.0]} if np else {}
    return [
        Sample("signbit", one(), "signbit", peers.signbit, **truth),
        *(Sample(name, one(), name, **truth) for name in ("isposinf", "isneginf", "isreal")),
        Sample("positive", one(), "positive", dtypes=NUMBERS, ulps=0),
        Sample("frac", one(kinks=range(-3, 4)), lambda x: np.where(np.isinf(x), np.nan, x - np.trunc(x)), ulps=0),
        Sample("deg2rad", one(), lambda x: np.deg2rad(x.astype("float64")), **angle),
        Sample("rad2deg", one(), lambda x: np.rad2deg(x.astype("float64")), **angle),
        Sample("nan_to_num", drawn_with(**numbers), replaced, told=True, **every),
        Sample("logit", odds, log_odds, dtypes=ALL, result="floating", ulps=8, scale=lambda *args: 1),
        Sample("heaviside", steps, step, gradient=False, **every),
        Sample("lerp", between, lambda a, b, weight: a + weight * (b - a), ulps=8,
               scale=lambda a, b, weight: (np.abs(a) + np.abs(b)) * (1 + np.abs(weight)))]


# --- Functions of two whole tensors.

def twins(case, reshaped=True):
    """Draws two tensors with the same or nearly the same elements; sometimes with different ranks."""
    shape = case.shape()
    a = case.tensor(shape, special=case.chance(0.3))
    values = np.array(a.array)
    if values.size and case.chance(0.3):
        values[tuple(case.integer(0, extent - 1) for extent in shape)] = 0
    if reshaped and case.chance(0.2):
        values = values[..., None]
    return Call(a, Operand(values, case.dtype) if case.chance(0.8) else case.tensor(case.beside(shape)))


def near_twins(case):
    call = twins(case, reshaped=False)
    named = {"rtol": 0.5, "atol": 0.75} if case.chance() else {}
    return Call(*call.args, **named, **({"equal_nan": True} if case.chance() else {}))


def answer(name):
    """Returns the answer as a tensor of one bool."""
    return lambda plugrad, *args, **named: plugrad.Tensor(np.array(getattr(plugrad, name)(*args, **named)))


def whole_rows():
    truth = {"dtypes": ALL, "result": "bool", "gradient": False}
    return [Sample("equal", twins, "array_equal", peers.answer("equal"), call=answer("equal"), **truth),
            Sample("allclose", near_twins, "allclose", peers.answer("allclose"), call=answer("allclose"), **truth)]


ROWS = [*pair_rows(), *value_rows(), *whole_rows()]
