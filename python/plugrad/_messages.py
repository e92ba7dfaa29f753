"""Messages for arguments that do not fit a function: they name the argument, the expected type and the function's calls."""

import re
from typing import NamedTuple

_MARK = "(): incompatible function arguments."
_NUMBERS = ("float", "int", "uint", "bool", "half")
# For each member of an annotation: the accepted types, as beginnings of their names, and the words for it in a sentence.
_ACCEPTED: dict[str, tuple[tuple[str, ...], str]] = {
    "Tensor": (("Tensor",), "a Tensor"), "float": (_NUMBERS, "a number"), "int": (("int", "uint", "bool"), "a whole number"),
    "bool": (("bool",), "True or False"), "str": (("str",), "a str"), "None": (("NoneType",), "None"),
    "Device": (("Device",), "a device"), "DType": (("DType",), "a dtype"), "dict": (("dict",), "a dict"),
    "tuple": (("tuple", "Size"), "a tuple"), "Callable": (("function", "builtin", "method", "type", "nb_"), "a function")}
_ALIASES = {"size": "shape", "dims": "dim"}  # forms of a call are shown once if they differ in these names alone
_SEQUENCES = ("list", "tuple", "Size", "range", "dict_values", "generator")
_MEMBERS = {"int": "whole numbers", "float": "numbers", "Tensor": "Tensors"}


class _Parameter(NamedTuple):
    name: str
    annotation: str
    default: str | None
    by_name: bool

    @property
    def shown(self) -> str:
        return self.name if self.default is None else f"{self.name}={self.default}"

    @property
    def called(self) -> str:
        number = re.fullmatch(r"arg(\d*)", self.name)
        return f"argument {int(number[1] or 0) + 1}" if number else f"'{self.name}'"


class _Trouble(NamedTuple):
    place: int  # how many arguments fit
    text: str = ""
    parameter: _Parameter | None = None  # the parameter that refuses its argument
    given: str = ""                      # the type of that argument


def _split(text: str, separator: str = ",") -> list[str]:
    """Splits at separators outside brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        quoted ^= c == "'"
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0 and not quoted:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _types(text: str) -> str:
    return re.sub(r"[\w.]+\.(\w+)", r"\1", text)


def _inside(signature: str) -> str:
    """The parameters of `name(x: type, y: type = default) -> type`."""
    start, depth = signature.index("("), 0
    for i, c in enumerate(signature[start:], start):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            return signature[start + 1:i]
    return signature[start + 1:]


def _parameters(signature: str) -> list[_Parameter]:
    found, by_name = [], False
    for part in _split(_inside(signature)):
        name, _, rest = part.partition(":")
        if name.strip() in ("self", "/", "*"):
            by_name |= name.strip() == "*"
            continue
        annotation, has_default, default = rest.rpartition(" = ")
        found.append(_Parameter(name.strip(), _types((annotation if has_default else rest).strip()),
                                default if has_default else None, by_name))
        by_name |= part.startswith("*")
    return found


def _accepts(annotation: str, given: str) -> bool:
    """Whether a value of this type may fit. Annotations unknown to this module accept everything."""
    members = _split(annotation, "|")
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
    for member in _split(annotation, "|"):
        base, _, inner = member.partition("[")
        if base in ("Sequence", "Iterable", "list"):
            words.append(f"a list of {_MEMBERS.get(inner.rstrip(']'), 'them')}")
        elif base in _ACCEPTED:
            words.append(_ACCEPTED[base][1])
    *first, last = dict.fromkeys(words) or [""]
    return f"{', '.join(first)} or {last}" if first else last


def _article(given: str) -> str:
    return "None" if given == "NoneType" else f"{'an' if given[0] in 'aeiou' or given == 'ndarray' else 'a'} {given}"


def _mismatch(parameter: _Parameter, given: str) -> str:
    wanted = _expected(parameter.annotation)
    hint = ", which plugrad.tensor() makes" if wanted == "a Tensor" and \
        given in ("list", "tuple", "ndarray", "float", "int") else ""
    return f"{parameter.called} is {_article(given)}" + (f", expected {wanted}{hint}" if wanted else "")


def _trouble(parameters: list[_Parameter], given: list[str], named: dict[str, str]) -> _Trouble | None:
    """Returns the first argument refused by the overload, or None if this module finds no refused argument."""
    place = 0
    rest = list(given)
    for parameter in parameters:
        if parameter.name.startswith("*"):
            for each in rest:
                if not _accepts(parameter.annotation, each):
                    return _Trouble(place, "", parameter._replace(name=parameter.name.lstrip("*")), each)
            rest = []
            continue
        value = named.get(parameter.name) or (rest.pop(0) if rest and not parameter.by_name else None)
        if value is None and parameter.default is None:
            return _Trouble(place, f"{parameter.called} is missing")
        if value is not None and not _accepts(parameter.annotation, value):
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
    same = [each.parameter.annotation for each in troubles
            if each.parameter and each.place == best.place and each.parameter.name == best.parameter.name]
    return _mismatch(best.parameter._replace(annotation=" | ".join(same)), best.given)


def _public(name: str) -> str:
    """Returns the public name of a wrapped function."""
    return "draw_dot" if name == "_dot" else re.sub(r"^_linalg_", "linalg.", name).lstrip("_")


def _sentence(name: str, overloads: list[list[_Parameter]], given: list[str], named: dict[str, str]) -> str:
    public = _public(name)
    forms: dict[tuple[str, ...], str] = {}
    for overload in overloads:
        forms.setdefault(tuple(_ALIASES.get(parameter.name, parameter.name) for parameter in overload),
                         ", ".join(parameter.shown for parameter in overload))
    calls = " or ".join(f"{name}({form})" for form in list(forms.values())[:3])
    expected = f": call {calls}" if public == name and calls != f"{name}({name})" else ""
    known = {parameter.name for each in overloads for parameter in each}
    for each in named:
        if each not in known:
            return f"[{public}] there is no parameter '{each}'{expected}"
    troubles = [_trouble(each, given, named) for each in overloads]
    found = [each for each in troubles if each]
    if found and (len(found) == len(troubles) or not given and not named):
        return f"[{public}] {_first(found)}{expected}"
    types = ", ".join([*given, *(f"{each}: {type_name}" for each, type_name in named.items())])
    return f"[{public}] the arguments ({types}) hold something that does not fit{expected}"


def shorter(text: str) -> str | None:
    """Returns a sentence in place of nanobind's list of overloads, or None for a text without such a list."""
    if _MARK not in text:
        return None
    name = text.partition(_MARK)[0]
    signatures = re.findall(r"^    \d+\. (.*)$", text, re.MULTILINE)
    positional, _, by_name = text.rpartition("Invoked with types: ")[2].partition("kwargs = {")
    given = [_types(part) for part in _split(positional.rstrip(", "))]
    named = dict(_types(part).split(": ", 1) for part in _split(by_name.strip().removesuffix("}")))
    if any(re.match(r"\w+\(self\b", each) for each in signatures):
        own = given.pop(0) if given else name
        name = own if name == "__init__" else name
    return _sentence(name, [_parameters(each) for each in signatures], given, named)
