"""Losses as modules. reduction: "mean", "sum" or "none"."""

from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from ._calls import Calls
from .functional import ctc_loss

__all__ = ["BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
           "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss", "MarginRankingLoss", "MaxMarginLoss",
           "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss",
           "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "max_margin_loss"]


class _Loss(Calls):
    """A function of tensors."""

    _shown = 0

    def __init__(self, reduction: str = "mean") -> None:
        self._keep(reduction=reduction)

    def _members(self) -> Any:
        yield from ((name, value) for name, value in self._kept().items() if isinstance(value, Tensor))

    def _all_members(self, prefix: str = "") -> Any:
        """Yields the weights of the loss as buffers, so that they move with the module."""
        return ((prefix + name, value, True) for name, value in self._members())


class L1Loss(_Loss):
    """|x - target|."""

    _function = staticmethod(_plugrad.l1_loss)


class MSELoss(_Loss):
    """(x - target)^2."""

    _function = staticmethod(_plugrad.mse_loss)


class HuberLoss(_Loss):
    """(x - target)^2 / 2 where |x - target| is at most delta, else delta (|x - target| - delta / 2)."""

    _function = staticmethod(_plugrad.huber_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        self._keep(reduction=reduction, delta=delta)


class SmoothL1Loss(_Loss):
    """(x - target)^2 / (2 beta) where |x - target| is below beta, else |x - target| - beta / 2."""

    _function = staticmethod(_plugrad.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        self._keep(reduction=reduction, beta=beta)


class CrossEntropyLoss(_Loss):
    """The negative log-likelihood of the targets under the logits (n, c, ..). The targets are classes or probabilities.

    weight (c) multiplies the loss of each class; the loss of targets equal to ignore_index is 0; label_smoothing mixes the
    targets with the uniform distribution.
    """

    _function = staticmethod(_plugrad.cross_entropy)

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int | None = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        self._keep(reduction=reduction, weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing)


class NLLLoss(_Loss):
    """-weight[t] x[t] for the class t in the target, where x (n, c, ..) holds logarithms of probabilities."""

    _function = staticmethod(_plugrad.nll_loss)

    def __init__(self, weight: Tensor | None = None, *, ignore_index: int | None = -100,
                 reduction: str = "mean") -> None:
        self._keep(reduction=reduction, weight=weight, ignore_index=ignore_index)


class CTCLoss(_Loss):
    """The negative logarithm of the probability of all alignments of targets with the steps of log_probs, for classes
    without `blank`: see functional.ctc_loss. Connectionist temporal classification, Graves et al., 2006."""

    _function = staticmethod(ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        self._keep(blank=blank, reduction=reduction, zero_infinity=zero_infinity)


class BCELoss(_Loss):
    """-weight (target ln(x) + (1 - target) ln(1 - x)) for probabilities x."""

    _function = staticmethod(_plugrad.binary_cross_entropy)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, weight=weight)


class BCEWithLogitsLoss(_Loss):
    """-weight (pos_weight target ln(p) + (1 - target) ln(1 - p)) for p = sigmoid(x), without overflow."""

    _function = staticmethod(_plugrad.binary_cross_entropy_with_logits)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        self._keep(reduction=reduction, weight=weight, pos_weight=pos_weight)


class KLDivLoss(_Loss):
    """target (ln(target) - x), where x holds logarithms of probabilities. log_target: the target holds logarithms, too.
    reduction may also be "batchmean"."""

    _function = staticmethod(_plugrad.kl_div)

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        self._keep(reduction=reduction, log_target=log_target)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts under Poisson distributions: plugrad.poisson_nll_loss."""

    _function = staticmethod(_plugrad.poisson_nll_loss)

    def __init__(self, log_input: bool = True, full: bool = False, *, eps: float = 1e-8, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, log_input=log_input, full=full, eps=eps)


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of targets under normal distributions with the mean x and a given variance."""

    _function = staticmethod(_plugrad.gaussian_nll_loss)

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, full=full, eps=eps)


class HingeEmbeddingLoss(_Loss):
    """x where the target is 1, and max(0, margin - x) where the target is -1."""

    _function = staticmethod(_plugrad.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, margin=margin)


class MarginRankingLoss(_Loss):
    """max(0, margin - target (x1 - x2)); the target is 1 where x1 should be larger than x2, and -1 elsewhere."""

    _function = staticmethod(_plugrad.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, margin=margin)


class CosineEmbeddingLoss(_Loss):
    """1 - c where the target is 1, and max(0, c - margin) where the target is -1, for the cosine c of x1 and x2."""

    _function = staticmethod(_plugrad.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, margin=margin)


class TripletMarginLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)) for the distance d = pairwise_distance. swap: uses
    d(positive, negative) where it is smaller than d(anchor, negative)."""

    _function = staticmethod(_plugrad.triplet_margin_loss)

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 reduction: str = "mean") -> None:
        self._keep(reduction=reduction, margin=margin, p=p, eps=eps, swap=swap)


class MultiMarginLoss(_Loss):
    """The sum over the classes i != t of max(0, margin - x[t] + x[i])^p weight[t], divided by the number of classes, for the
    class t of the target."""

    _function = staticmethod(_plugrad.multi_margin_loss)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, p=p, margin=margin, weight=weight)


class MultiLabelMarginLoss(_Loss):
    """The sum over the targets j of a row and all remaining classes i of max(0, 1 - x[j] + x[i]), divided by the number of
    classes. The targets of a row end before the first -1."""

    _function = staticmethod(_plugrad.multilabel_margin_loss)


class MultiLabelSoftMarginLoss(_Loss):
    """The mean over the classes of the binary cross-entropy of sigmoid(x)."""

    _function = staticmethod(_plugrad.multilabel_soft_margin_loss)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        self._keep(reduction=reduction, weight=weight)


class SoftMarginLoss(_Loss):
    """ln(1 + e^(-target x)) for targets of -1 and 1."""

    _function = staticmethod(_plugrad.soft_margin_loss)


def max_margin_loss(scores: Tensor, signs: Tensor, reduction: str = "mean") -> Tensor:
    """relu(1 - sign * score) for signs of -1 and 1. Raises ValueError for different shapes and for an unknown reduction."""
    if scores.shape != signs.shape:
        raise ValueError(f"[max_margin_loss] shapes {scores.shape} and {signs.shape} differ")
    loss = (1 - signs * scores).relu()
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"[loss] reduction '{reduction}' is unknown: none, mean or sum expected")
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


class MaxMarginLoss(_Loss):
    """relu(1 - sign * score) for signs of -1 and 1: the loss of micrograd's demo."""

    _function = staticmethod(max_margin_loss)
