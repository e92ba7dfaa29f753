"""Modules: functions of tensors with parameters, and modules with inner modules."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .. import _plugrad
from .._modes import no_grad
from .._plugrad import Device, DType, Tensor
from ._hooks import HookHandle, Watch
from ._hypertext import tree

__all__ = ["LoadResult", "Module", "Parameter"]


if TYPE_CHECKING:
    class Parameter(Tensor):
        def __init__(self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = True) -> None: ...
else:
    class _AsksTheTensor(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, Tensor) and x._is_parameter

    class Parameter(metaclass=_AsksTheTensor):
        """A parameter of a module: a leaf tensor with a requested gradient.

        Parameter(data, dtype=None, device=None, requires_grad=True) returns a Tensor with a copy of the data. With
        requires_grad=False the tensor is frozen. Raises ValueError for integers.
        """

        def __new__(cls, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = True) -> Tensor:
            made = Tensor(data, dtype=dtype, device=device, requires_grad=True)
            return made if requires_grad else made.requires_grad_(False)


class LoadResult(NamedTuple):
    """The names that load_state_dict did not find in the state, and the unexpected names in the state."""

    missing_keys: list[str]
    unexpected_keys: list[str]


_FLOATING = "f64", "f32", "f16", "bf16"


def _no_forward(self: "Module", *arguments: Any) -> Any:
    raise NotImplementedError(f"[forward] {type(self).__name__} defines no forward")


class Module:
    """A function of tensors with parameters.

    Its parameters are the attributes that are tensors with a requested gradient: by nn.Parameter, requires_grad=True or
    requires_grad_(). A parameter remains a parameter when requires_grad_(False) freezes it later. `Tensor([1.0])` tracks a
    gradient by default, without a request, and so is not a parameter: training does not change a constant of a module by
    accident. Buffers are never parameters. Attributes may also be modules. As in PyTorch, tensors and modules in plain
    lists, tuples and dicts do not belong to the module: use ModuleList, ModuleDict, ParameterList and ParameterDict.
    """

    forward: Callable[..., Any] = _no_forward
    training: bool = True
    _keeps_dtype: tuple[str, ...] = ()  # the attributes with tensors that to() does not convert

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if "_forward_hooks" in self.__dict__:
            return self._call_with_hooks(arguments, named)
        return self.forward(*arguments, **named)

    def _call_with_hooks(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        before, after = self._hooks()
        backward = vars(self).get("_backward_hooks")
        watch = Watch(self, list(backward.values())) if backward else None
        for hook in list(before.values()):
            replaced = hook(self, arguments)
            if replaced is not None:
                arguments = replaced if isinstance(replaced, tuple) else (replaced,)
        if watch:
            arguments = watch.before(arguments)
        out = self.forward(*arguments, **named)
        for hook in list(after.values()):
            replaced = hook(self, arguments, out)
            out = out if replaced is None else replaced
        return watch.after(out) if watch else out

    def _hooks(self) -> tuple[dict[int, Any], dict[int, Any]]:
        found: tuple[dict[int, Any], dict[int, Any]] = vars(self).setdefault("_forward_hooks", ({}, {}))
        return found

    def register_forward_pre_hook(self, hook: Callable[["Module", tuple[Any, ...]], Any]) -> HookHandle:
        """Makes calls of this module call hook(module, arguments) first. A result other than None, which is a tuple or a
        single argument, replaces the arguments."""
        return HookHandle(self._hooks()[0], hook)

    def register_forward_hook(self, hook: Callable[["Module", tuple[Any, ...], Any], Any]) -> HookHandle:
        """Makes calls of this module call hook(module, arguments, result) last. A result other than None
        replaces the module's result."""
        return HookHandle(self._hooks()[1], hook)

    def register_full_backward_hook(self, hook: Callable[["Module", tuple[Any, ...], tuple[Any, ...]], Any]) -> HookHandle:
        """Makes backward() call hook(module, gradients of the arguments, gradients of the results) for later calls of this
        module. A gradient is None if its argument or result is not a tensor or needs no gradient. A result of the hook
        other than None is a tuple, and replaces the gradients of the arguments."""
        self._hooks()
        return HookHandle(vars(self).setdefault("_backward_hooks", {}), hook)

    def _members(self) -> Iterator[tuple[str, "Tensor | Module"]]:
        return ((name, value) for name, value in vars(self).items() if isinstance(value, (Module, Tensor)))

    def _all_members(self, prefix: str = "") -> Iterator[tuple[str, Tensor, bool | None]]:
        """Yields (name, tensor, kept) for each tensor. kept: for a buffer, whether state_dict has it; None for other
        tensors."""
        buffers = vars(self).get("_buffer_names", {})
        for name, value in self._members():
            if isinstance(value, Module):
                yield from value._all_members(f"{prefix}{name}.")
            else:
                yield prefix + name, value, buffers.get(name)

    def register_buffer(self, name: str, data: Any, persistent: bool = True) -> None:
        """Sets an attribute to a tensor that is not a parameter, but moves with the module and is in its state_dict.

        data: as for plugrad.tensor; a tensor is shared, outside the graph. persistent=False: state_dict does not have the
        buffer. Raises ValueError for a name already in use by the module.
        """
        buffers = vars(self).setdefault("_buffer_names", {})
        if name in vars(self) and name not in buffers:
            raise ValueError(f"[register_buffer] the module has an attribute '{name}' already: choose another name")
        buffers[name] = persistent
        setattr(self, name, data.detach() if isinstance(data, Tensor) else Tensor(data, requires_grad=False))

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yields (name, tensor) for each buffer, including the buffers of inner modules."""
        return _once((name, tensor) for name, tensor, kept in self._all_members() if kept is not None)

    def buffers(self) -> "Tensors":
        """Returns all buffers, each once."""
        return Tensors(tensor for _, tensor in self.named_buffers())

    def named_parameters(self, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yields (name, tensor) for each parameter. Names begin with the name of the inner module: "0.weight". Yields a
        parameter that several modules share once, under its first name; without remove_duplicate, under each of its
        names."""
        prefix = f"{prefix}." if prefix and not prefix.endswith(".") else prefix
        named = ((name, tensor) for name, tensor, kept in self._all_members(prefix)
                 if kept is None and tensor._is_parameter)
        return _once(named) if remove_duplicate else named

    def parameters(self) -> "Tensors":
        """Returns all parameters, including frozen parameters, each once."""
        return Tensors(tensor for _, tensor in self.named_parameters())

    def named_children(self) -> Iterator[tuple[str, "Module"]]:
        """Yields (name, module) for the modules among the attributes."""
        return ((name, value) for name, value in self._members() if isinstance(value, Module))

    def children(self) -> Iterator["Module"]:
        """Yields the modules among the attributes."""
        return (module for _, module in self.named_children())

    def named_modules(self, memo: "set[Module] | None" = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, "Module"]]:
        """Yields (name, module) for this module, whose name is the prefix, and for all inner modules: each once, under its
        first name, or, without remove_duplicate, under each of its names. memo: modules to skip."""
        memo = set() if memo is None else memo
        if remove_duplicate and self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self.named_children():
            yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator["Module"]:
        """Yields this module and all inner modules, each once."""
        return (module for _, module in self.named_modules())

    def register_parameter(self, name: str, param: Tensor | None) -> None:
        """The same as setting the attribute."""
        setattr(self, name, param)

    def add_module(self, name: str, module: "Module | None") -> None:
        """The same as setting the attribute."""
        setattr(self, name, module)

    register_module = add_module

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute. Raises TypeError if the attribute is a parameter and the new value is a tensor but not a
        parameter."""
        if isinstance(value, Tensor) and not value._is_parameter:
            before = vars(self).get(name)
            if isinstance(before, Tensor) and before._is_parameter:
                raise TypeError(f"[module] '{name}' is a parameter, and the new tensor is none: wrap it in nn.Parameter, "
                                "write into the parameter with copy_ under no_grad, or choose another name")
        super().__setattr__(name, value)

    def apply(self, function: Callable[["Module"], Any]) -> Self:
        """Calls a function with each inner module and then with this module. Returns itself."""
        for module in self.children():
            module.apply(function)
        function(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Sets `training`, which Dropout and others read, for this module and all inner modules. Returns itself."""
        for module in self.modules():
            if module.training != mode:
                _plugrad._note_training(id(module))
            module.training = mode
        return self

    def eval(self) -> Self:
        """The same as train(False)."""
        return self.train(False)

    def requires_grad_(self, on: bool = True) -> Self:
        """Unfreezes all parameters, or freezes them if `on` is False; they stay in parameters() and state_dict()."""
        for tensor in self.parameters():
            tensor.requires_grad_(on)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters; without set_to_none, sets them to zeros."""
        for tensor in self.parameters():
            if set_to_none:
                tensor.zero_grad()
            elif tensor.grad is not None:
                tensor.grad = _plugrad.zeros_like(tensor.grad)

    def to(self, *where: Any) -> Self:
        """Moves the tensors to a device, or converts the floating tensors to a dtype, or both. The tensors remain the same
        objects, so optimisers need no change. Scales of quantised weights keep their dtype. Returns itself. Raises
        ValueError for a dtype that is not floating."""
        for given in where:
            if isinstance(given, Device) or not _is_dtype(given):
                self._each_leaf(lambda tensor: tensor.move_to_(given))
            elif str(DType(given)) not in _FLOATING:
                raise ValueError(f"[to] a module cannot be {given}: give a floating dtype")
            else:
                kept = {id(getattr(module, name)) for module in self.modules() for name in module._keeps_dtype}
                for module in self.modules():
                    module._convert(given)
                self._each_leaf(lambda tensor: tensor.convert_(given)
                                if str(tensor.dtype) in _FLOATING and id(tensor) not in kept else None)
        return self

    def _convert(self, dtype: Any) -> None:
        """Called by to() with a floating dtype, beside the conversion of tensors."""

    def _each_leaf(self, function: Callable[[Tensor], Any]) -> None:
        for _, tensor in _once((name, tensor) for name, tensor, _ in self._all_members()):
            if tensor.is_leaf:
                function(tensor)

    def float(self) -> Self:
        """The same as to("f32")."""
        return self.to(DType("f32"))

    def double(self) -> Self:
        """The same as to("f64")."""
        return self.to(DType("f64"))

    def half(self) -> Self:
        """The same as to("f16")."""
        return self.to(DType("f16"))

    def bfloat16(self) -> Self:
        """The same as to("bf16")."""
        return self.to(DType("bf16"))

    def _state(self) -> dict[str, Tensor]:
        return {name: tensor for name, tensor, kept in self._all_members()
                if (tensor._is_parameter if kept is None else kept)}

    def state_dict(self) -> dict[str, Tensor]:
        """Returns the parameters and buffers by name, for save(): the same memory, outside the graph."""
        return {name: tensor.detach() for name, tensor in self._state().items()}

    def load_state_dict(self, state: Mapping[str, Tensor], strict: bool = True) -> LoadResult:
        """Copies values into the parameters and buffers of the same names; dtypes and devices may differ.

        Raises ValueError, and changes nothing, for different shapes, and, if strict, for missing or unexpected names.
        """
        for name, module in list(self.named_modules(remove_duplicate=False)):
            module._before_load(state, f"{name}." if name else "")
        own = self._state()
        result = LoadResult(sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys()))
        if strict and (result.missing_keys or result.unexpected_keys):
            raise ValueError(f"[load_state_dict] missing: {result.missing_keys}, unexpected: {result.unexpected_keys}")
        shared = [name for name in own if name in state]
        for name in shared:
            if own[name].shape != state[name].shape:
                raise ValueError(f"[load_state_dict] {name} has shape {own[name].shape}, but the new value "
                                 f"{state[name].shape}")
        with no_grad():
            for name in shared:
                own[name].copy_(state[name])
        return result

    def _before_load(self, state: Mapping[str, Tensor], prefix: str) -> None:
        """Called before load_state_dict, with the prefix of this module's names in the state."""

    def get_parameter(self, name: str) -> Tensor:
        """Returns the parameter with this name in named_parameters. Raises KeyError for an unknown name."""
        return dict(self.named_parameters(remove_duplicate=False))[name]

    def get_submodule(self, name: str) -> "Module":
        """Returns the module with this name in named_modules. Raises KeyError for an unknown name."""
        return dict(self.named_modules(remove_duplicate=False))[name]

    def extra_repr(self) -> str:
        """Returns the part of repr() before the inner modules."""
        return ""

    def _lines(self) -> Iterator[str]:
        """Yields the part of repr() for each inner module."""
        for name, value in self._members():
            if isinstance(value, Module):
                yield f"({name}): {value!r}"

    def __repr__(self) -> str:
        extra, inner = self.extra_repr(), [line.replace("\n", "\n  ") for line in self._lines()]
        if not inner and "\n" not in extra:
            return f"{type(self).__name__}({extra})"
        return "\n  ".join([f"{type(self).__name__}(", *extra.splitlines(), *inner]) + "\n)"

    def _repr_html_(self) -> str:
        return tree(self)


def _is_dtype(given: Any) -> bool:
    try:
        DType(given)
    except (TypeError, ValueError):
        return False
    return True


class Tensors(list[Tensor]):
    """A list of tensors that is also an iterator: next(model.parameters()) returns the first tensor."""

    def __next__(self) -> Tensor:
        if not hasattr(self, "_rest"):
            self._rest = iter(self)
        return next(self._rest)


def _once(named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    seen = set()
    for name, tensor in named:
        if tensor._identity not in seen:
            seen.add(tensor._identity)
            yield name, tensor


class OfOne(Module):
    """A module whose calls take a tensor and return a tensor, for type checkers."""

    if TYPE_CHECKING:
        def __call__(self, x: Tensor) -> Tensor: ...
