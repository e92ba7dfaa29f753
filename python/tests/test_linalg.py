"""Linear algebra compared with NumPy, on random matrices of many shapes. Factors that are not unique are tested by their
definition."""
import plugrad
import pytest
from plugrad import linalg

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("device_under_test")
SHAPES = [(1, 1), (4, 4), (6, 3), (3, 6), (2, 5, 5), (2, 3, 4, 2), (3, 2, 4), (30, 30), (40, 7)]
SQUARES = [shape for shape in SHAPES if shape[-1] == shape[-2]] + [(0, 0), (0, 2, 2)]
EPSILON = {"float32": 1.2e-7, "float64": 2.2e-16}


def samples(shapes, seed):
    random = numpy.random.default_rng(seed)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes for dtype in EPSILON for _ in range(3)]


def close(ours, theirs, condition=1.0):
    """Compares up to rounding errors that grow with the size and the condition number of the matrix."""
    ours, theirs = numpy.asarray(ours), numpy.asarray(theirs)
    assert ours.shape == theirs.shape
    bound = EPSILON.get(str(ours.dtype), 1e-7) * 200 * (1 + max(ours.shape[-2:], default=1)) * condition
    largest = numpy.abs(theirs).max(initial=1.0)
    assert numpy.abs(ours - theirs).max(initial=0.0) <= bound * largest


def condition_of(a):
    return numpy.linalg.cond(a.astype("float64")).max(initial=1.0) if a.size else 1.0


@pytest.mark.parametrize("a", samples(SQUARES, 1), ids=lambda a: f"{a.shape}{a.dtype}")
def test_square_matrices(a):
    x, condition = plugrad.Tensor(a), condition_of(a)
    b = numpy.random.default_rng(2).standard_normal(a.shape[:-1] + (2,)).astype(a.dtype)
    close(linalg.det(x), numpy.linalg.det(a), condition)
    sign, logarithm = linalg.slogdet(x)
    close(sign, numpy.linalg.slogdet(a)[0])
    close(logarithm, numpy.linalg.slogdet(a)[1], condition)
    close(linalg.inv(x), numpy.linalg.inv(a), condition)
    close(linalg.solve(x, plugrad.Tensor(b)), numpy.linalg.solve(a, b), condition)
    symmetric, positive = a + a.swapaxes(-1, -2), a @ a.swapaxes(-1, -2) + numpy.eye(a.shape[-1], dtype=a.dtype)
    close(linalg.eigvalsh(plugrad.Tensor(symmetric)), numpy.linalg.eigvalsh(symmetric))
    values, vectors = map(numpy.asarray, linalg.eigh(plugrad.Tensor(symmetric), UPLO="U"))
    close((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2), symmetric)
    close(linalg.cholesky(plugrad.Tensor(positive)), numpy.linalg.cholesky(positive), condition_of(positive))
    close(linalg.matrix_power(x, 3), numpy.linalg.matrix_power(a, 3))
    close(linalg.trace(x), numpy.trace(a, axis1=-2, axis2=-1))


@pytest.mark.parametrize("a", samples(SHAPES, 3), ids=lambda a: f"{a.shape}{a.dtype}")
def test_matrices_of_any_shape(a):
    x, condition = plugrad.Tensor(a), condition_of(a)
    close(linalg.svdvals(x), numpy.linalg.svd(a, compute_uv=False))
    for full in (True, False):
        u, s, vh = map(numpy.asarray, linalg.svd(x, full_matrices=full))
        assert u.shape == numpy.linalg.svd(a, full)[0].shape and vh.shape == numpy.linalg.svd(a, full)[2].shape
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
    for mode in ("reduced", "complete"):
        q, r = map(numpy.asarray, linalg.qr(x, mode))
        assert q.shape == numpy.linalg.qr(a, mode)[0].shape
        close(q @ r, a)
        close(r, numpy.linalg.qr(a, mode)[1], condition)  # the signs are LAPACK's
    p, lower, upper = map(numpy.asarray, linalg.lu(x))
    close(p @ lower @ upper, a)
    close(linalg.pinv(x), numpy.linalg.pinv(a), condition ** 2)
    assert numpy.array_equal(linalg.matrix_rank(x).numpy(), numpy.linalg.matrix_rank(a))
    close(linalg.cond(x), numpy.linalg.cond(a), condition)
    for order in ("fro", "nuc", 1, -1, 2, -2, numpy.inf, -numpy.inf):
        close(linalg.matrix_norm(x, order), numpy.linalg.norm(a, order, axis=(-2, -1)))
        close(linalg.norm(x, order, axis=(-2, -1), keepdims=True), numpy.linalg.norm(a, order, (-2, -1), True))
    close(linalg.diagonal(x, offset=-1), numpy.diagonal(a, -1, -2, -1))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (20, 2)])
def test_least_squares(shape):
    random = numpy.random.default_rng(4)
    for rank in range(1, min(shape) + 1):
        a = random.standard_normal((shape[0], rank)) @ random.standard_normal((rank, shape[1]))
        b = random.standard_normal((shape[0], 2))
        x, residuals, found, values = linalg.lstsq(plugrad.Tensor(a), plugrad.Tensor(b))
        expected = numpy.linalg.lstsq(a, b, rcond=None)
        close(x, expected[0], 1e4)
        close(residuals, expected[1], 1e4)
        assert found.item() == expected[2] == rank and linalg.matrix_rank(plugrad.Tensor(a)).item() == rank
        close(values, expected[3])
        close(linalg.pinv(plugrad.Tensor(a)), numpy.linalg.pinv(a, rcond=1e-12), 1e4)


def test_ill_conditioned_matrices():
    n = 8
    hilbert = 1 / (numpy.arange(n)[:, None] + numpy.arange(n) + 1.0)
    x = plugrad.Tensor(hilbert)
    assert linalg.cond(x).item() == pytest.approx(numpy.linalg.cond(hilbert), rel=1e-4)
    residual = hilbert @ numpy.asarray(linalg.solve(x, plugrad.Tensor(numpy.ones(n)))) - 1
    assert numpy.abs(residual).max() < 1e-5


def test_errors():
    singular = plugrad.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]])
    with pytest.raises(linalg.LinAlgError, match=r"^\[linalg.inv\] matrix 1 of the batch is singular"):
        linalg.inv(singular)
    with pytest.raises(ValueError, match=r"^\[linalg.cholesky\] .*not positive definite"):
        linalg.cholesky(plugrad.tensor([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="square") as raised:
        linalg.det(plugrad.tensor([[1.0, 2.0]]))
    assert not isinstance(raised.value, linalg.LinAlgError) and issubclass(linalg.LinAlgError, ValueError)
    with pytest.raises(ValueError, match="UPLO"):
        linalg.eigh(singular[0], UPLO="X")
    with pytest.raises(ValueError, match="mode"):
        linalg.qr(singular, mode="full")
    assert linalg.cond(singular, 1).tolist() == [1, float("inf")]


def test_vectors_and_products():
    x, y = plugrad.tensor([1.0, 2.0, 2.0]), plugrad.tensor([0.0, 1.0, 0.0])
    assert linalg.norm(x).item() == linalg.vector_norm(x).item() == 3 and linalg.norm(x, 1).item() == 5
    assert linalg.vecdot(x, y).item() == 2 and linalg.cross(x, y).tolist() == [-2, 0, 1]
    assert linalg.outer(x, y).shape == (3, 3) and linalg.matrix_transpose(linalg.outer(x, y)).tolist()[1] == [1, 2, 2]
    assert linalg.vector_norm(linalg.outer(x, y), axis=0, keepdims=True).tolist() == [[0, 3, 0]]
    assert linalg.tensordot(x, y, 1).item() == 2 and linalg.multi_dot([x, linalg.outer(x, y), y]).item() == 9
    with pytest.raises(ValueError, match="two dims"):
        linalg.norm(x, "fro", dim=0)


def test_gradients_flow():
    x = plugrad.Tensor([[4.0, 1.0], [1.0, 3.0]])
    linalg.slogdet(x).logabsdet.backward()
    assert numpy.allclose(x.grad.numpy(), numpy.linalg.inv(numpy.array([[4, 1], [1, 3]])).T)
    x.grad = None
    q, r = linalg.qr(x)
    (q @ r).sum().backward()
    assert numpy.allclose(x.grad.numpy(), numpy.ones((2, 2)), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3)])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_equations(dtype, shape):
    def numbers(*extents):
        return (random.standard_normal(extents) + 1j * random.standard_normal(extents)).astype(dtype)

    def same(ours, theirs):
        assert numpy.allclose(numpy.array(ours.tolist()), theirs, 1e-3 if dtype == "complex64" else 1e-10)

    random = numpy.random.default_rng(3)
    a, b = numbers(*shape), numbers(*shape[:-1], 2)
    x, y = plugrad.tensor(a), plugrad.tensor(b)
    adjoint = a.conj().swapaxes(-1, -2)
    definite = a @ adjoint + 4 * numpy.eye(shape[-1], dtype=dtype)
    same(linalg.solve(x, y), numpy.linalg.solve(a, b))
    same(linalg.solve(x, plugrad.tensor(b.real.copy())), numpy.linalg.solve(a, b.real))
    same(linalg.inv(x), numpy.linalg.inv(a))
    same(linalg.det(x), numpy.linalg.det(a))
    for ours, theirs in zip(linalg.slogdet(x), numpy.linalg.slogdet(a)):
        same(ours, theirs)
    lower = linalg.cholesky(plugrad.tensor(definite))
    same(lower, numpy.linalg.cholesky(definite))
    same(linalg.cholesky(plugrad.tensor(definite), upper=True), numpy.linalg.cholesky(definite).conj().swapaxes(-1, -2))
    same(plugrad.cholesky_solve(y, lower), numpy.linalg.solve(definite, b))
    p, low, up = linalg.lu(x)
    same(p @ low @ up, a)
    factors = linalg.lu_factor(x)
    same(linalg.lu_solve(*factors, y), numpy.linalg.solve(a, b))
    same(linalg.lu_solve(*factors, y, adjoint=True), numpy.linalg.solve(adjoint, b))
    row = b.swapaxes(-1, -2).copy()
    same(linalg.lu_solve(*factors, plugrad.tensor(row), left=False), row @ numpy.linalg.inv(a))
    same(linalg.matrix_power(x, -2), numpy.linalg.matrix_power(a, -2))


def test_complex_matrices_are_refused_where_they_have_no_function():
    x = plugrad.tensor([[1 + 1j, 0], [0, 1]])
    for function in (linalg.qr, linalg.eigh, linalg.svd, linalg.pinv, linalg.svdvals):
        with pytest.raises(ValueError, match="is c64, expected f32 or f64"):
            function(x)
    with pytest.raises(linalg.LinAlgError, match="not positive definite"):
        linalg.cholesky(-x * x.conj())
    with pytest.raises(linalg.LinAlgError, match="singular"):
        linalg.inv(x * 0)
