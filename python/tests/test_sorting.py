"""Order, distinct elements, places and random choices, compared with NumPy's."""
import plugrad
import pytest
from plugrad import Tensor

numpy = pytest.importorskip("numpy")
DTYPES = ["f4", "f8", "f2", "i8", "i4", "i2", "i1", "u1", "bool"]
NAN, INF = float("nan"), float("inf")


def arrays(count, seed, empty=True):
    """Yields (array, axis) for random shapes and dtypes. Some arrays are not contiguous. The arrays have ties, and floating
    arrays have NaN, infinities and -0."""
    random = numpy.random.default_rng(seed)
    for i in range(count):
        shape = tuple(int(n) for n in random.integers(0 if empty else 1, 8, random.integers(1, 4)))
        dtype = DTYPES[i % len(DTYPES)]
        array = random.integers(0, 6, shape).astype(dtype)
        if dtype[0] == "f":
            special = random.choice([NAN, INF, -INF, -0.0], shape)
            array = numpy.where(random.random(shape) < 0.2, special, array).astype(dtype)
        arranged = array.T if i % 3 == 1 else array[..., ::-1] if i % 3 == 2 else array
        yield arranged, int(random.integers(-len(shape), len(shape)))


def tensor(array):
    """Returns a tensor with the array's elements. Its memory is in column-major order, so it is not contiguous from rank 2
    on."""
    base = Tensor(numpy.ascontiguousarray(array.T))
    assert base.shape == array.T.shape
    return base.permute(*reversed(range(array.ndim))) if array.ndim > 1 else base


def same(ours, theirs):
    theirs = numpy.asarray(theirs)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    numpy.testing.assert_array_equal(ours.detach().numpy(), theirs)


def test_sort_is_numpys_stable_sort():
    for array, axis in arrays(360, 1):
        x = tensor(array)
        values, indices = x.sort(axis)
        order = numpy.argsort(array, axis=axis, kind="stable")
        same(indices, order)
        same(values, numpy.sort(array, axis=axis))
        same(x.argsort(axis=axis, stable=True), order)
        same(plugrad.sort(x, axis=axis), values.numpy())


def test_descending_order_is_stable_too():
    for array, axis in arrays(180, 2):
        backwards = numpy.flip(array, axis)
        order = array.shape[axis] - 1 - numpy.flip(numpy.argsort(backwards, axis=axis, kind="stable"), axis)
        same(tensor(array).sort(dim=axis, descending=True, stable=True).indices, order)


def test_largest_and_smallest_of_a_line():
    for array, axis in arrays(180, 3, empty=False):
        x = tensor(array)
        pair = x.max(axis)
        same(pair.values, array.max(axis))
        same(pair.indices, array.argmax(axis))
        same(x.min(dim=axis, keepdim=True).values, array.min(axis, keepdims=True))
        same(x.min(dim=axis).indices, array.argmin(axis))
        same(x.max(axis=axis, keepdims=True), array.max(axis, keepdims=True))
        same(plugrad.amax(x, axis), array.max(axis))
        low, high = plugrad.aminmax(x)
        same(low, array.min())
        same(high, array.max())


def test_chosen_elements_stand_at_their_indices():
    for array, axis in arrays(180, 4, empty=False):
        x, n = tensor(array), array.shape[axis]
        ordered = numpy.sort(array, axis=axis)
        k = 1 + n // 2
        for pair, expected in ((x.kthvalue(k, axis, keepdim=True), numpy.take(ordered, [k - 1], axis)),
                               (x.topk(k, axis, largest=False), numpy.take(ordered, range(k), axis)),
                               (x.topk(k, axis), numpy.take(ordered, range(n - 1, n - 1 - k, -1), axis)),
                               (x.nanmedian(axis, True), None), (x.mode(axis, True), None), (x.cummax(axis), None)):
            same(pair.values, numpy.take_along_axis(array, pair.indices.numpy(), axis))
            if expected is not None:
                same(pair.values, expected)


def test_running_extremes():
    for array, axis in arrays(180, 5):
        x = tensor(array)
        if array.dtype != bool:
            same(x.cummax(axis).values, numpy.maximum.accumulate(array, axis))
            same(plugrad.cummin(x, axis=axis), numpy.minimum.accumulate(array, axis))
            with numpy.errstate(invalid="ignore"):
                same(x.diff(dim=axis), numpy.diff(array, axis=axis))


def test_medians_and_quantiles():
    for array, axis in arrays(180, 6, empty=False):
        if array.dtype not in ("f4", "f8"):
            continue
        x, n = tensor(array), array.shape[axis]
        lower = numpy.take(numpy.sort(array, axis=axis), (n - 1) // 2, axis)
        same(x.median(dim=axis).values, numpy.where(numpy.isnan(array).any(axis), NAN, lower))
        same(x.median(axis=axis), x.median(axis).values.numpy())
        finite = numpy.where(numpy.isinf(array), 3, array)
        for q in (0, 0.25, 0.5, 1.0, [0.25, 0.75]):
            expected = numpy.quantile(finite.astype("f8"), q, axis=axis)
            numpy.testing.assert_allclose(tensor(finite).quantile(q, axis=axis).numpy(), expected, rtol=1e-6)


def test_distinct_elements():
    for array, _ in arrays(180, 7):
        x = tensor(array)
        values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
        theirs = numpy.unique(array, return_inverse=True, return_counts=True, equal_nan=False)
        same(values, theirs[0])
        same(values[inverse], array)
        numbers = array == array  # NumPy does not define the order of several NaN
        numpy.testing.assert_array_equal(inverse.numpy()[numbers], theirs[1].reshape(array.shape)[numbers])
        same(counts, theirs[2])
        assert isinstance(x.unique(), Tensor) and len(x.unique(return_counts=True)) == 2
        same(plugrad.isin(x, tensor(array.reshape(-1)[:3])), numpy.isin(array, array.reshape(-1)[:3]))


def test_distinct_slices():
    for array, axis in arrays(90, 8, empty=False):
        if numpy.issubdtype(array.dtype, numpy.floating):
            array = numpy.where(numpy.isfinite(array), array, 1)
        values, inverse, counts = plugrad.unique(tensor(array), return_inverse=True, return_counts=True, axis=axis)
        theirs = numpy.unique(array, return_inverse=True, return_counts=True, axis=axis)
        same(values, theirs[0])
        same(inverse, theirs[1].reshape(-1))
        same(counts, theirs[2])


def test_places_in_sorted_sequences():
    random = numpy.random.default_rng(9)
    for i in range(100):
        sequence = numpy.sort(random.integers(0, 9, i % 20)).astype("f4")
        values = random.integers(-1, 10, (3, 4)).astype("f4") / random.integers(1, 3)
        for side in ("left", "right"):
            expected = numpy.searchsorted(sequence, values, side=side)
            same(plugrad.searchsorted(tensor(sequence), tensor(values), side=side), expected)
            same(plugrad.bucketize(tensor(values), tensor(sequence), right=side == "right"), expected)
    assert plugrad.searchsorted(tensor(numpy.array([1, 2, 3])), 2, right=True).item() == 2
    with pytest.raises(ValueError, match="side"):
        plugrad.searchsorted(tensor(sequence), 1, side="middle")


def test_counts():
    random = numpy.random.default_rng(10)
    for n in (0, 1, 50):
        labels, weights = random.integers(0, 7, n), random.random(n)
        same(plugrad.bincount(tensor(labels), minlength=5), numpy.bincount(labels, minlength=5))
        sums = plugrad.bincount(tensor(labels), tensor(weights))
        numpy.testing.assert_allclose(sums.numpy(), numpy.bincount(labels, weights))
        same(plugrad.histc(tensor(weights), 7, 0.1, 0.8), numpy.histogram(weights, 7, (0.1, 0.8))[0])


def test_named_results():
    x = plugrad.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    pair = x.sort()
    assert pair.values.tolist() == [[1, 2, 3], [4, 5, 6]] and pair.indices.tolist() == [[1, 2, 0], [0, 2, 1]]
    values, indices = plugrad.topk(x, 2)
    assert values.tolist() == [[3, 2], [6, 5]] and pair._fields == ("values", "indices") and indices.dtype == "i64"
    assert isinstance(pair, plugrad.ValuesIndices) and plugrad.aminmax(x).max.item() == 6
    assert plugrad.aminmax(x, dim=0)._fields == ("min", "max")


def test_dim_gives_pairs_and_axis_gives_values():
    x = plugrad.tensor([[3.0, 1.0], [4.0, 6.0]], requires_grad=True)
    for pair in (x.max(1), x.max(dim=1), plugrad.max(x, 1), plugrad.max(x, dim=-1)):
        assert pair.values.tolist() == [3, 6] and pair.indices.tolist() == [0, 1]
    for values in (x.max(axis=1), plugrad.max(x, axis=(1,)), x.max(dim=(1,)), x.amax(1), numpy.max(x.detach(), axis=1)):
        assert values.tolist() == [3, 6]
    assert x.max().item() == x.max(axis=None).item() == x.max(dim=None).item() == 6
    assert x.min(0, True).values.tolist() == [[3, 1]] and x.min(0, keepdim=True).indices.tolist() == [[0, 0]]
    assert x.sort(axis=0).tolist() == [[3, 1], [4, 6]] and x.median(axis=1).tolist() == [1, 4]
    assert plugrad.max(x, x * 0 + 3).tolist() == x.max(plugrad.tensor(3.0)).tolist() == [[3, 3], [4, 6]]
    assert x.min(other=plugrad.zeros(2)).tolist() == [[0, 0], [0, 0]]
    x.max(0).values.sum().backward()
    assert x.grad.tolist() == [[0, 0], [1, 1]]
    with pytest.raises(TypeError):
        x.max(axis=0, dim=0)


def test_errors():
    x = plugrad.tensor([3.0, 1.0])
    for call in (lambda: x.topk(3), lambda: x.kthvalue(0), lambda: x.sort(1), lambda: x.quantile(2.0), lambda: x.max(3),
                 lambda: plugrad.randint(2, 2, (3,)), lambda: plugrad.multinomial(-x, 1), lambda: plugrad.bernoulli(x),
                 lambda: x.quantile(0.5, interpolation="cubic")):
        with pytest.raises(ValueError):
            call()


def test_random_functions():
    plugrad.manual_seed(1)
    first = [plugrad.randint(10, (20,)), plugrad.randint(-5, 5, (4, 5)), plugrad.randperm(20),
             plugrad.rand_like(plugrad.ones(3)), plugrad.bernoulli(plugrad.full((20,), 0.5)),
             plugrad.multinomial(plugrad.tensor([1.0, 2, 3]), 2),
             plugrad.normal(plugrad.zeros(3), 2.0), plugrad.exponential((4,), 2.0), plugrad.randint_like(plugrad.ones(9), 7)]
    plugrad.manual_seed(1)
    again = [plugrad.randint(0, 10, 20), plugrad.randint(-5, 5, (4, 5))]
    assert again[0].tolist() == first[0].tolist() and again[1].tolist() == first[1].tolist()
    assert first[0].dtype == "i64" and set(first[0].tolist()) <= set(range(10)) and first[1].shape == (4, 5)
    assert sorted(first[2].tolist()) == list(range(20)) and set(first[4].tolist()) == {0.0, 1.0}
    assert first[8].dtype == "f32" and plugrad.randint(3, (2,), dtype="u8").dtype == "u8"
    assert len(set(first[5].tolist())) == 2 and plugrad.normal(0.0, 1.0, (2, 3)).shape == (2, 3)
    assert plugrad.tensor([1.0, 0.0]).multinomial(5, replacement=True).tolist() == [0] * 5
    assert plugrad.rand_like(plugrad.tensor([1, 2]), dtype="f64").dtype == "f64"
    assert not plugrad.randn_like(Tensor([1.0])).requires_grad


def test_a_seed_gives_the_same_numbers_on_every_device():
    results = []
    for device in ("cpu", "reference"):
        plugrad.manual_seed(7)
        weights = plugrad.tensor([[1.0, 2, 3, 4]] * 50, device=device)
        results.append([plugrad.randint(0, 2**40, (30,), device=device).tolist(),
                        plugrad.randperm(100, device=device).tolist(),
                        weights.multinomial(3, replacement=True).tolist(), plugrad.bernoulli(weights / 4).tolist()])
    assert results[0] == results[1]
