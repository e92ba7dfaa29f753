#!/usr/bin/env python3
"""Compares a compiled training step of the examples' networks with JAX's and PyTorch's in one run, in turns.

    bench/python/compiled_models.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]

The networks are those of examples/cnn and examples/gpt. Each step includes the optimiser's step, and its loss is read. JAX
and plugrad compile the whole step. torch.compile compiles the loss with its gradient; PyTorch's optimisers are the fused
ones. Each library stores a convolution's operands in the order for which it is optimised: JAX gets channels last.
"""
from functools import partial

import models
import turns
from compiled_steps import adam_state, jax_adam, jax_with_threads, step_of

CNN, GPT = "CNN, batch 128, Adam", "transformer, 12 x 64, AdamW"
BATCH, BLOCK, CHARACTERS, LAYERS, HEADS, WIDTH, DROPPED = 128, (12, 64), 65, 4, 4, 128, 0.1


# --- plugrad and PyTorch.

def cnn(t, net, images, labels):
    """The loss of a batch (n, 1, 28, 28)."""
    x = images
    for i, (into, out) in enumerate(((1, 16), (16, 32))):
        x = t.F.max_pool2d(t.F.conv2d(x, net(f"c{i}", out, into, 3, 3), net(f"b{i}", out), padding=1), 2)
        mean, variance = net.kept(f"m{i}", out), net.kept(f"v{i}", out)
        x = t.F.relu(t.F.batch_norm(x, mean, variance, net(f"g{i}", out), net(f"s{i}", out), True))
    x = t.F.dropout(x.flatten(1), DROPPED, True)
    return t.F.cross_entropy(t.F.linear(x, net("l", 10, 32 * 7 * 7), net("b", 10)), labels)


class Net(models.Net):
    """Weights, and buffers that have no gradient."""

    def __init__(self, t):
        super().__init__(t.parameter)
        self.t, self.buffers = t, {}

    def kept(self, name, *shape):
        if name not in self.buffers:
            self.buffers[name] = self.t.ones(*shape)
        return self.buffers[name]


def training_row(t, model, optimizer_of, data, compile_loss, compile_step):
    net = Net(t)
    model(t, net, *data)
    optimizer, loss_of = optimizer_of(list(net.weights.values())), compile_loss(lambda a, b: model(t, net, a, b))
    compiled = compile_step(step_of(optimizer, loss_of))
    return lambda: compiled(*data).item()


def rows_of(t, compile_loss=lambda f: f, compile_step=lambda f: f):
    images, labels = t.randn(BATCH, 1, 28, 28), t.indices(10, BATCH)
    ids, targets = t.indices(CHARACTERS, *BLOCK), t.indices(CHARACTERS, *BLOCK)
    return {CNN: training_row(t, cnn, t.adam, (images, labels), compile_loss, compile_step),
            GPT: training_row(t, models.gpt, t.adamw, (ids, targets), compile_loss, compile_step)}


def plugrad_rows():
    return rows_of(models.Plugrad())


def compiled_rows():
    import plugrad
    return rows_of(models.Plugrad(), compile_step=plugrad.compile)


def torch_rows(**compiling):
    import os
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return rows_of(models.Torch(), **compiling)


def torch_compiled_rows():
    import torch
    return torch_rows(compile_loss=torch.compile)


# --- JAX. Weights are the first argument, buffers and the random key the second.

def jax_cnn(jax, weights, kept, images, labels):
    jnp, lax = jax.numpy, jax.lax
    means, key = kept
    x, new_means = images, []
    for i in (0, 1):
        w, b, gain, shift = weights[f"c{i}"]
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        new_means.append((means[i][0] * 0.9 + mean * 0.1, means[i][1] * 0.9 + variance * 0.1))
        x = jax.nn.relu((x - mean) * lax.rsqrt(variance + 1e-5) * gain + shift)
    key, drawn = jax.random.split(key)
    x = x.reshape(BATCH, -1)
    x = jnp.where(jax.random.bernoulli(drawn, 1 - DROPPED, x.shape), x / (1 - DROPPED), 0)
    w, b = weights["l"]
    return jax_cross_entropy(jax, x @ w + b, labels), (new_means, key)


def jax_cross_entropy(jax, logits, labels):
    return -jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


def jax_norm(jax, x, gain):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * gain


def jax_gpt(jax, weights, kept, ids, targets):
    jnp = jax.numpy
    n, length = ids.shape
    x = weights["characters"][ids] + weights["places"]
    seen = jnp.tril(jnp.ones((length, length), bool))
    for each in weights["blocks"]:
        parts = jnp.split(jax_norm(jax, x, each["n1"]) @ each["qkv"], 3, -1)
        q, k, v = (part.reshape(n, length, HEADS, -1) for part in parts)
        scores = jnp.einsum("nihc,njhc->nhij", q, k) / (WIDTH // HEADS) ** 0.5
        shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
        x = x + jnp.einsum("nhij,njhc->nihc", shares, v).reshape(n, length, WIDTH) @ each["o"]
        x = x + jax.nn.gelu(jax_norm(jax, x, each["n2"]) @ each["up"], approximate=False) @ each["down"]
    logits = jax_norm(jax, x, weights["n"]) @ weights["characters"].T
    return jax_cross_entropy(jax, logits.reshape(-1, CHARACTERS), targets.reshape(-1)), kept


def jax_rows():
    jax = jax_with_threads()
    jnp = jax.numpy
    keys = iter(jax.random.split(jax.random.PRNGKey(0), 256))

    def normal(*shape):
        return jax.random.normal(next(keys), shape) * 0.02

    def row(model, weights, kept, data, decay):
        def step(state, kept, a, b):
            (loss, kept), gradients = jax.value_and_grad(partial(model, jax), has_aux=True)(state[0], kept, a, b)
            return jax_adam(jax, state, gradients, 1e-3, decay=decay), kept, loss
        compiled, now = jax.jit(step, donate_argnums=(0, 1)), [adam_state(jax, weights), kept]

        def run():
            now[0], now[1], loss = compiled(*now, *data)
            return float(loss)
        return run
    cnn_weights = {f"c{i}": (normal(3, 3, into, out), jnp.ones(out), jnp.ones(out), jnp.ones(out))
                   for i, (into, out) in enumerate(((1, 16), (16, 32)))}
    cnn_weights["l"] = (normal(32 * 7 * 7, 10), jnp.ones(10))
    means = [(jnp.zeros(out), jnp.ones(out)) for out in (16, 32)]
    images = jax.random.normal(next(keys), (BATCH, 28, 28, 1))
    labels = jax.random.randint(next(keys), (BATCH,), 0, 10)
    blocks = [{"n1": jnp.ones(WIDTH), "qkv": normal(WIDTH, 3 * WIDTH), "o": normal(WIDTH, WIDTH), "n2": jnp.ones(WIDTH),
               "up": normal(WIDTH, 4 * WIDTH), "down": normal(4 * WIDTH, WIDTH)} for _ in range(LAYERS)]
    gpt_weights = {"characters": normal(CHARACTERS, WIDTH), "places": normal(BLOCK[1], WIDTH), "blocks": blocks,
                   "n": jnp.ones(WIDTH)}
    ids, targets = (jax.random.randint(next(keys), BLOCK, 0, CHARACTERS) for _ in range(2))
    return {CNN: row(jax_cnn, cnn_weights, (means, next(keys)), (images, labels), 0.0),
            GPT: row(jax_gpt, gpt_weights, jnp.zeros(()), (ids, targets), 0.01)}


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, compiled_rows, torch_rows,
                       **{"torch.compile": torch_compiled_rows, "JAX": jax_rows, "plugrad, eager": plugrad_rows})
