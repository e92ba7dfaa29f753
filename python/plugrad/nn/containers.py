"""Modules that hold inner modules or parameters, by position or by name."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from .._plugrad import Tensor
from .module import Module, Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class _Numbered(Module):
    """Modules by position. Parameters have names such as "0.weight"."""

    _modules: list[Any]

    def _members(self) -> Iterator[tuple[str, Tensor | Module]]:
        for i, module in enumerate(self._modules):
            if isinstance(module, Module):
                yield self._name(i), module

    def _name(self, i: int) -> str:
        return str(i)

    def _place(self, name: str) -> int | None:
        """Returns the position of the module of this name, or None."""
        modules = vars(self).get("_modules", ())
        return next((i for i in range(len(modules)) if self._name(i) == name), None)

    def __setattr__(self, name: str, value: Any) -> None:
        """Replaces the module of this name, or sets an attribute. Programs replace layers by setattr(model, "0", layer)."""
        place = self._place(name) if name.isdigit() or isinstance(value, Module) else None
        if place is None:
            super().__setattr__(name, value)
        else:
            self._modules[place] = value

    def __getattr__(self, name: str) -> Any:
        place = self._place(name)
        if place is None:
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        return self._modules[place]

    def append(self, module: Callable[..., Any]) -> Self:
        """Adds a module at the end. Returns itself."""
        self._modules.append(module)
        return self

    def extend(self, modules: Iterable[Callable[..., Any]]) -> Self:
        """Adds modules at the end. Returns itself."""
        self._modules.extend(modules)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules)

    def __setitem__(self, i: int, module: Callable[..., Any]) -> None:
        self._modules[i] = module

    def _lines(self) -> Iterator[str]:
        """Yields repr()'s lines. Equal neighbours share a line: "(0-2): 3 x Linear(..)"."""
        at = 0
        for shown, alike in itertools.groupby(map(repr, self._modules)):
            count = len(list(alike))
            yield f"({at}): {shown}" if count == 1 else f"({at}-{at + count - 1}): {count} x {shown}"
            at += count


class ModuleList(_Numbered):
    """A list of modules. A module of your own calls them."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules = list(modules)

    def __getitem__(self, i: int | slice) -> Any:
        return ModuleList(self._modules[i]) if isinstance(i, slice) else self._modules[i]


class Sequential(_Numbered):
    """Calls modules or functions in turn. Parameters have names by position, such as "0.weight". A dict of modules, and
    add_module, set names in place of positions."""

    def __init__(self, *modules: Callable[..., Any] | Mapping[str, Callable[..., Any]]) -> None:
        self._modules: list[Any] = []
        self._names: dict[int, str] = {}
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            self._modules.extend(modules)

    def add_module(self, name: str, module: Any) -> None:
        """Adds a module at the end, under this name."""
        if name != str(len(self._modules)):
            self._names[len(self._modules)] = name
        self._modules.append(module)

    def _name(self, i: int) -> str:
        names: dict[int, str] = vars(self).get("_names", {})
        return names.get(i, str(i))

    def _lines(self) -> Iterator[str]:
        return (f"({self._name(i)}): {module!r}" for i, module in enumerate(self._modules))

    def forward(self, x: Any) -> Any:
        for module in self._modules:
            x = module(x)
        return x

    def __getitem__(self, i: int | slice) -> Any:
        return Sequential(*self._modules[i]) if isinstance(i, slice) else self._modules[i]


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        self._modules = dict(modules or {})

    def _members(self) -> Iterator[tuple[str, Tensor | Module]]:
        yield from self._modules.items()

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self._modules[name] = module

    def __getattr__(self, name: str) -> Module:
        found: dict[str, Module] = vars(self).get("_modules", {})
        if name not in found:
            raise AttributeError(f"ModuleDict has no module '{name}'")
        return found[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_modules", {}):
            self._modules[name] = value
        else:
            super().__setattr__(name, value)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds modules, or replaces modules of the same names."""
        self._modules.update(modules)

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names and modules."""
        return self._modules.items()


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _shown(value: Any) -> str:
    if not isinstance(value, Tensor):
        return repr(value)
    return f"Parameter containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(Module):
    """A list of parameters for a module of your own. Tensors become parameters."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._values = [_as_parameter(value) for value in values]

    def _members(self) -> Iterator[tuple[str, Tensor | Module]]:
        return ((str(i), value) for i, value in enumerate(self._values) if isinstance(value, (Module, Tensor)))

    def append(self, value: Any) -> Self:
        """Adds a parameter at the end. Returns itself."""
        return self.extend([value])

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def register_parameter(self, name: str, param: Any) -> None:
        """Sets the parameter at a position, or adds a parameter at the end. name: the position as a text. Raises ValueError
        for other names."""
        if not name.isdigit() or int(name) > len(self._values):
            raise ValueError(f"[ParameterList] '{name}' is not one of the positions 0 to {len(self._values)}: use append")
        self._values[int(name):int(name) + 1] = [_as_parameter(param)]

    def extend(self, values: Iterable[Any]) -> Self:
        """Adds parameters at the end. Returns itself."""
        self._values.extend(_as_parameter(value) for value in values)
        return self

    def __getitem__(self, i: int | slice) -> Any:
        return ParameterList(self._values[i]) if isinstance(i, slice) else self._values[i]

    def __setitem__(self, i: int, value: Any) -> None:
        self._values[i] = _as_parameter(value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def _lines(self) -> Iterator[str]:
        return (f"({i}): {_shown(value)}" for i, value in enumerate(self._values))


class ParameterDict(Module):
    """Parameters by name. Tensors become parameters."""

    _values: dict[str, Any]

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> None:
        super().__setattr__("_values", {})
        self.update(parameters)

    def _members(self) -> Iterator[tuple[str, Tensor | Module]]:
        return ((name, value) for name, value in self._values.items() if isinstance(value, (Module, Tensor)))

    def update(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Adds parameters, or replaces parameters of the same names. Raises TypeError for a name that is not a text."""
        for name, value in dict(parameters).items():
            self[name] = value

    def register_parameter(self, name: str, param: Any) -> None:
        """The same as setting the item."""
        self[name] = param

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the parameter of this name, or the default."""
        return self._values.get(name, default)

    def pop(self, name: str) -> Any:
        """Removes the parameter of this name and returns it. Raises KeyError for an unknown name."""
        return self._values.pop(name)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._values.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return self._values.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and parameters."""
        return self._values.items()

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"[ParameterDict] {name!r} is not a name: names are texts")
        self._values[name] = _as_parameter(value)

    def __getattr__(self, name: str) -> Any:
        found: dict[str, Any] = vars(self).get("_values", {})
        if name not in found:
            raise AttributeError(f"ParameterDict has no parameter '{name}'")
        return found[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in vars(self).get("_values", {}):
            self[name] = value
        else:
            super().__setattr__(name, value)

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def _lines(self) -> Iterator[str]:
        return (f"({name}): {_shown(value)}" for name, value in self._values.items())
