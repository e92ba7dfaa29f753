"""Complex tensors: values beside NumPy's, gradients beside differences, and the ways into and out of a tensor."""
import copy
import io
import pickle

import plugrad
import pytest
from plugrad import func

np = pytest.importorskip("numpy")
from samples import ROWS  # noqa: E402
from samples.case import Case  # noqa: E402

pytestmark = pytest.mark.usefixtures("device_under_test")
RANDOM = np.random.default_rng(0)


def numbers(*shape, dtype="complex64"):
    return (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)


def array(x):
    return np.array(x.tolist())


def close(x, expected, tolerance=1e-5):
    found, expected = np.asarray(array(x), "complex128"), np.asarray(expected, "complex128")
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= tolerance * (1 + np.abs(expected))), (found, expected)


A, B = numbers(3, 4), numbers(3, 4)
BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "power": lambda a, b: a**b, "number": lambda a, b: 2 * a + 1 - b / 4, "imaginary": lambda a, b: a * 1j + (2 - 1j) / b,
    "matmul": lambda a, b: a @ b.T, "row": lambda a, b: a[0] @ b[1], "whole power": lambda a, b: a**3 - b**-2}


@pytest.mark.parametrize("name", BINARY)
def test_operators(name):
    close(BINARY[name](plugrad.tensor(A), plugrad.tensor(B)), BINARY[name](A, B), 1e-4)


FUNCTIONS = {
    "neg": "negative", "abs": "abs", "angle": "angle", "conj": "conj", "real": "real", "imag": "imag", "sqrt": "sqrt",
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10", "square": "square",
    "reciprocal": "reciprocal", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos",
    "atan": "arctan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "sum": "sum", "mean": "mean", "prod": "prod", "var": "var", "std": "std", "isnan": "isnan",
    "isfinite": "isfinite", "isinf": "isinf", "isreal": "isreal", "tril": "tril", "diagonal": "diagonal"}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_functions(name, dtype):
    a, options = A.astype(dtype), {"correction": 0} if name in ("var", "std") else {}
    close(getattr(plugrad, name)(plugrad.tensor(a), **options), getattr(np, FUNCTIONS[name])(a),
          2e-6 if dtype == "complex64" else 1e-14)


SPECIAL = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", ["isnan", "isfinite", "isinf"])
def test_infinities_and_nan_in_one_part(name):
    z = np.array([complex(re, im) for re in SPECIAL for im in SPECIAL], "complex64")
    assert np.array_equal(array(getattr(plugrad, name)(plugrad.tensor(z))), getattr(np, name)(z))


@pytest.mark.parametrize("row", [row for row in ROWS if "f64" in row.dtypes], ids=lambda row: row.name)
def test_a_real_number_as_a_complex_one(row):
    """A function that takes complex numbers gives the same for x and for x + 0i."""
    for number in range(4):
        call = row.draw(Case(row.name, number, "f64", "kinks"))
        if not any(each.dtype == "f64" for each in call.operands()) or any(
                each.dtype in ("f32", "f16", "bf16") for each in call.operands()):
            continue

        def tensor(each, dtype):
            return plugrad.tensor(np.array(each.array)).to(dtype if each.dtype == "f64" else each.dtype)
        args, named = call.mapped(lambda each: tensor(each, "c128"))
        try:
            found = row.called(plugrad, *args, **named)
        except (ValueError, NotImplementedError, TypeError, IndexError):
            continue  # not defined for complex numbers
        args, named = call.mapped(lambda each: tensor(each, each.dtype))
        expected = row.called(plugrad, *args, **named)
        pairs = zip(found, expected) if isinstance(found, (tuple, list)) else [(found, expected)]
        for z, x in pairs:
            if not isinstance(x, plugrad.Tensor) or not x.numel():
                continue
            z, x = array(z), array(x)
            both = np.isfinite(x) & np.isfinite(z)
            assert np.allclose(z[both], x[both], 1e-10, 1e-10), (row.name, number, z, x)


# --- Gradients.

def differences(f, z, step=1e-6):
    """dL/dx + i dL/dy of a real function of an array."""
    gradient = np.zeros_like(z)
    for at in np.ndindex(z.shape):
        for direction in (1, 1j):
            ahead, behind = z.copy(), z.copy()
            ahead[at] += direction * step
            behind[at] -= direction * step
            slope = f(plugrad.tensor(ahead)) - f(plugrad.tensor(behind))
            gradient[at] += direction * slope.item() / (2 * step)
    return gradient


def weighed(x):
    return (x.real + 0.5 * x.imag.square()).sum()


LOSSES = {
    "product": lambda z: weighed(z * z.conj() * z), "quotient": lambda z: weighed(z / (z + 3)),
    "functions": lambda z: weighed(z.exp() + z.log() * z.sin()), "size": lambda z: (z.abs() * z.angle()).sum(),
    "matrices": lambda z: weighed(z @ z.mH), "places": lambda z: weighed(z[[0, 0, 1]] * plugrad.cat([z, z])[1:4]),
    "real beside complex": lambda z: weighed(z.real * z), "powers": lambda z: weighed(z**2.5 + 2**z)}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name):
    z = numbers(2, 3, dtype="complex128")
    x = plugrad.tensor(z, requires_grad=True)
    LOSSES[name](x).backward()
    assert x.grad.dtype == "c128"
    close(x.grad, differences(LOSSES[name], z), 1e-7)


def test_a_step_against_the_gradient_descends():
    x = plugrad.tensor(numbers(8), requires_grad=True)
    loss = [(x - (1 + 2j)).abs().square().sum()]
    loss[0].backward()
    with plugrad.no_grad():
        x -= 0.25 * x.grad
    assert (x - (1 + 2j)).abs().square().sum() < 0.3 * loss[0]


def test_optimisers_refuse_complex_parameters():
    with pytest.raises(ValueError, match="view_as_complex"):
        plugrad.optim.Adam([plugrad.tensor(A, requires_grad=True)])
    parts = plugrad.nn.Parameter(plugrad.zeros(3, 2))
    optimizer = plugrad.optim.SGD([parts], lr=0.5)
    (plugrad.view_as_complex(parts) - 1j).abs().square().sum().backward()
    optimizer.step()
    close(plugrad.view_as_complex(parts), [1j, 1j, 1j])


# --- Functions of functions, and compiled functions.

def test_vmap_jvp_and_their_nesting():
    a, b = plugrad.tensor(A), plugrad.tensor(B)
    close(func.vmap(lambda u, v: (u * v).sum())(a, b), (A * B).sum(1))
    value, tangent = func.jvp(lambda u: (u * u).exp(), (a,), (b,))
    close(value, np.exp(A * A), 1e-4)
    close(tangent, np.exp(A * A) * 2 * A * B, 1e-3)
    close(func.jvp(abs, (a,), (b,))[1], np.real(A.conj() / abs(A) * B))
    close(func.vmap(func.grad(lambda u: u.abs().square().sum()))(a), 2 * A)


def test_compiled_functions_follow():
    compiled = plugrad.compile(lambda x, y: ((x * y).exp() / (x + 2)).abs().sum())
    for _ in range(4):
        a, b = numbers(5), numbers(5)
        close(compiled(plugrad.tensor(a), plugrad.tensor(b)), abs(np.exp(a * b) / (a + 2)).sum(), 1e-4)
    with_power = plugrad.compile(lambda x, p: x**p)
    for power in (2.5, 3.5, 4.5, 1.5):
        close(with_power(plugrad.tensor(A), power), A**power, 1e-4)


# --- Into and out of a tensor.

def test_numbers_make_tensors():
    assert plugrad.tensor([1, 2j]).dtype == "c64"
    assert plugrad.tensor(1j, dtype="c128").item() == 1j
    assert plugrad.tensor([True, 1j]).tolist() == [1, 1j]
    assert plugrad.tensor(np.complex128(1j)).dtype == plugrad.complex128
    assert plugrad.full((2,), 1 + 2j).tolist() == [1 + 2j] * 2
    assert plugrad.zeros(2, dtype=plugrad.cfloat).dtype == plugrad.complex64
    with pytest.raises(ValueError, match="a complex number stands among numbers of f32"):
        plugrad.tensor([1j], dtype="f32")
    with pytest.raises(ValueError, match="is not real"):
        float(plugrad.tensor(1j))
    x = plugrad.zeros(3, dtype="c64")
    x[0] = 1 + 2j
    x.imag[1:] = plugrad.tensor([3.0, 4.0])
    x.real = plugrad.tensor([7.0, 8.0, 9.0])
    assert x.tolist() == [7 + 2j, 8 + 3j, 9 + 4j]
    x += 1j
    x *= 1j
    assert x.tolist() == [-3 + 7j, -4 + 8j, -5 + 9j]
    assert x.fill_(2j).tolist() == [2j] * 3
    assert complex(x[0]) == 2j and bool(x[0]) and f"{x[0]:.1f}" == "0.0+2.0j"


def test_dtypes_promote_as_in_numpy():
    one = plugrad.ones(1)
    assert (one * 1j).dtype == "c64" and (one.double() * 1j).dtype == "c128" and (1j * plugrad.tensor([1])).dtype == "c64"
    assert (one.double() + plugrad.tensor(A[0, :1])).dtype == "c128"
    with pytest.raises(ValueError, match="cannot hold"):
        one += 1j
    assert plugrad.is_complex(plugrad.tensor(1j)) and not plugrad.is_complex(one)
    assert plugrad.tensor(1j).dtype.is_complex and not plugrad.tensor(1j).dtype.is_floating_point


def test_copies_and_files(tmp_path):
    x = plugrad.tensor(A)
    assert np.array_equal(np.asarray(x.numpy()), A)
    assert np.array_equal(plugrad.from_numpy(A).numpy(), A)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), plugrad.tensor(x), x.clone()):
        assert plugrad.equal(other, x)
    plugrad.save({"x": x, "y": x.to("c128")}, tmp_path / "x.pt")
    loaded = plugrad.load(tmp_path / "x.pt")
    assert plugrad.equal(loaded["x"], x) and loaded["y"].dtype == "c128"
    for order in "<>":
        file = io.BytesIO()
        np.save(file, A.astype(f"{order}c8"))
        (tmp_path / "x.npy").write_bytes(file.getvalue())
        assert np.array_equal(array(plugrad.files.load_npy(str(tmp_path / "x.npy"))), A)


def test_text():
    assert str(plugrad.tensor([1 + 2j, 3.5 - 1.25j])) == "Tensor([1. +2.j   3.5-1.25j], dtype=c64)"


def test_random_parts_have_half_the_variance():
    plugrad.manual_seed(0)
    x = plugrad.randn(20000, dtype="c64")
    assert abs(x.real.var().item() - 0.5) < 0.03 and abs(x.imag.var().item() - 0.5) < 0.03
    assert abs((x.real * x.imag).mean().item()) < 0.02
    u = plugrad.rand(1000, dtype="c128")
    assert u.real.min() >= 0 and u.imag.max() < 1 and not plugrad.equal(u.real, u.imag)


@pytest.mark.parametrize("name", ["max", "argmin", "sort", "floor", "relu", "median", "cummax", "signbit", "lgamma"])
def test_functions_that_need_an_order_are_refused(name):
    with pytest.raises((ValueError, NotImplementedError), match="complex"):
        result = getattr(plugrad, name)(plugrad.tensor(A[0]), *([0] if name == "cummax" else []))
        raise AssertionError(result)


@pytest.mark.parametrize("name", ["exp", "sinh", "cosh", "tanh", "atanh"])
def test_infinities_and_nan_are_those_of_c(name):
    values = [0.0, -0.0, 1.0, -2.0, 800.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(re, im) for re in values for im in values])
    with np.errstate(all="ignore"):
        expected = np.abs(getattr(np, {"atanh": "arctanh"}.get(name, name))(z).view("float64"))
    found = np.abs(array(getattr(plugrad, name)(plugrad.tensor(z))).view("float64"))  # C leaves some signs open
    assert np.allclose(found, expected, 1e-12, 1e-12, equal_nan=True)


def test_the_neighbours_of_numbers_are_numpys():
    for dtype, whole in (("float32", "int32"), ("float64", "int64")):
        info = np.finfo(dtype)
        values = np.array([0.0, -0.0, 1, -1, 2, 0.3, np.inf, -np.inf, np.nan, info.tiny, -info.tiny, info.max,
                           info.smallest_subnormal, -info.smallest_subnormal], dtype)
        a, b = (np.ascontiguousarray(each) for each in np.meshgrid(values, values))
        with np.errstate(all="ignore"):
            expected = np.nextafter(a, b)
        found = plugrad.nextafter(plugrad.tensor(a), plugrad.tensor(b)).numpy()
        assert np.all((found.view(whole) == expected.view(whole)) | np.isnan(found) & np.isnan(expected))
    with pytest.raises(TypeError, match="expected floating"):
        plugrad.nextafter(plugrad.tensor([1]), plugrad.tensor([2]))
