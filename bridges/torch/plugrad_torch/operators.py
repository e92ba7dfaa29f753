"""Runs PyTorch's own samples of its operators on a device, beside PyTorch's CPU.

    python -m plugrad_torch.operators --device vulkan:0 --dtype float32 --gradients

Each entry of PyTorch's operator database is one of: native (plugrad's kernels alone), composed (of other kernels, because
the device lacks an op or a dtype), fallback (a part ran on the CPU), wrong (another value than the CPU's, and farther from
the result in f64), error (an exception), died (the process ended), or skipped with a reason. Ends with status 1 if a value
is wrong or a process died.
"""
import argparse
import collections
import json
import os
import re
import sys
import tempfile
import warnings

import torch
from torch.utils import _pytree as pytree

#: Entries whose results are random, or hold memory that nobody wrote. The pattern is searched in the name.
RANDOM = re.compile(r"rand|bernoulli|multinomial|normal|uniform|dropout|exponential|cauchy|geometric|empty|rrelu"
                    r"|fractional_max_pool|_native_batch_norm")
#: Entries that are not compared, with the reason.
SKIPPED = {
    "resize_": "the contents of grown storage are not defined",
    "resize_as_": "the contents of grown storage are not defined",
    "svd_lowrank": "starts from random numbers",
    "pca_lowrank": "starts from random numbers",
    "to_sparse": "plugrad has dense tensors only",
    "sparse.mm": "plugrad has dense tensors only",
    "sparse.sampled_addmm": "plugrad has dense tensors only",
    "tensor_split": "PyTorch demands that the indices lie on the CPU",
    "as_strided.partial_views": "the samples are parts of a larger storage, which a copy to a device leaves behind",
    "to": "the samples name the CPU as the destination",
    "nn.functional.multi_head_attention_forward": "the samples have dropout",
    "argsort": "equal elements may come in any order",
}
#: Entries of which only the first result is compared: equal elements may come in any order.
TIES = {"sort", "topk", "kthvalue", "mode", "median", "nanmedian", "msort"}
#: Statistics have the dtype of the accumulator on plugrad, as on PyTorch's CUDA, and the dtype of the input on its CPU.
STATISTICS = {"native_layer_norm", "native_batch_norm", "native_group_norm", "_native_batch_norm_legit"}


def _moved(value, place):
    return pytree.tree_map(lambda x: x.to(place) if isinstance(x, torch.Tensor) else x, value)


def _gradients(op, sample, place):
    def leaf(x):
        return x.detach().to(place).requires_grad_(x.is_floating_point()) if isinstance(x, torch.Tensor) else x
    args = pytree.tree_map(leaf, (sample.input, *sample.args))
    kwargs = pytree.tree_map(leaf, sample.kwargs)
    out = op(*args, **kwargs)
    if sample.output_process_fn_grad is not None:
        out = sample.output_process_fn_grad(out)
    outs = [x for x in pytree.tree_leaves(out) if isinstance(x, torch.Tensor) and x.requires_grad]
    leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor) and x.requires_grad]
    generator = torch.Generator().manual_seed(1)
    seeds = [torch.randn(x.shape, generator=generator).to(x.dtype).to(place) for x in outs]
    return torch.autograd.grad(outs, leaves, seeds, allow_unused=True) if outs and leaves else ()


def _values(op, sample, place):
    out = op(*_moved((sample.input, *sample.args), place), **_moved(sample.kwargs, place))
    return out[0] if op.name in TIES and isinstance(out, tuple) else out


def _name(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def _why_skipped(op, dtype, gradients):
    if dtype not in op.supported_dtypes("cpu"):
        return "PyTorch's CPU lacks the dtype"
    if gradients and not op.supports_autograd:
        return "no gradient"
    if RANDOM.search(op.name):
        return "random results"
    return SKIPPED.get(_name(op)) or SKIPPED.get(op.name)


def _samples(op, dtype, most):
    """Yields up to `most` of the entry's samples; PyTorch's generators of samples may fail on their own."""
    samples = iter(op.sample_inputs("cpu", dtype, requires_grad=False))
    for _ in range(most):
        try:
            yield next(samples)
        except StopIteration:
            return


def _tolerance(dtype):
    if dtype == torch.float32:
        return {"rtol": 1e-4, "atol": 1e-5}
    return {}


def _exact(compute, op, sample):
    """The result of the same sample in f64 on the CPU."""
    def wide(x):
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
    sample = sample.transform(lambda x: torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else wide(x))
    return compute(op, sample, "cpu")


def _is_as_near(got, want, exact):
    """Whether each result is as near to f64's result as twice the CPU's error, in the largest difference."""
    for a, b, c in zip(*(pytree.tree_leaves(_moved(x, "cpu")) for x in (got, want, exact))):
        if not isinstance(a, torch.Tensor) or not a.is_floating_point():
            continue
        errors = [(x.double() - c.double()).abs().nan_to_num(0).max().item() if x.numel() else 0 for x in (a, b)]
        if not torch.equal(a.isfinite(), b.isfinite()) or errors[0] > 2 * errors[1]:
            return False
    return True


def _difference(got, want, op, sample, compute, dtype):
    """Returns a text, or None if the device's results are right: near the CPU's, or as near to f64's results."""
    try:
        torch.testing.assert_close(_moved(got, "cpu"), _moved(want, "cpu"), equal_nan=True,
                                   check_dtype=op.name not in STATISTICS, **_tolerance(dtype))
        return None
    except AssertionError as error:
        text = str(error)
    try:
        if dtype.is_floating_point and _is_as_near(got, want, _exact(compute, op, sample)):
            return None
    except Exception:  # the sample cannot be computed in f64
        pass
    return text


def check(op, dtype, device, gradients, most):
    """Returns (kind, detail) of one entry; kind is a word of this module's text."""
    import plugrad_torch
    compute = _gradients if gradients else _values
    why = _why_skipped(op, dtype, gradients)
    if why:
        return "skipped", why
    fallbacks, composed, ran = collections.Counter(), 0, 0
    for sample in _samples(op, dtype, most):
        try:
            want = compute(op, sample, "cpu")
        except Exception:  # a sample that PyTorch's CPU refuses says nothing
            continue
        ran += 1
        plugrad_torch.reset_counts()
        before = plugrad_torch.counters(device)
        try:
            got = compute(op, sample, device)
        except Exception as error:
            return "error", f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"
        difference = _difference(got, want, op, sample, compute, dtype)
        if difference:
            return "wrong", difference[:500]
        fallbacks.update(plugrad_torch.fallbacks())
        after = plugrad_torch.counters(device)
        composed += sum(after[key] - before[key] for key in ("decompositions", "widened"))
    if not ran:
        return "skipped", "no sample that PyTorch's CPU computes"
    if fallbacks:
        return "fallback", " ".join(sorted(fallbacks))
    return ("composed", "") if composed else ("native", "")


def _entries(only):
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if re.search(only, _name(op))]


def run(device, dtype, gradients=False, most=2, only=""):
    """Returns {entry: (kind, detail)}. Entries run in a process of their own, so that one that ends it is found."""
    import plugrad_torch
    entries, found = _entries(only), {}
    place = plugrad_torch.device(device)
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "entries")
        open(log, "w").close()
        while len(found) < len(entries):
            child = os.fork()
            if child == 0:
                torch.set_num_threads(1)
                with open(log, "a") as lines:
                    for op in entries[len(found):]:
                        lines.write(json.dumps((_name(op), *check(op, dtype, place, gradients, most))) + "\n")
                        lines.flush()
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            for line in open(log).readlines()[len(found):]:
                name, kind, detail = json.loads(line)
                found[name] = (kind, detail)
            if len(found) < len(entries):
                found[_name(entries[len(found)])] = ("died", f"status {status}")
                with open(log, "a") as lines:
                    lines.write(json.dumps(("", "", "")) + "\n")
    return found


def read_report(path):
    """Returns the entries of a file that --json has written: {entry: (kind, detail)}."""
    with open(path) as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(prog="python -m plugrad_torch.operators", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu:0", help="plugrad's name of the device")
    parser.add_argument("--dtype", default="float32", help="float32, float64, bfloat16, float16, int64, ...")
    parser.add_argument("--gradients", action="store_true", help="compare gradients instead of values")
    parser.add_argument("--samples", type=int, default=2, help="samples of each entry")
    parser.add_argument("--only", default="", metavar="REGEX", help="entries whose name contains this")
    parser.add_argument("--json", metavar="FILE", help="writes all entries")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ.setdefault("PLUGRAD_FALLBACK", "allow")
    dtype = getattr(torch, options.dtype, None)
    if not isinstance(dtype, torch.dtype):
        parser.error(f"PyTorch has no dtype '{options.dtype}'")
    found = run(options.device, dtype, options.gradients, options.samples, options.only)
    counts = collections.Counter(kind for kind, _ in found.values())
    for kind in ("wrong", "died", "error", "fallback"):
        for name, (each, detail) in sorted(found.items()):
            if each == kind:
                print(f"{kind}: {name}: {detail}")
    ran = len(found) - counts["skipped"]
    right = sum(counts[kind] for kind in ("native", "composed", "fallback"))
    print(f"{options.device}, {options.dtype}{', gradients' if options.gradients else ''}: {len(found)} entries, {ran} ran: "
          f"{right} right, {right - counts['fallback']} of them without the CPU; {dict(counts)}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)
    sys.exit(1 if counts["wrong"] or counts["died"] else 0)


if __name__ == "__main__":
    main()
