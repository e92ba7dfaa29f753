"""A program with precise types, which test_typing.py checks by mypy and pyright and then runs."""
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import assert_type

import plugrad
from plugrad import Tensor, Value, data, nn, no_grad, optim, profiler, text
from plugrad.linalg import SVDResult
from plugrad.training import fit


class Scaled(nn.Module):
    def __init__(self) -> None:
        self.scale = nn.Parameter([2.0, 2.0])
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) * self.scale


def operators(x: Tensor) -> None:
    assert_type(x + 1, Tensor)
    assert_type(1.5 - x, Tensor)
    assert_type([1.0, 2.0] + x, Tensor)
    assert_type(x @ x, Tensor)
    assert_type(-x ** 2 / x % 3 // 2, Tensor)
    assert_type(x == x, Tensor)
    assert_type(x < 3, Tensor)
    assert_type((x > 0) & ~(x > 1), Tensor)
    x += 1
    assert_type(x, Tensor)


def elements(x: Tensor) -> None:
    assert_type(x[0], Tensor)
    assert_type(x[..., None, 1:], Tensor)
    assert_type(x[x > 0], Tensor)
    x[[0, 1]] = 5.0
    rows: Iterator[Tensor] = iter(x)
    assert_type(next(rows), Tensor)
    assert_type(x.item() if x.numel() == 1 else 0, int | float | bool)
    assert_type(float(x.sum()), float)
    assert_type(len(x), int)
    assert_type(x.requires_grad, bool)
    assert_type(x.shape[0], int)


def profiled(x: Tensor) -> None:
    with profiler.profile() as p, profiler.range("both"):
        (x * x).exp()
    assert_type(p.events()[0].duration, int)
    assert_type(p.rows(sort="bytes")[0].name, str)
    assert_type(p.table(rows=3), str)
    profiler.record_memory()
    assert_type(profiler.memory_snapshot().entries[0].kind, str)
    profiler.record_memory(False)


def functions(x: Tensor) -> None:
    assert_type(x.sum(0, keepdim=True), Tensor)
    assert_type(x.std(axis=0, keepdims=True), Tensor)
    assert_type(plugrad.softmax(x, dim=-1), Tensor)
    assert_type(x.max(0).indices, Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.sort(axis=0), Tensor)
    assert_type(x.sort(dim=0).values, Tensor)
    assert_type(x.split(1), tuple[Tensor, ...])
    assert_type(x.unique(), Tensor)
    assert_type(x.reshape(-1, 1).reshape((2,)), Tensor)
    assert_type(x.to("cpu", dtype="f64").detach().clone(), Tensor)
    assert_type(plugrad.where(x > 0, 1.0, x), Tensor)
    assert_type(plugrad.linalg.svd(plugrad.eye(2)), SVDResult)
    assert_type(plugrad.zeros(2, 3, requires_grad=True), Tensor)
    assert_type(plugrad.rand((2,), dtype=plugrad.f64, requires_grad=False), Tensor)
    assert_type(x.clone().clamp_(0, 1).relu_().mul_(x), Tensor)


def files(x: Tensor, folder: Path) -> None:
    plugrad.save_npy(x, folder / "x.npy")
    plugrad.save({"x": x}, folder / "x.safetensors")
    assert_type(plugrad.load_npy(folder / "x.npy"), Tensor)
    with plugrad.safe_open(folder / "x.safetensors") as opened:
        assert_type(opened.keys(), list[str])
        assert_type(opened.get_tensor("x"), Tensor)
        assert_type(opened.get_slice("x")[1:], Tensor)
    assert_type(text.Characters("hello").encode("hole"), Tensor)


def training() -> float:
    model = Scaled()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loss: Tensor = nn.mse_loss(model(plugrad.ones(3, 2)), plugrad.zeros(3, 2))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    assert_type(model.scale.grad, Tensor | None)
    with no_grad():
        for p in model.train().parameters():
            p.mul_(0.5)
    return float(loss)


class Lines(data.Dataset[tuple[Tensor, float]]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, float]:
        return plugrad.ones(2) * index, 3.0 * index


def loaders() -> float:
    loader = data.DataLoader(Lines(6), batch_size=3, shuffle=True, num_workers=1)
    assert_type(len(loader), int)
    for x, y in loader:
        assert x.shape == (3, 2) and y.dtype == plugrad.f64
    parts = data.random_split(data.TensorDataset(plugrad.ones(4, 2), plugrad.zeros(4, 2)), [0.5, 0.5])
    model = Scaled()
    optimizer = optim.Adam(model.parameters())
    history = fit(model, data.DataLoader(parts[0], 2), optimizer, loss=nn.MSELoss(), max_norm=1.0, progress=False)
    fit(model, data.DataLoader(parts[1], 2), optimizer=optimizer, loss=nn.mse_loss, progress=False)
    fit(model, plugrad.ones(4, 2), plugrad.zeros(4, 2), optimizer, nn.mse_loss, batch_size=2, progress=False,
        validate=lambda: 1.0, on_epoch=lambda epoch, loss: print(epoch, loss))
    assert_type(history.losses, list[float])
    return history.losses[0]


@no_grad()
def evaluated(model: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = model.eval()(x)
    return y


def main() -> None:
    x = plugrad.tensor([1.0, 2.0])
    operators(x)
    elements(x.clone())
    functions(x)
    profiled(x)
    with TemporaryDirectory() as folder:
        files(x, Path(folder))
    assert training() >= 0 and loaders() >= 0
    assert not evaluated(Scaled(), x).requires_grad
    value = Value(2.0)
    assert_type(value * value + 1, Value)


main()
