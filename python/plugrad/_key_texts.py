"""What a compiled function depends on besides tensors: attributes of its arguments, and what its code refers to."""

import enum
import hashlib
import io
import numbers
import random
import threading
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from . import _plugrad
from ._names_read import CALLED, Read, is_known, names_read

# Types with values as keys: exactly these types, because a subclass may hide its value behind a __repr__ of its own.
PLAIN = frozenset([bool, int, float, complex, str, bytes, type(None), type(...), slice, range, _plugrad.DType,
                   _plugrad.Device])
_MOST = 100_000         # values that a function depends on
_MOST_BYTES = 64 << 10  # of an array that it refers to
_MOST_KEPT = 1000       # objects that allow no weak references
_ITEMS, _OWN_ITEMS, _ATTRIBUTES, _LIST, _DICT, _ASKED, _FUNCTION, _CELL = range(8)  # kinds of guards, as in guards.cpp
_OF_FUNCTION = "__code__", "__defaults__", "__kwdefaults__"
_ABSENT, _ANY = _plugrad._ABSENT, _plugrad._ANY


class _Weak(weakref.ref[Any]):
    """A value that a guard expects, without keeping it alive."""

    __slots__ = ()


_plugrad._set_weak_type(_Weak)


class Outside(NamedTuple):
    """What a function depends on besides its arguments."""

    values: dict[str, str]   # names, such as "model.0.p", and texts of their values
    guards: tuple[Any, ...]  # for C++, which looks whether a value is another one
    digest: str
    flaw: str                # why calls cannot be replayed; empty if they can


class _Serials:
    """Numbers of objects: no object gets the number of another one, even at the same address."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, int]] = {}
        self._count = self._strong = 0

    def of(self, value: Any) -> int:
        key, known = id(value), self._known
        if key not in known:
            self._count += 1
            try:
                kept: Any = weakref.ref(value, lambda _: known.pop(key, None))
            except TypeError:
                kept = value
                self._strong += 1
            known[key] = kept, self._count
        number = known[key][1]
        if self._strong > _MOST_KEPT:  # they get new numbers
            self._known, self._strong = {}, 0
        return number


class Attributes:
    """What a function depends on: those attributes of its arguments that it may read, and the values outside."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.clear()

    def clear(self) -> None:
        """Forgets what the function reads."""
        self._kinds: dict[type, None] = {}  # of the function's arguments
        self._code: dict[int, Any] = {id(self.function): self.function}  # and functions among arguments and attributes
        self._read = Read()
        self._grew = True
        self._texts: dict[int, tuple[Any, tuple[Any, ...], str, str]] = {}  # of arguments: weak, guards, text, flaw
        self.flaw = ""  # why a call with the last arguments cannot be replayed
        self._serials = _Serials()

    def add(self, argument: Any) -> None:
        """Notes an argument of the function: its code, if it is a function, and its class."""
        owner = argument.__self__ if isinstance(argument, MethodType) else argument
        self.note(argument.__func__ if isinstance(argument, MethodType) else argument, type(owner))

    def note(self, value: Any, kind: type = FunctionType) -> None:
        """Notes a function that the function may call, or an object's class."""
        is_new_code = isinstance(value, FunctionType) and id(value) not in self._code
        if is_new_code or kind not in self._kinds:
            self._kinds[kind] = None
            if is_new_code:
                self._code[id(value)] = value
            self._grew = True

    def __len__(self) -> int:
        """How many functions and objects are kept alive, about."""
        return len(self._code)

    def grew(self) -> bool:
        """Whether functions came to light since the last question: then the texts may lack what these functions read."""
        if not self._grew:
            return False
        self._read, self._grew = names_read(self._code.values(), self._kinds), False
        self._texts.clear()
        return True

    def text(self, value: Any) -> str:
        """The attributes of an object, as text."""
        known = self._texts.get(id(value))
        if known is None or known[0]() is not value or not _plugrad._guards_hold(known[1]):
            walk = _Walk(self, self._read, self._serials)
            walk.inside(value, "")
            text = "{" + ",".join(f"{name}:{text}" for name, text in walk.found.items()) + "}"
            known = _weak(value), tuple(walk.guards), text, walk.flaw
            if len(self._texts) > _MOST_KEPT:
                self._texts.clear()
            if type(known[0]) is _Weak and not self._grew:
                self._texts[id(value)] = known
        self.flaw = self.flaw or known[3]
        return known[2]

    def outside(self) -> Outside:
        """The values that the function depends on besides its arguments, as they are now."""
        self.grew()
        while True:
            walk = _Walk(self, self._read, self._serials)
            walk.places()
            if not self.grew():
                break
        digest = hashlib.blake2b(repr(sorted(walk.found.items())).encode(), digest_size=16).hexdigest()
        return Outside(walk.found, tuple(walk.guards), digest, walk.flaw)


class _Walk:
    """One walk from value to value."""

    def __init__(self, owner: Attributes, read: Read, serials: _Serials) -> None:
        self._owner, self._read, self._serials = owner, read, serials
        self._seen: dict[int, tuple[Any, str]] = {}  # values, kept alive during the walk, and their first names
        self._classes: set[type] = set()
        self._unguarded = 0
        self.found: dict[str, str] = {}
        self.guards: list[tuple[Any, ...]] = []
        self.flaw = ""

    # --- Places.

    def places(self) -> None:
        """Walks what the code refers to: globals, closures and defaults."""
        self._value(self._owner.function, _name_of(self._owner.function))
        for function in self._read.functions:
            self._attributes(function, _OF_FUNCTION, f"{function.__name__}.", _FUNCTION)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                self._cell(cell, name)
        for space, names in self._read.globals:
            self._items(space, sorted(names), "")

    def inside(self, value: Any, path: str) -> None:
        """Walks the attributes of an object."""
        self._seen.setdefault(id(value), (value, path))
        held, kind = _held(value), type(value)
        if type(held) is dict:
            counting = [name for name in held if self._counts(kind, name, held[name])]
            self._guard(_OWN_ITEMS, _weak(value), tuple(held), tuple(_weak(each) if name in counting else _ANY
                                                            for name, each in held.items()))
            for name in sorted(counting):
                self._value(held[name], path + name)
        slots = [name for name in _slots(kind) if self._read.has(name)]
        self._attributes(value, slots, path)
        self._class(kind)

    def _counts(self, kind: type, name: Any, value: Any) -> bool:
        """Whether an attribute counts: all attributes of the package's modules do, and inner modules of other modules."""
        if issubclass(kind, _module_type()):
            if is_known(kind) or issubclass(type(value), _module_type()) or name in ("training", "_forward_hooks"):
                return True
        return self._read.has(name) or name in CALLED

    def _class(self, kind: type) -> None:
        """The attributes of a class, among them methods, which a program may replace."""
        if kind in self._classes or is_known(kind):
            return
        self._classes.add(kind)
        found = {name: value for base in reversed(kind.__mro__) if not is_known(base) for name, value in vars(base).items()
                 if self._read.has(name) or name in CALLED}
        names = [name for name, value in found.items()
                 if type(value) in (FunctionType, staticmethod, property) or not hasattr(type(value), "__get__")]
        self._attributes(kind, sorted(names), f"{kind.__name__}.")

    def _items(self, held: dict[str, Any], names: Iterable[str], path: str) -> None:
        """Items of a dict of globals, of a module or of a function."""
        names = tuple(names)
        if names:
            values = [held.get(name, _ABSENT) for name in names]
            self._guard(_ITEMS, held, names, tuple(map(_weak, values)))
            for name, value in zip(names, values):
                self._value(value, path + name)

    def _attributes(self, value: Any, names: Iterable[str], path: str, guard: int = _ATTRIBUTES) -> None:
        names = tuple(names)
        if names:
            found = [getattr(value, name, _ABSENT) for name in names]
            self._guard(guard, _weak(value), names, tuple(map(_weak, found)))
            for name, each in zip(names, found):
                self._value(each, path + name)

    def _cell(self, cell: CellType, name: str) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            value = _ABSENT
        self._guard(_CELL, cell, ("cell_contents",), (_weak(value),))
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
        elif issubclass(kind, ModuleType):
            if not is_known(value):
                self._items(vars(value), sorted(n for n in vars(value) if self._read.has(n)), f"{path}.")
        elif issubclass(kind, type):
            self._class(value)
        elif hasattr(kind, "__next__") and not issubclass(kind, io.IOBase):
            self.flaw = f"it may read '{path}', an iterator, which gives something else each time"
        elif issubclass(kind, random.Random) or kind.__module__.startswith("numpy.random"):
            self.flaw = f"it may read '{path}', which gives another random number each time: use plugrad's"
        elif issubclass(kind, threading.local):
            self.flaw = f"it may read '{path}', which differs from thread to thread"
        elif not issubclass(kind, BuiltinFunctionType | _plugrad.Tensor):
            self.inside(value, f"{path}.")

    def _container(self, value: Any, path: str) -> None:
        kind = type(value)
        self._note(path, f"{kind.__name__} of {len(value)}")
        if kind is dict:
            items = list(value.items())
            self._guard(_DICT, value, tuple(_weak(key) for key, _ in items), tuple(_weak(each) for _, each in items))
            for i, (key, each) in enumerate(items):
                if type(key) not in PLAIN:
                    self._value(key, f"{path} key {i}")
                self._value(each, f"{path}[{key!r}]" if type(key) in PLAIN else f"{path} value {i}")
            return
        if isinstance(value, list):
            self._guard(_LIST, value, None, tuple(map(_weak, value)))
        for i, each in enumerate(value):
            self._value(each, f"{path}[{i}]")

    def _copied(self, value: Any, path: str) -> None:
        """A container whose contents have no guards: they are written anew for each call."""
        def text() -> str:
            walk = _Walk(self._owner, self._read, self._serials)
            walk._unguarded = 1
            walk._contents(value, path)
            return repr(sorted(walk.found.items())) + walk.flaw

        written = text()
        self._guard(_ASKED, lambda: text() == written, None, None)
        self._contents(value, path)

    def _contents(self, value: Any, path: str) -> None:
        kind = type(value)
        self._unguarded += 1
        if issubclass(kind, Mapping):
            for i, (key, each) in enumerate(value.items()):
                self._value((key, each), f"{path} item {i}")
        elif _is_array(kind):
            self._array(value, path)
        else:
            for i, each in enumerate(sorted(value, key=repr)):
                self._value(each, f"{path} element {i}")
        self._note(path, f"{kind.__name__} of {len(value) if not _is_array(kind) else ''}")
        self._unguarded -= 1

    def _array(self, value: Any, path: str) -> None:
        """The elements of an array: of NumPy, of bytes, or a deque."""
        if not hasattr(value, "__array_interface__") and not isinstance(value, bytearray | memoryview):
            self._value(list(value), path)
            return
        data = memoryview(value)
        if data.nbytes > _MOST_BYTES:
            self.flaw = f"it may read '{path}', an array of {data.nbytes} bytes: make it a tensor outside"
        else:
            self._note(path, f"{data.format} {data.shape} {data.tobytes()!r}")


def _weak(value: Any) -> Any:
    """What a guard holds of an object: nothing that keeps tensors or modules alive."""
    if type(value) in PLAIN or value is _ABSENT or value is _ANY:
        return value
    try:
        return _Weak(value)
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
