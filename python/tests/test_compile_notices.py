"""Changes of objects that compiled functions notice."""

import copy

import pytest

import plugrad
from plugrad import nn, optim


def test_a_copied_object_gets_its_own_methods():
    class Model(nn.Module):
        def __init__(self):
            self.linear = nn.Linear(3, 3)
            self.run = plugrad.compile(self.sum_of)
            self.direct = plugrad.compile(self.linear)

        def sum_of(self, x):
            return self.linear(x).sum()

    one = Model()
    one.run(plugrad.ones(1, 3))
    other = copy.deepcopy(one)
    with plugrad.no_grad():
        for each in other.parameters():
            each.zero_()
    for _ in range(3):
        assert other.run(plugrad.ones(1, 3)).item() == 0
        assert other.direct(plugrad.ones(1, 3)).sum().item() == 0
        assert one.run(plugrad.ones(1, 3)).item() != 0


def test_hooks_of_modules_are_noticed():
    model = nn.Linear(2, 2)
    x = plugrad.ones(1, 2)
    step = plugrad.compile(lambda x: model(x).sum())
    alone = [step(x).item() for _ in range(3)][-1]
    for register in (model.register_forward_hook, model.register_forward_pre_hook):
        handle = register(lambda module, arguments, *made: (made or arguments)[0] * 0)
        for _ in range(3):
            assert step(x).item() != alone
        handle.remove()
        assert step(x).item() == alone


def test_a_list_that_gets_a_tensor_is_an_error():
    def step(x, made):
        made.append(x * 2)
        return x

    with pytest.raises(ValueError, match="'step' puts a tensor into a list or a dict that is an argument"):
        plugrad.compile(step)(plugrad.ones(2), [])


def test_a_dict_may_lose_a_tensor():
    def step(batch):
        y = batch.pop("y")
        return batch["x"] * y

    compiled = plugrad.compile(step)
    for i in range(4):
        given = {"x": plugrad.ones(2) * i, "y": plugrad.ones(2) * 3}
        assert compiled(given).tolist() == [3.0 * i] * 2
    assert compiled.figures().replayed == 3


def test_a_hook_that_the_function_removes_changes_nothing():
    model = nn.Linear(2, 2)

    @plugrad.compile
    def step(x):
        handle = model.register_forward_hook(lambda module, arguments, made: made * 2)
        result = model(x)
        handle.remove()
        return result

    for _ in range(4):
        assert (step(plugrad.ones(1, 2)) == model(plugrad.ones(1, 2)) * 2).all().item()
    assert step.figures() == (2, 2, 0)  # the first call gives the model a place for hooks


def test_a_model_that_moved_records_anew():
    model = nn.Linear(2, 2)
    optimizer = optim.Adam(model.parameters())

    @plugrad.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(plugrad.ones(3, 2))
    model.to("reference")
    losses = [step(plugrad.ones(3, 2, device="reference")).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5
    assert step.figures().replayed >= 3


def test_rows_at_any_place_are_one_kind():
    """A recording takes copies of rows that begin at unaligned addresses, unless it writes or returns the rows."""
    rows, w = plugrad.rand((40, 3)), plugrad.rand((3, 5))
    product = plugrad.compile(lambda x: (x @ w).tanh())
    for i in range(40):
        assert product(rows[i:i + 1]).tolist() == (rows[i:i + 1] @ w).tanh().tolist()
    assert (product.figures().recorded, product.figures().called) == (1, 0)

    def double(x):
        x.mul_(2)
        return x + 1

    again, doubled, turned = rows.clone(), plugrad.compile(double), plugrad.compile(lambda x: x.t())
    for i in range(40):
        assert doubled(rows[i:i + 1]).tolist() == double(again[i:i + 1]).tolist()
        assert turned(rows[i:i + 1]).data_ptr() == rows[i:i + 1].data_ptr()
    assert rows.tolist() == again.tolist()


def test_a_row_of_what_the_function_writes_is_no_copy():
    def adding(whole):
        def add(x):
            whole.mul_(2)
            return x + 1
        return add

    ours, expected = (plugrad.arange(12.0).reshape(4, 3) for _ in range(2))
    compiled, called = plugrad.compile(adding(ours)), adding(expected)
    for i in (0, 1, 2, 3, 1, 2, 3):
        assert compiled(ours[i:i + 1]).tolist() == called(expected[i:i + 1]).tolist()


def test_a_row_of_another_argument_that_is_written_is_no_copy():
    def add(whole, x):
        whole.mul_(2)
        return x + 1

    ours, expected = (plugrad.arange(12.0).reshape(4, 3) for _ in range(2))
    compiled = plugrad.compile(add)
    for i in (0, 1, 2, 3, 1, 2, 3):
        assert compiled(ours, ours[i:i + 1]).tolist() == add(expected, expected[i:i + 1]).tolist()


def test_a_row_may_come_after_its_gradients_are_gone():
    weight = plugrad.ones(3, requires_grad=True)
    step = plugrad.compile(lambda x: (x * weight).sum().backward())
    rows = plugrad.arange(12.0).reshape(4, 3)
    for i in (0, 1, 0, 2, 3):
        for _ in range(3):
            step(rows[i:i + 1])
        assert weight.grad.tolist() == (3 * rows[i]).tolist()
        weight.grad = None


def test_results_have_no_graph_wherever_the_function_is_called():
    """The results have no graph in eager code, and none inside another compiled function: there the gradients would differ
    from those of eager code."""
    w = nn.Parameter([2.0])
    inner = plugrad.compile(lambda x: x * w)

    def outer(x):
        return (inner(x) * w).sum()

    compiled = plugrad.compile(lambda x: plugrad.autograd.grad(outer(x), w)[0])
    x = plugrad.tensor([3.0])
    assert not inner(x).requires_grad
    want = plugrad.autograd.grad(outer(x), w)[0].item()
    assert [compiled(x).item() for _ in range(3)] == [want] * 3 == [6.0] * 3
