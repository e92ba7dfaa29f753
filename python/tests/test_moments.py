"""Further arithmetic and statistics by the names and the parameters of PyTorch and NumPy."""
import math

import plugrad
import pytest
from plugrad import tensor

NAN = math.nan


def test_arithmetic():
    a, b = tensor([7.0, -7.0]), tensor([2.0, 2.0])
    assert plugrad.add(a, b, alpha=2).tolist() == a.add(b, alpha=2).tolist() == [11, -3]
    assert a.sub(b, alpha=2).tolist() == [3, -11] and plugrad.div(a, b, rounding_mode="trunc").tolist() == [3, -3]
    assert a.div(2, rounding_mode="floor").tolist() == [3, -4]
    assert a.div(b, rounding_mode=None).tolist() == [3.5, -3.5] and tensor([7]).div(2, rounding_mode="trunc").dtype == "i64"
    with pytest.raises(ValueError, match=r"^\[rounding_mode\] 'up' is unknown"):
        a.div(b, rounding_mode="up")
    assert plugrad.lerp(a, b, 0.5).tolist() == a.lerp(b, tensor([0.5])).tolist() == [4.5, -2.5]
    assert plugrad.hypot(tensor([3.0]), tensor([4.0])).tolist() == [5] and plugrad.xlogy(0, b).tolist() == [0, 0]
    assert plugrad.copysign(b, -1).tolist() == [-2, -2] and a.signbit().tolist() == [False, True]
    assert plugrad.float_power(tensor([2]), 3).dtype == "f64" and plugrad.heaviside(a, tensor([0.5])).tolist() == [1, 0]
    assert plugrad.fmax(a, tensor([NAN, 1.0])).tolist() == [7, 1] and plugrad.logaddexp(b, b).shape == (2,)


def test_bounds_may_be_tensors():
    x, low = tensor([1.0, 5.0, 9.0]), tensor([2.0, 2.0, 2.0])
    assert x.clamp(low, low + 4).tolist() == plugrad.clip(x, min=low, max=low + 4).tolist() == [2, 5, 6]
    assert x.clamp(min=low).tolist() == [2, 5, 9] and x.clamp(max=low).tolist() == [1, 2, 2]
    assert x.clamp(2, 6).tolist() == [2, 5, 6]


def test_special_values():
    x = tensor([NAN, math.inf, -math.inf, 1.0])
    assert x.nan_to_num(0, posinf=5, neginf=-5).tolist() == plugrad.nan_to_num(x, nan=0.0, posinf=5.0, neginf=-5).tolist()
    assert x.isposinf().tolist() == [False, True, False, False] and x.isneginf().tolist() == [False, False, True, False]
    assert plugrad.allclose(x, x, equal_nan=True) is True and plugrad.equal(x, x) is False
    assert plugrad.array_equal(tensor([1, 2]), tensor([1, 2])) and plugrad.isreal(x).all().item()
    assert tensor([0.5]).logit().item() == 0 and tensor([0.1]).logit(eps=0.5).item() == 0
    assert plugrad.rad2deg(plugrad.deg2rad(tensor([90.0]))).item() == pytest.approx(90)
    assert tensor([-1.5]).frac().item() == -0.5


def test_statistics():
    x = tensor([[1.0, NAN], [3.0, 5.0]])
    assert x.nansum(0).tolist() == [4, 5] and plugrad.nanmean(x, axis=1).tolist() == [1, 4] and x.nansum().item() == 9
    assert plugrad.nanvar(x, dim=0, correction=0).tolist() == plugrad.nanstd(x, 0, correction=0).tolist() == [1, 0]
    y = tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    var, mean = plugrad.var_mean(y, dim=1, keepdim=True)
    assert var.shape == mean.shape == (2, 1) and y.std_mean()[1].item() == pytest.approx(13 / 6)
    assert plugrad.cov(y, correction=0, fweights=tensor([1, 2, 1])).shape == (2, 2)
    assert y.corrcoef().tolist()[0][0] == pytest.approx(1)
    assert plugrad.trapezoid(y).tolist() == [4.5, 3.5] and plugrad.trapezoid(y, tensor([0.0, 2.0, 3.0])).tolist() == [6, 5.5]
    assert plugrad.trapz(y, dx=2).tolist() == [9, 7]
    assert plugrad.trapezoid(y, x=tensor([0.0, 1.0]), dim=0).tolist() == [2, 1.5, 3]
    rows, columns = plugrad.gradient(y)
    assert rows.tolist() == [[2, -1, -2]] * 2 and columns.tolist() == [[1, 1.5, 2], [-2, -0.5, 1]]
    assert plugrad.gradient(y, spacing=2.0, dim=1)[0].tolist() == y.gradient(spacing=[2.0], dim=1)[0].tolist()
    assert plugrad.gradient(y, spacing=(tensor([0.0, 1.0, 3.0]),), dim=1)[0].shape == (2, 3)
    assert y.logcumsumexp(1)[0, 0].item() == 1
