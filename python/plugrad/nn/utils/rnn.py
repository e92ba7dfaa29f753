"""Sequences of different lengths in a single tensor: padded, or packed for the recurrent modules."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ... import _plugrad
from ..._plugrad import Tensor

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
           "pad_sequence", "unpack_sequence", "unpad_sequence"]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


class PackedSequence(_Packed):
    """Sequences for RNN, LSTM and GRU, which compute no padding. data (sum of lengths, ..) has the first step of all
    sequences, then the second step of the sequences that have it, and so on, the longest sequence first. batch_sizes (l)
    i64: the number of sequences at each step. sorted_indices (n): the places of the packed sequences in the batch;
    unsorted_indices: the inverse; both are None if the batch was sorted. Made by pack_padded_sequence and pack_sequence."""

    __slots__ = ()

    def __new__(cls, data: Tensor, batch_sizes: Tensor, sorted_indices: Tensor | None = None,
                unsorted_indices: Tensor | None = None) -> "PackedSequence":
        if sorted_indices is not None and unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def cpu(self) -> "PackedSequence":
        """The sequences on the CPU."""
        return self.to("cpu")

    def float(self) -> "PackedSequence":
        """The sequences in f32."""
        return self.to("f32")

    def double(self) -> "PackedSequence":
        """The sequences in f64."""
        return self.to("f64")

    def half(self) -> "PackedSequence":
        """The sequences in f16."""
        return self.to("f16")

    def to(self, *args: Any, **kwargs: Any) -> "PackedSequence":
        """The sequences on another device, or in another dtype."""
        data = self.data.to(*args, **kwargs)
        places = [None if each is None else each.to(data.device) for each in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *places)


def invert_permutation(permutation: Tensor) -> Tensor:
    """The permutation that undoes another one; both (n) i64."""
    return permutation.argsort()


def _indices(numbers: list[int], device: Any = None) -> Tensor:
    return Tensor(numbers, dtype="i64", device=device, requires_grad=False)


def _whole(numbers: Any, name: str) -> list[int]:
    made: list[int] = numbers.tolist() if isinstance(numbers, Tensor) else [int(each) for each in numbers]
    if not made or min(made) < 1:
        raise ValueError(f"[{name}] lengths must be at least 1, for at least one sequence, got {made}")
    return made


def pack_padded_sequence(input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False,  # noqa: A002
                         enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences that are padded in input (l, n, ..), or (n, l, ..) with batch_first. lengths (n), of at most l.
    enforce_sorted=False permits any order of the lengths. Raises ValueError for lengths that do not fit or are not in
    descending order."""
    x = input.transpose(0, 1) if batch_first else input
    counts = _whole(lengths, "pack_padded_sequence")
    if len(counts) != x.shape[1] or max(counts) > x.shape[0]:
        raise ValueError(f"[pack_padded_sequence] lengths {counts} do not fit {x.shape[1]} sequences of at most "
                         f"{x.shape[0]} steps")
    order = sorted(range(len(counts)), key=lambda i: -counts[i])
    if enforce_sorted and order != list(range(len(counts))):
        raise ValueError(f"[pack_padded_sequence] lengths {counts} are not in descending order: sort the sequences, or pass "
                         "enforce_sorted=False")
    sizes = [sum(count > t for count in counts) for t in range(max(counts))]
    rows = [t * len(counts) + order[i] for t, size in enumerate(sizes) for i in range(size)]
    places = None if enforce_sorted else _indices(order, x.device)
    inverse = None if enforce_sorted else _indices(_inverse(order), x.device)
    data = x.reshape(-1, *x.shape[2:]).index_select(0, _indices(rows, x.device))
    return PackedSequence(data, _indices(sizes), places, inverse)


def _inverse(order: list[int]) -> list[int]:
    inverse = [0] * len(order)
    for place, index in enumerate(order):
        inverse[index] = place
    return inverse


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns the sequences, padded to (l, n, ..), or (n, l, ..) with batch_first, and their lengths (n). total_length: l;
    by default the largest length. Raises ValueError for a total_length below it."""
    sizes: list[int] = sequence.batch_sizes.tolist()
    steps = len(sizes) if total_length is None else total_length
    if steps < len(sizes):
        raise ValueError(f"[pad_packed_sequence] total_length {steps} is below the largest length, {len(sizes)}")
    order = range(sizes[0]) if sequence.unsorted_indices is None else sequence.unsorted_indices.tolist()
    begins = [sum(sizes[:t]) for t in range(len(sizes))]
    padding = sequence.data.shape[0]  # the row behind the data
    rows = [begins[t] + i if t < len(sizes) and i < sizes[t] else padding for t in range(steps) for i in order]
    fill = _plugrad.full((1, *sequence.data.shape[1:]), padding_value, dtype=sequence.data.dtype,
                         device=sequence.data.device)
    index = _indices(rows, sequence.data.device)
    padded = _plugrad.cat([sequence.data, fill]).index_select(0, index)
    padded = padded.reshape(steps, sizes[0], *sequence.data.shape[1:])
    lengths = [sum(size > i for size in sizes) for i in order]
    return padded.transpose(0, 1) if batch_first else padded, _indices(lengths)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors (l_i, ..). enforce_sorted: as in pack_padded_sequence."""
    return pack_padded_sequence(pad_sequence(sequences), [len(each) for each in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences packed by pack_sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0,
                 padding_side: str = "right") -> Tensor:
    """Tensors (l_i, ..) as a single tensor, (l, n, ..), or (n, l, ..) with batch_first, where l is the largest l_i and the
    rest is padding_value. Raises ValueError for no sequences, and for different extents behind the first extent."""
    if isinstance(sequences, Tensor) or not sequences:
        raise ValueError("[pad_sequence] a list of tensors is expected, with at least one")
    if padding_side not in ("right", "left"):
        raise ValueError(f"[pad_sequence] padding_side '{padding_side}' is unknown: right or left expected")
    longest = max(len(each) for each in sequences)
    rows = []
    for each in sequences:
        if each.shape[1:] != sequences[0].shape[1:]:
            raise ValueError(f"[pad_sequence] shapes {sequences[0].shape} and {each.shape} differ behind the first extent")
        shape = (longest - len(each), *each.shape[1:])
        rest = _plugrad.full(shape, padding_value, dtype=each.dtype, device=each.device)
        rows.append(_plugrad.cat([each, rest] if padding_side == "right" else [rest, each]))
    return _plugrad.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded: Tensor, lengths: Tensor | Iterable[int], batch_first: bool = False) -> list[Tensor]:
    """The sequences joined by pad_sequence, as views."""
    rows = padded if batch_first else padded.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, _whole(lengths, "unpad_sequence"), strict=True)]
