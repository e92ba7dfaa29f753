#!/usr/bin/env python3
"""Compares whole models with PyTorch, and SmolLM2 with llama.cpp, in one run: alternating rounds, medians, and the spread.

    bench/python/models.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]

The same code computes each model in plugrad and PyTorch, except for rotary positions, for which plugrad has a function. The
weights are random: no time depends on them. PyTorch uses its fused optimisers and its inference mode. llama.cpp runs its own
code on the published weights. Training rows are one step, "prefill" reads 512 tokens, and "decode" writes one token after
128 to 160 earlier tokens.
"""
import math
import os
from functools import partial
from pathlib import Path

import turns


class Net:
    """Weights by name, each made at its first use."""

    def __init__(self, make):
        self.make, self.weights = make, {}

    def __call__(self, name, *shape):
        if name not in self.weights:
            self.weights[name] = self.make(*shape)
        return self.weights[name]


# --- The models: `t` is a library (see Torch and Plugrad), whose `lib` and `F` have PyTorch's names.

def cnn(t, net, images, labels):
    """PyTorch's example for MNIST: the loss of a batch."""
    x = t.F.relu(t.F.conv2d(images, net("c1", 32, 1, 3, 3), net("b1", 32)))
    x = t.F.relu(t.F.conv2d(x, net("c2", 64, 32, 3, 3), net("b2", 64)))
    x = t.F.dropout(t.F.max_pool2d(x, 2), 0.25, True).flatten(1)
    x = t.F.dropout(t.F.relu(t.F.linear(x, net("l1", 128, 9216), net("b3", 128))), 0.5, True)
    return t.F.cross_entropy(t.F.linear(x, net("l2", 10, 128), net("b4", 10)), labels)


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def gpt(t, net, ids, targets, layers=4, heads=4, width=128):
    """nanoGPT's configuration for a CPU: the loss of a batch."""
    places = net("places", 64, width)
    x = t.F.embedding(ids, net("characters", 65, width)) + places
    for i in range(layers):
        h = t.F.layer_norm(x, (width,), net(f"n1.{i}", width))
        q, k, v = (heads_of(each, heads) for each in t.F.linear(h, net(f"qkv{i}", 3 * width, width)).chunk(3, -1))
        y = t.F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + t.F.linear(y, net(f"o{i}", width, width))
        h = t.F.layer_norm(x, (width,), net(f"n2.{i}", width))
        x = x + t.F.linear(t.F.gelu(t.F.linear(h, net(f"up{i}", 4 * width, width))), net(f"down{i}", width, 4 * width))
    x = t.F.layer_norm(x, (width,), net("n", width))
    return t.F.cross_entropy(t.F.linear(x, net("characters", 65, width)).flatten(0, 1), targets.flatten())


def minilm(t, net, ids, mask, width=384, heads=12, layers=6):
    """MiniLM-L6: the embeddings of sentences. mask: (n, l), 1 for tokens."""
    n, length = ids.shape

    def linear(x, name, out, into):
        return t.F.linear(x, net(name + ".w", out, into), net(name + ".b", out))

    def norm(x, name):
        return t.F.layer_norm(x, (width,), net(name + ".w", width), net(name + ".b", width), 1e-12)
    x = norm(t.F.embedding(ids, net("words", 30522, width)) + net("places", 512, width)[:length] + net("kind", width), "e")
    seen = (mask > 0).reshape(n, 1, 1, length).expand(n, 1, length, length)
    for i in range(layers):
        q, k, v = (heads_of(linear(x, f"{name}{i}", width, width), heads) for name in "qkv")
        y = t.F.scaled_dot_product_attention(q, k, v, seen).transpose(1, 2).flatten(2)
        x = norm(x + linear(y, f"o{i}", width, width), f"n1.{i}")
        x = norm(x + linear(t.F.gelu(linear(x, f"up{i}", 4 * width, width)), f"down{i}", width, 4 * width), f"n2.{i}")
    weights = mask.unsqueeze(-1).to(x.dtype)
    return t.F.normalize((x * weights).sum(1) / weights.sum(1), dim=-1)


class Llama:
    """SmolLM2-135M's shape, with the keys and values of earlier tokens."""

    WIDTH, HEADS, KV, LAYERS, INNER, WORDS, CONTEXT = 576, 9, 3, 30, 1536, 49152, 1024

    def __init__(self, t, net):
        self.t, self.net, self.extent = t, net, self.WIDTH // self.HEADS
        self.caches = [[t.zeros(1, self.KV, self.CONTEXT, self.extent) for _ in range(2)] for _ in range(self.LAYERS)]
        angles = [[place / 10000 ** (2 * i / self.extent) for i in range(self.extent // 2)] for place in range(self.CONTEXT)]
        self.cos, self.sin = (t.tensor([[f(a) for a in row] for row in angles]) for f in (math.cos, math.sin))

    def linear(self, x, name, out, into):
        return self.t.F.linear(x, self.net(name, out, into))

    def norm(self, x, name):
        return self.t.F.rms_norm(x, (self.WIDTH,), self.net(name, self.WIDTH), 1e-5)

    def __call__(self, ids, at):
        """ids (1, l) -> the logits after the last id."""
        t, end = self.t, at + ids.shape[1]
        cos, sin = self.cos[at:end], self.sin[at:end]
        x = t.F.embedding(ids, self.net("words", self.WORDS, self.WIDTH))
        for i, (keys, values) in enumerate(self.caches):
            h, kv = self.norm(x, f"n1.{i}"), self.KV * self.extent
            q, k, v = (heads_of(self.linear(h, f"{name}{i}", out, self.WIDTH), heads)
                       for name, out, heads in (("q", self.WIDTH, self.HEADS), ("k", kv, self.KV), ("v", kv, self.KV)))
            q, k = t.rotated(q, cos, sin), t.rotated(k, cos, sin)
            keys[:, :, at:end], values[:, :, at:end] = k, v
            y = t.F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], is_causal=at == 0,
                                                 enable_gqa=True)
            x = x + self.linear(y.transpose(1, 2).flatten(2), f"o{i}", self.WIDTH, self.WIDTH)
            h = self.norm(x, f"n2.{i}")
            gate, up = (self.linear(h, f"{name}{i}", self.INNER, self.WIDTH) for name in "gu")
            gated = t.F.silu(gate) * up
            x = x + self.linear(gated, f"d{i}", self.WIDTH, self.INNER)
        return self.linear(self.norm(x[:, -1:], "n"), "words", self.WORDS, self.WIDTH)


# --- The rows.

def training_row(t, model, optimizer_of, *data):
    net = Net(lambda *shape: t.parameter(*shape))
    model(t, net, *data)
    optimizer = optimizer_of(list(net.weights.values()))

    def step():
        loss = model(t, net, *data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def decoding_row(t, llama):
    token, at = t.indices(llama.WORDS, 1, 1), [128]

    def step():
        at[0] = 128 + (at[0] - 127) % 32
        return t.argmax(llama(token, at[0]))
    return t.quietly(step)


def rows_of(t):
    rows = {
        "CNN, training, batch 128": training_row(t, cnn, t.adam, t.randn(128, 1, 28, 28), t.indices(10, 128)),
        "nanoGPT, training, 12x64": training_row(t, gpt, t.adamw, t.indices(65, 12, 64), t.indices(65, 12, 64)),
    }
    for dtype in ("f32", "bf16"):
        rows.update(reading_rows(type(t)(dtype), dtype))
    return rows


def reading_rows(t, dtype):
    rows, net, llama = {}, Net(t.weight), Llama(t, Net(t.weight))
    for n, length in ((1, 32), (32, 128)):
        ids, mask = t.indices(30000, n, length), t.ones(n, length)
        rows[f"MiniLM {n}x{length}, {dtype}"] = t.quietly(partial(minilm, t, net, ids, mask))
    prompt = t.indices(llama.WORDS, 1, 512)
    rows[f"SmolLM2, prefill 512, {dtype}"] = t.quietly(lambda: t.argmax(llama(prompt, 0)))
    rows[f"SmolLM2, decode, {dtype}"] = decoding_row(t, llama)
    return rows


# --- The libraries.

class Library:
    """A library whose weights, zeros and tensors have one dtype."""

    def weight(self, *shape):
        return (self.lib.randn(shape) * 0.02).to(dtype=self.dtype)

    def parameter(self, *shape):
        made = self.lib.randn(shape) * 0.02 if len(shape) > 1 else self.lib.ones(shape)
        return made.detach().requires_grad_()

    def zeros(self, *shape):
        return self.lib.zeros(shape, dtype=self.dtype)

    def ones(self, *shape):
        return self.lib.ones(shape)

    def randn(self, *shape):
        return self.lib.randn(shape)

    def indices(self, high, *shape):
        return self.lib.randint(0, high, shape)

    def tensor(self, data):
        return self.lib.tensor(data).to(dtype=self.dtype)

    def argmax(self, x):
        return int(x.argmax())


class Torch(Library):
    def __init__(self, dtype="f32"):
        import torch
        self.lib, self.F, self.dtype = torch, torch.nn.functional, {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]

    def adam(self, parameters):
        return self.lib.optim.Adam(parameters, 1e-3, fused=True)

    def adamw(self, parameters):
        return self.lib.optim.AdamW(parameters, 1e-3, fused=True)

    def quietly(self, run):
        def quiet():
            with self.lib.inference_mode():
                return run()
        return quiet

    def rotated(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return self.lib.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Plugrad(Library):
    def __init__(self, dtype="f32"):
        import plugrad
        self.lib, self.F, self.dtype = plugrad, plugrad.nn.functional, dtype

    def adam(self, parameters):
        return self.lib.optim.Adam(parameters, 1e-3)

    def adamw(self, parameters):
        return self.lib.optim.AdamW(parameters, 1e-3)

    def quietly(self, run):
        def quiet():
            with self.lib.no_grad():
                return run()
        return quiet

    def rotated(self, x, cos, sin):
        return self.lib.rotary_embedding(x, cos, sin)


def torch_rows():
    import torch
    torch.manual_seed(1)
    return rows_of(Torch())


def plugrad_rows():
    import plugrad
    plugrad.manual_seed(1)
    return rows_of(Plugrad())


def llama_rows():
    """llama.cpp reads SmolLM2's weights from the files that bench/install_peers.sh converts."""
    from llama_cpp import Llama as Model
    folder, rows = Path(__file__).parents[2] / "build-peers/llama", {}
    threads = int(os.environ["OMP_NUM_THREADS"])
    if not folder.exists():
        return rows
    for dtype in ("f32", "bf16"):
        model = Model(str(folder / f"{dtype}.gguf"), n_ctx=1024, n_batch=512, n_threads=threads, n_threads_batch=threads,
                      verbose=False)
        rows[f"SmolLM2, prefill 512, {dtype}"] = partial(continued, model, range(1000, 1512), [0], 0)
        continued(model, range(1000, 1128), [0], 0)
        rows[f"SmolLM2, decode, {dtype}"] = partial(continued, model, [1000], [128], 1)
    return rows


def continued(model, ids, at, step):
    """Computes the logits after ids at a position, which moves by `step` within 32 positions."""
    model.n_tokens = at[0]
    model.eval(ids)
    at[0] += step * (1 if at[0] < 159 else -31)


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, plugrad_rows, torch_rows, **{"llama.cpp": llama_rows})
