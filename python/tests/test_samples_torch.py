"""Compares each op on random arguments with PyTorch, if it is installed: dtypes, values, and gradients for elements that are
equal or at a kink."""
import plugrad
import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from comparison import difference  # noqa: E402
from driver import CASES, DEVICE, cases, faults, listed, names  # noqa: E402
from samples import ROWS  # noqa: E402
from samples.case import NUMPY_NAMES  # noqa: E402

pytestmark = [pytest.mark.usefixtures("device_under_test"), pytest.mark.filterwarnings("ignore::UserWarning")]
OURS = {f"torch.{theirs}": ours for ours, theirs in [*NUMPY_NAMES.items(), ("bf16", "bfloat16")]}
PEERS = [row for row in ROWS if row.torch is not None]
KINKS = [row for row in PEERS if row.gradient and not row.ties]


def promotes_rank_zero(row, call):
    """PyTorch promotes tensors of rank 0 like numbers: docs/python.md."""
    return row.promotes and any(each.array.ndim == 0 for each in call.operands())


@pytest.mark.parametrize("row", PEERS, ids=names(PEERS))
def test_values(row):
    compared = 0
    for number, call in cases(row, [each for each in row.dtypes if each not in row.differs], CASES):
        if promotes_rank_zero(row, call):
            continue
        args, named = call.mapped(lambda each: each.view(each.leaf(plugrad, DEVICE)))
        results = listed(row.called(plugrad, *args, **named))
        args, named = call.mapped(lambda each: each.torch(torch))
        answers = listed(row.peer(torch)(*args, **named))
        wanted = [each.double().numpy() if each.is_floating_point() else each.numpy() for each in answers]
        # The factor is 2, because PyTorch's result is rounded as well.
        found = faults(row, call, results, wanted, OURS[str(answers[0].dtype)], factor=2)
        assert not found, f"{row.name}: {found}\n{number}: {call!r}"
        compared += 1
    assert compared >= CASES


def gradients(row, call):
    """Yields (operand, gradient by plugrad, gradient by PyTorch) for each operand of f64; the gradients are those of the sum
    of the results."""
    constants = [id(each) for each in [*call.args[1:3], *call.named.values()]] if row.constants else []
    operands = [each for each in call.operands() if each.dtype == "f64" and id(each) not in constants]
    ours = {id(each): plugrad.Tensor(np.array(each.array), device=DEVICE, requires_grad=True) for each in operands}
    theirs = {id(each): each.torch(torch).requires_grad_() for each in operands}
    args, named = call.mapped(lambda each: ours[id(each)] if id(each) in ours else each.view(each.leaf(plugrad, DEVICE)))
    total = sum((each.sum() for each in listed(row.called(plugrad, *args, **named))), plugrad.zeros((), "f64"))
    found = plugrad.grad(total, list(ours.values()), allow_unused=True) if total.requires_grad else [None] * len(operands)
    args, named = call.mapped(lambda each: theirs[id(each)] if id(each) in theirs else each.torch(torch))
    total = sum((each.sum() for each in listed(row.peer(torch)(*args, **named))), torch.zeros((), dtype=torch.float64))
    wanted = torch.autograd.grad(total, list(theirs.values()), allow_unused=True) if total.requires_grad else [
        None] * len(operands)
    return zip(operands, found, wanted)


@pytest.mark.parametrize("row", KINKS, ids=names(KINKS))
def test_gradients_at_kinks(row):
    compared = 0
    for number, call in cases(row, ["f64"], CASES, "kinks"):
        for operand, got, want in gradients(row, call):
            got = np.zeros(operand.array.shape) if got is None else got.numpy()
            want = np.zeros(operand.array.shape) if want is None else want.numpy()
            found = difference(got, want, "f64", 1e-9 * (1 + np.abs(want)))
            assert not found, f"{row.name}: the gradient of {operand!r}: {found}\n{number}: {call!r}"
            compared += 1
    assert compared >= CASES / 2
