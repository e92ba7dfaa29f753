"""Special functions. Series, recurrences and Newton's method in float64 compute the expected results."""
import math

from .arithmetic import times_log, two
from .case import ALL, FLOATS, INTEGERS, Call, np
from .elementwise import as_float, vectorised
from .sample import Sample

# --- The error function and the normal distribution.


def scaled_erfc(x):
    """e^(x^2) erfc(x)."""
    if x > 20:
        square = 2 * x * x
        series = 1 - 1 / square * (1 - 3 / square * (1 - 5 / square * (1 - 7 / square * (1 - 9 / square))))
        return series / (x * math.sqrt(math.pi))
    return math.inf if x < -26 else math.exp(x * x) * math.erfc(x)


def normal(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def log_normal(x):
    if x < -1:
        return math.log(scaled_erfc(-x / math.sqrt(2)) / 2) - x * x / 2 if x > -1e150 else -math.inf
    return math.log1p(-normal(-x))


def solved(function, slope, want, start=0.0):
    """Solves for the argument of a monotonic function of one number by Newton's method."""
    x = start
    for _ in range(200):
        step = (function(x) - want) / slope(x)
        x -= max(-1.0, min(1.0, step))
        if abs(step) <= 1e-16 * abs(x):
            break
    return x


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def normal_place(p):
    """Returns the inverse of `normal`, computed in logarithms so that it is exact for small p."""
    if not 0 < p < 1:
        return {0: -math.inf, 1: math.inf}.get(p, math.nan)
    if p > 0.5:
        return -normal_place(1 - p)
    return solved(log_normal, lambda x: density(x) / max(normal(x), 5e-324) if x > -30 else -x, math.log(p))


def inverse_erf(x):
    if abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) < 0.5:
        return solved(math.erf, lambda y: 2 / math.sqrt(math.pi) * math.exp(-y * y), x, x)
    return -math.copysign(1, x) * normal_place((1 - abs(x)) / 2) / math.sqrt(2)


# --- The gamma function.

def log_gamma(x):
    pole = math.isinf(x) or x > 1e305 or x <= 0 and x == int(x)
    return math.inf if pole else math.lgamma(x)


def hurwitz(s, x):
    """Returns the sum of (x + k)^-s over k = 0, 1, ... for s above 1."""
    total, steps = 0.0, 24
    for _ in range(steps):
        total += x**-s
        x += 1
    total += x ** (1 - s) / (s - 1) + x**-s / 2
    factor = s * x ** (-s - 1)
    for k, bernoulli in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30), start=1):
        total += bernoulli * factor / math.factorial(2 * k)
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (x * x)
    return total


def digamma(x):
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0 and (math.isinf(x) or x == int(x)):
        return math.nan
    total = 0.0
    while x < 24:
        total -= 1 / x
        x += 1
    square = 1 / (x * x) if x < 1e150 else 0.0
    return total + math.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))


def polygamma(n, x):
    factor = (-1) ** (n + 1) * math.factorial(n)
    return vectorised(lambda each: factor * hurwitz(n + 1, each))(x) if n else vectorised(digamma)(x)


def mvlgamma(x, p):
    return p * (p - 1) / 4 * math.log(math.pi) + sum(vectorised(log_gamma)(x - i / 2) for i in range(p))


# --- Bessel functions.

def bessel(order, scaled):
    """Computes by the series, or for large x by the asymptotic series; times e^-|x| if scaled."""
    def computed(x):
        size, sign = abs(x), -1 if order and x < 0 else 1
        if math.isnan(x):
            return x
        if math.isinf(size):
            return 0.0 if scaled else sign * math.inf
        if size < 30:
            terms = [(size / 2) ** order / math.factorial(order)]
            for k in range(1, 80):
                terms.append(terms[-1] * (size / 2) ** 2 / (k * (k + order)))
            return sign * math.fsum(terms) * (math.exp(-size) if scaled else 1)
        total, term = 1.0, 1.0
        for k in range(1, 12):
            term *= -(4 * order**2 - (2 * k - 1) ** 2) / (8 * k * size)
            total += term
        found = total / math.sqrt(2 * math.pi) / math.sqrt(size)
        return sign * (found if scaled else found * math.exp(size) if size < 700 else math.inf)
    return vectorised(computed)


def peer_special(name):
    def called(*args):
        import torch
        return getattr(torch.special, name)(*args)
    return called


def within(low, high, ends=None, special=True, kinks=()):
    """Draws elements between low and high, or between the ends for aims other than gradients. Integers and special numbers
    may be outside these limits."""
    def draw(case):
        limits = (low, high) if ends is None or case.aim == "gradient" else ends
        named = dict(zip(("low", "high"), limits)) if case.dtype in FLOATS else {}
        return Call(case.tensor(case.shape(), special=special, smooth=ends is None and not kinks, kinks=kinks, **named))
    return draw


def error_rows():
    how = {"dtypes": ALL, "result": "floating"}
    fewer = {**how, "differs": ("f16", "bf16")}  # PyTorch takes f32 and f64
    plane, unit = within(-4, 4), within(-0.95, 0.95, ends=(-1, 1))
    return [
        Sample("erfc", plane, vectorised(math.erfc), ulps=32, **how),
        Sample("erfcx", within(-4, 4, special="sums"), vectorised(scaled_erfc), peer_special("erfcx"), ulps=64,
               **fewer),
        Sample("erfinv", unit, vectorised(inverse_erf), ulps=32, **how),
        Sample("ndtr", plane, vectorised(normal), None, ulps=32, **how),  # PyTorch computes (1 + erf) / 2
        Sample("log_ndtr", plane, vectorised(log_normal), peer_special("log_ndtr"), ulps=64, **fewer),
        Sample("ndtri", within(0.05, 0.95, ends=(0, 1), special=False), vectorised(normal_place), peer_special("ndtri"),
               ulps=32, scale=lambda x: 1, **fewer)]


def gammas(case):
    """Draws operands away from the poles, which are at 0 and the negative whole numbers."""
    if case.dtype in FLOATS:
        return Call(case.tensor(case.shape(), special=False, smooth=True, low=0.25, high=6))
    return Call(case.tensor(case.shape(), low=1, high=9, special=False))


def orders(*orders_drawn):
    """Draws a number and an operand."""
    return lambda case: Call(case.choice(orders_drawn), *gammas(case).args)


def dimensions(case):
    limits = {"low": 1.5, "high": 6} if case.dtype in FLOATS else {"low": 2, "high": 9}
    return Call(case.tensor(case.shape(), special=False, smooth=True, **limits), case.integer(1, 3))


def gamma_rows():
    near = {"dtypes": ALL, "result": "floating", "scale": lambda *args: 1}
    whole = {"dtypes": (*FLOATS, *INTEGERS), "accepts": ("bool",)}
    return [
        Sample("lgamma", gammas, vectorised(log_gamma), ulps=64, **near),
        Sample("digamma", gammas, vectorised(digamma), ulps=16, **near),
        Sample("polygamma", orders(0, 2, 3), polygamma, ulps=64, **near | whole),
        # PyTorch's result is correct to 10 digits
        Sample("polygamma", orders(1), polygamma, ulps=64, variant="of order 1", differs=("f64",),
               ties="PyTorch's is right to 10 digits", **near | whole),
        Sample("mvlgamma", dimensions, mvlgamma, ulps=128, **near | whole)]


def bessel_rows():
    how = {"dtypes": ALL, "result": "floating", "ulps": 32}
    grown = [Sample(name, within(-4, 4, special="tame"), bessel(order, False), peer_special(name), **how)
             for order, name in enumerate(("i0", "i1"))]
    return grown + [Sample(name, within(-4, 4, kinks=(0,)), bessel(order, True), peer_special(name), **how)
                    for order, name in enumerate(("i0e", "i1e"))]


def entropy(x):
    return np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(x)))


def one(x):
    return 1


def limit_rows():
    how = {"dtypes": ALL, "result": "floating"}
    return [
        Sample("sinc", within(-4, 4, special="sums", kinks=(0,)), lambda x: np.sinc(x.astype("float64")), ulps=32,
               scale=one, **how),
        Sample("entr", within(0.05, 4, ends=(0, 4)), as_float(entropy), peer_special("entr"), ulps=8, scale=one,
               **how),
        Sample("xlog1py", two(number=True, first=True, low=0.25, kinks=(0,)),
               lambda a, b: times_log(a, 1 + np.asarray(b, "float64")), peer_special("xlog1py"), promotes=True,
               ulps=16, **how)]


ROWS = [*error_rows(), *gamma_rows(), *bessel_rows(), *limit_rows()]
