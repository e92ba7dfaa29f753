"""Modules, losses, optimisers and training."""
import copy
import io
import math
import pickle
import time

import plugrad
import pytest
from plugrad import Tensor, nn, optim, training


def network():
    plugrad.manual_seed(1)
    return nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))


def test_linear():
    plugrad.manual_seed(3)
    layer = nn.Linear(3, 2)
    assert layer.weight.shape == (2, 3) and layer.bias.shape == (2,) and layer.weight.requires_grad
    assert all(abs(w) <= 1 / math.sqrt(3) for row in layer.weight.tolist() for w in row)
    x = plugrad.ones((4, 3))
    expected = [sum(row) + b for row, b in zip(layer.weight.tolist(), layer.bias.tolist())]
    assert layer(x)[2].tolist() == pytest.approx(expected, rel=1e-6) and layer(plugrad.ones((5, 4, 3))).shape == (5, 4, 2)
    assert repr(layer) == "Linear(in_features=3, out_features=2, bias=True)"
    assert nn.Linear(2, 2, dtype="f64", device="reference").weight.device == "reference"
    for wrong in (lambda: nn.Linear(0, 2), lambda: layer(plugrad.ones((4, 2)))):
        with pytest.raises(ValueError):
            wrong()


def test_parameters_and_names():
    model = network()
    assert [name for name, _ in model.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert len(model.parameters()) == 4 and len(model) == 3 and isinstance(model[1], nn.ReLU) and len(model[:2]) == 2
    assert repr(model) == """Sequential(
  (0): Linear(in_features=2, out_features=8, bias=True)
  (1): ReLU()
  (2): Linear(in_features=8, out_features=2, bias=True)
)"""


def test_modules_of_ones_own():
    class Net(nn.Module):
        def __init__(self):
            self.first = nn.Linear(2, 3)
            self.rest = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 1)})
            self.scale = nn.Parameter([2.0])
            self.default = Tensor([1.0])  # tracks a gradient without a request, so it is not a parameter
            self.constant = plugrad.ones((1,))
            self.shared = self.first

        def forward(self, x):
            return self.heads["a"](self.rest[1](self.rest[0](self.first(x)))) * self.scale * self.constant
    net = Net()
    assert len(net.parameters()) == 7 and "heads.a.weight" in dict(net.named_parameters())
    assert not {"constant", "default"} & dict(net.named_parameters()).keys()
    net(plugrad.ones((1, 2))).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    with pytest.raises(NotImplementedError):
        nn.Module()(1)


def test_what_lies_in_plain_lists_is_not_of_the_module():
    class Student(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1, bias=False)
            self.teachers = [nn.Linear(1, 1)]
            self.others = {"b": nn.Parameter([1.0])}, (nn.Parameter([2.0]),)
    net = Student()
    assert [name for name, _ in net.named_parameters()] == ["layer.weight"] == list(net.state_dict())
    assert list(net.children()) == [net.layer] and "teachers" not in repr(net)
    net.eval()
    assert net.teachers[0].training


def test_parameters_by_position_and_by_name():
    class Net(nn.Module):
        def __init__(self):
            self.scales = nn.ParameterList([plugrad.ones(2), nn.Parameter([3.0])]).append(plugrad.zeros(1))
            self.by = nn.ParameterDict({"a": plugrad.ones(2)})
    net, other = Net(), Net()
    net.by["b"], net.scales[2] = plugrad.tensor([4.0]), plugrad.tensor([5.0])
    assert [name for name, _ in net.named_parameters()] == ["scales.0", "scales.1", "scales.2", "by.a", "by.b"]
    assert all(isinstance(each, nn.Parameter) for each in net.parameters())
    assert len(net.scales) == 3 and len(net.scales[1:]) == 2 and net.scales[2].tolist() == [5]
    assert list(net.by) == ["a", "b"] and "b" in net.by and net.by.get("c") is None and net.by.pop("b").tolist() == [4]
    del net.by["a"]
    net.by.update({"a": plugrad.tensor([6.0, 7.0])})
    assert other.load_state_dict(net.state_dict()) == ([], []) and other.by["a"].tolist() == [6, 7]
    net.scales += [plugrad.ones(1)]
    net.scales.register_parameter("3", plugrad.tensor([8.0]))
    net.scales.register_parameter("4", plugrad.tensor([9.0]))
    net.by.a = plugrad.tensor([1.0, 2.0])
    assert [p.tolist() for p in net.parameters()] == [[1, 1], [3], [5], [8], [9], [1, 2]] and net.by.a is net.by["a"]
    with pytest.raises(ValueError, match="positions 0 to 5"):
        net.scales.register_parameter("9", plugrad.ones(1))
    with pytest.raises(TypeError, match="1 is not a name"):
        nn.ParameterDict([(1, plugrad.ones(1))])
    assert repr(nn.ParameterDict({"w": plugrad.ones(2, 3)})) == """ParameterDict(
  (w): Parameter containing: [f32 of size 2x3]
)"""


def test_frozen_parameters_and_buffers_are_in_the_state():
    class Net(nn.Module):
        def __init__(self):
            self.register_buffer("mean", Tensor([0.5]))
            self.register_buffer("seen", [1.0], persistent=False)
            self.layer = nn.Linear(1, 1)
    net, other = Net(), Net()
    net.mean = plugrad.tensor([3.0])
    net.layer.weight.requires_grad = False
    assert list(net.state_dict()) == ["mean", "layer.weight", "layer.bias"] and len(net.parameters()) == 2
    assert [name for name, _ in net.named_buffers()] == ["mean", "seen"] and len(net.buffers()) == 2
    other.load_state_dict(net.state_dict())
    assert other.mean.item() == 3 and not other.mean.requires_grad
    before = net.layer.weight.item()
    optimizer = optim.SGD(net.parameters(), 0.1)
    net.layer(plugrad.ones(1, 1)).sum().backward()
    optimizer.step()
    assert net.layer.weight.item() == before and net.layer.bias.grad is not None
    with pytest.raises(ValueError, match="layer"):
        net.register_buffer("layer", [1.0])
    assert net.to("f64").layer.weight.dtype == "f64" and net.mean.dtype == "f64" and net.layer.bias.grad.dtype == "f64"


def test_parameters_of_large_modules_are_quick():
    net = nn.Module()
    net.all = nn.ParameterList(nn.Parameter([1.0]) for _ in range(20_000))
    start = time.process_time()
    assert len(net.parameters()) == 20_000 and time.process_time() - start < 5


def test_a_model_and_its_optimiser_are_copied_together():
    model = network()
    model[0].bias.requires_grad = False
    optimizer = optim.Adam(model.parameters(), 0.1, betas=(0.8, 0.9))
    model(plugrad.ones(1, 2)).sum().backward()
    optimizer.step()
    for again, theirs in (pickle.loads(pickle.dumps((model, optimizer))), copy.deepcopy((model, optimizer))):
        assert theirs.steps == 1
        assert theirs.state_dict()["exp_avg.2"].tolist() == optimizer.state_dict()["exp_avg.2"].tolist()
        assert list(again.state_dict()) == list(model.state_dict()) and not again[0].bias.requires_grad
        again(plugrad.ones(1, 2)).sum().backward()
        before = again[2].weight.tolist()
        theirs.step()
        assert again[2].weight.tolist() != before
    assert copy.deepcopy(optim.SGD([Tensor([1.0])], 0.5, momentum=0.9)).lr == 0.5


@pytest.mark.parametrize("make, message", [
    (lambda x: optim.SGD([x * 2], 0.1), r"parameter 0 of shape \(1,\) is the result of \*"),
    (lambda x: optim.Adam([x, plugrad.ones(2)]), r"parameter 1 of shape \(2,\) requires no gradient"),
    (lambda x: optim.SGD([x], -1), "lr is -1"), (lambda x: optim.Adam([x], math.nan), "lr is nan"),
    (lambda x: setattr(optim.SGD([x], 1), "lr", math.inf), "lr is inf"),
    (lambda x: optim.SGD([x], 1, momentum=-1), "momentum is -1"), (lambda x: optim.Adam([x], eps=-1), "eps is -1")])
def test_what_optimisers_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make(Tensor([1.0]))


def test_to_keeps_the_leaves():
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    weight = model[0].weight
    assert model.to("reference") is model and weight.device == "reference" and model[0].weight.is_same(weight)
    model(plugrad.ones((1, 2), device="reference")).sum().backward()
    optimizer.step()


def test_state(tmp_path):
    model, other = network(), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    plugrad.save(model.state_dict(), tmp_path / "model.safetensors", {"epoch": "3"})
    other.load_state_dict(plugrad.load(tmp_path / "model.safetensors"))
    assert [p.tolist() for p in other.parameters()] == [p.tolist() for p in model.parameters()]
    assert plugrad.load_metadata(tmp_path / "model.safetensors") == {"epoch": "3"}
    with pytest.raises(ValueError, match="0.bias"):
        other.load_state_dict({"0.weight": model[0].weight})
    with pytest.raises(ValueError, match="2.bias"):
        other.load_state_dict(model.state_dict() | {"2.bias": plugrad.ones((3,))})


def test_activations_and_losses():
    x = plugrad.tensor([[-1.0, 2.0]])
    assert nn.ReLU()(x).tolist() == [[0, 2]] and nn.Tanh()(x).tolist() == x.tanh().tolist()
    assert nn.Sigmoid()(x).tolist() == x.sigmoid().tolist()
    assert nn.Softmax()(x).sum().item() == pytest.approx(1) and nn.Flatten()(plugrad.ones((2, 3, 4))).shape == (2, 12)
    assert nn.Identity()(x) is x
    zeros = plugrad.zeros((1, 2))
    assert nn.mse_loss(x, zeros).item() == 2.5 and nn.MSELoss(reduction="sum")(x, zeros).item() == 5
    assert nn.max_margin_loss(x, plugrad.tensor([[1.0, 1.0]]), "none").tolist() == [[2, 0]]
    assert nn.MaxMarginLoss()(x, x * 0 + 1).item() == 1
    labels = plugrad.tensor([1], dtype="i64")
    assert nn.CrossEntropyLoss()(x, labels).item() == pytest.approx(math.log(1 + math.exp(-3)), rel=1e-6)
    assert nn.cross_entropy(x, labels).item() == nn.CrossEntropyLoss()(x, labels).item()
    for wrong in (lambda: nn.mse_loss(x, plugrad.zeros((2,))), lambda: nn.max_margin_loss(x, plugrad.zeros((2,))),
                  lambda: nn.mse_loss(x, x, "median")):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("make",
    [lambda p: optim.SGD(p, 0.1), lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True), lambda p: optim.Adam(p, 0.1),
                                  lambda p: optim.AdamW(p, lr=0.1, betas=(0.8, 0.99), eps=1e-7, weight_decay=0.001)])
def test_optimisers_find_a_minimum(make):
    x = Tensor([5.0, -3.0])
    optimizer = make([x])
    for _ in range(200):
        optimizer.zero_grad()
        ((x - 1) ** 2).sum().backward()
        optimizer.step()
    assert x.tolist() == pytest.approx([1, 1], abs=0.1) and optimizer.steps == 200


def test_one_step_of_each_is_pytorchs():
    """SGD steps to x - lr g; the first step of Adam moves by lr against the sign of the gradient."""
    for make, expected in ((lambda p: optim.SGD(p, 0.1), 2 - 0.1 * 4), (lambda p: optim.Adam(p, 0.1), 1.9),
                           (lambda p: optim.AdamW(p, 0.1, weight_decay=0.5), 2 * 0.95 - 0.1)):
        x = Tensor([2.0])
        (x * x).backward()
        make([x]).step()
        assert x.item() == pytest.approx(expected, rel=1e-6)


def test_optimiser_state():
    x = Tensor([5.0])
    optimizer = optim.Adam([x], 0.1)
    (x * x).backward()
    optimizer.step()
    state = optimizer.state_dict()
    options = {f"param_groups.0.{name}" for name in ("lr", "beta1", "beta2", "eps", "weight_decay", "amsgrad", "maximize",
                                                     "decoupled_weight_decay")}
    assert set(state) == {"exp_avg.0", "exp_avg_sq.0", "step.0", "steps"} | options
    again = optim.Adam([x], 0.1)
    again.load_state_dict(state, optimizer.steps)
    assert again.steps == 1 and again.state_dict()["exp_avg.0"].tolist() == state["exp_avg.0"].tolist()
    with pytest.raises(ValueError, match="exp_avg.0"):
        again.load_state_dict({}, 1)
    optimizer.lr = 0.5
    assert optimizer.lr == 0.5
    for wrong, error in ((lambda: optim.SGD([], 0.1), ValueError), (lambda: optim.SGD([1.0], 0.1), TypeError),
                         (lambda: optim.SGD([x], 0.1, nesterov=True), ValueError)):
        with pytest.raises(error):
            wrong()


def test_fit_learns_moons(capsys):
    points, labels = plugrad.data.moons(200, seed=4)
    model = network()
    before = training.accuracy(model, points, labels)
    history = training.fit(model, points, labels, optim.Adam(model.parameters(), 0.05), epochs=20, batch_size=50)
    assert training.accuracy(model, points, labels) > max(before, 0.9)
    assert len(history.losses) == 20 and history.losses[-1] < history.losses[0] / 2 and not history.interrupted
    err = capsys.readouterr().err
    assert err.count("\n") == 20 and "epoch 20/20" in err and "4/4" in err and "loss" in err


def test_fit_is_quiet_and_deterministic(capsys):
    points, labels = plugrad.data.moons(60, seed=4)

    def losses(**more):
        model = network()
        return training.fit(model, points, labels, optim.SGD(model.parameters(), 0.1), epochs=3, progress=False,
                            **more).losses
    assert losses(batch_size=20, seed=1) == losses(batch_size=20, seed=1) != losses(batch_size=20, seed=2)
    assert losses() == losses(shuffle=False) and capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="60 inputs, but 10"):
        training.fit(network(), points, labels[:10], None)


def test_the_bar_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True
    file = Terminal()
    with training.Progress(4, "work", file) as bar:
        bar.INTERVAL = 0
        for _ in range(4):
            bar.update("loss 0.5")
    text = file.getvalue()
    assert text.count("\r") == 5 and text.endswith("\n") and f"[{'=' * 30}] 4/4" in text and "loss 0.5" in text


def test_batches():
    assert [list(b) for b in training.batches(5, 2)] == [[0, 1], [2, 3], [4]]
    assert [list(b) for b in training.batches(3, None)] == [[0, 1, 2]]
    order = training.shuffled(50, seed=1, epoch=0)
    assert [i for b in training.batches(50, 7, order) for i in b] == order
    assert sorted(order) == list(range(50)) != order and order != training.shuffled(50, seed=1, epoch=1)
    with pytest.raises(ValueError):
        list(training.batches(5, 0))


def test_ctrl_c_ends_a_training_between_two_steps():
    points, labels = plugrad.data.moons(20)
    model, epochs = network(), []

    def stop(epoch, loss):
        epochs.append(epoch)
        if epoch == 2:
            raise KeyboardInterrupt
    history = training.fit(model, points, labels, optim.SGD(model.parameters(), 0.1), epochs=10, progress=False,
                           on_epoch=stop)
    assert history.interrupted and epochs == [0, 1, 2] and len(history.losses) == 3


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Conv2d(2, 4, 3, padding=1, groups=2)
        self.rest = nn.ModuleList([nn.Dropout(0.5), nn.Flatten()])

    def forward(self, x):
        x = self.first(x).relu_()
        for module in self.rest:
            x = module(x)
        return x


def test_modules_inside_modules():
    net = Net()
    assert [name for name, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert list(net.children()) == [net.first, net.rest]
    assert list(net.modules()) == [net, net.first, net.rest, *net.rest]
    seen = []
    assert net.apply(seen.append) is net and seen == [net.first, *net.rest, net.rest, net]
    assert net.requires_grad_(False) is net and not any(p.requires_grad for p in net.parameters())
    assert len(net.requires_grad_().parameters()) == 2 and all(p.requires_grad for p in net.parameters())


def test_dropout_while_training_only():
    net, x = Net(), plugrad.ones(1, 2, 3, 3)
    assert net.training and net.eval() is net and not net.training and not net.rest[0].training
    first = net(x)
    assert first.tolist() == net(x).tolist()
    assert net.train().rest[0].training and nn.Dropout(0.0)(x).tolist() == x.tolist()
    dropped = nn.Dropout(0.25)(plugrad.ones(10_000))
    assert sorted(set(dropped.tolist())) == pytest.approx([0, 4 / 3]) and abs(dropped.mean().item() - 1) < 0.05
    with pytest.raises(ValueError, match="a module cannot be i64"):
        net.to(plugrad.i64)


@pytest.mark.parametrize("layer, shape, function, rank", [
    (lambda **more: nn.Conv1d(2, 4, 3, **more), (3, 2, 8), plugrad.conv1d, 1),
    (lambda **more: nn.Conv2d(2, 4, 3, **more), (3, 2, 8, 8), plugrad.conv2d, 2),
    (lambda **more: nn.Conv3d(2, 4, (3, 1, 1), **more), (3, 2, 5, 4, 4), plugrad.conv3d, 3)])
def test_convolutions(layer, shape, function, rank):
    x = plugrad.randn(shape)
    made = layer(stride=2, padding=1, groups=2)
    assert made(x).tolist() == function(x, made.weight, made.bias, stride=2, padding=1, groups=2).tolist()
    assert made.weight.shape[:2] == (4, 1) and [name for name, _ in made.named_parameters()] == ["weight", "bias"]
    bound = made.weight[0].numel() ** -0.5
    assert made.weight.abs().max().item() <= bound
    assert f"(2, 4, kernel_size={tuple(made.weight.shape[2:])}, stride" in repr(made)
    assert layer(bias=False).bias is None and layer(dtype="f64")(x.double()).dtype == "f64"
    made(x).sum().backward()
    assert made.weight.grad.shape == made.weight.shape


@pytest.mark.parametrize("arguments", [(2, 3, 3, 1, 0, 1, 2), (0, 2, 3), (2, 2, 0), (2, 2, (3, 3, 3))])
def test_convolutions_that_cannot_be(arguments):
    with pytest.raises(ValueError, match=r"^\[Conv2d\] .* channels, groups .*: expected positive numbers"):
        nn.Conv2d(*arguments)
