"""Factories and rearrangements by the names and the parameters of PyTorch and NumPy."""
import plugrad
import pytest
from plugrad import tensor

X = [[1, 2, 3], [4, 5, 6]]


def test_factories():
    assert plugrad.linspace(0, 10, 5).tolist() == [0, 2.5, 5, 7.5, 10] and plugrad.linspace(0, 1, 3).dtype == "f32"
    assert plugrad.linspace(0, 10, steps=3, dtype="i64").tolist() == [0, 5, 10]
    assert plugrad.logspace(0, 2, 3).tolist() == [1, 10, 100] and plugrad.logspace(0, 2, 3, base=2.0).tolist() == [1, 2, 4]
    assert plugrad.empty(2, 3).shape == plugrad.empty((2, 3), dtype="i64").shape == (2, 3)
    assert plugrad.empty_like(tensor(X)).dtype == "i64"
    assert plugrad.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]] and plugrad.triu_indices(2, 2).dtype == "i64"
    assert plugrad.vander(tensor([2, 3]), N=3).tolist() == [[4, 2, 1], [9, 3, 1]]


def test_lists_of_tensors_and_tensors_one_by_one():
    a, b = tensor([1, 2]), tensor([3, 4, 5])
    for grids in (plugrad.meshgrid(a, b), plugrad.meshgrid([a, b]), plugrad.meshgrid(a, b, indexing="ij")):
        assert [grid.tolist() for grid in grids] == [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
    assert plugrad.meshgrid(a, b, indexing="xy")[0].shape == (3, 2)
    with pytest.raises(ValueError, match=r"^\[indexing\] 'yx' is unknown: one of ij, xy expected"):
        plugrad.meshgrid(a, b, indexing="yx")
    assert plugrad.cartesian_prod(a, a).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert plugrad.block_diag(a, b).tolist() == [[1, 2, 0, 0, 0], [0, 0, 3, 4, 5]]
    assert [x.shape for x in plugrad.broadcast_tensors(a.unsqueeze(1), b)] == [(2, 3), (2, 3)]
    assert plugrad.broadcast_shapes((2, 1), (3,), 1) == (2, 3) and plugrad.broadcast_shapes() == ()
    assert plugrad.atleast_2d(a).shape == (1, 2)
    assert [x.shape for x in plugrad.atleast_2d(a, tensor(1))] == [(1, 2), (1, 1)]
    assert [x.shape for x in plugrad.atleast_1d([tensor(1), a])] == [(1,), (2,)]
    assert plugrad.hstack([a, b]).tolist() == [1, 2, 3, 4, 5] and plugrad.vstack((a, a)).shape == (2, 2)
    assert plugrad.row_stack([a, a]).tolist() == [[1, 2], [1, 2]] and plugrad.column_stack([a, a]).shape == (2, 2)
    assert plugrad.combinations(b, r=2).tolist() == [[3, 4], [3, 5], [4, 5]]


def test_views():
    x = tensor(X)
    assert x.flatten().tolist() == x.ravel().tolist() == [1, 2, 3, 4, 5, 6] and tensor(3).flatten().shape == (1,)
    assert plugrad.zeros(2, 3, 4).flatten(start_dim=1).shape == (2, 12) and plugrad.flatten(x, 0, 1).shape == (6,)
    assert x.unflatten(1, (3, 1)).shape == x.unflatten(dim=1, sizes=(-1, 1)).shape == (2, 3, 1)
    assert x.squeeze(0).shape == (2, 3) and x.unsqueeze(0).squeeze((0, 1)).shape == (2, 3)
    assert x.swapaxes(0, 1).tolist() == plugrad.swapdims(x, 0, 1).tolist() == x.T.tolist()
    assert x.reshape_as(plugrad.zeros(3, 2)).shape == x.view_as(plugrad.zeros(3, 2)).shape == (3, 2)
    assert tensor([1]).expand_as(x).shape == x.shape and x.type_as(plugrad.zeros(1)).dtype == "f32"
    assert x.as_strided((2, 2), (1, 2)).tolist() == [[1, 3], [2, 4]]
    assert x.fliplr().tolist() == x.flip(1).tolist() and x.flip(0, 1).tolist() == x.rot90(2).tolist()
    assert plugrad.rot90(x, k=1, dims=(0, 1)).tolist() == [[3, 6], [2, 5], [1, 4]]
    assert x.broadcast_to((2, 2, 3)).shape == (2, 2, 3)


def test_parts_and_repetition():
    x = tensor(X)
    assert [part.tolist() for part in plugrad.tensor_split(tensor([1, 2, 3]), 2)] == [[1, 2], [3]]
    assert [part.shape for part in plugrad.array_split(x, indices_or_sections=[1], axis=1)] == [(2, 1), (2, 2)]
    assert [part.shape for part in x.hsplit(3)] == [(2, 1)] * 3 and len(x.vsplit([1])) == 2
    assert x.repeat(2, 1).tolist() == x.repeat((2, 1)).tolist() == X + X and x.tile(2).shape == x.tile(1, 2).shape == (2, 6)
    assert tensor([1, 2]).repeat_interleave(2).tolist() == [1, 1, 2, 2]
    assert plugrad.repeat_interleave(x, tensor([2, 0]), dim=0).tolist() == [[1, 2, 3], [1, 2, 3]]


def test_padding_and_images():
    x = plugrad.arange(4.0).reshape(1, 4)
    assert plugrad.pad(x, (1, 2), mode="reflect").tolist() == [[1, 0, 1, 2, 3, 2, 1]]
    assert plugrad.pad(x, (1, 1), "replicate").tolist() == [[0, 0, 1, 2, 3, 3]]
    assert plugrad.pad(x, [1, 1], "circular").tolist() == [[3, 0, 1, 2, 3, 0]]
    assert plugrad.pad(x, [1, 0], "constant", 7).tolist() == plugrad.pad(x, [1, 0], value=7).tolist() == [[7, 0, 1, 2, 3]]
    with pytest.raises(ValueError, match=r"^\[mode\] 'wrap' is unknown"):
        plugrad.pad(x, [1, 0], mode="wrap")
    assert plugrad.pixel_shuffle(plugrad.zeros(4, 2, 2), 2).shape == (1, 4, 4)
    assert plugrad.pixel_unshuffle(plugrad.zeros(1, 4, 4), downscale_factor=2).shape == (4, 2, 2)
    assert plugrad.channel_shuffle(plugrad.arange(4).reshape(1, 4, 1), groups=2).flatten().tolist() == [0, 2, 1, 3]
