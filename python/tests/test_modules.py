"""Modules compared with PyTorch, whose results and gradients are in tests/fixtures/modules.json; hooks, containers,
groups."""
import copy
import json
from pathlib import Path

import plugrad
import pytest
from plugrad import Tensor, nn, optim
from plugrad.optim import lr_scheduler

GOLDEN = json.loads((Path(__file__).parents[2] / "tests/fixtures/modules.json").read_text())["cases"]


def unpacked(packed, dtype="f64"):
    return plugrad.tensor(packed["data"], dtype=dtype).reshape(packed["shape"])


def states(module, x, *hc):
    out, last = module(x, hc if len(hc) == 2 else hc[0] if hc else None)
    return plugrad.cat([out.reshape(-1), *(each.reshape(-1) for each in (last if isinstance(last, tuple) else [last]))])


def attention(module, q, k, v):
    padding = plugrad.tensor([[False] * 4, [False] * 3 + [True]])
    out, weights = module(q, k, v, key_padding_mask=padding)
    return plugrad.cat([out.reshape(-1), weights.reshape(-1)])


def causal(module, x):
    return module(x, x, x, attn_mask=plugrad.triu(plugrad.ones((5, 5)), 1) > 0, need_weights=False)[0]


CASES = {
    "linear": (lambda: nn.Linear(4, 3), None), "embedding": (lambda: nn.Embedding(5, 3, padding_idx=-1), None),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=2, dilation=2), None),
    "conv2d": (lambda: nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2, bias=False), None),
    "conv_transpose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), None),
    "prelu": (lambda: nn.PReLU(4), None), "layer_norm": (lambda: nn.LayerNorm((6, 5)), None),
    "rms_norm": (lambda: nn.RMSNorm(5, eps=1e-5), None), "group_norm": (lambda: nn.GroupNorm(2, 4), None),
    "batch_norm1d": (lambda: nn.BatchNorm1d(4), None), "batch_norm2d": (lambda: nn.BatchNorm2d(4, momentum=None), None),
    "batch_norm2d_eval": (lambda: nn.BatchNorm2d(4), None),
    "rnn": (lambda: nn.RNN(3, 4, nonlinearity="relu"), states),
    "gru": (lambda: nn.GRU(3, 4, num_layers=2, bidirectional=True), states),
    "lstm": (lambda: nn.LSTM(3, 4, num_layers=2, batch_first=True), states),
    "lstm_unbatched": (lambda: nn.LSTM(3, 4, bidirectional=True, bias=False), states),
    "multihead_attention": (lambda: nn.MultiheadAttention(6, 2, kdim=5, vdim=3), attention),
    "self_attention": (lambda: nn.MultiheadAttention(6, 3, batch_first=True), causal),
    "encoder_layer": (lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0), None),
    "encoder_layer_norm_first": (lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, activation="gelu",
                                                                    batch_first=True, norm_first=True), None)}


def close(x, packed):
    assert x is not None and list(x.shape) == packed["shape"]
    assert x.double().reshape(-1).tolist() == pytest.approx(packed["data"], rel=2e-8, abs=2e-8)


def test_every_case_is_tested():
    assert CASES.keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_module_returns_what_pytorchs_returns(name):
    golden, (make, call) = GOLDEN[name], CASES[name]
    module = make().double().train(golden["training"])
    module.load_state_dict({key: unpacked(value) for key, value in golden["state"].items()})
    indices = not golden["input_grads"]
    inputs = [unpacked(x, "i64" if indices else "f64") for x in golden["inputs"]]
    for x in inputs:
        x.requires_grad_(not indices)
    out = call(module, *inputs) if call else module(*inputs)
    close(out, golden["out"])
    out.backward(plugrad.cos(plugrad.arange(0, out.numel(), dtype="f64")).reshape(out.shape))
    for x, grad in zip(inputs, golden["input_grads"]):
        close(x.grad, grad)
    parameters = dict(module.named_parameters())
    assert parameters.keys() == golden["grads"].keys()
    for key, parameter in parameters.items():
        close(parameter.grad, golden["grads"][key])
    for key, buffer in module.named_buffers():
        close(buffer, golden["buffers"][key])


@pytest.mark.parametrize("name", CASES)
def test_modules_are_copied_and_shown(name):
    module = CASES[name][0]()
    again = copy.deepcopy(module)
    assert repr(again) == repr(module) and repr(module).startswith(type(module).__name__)
    assert [p.tolist() for p in again.parameters()] == [p.tolist() for p in module.parameters()]


ACTIVATIONS = [(nn.ReLU(), "relu"), (nn.ReLU6(inplace=True), "relu6"), (nn.SELU(), "selu"), (nn.SiLU(), "silu"),
               (nn.Mish(), "mish"), (nn.Tanh(), "tanh"), (nn.Sigmoid(), "sigmoid"), (nn.LogSigmoid(), "logsigmoid"),
               (nn.Hardsigmoid(), "hardsigmoid"), (nn.Hardswish(), "hardswish"), (nn.Softsign(), "softsign"),
               (nn.Tanhshrink(), "tanhshrink"), (nn.ELU(0.5), "elu", 0.5), (nn.CELU(0.5), "celu", 0.5),
               (nn.LeakyReLU(0.2), "leaky_relu", 0.2), (nn.Hardtanh(-0.5, 2), "hardtanh", -0.5, 2),
               (nn.Threshold(0.1, 7), "threshold", 0.1, 7), (nn.Softplus(2), "softplus", 2),
               (nn.GELU("tanh"), "gelu", "tanh"),
               (nn.Softshrink(0.3), "softshrink", 0.3), (nn.Hardshrink(0.3), "hardshrink", 0.3), (nn.GLU(), "glu"),
               (nn.Softmin(), "softmin", -1), (nn.LogSoftmax(1), "log_softmax", 1), (nn.Softmax(0), "softmax", 0)]


@pytest.mark.parametrize("row", ACTIVATIONS, ids=lambda row: row[1])
def test_activations_are_their_functions(row):
    module, name, *arguments = row
    x = plugrad.linspace(-3, 3, 24).reshape(4, 6)
    assert module(x).tolist() == getattr(plugrad, name)(x, *arguments).tolist()
    assert repr(module).startswith(type(module).__name__ + "(")


@pytest.mark.parametrize("module, shape, out", [
    (nn.MaxPool1d(2), (2, 3, 8), (2, 3, 4)), (nn.MaxPool2d(3, 2, 1), (2, 3, 8, 8), (2, 3, 4, 4)),
    (nn.MaxPool3d(2), (2, 3, 4, 4, 4), (2, 3, 2, 2, 2)), (nn.AvgPool1d(2), (2, 3, 8), (2, 3, 4)),
    (nn.AvgPool2d(2, ceil_mode=True), (2, 3, 7, 7), (2, 3, 4, 4)), (nn.AvgPool3d(2), (1, 1, 4, 4, 4), (1, 1, 2, 2, 2)),
    (nn.LPPool2d(2, 2), (2, 3, 8, 8), (2, 3, 4, 4)), (nn.AdaptiveAvgPool2d(1), (2, 3, 5, 7), (2, 3, 1, 1)),
    (nn.AdaptiveMaxPool2d((2, 3)), (2, 3, 5, 7), (2, 3, 2, 3)), (nn.InstanceNorm2d(3), (2, 3, 5, 5), (2, 3, 5, 5)),
    (nn.InstanceNorm1d(3, affine=True), (3, 5), (3, 5)), (nn.LocalResponseNorm(2), (2, 3, 5), (2, 3, 5)),
    (nn.Unflatten(1, (3, -1)), (2, 6), (2, 3, 2)), (nn.PixelShuffle(2), (1, 4, 2, 2), (1, 1, 4, 4)),
    (nn.Upsample(scale_factor=2), (1, 2, 3, 3), (1, 2, 6, 6)), (nn.Dropout2d(0.0), (2, 3, 4, 4), (2, 3, 4, 4)),
    (nn.ConvTranspose1d(3, 2, 3), (2, 3, 5), (2, 2, 7)), (nn.Unfold(2), (1, 3, 4, 4), (1, 12, 9))])
def test_shapes(module, shape, out):
    assert module(plugrad.randn(shape)).shape == out


def test_cells_take_one_step_of_the_network():
    plugrad.manual_seed(1)
    for kind, cell in ((nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell), (nn.RNN, nn.RNNCell)):
        whole, step = kind(3, 4), cell(3, 4)
        step.load_state_dict({name.removesuffix("_l0"): value for name, value in whole.state_dict().items()})
        x = plugrad.randn((1, 2, 3))
        h = step(x[0])
        assert (h[0] if kind is nn.LSTM else h).tolist() == whole(x)[0][0].tolist()


def test_hooks_see_and_replace():
    net, calls = nn.Sequential(nn.Linear(2, 2), nn.Identity()), []
    before = net[0].register_forward_pre_hook(lambda module, arguments: calls.append((module, arguments)))
    after = net.register_forward_hook(lambda module, arguments, out: out * 2)
    x = plugrad.randn((1, 2))
    assert net(x).tolist() == (net[0].forward(x) * 2).tolist() and calls[0][0] is net[0] and calls[0][1][0] is x
    before.remove(), after.remove(), after.remove()
    assert net(x).tolist() == net[0].forward(x).tolist() and len(calls) == 1
    net.register_forward_pre_hook(lambda module, arguments: arguments[0] + 1)
    assert net(x).tolist() == net[0].forward(x + 1).tolist()


def test_containers():
    layers = nn.ModuleList([nn.Linear(2, 2)]).append(nn.Linear(2, 3)).extend([nn.Linear(3, 1)])
    assert len(layers) == 3 and len(layers[1:]) == 2 and len(list(layers)) == 3
    assert [name for name, _ in layers.named_parameters()][:2] == ["0.weight", "0.bias"]
    named = nn.ModuleDict({"a": nn.Linear(1, 1)})
    named["b"] = nn.Tanh()
    assert "b" in named and list(named) == ["a", "b"] and len(named) == 2 and named["a"] is dict(named.items())["a"]
    assert named.get_parameter("a.weight") is named["a"].weight and named.get_submodule("b") is named["b"]


def test_a_state_that_does_not_fit():
    net = nn.Linear(2, 1)
    result = net.load_state_dict({"weight": plugrad.ones((1, 2)), "more": plugrad.ones(1)}, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == ["more"] and net.weight.tolist() == [[1, 1]]
    with pytest.raises(ValueError, match=r"missing: \['bias'\], unexpected: \['more'\]"):
        net.load_state_dict({"weight": plugrad.zeros((1, 2)), "more": plugrad.ones(1)})
    assert net.weight.tolist() == [[1, 1]]


def test_initialisers():
    x = plugrad.zeros((100, 50), requires_grad=True)
    assert nn.init.kaiming_uniform_(x, mode="fan_out", nonlinearity="relu") is x and x.abs().max().item() <= 0.06 ** 0.5
    assert nn.init.ones_(x).sum().item() == 5000 and nn.init.eye_(x).sum().item() == 50 and x.requires_grad
    q = nn.init.orthogonal_(plugrad.zeros((3, 5)))
    assert (q @ q.T).flatten().tolist() == pytest.approx([1, 0, 0, 0, 1, 0, 0, 0, 1], abs=1e-5)
    with pytest.raises(ValueError, match="'median' is unknown: one of fan_in, fan_out expected"):
        nn.init.kaiming_normal_(x, mode="median")


def test_clipping():
    x = Tensor([3.0, 4.0])
    (x * x).sum().backward()
    assert nn.utils.clip_grad_norm_(x, 1.0).item() == 10 and x.grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-5)
    nn.utils.clip_grad_value_([x], 0.7)
    assert x.grad.tolist() == pytest.approx([0.6, 0.7], rel=1e-5)
    vector = nn.utils.parameters_to_vector([x, x])
    nn.utils.vector_to_parameters(vector * 0, [x, Tensor([1.0, 1.0])])
    assert x.tolist() == [0, 0]


def test_groups_of_parameters():
    a, b = Tensor([1.0]), Tensor([1.0])
    groups = [{"params": [a]}, {"params": [b], "lr": 0.5, "betas": (0.5, 0.9)}]
    optimizer = optim.AdamW(groups, lr=0.25, weight_decay=0.0)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5] and optimizer.lr == 0.25
    first, second = optimizer.param_groups
    assert second["betas"] == (0.5, 0.9) and second["params"][0] is b and "eps" in first and "momentum" not in first
    (a + b).sum().backward()
    optimizer.step()
    assert (a.item(), b.item()) == pytest.approx((0.75, 0.5), abs=1e-5)
    second["lr"], second["betas"] = 0.125, (0.1, 0.2)
    assert dict(zip(second, [second[name] for name in second]))["lr"] == 0.125 and second["betas"] == (0.1, 0.2)
    optimizer.add_param_group({"params": [Tensor([2.0])], "lr": 1})
    again = copy.deepcopy(optimizer)
    assert [group["lr"] for group in again.param_groups] == [0.25, 0.125, 1]
    for wrong, message in ((lambda: second.__setitem__("momentum", 1), "no option 'momentum'"),
                           (lambda: second.__setitem__("lr", -1), "lr is -1"),
                           (lambda: optim.SGD([{"lr": 1}]), "no \"params\""),
                           (lambda: optimizer.add_param_group({"params": [a]}), "another group")):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_schedules():
    x = Tensor([1.0])
    optimizer = optim.SGD([x], 1.0, momentum=0.9)
    schedule = lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (1 + epoch))
    schedule.step()
    assert optimizer.lr == 0.5 and schedule.get_last_lr() == [0.5] and schedule.state_dict() == {"last_epoch": 1}
    warm = lr_scheduler.SequentialLR(optimizer, [lr_scheduler.LinearLR(optimizer, 0.25, total_iters=3),
                                                 lr_scheduler.CosineAnnealingLR(optimizer, 4)], [3])
    rates = []
    for _ in range(7):
        rates.append(optimizer.lr)
        warm.step()
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1, 0.85355339, 0.5, 0.14644661])
    one = lr_scheduler.OneCycleLR(optimizer, 2.0, 10)
    assert optimizer.param_groups[0]["momentum"] == 0.95 and optimizer.lr == pytest.approx(0.08)
    one.load_state_dict({"last_epoch": 2})
    assert optimizer.lr == pytest.approx(2.0) and one.last_epoch == 2
    plateau = lr_scheduler.ReduceLROnPlateau(optim.SGD([x], 1.0), patience=0, factor=0.5)
    plateau.step(1.0), plateau.step(1.0)
    assert plateau.best == 1 and plateau.num_bad_epochs == 0
    with pytest.raises(ValueError, match="cos or linear"):
        lr_scheduler.OneCycleLR(optimizer, 2.0, 10, anneal_strategy="sine")
