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


def digits():
    """Fashion-MNIST's network, its optimiser and a batch."""
    net = torch.nn.Sequential(torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                              torch.nn.Linear(512, 10)).to(device)
    adam = torch.optim.Adam(net.parameters(), 1e-3, fused=True, capturable=True)
    return net, adam, torch.rand(256, 784, device=device), torch.full((256,), 3, device=device)


STEPS = "steps of 784-512-512-10, batch 256, Adam"
CHAIN = "(relu(x) x).sum() and its gradient, 1e7"


def step_of(loss_of, adam):
    def step():
        adam.zero_grad(set_to_none=True)
        loss_of().backward()
        adam.step()
    return step


def chain_of(f):
    a = torch.rand(10_000_000, device=device, requires_grad=True)

    def chain():
        a.grad = None
        f(a).backward()
    return chain


def captured(work):
    """Returns the work as a CUDA graph. First warms up on a separate stream, as torch's notes on graphs recommend."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def steps():
    def loss(net, x, target):
        return torch.nn.functional.cross_entropy(net(x), target)

    def product(a):
        return (torch.relu(a) * a).sum()
    net, adam, x, target = digits()
    show(STEPS, 1 / seconds_of(step_of(lambda: loss(net, x, target), adam)), "/s")
    compiled_loss, compiled_product = torch.compile(loss), torch.compile(product)
    for how, wrap in (("compiled", lambda work: work), ("compiled, as a graph", captured)):
        net, adam, x, target = digits()
        show(f"{STEPS}, {how}", 1 / seconds_of(wrap(step_of(lambda: compiled_loss(net, x, target), adam))), "/s")
        show(f"{CHAIN}, {how}", 1 / seconds_of(wrap(chain_of(compiled_product))), "/s")


def updates():
    parameters = [torch.rand(256 if i % 2 else 256 * 256, device=device, requires_grad=True) for i in range(64)]
    for each in parameters:
        each.grad = torch.ones_like(each)
    adam = torch.optim.Adam(parameters, 1e-3, fused=True)
    show("steps of Adam alone, 64 parameters, 2.1 million elements", 1 / seconds_of(adam.step), "/s")


with torch.no_grad():
    bandwidths()
    products("matmul f32", False)
    call()
    products("matmul tf32", True)
updates()
steps()
