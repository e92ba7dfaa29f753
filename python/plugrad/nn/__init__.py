"""Modules, which are functions of tensors with parameters, and losses.

Your own class derives from Module, stores tensors and modules as attributes, and defines forward.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Device, DType, Layer, MLP, Neuron, Tensor, cross_entropy, log_softmax, mse_loss  # noqa: F401
from . import functional as functional

__all__ = ["Conv1d", "Conv2d", "Conv3d", "CrossEntropyLoss", "Dropout", "Flatten", "Identity", "Layer", "Linear", "MLP",
           "MSELoss", "MaxMarginLoss", "Module", "Neuron", "Parameter", "ReLU", "Sequential", "Sigmoid", "Softmax",
           "Tanh", "cross_entropy", "log_softmax", "max_margin_loss", "mse_loss", "softmax"]

_Extents: TypeAlias = int | Sequence[int]


def Parameter(data: Any, dtype: Any = None, device: Any = None) -> Tensor:  # noqa: N802  (a class in PyTorch)
    """Returns a copy of the data as a leaf that a module counts among its parameters. Raises ValueError for integers."""
    return Tensor(data, dtype=dtype, device=device, requires_grad=True)


def _no_forward(self: "Module", *arguments: Any) -> Any:
    raise NotImplementedError(f"[forward] {type(self).__name__} defines no forward")


class Module:
    """A function of tensors with parameters.

    Its parameters are those tensors among its attributes that somebody asked to have a gradient: by nn.Parameter,
    requires_grad=True or requires_grad_(). One that is frozen later, by requires_grad_(False), remains a parameter.
    `Tensor([1.0])` tracks a gradient by default, without being asked to, and so is not one: a constant of a module does not
    become trained by accident. Buffers are never parameters. Attributes may also be modules, and lists and dicts of tensors
    and modules.
    """

    forward: Callable[..., Any] = _no_forward
    training: bool = True

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.forward(*arguments, **named)

    def _members(self) -> Iterator[tuple[str, "Tensor | Module"]]:
        for name, value in vars(self).items():
            yield from _flattened(name, value)

    def _all_members(self, prefix: str = "") -> Iterator[tuple[str, Tensor, bool | None]]:
        """Yields (name, tensor, whether a state_dict has it) for each tensor; None means that it is no buffer."""
        buffers = vars(self).get("_buffer_names", {})
        for name, value in self._members():
            if isinstance(value, Module):
                yield from value._all_members(f"{prefix}{name}.")
            else:
                yield prefix + name, value, buffers.get(name)

    def register_buffer(self, name: str, data: Any, persistent: bool = True) -> None:
        """Sets an attribute to a tensor that is no parameter, but moves with the module and is in its state_dict.

        data: what plugrad.tensor takes; a tensor is shared, outside the graph. persistent: whether state_dict has it. Raises
        ValueError for a name that the module uses already.
        """
        buffers = vars(self).setdefault("_buffer_names", {})
        if name in vars(self) and name not in buffers:
            raise ValueError(f"[register_buffer] the module has an attribute '{name}' already: choose another name")
        buffers[name] = persistent
        setattr(self, name, data.detach() if isinstance(data, Tensor) else Tensor(data, requires_grad=False))

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yields (name, tensor) for each buffer, also those of inner modules."""
        return ((name, tensor) for name, tensor, kept in self._all_members() if kept is not None)

    def buffers(self) -> list[Tensor]:
        """Returns all buffers, each once."""
        return _each_once(self.named_buffers())

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yields (name, tensor) for each parameter. The name of an inner module comes first: "0.weight"."""
        return ((name, tensor) for name, tensor, kept in self._all_members(prefix) if kept is None and tensor._is_parameter)

    def parameters(self) -> list[Tensor]:
        """Returns all parameters, also frozen ones, each once."""
        return _each_once(self.named_parameters())

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yields (name, module) for the modules among the attributes."""
        return ((name, value) for name, value in self._members() if isinstance(value, Module))

    def children(self) -> Iterator["Module"]:
        """Yields the modules among the attributes."""
        return (module for _, module in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, "Module"]]:
        """Yields (name, module) for this module, whose name is the prefix, and all inner ones."""
        yield prefix, self
        for name, module in self.named_children():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator["Module"]:
        """Yields this module and all inner ones, each once."""
        return iter({id(module): module for _, module in self.named_modules()}.values())

    def apply(self, function: Callable[["Module"], Any]) -> Self:
        """Calls a function with each inner module and then with this one. Returns itself."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets `training`, which Dropout looks at, for this module and all inner ones. Returns itself."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """The same as train(False)."""
        return self.train(False)

    def requires_grad_(self, on: bool = True) -> Self:
        """Freezes all parameters, which stay in parameters() and state_dict(), or lets them be trained again."""
        for tensor in self.parameters():
            tensor.requires_grad_(on)
        return self

    def zero_grad(self) -> None:
        """Drops the gradients of all parameters."""
        for tensor in self.parameters():
            tensor.zero_grad()

    def to(self, device: Any) -> Self:
        """Moves the tensors to a device inside the same leaves, so that optimisers keep their handles. Returns itself.

        Raises ValueError for a dtype: layers have one from the start.
        """
        if not isinstance(device, Device) and _is_dtype(device):
            raise ValueError(f"[to] a module moves to devices, and '{device}' is a dtype: make the layers with "
                             f"dtype='{device}'")
        for _, tensor, _ in self._all_members():
            if tensor.is_leaf:
                tensor.move_to_(device)
        return self

    def _state(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor, kept in self._all_members()
                if (tensor._is_parameter if kept is None else kept)}

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the parameters and buffers by name, for save(): the same memory, outside the graph."""
        return {name: tensor.detach() for name, tensor in self._state().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Copies values into the parameters and buffers. Raises ValueError, and changes nothing, where names or shapes
        differ."""
        own = self._state()
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


def _is_dtype(given: Any) -> bool:
    try:
        DType(given)
    except (TypeError, ValueError):
        return False
    return True


def _each_once(named: Iterable[tuple[str, Tensor]]) -> list[Tensor]:
    return list({tensor._identity: tensor for _, tensor in named}.values())


def _flattened(name: str, value: Any) -> Iterator[tuple[str, "Tensor | Module"]]:
    """Yields the tensors and modules in an attribute, with their names."""
    if isinstance(value, (Module, Tensor)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            yield from _flattened(f"{name}.{i}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _flattened(f"{name}.{key}", each)


class _OfOne(Module):
    """A module that returns a tensor for a tensor, as the types of its calls say."""

    if TYPE_CHECKING:
        def __call__(self, x: Tensor) -> Tensor: ...


class Linear(_OfOne):
    """y = x W^T + b for x (.., in) -> (.., out); weight (out, in), bias (out). Both start uniform in +-1/sqrt(in).

    Raises ValueError for sizes below 1, and for an x whose last extent is not `in`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        self.weight, self.bias = _plugrad._linear(in_features, out_features, bias, dtype, device)

    def forward(self, x: Tensor) -> Tensor:
        product: Tensor = x @ self.weight.T
        return product if self.bias is None else product + self.bias

    def __repr__(self) -> str:
        out_features, in_features = self.weight.shape
        return f"Linear({in_features}, {out_features}{', bias=False' if self.bias is None else ''})"


class _Conv(_OfOne):
    """Convolution: x (n, in, ..) -> (n, out, ..); weight (out, in / groups, ..), bias (out). Both start uniform in
    +-1/sqrt(in / groups * the kernel's elements)."""

    _function: Callable[..., Tensor]
    _rank: int

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _Extents, stride: _Extents = 1,
                 padding: _Extents = 0, dilation: _Extents = 1, groups: int = 1, bias: bool = True, dtype: Any = None,
                 device: Any = None) -> None:
        kernel = (kernel_size,) * self._rank if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(kernel) != self._rank or min(kernel) < 1 or min(in_channels, out_channels, groups) < 1 or \
                in_channels % groups or out_channels % groups:
            raise ValueError(f"[{type(self).__name__}] {in_channels} and {out_channels} channels, groups {groups}, kernel "
                             f"{kernel}: expected positive numbers, groups that divide both, and {self._rank} extents")
        bound = (in_channels // groups * prod(kernel)) ** -0.5
        self.weight = _plugrad.rand((out_channels, in_channels // groups, *kernel), dtype, device, -bound, bound,
                                    requires_grad=True)
        self.bias = _plugrad.rand((out_channels,), dtype, device, -bound, bound, requires_grad=True) if bias else None
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def forward(self, x: Tensor) -> Tensor:
        return type(self)._function(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def __repr__(self) -> str:
        out, inner, *kernel = self.weight.shape
        return f"{type(self).__name__}({inner * self.groups}, {out}, kernel_size={tuple(kernel)})"


class Conv1d(_Conv):
    __doc__ = _Conv.__doc__
    _function, _rank = staticmethod(_plugrad.conv1d), 1


class Conv2d(_Conv):
    __doc__ = _Conv.__doc__
    _function, _rank = staticmethod(_plugrad.conv2d), 2


class Conv3d(_Conv):
    __doc__ = _Conv.__doc__
    _function, _rank = staticmethod(_plugrad.conv3d), 3


class Sequential(Module):
    """Calls modules or functions one after another. Parameters are named by position: "0.weight"."""

    def __init__(self, *modules: Callable[..., Any]) -> None:
        self._modules = list(modules)

    def _members(self) -> Iterator[tuple[str, Tensor | Module]]:
        for i, module in enumerate(self._modules):
            if isinstance(module, Module):
                yield str(i), module

    def forward(self, x: Any) -> Any:
        for module in self._modules:
            x = module(x)
        return x

    def __len__(self) -> int:
        return len(self._modules)

    def __getitem__(self, i: int | slice) -> Any:
        return Sequential(*self._modules[i]) if isinstance(i, slice) else self._modules[i]

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self._modules))})"


class Identity(_OfOne):
    """Returns x itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class ReLU(_OfOne):
    """x where it is above 0, else 0; gradient 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        return x.relu()


class Tanh(_OfOne):
    """Hyperbolic tangent."""

    def forward(self, x: Tensor) -> Tensor:
        return x.tanh()


class Sigmoid(_OfOne):
    """1 / (1 + e^-x)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()


class Softmax(_OfOne):
    """e^x over its sum along a dim: shares that add up to 1."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        return softmax(x, self.dim)


class Dropout(_OfOne):
    """While training, sets elements to 0 with probability p and divides the others by 1 - p; else it returns x."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return _plugrad.dropout(x, self.p, self.training)


class Flatten(_OfOne):
    """Reshapes (n, ..) to (n, product of the rest)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], -1)


def softmax(x: Tensor, dim: int = -1) -> Tensor:
    """e^x over its sum along a dim."""
    return _plugrad.softmax(x, dim)


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"[loss] reduction '{reduction}' is unknown: none, mean or sum expected")


def max_margin_loss(scores: Tensor, signs: Tensor, reduction: str = "mean") -> Tensor:
    """relu(1 - sign * score) for signs of -1 and 1. Raises ValueError where the shapes differ."""
    if scores.shape != signs.shape:
        raise ValueError(f"[max_margin_loss] shapes {scores.shape} and {signs.shape} differ")
    return _reduced((1 - signs * scores).relu(), reduction)


class _Loss(Module):
    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    if TYPE_CHECKING:
        def __call__(self, x: Tensor, target: Tensor) -> Tensor: ...


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
