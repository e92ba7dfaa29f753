"""Modules that contain others: by position, and by name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from .._plugrad import Tensor
from .module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """Modules by position: parameters are named "0.weight"."""

    _modules: list[Any]

    def _members(self) -> Iterator[tuple[str, Tensor | Module]]:
        for i, module in enumerate(self._modules):
            if isinstance(module, Module):
                yield str(i), module

    def append(self, module: Callable[..., Any]) -> Self:
        """Adds a module behind the others. Returns itself."""
        self._modules.append(module)
        return self

    def extend(self, modules: Iterable[Callable[..., Any]]) -> Self:
        """Adds modules behind the others. Returns itself."""
        self._modules.extend(modules)
        return self

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules)

    def __setitem__(self, i: int, module: Callable[..., Any]) -> None:
        self._modules[i] = module

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._modules))})"


class ModuleList(_Numbered):
    """A list of modules, which a module of your own calls as it likes."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self._modules = list(modules)

    def __getitem__(self, i: int | slice) -> Any:
        return ModuleList(self._modules[i]) if isinstance(i, slice) else self._modules[i]


class Sequential(_Numbered):
    """Calls modules or functions one after another. Parameters are named by position: "0.weight"."""

    def __init__(self, *modules: Callable[..., Any]) -> None:
        self._modules = list(modules)

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
        """Adds modules, or replaces those of the same names."""
        self._modules.update(modules)

    def items(self) -> Iterable[tuple[str, Module]]:
        """The names and modules."""
        return self._modules.items()
