"""Elements chosen by indices and masks, writes to them, and parts of tensors."""
from .arrangement import gathers, shaped
from .case import ALL, NUMBERS, Call, Operand, np
from .peers import counted_from_start, peer_where_unique
from .sample import Sample


def positions(case, shape, extent):
    """Draws an index; some indices are negative."""
    shape = (0, *shape[1:]) if extent == 0 and shape else shape
    return case.tensor(shape, dtype="i64", low=-extent if case.chance(0.3) else 0, high=max(extent, 1))


def masked(case):
    shape = case.shape()
    return Call(case.tensor(case.beside(shape)), case.tensor(shape, dtype="bool"))


def masked_writes(case):
    call = masked(case)
    count = int(np.prod(np.broadcast_shapes(*(each.array.shape for each in call.operands()))))
    return Call(*call.args, case.tensor((count + case.integer(0, 2),)))


def masked_scattered(x, mask, source):
    x, mask = np.broadcast_arrays(x, mask)
    out = x.copy()
    out[mask] = source[:mask.sum()]
    return out


def taken(case):
    x = shaped(case, least=1)
    if case.chance(0.5) or not x.array.ndim:
        return Call(x, positions(case, case.shape(high=2, least=1), x.array.size))
    axis = case.axis(x.array.ndim)
    return Call(x, positions(case, case.shape(high=2, least=1), x.array.shape[axis]), axis)


def taken_along(case):
    shape = case.shape(low=1, least=1)
    axis = case.axis(len(shape))
    x, index = list(shape), list(shape)
    for i in range(len(shape)):
        if i != axis % len(shape) and case.chance(0.3):
            case.choice([x, index])[i] = 1
    index[axis] = case.integer(1, 4)
    return Call(case.tensor(tuple(x)), positions(case, tuple(index), shape[axis]), axis)


def along_axis(x, index, dim):
    shape = list(np.broadcast_shapes(*(tuple(1 if i == dim % x.ndim else n for i, n in enumerate(each.shape))
                                       for each in (x, index))))
    shape[dim] = x.shape[dim]
    return np.take_along_axis(np.broadcast_to(x, shape), index, dim)


def permuted(case, count, extent, wraps=True):
    """Draws different positions below extent. With `wraps` some of them are negative."""
    values = case.random.permutation(extent)[:count]
    return Operand(values - extent * (wraps & (case.random.random(len(values)) < 0.3)), "i64")


def puts(case):
    x = shaped(case, least=1)
    count = case.integer(1, max(x.array.size, 1))
    return Call(x, permuted(case, count, x.array.size), case.tensor((min(count, x.array.size),)))


def put(x, index, source):
    out = x.flatten()
    out[index] = source
    return out.reshape(x.shape)


def along(x, dim, index):
    return (slice(None),) * (dim % x.ndim) + (index,)


def lists(unique=False, source=True, wraps=False):
    def draw(case):
        x = shaped(case, low=1, least=1)
        axis = case.axis(x.array.ndim)
        extent = x.array.shape[axis]
        count = case.integer(1, extent) if unique else case.integer(1, 5)
        if unique:
            index = permuted(case, count, extent, wraps)
        else:
            index = positions(case, (count,), extent) if wraps else case.tensor((count,), dtype="i64", low=0, high=extent)
        shape = tuple(count if i == axis % x.array.ndim else n for i, n in enumerate(x.array.shape))
        return Call(x, axis, index, case.tensor(shape)) if source else Call(x, axis, index)
    return draw


def fills(case):
    call = lists(source=False, wraps=True)(case)
    return Call(*call.args, case.integer(0, 1))


def added(x, dim, index, source):
    out = x.copy()
    np.add.at(out, along(x, dim, index), source)
    return out


def copied(x, dim, index, source):
    out = x.copy()
    out[along(x, dim, index)] = source
    return out


def writes(case):
    """Draws an operand, an axis, an index, and elements to write, possibly more elements than indices."""
    call = gathers(case)
    index = call.args[2].array
    return Call(*call.args, case.tensor(tuple(n + case.integer(0, 1) for n in index.shape)))


def places(x, dim, index):
    grid = list(np.indices(index.shape))
    grid[dim % x.ndim] = index
    return tuple(grid)


def scattered(x, dim, index, src):
    """Writes in the order of the axis, because the last element for each place remains."""
    out = x.copy()
    moved = [np.moveaxis(each, dim, 0) for each in (*places(x, dim, index), src[tuple(map(slice, index.shape))])]
    for row in range(moved[0].shape[0]):
        out[tuple(each[row] for each in moved[:-1])] = moved[-1][row]
    return out


JOIN = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def reductions(reduce):
    def draw(case):
        call = gathers(case)
        shape = call.args[2].array.shape
        limits = {"low": -2, "high": 2} if reduce in ("prod", "mean", "sum") else {}
        src = case.tensor(shape, special=not limits, **limits)
        x = case.tensor(call.args[0].array.shape, special=not limits, **limits)
        return Call(x, *call.args[1:], src, reduce, **({} if case.chance() else {"include_self": case.chance()}))
    return draw


def reduced(x, dim, index, src, reduce, include_self=True):
    at, counts = places(x, dim, index), np.zeros(x.shape, dtype="int64")
    np.add.at(counts, at, 1)
    identity = {"sum": 0, "mean": 0, "prod": 1}.get(reduce)
    if identity is None and src.dtype.kind == "f":
        identity = -np.inf if reduce == "amax" else np.inf
    elif identity is None:
        identity = (np.iinfo(x.dtype).min if reduce == "amax" else np.iinfo(x.dtype).max)
    out = x.copy() if include_self else np.where(counts > 0, np.asarray(identity, x.dtype), x)
    getattr(np, JOIN[reduce]).at(out, at, src)
    if reduce != "mean":
        return out
    counts = counts + 1 if include_self else np.maximum(counts, 1)
    return out / counts if x.dtype.kind == "f" else (out // counts).astype(x.dtype)


def slice_reductions(reduce):
    def draw(case):
        call = lists()(case)
        limits = {"low": -2, "high": 2} if reduce in ("prod", "mean") else {}
        x, src = (case.tensor(each.array.shape, special=not limits, **limits) for each in (call.args[0], call.args[3]))
        return Call(x, *call.args[1:3], src, reduce, **({} if case.chance() else {"include_self": case.chance()}))
    return draw


def slices_reduced(x, dim, index, src, reduce, include_self=True):
    line = np.reshape(index, [-1 if axis == dim % x.ndim else 1 for axis in range(x.ndim)])
    return reduced(x, dim, np.broadcast_to(line, src.shape), src, reduce, include_self)


def narrows(case):
    x = shaped(case, low=1)
    axis = case.axis(x.array.ndim)
    extent = x.array.shape[axis]
    start = case.integer(0, extent)
    length = case.integer(0, extent - start)
    return Call(x, axis, start - extent if start < extent and case.chance(0.3) else start, length)


def narrowed(x, dim, start, length):
    start %= x.shape[dim] or 1
    return np.moveaxis(np.moveaxis(x, dim, 0)[start:start + length], 0, dim)


def unbinds(case):
    x = shaped(case, low=1, least=1)
    return Call(x) if case.chance(0.2) else Call(x, case.axis(x.array.ndim))


def two_axes(case, rank):
    one, other = case.random.permutation(rank)[:2]
    return int(one) - (rank if case.chance(0.3) else 0), int(other) - (rank if case.chance(0.3) else 0)


def diagonals(case):
    x = shaped(case, low=2)
    return Call(x) if case.chance(0.2) else Call(x, case.integer(-3, 3), *two_axes(case, x.array.ndim))


def embeds(case):
    x = shaped(case, low=1, high=3, least=1)
    return Call(x) if case.chance(0.2) else Call(x, case.integer(-2, 2), *two_axes(case, x.array.ndim + 1))


def embedded(x, offset=0, dim1=-2, dim2=-1):
    extent = x.shape[-1] + abs(offset)
    out = np.zeros((*x.shape[:-1], extent, extent), x.dtype)
    row = np.arange(x.shape[-1])
    out[..., row + max(-offset, 0), row + max(offset, 0)] = x
    return np.moveaxis(out, (-2, -1), (dim1, dim2))


def diagonal_writes(case):
    call = diagonals(case)
    return Call(call.args[0], case.tensor(np.diagonal(*(getattr(each, "array", each) for each in call.args)).shape),
                *call.args[1:])


def with_diagonal(x, src, offset=0, dim1=0, dim2=1):
    out = x.copy()
    moved = np.moveaxis(out, (dim1, dim2), (-2, -1))
    row = np.arange(src.shape[-1])
    moved[..., row + max(-offset, 0), row + max(offset, 0)] = src
    return out


def select_writes(case):
    x = shaped(case, low=1, least=1)
    axis = case.axis(x.array.ndim)
    at = case.axis(x.array.shape[axis])
    return Call(x, case.tensor(np.take(x.array, at, axis).shape), axis, at)


def with_element(x, src, dim, index):
    out = x.copy()
    np.moveaxis(out, dim, 0)[index] = src
    return out


def slice_writes(case):
    x = shaped(case, low=1, least=1)
    axis = case.axis(x.array.ndim)
    ends = [case.choice([None, case.integer(-6, 6)]) for _ in range(2)]
    step = case.choice([1, 1, 2, 3])
    part = np.moveaxis(np.moveaxis(x.array, axis, 0)[slice(*ends, step)], 0, axis)
    return Call(x, case.tensor(part.shape), axis, *ends, step)


def with_slice(x, src, dim, start, end, step):
    out = x.copy()
    np.moveaxis(out, dim, 0)[slice(start, end, step)] = np.moveaxis(src, dim, 0)
    return out


def matrices(case):
    x = shaped(case, low=1, high=2)
    return Call(x, case.integer(-3, 3)) if case.chance(0.7) else Call(x)


def mask_rows():
    truth = {"dtypes": ALL, "ulps": 0, "result": "i64", "gradient": False}
    first = {"dtypes": ALL, "ulps": 0, "result": "first"}
    return [
        Sample("nonzero", lambda case: Call(case.tensor(case.shape(low=1))), "argwhere", **truth),
        Sample("argwhere", lambda case: Call(case.tensor(case.shape())), "argwhere", **truth),
        Sample("where", lambda case: Call(case.tensor(case.shape(low=1))), "nonzero", **truth, variant="positions"),
        Sample("masked_select", masked, lambda x, mask: np.broadcast_to(x, mask.shape)[mask], **first),
        Sample("masked_scatter", masked_writes, masked_scattered,
               lambda x, mask, source: x.expand(mask.shape).masked_scatter(mask, source), **first)]


def list_rows():
    first = {"dtypes": ALL, "ulps": 0, "result": "first"}
    sums = {"dtypes": NUMBERS, "ulps": 16, "result": "first", "scale": "whole"}
    return [
        Sample("take", taken, lambda x, index, dim=None: np.take(x, index, dim), None, **first),  # PyTorch has no axis here
        Sample("take_along_dim", taken_along, along_axis, counted_from_start("take_along_dim", 1, 2), **first),
        Sample("take_along_axis", taken_along, along_axis, counted_from_start("take_along_dim", 1, 2), **first),
        Sample("put", puts, put, **first),
        Sample("put_along_axis", writes_along, scattered_along, None, **first),  # PyTorch has no such function
        Sample("index_select", lists(source=False), lambda x, dim, index: np.take(x, index, dim),
               counted_from_start("index_select", 2, 1), **first),
        Sample("index_add", lists(), added, counted_from_start("index_add", 2, 1), **sums),
        Sample("index_copy", lists(unique=True), copied, counted_from_start("index_copy", 2, 1), **first),
        Sample("index_fill", fills, copied, counted_from_start("index_fill", 2, 1), **first)]


def writes_along(case):
    call = gathers(case)
    x, dim, index = call.args
    shape = tuple(n if i == dim % x.array.ndim else x.array.shape[i] for i, n in enumerate(index.array.shape))
    index = positions(case, shape, x.array.shape[dim])
    return Call(x, index, case.tensor(case.beside(shape)), dim)


def scattered_along(x, index, values, dim):
    return scattered(x, dim, index, np.broadcast_to(values, index.shape))


def scatter_rows():
    return [
        Sample("scatter", writes, scattered, peer_where_unique("scatter"), dtypes=ALL, ulps=0, result="first",
               ties="only the last of several elements for one place has a gradient"),
        *(Sample("scatter_reduce", reductions(reduce), reduced, counted_from_start("scatter_reduce", 2, 1), dtypes=NUMBERS,
                 ulps=0 if reduce in ("amax", "amin") else 32, halves=None, result="first", scale="whole", variant=reduce)
          for reduce in JOIN),
        *(Sample("index_reduce", slice_reductions(reduce), slices_reduced, counted_from_start("index_reduce", 2, 1),
                 dtypes=NUMBERS, ulps=0 if reduce in ("amax", "amin") else 32, result="first", scale="whole", variant=reduce,
                 differs=("f16", "bf16"))  # PyTorch 2.15 fails in an assertion for slices of one element
          for reduce in JOIN if reduce != "sum")]


def part_rows():
    first = {"dtypes": ALL, "ulps": 0, "result": "first"}
    return [
        Sample("narrow", narrows, narrowed, **first),
        Sample("unbind", unbinds, lambda x, dim=0: list(np.moveaxis(x, dim, 0)), **first),
        Sample("diagonal", diagonals, "diagonal", **first), Sample("diag", matrices, "diag", **first),
        Sample("diag_embed", embeds, embedded, **first),
        Sample("diagonal_scatter", diagonal_writes, with_diagonal, **first),
        Sample("select_scatter", select_writes, with_element, **first),
        Sample("slice_scatter", slice_writes, with_slice, **first)]


ROWS = [*mask_rows(), *list_rows(), *scatter_rows(), *part_rows()]
