"""Short messages for arguments that do not fit a function."""

import re

_MARK = "(): incompatible function arguments."


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, start, quoted = [], 0, 0, False
    for i, c in enumerate(text):
        quoted ^= c == "'"
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0 and not quoted:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in [*parts, text[start:]] if part.strip()]


def _parameters(signature: str) -> list[str]:
    """The parameters of `name(x: type, y: type = default) -> type`, without types and self."""
    depth, inside = 0, ""
    for c in signature[signature.index("("):]:
        depth += (c in "([{") - (c in ")]}")
        inside += c
        if depth == 0:
            break
    found = []
    for part in _split(inside[1:-1]):
        name, _, rest = part.partition(":")
        _, has_default, default = rest.rpartition(" = ")
        found.append(f"{name.strip()}={default}" if has_default else name.strip())
    return [part for part in found if part not in ("self", "/", "*")]


def _types(text: str) -> str:
    return re.sub(r"[\w.]+\.(\w+)", r"\1", text)


def shorter(text: str) -> str | None:
    """Returns the text without the list of overloads, or None for a text without one."""
    if _MARK not in text:
        return None
    name = text.partition(_MARK)[0]
    signatures = re.findall(r"^    \d+\. (.*)$", text, re.MULTILINE)
    positional, _, named = text.rpartition("Invoked with types: ")[2].partition("kwargs = {")
    given = [_types(part) for part in _split(positional.rstrip(", "))]
    given_names = [_types(part) for part in _split(named.strip().removesuffix("}"))]
    is_method = any(re.match(r"\w+\(self\b", each) for each in signatures)
    if is_method:
        own = given.pop(0) if given else name
        name = own if name == "__init__" else name
    lists = list(dict.fromkeys(", ".join(_parameters(each)) for each in signatures))
    expected = " or ".join(f"{name}({each})" for each in lists[:3])
    known = {re.split(r"[=*]", part.lstrip("*"))[0] for each in signatures for part in _parameters(each)}
    for each in given_names:
        if each.partition(":")[0] not in known:
            return f"[{name}] there is no parameter '{each.partition(':')[0]}': expected {expected}"
    return f"[{name}] these arguments do not fit: ({', '.join(given + given_names)}); expected {expected}"
