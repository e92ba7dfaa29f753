#!/usr/bin/env python3
"""Compares data parallel training with PyTorch's DistributedDataParallel, both over Gloo, in turns in one run.

    build/venv/bin/python bench/python/ranks.py [--ranks 2] [--rounds 7] [--torch-python PYTHON] [--out FILE]

Each process trains on one thread of its own batch. A turn starts the processes of one library for some steps; a row has the
medians over the turns: of a step's wall-clock time, and of a step's processor time of rank 0. `alone` is one process on a
batch of the same size, whose gradients go nowhere; `apart` is as many of them at the same time as there are ranks, which
shows what processes cost each other where they share cores and memory. PYTHON, by default build/torch-2.15.0/bin/python,
has PyTorch.
"""
import argparse
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import turns

ROOT = Path(__file__).resolve().parents[2]
WARM = 10
MODELS = {"MLP 784-512-512-10, batch 256, SGD": ("mlp", 60), "GPT, 4 x 128, 6 x 64, SGD": ("gpt", 30)}


def gpt_of(nn, functional):
    """Returns the transformer of examples/gpt for either library."""
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width, bias=False), nn.LayerNorm(width, bias=False)
            self.qkv, self.project = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

        def forward(self, x):
            q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(self.norm1(x)).chunk(3, -1))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.characters, self.places = nn.Embedding(80, 128), nn.Embedding(64, 128)
            self.blocks = nn.ModuleList([Block(128, 4) for _ in range(4)])
            self.norm = nn.LayerNorm(128, bias=False)

        def forward(self, ids):
            x = self.characters(ids) + self.places.weight
            for block in self.blocks:
                x = block(x)
            return functional.linear(self.norm(x), self.characters.weight).flatten(0, 1)
    return GPT()


def library(name):
    """Returns the library, its distributed module and its settings for one thread."""
    if name == "torch":
        import torch
        import torch.distributed as distributed
        torch.set_num_threads(1)
        return torch, distributed
    import plugrad
    from plugrad import distributed
    plugrad.set_num_threads(1)
    return plugrad, distributed


def work(name, model_name, steps, ranks):
    lib, distributed = library(name.removesuffix(" compiled"))
    nn, functional = lib.nn, lib.nn.functional
    lib.manual_seed(1)
    if model_name == "mlp":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        x, y = lib.randn(256, 784), lib.randint(0, 10, (256,))
    else:
        model = gpt_of(nn, functional)
        x, y = lib.randint(0, 80, (6, 64)), lib.randint(0, 80, (6 * 64,))
    if ranks > 1:
        distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.01)

    def make_step(x, y):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    run = lib.compile(make_step) if name.endswith(" compiled") else make_step
    walls, begun = [], 0.0
    for step in range(WARM + steps):
        if step == WARM:
            begun = time.process_time()
        start = time.perf_counter()
        run(x, y)
        walls.append(time.perf_counter() - start)
    processor = (time.process_time() - begun) / steps
    print(json.dumps({"wall": statistics.median(walls[WARM:]), "processor": processor}), flush=True)
    if ranks > 1:
        distributed.destroy_process_group()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def turn(python, name, model_name, steps, processes_at_once, ranks):
    """Runs the processes of one library, in one group if there are several ranks. Returns the first one's figures."""
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        port = str(free_port())
        for rank in range(processes_at_once):
            environment = turns.environment_for(1) | {
                "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port, "PLUGRAD_STORE": f"file://{folder}"}
            command = [python, __file__, "--work", name, model_name, str(steps), str(ranks)]
            processes.append(subprocess.Popen(command, env=environment, text=True,
                                              stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL))
        said = processes[0].communicate(timeout=600)[0].splitlines()
        for process in processes:
            process.wait(timeout=60)
        if not said:  # PyTorch's ranks sometimes abort when they leave the group, after their figures
            sys.exit(f"ranks.py: {name} failed")
        return json.loads(said[-1])


def measure(options):
    """Yields lines of a Markdown table."""
    ours, theirs = sys.executable, options.torch_python
    n = options.ranks
    columns = [("plugrad alone", ours, "plugrad", 1, 1), ("plugrad apart", ours, "plugrad", n, 1),
               ("plugrad", ours, "plugrad", n, n), ("plugrad compiled", ours, "plugrad compiled", n, n),
               ("PyTorch alone", theirs, "torch", 1, 1), ("PyTorch", theirs, "torch", n, n)]
    yield f"| {options.ranks} ranks, ms a step | " + " | ".join(f"{name}: wall, processor" for name, *_ in columns) + \
        " | PyTorch / plugrad, wall | plugrad / alone, processor | plugrad / apart, processor " \
        "| PyTorch / plugrad compiled, wall |"
    yield "|---|" + "---|" * (len(columns) + 4)
    for row, (model_name, steps) in MODELS.items():
        found = {name: [] for name, *_ in columns}
        for _ in range(options.rounds):
            for name, python, lib, at_once, ranks in columns:
                found[name].append(turn(python, lib, model_name, steps, at_once, ranks))
        medians = {name: {key: statistics.median(each[key] for each in runs) * 1e3 for key in ("wall", "processor")}
                   for name, runs in found.items()}
        cells = [f"{medians[name]['wall']:.2f}, {medians[name]['processor']:.2f}" for name, *_ in columns]
        wall = medians["PyTorch"]["wall"] / medians["plugrad"]["wall"]
        alone, apart = (medians["plugrad"]["processor"] / medians[f"plugrad {other}"]["processor"]
                        for other in ("alone", "apart"))
        compiled = medians["PyTorch"]["wall"] / medians["plugrad compiled"]["wall"]
        yield f"| {row} | " + " | ".join(cells) + f" | {wall:.2f} | {alone:.2f} | {apart:.2f} | {compiled:.2f} |"


def main():
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--torch-python", default=str(ROOT / "build/torch-2.15.0/bin/python"))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in measure(options):
        print(line, flush=True)
        lines.append(line + "\n")
    if options.out:
        options.out.write_text("".join(lines))


if __name__ == "__main__":
    main()
