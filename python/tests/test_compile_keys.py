"""Which calls of a compiled function are one kind: the keys of recordings."""

import collections
import enum
import math
import types

import pytest

import plugrad
from plugrad import nn


class Loud(float):
    """Two different numbers with one text."""

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
