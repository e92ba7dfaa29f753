"""Modules as HTML, for notebooks."""

from html import escape
from typing import Any

_STYLE = "margin-left: 1.5em; font-family: monospace"


def tree(module: Any, name: str = "", opened: bool = True) -> str:
    """Returns a module and its inner modules as foldable HTML. Each module shows the number of its parameters."""
    children = list(module.named_children())
    label = f"({escape(name)}): " if name else ""
    label += escape(f"{type(module).__name__}({module.extra_repr()})") if not children else escape(type(module).__name__)
    count = sum(each.numel() for each in module.parameters())
    frozen = sum(each.numel() for each in module.parameters() if not each.requires_grad)
    label += f" <small>{count:,} parameters" + (f", {frozen:,} frozen" if frozen else "") + "</small>" if count else ""
    if not children:
        return f'<div style="{_STYLE}">{label}</div>'
    inner = "".join(tree(child, key, False) for key, child in children)
    return f'<details style="{_STYLE}"{" open" if opened else ""}><summary>{label}</summary>{inner}</details>'
