"""Optimisers and schedules that programs derive from plugrad's classes, with PyTorch's protocol."""
import copy
import gc
import pickle
import weakref

import plugrad
import pytest
from plugrad import nn, optim
from plugrad.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, OneCycleLR, SequentialLR


class Momentum(optim.Optimizer):
    """SGD with momentum, as a program for PyTorch writes it."""

    def __init__(self, params, lr=1e-3, momentum=0.9, tag=None):
        super().__init__(params, dict(lr=lr, momentum=momentum, tag=tag))

    @plugrad.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with plugrad.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"], state["buffer"] = 0, plugrad.zeros_like(p)
                state["step"] += 1
                state["buffer"].mul_(group["momentum"]).add_(p.grad)
                p.add_(state["buffer"], alpha=-group["lr"])
        return loss


class WarmUp(LRScheduler):
    def __init__(self, optimizer, warm, last_epoch=-1):
        self.warm = warm
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * min(1.0, (self.last_epoch + 1) / self.warm) for base in self.base_lrs]


class Halving(LRScheduler):
    """Computes the rates from the current rates, like the chainable schedules of PyTorch."""

    def get_lr(self):
        rates = [group["lr"] for group in self.optimizer.param_groups]
        return rates if self.last_epoch == 0 else [rate / 2 for rate in rates]


def network():
    plugrad.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


def train(model, optimizer, steps):
    plugrad.manual_seed(4)
    x = plugrad.randn(8, 2)
    for _ in range(steps):
        optimizer.zero_grad()
        ((model(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
        optimizer.step()
    return [each.tolist() for each in model.parameters()]


def grouped(model, kind, **options):
    return kind([{"params": model[0].parameters(), "lr": 0.05}, {"params": list(model[2].parameters())}], lr=0.1, **options)


def test_an_own_optimizer_trains_as_the_built_in_one():
    own, built_in = network(), network()
    mine = grouped(own, Momentum)
    theirs = grouped(built_in, optim.SGD, momentum=0.9)
    assert isinstance(mine, optim.Optimizer) and isinstance(theirs, optim.Optimizer)
    train(own, mine, 20)
    train(built_in, theirs, 20)
    for a, b in zip(own.parameters(), built_in.parameters(), strict=True):
        assert a.reshape(-1).tolist() == pytest.approx(b.reshape(-1).tolist(), rel=1e-4)
    assert own(plugrad.ones(1, 2)).item() == pytest.approx(built_in(plugrad.ones(1, 2)).item(), rel=1e-4)
    assert mine.step(lambda: plugrad.tensor(7.0)).item() == 7
    assert isinstance(optim.LBFGS(own.parameters()), optim.Optimizer)


def test_groups_of_an_own_optimizer_are_dicts_of_anything():
    optimizer = grouped(network(), Momentum, tag="all")
    assert [type(group) for group in optimizer.param_groups] == [dict, dict]
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.1] and optimizer.lr == 0.05
    optimizer.param_groups[1]["tag"] = ("warm", 1)
    optimizer.param_groups[0].setdefault("initial", 3)
    extra = plugrad.zeros(2, requires_grad=True)
    optimizer.add_param_group({"params": extra, "lr": 1})
    assert optimizer.param_groups[2] == {"params": [extra], "lr": 1, "momentum": 0.9, "tag": "all"}
    assert optimizer.defaults == {"lr": 0.1, "momentum": 0.9, "tag": "all"}
    assert repr(optimizer).startswith("Momentum (\nParameter Group 0\n    initial: 3\n    lr: 0.05\n    momentum: 0.9\n")
    assert "Parameter Group 0\n    dampening: 0.0\n    lr: 0.5\n" in repr(optim.SGD([extra], lr=0.5))


def test_the_state_of_an_own_optimizer_is_restored(tmp_path):
    model = network()
    optimizer = grouped(model, Momentum)
    train(model, optimizer, 3)
    kept = optimizer.state_dict()
    assert kept["param_groups"][1]["params"] == [2, 3] and kept["state"][3]["step"] == 3
    plugrad.save({"model": model.state_dict(), "optimizer": kept}, tmp_path / "all.pt")
    again = network()
    restored = grouped(again, Momentum, momentum=0.1)
    read = plugrad.load(tmp_path / "all.pt")
    again.load_state_dict(read["model"])
    restored.load_state_dict(read["optimizer"])
    copied, copy_of = pickle.loads(pickle.dumps((model, optimizer)))
    assert copy_of.param_groups[0]["params"][0] is copied[0].weight and len(copy.deepcopy(optimizer).state) == 4
    expected = train(model, optimizer, 2)
    assert train(again, restored, 2) == expected and train(copied, copy_of, 2) == expected
    with pytest.raises(ValueError, match=r"groups of \[2, 2\] parameters, the optimizer has groups of \[4\]"):
        Momentum(network().parameters()).load_state_dict(kept)


def test_own_schedules_set_the_rates_of_any_optimizer():
    for kind in (Momentum, optim.Adam):
        optimizer = grouped(network(), kind)
        schedule = WarmUp(optimizer, 4)
        assert schedule.base_lrs == [0.05, 0.1] and schedule.get_last_lr() == pytest.approx([0.0125, 0.025])
        schedule.step()
        assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.025, 0.05])
        assert schedule.state_dict() == {"warm": 4, "last_epoch": 1} and schedule.optimizer is optimizer
        schedule.load_state_dict({"warm": 8, "last_epoch": 3})
        assert optimizer.lr == pytest.approx(0.025) and schedule.warm == 8
        assert WarmUp(optimizer, 4, last_epoch=1).get_last_lr() == pytest.approx([0.0375, 0.075])


def test_own_and_built_in_schedules_and_optimizers_mix():
    optimizer = grouped(network(), Momentum)
    halving = Halving(optimizer)
    halving.step()
    halving.step()
    assert optimizer.lr == pytest.approx(0.0125)
    CosineAnnealingLR(optimizer, 2).step()
    assert optimizer.lr == pytest.approx(0.025)
    OneCycleLR(optimizer, 1.0, total_steps=10)
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.95)
    both = SequentialLR(optimizer, [WarmUp(optimizer, 2), CosineAnnealingLR(optimizer, 4)], [2])
    rates = []
    for _ in range(4):
        rates.append(optimizer.param_groups[1]["lr"])
        both.step()
    assert rates == pytest.approx([0.05, 0.1, 0.1, 0.1 * (1 + 0.5 ** 0.5) / 2])
    scaler = plugrad.amp.GradScaler(init_scale=8.0)
    weight = optimizer.param_groups[0]["params"][0]
    scaler.scale(weight.sum()).backward()
    before = weight.tolist()
    scaler.step(optimizer)
    assert weight.tolist() != before and optimizer.state[weight]["step"] == 1


def test_an_own_optimizer_ends_with_its_last_name():
    model = network()
    optimizer = Momentum(model.parameters())
    optimizer.token = token = nn.Linear(1, 1)
    schedule, seen = WarmUp(optimizer, 2), weakref.ref(token)
    del token, optimizer
    gc.collect()
    assert seen() is not None and schedule.optimizer.token is seen()  # the schedule owns the optimiser
    del schedule
    gc.collect()
    assert seen() is None


def test_a_compiled_step_with_an_own_optimizer_has_its_numbers():
    def trained(compiled):
        model = network()
        optimizer = Momentum(model.parameters(), lr=0.1)
        x = plugrad.ones(4, 2)

        def step(x):
            optimizer.zero_grad()
            (model(x) ** 2).mean().backward()
            optimizer.step()
        run = plugrad.compile(step) if compiled else step
        for i in range(6):
            optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            run(x)
        return [each.tolist() for each in model.parameters()], optimizer.state[model[0].weight]["step"]
    assert trained(True) == trained(False)


def test_a_schedule_whose_get_lr_raises_keeps_its_optimizer():
    kept = []

    class Late(LRScheduler):
        def __init__(self, optimizer):
            kept.append(self)
            super().__init__(optimizer)
            self.factor = 2

        def get_lr(self):
            return [base * self.factor for base in self.base_lrs]
    with pytest.raises(AttributeError, match="factor"):
        Late(Momentum([plugrad.zeros(2, requires_grad=True)], lr=0.25))
    gc.collect()
    assert kept[0].get_last_lr() == [0.25] and kept[0].optimizer.lr == 0.25


def test_states_of_pytorchs_schedules_load():
    schedule = WarmUp(optim.SGD([plugrad.zeros(1, requires_grad=True)], lr=1.0), 4)
    schedule.load_state_dict({"warm": 4, "base_lrs": [1.0], "last_epoch": 1, "_step_count": 2, "_last_lr": [0.5]})
    assert schedule.get_last_lr() == [0.5]
    with pytest.raises(TypeError, match="a key of the state is of type int: expected a name"):
        schedule.load_state_dict({"last_epoch": 1, 3: 4})


class Empty(optim.Optimizer):
    pass


def schedule_of(rates):
    return type("Fixed", (LRScheduler,), {"get_lr": lambda self: rates})


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda w: Empty([w], {}).step(), TypeError, "has no method step"),
    (lambda w: optim.Optimizer([w], {}), TypeError, "derive a class with a method step"),
    (lambda w: Empty([], {}), ValueError, "params is empty"),
    (lambda w: Empty(w, {}), ValueError, "params is a tensor"),
    (lambda w: Empty([w * 2], {}), ValueError, r"parameter 0 of shape \(2,\) is the result of"),
    (lambda w: Empty([w, w], {}), ValueError, "in this group already"),
    (lambda w: Empty([{"params": [w]}, w], {}), TypeError, "tensors and groups cannot be mixed"),
    (lambda w: CosineAnnealingLR(Empty([w], {}), 10), ValueError, "no option 'lr'"),
    (lambda w: CosineAnnealingLR(Empty([w], {"lr": "fast"}), 10), TypeError, "'lr' is of type str: expected a number"),
    (lambda w: LRScheduler(Empty([w], {"lr": 1})), TypeError, "derive a class with a method get_lr"),
    (lambda w: schedule_of([])(optim.SGD([w])), ValueError, "a rate for each group"),
    (lambda w: schedule_of(["x"])(optim.SGD([w])), TypeError, "expected a number"),
    (lambda w: WarmUp(optim.SGD([w]), 1).load_state_dict({}), ValueError, "no 'last_epoch'"),
    (lambda w: optim.LBFGS([w]).add_param_group({"params": [w.clone().detach()]}), ValueError, "one group"),
    (lambda w: Empty([w], {}).load_state_dict({"state": {}}), ValueError, "no 'param_groups'"),
    (lambda w: Empty([w], {}).load_state_dict({"state": {"0": {}}, "param_groups": [{"params": [0]}]}), ValueError,
     "parameter '0', which is in none"),
])
def test_what_makes_no_sense_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make(plugrad.zeros(2, requires_grad=True))
