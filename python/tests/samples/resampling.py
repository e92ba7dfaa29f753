"""Images of other sizes, and images sampled at given places."""
import itertools
import math

from .case import Call, np
from .networks import TAME
from .sample import Sample
from .spatial import HALVES, spatial

AXES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def resizes(mode):
    def draw(case):
        axes = AXES.get(mode) or case.integer(1, 3)
        named = {"mode": mode}
        if mode in AXES and case.chance():
            named["align_corners"] = case.chance()
        shape = (case.integer(1, 2), case.integer(1, 2), *spatial(case, axes))
        return Call(case.tensor(shape, special=TAME, smooth=True), tuple(case.integer(1, 6) for _ in range(axes)), **named)
    return draw


def cube(t, a=-0.75):
    t = abs(t)
    if t < 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a if t < 2 else 0.0


def taps(place, mode):
    """Returns (element, weight) for the elements around a place, which may be outside the elements."""
    low = math.floor(place)
    if mode == "bicubic":
        return [(low + j, cube(place - low - j)) for j in range(-1, 3)]
    return [(low, 1 - (place - low)), (low + 1, place - low)]


def resizing(n, m, mode, align_corners):
    """Returns the matrix (m, n) that resizes an axis."""
    out = np.zeros((m, n))
    for i in range(m):
        place = i * (n - 1) / max(m - 1, 1) if align_corners else (i + 0.5) * n / m - 0.5
        if mode == "area":
            start, end = i * n // m, -(-(i + 1) * n // m)
            out[i, start:end] = 1 / (end - start)
        elif mode.startswith("nearest"):
            out[i, (2 * i + 1) * n // (2 * m) if mode == "nearest-exact" else i * n // m] = 1
        else:
            for element, weight in taps(place if mode == "bicubic" else max(place, 0.0), mode):
                out[i, min(max(element, 0), n - 1)] += weight
    return out


def resized(x, size, mode, align_corners=False):
    for axis, m in enumerate(size, 2):
        x = np.moveaxis(np.tensordot(x, resizing(x.shape[axis], m, mode, align_corners), (axis, 1)), -1, axis)
    return x


def grids(mode):
    def draw(case):
        axes, batch = case.integer(2, 3), case.integer(1, 2)
        x = case.tensor((batch, case.integer(1, 2), *(case.integer(1, 3) for _ in range(axes))), special=TAME)
        grid = case.tensor((batch, *(case.integer(1, 2) for _ in range(axes)), axes), low=-2, high=2, special=False)
        named = {"mode": mode, "padding_mode": case.choice(["zeros", "border", "reflection"])}
        return Call(x, grid, **named, **({"align_corners": case.chance()} if case.chance() else {}))
    return draw


def mirrored(place, n, align_corners):
    low, span = (0, n - 1) if align_corners else (-0.5, n)
    if span == 0:
        return 0.0
    rest = abs(place - low) % (2 * span)
    return min(rest, 2 * span - rest) + low


def sampled_axis(coordinate, n, mode, padding_mode, align_corners):
    """Returns (element, weight) along one axis, without the elements outside it, which count as zeros."""
    def inside(place):
        if padding_mode == "zeros":
            return place
        return min(max(mirrored(place, n, align_corners) if padding_mode == "reflection" else place, 0), n - 1)
    place = (coordinate + 1) / 2 * (n - 1) if align_corners else ((coordinate + 1) * n - 1) / 2
    if mode == "bicubic":
        found = [(int(inside(element)), weight) for element, weight in taps(place, mode)]
    else:
        found = [(round(inside(place)), 1.0)] if mode == "nearest" else taps(inside(place), mode)
    return [(element, weight) for element, weight in found if 0 <= element < n]


def sampled(x, grid, mode, padding_mode, align_corners=False):
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in itertools.product(*map(range, (x.shape[0], *grid.shape[1:-1]))):
        along = [sampled_axis(c, n, mode, padding_mode, align_corners) for c, n in zip(grid[at][::-1], x.shape[2:])]
        for each in itertools.product(*along):
            place = tuple(element for element, _ in each)
            out[(at[0], slice(None), *at[1:])] += x[(at[0], slice(None), *place)] * math.prod(w for _, w in each)
    return out


def affine_grids(case):
    axes, batch = case.integer(2, 3), case.integer(1, 2)
    named = {"align_corners": case.chance()} if case.chance() else {}
    return Call(case.tensor((batch, axes, axes + 1), special=TAME, smooth=True),
                (batch, 1, *(case.integer(1, 3) for _ in range(axes))), **named)


def affine_places(theta, size, align_corners=False):
    def coordinates(n):
        at = np.arange(n)
        return 2 * at / max(n - 1, 1) - (n > 1) if align_corners else (2 * at + 1) / n - 1
    grid = np.meshgrid(*map(coordinates, size[2:]), indexing="ij")[::-1]
    places = np.stack([*grid, np.ones(size[2:])], axis=-1)
    return np.einsum("...j,nij->n...i", places, theta)


def rows():
    terms = {"ulps": 64, "scale": lambda *args, **named: 8, "differs": HALVES}
    modes = ("area", "linear", "bilinear", "trilinear", "bicubic")
    return [
        *(Sample("interpolate", resizes(mode), resized, ulps=0, variant=mode, differs=HALVES,
                 accepts=("i64", "i32", "i16", "i8", "u8", "bool")) for mode in ("nearest", "nearest-exact")),
        *(Sample("interpolate", resizes(mode), resized, variant=mode, **terms) for mode in modes),
        *(Sample("grid_sample", grids(mode), sampled, variant=mode, gradient=mode != "nearest", halves=64,
                 result="first", **terms) for mode in ("bilinear", "nearest", "bicubic")),
        Sample("affine_grid", affine_grids, affine_places, **terms)]


ROWS = rows()
