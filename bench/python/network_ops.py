#!/usr/bin/env python3
"""Compares the ops of neural networks with PyTorch in one run: alternating rounds, medians, and the spread.

    bench/python/network_ops.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]

plugrad runs in this interpreter, PyTorch in the interpreter of --peers (bench/install_peers.sh). Each has its own process,
in which glibc keeps large allocations. A row with "forward + backward" sums the result and computes all gradients.
"""
import turns

CHANNELS = {"conv 32x1x28x28 -> 32": (32, 1, 32, 28), "conv 32x32x14x14 -> 64": (32, 32, 64, 14),
            "conv 8x64x56x56 -> 64": (8, 64, 64, 56)}


# --- The rows: functions of a library with PyTorch's names, `lib`, and of its functional module `F`.

def network_rows(lib, F, random, indices, leaf):  # noqa: N803
    """random(*shape), indices(high, *shape) and leaf(tensor) make operands; leaf makes a leaf with a gradient."""
    rows = {}

    def both(name, function, *operands):
        """A row of the forward pass on constants, and a row of both passes on leaves."""
        rows[f"{name}: forward"] = lambda: function(*operands)
        leaves = [leaf(each) if "float" in str(each.dtype) or "f32" in str(each.dtype) else each for each in operands]
        shape = function(*operands).shape
        grad = random(*shape)

        def passes():
            for each in leaves:
                each.grad = None
            function(*leaves).backward(grad)
        rows[f"{name}: forward + backward"] = passes

    for name, (n, c, o, side) in CHANNELS.items():
        both(name, lambda x, w, b: F.conv2d(x, w, b, padding=1), random(n, c, side, side), random(o, c, 3, 3), random(o))
    image = random(32, 64, 28, 28)
    both("max_pool 2x2 of 32x64x28x28", lambda x: F.max_pool2d(x, 2), image)
    both("batch_norm of 32x64x28x28", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), image, random(64), random(64))
    tokens = random(64, 256, 384)
    both("layer_norm of 64x256x384", lambda x, w, b: F.layer_norm(x, (384,), w, b), tokens, random(384), random(384))
    scores = random(64, 6, 256, 256)
    both("softmax of 64x6x256x256", lambda x: F.softmax(x, -1), scores)
    triangle = lib.triu(lib.ones((256, 256)), 1) > 0
    both("masked_fill of 64x6x256x256", lambda x: x.masked_fill(triangle, float("-inf")), scores)
    wide = random(64, 256, 1536)
    both("gelu of 64x256x1536", F.gelu, wide)
    both("gelu (tanh) of 64x256x1536", lambda x: F.gelu(x, approximate="tanh"), wide)
    both("dropout 0.1 of 64x256x384", lambda x: F.dropout(x, 0.1, True), tokens)
    heads = [random(16, 6, 256, 64) for _ in range(3)]
    both("causal attention of 16x6x256x64", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *heads)
    words = indices(50000, 16384)
    both("embedding of 16384 in 50000x384", lambda w: F.embedding(words, w), random(50000, 384))
    for n, c in ((16384, 65), (2048, 50304)):
        targets = indices(c, n)
        both(f"cross-entropy of {n}x{c}", lambda x, targets=targets: F.cross_entropy(x, targets), random(n, c))
    square = random(4096, 4096)
    picks, rows_picked = indices(4096, 4096, 1024), indices(4096, 1024)
    both("gather of 4096x1024 from 4096x4096", lambda x: lib.gather(x, 1, picks), square)
    both("index_select of 1024 rows of 4096", lambda x: lib.index_select(x, 0, rows_picked), square)
    both("cumsum of 4096x4096 along 1", lambda x: lib.cumsum(x, 1), square)
    both("cumsum of 4096x4096 along 0", lambda x: lib.cumsum(x, 0), square)
    rows["argmax of 4096x4096 along 1"] = lambda: lib.argmax(square, 1)
    rows["argmax of 4096x4096 along 0"] = lambda: lib.argmax(square, 0)
    line, block, logits = random(1_000_000), random(4096, 1024), random(64, 50304)
    rows["sort of 1000000"] = lambda: lib.sort(line)
    rows["sort of 4096x1024 along 1"] = lambda: lib.sort(block, 1)
    rows["topk 50 of 64x50304"] = lambda: lib.topk(logits, 50)
    return rows


def plugrad_rows():
    import plugrad
    plugrad.manual_seed(1)

    def indices(high, *shape):
        return plugrad.randint(0, high, shape)

    def leaf(x):
        return x.detach().requires_grad_()
    a, b = plugrad.randn((1024, 1024)), plugrad.randn((1024, 1024))
    rows = network_rows(plugrad, plugrad.nn.functional, lambda *shape: plugrad.randn(shape), indices, leaf)
    rows["matmul 1024 in f32"] = lambda: a @ b
    half = [each.to("bf16") for each in (a, b)]
    rows["matmul 1024 in bf16"] = lambda: half[0] @ half[1]
    parameters = [plugrad.randn((500_000,)).requires_grad_() for _ in range(20)]
    for each in parameters:
        each.grad = plugrad.randn((500_000,))
    adam = plugrad.optim.Adam(parameters)
    rows["Adam, 20 x 500000"] = adam.step
    return rows


def torch_rows():
    import torch
    torch.manual_seed(1)
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)

    def indices(high, *shape):
        return torch.randint(0, high, shape)

    def leaf(x):
        return x.detach().clone().requires_grad_()
    rows = network_rows(torch, torch.nn.functional, lambda *shape: torch.randn(shape), indices, leaf)
    rows["matmul 1024 in f32"] = lambda: a @ b
    half = [each.bfloat16() for each in (a, b)]
    rows["matmul 1024 in bf16"] = lambda: half[0] @ half[1]
    parameters = [torch.randn(500_000).requires_grad_() for _ in range(20)]
    for each in parameters:
        each.grad = torch.randn(500_000)
    adam = torch.optim.Adam(parameters, fused=True)
    rows["Adam, 20 x 500000"] = adam.step
    return rows


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, plugrad_rows, torch_rows)
