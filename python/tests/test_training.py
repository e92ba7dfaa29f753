"""The training loop: its losses, which equal those in C++, and its ends."""
import io
import json
import math

import plugrad
import pytest
from plugrad import data, nn, optim, training
from plugrad.data import DataLoader, TensorDataset
from plugrad.optim import lr_scheduler


def started():
    plugrad.manual_seed(1)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    return model, optim.Adam(model.parameters(), 0.05)


def test_losses_are_those_of_cpp(root):
    """The tests in C++ read the same file."""
    model, optimizer = started()
    inputs, labels = data.moons(60, 0.1, seed=4)
    history = training.fit(model, inputs, labels, optimizer, epochs=3, batch_size=16, seed=3, max_norm=0.5, progress=False,
                           scheduler=lr_scheduler.CosineAnnealingLR(optimizer, 12))
    expected = json.loads((root / "tests/fixtures/training.json").read_text())["fit"]["losses"]
    assert history.losses == pytest.approx(expected, rel=1e-6) and optimizer.steps == 12


def test_loaders_and_tensors_give_the_same_losses(capsys):
    inputs, labels = data.moons(50, seed=4)

    def loader():
        return DataLoader(TensorDataset(inputs, labels), 16, shuffle=True, seed=3, num_workers=2)

    def losses(run):
        model, optimizer = started()
        return run(model, optimizer).losses
    runs = [losses(lambda model, optimizer: training.fit(model, inputs, labels, optimizer, epochs=2, batch_size=16, seed=3)),
            losses(lambda model, optimizer: training.fit(model, loader(), optimizer, epochs=2)),
            losses(lambda model, optimizer: training.fit(model, loader(), optimizer=optimizer, epochs=2)),
            losses(lambda model, optimizer: training.fit(
                lambda batch: nn.cross_entropy(model(batch[0]), batch[1]), loader(), optimizer, loss=None, epochs=2)),
            losses(lambda model, optimizer: training.fit(
                lambda batch: nn.cross_entropy(model(batch["x"]), batch["y"]),
                DataLoader([{"x": x, "y": int(y)} for x, y in zip(inputs, labels)], 16, shuffle=True, seed=3), optimizer,
                loss=None, epochs=2))]
    assert all(run == runs[0] for run in runs) and len(runs[0]) == 2
    assert capsys.readouterr().err.count("4/4") == 2 * len(runs)


def test_batches_of_any_iterable(capsys):
    weight = plugrad.tensor([0.0], dtype="f64", requires_grad=True)
    rows = plugrad.tensor([1.0, 2.0, 3.0, 4.0, 10.0], dtype="f64")

    class Stream:
        def __iter__(self):
            yield from ((rows[:4], rows[:4], 2), (rows[4:], rows[4:], 1))
    seen = []

    def loss(output, target):
        seen.append(target)
        return (output + weight).mean()
    history = training.fit(lambda x, y: (x + y) / 2, Stream(), optim.SGD([weight], 0.0), loss=loss, epochs=2)
    assert history.losses == [4, 4] and seen == [2, 1, 2, 1]  # the mean over samples, not over batches
    assert "] 2 " in capsys.readouterr().err
    empty = training.fit(lambda batch: weight.sum(), [[rows[:0]]], optim.SGD([weight], 0.0), loss=None, progress=False)
    assert math.isnan(empty.losses[0])


def test_callbacks():
    model, optimizer = started()
    inputs, labels = data.moons(20)
    calls = []

    def validate():
        assert not plugrad.is_grad_enabled()
        calls.append("validate")
        return plugrad.tensor(float(len(calls)))
    history = training.fit(model, inputs, labels, optimizer, epochs=2, batch_size=10, progress=False, validate=validate,
                           on_epoch=lambda epoch, loss: calls.append((epoch, loss > 0)))
    assert calls == ["validate", (0, True), "validate", (1, True)] and history.validations == [1, 3]


@pytest.mark.parametrize("steps, epochs", [(3, 0), (4, 1), (6, 1), (8, 2), (13, 3)])
def test_ends_after_the_step_in_which_it_is_asked(steps, epochs):
    model, optimizer = started()
    inputs, labels = data.moons(40)
    ended = []
    history = training.fit(model, inputs, labels, optimizer, epochs=3, batch_size=10, progress=False,
                           stop=lambda: optimizer.steps == steps, on_epoch=lambda epoch, loss: ended.append(epoch))
    assert len(history.losses) == len(ended) == epochs and history.interrupted == (steps <= 12)
    assert optimizer.steps == min(steps, 12)


def test_limits_gradients():
    weight = plugrad.tensor([0.0, 0.0], requires_grad=True)
    training.fit(lambda batch: (batch[0] * weight).sum(), DataLoader(TensorDataset(plugrad.tensor([[30.0, 40.0]]))),
                 optim.SGD([weight], 1.0), loss=None, max_norm=5, progress=False)
    assert weight.tolist() == pytest.approx([-3, -4], rel=1e-5)


def test_mixed_precision():
    inputs, labels = data.moons(60, seed=4)
    dtypes = []

    def loss(output, target):
        dtypes.append(str(output.dtype))
        return nn.cross_entropy(output, target)

    def losses(**more):
        model, optimizer = started()
        history = training.fit(model, inputs, labels, optimizer, loss, 3, batch_size=16, seed=3, progress=False, **more)
        return history.losses, [p.tolist() for p in model.parameters()]
    plain = losses(max_norm=0.5)
    for dtype in ("bf16", "f16"):
        dtypes.clear()
        scaler = plugrad.amp.GradScaler(init_scale=1024.0, growth_interval=12)
        mixed = losses(max_norm=0.5, autocast=plugrad.autocast(dtype=dtype), scaler=scaler)
        assert set(dtypes) == {dtype} and mixed[0] == pytest.approx(plain[0], rel=0.02) and mixed[0] != plain[0]
        assert scaler.get_scale() == 2048  # after twelve steps
    assert not plugrad.amp.is_autocast_enabled()
    assert losses(scaler=plugrad.amp.GradScaler(init_scale=2.0 ** 10)) == losses()  # scaling by a power of two is exact


def test_a_scaler_leaves_out_steps_of_infinite_gradients():
    weight = plugrad.tensor([1.0], requires_grad=True)
    scaler = plugrad.amp.GradScaler(init_scale=4.0)
    rows = TensorDataset(plugrad.tensor([[1.0], [float("inf")], [2.0]]))
    optimizer = optim.SGD([weight], 0.5)
    halved = lr_scheduler.StepLR(optimizer, 1, 0.5)
    training.fit(lambda batch: (batch[0] * weight).sum(), DataLoader(rows), optimizer, loss=None, scheduler=halved,
                 scaler=scaler, progress=False)
    assert weight.tolist() == [1 - 0.5 * 1 - 0.25 * 2] and scaler.get_scale() == 2 and halved.last_epoch == 2


def test_a_failing_text_of_a_progress_bar_leaves_the_blocks_exception():
    def text():
        raise RuntimeError("the device was lost")
    file = io.StringIO()
    with pytest.raises(KeyError, match="the cause"):
        with training.Progress(2, "epoch", file=file) as bar:
            bar.update(text)
            raise KeyError("the cause")
    assert "1/2" in file.getvalue()
    with pytest.raises(RuntimeError, match="was lost"), training.Progress(2, file=file) as bar:
        bar.update(text)


@pytest.mark.parametrize("more, text", [
    ({"epochs": -1}, "epochs -1"), ({"batch_size": 0}, "batch_size 0"), ({"max_norm": 0}, "max_norm 0"),
    ({"max_norm": float("nan")}, "max_norm nan")])
def test_refuses_options_out_of_range(more, text):
    model, optimizer = started()
    with pytest.raises(ValueError, match=text):
        training.fit(model, *data.moons(6), optimizer, **more)
    assert optimizer.steps == 0


def test_refuses_what_makes_no_training():
    model, optimizer = started()
    inputs, labels = data.moons(6)
    loader = DataLoader(TensorDataset(inputs, labels), 10, drop_last=True)
    for arguments, more, error, text in (
            ((inputs, labels), {}, TypeError, "optimizer is a NoneType"), ((inputs, optimizer), {}, TypeError, "targets"),
            ((loader, optimizer), {}, ValueError, "no batches"),
            ((loader, optimizer), {"batch_size": 2}, ValueError, "are the loader's"),
            ((inputs[:0], labels[:0], optimizer), {}, ValueError, "no batches"),
            ((DataLoader(TensorDataset(inputs)), optimizer), {}, ValueError, "a pair of inputs and targets"),
            (([{"x": inputs}], optimizer), {}, ValueError, "a batch is a dict")):
        with pytest.raises(error, match=text):
            training.fit(model, *arguments, progress=False, **more)
    assert training.fit(model, inputs, labels, optimizer, epochs=0).losses == [] and optimizer.steps == 0


def test_draws_learning_curves(tmp_path):
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    history = training.History([2.0, 1.0, 0.5], [0.4, 0.7, 0.9])
    figure = history.plot(tmp_path / "curves.svg", title="moons")
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "validation"] and figure.axes[0].get_ylim()[0] == 0
    assert [list(axes.lines[0].get_ydata()) for axes in figure.axes] == [history.losses, history.validations]
    assert "<svg" in (tmp_path / "curves.svg").read_text()
    assert len(training.plot(training.History([1.0])).axes) == len(training.plot(training.History()).axes) == 1


def test_drawing_needs_matplotlib(run_python):
    run_python("import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.figure'] = None\n"
               "from plugrad import training\n"
               "try:\n    training.History([1.0]).plot()\n"
               "except ImportError as error:\n    assert 'pip install matplotlib' in str(error)\n"
               "else:\n    raise AssertionError")
