"""Classes that programs derive from Tensor, with PyTorch's protocol: a function, method or operator whose argument has such
a class returns tensors of that class, and a class may define `__torch_function__` to take part in every call."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._plugrad import Tensor, _dispatch_by, _is_ready, _undispatched

_BINARY = ("add", "sub", "mul", "truediv", "matmul", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift",
           "divmod")
_FURTHER = ("neg", "pos", "abs", "invert", "getitem", "lt", "le", "gt", "ge", "eq", "ne")
_OPERATORS = [name for name in (*(f"__{side}{each}__" for side in ("", "r", "i") for each in _BINARY),
                                *(f"__{each}__" for each in _FURTHER)) if hasattr(Tensor, name)]
_PROPERTIES = ["T", "mT", "H", "mH", "data"]


def _converted(result: Any, kind: type[Tensor]) -> Any:
    """The result with `kind` in place of Tensor, also inside tuples and lists."""
    if type(result) is Tensor:
        return result.as_subclass(kind)
    if isinstance(result, (tuple, list)):
        items = [_converted(each, kind) for each in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    return result


def _torch_function(cls: Any, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...] = (),
                    kwargs: dict[str, Any] | None = None) -> Any:
    """Calls func and returns its tensors as tensors of this class. A derived class that overrides this method takes part in
    every call that has one of its tensors as an argument, or inside a list of tensors. func: the function, method or
    operator. types: the derived classes of the arguments. Return NotImplemented to leave the call to the other classes."""
    return _converted(_undispatched(func, args, kwargs or {}), cls)


def _classes(arguments: Iterable[Any]) -> list[type[Tensor]]:
    """The derived classes among the arguments and inside lists of them, a class before its bases."""
    found: list[type[Tensor]] = []
    for each in arguments:
        for kind in _classes(each) if isinstance(each, (list, tuple)) else [type(each)]:
            if kind is not Tensor and issubclass(kind, Tensor) and kind not in found:
                found.insert(next((i for i, known in enumerate(found) if issubclass(kind, known)), len(found)), kind)
    return found


def _dispatch(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    kinds = _classes([*args, *kwargs.values()])
    for kind in kinds:
        result = kind.__torch_function__(func, tuple(kinds), args, kwargs)
        if result is not NotImplemented:
            return result
    if func in _OWN_OPERATORS:  # Python then asks the other operand
        return NotImplemented
    names = ", ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"[{func.__name__}] __torch_function__ returned NotImplemented for each of these classes: {names}")


_OWN_OPERATORS = {getattr(Tensor, name) for name in _OPERATORS}


def _operator(name: str) -> Callable[..., Any]:
    own = getattr(Tensor, name)

    def call(self: Tensor, *others: Any) -> Any:
        return _dispatch(own, (self, *others), {})
    call.__name__ = name
    return call


def _property(name: str) -> property:
    own = getattr(Tensor, name)
    return property(lambda self: _converted(own.fget(self), type(self)), own.fset, doc=own.__doc__)


def _rows(self: Tensor) -> Iterator[Any]:
    return (_converted(row, type(self)) for row in Tensor.__iter__(self))


def _shown(self: Tensor) -> str:
    return type(self).__name__ + Tensor.__repr__(self).removeprefix("Tensor")


def _made(kind: type[Tensor], plain: Tensor, state: dict[str, Any]) -> Any:
    made: Any = plain.as_subclass(kind)
    if state:
        made.__dict__.update(state)
    return made


def _reduced(self: Any) -> tuple[Any, ...]:
    return _made, (type(self), self.as_subclass(Tensor), getattr(self, "__dict__", {}))


def _copied(self: Any, memo: dict[Any, Any]) -> Any:
    from copy import deepcopy
    plain: Any = Tensor.__deepcopy__(self, memo)
    made = _made(type(self), plain, {})
    memo[id(self)] = made
    if state := getattr(self, "__dict__", {}):
        made.__dict__.update(deepcopy(state, memo))
    return made


def _initialise(self: Tensor, *args: Any, **kwargs: Any) -> None:
    """The constructor's part where a class defines `__new__` alone, which may have made the whole tensor."""
    if not _is_ready(self):
        Tensor.__init__(self, *args, **kwargs)


_MEMBERS: dict[str, Any] = {"__iter__": _rows, "__repr__": _shown, "__reduce__": _reduced, "__deepcopy__": _copied}
_MEMBERS |= {name: _operator(name) for name in _OPERATORS} | {name: _property(name) for name in _PROPERTIES}


def _init_subclass(cls: Any, /, **kwargs: Any) -> None:
    """Gives a class derived from Tensor itself the operators that dispatch. Other calls dispatch from now on."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    own = vars(cls)
    if Tensor in cls.__bases__:
        for name, member in _MEMBERS.items():
            if name not in own:
                setattr(cls, name, member)
    if "__new__" in own and "__init__" not in own:
        cls.__init__ = _initialise
    _dispatch_by(_dispatch)


def serve() -> None:
    """Lets programs derive classes from Tensor."""
    own: Any = Tensor
    own.__torch_function__ = classmethod(_torch_function)
    own.__init_subclass__ = classmethod(_init_subclass)
