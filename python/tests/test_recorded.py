"""Each function in a compiled step: it is recorded, its replays have the function's bits for other elements, and the
recording is saved and gives the same when it is loaded again. Functions for which one of these cannot be are listed with the
reason. driver.py names the variables that set the device and the seed."""
import warnings

import plugrad
import pytest

np = pytest.importorskip("numpy")
from driver import DEVICE, SEED, listed, names  # noqa: E402
from samples import ROWS, Case  # noqa: E402
from samples.case import Operand  # noqa: E402

pytestmark = [pytest.mark.usefixtures("device_under_test"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
SIZE = "the elements decide how many results there are"
WAITS = {  # functions for which the host waits
    **dict.fromkeys(["argwhere", "masked_select", "nonzero", "unique", "unique_consecutive", "where positions"], SIZE),
    "allclose": "it returns a bool of Python", "equal": "it returns a bool of Python",
    "bincount": "without minlength, the elements decide the length of the result",
    "to": "it may copy to another device",
    "embedding_bag of max": "the longest bag decides how much memory the maxima of bags need"}
UNSAVED = {"cross_entropy": "an op of training", "dropout": "random numbers"}  # of some cases
RANDOM = {"dropout": "each call draws other numbers"}


class Place:
    """The place of an operand among the arguments of a step."""

    def __init__(self, operand, at):
        self.operand, self.at = operand, at


def placed(given, operands):
    """Puts a Place for each operand, and adds the operand to the list."""
    if isinstance(given, Operand):
        operands.append(given)
        return Place(given, len(operands) - 1)
    return type(given)(placed(each, operands) for each in given) if isinstance(given, (list, tuple)) else given


def filled(form, leaves):
    """Puts tensors for the places. A closure that calls itself would keep them alive, and so would the step."""
    if isinstance(form, Place):
        return form.operand.view(leaves[form.at])
    return type(form)(filled(each, leaves) for each in form) if isinstance(form, (list, tuple)) else form


def same(one, other):
    return str(one.dtype) == str(other.dtype) and one.tolist().__repr__() == other.tolist().__repr__()


def step_of(row, call):
    """Returns a function of tensors that makes the call, and the call's operands. A result may be a view, which a replay
    could not return, so the function copies results."""
    operands = []
    args = placed(call.args, operands)
    named = {name: placed(each, operands) for name, each in call.named.items()}

    def function(*leaves):
        given = {name: filled(each, leaves) for name, each in named.items()}
        results = listed(row.called(plugrad, *filled(args, leaves), **given))
        return [each.clone() for each in results]

    return function, operands


def calls_of(row):
    """Draws two calls with elements. The second has the first's shapes and layouts, and other elements."""
    dtype = "f32" if "f32" in row.dtypes else row.dtypes[0]
    for number in range(200):
        call = row.draw(Case(f"{row.name} {dtype}", number, dtype, "values", SEED))
        if all(each.array.size for each in call.operands()):
            yield call


def key_of(row, table):
    return next((name for name in table if row.name == name or row.op == name), None)


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_recorded_and_saved(row, tmp_path):
    waits, compared, refused = key_of(row, WAITS), 0, 0
    for call in calls_of(row):
        function, operands = step_of(row, call)
        leaves = [each.leaf(plugrad, DEVICE) for each in operands]
        with plugrad.no_grad():
            wanted = function(*leaves)
            if not all(each.numel() for each in wanted):
                continue
            step = plugrad.compile(function)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    step(*leaves)
                    step(*leaves)  # the first call may find functions that were not known to be called
                    replayed = step(*leaves)
            except ValueError as error:
                assert waits, f"{row.name} is not recorded: {error}\n{call!r}"
                refused += 1
                break
            assert step.figures().replayed in (1, 2), step.explain()
            if not key_of(row, RANDOM):
                assert len(replayed) == len(wanted) and all(map(same, replayed, wanted)), f"{row.name}\n{call!r}"
            save(row, step, leaves, wanted, tmp_path / "step.plugrad")
        compared += 1
        if compared == 3 and not waits:
            break
    assert refused if waits else compared, f"{row.name}: {waits or 'no case has elements'}"


def save(row, step, leaves, wanted, path):
    unsaved = key_of(row, UNSAVED)
    try:
        step.save(path)
    except ValueError as error:
        assert unsaved, f"{row.name} is not saved: {error}"
        return
    assert all(map(same, listed(plugrad.load_model(path, DEVICE)(*leaves)), wanted))


def test_exceptions_name_rows():
    known = {row.name for row in ROWS} | {row.op for row in ROWS}
    assert set(WAITS) | set(UNSAVED) | set(RANDOM) <= known
