"""Functions of whole rows: their values in 50 digits, and rows that are hard to compute. Differences give the
derivatives."""
import dataclasses
import typing

import mpmath as mp
import numpy as np
import plugrad
from mpmath import mpf

from . import references as r
from .sweep import NUMPY, Worst, error

DIGITS = 120  # Differences with steps of 10^-40 of a number keep 40 of these digits.
STEP = mpf(10) ** -40


def total(x):
    return sum(x, mpf(0))


def magnitude(x):
    return total(map(abs, x))


def largest(x):
    return max(map(abs, x))


def mean(x):
    return total(x) / len(x)


def variance(x, less=1):
    middle = mean(x)
    return total((each - middle) ** 2 for each in x) / (len(x) - less)


def deviation(x):
    return mp.sqrt(variance(x))


def log_sum_exp(x):
    most = max(x)
    return most + mp.log(total(r.exp(each - most) for each in x))


def softmax(x):
    least = log_sum_exp(x)
    return [r.exp(each - least) for each in x]


def log_softmax(x):
    least = log_sum_exp(x)
    return [each - least for each in x]


def running(x, step):
    results = [x[0]]
    for each in x[1:]:
        results.append(step(results[-1], each))
    return results


def product(x):
    return running(x, lambda a, b: a * b)[-1]


def length(x, p=2):
    return total(abs(each) ** p for each in x) ** (r.ONE / p)


def parts(x):
    """Splits the row into two operands, its first and its second half."""
    return x[:len(x) // 2], x[len(x) // 2:]


def cosine(x):
    a, b = parts(x)
    return total(p * q for p, q in zip(a, b)) / (length(a) * length(b))


def quotients(x, by):
    return [each / by for each in x]


def normalised(x, centred, eps):
    middle = mean(x) if centred else 0
    spread = total((each - middle) ** 2 for each in x) / len(x)
    return quotients([each - middle for each in x], mp.sqrt(spread + mpf(eps)))


def shift(x):
    """The mean in units of the standard deviation: the rounding of the mean changes each element of a normalised row."""
    return max(r.ONE, abs(mean(x)) / mp.sqrt(variance(x, 0) + mpf(1e-5)))


def mean_of(loss):
    """Returns the mean of a loss over pairs of numbers."""
    return lambda x: [mean([loss(p, q) for p, q in zip(*parts(x))])]


def huber(d):
    return d * d / 2 if abs(d) < 1 else abs(d) - r.ONE / 2


def one(name, **options):
    return lambda x: getattr(plugrad, name)(x, **options)


def two(name, **options):
    return lambda x: getattr(plugrad, name)(*parts(x), **options)


@dataclasses.dataclass(frozen=True)
class Row:
    """A function of a row. The unit of errors is an ulp of the result, or of `least` of the row if `least` is larger. The
    unit of errors of derivatives is an ulp of the largest derivative of the row, or of least_slope if it is larger."""
    name: str
    call: typing.Callable
    value: typing.Callable  # Maps the numbers of the row to the numbers of the result, in any shape.
    kinds: tuple = ("ordinary", "far", "cancelling", "large", "small")
    least: typing.Callable = lambda _: 0
    least_slope: typing.Callable = lambda _: 0


LENGTHS = 2, 8, 40
SIZES = "ordinary", "far", "large", "small"
LOGITS = "ordinary", "wide", "far", "equal"
PAIRS = "ordinary", "far"
ROWS = [
    Row("sum", one("sum"), lambda x: [total(x)], least=magnitude),
    Row("mean", one("mean"), lambda x: [mean(x)], least=lambda x: magnitude(x) / len(x)),
    Row("prod", one("prod"), lambda x: [product(x)], ("ordinary",)),
    Row("cumsum", one("cumsum", dim=0), lambda x: running(x, lambda a, b: a + b), least=magnitude),
    Row("cumprod", one("cumprod", dim=0), lambda x: running(x, lambda a, b: a * b), ("ordinary",)),
    Row("logsumexp", one("logsumexp", dim=0), lambda x: [log_sum_exp(x)], LOGITS, largest),
    Row("logcumsumexp", one("logcumsumexp", dim=0), lambda x: running(x, r.logaddexp), LOGITS, largest,
        lambda x: max(r.ONE, largest(x))),
    Row("softmax", one("softmax", dim=0), softmax, LOGITS, lambda _: "tiny", lambda _: r.ONE),
    Row("softmin", one("softmin", dim=0), lambda x: softmax([-each for each in x]), LOGITS, lambda _: "tiny",
        lambda _: r.ONE),
    Row("log_softmax", one("log_softmax", dim=0), log_softmax, LOGITS, largest),
    Row("var", one("var"), lambda x: [variance(x)], SIZES),
    Row("std", one("std"), lambda x: [deviation(x)], SIZES),
    Row("norm p=1", one("norm", p=1), lambda x: [magnitude(x)]),
    Row("norm p=2", one("norm"), lambda x: [length(x)], SIZES),
    Row("norm p=3", one("norm", p=3), lambda x: [length(x, 3)], PAIRS),
    Row("normalize", one("normalize", dim=0),
        lambda x: quotients(x, max(length(x), mpf(1e-12))), SIZES),
    Row("cosine_similarity", two("cosine_similarity", dim=0), lambda x: [cosine(x)], PAIRS, lambda _: r.ONE,
        lambda x: 1 / length(x)),
    Row("layer_norm", lambda x: plugrad.layer_norm(x, (x.numel(),)), lambda x: normalised(x, True, 1e-5),
        ("ordinary", "far", "equal"), shift, lambda x: shift(x) / mp.sqrt(variance(x, 0) + mpf(1e-5))),
    Row("rms_norm", lambda x: plugrad.rms_norm(x, (x.numel(),), eps=1e-6), lambda x: normalised(x, False, 1e-6), SIZES,
        least_slope=lambda x: 1 / mp.sqrt(total(each * each for each in x) / len(x) + mpf(1e-6))),
    Row("mse_loss", two("mse_loss"), mean_of(lambda a, b: (a - b) ** 2), PAIRS),
    Row("huber_loss", two("huber_loss"), mean_of(lambda a, b: huber(a - b)), PAIRS),
    Row("l1_loss", two("l1_loss"), mean_of(lambda a, b: abs(a - b)), PAIRS),
    Row("binary_cross_entropy", two("binary_cross_entropy"),
        mean_of(lambda p, t: -t * mp.log(p) - (1 - t) * mp.log(1 - p)), ("probabilities",)),
    Row("binary_cross_entropy_with_logits", two("binary_cross_entropy_with_logits"),
        mean_of(lambda v, t: r.softplus(v) - v * t), ("logits",), lambda x: largest(x) / len(x)),
    Row("cross_entropy", lambda x: plugrad.cross_entropy(x[None], plugrad.tensor([0])), lambda x: [log_sum_exp(x) - x[0]],
        LOGITS, largest, lambda x: max(r.ONE, largest(x))),
    Row("kl_div", lambda x: plugrad.kl_div(parts(x)[0].log(), parts(x)[1], reduction="sum"),
        lambda x: [total(q * (mp.log(q) - mp.log(p)) for p, q in zip(*parts(x)))], ("probabilities",),
        lambda x: total(abs(q * mp.log(q)) + abs(q * mp.log(p)) for p, q in zip(*parts(x)))),
    Row("poisson_nll_loss", two("poisson_nll_loss"), mean_of(lambda v, t: mp.exp(v) - t * v), ("ordinary",),
        lambda x: mean([mp.exp(v) + abs(t * v) for v, t in zip(*parts(x))])),
]


def rows_of(row, dtype):
    """Returns the rows of the sweep: arrays of the dtype."""
    draw = np.random.default_rng(3)
    far, large, wide = {"f64": (1e6, 1e150, 700), "f32": (1e3, 1e17, 85)}[dtype]
    makers = {
        "ordinary": lambda n: draw.normal(size=n),
        "far": lambda n: far + draw.normal(size=n),
        "cancelling": lambda n: np.resize(np.array([far, -far]), n) + draw.normal(size=n),
        "large": lambda n: large * draw.normal(size=n),
        "small": lambda n: draw.normal(size=n) / large,
        "wide": lambda n: draw.uniform(-wide, wide, size=n),
        "equal": lambda n: np.full(n, draw.normal()),
        "probabilities": lambda n: draw.uniform(size=n) ** 4,
        "logits": lambda n: np.concatenate([draw.uniform(-wide, wide, size=n // 2), draw.uniform(size=n // 2)]),
    }
    return [(kind, makers[kind](n).astype(NUMPY[dtype])) for kind in row.kinds for n in LENGTHS for _ in range(2)]


def computed(row, numbers, weights, dtype):
    x = plugrad.tensor(numbers, dtype=dtype, requires_grad=True)
    value = row.call(x).reshape(-1)
    (value * plugrad.tensor(weights, dtype=dtype)).sum().backward()
    return value.detach().numpy(), x.grad.numpy()


def slopes(row, x, weights):
    """The derivatives of the weighted sum of the result."""
    def weighed(at, moved):
        return total(w * y for w, y in zip(weights, row.value(x[:at] + [moved] + x[at + 1:])))
    with mp.workdps(DIGITS):
        steps = [(abs(each) or 1) * STEP for each in x]
        return [(weighed(i, each + step) - weighed(i, each - step)) / (2 * step)
                for i, (each, step) in enumerate(zip(x, steps))]


def compared(row, dtype):
    """Returns the largest error of the value and the largest error of the derivatives, each with its place: a kind of row
    and a length."""
    found = [Worst(0.0, None, None, None)] * 2
    for kind, numbers in rows_of(row, dtype):
        x = [mpf(float(each)) for each in numbers]
        with mp.workdps(DIGITS):
            exact = row.value(x)
        weights = np.random.default_rng(4).integers(-8, 8, len(exact)) / 8 + 1 / 16
        value, slope = computed(row, numbers, weights, dtype)
        exact_slopes = slopes(row, x, [mpf(float(each)) for each in weights])
        most = max([abs(each) for each in exact_slopes] + [mpf(row.least_slope(x))])
        for which, got, right, least in ((0, value, exact, row.least(x)), (1, slope, exact_slopes, most)):
            for mine, other in zip(got, right, strict=True):
                off = error(mine, other, least, dtype)
                if off > found[which].error:
                    found[which] = Worst(off, (kind, len(x)), float(mine), float(other))
    return found
