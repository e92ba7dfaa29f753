"""Measures the rates of bench/rates.cpp for PyTorch eager on the first GPU. Prints lines of NAME, tab, VALUE, tab, UNIT."""
import time

import torch

ROUNDS, ROUND = 7, 0.1
device = torch.device("cuda:0")


def seconds_of(work):
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    calls = min(max(int(ROUND / max(time.perf_counter() - start, 1e-9)), 1), 2000)
    best = 1e9
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def show(name, value, unit):
    print(f"{name}\t{value:.6g}\t{unit}", flush=True)


def bandwidths():
    mega = 16
    while mega <= 256:
        n = mega << 20
        a, b = torch.rand(n, device=device), torch.rand(n, device=device)
        rows = a.view(-1, 4096)
        for name, arrays, work in (
                ("copy", 2, lambda: a.clone()), ("add", 3, lambda: a + b), ("mul", 3, lambda: a * b),
                ("relu", 2, lambda: torch.relu(a)), ("exp", 2, lambda: torch.exp(a)), ("sum", 1, lambda: a.sum()),
                ("max", 1, lambda: a.max()), ("sum of rows", 1, lambda: rows.sum(1)),
                ("sum of columns", 1, lambda: rows.sum(0)), ("log_softmax", 2, lambda: torch.log_softmax(rows, 1))):
            show(f"{name} {4 * mega} MiB", arrays * 4e-9 * n / seconds_of(work), "GB/s")
        mega *= 4


def products(name, tf32):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    n = 512
    while n <= 8192:
        a, b = torch.rand(n, n, device=device), torch.rand(n, n, device=device)
        show(f"{name} {n}", 2e-12 * n ** 3 / seconds_of(lambda: a @ b), "TFLOP/s")
        n *= 2
    torch.backends.cuda.matmul.allow_tf32 = False


def call():
    a, b = torch.rand(1, device=device), torch.rand(1, device=device)
    best = 1e9
    for _ in range(200):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            a + b
        best = min(best, (time.perf_counter() - start) / 200)
    show("call of add", best * 1e9, "ns")


def steps():
    net = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                              torch.nn.Linear(512, 10)).to(device)
    adam = torch.optim.Adam(net.parameters(), 1e-3, fused=True)
    x, target = torch.rand(256, 784, device=device), torch.full((256,), 3, device=device)

    def step():
        adam.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), target).backward()
        adam.step()

    show("steps of 784-512-512-10, batch 256, Adam", 1 / seconds_of(step), "/s")


with torch.no_grad():
    bandwidths()
    products("matmul f32", False)
    call()
    products("matmul tf32", True)
steps()
