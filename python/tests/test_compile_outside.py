"""What a compiled function depends on besides its arguments may change: each call gives what the function would give."""

import functools
import gc
import threading
import time
import warnings
import weakref

import outside_fuzz
import outside_rows
import pytest
from outside_objects import Scaled, Settings
from outside_rows import ROWS, TABLE, of_globals, set_global

import plugrad
from plugrad import nn, optim


class OfAMethod:
    """Calls a function as a compiled method."""

    def __init__(self, function):
        type(self).call = plugrad.compile(lambda self, x: function(x))

    def __call__(self, x):
        return self.call(x)


WAYS = {  # to compile and call a function
    "by tensors": plugrad.compile,
    "by name": lambda f: lambda x, g=plugrad.compile(lambda x: f(x)): g(x=x),
    "beside a number": lambda f: lambda x, g=plugrad.compile(lambda x, k: f(x) * k): g(x, 1.0),
    "as a method": OfAMethod}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_each_call_gives_what_the_function_would_give(name, way):
    x = plugrad.tensor([1.0, 2.0])

    def results(compiled):
        function, change = ROWS[name]()
        called = WAYS[way](function) if compiled else function
        given = []
        for value in (2.0, 3.0, 3.0, 3.0, 2.0, 5.0, 5.0):
            change(value)
            given.append(called(x).tolist())
        outside_rows.reset()
        return given

    assert results(True) == results(False)


@pytest.mark.filterwarnings("ignore")
def test_the_clock_is_read_each_time():
    f = plugrad.compile(lambda x: x + time.perf_counter())
    x = plugrad.zeros(1, dtype=plugrad.float64)
    seen = [f(x).item() for _ in range(5)]
    assert seen == sorted(set(seen))


def test_a_cleared_function_looks_again():
    compiled, x = plugrad.compile(of_globals), plugrad.ones(2)
    compiled(x)
    compiled.clear()
    for value in (2.0, 3.0):
        set_global("SCALE")(value)
        assert compiled(x).tolist() == [value] * 2
    outside_rows.reset()


def test_changes_of_arguments_are_noticed():
    @plugrad.compile
    def counted(x, state):
        state["n"] += 1
        return x * state["n"]

    with pytest.raises(ValueError, match="changes a list or a dict"):
        counted(plugrad.ones(2), {"n": 0})

    @plugrad.compile
    def of_object(x, settings):
        settings.own += 1
        return x * settings.own

    settings = Settings()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [of_object(plugrad.ones(1), settings).item() for _ in range(5)] == [3, 4, 5, 6, 7]


def test_functions_and_classes_as_arguments_are_looked_into():
    settings, x = Settings(), plugrad.ones(2)

    class Mine:
        weight = 2.0

    table = {"a": 2.0}
    by_partial = functools.partial(lambda s, x: x * s.own, settings)
    for argument, function, change in (
            (by_partial, lambda x, f: f(x), functools.partial(setattr, settings, "own")),
            (Mine, lambda x, kind: x * kind.weight, functools.partial(setattr, Mine, "weight")),
            (table.get, lambda x, get: x * get("a"), functools.partial(table.__setitem__, "a"))):
        compiled = plugrad.compile(function)
        for value in (2.0, 3.0, 3.0, 5.0):
            change(value)
            assert compiled(x, argument).tolist() == [value] * 2


def test_counters_with_the_name_of_a_method_are_not_read():
    class Trainer:
        def __init__(self):
            self.weight = nn.Parameter([1.0])
            self.optimizer, self.step, self.loss = optim.SGD([self.weight], 0.1), 0, 0.0

        def train(self, x):
            self.optimizer.zero_grad()
            loss = (self.weight * x).sum()
            loss.backward()
            self.optimizer.step()
            return {"loss": loss}

    trainer = Trainer()
    f = plugrad.compile(trainer.train)
    for _ in range(10):
        trainer.loss = f(plugrad.ones(1))["loss"].item()
        trainer.step += 1
    assert f.figures() == (2, 8, 0)


def test_what_stays_the_same_is_replayed():
    settings, net = Settings(), Scaled()
    settings.count, settings.losses = 0, []

    @plugrad.compile
    def f(x):
        return settings.method(net(x)) * outside_rows.SCALE * TABLE["scale"]

    for _ in range(10):
        loss = f(plugrad.ones(2))
        settings.count += 1
        settings.losses.append(loss)
        settings.more = settings.count  # a new attribute, which the function does not read
        net.unread += 1
        settings.own = float("2.0")     # equal, and another object
    assert f.figures() == (1, 9, 0)


def test_a_warning_names_what_changes(capfd):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f = plugrad.compile(lambda x, by: x * by, name="scaled")
        for i in range(40):
            f(plugrad.ones(2), (i, 1))
        g = plugrad.compile(of_globals, name="of_globals")
        for i in range(40):
            set_global("SCALE")(float(i))
            g(plugrad.ones(2))
    set_global("SCALE")(2.0)
    told = capfd.readouterr().err + "".join(str(each.message) for each in caught)
    assert "'scaled'" in told and "by is tuple(int 8,int 1), was tuple(int 7,int 1)" in told
    assert "'of_globals'" in told and "SCALE is float 8.0, was float 7.0" in told
    assert "recorded anew: SCALE is float 39.0, was float 38.0" in g.explain()
    h = plugrad.compile(lambda x: x * 2)
    for shape in ((2, 3), (4, 3)):
        h(plugrad.ones(shape))
    h(plugrad.ones((4, 3), dtype=plugrad.float64))
    h(plugrad.ones((3, 4), dtype=plugrad.float64).T)
    text = h.explain()
    assert "argument 0 has the shape (4, 3), was (2, 3)" in text
    assert "argument 0 has the dtype f64, was f32" in text
    assert "argument 0 has the strides (1, 4), was (3, 1)" in text


def test_a_function_that_changes_what_it_reads_is_called_each_time():
    settings = Settings()
    settings.count = 0

    @plugrad.compile
    def f(x):
        settings.count += 1
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(100):
            f(plugrad.ones(2))
    assert settings.count == 100 and f.figures().called > 50
    assert "changes what it may read" in f.explain()


def test_what_a_function_refers_to_does_not_live_longer():
    settings = Settings()
    settings.tensor = plugrad.ones(2)
    settings.net = Scaled()
    f = plugrad.compile(lambda x: settings.net(x) * settings.tensor)
    f(plugrad.ones(2))
    ends = [weakref.ref(settings.tensor), weakref.ref(settings.net)]
    settings.tensor = settings.net = None
    gc.collect()
    assert [each() for each in ends] == [None, None]


def test_a_compiled_function_is_collected():
    def make():
        settings = Settings()
        compiled = plugrad.compile(lambda x: compiled and x * settings.own)
        compiled(plugrad.ones(2))
        return weakref.ref(compiled)
    ended = make()
    gc.collect()
    assert ended() is None


def test_threads_call_one_function_side_by_side():
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)).eval()

    @plugrad.compile
    def forward(x):
        with plugrad.no_grad():
            return net(x)

    inputs = [plugrad.full((4, 8), float(i)) for i in range(8)]
    with plugrad.no_grad():
        expected = [net(x).tolist() for x in inputs]
    wrong = []

    def work(i):
        for _ in range(200):
            if forward(inputs[i]).tolist() != expected[i]:
                wrong.append(i)

    forward(inputs[0])
    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert forward.figures().recorded + forward.figures().replayed == 1601


def test_recordings_of_many_objects_stay_few():
    f = plugrad.compile(lambda x: x * outside_rows.HELPER(x))
    for _ in range(5):
        set_global("HELPER")(lambda x: x * 2.0)
        f(plugrad.ones(2))
    assert f.figures().recorded == 5


@pytest.mark.filterwarnings("ignore")
def test_random_functions_of_what_changes():
    recorded, replayed = outside_fuzz.check(100, 7)
    assert recorded and replayed
