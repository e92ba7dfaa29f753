"""Names, options and objects that programs for PyTorch use first."""
import inspect
import math

import plugrad
import pytest
from plugrad import Tensor, nn, optim


# --- Names and orders of parameters.

def test_tensors_have_the_names_of_torch_too():
    x, y = plugrad.tensor([1.0, -2.0]), plugrad.tensor([3.0, 4.0])
    assert plugrad.relu(input=x).tolist() == [1, 0] and plugrad.add(input=x, other=y).tolist() == [4, 2]
    assert plugrad.matmul(x, other=y).item() == -5 and x.mul(other=y).tolist() == [3, -8]
    assert plugrad.pow(x, exponent=2).tolist() == [1, 4] and plugrad.lerp(x, end=y, weight=0.5).tolist() == [2, 1]
    assert plugrad.where(x > 0, input=x, other=y).tolist() == [1, 4] and plugrad.sum(input=x, dim=0).item() == -1
    assert plugrad.atan2(input=x, other=y).tolist() == plugrad.atan2(x, y).tolist()
    assert nn.functional.mse_loss(input=x, target=y).item() == 20
    with pytest.raises(TypeError, match="given twice|too many|no parameter|two of its names"):
        plugrad.relu(x=x, input=x)
    with pytest.raises(TypeError, match="there is no parameter 'inputs'"):
        plugrad.relu(inputs=x)


def test_losses_of_classes_leave_out_minus_100():
    logits = plugrad.tensor([[1.0, 2.0], [3.0, 0.0], [0.5, 0.5]], requires_grad=True)
    targets = plugrad.tensor([1, -100, 0])
    kept = plugrad.cross_entropy(logits[::2], targets[::2])
    for loss in (plugrad.cross_entropy(logits, targets), nn.CrossEntropyLoss()(logits, targets),
                 nn.functional.cross_entropy(logits, targets, None, None, -100),
                 nn.functional.nll_loss(logits.log_softmax(1), targets)):
        assert loss.item() == pytest.approx(kept.item(), rel=1e-6)
        logits.grad = None
        loss.backward()
        assert logits.grad[1].tolist() == [0, 0] and logits.grad[0, 0].item() > 0
    assert plugrad.cross_entropy(logits, plugrad.tensor([1, 0, 0]), ignore_index=0).item() == pytest.approx(
        plugrad.cross_entropy(logits[:1], targets[:1]).item())
    assert math.isnan(plugrad.cross_entropy(logits, plugrad.full((3,), -100)).item())
    compiled = plugrad.compile(lambda x, t: nn.functional.cross_entropy(x, t))
    for each in (targets, plugrad.tensor([1, 0, 0]), targets):  # a recording is valid with and without ignored targets
        assert compiled(logits, each).item() == pytest.approx(plugrad.cross_entropy(logits, each).item(), rel=1e-6)
    with pytest.raises(IndexError, match="-1"):
        plugrad.cross_entropy(logits, plugrad.tensor([1, -1, 0]))
    with pytest.raises(IndexError, match="-100"):
        plugrad.cross_entropy(logits, targets, ignore_index=None)


def test_the_third_parameter_of_a_loss_is_the_weight():
    logits, targets, weight = plugrad.tensor([[1.0, 2.0], [3.0, 0.0]]), plugrad.tensor([1, 1]), plugrad.tensor([0.0, 1.0])
    assert nn.functional.cross_entropy(logits, targets, weight).item() == nn.functional.cross_entropy(
        logits, targets, weight=weight).item()
    with pytest.raises(ValueError, match="reduction="):
        nn.functional.cross_entropy(logits, targets, size_average=False)


def test_functions_take_inplace():
    x = plugrad.tensor([-1.0, 2.0])
    functional = nn.functional
    assert functional.relu(x, True).tolist() == functional.relu(x, inplace=True).tolist() == [0, 2]
    assert functional.leaky_relu(x, 0.5, True).tolist() == [-0.5, 2]
    assert functional.dropout(x, 0.5, False, True).tolist() == [-1, 2]


# --- Modules.

def test_modules_say_what_they_are():
    net = nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.2, inplace=True),
                        nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Tanh()]))
    assert str(net) == """Sequential(
  (0): Conv2d(3, 8, kernel_size=(4, 4), stride=(2, 2), padding=(1, 1), bias=False)
  (1): BatchNorm2d(8, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  (2): LeakyReLU(negative_slope=0.2, inplace=True)
  (3): ModuleList(
    (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)
    (2): Tanh()
  )
)"""
    assert (net[0].stride, net[0].in_channels, net[1].num_features, net[2].negative_slope) == ((2, 2), 3, 8, 0.2)
    lstm = nn.LSTM(2, 3, 2, batch_first=True, dropout=0.1, bias=False)
    assert str(lstm) == "LSTM(2, 3, num_layers=2, bias=False, batch_first=True, dropout=0.1)"


def test_parameters_are_drawn_again():
    for net in (nn.Linear(3, 2), nn.Conv1d(2, 2, 3), nn.Embedding(4, 3, padding_idx=1), nn.LSTM(2, 3), nn.Bilinear(2, 2, 2)):
        before = [p.tolist() for p in net.parameters()]
        net.reset_parameters()
        assert all(p.tolist() != old for p, old in zip(net.parameters(), before, strict=True))
    norm = nn.LayerNorm(2)
    norm.weight.data.fill_(3)
    norm.reset_parameters()
    assert norm.weight.tolist() == [1, 1]


def test_modules_are_replaced_by_their_names():
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    setattr(net, "0", nn.Identity())
    assert isinstance(net[0], nn.Identity) and isinstance(getattr(net, "1"), nn.Tanh)
    net.add_module("head", nn.Linear(2, 1))
    assert [name for name, _ in net.named_parameters()] == ["head.weight", "head.bias"] and net.head is net[2]
    named = nn.Sequential({"a": nn.Tanh(), "b": nn.ReLU()})
    assert [name for name, _ in named.named_children()] == ["a", "b"] and named(plugrad.ones(1)).shape == (1,)
    table = nn.ModuleDict({"a": nn.Tanh()})
    table.a = nn.ReLU()
    assert isinstance(table["a"], nn.ReLU)
    with pytest.raises(AttributeError, match="nothing"):
        net.nothing


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [1, (2, 1), "same"])
def test_convolutions_pad_with_other_elements(mode, padding):
    net = nn.Conv2d(1, 1, 3, padding=padding, padding_mode=mode)
    plain = nn.Conv2d(1, 1, 3)
    plain.load_state_dict(net.state_dict())
    x = plugrad.randn(1, 1, 5, 6)
    high, wide = (1, 1) if padding == "same" else (padding, padding) if isinstance(padding, int) else padding
    assert net(x).tolist() == plain(plugrad.pad(x, [wide, wide, high, high], mode)).tolist()
    with pytest.raises(ValueError, match="padding_mode 'mirror'"):
        nn.Conv2d(1, 1, 3, padding_mode="mirror")


def test_backward_hooks_see_and_replace_gradients():
    seen, net = [], nn.Linear(2, 1, bias=False)
    net.weight.data.fill_(3)
    handle = net.register_full_backward_hook(lambda module, given, taken: seen.append((module, given, taken)))
    x = plugrad.ones(1, 2, requires_grad=True)
    (net(x) * 2).sum().backward()
    module, given, taken = seen.pop()
    assert module is net and given[0].tolist() == [[6, 6]] and taken[0].tolist() == [[2]]
    assert x.grad.tolist() == [[6, 6]] and net.weight.grad.tolist() == [[2, 2]]
    net(plugrad.ones(1, 2)).sum().backward()
    assert seen.pop()[1] == (None,)
    handle.remove()
    net.register_full_backward_hook(lambda module, given, taken: (given[0] * 10,))
    x.grad = None
    net(x).sum().backward()
    assert x.grad.tolist() == [[30, 30]] and not seen


# --- Optimisers and schedules.

def test_amsgrad_divides_by_the_largest_mean_of_squares():
    x = nn.Parameter([1.0])
    optimizer = optim.Adam([x], lr=0.1, amsgrad=True)
    m = v = largest = 0.0
    want = 1.0
    for step, grad in enumerate((4.0, 0.1, -0.2), 1):
        x.grad = plugrad.tensor([grad])
        optimizer.step()
        m, v = 0.9 * m + 0.1 * grad, 0.999 * v + 0.001 * grad * grad
        largest = max(largest, v)
        want -= 0.1 / (1 - 0.9**step) * m / ((largest / (1 - 0.999**step)) ** 0.5 + 1e-8)
        assert x.item() == pytest.approx(want, rel=1e-5)
    again = optim.Adam([x], lr=1.0, amsgrad=True)
    again.load_state_dict(optimizer.state_dict())
    assert again.param_groups[0]["amsgrad"] is True
    assert again.state_dict()["max_exp_avg_sq.0"].item() == pytest.approx(largest)


def test_groups_are_mappings():
    group = optim.SGD([nn.Parameter([1.0])], lr=0.5).param_groups[0]
    assert group.get("lr") == dict(group.items())["lr"] == 0.5 and group.get("nothing", 3) == 3
    assert len(group.values()) == len(group)
    group.update({"lr": 0.25, "momentum": 0.9})
    assert (group["lr"], group["momentum"]) == (0.25, 0.9)


def test_schedules_go_on():
    parameters = [nn.Parameter([1.0])]
    plateau = optim.lr_scheduler.ReduceLROnPlateau(optim.SGD(parameters, lr=1.0), patience=1)
    for metric in (1.0, 2.0):
        plateau.step(metric)
    again = optim.lr_scheduler.ReduceLROnPlateau(optim.SGD(parameters, lr=1.0), patience=1)
    again.load_state_dict(plateau.state_dict())
    assert again.state_dict() == {"best": 1.0, "num_bad_epochs": 1, "cooldown_counter": 0, "last_epoch": 2}
    again.step(3.0)
    assert again.get_last_lr() == [pytest.approx(0.1)]
    with pytest.raises(ValueError, match="num_bad_epochs"):
        again.load_state_dict({"best": 1.0})
    cycle = optim.lr_scheduler.OneCycleLR(optim.SGD(parameters, lr=1.0, momentum=0.9), 1.0, epochs=2, steps_per_epoch=3)
    for _ in range(6):
        cycle.step()
    with pytest.raises(ValueError, match="total_steps"):
        cycle.step()
    with pytest.raises(ValueError, match="steps_per_epoch"):
        optim.lr_scheduler.OneCycleLR(optim.SGD(parameters, momentum=0.9), max_lr=1.0, epochs=2)
    assert optim.lr_scheduler.StepLR(optim.SGD(parameters, lr=1.0), 2, last_epoch=3).get_last_lr() == [pytest.approx(0.01)]


# --- The process.

def test_generators_draw_alone():
    first, second = plugrad.Generator().manual_seed(7), plugrad.Generator().manual_seed(7)
    plugrad.manual_seed(1)
    want = plugrad.rand(3).tolist()
    plugrad.manual_seed(1)
    drawn = plugrad.randn(4, generator=first).tolist()
    assert plugrad.rand(3).tolist() == want  # the sequence of the device's generator does not change
    assert drawn == plugrad.randn(4, generator=second).tolist() != plugrad.randn(4, generator=second).tolist()
    state = first.get_state()
    order = plugrad.randperm(9, generator=first).tolist()
    first.set_state(state)
    assert order == plugrad.randperm(9, generator=first).tolist() and first.initial_seed() == 7
    with pytest.raises(TypeError, match="generator"):
        plugrad.relu(plugrad.ones(1), generator=first)
    loader = plugrad.utils.data.DataLoader(range(20), 5, shuffle=True, generator=plugrad.Generator().manual_seed(3))
    again = plugrad.utils.data.DataLoader(range(20), 5, shuffle=True, generator=plugrad.Generator().manual_seed(3))
    epochs = [[batch.tolist() for batch in each] for each in (loader, again, loader)]
    assert epochs[0] == epochs[1] != epochs[2]


def test_a_restored_state_restores_the_order_of_samples():
    loader = plugrad.utils.data.DataLoader(range(20), 20, shuffle=True)
    state = plugrad.get_rng_state()
    first = next(iter(loader)).tolist()
    second = next(iter(loader)).tolist()
    plugrad.set_rng_state(state)
    assert next(iter(loader)).tolist() == first != second


def test_the_default_dtype():
    try:
        plugrad.set_default_dtype(plugrad.float64)
        made = (plugrad.tensor([1.0]), Tensor([1.0]), plugrad.ones(2), plugrad.rand((2,)), plugrad.full((1,), 0.5),
                plugrad.linspace(0, 1, 3), plugrad.arange(0.5), nn.Linear(1, 1).weight, nn.LayerNorm(2).weight,
                nn.Embedding(2, 2).weight, nn.Conv1d(1, 1, 1).weight, nn.BatchNorm1d(1).running_mean)
        assert {str(x.dtype) for x in made} == {"f64"} and plugrad.get_default_dtype() == "f64"
        assert plugrad.tensor([1]).dtype == "i64" and plugrad.tensor([1.0], dtype="f32").dtype == "f32"
    finally:
        plugrad.set_default_dtype("f32")
    with pytest.raises(ValueError, match="i64 holds no fractions"):
        plugrad.set_default_dtype("i64")


def test_what_programs_ask_and_set_before_they_begin():
    assert plugrad.backends()[0].is_ready is not None and not plugrad.backends.mps.is_available()
    plugrad.backends.cudnn.benchmark = True
    plugrad.backends.cuda.matmul.allow_tf32 = False
    with pytest.raises(AttributeError, match="benchmrk.*benchmark"):
        plugrad.backends.cudnn.benchmrk = True
    assert plugrad.accelerator.is_available() == (plugrad.accelerator.device_count() > 0)
    assert plugrad.device("cpu", 0) == plugrad.device("cpu:0") and plugrad.get_num_threads() >= 1
    with pytest.raises(ValueError, match="at least 1"):
        plugrad.set_num_threads(0)
    with pytest.raises(ValueError, match="highest"):
        plugrad.set_float32_matmul_precision("low")
    x = plugrad.ones(2, 3)
    assert x.type(plugrad.long).dtype == "i64" and x.to("cpu", non_blocking=True).shape == (2, 3) and x.pin_memory() is x
    assert [row.tolist() for row in reversed(plugrad.tensor([[1], [2]]))] == [[2], [1]]
    assert x.sub_(1, alpha=2).tolist() == [[-1] * 3] * 2 and x.add_(1, alpha=3).tolist() == [[2] * 3] * 2
    scaler = plugrad.amp.GradScaler("cuda", enabled=False)
    assert not scaler.is_enabled() and plugrad.cuda.amp.GradScaler(2.0).get_scale() == 2
    with plugrad.cuda.amp.autocast():
        assert plugrad.amp.is_autocast_enabled() and plugrad.amp.get_autocast_dtype() == "f16"
    assert plugrad.empty_cache() >= 0


def test_optimisers_have_signatures():
    names = list(inspect.signature(optim.AdamW).parameters)
    assert names[:5] == ["params", "lr", "betas", "eps", "weight_decay"] and "fused" in names


def test_comparisons_for_tests():
    close = plugrad.testing.assert_close
    close(plugrad.ones(2), plugrad.ones(2) * (1 + 1e-6))
    close({"a": [1.0, plugrad.tensor(1)]}, {"a": [1.0, plugrad.tensor(1)]})
    ones = plugrad.ones(2, 2)
    for one, other, message in ((ones, plugrad.tensor([[1.0, 1], [1, 2]]), r"\(1, 1\), is 1.0 instead of 2"),
                                (ones, plugrad.ones(3), "shapes"), ([1], [1, 2], "lengths"), (ones, ones.double(), "dtypes"),
                                ({"a": 1}, {"b": 1}, "keys"), (1, 2, "1 of 1")):
        with pytest.raises(AssertionError, match=message):
            close(one, other)
    with pytest.raises(ValueError, match="both"):
        close(1, 1, rtol=1)


def test_sequences_are_padded():
    rows = [plugrad.tensor([1.0, 2, 3]), plugrad.tensor([4.0])]
    rnn = nn.utils.rnn
    assert rnn.pad_sequence(rows, batch_first=True, padding_value=-1).tolist() == [[1, 2, 3], [4, -1, -1]]
    assert rnn.pad_sequence(rows).shape == (3, 2)
    assert rnn.pad_sequence(rows, True, 0, "left").tolist() == [[1, 2, 3], [0, 0, 4]]
    assert [x.tolist() for x in rnn.unpad_sequence(rnn.pad_sequence(rows), plugrad.tensor([3, 1]))] == [[1, 2, 3], [4]]
    for wrong in ([], [plugrad.ones(2, 3), plugrad.ones(2, 4)]):
        with pytest.raises(ValueError, match="pad_sequence"):
            rnn.pad_sequence(wrong)


# --- Other packages.

def test_einops_takes_tensors():
    einops = pytest.importorskip("einops", reason="einops is not installed")
    x = plugrad.arange(24.0).reshape(2, 3, 4).requires_grad_()
    assert einops.rearrange(x, "a b c -> b (a c)").tolist() == x.permute(1, 0, 2).reshape(3, 8).tolist()
    assert einops.reduce(x, "a b c -> a", "mean").tolist() == x.mean((1, 2)).tolist()
    assert einops.reduce(x, "a (b d) c -> a c", "max", d=3).tolist() == x.amax(1).tolist()
    assert einops.repeat(x, "a b c -> a b c d", d=2).shape == (2, 3, 4, 2)
    einops.einsum(x, x, "a b c, a b c -> a").sum().backward()
    assert x.grad.tolist() == (x * 2).tolist()


def test_data_sets_are_generic():
    class Numbers(plugrad.utils.data.Dataset[int]):
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index
    assert [batch.tolist() for batch in plugrad.utils.data.DataLoader(Numbers(), 2)] == [[0, 1], [2]]


def test_functions_of_torch_by_name():
    x = plugrad.ones(2, 3, requires_grad=True)
    assert plugrad.t(x).shape == (3, 2) and not plugrad.detach(x).requires_grad and plugrad.is_floating_point(x)
    assert not plugrad.is_complex(x) and isinstance(plugrad.float32, plugrad.dtype)
    state = plugrad.get_rng_state()
    assert plugrad.seed() == plugrad.initial_seed()
    plugrad.set_rng_state(state)


def test_an_optimizer_continues_from_a_state_of_pytorch():
    def state(**options):
        slots = {"step": plugrad.tensor(3.0), "exp_avg": plugrad.tensor([0.5]), "exp_avg_sq": plugrad.tensor([0.25])}
        group = {"lr": 0.25, "betas": (0.5, 0.75), "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "params": [0]}
        return {"state": {0: slots}, "param_groups": [group | options]}

    optimizer = optim.Adam([plugrad.ones(1, requires_grad=True)])
    optimizer.load_state_dict(state(maximize=False, foreach=None))
    assert (optimizer.lr, optimizer.param_groups[0]["betas"], optimizer.steps) == (0.25, (0.5, 0.75), 3)
    assert optimizer.state_dict()["exp_avg.0"].tolist() == [0.5]
    optimizer.load_state_dict(state(maximize=True))
    assert optimizer.param_groups[0]["maximize"] is True
