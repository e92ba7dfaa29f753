"""Activations, losses and layers: see write_golden.py."""
import torch
from torch.nn import functional as F
from write_golden import f64, spread

INF, NAN = float("inf"), float("nan")
KINKS = f64([-7., -3., -1., -0.5, -0.25, 0., 0.25, 0.5, 1., 3., 6., 7.])
SPECIAL = f64([NAN, INF, -INF, 1000., -1000.])
UNIT = spread((2, 3), 0.1, 0.9)
SIGNS = f64([[1., -1., 1.], [-1., -1., 1.]])
WEIGHT = f64([1., 2., 3.])
CLASSES = torch.tensor([2, 0])
BAGS = torch.tensor([[1, 0, 3], [2, 2, 1]])
FLAT, STARTS = torch.tensor([1, 0, 3, 2, 2]), torch.tensor([0, 2, 2, 4])

ACTIVATIONS = {
    "relu6": F.relu6, "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "softshrink": F.softshrink,
    "hardshrink": F.hardshrink, "threshold": lambda x: F.threshold(x, 0.5, -3.), "mish": F.mish, "selu": F.selu,
    "celu": lambda x: F.celu(x, 1.5), "softsign": F.softsign, "tanhshrink": F.tanhshrink, "logsigmoid": F.logsigmoid,
    "rrelu": F.rrelu, "softshrink 1": lambda x: F.softshrink(x, 1.), "hardshrink 0": lambda x: F.hardshrink(x, 0.)}


def activation_rows():
    for name, function in ACTIVATIONS.items():
        yield name, function, [(2, 3)]
        yield f"{name} at kinks", function, [KINKS]
        # PyTorch's hardswish of -infinity is NaN, plugrad's is 0.
        yield f"{name} special", lambda x, f=function: f(x.detach()), [SPECIAL[:2] if name == "hardswish" else SPECIAL]


def reductions(name, function, operands):
    for reduction in ("none", "mean", "sum"):
        yield f"{name} {reduction}", lambda *x, r=reduction: function(*x, reduction=r), operands


ROWS = [
    *activation_rows(),
    ("prelu", F.prelu, [(2, 3, 2), f64([0.25, -0.5, 2.])]),
    ("prelu one", F.prelu, [KINKS, f64([0.25])]),
    ("softmin", lambda x: F.softmin(x, 1), [(2, 3)]),
    ("glu", F.glu, [(2, 4)]),
    ("glu axis", lambda x: F.glu(x, 0), [(4, 2)]),
    *reductions("smooth_l1_loss", F.smooth_l1_loss, [(2, 3), (2, 3)]),
    ("smooth_l1_loss beta", lambda x, t: F.smooth_l1_loss(x, t, beta=0.25), [(2, 3), (2, 3)]),
    ("smooth_l1_loss 0", lambda x, t: F.smooth_l1_loss(x, t, beta=0.), [(2, 3), (2, 3)]),
    *reductions("binary_cross_entropy", F.binary_cross_entropy, [UNIT, spread((2, 3), 0.2, 0.7)]),
    ("binary_cross_entropy weight", lambda x, t: F.binary_cross_entropy(x, t, WEIGHT), [UNIT, UNIT.flip(0)]),
    ("binary_cross_entropy ends", lambda x, t: F.binary_cross_entropy(x, t, reduction="none"),
     [f64([0., 1., 0., 1.]), f64([0., 0., 1., 1.])]),
    ("poisson_nll_loss", F.poisson_nll_loss, [(2, 3), spread((2, 3), 0.5, 4)]),
    ("poisson_nll_loss full", lambda x, t: F.poisson_nll_loss(x, t.detach(), log_input=False, full=True),
     [spread((2, 3), 0.5, 3), spread((2, 3), 0.5, 4)]),
    ("gaussian_nll_loss", F.gaussian_nll_loss, [(2, 3), (2, 3), spread((2, 3), 0.5, 2)]),
    ("gaussian_nll_loss full", lambda x, t, v: F.gaussian_nll_loss(x, t, v, full=True, reduction="none"),
     [(2, 3), (2, 3), spread((2,), 0.5, 2)]),
    ("gaussian_nll_loss eps", lambda x, t, v: F.gaussian_nll_loss(x, t, v, eps=0.5), [(2, 3), (2, 3), f64([[0.1], [0.75]])]),
    ("kl_div batchmean", lambda x, t: F.kl_div(x, t, reduction="batchmean"), [(2, 3), UNIT]),
    *reductions("hinge_embedding_loss", lambda x, **k: F.hinge_embedding_loss(x, SIGNS, margin=0.75, **k), [(2, 3)]),
    *reductions("margin_ranking_loss", lambda a, b, **k: F.margin_ranking_loss(a, b, SIGNS, margin=0.5, **k),
                [(2, 3), (2, 3)]),
    ("margin_ranking_loss tie", lambda a: F.margin_ranking_loss(a, a.detach(), SIGNS), [(2, 3)]),
    *reductions("cosine_embedding_loss", lambda a, b, **k: F.cosine_embedding_loss(a, b, SIGNS[:, 0], margin=-0.5, **k),
                [(2, 3), (2, 3)]),
    ("cosine_embedding_loss vector", lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor(1)), [(3,), (3,)]),
    *reductions("triplet_margin_loss", F.triplet_margin_loss, [(2, 3), (2, 3), (2, 3)]),
    ("triplet_margin_loss swap", lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=2., p=1, swap=True),
     [(2, 3), (2, 3), spread((2, 3), -1, 1)]),
    *reductions("multi_margin_loss", lambda x, **k: F.multi_margin_loss(x, CLASSES, **k), [(2, 3)]),
    ("multi_margin_loss 2", lambda x: F.multi_margin_loss(x, CLASSES, p=2, margin=0.5, weight=f64([1., 2., 3.])), [(2, 3)]),
    ("multi_margin_loss vector", lambda x: F.multi_margin_loss(x, torch.tensor(1)), [(3,)]),
    *reductions("multilabel_margin_loss",
                lambda x, **k: F.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1], [-1, 2, 0, 1]]), **k), [(2, 4)]),
    ("multilabel_margin_loss vector", lambda x: F.multilabel_margin_loss(x, torch.tensor([1, 2, 0])), [(3,)]),
    *reductions("soft_margin_loss", lambda x, **k: F.soft_margin_loss(x, SIGNS, **k), [(2, 3)]),
    *reductions("multilabel_soft_margin_loss", lambda x, t, **k: F.multilabel_soft_margin_loss(x, t.detach(), **k),
                [(2, 3), UNIT]),
    ("multilabel_soft_margin_loss weight",
     lambda x, t, w: F.multilabel_soft_margin_loss(x, t.detach(), weight=w), [(2, 3), UNIT, WEIGHT]),
    ("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [(2, 3, 4), (3,), (3,)]),
    ("instance_norm running", lambda x: F.instance_norm(x, f64([1., -1.]), f64([0.5, 2.]), use_input_stats=False),
     [(2, 2, 3)]),
    ("local_response_norm", lambda x: F.local_response_norm(x, 3, alpha=0.5), [(2, 4, 2)]),
    ("local_response_norm even", lambda x: F.local_response_norm(x, 2, alpha=0.5, beta=0.5, k=2.), [(1, 3, 2, 2)]),
    ("embedding padding", lambda w: F.embedding(BAGS, w, padding_idx=-2), [(4, 2)]),
    *((f"embedding_bag {m}", lambda w, m=m: F.embedding_bag(BAGS, w, mode=m), [(4, 2)]) for m in ("sum", "mean", "max")),
    *((f"embedding_bag offsets {m}", lambda w, m=m: F.embedding_bag(FLAT, w, STARTS, mode=m), [(4, 2)])
      for m in ("sum", "mean", "max")),
    *((f"embedding_bag padding {m}", lambda w, m=m: F.embedding_bag(FLAT, w, STARTS, mode=m, padding_idx=0), [(4, 2)])
      for m in ("sum", "mean", "max")),
    ("embedding_bag last", lambda w: F.embedding_bag(FLAT, w, torch.tensor([0, 3, 5]), include_last_offset=True), [(4, 2)]),
    ("embedding_bag weights", lambda w, s: F.embedding_bag(BAGS, w, mode="sum", per_sample_weights=s), [(4, 2), (2, 3)]),
    ("embedding_bag empty", lambda w: F.embedding_bag(CLASSES[:0], w, torch.tensor([0, 0]), mode="max"), [(4, 2)]),
]
