"""Behaviour of PyTorch's names beyond values: modules, optimisers, and the order of parameters."""
import math
import warnings

import plugrad
import pytest
from plugrad import Tensor, nn, optim


class Tied(nn.Module):
    """Two layers that share a weight, like the head and the embedding of a language model."""

    def __init__(self):
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.again = self.a


def test_shared_parameters_and_modules_come_once():
    net = Tied()
    assert [name for name, _ in net.named_parameters()] == ["a.weight"]
    assert [name for name, _ in net.named_parameters(remove_duplicate=False)] == ["a.weight", "b.weight", "again.weight"]
    assert [name for name, _ in net.named_modules()] == ["", "a", "b"]
    assert [name for name, _ in net.named_modules(remove_duplicate=False)] == ["", "a", "b", "again"]
    assert set(net.state_dict()) == {"a.weight", "b.weight", "again.weight"}
    assert net.get_parameter("b.weight") is net.b.weight and net.get_submodule("again") is net.a
    assert len(net.parameters()) == 1


def test_a_shared_parameter_is_stepped_once():
    net = Tied()
    plugrad.nn.init.ones_(net.a.weight)
    optimizer = optim.SGD([{"params": [p for _, p in net.named_parameters()]}], lr=1)
    net.a.weight.sum().backward()
    optimizer.step()
    assert net.b.weight.tolist() == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="once"):
        optim.SGD([net.a.weight, net.b.weight], lr=1)


def test_parameters_are_a_list_and_an_iterator():
    parameters = nn.Linear(2, 3).parameters()
    assert next(parameters).shape == (3, 2) and next(parameters).shape == (3,) and len(parameters) == 2
    assert [p.shape for p in parameters] == [(3, 2), (3,)]


def test_a_parameter_is_not_replaced_by_another_tensor():
    net = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="'weight' is a parameter"):
        net.weight = net.weight * 2
    net.weight = nn.Parameter(plugrad.ones(2, 2))
    net.bias = None
    assert [name for name, _ in net.named_parameters()] == ["weight"]
    net.register_parameter("bias", nn.Parameter(plugrad.ones(2)))
    net.add_module("inner", nn.Linear(1, 1))
    assert [name for name, _ in net.named_parameters()] == ["weight", "bias", "inner.weight", "inner.bias"]


def test_parameters_are_instances_and_modules_attributes():
    x = nn.Parameter([1.0, 2.0])
    assert isinstance(x, nn.Parameter) and isinstance(x, Tensor)
    assert not isinstance(x * 2, nn.Parameter) and not isinstance(3, nn.Parameter)
    modules = nn.ModuleDict({"a": nn.Linear(1, 1)})
    modules.update({"b": nn.ReLU()})
    assert modules.a is modules["a"] and list(modules.keys()) == ["a", "b"] and len(list(modules.values())) == 2
    with pytest.raises(AttributeError, match="'c'"):
        modules.c  # noqa: B018
    assert next(nn.Sequential(nn.Linear(2, 1)).parameters()).shape == (1, 2)


def test_a_removed_hook_stays_the_only_one_removed():
    net, calls = nn.Identity(), []
    first = net.register_forward_hook(lambda *_: calls.append(1))
    first.remove()
    net.register_forward_hook(lambda *_: calls.append(2))
    first.remove()
    net(plugrad.ones(1))
    assert calls == [2]


def test_the_state_of_an_optimizer_holds_its_options(tmp_path):
    x = Tensor([5.0])
    optimizer = optim.Adam([x], 0.1, betas=(0.8, 0.9))
    (x * x).backward()
    optimizer.step()
    optimizer.lr = 1e-3
    plugrad.save(optimizer.state_dict(), tmp_path / "state.safetensors")
    again = optim.Adam([x], 0.1)
    again.load_state_dict(plugrad.load(tmp_path / "state.safetensors"))
    assert (again.lr, again.param_groups[0]["betas"], again.steps) == (1e-3, (0.8, 0.9), 1)
    state = optimizer.state_dict()
    for wrong in ({"param_groups.0.lr": Tensor(math.nan)}, {"exp_avg.0": plugrad.ones(3)},
                  {"param_groups.1.lr": Tensor(1.0)}):
        other = optim.Adam([x], 0.1)
        with pytest.raises(ValueError):
            other.load_state_dict({**state, **wrong})
        assert (other.lr, other.steps) == (0.1, 0)
    del state["steps"]
    with pytest.raises(ValueError, match="steps"):
        again.load_state_dict(state)


def test_positional_parameters_have_pytorchs_order():
    x = plugrad.tensor([[1.0, 2, 4], [3, 2, 1]], dtype="f64")
    assert x.var(0, False).tolist() == [1, 0, 2.25]
    assert x.var(0, True).tolist() == [2, 0, 4.5]
    assert x.std(1, False, True).shape == (2, 1)
    assert plugrad.var_mean(x, 0, False)[0].tolist() == [1, 0, 2.25]
    assert x.var(0, keepdim=True, correction=0).tolist() == [[1, 0, 2.25]]
    optim.SGD([nn.Parameter([1.0])], 0.1, 0.9, 0, 1e-4, True)
    assert optim.SGD([nn.Parameter([1.0])], 0.1, 0.9, 1e-4).param_groups[0]["dampening"] == 1e-4
    for call in (lambda: nn.CrossEntropyLoss(None, True), lambda: nn.NLLLoss(None, True),
                 lambda: nn.MultiheadAttention(4, 2, 0.0, True, True), lambda: nn.PoissonNLLLoss(True, False, False)):
        with pytest.raises(TypeError):
            call()


def test_a_row_that_sees_nothing_is_zero_with_and_without_weights():
    plugrad.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    x = plugrad.randn(1, 3, 4)
    mask = plugrad.tensor([[False, True, True], [True, True, True], [False, False, False]])
    results = []
    for need_weights in (True, False):
        attention.zero_grad()
        out, weights = attention(x, x, x, attn_mask=mask, need_weights=need_weights)
        out.sum().backward()
        results.append((out.tolist(), [p.grad.tolist() for p in attention.parameters()]))
        if need_weights:
            assert weights[0, 1].tolist() == [0, 0, 0]
    flat = [plugrad.tensor(a) for r in results for a in (r[0], *r[1])]
    assert all(plugrad.isfinite(each).all() for each in flat)
    half = len(flat) // 2
    assert all(plugrad.allclose(a, b, atol=1e-6) for a, b in zip(flat[:half], flat[half:], strict=True))


@pytest.mark.parametrize("offsets", [[0, 3, 1], [1, 2], [0, 9], [-1, 2]])
def test_offsets_of_bags_rise(offsets):
    with pytest.raises(ValueError, match="offsets"):
        plugrad.embedding_bag(plugrad.ones(5, 2), plugrad.tensor([0, 1, 2, 3]), plugrad.tensor(offsets))


@pytest.mark.parametrize("call", [
    lambda x, i: plugrad.index_select(x, 0, i), lambda x, i: plugrad.index_add(x, 0, i, plugrad.ones(1)),
    lambda x, i: plugrad.index_copy(x, 0, i, plugrad.ones(1)), lambda x, i: plugrad.scatter(x, 0, i, plugrad.ones(1)),
    lambda x, i: plugrad.scatter_add(x, 0, i, plugrad.ones(1)), lambda x, i: plugrad.gather(x, 0, i),
    lambda x, i: plugrad.scatter_reduce(x, 0, i, plugrad.ones(1), "amax"),
    lambda x, i: plugrad.index_reduce(x, 0, i, plugrad.ones(1), "amax")])
def test_negative_indices_are_out_of_range(call):
    x = plugrad.zeros(3)
    call(x, plugrad.tensor([2]))
    for wrong in (-1, 3):
        with pytest.raises(IndexError):
            call(x, plugrad.tensor([wrong])).tolist()


def test_neighbours_beyond_the_range_of_floats_differ():
    a, b = plugrad.tensor([2**53 + 1]), plugrad.tensor([2**53])
    assert not plugrad.isclose(a, b, rtol=0, atol=0).item() and plugrad.isclose(a, b, rtol=0, atol=1).item()
    assert not plugrad.isclose(plugrad.tensor([-2**63]), plugrad.tensor([2**63 - 1]), atol=1e18).item()
    assert plugrad.isclose(plugrad.tensor([-2**63]), plugrad.tensor([2**63 - 1]), atol=2e19).item()
    assert not plugrad.allclose(a, b, rtol=0, atol=0)


# Computed by mpmath with 50 digits: -sqrt(2) erfinv(1 - 2 p).
TAIL = {0.3: -0.52440051270804081597, 1e-3: -3.0902323061678135354, 1e-17: -8.4937932241095980661,
        1e-30: -11.46402468844361572, 1e-100: -21.273453560965324294, 1e-300: -37.047096299361199237,
        5e-324: -38.467405617144346251}


@pytest.mark.parametrize("p", TAIL)
def test_inverse_of_the_normal_distribution_in_its_tail(p):
    assert plugrad.ndtri(Tensor(p, dtype="f64")).item() == pytest.approx(TAIL[p], rel=4e-16)
    if p > 1e-40:
        single = Tensor(p, dtype="f32")
        assert plugrad.ndtri(single).item() == pytest.approx(TAIL[p], rel=2e-7)


def test_derivatives_where_the_result_has_lost_the_digits():
    x = Tensor([-40.0, 3.0], dtype="f64")
    plugrad.expm1(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([math.exp(-40), math.exp(3)], rel=1e-15)
    for dtype, size, expected in (("f32", 0.0, 0.0), ("f32", 1e-30, 5e29), ("f64", 1e-200, 5e199), ("f64", 1e200, 5e-201)):
        y, x = Tensor(size, dtype=dtype), Tensor(size, dtype=dtype)
        plugrad.atan2(y, x).backward()
        assert [y.grad.item(), x.grad.item()] == pytest.approx([expected, -expected], rel=1e-6)


def test_names_that_programs_for_pytorch_begin_with():
    device = plugrad.device("cuda" if plugrad.cuda.is_available() else "cpu")
    assert str(plugrad.ones(1, device=device).device).startswith(device.name.split(":")[0])
    from plugrad.utils.data import DataLoader, TensorDataset  # noqa: PLC0415
    batch, = next(iter(DataLoader(TensorDataset(plugrad.arange(4)), batch_size=2)))
    assert batch.tolist() == [0, 1]
    state = plugrad.get_rng_state()
    first = plugrad.randn(3).tolist()
    plugrad.set_rng_state(state)
    assert plugrad.randn(3).tolist() == first


def test_steps_with_a_closure_and_gradients_of_zero():
    x = nn.Parameter([2.0])
    optimizer = optim.SGD([x], 0.1)

    def closure():
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4 and x.tolist() == pytest.approx([1.6])
    optimizer.zero_grad(set_to_none=False)
    assert x.grad.tolist() == [0]
    net = nn.Linear(1, 1)
    net(plugrad.ones(1, 1)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert net.weight.grad.tolist() == [[0]]
    net.zero_grad()
    assert net.weight.grad is None
    optim.Adam([x], 1e-3, (0.9, 0.999), 1e-8, 0, False)
    with pytest.raises(ValueError, match="differentiable"):
        optim.AdamW([x], differentiable=True)


# --- Lifetimes of objects.

def test_a_hook_that_refers_to_its_own_tensor_is_named():
    class Net(nn.Module):
        def __init__(self):
            self.w = nn.Parameter([1.0])
            self.w.register_hook(self.seen)

        def seen(self, grad):
            return grad

    x = plugrad.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="its own tensor"):
        x.register_hook(lambda grad: grad * x)
    with pytest.warns(UserWarning, match="its own tensor"):
        Net()
    other, seen = plugrad.ones(2), []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.register_hook(lambda grad: grad * other)
        x.register_hook(seen.append)


def test_gradients_with_graphs_are_named():
    x = plugrad.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="create_graph"):
        (x * x).sum().backward(create_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugrad.autograd.grad((x * x).sum(), x, create_graph=True)
