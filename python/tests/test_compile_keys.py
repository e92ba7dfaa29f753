"""The keys of recordings: calls of a compiled function with equal keys share a recording."""

import collections
import enum
import functools
import math
import random
import types
import warnings
import weakref

import numpy as np
import pytest

import plugrad
from plugrad import nn


class Loud(float):
    """A number with the same text as every other number of this class."""

    def __repr__(self):
        return "1.0"


def test_keys_tell_values_of_all_types_apart():
    scaled = plugrad.compile(lambda x, by: x * by["a"] if isinstance(by, dict) else x * float(by[0]))
    x = plugrad.ones(2)
    for by in (Loud(1.01), Loud(1.04)):
        assert scaled(x, (by,)).tolist() == pytest.approx([float(by)] * 2)
    one, two = (collections.namedtuple("Scale", "a") for _ in range(2))
    by_class = plugrad.compile(lambda x, by: x * (2.0 if isinstance(by, one) else 3.0))
    assert by_class(x, one(1)).tolist() == [2, 2] and by_class(x, two(1)).tolist() == [3, 3]
    text_keys = plugrad.compile(lambda x, by: x * float(len(by)) if "a" in by else x)
    assert text_keys(x, {"a": 1}).tolist() == [1, 1] and text_keys(x, {"a": 1, "b": 2}).tolist() == [2, 2]
    signs = plugrad.compile(lambda x, by: x * math.copysign(1.0, by))
    assert signs(x, 0.0).tolist() == [1, 1] and signs(x, -0.0).tolist() == [-1, -1]


def test_dicts_of_other_classes_work_compiled():
    x = plugrad.ones(2)
    f = plugrad.compile(lambda by: collections.OrderedDict(sum=by["a"] + by["b"]))
    for made in (collections.OrderedDict(a=x, b=x), collections.defaultdict(list, a=x, b=x), {"a": x, "b": x}):
        for _ in range(2):
            result = f(made)
            assert type(result) is collections.OrderedDict and result["sum"].tolist() == [2, 2]


def test_attributes_of_arguments_are_part_of_the_key():
    class Slotted:
        __slots__ = "scale", "unset"

        def apply(self, x):
            return x * self.scale

    options, slotted, drop = types.SimpleNamespace(scale=2.0, more=[1]), Slotted(), nn.Dropout(0.0)
    slotted.scale = 2.0
    x = plugrad.ones(100)
    f = plugrad.compile(lambda x, how: x * how.scale)
    summed = plugrad.compile(lambda x, how: x * sum(how.more))
    called = plugrad.compile(lambda x, how: how(x))
    for scale in (2.0, 3.0, 2.0):
        options.scale = slotted.scale = scale
        assert f(x, options)[0].item() == f(x, slotted)[0].item() == called(x, slotted.apply)[0].item() == scale
    assert f.figures() == (4, 2, 0) and summed(x, options)[0].item() == 1
    options.more.append(4)
    assert summed(x, options)[0].item() == 5
    assert called(x, drop)[0].item() == 1
    drop.p = 0.5
    assert set(called(x, drop).tolist()) == {0, 2}


def test_attributes_that_the_function_does_not_read_are_not_part_of_the_key():
    class Trainer:
        def __init__(self):
            self.rate, self.steps, self.losses = 2.0, 0, []

        def count(self, loss):
            self.steps += 1
            self.losses.append(loss.sum().item())

        def _scaled(self, x):
            return x * self.rate

        @plugrad.compile
        def step(self, x):
            return self._scaled(x)

    trainer, x = Trainer(), plugrad.ones(2)
    for _ in range(10):
        trainer.count(trainer.step(x))
    assert Trainer.step.figures() == (1, 9, 0) and trainer.losses == [4.0] * 10
    trainer.rate = 3.0
    assert trainer.step(x).tolist() == [3, 3]


def test_arguments_that_may_change_are_refused():
    f = plugrad.compile(lambda x, how: x * 2)
    x = plugrad.ones(2)
    for wrong in ({1, 2}, bytearray(b"1"), collections.deque([1])):
        with pytest.raises(ValueError, match="may change"):
            f(x, wrong)
    for right in (object(), frozenset([1]), math.sin, plugrad.nn.Linear(1, 1), enum.Enum("E", "A").A):
        assert f(x, right).tolist() == [2, 2]


class Options:
    rate = 1.0

    def __init__(self, scale):
        self.scale = scale


class Net(nn.Module):
    def forward(self, x, how):
        return x * how.scale


class Step:
    def loss(self, x, how):
        return x * how.scale

    @plugrad.compile
    def run(self, x, how):
        return self.loss(x, how)


def scaled(x, how):
    return x * how.scale


def by_getattr(x, how):
    return x * getattr(how, "scale")


def decorated(function):
    @functools.wraps(function)
    def inner(x, how):
        return function(x, how) * how.scale
    return inner


class Library:
    apply = staticmethod(scaled)


NET, TABLE, STEP = Net(), {"a": scaled}, Step()


@pytest.mark.parametrize("make", [
    lambda: plugrad.compile(Net()), lambda: plugrad.compile(functools.partial(by_getattr)),
    lambda: plugrad.compile(lambda x, how: NET(x, how)), lambda: plugrad.compile(lambda x, how: Library.apply(x, how)),
    lambda: plugrad.compile(lambda x, how: TABLE["a"](x, how)), lambda: plugrad.compile(lambda x, how, f=scaled: f(x, how)),
    lambda: plugrad.compile(decorated(lambda x, how: x)), lambda: STEP.run,
    lambda: plugrad.compile(lambda x, how: Net().forward(x, how)), lambda: plugrad.compile(by_getattr)])
def test_attributes_count_wherever_they_are_read(make):
    compiled, how, x = make(), Options(2.0), plugrad.ones(2)
    for scale in (2.0, 3.0, 2.0, np.float64(5.0)):
        how.scale = scale
        assert compiled(x, how).tolist() == [scale] * 2


def test_values_of_any_kind_in_attributes_count():
    x, how = plugrad.ones(2), Options(None)
    f = plugrad.compile(lambda x, how: x * how.scale(how))
    how.inner, how.some, how.level = types.SimpleNamespace(rate=4.0), {1}, enum.IntEnum("Level", "A B").A
    for scale, expected in ((lambda h: 2.0, 2), (lambda h: 3.0, 3), (lambda h: h.inner.rate, 4), (lambda h: len(h.some), 1),
                            (lambda h: int(h.level), 1)):
        how.scale = scale
        assert f(x, how).tolist() == [expected] * 2
    how.level = type(how.level)(2)
    assert f(x, how).tolist() == [2, 2]
    how.scale = lambda h: h.inner.rate + len(h.some) + h.rate
    assert f(x, how).tolist() == [6, 6]
    f.clear()
    assert f(x, how).tolist() == [6, 6]
    how.inner.rate = 5.0
    how.some.add(2)
    assert f(x, how).tolist() == [8, 8]
    Options.rate = 2.0
    try:
        assert f(x, how).tolist() == [9, 9]
    finally:
        Options.rate = 1.0


class Slotted:
    __slots__ = ("rate",)


def test_slots_of_inner_objects_count():
    how, x = Options(Slotted()), plugrad.ones(2)
    f = plugrad.compile(lambda x, how: x * how.scale.rate)
    for rate in (2.0, 3.0):
        how.scale.rate = rate
        assert f(x, how).tolist() == [rate] * 2


def test_functions_in_attributes_are_not_kept_for_ever():
    how, x, alive = Options(None), plugrad.ones(2), []
    f = plugrad.compile(lambda x, how: x * how.scale(), entries=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(100):
            how.scale = lambda i=i: float(i)
            alive.append(weakref.ref(how.scale))
            f(x, how)
    assert sum(each() is not None for each in alive) < 80


def test_attributes_with_names_of_the_standard_library_are_not_read():
    how, x = Options(2.0), plugrad.ones(2)
    how.seed = 0
    f = plugrad.compile(lambda x, how: x * how.scale + random.Random(0).random() * 0)
    for how.seed in range(5):
        assert f(x, how).tolist() == [2, 2]
    assert f.figures() == (1, 4, 0)


def test_bound_methods_replay():
    f, step, x = plugrad.compile(lambda x, apply, how: apply(x, how)), Step(), plugrad.ones(2)
    how = Options(2.0)
    for _ in range(5):
        assert f(x, step.loss, how).tolist() == [2, 2]
    assert f.figures() == (1, 4, 0)


class Proxy:
    """A proxy without an object: every access to an attribute raises RuntimeError."""

    def __getattr__(self, name):
        raise RuntimeError(f"asked for {name}")

    __class__ = __dict__ = property(lambda self: self.__getattr__("its class"))


PROXY = Proxy()


def test_proxies_are_not_asked():
    how, x = Options(2.0), plugrad.ones(2)
    how.proxy = PROXY
    f = plugrad.compile(lambda x, how: x * how.scale if how.scale else PROXY.now + how.proxy)
    for _ in range(2):
        assert f(x, how).tolist() == [2, 2]
    how.scale = slice(np.int64(0), 2)
    assert plugrad.compile(lambda x, how: x[how.scale])(x, how).tolist() == [1, 1]
