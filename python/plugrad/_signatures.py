"""Signatures of functions and classes of the compiled module, for inspect.signature and for messages."""

import ast
import inspect
import re
from typing import Any

__all__ = ["of", "overloads", "sign"]

_KINDS = inspect.Parameter


def _parsed(text: str, defaults: tuple[Any, ...] | None) -> inspect.Signature:
    """Parses nanobind's text of a signature, in which \\0 marks the place of the first default. Annotations are text."""
    named = text.replace("def (", "def setter(", 1)
    definition = ast.parse(re.sub(r"\\(\d+)", r"_\1", named) + ": ...").body[0]
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    made = []

    def add(each: ast.arg, kind: Any, default: ast.expr | None) -> None:
        annotation = "" if each.annotation is None else re.sub(r"[\w.]+\.(\w+)", r"\1", ast.unparse(each.annotation))
        value: Any = _KINDS.empty
        if isinstance(default, ast.Name):
            value = (defaults or ())[int(default.id[1:])]
        elif default is not None:
            value = ast.literal_eval(default)
        made.append(inspect.Parameter(each.arg, kind, default=value, annotation=annotation or _KINDS.empty))

    places = [*given.posonlyargs, *given.args]
    values = [None] * (len(places) - len(given.defaults)) + given.defaults
    for i, (each, value) in enumerate(zip(places, values, strict=True)):
        add(each, _KINDS.POSITIONAL_ONLY if i < len(given.posonlyargs) else _KINDS.POSITIONAL_OR_KEYWORD, value)
    if given.vararg:
        add(given.vararg, _KINDS.VAR_POSITIONAL, None)
    for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        add(each, _KINDS.KEYWORD_ONLY, value)
    if given.kwarg:
        add(given.kwarg, _KINDS.VAR_KEYWORD, None)
    return inspect.Signature(made)


def overloads(function: Any) -> list[inspect.Signature]:
    """The signatures of a function of nanobind, one for each overload."""
    return [_parsed(text, defaults) for text, _, defaults in function.__nb_signature__]


def of(function: Any) -> inspect.Signature:
    """The signature of a function's first overload."""
    text, _, defaults = function.__nb_signature__[0]
    return _parsed(text, defaults)


def sign(*classes: Any) -> None:
    """Gives each class the signature of its first constructor."""
    for each in classes:
        whole = of(each.__init__)
        each.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])
