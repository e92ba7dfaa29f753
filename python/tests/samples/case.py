"""Random arguments for ops.

An Operand is an array of NumPy; it can make a tensor with the same elements and the same layout. A Case draws operands, axes
and numbers from a seed. Floating operands are arrays of float64 that hold numbers of their dtype exactly, so NumPy's results
from them are more exact than the tensor's results.
"""
import zlib

try:
    import numpy as np
except ImportError:  # docs/generate_ops.py reads the rows without NumPy
    np = None

FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ("bool",)
NUMPY_NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16",
               "i8": "int8", "u8": "uint8", "bool": "bool"}
DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
LARGEST = {"f64": 1.7976931348623157e308, "f32": (2 - 2.0**-23) * 2.0**127, "f16": 65504.0, "bf16": (2 - 2.0**-7) * 2.0**127}
SMALLEST = {"f64": 2.0**-1074, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}
APART = 0.02  # for differences: the least distance between elements, and of elements from kinks


def epsilon(dtype):
    return 2.0 ** (1 - DIGITS[dtype])


def rounded(values, dtype):
    """Returns the nearest numbers of a floating dtype, as float64."""
    with np.errstate(all="ignore"):
        if dtype != "bf16":
            return np.asarray(values, NUMPY_NAMES[dtype]).astype("float64")
        bits = np.asarray(values, "float32").view("uint32").astype("uint64")
        even = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        result = even.astype("uint32").view("float32").astype("float64")
        return np.where(np.isnan(values), np.nan, result)


def promoted(dtypes):
    """Promotes dtypes as the array API does. An integer and a floating dtype give the floating dtype; f16 and bf16 give
    f32."""
    floating = sorted({each for each in dtypes if each in FLOATS}, key=FLOATS.index)
    if floating:
        return "f32" if floating == ["f16", "bf16"] else floating[0]
    numbers = [each for each in dtypes if each in INTEGERS]
    if not numbers:
        return "bool"
    result = np.result_type(*(NUMPY_NAMES[each] for each in numbers))
    return next(ours for ours, theirs in NUMPY_NAMES.items() if theirs == str(result))


class Operand:
    def __init__(self, base, dtype, views=()):
        self.base, self.dtype, self.views = base, dtype, views
        self.array = base
        for name, *how in views:
            self.array = VIEWS[name][0](self.array, *how)

    def leaf(self, plugrad, device):
        """Returns a dense tensor with the elements of base."""
        if self.dtype == "bf16":
            return plugrad.Tensor(self.base.astype("float32"), device=device).cast("bf16")
        return plugrad.Tensor(self.base.astype(NUMPY_NAMES[self.dtype]), device=device)

    def view(self, leaf):
        for name, *how in self.views:
            leaf = VIEWS[name][1](leaf, *how)
        return leaf

    def torch(self, torch, dtype=None):
        kind = {"bf16": "bfloat16", "bool": "bool"}.get(dtype or self.dtype) or NUMPY_NAMES[dtype or self.dtype]
        return torch.from_numpy(np.array(self.array, order="C")).to(getattr(torch, kind))

    def __repr__(self):
        layout = "".join(f".{name}{tuple(how)}" for name, *how in self.views)
        return f"{self.dtype}({np.array2string(self.base, threshold=200, separator=', ')}){layout}"


def _slice_key(rank, axis, step, start):
    return (slice(None),) * axis + (slice(start, None, step),) + (slice(None),) * (rank - axis - 1)


VIEWS = {  # (view of an array, view of a tensor)
    "permute": (lambda x, axes: x.transpose(axes), lambda x, axes: x.permute(axes)),
    "step": (lambda x, axis, step, start: x[_slice_key(x.ndim, axis, step, start)],
             lambda x, axis, step, start: x[_slice_key(x.ndim, axis, step, start)]),
    "expand": (lambda x, shape: np.broadcast_to(x, shape), lambda x, shape: x.expand(shape))}


class Case:
    """Draws the arguments of one call. aim: "values"; "gradient": f64, with distances between elements, and between elements
    and kinks; or "kinks": f64, with small whole numbers, so that many elements are equal."""

    def __init__(self, name, number, dtype, aim="values", seed=0):
        self.dtype, self.aim = dtype, aim
        self.random = np.random.default_rng([zlib.crc32(name.encode()), number, zlib.crc32(aim.encode()), seed])
        self.special = aim == "values" and self.random.random() < 0.3
        self.used = set()

    # --- Numbers and shapes.

    def integer(self, low, high):
        """Draws from low to high, including both."""
        return int(self.random.integers(low, high, endpoint=True))

    def choice(self, values):
        return values[self.integer(0, len(values) - 1)]

    def chance(self, probability=0.5):
        return bool(self.random.random() < probability)

    def extent(self, least=0):
        most = 5 if self.aim == "values" else 3
        if least == 0 and self.aim == "values" and self.chance(0.06):
            return 0
        return self.integer(max(least, 1), max(most, least))

    def shape(self, low=0, high=4, least=0):
        """Draws a shape. low and high limit the rank; least is the smallest extent."""
        most = high if self.aim == "values" else min(high, max(low, 3))
        return tuple(self.extent(least) for _ in range(self.integer(low, most)))

    def beside(self, shape):
        """Draws a shape that broadcasts to `shape`."""
        if self.chance(0.4):
            return shape
        return tuple(1 if self.chance(0.3) else extent for extent in shape[self.integer(0, len(shape)):])

    def axis(self, rank):
        return self.integer(-rank, rank - 1)

    def axes(self, rank, least=1):
        """Draws different axes, some of them negative."""
        chosen = self.random.permutation(rank)[:self.integer(min(least, rank), rank)]
        return tuple(int(axis) - (rank if self.chance(0.3) else 0) for axis in chosen)

    # --- Operands.

    def tensor(self, shape, dtype=None, low=None, high=None, special=True, kinks=(), repeats=True, smooth=False, shift=0.0):
        """Draws an operand. low and high limit the elements; for integers, high is excluded. repeats: some elements may
        share memory. smooth: the function has no kinks, so elements may be close to each other. shift, less than APART, is
        added to the elements for functions with a kink where elements of two operands are equal."""
        dtype = dtype or self.dtype
        base, views = self.layout(tuple(shape), repeats)
        if dtype in FLOATS:
            values = self.floats(base, dtype, low, high, special, kinks, smooth, shift)
        elif dtype == "bool":
            values = self.random.random(base) < 0.5
        else:
            values = self.integers(base, dtype, low, high, special)
        return Operand(values, dtype, views)

    def layout(self, shape, repeats):
        """Draws a shape in memory, and the views that make `shape` from it."""
        kind = "dense" if not shape or 0 in shape else self.choice(
            ["dense", "dense", "permuted", "stepped", "reversed", "expanded", "permuted and stepped"])
        base, views = shape, []
        if "stepped" in kind or kind == "reversed":
            axis, step = self.integer(0, len(shape) - 1), -1 if kind == "reversed" else self.choice([2, 3, -2])
            start = 0 if step > 0 else abs(step) * (shape[axis] - 1)
            base = shape[:axis] + (1 + abs(step) * (shape[axis] - 1),) + shape[axis + 1:]
            views = [("step", axis, step, start)]
        if "permuted" in kind:
            order = tuple(int(axis) for axis in self.random.permutation(len(shape)))
            views = [("permute", order), *views]
            base = tuple(base[order.index(axis)] for axis in range(len(shape)))
        if kind == "expanded" and repeats:
            axis = self.integer(0, len(shape) - 1)
            base, views = shape[:axis] + (1,) + shape[axis + 1:], [("expand", shape)]
        return base, views

    def floats(self, shape, dtype, low, high, special, kinks, smooth, shift):
        if self.aim == "gradient" and not smooth:
            return self.apart(shape, -2 if low is None else low, 2 if high is None else high, kinks) + shift
        limits = (-4 if low is None else low, 4 if high is None else high)
        if self.aim == "kinks" or self.chance(0.25):
            values = self.random.integers(int(np.ceil(limits[0])), int(np.floor(limits[1])), shape, endpoint=True)
        else:
            values = self.random.uniform(*limits, shape)
        values = rounded(values, dtype)
        if special and self.special:
            specials = self.random.choice(self.specials(dtype, special), shape)
            values = np.where(self.random.random(shape) < 0.3, specials, values)
        return values

    @staticmethod
    def specials(dtype, which):
        """Returns special numbers. which: True for all; "finite": without infinities and NaN; "sums": without numbers whose
        sums overflow; "tame": without both."""
        values = [0.0, -0.0, 1.0, -1.0, SMALLEST[dtype], -SMALLEST[dtype]]
        if which in (True, "sums"):
            values += [np.inf, -np.inf, np.nan]
        if which in (True, "finite"):
            values += [LARGEST[dtype], -LARGEST[dtype]]
        return np.array(values)

    def apart(self, shape, low, high, kinks):
        """Draws elements from a grid, each element at most once in this case."""
        grid = [k for k in range(int(np.ceil(low / APART)), int(np.floor(high / APART))) if k not in self.used
                and all(abs((k + 0.5) * APART - kink) >= APART for kink in kinks)]
        count = int(np.prod(shape))
        if count > len(grid):
            raise ValueError(f"{count} elements between {low} and {high} would be closer than {APART}: draw smaller shapes")
        chosen = self.random.choice(np.array(grid), count, replace=False)
        self.used.update(chosen.tolist())
        return ((chosen + 0.5) * APART).reshape(shape)

    def integers(self, shape, dtype, low, high, special):
        limits = np.iinfo(NUMPY_NAMES[dtype])
        least = max(limits.min, -9) if low is None else low
        values = self.random.integers(least, 10 if high is None else high, shape)
        if special and self.special and low is None and high is None:
            ends = self.random.choice(np.array([limits.min, limits.max, limits.max - 1, 0, 1]), shape)
            values = np.where(self.random.random(shape) < 0.3, ends, values)
        return values.astype(NUMPY_NAMES[dtype])


class Call:
    """Arguments, by position and by name."""

    def __init__(self, *args, **named):
        self.args, self.named = args, named

    def operands(self):
        found = []
        self.mapped(found.append)
        return found

    def mapped(self, function):
        """Returns the arguments with function(operand) in place of each operand, including operands in lists and tuples."""
        def mapped(given):
            if isinstance(given, Operand):
                return function(given)
            return type(given)(map(mapped, given)) if isinstance(given, (list, tuple)) else given
        return tuple(map(mapped, self.args)), {name: mapped(each) for name, each in self.named.items()}

    def __repr__(self):
        return ", ".join([*map(repr, self.args), *(f"{name}={each!r}" for name, each in self.named.items())])
