"""Fourier transforms: values, dtypes and shapes beside NumPy's, functions of functions, compiled steps, and errors."""
import plugrad
import pytest
from plugrad import fft, func

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("device_under_test")
RANDOM = np.random.default_rng(0)
OF_REAL, TO_REAL = ("rfft", "ihfft", "rfft2", "rfftn"), ("irfft", "hfft", "irfft2", "irfftn")
RESULTS = {"float32": ("complex64", "float32"), "float64": ("complex128", "float64"),
           "complex64": ("complex64", "float32"), "complex128": ("complex128", "float64")}
LINES = [(None, -1), (4, 1), (9, 0), (1, 2)]
SEVERAL = [(None, (0, 1)), ((4, 9), (1, 2)), ((5,), (0,)), (None, (2, 0, 1))]


def numbers(dtype, *shape):
    x = RANDOM.standard_normal(shape)
    return (x + 1j * RANDOM.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def expect(found, expected, dtype):
    kind = RESULTS[dtype][int(not np.iscomplexobj(expected))]
    assert str(found.dtype) == str(plugrad.DType(kind)) and found.shape == expected.shape
    tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    assert np.all(np.abs(np.array(found.tolist()) - expected) <= tolerance * (1 + np.abs(expected).max()))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("dtype", RESULTS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_along_one_axis(name, dtype, norm):
    if name in OF_REAL and dtype.startswith("complex"):
        with pytest.raises(ValueError, match="expected real numbers"):
            getattr(fft, name)(plugrad.tensor(numbers(dtype, 3)))
        return
    x = numbers(dtype, 6, 5, 7)
    for n, axis in LINES:
        expect(getattr(fft, name)(plugrad.tensor(x), n, axis, norm), getattr(np.fft, name)(x, n, axis, norm), dtype)
    expect(getattr(fft, name)(plugrad.tensor(x), axis=1), getattr(np.fft, name)(x, axis=1), dtype)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("dtype", RESULTS)
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"])
def test_along_several_axes(name, dtype, norm):
    if name in OF_REAL and dtype.startswith("complex"):
        return
    x = numbers(dtype, 3, 5, 4)
    mine, theirs = getattr(fft, name), getattr(np.fft, name)
    expect(mine(plugrad.tensor(x), norm=norm), theirs(x, norm=norm), dtype)
    for s, axes in SEVERAL:
        expect(mine(plugrad.tensor(x), s, axes, norm), theirs(x, s, axes, norm), dtype)
        expect(mine(plugrad.tensor(x), s, axes=axes, norm=norm), theirs(x, s, axes, norm), dtype)


def test_the_hermitian_transforms_of_several_axes():
    x = plugrad.tensor(numbers("float64", 3, 4))
    for name in ("2", "n"):
        half = getattr(fft, "ihfft" + name)(x)
        expect(half, np.fft.ifft(np.fft.ihfft(x.numpy()), axis=0), "float64")
        expect(getattr(fft, "hfft" + name)(half, (3, 4)), x.numpy(), "float64")


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    for name in ("fftfreq", "rfftfreq"):
        expected = getattr(np.fft, name)(n, 0.25)
        assert np.array_equal(np.array(getattr(fft, name)(n, 0.25, dtype="float64").tolist()), expected)
        assert str(getattr(fft, name)(n).dtype) == "f32"
    x = RANDOM.standard_normal((n, 3, 4)).astype("float32")
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (1, 2)):
            expected = getattr(np.fft, name)(x, axes)
            assert np.array_equal(np.array(getattr(fft, name)(plugrad.tensor(x), axes).tolist()), expected)
            assert np.array_equal(np.array(getattr(fft, name)(plugrad.tensor(x), axes=axes).tolist()), expected)


FUNCTIONS = {"fft": lambda x: fft.fft(x * 1j + x), "ifft": lambda x: fft.ifft(x, 5, 0), "rfft": fft.rfft,
             "irfft": lambda x: fft.irfft(x * (1 + 2j)), "hfft": lambda x: fft.hfft(x * (1 + 2j), 6),
             "ihfft": lambda x: fft.ihfft(x, dim=0), "fft2": fft.fft2, "irfftn": lambda x: fft.irfftn(x * 1j + x),
             "long": lambda x: fft.irfft(fft.rfft(x, 194), 203)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_functions(name):
    function = FUNCTIONS[name]
    x, tangent = (plugrad.tensor(RANDOM.standard_normal((4, 3, 6)), dtype="float64") for _ in range(2))
    looped = plugrad.stack([function(each) for each in x])
    assert np.abs(np.array((func.vmap(function)(x) - looped).tolist())).max() < 1e-12
    across = func.vmap(function, in_dims=2, out_dims=1)(x.permute(1, 2, 0))
    assert np.abs(np.array((across.movedim(1, 0) - looped).tolist())).max() < 1e-12
    value, derivative = func.jvp(function, (x[0],), (tangent[0],))
    assert np.abs(np.array((derivative - function(tangent[0])).tolist())).max() < 1e-12
    assert np.abs(np.array((plugrad.compile(function)(x[0]) - value).tolist())).max() < 1e-12
    # The gradient of the product with y is the transposed map: <y, f(t)> = <f'(y), t>.
    leaf = x[1].detach().requires_grad_()
    result = function(leaf)
    (result.abs() ** 2).sum().backward()
    slope = (2 * (result.detach().conj() * function(tangent[1]))).sum()
    slope = slope.real if slope.dtype.is_complex else slope
    assert abs(float((leaf.grad * tangent[1]).sum()) - float(slope)) < 1e-9 * (1 + abs(float(slope)))


@pytest.mark.parametrize("name", ["rfft", "irfft", "long"])
def test_gradients_compile(name):
    function = FUNCTIONS[name]
    slope = func.grad(lambda x: (function(x).abs() ** 2).sum())
    x = plugrad.randn(3, 6, dtype="float64")
    assert np.abs(np.array((plugrad.compile(slope)(x) - slope(x)).tolist())).max() < 1e-10


def test_other_dtypes_are_cast():
    for dtype in ("int64", "uint8", "bool", "float16"):
        x = plugrad.tensor([1, 0, 1, 1], dtype=dtype)
        assert str(fft.fft(x).dtype) == "c64" and fft.rfft(x).tolist()[0] == 3
        assert str(fft.irfft(x).dtype) == "f32"


def test_unfit_arguments_are_named():
    x = plugrad.ones(2, 3)
    for call, message in [(lambda: fft.fft(x, 0), "length is 0"), (lambda: fft.fft(x, dim=2), "axis 2"),
                          (lambda: fft.fft(x, norm="both"), "norm 'both' is unknown"),
                          (lambda: fft.fftn(x, (2,), (0, 1)), "one for each axis"),
                          (lambda: fft.fft(plugrad.tensor(1.0)), "no axis"), (lambda: fft.fftfreq(0), "length is 0"),
                          (lambda: fft.rfftn(x, (1, 2, 3)), "one for each axis")]:
        with pytest.raises((ValueError, IndexError), match=message):
            call()
    with pytest.raises(TypeError, match="given twice"):
        fft.fft2(x, dim=(0,), axes=(1,))
    with pytest.raises(TypeError, match="given twice"):
        fft.fftn(x, dim=(0,), axes=(1,))


def test_a_tensor_of_eight_axes_is_refused_by_name():
    with pytest.raises(ValueError, match="8 axes"):
        fft.fft(plugrad.ones(1, 1, 1, 1, 1, 1, 2, 3))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize(("n_fft", "hop", "length"), [(16, 4, 16), (15, 5, 9), (8, 8, 8)])
def test_short_time_transforms(dtype, n_fft, hop, length):
    x = numbers(dtype, 2, 50)
    window = RANDOM.uniform(0.5, 1, length)
    whole = np.pad(window, ((n_fft - length) // 2, n_fft - length - (n_fft - length) // 2))
    padded = np.pad(x, ((0, 0), (n_fft // 2, n_fft // 2)), mode="reflect")
    function = np.fft.fft if dtype.startswith("complex") else np.fft.rfft
    frames = range(0, padded.shape[1] - n_fft + 1, hop)
    expected = np.stack([function(padded[:, i:i + n_fft] * whole) for i in frames], -1)
    w = plugrad.tensor(window, dtype="float64" if dtype == "complex128" else "float32")
    made = plugrad.stft(plugrad.tensor(x), n_fft, hop, length, w)
    expect(made, expected, dtype)
    expect(plugrad.stft(plugrad.tensor(x[0]), n_fft, hop, length, w, normalized=True), expected[0] / n_fft**0.5, dtype)
    parts = plugrad.stft(plugrad.tensor(x), n_fft, hop, length, w, return_complex=False)
    assert plugrad.view_as_complex(parts).tolist() == made.tolist()
    if length == n_fft:  # a shorter window leaves the ends uncovered
        back = plugrad.istft(made, n_fft, hop, length, w, return_complex=dtype.startswith("complex"))
        expect(back, x[:, :back.shape[1]], dtype)
        longer = plugrad.istft(made, n_fft, hop, length, w, length=60, return_complex=dtype.startswith("complex"))
        assert longer.shape == (2, 60)


def test_short_time_transforms_refuse_unfit_lengths():
    x = plugrad.ones(20)
    for call, message in [(lambda: plugrad.stft(x, 16, 0), "hop_length 0"),
                          (lambda: plugrad.stft(x, 8, 2, 9), "win_length is 9"),
                          (lambda: plugrad.stft(x, 8, window=plugrad.ones(7)), "window has shape"),
                          (lambda: plugrad.stft(x, 32, center=False), "expected n_fft, 32"),
                          (lambda: plugrad.stft(x * 1j, 8, onesided=True), "onesided"),
                          (lambda: plugrad.stft(plugrad.ones(2, 3, 4), 8), "shape"),
                          (lambda: plugrad.istft(plugrad.stft(x, 8), 16), "frequencies"),
                          (lambda: plugrad.istft(plugrad.ones(5, 3), 8), "expected complex"),
                          (lambda: plugrad.istft(plugrad.stft(x, 8, 8, 4), 8, 8, 4), "uncovered")]:
        with pytest.raises(ValueError, match=message):
            call()


def test_short_time_transforms_have_gradients_and_compile():
    x, w = plugrad.randn(40, dtype="float64", requires_grad=True), plugrad.windows.hann(8, sym=False, dtype="float64")
    made = plugrad.istft(plugrad.stft(x, 8, window=w), 8, window=w)
    (made * made).sum().backward()
    assert np.allclose(np.array(x.grad.tolist()), 2 * np.array(x.tolist()))  # istft inverts stft
    compiled = plugrad.compile(lambda v: plugrad.istft(plugrad.stft(v, 8, window=w) * 2, 8, window=w))
    for v in (x.detach(), x.detach() + 1):
        assert np.allclose(np.array(compiled(v).tolist()), 2 * np.array(v.tolist()))
