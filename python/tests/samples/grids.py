"""Grids, choices and powers of elements, blocks, and views by extents and strides."""
import itertools

from .arrangement import extents_of
from .case import ALL, FLOATS, Call, Operand, np
from .sample import Sample


def with_list(name):
    """Makes PyTorch's function of a list take several tensors."""
    def called(tensors, **named):
        import torch
        return getattr(torch, name)(*tensors, **named)
    return called


def axes_of_grid(case):
    tensors = [case.tensor((case.extent(),) if case.chance(0.8) else ()) for _ in range(case.integer(1, 3))]
    return Call(tensors, indexing=case.choice(["ij", "xy"]))


def grid(tensors, indexing="ij"):
    return list(np.meshgrid(*tensors, indexing=indexing))


def choices(case):
    named = {"with_replacement": True} if case.chance() else {}
    return Call(case.tensor((case.extent(),)), *([case.integer(1, 3)] if case.chance() else []), **named)


def chosen(x, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    return np.array(list(choose(x, r)), x.dtype).reshape(-1, r)


def powers(case):
    named = {"N": case.integer(0, 5)} if case.chance() else {}
    return Call(case.tensor((case.extent(),), special="tame"), **named, **({"increasing": True} if case.chance() else {}))


def blocks(case):
    def dtype():
        return case.choice(ALL) if case.aim == "values" and case.chance(0.2) else None
    return Call([case.tensor(case.shape(high=2), dtype=dtype()) for _ in range(case.integer(1, 3))])


def along_diagonal(tensors):
    matrices = [np.atleast_2d(each) for each in tensors]
    found = np.zeros(np.sum([each.shape for each in matrices], axis=0), matrices[0].dtype)
    row, column = 0, 0
    for each in matrices:
        found[row:row + each.shape[0], column:column + each.shape[1]] = each
        row, column = row + each.shape[0], column + each.shape[1]
    return found


def together(case):
    shape = case.shape()
    return Call([case.tensor(case.beside(shape)) for _ in range(case.integer(1, 3))])


def strided(case):
    """Draws a dense operand, and extents, strides and a first element within the operand."""
    x = case.tensor(case.shape(least=1), repeats=False)
    x = Operand(np.array(x.array), x.dtype)
    left, size, stride = x.array.size - 1, [], []
    for _ in range(case.integer(0, 3)):
        step, extent = case.integer(0, 3), case.extent()
        extent = min(extent, left // step + 1) if step else extent
        left -= step * max(extent - 1, 0)
        size.append(extent)
        stride.append(step)
    return Call(x, tuple(size), tuple(stride), *([case.integer(0, left)] if case.chance() else []))


def by_strides(x, size, stride, offset=0):
    places = np.full(size, offset)
    for extent, step, grid_of_axis in zip(size, stride, np.indices(size), strict=True):
        places += step * grid_of_axis
    return x.reshape(-1)[places]


def folded(case):
    shape = case.shape(low=1, least=1, high=3)
    axis = case.axis(len(shape))
    return Call(case.tensor(shape), axis, extents_of(case, shape[axis]))


def unfolded(x, dim, sizes):
    dim %= x.ndim
    rest = x.shape[dim] // abs(int(np.prod(sizes)))
    return x.reshape(*x.shape[:dim], *(rest if extent == -1 else extent for extent in sizes), *x.shape[dim + 1:])


def exponents(case):
    named = {"base": case.choice([2.0, 0.5])} if case.chance() else {}
    return Call(case.integer(-4, 4), case.integer(-4, 4), case.integer(0, 7), **named, dtype=case.dtype)


def logarithmic(start, end, steps, base=10.0, dtype=None):
    return np.logspace(start, end, steps, base=base)


def grid_rows():
    every = {"dtypes": ALL, "ulps": 0}
    return [
        Sample("meshgrid", axes_of_grid, grid, with_list("meshgrid"), **every),
        Sample("broadcast_tensors", together, lambda tensors: list(np.broadcast_arrays(*tensors)),
               with_list("broadcast_tensors"), **every),
        Sample("block_diag", blocks, along_diagonal, with_list("block_diag"), promotes=True, **every),
        Sample("combinations", choices, chosen, **every),
        Sample("vander", powers, "vander", dtypes=ALL, result="accumulated", ulps=16,
               ties="PyTorch has no derivative"),
        Sample("as_strided", strided, by_strides, **every),
        Sample("unflatten", folded, unfolded, **every),
        Sample("logspace", exponents, logarithmic, None, dtypes=FLOATS, result="named", ulps=64, gradient=False)]


ROWS = grid_rows()
