#!/usr/bin/env python3
"""Trains a small transformer on the King James text, character by character, and prints its text during training.

    sudo apt-get install bible-kjv bible-kjv-text
    python examples/gpt/gpt.py [--steps 2000] [--device cuda] [--picture losses.png]
    python examples/gpt/gpt.py --text my.txt --save my.safetensors
    plugrad launch -n 4 python examples/gpt/gpt.py   # on 4 processes, which share each batch

The network and its training are those of nanoGPT's configuration for a CPU (Karpathy, 2022): 4 layers, 4 heads, 128 wide,
blocks of 64 characters in batches of 12, AdamW with a cosine schedule.
"""
import argparse
import math
import subprocess
import sys
import time
from pathlib import Path

import plugrad
from plugrad import Tensor, distributed, nn, optim
from plugrad.optim import lr_scheduler
from plugrad.text import Characters

BLOCK, BATCH, LAYERS, HEADS, WIDTH = 64, 12, 4, 4, 128
VERSES = r"bible -f -l100000 ge1:1-rev22:21 | sed -E 's/^[^ ]+ //'"


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
        self.qkv, self.project = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attended(self.norm1(x))
        return x + self.down(plugrad.gelu(self.up(self.norm2(x))))

    def attended(self, x: Tensor) -> Tensor:
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        y = plugrad.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project(y.transpose(1, 2).flatten(2))


class GPT(nn.Module):
    """Ids of characters (n, l), l at most BLOCK -> logits (n, l, kinds) of the next characters."""

    def __init__(self, kinds: int) -> None:
        self.characters, self.places = nn.Embedding(kinds, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                last = name.endswith(("project.weight", "down.weight"))
                nn.init.normal_(parameter, 0.0, 0.02 / math.sqrt(2 * LAYERS) if last else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.characters(ids) + self.places.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return plugrad.linear(self.norm(x), self.characters.weight)

    def write(self, ids: list[int], count: int) -> list[int]:
        """Returns ids, followed by count characters drawn from the network's distribution."""
        with plugrad.no_grad():
            for _ in range(count):
                context = plugrad.tensor([ids[-BLOCK:]], device=self.characters.weight.device)
                ids = [*ids, int(plugrad.multinomial(plugrad.softmax(self(context)[0, -1], 0), 1))]
        return ids


def batch(data: Tensor, count: int = BATCH) -> tuple[Tensor, Tensor]:
    """Returns random blocks (count, BLOCK), and the next character of each of their characters."""
    starts = plugrad.randint(0, len(data) - BLOCK, (count, 1), device=data.device)
    places = starts + plugrad.arange(0, BLOCK, device=data.device)
    return data[places], data[places + 1]


def loss_of(model: nn.Module, ids: Tensor, next_ids: Tensor) -> Tensor:
    return plugrad.cross_entropy(model(ids).flatten(0, 1), next_ids.flatten())


def estimate(model: GPT, data: Tensor, batches: int = 20) -> float:
    with plugrad.no_grad():
        return sum(loss_of(model, *batch(data)).item() for _ in range(batches)) / batches


def whole_loss(model: GPT, data: Tensor, limit: int = 200_000) -> float:
    """Returns the mean loss over all consecutive blocks of the first `limit` characters."""
    count = min(limit, len(data) - 1) // BLOCK
    ids, next_ids = (data[i:i + count * BLOCK].reshape(count, BLOCK) for i in (0, 1))
    with plugrad.no_grad():
        parts = [loss_of(model, ids[i:i + 100], next_ids[i:i + 100]).item() * len(ids[i:i + 100])
                 for i in range(0, count, 100)]
    return sum(parts) / count


def read_text(path: Path | None) -> str:
    if path is not None:
        return plugrad.text.read_text(path)
    done = subprocess.run(VERSES, shell=True, capture_output=True, text=True)
    if not done.stdout:
        sys.exit("The King James text is missing: apt-get install bible-kjv bible-kjv-text, or name a text with --text")
    return done.stdout


def optimiser(model: GPT, steps: int) -> tuple[optim.Optimizer, lr_scheduler.LRScheduler]:
    """Returns an optimiser with weight decay for matrices only, and a schedule: 100 steps of warm-up, then a cosine from
    1e-3 to 1e-4."""
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    made = optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], 1e-3, (0.9, 0.99),
                       weight_decay=0.1)
    warm = min(100, steps // 2)

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / (warm + 1)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1, (step - warm) / max(1, steps - warm))))
    return made, lr_scheduler.LambdaLR(made, factor)


def draw(history: list[tuple[int, float, float]], path: Path) -> None:
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(figsize=(7, 4))
    steps, train, held_out = zip(*history)
    axes.plot(steps, train, label="training")
    axes.plot(steps, held_out, label="validation")
    axes.set(xlabel="step", ylabel="loss per character (nats)", title="A transformer reads the King James text")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120, bbox_inches="tight")


def save_model(model: GPT, example: Tensor, path: Path) -> None:
    """Saves the network for ids of the example's kind. `plugrad run` and C++ programs run the file."""
    forward = plugrad.compile(lambda ids: model(ids))
    with plugrad.no_grad():
        forward(example)
    forward.save(path)


def ranks() -> tuple[int, int]:
    """Joins the processes that a launcher started. Returns the rank of this process, and their number."""
    if not distributed.is_launched():
        return 0, 1
    distributed.init_process_group()
    return distributed.get_rank(), distributed.get_world_size()


def main() -> None:
    rank, size = ranks()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a text of your own")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=250, help="steps between two reports")
    parser.add_argument("--device")
    parser.add_argument("--seed", type=int, default=1337)
    parser.add_argument("--save", type=Path, help="where to save the network (.safetensors)")
    parser.add_argument("--saved-model", type=Path, help="where to save it as a model that reads one whole block")
    parser.add_argument("--picture", type=Path, help="where to draw the losses (needs Matplotlib)")
    options = parser.parse_args()
    plugrad.set_default_device(options.device or str(plugrad.default_device()))
    plugrad.manual_seed(options.seed)
    text = read_text(options.text)
    characters = Characters(text)
    data = characters.encode(text)
    split = len(data) * 9 // 10
    train, held_out = data[:split], data[split:]
    model = GPT(len(characters))
    optimizer, schedule = optimiser(model, options.steps)
    trained: nn.Module = nn.parallel.DistributedDataParallel(model) if size > 1 else model
    plugrad.manual_seed(options.seed + rank)  # each process draws samples of its own
    if rank == 0:
        print(f"{len(data):,} characters of {len(characters)} kinds; "
              f"{sum(p.numel() for p in model.parameters()):,} parameters")
    history, start = [], time.perf_counter()
    for step in range(options.steps + 1):
        if rank == 0 and (step % options.every == 0 or step == options.steps):
            history.append((step, estimate(model, train), estimate(model, held_out)))
            print(f"\nstep {step}, {time.perf_counter() - start:.0f} s: loss {history[-1][1]:.3f}, validation "
                  f"{history[-1][2]:.3f}\n{characters.decode(model.write(train[:1].tolist(), 160))}")
        if step == options.steps:
            break
        loss = loss_of(trained, *batch(train, BATCH // size))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    if rank != 0:
        return
    print(f"\nvalidation loss over consecutive blocks: {whole_loss(model, held_out):.4f}")
    if options.save:
        plugrad.save(model.state_dict(), options.save)
    if options.saved_model:
        save_model(model, train[:BLOCK].unsqueeze(0), options.saved_model)
    if options.picture:
        draw(history, options.picture)


if __name__ == "__main__":
    main()
