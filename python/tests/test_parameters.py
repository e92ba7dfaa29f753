"""Parameters and names of PyTorch's functions for which the core has a different form."""
import math

import plugrad
import pytest
import plugrad.nn.functional as F  # noqa: N812
from plugrad import linalg, masked, special, windows

X = [[1.0, 4.0, 2.0], [3.0, 0.0, 5.0]]


def tensor(values=X, dtype="f64"):
    return plugrad.tensor(values, dtype=dtype)


# (the call, a call with the same result)
SAME = {
    "unbiased": (lambda x: plugrad.var(x, 1, unbiased=False), lambda x: plugrad.var(x, 1, correction=0)),
    "unbiased alone": (lambda x: x.std(False), lambda x: x.std(correction=0)),
    "unbiased pair": (lambda x: plugrad.var_mean(x, True)[0], lambda x: x.var()),
    "no correction": (lambda x: plugrad.var(x, dim=None, correction=None), lambda x: x.var()),
    "no spacing": (lambda x: plugrad.gradient(x, dim=None, spacing=None)[1], lambda x: plugrad.gradient(x)[1]),
    "norm fro": (lambda x: x.norm("fro", 0), lambda x: x.norm(2, 0)),
    "norm nuc": (lambda x: plugrad.norm(x, "nuc"), lambda x: linalg.matrix_norm(x, "nuc")),
    "tensor_split": (lambda x: plugrad.tensor_split(x, plugrad.tensor([1]), 1)[1], lambda x: x[:, 1:]),
    "tensor_split number": (lambda x: x.tensor_split(plugrad.tensor(2))[1], lambda x: x[1:]),
    "sorter": (lambda x: plugrad.searchsorted(x, tensor([[3.0], [4.0]]), sorter=x.argsort()),
               lambda x: tensor([[2], [2]], "i64")),
    "output_size": (lambda x: x.repeat_interleave(plugrad.tensor([2, 1]), 0, output_size=3), lambda x: x[[0, 0, 1]]),
    "compute_mode": (lambda x: plugrad.cdist(x, x, compute_mode="use_mm_for_euclid_dist"), lambda x: plugrad.cdist(x, x)),
    "where numbers": (lambda x: plugrad.where(x > 2, 1.0, 0.0), lambda x: (x > 2).float()),
    "softmin dtype": (lambda x: plugrad.softmin(x.float(), 0, dtype="f64"), lambda x: plugrad.softmin(x, 0)),
    "masked_fill": (lambda x: (x > 0).masked_fill(x > 3, 7), lambda x: x > 0),
    "masked_fill cuts": (lambda x: x.long().masked_fill(x > 3, 2.5), lambda x: plugrad.where(x > 3, 2, x.long())),
    "new_full": (lambda x: x.new_full((2,), 3.0), lambda x: tensor([3.0, 3.0])),
    "new_ones": (lambda x: x.new_ones(2, 1, dtype="i64"), lambda x: tensor([[1], [1]], "i64")),
    "mH": (lambda x: x.mH + x.H, lambda x: 2 * x.T),
    "sum_to_size": (lambda x: x.sum_to_size(1, 3), lambda x: x.sum(0, keepdim=True)),
    "constant_pad_nd": (lambda x: plugrad.constant_pad_nd(x, [1, 0], 9.0), lambda x: plugrad.pad(x, [1, 0], value=9.0)),
    "split_with_sizes": (lambda x: x.split_with_sizes([1, 2], 1)[1], lambda x: x[:, 1:]),
    "logdet": (lambda x: plugrad.logdet(x @ x.T), lambda x: plugrad.det(x @ x.T).log()),
    "pinverse": (plugrad.pinverse, linalg.pinv),
    "svd": (lambda x: plugrad.svd(x).U @ plugrad.svd(x).S.diag() @ plugrad.svd(x).V.mT, lambda x: x),
    "svd values": (lambda x: plugrad.svd(x, compute_uv=False).S, linalg.svdvals),
    "cholesky_solve": (lambda x: plugrad.cholesky_solve(x, linalg.cholesky(x @ x.T)), lambda x: linalg.solve(x @ x.T, x)),
    "cholesky_inverse": (lambda x: plugrad.cholesky_inverse(linalg.cholesky(x @ x.T)), lambda x: linalg.inv(x @ x.T)),
    "triangular_solve": (lambda x: plugrad.triangular_solve(x, (x @ x.T).tril(), upper=False)[0],
                         lambda x: linalg.solve((x @ x.T).tril(), x)),
    "triangular_solve transposed": (lambda x: plugrad.triangular_solve(x, (x @ x.T).tril(), upper=False, transpose=True)[0],
                                    lambda x: linalg.solve((x @ x.T).tril().mT, x)),
    "lu_solve": (lambda x: plugrad.lu_solve(x, *linalg.lu_factor(x @ x.T)), lambda x: linalg.solve(x @ x.T, x)),
    "lu_unpack": (lambda x: chained(plugrad.lu_unpack(*linalg.lu_factor(x))), lambda x: x),
    "ormqr": (lambda x: plugrad.ormqr(*reflection(), x), lambda x: tensor([[-3.0, 0.0, -5.0], [-1.0, -4.0, -2.0]])),
    "householder_product": (lambda x: linalg.householder_product(*reflection()), lambda x: tensor([[0.0], [-1.0]])),
    "matrix_exp": (lambda x: linalg.matrix_exp(tensor([[0.0, math.pi], [-math.pi, 0.0]])),
                   lambda x: -plugrad.eye(2, dtype="f64")),
    "vander": (lambda x: linalg.vander(x, N=2), lambda x: plugrad.stack([plugrad.ones_like(x), x], -1)),
    "inv_ex": (lambda x: linalg.inv_ex(x @ x.T)[0], lambda x: linalg.inv(x @ x.T)),
    "cholesky_ex": (lambda x: linalg.cholesky_ex(x @ x.T).info, lambda x: tensor(0, "i32")),
    "solve_ex": (lambda x: linalg.solve_ex(x @ x.T, x)[0], lambda x: linalg.solve(x @ x.T, x)),
    "lu_factor_ex": (lambda x: linalg.lu_factor_ex(x, pivot=True).LU, lambda x: linalg.lu_factor(x).LU),
    "lstsq": (lambda x: linalg.lstsq(x.T, x.T, driver="gels").solution, lambda x: plugrad.eye(2, dtype="f64")),
    "matrix_rank": (lambda x: linalg.matrix_rank(x, atol=tensor(100.0)), lambda x: tensor(0, "i64")),
    "tensorinv": (lambda x: linalg.tensorinv((x @ x.T).reshape(2, 2, 1), ind=1),
                  lambda x: linalg.inv(x @ x.T).reshape(2, 1, 2)),
    "tensorsolve": (lambda x: linalg.tensorsolve((x @ x.T).reshape(2, 2, 1), x[:, 0]),
                    lambda x: linalg.solve(x @ x.T, x[:, :1])),
    "hann": (lambda x: windows.hann(4, sym=False, dtype="f64"), lambda x: tensor([0.0, 0.5, 1.0, 0.5])),
    "bartlett": (lambda x: windows.bartlett(5, dtype="f64"), lambda x: tensor([0.0, 0.5, 1.0, 0.5, 0.0])),
    "kaiser": (lambda x: windows.kaiser(3, beta=0.0, dtype="f64"), lambda x: tensor([1.0, 1.0, 1.0])),
    "special": (lambda x: special.expit(x) + special.psi(x + 1), lambda x: x.sigmoid() + plugrad.digamma(x + 1)),
}


MASK = [[True, False, True], [False, True, True]]
CHOSEN = [1.0, 2.0, 0.0, 5.0]  # of X

# (the call of masked, a call with the same result)
OF_CHOSEN = {
    "sum": (lambda x, m: masked.sum(x, mask=m), sum(CHOSEN)),
    "sum along": (lambda x, m: masked.sum(x, 1, mask=m), [3.0, 5.0]),
    "prod": (lambda x, m: masked.prod(x, 0, mask=m), [1.0, 0.0, 10.0]),
    "amax": (lambda x, m: masked.amax(x, 0, keepdim=True, mask=m), [[1.0, 0.0, 5.0]]),
    "amin of none": (lambda x, m: masked.amin(x, mask=m & False), math.inf),
    "amax of integers": (lambda x, m: masked.amax(x.long(), 1, mask=m), [2, 5]),
    "argmax": (lambda x, m: masked.argmax(x, 1, mask=m), [2.0, 2.0]),
    "argmin": (lambda x, m: masked.argmin(x, 1, mask=m), [0.0, 1.0]),
    "mean": (lambda x, m: masked.mean(x, 1, mask=m), [1.5, 2.5]),
    "var": (lambda x, m: masked.var(x, 1, mask=m), [0.5, 12.5]),
    "std": (lambda x, m: masked.std(x, 1, False, keepdim=True, mask=m), [[0.5], [2.5]]),
    "norm": (lambda x, m: masked.norm(x, 1, 1, mask=m), [3.0, 5.0]),
    "logsumexp": (lambda x, m: masked.logsumexp(x, 0, mask=m)[:2], [1.0, 0.0]),
    "median": (lambda x, m: masked.median(x, 1, mask=m), [1.0, 0.0]),
    "softmax": (lambda x, m: masked.softmax(x, 0, mask=m)[:, :2], [[1.0, 0.0], [0.0, 1.0]]),
    "log_softmax": (lambda x, m: masked.log_softmax(x, 0, mask=m)[:, 0], [0.0, -math.inf]),
    "softmin": (lambda x, m: masked.softmin(x, 0, mask=m)[:, :2], [[1.0, 0.0], [0.0, 1.0]]),
    "cumsum": (lambda x, m: masked.cumsum(x, 1, mask=m), [[1.0, 1.0, 3.0], [0.0, 0.0, 5.0]]),
    "cumprod": (lambda x, m: masked.cumprod(x, 1, mask=m), [[1.0, 1.0, 2.0], [1.0, 0.0, 0.0]]),
    "normalize": (lambda x, m: masked.normalize(x, 1, 1, mask=m)[1], [0.0, 0.0, 1.0]),
    "logaddexp": (lambda x, m: masked.logaddexp(x, x, other_mask=m & False), X),
}


@pytest.mark.parametrize("name", OF_CHOSEN)
def test_masked(name):
    function, expected = OF_CHOSEN[name]
    assert function(tensor(), plugrad.tensor(MASK)).tolist() == expected


def test_functions_of_networks():
    x, weight = tensor(), tensor([[1.0, 2.0], [3.0, 4.0]])
    assert F.relu(-x).tolist() == plugrad.relu(-x).tolist() and plugrad.nn.functional is F
    index = plugrad.tensor([1, 0])
    assert F.embedding(index, weight).tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert F.embedding_bag(index, weight, plugrad.tensor([0]), mode="sum").tolist() == [[4.0, 6.0]]
    assert F.one_hot(index).tolist() == [[0, 1], [1, 0]] and F.one_hot(index, 3).shape == (2, 3)


def test_histogram_of_points():
    points = tensor([[0.0, 0.0], [1.0, 2.0], [0.25, 1.9], [1.0, 0.5]])
    hist, edges = plugrad.histogramdd(points, [2, 1])
    assert hist.tolist() == [[2.0], [2.0]] and [each.tolist() for each in edges] == [[0.0, 0.5, 1.0], [0.0, 2.0]]
    weighted = plugrad.histogramdd(points, (tensor([0.0, 0.5]), tensor([0.0, 1.0, 2.0])),
                                   weight=tensor([1.0, 2.0, 3.0, 4.0]))
    assert weighted.hist.tolist() == [[1.0, 3.0]]
    assert plugrad.histogramdd(points, 1, range=[0.0, 1.0, 0.0, 1.0], density=True).hist.tolist() == [[1.0]]
    with pytest.raises(ValueError, match="for each of its 2 coordinates"):
        plugrad.histogramdd(points, [2])


@pytest.mark.parametrize("name, arguments", {
    "as_strided": ((2,), (1,)), "diagonal": (), "expand": (2, 2, 3), "narrow": (1, 0, 2), "permute": ((1, 0),),
    "split_with_sizes": ([1, 2], 1), "squeeze": (), "t": (), "transpose": (0, 1), "unbind": (), "unfold": (1, 2, 1),
    "unsqueeze": (0,), "view": (3, 2)}.items())
def test_copies(name, arguments):
    x = tensor()
    copies = getattr(plugrad, f"{name}_copy")(x, *arguments)
    views = getattr(x, name)(*arguments)
    for copied, view in zip(*(list(each) if isinstance(each, tuple) else [each] for each in (copies, views))):
        assert copied.tolist() == view.tolist()
        copied.fill_(7.0)
    assert x.tolist() == X


def chained(factors):
    return factors.P @ factors.L @ factors.U


def reflection():
    """Returns the factor and the scale of a reflection at the line x = -y."""
    return tensor([[5.0], [1.0]]), tensor([1.0])


@pytest.mark.parametrize("name", SAME)
def test_is_the_same(name):
    called, expected = (function(tensor()) for function in SAME[name])
    assert called.dtype == expected.dtype and called.shape == expected.shape
    assert plugrad.allclose(called.double(), expected.double(), rtol=1e-9, atol=1e-12), f"{called} instead of {expected}"


REFUSED = {
    "cdist mode": (lambda x: plugrad.cdist(x, x, compute_mode="fast"), ValueError, "compute_mode 'fast'"),
    "norm name": (lambda x: x.norm("max"), ValueError, "p 'max'"),
    "output_size": (lambda x: x.repeat_interleave(plugrad.tensor([2, 1]), 0, output_size=4), ValueError, "add up to 3"),
    "pivot": (lambda x: linalg.lu(x, pivot=False), ValueError, "pivot is False"),
    "driver": (lambda x: linalg.lstsq(x, x, driver="qr"), ValueError, "driver 'qr'"),
    "sum_to_size": (lambda x: x.sum_to_size(2), ValueError, "does not broadcast"),
    "window": (lambda x: windows.hann(3, length=2), TypeError, "no parameter 'length'"),
    "masked_fill": (lambda x: x.masked_fill(x > 0, x[0]), ValueError, "expected rank 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(tensor())


def test_singular_values_of_drivers():
    x = tensor()
    assert linalg.lstsq(x, x, driver="gels").rank.shape == (0,)
    assert linalg.lstsq(x, x, driver="gelsy").singular_values.shape == (0,)
    assert linalg.lstsq(x.T, x.T, driver="gelsy").residuals.shape == (0,)
    assert linalg.lstsq(x, x, driver="gelsd").singular_values.shape == (2,)


def test_is_floating_point():
    assert tensor().is_floating_point() and not tensor(1, "i64").is_floating_point()


def test_random_like_on_a_device():
    like = tensor(dtype="f32")
    for made in (plugrad.rand_like(like, device="cpu", dtype="f64"), plugrad.randn_like(like, device="cpu", dtype="f64"),
                 plugrad.randint_like(like, 5, device="cpu", dtype="f64"),
                 plugrad.randint_like(like, 2, 5, device="cpu", dtype="f64")):
        assert made.shape == like.shape and made.dtype == "f64"
    assert plugrad.randint_like(like, 4, 5, device="cpu").flatten().tolist() == [4.0] * 6
