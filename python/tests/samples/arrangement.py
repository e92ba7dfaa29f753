"""Views, functions that move elements, factories, masks and indexing."""
from . import peers
from .case import ALL, FLOATS, INTEGERS, NUMBERS, Call, np
from .sample import Sample


def shaped(case, shape=None, low=0, least=0, high=4):
    return case.tensor(case.shape(low=low, least=least, high=high) if shape is None else shape)


def extents_of(case, count):
    """Draws a shape with this number of elements; one extent may be -1."""
    if count == 0:
        return (0, case.integer(0, 3))
    shape, rest = [], count
    for divisor in (2, 3, 5):
        if rest % divisor == 0 and case.chance():
            shape.append(divisor)
            rest //= divisor
    shape.insert(case.integer(0, len(shape)), -1 if case.chance(0.3) else rest)
    return tuple(shape)


def reshapes(case):
    x = shaped(case)
    return Call(x, extents_of(case, x.array.size))


def permutations(case):
    x = shaped(case)
    rank = x.array.ndim
    return Call(x, tuple(int(axis) - (rank if case.chance(0.3) else 0) for axis in case.random.permutation(rank)))


def two_axes(case):
    x = shaped(case, low=2)
    return Call(x, case.axis(x.array.ndim), case.axis(x.array.ndim))


def slices(case):
    x = shaped(case, low=1)
    axis = case.axis(x.array.ndim)
    return Call(x, axis, case.integer(-7, 7), case.integer(-7, 7), case.choice([1, 1, 2, 3, -1, -2]))


def sliced(x, dim, start, end, step=1):
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def selects(case):
    x = shaped(case, low=1, least=1)
    axis = case.axis(x.array.ndim)
    return Call(x, axis, case.axis(x.array.shape[axis]))


def expansions(case):
    shape = case.shape()
    inner = tuple(1 if case.chance(0.4) else extent for extent in shape)
    inner = inner[case.integer(0, len(inner)):] if case.chance(0.4) else inner
    wanted = [-1 if i >= len(shape) - len(inner) and extent == inner[i - len(shape) + len(inner)] and case.chance(0.2)
              else extent for i, extent in enumerate(shape)]
    return Call(case.tensor(inner), tuple(wanted))


def expanded(x, shape):
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if extent == -1 else extent for i, extent in enumerate(shape)])


def squeezes(case):
    shape = tuple(1 if case.chance(0.5) else extent for extent in case.shape())
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    if not ones or case.chance(0.3):
        return Call(case.tensor(shape))
    some = ones[:case.integer(1, len(ones))]
    return Call(case.tensor(shape), tuple(axis - (len(shape) if case.chance(0.3) else 0) for axis in some))


def unsqueezes(case):
    x = shaped(case)
    return Call(x, case.integer(-x.array.ndim - 1, x.array.ndim))


def view_rows():
    every = {"dtypes": ALL, "ulps": 0}
    return [
        Sample("reshape", reshapes, "reshape", **every), Sample("permute", permutations, "transpose", **every),
        Sample("transpose", two_axes, "swapaxes", **every),
        Sample("slice", slices, sliced, None, **every),  # PyTorch has no negative steps
        Sample("select", selects, lambda x, dim, index: np.take(x, index, axis=dim), **every),
        Sample("expand", expansions, expanded, lambda x, shape: x.expand(shape), **every),
        Sample("squeeze", squeezes, lambda x, dim=None: np.squeeze(x, axis=dim), **every),
        Sample("unsqueeze", unsqueezes, "expand_dims", **every)]


# --- Joining and moving.

def joined(case):
    shape = case.shape(low=1)
    axis = case.axis(len(shape))
    parts = []
    for _ in range(case.integer(1, 5)):
        part = list(shape)
        part[axis] = case.extent()
        parts.append(case.tensor(part, dtype=case.choice(ALL) if case.aim == "values" and case.chance(0.1) else None))
    return Call(parts, axis)


def stacks(case):
    shape = case.shape(high=3)
    return Call([case.tensor(shape) for _ in range(case.integer(1, 5))], case.axis(len(shape) + 1))


def pads(case):
    x = shaped(case, low=1)
    amounts = []
    for extent in reversed(x.array.shape[case.integer(0, x.array.ndim - 1):]):
        before = case.integer(-min(2, extent), 2)
        amounts += [before, case.integer(max(-min(2, extent), -extent - before), 2)]
    value = {} if case.chance() else {"value": case.integer(0, 1 if case.dtype == "bool" else 5)}
    return Call(x, amounts, **value)


def padded(x, pad, value=0):
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)][::-1]
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    out = np.full([max(extent + before + after, 0) for extent, (before, after) in zip(x.shape, pairs)], value, x.dtype)
    source = tuple(slice(max(-before, 0), extent - max(-after, 0)) for extent, (before, after) in zip(x.shape, pairs))
    target = tuple(slice(max(before, 0), extent - max(after, 0)) for extent, (before, after) in zip(out.shape, pairs))
    out[target] = x[source]
    return out


def splits(case):
    x = shaped(case, low=1)
    axis = case.axis(x.array.ndim)
    if case.chance():
        return Call(x, case.integer(1, 4), axis)
    first = case.integer(0, x.array.shape[axis])
    return Call(x, [first, 0, x.array.shape[axis] - first], axis)


def split(x, size, dim=0):
    extent = x.shape[dim]
    sizes = size if isinstance(size, list) else [min(size, extent - at) for at in range(0, max(extent, 1), size)]
    ends = np.cumsum(sizes)
    return [sliced(x, dim, int(end - part), int(end)) for part, end in zip(sizes, ends)]


def chunks(case):
    x = shaped(case, low=1)
    return Call(x, case.integer(1, 4), case.axis(x.array.ndim))


def chunked(x, count, dim=0):
    extent = x.shape[dim]
    return [x] * count if extent == 0 else split(x, -(-extent // count), dim)


def flips(case):
    x = shaped(case)
    return Call(x, case.axes(x.array.ndim))


def rolls(case):
    x = shaped(case, low=1)
    if case.chance(0.3):
        return Call(x, case.integer(-9, 9))
    axes = case.axes(x.array.ndim)
    return Call(x, tuple(case.integer(-9, 9) for _ in axes), axes)


def repeats(case):
    x = shaped(case, high=3)
    return Call(x, tuple(case.integer(0 if case.aim == "values" and case.chance(0.1) else 1, 3)
                         for _ in range(x.array.ndim + case.integer(0, 1))))


def tiles(case):
    x = shaped(case, high=3)
    return Call(x, tuple(case.integer(1, 3) for _ in range(case.integer(1, 3))))


def interleaves(case):
    x = shaped(case, low=1, high=3)
    return Call(x, case.integer(0 if case.aim == "values" else 1, 3), case.axis(x.array.ndim))


def moves(case):
    x = shaped(case)
    source = case.axes(x.array.ndim)
    rank = max(x.array.ndim, 1)
    places = [int(axis) for axis in case.random.permutation(rank)[:len(source)]]
    return Call(x, source, tuple(places))


def unfolds(case):
    x = shaped(case, low=1, least=1, high=3)
    axis = case.axis(x.array.ndim)
    return Call(x, axis, case.integer(1, x.array.shape[axis]), case.integer(1, 3))


def unfolded(x, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    return sliced(windows, dim % x.ndim, None, None, step)


def moving_rows():
    every = {"dtypes": ALL, "ulps": 0}
    return [
        Sample("cat", joined, lambda parts, dim=0: np.concatenate(parts, axis=dim), promotes=True, **every),
        Sample("stack", stacks, lambda parts, dim=0: np.stack(parts, axis=dim), **every),
        Sample("pad", pads, padded, "pad", **every),
        Sample("split", splits, split, **every), Sample("chunk", chunks, chunked, **every),
        Sample("flip", flips, "flip", **every),
        Sample("roll", rolls, lambda x, shifts, dims=None: np.roll(x, shifts, dims), **every),
        Sample("repeat", repeats, "tile", lambda x, sizes: x.repeat(sizes), **every), Sample("tile", tiles, "tile", **every),
        Sample("repeat_interleave", interleaves, lambda x, count, dim: np.repeat(x, count, axis=dim), **every),
        Sample("movedim", moves, "moveaxis", **every),
        Sample("unfold", unfolds, unfolded, lambda x, dim, size, step: x.unfold(dim, size, step),
               call=lambda plugrad, x, dim, size, step: x.unfold(dim, size, step), **every)]


# --- Factories.

def made(case):
    return Call(case.shape(), case.integer(0, 1 if case.dtype == "bool" else 9), dtype=case.dtype)


def without_value(case):
    return Call(case.shape(), dtype=case.dtype)


def number_dtype(name):
    return {"bf16": "float64", "bool": "bool", "u8": "uint8"}.get(name) or ("float64" if name in FLOATS else
                                                                           name.replace("i", "int"))


def ranges(case):
    start, step = case.integer(0, 5), case.choice([1, 2, 3])
    end = start + case.integer(0, 15)
    if case.dtype in FLOATS and case.chance():
        return Call(start / 2, end / 2, step / 4, dtype=case.dtype)
    return Call(start, end, step, dtype=case.dtype) if case.chance() or case.dtype == "u8" else Call(
        end, start, -step, dtype=case.dtype)


def like(case):
    return Call(case.tensor(case.shape()))


def factory_rows():
    every = {"dtypes": ALL, "ulps": 0, "gradient": False, "result": "named", "torch": None}
    same = {"dtypes": ALL, "ulps": 0, "gradient": False}
    return [
        Sample("full", made, lambda shape, value, dtype: np.full(shape, value, number_dtype(dtype)), **every),
        Sample("zeros", without_value, lambda shape, dtype: np.zeros(shape, number_dtype(dtype)), **every),
        Sample("ones", without_value, lambda shape, dtype: np.ones(shape, number_dtype(dtype)), **every),
        Sample("scalar", lambda case: Call(case.integer(0, 1), dtype=case.dtype),
               lambda value, dtype: np.array(value, number_dtype(dtype)), **every),
        Sample("arange", ranges, lambda start, end, step, dtype: np.arange(start, end, step, number_dtype(dtype)),
               **(every | {"dtypes": NUMBERS})),
        Sample("eye", lambda case: Call(case.integer(0, 4), case.integer(-1, 4), dtype=case.dtype),
               lambda n, m, dtype: np.eye(n, None if m == -1 else m, dtype=number_dtype(dtype)), **every),
        Sample("zeros_like", like, "zeros_like", **same), Sample("ones_like", like, "ones_like", **same),
        Sample("full_like", lambda case: Call(*like(case).args, case.integer(0, 1)), "full_like", **same)]


# --- Masks and indices.

def filled(case):
    shape = case.shape()
    return Call(case.tensor(case.beside(shape)), case.tensor(shape, dtype="bool"), case.integer(0, 1))


def triangles(case):
    x = shaped(case, low=2)
    return Call(x) if case.chance(0.3) else Call(x, case.integer(-4, 4))


def classes(case):
    count = case.integer(1, 5)
    return Call(case.tensor(case.shape(high=3), low=0, high=count), count)


def gathers(case):
    """Draws an operand, an axis, and an index. The extents of the index are at most those of the operand."""
    shape = case.shape(low=1, least=1)
    axis = case.axis(len(shape))
    index = [case.integer(0 if case.aim == "values" and case.chance(0.1) else 1, extent) for extent in shape]
    index[axis] = case.extent()
    return Call(case.tensor(shape), axis, case.tensor(index, dtype="i64", low=0, high=shape[axis]))


def corner(x, index, dim):
    """Returns the part of x that an index of this shape selects from."""
    return x[tuple(slice(None) if axis == dim % x.ndim else slice(extent) for axis, extent in enumerate(index.shape))]


def gathered(x, dim, index):
    return np.take_along_axis(corner(x, index, dim), index, axis=dim)


def scatters(case):
    call = gathers(case)
    return Call(*call.args, case.tensor(call.args[2].array.shape))


def scattered(x, dim, index, source):
    out = x.copy()
    grid = list(np.indices(index.shape))
    grid[dim % x.ndim] = index
    np.add.at(out, tuple(grid), source)
    return out


def index_rows():
    every = {"dtypes": ALL, "ulps": 0}
    return [
        Sample("masked_fill", filled, lambda x, mask, value: np.where(mask, np.asarray(value, x.dtype), x),
               peers.masked_fill, result="first", **every),
        Sample("tril", triangles, "tril", **every), Sample("triu", triangles, "triu", **every),
        Sample("one_hot", classes, lambda x, count: np.eye(count, dtype="int64")[x.astype("int64")], None,
               dtypes=INTEGERS, ulps=0, result="i64", gradient=False),  # PyTorch takes i64 only
        Sample("gather", gathers, gathered, dtypes=ALL, ulps=0, result="first"),
        Sample("scatter_add", scatters, scattered, dtypes=NUMBERS, ulps=16,
               result="first", scale="whole")]


ROWS = [*view_rows(), *moving_rows(), *factory_rows(), *index_rows()]
