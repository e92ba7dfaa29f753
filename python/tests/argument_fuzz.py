"""Calls the public functions with arguments at the edges of 64 bits, in child processes.

    argument_fuzz.py [--calls N] [--seconds N] [--seed N] [--jobs N]

Half of the calls are samples of test_samples.py with some numbers replaced by such edges; the other half calls any function
with arguments of the types in its signature. A call may return a result whose elements can be read, or raise ValueError,
TypeError, IndexError, MemoryError, BufferError or NotImplementedError. A call may not end the process, raise another
exception, or take ten seconds. Prints each call that does; the status is then 1. A call depends only on its number: --seed N
--calls 1 repeats call N.
"""
import argparse
import faulthandler
import inspect
import mmap
import multiprocessing
import os
import random
import re
import resource
import signal
import struct
import sys
import time

import plugrad
from plugrad import _plugrad, linalg, special, windows
from plugrad.nn import functional
from samples import ROWS, Call, Case, Operand

EDGES = [0, 1, -1, 2**31, 2**32, 2**62, 2**63 - 1, -2**31, -2**63, 2**63, 2**31 - 1, 2**40]
DTYPES = ["f32", "f32", "f32", "f64", "bf16", "f16", "i64", "i64", "i32", "u8", "bool"]
ALLOWED = (ValueError, TypeError, IndexError, MemoryError, BufferError, NotImplementedError)
MEMORY = 2 << 30
PATIENCE = 10  # seconds
# Functions that read or write files, change the process, or wait, instead of computing with tensors.
LEFT_OUT = re.compile(r"^_|plugin|device|seed|generator|save|load|file|log|profil|memory|record|compile|cache|checkpoint|"
                      r"thread|cuda|dot|draw|run_|_run|from_dlpack|data_ptr|autocast|stream|sync|tokeniz|fashion|cifar|idx")
MODULES = {"plugrad": _plugrad, "plugrad.nn.functional": functional, "plugrad.linalg": linalg, "plugrad.special": special,
           "plugrad.windows": windows}


def parameters_of(text):
    """Returns (name, annotation, has a default) for each parameter of a signature in nanobind's syntax."""
    inside = text[text.index("(") + 1:text.rindex(") ->")]
    parts, depth, start = [], 0, 0
    for i, c in enumerate(inside):
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append(inside[start:i])
            start = i + 1
    parts.append(inside[start:])
    parsed = []
    for part in (p.strip() for p in parts):
        if part and part not in "/*":
            head, default, _ = part.partition(" = ")
            name, _, kind = head.partition(": ")
            parsed.append((name, kind or ("Tensor" if name == "self" else "object"), bool(default)))
    return parsed


def described(function):
    """Returns the signatures of a function: lists of (name, annotation, has a default)."""
    if hasattr(function, "__nb_signature__"):
        return [parameters_of(each[0]) for each in function.__nb_signature__]
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    return [[(each.name, str(each.annotation), each.default is not each.empty) for each in signature.parameters.values()
             if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]]


def functions():
    """Returns all functions to call: (name, callable, signatures), in a fixed order."""
    found = {}
    for module, of in MODULES.items():
        for name in dir(of):
            member = getattr(of, name)
            if callable(member) and not isinstance(member, type) and not LEFT_OUT.search(name):
                found[f"{module}.{name}"] = member
    for name in dir(plugrad.Tensor):
        member = getattr(plugrad.Tensor, name)
        if hasattr(member, "__nb_signature__") and not LEFT_OUT.search(name):
            found[f"plugrad.Tensor.{name}"] = member
    listed = [(name, found[name], described(found[name])) for name in sorted(found)]
    return [each for each in listed if each[2]]


class Arguments:
    """Makes the texts of arguments from a generator of random numbers."""

    def __init__(self, rng):
        self.rng = rng

    def number(self):
        return self.rng.choice(EDGES) if self.rng.random() < 0.3 else self.rng.randint(-2, 4)

    def shape(self):
        return tuple(self.number() for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3, 4])))

    def real(self):
        return self.rng.choice([0.0, 1.0, -1.0, 0.5, 2.0, 1e30, 1e-30, float("inf"), float("nan"), 3.0, -2.5])

    def tensor(self):
        rng = self.rng
        shape = [rng.choice([0, 1, 1, 2, 2, 3, 4]) for _ in range(rng.choice([0, 1, 2, 2, 3, 4, 4, 5]))]
        dtype, start, kind = rng.choice(DTYPES), rng.choice([0, 0, 0, 1, -1]), rng.random()
        count = 1
        for extent in shape:
            count *= extent
        text = f"plugrad.arange({start}, {start + count}, dtype='i64').reshape({tuple(shape)}).to('{dtype}')"
        if kind < 0.1 and count:
            text += ".flip(0)" if shape else ""
        elif kind < 0.2 and len(shape) > 1:
            text += ".transpose(0, -1)"
        if dtype in ("f32", "f64") and rng.random() < 0.2:
            text += ".requires_grad_()"
        return text

    def of(self, name, annotation):
        """Returns the text of an argument for a parameter."""
        rng = self.rng
        if "None" in annotation and rng.random() < 0.2:
            return "None"
        if "Sequence" in annotation and "Tensor" in annotation or "list[Tensor" in annotation:
            return "[" + ", ".join(self.tensor() for _ in range(rng.choice([0, 1, 2, 2, 3]))) + "]"
        if "Tensor" in annotation:
            return self.tensor()
        if "bool" in annotation and "int" not in annotation:
            return rng.choice(["True", "False"])
        if "DType" in annotation:
            return repr(rng.choice(DTYPES))
        if "Device" in annotation:
            return "None"
        if "Sequence" in annotation and "float" in annotation:
            return repr([self.real() for _ in range(rng.choice([0, 1, 2, 3]))])
        if "Sequence" in annotation and "int" in annotation:
            return repr(self.shape()) if "int |" not in annotation or rng.random() < 0.6 else repr(self.number())
        if "int" in annotation:
            return repr(self.number())
        if "float" in annotation:
            return repr(self.real())
        if "str" in annotation:
            return repr(rng.choice(["mean", "sum", "none", "", "reflect", "ij", "bilinear", "sum(", "same", "a b"]))
        return rng.choice([self.tensor, lambda: repr(self.number()), lambda: repr(self.shape())])()


LISTED = functions()


def with_edges(rng, value, chance):
    """Returns the value with some of its numbers replaced by edges."""
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(with_edges(rng, each, chance) for each in value)
    if isinstance(value, int) and not isinstance(value, bool) and rng.random() < chance:
        return rng.choice(EDGES)
    if isinstance(value, float) and rng.random() < chance:
        return rng.choice([0.0, -1.0, 1e300, -1e300, 1e-300, float("inf"), float("nan")])
    return value


def sample(rng):
    """Draws a row of the samples, and a call of it with edges: (row, positional, named)."""
    row = rng.choice(ROWS)
    call = row.draw(Case(row.name, rng.randrange(10**6), rng.choice(row.dtypes)))
    edit = lambda value: value if isinstance(value, Operand) else with_edges(rng, value, 0.5)  # noqa: E731
    return row, [edit(each) for each in call.args], {name: edit(each) for name, each in call.named.items()}


def call_text(number):
    """Returns the text of call `number`."""
    rng = random.Random(number)
    if number % 2:
        row, positional, named = sample(rng)
        return f"{row.name}({', '.join([repr(each) for each in positional] + [f'{n}={v!r}' for n, v in named.items()])})"
    name, _, signatures = rng.choice(LISTED)
    make, positional, named = Arguments(rng), [], []
    by_name = False
    for parameter, annotation, has_default in rng.choice(signatures):
        if has_default and rng.random() < 0.4:
            by_name = True
            continue
        text = make.of(parameter, annotation)
        if by_name and parameter != "self":
            named.append(f"{parameter}={text}")
        else:
            positional.append(text)
    return f"{name}({', '.join(positional + named)})"


def read(result):
    """Reads the elements of a result, so that a read outside its memory fails."""
    if isinstance(result, plugrad.Tensor):
        count = 1
        for extent in result.shape:
            count *= extent
        assert count == result.numel(), f"{tuple(result.shape)} has numel() {result.numel()}"
        if count <= 1 << 20:
            result.tolist()
    elif isinstance(result, (tuple, list)):
        for each in result[:8]:
            read(each)


def call(number):
    """Makes call `number`. Returns a description of the failure, or None."""
    try:
        if number % 2:
            row, positional, named = sample(random.Random(number))
            positional, named = Call(*positional, **named).mapped(lambda each: each.view(each.leaf(plugrad, None)))
            read(row.called(plugrad, *positional, **named))
        else:
            read(eval(call_text(number), {"plugrad": plugrad, "inf": float("inf"), "nan": float("nan")}))
    except ALLOWED:
        return None
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


def work(board, first, step, last):
    """Makes every step-th call from `first` on. Writes the number of each call and its start time to the board."""
    faulthandler.enable(open(os.devnull, "w"))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(first, last, step):
        struct.pack_into("qd", board, 0, number, time.time())
        wrong = call(number)
        if wrong:
            print(f"call {number}: {call_text(number)}\n  {wrong}", flush=True)
            struct.pack_into("q", board, 16, struct.unpack_from("q", board, 16)[0] + 1)
    struct.pack_into("qd", board, 0, last, 0.0)


class Worker:
    """A child process that makes every step-th call. It is restarted after the call at which it died."""

    def __init__(self, first, step, last):
        self.board, self.step, self.last, self.bad = mmap.mmap(-1, 64), step, last, 0
        self.start(first)

    def start(self, first):
        struct.pack_into("qd", self.board, 0, first, time.time())
        arguments = self.board, first, self.step, self.last
        self.process = multiprocessing.get_context("fork").Process(target=work, args=arguments)
        self.process.start()

    def state(self):
        return struct.unpack_from("qd", self.board, 0)

    def watch(self):
        """Reports a death or a call that takes too long. Returns whether calls are left."""
        number, since = self.state()
        if self.process.is_alive():
            if since and time.time() - since > PATIENCE:
                self.process.kill()
                self.report(f"no answer within {PATIENCE} s")
            return True
        if not since:
            return False
        code = self.process.exitcode
        self.report(signal.Signals(-code).name if code and code < 0 else f"the process ended with status {code}")
        return True

    def report(self, what):
        self.process.join()
        number, _ = self.state()
        print(f"call {number}: {call_text(number)}\n  {what}", flush=True)
        self.bad += 1
        self.start(number + self.step)

    def finish(self):
        self.process.kill()
        self.process.join()
        return self.bad + struct.unpack_from("q", self.board, 16)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2**62)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    plugrad.ones(1)  # opens the devices before the children fork
    began = time.time()
    jobs = min(given.jobs, given.calls)
    workers = [Worker(given.seed + i, jobs, given.seed + given.calls) for i in range(jobs)]
    while any([each.watch() for each in workers]) and time.time() - began < given.seconds:
        time.sleep(0.05)
    made = sum((each.state()[0] - given.seed) // jobs for each in workers)
    bad = sum(each.finish() for each in workers)
    print(f"{made} calls of {len(LISTED)} functions in {time.time() - began:.0f} s: {bad} went wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
