"""Neuron, Layer, MLP, and micrograd's demo."""
import copy
import pickle

import plugrad
import pytest
from plugrad import MLP, Layer, Neuron, Value


def test_texts():
    assert repr(Neuron(2)) == "ReLUNeuron(2)"
    assert repr(Neuron(3, nonlin=False)) == "LinearNeuron(3)"
    assert repr(Layer(2, 2)) == "Layer of [ReLUNeuron(2), ReLUNeuron(2)]"
    assert repr(MLP(2, [2, 1])) == "MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(2)]]"


def test_the_seeded_neuron_of_micrograd(moons):
    neuron = Neuron(2)
    for weight, number in zip(neuron.w, moons["parameters"]):
        weight.data = number
    x = [Value(1.0), Value(-2.0)]
    y = neuron(x)
    assert y.data == pytest.approx(0.102443419482938, abs=1e-15)
    y.backward()
    assert [w.grad for w in neuron.w] == [1, -2]
    assert neuron.b.grad == 1
    assert [v.grad for v in x] == [0.23550571390294128, 0.06653114721000164]


def test_attributes_are_the_same_objects_each_time():
    model = MLP(2, [3, 1])
    assert model.layers[0].neurons[1].w[0] is model.layers[0].neurons[1].w[0]
    assert model.layers[0] is model.layers[0]
    neuron = model.layers[1].neurons[0]
    assert model.parameters()[-1] is neuron.b and len(neuron.w) == 3
    assert len(model.parameters()) == 3 * 3 + 4
    assert not neuron.nonlin


def test_parts_outlive_the_whole():
    neuron = MLP(2, [3, 1]).layers[0].neurons[0]
    assert neuron([1, 2]).data == neuron([Value(1), 2.0]).data


def test_numbers_and_values_are_inputs():
    model = MLP(3, [4, 2])
    by_numbers, by_values = model([1, 2.5, -3]), model([Value(1), Value(2.5), Value(-3)])
    assert [v.data for v in by_numbers] == [v.data for v in by_values]
    assert isinstance(MLP(3, [4, 1])([1, 2, 3]), Value)
    with pytest.raises(ValueError, match="2"):
        Neuron(3)([1, 2])
    with pytest.raises(ValueError):
        model([1, 2])
    with pytest.raises(TypeError):
        model(["a", "b", "c"])


def test_a_layer_is_its_neurons_side_by_side():
    """A layer computes with a matrix, and neurons compute one by one."""
    layer, x = Layer(3, 4), [Value(0.5), Value(-1.5), Value(2)]
    together = layer(x)
    sum(v * k for k, v in enumerate(together, 1)).backward()
    gradients = [p.grad for p in layer.parameters()] + [v.grad for v in x]
    layer.zero_grad()
    for v in x:
        v.zero_grad()
    alone = [neuron(x) for neuron in layer.neurons]
    sum(v * k for k, v in enumerate(alone, 1)).backward()
    assert [v.data for v in together] == pytest.approx([v.data for v in alone], rel=1e-15)
    assert gradients == pytest.approx([p.grad for p in layer.parameters()] + [v.grad for v in x], rel=1e-14)


def test_what_a_layer_was_computed_from():
    model, x = MLP(2, [3, 1]), [Value(1), Value(2)]
    y = model(x)
    assert y._prev == {*x, *model.parameters()} and y._op == "layer"


def test_changed_weights_are_seen():
    layer = Layer(1, 2, nonlin=False)
    for k in range(3):
        for neuron in layer.neurons:
            neuron.w[0].data = k
        assert [v.data for v in layer([2.0])] == [2.0 * k] * 2


def test_zero_grad():
    model = MLP(2, [2, 1])
    model([1.0, 2.0]).backward()
    assert any(p.grad for p in model.parameters())
    model.zero_grad()
    assert all(p.grad == 0 for p in model.parameters())


def test_seeds():
    def numbers(seed=None):
        return [p.data for p in MLP(2, [3, 1], seed=seed).parameters()]
    assert numbers(5) == numbers(5) != numbers(6)
    plugrad.manual_seed(5)
    assert numbers() == numbers(5)
    plugrad.manual_seed(7)
    first = numbers()
    plugrad.manual_seed(7)
    numbers(1)  # a given seed does not change the generator
    assert numbers() == first
    assert all(-1 <= p.data < 1 for p in Neuron(100, seed=1).w) and Neuron(100, seed=1).b.data == 0


def test_other_devices():
    model = MLP(2, [2, 1], device="reference")
    assert str(model([1, 2]).device) == "reference"


def test_the_moons_demo(moons):
    """Trains as micrograd's notebook does, and compares the losses with the recorded losses."""
    model = MLP(2, [16, 16, 1])
    for parameter, number in zip(model.parameters(), moons["parameters"], strict=True):
        parameter.data = number
    for step, loss, accuracy in moons["steps"][:30]:
        scores = [model(list(map(Value, point))) for point in moons["points"]]
        losses = [(1 + -label * score).relu() for label, score in zip(moons["labels"], scores)]
        data_loss = sum(losses) * (1.0 / len(losses))
        total = data_loss + 1e-4 * sum(p * p for p in model.parameters())
        right = sum((label > 0) == (score.data > 0) for label, score in zip(moons["labels"], scores))
        assert total.data == pytest.approx(loss, rel=1e-9) and right / len(losses) == accuracy
        model.zero_grad()
        total.backward()
        for p in model.parameters():
            p.data -= (1.0 - 0.9 * step / 100) * p.grad


@pytest.mark.parametrize("make", [lambda: plugrad.MLP(2, [3, 1], seed=1), lambda: plugrad.Layer(2, 2, nonlin=False, seed=1),
                                  lambda: plugrad.Neuron(2, seed=1)])
def test_networks_are_copied(make):
    network = make()
    network.parameters()[0].data = 0.25
    state = plugrad.generator_state()
    for again in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        assert repr(again) == repr(network)
        assert [p.data for p in again.parameters()] == [p.data for p in network.parameters()]
    assert plugrad.generator_state() == state
