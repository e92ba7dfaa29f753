"""Trains a transformer of PyTorch on the device @NAME@:0, beside PyTorch's CPU. torch_test.py PLUGIN

Needs the package plugrad-torch. No op may run on the CPU instead.
"""
import os
import sys

os.environ.setdefault("PLUGRAD_FALLBACK", "error")

import plugrad_torch  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (y.view(n, length, self.heads, -1).transpose(1, 2) for y in self.qkv(self.before(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, width)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=65, length=16, width=32):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.token(tokens) + self.position(places))))


def losses(device, steps=10):
    torch.manual_seed(1)
    tokens = torch.randint(65, (8, 17)).to(device)
    model = GPT().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def main():
    plugrad_torch.load_plugin(os.path.abspath(sys.argv[1]))
    ours, theirs = losses(plugrad_torch.device("@NAME@")), losses("cpu")
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print(f"loss {ours[0]:.4f} to {ours[-1]:.4f} in {len(ours)} steps; PyTorch's CPU differs by {worst:.1e}")
    sys.exit(0 if worst < 1e-4 and ours[-1] < ours[0] else 1)


if __name__ == "__main__":
    main()
