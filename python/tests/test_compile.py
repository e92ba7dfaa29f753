"""Compiled functions: recorded once, then replayed."""

import copy
import importlib.util
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import plugrad
from plugrad import Tensor, nn, optim


def points(n, seed):
    plugrad.manual_seed(seed)
    return plugrad.rand((n, 2))


class Net(nn.Module):
    def __init__(self):
        self.body = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.25), nn.Linear(16, 3))

    def forward(self, x):
        return self.body(x)


def test_empty_keywords_change_nothing():
    step = plugrad.compile(lambda x: x * 2)
    x = plugrad.ones((3,))
    for _ in range(4):
        assert step(x, **{}).tolist() == [2, 2, 2]
    assert step.figures().recorded == 1


def test_an_object_without_its_init_is_an_error():
    kind = type(plugrad.compile(lambda x: x * 2))
    with pytest.raises(TypeError, match="__init__ was not called"):
        kind.__new__(kind)(plugrad.ones((3,)))


def test_a_copy_is_the_function_itself():
    step = plugrad.compile(lambda x: x * 2)
    assert copy.copy(step) is step
    assert copy.deepcopy({"step": step})["step"] is step


def train(compiled, make):
    plugrad.manual_seed(0)
    net = Net()
    optimizer = make(net.parameters())
    schedule = optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

    def step(x, y):
        optimizer.zero_grad()
        loss = plugrad.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    run = plugrad.compile(step) if compiled else step
    losses = []
    for i in range(8):
        losses.append(run(points(6, i), plugrad.tensor([0, 1, 2, 0, 1, 2])).item())
        schedule.step()
    state = [value.numpy() for value in net.state_dict().values()]
    return losses, state, run


@pytest.mark.parametrize("make", [lambda p: optim.SGD(p, 0.1, momentum=0.9), lambda p: optim.AdamW(p, 0.05),
                                  lambda p: optim.RMSprop(p, 0.05)])
def test_a_training_step_has_the_same_bits(make):
    expected, state, _ = train(False, make)
    losses, compiled_state, step = train(True, make)
    assert losses == expected
    for ours, theirs in zip(compiled_state, state, strict=True):
        assert np.array_equal(ours, theirs)
    assert step.figures().replayed >= 4


def test_a_function_is_called_once():
    @plugrad.compile
    def double(x):
        """Doubles x."""
        return x * 2

    for i in range(4):
        assert double(plugrad.tensor([float(i)])).item() == 2 * i
    assert double.__name__ == "double" and double.__doc__ == "Doubles x."
    assert double.figures() == (1, 3, 0)
    assert "'double': 1 calls recorded, 3 replayed" in double.explain()


def test_tensors_that_track_by_default_are_arguments():
    @plugrad.compile
    def square(x):
        loss = (x * x).sum()
        loss.backward()
        return loss

    for i in range(1, 5):
        x = Tensor([float(i), 2.0])  # tracks its gradient
        assert square(x).item() == i * i + 4
        assert x.grad.tolist() == [2.0 * i, 4.0]
    assert square.figures() == (1, 3, 0)


def test_arguments_and_results_nest():
    @plugrad.compile(name="nested")
    def f(batch, *, scale):
        return {"sum": batch["x"] + batch["y"][0], "all": [batch["x"] * scale, None], "pair": (batch["y"][0],)}

    x, y = plugrad.tensor([1.0, 2.0]), plugrad.tensor([3.0, 4.0])
    for _ in range(3):
        made = f({"x": x, "y": [y]}, scale=3)
        assert made["sum"].tolist() == [4.0, 6.0]
        assert made["all"][0].tolist() == [3.0, 6.0] and made["all"][1] is None
        assert made["pair"][0].tolist() == [3.0, 4.0]
    assert f.figures().replayed == 2


def test_numbers_are_part_of_the_recording():
    @plugrad.compile
    def f(x, scale, flag=False):
        return x * scale if flag else x + scale

    x = plugrad.tensor([2.0])
    for _ in range(2):
        assert f(x, 3).item() == 5
        assert f(x, 3.0).item() == 5
        assert f(x, 4).item() == 6
        assert f(x, 4, flag=True).item() == 8
    assert f.figures() == (4, 4, 0)


def test_methods_and_modules_are_told_apart():
    class Scaled:
        def __init__(self, scale):
            self.weight = plugrad.tensor([scale])

        @plugrad.compile
        def __call__(self, x):
            return x * self.weight

    one, two = Scaled(1.0), Scaled(2.0)
    x = plugrad.tensor([3.0])
    for _ in range(3):
        assert one(x).item() == 3 and two(x).item() == 6

    drop = nn.Dropout(0.5)

    @plugrad.compile
    def apply(module, x):
        return module(x)

    ones = plugrad.ones((100,))
    for _ in range(2):
        assert apply(drop.train(), ones).tolist() != ones.tolist()
        assert apply(drop.eval(), ones).tolist() == ones.tolist()


def test_forms_of_results_keep_their_types():
    class Pair(NamedTuple):
        a: Tensor
        b: Tensor

    f = plugrad.compile(lambda x, named: Pair(x, x + 1) if named else (x, x + 1))
    x = plugrad.tensor([1.0])
    for _ in range(2):
        assert type(f(x, False)) is tuple
        assert type(f(x, True)) is Pair


def test_objects_are_told_apart_however_many_there_are():
    class Scale:
        def __init__(self, value):
            self.value = value

    f = plugrad.compile(lambda x, a, b: x * a.value + b.value, entries=1000)
    x = plugrad.tensor([1.0])
    for i in range(300):
        assert f(x, Scale(i), Scale(2 * i)).item() == 3 * i


def test_the_function_may_ask_and_clear():
    @plugrad.compile
    def f(x):
        f.figures()
        f.explain()
        if len(calls) < 3:
            f.clear()
        calls.append(1)
        return x + 1

    calls = []
    for i in range(8):
        assert f(plugrad.tensor([float(i)])).item() == i + 1


def test_what_a_replay_cannot_do_is_refused():
    x = plugrad.tensor([1.0])
    with pytest.raises(ValueError, match="reads the elements of a tensor"):
        plugrad.compile(lambda v: v * v.item())(x)
    with pytest.raises(ValueError, match="copies data of the host"):
        plugrad.compile(lambda v: v + plugrad.tensor(np.ones(1)))(x)
    with pytest.raises(ValueError, match="numpy.ndarray: pass a Tensor"):
        plugrad.compile(lambda v: v, name="f")(np.ones(2))
    with pytest.raises(ValueError, match="returns a float"):
        plugrad.compile(lambda v: 1.0)(x)
    with pytest.raises(ValueError, match="graph"):
        plugrad.compile(lambda v: v)(Tensor([1.0]) * 2)
    with pytest.raises(ValueError, match="option of an optimiser"):
        weight = nn.Parameter([1.0])
        optimizer = optim.SGD([weight], 0.1)
        plugrad.compile(lambda: optimizer.param_groups[0].__setitem__("lr", 0.2))()


def test_an_exception_of_the_function_passes():
    @plugrad.compile
    def f(x):
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(plugrad.tensor([1.0]))
    assert (plugrad.tensor([1.0]) + 1).item() == 2


def test_fit_compiles_its_steps():
    x, y = points(50, 1), plugrad.randint(0, 3, (50,))

    def trained(**options):
        plugrad.manual_seed(0)
        net = Net()
        optimizer = optim.AdamW(net.parameters(), 0.05)
        schedule = optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
        history = plugrad.training.fit(net, x, y, optimizer, epochs=3, batch_size=16, scheduler=schedule, max_norm=1.0,
                                       progress=False, **options)
        return history.losses

    assert trained(compile=True) == trained()
    with pytest.raises(ValueError, match="compile is set and there is a scaler"):
        trained(compile=True, scaler=plugrad.amp.GradScaler())


@pytest.mark.parametrize("value", ["off", "check", "sometimes"])
def test_the_environment_is_asked(value):
    program = """
import plugrad
@plugrad.compile
def f(x):
    print(end=".")
    return x * 2
try:
    for i in range(40):
        assert f(plugrad.tensor([float(i)])).item() == 2 * i
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={"PLUGRAD_CAPTURE": value})
    expected = {"off": "." * 40, "check": "...", "sometimes": "PLUGRAD_CAPTURE='sometimes': on, check or off expected"}
    assert done.stdout.strip() == expected[value]


def test_fusions_have_the_same_bits():
    x, w = plugrad.randn(100, 200), plugrad.randn(200)

    def step(a, b):
        c = a - a.mean(-1, keepdim=True)
        y = plugrad.relu(c * b)
        return y, y.sum(0), (y * y).sum()

    together, apart = plugrad.compile(step), plugrad.compile(step, fuse=False)
    for _ in range(3):
        for one, other in zip(together(x, w), apart(x, w)):
            assert one.numpy().tobytes() == other.numpy().tobytes()
    assert "fusion of" in together.explain()
    assert "fusion of" not in apart.explain()


def test_a_saved_model_computes_the_same(tmp_path):
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)).eval()

    @plugrad.compile
    def forward(x):
        with plugrad.no_grad():
            y = net(x)
            return y, y.softmax(-1)

    x = plugrad.randn(5, 4)
    forward(x)
    path = tmp_path / "model.plugrad"
    forward.save(path)
    model = plugrad.load_model(path)
    assert model.inputs == [((5, 4), plugrad.float32)]
    assert [shape for shape, _ in model.outputs] == [(5, 3), (5, 3)]
    for given in (x, plugrad.randn(5, 4)):
        for one, other in zip(model(given), forward(given)):
            assert one.numpy().tobytes() == other.numpy().tobytes()
    with pytest.raises(ValueError, match="input 0 is .* and the model takes"):
        model(plugrad.randn(4, 4))
    with pytest.raises(ValueError, match="draws random numbers"):
        noisy = plugrad.compile(lambda a: a + plugrad.rand(5, 4))
        noisy(x)
        noisy.save(path)
    for wrong in (np.zeros((5, 4), "f"), 3, [x], "x", None):
        with pytest.raises(TypeError, match="input 0 is a"):
            model(wrong)
    path.write_bytes(b"no model")
    with pytest.raises(OSError, match="model.plugrad"):
        plugrad.load_model(path)


def example(root, name):
    spec = importlib.util.spec_from_file_location(name, root / f"examples/{name}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cnn", "gpt"])
def test_the_networks_of_the_examples_run_from_files(root, tmp_path, name):
    module = example(root, name)
    plugrad.manual_seed(1)
    model = (module.network() if name == "cnn" else module.GPT(20)).eval()
    x = plugrad.rand(3, 1, 28, 28) if name == "cnn" else plugrad.randint(0, 20, (1, module.BLOCK))
    module.save_model(model, x, tmp_path / "model.plugrad")
    with plugrad.no_grad():
        expected = model(x).numpy()
    made = plugrad.load_model(tmp_path / "model.plugrad")(x)
    assert made.numpy().tobytes() == expected.tobytes()
    program = root / "build/bin/plugrad"
    if program.exists():
        np.save(tmp_path / "x.npy", x.numpy())
        for device, tolerance in (("cpu", 0), ("reference", 1e-5)):
            subprocess.run([program, "run", tmp_path / "model.plugrad", "--device", device, "--input", tmp_path / "x.npy",
                            "--output", tmp_path / "y"], check=True)
            np.testing.assert_allclose(np.load(tmp_path / "y-0.npy"), expected, tolerance, tolerance)


def replayed(function, *arguments):
    """Returns the result of a replay that was recorded with other arguments."""
    step = plugrad.compile(function)
    others = [plugrad.ones_like(each) for each in arguments]
    for given in (others, arguments):
        result = step(*given)
    assert step.figures().replayed == 1
    return result


def test_steps_cannot_refuse_elements():
    base, power = plugrad.tensor([1, -1, -1, 2, 3, 0, -2]), plugrad.tensor([-3, -3, -4, -1, 4, 0, 5])
    assert replayed(lambda a, b: a**b, base, power).tolist() == [1, -1, 1, 0, 81, 1, -32]
    with pytest.raises(ValueError, match="negative power"):
        base**power
    most = plugrad.tensor([2, 3], dtype="i8"), plugrad.tensor([6, 127], dtype="i8")
    assert replayed(lambda a, b: a**b, *most).tolist() == (most[0]**most[1]).tolist()
    parts = plugrad.tensor([0.5, 1.5])
    assert str(replayed(lambda q: plugrad.quantile(plugrad.arange(5, dtype="f32"), q), parts).tolist()) == "[2.0, nan]"
    assert np.isnan(replayed(plugrad.bernoulli, plugrad.tensor([1.0, -0.5])).numpy()).tolist() == [False, True]
    drawn = replayed(lambda deviation: plugrad.normal(0.0, deviation), plugrad.tensor([1.0, -0.5]))
    assert np.isnan(drawn.numpy()).tolist() == [False, True]


def test_steps_count_to_minlength():
    assert replayed(lambda x: plugrad.bincount(x, minlength=4), plugrad.tensor([3, 0, 3])).tolist() == [1, 0, 0, 2]
    with pytest.raises(ValueError, match="give minlength"):
        plugrad.compile(plugrad.bincount)(plugrad.tensor([1]))


def test_writes_to_shared_places_are_recorded():
    x, index = plugrad.zeros(4), plugrad.tensor([2, 0, 2])
    values = plugrad.tensor([5.0, 6.0, 7.0])
    assert replayed(lambda i, v: plugrad.scatter(x, 0, i, v), index, values).tolist() == [6.0, 0.0, 7.0, 0.0]
