"""Makes small GGUF files, and decodes their blocks with NumPy, for tests."""
import struct

import numpy as np

# ggml's number of a type, the elements and the bytes of a block, and the offsets of its f16 numbers.
BLOCKS = {"Q4_0": (2, 32, 18, [0]), "Q4_1": (3, 32, 20, [0, 2]), "Q5_0": (6, 32, 22, [0]), "Q5_1": (7, 32, 24, [0, 2]),
          "Q8_0": (8, 32, 34, [0]), "Q2_K": (10, 256, 84, [80, 82]), "Q3_K": (11, 256, 110, [108]),
          "Q4_K": (12, 256, 144, [0, 2]), "Q5_K": (13, 256, 176, [0, 2]),
          "Q6_K": (14, 256, 210, [208])}


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def texts(values):
    return struct.pack("<IQ", 8, len(values)) + b"".join(map(text, values))


def numbers(values):
    return struct.pack(f"<IQ{len(values)}i", 5, len(values), *values)


def write(path, entries, tensors):
    """Writes a file. tensors: (name, row-major shape, ggml's number of the type, bytes)."""
    head, data = b"", b""
    for name, shape, kind, raw in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + head
    path.write_bytes(start + bytes(-len(start) % 32) + data)
    return path


def random_blocks(kind, rows, generator):
    """Returns blocks with random bytes but finite scales."""
    _, _, size, halves = BLOCKS[kind]
    raw = generator.integers(0, 256, (rows, size), dtype=np.uint8)
    for at in halves:
        raw[:, at:at + 2] = generator.normal(0, 1, rows).astype(np.float16).view(np.uint8).reshape(rows, 2)
    return raw


def half(raw, at):
    return raw[:, at:at + 2].copy().view(np.float16).astype(np.float32)


def low_and_high(nibbles):
    return np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.int32)


def fifth(raw):
    word = raw.copy().view(np.uint32)
    return ((word >> np.arange(32, dtype=np.uint32)) & 1).astype(np.int32) << 4


def scales_of(packed):
    """Returns eight scales and eight offsets of 6 bits each."""
    low, high, last = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([low & 63, last & 15 | low >> 6 << 4], axis=1)
    offsets = np.concatenate([high & 63, last >> 4 | high >> 6 << 4], axis=1)
    return scales.astype(np.float32)[:, :, None], offsets.astype(np.float32)[:, :, None]


def by_groups(raw, quants):
    scale, offset = scales_of(raw[:, 4:16])
    d, m = half(raw, 0)[:, :, None], half(raw, 2)[:, :, None]
    return (d * scale * quants - m * offset).reshape(len(raw), 256)


def groups_of_32(nibbles):
    """Q4_K and Q5_K: 32 bytes hold one group in their lower halves, and the next group in their upper halves."""
    quarters = nibbles.reshape(len(nibbles), 4, 1, 32)
    return np.concatenate([quarters & 15, quarters >> 4], axis=2).reshape(len(nibbles), 8, 32)


def of_two_bits(kind, raw):
    """Q2_K and Q3_K: of each 128 elements, 32 bytes hold two bits each of four groups of 32; a scale for every 16."""
    at = 16 if kind == "Q2_K" else 32
    low = raw[:, at:at + 64].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    if kind == "Q2_K":
        scales, offsets = half(raw, 80) * (raw[:, :16] & 15), half(raw, 82) * (raw[:, :16] >> 4)
        return np.repeat(scales, 16, axis=1) * low.reshape(-1, 256) - np.repeat(offsets, 16, axis=1)
    third = raw[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    packed = raw[:, 96:108].astype(np.int32)
    lower = np.concatenate([packed[:, :8] & 15, packed[:, :8] >> 4], axis=1)
    upper = np.concatenate([packed[:, 8:] >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
    quants = low.reshape(-1, 256) + 4 * third.reshape(-1, 256).astype(np.int32) - 4
    return np.repeat(half(raw, 108) * (lower + 16 * upper - 32).astype(np.float32), 16, axis=1) * quants.astype(np.float32)


def decode(kind, raw):
    """Returns the elements as f32, one row for each block."""
    f = np.float32
    if kind == "Q4_0":
        return half(raw, 0) * (low_and_high(raw[:, 2:]) - 8).astype(f)
    if kind == "Q4_1":
        return half(raw, 0) * low_and_high(raw[:, 4:]).astype(f) + half(raw, 2)
    if kind == "Q5_0":
        return half(raw, 0) * ((low_and_high(raw[:, 6:]) | fifth(raw[:, 2:6])) - 16).astype(f)
    if kind == "Q5_1":
        return half(raw, 0) * (low_and_high(raw[:, 8:]) | fifth(raw[:, 4:8])).astype(f) + half(raw, 2)
    if kind == "Q8_0":
        return half(raw, 0) * raw[:, 2:].view(np.int8).astype(f)
    if kind in ("Q2_K", "Q3_K"):
        return of_two_bits(kind, raw)
    if kind == "Q4_K":
        return by_groups(raw, groups_of_32(raw[:, 16:]).astype(f))
    if kind == "Q5_K":
        bits = raw[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
        return by_groups(raw, (groups_of_32(raw[:, 48:]) | bits << 4).astype(f))
    low = raw[:, :128].reshape(-1, 2, 1, 64) >> np.array([0, 4], np.uint8)[:, None] & 15
    high = raw[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    quants = (low.reshape(-1, 256) | high.reshape(-1, 256) << 4).astype(np.int32) - 32
    scales = half(raw, 208) * raw[:, 192:208].view(np.int8).astype(f)
    return np.repeat(scales, 16, axis=1) * quants.astype(f)
