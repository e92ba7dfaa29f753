"""Completes the stub that nanobind generates. The changes to every function are:

- Inside a class whose methods hide Python's float or bool, and in a module with a function slice, annotations name
  builtins.float and so on.
- tuple, dict, list and Callable get type parameters, and arguments without a type are Any.
- A function gets an overload with PyTorch's `size` for `shape` and `dim` for `dims` if functions.toml permits the name in
  calls.
- A function with `dim` gets an overload with NumPy's `axis` and `keepdims`. In this overload a function that returns values
  and indices returns the values alone.

stub.py ROOT RAW OUT
"""
import ast
import builtins
import copy
import re
import sys
from pathlib import Path

import generate

BARE = {"tuple": "tuple[Any, ...]", "dict": "dict[str, Any]", "Callable": "Callable[..., Any]", "list": "list[Any]"}
NUMPY_NAMES = {ours: generate.TABLE["accepts"][ours][0] for ours in ("dim", "keepdim")}
TORCH_NAMES = {ours: generate.TABLE["accepts"][ours][-1] for ours in ("shape", "dims")}
HEAD = "import builtins\n"


def expression(text):
    return ast.parse(text, mode="eval").body


def defined(body):
    """Returns the names of the functions, classes and assigned variables of a class or module."""
    names = set()
    for each in body:
        if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            names.add(each.name)
        elif isinstance(each, ast.Assign):
            names.update(target.id for target in each.targets if isinstance(target, ast.Name))
    return names


class Annotation(ast.NodeTransformer):
    def __init__(self, hidden):
        self.hidden = hidden

    def visit_Name(self, node):
        if node.id in BARE:
            return expression(BARE[node.id])
        if node.id in self.hidden and isinstance(getattr(builtins, node.id, None), type):
            return expression(f"builtins.{node.id}")
        return node

    def visit_Subscript(self, node):
        if not isinstance(node.value, ast.Name):
            node.value = self.visit(node.value)
        node.slice = self.visit(node.slice)
        return node

    def visit_BinOp(self, node):
        """Returns a union with each member once. nanobind writes `X | None | None` for an optional parameter whose type
        includes None."""
        self.generic_visit(node)
        members, rest = [], node
        while isinstance(rest, ast.BinOp):
            members.insert(0, rest.right)
            rest = rest.left
        texts = dict.fromkeys(ast.unparse(each) for each in [rest, *members])
        return expression(" | ".join(texts))


def parameters(function):
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def complete(function, hidden, in_class):
    annotate = Annotation(hidden).visit
    every = parameters(function) + [each for each in (function.args.vararg, function.args.kwarg) if each]
    for each in every:
        if each.annotation is not None:
            each.annotation = annotate(each.annotation)
        elif not (in_class and each is every[0]):
            each.annotation = expression("Tensor" if each.arg == "tensors" else "Any")
    if function.returns is not None:
        function.returns = annotate(function.returns)


def by_axis(function):
    """Returns the overload with NumPy's names. `axis` and all later parameters are passed by name."""
    made = copy.deepcopy(function)
    given = made.args
    names = [each.arg for each in given.args]
    at = names.index("dim") if "dim" in names else len(names)
    plain = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    given.kwonlyargs = given.args[at:] + given.kwonlyargs
    given.kw_defaults = plain[at:] + given.kw_defaults
    given.args, given.defaults = given.args[:at], [each for each in plain[:at] if each is not None]
    for i, each in enumerate(given.kwonlyargs):
        if each.arg == "dim":
            each.annotation = expression(ast.unparse(each.annotation).removesuffix(" | None") + " | None")
            given.kw_defaults[i] = None
        each.arg = NUMPY_NAMES.get(each.arg, each.arg)
    if ast.unparse(made.returns) == "ValuesIndices":
        made.returns = expression("Tensor")
    made.body = [ast.Expr(expression("..."))]
    return made


def by_torch_name(function, accepted):
    """Returns a list with the overload with PyTorch's name of a parameter; empty if calls may not use that name."""
    made = copy.deepcopy(function)
    renamed = [each for each in parameters(made) if accepted.get(TORCH_NAMES.get(each.arg)) == each.arg]
    for each in renamed:
        each.arg = TORCH_NAMES[each.arg]
    made.body = [ast.Expr(expression("..."))]
    return [made] if renamed else []


def with_overloads(group, accepted):
    """Returns the definitions of one name, and the overloads with further names of parameters."""
    twins = [each for function in group for each in [function, *by_torch_name(function, accepted)]]
    names = {each.arg for function in twins for each in parameters(function)}
    more = [by_axis(each) for each in twins if "axis" not in names and any(given.arg == "dim" for given in parameters(each))]
    if not more and len(twins) == len(group):
        return group
    every = list({ast.unparse(each.args): each for each in [*twins, *more]}.values())
    for each in every:
        each.decorator_list = [expression("overload")] if len(every) > 1 else []
    return every


def completed(body, accepted, hidden=frozenset(), in_class=False):
    hidden = hidden | defined(body)
    out, group = [], []
    for each in [*body, None]:
        if group and not (isinstance(each, ast.FunctionDef) and each.name == group[0].name):
            out.extend(with_overloads(group, accepted.get(group[0].name, {})))
            group = []
        if isinstance(each, ast.FunctionDef):
            complete(each, hidden, in_class)
            group.append(each)
        elif isinstance(each, ast.ClassDef):
            each.body = completed(each.body, accepted, hidden, True)
            out.append(each)
        elif each is not None:
            out.append(each)
    return out


def main(root, raw, out):
    functions = generate.read_headers(Path(root) / "core/include/plugrad/ops").values()
    accepted = {}
    for function in functions:
        accepted.setdefault(function.python, {}).update(generate.accepted(function))
    module = ast.parse(Path(raw).read_text(encoding="utf-8"))
    start = 1 if ast.get_docstring(module) else 0
    module.body = completed(module.body, accepted)
    module.body[start:start] = ast.parse(HEAD).body
    lines = ast.unparse(ast.fix_missing_locations(module)).splitlines()
    # object's comparisons return a bool; a tensor's compare element by element.
    lines = [line + "  # type: ignore[override]" if re.match(r"\s+def __(eq|ne)__\(.*-> Tensor:$", line) else line
             for line in lines]
    Path(out).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
