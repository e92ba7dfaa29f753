"""Signatures of classes of the compiled module, for inspect.signature."""

import ast
import inspect
import re
from typing import Any

__all__ = ["sign"]


def _signature(text: str, defaults: tuple[Any, ...]) -> inspect.Signature:
    """Parses nanobind's text of a signature, in which \\0 marks the place of the first default."""
    values: dict[str, Any] = {f"_{i}": value for i, value in enumerate(defaults or ())}
    parsed = ast.parse(re.sub(r"\\(\d+)", r"_\1", re.sub(r": (?:[^=,()\[\]]|\[[^=]*?\])+(?=[,)=])", "", text)) + ": ...")
    arguments = parsed.body[0].args  # type: ignore[attr-defined]
    given = [None] * (len(arguments.args) - len(arguments.defaults)) + arguments.defaults
    kinds = [(inspect.Parameter.POSITIONAL_OR_KEYWORD, arguments.args, given),
             (inspect.Parameter.KEYWORD_ONLY, arguments.kwonlyargs, arguments.kw_defaults)]
    return inspect.Signature([
        inspect.Parameter(each.arg, kind, default=inspect.Parameter.empty if value is None else values[value.id])
        for kind, named, chosen in kinds for each, value in zip(named, chosen, strict=True) if each.arg != "self"])


def sign(*classes: Any) -> None:
    """Gives each class the signature of its first constructor."""
    for each in classes:
        text, _, defaults = each.__init__.__nb_signature__[0]
        each.__signature__ = _signature(text, defaults)
