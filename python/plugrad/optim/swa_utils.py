"""Averages of a training's weights, with PyTorch's names: stochastic weight averaging (Izmailov et al., Averaging Weights
Leads to Wider Optima, 2018) and exponential moving averages."""

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import SWALR, Tensor
from ..nn.module import Module
from ..nn.normalizations import BatchNorm1d

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
           "update_bn"]

Average = Callable[[Tensor, Tensor, Tensor], Tensor]
AverageOfAll = Callable[[list[Tensor], list[Tensor], Tensor], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Returns a function of an average, a parameter and the number of averaged models, which returns decay average +
    (1 - decay) parameter. Raises ValueError for a decay outside [0, 1]."""
    if not 0 <= decay <= 1:
        raise ValueError(f"[get_ema_avg_fn] decay is {decay}: expected a number in [0, 1]")

    def ema(average: Tensor, parameter: Tensor, count: Tensor) -> Tensor:
        return average * decay + parameter * (1 - decay)
    return ema


def get_swa_avg_fn() -> Average:
    """Returns a function of an average, a parameter and the number of averaged models, which returns the mean of all."""
    def swa(average: Tensor, parameter: Tensor, count: Tensor) -> Tensor:
        return average + (parameter - average) / (count + 1)
    return swa


def _of_all(average_of: Average) -> AverageOfAll:
    @no_grad()
    def update(averages: list[Tensor], parameters: list[Tensor], count: Tensor) -> None:
        for average, parameter in zip(averages, parameters, strict=True):
            average.copy_(average_of(average, parameter, count))
    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> AverageOfAll:
    """As get_ema_avg_fn, for a list of averages, which the function writes in place, and a list of parameters."""
    return _of_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> AverageOfAll:
    """As get_swa_avg_fn, for a list of averages, which the function writes in place, and a list of parameters."""
    return _of_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of model, module, whose parameters are averages of the model's: of equal weight, or as avg_fn or multi_avg_fn
    computes: the first update calls them too, with a count of 0, and drops their result for a copy of the parameters.
    device: for the copy. use_buffers: averages the buffers too; else update_parameters copies them.
    update_parameters may be part of a compiled step. Raises ValueError if both functions are given."""

    n_averaged: Tensor

    def __init__(self, model: Module, device: Any = None, avg_fn: Average | None = None,
                 multi_avg_fn: AverageOfAll | None = None, use_buffers: bool = False) -> None:
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("[AveragedModel] give avg_fn or multi_avg_fn, not both")
        super().__init__()
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        place = next((each.device for each in self.module.parameters()), None) if device is None else device
        self.register_buffer("n_averaged", _plugrad.zeros((), dtype="i64", device=place))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the model's parameters into the average. The first call copies them."""
        def averaged(of: Module) -> list[Tensor]:
            return [each.detach() for each in
                    (itertools.chain(of.parameters(), of.buffers()) if self.use_buffers else of.parameters())]
        averages = averaged(self.module)
        parameters = [each.to(average.device) for each, average in zip(averaged(model), averages, strict=True)]
        update = self.multi_avg_fn or _of_all(self.avg_fn or get_swa_avg_fn())
        is_first = self.n_averaged == 0
        update(averages, parameters, self.n_averaged)
        for average, parameter in zip(averages, parameters, strict=True):
            average.copy_(_plugrad.where(is_first.to(average.device), parameter, average))
        if not self.use_buffers:
            for own, buffer in zip(self.module.buffers(), model.buffers(), strict=True):
                own.copy_(buffer.to(own.device))
        self.n_averaged.add_(1)


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of the model's batch norms anew, as means over all batches of loader: tensors, or
    tuples and lists whose first element is the model's input. device: to which the inputs move."""
    norms = [each for each in model.modules() if isinstance(each, BatchNorm1d) and each.running_mean is not None]
    if not norms:
        return
    momenta, was_training = [each.momentum for each in norms], model.training
    for each in norms:
        each.reset_running_stats()
        each.momentum = None
    model.train()
    try:
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    finally:
        for each, momentum in zip(norms, momenta, strict=True):
            each.momentum = momentum
        model.train(was_training)
