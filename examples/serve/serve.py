"""Serves an ONNX model over HTTP: requests that wait together run as one batch, and several batches run at once.

serve.py MODEL.onnx [DEVICE [PORT]]
curl -d '{"input_ids": [101, 7592, 102], "attention_mask": [1, 1, 1]}' localhost:8000

A request has the inputs of one sample, without the batch axis; the answer has the outputs. Zeros pad shorter samples.
"""
from __future__ import annotations

import json
import queue
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

import plugrad
import plugrad.onnx

LANES, BATCH, WAIT, TIMEOUT = 2, 16, 0.002, 10.0  # batches at once; samples of a batch; seconds to collect, and to answer
MEMORY = 1 << 30  # bytes for all batches: a batch that needs more is halved, and a request alone is refused
STEP = 16  # padded lengths are multiples of it: few lengths, few recordings


class Answer(Future[Any]):
    late = False  # nobody waits for it
    batch: list[tuple[dict[str, Any], Answer]] = []
    cancellation = plugrad.Cancellation()


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # connections that the system keeps waiting

    def __init__(self, path: str, device: str | None = None, port: int = 8000) -> None:
        self.model = plugrad.onnx.load(path, device, lanes=LANES, memory=MEMORY)
        self.waiting: queue.Queue[tuple[dict[str, Any], Answer]] = queue.Queue(BATCH * 64)
        for _ in range(LANES):
            threading.Thread(target=self.work, daemon=True).start()
        super().__init__(("127.0.0.1", port), Handler)

    def ask(self, request: dict[str, Any]) -> Any:
        """Raises queue.Full at once if too many requests wait, and Late after TIMEOUT seconds."""
        answer = Answer()
        sample = {each.name: np.array(request[each.name], each.type) for each in self.model.inputs}
        for name, _, shape in self.model.inputs:  # one sample must not spoil its batch
            extents = (shape or ())[1:]
            if shape and (sample[name].ndim != len(extents) or
                          any(isinstance(n, int) and n != size for n, size in zip(extents, sample[name].shape))):
                raise ValueError(f"{name} of the extents {extents} is expected, not {sample[name].shape}")
        self.waiting.put((sample, answer), False)
        try:
            return answer.result(TIMEOUT)
        except Late:
            answer.late = True
            if not answer.cancel() and all(other.late for _, other in answer.batch):
                answer.cancellation.cancel()  # the batch runs, and nobody waits for it
            raise

    def work(self) -> None:
        while True:
            some, end = [self.waiting.get()], time.monotonic() + WAIT
            while len(some) < BATCH and (not self.waiting.empty() or time.monotonic() < end):
                try:
                    some.append(self.waiting.get(timeout=max(0.0, end - time.monotonic())))
                except queue.Empty:
                    break
            cancellation = plugrad.Cancellation()
            for _, answer in some:
                answer.batch, answer.cancellation = some, cancellation
            wanted = [each for each in some if each[1].set_running_or_notify_cancel()]
            try:
                with cancellation:
                    results = self.in_memory([sample for sample, _ in wanted]) if wanted else []
                for (_, answer), result in zip(wanted, results):
                    answer.set_result(result)
            except Exception as error:
                for _, answer in wanted:
                    answer.set_exception(error)

    def in_memory(self, samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        try:
            return self.results(samples)
        except MemoryError:
            if len(samples) == 1:
                raise
        half = len(samples) // 2
        return self.in_memory(samples[:half]) + self.in_memory(samples[half:])

    def results(self, samples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        batch, sizes = {}, [dict[Any, int]() for _ in samples]  # of each sample, by the model's symbols
        for name, _, shape in self.model.inputs:
            for size, sample in zip(sizes, samples):
                size.update(zip((shape or ())[1:], sample[name].shape))
            longest = np.max([sample[name].shape for sample in samples], 0)
            extents = [n if isinstance(symbol, int) else -(-n // STEP) * STEP
                       for symbol, n in zip((shape or ())[1:], longest)]
            batch[name] = np.stack([np.pad(sample[name], [(0, int(to - n)) for to, n in zip(extents, sample[name].shape)])
                                    for sample in samples])
        made = self.model.run(None, batch)
        return [{output.name: array[i][tuple(slice(size.get(symbol)) for symbol in (output.shape or ())[1:])].tolist()
                 for output, array in zip(self.model.outputs, made)} for i, size in enumerate(sizes)]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        try:
            status, answer = 200, self.server.ask(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        except (queue.Full, Late, MemoryError):
            status, answer = 503, {"error": "the server is busy: ask again later"}
        except Exception as error:
            status, answer = 400, {"error": f"{type(error).__name__}: {error}"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    device = sys.argv[2] if len(sys.argv) > 2 else None
    Server(sys.argv[1], device, int(sys.argv[3]) if len(sys.argv) > 3 else 8000).serve_forever()
