"""Division with whole quotients and operators on bits, compared with NumPy's."""
import operator

import plugrad
import pytest

np = pytest.importorskip("numpy")


def same(got, expected):
    assert got.numpy().dtype == expected.dtype and got.shape == expected.shape
    assert got.tolist() == expected.tolist()


WHOLE = [-7, -2, -1, 1, 2, 7, 5]
INTEGER_OPERATORS = [operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("apply", INTEGER_OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["i64", "i32", "i8"])
def test_operators_of_integers_equal_numpys(apply, dtype):
    a = np.array(WHOLE, dtype={"i64": "int64", "i32": "int32", "i8": "int8"}[dtype])
    x = plugrad.tensor(a)
    same(apply(x[:, None], x), apply(a[:, None], a))
    same(apply(x, 3), apply(a, 3))
    same(apply(5, x), apply(5, a))
    same(apply(x, a[::-1].copy()), apply(a, a[::-1]))


@pytest.mark.parametrize("apply", [operator.floordiv, operator.mod, divmod], ids=lambda f: f.__name__)
def test_division_of_reals_equals_numpys(apply):
    a, b = np.array([7.5, -7.5, 0.25, -1.0]), np.array([2.0, -0.5, 3.0])
    got, expected = apply(plugrad.tensor(a)[:, None], plugrad.tensor(b)), apply(a[:, None], b)
    for one, other in zip(got, expected) if apply is divmod else [(got, expected)]:
        same(one, other)


def test_shifts_and_inversion():
    x = plugrad.tensor([1, -5, 12])
    assert (x << 3).tolist() == [8, -40, 96] and (x >> 1).tolist() == [0, -3, 6] and (~x).tolist() == [-2, 4, -13]
    assert (1 << plugrad.tensor([0, 5])).tolist() == [1, 32]
    y = plugrad.tensor([6, 7])
    same_object = y
    y &= 3
    y <<= 2
    y //= 3
    assert same_object.tolist() == [2, 4] and y is same_object
    with pytest.raises(ValueError, match="integer dtype"):
        plugrad.tensor([1.5]) & 1


def test_operators_of_bools_are_logical():
    a, b = plugrad.tensor([True, True, False]), plugrad.tensor([True, False, False])
    assert (a & b).tolist() == [True, False, False] and (a | b).tolist() == [True, True, False]
    assert (a ^ b).tolist() == [False, True, False] and (~a).tolist() == [False, False, True]
    assert (a & True).dtype == "bool" and (False | b).tolist() == b.tolist()
    assert (a & 1).dtype == "i64"
