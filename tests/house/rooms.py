"""Checks rooms of the core beyond includes: no room uses names of higher rooms, and each room implements its own headers."""
import re
from pathlib import PurePosixPath

# Each room may use the rooms before it; io is on the same level as nn, ops do not use steps.
ROOMS = ["runtime", "tensor", "autograd", "steps", "ops", "func", "optimize", "nn", "distributed", "training"]

# A name and the first room that may use it, or None if no room of the core may.
NAMES = {
    "Tensor": "tensor", "Node": "autograd", "Rule": "autograd", "Payload": "autograd", "kRetaining": "autograd",
    "Value": "nn", "Neuron": "nn", "Layer": "nn", "LayerMatrix": "nn", "MLP": "nn", "Optimizer": "nn",
    "face": "nn", "PyObject": None, "Python": None, "python": None,
}
# String literals that no room may contain: the core learns the names of devices from plugins.
DEVICES = {'"cpu"', '"cuda"', '"reference"', '"sim"'}

# Exceptions: a file, a name that it may use, and why.
ALLOWED = {
    ("core/tensor/impl.hpp", "Node"): "a tensor holds its node, whose type is incomplete there",
    ("core/tensor/dlpack.cpp", '"cpu"'): "a name of the protocol",
    ("core/tensor/dlpack.cpp", '"cuda"'): "a name of the protocol",
}
# Exceptions: a header, a function of it that a higher room implements, and why.
IMPLEMENTED_ABOVE = {
    ("core/tensor/impl.hpp", "destroy"): "destroys a Node, which is incomplete there",
    ("core/tensor/impl.hpp", "drop_frozen"): "destroys a Node, which is incomplete there",
}

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
START = re.compile(r"^(?!return\b|using\b|else\b|typedef\b|#)[A-Za-z_][\w:<>,&* \t]*[\s*&](\w+)\(", re.MULTILINE)


def room_of(path):
    """The room of the core that contains a file, or None."""
    parts = PurePosixPath(path).parts
    if parts[:1] != ("core",) or len(parts) < 3:
        return None
    if parts[1] != "include":
        return parts[1]
    return parts[3] if len(parts) > 4 else None


def without(text, strings):
    """The text with blanks for comments, and for string literals as well where `strings` is set."""
    def blank(match):
        keep = match.group(0).startswith('"') and not strings
        return match.group(0) if keep else re.sub(r"[^\n]", " ", match.group(0))
    return SKIPPED.sub(blank, text)


def names_from_above(path, text):
    """Yields a line for each name in the file that the file's room may not use."""
    room = room_of(path)
    if room not in ROOMS:
        return
    code, literals = without(text, True), without(text, False)
    forbidden = {name for name, first in NAMES.items() if first is None or ROOMS.index(first) > ROOMS.index(room)}
    found = [(m.start(), m.group(0)) for m in re.finditer(r"\b[A-Za-z_]\w*\b", code) if m.group(0) in forbidden]
    found += [(m.start(), m.group(0)) for m in re.finditer(r'"[^"\n]*"', literals) if m.group(0) in DEVICES]
    for at, name in sorted(found):
        if (path, name) not in ALLOWED:
            yield f"{path}:{text.count(chr(10), 0, at) + 1}: {name} is a name from above the room {room}"


def closing(code, opening):
    """The index of the parenthesis that closes the parenthesis at `opening`."""
    depth = 0
    for i in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if not depth:
            return i
    return len(code)


def parameter_types(text):
    """The types of a list of parameters, without names and defaults."""
    parts, depth = [""], 0
    for c in text:
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(c, 0)
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    types = [re.sub(r"\s+", " ", part.split("=")[0]).strip() for part in parts]
    return tuple(re.sub(r"(?<=[\w&*>])\s*\b\w+$", "", t) if re.search(r"[\s&*]\w+$", t) else t for t in types)


def functions(text):
    """Yields free functions at the left margin: (name, types of parameters), whether it is a definition, and its index."""
    code = re.sub(r"(?m)^\[\[.*?\]\] ", lambda m: "_" * (len(m.group(0)) - 1) + " ", without(text, True))
    for match in START.finditer(code):
        end = closing(code, match.end() - 1)
        rest = re.match(r"\s*(?:const|noexcept|\s)*([;{])", code[end + 1:])
        if rest:
            yield (match.group(1), parameter_types(code[match.end():end])), rest.group(1) == "{", match.start()


def implemented_above(texts):
    """Yields a line for each function that a header of one room declares and a source of another room defines."""
    declared = {}
    for path, text in texts.items():
        if room_of(path) and path.endswith(".hpp"):
            for key, defined, _ in functions(text):
                if not defined and (path, key[0]) not in IMPLEMENTED_ABOVE:
                    declared.setdefault(key, []).append(path)
    for path, text in texts.items():
        if not room_of(path) or not path.endswith(".cpp"):
            continue
        for key, defined, at in functions(text):
            headers = declared.get(key, []) if defined else []
            if headers and room_of(path) not in {room_of(header) for header in headers}:
                line = text.count("\n", 0, at) + 1
                yield f"{path}:{line}: {key[0]} is declared in {headers[0]}, a header of another room"


def violations(texts):
    """All violations, given the texts of the repository's files by path."""
    found = []
    for path, text in texts.items():
        found += names_from_above(path, text)
    return found + list(implemented_above(texts))
