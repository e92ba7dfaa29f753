"""Parametrizations of weights, and lazy modules."""

import copy
import math
import pickle

import pytest

import plugrad
from plugrad import nn, optim
from plugrad.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


class Scaled(nn.Module):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def test_a_parameter_is_computed_from_its_original():
    layer = nn.Linear(3, 3, dtype="f64")
    before = layer.weight.detach().clone()
    assert parametrize.register_parametrization(layer, "weight", Symmetric()) is layer
    assert isinstance(layer, nn.Linear) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias") and type(layer).__name__ == "ParametrizedLinear"
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert layer.weight.tolist() == (before.triu() + before.triu(1).T).tolist()
    x = plugrad.randn(2, 3, dtype="f64")
    layer(x).sum().backward()
    original = layer.parametrizations.weight.original
    assert original.grad.tril(-1).abs().sum().item() == 0 and original.grad.triu().abs().sum().item() > 0
    optim.SGD(layer.parameters(), 0.1).step()
    assert layer.weight.tolist() == layer.weight.T.tolist()
    layer.weight = plugrad.ones(3, 3, dtype="f64")
    assert original.tolist() == plugrad.ones(3, 3).triu().tolist()
    state = layer.state_dict()
    other = parametrize.register_parametrization(nn.Linear(3, 3, dtype="f64"), "weight", Symmetric())
    other.load_state_dict(state)
    assert other.weight.tolist() == layer.weight.tolist()


def test_several_parametrizations_are_called_in_turn():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Scaled(3.0))
    assert layer.parametrizations.weight.original is weight  # an optimiser that has it goes on
    parametrize.register_parametrization(layer, "weight", Scaled(2.0))
    assert layer.weight.tolist() == (weight * 6).tolist()
    with pytest.raises(RuntimeError, match="Scaled has no method right_inverse"):
        layer.weight = plugrad.ones(2, 2)
    calls = []

    class Counted(nn.Module):
        def forward(self, x):
            calls.append(1)
            return x
    parametrize.register_parametrization(layer, "bias", Counted())
    calls.clear()
    with parametrize.cached():
        assert layer.bias is layer.bias and len(calls) == 1
    assert layer.bias.tolist() == layer.bias.tolist() and len(calls) == 3


def test_parametrizations_are_removed_copied_and_pickled():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Scaled(2.0))
    parametrize.register_parametrization(layer, "bias", Scaled(3.0))
    copied = copy.deepcopy(layer)
    weight, original = layer.weight.detach().clone(), layer.parametrizations.weight.original
    parametrize.remove_parametrizations(copied, "weight")
    parametrize.remove_parametrizations(copied, "bias", leave_parametrized=False)
    assert type(copied) is nn.Linear and copied.weight.tolist() == weight.tolist() and copied.weight._is_parameter
    assert copied.bias.tolist() == layer.parametrizations.bias.original.tolist()
    assert layer.weight.tolist() == weight.tolist() and layer.parametrizations.weight.original is original
    network = nn.Sequential(nn.Linear(3, 2), parametrizations.spectral_norm(nn.Linear(2, 2)))
    again = pickle.loads(pickle.dumps(network)).eval()
    assert again(plugrad.ones(1, 3)).tolist() == network.eval()(plugrad.ones(1, 3)).tolist()
    assert parametrize.is_parametrized(again[1])


@pytest.mark.parametrize("dim, shape", [(0, (4, 1)), (1, (1, 3)), (-1, ()), (None, ())])
def test_weight_norm_keeps_the_weight_and_learns_its_length(dim, shape):
    layer = nn.Linear(3, 4, dtype="f64")
    before = layer.weight.detach().clone()
    parametrizations.weight_norm(layer, dim=dim)
    length, direction = layer.parametrizations.weight.original0, layer.parametrizations.weight.original1
    assert length.shape == shape and direction.tolist() == before.tolist()
    assert plugrad.allclose(layer.weight, before, rtol=1e-14)
    with plugrad.no_grad():
        length.mul_(2.0)
        direction.mul_(5.0)
    assert plugrad.allclose(layer.weight, before * 2, rtol=1e-14)
    layer.weight = before * 3
    assert plugrad.allclose(layer.weight, before * 3, rtol=1e-14)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original0",
                                                              "parametrizations.weight.original1"]
    loss = (layer.weight ** 2).sum()
    loss.backward()
    assert (direction.grad * direction).sum().item() == pytest.approx(0, abs=1e-12)  # the direction's length is free


@pytest.mark.parametrize("layer, axis", [(lambda: nn.Linear(5, 3, dtype="f64"), 0),
                                         (lambda: nn.Conv2d(2, 3, 3, dtype="f64"), 0),
                                         (lambda: nn.ConvTranspose1d(2, 3, 3, dtype="f64"), 1)])
def test_spectral_norm_divides_by_the_largest_singular_value(layer, axis):
    plugrad.manual_seed(0)
    made = layer()
    before = made.weight.detach().clone()
    parametrizations.spectral_norm(made, n_power_iterations=200)
    matrix = before.movedim(axis, 0).reshape(before.shape[axis], -1)
    largest = plugrad.linalg.svdvals(matrix)[0]
    assert plugrad.allclose(made.weight, before / largest, rtol=1e-9)
    assert {name for name, _ in made.named_buffers()} == {"parametrizations.weight.0._u", "parametrizations.weight.0._v"}
    made.eval()
    assert made.weight.tolist() == made.weight.tolist()


def test_spectral_norm_trains_in_compiled_steps():
    results = []
    for compiled in (False, True):
        plugrad.manual_seed(0)
        model = nn.Sequential(parametrizations.spectral_norm(nn.Linear(3, 4)), nn.Tanh(),
                              parametrizations.weight_norm(nn.Linear(4, 1)))
        optimizer = optim.Adam(model.parameters(), 0.05)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            optimizer.step()
            return loss
        run = plugrad.compile(step) if compiled else step
        losses = [run(plugrad.tensor([[1.0, i / 8, -1.0]])).item() for i in range(8)]
        results.append((losses, [each.tolist() for each in model.state_dict().values()]))
        assert not compiled or run.figures().replayed >= 6
    assert results[0] == results[1]


@pytest.mark.parametrize("call, error, message", [
    (lambda: parametrize.register_parametrization(nn.Linear(2, 3), "weights", Scaled(2)), ValueError,
     "no parameter 'weights'"),
    (lambda: parametrize.register_parametrization(nn.Linear(2, 3), "weight", nn.Flatten(0)), ValueError,
     r"gives f32 \(6,\), the parameter is f32 \(3, 2\)"),
    (lambda: parametrize.remove_parametrizations(nn.Linear(2, 3), "weight"), ValueError, "no parametrization of 'weight'"),
    (lambda: parametrize.remove_parametrizations(parametrizations.weight_norm(nn.Linear(2, 3)), "weight", False), ValueError,
     "several originals"),
    (lambda: parametrizations.weight_norm(nn.Linear(2, 3), dim=2), ValueError, "dim is 2: expected an axis from 0 to 1"),
    (lambda: parametrizations.spectral_norm(nn.Linear(2, 3), "kernel"), ValueError, "'kernel' must be a parameter"),
    (lambda: parametrizations.spectral_norm(nn.Linear(2, 3), n_power_iterations=0), ValueError, "at least 1"),
])
def test_parametrizations_name_what_makes_no_sense(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- Lazy modules.

@pytest.mark.parametrize("make, plain, shape", [
    (lambda: nn.LazyLinear(4, bias=False), lambda: nn.Linear(5, 4, bias=False), (2, 3, 5)),
    (lambda: nn.LazyConv1d(4, 3, groups=2), lambda: nn.Conv1d(6, 4, 3, groups=2), (2, 6, 7)),
    (lambda: nn.LazyConv2d(4, 3, padding=1), lambda: nn.Conv2d(5, 4, 3, padding=1), (2, 5, 4, 4)),
    (lambda: nn.LazyConv3d(2, 1), lambda: nn.Conv3d(3, 2, 1), (3, 2, 2, 2)),
    (lambda: nn.LazyConvTranspose1d(4, 3), lambda: nn.ConvTranspose1d(5, 4, 3), (2, 5, 7)),
    (lambda: nn.LazyConvTranspose2d(4, 3), lambda: nn.ConvTranspose2d(5, 4, 3), (2, 5, 4, 4)),
    (lambda: nn.LazyConvTranspose3d(2, 1), lambda: nn.ConvTranspose3d(3, 2, 1), (1, 3, 2, 2, 2)),
    (lambda: nn.LazyBatchNorm1d(eps=1e-3), lambda: nn.BatchNorm1d(5, eps=1e-3), (4, 5)),
    (lambda: nn.LazyBatchNorm2d(), lambda: nn.BatchNorm2d(5), (2, 5, 3, 3)),
    (lambda: nn.LazyBatchNorm3d(), lambda: nn.BatchNorm3d(2), (2, 2, 2, 2, 2)),
    (lambda: nn.LazyInstanceNorm1d(affine=True), lambda: nn.InstanceNorm1d(5, affine=True), (2, 5, 4)),
    (lambda: nn.LazyInstanceNorm2d(affine=True), lambda: nn.InstanceNorm2d(5, affine=True), (2, 5, 3, 3)),
    (lambda: nn.LazyInstanceNorm3d(affine=True), lambda: nn.InstanceNorm3d(2, affine=True), (2, 2, 2, 2, 2)),
])
def test_lazy_modules_become_what_the_first_input_tells(make, plain, shape):
    wanted, x = plain(), plugrad.randn(*shape)
    loaded, called = make().eval(), make()
    assert "Lazy" in repr(called) and not list(called.parameters())
    called(x)
    loaded.load_state_dict(wanted.state_dict())
    assert repr(called) == repr(loaded) == repr(wanted) and type(called) is type(loaded) is type(wanted)
    assert called.training and not loaded.training
    assert loaded(x).tolist() == wanted.eval()(x).tolist()
    assert [each.shape for each in called.parameters()] == [each.shape for each in wanted.parameters()]


def test_lazy_modules_in_a_model():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2))
    with pytest.raises(ValueError, match="no parameters"):
        optim.SGD(model.parameters())
    before = copy.deepcopy(model)
    assert model(plugrad.zeros(1, 3, 8, 8)).shape == (1, 2) and model[3].in_features == 4 * 36
    before.load_state_dict(model.state_dict())
    x = plugrad.randn(2, 3, 8, 8)
    assert before(x).tolist() == model(x).tolist()
    with pytest.raises(TypeError, match="out_features"):
        nn.LazyLinear()
    with pytest.raises(ValueError, match=r"\[LazyConv2d\] x has the shape \(2, 3\): expected at least 3 dims"):
        nn.LazyConv2d(4, 3)(plugrad.zeros(2, 3))
    assert math.isfinite(model(x).sum().item())
