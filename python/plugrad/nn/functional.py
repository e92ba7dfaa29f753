"""The functions of networks by the names of torch.nn.functional. Most are the functions of the package itself. The
activations and dropouts also take `inplace`; embedding and embedding_bag take the indices first, and the losses of classes
take their parameters in PyTorch's order; one_hot finds the number of classes.

>>> import plugrad.nn.functional as F
>>> F.relu(plugrad.tensor([-1.0, 2.0]))
Tensor([0. 2.])
"""

from collections.abc import Callable
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor
from .utils.rnn import pad_sequence
from .._plugrad import (adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
                        adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
                        adaptive_max_pool1d_with_indices as adaptive_max_pool1d_with_indices,
                        adaptive_max_pool2d as adaptive_max_pool2d,
                        adaptive_max_pool2d_with_indices as adaptive_max_pool2d_with_indices,
                        adaptive_max_pool3d as adaptive_max_pool3d,
                        adaptive_max_pool3d_with_indices as adaptive_max_pool3d_with_indices, affine_grid as affine_grid,
                        avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d,
                        batch_norm as batch_norm, bilinear as bilinear, binary_cross_entropy as binary_cross_entropy,
                        binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
                        channel_shuffle as channel_shuffle, conv1d as conv1d, conv2d as conv2d, conv3d as conv3d,
                        conv_transpose1d as conv_transpose1d, conv_transpose2d as conv_transpose2d,
                        conv_transpose3d as conv_transpose3d, cosine_embedding_loss as cosine_embedding_loss,
                        cosine_similarity as cosine_similarity, fold as fold, gaussian_nll_loss as gaussian_nll_loss,
                        gelu as gelu, glu as glu, grid_sample as grid_sample, group_norm as group_norm,
                        gumbel_softmax as gumbel_softmax, hardshrink as hardshrink,
                        hinge_embedding_loss as hinge_embedding_loss, huber_loss as huber_loss,
                        instance_norm as instance_norm, interpolate as interpolate, kl_div as kl_div, l1_loss as l1_loss,
                        layer_norm as layer_norm, linear as linear, local_response_norm as local_response_norm,
                        log_softmax as log_softmax, logsigmoid as logsigmoid, lp_pool1d as lp_pool1d,
                        lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d, margin_ranking_loss as margin_ranking_loss,
                        max_pool1d as max_pool1d, max_pool1d_with_indices as max_pool1d_with_indices,
                        max_pool2d as max_pool2d, max_pool2d_with_indices as max_pool2d_with_indices,
                        max_pool3d as max_pool3d, max_pool3d_with_indices as max_pool3d_with_indices,
                        max_unpool1d as max_unpool1d, max_unpool2d as max_unpool2d, max_unpool3d as max_unpool3d,
                        mse_loss as mse_loss, multi_margin_loss as multi_margin_loss,
                        multilabel_margin_loss as multilabel_margin_loss,
                        multilabel_soft_margin_loss as multilabel_soft_margin_loss, normalize as normalize, pad as pad,
                        pairwise_distance as pairwise_distance, pixel_shuffle as pixel_shuffle,
                        pixel_unshuffle as pixel_unshuffle, poisson_nll_loss as poisson_nll_loss, prelu as prelu,
                        rms_norm as rms_norm, scaled_dot_product_attention as scaled_dot_product_attention,
                        sigmoid as sigmoid, smooth_l1_loss as smooth_l1_loss, soft_margin_loss as soft_margin_loss,
                        softmax as softmax, softmin as softmin, softplus as softplus, softshrink as softshrink,
                        softsign as softsign, tanh as tanh, tanhshrink as tanhshrink,
                        triplet_margin_loss as triplet_margin_loss, unfold as unfold)


def _with_inplace(function: Callable[..., Tensor], numbers: int) -> Callable[..., Tensor]:
    """Returns a function of x and `numbers` numbers that also takes PyTorch's `inplace`, by name or after the numbers.
    `inplace` has no effect: the result is a new tensor."""
    def call(input: Tensor, *given: Any, inplace: bool = False, **named: Any) -> Tensor:
        return function(input, *(given[:numbers] if len(given) == numbers + 1 else given), **named)
    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call


relu = _with_inplace(_plugrad.relu, 0)
relu6 = _with_inplace(_plugrad.relu6, 0)
selu = _with_inplace(_plugrad.selu, 0)
silu = _with_inplace(_plugrad.silu, 0)
mish = _with_inplace(_plugrad.mish, 0)
hardsigmoid = _with_inplace(_plugrad.hardsigmoid, 0)
hardswish = _with_inplace(_plugrad.hardswish, 0)
elu = _with_inplace(_plugrad.elu, 1)
celu = _with_inplace(_plugrad.celu, 1)
leaky_relu = _with_inplace(_plugrad.leaky_relu, 1)
hardtanh = _with_inplace(_plugrad.hardtanh, 2)
threshold = _with_inplace(_plugrad.threshold, 2)
dropout = _with_inplace(_plugrad.dropout, 2)
dropout1d = _with_inplace(_plugrad.dropout1d, 2)
dropout2d = _with_inplace(_plugrad.dropout2d, 2)
dropout3d = _with_inplace(_plugrad.dropout3d, 2)
alpha_dropout = _with_inplace(_plugrad.alpha_dropout, 2)
feature_alpha_dropout = _with_inplace(_plugrad.feature_alpha_dropout, 2)
rrelu = _with_inplace(_plugrad.rrelu, 3)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: None = None,
                  ignore_index: int | None = -100, reduce: None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """plugrad.cross_entropy with PyTorch's order of parameters. size_average and reduce are PyTorch's old names of
    reduction; values other than None raise ValueError."""
    _refuse_old("cross_entropy", size_average, reduce)
    return _plugrad.cross_entropy(input, target, reduction, weight, ignore_index, label_smoothing)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: None = None,
             ignore_index: int | None = -100, reduce: None = None, reduction: str = "mean") -> Tensor:
    """plugrad.nll_loss with PyTorch's order of parameters. size_average and reduce must be None."""
    _refuse_old("nll_loss", size_average, reduce)
    return _plugrad.nll_loss(input, target, weight, ignore_index, reduction)


def _refuse_old(name: str, *given: Any) -> None:
    if given != (None, None):
        raise ValueError(f"[{name}] size_average and reduce are old names: give reduction='mean', 'sum' or 'none'")


def embedding(input: Tensor, weight: Tensor, *args: Any, **named: Any) -> Tensor:
    """The rows of weight at the indices in input: plugrad.embedding with PyTorch's order of these parameters."""
    return _plugrad.embedding(weight, input, *args, **named)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, *, mode: str = "mean",
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """The sums, means or largest elements of rows of weight for the bags of indices in input: plugrad.embedding_bag with
    PyTorch's order of parameters."""
    return _plugrad.embedding_bag(weight, input, offsets, mode, per_sample_weights, include_last_offset, padding_idx)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Adds a last axis of num_classes elements that is 1 at the class in the tensor and 0 elsewhere. num_classes=-1 means
    the largest class plus 1, and waits for the device to find the largest class."""
    return _plugrad.one_hot(tensor, int(tensor.amax().item()) + 1 if num_classes == -1 else num_classes)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """The negative logarithm of the probability of all alignments of targets with the steps of log_probs: connectionist
    temporal classification, Graves et al., 2006.

    log_probs (t, n, c), or (t, c): logarithms of the probabilities of c classes at each step. targets (n, s), padded, or all
    targets in a row (sum of target_lengths): classes other than blank. input_lengths, target_lengths (n): tensors or
    numbers. The loss (n) is infinite where a target needs more steps than its input has; its gradient is then 0, and with
    zero_infinity the loss is 0 too. reduction "mean" divides each loss by the target's length and takes the mean. Raises
    ValueError for shapes that do not fit, and, outside of compiled steps, for lengths out of range.
    """
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    lengths = [each.to("i64") if isinstance(each, Tensor) else
               Tensor([each] if isinstance(each, int) else list(each), dtype="i64", requires_grad=False)
               for each in (input_lengths, target_lengths)]
    inputs, outputs = (each.reshape(-1).to(x.device) for each in lengths)
    if batched and targets.ndim == 1:
        counts: list[int] = lengths[1].reshape(-1).tolist()
        if sum(counts) != targets.shape[0]:
            raise ValueError(f"[ctc_loss] targets has {targets.shape[0]} elements, and target_lengths have the sum "
                             f"{sum(counts)}")
        targets = pad_sequence(list(targets.split(counts)), batch_first=True)
    rows = targets if targets.ndim == 2 else targets.unsqueeze(0)
    if not _plugrad._is_recording():
        for name, each, most in (("input", lengths[0], x.shape[0]), ("target", lengths[1], rows.shape[1])):
            if each.numel() and not bool(((each >= 0) & (each <= most)).all()):
                raise ValueError(f"[ctc_loss] {name}_lengths are {each.tolist()}: expected 0 to {most}")
    made: Any = _plugrad._ctc_loss(x, rows.to("i64").to(x.device), inputs, outputs, blank, reduction, zero_infinity)
    loss: Tensor = made if batched or reduction != "none" else made.squeeze(0)
    return loss
