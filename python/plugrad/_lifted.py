"""Numbers that differ from call to call of a compiled function, while it is recorded."""

import operator
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

    def lifted(self, value: Any, function: Callable[..., Any] | None = None, operands: tuple[Any, ...] = ()) -> "Lifted":
        """A number for the function: an argument, or the result of a function of other numbers."""
        self._steps.append((type(value), function, operands))
        return Lifted(value, len(self._steps), self)

    def values(self, arguments: list[Any]) -> list[float]:
        """All numbers for these arguments. Raises NotLiftable if one of them is no number of the recorded kind."""
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


class _Constant:
    def __init__(self, value: Any) -> None:
        self._value = value

    def of(self, _: list[Any]) -> Any:
        return self._value


class Lifted:
    """Stands for an int or a float. Operands of ops and of arithmetic stay numbers of the recording; everything else looks
    at the value, and the recording then holds for this value alone."""

    __slots__ = "_numbers", "source", "value"

    def __init__(self, value: Any, source: int, numbers: Numbers) -> None:
        self.value, self.source, self._numbers = value, source, numbers

    def of(self, made: list[Any]) -> Any:
        """The value among the numbers of a replay."""
        return made[self.source - 1]

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


def _operand(x: Any) -> Any:
    return x if type(x) is Lifted else _Constant(x)


def _value(x: Any) -> Any:
    return x.value if type(x) is Lifted else x


def _read(x: Any) -> Any:
    return x.read() if type(x) is Lifted else x


def _arithmetic(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(*operands: Any) -> Any:
        numbers = next(each for each in operands if type(each) is Lifted)._numbers
        if any(isinstance(each, _plugrad.Tensor) for each in operands):
            return NotImplemented
        if not all(type(each) in (Lifted, *_NUMBERS) for each in operands):
            return function(*map(_read, operands))
        value = function(*map(_value, operands))
        return numbers.lifted(value, function, tuple(map(_operand, operands))) if type(value) in _NUMBERS else value
    return method


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: function(*map(_read, operands))


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _made = _arithmetic(getattr(operator, _name))
    setattr(Lifted, f"__{_name}__", _made)
    setattr(Lifted, f"__r{_name}__", _reflected(_made))
for _name in ("neg", "pos"):
    setattr(Lifted, f"__{_name}__", _arithmetic(getattr(operator, _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "abs", "index"):
    setattr(Lifted, f"__{_name}__", _reading(getattr(operator, _name)))
for _name in ("floordiv", "mod", "lshift", "rshift", "and_", "or_", "xor"):
    _made = _reading(getattr(operator, _name))
    setattr(Lifted, f"__{_name.rstrip('_')}__", _made)
    setattr(Lifted, f"__r{_name.rstrip('_')}__", _reflected(_made))
_BY_NAME: dict[str, Callable[..., Any]] = {"bool": bool, "int": int, "float": float, "complex": complex, "hash": hash,
                                           "repr": repr, "str": str, "format": format, "round": round, "divmod": divmod,
                                           "trunc": int}
for _name, _function in _BY_NAME.items():
    setattr(Lifted, f"__{_name}__", _reading(_function))
Lifted.__rdivmod__ = _reflected(_reading(divmod))  # type: ignore[attr-defined]
_plugrad._set_lifted_type(Lifted)
