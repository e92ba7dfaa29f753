"""Tokenizers and texts."""
import struct

import plugrad
import pytest
from plugrad.text import BytePairTokenizer, Characters, WordPieceTokenizer, read_text

gguf_files = pytest.importorskip("gguf_files", reason="NumPy is not installed")

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "hello", "cafe", "!"]


def letters():
    """GPT-2's characters for the bytes 0 .. 255."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


@pytest.fixture
def model(tmp_path):
    tokens = [*letters(), "Ġt", "Ġth", "12", "<|end|>"]
    kinds = [1] * (len(tokens) - 1) + [3]
    entries = [gguf_files.entry("tokenizer.ggml.model", 8, gguf_files.text("gpt2")),
               gguf_files.entry("tokenizer.ggml.pre", 8, gguf_files.text("smollm")),
               gguf_files.entry("tokenizer.ggml.tokens", 9, gguf_files.texts(tokens)),
               gguf_files.entry("tokenizer.ggml.merges", 9, gguf_files.texts(["Ġ t", "Ġt h", "1 2"])),
               gguf_files.entry("tokenizer.ggml.token_type", 9, gguf_files.numbers(kinds)),
               gguf_files.entry("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 259))]
    return gguf_files.write(tmp_path / "model.gguf", entries, [])


def test_byte_pairs(model):
    tokenizer = BytePairTokenizer(model)
    assert len(tokenizer) == 260 and (tokenizer.bos_id, tokenizer.eos_id) == (None, 259)
    ids = tokenizer.encode("a the 12é<|end|>")
    assert ids == [97, 257, 101, 32, 49, 50, 0xc3, 0xa9, 259]
    assert tokenizer.decode(ids) == "a the 12é<|end|>" and tokenizer.decode(ids, skip_special=True) == "a the 12é"
    assert tokenizer.decode(plugrad.tensor(ids)) == tokenizer.decode(ids) and tokenizer.decode(97) == "a"
    assert len(tokenizer.encode("<|end|>", special=False)) == 7
    assert tokenizer.token_id(" th") == 257 and tokenizer.token_id("nothing") is None and tokenizer.is_special(259)
    assert tokenizer.token_bytes(0xc3) == b"\xc3" and tokenizer.decode([0xc3]) == "\ufffd"
    stream = tokenizer.stream()
    assert [stream.push(each) for each in ids[5:8]] == ["2", "", "é"] and stream.push(0xc3) == ""
    assert stream.finish() == "\ufffd"
    with pytest.raises(IndexError, match="the token 260 does not exist: there are 260"):
        tokenizer.decode([260])
    with plugrad.open_gguf(model) as file:
        assert BytePairTokenizer(file).encode("a") == [97]


def test_byte_pairs_of_a_vocabulary():
    tokenizer = BytePairTokenizer.from_vocabulary([*letters(), "ab", "12", "<s>"], ["a b", "1 2"], special=[258])
    assert tokenizer.encode("ab12<s>") == [256, 257, 258] and tokenizer.eos_id is None
    for merges in (["a c"], ["ab"], [""]):
        with pytest.raises(ValueError, match="not of two tokens that give a third one"):
            BytePairTokenizer.from_vocabulary([*letters(), "ab"], merges)
    with pytest.raises(ValueError, match='the token "a" occurs twice'):
        BytePairTokenizer.from_vocabulary([*letters(), "a"], [])


def test_byte_pairs_are_those_of_tokenizers():
    theirs = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    tokens = [*letters(), "Ġt", "Ġth", "Ġthe", "12", "ĠĠ", "'s"]
    merges = ["Ġ t", "Ġt h", "Ġth e", "1 2", "Ġ Ġ", "' s"]
    other = theirs.Tokenizer(theirs.models.BPE({token: i for i, token in enumerate(tokens)},
                                               [tuple(merge.split(" ")) for merge in merges]))
    digits, words = theirs.pre_tokenizers.Digits(individual_digits=True), theirs.pre_tokenizers.ByteLevel(False)
    for single in (False, True):
        other.pre_tokenizer = theirs.pre_tokenizers.Sequence([digits, words] if single else [words])
        mine = BytePairTokenizer.from_vocabulary(tokens, merges, single_digits=single)
        for text in ("the the  the   the", "it's 12 '12s'", "a\n\n the\t 12 ", "é\u00a0\u3000東京 12", "🙂 's", " ", ""):
            assert mine.encode(text) == other.encode(text).ids, text


def test_models_without_byte_pairs(tmp_path):
    with pytest.raises(OSError, match="tokenizer.ggml.model"):
        BytePairTokenizer(gguf_files.write(tmp_path / "a", [], []))
    other = gguf_files.write(tmp_path / "b", [gguf_files.entry("tokenizer.ggml.model", 8, gguf_files.text("llama"))], [])
    with pytest.raises(ValueError, match='is "llama", expected gpt2'):
        BytePairTokenizer(other)


def test_word_pieces(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt")
    assert len(tokenizer) == 11 and tokenizer.max_length is None
    assert tokenizer.encode("Unaffable CAFÉ!") == [2, 5, 6, 7, 9, 10, 3]
    assert tokenizer.encode("hello " * 9, max_length=4) == [2, 8, 8, 3]
    ids, mask = tokenizer.batch(["hello", "unaffable"])
    assert (ids.tolist(), mask.tolist()) == ([[2, 8, 3, 0, 0], [2, 5, 6, 7, 3]], [[1, 1, 1, 0, 0], [1] * 5])
    assert (ids.dtype, mask.dtype) == ("i64", "i64") and tokenizer.batch([])[0].shape == (0, 0)
    assert tokenizer.decode(ids[1]) == "unaffable" and tokenizer.token(8) == "hello" and tokenizer.token_id("cafe") == 9
    with pytest.raises(ValueError, match="2 or more expected"):
        tokenizer.encode("hello", 1)
    (tmp_path / "other").write_text("hello\n")
    with pytest.raises(OSError, match=r'has no "\[UNK\]"'):
        WordPieceTokenizer(tmp_path / "other")


def test_word_pieces_are_those_of_tokenizers(tmp_path):
    theirs = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    other = theirs.BertWordPieceTokenizer(str(tmp_path / "vocab.txt"))
    mine = WordPieceTokenizer(tmp_path / "vocab.txt")
    for text in ("hello unaffable", "HÉLLO cafe\u0301!!", "a[MASK]b", "東hello京", "he\u00adllo\u2003x", "un aff", ""):
        assert mine.encode(text) == other.encode(text).ids, text


def test_characters(tmp_path):
    vocabulary = Characters("hello")
    assert len(vocabulary) == 4 and vocabulary.encode("hole").tolist() == [1, 3, 2, 0]
    assert vocabulary.decode(vocabulary.encode("oleh")) == "oleh" and vocabulary.encode("").shape == (0,)
    assert vocabulary.encode("h").dtype == "i64"
    with pytest.raises(ValueError, match="'x' is not one of the 4 characters"):
        vocabulary.encode("x")
    with pytest.raises(IndexError, match="position 4"):
        vocabulary.decode([4])
    (tmp_path / "a.txt").write_bytes("é\r\n".encode())
    assert read_text(tmp_path / "a.txt") == "é\r\n"
    (tmp_path / "b.txt").write_bytes(b"ab\xff")
    with pytest.raises(OSError, match="byte 2 is 0xff"):
        read_text(tmp_path / "b.txt")
