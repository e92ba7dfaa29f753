"""Ways to look at a model and its training: summaries, searches for a learning rate, TensorBoard's files."""
import struct

import plugrad
import pytest
from plugrad import nn, optim, summary
from plugrad.training import find_learning_rate

pytestmark = pytest.mark.usefixtures("device_under_test")


def network():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Sequential(nn.Linear(128, 20), nn.ReLU(), nn.Linear(20, 2)))


# --- Summaries.

def test_a_summary_counts_what_the_modules_do():
    model = network()
    model[0].weight.requires_grad = False
    before = model[1].running_mean.tolist()
    found = summary(model, (4, 3, 8, 8))
    rows = {row.name: row for row in found.rows}
    assert rows["0"].kind == "Conv2d" and rows["0"].shapes == [(4, 8, 8, 8)]
    assert rows["0"].flops == 2 * 4 * 8 * 8 * 8 * 27  # a multiplication and an addition for each weight and element
    assert rows["5.0"].flops == 2 * 4 * 20 * 128 and rows["5.0"].depth == 2 and rows["5.0"].shapes == [(4, 20)]
    assert rows["5"].flops == sum(rows[name].flops for name in ("5.0", "5.1", "5.2")) and rows["4"].flops == 0
    assert rows["2"].bytes == 2 * 4 * 8 * 8 * 8 * 4
    assert found.flops == rows[""].flops == sum(rows[str(i)].flops for i in range(6))
    assert found.parameters == sum(each.numel() for each in model.parameters()) == 2862
    assert found.trainable == 2862 - 216 and found.parameter_bytes == 4 * 2862
    assert model.training and model[1].running_mean.tolist() == before and all(p.grad is None for p in model.parameters())


def test_a_summary_is_a_table():
    lines = str(summary(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), (8, 4))).splitlines()
    assert [line.split() for line in lines[:2]] == [["module", "output", "parameters", "FLOPs", "bytes"],
                                                    ["Sequential", "(8,", "2)", "10", "144", "360"]]
    assert lines[2].startswith("  (0): Linear") and lines[-1].startswith("10 parameters (40 bytes), 10 trainable; 144 FLOPs")
    assert "<table>" in summary(nn.Linear(4, 2), (8, 4))._repr_html_()
    assert len(summary(network(), (1, 3, 8, 8), depth=1).rows) == 7


def test_a_module_that_runs_twice_counts_twice_and_outputs_may_be_many():
    shared = nn.Linear(4, 4)
    twice = summary(nn.Sequential(shared, nn.ReLU(), shared), plugrad.ones(2, 4))
    assert twice.rows[1].calls == 2 and twice.rows[1].flops == 2 * (2 * 2 * 4 * 4) and twice.parameters == 20
    assert summary(nn.LSTM(4, 5), (7, 2, 4)).rows[0].shapes == [(7, 2, 5), (1, 2, 5), (1, 2, 5)]


def test_a_summary_of_a_failing_model_leaves_it_as_it_was():
    model = network()
    call = nn.Module.__call__
    with pytest.raises(ValueError):
        summary(model, (4, 5, 8, 8))
    assert model.training and nn.Module.__call__ is call
    assert summary(model, (4, 3, 8, 8)).flops > 0


# --- Learning rates.

def fitting():
    plugrad.manual_seed(0)
    x = plugrad.randn(64, 4)
    y = x @ plugrad.tensor([[1.0], [-2.0], [0.5], [3.0]])
    return nn.Linear(4, 1), [(x[i:i + 16], y[i:i + 16]) for i in range(0, 64, 16)]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_a_search_finds_a_rate_that_trains(kind):
    model, batches = fitting()
    optimizer = kind(model.parameters(), 0.123)
    before = [each.tolist() for each in model.parameters()]
    found = find_learning_rate(model, optimizer, batches, nn.functional.mse_loss, low=1e-5, high=100, steps=80)
    assert [each.tolist() for each in model.parameters()] == before and optimizer.param_groups[0]["lr"] == 0.123
    assert all(each.grad is None for each in model.parameters()) and model.training
    assert len(found.rates) == len(found.losses) == len(found.smoothed) < 80  # the largest rates diverge
    assert found.rates[0] == 1e-5 and found.rates == sorted(found.rates)
    optimizer.param_groups[0]["lr"] = found.suggestion
    for _ in range(50):
        for x, y in batches:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    assert loss.item() < 0.2 * found.losses[0]


def test_a_search_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    model, batches = fitting()
    found = find_learning_rate(model, optim.SGD(model.parameters(), 0.1), batches, nn.functional.mse_loss, steps=30)
    axes = found.plot(tmp_path / "rates.svg").axes[0]
    assert axes.get_xscale() == "log" and axes.lines[1].get_ydata().tolist() == found.smoothed
    assert (tmp_path / "rates.svg").stat().st_size > 1000


def test_unfit_searches_are_refused():
    model, batches = fitting()
    optimizer = optim.SGD(model.parameters(), 0.1)
    for options, message in [({"low": 0}, "0 < low < high"), ({"high": 1e-9}, "0 < low < high"), ({"steps": 1}, "2 steps"),
                             ({"smoothing": 1}, "smoothing is 1")]:
        with pytest.raises(ValueError, match=message):
            find_learning_rate(model, optimizer, batches, nn.functional.mse_loss, **options)
    with pytest.raises(ValueError, match="no batches"):
        find_learning_rate(model, optimizer, [], nn.functional.mse_loss)
    heights = iter(range(1, 6))
    rising = find_learning_rate(model, optimizer, batches, lambda x, y: x.sum() * 0 + next(heights), steps=5, divergence=9)
    with pytest.raises(ValueError, match="does not fall"):
        _ = rising.suggestion


# --- TensorBoard.

def written_values(folder):
    """The summaries in an event file: records of length, checksum, message and checksum."""
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    (path,) = folder.glob("events*")
    data, at, found = path.read_bytes(), 0, {}
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        event = event_pb2.Event.FromString(data[at + 12:at + 12 + size])
        found |= {value.tag: (event.step, value) for value in event.summary.value}
        at += size + 16
    return found


def test_tensorboard_reads_tensors(tmp_path):
    pytest.importorskip("tensorboardX")
    from plugrad.utils.tensorboard import SummaryWriter
    x = plugrad.arange(10, dtype="float32").requires_grad_()
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", (x * x).sum(), 7)
        writer.add_scalar("half", plugrad.tensor(1.5, dtype="bf16"), 8)
        writer.add_histogram("weights", x, 9)
        writer.add_image("picture", plugrad.rand(3, 4, 5), 10)
        with pytest.raises(NotImplementedError, match="draw_dot"):
            writer.add_graph(None)
    found = written_values(tmp_path)
    assert found["loss"][0] == 7 and found["loss"][1].simple_value == 285
    assert found["half"][1].simple_value == 1.5 and found["weights"][1].histo.num == 10
    assert (found["picture"][1].image.height, found["picture"][1].image.width) == (4, 5)


# --- Profiles.

def test_notebooks_show_a_profile_as_a_table():
    x = plugrad.randn(8, 8, requires_grad=True)
    with plugrad.profiler.profile() as recorded, plugrad.profiler.range("a <b>"):
        (x @ x).sum().backward()
    page = recorded._repr_html_()
    assert page.count("<tr>") == 1 + len(recorded.rows()) and "a &lt;b&gt;" in page and "matmul (backward)" in page
