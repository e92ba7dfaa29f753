"""Tests of plugrad.array_api. tests/array_api/run.py runs the larger suite of the array API standard."""
import math

import plugrad
import plugrad.array_api as xp
import pytest
from plugrad import Tensor

numpy = pytest.importorskip("numpy")

GRID = [[0.5, -2.0, 3.0], [4.0, 1.0, -6.0]]


def grid(dtype="f32"):
    return xp.asarray(GRID, dtype=dtype)


def test_a_tensor_leads_to_the_namespace():
    x = grid()
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="use 2024.12"):
        x.__array_namespace__(api_version="1999.12")
    info = xp.__array_namespace_info__()
    assert info.default_device() in info.devices() and info.capabilities()["max dimensions"] == 8
    assert info.dtypes(kind="unsigned integer") == {"uint8": xp.uint8} and info.default_dtypes()["integral"] == xp.int64
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}


NUMBERS = [(True, "bool"), (3, "i64"), (2.5, "f32"), ([1, 2], "i64"), ([1, 2.5], "f32"), ([[True], [False]], "bool")]


@pytest.mark.parametrize("numbers, dtype", NUMBERS)
def test_asarray_infers_dtypes(numbers, dtype):
    made = xp.asarray(numbers)
    assert made.dtype == dtype and made.tolist() == numbers and not made.requires_grad


def test_asarray_shares_memory_unless_it_must_not():
    x, array = grid(), numpy.arange(3.0)
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert xp.asarray(array).data_ptr() == array.__array_interface__["data"][0]
    assert xp.asarray(array, copy=True).data_ptr() != array.__array_interface__["data"][0]
    assert xp.asarray(numpy.arange(3, dtype="uint16")).tolist() == [0, 1, 2]
    for refused in (lambda: xp.asarray([1], copy=False), lambda: xp.asarray(x, dtype="f64", copy=False)):
        with pytest.raises(ValueError, match="leave copy out"):
            refused()


def test_asarray_keeps_gradients():
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    xp.sum(xp.asarray(x, copy=True) * 3).backward()
    assert x.grad.tolist() == [3, 3]


def test_from_dlpack_copies_where_it_must():
    array = numpy.arange(4.0)
    assert plugrad.from_dlpack(array).data_ptr() == array.__array_interface__["data"][0]
    assert plugrad.from_dlpack(array, copy=True).data_ptr() != array.__array_interface__["data"][0]
    assert plugrad.from_dlpack(array, device="reference", copy=False).device == "reference"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_finfo_is_numpys(dtype):
    ours, theirs = xp.finfo(getattr(xp, dtype)), numpy.finfo(dtype)
    assert [ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal] == \
        [theirs.bits, theirs.eps, theirs.max, theirs.min, theirs.smallest_normal]
    assert ours.dtype == dtype and xp.finfo(xp.zeros((2,), dtype=dtype)) == ours and ours.tiny == ours.smallest_normal
    assert ours.resolution == theirs.resolution


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_iinfo_is_numpys(dtype):
    ours, theirs = xp.iinfo(dtype), numpy.iinfo(dtype)
    assert (ours.bits, ours.max, ours.min, ours.dtype) == (theirs.bits, theirs.max, theirs.min, dtype)


def test_kinds_of_dtypes():
    assert xp.finfo("bf16").max == pytest.approx(3.3895e38, rel=1e-4)
    with pytest.raises(TypeError, match="use iinfo"):
        xp.finfo(xp.int32)
    with pytest.raises(TypeError, match="use finfo"):
        xp.iinfo(xp.bool)
    assert xp.isdtype(xp.int8, "signed integer") and xp.isdtype(xp.uint8, ("bool", "integral"))
    assert xp.isdtype(xp.float16, "real floating") and not xp.isdtype(xp.bool, "numeric")
    assert xp.isdtype(xp.float32, xp.float32) and not xp.isdtype(xp.float32, "complex floating")


PROMOTED = [((xp.int8, xp.uint8), "i16"), ((xp.float32, xp.float64), "f64"), ((xp.int32, 1), "i32"),
            ((xp.bool, True), "bool"), ((xp.bool, 1), "i64"), ((xp.int16, 0.5), "f32"), ((xp.float16, 1, 0.5), "f16"),
            ((1, 2), "i64"), ((True, 0.5), "f32")]


@pytest.mark.parametrize("given, dtype", PROMOTED)
def test_result_type(given, dtype):
    assert xp.result_type(*given) == dtype
    tensors = [each if isinstance(each, (bool, int, float)) else xp.ones((2,), dtype=each) for each in given]
    assert xp.result_type(*tensors) == dtype


def test_casts():
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.float64, xp.float32) and xp.can_cast(grid(), "f64")
    x = grid()
    assert xp.astype(x, xp.float32, copy=False).is_same(x) and xp.astype(x, xp.float32).data_ptr() != x.data_ptr()
    assert xp.astype(x, xp.int32).tolist() == [[0, -2, 3], [4, 1, -6]]
    assert plugrad.promote_types("f16", "bf16") == "f32" and xp.int8.is_signed and not xp.uint8.is_signed


# Calls with the same meaning in NumPy. x is a tensor or an array.
SAME = [lambda f, x: f.sum(x, axis=()), lambda f, x: f.sum(x, axis=1), lambda f, x: f.sum(x, axis=(0, 1), keepdims=True),
        lambda f, x: f.sum(x, dtype=f.float64), lambda f, x: f.prod(x, axis=0, dtype=f.float64),
        lambda f, x: f.max(x, axis=0), lambda f, x: f.min(x), lambda f, x: f.mean(x, axis=-1, keepdims=True),
        lambda f, x: f.std(x), lambda f, x: f.var(x, axis=1), lambda f, x: f.any(x > 3, axis=()),
        lambda f, x: f.all(x > -7), lambda f, x: f.count_nonzero(x, axis=1),
        lambda f, x: f.cumulative_sum(x, axis=1, include_initial=True), lambda f, x: f.cumulative_prod(x, axis=0),
        lambda f, x: f.cumulative_sum(x[0]), lambda f, x: f.diff(x, axis=0), lambda f, x: f.diff(x, n=2),
        lambda f, x: f.diff(x, prepend=x, append=x), lambda f, x: f.diff(x > 0), lambda f, x: f.concat([x, x], axis=1),
        lambda f, x: f.concat([x, x], axis=None), lambda f, x: f.expand_dims(x, axis=1), lambda f, x: f.flip(x),
        lambda f, x: f.flip(x, axis=0), lambda f, x: f.moveaxis(x, 0, 1), lambda f, x: f.permute_dims(x, (1, 0)),
        lambda f, x: f.repeat(x, 2), lambda f, x: f.repeat(x, 2, axis=1),
        lambda f, x: f.repeat(x, f.asarray([2, 0, 1]), axis=-1), lambda f, x: f.repeat(x, f.asarray([3])),
        lambda f, x: f.reshape(x, (3, 2), copy=True), lambda f, x: f.roll(x, 2), lambda f, x: f.roll(x, (1, 1), axis=(0, 1)),
        lambda f, x: f.squeeze(x[:, :1], axis=1), lambda f, x: f.stack([x, x], axis=-1), lambda f, x: f.tile(x, (2, 1)),
        lambda f, x: f.unstack(x, axis=1)[2], lambda f, x: f.broadcast_to(x, (2, 2, 3)),
        lambda f, x: f.broadcast_arrays(x, x[:, :1])[1], lambda f, x: f.matrix_transpose(x), lambda f, x: x.mT,
        lambda f, x: f.eye(2, 3, k=1), lambda f, x: f.eye(3, k=-2), lambda f, x: f.tril(x, k=-1),
        lambda f, x: f.triu(x, k=1),
        lambda f, x: f.arange(5, step=2), lambda f, x: f.arange(1, 0, -0.25), lambda f, x: f.full(3, True),
        lambda f, x: f.full_like(x, 2, dtype=f.int32), lambda f, x: f.zeros_like(x, dtype=f.int8),
        lambda f, x: f.add(1, x), lambda f, x: f.maximum(0, x), lambda f, x: f.atan2(1, x), lambda f, x: f.copysign(x, -1.0),
        lambda f, x: f.hypot(3.0, x), lambda f, x: f.logaddexp(x, 0.5), lambda f, x: f.signbit(x),
        lambda f, x: f.positive(x), lambda f, x: f.equal(x, 3),
        lambda f, x: f.logical_and(True, x > 0), lambda f, x: f.clip(x, -1, 2), lambda f, x: f.clip(x, None, x[:1]),
        lambda f, x: f.bitwise_invert(f.astype(x, f.int32)), lambda f, x: f.vecdot(x, x, axis=0),
        lambda f, x: f.argmax(x, axis=0, keepdims=True), lambda f, x: f.where(x > 0, x, 0), lambda f, x: f.sort(x, axis=0),
        lambda f, x: f.argsort(x), lambda f, x: f.take(x, f.asarray([2, -3, 0]), axis=1),
        lambda f, x: f.take(x[0], f.asarray([1])), lambda f, x: f.take_along_axis(x, f.argsort(x, axis=0), axis=0),
        lambda f, x: f.take_along_axis(x, f.asarray([[-1]]), axis=1), lambda f, x: f.stack(f.nonzero(x > 0)),
        lambda f, x: f.searchsorted(f.asarray([1, 3, 3, 5]), f.asarray([[3, 0], [9, 4]])),
        lambda f, x: f.searchsorted(f.asarray([3, 1, 5]), f.asarray([3, 4]), side="right", sorter=f.asarray([1, 0, 2])),
        lambda f, x: f.unique_values(x > 0), lambda f, x: f.unique_counts(x > 0).counts,
        lambda f, x: f.unique_inverse(f.asarray([[5, 1], [1, 5]])).inverse_indices,
        lambda f, x: f.linspace(0, 1, 4), lambda f, x: f.linspace(1, 3, 4, endpoint=False, dtype=f.float64),
        lambda f, x: f.stack(f.meshgrid(x[0], x[1])), lambda f, x: f.meshgrid(x[0], x[1, :2], indexing="ij")[0],
        lambda f, x: f.unique_all(f.asarray([7, 2, 7, 3])).indices, lambda f, x: f.tensordot(x, x, axes=([0], [0]))]


@pytest.mark.parametrize("call", SAME)
def test_functions_are_numpys(call):
    ours, theirs = call(xp, grid()), numpy.asarray(call(numpy, numpy.array(GRID, dtype="float32")))
    assert ours.shape == theirs.shape and ours.dtype.is_floating_point == (theirs.dtype.kind == "f")
    assert (ours.dtype == "bool") == (theirs.dtype.kind == "b")
    assert ours.tolist() == pytest.approx(theirs.tolist()) if not theirs.ndim else \
        numpy.allclose(ours.numpy(), theirs, rtol=1e-6)


SQUARE = [[4.0, 1.0], [1.0, 3.0]]
SAME_LINALG = [lambda f, a: f.linalg.cholesky(a),
               lambda f, a: f.linalg.cross(f.asarray([1.0, 2, 3]), f.asarray([0.0, 1, 0])),
               lambda f, a: f.linalg.det(a), lambda f, a: f.linalg.diagonal(a, offset=1),
               lambda f, a: f.linalg.eigh(a).eigenvalues, lambda f, a: f.linalg.eigvalsh(a), lambda f, a: f.linalg.inv(a),
               lambda f, a: f.linalg.matrix_norm(a, ord=1, keepdims=True), lambda f, a: f.linalg.matrix_power(a, -2),
               lambda f, a: f.linalg.matrix_rank(a), lambda f, a: f.linalg.matrix_rank(a, rtol=f.asarray(0.9)),
               lambda f, a: f.linalg.outer(a[0], a[1]), lambda f, a: f.linalg.pinv(a[:, :1]),
               lambda f, a: f.linalg.pinv(a, rtol=f.asarray(0.9)), lambda f, a: f.linalg.slogdet(a).logabsdet,
               lambda f, a: f.linalg.solve(a, a[0]), lambda f, a: f.linalg.solve(f.stack([a, a]), f.stack([a[0], a[1]])),
               lambda f, a: f.linalg.svd(a, full_matrices=False).S, lambda f, a: f.linalg.svdvals(a),
               lambda f, a: f.linalg.trace(a, offset=-1), lambda f, a: f.linalg.vector_norm(a, axis=0, ord=1),
               lambda f, a: f.linalg.vecdot(a, a), lambda f, a: f.linalg.tensordot(a, a, axes=1)]


@pytest.mark.parametrize("call", SAME_LINALG)
def test_linear_algebra_is_numpys(call):
    ours, theirs = call(xp, xp.asarray(SQUARE, dtype="f64")), numpy.asarray(call(numpy, numpy.array(SQUARE)))
    assert ours.shape == theirs.shape and numpy.allclose(numpy.asarray(ours), theirs)


REFUSED = [(lambda: xp.vecdot(grid(), grid().T), ValueError, "extents of axis -1 differ"),
           (lambda: xp.squeeze(grid(), 0), ValueError, "its extent is not 1"),
           (lambda: xp.expand_dims(grid(), 4), IndexError, "axis 4 is out of range"),
           (lambda: xp.cumulative_sum(grid()), ValueError, "needs an axis"),
           (lambda: xp.broadcast_shapes((2,), (3,)), ValueError, "(2)"),
           (lambda: xp.reshape(grid().T, (6,), copy=False), ValueError, "leave copy out"),
           (lambda: grid().to_device("cpu", stream=1), ValueError, "leave the stream out"),
           (lambda: xp.nonzero(xp.asarray(1)), ValueError, "has no positions"),
           (lambda: xp.take(grid(), xp.asarray([0])), ValueError, "needs an axis"),
           (lambda: xp.result_type(), TypeError, "at least one")]


def test_sorting_in_descending_order_is_stable():
    x = xp.asarray([2.0, 1.0, 2.0, math.nan])
    assert xp.argsort(x, descending=True).tolist() == [3, 0, 2, 1]
    assert xp.sort(x, descending=True)[1:].tolist() == [2, 2, 1]


def test_each_nan_is_distinct():
    values, indices, inverse, counts = xp.unique_all(xp.asarray([math.nan, 1.0, math.nan]))
    assert values.shape == (3,) and counts.tolist() == [1, 1, 1] and sorted(indices.tolist()) == [0, 1, 2]
    assert inverse.shape == (3,)


@pytest.mark.parametrize("call, error, text", REFUSED)
def test_wrong_calls_say_why(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_the_package_has_the_names_and_keeps_pytorchs_meanings():
    missing = [name for name in dir(xp) if not name.startswith("_") and not hasattr(plugrad, name)]
    assert missing in ([], ["nonzero"])
    x = grid()
    assert plugrad.std(x).item() == pytest.approx(numpy.std(GRID, ddof=1)) and plugrad.sum(x, ()).item() == x.sum().item()
    assert x.repeat((1, 2)).shape == (2, 6) == plugrad.repeat(x, (1, 2)).shape
    assert plugrad.finfo is xp.finfo and plugrad.bool == "bool" and plugrad.pi == math.pi


def test_subtraction_in_place_does_not_wrap_in_the_narrower_dtype():
    x = xp.asarray([0, 500], dtype="i16")
    x -= xp.asarray([1, 200], dtype="u8")
    assert x.tolist() == [-1, 300] and x.dtype == "i16"


def test_products_of_vectors_keep_the_dtype():
    assert xp.vecdot(xp.asarray([2, 3], dtype="u8"), xp.asarray([4, 5], dtype="u8")).dtype == "u8"


def test_numbers_from_tensors():
    assert range(4)[xp.asarray(2, dtype="u8")] == 2 and complex(xp.asarray(1.5)) == 1.5
    with pytest.raises(TypeError, match="one whole number"):
        range(4)[xp.asarray(1.0)]


def test_methods_have_pytorchs_other_names():
    x, y = grid(), grid() * 2
    assert x.subtract(y).tolist() == plugrad.subtract(x, y).tolist() == (x - y).tolist()
    assert x.clip(0, 1).tolist() == x.clamp(0, 1).tolist() and plugrad.concat((x, y)).shape == (4, 3)
    assert x.sum(dtype="f64").dtype == "f64" and x.cumsum(0, dtype="f64").dtype == x.softmax(0, dtype="f64").dtype == "f64"
    assert isinstance(x.moveaxis(0, 1), Tensor) and x.greater_equal(y).dtype == "bool"


def test_norms_of_elements_and_broadcast_cross_products():
    x = numpy.asarray([[3.0, -4.0, 0.0]])
    for order in (0, 1, 2, float("inf")):
        found = xp.linalg.vector_norm(xp.asarray(x), axis=(), ord=order)
        assert numpy.array_equal(numpy.array(found.tolist()), numpy.abs(x) if order else (x != 0).astype(float))
    a, b = numpy.arange(6.0).reshape(2, 1, 3), numpy.arange(12.0).reshape(4, 3)
    assert numpy.allclose(numpy.array(xp.linalg.cross(xp.asarray(a), xp.asarray(b)).tolist()), numpy.cross(a, b))
    with pytest.raises(ValueError, match="cross"):
        xp.linalg.cross(xp.asarray(a), xp.ones((4, 2)))


def test_complex_dtypes_are_described():
    assert xp.isdtype(xp.complex64, "complex floating") and xp.isdtype(xp.complex128, "numeric")
    assert not xp.isdtype(xp.complex64, "real floating") and xp.finfo(xp.complex128).eps == xp.finfo(xp.float64).eps
    assert xp.result_type(xp.float64, 1j) == xp.complex128 and xp.result_type(xp.int8, 2j) == xp.complex64
    assert set(xp.__array_namespace_info__().dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert xp.linspace(0, 1j, 3).tolist() == [0, 0.5j, 1j] and xp.full_like(xp.ones(1, dtype="c64"), 1j).tolist() == [1j]
    x = xp.asarray([1 + 2j])
    assert xp.vecdot(x, x).tolist() == 5 and xp.imag(xp.asarray([1.0])).tolist() == [0] and xp.conj(x).tolist() == [1 - 2j]
    with pytest.raises(TypeError, match="real"):
        xp.astype(x, xp.float32)
    with pytest.raises(TypeError, match="integer"):
        xp.iinfo(xp.complex64)
