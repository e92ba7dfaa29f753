"""Tokenizers, and texts as sequences of characters."""

from collections.abc import Iterable, Sequence
from typing import Any

from . import _plugrad
from ._plugrad import Tensor
from .files import GGUF

__all__ = ["BytePairTokenizer", "Characters", "TextStream", "WordPieceTokenizer", "read_text"]


def _ids(ids: Any) -> list[int]:
    """Returns the ids in a tensor, an array or a list, or of a single id."""
    listed = ids.tolist() if hasattr(ids, "tolist") else ids
    return [int(listed)] if isinstance(listed, (int, float)) else [int(each) for each in listed]


class TextStream:
    """Makes text of successive tokens. If a token ends inside a character, the character waits for the next tokens."""

    def __init__(self, tokenizer: "BytePairTokenizer") -> None:
        self._tokenizer, self._stream = tokenizer, _plugrad._TextStream()

    def push(self, token: int) -> str:
        """Returns the text completed by this token; bytes outside UTF-8 become U+FFFD."""
        return self._stream.push(self._tokenizer.token_bytes(token))

    def finish(self) -> str:
        """Ends the text: returns U+FFFD for the start of an unfinished character, else an empty text."""
        return self._stream.finish()


class BytePairTokenizer:
    """Byte-level BPE, as GPT-2 and many language models after it use it.

    model: a GGUF file with such a tokenizer, or its path. Raises OSError for a file without a tokenizer, and ValueError for
    a tokenizer that is not implemented.
    """

    def __init__(self, model: Any) -> None:
        if isinstance(model, GGUF):
            self._read(model)
        else:
            with GGUF(model) as file:
                self._read(file)

    @classmethod
    def from_vocabulary(cls, tokens: Sequence[str], merges: Sequence[str], special: Sequence[int] = (),
                        single_digits: bool = False) -> "BytePairTokenizer":
        """Makes a tokenizer of a vocabulary: tokens by id and merges "left right", written in GPT-2's characters for bytes.

        special: ids of the tokens that encode finds in a text as wholes. single_digits: each digit is a word of its own.
        Raises ValueError for a repeated token, and for a merge unless its parts and their concatenation are tokens.
        """
        made = cls.__new__(cls)
        made._tokenizer = _plugrad._BytePairTokenizer(tokens, merges, special, single_digits)
        made.bos_id = made.eos_id = None
        return made

    def _read(self, file: GGUF) -> None:
        self._tokenizer = _plugrad._BytePairTokenizer(file._file)
        known = [file.metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos")]
        self.bos_id: int | None = known[0]
        self.eos_id: int | None = known[1]

    def __len__(self) -> int:
        return self._tokenizer.size()

    def encode(self, text: str, special: bool = True) -> list[int]:
        """Returns the ids of a text, without tokens at its ends.

        special: texts such as <|im_start|> become their token; otherwise they are plain letters. A byte without a token in
        the vocabulary is left out.
        """
        return list(self._tokenizer.encode(text, special))

    def decode(self, ids: Any, skip_special: bool = False) -> str:
        """Returns the text of tokens, with U+FFFD in place of bytes outside UTF-8. Raises IndexError for unknown ids."""
        return self._tokenizer.decode(_ids(ids), skip_special)

    def token_bytes(self, token: int) -> bytes:
        """Returns the bytes of a token; they may be a part of a character. Raises IndexError for an unknown id."""
        return self._tokenizer.bytes(token)

    def token_id(self, text: str) -> int | None:
        """Returns the id of a token by its text ("<|im_end|>", " the"), or None."""
        return self._tokenizer.id_of(text)

    def is_special(self, token: int) -> bool:
        """Returns whether the id belongs to a token such as <|im_end|>."""
        return self._tokenizer.is_special(token)

    def stream(self) -> TextStream:
        """Returns an object that turns successive tokens into text."""
        return TextStream(self)


class WordPieceTokenizer:
    """The tokenizer of BERT and of models for sentences.

    path: a vocab.txt, with a token in each line, or a tokenizer.json. Raises OSError where it is missing or is neither.
    """

    def __init__(self, path: Any) -> None:
        self._tokenizer = _plugrad._WordPieceTokenizer(path)

    def __len__(self) -> int:
        return self._tokenizer.size()

    @property
    def max_length(self) -> int | None:
        """The file's limit for the number of tokens in a text, with its ends; None without a limit."""
        return self._tokenizer.max_length()

    def encode(self, text: str, max_length: int | None = None) -> list[int]:
        """Returns the ids of a text between the ids of [CLS] and [SEP].

        max_length: the limit for the number of tokens, with both ends; further tokens are cut off. By default it is the
        file's limit. Raises ValueError for less than 2.
        """
        return list(self._tokenizer.encode(text, max_length))

    def batch(self, texts: Iterable[str], max_length: int | None = None, device: Any = None) -> tuple[Tensor, Tensor]:
        """Returns (ids, mask), both i64 of shape (texts, tokens of the longest text); the mask is 1 for tokens, else 0.

        Raises as encode does.
        """
        rows = [self.encode(text, max_length) for text in texts]
        longest = max(map(len, rows), default=0)
        padding = self.token_id("[PAD]") or 0
        ids = [row + [padding] * (longest - len(row)) for row in rows]
        mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
        return (Tensor(ids, dtype="i64", device=device).reshape(len(rows), longest),
                Tensor(mask, dtype="i64", device=device).reshape(len(rows), longest))

    def decode(self, ids: Any, skip_special: bool = True) -> str:
        """Returns the pieces joined to words, with blanks between them. Raises IndexError for an unknown id."""
        return self._tokenizer.decode(_ids(ids), skip_special)

    def token(self, token: int) -> str:
        """Returns the text of a token. Raises IndexError for an unknown id."""
        return self._tokenizer.token(token)

    def token_id(self, token: str) -> int | None:
        """Returns the id of a token, or None."""
        return self._tokenizer.id_of(token)


class Characters:
    """The characters of a text, in the order of their code points, as a vocabulary.

    >>> letters = Characters("hello")
    >>> letters.encode("hole").tolist()
    [1, 3, 2, 0]
    """

    def __init__(self, text: str) -> None:
        self.characters: Sequence[str] = sorted(set(text))
        self._positions = {character: i for i, character in enumerate(self.characters)}

    def __len__(self) -> int:
        return len(self.characters)

    def encode(self, text: str, device: Any = None) -> Tensor:
        """Returns the positions of the characters, i64 of shape (len(text),). Raises ValueError for an unknown character."""
        try:
            positions = [self._positions[character] for character in text]
        except KeyError as error:
            raise ValueError(f"[Characters] {error.args[0]!r} is not one of the {len(self)} characters: make the vocabulary "
                             "of all texts that you encode") from None
        return Tensor(positions, dtype="i64", device=device).reshape(len(positions))

    def decode(self, ids: Any) -> str:
        """Returns the text of positions. Raises IndexError for a position out of range."""
        positions = _ids(ids)
        for i in positions:
            if not 0 <= i < len(self):
                raise IndexError(f"[Characters] position {i} is out of range: there are {len(self)} characters")
        return "".join(self.characters[i] for i in positions)


def read_text(path: Any) -> str:
    """Returns the text of a file in UTF-8, with its ends of lines unchanged. Raises OSError for bytes outside UTF-8."""
    with open(path, encoding="utf-8", newline="") as file:
        try:
            return file.read()
        except UnicodeDecodeError as error:
            raise OSError(f"[{path}] is not text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}; "
                          "convert it, for example with iconv") from None
