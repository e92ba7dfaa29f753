"""Functions of images: pooling, transposed convolution and windows as columns."""
import itertools
import math

from .case import Call, Operand, np
from .networks import TAME, convolution, numbers, per_axis
from .sample import Sample

HALVES = ("f16", "bf16")  # PyTorch rounds between the steps, or lacks these dtypes on the CPU


def leading(case):
    return (*((case.integer(1, 2),) if case.chance(0.7) else ()), case.integer(1, 2))


def spatial(case, axes, low=1):
    return tuple(case.integer(low, 5 if axes < 3 else 3) for _ in range(axes))


# --- Pooling with last windows that may end outside the padding.

def pools(axes, padded=True, low=None, before=(), **choices):
    def draw(case):
        most = 3 if axes < 3 else 2
        kernel = case.integer(1, most) if before and axes == 1 else per_axis(case, axes, 1, most)
        named = {"ceil_mode": True} if case.chance(0.7) else {}
        if case.chance():
            named["stride"] = per_axis(case, axes, 1, 3)
        if padded and case.chance():
            named["padding"] = tuple(case.integer(0, k // 2) for k in numbers(kernel, axes))
        named |= {name: case.choice(each) for name, each in choices.items() if case.chance()}
        shape = (*leading(case), *(k + case.integer(0, 2 if axes < 3 else 1) for k in numbers(kernel, axes)))
        x = case.tensor(shape, special=TAME, repeats=case.aim == "values", **wide(case)) if low is None else case.tensor(
            shape, special=False, low=low, high=8)
        return Call(x, *before, kernel, **named)
    return draw


def wide(case):
    """Returns limits wide enough for many elements without ties."""
    return {"low": -8, "high": 8} if case.aim == "gradient" else {}


def cuts(x, axes, kernel, stride=None, padding=0, ceil_mode=False):
    """Yields the windows of each spatial axis: slices of x, and their extents with padding."""
    kernel, padding = numbers(kernel, axes), numbers(padding, axes)
    stride = kernel if stride is None else numbers(stride, axes)
    for n, k, s, p in zip(x.shape[-axes:], kernel, stride, padding):
        count = (n + 2 * p - k + (s - 1 if ceil_mode else 0)) // s + 1
        count -= ceil_mode and (count - 1) * s >= n + p
        yield [(slice(max(i * s - p, 0), min(i * s - p + k, n)), min(i * s - p + k, n + p) - (i * s - p))
               for i in range(count)]


def adaptive_cuts(x, axes, size):
    for n, count in zip(x.shape[-axes:], numbers(size, axes)):
        yield [(slice(i * n // count, -(-(i + 1) * n // count)), 0) for i in range(count)]


def reduced(x, axes, windows, reduce):
    """Reduces the windows by reduce(x, window, number of its elements with padding)."""
    out = np.empty(x.shape[:-axes] + tuple(map(len, windows)))
    for at in itertools.product(*(range(len(each)) for each in windows)):
        chosen = [each[i] for each, i in zip(windows, at)]
        out[(..., *at)] = reduce(x, (..., *(part for part, _ in chosen)), math.prod(size for _, size in chosen))
    return out


def lines(x, axes):
    return x.reshape(*x.shape[:-axes], -1)


def largest(axes):
    return lambda x, part, _: lines(x[part], axes).max(axis=-1)


def first_position(axes):
    def found(x, part, _):
        grid = np.arange(math.prod(x.shape[-axes:])).reshape(x.shape[-axes:])
        return grid[part].reshape(-1)[lines(x[part], axes).argmax(axis=-1)]
    return found


def average(axes, count_include_pad=True, divisor_override=None):
    def found(x, part, size):
        elements = lines(x[part], axes)
        return elements.sum(axis=-1) / (divisor_override or (size if count_include_pad else elements.shape[-1]))
    return found


def pooled(axes, reduce):
    return lambda x, *how, **named: reduced(x, axes, list(cuts(x, axes, *how, **named)), reduce(axes))


def averaged(axes):
    def mean(x, kernel, count_include_pad=True, divisor_override=None, **named):
        return reduced(x, axes, list(cuts(x, axes, kernel, **named)), average(axes, count_include_pad, divisor_override))
    return mean


def powers(axes):
    def norm(x, p, kernel, **named):
        means = reduced(x ** p, axes, list(cuts(x, axes, kernel, **named)), average(axes))
        return (means * math.prod(numbers(kernel, axes))) ** (1 / p)
    return norm


def adapted(axes, reduce):
    return lambda x, size: reduced(x, axes, list(adaptive_cuts(x, axes, size)), reduce(axes))


def adaptive(axes):
    def draw(case):
        shape = (*leading(case), *spatial(case, axes))
        return Call(case.tensor(shape, special=TAME, repeats=case.aim == "values", **wide(case)),
                    tuple(case.integer(1, 4) for _ in range(axes)))
    return draw


def values_of(name):
    return lambda library, *args, **named: getattr(library, name)(*args, **named)[0]


def indices_of(name):
    return lambda library, *args, **named: getattr(library, name)(*args, **named)[1]


def functional(take):
    def called(*args, **named):
        from torch.nn import functional
        return take(functional, *args, **named)
    return called


def maximum_rows(axes, op, draw, expected):
    twin = f"{op}_with_indices"
    exact = {"ulps": 0, "differs": HALVES}
    return [Sample(op, draw, expected(axes, largest), variant="whole", **exact),
            Sample(twin, draw, expected(axes, largest), functional(values_of(twin)), call=values_of(twin), variant="values",
                   **exact),
            Sample(twin, draw, expected(axes, first_position), functional(indices_of(twin)), call=indices_of(twin),
                   result="i64", gradient=False, variant="positions", differs=HALVES)]


def unpools(axes):
    def draw(case):
        counts, kernel = spatial(case, axes), per_axis(case, axes, 1, 2)
        whole = tuple(n * k for n, k in zip(counts, numbers(kernel, axes)))
        shape = (*leading(case), *counts)
        rows = [case.random.permutation(math.prod(whole))[:math.prod(counts)] for _ in range(math.prod(shape[:-axes]))]
        return Call(case.tensor(shape, special=TAME), Operand(np.array(rows).reshape(shape), "i64"), kernel)
    return draw


def unpooled(axes):
    def put(x, at, kernel):
        whole = tuple(n * k for n, k in zip(x.shape[-axes:], numbers(kernel, axes)))
        out = np.zeros((*x.shape[:-axes], math.prod(whole)))
        np.put_along_axis(out, lines(at, axes), lines(x, axes), axis=-1)
        return out.reshape(*x.shape[:-axes], *whole)
    return put


def pooling_rows(axes):
    means = {"ulps": 32, "scale": lambda *args, **named: 4, "differs": HALVES}
    divisors = {"divisor_override": [1, 3]} if axes > 1 else {}
    ceiling = pools(axes, count_include_pad=[False], **divisors)
    return [
        *maximum_rows(axes, f"max_pool{axes}d", pools(axes), pooled),
        *maximum_rows(axes, f"adaptive_max_pool{axes}d", adaptive(axes), adapted),
        Sample(f"max_unpool{axes}d", unpools(axes), unpooled(axes), ulps=0, result="first", differs=HALVES),
        Sample(f"avg_pool{axes}d", ceiling, averaged(axes), variant="whole", **means),
        Sample(f"lp_pool{axes}d", pools(axes, padded=False, low=0.5, before=(2,)), powers(axes), ulps=32, halves=4,
               differs=HALVES),
        *([] if axes == 2 else
          [Sample(f"adaptive_avg_pool{axes}d", adaptive(axes), adapted(axes, average_of_all), **means)])]


def average_of_all(axes):
    return average(axes, count_include_pad=False)


# --- Convolution, and windows as columns.

def transposed(axes):
    def draw(case):
        groups = case.choice([1, 1, 2])
        channels, outer, kernel = groups * case.integer(1, 2), case.integer(1, 2), spatial_kernel(case, axes)
        named = {"stride": per_axis(case, axes, 1, 2), "dilation": per_axis(case, axes, 1, 2), "groups": groups}
        if all(each == 2 for each in numbers(named["stride"], axes)) and case.chance():
            named["output_padding"] = 1
        x = case.tensor((*leading(case)[:-1], channels, *(case.integer(1, 3) for _ in range(axes))), special=TAME,
                        smooth=True)
        bias = [case.tensor((outer * groups,), special=TAME, smooth=True)] if case.chance() else []
        return Call(x, case.tensor((channels, outer, *kernel), special=TAME, smooth=True), *bias, **named)
    return draw


def spatial_kernel(case, axes):
    return tuple(case.integer(1, 3 if axes < 3 else 2) for _ in range(axes))


def transposed_convolution(x, weight, bias=None, stride=1, output_padding=0, groups=1, dilation=1):
    """Adds a window to the result for each element of x."""
    axes = weight.ndim - 2
    batched = x if x.ndim == axes + 2 else x[None]
    s, extra, d = (numbers(each, axes) for each in (stride, output_padding, dilation))
    counts, kernel, outer = batched.shape[2:], weight.shape[2:], weight.shape[1]
    whole = tuple((n - 1) * a + b * (k - 1) + e + 1 for n, a, b, k, e in zip(counts, s, d, kernel, extra))
    out = np.zeros((batched.shape[0], outer * groups, *whole))
    for g, channel in enumerate(np.split(np.arange(batched.shape[1]), groups)):
        for at in itertools.product(*map(range, counts)):
            for j in itertools.product(*map(range, kernel)):
                place = tuple(i * a + b * k for i, a, b, k in zip(at, s, d, j))
                out[(slice(None), slice(g * outer, (g + 1) * outer), *place)] += (
                    batched[(slice(None), channel, *at)] @ weight[(channel, slice(None), *j)])
    out = out + (0 if bias is None else bias.reshape(-1, *[1] * axes))
    return out if x.ndim == axes + 2 else out[0]


def named_paddings(axes):
    def draw(case):
        kernel = spatial_kernel(case, axes)
        named = {"padding": case.choice(["same", "same", "valid"]), "dilation": per_axis(case, axes, 1, 2)}
        shape = (d * (k - 1) + case.integer(1, 3) for k, d in zip(kernel, numbers(named["dilation"], axes)))
        x = case.tensor((*leading(case)[:-1], 2, *shape), special=TAME, smooth=True)
        return Call(x, case.tensor((2, 2, *kernel), special=TAME, smooth=True), **named)
    return draw


def named_padding(x, weight, padding, dilation):
    axes = weight.ndim - 2
    totals = [d * (k - 1) if padding == "same" else 0 for k, d in zip(weight.shape[2:], numbers(dilation, axes))]
    x = np.pad(x, [(0, 0)] * (x.ndim - axes) + [(each // 2, each - each // 2) for each in totals])
    return convolution(x, weight, dilation=dilation)


def columns(case):
    kernel = per_axis(case, 2, 1, 3)
    named = {name: per_axis(case, 2, low, 2) for name, low in (("dilation", 1), ("padding", 0), ("stride", 1))
             if case.chance()}
    spans = [d * (k - 1) + 1 for k, d in zip(numbers(kernel, 2), numbers(named.get("dilation", 1), 2))]
    return kernel, named, tuple(each + case.integer(0, 2) for each in spans)


def column_places(size, kernel, dilation=1, padding=0, stride=1):
    """Yields (row of the matrix within a channel, column, place in the padded image)."""
    kernel, d, p, s = (numbers(each, 2) for each in (kernel, dilation, padding, stride))
    counts = [(n + 2 * b - a * (k - 1) - 1) // c + 1 for n, k, a, b, c in zip(size, kernel, d, p, s)]
    for row, j in enumerate(itertools.product(*map(range, kernel))):
        for column, at in enumerate(itertools.product(*map(range, counts))):
            yield row, column, tuple(i * c + k * a for i, c, k, a in zip(at, s, j, d))


def unfolds(case):
    kernel, named, size = columns(case)
    return Call(case.tensor((*leading(case), *size)), kernel, **named)


def unfolded(x, kernel, padding=0, **named):
    size, p = x.shape[-2:], numbers(padding, 2)
    places = list(column_places(size, kernel, padding=padding, **named))
    rows, count = 1 + max(row for row, _, _ in places), 1 + max(column for _, column, _ in places)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(each, each) for each in p])
    out = np.zeros((*x.shape[:-2], rows, count), x.dtype)
    for row, column, place in places:
        out[..., row, column] = padded[(..., *place)]
    return out.reshape(*x.shape[:-3], -1, count)


def folds(case):
    kernel, named, size = columns(case)
    places = list(column_places(size, kernel, **named))
    rows, count = 1 + max(row for row, _, _ in places), 1 + max(column for _, column, _ in places)
    lead = leading(case)
    return Call(case.tensor((*lead[:-1], lead[-1] * rows, count), special=TAME, smooth=True), size, kernel, **named)


def folded(x, size, kernel, padding=0, **named):
    p = numbers(padding, 2)
    parts = x.reshape(*x.shape[:-2], -1, math.prod(numbers(kernel, 2)), x.shape[-1])
    out = np.zeros((*parts.shape[:-2], *(n + 2 * each for n, each in zip(size, p))))
    for row, column, place in column_places(size, kernel, padding=padding, **named):
        out[(..., *place)] += parts[..., row, column]
    return out[..., p[0]:p[0] + size[0], p[1]:p[1] + size[1]]


def window_rows():
    terms = {"ulps": 64, "scale": lambda *args, **named: 40, "differs": HALVES}
    return [
        *(Sample(f"conv_transpose{axes}d", transposed(axes), transposed_convolution, **terms) for axes in (1, 3)),
        *(Sample(f"conv{axes}d", named_paddings(axes), named_padding, variant="named padding", **terms)
          for axes in (1, 2, 3)),
        Sample("unfold", unfolds, unfolded, functional(lambda library, *args, **named: library.unfold(*args, **named)),
               ulps=0, variant="columns", accepts=("i64", "i32", "i16", "i8", "u8", "bool"), differs=HALVES),
        Sample("fold", folds, folded, accepts=("i64", "i32", "i16", "i8", "u8"), **terms)]


ROWS = [*(row for axes in (1, 2, 3) for row in pooling_rows(axes)), *window_rows()]
