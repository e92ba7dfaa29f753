"""Mixed precision, in the manner of programs for PyTorch."""

import math

import pytest

import plugrad
from plugrad import nn, optim


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))


def test_autocast_is_a_context_and_a_decorator() -> None:
    x = plugrad.ones(2, 2)

    @plugrad.autocast("cpu", dtype="bf16")
    def inside() -> str:
        return str((x @ x).dtype)

    assert inside() == "bf16"
    with plugrad.autocast(device_type=str(x.device), dtype=plugrad.float16):
        assert plugrad.amp.is_autocast_enabled() and plugrad.amp.get_autocast_dtype() == "f16"
        assert (x @ x).dtype == "f16"
        with plugrad.autocast(enabled=False):
            assert (x @ x).dtype == "f32"
        assert (x @ x).softmax(-1).dtype == "f32"
    assert not plugrad.amp.is_autocast_enabled() and (x @ x).dtype == "f32"
    with pytest.raises(ValueError, match="bf16 or f16"), plugrad.autocast(dtype="f64"):
        pass


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_training_in_mixed_precision_comes_near_that_in_f32(dtype: str) -> None:
    x, y = plugrad.data.moons(200, seed=1)

    def last_loss(mixed: bool) -> float:
        plugrad.manual_seed(3)
        net = model()
        optimizer, scaler = optim.AdamW(net.parameters(), lr=0.02), plugrad.amp.GradScaler(enabled=mixed and dtype == "f16")
        loss = x.sum()
        for _ in range(60):
            with plugrad.autocast(dtype=dtype, enabled=mixed):
                loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        assert all(p.dtype == "f32" for p in net.parameters())
        return loss.item()

    exact, mixed = last_loss(False), last_loss(True)
    assert exact < 0.2 and abs(exact - mixed) < 0.03


def test_a_scaler_skips_infinite_steps_and_keeps_its_state() -> None:
    x = plugrad.ones(1).requires_grad_()
    optimizer, scaler = optim.SGD([x], lr=1), plugrad.amp.GradScaler(init_scale=4.0)
    for slope, stepped in ((math.inf, False), (2.0, True)):
        optimizer.zero_grad()
        scaler.scale((x * slope).sum()).backward()
        assert scaler.step(optimizer) is stepped
        scaler.update()
    assert x.tolist() == [-1] and scaler.get_scale() == 2
    other, off = plugrad.amp.GradScaler(growth_factor=3.0, growth_interval=7), plugrad.amp.GradScaler(enabled=False)
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() and other.state_dict()["growth_interval"] == 2000
    off.load_state_dict(scaler.state_dict())
    assert off.state_dict() == {} and off.get_scale() == 1
    with pytest.raises(KeyError, match="growth_factor"):
        other.load_state_dict({"scale": 1.0})
    with pytest.raises(ValueError, match="without a step"):
        scaler.update()
