"""Classes derived from Tensor, with PyTorch's protocol."""
import copy
import pickle

import plugrad
import pytest
from plugrad import Tensor
from plugrad.nn import functional


class Meters(Tensor):
    """A class without anything of its own."""


class Named(Tensor):
    """A class whose objects have an attribute."""

    def __new__(cls, data, name):
        made = Tensor._make_subclass(cls, plugrad.tensor(data))
        made.name = name
        return made


class Logged(Tensor):
    """A class that takes part in every call."""

    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func.__name__, types))
        return super().__torch_function__(func, types, args, kwargs)


class Plain(Tensor):
    """A class that leaves all calls to others."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def meters(*numbers):
    return plugrad.tensor(list(numbers)).as_subclass(Meters)


@pytest.mark.parametrize("call", [
    lambda x: x + 1, lambda x: 1 - x, lambda x: x * plugrad.ones(2), lambda x: plugrad.ones(2) * x, lambda x: -x,
    lambda x: x[0], lambda x: x > 1, lambda x: x == x, lambda x: x.relu(), lambda x: plugrad.relu(x), lambda x: x.T,
    lambda x: x.sum(dim=0), lambda x: x.sum(axis=0), lambda x: plugrad.cat([plugrad.ones(1), x]), lambda x: x @ x,
    lambda x: x.sort().values, lambda x: x.split(1)[0], lambda x: functional.softmax(x, 0), lambda x: x.double(),
    lambda x: plugrad.where(x > 1, x, 0.0), lambda x: next(iter(x)), lambda x: x.detach().requires_grad_(), lambda x: x.data,
    lambda x: copy.deepcopy(x), lambda x: pickle.loads(pickle.dumps(x)), lambda x: x.clone().add_(1)])
def test_results_have_the_class_and_the_values(call):
    plain, derived = call(plugrad.tensor([2.0, 1.0])), call(meters(2.0, 1.0))
    assert type(derived) is Meters and type(plain) is Tensor and plugrad.equal(derived.as_subclass(Tensor), plain)


def test_in_place_operators_keep_the_object_and_plain_tensors_stay_plain():
    x = meters(1.0)
    same = x
    x += 1
    assert x is same and x.tolist() == [2.0]
    assert type(plugrad.ones(2) + plugrad.ones(2)) is type(plugrad.relu(plugrad.ones(2))) is Tensor
    assert isinstance(x, Tensor) and plugrad.is_tensor(x) and repr(x) == "Meters([2.])" and x in {x}
    assert isinstance(Meters([1.0, 2.0]), Meters) and Meters([1.0, 2.0]).sum().item() == 3


def test_gradients_pass_through():
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    y = (x.as_subclass(Meters) * 3).exp().sum()
    assert type(y) is Meters
    y.backward()
    expected = plugrad.tensor([1.0, 2.0], requires_grad=True)
    (expected * 3).exp().sum().backward()
    assert type(x.grad) is Tensor and plugrad.equal(x.grad, expected.grad)


def test_a_class_with_a_constructor_of_its_own():
    x = Named([1.0, 2.0], name="length")
    assert x.name == "length" and x.tolist() == [1.0, 2.0]
    assert copy.deepcopy(x).name == pickle.loads(pickle.dumps(x)).name == "length"
    assert type(x * 2) is Named and not hasattr(x * 2, "name")  # as in PyTorch


def test_torch_function_sees_every_call():
    Logged.calls.clear()
    x = plugrad.ones(2).as_subclass(Logged)
    assert type(plugrad.add(1 + x.relu(), plugrad.ones(2))) is Logged and type(plugrad.stack([x, x])) is Logged
    assert [name for name, _ in Logged.calls] == ["relu", "__radd__", "add", "stack"]
    assert all(types == (Logged,) for _, types in Logged.calls)


def test_the_derived_class_goes_before_its_base_and_others_are_asked_in_turn():
    class Kilometers(Meters):
        pass
    x = plugrad.ones(1).as_subclass(Kilometers)
    assert type(meters(1.0) + x) is type(x + meters(1.0)) is type(plugrad.add(meters(1.0), x)) is Kilometers
    plain = plugrad.ones(1).as_subclass(Plain)
    assert type(plugrad.add(plain, meters(1.0))) is Meters
    with pytest.raises(TypeError, match=r"^\[relu\] __torch_function__ returned NotImplemented .*: Plain$"):
        plain.relu()
    with pytest.raises(TypeError):
        plain + 1


def test_a_compiled_function_returns_plain_tensors_in_every_call():
    double = plugrad.compile(lambda x: x * 2)
    for _ in range(4):
        made = double(meters(1.0, 2.0))
        assert type(made) is Tensor and made.tolist() == [2.0, 4.0]


def test_a_parameter_of_a_derived_class_is_trained():
    class Scale(plugrad.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = plugrad.nn.Parameter(plugrad.ones(2)).as_subclass(Meters)

        def forward(self, x):
            return (x * self.weight).sum()
    model = Scale()
    optimizer = plugrad.optim.SGD(model.parameters(), lr=0.5)
    model(plugrad.ones(2)).backward()
    optimizer.step()
    assert model.weight.tolist() == [0.5, 0.5] and len(list(model.parameters())) == 1


def test_wrong_classes_are_refused():
    with pytest.raises(TypeError, match=r"^\[as_subclass\] cls must be Tensor or a class derived from it$"):
        plugrad.ones(1).as_subclass(int)
    with pytest.raises(TypeError, match=r"^\[Meters\] 'data' is missing: call Meters\(data, "):
        Meters()


class Selective(Tensor):
    """A class that takes part in the calls that it knows, as programs for PyTorch do."""

    def __new__(cls, data):
        return super().__new__(cls, data)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        known = func in (plugrad.relu, Tensor.__neg__)
        return super().__torch_function__(func, types, args, kwargs) if known else NotImplemented


class Slots(Tensor):
    """A class without attributes."""

    __slots__ = ()


class Foreign:
    """A class of another library."""

    def __radd__(self, other):
        return "added"

    def __rmatmul__(self, other):
        return "multiplied"


def test_a_class_is_not_asked_while_its_tensor_is_made():
    x = Selective([1.0, -2.0])
    assert x.tolist is not None and plugrad.relu(x).as_subclass(Tensor).tolist() == [1, 0]
    with pytest.raises(TypeError, match=r"^\[exp\] __torch_function__ returned NotImplemented"):
        plugrad.exp(x)


def test_operators_leave_other_classes_to_their_own_operators():
    x = meters(1.0, 2.0)
    assert (x + Foreign(), x @ Foreign()) == ("added", "multiplied")
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"


def test_classes_without_attributes_are_copied():
    x = plugrad.ones(2).as_subclass(Slots)
    assert type(copy.deepcopy(x)) is type(pickle.loads(pickle.dumps(x))) is Slots
