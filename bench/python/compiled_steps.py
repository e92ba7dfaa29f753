#!/usr/bin/env python3
"""Compares compiled training steps with JAX's and PyTorch's in one run: alternating rounds, medians, and the spread.

    bench/python/compiled_steps.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]

Each library computes the same steps with the same optimiser. JAX compiles whole steps, and scans over the 100 steps of the
moons row, whose losses it returns together; the other libraries read each loss. torch.compile compiles the forward and the
backward pass; PyTorch's optimisers are the fused ones.
"""
from functools import partial

import turns

WIDTHS, POINTS = (2, 16, 16, 1), 100
LAYERS, BATCH = (784, 512, 512, 10), 256
MOONS, SGD, ADAM = "moons: 100 steps, f32, loss read", "MLP 784-512-512-10, SGD", "MLP 784-512-512-10, Adam"


# --- plugrad and PyTorch, whose functions have the same names.

def parameters_of(lib, widths):
    made = []
    for into, out in zip(widths, widths[1:]):
        made += [(lib.randn((out, into)) * (2 / into) ** 0.5).detach().requires_grad_(), lib.zeros((out,)).requires_grad_()]
    return made


def scores(f, parameters, x):
    for i in range(0, len(parameters), 2):
        x = f.linear(x, parameters[i], parameters[i + 1])
        x = f.relu(x) if i + 2 < len(parameters) else x
    return x


def moons_data(lib):
    return lib.randn((POINTS, 2)), (lib.rand((POINTS, 1)) > 0.5).to(lib.float32) * 2 - 1


def digits_data(lib):
    return lib.randn((BATCH, LAYERS[0])), lib.randint(0, LAYERS[-1], (BATCH,))


def step_of(optimizer, loss_of):
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss
    return step


def eager_rows(lib, f, sgd, adam, compile_loss=lambda g: g, compile_step=lambda g: g):
    moons, (x, y) = parameters_of(lib, WIDTHS), moons_data(lib)

    def margin(a, b):
        return f.relu(1 - b * scores(f, moons, a)).mean()
    step = compile_step(step_of(sgd(moons), compile_loss(margin)))

    def hundred():
        for _ in range(100):
            step(x, y).item()
    rows = {MOONS: hundred}
    for name, make in ((SGD, sgd), (ADAM, adam)):
        rows[name] = digits_row(lib, f, make, compile_loss, compile_step)
    return rows


def digits_row(lib, f, make, compile_loss, compile_step):
    weights, (x, y) = parameters_of(lib, LAYERS), digits_data(lib)
    step = compile_step(step_of(make(weights), compile_loss(lambda a, b: f.cross_entropy(scores(f, weights, a), b))))
    return lambda: step(x, y).item()


def plugrad_rows(**compiling):
    import plugrad
    from plugrad import nn, optim
    return eager_rows(plugrad, nn.functional, lambda p: optim.SGD(p, lr=1e-3), lambda p: optim.Adam(p, lr=1e-5), **compiling)


def compiled_rows():
    import plugrad
    return plugrad_rows(compile_step=plugrad.compile)


def torch_rows(**compiling):
    import os
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return eager_rows(torch, torch.nn.functional, lambda p: torch.optim.SGD(p, lr=1e-3, fused=True),
                      lambda p: torch.optim.Adam(p, lr=1e-5, fused=True), **compiling)


def torch_compiled_rows():
    import torch
    return torch_rows(compile_loss=torch.compile)


# --- JAX.

def jax_with_threads():
    import os
    if os.environ["OMP_NUM_THREADS"] == "1":
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    return jax


def adam_state(jax, weights):
    """Weights, both moments and the number of steps."""
    zeros = jax.numpy.zeros_like
    return weights, jax.tree.map(zeros, weights), jax.tree.map(zeros, weights), jax.numpy.zeros(())


def jax_adam(jax, state, gradients, rate=1e-5, b1=0.9, b2=0.999, decay=0.0):
    """A step of Adam, or of AdamW with a decay."""
    weights, m, v, t = state
    m = jax.tree.map(lambda a, g: b1 * a + (1 - b1) * g, m, gradients)
    v = jax.tree.map(lambda a, g: b2 * a + (1 - b2) * g * g, v, gradients)
    c1, c2 = 1 - b1 ** (t + 1), 1 - b2 ** (t + 1)
    weights = jax.tree.map(lambda w, a, s: w * (1 - rate * decay) - rate * (a / c1) / (jax.numpy.sqrt(s / c2) + 1e-8),
                           weights, m, v)
    return weights, m, v, t + 1


def jax_rows():
    jax = jax_with_threads()
    import jax.numpy as jnp
    keys = iter(jax.random.split(jax.random.PRNGKey(0), 64))

    def parameters(widths):
        return [(jax.random.normal(next(keys), (into, out)) * (2 / into) ** 0.5, jnp.zeros(out))
                for into, out in zip(widths, widths[1:])]

    def forward(weights, x):
        for i, (w, b) in enumerate(weights):
            x = x @ w + b
            x = jax.nn.relu(x) if i + 1 < len(weights) else x
        return x

    def sgd(weights, gradients, rate=1e-3):
        return jax.tree.map(lambda w, g: w - rate * g, weights, gradients)

    x = jax.random.normal(next(keys), (POINTS, 2))
    y = jnp.sign(jax.random.normal(next(keys), (POINTS, 1)))

    def margin(weights):
        return jax.nn.relu(1 - y * forward(weights, x)).mean()

    def one(weights, _):
        loss, gradients = jax.value_and_grad(margin)(weights)
        return sgd(weights, gradients), loss
    hundred = jax.jit(lambda weights: jax.lax.scan(one, weights, None, length=100), donate_argnums=0)
    moons = [parameters(WIDTHS)]

    def run_moons():
        moons[0], losses = hundred(moons[0])
        return losses.tolist()

    images = jax.random.normal(next(keys), (BATCH, LAYERS[0]))
    labels = jax.random.randint(next(keys), (BATCH,), 0, LAYERS[-1])

    def loss_of(weights, a, b):
        logs = jax.nn.log_softmax(forward(weights, a))
        return -jnp.take_along_axis(logs, b[:, None], 1).mean()

    def row(update, state, weights_of):
        def step(state, a, b):
            loss, gradients = jax.value_and_grad(loss_of)(weights_of(state), a, b)
            return update(state, gradients), loss
        compiled, kept = jax.jit(step, donate_argnums=0), [state]

        def run():
            kept[0], loss = compiled(kept[0], images, labels)
            return float(loss)
        return run
    return {MOONS: run_moons, SGD: row(sgd, parameters(LAYERS), lambda state: state),
            ADAM: row(partial(jax_adam, jax), adam_state(jax, parameters(LAYERS)), lambda state: state[0])}


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, compiled_rows, torch_rows,
                       **{"torch.compile": torch_compiled_rows, "JAX": jax_rows, "plugrad, eager": plugrad_rows})
