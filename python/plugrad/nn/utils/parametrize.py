"""Parameters that are functions of other parameters, with PyTorch's names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..._modes import no_grad
from ..._plugrad import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations"]

_cache: dict[tuple[int, str], Any] | None = None  # while cached() is on: a value for each module and name


class ParametrizationList(ModuleList):
    """The functions of a parameter, in turn, and its originals: original, or original0, original1 .. if the first function
    takes several tensors."""

    def __init__(self, modules: list[Module], original: Any) -> None:
        super().__init__(modules)
        self._count = len(original) if isinstance(original, tuple | list) else 0
        for name, each in zip(self._names(), original if self._count else [original], strict=True):
            setattr(self, name, each)

    def _names(self) -> list[str]:
        return [f"original{i}" for i in range(self._count)] if self._count else ["original"]

    def _members(self) -> Iterator[tuple[str, Any]]:
        yield from ((name, vars(self)[name]) for name in self._names())
        yield from super()._members()

    def forward(self) -> Any:
        first, *rest = self
        x = first(*(getattr(self, name) for name in self._names()))
        for each in rest:
            x = each(x)
        return x

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the parameter becomes value. The modules need a method right_inverse."""
        made = _inverse(list(self), value)
        for name, each in zip(self._names(), made if self._count else [made], strict=True):
            getattr(self, name).copy_(each)


def _inverse(modules: list[Module], value: Any) -> Any:
    for each in reversed(modules):
        inverse = getattr(each, "right_inverse", None)
        if inverse is None:
            raise RuntimeError(f"[parametrize] {type(each).__name__} has no method right_inverse, so the parameter cannot "
                               "be assigned")
        value = inverse(value)
    return value


def _computed(name: str) -> property:
    def read(module: Any) -> Any:
        key = id(module), name
        if _cache is None:
            return module.parametrizations[name]()
        if key not in _cache:
            _cache[key] = module.parametrizations[name]()
        return _cache[key]

    def write(module: Any, value: Tensor) -> None:
        module.parametrizations[name].right_inverse(value)
    return property(read, write)


def _reclass(module: Any, plain: Any, names: list[str]) -> None:
    """Gives the module a class of its own, in which these names are computed."""
    members = {"_plain_class": plain, "__module__": plain.__module__, "__reduce_ex__": _reduced}
    module.__class__ = type(f"Parametrized{plain.__name__}", (plain,), members | {name: _computed(name) for name in names})


def _reduced(module: Any, protocol: int) -> Any:
    return _restored, (module._plain_class, list(module.parametrizations)), vars(module)


def _restored(plain: Any, names: list[str]) -> Any:
    made = plain.__new__(plain)
    _reclass(made, plain, names)
    return made


def _as_parameter(value: Tensor, like: Tensor) -> Tensor:
    made = value.detach().clone()
    made.requires_grad_(True)
    return made if like.requires_grad else made.requires_grad_(False)


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Makes a parameter of the module the result of parametrization(original), computed at each access. The original is
    the parameter parametrizations.NAME.original: parametrization.right_inverse of the value, if it has this method, or else
    the value. Several parametrizations of a parameter are called in turn. Returns the module, whose class is then one
    derived from its class. Raises ValueError for a name that is not a parameter, and, unless unsafe, if the result has
    another shape or dtype."""
    if is_parametrized(module, tensor_name):
        return _add(module, tensor_name, parametrization, unsafe)
    value = vars(module).get(tensor_name)
    if not isinstance(value, Tensor) or not value._is_parameter:
        raise ValueError(f"[parametrize] {type(module).__name__} has no parameter '{tensor_name}'")
    original: Any = value  # the same leaf, which an optimiser may have already
    if inverse := getattr(parametrization, "right_inverse", None):
        with no_grad():
            made = inverse(value.detach())
        several = isinstance(made, tuple | list)
        original = tuple(_as_parameter(each, value) for each in made) if several else _as_parameter(made, value)
    functions = ParametrizationList([parametrization], original)
    _check(functions, value, unsafe)
    delattr(module, tensor_name)
    kept = vars(module).setdefault("parametrizations", ModuleDict())
    kept[tensor_name] = functions
    _reclass(module, getattr(type(module), "_plain_class", type(module)), list(kept))
    return module


def _add(module: Any, name: str, parametrization: Module, unsafe: bool) -> Module:
    """Adds a function behind the functions of a parameter, which keeps its value if the function has a right_inverse."""
    functions, value = module.parametrizations[name], getattr(module, name)
    _check(parametrization, value, unsafe)
    if inverse := getattr(parametrization, "right_inverse", None):
        with no_grad():
            functions.right_inverse(inverse(value))
    functions.append(parametrization)
    made: Module = module
    return made


def _check(parametrization: Module, value: Tensor, unsafe: bool) -> None:
    if unsafe:
        return
    with no_grad():
        made = parametrization() if isinstance(parametrization, ParametrizationList) else parametrization(value.detach())
    if made.shape != value.shape or made.dtype != value.dtype:
        raise ValueError(f"[parametrize] the parametrization gives {made.dtype} {made.shape}, the parameter is "
                         f"{value.dtype} {value.shape}: pass unsafe=True to permit this")


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether the module, or its parameter of this name, has parametrizations."""
    kept = vars(module).get("parametrizations")
    return kept is not None and (tensor_name is None and len(kept) > 0 or tensor_name in kept)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes the parameter a plain one again: with its current value, or, without leave_parametrized, with its original.
    Returns the module. Raises ValueError without parametrizations, and for several originals without
    leave_parametrized."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"[parametrize] {type(module).__name__} has no parametrization of '{tensor_name}'")
    kept = module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if not leave_parametrized and kept._count:
        raise ValueError("[parametrize] the parameter has several originals: only leave_parametrized=True can remove them")
    like = getattr(kept, kept._names()[0])
    value = _as_parameter(getattr(module, tensor_name), like) if leave_parametrized else like
    plain: Any = type(module)._plain_class  # type: ignore[attr-defined]
    del module.parametrizations[tensor_name]  # type: ignore[attr-defined]
    if left := list(module.parametrizations):  # type: ignore[attr-defined]
        _reclass(module, plain, left)
    else:
        del vars(module)["parametrizations"]
        module.__class__ = plain
    setattr(module, tensor_name, value)
    return module


@contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized parameter once, for all accesses in the block."""
    global _cache
    before, _cache = _cache, {} if _cache is None else _cache
    try:
        yield
    finally:
        _cache = before

