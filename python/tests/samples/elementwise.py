"""Functions of one element, or of one element of each operand."""
import math

from . import peers
from .case import ALL, FLOATS, INTEGERS, NUMBERS, Call, np, promoted
from .sample import Sample, one


def vectorised(function):
    """Makes a function of one number a function of arrays of float64; NaN outside its domain."""
    def guarded(x):
        try:
            return function(float(x))
        except (ValueError, OverflowError):
            return math.nan
    return lambda x, *args, **named: np.vectorize(guarded, otypes=["float64"])(np.asarray(x, "float64"), *args, **named)


def as_float(function):
    """Converts integers and bools to f32."""
    return lambda x: function(np.asarray(x, "float64"))


def sigmoid(x):
    return np.exp(-np.logaddexp(0, -np.asarray(x, "float64")))


def floating_rows():
    """Ops that take any dtype and return a floating dtype."""
    functions = [
        ("sqrt", "sqrt", {"low": 0.25}), ("exp", "exp", {}), ("log", "log", {"low": 0.25}), ("tanh", "tanh", {}),
        ("sigmoid", sigmoid, {}), ("erf", vectorised(math.erf), {}), ("reciprocal", lambda x: 1 / x, {"low": 0.25}),
        ("rsqrt", lambda x: 1 / np.sqrt(x), {"low": 0.25}), ("exp2", "exp2", {}), ("log2", "log2", {"low": 0.25}),
        ("log10", "log10", {"low": 0.25}), ("expm1", "expm1", {}), ("log1p", "log1p", {"low": -0.5})]

    def draw(gradient_domain):
        def drawn(case):
            domain = gradient_domain if case.aim != "values" and case.dtype in FLOATS else {}
            return Call(case.tensor(case.shape(), **domain))
        return drawn
    return [Sample(op, draw(domain), as_float(getattr(np, function) if isinstance(function, str) and np else function),
                   dtypes=ALL, result="floating", ulps=20 if op in ("exp2", "expm1", "log1p") else 8)
            for op, function, domain in functions]


def rounding_rows():
    rows = [Sample(op, one(kinks=range(-3, 4)), numpy, dtypes=ALL, ulps=0, differs=("bool",))
            for op, numpy in (("floor", lambda x: np.floor(x) if x.dtype.kind == "f" else x),
                              ("ceil", lambda x: np.ceil(x) if x.dtype.kind == "f" else x),
                              ("trunc", lambda x: np.trunc(x) if x.dtype.kind == "f" else x))]
    halves = [k / 2 for k in range(-7, 8)]
    return rows + [Sample("round", one(kinks=halves), lambda x: np.rint(x) if x.dtype.kind == "f" else x, dtypes=ALL, ulps=0,
                          differs=("bool",))]


def number_rows():
    """Ops that keep the dtype."""
    return [
        Sample("neg", one(), "negative", dtypes=NUMBERS, ulps=0),
        Sample("abs", one(kinks=(0,)), "abs", dtypes=NUMBERS, ulps=0),
        Sample("sign", one(kinks=(0,)), "sign", peers.sign, dtypes=NUMBERS, ulps=0),
        Sample("relu", one(kinks=(0,)), lambda x: np.where(x < 0, 0, x).astype(x.dtype), dtypes=NUMBERS, ulps=0),
        Sample("square", one(), lambda x: x.astype("int64") if x.dtype == bool else np.square(x), dtypes=ALL, ulps=1,
               result="squared")]


def pair(case, dtypes=None, **how):
    """Draws two operands that broadcast; sometimes with two dtypes, or with a number in place of an operand."""
    shape, other = case.shape(), None
    left, right = (shape, case.beside(shape)) if case.chance() else (case.beside(shape), shape)
    if case.aim == "values" and case.chance(0.25):
        other = case.choice(dtypes or NUMBERS)
    return case.tensor(left, **how), case.tensor(right, dtype=other, **how)


def binary(case, number=True, dtypes=None, **how):
    a, b = pair(case, dtypes, **how)
    if number and case.chance(0.2):
        value = case.integer(max(how.get("low", -3), 0 if case.dtype in ("u8", "bool") else -3), how.get("high", 4) - 1)
        return Call(a, value + 0.5 if case.dtype in FLOATS else value)
    return Call(a, b)


def drawn(**how):
    return lambda case: binary(case, **how)


def integer_like(function):
    """Computes with bools as whole numbers, and returns bools."""
    def computed(a, b):
        if np.asarray(a).dtype == bool and np.asarray(b).dtype == bool:
            return function(np.asarray(a, "int64"), np.asarray(b, "int64")).astype(bool)
        return function(a, b)
    return computed


def divided(a, b):
    return np.divide(np.asarray(a, "float64"), np.asarray(b, "float64"))


def power(case):
    if case.dtype in (*INTEGERS, "bool"):
        return Call(case.tensor(case.shape()), case.integer(0, 6))
    if case.chance(0.3):
        return Call(case.tensor(case.shape(), kinks=(0,)), case.choice([0, 1, 2, 3, -1, 0.5 if case.aim == "values" else 4]))
    positive = {"low": 0.25} if case.aim != "values" else {}
    return Call(case.tensor(shape := case.shape(), **positive), case.tensor(case.beside(shape)))


def arithmetic_rows():
    number_dtypes = {"dtypes": NUMBERS, "promotes": True}
    return [
        Sample("add", drawn(dtypes=ALL), integer_like(lambda a, b: a + b), dtypes=ALL, promotes=True, ulps=1),
        Sample("sub", drawn(), lambda a, b: a - b, **number_dtypes, ulps=1),
        Sample("mul", drawn(dtypes=ALL), integer_like(lambda a, b: a * b), dtypes=ALL, promotes=True, ulps=1),
        Sample("div", drawn(dtypes=ALL, kinks=(0,)), divided, dtypes=ALL, promotes=True, ulps=1, result="floating"),
        Sample("pow", power, lambda a, b: np.power(a.astype("int64") if a.dtype == bool else a, b), dtypes=ALL, ulps=32,
               result="squared"),
        Sample("maximum", drawn(dtypes=ALL), "maximum", peers.with_tensors("maximum"), dtypes=ALL, promotes=True, ulps=0),
        Sample("minimum", drawn(dtypes=ALL), "minimum", peers.with_tensors("minimum"), dtypes=ALL, promotes=True, ulps=0)]


def comparison_rows():
    names = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    rows = [Sample(op, drawn(dtypes=ALL), theirs, dtypes=ALL, result="bool", promotes=True, gradient=False)
            for op, theirs in names.items()]
    truth = [Sample(f"logical_{name}", drawn(dtypes=ALL, number=False), f"logical_{name}", dtypes=ALL, result="bool",
                    gradient=False) for name in ("and", "or", "xor")]
    of_one = [Sample(op, one(), op, dtypes=ALL, result="bool", gradient=False)
              for op in ("logical_not", "isnan", "isinf", "isfinite")]
    return [*rows, *truth, *of_one,
            Sample("isclose", close_pair, lambda a, b, **named: np.isclose(a, b, **named), dtypes=ALL, result="bool",
                   gradient=False, differs=("f16", "bf16"))]  # PyTorch rounds the bound to halves


def close_pair(case):
    shape = case.shape()
    named = {"rtol": 0.5, "atol": 0.75} if case.chance() else {}
    if case.chance():
        named["equal_nan"] = case.chance()
    return Call(case.tensor(shape, high=3), case.tensor(case.beside(shape), high=3), **named)


def choice(case):
    shape = case.shape()
    mask = case.tensor(case.beside(shape), dtype="bool")
    a, b = pair(case)
    a, b = case.tensor(shape), case.tensor(case.beside(shape))
    if case.chance(0.3):
        number = case.integer(0, 1) if case.dtype == "bool" else case.integer(0, 9)
        return Call(mask, a, number) if case.chance() else Call(mask, number, b)
    return Call(mask, a, b)


def conversion(case):
    return Call(case.tensor(case.shape()), case.choice(ALL))


def converted(x, dtype):
    """Floating numbers saturate, and NaN gives 0; integers wrap."""
    if x.dtype.kind == "f" and dtype in INTEGERS:
        limits = np.iinfo(np.dtype(NUMPY[dtype]))
        whole = np.trunc(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
        inside = np.where((whole > float(limits.min)) & (whole < float(limits.max)), whole, 0).astype(NUMPY[dtype])
        return np.where(whole >= float(limits.max), limits.max,
                        np.where(whole <= float(limits.min), limits.min, inside)).astype(NUMPY[dtype])
    if dtype in FLOATS:
        return x.astype("float64")
    return x.astype(NUMPY[dtype])


NUMPY = {"i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool"}


def copying_rows():
    return [
        # PyTorch converts bools with bounds 0 and 1 to i64
        Sample("where", choice, "where", dtypes=ALL, ulps=0, differs=("bool",)),
        Sample("cast", conversion, converted, None, dtypes=ALL, result="listed", ulps=1, gradient=False),
        Sample("clone", one(), "copy", dtypes=ALL, ulps=0),
        Sample("to", one(), "copy", None, dtypes=ALL, ulps=0, call=lambda plugrad, x: plugrad.to(x, "reference")),
        Sample("contiguous", one(), "copy", lambda x: x.contiguous(), dtypes=ALL, ulps=0)]


def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * vectorised(lambda each: math.erfc(-each / math.sqrt(2)))(x)


def softplus(x, beta=1, threshold=20):
    return np.where(x * beta > threshold, x, np.logaddexp(0, x * beta) / beta)


def drawn_with(kinks=(), **choices):
    """Draws a tensor, and sometimes each of the named arguments."""
    def draw(case):
        named = {name: case.choice(values) for name, values in choices.items() if case.chance()}
        return Call(case.tensor(case.shape(), kinks=kinks), **named)
    return draw


def activation_rows():
    halves = tuple(k / 2 for k in range(-4, 5))
    return [
        Sample("silu", one(), lambda x: x * sigmoid(x), ulps=8),
        Sample("gelu", drawn_with(approximate=["none", "tanh"]), gelu, peers.gelu, ulps=8,
               scale=lambda x, **named: np.abs(x)),
        Sample("softplus", drawn_with(beta=[0.5, 2.0], threshold=[3.0, 20.0]), softplus, ulps=16),
        Sample("leaky_relu", drawn_with(kinks=(0,), negative_slope=[0.125, 0.5]),
               lambda x, negative_slope=0.01: np.where(x > 0, x, x * negative_slope), ulps=2),
        Sample("elu", drawn_with(kinks=(0,), alpha=[0.5, 2.0]),
               lambda x, alpha=1: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))), ulps=16),
        Sample("hardtanh", drawn_with(kinks=halves, min_val=[-1.5, -0.5], max_val=[0.5, 1.5]),
               lambda x, min_val=-1, max_val=1: np.clip(x, min_val, max_val), ulps=0),
        Sample("clamp", limits, lambda x, min=None, max=None: np.clip(x, min, max), dtypes=NUMBERS, ulps=0)]


def limits(case):
    bounds = {name: case.integer(0, 4) for name in ("min", "max") if case.chance()} or {"min": 2}
    return Call(case.tensor(case.shape(), kinks=(0, 1, 2, 3, 4)), **bounds)


ROWS = [*floating_rows(), *rounding_rows(), *number_rows(), *arithmetic_rows(), *comparison_rows(), *copying_rows(),
        *activation_rows()]
