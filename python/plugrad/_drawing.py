"""Pictures of graphs, drawn by Graphviz."""

import shutil
import subprocess
from typing import Any

from . import _plugrad


class Dot:
    """A graph in the language DOT. Notebooks show it as a picture where Graphviz is installed, else as text."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __str__(self) -> str:
        return self.source

    def render(self, format: str = "svg") -> bytes:
        """Returns the picture. Raises RuntimeError where Graphviz is not installed."""
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError("[draw_dot] Graphviz is not installed: no program 'dot' was found")
        return subprocess.run([program, f"-T{format}"], input=self.source.encode(), stdout=subprocess.PIPE,
                              check=True).stdout

    def save(self, path: Any) -> None:
        """Writes the picture in the format of the suffix (.svg, .png, .pdf), or the text for .dot."""
        name = str(path)
        suffix = name.rpartition(".")[2]
        content = self.source.encode() if suffix == "dot" else self.render(suffix)
        with open(name, "wb") as file:
            file.write(content)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/plain": self.source}
        if shutil.which("dot"):
            bundle["image/svg+xml"] = self.render().decode()
        return bundle

    def _repr_svg_(self) -> str | None:
        return self.render().decode() if shutil.which("dot") else None


def draw_dot(root: "_plugrad.Tensor | _plugrad.Value", rankdir: str = "LR", limit: int = 2000) -> Dot:
    """Returns the graph of a Value's or a Tensor's computation.

    rankdir: the direction of the arrows: LR, TB, RL or BT. Reads the values, and so waits for the device. Raises ValueError
    for a graph of more than `limit` nodes.
    """
    if isinstance(root, _plugrad.Value):
        return Dot(root._draw(rankdir, limit))
    return Dot(_plugrad._dot(root, rankdir, limit))
