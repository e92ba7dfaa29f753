"""Times ONNX models beside ONNX Runtime: one call, in the processor time of one thread and in the wall time of two.

onnx_models.py FOLDER [--threads N] [--only TEXT] [--seconds S]

FOLDER/NAME.onnx is a model. FOLDER/NAME/in-K.npy are its inputs, in the file's order; an input named `sr` is bound.
bench/install_peers.sh onnx makes such a folder; ONNX Runtime must be installed beside plugrad. Both sides run in turns after
a warm-up; medians of rounds. Prints the time of ONNX Runtime by plugrad's: above 1, plugrad is faster.
"""
import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def timed(f, seconds, clock):
    """The least time of a call in `seconds`."""
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = clock()
        f()
        times.append(clock() - start)
    return min(times)


def session(path, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def worst(ours, theirs):
    """The largest difference by the largest magnitude of each output."""
    found = 0.0
    for a, b in zip(ours, theirs):
        scale = np.abs(b).max() if b.size else 0
        found = max(found, float(np.abs(a.astype("f8") - b).max() / (scale or 1)) if b.size else 0.0)
    return found


def compare(path, options, plugrad):
    feed_all = session(path, 1).get_inputs()
    values = [np.load(path.with_suffix("") / f"in-{k}.npy") for k in range(len(feed_all))]
    feed = {each.name: value for each, value in zip(feed_all, values)}
    peer = session(path, options.threads)
    bind = {name: value for name, value in feed.items() if name == "sr"}
    model = plugrad.onnx.load(path, bind=bind)
    ours_feed = {name: plugrad.Tensor(value) for name, value in feed.items() if name not in bind}
    given = [ours_feed[each.name] for each in model.inputs]

    def ours():
        made = model(*given)
        return made if isinstance(made, tuple) else (made,)

    def theirs():
        return peer.run(None, feed)

    first = ours()
    ours()
    same = all(np.array_equal(a.numpy(), b.numpy(), equal_nan=True) for a, b in zip(first, ours()))
    error = worst([each.numpy() for each in first], theirs())
    clock = time.process_time if options.threads == 1 else time.perf_counter
    rounds = []
    for _ in range(options.rounds):
        rounds.append([timed(f, options.seconds / options.rounds, clock) * 1e3 for f in (ours, theirs)])
    mine, other = (statistics.median(column) for column in zip(*rounds))
    print(f"{path.stem:60} {mine:9.3f} ms  onnxruntime {other:9.3f} ms  ratio {other / mine:5.2f}  difference {error:.1e}"
          f"{'' if same else '  A REPLAY HAS OTHER BITS'}", flush=True)


def main():
    options = arguments()
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    os.environ["PLUGRAD_CPU_THREADS"] = str(options.threads)
    import plugrad
    import plugrad.onnx
    plugrad.set_num_threads(options.threads)
    paths = [path for path in sorted(options.folder.glob("*.onnx")) if options.only in path.stem]
    if not paths:
        sys.exit(f"{options.folder} has no models")
    for path in paths:
        compare(path, options, plugrad)


if __name__ == "__main__":
    main()
