"""Tables as HTML, for notebooks."""

from collections.abc import Sequence
from html import escape


def table(lines: Sequence[Sequence[str]], texts: int, below: str = "") -> str:
    """A table whose first line is its head. The first `texts` columns are text, the others numbers. below: one more line."""
    rows = []
    for i, line in enumerate(lines):
        tag = "td" if i else "th"
        rows.append("".join(f'<{tag} style="text-align:{"left" if column < texts else "right"};white-space:pre">'
                            f"{escape(text)}</{tag}>" for column, text in enumerate(line)))
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + f"</table>{escape(below)}"
