#!/usr/bin/env python3
"""Compares whole processes that train the same network on Fashion-MNIST: start, data, training and the test images.

    bench/python/fashion_mnist.py [--threads 2] [--epochs 10] [--peers build-peers/venv] [--rounds 3] [--out FILE]

The network is 784-512-512-10, with ReLU, trained in batches of 256 by Adam at 1e-3. JAX compiles an epoch as one scan,
PyTorch uses the fused Adam, torch.compile compiles the loss with its gradient, and plugrad compiles the whole step. The data
are Debian's package dataset-fashion-mnist.
"""
import argparse
import gzip
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import turns

FOLDER = Path("/usr/share/datasets/fashion-mnist")
LAYERS, BATCH, RATE = (784, 512, 512, 10), 256, 1e-3


def read(name):
    import numpy
    bytes_of = gzip.decompress((FOLDER / f"{name}.gz").read_bytes())
    if "images" in name:
        return numpy.frombuffer(bytes_of, numpy.uint8, offset=16).reshape(-1, 784).astype(numpy.float32) / 255
    return numpy.frombuffer(bytes_of, numpy.uint8, offset=8).astype(numpy.int64)


def sets():
    return [read(f"{part}-{kind}") for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")]


def forward(f, weights, x):
    for i, (w, b) in enumerate(weights):
        x = f.linear(x, w, b)
        x = f.relu(x) if i + 1 < len(weights) else x
    return x


def train_eagerly(lib, f, to_tensor, adam, epochs, compile_loss=lambda g: g, compile_step=lambda g: g):
    """Trains with plugrad or PyTorch, whose functions have the same names."""
    images, labels, test_images, test_labels = (to_tensor(each) for each in sets())
    weights = [((lib.randn((out, into)) * (2 / into) ** 0.5).detach().requires_grad_(), lib.zeros((out,)).requires_grad_())
               for into, out in zip(LAYERS, LAYERS[1:])]
    optimizer = adam([each for pair in weights for each in pair])
    loss_of = compile_loss(lambda x, y: f.cross_entropy(forward(f, weights, x), y))

    def step(x, y):
        optimizer.zero_grad()
        loss_of(x, y).backward()
        optimizer.step()
    step = compile_step(step)
    for _ in range(epochs):
        order = lib.randperm(len(images))
        for i in range(0, len(images), BATCH):
            chosen = order[i:i + BATCH]
            step(images[chosen], labels[chosen])
    with lib.no_grad():
        return float((forward(f, weights, test_images).argmax(-1) == test_labels).to(lib.float32).mean())


def plugrad(epochs):
    import plugrad
    return train_eagerly(plugrad, plugrad.nn.functional, plugrad.from_numpy, lambda p: plugrad.optim.Adam(p, lr=RATE),
                         epochs, compile_step=plugrad.compile)


def torch(epochs, **compiling):
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return train_eagerly(torch, torch.nn.functional, torch.from_numpy, lambda p: torch.optim.Adam(p, lr=RATE, fused=True),
                         epochs, **compiling)


def torch_compiled(epochs):
    import torch as library
    return torch(epochs, compile_loss=library.compile)


def jax(epochs):
    from compiled_steps import adam_state, jax_adam, jax_with_threads
    jax = jax_with_threads()
    jnp = jax.numpy
    images, labels, test_images, test_labels = (jnp.asarray(each) for each in sets())
    keys = jax.random.split(jax.random.PRNGKey(1), len(LAYERS) + epochs)
    weights = [(jax.random.normal(key, (into, out)) * (2 / into) ** 0.5, jnp.zeros(out))
               for key, into, out in zip(keys, LAYERS, LAYERS[1:])]

    def scores(weights, x):
        for i, (w, b) in enumerate(weights):
            x = x @ w + b
            x = jax.nn.relu(x) if i + 1 < len(weights) else x
        return x

    def loss_of(weights, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(scores(weights, x)), y[:, None], 1).mean()

    def step(state, chosen):
        gradients = jax.grad(loss_of)(state[0], images[chosen], labels[chosen])
        return jax_adam(jax, state, gradients, RATE), None

    def epoch(state, key):
        order = jax.random.permutation(key, len(images))
        whole = len(images) // BATCH * BATCH
        state, _ = jax.lax.scan(step, state, order[:whole].reshape(-1, BATCH))
        return step(state, order[whole:])[0]
    compiled, state = jax.jit(epoch, donate_argnums=0), adam_state(jax, weights)
    for i in range(epochs):
        state = compiled(state, keys[len(LAYERS) + i])
    return float((scores(state[0], test_images).argmax(-1) == test_labels).mean())


LIBRARIES = {"plugrad": plugrad, "JAX": jax, "PyTorch": torch, "torch.compile": torch_compiled}


def seconds_of(name, options):
    """The time of one process, and the share of test images that its network classifies correctly."""
    python = sys.executable if name == "plugrad" else Path(options.peers) / "bin/python"
    environment = turns.environment_for(options.threads)
    processors = sorted(os.sched_getaffinity(0))[-options.threads:]
    start = time.perf_counter()
    done = subprocess.run([python, __file__, "--serve", name, "--epochs", str(options.epochs)], env=environment, check=True,
                          capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, processors))
    return time.perf_counter() - start, float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    turns.add_options(parser)
    parser.set_defaults(rounds=3)
    options = parser.parse_args()
    if options.serve:
        return print(LIBRARIES[options.serve](options.epochs))
    results = {name: [] for name in LIBRARIES}
    for _ in range(options.rounds):
        for name, known in results.items():
            known.append(seconds_of(name, options))
    ours = statistics.median(taken for taken, _ in results["plugrad"])
    lines = [f"{turns.processor_name()}, {options.threads} threads, {options.epochs} epochs, elapsed time of whole "
             f"processes; medians of {options.rounds} rounds in turns (least to most)", "",
             "| library | seconds | times plugrad's | test images right |", "|---|---|---|---|"]
    for name, known in results.items():
        times, shares = zip(*known)
        lines.append(f"| {name} | {turns.text_of(times)} | {statistics.median(times) / ours:.2f} | "
                     f"{statistics.median(shares):.2%} |")
    print("\n".join(lines))
    if options.out:
        Path(options.out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
