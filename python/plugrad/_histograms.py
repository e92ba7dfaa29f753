"""Counts of points in boxes."""

from collections.abc import Sequence
from typing import NamedTuple

from . import _plugrad
from ._plugrad import Tensor


class HistogramDD(NamedTuple):
    hist: Tensor
    bin_edges: list[Tensor]


def _edges(points: Tensor, bins: int, ends: Sequence[float] | None) -> Tensor:
    low, high = ends or ((points.amin().item(), points.amax().item()) if points.numel() else (0.0, 1.0))
    if not low <= high:
        raise ValueError(f"[histogramdd] the ends are {low} and {high}: give them in ascending order")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _plugrad.linspace(low, high, bins + 1, dtype=points.dtype, device=points.device)


def _places(points: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the part of each point, and whether the point is in any part. The last part contains its upper edge."""
    inside = _plugrad.logical_and(points >= edges[0], points <= edges[-1])
    place = _plugrad.bucketize(points, edges, right=True) - (points == edges[-1]).to("i64") - 1
    return _plugrad.where(inside, place, 0), inside


def histogramdd(input: Tensor, bins: int | Sequence[int] | Sequence[Tensor], *, range: Sequence[float] | None = None,
                weight: Tensor | None = None, density: bool = False) -> HistogramDD:
    """The number of points, or the sum of their weights, in each box of a grid; input (.., d) holds points of d coordinates.
    bins, range and density are as in histogram, along each axis: bins is a number for all, numbers or edges, and range
    holds two numbers for each."""
    points, size = input.detach().reshape(-1, input.shape[-1]), input.shape[-1]
    parts: list[int | Tensor] = [bins] * size if isinstance(bins, int) else list(bins)
    if len(parts) != size or (range is not None and len(range) != 2 * size):
        raise ValueError(f"[histogramdd] input has shape {input.shape}: give bins, and two ends of range, for each of its "
                         f"{size} coordinates")
    edges = []
    index = _plugrad.zeros(points.shape[:1], dtype="i64", device=input.device)
    inside = _plugrad.ones_like(index, dtype="bool")
    for i, part in enumerate(parts):
        column = points[:, i]
        edge = part if isinstance(part, Tensor) else _edges(column, part, range and range[2 * i:2 * i + 2])
        place, here = _places(column, edge)
        edges.append(edge)
        index = index * (edge.shape[0] - 1) + place
        inside = _plugrad.logical_and(inside, here)
    shape = [edge.shape[0] - 1 for edge in edges]
    counts = _plugrad.ones_like(points[:, 0]) if weight is None else weight.detach().reshape(-1)
    flat = _plugrad.zeros(shape, dtype=input.dtype, device=input.device).reshape(-1)
    hist = _plugrad.scatter_add(flat, 0, index, _plugrad.where(inside, counts, 0)).reshape(shape)
    return HistogramDD(_as_density(hist, edges) if density else hist, edges)


def _as_density(hist: Tensor, edges: list[Tensor]) -> Tensor:
    result = hist / hist.sum()
    for i, edge in enumerate(edges):
        result = result / edge.diff().reshape([-1 if axis == i else 1 for axis in range(len(edges))])
    return result
