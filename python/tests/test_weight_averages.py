"""Averages of weights: plugrad.optim.swa_utils."""

import pytest

import plugrad
from plugrad import nn, optim
from plugrad.optim.swa_utils import (SWALR, AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn, get_swa_avg_fn,
                                     get_swa_multi_avg_fn, update_bn)


def moved(model, averaged, steps, update=None):
    """Adds 1, 2, 3 .. to all parameters and averages after each; returns the first weights after each move."""
    values = []
    for i in range(1, steps + 1):
        with plugrad.no_grad():
            for each in model.parameters():
                each.add_(plugrad.full_like(each, float(i)))
        (update or averaged.update_parameters)(model)
        values.append(model.weight.tolist()[0][0])
    return values


@pytest.mark.parametrize("options", [{}, {"avg_fn": get_swa_avg_fn()}, {"multi_avg_fn": get_swa_multi_avg_fn()}])
def test_equal_weights_give_the_mean(options):
    model = nn.Linear(2, 3)
    averaged = AveragedModel(model, **options)
    values = moved(model, averaged, 5)
    assert averaged.module.weight.tolist()[0][0] == pytest.approx(sum(values) / 5) and averaged.n_averaged.item() == 5
    x = plugrad.ones(1, 2)
    assert averaged(x).tolist() == averaged.module(x).tolist()
    assert {"n_averaged", "module.weight", "module.bias"} == set(averaged.state_dict())


@pytest.mark.parametrize("options", [{"avg_fn": get_ema_avg_fn(0.75)}, {"multi_avg_fn": get_ema_multi_avg_fn(0.75)}])
def test_a_decay_gives_the_exponential_mean(options):
    model = nn.Linear(2, 3)
    averaged = AveragedModel(model, **options)
    values = moved(model, averaged, 5)
    wanted = values[0]
    for value in values[1:]:
        wanted = 0.75 * wanted + 0.25 * value
    assert averaged.module.weight.tolist()[0][0] == pytest.approx(wanted)


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers_are_copied_or_averaged(use_buffers):
    model = nn.BatchNorm1d(2)
    averaged = AveragedModel(model, use_buffers=use_buffers)
    means = []
    for i in range(3):
        model(plugrad.full((4, 2), float(i)))
        averaged.update_parameters(model)
        means.append(model.running_mean.tolist()[0])
    assert averaged.module.running_mean.tolist()[0] == pytest.approx(sum(means) / 3 if use_buffers else means[-1])
    assert averaged.module.num_batches_tracked.item() == (1 if use_buffers else 3)  # whole numbers are rounded towards 0


@pytest.mark.parametrize("average", [get_swa_multi_avg_fn(), get_ema_multi_avg_fn(0.9)])
def test_a_compiled_training_step_averages(average):
    results = []
    for compiled in (False, True):
        plugrad.manual_seed(0)
        model = nn.Linear(2, 1)
        averaged, optimizer = AveragedModel(model, multi_avg_fn=average), optim.SGD(model.parameters(), 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = (model(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            averaged.update_parameters(model)
            return loss
        run = plugrad.compile(step) if compiled else step
        for i in range(8):
            run(plugrad.tensor([[1.0, i]]))
        results.append((averaged.module.weight.tolist(), averaged.n_averaged.item()))
        assert not compiled or run.figures().replayed >= 6
    assert results[0] == results[1]


def test_update_bn_computes_statistics_of_all_batches():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU())
    x = plugrad.randn(12, 2)
    model.eval()
    update_bn([(batch, 0) for batch in x.split(4)], model)
    y = model[0](x)
    assert model[1].running_mean.tolist() == pytest.approx(y.mean(0).tolist(), rel=1e-4, abs=1e-5)
    wanted = sum(batch.var(0) for batch in y.split(4)) / 3
    assert model[1].running_var.tolist() == pytest.approx(wanted.tolist(), rel=1e-4)
    assert model[1].momentum == 0.1 and not model.training and model[1].num_batches_tracked.item() == 3


def test_swalr_moves_to_its_rate_as_pytorchs():
    parameters = [{"params": [nn.Parameter([1.0])]}, {"params": [nn.Parameter([1.0])], "lr": 0.5}]
    optimizer = optim.SGD(parameters, lr=1.0)
    decay, swa = optim.lr_scheduler.ExponentialLR(optimizer, 0.5), SWALR(optimizer, [0.05, 0.1], anneal_epochs=4)
    for _ in range(2):
        decay.step()
    rates = []
    for _ in range(6):
        swa.step()
        rates.append(swa.get_last_lr())
    wanted = [[0.220710678, 0.121338835], [0.15, 0.1125], [0.0792893219, 0.103661165], [0.05, 0.1], [0.05, 0.1], [0.05, 0.1]]
    assert [pytest.approx(each, rel=1e-7) for each in wanted] == rates  # PyTorch 2.15
    linear = SWALR(optimizer, swa_lr=0.1, anneal_epochs=2, anneal_strategy="linear")
    linear.step()
    assert linear.get_last_lr() == pytest.approx([0.075, 0.1])


@pytest.mark.parametrize("make, message", [
    (lambda: AveragedModel(nn.Linear(1, 1), avg_fn=get_swa_avg_fn(), multi_avg_fn=get_swa_multi_avg_fn()), "not both"),
    (lambda: get_ema_avg_fn(1.5), r"decay is 1.5: expected a number in \[0, 1\]"),
    (lambda: SWALR(optim.SGD([nn.Parameter([1.0])]), [0.1, 0.2]), "one for each"),
    (lambda: SWALR(optim.SGD([nn.Parameter([1.0])]), 0.1, anneal_strategy="log"), "cos or linear"),
])
def test_senseless_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
