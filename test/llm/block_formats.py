"""The formats of weights in GGUF files. Each function rounds rows [N, K] and returns (bytes, the numbers they stand for)."""

import ml_dtypes
import numpy as np

FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def q8_0(rows):
    blocks = rows.reshape(-1, 32)
    scale = (np.abs(blocks).max(1) / 127).astype(np.float16)
    q = np.rint(blocks / np.maximum(scale.astype(np.float32), 1e-12)[:, None]).clip(-127, 127).astype(np.int8)
    raw = b"".join(s.tobytes() + row.tobytes() for s, row in zip(scale, q))
    return raw, (q * scale.astype(np.float32)[:, None]).reshape(rows.shape)


def nibbles(q):
    """32 weights in 16 bytes: the first half in the low nibbles."""
    return (q[:, :16] | q[:, 16:] << 4).astype(np.uint8)


def q4_0(rows):
    blocks = rows.reshape(-1, 32)
    scale = (np.abs(blocks).max(1) / 7).astype(np.float16)
    q = (np.rint(blocks / np.maximum(scale.astype(np.float32), 1e-12)[:, None]) + 8).clip(0, 15).astype(np.uint8)
    raw = b"".join(s.tobytes() + row.tobytes() for s, row in zip(scale, nibbles(q)))
    return raw, ((q.astype(np.float32) - 8) * scale.astype(np.float32)[:, None]).reshape(rows.shape)


def q4_1(rows):
    blocks = rows.reshape(-1, 32)
    low = blocks.min(1).astype(np.float16)
    scale = ((blocks.max(1) - blocks.min(1)) / 15).astype(np.float16)
    q = np.rint((blocks - low.astype(np.float32)[:, None]) / np.maximum(scale.astype(np.float32), 1e-12)[:, None]).clip(0, 15).astype(np.uint8)
    raw = b"".join(s.tobytes() + m.tobytes() + row.tobytes() for s, m, row in zip(scale, low, nibbles(q)))
    return raw, (q * scale.astype(np.float32)[:, None] + low.astype(np.float32)[:, None]).reshape(rows.shape)


def upper_bits(q):
    """The fifth bits of 32 weights in 4 bytes."""
    return (q.astype(np.uint32) >> 4 << np.arange(32, dtype=np.uint32)).sum(-1).astype(np.uint32)


def q5_0(rows):
    blocks = rows.reshape(-1, 32)
    scale = (np.abs(blocks).max(1) / 15).astype(np.float16)
    q = (np.rint(blocks / np.maximum(scale.astype(np.float32), 1e-12)[:, None]) + 16).clip(0, 31).astype(np.uint8)
    raw = b"".join(s.tobytes() + high.tobytes() + row.tobytes() for s, high, row in zip(scale, upper_bits(q), nibbles(q & 15)))
    return raw, ((q.astype(np.float32) - 16) * scale.astype(np.float32)[:, None]).reshape(rows.shape)


def q5_1(rows):
    blocks = rows.reshape(-1, 32)
    low = blocks.min(1).astype(np.float16)
    scale = ((blocks.max(1) - blocks.min(1)) / 31).astype(np.float16)
    q = np.rint((blocks - low.astype(np.float32)[:, None]) / np.maximum(scale.astype(np.float32), 1e-12)[:, None]).clip(0, 31).astype(np.uint8)
    raw = b"".join(s.tobytes() + m.tobytes() + high.tobytes() + row.tobytes() for s, m, high, row in zip(scale, low, upper_bits(q), nibbles(q & 15)))
    return raw, (q * scale.astype(np.float32)[:, None] + low.astype(np.float32)[:, None]).reshape(rows.shape)


def mxfp4(rows):
    """The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 times a power of two for each 32."""
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    blocks = rows.reshape(-1, 32)
    exponent = np.ceil(np.log2(np.abs(blocks).max(1) / 6)).astype(int)
    scale = np.exp2(exponent).astype(np.float32)[:, None]
    code = np.abs(np.abs(blocks / scale)[:, :, None] - numbers).argmin(-1)
    values = numbers[code] * np.sign(blocks) * scale
    raw = b"".join(bytes([e + 127]) + row.tobytes() for e, row in zip(exponent, nibbles(code + 8 * (blocks < 0))))
    return raw, values.reshape(rows.shape).astype(np.float32)


def q4_k(rows):
    return k_blocks(rows, 4)


def q5_k(rows):
    return k_blocks(rows, 5)


def k_blocks(rows, bits):
    """Random blocks of 256: eight groups with scales and minima of six bits."""
    rng = np.random.default_rng(rows.size)
    raw, values, unit = b"", [], 2.0 ** (4 - bits)
    for _ in range(rows.size // 256):
        d, dmin = np.float16(0.02 * unit / np.sqrt(rows.shape[1])), np.float16(0.15 / np.sqrt(rows.shape[1]))
        scales, minima = rng.integers(0, 64, 8), rng.integers(0, 64, 8)
        q = rng.integers(0, 1 << bits, (8, 32))
        low, high = q & 15, (q >> 4 << np.arange(8)[:, None]).sum(0)
        packed = [int(scales[i] | (scales[i + 4] >> 4) << 6) for i in range(4)] + [int(minima[i] | (minima[i + 4] >> 4) << 6) for i in range(4)]
        packed += [int((scales[i + 4] & 15) | (minima[i + 4] & 15) << 4) for i in range(4)]
        raw += d.tobytes() + dmin.tobytes() + bytes(packed) + (high.astype(np.uint8).tobytes() if bits == 5 else b"") + (low[0::2] | low[1::2] << 4).astype(np.uint8).tobytes()
        values.append(np.float32(d) * scales[:, None] * q - np.float32(dmin) * minima[:, None])
    return raw, np.concatenate(values).reshape(rows.shape).astype(np.float32)


def q6_k(rows):
    """Random blocks of 256: sixteen groups with scales of eight bits, weights of six."""
    rng = np.random.default_rng(rows.size + 1)
    raw, values = b"", []
    for _ in range(rows.size // 256):
        d = np.float16(0.002 / np.sqrt(rows.shape[1]))
        scales = rng.integers(-128, 128, 16).astype(np.int8)
        q = rng.integers(0, 64, (2, 4, 32))  # halves, rows of 32
        low = np.concatenate([q[:, 0:2] & 15 | (q[:, 2:4] & 15) << 4]).astype(np.uint8)
        high = (q[:, 0] >> 4 | q[:, 1] >> 4 << 2 | q[:, 2] >> 4 << 4 | q[:, 3] >> 4 << 6).astype(np.uint8)
        raw += low.tobytes() + high.tobytes() + scales.tobytes() + d.tobytes()
        values.append(np.float32(d) * scales.astype(np.float32)[:, None] * (q.reshape(16, 16) - 32))
    return raw, np.concatenate(values).reshape(rows.shape).astype(np.float32)


def plain(dtype):
    def write(rows):
        held = rows.astype(FLOATS[dtype])
        return held.tobytes(), held.astype(np.float32)

    return write


# Name: (number in GGUF, writer)
FORMATS = {
    "f32": (0, plain("f32")),
    "f16": (1, plain("f16")),
    "q4_0": (2, q4_0),
    "q4_1": (3, q4_1),
    "q5_0": (6, q5_0),
    "q5_1": (7, q5_1),
    "q8_0": (8, q8_0),
    "q4_k": (12, q4_k),
    "q5_k": (13, q5_k),
    "q6_k": (14, q6_k),
    "bf16": (30, plain("bf16")),
    "mxfp4": (39, mxfp4),
}
