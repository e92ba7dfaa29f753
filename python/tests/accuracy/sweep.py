"""The error of a function against its reference, in ulp, over the whole range of a dtype."""
import collections
import math

import mpmath as mp
import numpy as np
import plugrad
from mpmath import mpf

FORMATS = {"f64": (53, -1022, 1023), "f32": (24, -126, 127)}  # Digits, smallest and largest exponent.
NUMPY = {"f64": np.float64, "f32": np.float32}
Worst = collections.namedtuple("Worst", "error place got exact")


def points(curve, dtype):
    """Returns sorted numbers of the dtype: across all exponents, between -40 and 40, and ever closer to the hard points."""
    digits, least, most = FORMATS[dtype]
    draw = np.random.default_rng(1)
    exponents = np.linspace(least - digits + 1, most, 250).astype(int)
    sizes = [math.ldexp(1 + draw.random(), int(each)) for each in exponents]
    close = [sign * math.ldexp(1 + draw.random() * (k < digits - 2), -k) for k in range(2, digits + 8) for sign in (-1, 1)]
    near = [float(c) + d * (abs(c) or 1) for c in (0, *curve.hard) for d in close]
    found = [*sizes, *(-each for each in sizes), *draw.uniform(-40, 40, 120), *draw.uniform(-4, 4, 80), *near, *curve.hard,
             0.0, 1.0, -1.0, 0.5, 1e4, 700.5, -745.2]
    return within(found, curve, dtype)


def within(numbers, curve, dtype):
    found = np.array(numbers, dtype=NUMPY[dtype])
    found = np.unique(found[np.isfinite(found)])
    return found[(found >= curve.low) & (found <= curve.high)]


def pairs(curve, dtype):
    """Returns pairs of numbers: across the exponents, with few digits, and close to 1."""
    digits, least, most = FORMATS[dtype]
    draw = np.random.default_rng(2)
    sizes = [math.ldexp(1 + draw.random(), int(each)) for each in np.linspace(least - 2, most, 24)]
    plain = [*draw.uniform(-20, 20, 12), *draw.uniform(0, 3, 10), 1 - 2.0 ** -20, 1 + 2.0 ** -digits * 4, 1, 2, -3, 0.5]
    axis = within([*sizes, *(-each for each in sizes), *plain], curve, dtype)
    chosen = [(a, b) for a in axis.tolist() for b in axis.tolist() if curve.inside(a, b)]
    return tuple(np.array(side, dtype=NUMPY[dtype]) for side in zip(*chosen))


def places(curve, dtype):
    """Returns an array for each operand."""
    return (points(curve, dtype),) if len(curve.slopes) == 1 else pairs(curve, dtype)


def unit(exact, least, dtype):
    """Returns an ulp of the exact number, or of `least` if it is larger. least="tiny": for a subnormal number, the smallest
    normal number."""
    digits, lowest, most = FORMATS[dtype]
    if least == "tiny" and abs(exact) < mp.ldexp(1, lowest):
        return mp.ldexp(1, lowest)
    size = max(abs(exact), 0 if least == "tiny" else least)
    exponent = lowest if size == 0 else min(max(mp.frexp(size)[1] - 1, lowest), most)
    return mp.ldexp(1, exponent - digits + 1)


def error(got, exact, least, dtype):
    """Returns the error in ulp. An infinite number counts as the power of 2 after the largest number."""
    if mp.isnan(exact) or math.isnan(got):
        return 0.0 if mp.isnan(exact) and math.isnan(got) else math.inf
    beyond = mp.ldexp(1, FORMATS[dtype][2] + 1)
    exact, mine = (max(-beyond, min(beyond, each)) for each in (exact, mpf(float(got))))
    return float(abs(mine - exact) / unit(exact, least, dtype))


def function(name):
    return getattr(plugrad, name, None) or getattr(plugrad.special, name)


def computed(curve, operands, dtype):
    """Returns the value, and the derivative for each operand."""
    leaves = [plugrad.tensor(each, dtype=dtype, requires_grad=True) for each in operands]
    options = dict(curve.options)
    orders = [options.pop("n")] if "n" in options else []
    value = function(curve.name)(*orders, *leaves, **options)
    value.sum().backward()
    return [value.detach().numpy(), *(each.grad.numpy() for each in leaves)]


def reference(formula, place):
    """Returns the exact result, or None at a pole."""
    try:
        return mpf(formula(*(mpf(float(x)) for x in place)))
    except (ZeroDivisionError, ValueError):
        return None


def compared(curve, dtype):
    """Returns the largest error of the value and the largest error of the derivatives, each with its place."""
    operands = places(curve, dtype)
    results = computed(curve, operands, dtype)
    value, *slopes = (worst(formula, operands, result, least, dtype) for formula, result, least in zip(
        (curve.value, *curve.slopes), results, (curve.least[0], *[curve.least[1]] * len(operands)), strict=True))
    return value, max(slopes, key=lambda each: each.error)


def worst(formula, operands, result, least, dtype):
    found = Worst(0.0, None, None, None)
    for place, got in zip(zip(*operands), result):
        exact = reference(formula, place)
        if exact is not None and (off := error(got, exact, least, dtype)) > found.error:
            found = Worst(off, tuple(map(float, place)), float(got), float(exact))
    return found
