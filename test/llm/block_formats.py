"""The formats of weights in GGUF files. Each function rounds rows [N, K] and returns (bytes, the numbers they stand for)."""

import pathlib
import re

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


def halves(nibbles):
    """The low four bits of some bytes, then the high ones, along the last axis."""
    return np.concatenate([nibbles & 15, nibbles >> 4], axis=-1)


def in_turn(nibbles):
    """The low four bits of each byte, then its high ones."""
    return np.stack([nibbles & 15, nibbles >> 4], axis=-1).reshape(*nibbles.shape[:-1], -1)


def bits_of(x, bits, count):
    """`count` numbers of so many bits of each of x, the lowest first, as a last axis."""
    return x[..., None] >> (bits * np.arange(count)) & ((1 << bits) - 1)


def f16(raw):
    return np.ascontiguousarray(raw).view(np.float16).astype(np.float32)


def words(raw, dtype):
    return np.ascontiguousarray(raw).view(dtype).astype(np.int64)


def two_bits(raw):
    """[blocks, 64] bytes as 256 numbers: each row of 32 of a half has two bits of 32 bytes."""
    return bits_of(raw.reshape(-1, 2, 32), 2, 4).swapaxes(2, 3).reshape(-1, 256)


IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def scales_of_six(low, high):
    return (low | high << 4) - 32


def of_q2_k(b, d):
    scales, minima = b[:, :16] & 15, b[:, :16] >> 4
    return d * scales.repeat(16, 1) * two_bits(b[:, 16:80]) - f16(b[:, 82:84].astype(np.uint8)) * minima.repeat(16, 1)


def of_q3_k(b, d):
    high = bits_of(b[:, :32], 1, 8).swapaxes(1, 2).reshape(-1, 256)
    scales = scales_of_six(halves(b[:, 96:104]), bits_of(b[:, 104:108], 2, 4).swapaxes(1, 2).reshape(-1, 16))
    return d * scales.repeat(16, 1) * (two_bits(b[:, 32:96]) + 4 * high - 4)


def of_iq4_nl(b, d):
    return d * IQ4[halves(b[:, 2:])]


def of_iq4_xs(b, d):
    scales = scales_of_six(in_turn(b[:, 4:8]), bits_of(words(b[:, 2:4].astype(np.uint8), np.uint16)[:, 0], 2, 8))
    return d * scales.repeat(32, 1) * IQ4[halves(b[:, 8:].reshape(-1, 8, 16))].reshape(-1, 256)


def table(name, values):
    """A table of greta-llm's, which test_llm_peers.py compares with the gguf package's."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "tools/greta-llm/model/Codebooks.inc").read_text()
    entries = np.array([int(x) for x in re.search(name + r"\[\] = \{([^}]*)\}", text)[1].split(",")])
    return np.array(values)[bits_of(entries, *((3, 4) if len(values) == 8 else (2, 8)))]


IQ2, IQ1 = (8, 25, 43, 0), (-1, 0, 1, 0)
IQ3XXS, IQ3S = (4, 12, 20, 28, 36, 44, 52, 62), (1, 3, 5, 7, 9, 11, 13, 15)


def signs(eights):
    """+1 or -1 of eight weights each."""
    return 1 - 2 * bits_of(eights, 1, 8)


def with_parity(sevens):
    return sevens | (bits_of(sevens, 1, 7).sum(-1) & 1) << 7


def rows(*factors):
    return np.prod(np.broadcast_arrays(*factors), axis=0).reshape(len(factors[0]), 256)


def of_iq2_xxs(b, d):
    rest = words(b[:, 2:].reshape(-1, 8, 8)[..., 4:].astype(np.uint8), np.uint32)[..., 0]
    grid = table("gridOfIQ2XXS", IQ2)[b[:, 2:].reshape(-1, 8, 8)[..., :4]]
    return rows(grid * signs(with_parity(bits_of(rest, 7, 4))), (d * (0.5 + (rest >> 28)) / 4)[..., None, None])


def of_iq2_xs(b, d):
    entries = words(b[:, 2:66].astype(np.uint8), np.uint16)
    return rows(table("gridOfIQ2XS", IQ2)[entries & 511] * signs(with_parity(entries >> 9)), (d * (0.5 + in_turn(b[:, 66:])) / 4).repeat(2, 1)[..., None])


def of_iq2_s(b, d):
    entries = b[:, 2:34] | bits_of(b[:, 66:74], 2, 4).reshape(-1, 32) << 8
    return rows(table("gridOfIQ2S", IQ2)[entries] * signs(b[:, 34:66]), (d * (0.5 + in_turn(b[:, 74:])) / 4).repeat(2, 1)[..., None])


def of_iq3_xxs(b, d):
    rest = words(b[:, 66:].astype(np.uint8), np.uint32)
    grid = table("gridOfIQ3XXS", IQ3XXS)[b[:, 2:66]].reshape(-1, 8, 4, 8)
    return rows(grid * signs(with_parity(bits_of(rest, 7, 4))), (d * (0.5 + (rest >> 28)) / 2)[..., None, None])


def of_iq3_s(b, d):
    entries = b[:, 2:66] | bits_of(b[:, 66:74], 1, 8).reshape(-1, 64) << 8
    return rows(table("gridOfIQ3S", IQ3S)[entries].reshape(-1, 32, 8) * signs(b[:, 74:106]), (d * (1 + 2 * in_turn(b[:, 106:]))).repeat(4, 1)[..., None])


def of_iq1_s(b, d):
    rest = words(b[:, 34:].astype(np.uint8), np.uint16)
    entries = b[:, 2:34].reshape(-1, 8, 4) | bits_of(rest, 3, 4) << 8
    delta = np.where(rest >> 15, -0.125, 0.125)[..., None, None]
    return rows(table("gridOfIQ1", IQ1)[entries] + delta, (d * (2 * (rest >> 12 & 7) + 1))[..., None, None])


def of_iq1_m(b, _):
    parts = words(b[:, 48:].astype(np.uint8), np.uint16)
    d = f16((parts >> 12 << (4 * np.arange(4))).sum(1).astype(np.uint16))[:, None]
    rest = in_turn(b[:, 32:48])
    grid = table("gridOfIQ1", IQ1)[b[:, :32] | (rest & 7) << 8] + np.where(rest & 8, -0.125, 0.125)[..., None]
    return rows(grid, (d * (2 * bits_of(parts, 3, 4).reshape(-1, 16) + 1)).repeat(2, 1)[..., None])


def of_tq1_0(b, d):
    def digits(raw, count):
        return (((raw[:, None] * 3 ** np.arange(count)[:, None] & 255) * 3 >> 8) - 1).reshape(len(raw), -1)

    return d * np.concatenate([digits(b[:, :32], 5), digits(b[:, 32:48], 5), digits(b[:, 48:52], 4)], axis=1)


def of_tq2_0(b, d):
    return d * (two_bits(b[:, :64]) - 1)


def of_q1_0(b, d):
    return d * (2 * bits_of(b[:, 2:], 1, 8).reshape(-1, 128) - 1)


def of_q2_0(b, d):
    return d * (bits_of(b[:, 2:], 2, 4).reshape(-1, 64) - 1)


def of_nvfp4(b, _):
    exponent, mantissa = b[:, :4] >> 3 & 15, b[:, :4] & 7
    scales = np.where(exponent > 0, (8 + mantissa) * 2.0 ** (exponent - 10), mantissa * 2.0**-9)
    return scales.repeat(16, 1) * E2M1[halves(b[:, 4:].reshape(-1, 4, 8))].reshape(-1, 64)


def random_blocks(size, block, place, deviation, decode):
    """A writer of random blocks of so many bytes; the scale of a block is at a place, and weights have the deviation where it is 1."""

    def write(rows):
        rng = np.random.default_rng(rows.size + size)
        blocks = rng.integers(0, 256, (rows.size // block, size)).astype(np.uint8)
        scale = np.float16(1.5 / np.sqrt(rows.shape[1]) / deviation)
        if decode is of_nvfp4:
            blocks[:, :4] = rng.integers(4, 20, blocks[:, :4].shape)  # scales below 0.02
        elif decode is of_iq1_m:  # in the upper four bits of four words
            for i in range(4):
                blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (scale.view(np.uint16) >> 4 * i & 15) << 4
        else:
            blocks[:, place : place + 2] = np.frombuffer(scale.tobytes(), np.uint8)
        if decode is of_q2_k:
            blocks[:, 82:84] = np.frombuffer(np.float16(1.5 * scale).tobytes(), np.uint8)
        values = decode(blocks.astype(np.int64), np.float32(scale))
        return blocks.tobytes(), values.reshape(rows.shape).astype(np.float32)

    return write


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
    "q2_k": (10, random_blocks(84, 256, 80, 10, of_q2_k)),
    "q3_k": (11, random_blocks(110, 256, 108, 42, of_q3_k)),
    "iq4_nl": (20, random_blocks(18, 32, 0, 72, of_iq4_nl)),
    "iq4_xs": (23, random_blocks(136, 256, 0, 1300, of_iq4_xs)),
    "iq2_xxs": (16, random_blocks(66, 256, 0, 60, of_iq2_xxs)),
    "iq2_xs": (17, random_blocks(74, 256, 0, 60, of_iq2_xs)),
    "iq3_xxs": (18, random_blocks(98, 256, 0, 150, of_iq3_xxs)),
    "iq1_s": (19, random_blocks(50, 256, 0, 7, of_iq1_s)),
    "iq3_s": (21, random_blocks(110, 256, 0, 150, of_iq3_s)),
    "iq2_s": (22, random_blocks(82, 256, 0, 60, of_iq2_s)),
    "iq1_m": (29, random_blocks(56, 256, 0, 7, of_iq1_m)),
    "tq1_0": (34, random_blocks(54, 256, 52, 0.8, of_tq1_0)),
    "tq2_0": (35, random_blocks(66, 256, 64, 1, of_tq2_0)),
    "nvfp4": (40, random_blocks(36, 64, 0, 1, of_nvfp4)),
    "q1_0": (41, random_blocks(18, 128, 0, 1, of_q1_0)),
    "q2_0": (42, random_blocks(18, 64, 0, 1.2, of_q2_0)),
}
