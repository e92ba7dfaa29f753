#!/usr/bin/env python3
"""Compares compiled chains of elementwise ops and sums, also behind a product, in one run: alternating rounds, medians, and
the spread.

    bench/python/fusions.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]

Each library gets the same function, written with its elementwise ops, and compiles it: plugrad the whole step with its
backward pass, torch.compile the function (PyTorch's autograd then runs the compiled backward pass), JAX the function with
its gradients. Gradients are new tensors in each call. Adam works in place where the library can; JAX donates its operands.
"""
import turns

SIDE = 1000
RELU = "(relu(x) x).sum(), forward + backward, {}"
BIAS, GELU = "bias + relu of 1000x1000, forward + backward", "bias + gelu of 1000x1000, forward + backward"
NORM, LOSS = "layer norm of 1000x1000, forward + backward", "softmax cross-entropy of 1000x1000, forward + backward"
ADAM = "Adam by hand, 1e6"
PRODUCT, BLOCK = "product of 512x768x3072", "product + bias + gelu of 512x768x3072"
TRAINED = "product + bias + gelu of 512x768x3072, forward + backward"
COUNTS = {"1e5": 10**5, "1e6": 10**6, "1e7": 10**7}


# --- plugrad and PyTorch, whose functions have the same names.

def functions(lib, f):
    def norm(x, w, b):
        c = x - x.mean(-1, keepdim=True)
        return c / ((c * c).mean(-1, keepdim=True) + 1e-5).sqrt() * w + b

    def loss(x, labels):
        shifted = x - x.detach().amax(-1, keepdim=True)
        return -(labels * (shifted - shifted.exp().sum(-1, keepdim=True).log())).sum() / SIDE
    return {PRODUCT: lambda x, w, b: x @ w, BLOCK: lambda x, w, b: f.gelu(x @ w + b),
            "relu": lambda x: (lib.relu(x) * x).sum(), BIAS: lambda x, b: lib.relu(x + b), GELU: lambda x, b: f.gelu(x + b),
            NORM: norm, LOSS: loss}


def adam(p, m, v, g):
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.999).add_(g * g, alpha=0.001)
    p.add_(m / (v.sqrt() + 1e-8), alpha=-0.001)


def rows_of(lib, f, compile_function=lambda g: g, compile_step=lambda g: g):
    made, rows = functions(lib, f), {}

    def passes(name, function, operands, constants=(), grad=None):
        """A row of a forward and a backward pass, with gradients of the operands."""
        leaves, compiled = [each.requires_grad_() for each in operands], compile_function(function)

        def step():
            for each in leaves:
                each.grad = None
            compiled(*leaves, *constants).backward(grad)
        rows[name] = compile_step(step)

    def infers(name, operands):
        """A row of a forward pass alone."""
        compiled = compile_step(compile_function(made[name]))

        def step():
            with lib.no_grad():
                compiled(*operands)
        rows[name] = step

    for text, count in COUNTS.items():
        passes(RELU.format(text), made["relu"], [lib.randn((count,))])

    def square():
        return lib.randn((SIDE, SIDE))
    passes(BIAS, made[BIAS], [square(), lib.randn((SIDE,))], grad=square())
    passes(GELU, made[GELU], [square(), lib.randn((SIDE,))], grad=square())
    passes(NORM, made[NORM], [square(), lib.ones((SIDE,)), lib.zeros((SIDE,))], grad=square())
    passes(LOSS, made[LOSS], [square()], [f.one_hot(lib.arange(SIDE), SIDE).to(lib.float32)])
    layer = [lib.randn((512, 768)), lib.randn((768, 3072)) * 768**-0.5, lib.randn((3072,))]  # weights as networks have them
    infers(PRODUCT, layer)
    infers(BLOCK, layer)
    passes(TRAINED, made[BLOCK], [each * 1 for each in layer], grad=lib.randn((512, 3072)))
    state = [lib.randn((10**6,)), lib.zeros((10**6,)), lib.zeros((10**6,)), lib.randn((10**6,))]
    update = compile_step(compile_function(adam))

    def adam_step():
        with lib.no_grad():
            update(*state)
    rows[ADAM] = adam_step
    return rows


def eager_rows():
    import plugrad
    from plugrad import nn
    return rows_of(plugrad, nn.functional)


def compiled_rows():
    import plugrad
    from plugrad import nn
    return rows_of(plugrad, nn.functional, compile_step=plugrad.compile)


def torch_rows(**compiling):
    import os
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    return rows_of(torch, torch.nn.functional, **compiling)


def torch_compiled_rows():
    import torch
    return torch_rows(compile_function=torch.compile)


# --- JAX.

def jax_rows():
    import os
    if os.environ["OMP_NUM_THREADS"] == "1":
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax
    import jax.numpy as jnp
    keys, rows = iter(jax.random.split(jax.random.PRNGKey(0), 64)), {}

    def normal(*shape):
        return jax.random.normal(next(keys), shape)

    def passes(name, function, operands, constants=(), grad=None):
        def both(*given):
            value, back = jax.vjp(lambda *x: function(*x, *constants), *given)
            return value, back(jnp.ones(()) if grad is None else grad)
        compiled = jax.jit(both)
        rows[name] = lambda: jax.block_until_ready(compiled(*operands))

    def norm(x, w, b):
        c = x - x.mean(-1, keepdims=True)
        return c / jnp.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * w + b

    def loss(x, labels):
        shifted = x - jax.lax.stop_gradient(x.max(-1, keepdims=True))
        return -(labels * (shifted - jnp.log(jnp.exp(shifted).sum(-1, keepdims=True)))).sum() / SIDE
    for text, count in COUNTS.items():
        passes(RELU.format(text), lambda x: (jax.nn.relu(x) * x).sum(), [normal(count)])
    square = normal(SIDE, SIDE)
    passes(BIAS, lambda x, b: jax.nn.relu(x + b), [square, normal(SIDE)], grad=normal(SIDE, SIDE))
    passes(GELU, lambda x, b: jax.nn.gelu(x + b, approximate=False), [square, normal(SIDE)], grad=normal(SIDE, SIDE))
    passes(NORM, norm, [square, jnp.ones(SIDE), jnp.zeros(SIDE)], grad=normal(SIDE, SIDE))
    passes(LOSS, loss, [square], [jnp.eye(SIDE)])

    def block(x, w, b):
        return jax.nn.gelu(x @ w + b, approximate=False)
    layer = [normal(512, 768), normal(768, 3072) * 768**-0.5, normal(3072)]
    products, blocks = jax.jit(lambda x, w, b: x @ w), jax.jit(block)
    rows[PRODUCT] = lambda: jax.block_until_ready(products(*layer))
    rows[BLOCK] = lambda: jax.block_until_ready(blocks(*layer))
    passes(TRAINED, block, layer, grad=normal(512, 3072))

    def update(p, m, v, g):
        m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
        return p - m / (jnp.sqrt(v) + 1e-8) * 0.001, m, v
    compiled = jax.jit(update, donate_argnums=(0, 1, 2))
    state, gradient = [normal(10**6), jnp.zeros(10**6), jnp.zeros(10**6)], normal(10**6)

    def adam_step():
        state[:] = jax.block_until_ready(compiled(*state, gradient))
    rows[ADAM] = adam_step
    return rows


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, compiled_rows, torch_rows,
                       **{"torch.compile": torch_compiled_rows, "JAX": jax_rows, "plugrad, eager": eager_rows})
