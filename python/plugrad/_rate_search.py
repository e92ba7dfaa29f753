"""A search for a learning rate: the loss while the rate grows from step to step."""

import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ._plugrad import Tensor


@dataclass(frozen=True)
class RateSearch:
    """The result of find_learning_rate: the rate of each step, its loss, and the mean of the losses so far, in which later
    ones count more."""

    rates: list[float]
    losses: list[float]
    smoothed: list[float]

    @property
    def suggestion(self) -> float:
        """The rate at which the smoothed loss falls fastest, before its minimum. Raises ValueError if it never falls."""
        lowest = self.smoothed.index(min(self.smoothed))
        slopes = [self.smoothed[i + 1] - self.smoothed[i - 1] for i in range(1, lowest)]
        if not slopes or min(slopes) >= 0:
            raise ValueError("[find_learning_rate] the loss does not fall at any rate: search from a lower rate, or with "
                             "more steps")
        return self.rates[1 + slopes.index(min(slopes))]

    def plot(self, path: Any = None, title: str = "") -> Any:
        """Draws the losses over the rates by Matplotlib, with the suggestion; returns its Figure. path: a file to write.
        Raises ImportError without Matplotlib."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("[find_learning_rate] Matplotlib is not installed: pip install matplotlib") from None
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(title=title, xlabel="learning rate", ylabel="loss", xscale="log")
        axes.plot(self.rates, self.losses, color="tab:blue", alpha=0.3)
        axes.plot(self.rates, self.smoothed, color="tab:blue")
        try:
            axes.axvline(self.suggestion, color="tab:orange", label=f"{self.suggestion:.2g}")
            axes.legend()
        except ValueError:
            pass  # there is no suggestion to show
        if path is not None:
            figure.savefig(path)
        return figure


def _rates(low: float, high: float, steps: int, smoothing: float) -> list[float]:
    if not 0 <= smoothing < 1:
        raise ValueError(f"[find_learning_rate] smoothing is {smoothing}: expected 0 or more, and less than 1")
    if not 0 < low < high < math.inf or steps < 2:
        raise ValueError(f"[find_learning_rate] the rates are {low} to {high} in {steps} steps: expected 0 < low < high, "
                         "and 2 steps or more")
    return [low * (high / low) ** (i / (steps - 1)) for i in range(steps)]


def _forever(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise ValueError("[find_learning_rate] there are no batches: give an iterable that can be read again")


def find_learning_rate(model: Any, optimizer: Any, batches: Iterable[Any], loss: Callable[[Tensor, Tensor], Tensor], *,
                       low: float = 1e-7, high: float = 10.0, steps: int = 100, smoothing: float = 0.9,
                       divergence: float = 4.0) -> RateSearch:
    """Trains for some steps while the learning rate grows from low to high, each time by the same factor, and returns the
    losses (Smith, "Cyclical learning rates for training neural networks", 2015). Afterwards the model and the optimiser are
    as they were before.

    batches: pairs (x, y), read again from the beginning if there are too few. loss: of model(x) and y. smoothing: how much
    of the mean of the losses stays in each step, from 0 on, below 1. The search ends when the mean exceeds the lowest mean
    by the factor divergence, or is not finite. Raises ValueError for unfit numbers and for no batches.
    """
    rates = _rates(low, high, steps, smoothing)
    weights = {name: each.clone() for name, each in model.state_dict().items()}
    state, training = deepcopy(optimizer.state_dict()), model.training
    found = RateSearch([], [], [])
    mean, pairs = 0.0, _forever(batches)
    model.train()
    try:
        for step, rate in enumerate(rates):
            for group in optimizer.param_groups:
                group["lr"] = rate
            x, y = next(pairs)
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
            mean = smoothing * mean + (1 - smoothing) * value.item()
            now = mean / (1 - smoothing ** (step + 1))
            if not math.isfinite(now) or found.smoothed and now > divergence * min(found.smoothed):
                break
            found.rates.append(rate)
            found.losses.append(value.item())
            found.smoothed.append(now)
    finally:
        model.load_state_dict(weights)
        optimizer.load_state_dict(state)
        optimizer.zero_grad()
        model.train(training)
    return found
