"""Round trips with PyTorch, where it is installed."""
import plugrad
import pytest
from plugrad import Device, Tensor

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_round_trips_share_memory(dtype):
    theirs = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype))
    ours = plugrad.from_dlpack(theirs)
    assert ours.data_ptr() == theirs.data_ptr() and ours.tolist() == theirs.tolist()
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr() and back.dtype == theirs.dtype and back.shape == theirs.shape
    assert plugrad.from_dlpack(theirs.T).strides == theirs.T.stride()
    assert Tensor(theirs).tolist() == theirs.tolist() and Tensor(theirs).data_ptr() != theirs.data_ptr()


def test_gradients_stay_where_they_are():
    x = Tensor([1.0, 2.0])
    theirs = torch.from_dlpack(x.detach())
    assert theirs.data_ptr() == x.data_ptr() and not theirs.requires_grad
    (x * x).sum().backward()
    assert torch.from_dlpack(x.grad).tolist() == [2, 4]
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(Exception, match="grad"):
        plugrad.from_dlpack(leaf)
    assert plugrad.from_dlpack(leaf.detach()).tolist() == [1, 1]


def test_dtype_objects():
    assert plugrad.zeros((1,), dtype=torch.float64).dtype == "f64"


@pytest.mark.skipif(not Device.is_cuda_available() or not torch.cuda.is_available(), reason="no CUDA device for both")
def test_cuda():
    torch.cuda._sleep(200_000_000)  # in cycles; the array is not ready before
    theirs = torch.arange(6.0, device="cuda").reshape(2, 3)
    ours = plugrad.from_dlpack(theirs)
    assert ours.device.is_cuda() and ours.data_ptr() == theirs.data_ptr() and (ours + 1).tolist() == (theirs + 1).tolist()
    back = torch.from_dlpack(plugrad.arange(3, device="cuda"))
    assert back.is_cuda and back.tolist() == [0, 1, 2]
