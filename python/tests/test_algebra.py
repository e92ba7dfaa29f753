"""Products and distances by the names and the parameters of PyTorch and NumPy."""
import plugrad
import pytest
from plugrad import tensor

A, B = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[1.0, 0.0], [2.0, -1.0], [0.0, 3.0]]
PRODUCT = [[5.0, 7.0], [14.0, 13.0]]


def test_einsum_in_all_forms():
    a, b = tensor(A), tensor(B)
    assert plugrad.einsum("ij,jk->ik", a, b).tolist() == plugrad.einsum("ij,jk", [a, b]).tolist() == PRODUCT
    assert plugrad.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == plugrad.einsum(a, [0, 1], b, [1, 2]).tolist() == PRODUCT
    assert plugrad.einsum(a, [..., 5], [5, ...]).tolist() == a.T.tolist() and plugrad.einsum("ij->", a).item() == 21
    with pytest.raises(ValueError, match=r"^\[einsum\] 'j' has extents 3 and 2"):
        plugrad.einsum("ij,jk", a, b.T)
    with pytest.raises(ValueError, match=r"^\[einsum\] the subscript 52"):
        plugrad.einsum(a, [0, 52])
    with pytest.raises(TypeError, match=r"^\[einsum\]"):
        plugrad.einsum("ij", 5)


def test_tensordot_takes_a_number_or_two_lists():
    a, b = tensor(A), tensor(B)
    for made in (plugrad.tensordot(a, b, 1), plugrad.tensordot(a, b, dims=([1], [0])), a.tensordot(b, axes=([-1], [0])),
                 plugrad.tensordot(a, b, axes=(1, 0)), a.tensordot(b, dims=1), plugrad.tensordot(a, b, axes=1)):
        assert made.tolist() == PRODUCT


def test_products_are_functions_and_methods():
    a, b = tensor(A), tensor(B)
    assert a.mm(b).tolist() == plugrad.mm(a, b).tolist() == plugrad.multi_dot([a, b]).tolist() == PRODUCT
    assert plugrad.chain_matmul(a, b).tolist() == PRODUCT and a[0].dot(a[1]).item() == 32
    assert plugrad.addmm(tensor([1.0, 1.0]), a, b, beta=2, alpha=-1).tolist() == [[-3, -5], [-12, -11]]
    assert plugrad.addcmul(a, a, a, value=0.5).tolist() == [[1.5, 4, 7.5], [12, 17.5, 24]]
    assert plugrad.outer(a[0], b[0]).tolist() == [[1, 0], [2, 0], [3, 0]] and a.mm(b).trace().item() == 18
    assert plugrad.cross(tensor([1, 0, 0]), tensor([0, 1, 0])).tolist() == [0, 0, 1]
    assert plugrad.cross(a, a.flip(0), dim=-1).tolist() == [[-3, 6, -3], [3, -6, 3]]
    assert plugrad.matrix_power(a.mm(b), 2).tolist() == a.mm(b).mm(a.mm(b)).tolist()


def test_distances():
    a = tensor([[3.0, 4.0], [0.0, 0.0]])
    assert plugrad.cdist(a, a).tolist() == [[0, 5], [5, 0]] and plugrad.cdist(a, a, p=1).tolist() == [[0, 7], [7, 0]]
    assert plugrad.dist(a[0], a[1], p=float("inf")).item() == 4
    assert plugrad.normalize(a, dim=1).tolist()[1] == [0, 0] and plugrad.cosine_similarity(a, a, dim=1).shape == (2,)
    assert plugrad.renorm(a, p=2, dim=0, maxnorm=10).tolist() == a.tolist()
    assert plugrad.pairwise_distance(a, a, keepdim=True).shape == (2, 1)
