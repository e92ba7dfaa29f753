"""Ways in which objects that a function refers to change: attributes, methods, classes, modules of Python and of nn."""

import dataclasses
import enum
import functools
import sys
import types
import weakref

import plugrad
from plugrad import nn, optim
from outside_rows import row

OPTIONS = types.SimpleNamespace(scale=2.0, inner=types.SimpleNamespace(more=1.0))
module = types.ModuleType("settings_of_a_program")
module.scale = 2.0
sys.modules["settings_of_a_program"] = module


class Level(enum.Enum):
    LOW, HIGH = 2.0, 5.0


class Settings:
    scale = 2.0
    by_property = property(lambda self: self._hidden)

    def __init__(self):
        self._hidden = self.own = 2.0

    def method(self, x):
        return x * self.own


class Slotted:
    __slots__ = ("scale",)


@dataclasses.dataclass
class Data:
    scale: float = 2.0


class Scaled(nn.Module):
    def __init__(self):
        self.scale, self.unread = 2.0, 0
        self.inner = nn.Sequential(nn.Dropout(0.0), nn.LeakyReLU(0.1))
        self.weight = nn.Parameter([1.0, 1.0])

    def forward(self, x):
        return self.inner(x) * self.scale * self.weight


@row
def an_attribute():
    return (lambda x: x * OPTIONS.scale), functools.partial(setattr, OPTIONS, "scale")


@row
def an_attribute_of_an_attribute():
    return (lambda x: x * OPTIONS.inner.more), functools.partial(setattr, OPTIONS.inner, "more")


@row
def an_attribute_that_begins():
    options = types.SimpleNamespace()

    def change(value):
        if value > 2:
            options.scale = value
    return (lambda x: x * options.scale if hasattr(options, "scale") else x), change


@row
def an_attribute_by_a_name_made_at_run_time():
    options = types.SimpleNamespace(scale1=2.0)
    return (lambda x: x * getattr(options, f"scale{len(x)-1}")), functools.partial(setattr, options, "scale1")


@row
def an_attribute_of_a_class():
    class Mine(Settings):
        pass
    return (lambda x: x * Mine().scale), functools.partial(setattr, Mine, "scale")


@row
def an_attribute_that_hides_one_of_its_class():
    settings = Settings()
    return (lambda x: x * settings.scale), functools.partial(setattr, settings, "scale")


@row
def a_property():
    settings = Settings()
    return (lambda x: x * settings.by_property), functools.partial(setattr, settings, "_hidden")


@row
def a_slot():
    slotted = Slotted()
    slotted.scale = 1.0
    return (lambda x: x * slotted.scale), functools.partial(setattr, slotted, "scale")


@row
def a_field():
    data = Data()
    return (lambda x: x * data.scale), functools.partial(setattr, data, "scale")


@row
def an_attribute_of_a_module_of_python():
    return (lambda x: x * module.scale), functools.partial(setattr, module, "scale")


@row
def an_import_inside():
    def f(x):
        from settings_of_a_program import scale
        return x * scale
    return f, functools.partial(setattr, module, "scale")


@row
def a_method_of_a_class():
    class Mine(Settings):
        pass
    settings = Mine()
    return (lambda x: settings.method(x)), lambda value: setattr(Mine, "method", lambda self, x: x * value)


@row
def a_method_of_an_object():
    settings = Settings()
    return settings.method, functools.partial(setattr, settings, "own")


@row
def an_enum():
    settings = Settings()
    return (lambda x: x * settings.level.value), \
        lambda value: setattr(settings, "level", Level.HIGH if value > 2 else Level.LOW)


@row
def text():
    settings = Settings()
    return (lambda x: x * 3 if settings.mode == "3.0" else x), lambda value: setattr(settings, "mode", str(value))


@row
def none():
    settings = Settings()
    return (lambda x: x if settings.own is None else x * settings.own), \
        lambda value: setattr(settings, "own", None if value == 3 else value)


@row
def a_tensor_in_an_attribute():
    settings = Settings()
    return (lambda x: x * settings.tensor), lambda value: setattr(settings, "tensor", plugrad.full((2,), value))


@row
def an_attribute_of_a_module():
    net = Scaled()
    return net, functools.partial(setattr, net, "scale")


@row
def a_probability():
    net = Scaled()

    def f(x):
        return net(x) * 0.0 + (net(x) == 0).sum()  # of no element, or of all
    return f, lambda value: setattr(net.inner[0], "p", 1.0 if value == 3 else 0.0)


@row
def a_slope():
    net = Scaled()
    return (lambda x: net(-x)), functools.partial(setattr, net.inner[1], "negative_slope")


@row
def an_inner_module():
    net = Scaled()
    return net, lambda value: setattr(net, "inner", nn.Sequential(nn.Hardtanh(0.0, value)))


@row
def a_layer_of_a_sequence():
    net = Scaled()
    return net, lambda value: net.inner.append(nn.Hardtanh(0.0, 1 / value))


@row
def a_parameter():
    net = Scaled()
    return net, lambda value: setattr(net, "weight", nn.Parameter([value, 1.0]))


@row
def a_training_mode():
    net = nn.Sequential(nn.Dropout(1.0))
    return (lambda x: net(x)), lambda value: net.train(value == 3)


@row
def a_training_mode_by_assignment():
    net = nn.Sequential(nn.Dropout(1.0))
    return (lambda x: net(x)), lambda value: setattr(net[0], "training", value == 3)


@row
def a_forward_of_one_module():
    net = Scaled()
    return (lambda x: net(x)), lambda value: setattr(net, "forward", lambda x: x * value)


@row
def a_hook():
    net = Scaled()
    return net, lambda value: net.register_forward_hook(lambda module, args, out: out * value)


@row
def a_number_in_a_hook():
    net, scale = Scaled(), [1.0]
    net.register_forward_hook(lambda module, args, out: out * scale[0])
    return net, functools.partial(scale.__setitem__, 0)


@row
def a_rate_of_an_optimizer():
    weight = nn.Parameter([1.0, 1.0])
    optimizer = optim.SGD([weight], 0.1)

    def f(x):
        optimizer.zero_grad()
        loss = (weight * x).sum()
        loss.backward()
        optimizer.step()
        return loss
    return f, lambda value: optimizer.param_groups[0].__setitem__("lr", value)


@row
def a_count_that_the_function_changes():
    settings = Settings()
    settings.count = 0

    def f(x):
        settings.count += 1
        return x * settings.count
    return f, lambda value: None


class Weighted:
    def __init__(self):
        self.weight = 2.0

    def __call__(self, x):
        return x * self.weight


class Calling(nn.Module):
    def __init__(self):
        self.act, self.all = Weighted(), [Weighted()]

    def forward(self, x):
        return self.act(x) + self.all[0](x)


@row
def an_operator_of_an_inner_object():
    options = types.SimpleNamespace(loss=Weighted())
    return (lambda x: options.loss(x)), functools.partial(setattr, options.loss, "weight")


@row
def a_callable_in_a_module():
    net = Calling()
    return net, functools.partial(setattr, net.act, "weight")


@row
def a_callable_in_a_list():
    net = Calling()
    return (lambda x: net(x)), functools.partial(setattr, net.all[0], "weight")


@row
def an_object_of_another_class():
    class Other(Weighted):
        def __call__(self, x):
            return x * self.other

    options, other = types.SimpleNamespace(loss=Weighted()), Other()

    def change(value):
        other.other = value
        options.loss = other if value != 2 else options.loss
    return (lambda x: options.loss(x)), change


@row
def the_class_of_an_object():
    class Other(Weighted):
        def __call__(self, x):
            return x + self.weight

    weighted = Weighted()
    return (lambda x: weighted(x)), lambda value: setattr(weighted, "__class__", Other if value == 3 else Weighted)


@row
def an_operator_of_a_class():
    class Mine(Weighted):
        pass

    mine = Mine()
    return (lambda x: mine(x)), lambda value: setattr(Mine, "__call__", lambda self, x: x * value)


@row
def a_compiled_function_in_an_attribute():
    weighted = Weighted()
    options = types.SimpleNamespace(inner=plugrad.compile(lambda x: x * weighted.weight))
    return (lambda x: options.inner(x)), functools.partial(setattr, weighted, "weight")


@row
def an_option_of_a_derived_module():
    class Mine(nn.LeakyReLU):
        pass

    net = Mine(0.1)
    return (lambda x: net(-x)), functools.partial(setattr, net, "negative_slope")


@row
def a_module_that_the_function_imports():
    def f(x):
        import settings_of_a_program
        return x * settings_of_a_program.scale
    return f, functools.partial(setattr, module, "scale")


@row
def a_function_of_a_library():
    before = nn.functional.relu

    def change(value):
        nn.functional.relu = (lambda x: x * value) if value == 3 else before
    return (lambda x: nn.functional.relu(-x)), change


@row
def an_end_of_an_object():
    options = types.SimpleNamespace(mask=plugrad.ones(2))
    return (lambda x: x if options.mask is None else x * 3), \
        lambda value: setattr(options, "mask", None if value == 3 else plugrad.ones(2))


@row
def what_a_weak_reference_refers_to():
    weighted = Weighted()
    reference = weakref.ref(weighted)
    weighted.itself = weighted  # keeps it
    return (lambda x: x * reference().weight), functools.partial(setattr, weighted, "weight")


@row
def an_attribute_of_a_dict():
    class Attributes(dict):
        __getattr__ = dict.__getitem__

    options = Attributes(scale=2.0)
    return (lambda x: x * options.scale + options.get("scale")), functools.partial(options.__setitem__, "scale")


@row
def a_hook_of_a_tensor():
    weight, scale = nn.Parameter([1.0, 1.0]), [1.0]
    weight.register_hook(lambda grad: grad * scale[0])

    def f(x):
        weight.grad = None
        (weight * x).sum().backward()
        return weight.grad * 1
    return f, functools.partial(scale.__setitem__, 0)


@row
def an_option_that_is_read():
    optimizer = optim.SGD([nn.Parameter([1.0])], 0.1)
    return (lambda x: x * optimizer.param_groups[0]["lr"]), functools.partial(optimizer.param_groups[0].__setitem__, "lr")
