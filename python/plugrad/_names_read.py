"""What a function may read: names of attributes and globals, in its code and in the functions and methods behind it."""

import dis
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache, partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

# Methods without a name in the calling code (operators, calls, loops) are followed, unless they show or copy objects.
_NOT_FOLLOWED = frozenset(["__init__", "__new__", "__init_subclass__", "__repr__", "__str__", "__del__", "__setattr__",
                           "__getattribute__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__deepcopy__",
                           "__copy__"])
_READS = frozenset(["LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"])
CALLED = frozenset(["forward", "backward", "setup_context"])  # methods that the package calls
_GLOBALS = frozenset(["LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"])
_DYNAMIC = frozenset(["getattr", "vars", "eval", "exec", "globals", "locals", "attrgetter", "__dict__", "__getattribute__"])
_MOST_CODE = 10_000  # code objects whose reads are kept
_LONGEST = 64  # a longer list or dict of functions is not searched


class Read(NamedTuple):
    """What functions may read."""

    names: frozenset[str] = frozenset()         # of attributes
    any_name: bool = False                      # whether some names are made at run time: then any attribute counts
    functions: tuple[FunctionType, ...] = ()    # with the functions behind them, but none of Python's or the package's
    globals: tuple[tuple[dict[str, Any], frozenset[str]], ...] = ()  # the dicts of globals, and the names read of each

    def has(self, name: str) -> bool:
        """Whether an attribute of this name may be read."""
        return self.any_name or name in self.names


def names_read(functions: Iterable[Any], kinds: Iterable[type]) -> Read:
    """Returns what functions read, in their code and in the code behind it: functions and objects of their
    globals, closures and defaults, modules' functions by their names, and methods of these classes. Text that could be a
    name counts too, for getattr."""
    search = _Search(kinds)
    for each in functions:
        search.follow(each)
    return search.run()


class _Search:
    def __init__(self, kinds: Iterable[type]) -> None:
        self._names: set[str] = set()
        self._seen: set[int] = set()     # functions, by identity
        self._pending: list[FunctionType] = []
        self._kinds = dict.fromkeys(kinds)  # of objects: their methods by name, and those without a name
        self._spaces: list[Any] = []     # modules and classes: their functions by name
        self._functions: list[FunctionType] = []
        self._globals: dict[int, tuple[dict[str, Any], set[str]]] = {}

    def run(self) -> Read:
        size = -1
        while size != len(self._names) + len(self._seen) + len(self._kinds) + len(self._spaces):
            size = len(self._names) + len(self._seen) + len(self._kinds) + len(self._spaces)
            while self._pending:
                self._read(self._pending.pop())
            for kind in list(self._kinds):
                for each in kind.__mro__[:-1]:
                    for name, value in list(vars(each).items()):
                        if name in self._names or name in CALLED or _is_operator(name):
                            self.follow(value)
            for space in list(self._spaces):
                for name in (self._names | {"__init__"}) & vars(space).keys():
                    self.follow(vars(space)[name])
        spaces = sorted(self._globals.values(), key=lambda each: str(each[0].get("__name__")))
        globals_read = tuple((space, frozenset(names)) for space, names in spaces)
        any_name = not _DYNAMIC.isdisjoint(self._names.union(*(names for _, names in globals_read)))
        # A search in another order gives the same.
        functions = sorted(self._functions, key=lambda f: (str(f.__module__), f.__qualname__, f.__code__.co_firstlineno))
        return Read(frozenset(self._names), any_name, tuple(functions), globals_read)

    def _globals_of(self, space: dict[str, Any]) -> set[str]:
        return self._globals.setdefault(id(space), (space, set()))[1]

    def follow(self, value: Any) -> None:
        """Adds the code behind a value: a function, a class, a module, an object, or several of them."""
        kind = type(value)
        if kind is FunctionType:
            if id(value) not in self._seen and not is_known(value):
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
            if not is_known(value) and not any(value is each for each in self._spaces):
                self._spaces.append(value)
        elif not is_known(kind):
            self._kinds[kind] = None
        elif (wrapped := _wrapped(value)) is not None:
            self.follow(wrapped)

    def _read(self, function: FunctionType) -> None:
        self._functions.append(function)
        for code in _codes(function.__code__):
            self._read_code(code, function.__globals__)
        self.follow([*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()])
        for cell in function.__closure__ or ():
            if _is_filled(cell):
                self.follow(cell.cell_contents)
        self.follow(vars(function).get("__wrapped__"))

    def _read_code(self, code: CodeType, space: dict[str, Any]) -> None:
        reads = _reads_of(code)
        self._names.update(reads.attributes)
        for name in reads.globals:
            self._globals_of(space).add(name)
            self.follow(space.get(name))
        for name, parts in reads.imports:
            module = sys.modules.get(name)
            if module is None or is_known(module):
                continue
            self.follow(module)
            self._globals_of(vars(module)).update(parts)
            for part in parts:
                self.follow(vars(module).get(part))


class _Reads(NamedTuple):
    """What one code object reads, by name."""

    attributes: frozenset[str]                        # and text that could be a name
    globals: tuple[str, ...]
    imports: tuple[tuple[str, tuple[str, ...]], ...]  # modules, and what is imported from each


_reads: dict[int, tuple[CodeType, _Reads]] = {}


def _reads_of(code: CodeType) -> _Reads:
    known = _reads.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    attributes: set[str] = set()
    globals_read: dict[str, None] = {}
    imports: dict[str, list[str]] = {}
    module = ""
    for step in dis.get_instructions(code):
        if step.opname in _READS:
            attributes.add(str(step.argval))
        elif step.opname in _GLOBALS:
            globals_read[str(step.argval)] = None
        elif step.opname == "IMPORT_NAME":
            module = str(step.argval)
            imports.setdefault(module, [])
        elif step.opname == "IMPORT_FROM":
            imports[module].append(str(step.argval))
    attributes.update(each for each in _texts(code.co_consts) if each.isidentifier())
    made = _Reads(frozenset(attributes), tuple(globals_read), tuple((name, tuple(parts)) for name, parts in imports.items()))
    if len(_reads) == _MOST_CODE:
        _reads.clear()
    _reads[id(code)] = code, made
    return made


def is_known(value: Any) -> bool:
    """Whether a class, function or module is Python's, NumPy's or the package's: it reads no program's attributes."""
    return _is_library(str(value.__name__ if isinstance(value, ModuleType) else value.__module__).split(".")[0])


@cache
def _is_library(root: str) -> bool:
    if root not in sys.stdlib_module_names:
        return root in ("plugrad", "numpy")
    file = getattr(sys.modules.get(root), "__file__", None)  # a program may have a module test of its own
    return file is None or file.startswith(sysconfig.get_path("stdlib"))


def _texts(constants: tuple[Any, ...]) -> Iterator[str]:
    for each in constants:
        if type(each) is str:
            yield each
        elif type(each) is tuple:
            yield from _texts(each)


def _wrapped(value: Any) -> Any:
    """The function behind an object of the standard library or the package, such as a compiled function."""
    try:
        return object.__getattribute__(value, "__dict__").get("__wrapped__")
    except Exception:  # an object without attributes, or a proxy
        return None


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
