"""Texts of the values that objects hold, for the keys of compiled calls."""

import enum
import numbers
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from . import _plugrad
from ._names_read import names_read

# Types with values as keys: exactly these types, because a subclass may hide its value behind a __repr__ of its own.
PLAIN = frozenset([bool, int, float, complex, str, bytes, type(None), type(...), slice, range, _plugrad.DType,
                   _plugrad.Device])
_DEPTH = 4       # of objects, lists and dicts in an attribute
_LONGEST = 1000  # a longer list counts by its identity and its length


class Attributes:
    """Texts of those attributes of objects that a function may read."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.clear()

    def clear(self) -> None:
        """Forgets what the function reads."""
        self._kinds: set[type] = set()   # of the function's arguments
        self._code: dict[int, Any] = {id(self._function): self._function}  # and functions among arguments and attributes
        self._read: frozenset[str] = frozenset()
        self._named: dict[type, tuple[tuple[str, ...], tuple[tuple[type, str], ...]]] = {}
        self._kept: dict[int, Any] = {}  # functions and classes, whose identities are in keys
        self._grew = False

    def add(self, argument: Any) -> None:
        """Notes an argument of the function: its code, if it is a function, and its class."""
        owner = argument.__self__ if isinstance(argument, MethodType) else argument
        self._note(argument.__func__ if isinstance(argument, MethodType) else argument, type(owner))

    def _note(self, value: Any, kind: type) -> None:
        is_new_code = isinstance(value, FunctionType) and id(value) not in self._code
        if is_new_code or kind not in self._kinds:
            self._kinds.add(kind)
            if is_new_code:
                self._code[id(value)] = value
            self._read, self._named, self._grew = names_read(self._code.values(), self._kinds), {}, True

    def __len__(self) -> int:
        """How many functions and classes are kept alive."""
        return len(self._kept)

    def grew(self) -> bool:
        """Whether functions came to light since the last question: then the texts may lack what these functions read."""
        grew, self._grew = self._grew, False
        return grew

    def text(self, value: Any, depth: int = 0) -> str:
        """The attributes of an object, as text."""
        slots, of_class = self._names_of(type(value))
        held = _held(value)
        names = sorted(self._read & held.keys()) if type(held) is dict else ()
        found = [f"{name}:{self._plain(held[name], depth)}" for name in names] if held else []
        found += [f"{name}:{self._plain(getattr(value, name, None), depth)}" for name in slots]
        found += [f"{name}:{self._plain(vars(kind).get(name), depth)}" for kind, name in of_class]
        return "{" + ",".join(found) + "}"

    def _names_of(self, kind: type) -> tuple[tuple[str, ...], tuple[tuple[type, str], ...]]:
        """The slots and the attributes of the class and its bases."""
        if kind not in self._named:
            bases = kind.__mro__[:-1]
            slots = (_mangled(base, name) for base in bases for name in _several(vars(base).get("__slots__", ())))
            of_class = ((base, name) for base in bases for name in sorted(self._read & vars(base).keys())
                        if not hasattr(vars(base)[name], "__get__"))
            self._named[kind] = tuple(name for name in slots if name in self._read), tuple(of_class)
        return self._named[kind]

    def _plain(self, value: Any, depth: int) -> str:
        """The text of a number, text, function or class, and of those in lists, dicts, sets and objects; empty for the rest,
        such as tensors."""
        kind = type(value)
        if kind is slice:
            return f"slice({','.join(self._plain(each, depth) for each in (value.start, value.stop, value.step))})"
        if kind in PLAIN or issubclass(kind, enum.Enum | numbers.Number):
            return f"{kind.__name__} {value!r}"
        if kind is MethodType:
            return f"{self._identity(value.__func__)} of {self._identity(value.__self__)}"
        if issubclass(kind, FunctionType | BuiltinFunctionType | type):
            return self._identity(value)
        if depth == _DEPTH or issubclass(kind, ModuleType):
            return ""
        if issubclass(kind, list | tuple | dict | set | frozenset):
            return self._several_plain(value, depth + 1)
        has_attributes = _held(value) is not None or self._names_of(kind)[0]
        return self.text(value, depth + 1) if has_attributes else ""

    def _several_plain(self, value: Any, depth: int) -> str:
        kind = type(value).__name__
        if len(value) > _LONGEST:
            return f"{kind} of {len(value)} at {id(value)}"
        if isinstance(value, dict):
            inner: Iterable[str] = (f"{self._plain(key, depth)}:{self._plain(each, depth)}" for key, each in value.items())
        else:
            inner = (self._plain(each, depth) for each in value)
        return f"{kind}({','.join(sorted(inner) if isinstance(value, set | frozenset) else inner)})"

    def _identity(self, value: Any) -> str:
        self._kept[id(value)] = value
        if isinstance(value, FunctionType):
            self._note(value, FunctionType)
        return f"at {id(value)}"


def _held(value: Any) -> Any:
    """The attributes of an object itself. An object that stands for another one, such as a proxy, is not asked."""
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # a property of that name may raise anything
        return None


def _several(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _mangled(kind: type, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name
