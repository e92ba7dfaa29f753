"""Messages for arguments that do not fit a function: they name the argument, the expected type and the function's calls."""

import re
from collections.abc import Sequence
from inspect import Parameter
from typing import Any, NamedTuple

from ._signatures import overloads

_MARK = "(): incompatible function arguments."
_NUMBERS = ("float", "int", "uint", "bool", "half")
# For each member of an annotation: the accepted types, as beginnings of their names, and the words for it in a sentence.
_ACCEPTED: dict[str, tuple[tuple[str, ...], str]] = {
    "Tensor": (("Tensor",), "a Tensor"), "float": (_NUMBERS, "a number"), "int": (("int", "uint", "bool"), "a whole number"),
    "bool": (("bool",), "True or False"), "str": (("str",), "a str"), "None": (("NoneType",), "None"),
    "Device": (("Device",), "a device"), "DType": (("DType",), "a dtype"), "dict": (("dict",), "a dict"),
    "tuple": (("tuple", "Size"), "a tuple"), "Callable": (("function", "builtin", "method", "type"), "a function")}
_SEQUENCES = ("list", "tuple", "Size", "range", "dict_values", "generator")
_MEMBERS = {"int": "whole numbers", "float": "numbers", "Tensor": "Tensors"}


class _Trouble(NamedTuple):
    place: int  # how many arguments fit
    text: str = ""
    parameter: Parameter | None = None  # the parameter that refuses its argument
    given: str = ""                     # the type of that argument


def _members(annotation: str) -> list[str]:
    """Splits a union at its bars outside brackets."""
    return [each.strip() for each in re.split(r"\|(?![^\[]*\])", annotation) if each.strip()]


def _annotation(parameter: Parameter) -> str:
    return "object" if parameter.annotation is Parameter.empty else parameter.annotation


def _shown(parameter: Parameter) -> str:
    star = "*" * (parameter.kind is Parameter.VAR_POSITIONAL)
    return star + parameter.name + ("" if parameter.default is Parameter.empty else f"={parameter.default!r}")


def _called(parameter: Parameter) -> str:
    number = re.fullmatch(r"arg(\d*)", parameter.name)
    return f"argument {int(number[1] or 0) + 1}" if number else f"'{parameter.name}'"


def _accepts(annotation: str, given: str) -> bool:
    """Whether a value of this type may fit. Annotations unknown to this module accept everything."""
    members = _members(annotation)
    if ("DType" in members and given in ("int", "float", "tuple")) or (members == ["object"] and given == "NoneType"):
        return False
    for member in members:
        base = member.partition("[")[0]
        if base in ("Sequence", "Iterable", "list"):
            fits = given in _SEQUENCES
        elif base in _ACCEPTED:
            fits = given.startswith(_ACCEPTED[base][0])
        else:
            fits = True
        if fits:
            return True
    return False


def _expected(annotation: str) -> str:
    words = []
    for member in _members(annotation):
        base, _, inner = member.partition("[")
        if base in ("Sequence", "Iterable", "list"):
            words.append(f"a list of {_MEMBERS.get(inner.rstrip(']'), 'them')}")
        elif base in _ACCEPTED:
            words.append(_ACCEPTED[base][1])
    *first, last = dict.fromkeys(words) or [""]
    return f"{', '.join(first)} or {last}" if first else last


def _article(given: str) -> str:
    return "None" if given == "NoneType" else f"{'an' if given[0] in 'aeiou' or given == 'ndarray' else 'a'} {given}"


def _mismatch(parameter: Parameter, given: str, annotation: str) -> str:
    wanted = _expected(annotation)
    hint = ", which plugrad.tensor() makes" if wanted == "a Tensor" and \
        given in ("list", "tuple", "ndarray", "float", "int") else ""
    return f"{_called(parameter)} is {_article(given)}" + (f", expected {wanted}{hint}" if wanted else "")


def _trouble(parameters: Sequence[Parameter], given: list[str], named: dict[str, str]) -> _Trouble | None:
    """Returns the first argument refused by the overload, or None if this module finds no refused argument."""
    place = 0
    rest = list(given)
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_POSITIONAL:
            for each in rest:
                if not _accepts(_annotation(parameter), each):
                    return _Trouble(place, "", parameter, each)
            rest = []
            continue
        by_place = rest and parameter.kind is not Parameter.KEYWORD_ONLY
        value = named.get(parameter.name) or (rest.pop(0) if by_place else None)
        if value is None and parameter.default is Parameter.empty:
            return _Trouble(place, f"{_called(parameter)} is missing")
        if value is not None and not _accepts(_annotation(parameter), value):
            return _Trouble(place, "", parameter, value)
        place += value is not None
    if rest:
        return _Trouble(place, "one argument too many" if len(rest) == 1 else f"{len(rest)} arguments too many")
    unknown = [each for each in named if each not in [parameter.name for parameter in parameters]]
    return _Trouble(place, f"'{unknown[0]}' does not go with these arguments") if unknown else None


def _first(troubles: list[_Trouble]) -> str:
    """Describes the error for the overload that takes most arguments, with the types that equally good overloads expect."""
    best = max(troubles, key=lambda each: each.place)
    if best.parameter is None:
        return best.text
    same = [_annotation(each.parameter) for each in troubles
            if each.parameter and each.place == best.place and each.parameter.name == best.parameter.name]
    return _mismatch(best.parameter, best.given, " | ".join(same))


def _public(name: str) -> str:
    """Returns the public name of a wrapped function."""
    return "draw_dot" if name == "_dot" else re.sub(r"^_linalg_", "linalg.", name).lstrip("_")


def _sentence(name: str, forms: list[list[Parameter]], given: list[str], named: dict[str, str]) -> str:
    public = _public(name)
    texts = dict.fromkeys(", ".join(_shown(parameter) for parameter in form) for form in forms)
    calls = " or ".join(f"{name}({text})" for text in list(texts)[:3])
    expected = f": call {calls}" if public == name and calls != f"{name}({name})" else ""
    known = {parameter.name for each in forms for parameter in each}
    for each in named:
        if each not in known:
            return f"[{public}] there is no parameter '{each}'{expected}"
    troubles = [_trouble(each, given, named) for each in forms]
    found = [each for each in troubles if each]
    if found and (len(found) == len(troubles) or not given and not named):
        return f"[{public}] {_first(found)}{expected}"
    types = ", ".join([*given, *(f"{each}: {type_name}" for each, type_name in named.items())])
    return f"[{public}] the arguments ({types}) hold something that does not fit{expected}"


def _refusal(function: Any, name: str, count: int | None, given: Sequence[Any], named: dict[str, Any]) -> str:
    """The sentence about the first `count` overloads of a function, or about all."""
    forms = [list(each.parameters.values()) for each in overloads(function)[:count]]
    if forms[0] and forms[0][0].name == "self":
        forms = [each[1:] for each in forms]
        given = given[1:]
    if not function.__name__:  # the setter of a property
        forms = [[each.replace(name=name) for each in form] for form in forms]
    types = [type(each).__name__ for each in given]
    return _sentence(name, forms, types, {each: type(value).__name__ for each, value in named.items()})


def explained(function: Any, name: str, text: str, given: Sequence[Any], named: dict[str, Any]) -> str | None:
    """Returns a sentence in place of nanobind's list of overloads, or None for the text of another error."""
    return _refusal(function, name, None, given, named) if _MARK in text else None


def refused(constructed: Any, name: str, given: Sequence[Any], named: dict[str, Any]) -> str:
    """Returns the sentence about arguments of a constructor, whose last overload takes what the others refuse."""
    return _refusal(constructed.__init__, name, -1, (None, *given), named)
