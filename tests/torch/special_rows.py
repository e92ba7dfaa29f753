"""Special functions, and PyTorch's functions with tensors of rank 0 and further parameters: see write_golden.py."""
import torch
from torch import special
from write_golden import f64, spread

INF, NAN = float("inf"), float("nan")
WIDE = spread((3, 4), -6, 6)
HALVES = f64([-3.5, -2.25, -1.5, -0.5, 0.25, 0.5, 1., 1.5, 2., 3., 7.75, 8., 9., 40.])
ENDS = f64([NAN, INF, -INF, 0., -1., -2.])
TAILS = f64([-30., -12., -6., -3., -1., -0.5, 0., 0.5, 0.75, 1., 2., 5., 9., 20.])
UNIT = f64([-0.999999, -0.9, -0.5, -0.01, 0., 0.1, 0.45, 0.55, 0.95, 0.9999])
PARTS = f64([1e-12, 1e-3, 0.1, 0.4, 0.5, 0.6, 0.9, 0.999])
DIAGONAL = f64([[1., 0., 2.], [0., 3., 0.]])
SOME = torch.tensor([[0, 1, 1], [1, 0, 0]], dtype=torch.bool)
EDGES = f64([-2., -0.5, 0.25, 1., 1.5])

FUNCTIONS = {
    "erfc": (torch.erfc, TAILS), "erfcx": (special.erfcx, TAILS[3:]), "erfinv": (torch.erfinv, UNIT),
    "ndtr": (special.ndtr, TAILS), "log_ndtr": (special.log_ndtr, TAILS), "ndtri": (special.ndtri, PARTS),
    "lgamma": (torch.lgamma, HALVES), "digamma": (torch.digamma, HALVES), "sinc": (torch.sinc, HALVES),
    "i0": (special.i0, WIDE), "i0e": (special.i0e, HALVES), "i1": (special.i1, WIDE), "i1e": (special.i1e, HALVES),
    "entr": (special.entr, PARTS), "mvlgamma": (lambda x: torch.mvlgamma(x, 3), HALVES[7:]),
    **{f"polygamma {n}": (lambda x, n=n: torch.polygamma(n, x), HALVES[5:]) for n in (0, 1, 2, 4)}}
OF_ENDS = {"erfc": torch.erfc, "erfinv": torch.erfinv, "ndtr": special.ndtr, "ndtri": special.ndtri, "lgamma": torch.lgamma,
           "digamma": torch.digamma, "i0e": special.i0e, "i1e": special.i1e, "entr": special.entr, "sinc": torch.sinc}
SCALAR = {
    "sum": lambda x: x.sum(0, keepdim=True), "amax": lambda x: x.amax(-1), "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(-1), "prod": lambda x: x.prod(0), "var": lambda x: x.var(0, correction=0),
    "logsumexp": lambda x: x.logsumexp(0), "norm": lambda x: x.norm(2, 0), "quantile": lambda x: x.quantile(0.5, dim=-1),
    "argmax": lambda x: x.argmax(0), "all": lambda x: x.all(-1),
    "normalize": lambda x: torch.nn.functional.normalize(x, dim=0),
    "transpose": lambda x: x.transpose(0, -1), "unfold": lambda x: x.unfold(0, 1, 1)}

ROWS = [
    *((name, function, [x]) for name, (function, x) in FUNCTIONS.items()),
    *((f"{name} ends", lambda x, f=f: f(x.detach()), [ENDS]) for name, f in OF_ENDS.items()),
    *((f"scalar {name}", f, [f64(0.75)]) for name, f in SCALAR.items()),
    ("scalar gather", lambda x: x.gather(0, torch.tensor([0])), [f64(0.75)]),
    ("scalar scatter_add", lambda x, y: x.scatter_add(0, torch.tensor(0), y), [f64(0.75), f64(2.)]),
    ("xlog1py", special.xlog1py, [f64([0., 0., 2., -1.]), f64([-1., 3., 0.5, 4.])]),
    ("addbmm", lambda x, a, b: torch.addbmm(x, a, b, beta=0.5, alpha=2), [(4,), (3, 2, 3), (3, 3, 4)]),
    ("addr", lambda x, a, b: torch.addr(x, a, b, beta=0.5, alpha=2), [(2, 3), (2,), (3,)]),
    ("rsub", lambda x, y: torch.rsub(x, y, alpha=2), [(2, 3), (3,)]),
    ("ldexp", torch.ldexp, [(2, 3), f64([1., -2., 3.])]),
    ("clamp_min", lambda x: torch.clamp_min(x, 0.25), [f64([-1., 0.25, 2.])]),
    ("clamp_min tensor", torch.clamp_min, [(2, 3), (3,)]),
    ("clamp_max", lambda x: torch.clamp_max(x, 0.25), [f64([-1., 0.25, 2.])]),
    ("clamp_max tensor", torch.clamp_max, [(2, 3), (3,)]),
    ("angle", torch.angle, [f64([-2., -0., 0., 3., NAN, INF, -INF])]),
    ("diagflat", lambda x: torch.diagflat(x, -1), [(2, 2)]),
    ("cumulative_trapezoid", lambda y: torch.cumulative_trapezoid(y, dx=0.5, dim=0), [(4, 2)]),
    ("cumulative_trapezoid points", torch.cumulative_trapezoid, [(2, 4), f64([0., 1., 3., 3.5])]),
    *((f"index_reduce {r}", lambda x, s, r=r: torch.index_reduce(x, 1, torch.tensor([2, 0, 2]), s, r), [(2, 4), (2, 3)])
      for r in ("prod", "mean", "amax", "amin")),
    ("index_reduce without", lambda x, s: torch.index_reduce(x, 0, torch.tensor([1, 1]), s, "mean", include_self=False),
     [(2, 3), (2, 3)]),
    ("nonzero_static", lambda x: torch.nonzero_static(x, size=5, fill_value=-7), [DIAGONAL]),
    ("nonzero_static few", lambda x: torch.nonzero_static(x, size=2), [DIAGONAL]),
    ("round", lambda x: torch.round(x, decimals=2), [(2, 3)]),
    ("round tens", lambda x: torch.round(x * 100, decimals=-1), [(2, 3)]),
    ("masked_fill tensor", lambda x, v: x.masked_fill(SOME, v), [(2, 3), f64(5.)]),
    ("tensordot ones", lambda a, b: torch.tensordot(a, b, dims=([0, 1], [1, 0])), [(1, 3, 2), (3, 4)]),
    ("logit eps", lambda x: torch.logit(x, 0.6), [f64([0.3, 0.5, 0.7])]),
    ("diff none", lambda x: torch.diff(x, n=0, prepend=x), [(2, 3)]),
    ("cat with no elements", lambda x, y: torch.cat([x, y], 1), [(0,), (2, 3)]),
    ("norm 0", lambda x: x.norm(0, 1), [DIAGONAL]),
    ("prod none", lambda x: x.prod(0), [torch.zeros(0, 2, dtype=torch.float64)]),
    ("histogram", lambda x: torch.histogram(x.detach(), 4), [(3, 4)]),
    ("histogram range", lambda x, w: torch.histogram(x.detach(), 3, range=(-1., 1.5), weight=w.detach(), density=True),
     [(3, 4), (3, 4)]),
    ("histogram edges", lambda x, e: torch.histogram(x.detach(), e.detach()), [f64([-2., -1., 1., 1.5, 9., NAN]), EDGES]),
]
