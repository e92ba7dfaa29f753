"""Numbers that differ from call to call of a compiled function, while it is recorded."""

import gc
import operator
import weakref
from collections.abc import Callable
from typing import Any

from . import _plugrad

_NUMBERS = int, float


class NotLiftable(Exception):
    """A number of a replay is of another kind than the recorded one."""


class Numbers:
    """The numbers of one recording: arguments of the call, and what Python computes of them."""

    def __init__(self) -> None:
        self._steps: list[tuple[type, Callable[..., Any] | None, tuple[Any, ...]]] = []
        self._made: list[weakref.ref[Lifted]] = []
        self.is_recorded = True

    def lifted(self, value: Any, function: Callable[..., Any] | None = None, operands: tuple[Any, ...] = ()) -> "Lifted":
        """A number for the function: an argument, or the result of a function of other numbers."""
        self._steps.append((type(value), function, operands))
        made = (LiftedInt if type(value) is int else LiftedFloat)(value, len(self._steps), self)
        self._made.append(weakref.ref(made))
        return made

    def end(self) -> bool:
        """Ends the recording: from now on its numbers are plain. Returns whether the program has kept none of them; in
        lists, dicts and attributes they become ints and floats again."""
        self.is_recorded = False
        kept = [each for each in (reference() for reference in self._made) if each is not None]
        for each in kept:
            for holder in gc.get_referrers(each):
                for key in list(holder) if type(holder) is dict else range(len(holder)) if type(holder) is list else ():
                    if holder is not kept and holder[key] is each:
                        holder[key] = each.value
        self._made.clear()
        return not kept

    def values(self, arguments: list[Any]) -> list[float]:
        """All numbers for these arguments. Raises NotLiftable if the type of a number is not the recorded type."""
        made: list[Any] = []
        given = iter(arguments)
        try:
            for kind, function, operands in self._steps:
                value = next(given) if function is None else function(*(each.of(made) for each in operands))
                if type(value) is not kind or not _is_exact(value):
                    raise NotLiftable
                made.append(value)
            return [float(each) for each in made]
        except (ArithmeticError, TypeError, ValueError) as error:
            raise NotLiftable from error


def _is_exact(value: Any) -> bool:
    """Whether a float holds the number."""
    return bool(float(value) == value or value != value)


class _Place:
    """The place of a number among the numbers of a recording, or a constant."""

    def __init__(self, source: int, value: Any) -> None:
        self._source, self._value = source, value

    def of(self, made: list[Any]) -> Any:
        """The value in a replay."""
        return made[self._source - 1] if self._source else self._value


class Lifted:
    """Stands for an int or a float. Operands of ops and of arithmetic stay numbers of the recording; everything else looks
    at the value, and the recording then holds for this value alone."""

    __slots__ = "__weakref__", "_number", "_numbers", "value"

    def __init__(self, value: Any, number: int, numbers: Numbers) -> None:
        self.value, self._number, self._numbers = value, number, numbers

    @property
    def source(self) -> int:
        """Which number of the recording it is, from 1; 0 after the recording."""
        return self._number if self._numbers.is_recorded else 0

    def read(self) -> Any:
        """The value, which the recording then depends on."""
        _plugrad._note_number_read()
        return self.value

    __class__ = property(lambda self: type(self.value))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.read(), name)

    def __array__(self, *arguments: Any, **named: Any) -> Any:
        import numpy
        return numpy.asarray(self.read())

    def __reduce__(self) -> Any:
        return type(self.value), (self.read(),)


class LiftedInt(Lifted):
    """Stands for an int."""

    __slots__ = ()


class LiftedFloat(Lifted):
    """Stands for a float."""

    __slots__ = ()


LiftedInt.__name__, LiftedFloat.__name__ = "int", "float"  # in messages
_LIFTED = LiftedInt, LiftedFloat


def _operand(x: Any) -> _Place:
    return _Place(x.source, x.value) if type(x) in _LIFTED else _Place(0, x)


def _value(x: Any) -> Any:
    return x.value if type(x) in _LIFTED else x


def _read(x: Any) -> Any:
    return x.read() if type(x) in _LIFTED else x


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(*operands: Any) -> Any:
        if any(isinstance(each, _plugrad.Tensor) for each in operands):
            return NotImplemented
        numbers: Numbers = next(each for each in operands if type(each) in _LIFTED)._numbers
        if not numbers.is_recorded or not all(type(each) in (*_LIFTED, *_NUMBERS) for each in operands):
            return function(*map(_read, operands))
        try:
            value = function(*map(_value, operands))
        except Exception:
            _plugrad._note_number_read()  # the program may go on otherwise
            raise
        if type(value) not in _NUMBERS:
            _plugrad._note_number_read()
            return value
        return numbers.lifted(value, function, tuple(map(_operand, operands)))
    return method


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*map(_read, operands))


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


def _power(base: Any, exponent: Any, modulus: Any = None) -> Any:
    return _POWER(base, exponent) if modulus is None else pow(_read(base), _read(exponent), _read(modulus))


_POWER = _arithmetic(operator.pow)
for _name in ("add", "sub", "mul", "truediv"):
    _made = _arithmetic(getattr(operator, _name))
    setattr(Lifted, f"__{_name}__", _made)
    setattr(Lifted, f"__r{_name}__", _reflected(_made))
for _name in ("neg", "pos"):
    setattr(Lifted, f"__{_name}__", _arithmetic(getattr(operator, _name)))
setattr(Lifted, "__pow__", _power)
setattr(Lifted, "__rpow__", _reflected(_POWER))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "abs"):
    setattr(Lifted, f"__{_name}__", _reading(getattr(operator, _name)))
for _kind, _names in ((Lifted, ("floordiv", "mod")), (LiftedInt, ("lshift", "rshift", "and_", "or_", "xor"))):
    for _name in _names:
        _made = _reading(getattr(operator, _name))
        setattr(_kind, f"__{_name.rstrip('_')}__", _made)
        setattr(_kind, f"__r{_name.rstrip('_')}__", _reflected(_made))
for _name in ("index", "invert"):
    setattr(LiftedInt, f"__{_name}__", _reading(getattr(operator, _name)))
_BY_NAME: dict[str, Callable[..., Any]] = {"bool": bool, "int": int, "float": float, "complex": complex, "hash": hash,
                                           "repr": repr, "str": str, "format": format, "round": round, "divmod": divmod,
                                           "trunc": int}
for _name, _function in _BY_NAME.items():
    setattr(Lifted, f"__{_name}__", _reading(_function))
Lifted.__rdivmod__ = _reflected(_reading(divmod))  # type: ignore[attr-defined]
_plugrad._set_lifted_type(Lifted)
