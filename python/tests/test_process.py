"""Threads, processes, signals, memory, and the end of a process."""
import gc
import multiprocessing
import queue
import signal
import sys
import threading
import time
import tracemalloc

import plugrad
import pytest
from plugrad import Tensor, Value


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_no_leak_over_10000_graphs():
    def graph():
        x, v = Tensor([[1.0, 2.0], [3.0, 4.0]]), Value(2)
        y = ((x @ x).relu() * 2 + x[0]).sum() / 3
        y.backward()
        u = (v * 3 + 1).tanh() ** 2
        u.backward()
        return [x.shape, x.grad, u._prev, y.tolist(), plugrad.draw_dot(u).source, x == x, repr(x)]

    def rounds(n):
        for _ in range(n):
            graph()
        gc.collect()
    rounds(500)
    watched = (plugrad.Tensor, plugrad.Value, None, True, plugrad.f32, plugrad.no_grad)
    counts = [sys.getrefcount(each) for each in watched]
    active, bytes_before = plugrad.memory_stats().active, resident()
    tracemalloc.start()
    rounds(100)
    traced = tracemalloc.get_traced_memory()[0]
    rounds(400)
    grown = tracemalloc.get_traced_memory()[0] - traced
    tracemalloc.stop()
    rounds(9500)
    assert plugrad.memory_stats().active == active
    assert resident() - bytes_before < 2 << 20
    assert grown < 20_000
    assert all(abs(sys.getrefcount(each) - count) < 50 for each, count in zip(watched, counts))


def test_errors_do_not_leak():
    a, b = plugrad.zeros((2, 3)), plugrad.zeros((4,))

    def fail():
        for wrong in (lambda: a + b, lambda: a[5], lambda: a + "x", lambda: plugrad.from_dlpack(1), lambda: Tensor([[1], 2]),
                      lambda: Value("x")):
            with pytest.raises(Exception):
                wrong()
    for _ in range(200):
        fail()
    gc.collect()
    counts, before = (sys.getrefcount(a), sys.getrefcount(b)), resident()
    for _ in range(2000):
        fail()
    gc.collect()
    assert (sys.getrefcount(a), sys.getrefcount(b)) == counts and resident() - before < 2 << 20


@pytest.mark.parametrize("make", [lambda: plugrad.zeros((4,)), lambda: Tensor([1.0]) * 2], ids=["plain", "recorded"])
def test_a_million_tensors_made_in_one_thread_and_dropped_in_another(make):
    handed = queue.SimpleQueue()
    room = threading.Semaphore(64)

    def drop():
        while (batch := handed.get()) is not None:
            del batch
            room.release()
    thread = threading.Thread(target=drop)
    thread.start()
    sizes = []
    for i in range(1000):
        room.acquire()
        handed.put([make() for _ in range(1000)])
        if i % 100 == 99:
            drained = [room.acquire() for _ in range(64)]  # no batch waits in the other thread
            sizes.append((resident(), plugrad.memory_stats().active))
            room.release(len(drained))
    handed.put(None)
    thread.join()
    assert sizes[-1][0] - sizes[3][0] < 8 << 20 and sizes[-1][1] <= sizes[3][1] + (1 << 20)


def test_threads_compute_at_once():
    shared = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    large = plugrad.ones((300, 300))
    failures = []

    def work(k):
        try:
            for _ in range(100):
                w = Tensor([[float(k), 0], [0, float(k)]])
                (shared @ w).sum().backward()
                assert w.grad.tolist() == [[4, 4], [6, 6]]
                assert (large @ large)[0, 0].item() == 300
                assert Value(k).exp().data > 0
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


def test_networks_on_several_threads():
    """The graphs of different threads share only the leaves of a network."""
    model, failures = plugrad.MLP(2, [4, 1], seed=1), []

    def work():
        try:
            for _ in range(50):
                model([1.0, 2.0]).backward()
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    alone = plugrad.MLP(2, [4, 1], seed=1)
    alone([1.0, 2.0]).backward()
    assert failures == []
    assert [p.grad for p in model.parameters()] == pytest.approx([150 * p.grad for p in alone.parameters()], rel=1e-12)


def test_long_ops_let_other_threads_run():
    """A thread counts while another thread multiplies."""
    x = plugrad.ones((1200, 1200))
    x @ x
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0)  # releases the GIL
    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # the interpreter does not ask a thread to release the GIL; threads release it themselves
    try:
        thread.start()
        before = counted[0]
        for _ in range(3):
            x @ x
        assert counted[0] > before
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()


def in_child(results):
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    y = (x @ x).sum()
    y.backward()
    results.put((y.item(), x.grad.tolist(), (plugrad.ones((500, 500)) @ plugrad.ones((500, 500)))[0, 0].item()))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_multiprocessing(method):
    plugrad.ones((500, 500)) @ plugrad.ones((500, 500))  # starts the pool of threads
    context = multiprocessing.get_context(method)
    results = context.Queue()
    child = context.Process(target=in_child, args=(results,))
    child.start()
    assert results.get(timeout=60) == (54, [[7, 11], [9, 13]], 500)
    child.join(60)
    assert child.exitcode == 0


def double(x):
    return x * 2


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensors_are_sent_to_other_processes(method):
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert [t.tolist() for t in pool.map(double, [plugrad.tensor([1.0]), plugrad.tensor([2.0])])] == [[2], [4]]


def test_clean_exit_with_live_tensors(run_python):
    done = run_python("""
import threading, plugrad
from plugrad import Tensor, Value, MLP
x = Tensor([[1.0, 2.0]]); y = (x * x).sum(); y.backward(); big = plugrad.ones((1000, 1000)); v = Value(1) + 2
m = MLP(2, [2, 1]); out = m([1, 2])
view = memoryview(big); it = iter(x); modes = plugrad.no_grad().__enter__()
class Late:
    def __del__(self): x + x
late = Late(); cycle = [x]; cycle.append(cycle)
t = threading.Thread(target=lambda: globals().update(kept=Tensor([1.0]) * 2)); t.start(); t.join()
try:
    import numpy
    a = numpy.ones(3); shared = plugrad.from_dlpack(a); theirs = numpy.from_dlpack(big)
except ImportError: pass
""")
    assert done.stderr == "" and done.stdout == ""


def test_exit_while_a_thread_computes(run_python):
    run_python("""
import threading, time, plugrad
x = plugrad.ones((400, 400))
def work():
    while True: x @ x
threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)""")


def test_ctrl_c(run_python):
    import os
    import subprocess
    code = """
import plugrad
from plugrad import nn, optim, training
x, y = plugrad.data.moons(200)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 2))
print("ready", flush=True)
history = training.fit(model, x, y, optim.SGD(model.parameters(), 0.01), epochs=10**9, progress=False)
print("interrupted", history.interrupted, flush=True)
while True: model(x).sum().backward()
"""
    def heed_ctrl_c():  # background jobs of a shell ignore SIGINT, and their children inherit this
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=os.environ, preexec_fn=heed_ctrl_c)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted True\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
        assert "KeyboardInterrupt" in err and child.returncode != 0
    finally:
        child.kill()
