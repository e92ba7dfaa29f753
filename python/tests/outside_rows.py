"""Ways in which values that a function refers to change: globals, closures, defaults, items, and what changes by itself.

A row makes a function of a tensor, and a function to change a value behind it.
"""

import collections
import contextvars
import functools
import os
import random
import threading

import numpy as np

import plugrad

SCALE = 2.0
TENSOR = plugrad.ones(2)
HELPER = lambda x: x * 2.0  # noqa: E731
TABLE = {"scale": 2.0, "inner": {"more": [1.0, 2.0]}}


def of_globals(x):
    return x * SCALE


def with_default(x, scale=2.0, *, more=1.0):
    return x * scale + more


ROWS = {}
_BEFORE = {name: globals()[name] for name in ("SCALE", "TENSOR", "HELPER")}


def row(make):
    ROWS[make.__name__] = make
    return make


def reset():
    """Puts the globals back."""
    globals().update(_BEFORE)
    plugrad.set_default_dtype("f32")


def set_global(name):
    def change(value):
        globals()[name] = value
    return change


@row
def a_global():
    return of_globals, set_global("SCALE")


@row
def a_global_of_a_called_function():
    return (lambda x: of_globals(x) + 1), set_global("SCALE")


@row
def a_global_that_ends():
    def change(value):
        globals().pop("sum", None)
        if value > 2:
            globals()["sum"] = lambda numbers: value
    return (lambda x: x * sum([1.0, 2.0])), change


@row
def a_closure():
    scale = 2.0

    def change(value):
        nonlocal scale
        scale = value
    return (lambda x: x * scale), change


@row
def a_closure_that_is_filled_late():
    def f(x):
        try:
            return x * late
        except NameError:
            return x

    def change(value):
        nonlocal late
        if value > 2:
            late = value
    late = 0
    del late
    return f, change


@row
def a_default():
    def change(value):
        with_default.__defaults__ = (value,)
    return (lambda x: with_default(x)), change


@row
def a_default_of_a_keyword():
    def change(value):
        with_default.__kwdefaults__["more"] = value
    return (lambda x: with_default(x)), change


@row
def the_code_of_a_function():
    def f(x):
        return x * 2.0

    def change(value):
        f.__code__ = (lambda x: x * 3.0).__code__ if value == 3 else (lambda x: x * 2.0).__code__
    return (lambda x: f(x)), change


@row
def a_helper():
    return (lambda x: HELPER(x)), lambda value: set_global("HELPER")(lambda x: x * value)


@row
def an_attribute_of_a_function():
    def helper(x):
        return x * helper.scale
    return (lambda x: helper(x)), functools.partial(setattr, helper, "scale")


@row
def a_partial_function():
    settings = [2.0]
    return functools.partial(lambda s, x: x * s[0], settings), functools.partial(settings.__setitem__, 0)


@row
def an_item_of_a_global():
    return (lambda x: x * TABLE["scale"]), functools.partial(TABLE.__setitem__, "scale")


@row
def a_number_of_items():
    table = {"2.0": 2.0}
    return (lambda x: x * len(table)), lambda value: table.update({str(value): value})


@row
def an_inner_item():
    return (lambda x: x * TABLE["inner"]["more"][1]), functools.partial(TABLE["inner"]["more"].__setitem__, 1)


@row
def a_deque():
    numbers = collections.deque([2.0], 1)
    return (lambda x: x * numbers[0]), numbers.append


@row
def an_ordered_dict():
    numbers = collections.OrderedDict({2.0: 1, 3.0: 2, 5.0: 3})
    return (lambda x: x * next(iter(numbers))), functools.partial(numbers.move_to_end, last=False)


@row
def a_set():
    numbers = {1.0}
    return (lambda x: x * len(numbers)), numbers.add


@row
def a_numpy_array():
    numbers = np.ones(2)
    return (lambda x: x * float(numbers[1])), functools.partial(numbers.__setitem__, 1)


@row
def a_tensor():
    return (lambda x: x * TENSOR), lambda value: set_global("TENSOR")(plugrad.full((2,), value))


@row
def the_elements_of_a_tensor():
    scale = plugrad.ones(2)
    return (lambda x: x * scale), scale.fill_


@row
def a_list_that_the_function_extends():
    numbers = []

    def f(x):
        numbers.append(2.0)
        return x * len(numbers)
    return f, lambda value: None


@row
def an_iterator():
    numbers = iter(range(100))
    return (lambda x: x * next(numbers)), lambda value: None


@row
def a_generator_of_python():
    numbers = random.Random(0)
    return (lambda x: x * numbers.random()), lambda value: None


@row
def the_generator_of_python():
    random.seed(0)
    return (lambda x: x * random.uniform(0, 1)), lambda value: None


@row
def the_generator_of_numpy():
    np.random.seed(0)
    return (lambda x: x * np.random.rand()), lambda value: None


@row
def the_environment():
    return (lambda x: x * float(os.environ["SCALE_OF_A_PROGRAM"])), \
        lambda value: os.environ.__setitem__("SCALE_OF_A_PROGRAM", str(value))


@row
def a_context_variable():
    variable = contextvars.ContextVar("scale")
    return (lambda x: x * variable.get()), variable.set


@row
def a_value_of_a_thread():
    local = threading.local()
    return (lambda x: x * local.scale), functools.partial(setattr, local, "scale")


@row
def a_compiled_function_inside():
    inner = plugrad.compile(of_globals)
    return (lambda x: inner(x) + 1), set_global("SCALE")


@row
def constants_of_numbers():
    def f(x):
        made = plugrad.tensor([SCALE, 1.0])
        made += x
        return made * [SCALE, 2.0] + plugrad.tensor(SCALE)
    return f, set_global("SCALE")


@row
def the_order_of_a_dict():
    numbers = {"a": 1.0, "b": 2.0}

    def f(x):
        for each in numbers.values():
            x = x * 2 + each
        return x
    return f, lambda value: numbers.__setitem__("a", numbers.pop("a")) if value == 3 else None


@row
def a_method_of_a_dict():
    numbers = {"a": 1.0}
    get = numbers.get
    return (lambda x: x * get("a")), functools.partial(numbers.__setitem__, "a")


@row
def names_made_at_run_time():
    return (lambda x: x * globals()["SCALE"] + eval("SCALE")), set_global("SCALE")


@row
def the_default_dtype():
    return (lambda x: plugrad.zeros(2) + x.to(plugrad.float64)), \
        lambda value: plugrad.set_default_dtype("f64" if value == 3 else "f32")
