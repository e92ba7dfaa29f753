"""Trigonometric functions, whole quotients and bits."""
from .case import ALL, FLOATS, INTEGERS, NUMBERS, Call, np
from .elementwise import as_float, pair
from .sample import Sample


def trigonometric_rows():
    # (op, NumPy's function, limits of the operands for gradients)
    functions = [("sin", "sin", {}), ("cos", "cos", {}), ("tan", "tan", {"low": -1, "high": 1}),
                 ("asin", "arcsin", {"low": -0.9, "high": 0.9}), ("acos", "arccos", {"low": -0.9, "high": 0.9}),
                 ("atan", "arctan", {}), ("sinh", "sinh", {}), ("cosh", "cosh", {}), ("asinh", "arcsinh", {}),
                 ("acosh", "arccosh", {"low": 1.25, "high": 4}), ("atanh", "arctanh", {"low": -0.9, "high": 0.9})]

    def draw(op, domain):
        def drawn(case):
            limits = {} if case.aim == "values" else {**domain, "smooth": True}
            if case.dtype not in FLOATS and op in ("sin", "cos", "tan"):
                limits = {"low": 0, "high": 10}  # f32 does not hold the limits of integers
            special = "sums" if op in ("sin", "cos", "tan") else True
            return Call(case.tensor(case.shape(), special=special, **limits))
        return drawn
    rows = [Sample(op, draw(op, domain), as_float(getattr(np, function)) if np else function, dtypes=ALL, result="floating",
                   ulps=32, scale=lambda x: 1) for op, function, domain in functions]
    return [*rows, Sample("atan2", angles, lambda y, x: np.arctan2(y.astype("float64"), x.astype("float64")), dtypes=ALL,
                          result="floating", ulps=16, scale=lambda *args: 1)]


def angles(case):
    shape = case.shape()
    low = {"low": 0.25} if case.aim != "values" and case.dtype in FLOATS else {}
    return Call(case.tensor(shape), case.tensor(case.beside(shape), **low))


def quotients(case):
    shape = case.shape()
    a, other = case.tensor(shape, special="tame"), case.beside(shape)
    low, high = (1, 9) if case.dtype not in FLOATS else (0.5, 4)
    if case.chance(0.3):
        return Call(a, case.integer(1, 4))
    return Call(a, case.tensor(other, special=False, low=low, high=high, shift=0.005))


def bits(case):
    a, b = pair(case, dtypes=[*INTEGERS, "bool"])
    return Call(a, b)


def shifts(case):
    shape = case.shape()
    return Call(case.tensor(shape), case.tensor(case.beside(shape), low=0, high=7, special=False))


def integer_rows():
    near = {"dtypes": NUMBERS, "ulps": 4, "scale": lambda *args: 4, "accepts": ("bool",)}
    whole = {"dtypes": (*INTEGERS, "bool"), "gradient": False, "ulps": 0}
    shifted = {**whole, "dtypes": INTEGERS, "accepts": ("bool",)}
    return [
        Sample("floor_divide", quotients, "floor_divide", **{**near, "ulps": 0},
               ties="PyTorch has no derivative"),
        Sample("remainder", quotients, "remainder", **near),
        Sample("fmod", quotients, "fmod", **near),
        *(Sample(f"bitwise_{name}", bits, f"bitwise_{name}", promotes=True, **whole) for name in ("and", "or", "xor")),
        Sample("bitwise_not", lambda case: Call(case.tensor(case.shape())), "invert", **whole),
        Sample("bitwise_left_shift", shifts, "left_shift", **shifted),
        Sample("bitwise_right_shift", shifts, "right_shift", **shifted)]


ROWS = [*trigonometric_rows(), *integer_rows()]
