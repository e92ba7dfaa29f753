"""Further views, functions that join and split tensors, and factories."""
from .arrangement import expanded, number_dtype
from .case import ALL, FLOATS, Call, np
from .reductions import numpys, over_axes
from .sample import Sample, one


def of_rank(low, high=4):
    return lambda case: Call(case.tensor(case.shape(low=low, high=high)))


def several(low, high=3):
    def draw(case):
        shape = case.shape(low=low, high=high)
        return Call([case.tensor(shape) for _ in range(case.integer(1, 4))])
    return draw


def beside_another(case):
    shape = case.shape()
    return Call(case.tensor(case.beside(shape)), shape)


def another(case):
    shape = case.shape()
    return Call(case.tensor(case.beside(shape)), case.tensor(shape))


def same_count(case):
    shape = case.shape()
    return Call(case.tensor(shape), case.tensor((int(np.prod(shape)),)))


def flats(case):
    shape = case.shape(low=1)
    start = case.integer(0, len(shape) - 1)
    return Call(case.tensor(shape), start, case.integer(start, len(shape) - 1) - len(shape))


def flat(x, start, end):
    end %= x.ndim
    return x.reshape(x.shape[:start] + (int(np.prod(x.shape[start:end + 1])),) + x.shape[end + 1:])


def turned(case):
    shape = case.shape(low=2)
    axes = [int(axis) for axis in case.random.permutation(len(shape))[:2]]
    return Call(case.tensor(shape), case.integer(-3, 5), tuple(axes))


def sections(case):
    shape = case.shape(low=1)
    return Call(case.tensor(shape), case.integer(1, 4), case.axis(len(shape)))


def pieces(low, axis):
    def draw(case):
        shape = list(case.shape(low=low))
        count = case.integer(1, 3)
        shape[axis] = count * case.integer(0 if case.aim == "values" else 1, 2)
        return Call(case.tensor(shape), count)
    return draw


def channels(case):
    groups = case.choice([1, 2])
    return Call(case.tensor((case.extent(1), groups * case.integer(1, 2), *case.shape(low=1, high=2, least=1))), groups)


def shuffled(x, groups):
    shape = x.shape
    return x.reshape(shape[0], groups, -1, *shape[2:]).swapaxes(1, 2).reshape(shape)


def pixels(case):
    return Call(case.tensor((*case.shape(high=1, least=1), 4 * case.integer(1, 2), case.extent(1), case.extent(1))), 2)


def grown(x, f):
    *batch, c, h, w = x.shape
    parts = np.moveaxis(x.reshape(*batch, c // f**2, f, f, h, w), (-4, -3), (-3, -1))
    return parts.reshape(*batch, c // f**2, h * f, w * f)


def blocks(case):
    return Call(case.tensor((*case.shape(high=1, least=1), case.integer(1, 2), 2 * case.extent(1), 2 * case.extent(1))), 2)


def shrunk(x, f):
    *batch, c, h, w = x.shape
    parts = np.moveaxis(x.reshape(*batch, c, h // f, f, w // f, f), (-3, -1), (-4, -3))
    return parts.reshape(*batch, c * f**2, h // f, w // f)


def spaces(case):
    return Call(case.integer(-4, 4), case.integer(-4, 4), case.integer(0, 7), dtype=case.dtype)


def indices(of):
    def computed(row, col, offset):
        return np.stack(getattr(np, of)(row, offset, col))
    return computed


def matrices(case):
    return Call(case.integer(0, 4), case.integer(0, 4), case.integer(-3, 3))


def combined(tensors):
    return np.stack([each.reshape(-1) for each in np.meshgrid(*tensors, indexing="ij")], axis=-1)


def vectors(case):
    return Call([case.tensor((case.extent(),)) for _ in range(case.integer(2, 3))])


def view_rows():
    every = {"dtypes": ALL, "ulps": 0}
    joined = {**every, "promotes": True}
    return [
        Sample("amax", over_axes(least=1, special=True, ties=True), numpys("max"), **every),
        Sample("amin", over_axes(least=1, special=True, ties=True), numpys("min"), **every),
        *(Sample(f"atleast_{n}d", one(), f"atleast_{n}d", **every) for n in (1, 2, 3)),
        Sample("broadcast_to", beside_another, expanded, **every),
        Sample("expand_as", another, lambda x, other: np.broadcast_to(x, other.shape), None, result="first", **every),
        Sample("view_as", same_count, lambda x, other: x.reshape(other.shape), None, result="first", **every),
        Sample("reshape_as", same_count, lambda x, other: x.reshape(other.shape), None, result="first", **every),
        Sample("flatten", flats, flat, **every), Sample("ravel", one(), "ravel", **every),
        Sample("fliplr", of_rank(2), "fliplr", **every), Sample("flipud", of_rank(1), "flipud", **every),
        Sample("rot90", turned, "rot90", **every),
        *(Sample(f"{name}stack", several(0), f"{name}stack", **joined) for name in "hvd"),
        Sample("column_stack", several(0), "column_stack", **joined),
        Sample("tensor_split", sections, lambda x, count, dim: np.array_split(x, count, axis=dim), **every),
        *(Sample(f"{name}split", pieces(axis + 1, axis), f"{name}split", **every)
          for axis, name in ((1, "h"), (0, "v"), (2, "d")) if name != "v"),
        Sample("vsplit", pieces(2, 0), "vsplit", **every),
        Sample("channel_shuffle", channels, shuffled, **every),
        Sample("pixel_shuffle", pixels, grown, **every), Sample("pixel_unshuffle", blocks, shrunk, **every),
        Sample("cartesian_prod", vectors, combined, None, **joined)]


def factory_rows():
    made = {"torch": None, "gradient": False}
    return [
        Sample("linspace", spaces,
               lambda start, end, steps, dtype: np.linspace(start, end, steps, dtype=number_dtype(dtype)),
               dtypes=FLOATS, accepts=ALL, result="named", ulps=4,
               scale=lambda *args, **named: 4, **made),
        Sample("tril_indices", matrices, indices("tril_indices"), dtypes=("i64",), result="i64", accepts=ALL, **made),
        Sample("triu_indices", matrices, indices("triu_indices"), dtypes=("i64",), result="i64", accepts=ALL, **made)]


ROWS = [*view_rows(), *factory_rows()]
