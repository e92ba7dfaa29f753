"""What a compiled function depends on besides tensors: attributes of its arguments, and what its code refers to."""

import hashlib
import sys
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from . import _plugrad
from ._names_read import Read, names_read
from ._walk import DEEP, MOST_KEPT, PLAIN as PLAIN, Serials, Walk, Weak, weak


class Outside(NamedTuple):
    """What a function depends on besides its arguments."""

    values: dict[str, str]   # names, such as "model.0.p", and texts of their values
    guards: tuple[Any, ...]  # for C++, which looks whether a value is another one
    digest: str
    flaw: str                # why calls cannot be replayed; empty if they can


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
        self._serials = Serials()

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

    def asks_types(self) -> bool:
        """Whether the code may ask for the exact type of a value."""
        return self._read.asks_types

    def grew(self) -> bool:
        """Whether functions came to light since the last question: then the texts may lack what these functions read."""
        if not self._grew:
            return False
        try:
            self._read = names_read(self._code.values(), self._kinds)
        except RecursionError:
            self._read = Read(flaw=DEEP)
        self._grew = False
        self._texts.clear()
        return True

    def text(self, value: Any) -> str:
        """The attributes of an object, as text."""
        known = self._texts.get(id(value))
        if known is None or known[0]() is not value or not _plugrad._guards_hold(known[1]):
            walk = Walk(self, self._read, self._serials)
            walk.argument(value)
            text = "{" + ",".join(f"{name}:{text}" for name, text in walk.found.items()) + "}"
            known = weak(value), tuple(walk.guards), text, walk.flaw
            if len(self._texts) > MOST_KEPT:
                self._texts.clear()
            if type(known[0]) is Weak and not self._grew:
                self._texts[id(value)] = known
        self.flaw = self.flaw or known[3]
        return known[2]

    def outside(self) -> Outside:
        """The values that the function depends on besides its arguments, as they are now."""
        self.grew()
        while True:
            self._serials.begin()
            walk = Walk(self, self._read, self._serials)
            try:
                walk.places()
            except RecursionError:
                walk.flaw = DEEP
            if not self.grew():
                break
        digest = hashlib.blake2b(repr(list(walk.found.items())).encode(), digest_size=16).hexdigest()
        return Outside(walk.found, tuple(walk.guards), digest, self._read.flaw or walk.flaw)

    def codes(self) -> frozenset[int]:
        """The code of all functions that the function may call, as far as they are known, by identity."""
        self.grew()
        return self._read.codes

    def imports_anew(self) -> bool:
        """Whether the function imported a module that was not there when it was looked at."""
        if not any(each in sys.modules for each in self._read.missing):
            return False
        self._grew = True
        return True


def joined(texts: dict[str, str]) -> str:
    return ";".join(f"{name}={each}" for name, each in texts.items())


def is_number(text: str) -> bool:
    return text.startswith(("float ", "int "))


def difference(before: dict[str, str], now: dict[str, str]) -> str:
    """Names the first value that differs: "beta is float 0.5, was float 0.4"."""
    for name in [*now, *before]:
        if before.get(name) != now.get(name):
            return f"{name.removesuffix('=')} is {_short(now.get(name))}, was {_short(before.get(name))}"
    return ""


def _short(text: str | None) -> str:
    return "missing" if text is None else text if len(text) < 80 else text[:77] + "..."
