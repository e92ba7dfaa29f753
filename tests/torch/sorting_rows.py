"""Order, distinct elements and places: see write_golden.py. PyTorch does not define some indices of equal elements; such
rows have no ties, or only ties whose indices PyTorch defines."""
import torch
from write_golden import f64

NAN, INF = float("nan"), float("inf")
MIXED = f64([[3., NAN, -1., INF, 0., -INF], [2., 5., NAN, -4., NAN, 1.], [9., 8., 7., 6., 5., 4.]])
TIES = torch.tensor([[2, 1, 2, 0, 1, 1], [5, 5, 3, 3, 3, 5], [0, 1, 2, 3, 4, 5]])
TIED = TIES.to(torch.float64)
EDGES = f64([-1., 0., 0.5, 2.])


def quantile(name, q, **named):
    return name, lambda x: torch.quantile(x, q, **named), [(3, 6)]


ROWS = [
    ("sort", lambda x: torch.sort(x), [(3, 6)]),
    ("sort descending", lambda x: torch.sort(x, 0, True), [(3, 2, 4)]),
    ("sort stable", lambda x: torch.sort(x, dim=1, stable=True), [TIES]),
    ("sort stable descending", lambda x: torch.sort(x, dim=1, stable=True, descending=True), [TIED]),
    ("sort specials", lambda x: torch.sort(x, dim=1, stable=True), [MIXED]),
    ("argsort", lambda x: torch.argsort(x, dim=1, stable=True, descending=True), [MIXED]),
    ("sort bools", lambda x: torch.sort(x, stable=True), [TIES > 1]),
    ("sort empty", lambda x: torch.sort(x, 1), [(2, 0)]),
    ("sort scalar", lambda x: torch.sort(x), [()]),
    ("msort", torch.msort, [(3, 2)]),
    ("topk", lambda x: torch.topk(x, 2), [(3, 6)]),
    ("topk smallest", lambda x: torch.topk(x, 2, 0, False), [(3, 6)]),
    ("topk scalar", lambda x: torch.topk(x, 1), [()]),
    ("kthvalue", lambda x: torch.kthvalue(x, 3), [(3, 6)]),
    ("kthvalue kept", lambda x: torch.kthvalue(x, 2, 0, True), [(3, 2, 2)]),
    ("max", lambda x: torch.max(x, 1), [MIXED]),
    ("max ties", lambda x: torch.max(x, 1), [TIED]),
    ("min kept", lambda x: torch.min(x, 0, True), [TIED]),
    ("amax", lambda x: torch.amax(x, (0, 1)), [TIED]),
    ("amin", lambda x: torch.amin(x, 1, True), [TIED]),
    ("aminmax", lambda x: torch.aminmax(x, dim=1), [(3, 6)]),
    ("median", torch.median, [TIED]),
    ("median odd", torch.median, [(3, 3)]),
    ("median nan", torch.median, [MIXED]),
    ("median line", lambda x: torch.median(x, 1), [(3, 6)]),
    ("median kept", lambda x: torch.median(x, 0, True), [(3, 6)]),
    ("nanmedian", torch.nanmedian, [MIXED]),
    ("nanmedian line", lambda x: torch.nanmedian(x, 1), [f64([[3., NAN, -1.], [NAN, NAN, 5.]])]),
    ("mode", lambda x: torch.mode(x, 1), [TIED]),
    ("mode kept", lambda x: torch.mode(x, 1, True), [TIES]),
    ("cummax", lambda x: torch.cummax(x, 1), [MIXED]),
    ("cummax ties", lambda x: torch.cummax(x, 1), [TIED]),
    ("cummin", lambda x: torch.cummin(x, 0), [MIXED]),
    ("cummin integers", lambda x: torch.cummin(x, 1), [TIES]),
    ("diff", torch.diff, [(3, 6)]),
    ("diff twice", lambda x, y: torch.diff(x, 2, 0, y), [(3, 2), (1, 2)]),
    ("diff ends", lambda x, y: torch.diff(x, prepend=y, append=y), [(3, 2), (3, 1)]),
    ("diff bools", torch.diff, [TIES > 1]),
    quantile("quantile", 0.3), quantile("quantile line", 0.3, dim=1), quantile("quantile kept", 0.75, dim=0, keepdim=True),
    *(quantile(f"quantile {how}", 0.3, dim=1, interpolation=how) for how in ("lower", "higher", "midpoint", "nearest")),
    ("quantile many", lambda x: torch.quantile(x, f64([0., 0.5, 0.9]), dim=0), [(3, 6)]),
    ("quantile nan", lambda x: torch.quantile(x, 0.25, dim=1), [f64([[3., NAN, -1.], [2., 5., 4.]])]),
    ("nanquantile", lambda x: torch.nanquantile(x, 0.5, dim=1), [f64([[3., NAN, -1.], [NAN, NAN, 5.]])]),
    ("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), [TIES]),
    ("unique rows", lambda x: torch.unique(x, return_inverse=True, return_counts=True, dim=0), [TIES[:, :3] > 1]),
    ("unique columns", lambda x: torch.unique(x, dim=1), [TIES]),
    ("unique_consecutive", lambda x: torch.unique_consecutive(x, True, True), [TIES]),
    ("unique_consecutive columns", lambda x: torch.unique_consecutive(x, True, True, 1), [TIES > 1]),
    ("isin", torch.isin, [TIES, torch.tensor([5, 1, 7])]),
    ("isin invert", lambda x, y: torch.isin(x, y, invert=True), [MIXED.clone(), f64([NAN, INF, 5., 2.])]),
    ("searchsorted", torch.searchsorted, [EDGES, TIED]),
    ("searchsorted right", lambda x, y: torch.searchsorted(x, y, right=True), [EDGES, MIXED]),
    ("searchsorted lines", torch.searchsorted, [torch.sort(TIES, 1)[0], TIES]),
    ("bucketize", lambda x, y: torch.bucketize(x, y, out_int32=True), [TIED, EDGES]),
    ("bucketize right", lambda x, y: torch.bucketize(x, y, right=True), [TIED, EDGES]),
    ("histc", lambda x: torch.histc(x.detach(), 7), [(3, 6)]),
    ("histc ends", lambda x: torch.histc(x.detach(), 4, -1, 3), [MIXED]),
    ("bincount", lambda x: torch.bincount(x, minlength=8), [TIES.reshape(-1)]),
    ("bincount weights", lambda x, w: torch.bincount(x, w.detach()), [TIES[0], (6,)])]
