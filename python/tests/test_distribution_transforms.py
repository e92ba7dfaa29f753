"""Transforms of samples, and constraints."""

import pytest

import plugrad
from plugrad import distributions as d
from plugrad.distributions import constraints, transforms as t


def f64(numbers):
    return plugrad.tensor(numbers, dtype="f64")


A, B, P = f64([0.5, 1.5, 3.0]), f64([0.7, 2.0, 1.2]), f64([0.2, 0.5, 0.9])
S, L = f64([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), f64([[1.0, 0, 0], [0.5, 2.0, 0.0], [-0.3, 0.2, 0.7]])


@pytest.mark.parametrize("transform, x", [
    (t.ExpTransform(), A), (t.SigmoidTransform(), A - 1), (t.TanhTransform(), A - 1), (t.SoftplusTransform(), A - 1),
    (t.PowerTransform(2.5), A), (t.AffineTransform(1.0, -2.0), A), (t.AffineTransform(A, B), B),
    (t.ComposeTransform([t.AffineTransform(1.0, 2.0), t.ExpTransform()]), A), (t.StickBreakingTransform(), A - 1),
    (t.LowerCholeskyTransform(), L), (t.ReshapeTransform((3,), (3, 1)), A), (d.identity_transform, A),
    (t.IndependentTransform(t.ExpTransform(), 1), S), (t.SigmoidTransform().inv, P),
], ids=repr)
def test_transforms_have_inverses_and_jacobians(transform, x):
    y = transform(x)
    assert y.shape == transform.forward_shape(x.shape) and transform.inverse_shape(y.shape) == x.shape
    assert plugrad.allclose(transform.inv(y), x, rtol=1e-12) and plugrad.allclose(transform.inv.inv(x), y)
    assert bool(transform.codomain.check(y).all())
    if isinstance(transform, t.LowerCholeskyTransform):
        return
    found = transform.log_abs_det_jacobian(x, y)
    assert plugrad.allclose(transform.inv.log_abs_det_jacobian(y, x), -found)
    event = x.ndim if transform.domain.event_dim == 0 else transform.domain.event_dim
    rows = x.reshape(-1, *x.shape[x.ndim - event:])
    for row, wanted in zip(rows, (found.reshape(len(rows), -1) if found.ndim else found.reshape(1, 1)), strict=True):
        jacobian = plugrad.func.jacfwd(lambda z: transform(z).reshape(-1)[:z.numel()])(row).reshape(row.numel(), row.numel())
        assert wanted.sum().item() == pytest.approx(plugrad.linalg.slogdet(jacobian)[1].item(), abs=1e-10)


def test_transforms_stay_finite_at_extremes():
    x = plugrad.tensor([-100.0, -20.0, 20.0, 100.0])
    for each in (t.SigmoidTransform(), t.SoftplusTransform()):
        assert bool(each.inv(each(x)).isfinite().all()) or isinstance(each, t.SoftplusTransform)
    assert t.SoftplusTransform().inv(t.SoftplusTransform()(x[1:])).tolist() == pytest.approx(x[1:].tolist())
    sticks = plugrad.tensor([-100.0, -20.0, -5.0, 3.0, 20.0, 90.0])
    shares = t.StickBreakingTransform()(sticks)
    assert bool(t.StickBreakingTransform().log_abs_det_jacobian(sticks, shares).isfinite().all())


@pytest.mark.parametrize("constraint", [constraints.real, constraints.positive, constraints.nonnegative,
                                        constraints.unit_interval, constraints.interval(-1.0, 3.0),
                                        constraints.greater_than(2.0), constraints.less_than(2.0), constraints.simplex,
                                        constraints.real_vector, constraints.lower_cholesky], ids=repr)
def test_constraints_have_transforms(constraint):
    for find in (d.biject_to, d.transform_to):
        x = f64([[0.5, -2.0, 1.0], [3.0, 0.0, -1.0], [0.1, 0.2, 0.3]])
        made = find(constraint)(x)
        assert bool(constraint.check(made).all())
    with pytest.raises(NotImplementedError, match="no transform to boolean"):
        d.biject_to(constraints.boolean)
