"""What functions of functions leave behind: memory, tensors from outside, gradients, versions, generators."""
import plugrad
import pytest
from driver import DEVICE
from plugrad import func, nn

np = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("device_under_test")


def ones(*shape):
    return plugrad.ones(*shape, device=DEVICE)


def zeros(*shape):
    return plugrad.zeros(*shape, device=DEVICE)


@pytest.fixture(autouse=True)
def dirty_memory():
    """Free memory that holds large numbers, for whatever reads memory that nothing wrote."""
    for count in (1, 3, 6, 12, 40, 4000):
        kept = [plugrad.full((count,), 9e9, device=DEVICE) for _ in range(8)]
        del kept


# --- Memory

def test_results_written_in_parts_at_several_levels():
    x, y = ones(2, 3) * 5, ones(2, 3) * 7
    nested = func.vmap(lambda a: func.vmap(lambda b: plugrad.cat([a, b]))(y))(x)
    assert nested.tolist() == [[[5, 5, 5, 7, 7, 7]] * 2] * 2
    jacobian = func.jacrev(func.vmap(lambda b: (b[:2] ** 2).sum()))(ones(2, 3))
    assert jacobian.tolist() == [[[2, 2, 0], [0, 0, 0]], [[0, 0, 0], [2, 2, 0]]]

    def rows(a, b):
        out = zeros(2, 3)
        out[0] = a
        out[1] = b
        return out

    assert func.vmap(lambda a: func.vmap(lambda b: rows(a, b))(x))(y)[0, 0].tolist() == [[7, 7, 7], [5, 5, 5]]

    def cloned(a):
        out = zeros(2, 3)
        out[0] = a

        def inner(b):
            copy = out.clone()
            copy[1] = b
            return copy

        return func.vmap(inner)(x)

    assert func.vmap(cloned)(y)[0, 0].tolist() == [[7, 7, 7], [5, 5, 5]]
    value, tangent = func.jvp(lambda a: func.jvp(lambda b: plugrad.cat([a, b]), (x[0],), (y[0],))[1], (y[0],), (x[0],))
    assert value.tolist() == [0, 0, 0, 7, 7, 7]
    assert tangent.tolist() == [0] * 6


@pytest.mark.parametrize("name", ["prod", "cumprod", "cat", "part", "shifted", "softmax"])
def test_second_derivatives_agree_in_all_modes(name):
    f = {"prod": lambda a: a.prod(), "cumprod": lambda a: a.cumprod(0),
         "cat": lambda a: (plugrad.cat([a, a * 2]) ** 3).sum(), "part": lambda a: (a[:3] ** 3).sum(),
         "shifted": lambda a: a[1:] * a[:-1], "softmax": lambda a: a.softmax(0)[0]}[name]
    x = plugrad.tensor([0.5, -1.5, 2.0, 0.75, -0.25], device=DEVICE)
    wanted = func.jacfwd(func.jacfwd(f))(x)
    for outer in (func.jacrev, func.jacfwd):
        for inner in (func.jacrev, func.jacfwd):
            assert plugrad.allclose(outer(inner(f))(x), wanted, atol=1e-5), (outer, inner)


@pytest.mark.parametrize("use", [lambda x: x.numpy(), np.asarray, lambda x: x.data_ptr(), lambda x: np.from_dlpack(x)])
def test_other_libraries_see_no_memory_inside(use):
    leaked = []
    for transform in (func.vmap(lambda v: (leaked.append(v * 2), use(v * 2))[0]),
                      lambda v: func.jvp(lambda a: (leaked.append(a * 2), use(a * 2))[0], (v,), (v,))):
        with pytest.raises((ValueError, BufferError, RuntimeError)):
            transform(ones(2, 3))
    with pytest.raises((ValueError, BufferError, RuntimeError)):
        use(leaked[0])


def test_memory_is_freed():
    def train(x):
        return func.vmap(func.grad(lambda v: (v.exp() * 2).sum()))(x)

    x = ones(64, 4096)
    train(x)
    before = x.device.memory().active
    for _ in range(3):
        train(x)
    assert x.device.memory().active == before


# --- Tensors from outside

def test_writes_into_tensors_from_outside():
    outside = zeros(3)

    def after_a_constant(v):
        outside.zero_()
        outside.add_(v)
        return v

    for f in (after_a_constant, outside.add_, outside.copy_):
        with pytest.raises(ValueError, match="writes in place into a tensor from outside"):
            func.vmap(f)(ones(2, 3))
        assert outside.tolist() == [0, 0, 0]
    leaked = []
    func.vmap(lambda v: (leaked.append(v), v)[1])(ones(2, 3))
    with pytest.raises(ValueError, match="after the function has ended"):
        outside.add_(leaked[0])
    assert outside.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="eval"):
        func.vmap(nn.BatchNorm1d(3).to(DEVICE))(plugrad.randn(4, 7, 3, device=DEVICE))


def test_writes_into_empty_tensors():
    def copied(v):
        out = plugrad.empty(3, device=DEVICE)
        out.copy_(v)
        return out

    def in_parts(v):
        out = plugrad.empty_like(v)
        out[0] = 1
        out[1:] = v[1:]
        return out

    assert func.vmap(copied)(ones(2, 3)).tolist() == [[1, 1, 1]] * 2
    assert func.vmap(in_parts)(ones(2, 3) * 3).tolist() == [[1, 3, 3]] * 2
    numbers = func.vmap(lambda v: plugrad.empty(3, device=DEVICE).uniform_() + 0 * v, randomness="different")(ones(2, 3))
    assert len(set(numbers.flatten().tolist())) == 6


# --- Gradients

@pytest.mark.parametrize("watch", [lambda h: h.retain_grad(), lambda h: h.register_hook(lambda g: None), lambda h: None])
def test_gradients_past_watched_tensors_inside(watch):
    w = ones(3).requires_grad_(True)

    def f(a):
        h = a * w
        watch(h)
        return (h * a).sum()

    x = plugrad.tensor([[1.0, 2, 3], [4, 5, 6]], device=DEVICE)
    func.vmap(f)(x).sum().backward()
    assert w.grad.tolist() == [17, 29, 45]
    w.grad = None
    func.jvp(f, (x[0],), (x[1],))[1].backward()
    assert w.grad.tolist() == (2 * x[0] * x[1]).tolist()


def test_functions_outside_get_sums():
    class Clamped(plugrad.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 1

        @staticmethod
        def backward(ctx, g):
            assert g.tolist() == [4, 4, 4]
            return g.clamp(-0.5, 0.5)

    w = ones(3).requires_grad_(True)
    outside = Clamped.apply(w)
    func.vmap(lambda a: (a * outside).sum())(ones(4, 3)).sum().backward()
    assert w.grad.tolist() == [0.5, 0.5, 0.5]


def test_backward_inside_leaves_no_gradient_of_examples():
    w = nn.Parameter(ones(5))
    with pytest.raises(ValueError, match=r"use func\.grad"):
        func.vmap(lambda a: ((a * w).sum().backward(), a)[1])(ones(3, 5))
    assert w.grad is None


def test_writes_between_forward_and_backward():
    z = ones(3, 5).requires_grad_(True)
    inside = z * 1
    for out in (func.vmap(lambda a: a * a)(inside), func.jvp(lambda a: a * a, (inside,), (z,))[0]):
        with plugrad.no_grad():
            inside.mul_(10)
        with pytest.raises(ValueError, match="changed in place"):
            out.sum().backward()
    out = func.vmap(plugrad.exp)(z)
    with plugrad.no_grad():
        out.mul_(10)
    with pytest.raises(ValueError, match="changed in place"):
        out.sum().backward()


def test_gradients_of_compiled_functions():
    step = plugrad.compile(lambda a: (a * a).sin())
    x = plugrad.tensor([0.5, 1.0], device=DEVICE)
    for _ in range(3):
        step(x)
        assert plugrad.allclose(func.grad(lambda a: step(a).sum())(x), 2 * x * plugrad.cos(x * x))
        assert plugrad.allclose(func.jacrev(step)(x), plugrad.diag(2 * x * plugrad.cos(x * x)))


def test_forms_of_tangents_and_cotangents():
    one, zero = ones(1), zeros(1)
    given = {"a": one, "b": one}
    assert func.jvp(lambda d: d["a"] * 2 + d["b"], (given,), ({"b": zero, "a": one},))[1].item() == 2
    _, pullback = func.vjp(lambda a: {"u": a * 2, "v": a * 3}, one)
    assert pullback({"v": zero, "u": one})[0].item() == 2
    for wrong in ({"u": one}, {"u": one, "w": one}, (one, one), {"u": one, "v": 1.0}):
        with pytest.raises((ValueError, TypeError), match="vjp"):
            pullback(wrong)
    with pytest.raises(ValueError, match="another form"):
        func.jvp(lambda a, b: a, (one, one), ((one, one),))


def test_jacobians_without_elements():
    assert func.jacrev(lambda a: a[:0])(ones(5)).shape == (0, 5)
    assert func.jacfwd(lambda a: a[:0])(ones(5)).shape == (0, 5)
    assert func.jacfwd(lambda a: a.sum())(ones(0)).shape == (0,)
    assert func.jacrev(lambda a: a.sum())(ones(0)).shape == (0,)


# --- Modes

def test_the_same_numbers_in_all_chunks():
    plugrad.manual_seed(0)
    made = func.vmap(lambda a: a * 0 + plugrad.rand(5, device=DEVICE), randomness="same", chunk_size=1)(ones(3, 5))
    assert len({tuple(row) for row in made.tolist()}) == 1


def test_search_for_nan():
    with plugrad.detect_anomaly():
        assert func.vmap(func.grad(lambda b: (b * b).sum()))(ones(2, 3)).tolist() == [[2, 2, 2]] * 2
        x = ones(2, 3).requires_grad_(True)
        func.vmap(lambda b: (b * b).sum())(x).sum().backward()
        with pytest.raises(ValueError, match="NaN|nan"):
            func.vmap(func.grad(lambda b: (b * 0).sqrt().mul(0).sum()))(zeros(2, 3))


def test_errors_leave_no_transform_behind():
    def fails(v):
        raise KeyError("inside")

    for transform in (func.vmap(fails), lambda x: func.jvp(fails, (x,), (x,)), func.vmap(func.grad(fails)),
                      func.jacfwd(fails)):
        with pytest.raises(KeyError):
            transform(ones(2, 3))
    assert ones(3).sum().item() == 3
    step = plugrad.compile(lambda a: a + 1)
    for _ in range(3):
        step(ones(3))
    assert step.figures().replayed == 2


@pytest.mark.filterwarnings("ignore")
def test_memory_of_tensors_kept_past_a_recording():
    kept = []

    @plugrad.compile
    def step(x):
        return func.vmap(lambda v: (kept.append(v * 3), v * 2)[1])(x)

    for _ in range(3):
        step(ones(2, 3))
    kept.clear()
    fresh = [ones(3) + i for i in range(200)]
    assert [each.tolist() for each in fresh] == [[1 + i] * 3 for i in range(200)]


def test_what_jacobians_refuse():
    for numbers in ((0, 0), (1, -1)):
        with pytest.raises(ValueError, match="each argument once"):
            func.grad(lambda a, b: (a * b).sum(), numbers)(ones(3), ones(3))
    for jacobian in (func.jacrev, func.jacfwd):
        with pytest.raises(ValueError, match="has no derivatives"):
            jacobian(lambda a: a.argmax())(ones(3))
