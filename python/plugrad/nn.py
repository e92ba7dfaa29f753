"""Modules, which are functions of tensors with parameters, and losses.

Your own class derives from Module, stores tensors and modules as attributes, and defines forward.
"""

from collections.abc import Iterator, Mapping

from . import _plugrad
from ._modes import no_grad
from ._plugrad import Layer, MLP, Neuron, Tensor, cross_entropy, log_softmax  # noqa: F401

__all__ = ["CrossEntropyLoss", "Flatten", "Identity", "Layer", "Linear", "MLP", "MSELoss", "MaxMarginLoss", "Module",
           "Neuron", "ReLU", "Sequential", "Sigmoid", "Softmax", "Tanh", "cross_entropy", "log_softmax", "max_margin_loss",
           "mse_loss", "softmax"]


class Module:
    """A function of tensors with parameters.

    Its parameters are the leaves with a gradient among its attributes, and the parameters of modules among them. Attributes
    may be lists and dicts of both.
    """

    def forward(self, *arguments):
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *arguments, **named):
        return self.forward(*arguments, **named)

    def _members(self) -> Iterator[tuple[str, object]]:
        for name, value in vars(self).items():
            yield from _flattened(name, value)

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yields (name, tensor) for each parameter. The name of an inner module comes first: "0.weight"."""
        for name, value in self._members():
            if isinstance(value, Module):
                yield from value.named_parameters(f"{prefix}{name}.")
            elif value.requires_grad and value.is_leaf:
                yield prefix + name, value

    def parameters(self) -> list[Tensor]:
        """Returns all parameters, each once."""
        found: list[Tensor] = []
        for _, tensor in self.named_parameters():
            if not any(tensor.is_same(other) for other in found):
                found.append(tensor)
        return found

    def zero_grad(self) -> None:
        """Drops the gradients of all parameters."""
        for tensor in self.parameters():
            tensor.zero_grad()

    def to(self, device) -> "Module":
        """Moves the tensors to a device inside the same leaves, so that optimisers keep their handles. Returns itself."""
        for _, value in self._members():
            if isinstance(value, Module):
                value.to(device)
            else:
                value.move_to_(device)
        return self

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the parameters by name, for save(): the same memory, outside the graph."""
        return {name: tensor.detach() for name, tensor in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Copies values into the parameters. Raises ValueError, and changes nothing, where names or shapes differ."""
        own = dict(self.named_parameters())
        if own.keys() != state.keys():
            missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
            raise ValueError(f"[load_state_dict] missing: {missing}, unknown: {unknown}")
        for name, tensor in own.items():
            if tensor.shape != state[name].shape:
                raise ValueError(f"[load_state_dict] {name} has shape {tensor.shape}, but the new value {state[name].shape}")
        with no_grad():
            for name, tensor in own.items():
                tensor.copy_(state[name])

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self._members() if isinstance(value, Module))
        return f"{type(self).__name__}({inner})"


def _flattened(name, value):
    """Yields the tensors and modules in an attribute, with their names."""
    if isinstance(value, (Module, Tensor)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _flattened(f"{name}.{i}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _flattened(f"{name}.{key}", each)


class Linear(Module):
    """y = x W^T + b for x (.., in) -> (.., out); weight (out, in), bias (out). Both start uniform in +-1/sqrt(in).

    Raises ValueError for sizes below 1, and for an x whose last extent is not `in`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype=None, device=None):
        self.weight, self.bias = _plugrad._linear(in_features, out_features, bias, dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        product = x @ self.weight.T
        return product if self.bias is None else product + self.bias

    def __repr__(self) -> str:
        out_features, in_features = self.weight.shape
        return f"Linear({in_features}, {out_features}{', bias=False' if self.bias is None else ''})"


class Sequential(Module):
    """Calls modules or functions one after another. Parameters are named by position: "0.weight"."""

    def __init__(self, *modules):
        self._modules = list(modules)

    def _members(self):
        for i, module in enumerate(self._modules):
            if isinstance(module, Module):
                yield str(i), module

    def forward(self, x):
        for module in self._modules:
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, i):
        return Sequential(*self._modules[i]) if isinstance(i, slice) else self._modules[i]

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self._modules))})"


class Identity(Module):
    """Returns x itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class ReLU(Module):
    """x where it is above 0, else 0; gradient 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.relu()


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh()


class Sigmoid(Module):
    """1 / (1 + e^-x)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()


class Softmax(Module):
    """e^x over its sum along a dim: shares that add up to 1."""

    def __init__(self, dim: int = -1):
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return softmax(x, self.dim)


class Flatten(Module):
    """Reshapes (n, ..) to (n, product of the rest)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], -1)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """e^x over its sum along a dim."""
    return log_softmax(x, dim).exp()


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"[loss] reduction '{reduction}' is unknown: none, mean or sum expected")


def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """(x - target)^2. Raises ValueError where the shapes differ."""
    if x.shape != target.shape:
        raise ValueError(f"[mse_loss] shapes {x.shape} and {target.shape} differ")
    return _reduced((x - target) ** 2, reduction)


def max_margin_loss(scores: Tensor, signs: Tensor, reduction: str = "mean") -> Tensor:
    """relu(1 - sign * score) for signs of -1 and 1. Raises ValueError where the shapes differ."""
    if scores.shape != signs.shape:
        raise ValueError(f"[max_margin_loss] shapes {scores.shape} and {signs.shape} differ")
    return _reduced((1 - signs * scores).relu(), reduction)


class _Loss(Module):
    def __init__(self, reduction: str = "mean"):
        self.reduction = reduction


class CrossEntropyLoss(_Loss):
    """The negative log-likelihood of the targets (n), i64, under the logits (n, c)."""

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(logits, targets, self.reduction)


class MSELoss(_Loss):
    """(x - target)^2."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return mse_loss(x, target, self.reduction)


class MaxMarginLoss(_Loss):
    """relu(1 - sign * score)."""

    def forward(self, scores: Tensor, signs: Tensor) -> Tensor:
        return max_margin_loss(scores, signs, self.reduction)
