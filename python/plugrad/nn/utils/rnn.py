"""Sequences of different lengths in a single tensor."""

from collections.abc import Sequence

from ... import _plugrad
from ..._plugrad import Tensor

__all__ = ["pad_sequence", "unpad_sequence"]


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


def unpad_sequence(padded: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences joined by pad_sequence, as views."""
    rows = padded if batch_first else padded.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]
