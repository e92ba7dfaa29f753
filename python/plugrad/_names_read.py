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
# Functions with the name of an attribute as an argument; and functions with access to every value.
_DYNAMIC = frozenset(["getattr", "hasattr", "vars", "attrgetter", "__dict__", "__getattribute__"])
_BY_NAME = frozenset(["eval", "exec", "globals", "__import__"])
# Instructions that make a simple operand: a name, or an attribute of it.
_NO_OPERANDS = frozenset(["CACHE", "PRECALL", "PUSH_NULL", "NOP"])
_SIMPLE = frozenset(["LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_FAST_BORROW"]) | _NO_OPERANDS
_MOST_CODE = 10_000  # code objects whose reads are kept
_LONGEST = 64  # a longer list or dict of functions is not searched


class Read(NamedTuple):
    """What functions may read."""

    names: frozenset[str] = frozenset()         # of attributes
    called: frozenset[str] = frozenset()        # of attributes that are only called, as methods
    any_name: bool = False                      # whether some names are made at run time: then any attribute counts
    functions: tuple[FunctionType, ...] = ()    # with the functions behind them, but none of Python's or the package's
    codes: frozenset[int] = frozenset()         # of these functions and of the functions in them, by identity
    globals: tuple[tuple[dict[str, Any], frozenset[str]], ...] = ()  # the dicts of globals, and the names read of each
    modules: tuple[ModuleType, ...] = ()        # that the functions import
    missing: tuple[str, ...] = ()               # names of modules that they would import first
    asks_types: bool = False                    # whether they may compare the exact type of a value
    flaw: str = ""                              # why it cannot be known what they read

    def has(self, name: str) -> bool:
        """Whether an attribute of this name may be read."""
        return self.any_name or name in self.names or name in self.called

    def has_value(self, name: str) -> bool:
        """Whether an attribute of this name may be read otherwise than by calling it."""
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
        self._names: set[str] = set()    # of attributes
        self._methods: set[str] = set()  # of attributes that are called
        self._seen: set[int] = set()     # functions, by identity
        self._pending: list[FunctionType] = []
        self._kinds = dict.fromkeys(kinds)  # of objects: their methods by name, and those without a name
        self._spaces: list[Any] = []     # modules and classes: their functions by name
        self._functions: list[FunctionType] = []
        self._globals: dict[int, tuple[dict[str, Any], set[str]]] = {}
        self._codes: set[int] = set()
        self._modules: dict[str, ModuleType] = {}
        self._missing: set[str] = set()
        self._any_name = self._asks_types = False

    def run(self) -> Read:
        size = -1
        while size != self._size():
            size = self._size()
            while self._pending:
                self._read(self._pending.pop())
            names = self._names | self._methods
            for kind in list(self._kinds):
                for each in kind.__mro__[:-1]:
                    for name, value in list(vars(each).items()):
                        if name in names or name in CALLED or _is_operator(name):
                            self.follow(value)
            for space in list(self._spaces):
                for name in (names | {"__init__"}) & vars(space).keys():
                    self.follow(vars(space)[name])
        return self._found()

    def _size(self) -> int:
        return len(self._names) + len(self._methods) + len(self._seen) + len(self._kinds) + len(self._spaces)

    def _found(self) -> Read:
        spaces = sorted(self._globals.values(), key=lambda each: str(each[0].get("__name__")))
        globals_read = tuple((space, frozenset(names)) for space, names in spaces)
        # A search in another order gives the same.
        functions = sorted(self._functions, key=lambda f: (str(f.__module__), f.__qualname__, f.__code__.co_firstlineno))
        by_name = sorted(each for _, names in spaces for each in names & _BY_NAME)
        flaw = f"its code calls {by_name[0]}, which may read anything: pass what it reads as an argument" if by_name else ""
        return Read(frozenset(self._names), frozenset(self._methods - self._names), self._any_name, tuple(functions),
                    frozenset(self._codes), globals_read, tuple(self._modules[name] for name in sorted(self._modules)),
                    tuple(sorted(self._missing)), self._asks_types, flaw)

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
        self._codes.add(id(code))
        self._names.update(reads.attributes)
        self._methods.update(reads.methods)
        self._any_name = self._any_name or reads.any_name
        self._asks_types = self._asks_types or reads.asks_types
        for name in reads.globals:
            self._globals_of(space).add(name)
            self.follow(space.get(name))
        for name, parts in reads.imports:
            self._import(name, parts, str(space.get("__package__")))

    def _import(self, name: str, parts: tuple[str, ...], package: str) -> None:
        # A relative import names no package.
        found = [sys.modules[each] for each in dict.fromkeys([name, f"{package}.{name}".strip(".")]) if each in sys.modules]
        if not found:
            self._missing.add(name)
        for module in found:
            if is_known(module):
                continue
            self.follow(module)
            self._modules[module.__name__] = module
            self._globals_of(vars(module)).update(parts)
            for part in parts:
                self.follow(vars(module).get(part))


class _Reads(NamedTuple):
    """What one code object reads, by name."""

    attributes: frozenset[str]                        # and the text of its constants, if it reads attributes by name
    methods: frozenset[str]                           # attributes that it calls
    any_name: bool                                    # whether it reads attributes by names made at run time
    asks_types: bool                                  # whether it may compare a type
    globals: tuple[str, ...]
    imports: tuple[tuple[str, tuple[str, ...]], ...]  # modules, and what is imported from each


_reads: dict[int, tuple[CodeType, _Reads]] = {}


def _reads_of(code: CodeType) -> _Reads:
    known = _reads.get(id(code))
    if known is not None and known[0] is code:
        return known[1]
    steps = list(dis.get_instructions(code))
    attributes: set[str] = set()
    methods: set[str] = set()
    globals_read: dict[str, None] = {}
    imports: dict[str, list[str]] = {}
    module, by_name, any_name, asks_types = "", False, False, False
    for at, step in enumerate(steps):
        name = str(step.argval)
        if step.opname in _READS:
            (methods if _is_call(step) else attributes).add(name)
            by_name = by_name or name in _DYNAMIC
            any_name = any_name or name in ("__dict__", "__getattribute__", "attrgetter")
        elif step.opname in _GLOBALS:
            globals_read[name] = None
            by_name = by_name or name in _DYNAMIC
            asks_types = asks_types or (name == "type" and not _shows_type(steps[at + 1:at + 12]))
            any_name = any_name or (name in _DYNAMIC and not _has_constant_name(steps[at + 1:]))
        elif step.opname == "IMPORT_NAME":
            module = name
            imports.setdefault(module, [])
        elif step.opname == "IMPORT_FROM":
            imports[module].append(name)
    if by_name:
        attributes.update(each for each in _texts(code.co_consts) if each.isidentifier())
    made = _Reads(frozenset(attributes), frozenset(methods), any_name, asks_types, tuple(globals_read),
                  tuple((name, tuple(parts)) for name, parts in imports.items()))
    if len(_reads) == _MOST_CODE:
        _reads.clear()
    _reads[id(code)] = code, made
    return made


def _is_call(step: dis.Instruction) -> bool:
    """Whether an attribute is read to be called as a method."""
    if step.opname == "LOAD_METHOD":
        return True
    return sys.version_info >= (3, 12) and step.opname in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and bool((step.arg or 0) & 1)


def _shows_type(steps: list[dis.Instruction]) -> bool:
    """Whether the result of a call of type, which these instructions follow, is shown, or an attribute of it is read."""
    after = [each.opname for each in steps if each.opname not in _NO_OPERANDS]
    call = next((at for at, name in enumerate(after) if name.startswith("CALL")), len(after))
    return call == 1 and after[2:3] != [] and after[2].startswith(("FORMAT", "CONVERT", "LOAD_ATTR", "LOAD_METHOD"))


def _has_constant_name(steps: list[dis.Instruction]) -> bool:
    """Whether a call of getattr, which these instructions follow, has a constant as the name."""
    for at, step in enumerate(steps):
        if step.opname == "LOAD_CONST":  # then the call, perhaps after another simple operand
            rest = [each.opname for each in steps[at + 1:at + 6] if each.opname not in _NO_OPERANDS]
            calls = [name.startswith("CALL") for name in rest[:2]]
            return type(step.argval) is str and (calls[:1] == [True] or rest[0].startswith("LOAD_") and calls[1:] == [True])
        if step.opname not in _SIMPLE:
            return False
    return False


def is_known(value: Any) -> bool:
    """Whether a class, function or module is Python's, NumPy's or the package's: it reads no program's attributes."""
    return is_library(str(value.__name__ if isinstance(value, ModuleType) else value.__module__).split(".")[0])


@cache
def is_library(root: str) -> bool:
    """As is_known, for the first name of a module."""
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
