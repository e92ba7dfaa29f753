"""Profilers, ranges and snapshots of memory."""
import json
import threading

import plugrad
import pytest
from plugrad import Tensor, nn, optim, profiler

pytestmark = pytest.mark.usefixtures("device_under_test")


def training_step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss


@pytest.fixture
def network():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    return model, optim.SGD(model.parameters(), lr=0.1), plugrad.rand(4, 6)


def without_repeated_keys(pairs):
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def test_a_training_step_has_forward_and_backward_events(network, tmp_path):
    path = tmp_path / "trace.json"
    with profiler.profile(trace=path) as p:
        training_step(*network)
    trace = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=without_repeated_keys)
    events = [each for each in trace["traceEvents"] if each["ph"] == "X"]
    assert [each["cat"] for each in events if each["name"] == "matmul_add"] == ["forward"] * 2
    assert [each["cat"] for each in events if each["name"] == "matmul"] == ["backward"] * 3
    products = [each for each in events if each["name"].startswith("matmul")]
    assert all(each["dur"] > 0 and len(each["args"]["inputs"]) >= 2 for each in products)
    assert {each["name"] for each in trace["traceEvents"] if each.get("cat") == "range"} == {"Sequential", "Linear", "ReLU"}
    kinds = {each.kind for each in p.events()}
    assert {"op", "range", "gradient"} <= kinds
    matmul = next(each for each in p.events() if each.name == "matmul_add")
    assert [operand.shape for operand in matmul.operands][0] == (4, 8)
    assert matmul.operands[0].dtype == "f32" and matmul.operands[0].output and matmul.how == "native"
    assert matmul.device == plugrad.default_device().name and matmul.duration >= matmul.self >= 0


def test_modules_are_ranges_only_while_it_records(network):
    before = nn.Module.__call__
    with profiler.profile() as p:
        assert nn.Module.__call__ is not before
    assert nn.Module.__call__ is before
    network[0](network[2])
    assert not p.events()


def test_the_table_sums_up():
    x = plugrad.rand(10, 10)
    with profiler.profile() as p:
        for _ in range(5):
            x.exp()
        x.tanh()
    rows = p.rows(sort="calls")
    assert rows[0].name == "exp" and rows[0].calls == 5 and rows[0].bytes == 5 * 2 * 100 * 4 and rows[0].fallbacks == 0
    assert len(p.table(rows=1).splitlines()) < len(p.table().splitlines())
    assert "(10, 10) f32 <- (10, 10) f32" in p.table(sort="bytes", shapes=True)
    with pytest.raises(ValueError, match="'size': 'time', 'bytes', 'calls' or 'fallbacks'"):
        p.table(sort="size")


def test_ranges_nest_and_decorate():
    @profiler.range("doubled")
    def doubled(x):
        return x + x

    with profiler.profile() as p, profiler.range("outer"):
        doubled(plugrad.ones(3))
    events = {each.name: each for each in p.events()}
    assert (events["outer"].depth, events["doubled"].depth, events["add"].depth) == (0, 1, 2)
    assert "doubled" in p.table()
    with pytest.raises(TypeError, match="str, not int"):
        profiler.range(3)
    doubled(plugrad.ones(3))


def test_every_thread_records():
    x = plugrad.ones(3)
    with profiler.profile() as p:
        threads = [threading.Thread(target=lambda: [x.exp() for _ in range(50)]) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    counts = {}
    for each in p.events():
        counts[each.thread] = counts.get(each.thread, 0) + (each.name == "exp")
    assert sorted(counts.values()) == [50, 50, 50]


def test_what_is_wrong_is_an_error_at_once(tmp_path):
    with pytest.raises(OSError, match="trace.json"):
        profiler.profile(trace=tmp_path / "none" / "trace.json").__enter__()
    for limit in (0, -1):
        with pytest.raises(ValueError, match=f"limit is {limit}"):
            profiler.profile(limit=limit).__enter__()
    with pytest.raises(ValueError, match="use it as"):
        profiler.profile().events()
    with profiler.profile() as p:
        with pytest.raises(ValueError, match="another profiler"):
            profiler.profile().__enter__()
    with pytest.raises(ValueError, match="recorded already"):
        p.__enter__()


def test_the_limit_drops():
    x = plugrad.ones(3)
    with profiler.profile(limit=3) as p:
        for _ in range(10):
            x.exp()
    assert len(p.events()) == 3 and p.dropped >= 7 and f"{p.dropped} events were dropped" in p.table()


@pytest.fixture
def recording():
    profiler.record_memory()
    yield
    profiler.record_memory(False)


def test_a_snapshot_names_parameters_and_gradients(network, recording):
    model, optimizer, x = network
    loss = training_step(model, optimizer, x)
    device = plugrad.default_device()
    snapshot = profiler.memory_snapshot(module=model)
    assert sum(each.bytes for each in snapshot.entries) == snapshot.total == device.memory().active
    kinds = {each.name: each.kind for each in snapshot.entries if each.name}
    assert kinds == {f"{layer}.{name}{suffix}": "gradient" if suffix else "parameter"
                     for layer in (0, 2) for name in ("weight", "bias") for suffix in ("", ".grad")}
    assert all(each.where.startswith(__file__) for each in snapshot.entries if each.op)
    assert "0.weight.grad" in snapshot.table(rows=100)
    assert loss.shape == ()


def test_saved_values_are_those_of_recorded_ops(recording):
    x = plugrad.rand(20, 30).requires_grad_()
    y = (x * 2).tanh()
    saved = [each for each in profiler.memory_snapshot().entries if each.kind == "saved"]
    assert [(each.saved_by, each.op, each.shape, each.dtype) for each in saved] == [("tanh", "tanh", (20, 30), "f32")]
    del y
    assert not [each for each in profiler.memory_snapshot().entries if each.kind == "saved"]


def test_a_snapshot_needs_the_recording():
    with pytest.raises(ValueError, match=r"record_memory\(\)"):
        profiler.memory_snapshot()
    with profiler.profile(memory=True):
        x = Tensor([1.0, 2.0]).exp()
        assert any(each.op == "exp" and each.shape == (2,) for each in profiler.memory_snapshot().entries)
    with pytest.raises(ValueError):
        profiler.memory_snapshot()
    assert x.shape == (2,)
