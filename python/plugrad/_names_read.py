"""The names of attributes that may be read by a function, by the functions it refers to, and by the methods of its
arguments."""

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

# Methods found by operators, calls and loops, without a name in the code, are followed, unless they make or show objects.
_NOT_FOLLOWED = frozenset(["__init__", "__new__", "__init_subclass__", "__repr__", "__str__", "__del__", "__setattr__",
                           "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"])


def names_read(function: Callable[..., Any], kind: type) -> frozenset[str]:
    """Returns the names in the code of function, in functions of Python that it refers to, and in kind's methods with such
    names. Names made at run time, as for getattr, are missing."""
    names: set[str] = set()
    seen: set[Any] = set()
    pending: list[Any] = [function, *_operators(kind)]
    while pending:
        one = _unwrapped(pending.pop())
        if not isinstance(one, FunctionType) or one in seen:
            continue
        seen.add(one)
        found = {name for code in _codes(one.__code__) for name in code.co_names}
        pending.extend(one.__globals__[name] for name in found if name in one.__globals__)
        pending.extend(cell.cell_contents for cell in one.__closure__ or () if _is_filled(cell))
        pending.extend(method for name in found for method in _methods(kind, name))
        names |= found
    return frozenset(names)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, MethodType):
        return value.__func__
    if isinstance(value, property):
        return value.fget
    return getattr(value, "__wrapped__", value) if not isinstance(value, type) else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yields the code, and the code of functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _methods(kind: type, name: str) -> Iterator[Any]:
    return (vars(each)[name] for each in kind.__mro__ if name in vars(each))


def _operators(kind: type) -> Iterator[Any]:
    for each in kind.__mro__[:-1]:
        yield from (value for name, value in vars(each).items()
                    if name[:2] == name[-2:] == "__" and name not in _NOT_FOLLOWED)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
