#!/usr/bin/env python3
"""Compares the CPU with another device, both synchronised: basic, chained, backward and mixed expressions, with Tensor and
Value.

    bench/device.py [--device cuda] [--sizes 1,10000,1000000] [--seconds 0.2]

Prints a table of microseconds on each device, medians of alternating rounds, and how many times faster the other device is.
Without --device it uses the first GPU. If there is no GPU, it uses the plugin `reference` and prints a note.
"""
import argparse
import statistics
import time

import plugrad
from plugrad import Device, Value


def rows(n, device):
    """Returns (group, name, function) for tensors of n elements on a device."""
    side = max(1, int(n**0.5))
    a, b = plugrad.rand((n,), device=device) + 0.5, plugrad.rand((n,), device=device) + 0.5
    m = plugrad.rand((side, side), device=device)
    x = plugrad.rand((n,), device=device).requires_grad_()
    w = plugrad.rand((side, side), device=device).requires_grad_()

    def chain():
        y = a
        for _ in range(10):
            y = y * b + a
        return y

    def backward(build, leaf):
        def run():
            leaf.zero_grad()
            build().backward()
        return run

    return [("basic", "a + b", lambda: a + b), ("basic", "a * 2", lambda: a * 2), ("basic", "exp", lambda: a.exp()),
            ("basic", "sum", lambda: a.sum()),
            ("basic", "matmul", lambda: m @ m), ("chained", "10 x (y * b + a)", chain),
            ("backward", "(relu(x) x).sum()", backward(lambda: (x.relu() * x).sum(), x)),
            ("backward", "tanh(m @ w).sum()", backward(lambda: (m @ w).tanh().sum(), w)),
            ("mixed", "((m @ m + 1) / 2).relu().mean()", lambda: ((m @ m + 1) / 2).relu().mean())]


def value_rows(device):
    v, w = Value(2, device=device), Value(3, device=device)

    def expression():
        return (v * w + v).tanh() * 2 - w / v
    return [("basic", "v + w", lambda: v + w), ("chained", "tanh(v w + v) 2 - w / v", expression),
            ("backward", "the same, backward", lambda: expression().backward())]


def seconds_per_call(run, device, budget):
    run()
    device.synchronize()
    calls, taken = 1, 0.0
    while taken < budget:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        device.synchronize()
        taken = time.perf_counter() - start
        if taken < budget:
            calls = max(calls + 1, int(calls * min(10, 1.2 * budget / max(taken, 1e-9))))
    return taken / calls


def compare(label, ours, theirs, devices, options):
    for (group, name, first), (_, _, second) in zip(ours, theirs):
        times = ([], [])
        for _ in range(options.rounds):
            for run, device, taken in zip((first, second), devices, times):
                taken.append(seconds_per_call(run, device, options.seconds / options.rounds))
        cpu, other = (1e6 * statistics.median(taken) for taken in times)
        print(f"| {label} | {group} | {name} | {cpu:.2f} | {other:.2f} | {cpu / other:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device")
    parser.add_argument("--sizes", default="1,10000,1000000", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--seconds", type=float, default=0.2, help="for each row and device")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    name = options.device or (str(Device.gpu()) if Device.is_gpu_available() else "reference")
    if not options.device and name == "reference":
        print("no GPU here: beside the plugin `reference`\n")
    devices = Device.cpu(), Device(name)
    print(f"cpu: {devices[0].description}; {devices[1]}: {devices[1].description}\n")
    print(f"| n | group | expression | cpu, us | {devices[1]}, us | times faster |\n|---|---|---|---|---|---|")
    for n in options.sizes:
        compare(str(n), rows(n, devices[0]), rows(n, devices[1]), devices, options)
    compare("Value", value_rows(devices[0]), value_rows(devices[1]), devices, options)


if __name__ == "__main__":
    main()
