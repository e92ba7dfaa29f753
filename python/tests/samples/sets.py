"""Distinct elements, and places in sorted sequences."""
from .case import ALL, FLOATS, NUMBERS, Call, Operand, np
from .sample import Sample

# --- Distinct elements.


def repeated(case):
    """Draws a tensor in which many elements are equal; for gradients no elements are equal."""
    shape = case.shape(high=3)
    if not shape or 0 in shape or case.chance():
        x, named = case.tensor(shape, low=0, high=3, repeats=False), {}
    else:
        few = {"high": 2} if case.aim == "values" else {"high": 3}
        x, named = case.tensor(shape, special=False, low=0, repeats=False, **few), {"dim": case.axis(len(shape))}
    if case.dtype in FLOATS and case.aim != "gradient":
        x = Operand(np.rint(x.base) + 0.0, x.dtype, x.views)
    return Call(x, **named)


def distinct(x, dim=None):
    values, inverse, counts = np.unique(x, axis=dim, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(x.shape if dim is None else -1), counts


def neighbours(x, dim=None):
    lines = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    begins = np.ones(len(lines), bool)
    begins[1:] = np.any(lines[1:] != lines[:-1], axis=1)
    values = x.reshape(-1)[begins] if dim is None else np.compress(begins, x, axis=dim)
    inverse, counts = np.cumsum(begins) - 1, np.diff(np.append(np.flatnonzero(begins), len(lines)))
    return values, inverse.reshape(x.shape) if dim is None else inverse, counts


def with_all(name, index):
    """Returns a function for one of the three results."""
    return lambda library, *args, **named: getattr(library, name)(
        *args, return_inverse=True, return_counts=True, **named)[index]


def peer_with_all(name, index):
    def called(*args, **named):
        import torch
        return with_all(name, index)(torch, *args, **named)
    return called


def one_of(function, index):
    return lambda *args, **named: function(*args, **named)[index]


def distinct_rows():
    rows = []
    for name, function in (("unique", distinct), ("unique_consecutive", neighbours)):
        rows += [Sample(name, repeated, one_of(function, index), peer_with_all(name, index), dtypes=ALL, ulps=0,
                        result="i64" if index else "same", gradient=not index, call=with_all(name, index), variant=variant,
                        ties="PyTorch has no derivative") for index, variant in enumerate(("", "inverse", "counts"))]
    return rows


# --- Places.

def ordered(x):
    """Returns an operand like x, sorted along the last axis."""
    found = Operand(np.array(x.base), x.dtype, x.views)
    found.array[...] = np.sort(x.array, axis=-1)
    return found


def searches(special="finite", **more):
    def draw(case):
        batch = case.shape(high=2, least=1) if case.chance() else ()
        sequence = ordered(case.tensor((*batch, case.extent()), special=special, low=-3, high=4, repeats=False))
        shape = (*batch, case.extent()) if batch else case.shape()
        named = {name: value for name, value in (("right", True), ("side", "right")) if case.chance(0.3)}
        values = case.integer(0, 3) if not batch and case.chance(0.2) else case.tensor(shape, low=-3, high=4)
        return Call(sequence, values, **more, **named)
    return draw


def places(sequence, values, out_int32=False, right=False, side="left"):
    side = "right" if right else side
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side)
    lines = zip(*(each.reshape(int(np.prod(each.shape[:-1])), each.shape[-1]) for each in (sequence, values)), strict=True)
    return np.array([np.searchsorted(*pair, side) for pair in lines], "int64").reshape(values.shape)


def buckets(case):
    x = case.tensor(case.shape(), low=-3, high=4)
    boundaries = ordered(case.tensor((case.extent(),), special="finite", low=-3, high=4, repeats=False))
    return Call(x, boundaries, **({"right": True} if case.chance() else {}))


def place_rows():
    how = {"dtypes": NUMBERS, "accepts": ("bool",), "gradient": False}
    return [
        Sample("searchsorted", searches(), places, result="i64", **how),
        Sample("searchsorted", searches(out_int32=True), places, result="i32", variant="in i32", **how),
        # NumPy finds the place of NaN; PyTorch returns the end
        Sample("searchsorted", searches(special=True), places, None, result="i64", variant="with NaN", **how),
        Sample("bucketize", buckets, lambda x, boundaries, right=False: places(boundaries, x, right=right), result="i64",
               **how)]


ROWS = [*distinct_rows(), *place_rows()]
