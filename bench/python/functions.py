#!/usr/bin/env python3
"""Compares functions of functions, eager and compiled, with JAX's (jitted) and PyTorch's in one run: alternating rounds,
medians, and the spread.

    bench/python/functions.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]

PyTorch's functions are those of torch.func, eager. Each call waits for its results.
"""
import turns

WIDE, SMALL = (784, 128, 128, 10), (8, 32, 32, 1)
OF_EXAMPLES, OF_DIGITS = "gradients of 64 examples, MLP 64-128-128-10", "gradients of 64 examples, MLP 784-128-128-10"
HESSIANS, JACOBIAN, LAPLACIAN = ("Hessians of 32 examples, MLP 8-32-32-1", "Jacobian in forward mode, MLP 8-32-32-8",
                                 "Laplacian at 256 points, MLP 2-64-64-1")


def shapes_of(widths):
    return list(zip(widths[1:], widths))


def rows(lib, func, random, labels, cross_entropy, ready, compiled):
    """lib: tanh, zeros and the like; random(*shape); ready(result) waits."""
    def weights(widths):
        return [(random(out, into) / into ** 0.5, random(out)) for out, into in shapes_of(widths)]

    def network(layers, x):
        for i, (w, b) in enumerate(layers):
            x = w @ x + b
            x = lib.tanh(x) if i + 1 < len(layers) else x
        return x

    def loss(layers, x, label):
        return cross_entropy(network(layers, x), label)

    def energy(layers, x):
        return network(layers, x)[0]

    def laplacian(layers, x):
        slope, eye = func.grad(lambda v: energy(layers, v)), lib.eye(2)
        return sum(func.jvp(slope, (x,), (eye[i],))[1][i] for i in range(2))

    made = {}

    def add(name, function, *arguments):
        step = compiled(function)
        made[name] = lambda: ready(step(*arguments))

    of_each = func.vmap(func.grad(loss), (None, 0, 0))
    add(OF_EXAMPLES, of_each, weights((64, 128, 128, 10)), random(64, 64), labels)
    add(OF_DIGITS, of_each, weights(WIDE), random(64, 784), labels)
    add(HESSIANS, func.vmap(func.hessian(energy, 1), (None, 0)), weights(SMALL), random(32, 8))
    add(JACOBIAN, func.jacfwd(network, 1), weights((8, 32, 32, 8)), random(8))
    add(LAPLACIAN, func.vmap(laplacian, (None, 0)), weights((2, 64, 64, 1)), random(256, 2))
    return made


def plugrad_rows(compiled=True):
    import plugrad
    plugrad.manual_seed(0)
    return rows(plugrad, plugrad.func, plugrad.randn, plugrad.arange(64) % 10, plugrad.nn.functional.cross_entropy,
                lambda result: result, plugrad.compile if compiled else lambda f: f)


def eager_rows():
    return plugrad_rows(False)


def torch_rows():
    import torch
    torch.manual_seed(0)
    return rows(torch, torch.func, torch.randn, torch.arange(64) % 10, torch.nn.functional.cross_entropy,
                lambda result: result, lambda f: f)


def jax_rows():
    import jax
    import numpy as np
    generator = np.random.default_rng(0)

    class Functions:
        vmap, grad, jvp = staticmethod(jax.vmap), staticmethod(jax.grad), staticmethod(jax.jvp)
        hessian, jacfwd = staticmethod(jax.hessian), staticmethod(jax.jacfwd)

    def cross_entropy(logits, label):
        return -jax.nn.log_softmax(logits)[label]

    def random(*shape):
        return jax.numpy.asarray(generator.standard_normal(shape), "float32")

    return rows(jax.numpy, Functions, random, jax.numpy.arange(64) % 10, cross_entropy, jax.block_until_ready, jax.jit)


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, plugrad_rows, torch_rows, **{"plugrad, eager": eager_rows, "JAX": jax_rows})
