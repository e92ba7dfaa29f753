"""Recurrent networks, by the names, formulas and parameters of torch.nn: RNN, LSTM, GRU, and their cells."""

from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from . import init
from .module import Module
from .utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]

_GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


class _Recurrent(Module):
    """x (l, n, in), or (n, l, in) with batch_first, or (l, in) without a batch, or a PackedSequence. Weights and biases of
    layer 0 are weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0; the names for the reverse direction end in "_reverse".
    They start uniform in +-1/sqrt(hidden_size). Raises ValueError for sizes below 1 and for shapes that do not fit."""

    _kind: str

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None) -> None:
        if min(input_size, hidden_size, num_layers) < 1 or not 0 <= dropout <= 1:
            raise ValueError(f"[{type(self).__name__}] sizes {input_size} and {hidden_size}, num_layers {num_layers}, "
                             f"dropout {dropout}: expected numbers of at least 1, and a dropout in [0, 1]")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            extent = directions * hidden_size if layer else input_size
            for suffix in ["", "_reverse"][:directions]:
                _add_weights(self, self._kind, extent, hidden_size, bias, f"_l{layer}{suffix}", dtype, device)

    def _run(self, x: Any, h: Tensor | None, c: Tensor | None) -> tuple[Any, Tensor, Tensor | None]:
        suffixes = [f"_l{layer}{suffix}" for layer in range(self.num_layers)
                    for suffix in ["", "_reverse"][:2 if self.bidirectional else 1]]
        weights = [[getattr(self, name + suffix, None) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
                   for suffix in suffixes]
        dropout = self.dropout if self.training else 0.0
        if not isinstance(x, PackedSequence):
            return _plugrad._recurrent(self._kind, x, weights, h, c, self.batch_first, dropout, self.bidirectional)
        h, c = _permuted(h, x.sorted_indices), _permuted(c, x.sorted_indices)
        output, h, c = _plugrad._recurrent(self._kind, x.data, weights, h, c, False, dropout, self.bidirectional,
                                           x.batch_sizes.tolist())
        return x._replace(data=output), _permuted(h, x.unsorted_indices), _permuted(c, x.unsorted_indices)

    def forward(self, x: Any, hx: Any = None) -> Any:
        """Returns (output, h): the results of the last layer at each step, in the form of x, and the last states (layers *
        directions, n, hidden). hx: the first states, or None for 0."""
        output, h, _ = self._run(x, hx, None)
        return output, h

    def extra_repr(self) -> str:
        plain = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        more = [f"{name}={getattr(self, name)}" for name, value in plain.items() if getattr(self, name) != value]
        return ", ".join([str(self.input_size), str(self.hidden_size), *more])

    def reset_parameters(self) -> None:
        """Draws all weights and biases again."""
        bound = self.hidden_size ** -0.5
        for each in self.parameters():
            init.uniform_(each, -bound, bound)


def _permuted(state: Any, places: Tensor | None) -> Any:
    """A state (layers, n, hidden) with its sequences in another order."""
    return state if state is None or places is None else state.index_select(1, places)


def _add_weights(module: Module, kind: str, extent: int, hidden: int, bias: bool, suffix: str, dtype: Any,
                 device: Any) -> None:
    rows, bound = _GATES[kind] * hidden, hidden ** -0.5
    shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, extent), "weight_hh": (rows, hidden)}
    if bias:
        shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
    for name, shape in shapes.items():
        setattr(module, name + suffix, _plugrad.rand(shape, dtype, device, -bound, bound, requires_grad=True))


class RNN(_Recurrent):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device: Any = None,
                 dtype: Any = None) -> None:
        self.nonlinearity = nonlinearity
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"[RNN] nonlinearity '{nonlinearity}' is unknown: tanh or relu expected")
        self._kind = f"rnn_{nonlinearity}"
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)


class GRU(_Recurrent):
    """r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh); n = tanh(W_in x + b_in + r (W_hn h + b_hn)); h' = (1 - z) n + z h: Cho
    et al., 2014."""

    _kind = "gru"


class LSTM(_Recurrent):
    """i, f, g, o = W_ih x + b_ih + W_hh h + b_hh; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c'):
    Hochreiter and Schmidhuber, 1997."""

    _kind = "lstm"

    def forward(self, x: Any, hx: Any = None) -> Any:
        """Returns (output, (h, c)), with the last states h and c. hx: the first states (h, c), or None for 0."""
        h, c = hx or (None, None)
        output, h, c = self._run(x, h, c)
        return output, (h, c)


class _Cell(Module):
    """A single step, from x (n, in) or (in) and a state (n, hidden) or (hidden) to the next state."""

    _kind: str

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        if min(input_size, hidden_size) < 1:
            raise ValueError(f"[{type(self).__name__}] sizes must be at least 1: {input_size} and {hidden_size}")
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        _add_weights(self, self._kind, input_size, hidden_size, bias, "", dtype, device)

    def _step(self, x: Tensor, h: Tensor | None, c: Tensor | None) -> tuple[Tensor, Tensor | None]:
        weights = [[getattr(self, name, None) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]]
        first = None if h is None else h.unsqueeze(0)
        second = None if c is None else c.unsqueeze(0)
        _, h, c = _plugrad._recurrent(self._kind, x.unsqueeze(0), weights, first, second, False, 0.0, False)
        return h.squeeze(0), None if c is None else c.squeeze(0)

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        return self._step(x, hx, None)[0]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


class RNNCell(_Cell):
    """A step of RNN."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device: Any = None,
                 dtype: Any = None) -> None:
        self.nonlinearity = nonlinearity
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"[RNNCell] nonlinearity '{nonlinearity}' is unknown: tanh or relu expected")
        self._kind = f"rnn_{nonlinearity}"
        super().__init__(input_size, hidden_size, bias, device, dtype)


class GRUCell(_Cell):
    """A step of GRU."""

    _kind = "gru"


class LSTMCell(_Cell):
    """A step of LSTM."""

    _kind = "lstm"

    def forward(self, x: Tensor, hx: Any = None) -> Any:
        """Returns the next state (h, c). hx: the state (h, c), or None for 0."""
        h, c = hx or (None, None)
        return self._step(x, h, c)
