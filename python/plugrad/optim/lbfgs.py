"""The optimiser L-BFGS. A step calls a closure several times."""

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from .. import _plugrad
from .._modes import enable_grad, no_grad
from .._plugrad import Optimizer, Tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """The quasi-Newton method of Nocedal and Wright, Numerical Optimization, 2006, algorithm 7.4, with PyTorch's names.

    params: tensors, all in a single group, of the same dtype, on the same device. A step makes at most max_iter moves. After
    its first move it begins no move once loss and gradient have been evaluated max_eval times, by default 1.25 max_iter; the
    line search of the last move may exceed max_eval. A step ends early where the largest element of the gradient is at most
    tolerance_grad, where the loss changes by less than tolerance_change, where no parameter changes by more than
    tolerance_change, or where the loss falls along the direction by less than tolerance_change per unit of length.
    history_size: the number of moves in the estimate of the second derivatives. line_search_fn: None moves by lr;
    "strong_wolfe" searches for a length that satisfies the strong Wolfe conditions (algorithms 3.5 and 3.6), and begins with
    lr.

    Raises ValueError for groups of parameters, for numbers that are not positive, and for an unknown line_search_fn.
    """

    def __init__(self, params: Iterable[Tensor], lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        self._tensors = list(params)
        if not self._tensors or not all(isinstance(each, Tensor) for each in self._tensors):
            raise ValueError("[LBFGS] an iterable of tensors is expected, with at least one, and no groups of parameters")
        if not lr > 0 or max_iter < 1 or history_size < 1:
            raise ValueError(f"[LBFGS] lr {lr}, max_iter {max_iter}, history_size {history_size}: positive numbers expected")
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"[LBFGS] line_search_fn '{line_search_fn}' is unknown: None or 'strong_wolfe' expected")
        super().__init__(self._tensors, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn})
        self._moves: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=history_size)  # (step, change of gradient, 1 / dot)
        self._last: tuple[Tensor, Tensor, float] | None = None  # gradient, direction and length of the last move
        self._iterations = 0

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds the group of the constructor. Raises ValueError for a second group, because the method treats all parameters
        as a single vector."""
        if self.param_groups:
            raise ValueError("[LBFGS] all parameters are one group, which the constructor takes")
        super().add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the optimiser for a checkpoint: options and earlier moves, without the parameters."""
        options = {name: value for name, value in self.param_groups[0].items() if name != "params"}
        return {"options": options, "moves": list(self._moves), "last": self._last, "iterations": self._iterations}

    def load_state_dict(self, state: dict[str, Any], steps: int | None = None) -> None:
        """Restores a result of state_dict. steps has no effect."""
        self.param_groups[0].update(state["options"])
        self._moves = deque(state["moves"], maxlen=self.param_groups[0]["history_size"])
        self._last, self._iterations = state["last"], state["iterations"]

    # --- Parameters as a single vector.

    def _gradient(self) -> Tensor:
        return _plugrad.cat([_plugrad.zeros_like(each).reshape(-1) if each.grad is None else each.grad.detach().reshape(-1)
                             for each in self._tensors])

    def _place(self) -> Tensor:
        return _plugrad.cat([each.detach().reshape(-1) for each in self._tensors])

    def _move_to(self, place: Tensor) -> None:
        at = 0
        for each in self._tensors:
            each.copy_(place[at:at + each.numel()].reshape(each.shape))
            at += each.numel()

    # --- Steps.

    @no_grad()
    def step(self, closure: Any = None) -> Any:
        """Makes up to max_iter moves. closure: clears the gradients, computes the loss, calls backward() and returns the
        loss. Returns the first loss. Raises TypeError without a closure."""
        options, evaluations = self.param_groups[0], 0
        if closure is None:
            raise TypeError("[LBFGS] step needs a closure, which computes the loss and its gradient again")

        def evaluate(place: Tensor | None = None) -> tuple[float, Tensor]:
            nonlocal evaluations
            evaluations += 1
            if place is not None:
                self._move_to(place)
            with enable_grad():
                result.append(closure())
            return float(result[-1]), self._gradient()

        result: list[Any] = []
        loss, gradient = evaluate()
        for _ in range(options["max_iter"]):
            direction = self._direction(gradient)
            slope = float(gradient.dot(direction))
            if float(gradient.abs().max()) <= options["tolerance_grad"] or slope > -options["tolerance_change"]:
                break
            self._iterations += 1
            length = options["lr"] * (min(1.0, 1.0 / float(gradient.abs().sum())) if self._iterations == 1 else 1.0)
            start, before = self._place(), loss
            if options["line_search_fn"] is None:
                loss, new = evaluate(start + length * direction)
            else:
                search = _Search(lambda t: evaluate(start + t * direction), direction, loss, gradient, slope,
                                 options["tolerance_change"], 25)
                length, loss, new = search.run(length)
                self._move_to(start + length * direction)
            self._last = (gradient, direction, length)
            gradient = new
            moved = float(direction.abs().max()) * length
            if evaluations >= options["max_eval"] or moved <= options["tolerance_change"] \
                    or abs(loss - before) < options["tolerance_change"]:
                break
        return result[0]

    def _direction(self, gradient: Tensor) -> Tensor:
        """Returns minus the gradient times the estimate of the inverse second derivatives."""
        if self._last is not None:
            old, direction, length = self._last
            step, change = direction * length, gradient - old
            curvature = float(change.dot(step))
            if curvature > 1e-10:
                self._moves.append((step, change, 1 / curvature))
        rest, shares = -gradient, []
        for step, change, inverse in reversed(self._moves):
            share = inverse * float(step.dot(rest))
            shares.append(share)
            rest = rest - share * change
        if self._moves:
            step, change, inverse = self._moves[-1]
            rest = rest * (1 / (inverse * float(change.dot(change))))
        for (step, change, inverse), share in zip(self._moves, reversed(shares)):
            rest = rest + (share - inverse * float(change.dot(rest))) * step
        return rest


class _Search:
    """Searches along a direction for a length that satisfies the strong Wolfe conditions: the loss falls by at least 1e-4
    times slope times length, and the size of the slope falls to at most 0.9 times its former size."""

    _DESCENT, _CURVATURE = 1e-4, 0.9

    def __init__(self, evaluate: Callable[[float], tuple[float, Tensor]], direction: Tensor, loss: float, gradient: Tensor,
                 slope: float, tolerance: float, most: int) -> None:
        self._evaluate, self._direction, self._tolerance, self._most = evaluate, direction, tolerance, most
        self._loss, self._gradient, self._slope = loss, gradient, slope

    def _at(self, length: float) -> tuple[float, float, Tensor, float]:
        loss, gradient = self._evaluate(length)
        self._most -= 1
        return length, loss, gradient, float(gradient.dot(self._direction))

    def _falls(self, point: tuple[float, float, Tensor, float]) -> bool:
        return point[1] <= self._loss + self._DESCENT * point[0] * self._slope  # False for NaN

    def run(self, length: float) -> tuple[float, float, Tensor]:
        """Returns the length, and the loss and gradient at this length."""
        before = (0.0, self._loss, self._gradient, self._slope)
        while True:
            point = self._at(length)
            if not self._falls(point) or before[0] > 0 and point[1] >= before[1]:
                return self._between(before, point)
            if abs(point[3]) <= -self._CURVATURE * self._slope or self._most <= 0:
                return point[:3]
            if point[3] >= 0:
                return self._between(point, before)
            length, before = _cubic(before, point, 1.01 * point[0], 10 * point[0]), point

    def _between(self, low: tuple[float, float, Tensor, float],
                 high: tuple[float, float, Tensor, float]) -> tuple[float, float, Tensor]:
        """Searches between two points. low: the best point so far. A good length is between low and high."""
        while self._most > 0:
            first, last = sorted((low[0], high[0]))
            if (last - first) * float(self._direction.abs().max()) < self._tolerance:
                break
            margin = 0.1 * (last - first)
            point = self._at(_cubic(low, high, first + margin, last - margin))
            if not self._falls(point) or point[1] >= low[1]:
                high = point
                continue
            if abs(point[3]) <= -self._CURVATURE * self._slope:
                return point[:3]
            if point[3] * (high[0] - low[0]) >= 0:
                high = low
            low = point
        return low[:3]


def _cubic(a: tuple[float, float, Tensor, float], b: tuple[float, float, Tensor, float], least: float, most: float) -> float:
    """Returns the minimiser, limited to [least, most], of the cubic polynomial with the values and slopes of two points
    (Nocedal and Wright, equation 3.59), or the middle of least and most if the polynomial has no minimum."""
    (x, f, _, g), (y, h, _, k) = sorted((a, b), key=lambda point: point[0])
    if not all(map(math.isfinite, (f, g, h, k))) or x == y:
        return 0.5 * (least + most)
    d = g + k - 3 * (f - h) / (x - y)
    square = d * d - g * k
    if square < 0:
        return 0.5 * (least + most)
    root = math.sqrt(square)
    bottom = k - g + 2 * root
    place = y - (y - x) * (k + root - d) / bottom if bottom else 0.5 * (least + most)
    return min(max(place, least), most)
