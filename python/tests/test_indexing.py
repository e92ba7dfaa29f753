"""x[key] and x[key] = value for random keys, compared with NumPy and PyTorch."""
import random

import pytest

import plugrad

numpy = pytest.importorskip("numpy")
SEEDS = range(8)
KEYS = 100  # for each seed


class Keys:
    """Random keys, for plugrad and for NumPy."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def shape(self):
        return tuple(self.random.choice([0, 1, 2, 3, 3, 4]) for _ in range(self.random.randint(1, 4)))

    def whole(self, extent, wrong=0.02):
        if extent == 0 or self.random.random() < wrong:
            return self.random.choice([extent, -extent - 1])
        return self.random.randrange(-extent, extent)

    def slice(self, extent):
        def bound():
            return self.random.choice([None, self.random.randint(-extent - 2, extent + 2)])
        return slice(bound(), bound(), self.random.choice([None, 1, 1, 2, 3, -1, -2]))

    def indices(self, extent, common):
        shape = [self.random.choice([n, n, n, 1]) for n in common[self.random.randint(0, len(common)):]]
        count = int(numpy.prod(shape))
        return numpy.array([self.whole(extent) if extent else 0 for _ in range(count)], dtype="int64").reshape(shape)

    def mask(self, extents):
        if self.random.random() < 0.02:
            extents = [n + 1 for n in extents]
        count = int(numpy.prod(extents))
        return numpy.array([self.random.random() < 0.5 for _ in range(count)], dtype=bool).reshape(extents)

    def items(self, shape):
        """Returns a list of (item, number of axes that the item takes). Arrays are NumPy's."""
        items, axis = [], 0
        common = tuple(self.random.choice([0, 1, 2, 2, 3]) for _ in range(self.random.randint(0, 2)))
        while axis < len(shape) and self.random.random() < 0.9:
            kind, left = self.random.random(), len(shape) - axis
            taken = self.random.randint(1, left)
            if kind < 0.2:
                items.append((self.whole(shape[axis]), 1))
            elif kind < 0.5:
                items.append((self.slice(shape[axis]), 1))
            elif kind < 0.6:
                items.append((slice(None), 1))
            elif kind < 0.85:
                items.append((self.indices(shape[axis], common), 1))
            else:
                items.append((self.mask(shape[axis:axis + taken]), taken))
            axis += items[-1][1]
        for item, probability in ((None, 0.25), (None, 0.25), (Ellipsis, 0.25), (True, 0.04), (False, 0.04)):
            if self.random.random() < probability:
                items.insert(self.random.randint(0, len(items)), (item, 0))
        return items

    def spelled(self, item):
        """Returns an array as a list, an array, or a tensor."""
        if not isinstance(item, numpy.ndarray):
            return item
        form = self.random.choice(["list", "array", "tensor", "i32"])
        if form == "list" and item.ndim and (item.size or item.ndim == 1) and (item.dtype != bool or item.size):
            return item.tolist()
        if form == "i32" and item.dtype != bool:
            return item.astype("int32")
        return plugrad.tensor(item) if form == "tensor" else item

    def key(self, items):
        if len(items) == 1 and self.random.random() < 0.5:
            return self.spelled(items[0][0])
        return tuple(self.spelled(item) for item, _ in items)


def chosen(shape, items):
    """Returns the row-major positions that a key chooses. Whole numbers apply before arrays, as in PyTorch."""
    rest = len(shape) - sum(taken for _, taken in items)
    if rest < 0 or sum(item is Ellipsis for item, _ in items) > 1:
        raise IndexError
    basic, arrays = [], []
    for item, taken in items:
        if item is Ellipsis:
            basic += [slice(None)] * rest
            arrays += [slice(None)] * rest
        elif isinstance(item, bool):
            basic.append(None)
            arrays.append(numpy.zeros(int(item), dtype=int))
        elif isinstance(item, numpy.ndarray) and (item.ndim or item.dtype == bool):
            basic += [slice(None)] * taken
            arrays.append(item)
        elif item is None or isinstance(item, slice):
            basic.append(item)
            arrays.append(slice(None))
        else:
            basic.append(int(item))
    positions = numpy.arange(int(numpy.prod(shape))).reshape(shape)
    return positions[tuple(basic)][tuple(arrays)]


def cases(seed):
    """Yields (shape, key, positions or None, text to print) for random keys."""
    keys = Keys(seed)
    for number in range(KEYS):
        shape = keys.shape()
        items = keys.items(shape)
        try:
            positions = chosen(shape, items)
        except IndexError:
            positions = None
        yield keys, shape, keys.key(items), positions, f"seed {seed}, key {number}: {shape}[{items}]"


def numbers(keys, shape):
    return numpy.array([keys.random.randint(-9, 9) for _ in range(int(numpy.prod(shape)))], dtype="float32").reshape(shape)


@pytest.mark.parametrize("seed", SEEDS)
def test_reading_is_numpys(seed):
    for keys, shape, key, positions, text in cases(seed):
        data = numpy.arange(int(numpy.prod(shape)), dtype="float32").reshape(shape)
        x = plugrad.tensor(data, requires_grad=True)
        if positions is None:
            with pytest.raises(IndexError):
                print(text)
                x[key]
            continue
        out = x[key]
        assert out.shape == positions.shape and out.tolist() == positions.tolist(), text
        weights = numbers(keys, positions.shape)
        (out * plugrad.tensor(weights)).sum().backward()
        expected = numpy.zeros(data.size, dtype="float32")
        numpy.add.at(expected, positions.ravel(), weights.ravel())
        assert x.grad.tolist() == expected.reshape(shape).tolist(), text


def part_of(keys, shape):
    """Returns a shape that broadcasts to the given shape."""
    if keys.random.random() < 0.4:
        return shape
    return tuple(keys.random.choice([n, 1]) for n in shape[keys.random.randint(0, len(shape)):])


@pytest.mark.parametrize("seed", SEEDS)
def test_writing_is_numpys(seed):
    for keys, shape, key, positions, text in cases(100 + seed):
        data = numbers(keys, shape)
        x = plugrad.tensor(data)
        if positions is None:
            with pytest.raises(IndexError):
                print(text)
                x[key] = 1
            continue
        value = numbers(keys, part_of(keys, positions.shape))
        given = keys.random.choice([value, plugrad.tensor(value), value.tolist()]) if value.size else value
        expected = data.ravel().copy()
        expected[positions.ravel()] = numpy.broadcast_to(value, positions.shape).ravel()
        x[key] = given
        assert x.tolist() == expected.reshape(shape).tolist(), text
        added = data.ravel().copy()
        numpy.add.at(added, positions.ravel(), numpy.broadcast_to(value, positions.shape).ravel())
        assert plugrad.tensor(data).index_put(key, value, accumulate=True).tolist() == added.reshape(shape).tolist(), text


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_of_writing(seed):
    for keys, shape, key, positions, text in cases(200 + seed):
        if positions is None:
            continue
        weights, accumulate = numbers(keys, shape), keys.random.random() < 0.5
        x = plugrad.tensor(numbers(keys, shape), requires_grad=True)
        value = plugrad.tensor(numbers(keys, positions.shape), requires_grad=True)
        (x.index_put(key, value, accumulate) * plugrad.tensor(weights)).sum().backward()
        last = numpy.full(weights.size, -1)
        last[positions.ravel()] = numpy.arange(positions.size)
        counts = numpy.isin(numpy.arange(positions.size), last) | accumulate
        of_value = numpy.where(counts, weights.ravel()[positions.ravel()], 0)
        of_x = numpy.where((last < 0) | accumulate, weights.ravel(), 0)
        for leaf, expected in ((value, of_value.reshape(positions.shape)), (x, of_x.reshape(shape))):
            if leaf.grad is None:
                assert not expected.any(), text
            else:
                assert leaf.grad.tolist() == expected.tolist(), text


def of_torch(torch, item):
    return torch.tensor(item) if isinstance(item, numpy.ndarray) else item


@pytest.mark.parametrize("seed", SEEDS)
def test_reading_and_adding_are_torchs(seed):
    torch = pytest.importorskip("torch")
    for keys, shape, key, positions, text in cases(300 + seed):
        given = key if isinstance(key, tuple) else (key,)
        items = [item.numpy() if isinstance(item, plugrad.Tensor) else item for item in given]
        items = [numpy.array(item, dtype=None if item else int) if isinstance(item, list) else item for item in items]
        if positions is None or any(isinstance(item, slice) and (item.step or 1) < 0 for item in items):
            continue
        data = numbers(keys, shape)
        x, y = plugrad.tensor(data, requires_grad=True), torch.tensor(data, requires_grad=True)
        out, expected = x[key], y[tuple(of_torch(torch, item) for item in items)]
        assert out.shape == tuple(expected.shape) and out.tolist() == expected.tolist(), text
        ((out * out).sum()).backward()
        ((expected * expected).sum()).backward()
        assert x.grad.tolist() == y.grad.tolist(), text


def test_statements_that_change_chosen_elements():
    x = plugrad.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, -6.0]])
    x[x < 0] += 10
    assert x.tolist() == [[1, 8, 3], [6, 5, 4]]
    x[[0, 1], [2, 0]] *= 2
    assert x.tolist() == [[1, 8, 6], [12, 5, 4]]
    x[:, [True, False, True]] = 0
    assert x.tolist() == [[0, 8, 0], [0, 5, 0]]
    x[x == 0] = plugrad.arange(4) + 1
    assert x.tolist() == [[1, 8, 2], [3, 5, 4]]
    x[-1][::2] = -1
    assert x.tolist() == [[1, 8, 2], [-1, 5, -1]]
    whole = plugrad.arange(4)
    whole[[0, 2]] = plugrad.tensor([1.9, -1.9])
    assert whole.tolist() == [1, 1, -1, 3] and whole.dtype == "i64"
    x.index_put_(([0, 0], [1, 1]), plugrad.ones(2), accumulate=True)
    assert x.tolist() == [[1, 10, 2], [-1, 5, -1]]


def test_lists_ranges_and_arrays_of_other_dtypes_are_indices():
    x = plugrad.arange(5)
    assert x[range(1, 4)].tolist() == [1, 2, 3] and x[[]].shape == (0,) and x[numpy.zeros(0, dtype=int)].shape == (0,)
    assert x[numpy.array([4, 0], dtype="uint16")].tolist() == [4, 0] and x[numpy.int8(-1)].item() == 4
    assert x[numpy.array(2)].item() == 2 and x[[numpy.int64(1), 2]].tolist() == [1, 2]
    assert x[numpy.bool_(True)].shape == (1, 5) and x[False].shape == (0, 5)


def test_writing_while_recording():
    w = plugrad.tensor([1.0, 2.0], requires_grad=True)
    for key in (0, [0], w > 1):
        with pytest.raises(ValueError, match=r"^\[index_put_\].*recording"):
            w[key] = 3
    with pytest.raises(ValueError, match=r"^\[index_put\].*\(3,\).*\(2,\)"):
        with plugrad.no_grad():
            w[:] = [1, 2, 3]
    with plugrad.no_grad():
        w[[1]] = 3
    assert w.tolist() == [1, 3]
