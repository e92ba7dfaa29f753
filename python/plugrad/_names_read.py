"""The names of attributes that a function may read, in its own code and in the functions and methods behind it."""

import dis
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# Methods without a name in the calling code (operators, calls, loops) are followed, unless they show or copy objects.
_NOT_FOLLOWED = frozenset(["__init__", "__new__", "__init_subclass__", "__repr__", "__str__", "__del__", "__setattr__",
                           "__getattribute__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__deepcopy__",
                           "__copy__"])
_READS = frozenset(["LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"])
_LONGEST = 64  # a longer list or dict of functions is not searched


def names_read(functions: Iterable[Any], kinds: Iterable[type]) -> frozenset[str]:
    """Returns the names of attributes in the code of functions and in the code behind it: functions and objects of their
    globals, closures and defaults, modules' functions by their names, and methods of these classes. Text that could be a
    name counts too, for getattr. Names made at run time are missing."""
    search = _Search(kinds)
    for each in functions:
        search.follow(each)
    return search.run()


class _Search:
    def __init__(self, kinds: Iterable[type]) -> None:
        self._names: set[str] = set()
        self._seen: set[int] = set()     # functions, by identity
        self._pending: list[FunctionType] = []
        self._kinds = set(kinds)         # of objects: their methods by name, and those without a name
        self._spaces: list[Any] = []     # modules and classes: their functions by name

    def run(self) -> frozenset[str]:
        size = -1
        while size != len(self._names) + len(self._seen) + len(self._kinds) + len(self._spaces):
            size = len(self._names) + len(self._seen) + len(self._kinds) + len(self._spaces)
            while self._pending:
                self._read(self._pending.pop())
            for kind in list(self._kinds):
                for each in kind.__mro__[:-1]:
                    for name, value in list(vars(each).items()):
                        if name in self._names or _is_operator(name):
                            self.follow(value)
            for space in list(self._spaces):
                for name in (self._names | {"__init__"}) & vars(space).keys():
                    self.follow(vars(space)[name])
        return frozenset(self._names)

    def follow(self, value: Any) -> None:
        """Adds the code behind a value: a function, a class, a module, an object, or several of them."""
        kind = type(value)
        if kind is FunctionType:
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self._pending.append(value)
        elif kind in (MethodType, staticmethod, classmethod):
            self.follow(value.__func__)
        elif kind is property:
            self.follow(value.fget)
        elif kind is partial:
            self.follow([value.func, *value.args, *value.keywords.values()])
        elif kind in (list, tuple, dict):
            for each in (value.values() if kind is dict else value) if len(value) <= _LONGEST else ():
                self.follow(each)
        elif issubclass(kind, type | ModuleType):
            if not _is_known(value) and not any(value is each for each in self._spaces):
                self._spaces.append(value)
        elif not _is_known(kind):
            self._kinds.add(kind)

    def _read(self, function: FunctionType) -> None:
        for code in _codes(function.__code__):
            for step in dis.get_instructions(code):
                if step.opname in _READS:
                    self._names.add(str(step.argval))
                elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in function.__globals__:
                    self.follow(function.__globals__[step.argval])
            self._names.update(each for each in code.co_consts if type(each) is str and each.isidentifier())
        self.follow([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()])
        for cell in function.__closure__ or ():
            if _is_filled(cell):
                self.follow(cell.cell_contents)
        self.follow(vars(function).get("__wrapped__"))


def _is_known(value: Any) -> bool:
    """Whether a class or a module is Python's, NumPy's or the package's: none of them reads a program's attributes."""
    name = str(value.__name__ if isinstance(value, ModuleType) else value.__module__).split(".")[0]
    return name in sys.stdlib_module_names or name in ("plugrad", "numpy")


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code, and the code of functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_operator(name: str) -> bool:
    return name[:2] == name[-2:] == "__" and name not in _NOT_FOLLOWED


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
