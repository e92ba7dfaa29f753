"""Walks from value to value: writes what a function depends on as text, and makes guards for it."""

import enum
import io
import numbers
import random
import threading
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

from . import _plugrad
from ._names_read import CALLED, Read, is_known

# Types with values as keys: exactly these types, because a subclass may hide its value behind a __repr__ of its own.
PLAIN = frozenset([bool, int, float, complex, str, bytes, type(None), type(...), slice, range, _plugrad.DType,
                   _plugrad.Device])
_MOST = 100_000         # values that a function depends on
DEEP = "it depends on objects that are nested too deeply"
_MOST_BYTES = 64 << 10  # of an array that it refers to
MOST_KEPT = 1000       # objects that allow no weak references
_ITEMS, _OWN_ITEMS, _ATTRIBUTES, _LIST, _DICT, _ASKED, _FUNCTION, _CELL = range(8)  # kinds of guards, as in guards.cpp
_OF_FUNCTION = "__code__", "__defaults__", "__kwdefaults__"
_ABSENT, _ANY = _plugrad._ABSENT, _plugrad._ANY


class Weak(weakref.ref[Any]):
    """A value that a guard expects, without keeping it alive."""

    __slots__ = ()


_plugrad._set_weak_type(Weak)


class Serials:
    """Numbers of objects: no object gets the number of another one, even at the same address."""

    def __init__(self) -> None:
        self._weak: dict[int, tuple[Any, int]] = {}
        self._kept: dict[int, list[Any]] = {}  # objects that allow no weak references, numbers, and walks that met them
        self._count = self._walk = 0

    def begin(self) -> None:
        """Begins a walk. Forgets kept objects that the last walk did not meet, if there are many."""
        if len(self._kept) > MOST_KEPT:
            self._kept = {key: each for key, each in self._kept.items() if each[2] == self._walk}
        self._walk += 1

    def of(self, value: Any) -> int:
        key = id(value)
        if key in self._weak:
            return self._weak[key][1]
        if key in self._kept:
            self._kept[key][2] = self._walk
            return int(self._kept[key][1])
        self._count += 1
        known = self._weak
        try:
            known[key] = weakref.ref(value, lambda _: known.pop(key, None)), self._count
        except TypeError:
            self._kept[key] = [value, self._count, self._walk]
        return self._count


class Walk:
    """One walk from value to value."""

    def __init__(self, owner: Any, read: Read, serials: Serials) -> None:
        self._owner, self._read, self._serials = owner, read, serials
        self._seen: dict[int, tuple[Any, str]] = {}  # values, kept alive during the walk, and their first names
        self._classes: set[type] = set()
        self._unguarded = False
        self.found: dict[str, str] = {}
        self.guards: list[tuple[Any, ...]] = []
        self.flaw = ""

    # --- Places.

    def places(self) -> None:
        """Walks what the code refers to: globals, closures and defaults."""
        self._value(self._owner.function, _name_of(self._owner.function))
        for module in self._read.modules:
            self._value(module, module.__name__)
        for function in self._read.functions:
            self._attributes(function, _OF_FUNCTION, f"{function.__name__}.", _FUNCTION)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                self._cell(cell, name)
        for space, names in self._read.globals:
            self._items(space, sorted(names), "")

    def argument(self, value: Any) -> None:
        """Walks what an argument holds. Its identity is in the key already."""
        self._seen[id(value)] = value, ""
        self._parts(value, type(value), "")

    def inside(self, value: Any, path: str) -> None:
        """Walks the attributes of an object."""
        self._seen.setdefault(id(value), (value, path))
        held, kind = _held(value), type(value)
        if type(held) is dict:
            items = list(held.items())
            counting = {name for name, each in items if self._counts(kind, name, each)}
            expected = tuple(weak(each) if name in counting else _ANY for name, each in items)
            self._guard(_OWN_ITEMS, weak(value), tuple(name for name, _ in items), expected, kind)
            for name, each in items:
                if name in counting:
                    self._value(each, path + name)
        self._attributes(value, [name for name in _slots(kind) if self._read.has(name)], path)
        self._class(kind)

    def _counts(self, kind: type, name: str, value: Any) -> bool:
        """Whether an attribute counts: all attributes of the package's modules and of the standard library's collections
        do, and inner modules of other modules."""
        module = _module_type()
        if issubclass(kind, module):
            if any(is_known(base) and base is not module and issubclass(base, module) for base in kind.__mro__) or \
                    issubclass(type(value), module) or name in ("training", "_forward_hooks", "_backward_hooks"):
                return True
        elif kind.__module__.split(".")[0] in ("collections", "queue"):
            return True
        if self._read.has_value(name) or name in CALLED:
            return True
        return self._read.has(name) and callable(value)

    def _class(self, kind: type) -> None:
        """The attributes of a class, among them methods, which a program may replace."""
        if kind in self._classes or is_known(kind):
            return
        self._classes.add(kind)
        found = {name: value for base in reversed(kind.__mro__) if not is_known(base) for name, value in vars(base).items()
                 if self._read.has(name) or name in CALLED or (name[:2] == "__" and type(value) is FunctionType)}
        names = [name for name, value in found.items()
                 if type(value) in (FunctionType, staticmethod, property) or not hasattr(type(value), "__get__")]
        self._attributes(kind, sorted(names), f"{kind.__name__}.")

    def _items(self, held: dict[str, Any], names: Iterable[str], path: str) -> None:
        """Items of a dict of globals, of a module or of a function."""
        names = tuple(names)
        if names:
            values = [held.get(name, _ABSENT) for name in names]
            self._guard(_ITEMS, held, names, tuple(map(weak, values)))
            for name, value in zip(names, values):
                self._value(value, path + name)

    def _attributes(self, value: Any, names: Iterable[str], path: str, guard: int = _ATTRIBUTES) -> None:
        names = tuple(names)
        if names:
            found = [getattr(value, name, _ABSENT) for name in names]
            self._guard(guard, weak(value), names, tuple(map(weak, found)))
            for name, each in zip(names, found):
                self._value(each, path + name)

    def _cell(self, cell: CellType, name: str) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            value = _ABSENT
        self._guard(_CELL, cell, ("cell_contents",), (weak(value),))
        self._value(value, name)

    def _guard(self, *guard: Any) -> None:
        if not self._unguarded:
            self.guards.append(guard)

    # --- Values.

    def _note(self, path: str, text: str) -> None:
        while path in self.found:
            path += "'"
        self.found[path] = text

    def _value(self, value: Any, path: str) -> None:
        kind = type(value)
        if kind is slice:
            self._value((value.start, value.stop, value.step), path)
        elif kind in PLAIN or issubclass(kind, enum.Enum | numbers.Number):
            self._note(path, f"{kind.__name__} {value!r}")
        elif id(value) in self._seen:
            self._note(path, f"the same as {self._seen[id(value)][1]}")
        elif len(self.found) > _MOST:
            self.flaw = f"it depends on more than {_MOST} values"
        else:
            self._seen[id(value)] = value, path
            self._object(value, kind, path)

    def _object(self, value: Any, kind: type, path: str) -> None:
        if issubclass(kind, list | tuple) or kind is dict:
            self._container(value, path)
        elif issubclass(kind, set | frozenset | Mapping) or _is_array(kind):
            self._copied(value, path)
        else:
            self._note(path, f"{kind.__name__} {self._serials.of(value)}")
            self._parts(value, kind, path)
        if issubclass(kind, list | tuple | set | Mapping) and kind not in (list, tuple, dict, set):
            self.inside(value, f"{path}.")

    def _parts(self, value: Any, kind: type, path: str) -> None:
        if kind is FunctionType:
            if not is_known(value):
                self._owner.note(value)
                self._items(vars(value), sorted(n for n in vars(value) if self._read.has(n)), f"{path}.")
        elif kind is MethodType:
            self._value(value.__func__, f"{path}.__func__")
            self._value(value.__self__, f"{path}.__self__")
        elif kind is partial:
            self._value([value.func, value.args, value.keywords], path)
        elif kind is BuiltinFunctionType:
            if isinstance(value.__self__, list | dict | set):  # such as d.get
                self._value(value.__self__, f"{path}.__self__")
        elif issubclass(kind, weakref.ReferenceType):
            self._guard(_ASKED, partial(_is_target, value, weak(value())), None, None)
            self._value(value(), f"{path}()")
        elif issubclass(kind, ModuleType):
            self._module(value, path)
        elif issubclass(kind, type):
            self._class(value)
        elif not self._is_fleeting(kind, path) and not issubclass(kind, _plugrad.Tensor):
            self.inside(value, f"{path}.")

    def _is_fleeting(self, kind: type, path: str) -> bool:
        """Notes an object that gives something else each time."""
        if hasattr(kind, "__next__") and not issubclass(kind, io.IOBase):
            self.flaw = f"it may read '{path}', an iterator, which gives something else each time"
        elif issubclass(kind, random.Random) or kind.__module__.startswith("numpy.random"):
            self.flaw = f"it may read '{path}', which gives another random number each time: use plugrad's"
        elif issubclass(kind, threading.local):
            self.flaw = f"it may read '{path}', which differs from thread to thread"
        else:
            return False
        return True

    def _module(self, module: ModuleType, path: str) -> None:
        """A module of Python. Functions of libraries count by their identity: a program may replace them."""
        if not is_known(module):
            self._items(vars(module), sorted(name for name in vars(module) if self._read.has(name)), f"{path}.")
        elif names := sorted((self._read.names | self._read.called) & vars(module).keys()):
            values = [vars(module).get(name, _ABSENT) for name in names]
            self._guard(_ITEMS, vars(module), tuple(names), tuple(map(weak, values)))
            for name, value in zip(names, values):
                self._note(f"{path}.{name}", f"{type(value).__name__} {self._serials.of(value)}")
                if type(value) is ModuleType and id(value) not in self._seen:
                    self._seen[id(value)] = value, f"{path}.{name}"
                    self._module(value, f"{path}.{name}")

    def _container(self, value: Any, path: str) -> None:
        kind = type(value)
        if kind is dict:
            items = list(value.items())
            self._note(path, f"dict of {len(items)}")
            self._guard(_DICT, value, tuple(weak(key) for key, _ in items), tuple(weak(each) for _, each in items))
            for i, (key, each) in enumerate(items):
                if type(key) not in PLAIN:
                    self._value(key, f"{path} key {i}")
                self._value(each, f"{path}[{key!r}]" if type(key) in PLAIN else f"{path} value {i}")
            return
        elements = tuple(value)
        self._note(path, f"{kind.__name__} of {len(elements)}")
        if isinstance(value, list):
            self._guard(_LIST, value, None, tuple(map(weak, elements)))
        for i, each in enumerate(elements):
            self._value(each, f"{path}[{i}]")

    def _copied(self, value: Any, path: str) -> None:
        """A container whose contents have no guards: they are written anew for each call."""
        def written() -> tuple[dict[str, str], str]:
            walk = Walk(self._owner, self._read, self._serials)
            walk._unguarded = True
            walk._contents(value, path)
            return walk.found, walk.flaw

        before = written()
        self._guard(_ASKED, lambda: written() == before, None, None)
        for name, text in before[0].items():
            self._note(name, text)
        self.flaw = self.flaw or before[1]

    def _contents(self, value: Any, path: str) -> None:
        kind = type(value)
        if _is_array(kind):
            self._array(value, path)
            return
        elements = list(value.items() if issubclass(kind, Mapping) else value)
        self._note(path, f"{kind.__name__} of {len(elements)}")
        for i, each in enumerate(elements):
            self._value(each, f"{path} element {i}")

    def _array(self, value: Any, path: str) -> None:
        """The elements of an array: of NumPy, of bytes, or a deque."""
        kind = f"{type(value).__name__} {getattr(value, 'dtype', '')} {getattr(value, 'shape', '')}"
        if hasattr(value, "nbytes") and value.nbytes > _MOST_BYTES:
            self.flaw = f"it may read '{path}', an array of {value.nbytes} bytes: make it a tensor outside"
        elif hasattr(value, "tobytes") and getattr(getattr(value, "dtype", None), "kind", "") != "O":
            self._note(path, f"{kind} {value.tobytes()!r}")
        else:
            self._note(path, kind)
            self._value(list(value), path)


def _is_target(reference: Any, expected: Any) -> bool:
    target = reference()
    return target is (expected() if type(expected) is Weak else expected)


def weak(value: Any) -> Any:
    """What a guard holds of an object: nothing that keeps tensors or modules alive."""
    if type(value) in PLAIN or value is _ABSENT or value is _ANY:
        return value
    try:
        return Weak(value)
    except TypeError:
        return value


def _is_array(kind: type) -> bool:
    return kind.__name__ in ("ndarray", "bytearray", "memoryview", "deque", "array") and is_known(kind)


def _module_type() -> type:
    from .nn.module import Module
    return Module


def _name_of(value: Any) -> str:
    return str(getattr(value, "__name__", type(value).__name__)) if not isinstance(value, MethodType) else "method"


def _held(value: Any) -> Any:
    """The attributes of an object itself. An object that stands for another one, such as a proxy, is not asked."""
    try:
        return object.__getattribute__(value, "__dict__")
    except Exception:  # a property of that name may raise anything
        return None


def _slots(kind: type) -> Iterable[str]:
    return (_mangled(base, name) for base in kind.__mro__[:-1] for name in _several(vars(base).get("__slots__", ())))


def _several(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _mangled(kind: type, name: str) -> str:
    private = name.startswith("__") and not name.endswith("__")
    return f"_{kind.__name__.lstrip('_')}{name}" if private else name
