"""Small random models for the tests of greta-llm: the weights, the files that hold them, and the model's definition in float64.

Files are written by hand, so that the tests need neither transformers nor the gguf package; test_llm_peers.py compares both the files and the
definition with theirs.
"""

import dataclasses
import json
import struct

import ml_dtypes
import numpy as np

VOCABULARY = 320


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What config.json says, beside sizes."""

    kind: str  # Hugging Face's model_type
    gguf: str
    bias: bool = False
    head_norms: bool = False
    tied: bool = False
    window: int | None = None
    rope: dict | None = None  # scaling
    theta: float = 10000.0
    width: int = 64
    hidden: int = 96
    heads: int = 4
    key_heads: int = 2
    head_size: int = 16
    layers: int = 2


LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
ARCHITECTURES = {
    "llama2": Architecture("llama", "llama"),
    "llama3": Architecture("llama", "llama", tied=True, rope=LLAMA3_ROPE, theta=500000.0),
    "mistral": Architecture("mistral", "llama", window=7),
    "qwen2": Architecture("qwen2", "qwen2", bias=True, tied=True, theta=1000000.0),
    "qwen3": Architecture("qwen3", "qwen3", head_norms=True, head_size=32, theta=1000000.0),
    # Rows of 256 numbers, which the formats with blocks of 256 need.
    "wide": Architecture("llama", "llama", width=256, hidden=256, heads=4, key_heads=1, head_size=64, layers=1),
}


def shapes(a):
    """{GGUF's name: shape}"""
    queries, keys = a.heads * a.head_size, a.key_heads * a.head_size
    layer = {
        "attn_norm.weight": (a.width,),
        "attn_q.weight": (queries, a.width),
        "attn_k.weight": (keys, a.width),
        "attn_v.weight": (keys, a.width),
        "attn_output.weight": (a.width, queries),
        "ffn_norm.weight": (a.width,),
        "ffn_gate.weight": (a.hidden, a.width),
        "ffn_up.weight": (a.hidden, a.width),
        "ffn_down.weight": (a.width, a.hidden),
    }
    if a.bias:
        layer |= {"attn_q.bias": (queries,), "attn_k.bias": (keys,), "attn_v.bias": (keys,)}
    if a.head_norms:
        layer |= {"attn_q_norm.weight": (a.head_size,), "attn_k_norm.weight": (a.head_size,)}
    all = {"token_embd.weight": (VOCABULARY, a.width), "output_norm.weight": (a.width,)}
    if not a.tied:
        all["output.weight"] = (VOCABULARY, a.width)
    for i in range(a.layers):
        all |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    return all


def random_weights(a, seed=7):
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes(a).items():
        if "norm" in name:
            weights[name] = 1 + 0.2 * rng.standard_normal(shape)
        elif len(shape) == 1:
            weights[name] = 0.5 * rng.standard_normal(shape)
        else:
            weights[name] = rng.standard_normal(shape) * (1.5 / np.sqrt(shape[1]))
    return {name: w.astype(np.float32) for name, w in weights.items()}


# The definition


def inverse_frequencies(a):
    inverse = a.theta ** (-np.arange(0, a.head_size, 2) / a.head_size)
    if a.rope is None:
        return inverse
    waves = 2 * np.pi / inverse
    smooth = (a.rope["original_max_position_embeddings"] / waves - a.rope["low_freq_factor"]) / (a.rope["high_freq_factor"] - a.rope["low_freq_factor"])
    smooth = np.clip(smooth, 0, 1)
    return (1 - smooth) * inverse / a.rope["factor"] + smooth * inverse


def norm(x, w, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def logits(a, weights, tokens):
    """[tokens, vocabulary], in float64, of weights under GGUF's names with Hugging Face's order of rope's pairs."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["token_embd.weight"][tokens]
    count = len(tokens)
    angles = np.arange(count)[:, None] * inverse_frequencies(a)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    distance = np.arange(count)[:, None] - np.arange(count)
    visible = (distance >= 0) & (distance < (a.window or count))
    for i in range(a.layers):

        def of(name):
            return w[f"blk.{i}.{name}"]

        def heads(y, name):
            projected = y @ of(f"{name}.weight").T + (of(f"{name}.bias") if a.bias else 0)
            return projected.reshape(count, -1, a.head_size)

        def turned(y, name):
            if a.head_norms:
                y = norm(y, of(f"{name}_norm.weight"))
            left, right = np.split(y, 2, axis=-1)
            return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)

        normed = norm(x, of("attn_norm.weight"))
        q, k, v = turned(heads(normed, "attn_q"), "attn_q"), turned(heads(normed, "attn_k"), "attn_k"), heads(normed, "attn_v")
        k, v = (np.repeat(y, a.heads // a.key_heads, axis=1) for y in (k, v))
        scores = np.einsum("shd,thd->hst", q, k) / np.sqrt(a.head_size)
        scores = np.where(visible, scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hst,thd->shd", scores / scores.sum(-1, keepdims=True), v)
        x = x + mixed.reshape(count, -1) @ of("attn_output.weight").T
        normed = norm(x, of("ffn_norm.weight"))
        gate, up = normed @ of("ffn_gate.weight").T, normed @ of("ffn_up.weight").T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ of("ffn_down.weight").T
    return norm(x, w["output_norm.weight"]) @ w["token_embd.weight" if a.tied else "output.weight"].T


# Files

HUGGING_FACE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def hugging_face_name(name):
    *layer, short, kind = name.split(".")
    prefix = f"model.layers.{layer[1]}." if layer else ""
    return f"{prefix}{HUGGING_FACE[short]}.{kind}"


FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def rounded(weights, dtype):
    """What a model file in that type holds."""
    return {name: w.astype(FLOATS[dtype]).astype(np.float32) for name, w in weights.items()}


def config(a):
    values = {
        "model_type": a.kind,
        "architectures": [{"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[a.kind]],
        "hidden_act": "silu",
        "hidden_size": a.width,
        "intermediate_size": a.hidden,
        "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads,
        "num_key_value_heads": a.key_heads,
        "head_dim": a.head_size,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 128,
        "rms_norm_eps": 1e-5,
        "rope_theta": a.theta,
        "tie_word_embeddings": a.tied,
        "eos_token_id": 2,
    }
    if a.rope:
        values["rope_scaling"] = a.rope
    if a.kind == "mistral":
        values["sliding_window"] = a.window
    return values


def safetensors_bytes(tensors, dtype):
    """`tensors` are {name: float32}, or int32 and float16 as they are; what safetensors.numpy.save writes."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.astype(FLOATS[dtype]).tobytes() if tensor.dtype == np.float32 else tensor.tobytes()
        kind = dtype.upper() if tensor.dtype == np.float32 else {"int32": "I32", "float16": "F16"}[tensor.dtype.name]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_safetensors(folder, a, weights, dtype="f32", parts=1):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(a)))
    named = {hugging_face_name(name): w for name, w in weights.items()}
    if parts == 1:
        (folder / "model.safetensors").write_bytes(safetensors_bytes(named, dtype))
        return folder
    names = sorted(named)
    places = {}
    for part in range(parts):
        file = f"model-{part + 1:05}-of-{parts:05}.safetensors"
        mine = names[part::parts]
        places |= dict.fromkeys(mine, file)
        (folder / file).write_bytes(safetensors_bytes({name: named[name] for name in mine}, dtype))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


# AWQ and GPTQ: 4-bit matrices as parts of their own, transposed, with a scale and a zero per group of K.

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]


def eight_in_words(values, axis, order=range(8)):
    """[.., 8 n, ..] of 0 to 15 as [.., n, ..] of i32: value order[i] of eight in bits 4 i."""
    values = np.moveaxis(values.astype(np.uint32), axis, -1)
    values = values.reshape(*values.shape[:-1], -1, 8)
    words = sum(values[..., j] << np.uint32(4 * i) for i, j in enumerate(order))
    return np.ascontiguousarray(np.moveaxis(words.astype(np.uint32), -1, axis)).view(np.int32)


def quantised(w, method, group, order=None):
    """w [N, K] in f32 -> (parts by their suffix, the numbers they stand for). `order`: which group each k is of."""
    n, k = w.shape
    groups = np.arange(k) // group if order is None else order
    q, z, s = np.zeros((k, n), np.int64), np.zeros((k // group, n), np.int64), np.zeros((k // group, n), np.float16)
    for i in range(k // group):
        rows = w.T[groups == i]
        low, high = np.minimum(rows.min(0), 0), np.maximum(rows.max(0), 0)
        s[i] = np.maximum((high - low) / 15, 1e-4)
        z[i] = np.rint(-low / s[i].astype(np.float32)).clip(1, 15)
        q[groups == i] = np.rint(rows / s[i].astype(np.float32) + z[i]).clip(0, 15)
    meant = ((q - z[groups]) * s[groups].astype(np.float32)).T
    if method == "awq":
        parts = {"qweight": eight_in_words(q, 1, AWQ_ORDER), "qzeros": eight_in_words(z, 1, AWQ_ORDER), "scales": s}
    else:
        parts = {"qweight": eight_in_words(q, 0), "qzeros": eight_in_words(z - 1, 1), "scales": s, "g_idx": groups.astype(np.int32)}
    return parts, np.ascontiguousarray(meant, np.float32)


def write_quantised(folder, a, weights, method, group, is_ordered=False, **about):
    """Layers' matrices by `method`, the rest in f16; returns the weights that the files stand for. `is_ordered`: groups are not of neighbours."""
    folder.mkdir(parents=True, exist_ok=True)
    how = {"quant_method": method, "bits": 4, "group_size": group} | ({"version": "gemm"} if method == "awq" else {"desc_act": is_ordered}) | about
    (folder / "config.json").write_text(json.dumps(config(a) | {"quantization_config": how}))
    named, meant = {}, rounded(weights, "f16")
    for name, w in weights.items():
        theirs = hugging_face_name(name)
        if w.ndim < 2 or not name.startswith("blk."):
            named[theirs] = w
            continue
        order = np.random.default_rng(5).permutation(np.arange(w.shape[1]) // group) if is_ordered else None
        parts, meant[name] = quantised(w, method, group, order)
        named |= {theirs.removesuffix("weight") + part: value for part, value in parts.items()}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(named, "f16"))
    return meant


# GGUF: formats in blocks. Each function rounds rows [N, K] and returns (bytes, the numbers they stand for).


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


def interleaved(rows, heads):
    """Rope's pairs as neighbours, as llama's GGUF files have the rows of queries and keys."""
    size = rows.shape[0] // heads
    return rows.reshape(heads, 2, size // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def halved(rows, heads):
    """The way back."""
    size = rows.shape[0] // heads
    return rows.reshape(heads, size // 2, 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def gguf_string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_value(value):
    """(type, bytes)"""
    if isinstance(value, bool):
        return 7, struct.pack("<?", value)
    if isinstance(value, int):
        return 4, struct.pack("<I", value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    if isinstance(value, str):
        return 8, gguf_string(value)
    parts = [gguf_value(v) for v in value]
    return 9, struct.pack("<IQ", parts[0][0] if parts else 8, len(parts)) + b"".join(raw for _, raw in parts)


def gguf_metadata(a):
    name = a.gguf
    values = {
        "general.architecture": name,
        f"{name}.block_count": a.layers,
        f"{name}.embedding_length": a.width,
        f"{name}.feed_forward_length": a.hidden,
        f"{name}.context_length": 128,
        f"{name}.attention.head_count": a.heads,
        f"{name}.attention.head_count_kv": a.key_heads,
        f"{name}.attention.key_length": a.head_size,
        f"{name}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{name}.rope.freq_base": a.theta,
    }
    if a.window:
        values[f"{name}.attention.sliding_window"] = a.window
    return values


def write_gguf(path, a, weights, format, metadata=None):
    """Writes matrices in `format`, or each in format(name), vectors in f32; returns the weights that the file stands for."""
    header = b"".join(gguf_string(key) + struct.pack("<I", (v := gguf_value(value))[0]) + v[1] for key, value in (metadata or gguf_metadata(a)).items())
    count = len(metadata or gguf_metadata(a))
    described, data, meant = b"", b"", {}
    tensors = dict(weights)
    if a.rope is not None:
        plain_frequencies = inverse_frequencies(dataclasses.replace(a, rope=None))
        tensors["rope_freqs.weight"] = (plain_frequencies / inverse_frequencies(a)).astype(np.float32)
    for name, w in tensors.items():
        number, write = FORMATS["f32" if w.ndim < 2 else format(name) if callable(format) else format]
        heads = {"attn_q": a.heads, "attn_k": a.key_heads}.get(name.split(".")[-2]) if a.gguf == "llama" else None
        raw, values = write(interleaved(w, heads) if heads else w)
        meant[name] = halved(values, heads) if heads else values
        data += b"\0" * (-len(data) % 32)
        described += gguf_string(name) + struct.pack("<I", w.ndim) + struct.pack(f"<{w.ndim}Q", *reversed(w.shape)) + struct.pack("<IQ", number, len(data))
        data += raw
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + header + described
    path.write_bytes(start + b"\0" * (-len(start) % 32) + data)
    return meant


def split_gguf(folder, a, weights, format, count):
    """The paths of a model's files, of which each has every count-th tensor."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"m-{i + 1:05}-of-{count:05}.gguf" for i in range(count)]
    tensors = len(weights) + (a.rope is not None)
    for i, path in enumerate(paths):
        split = {"split.no": i, "split.count": count, "split.tensors.count": tensors}
        some = dict(list(weights.items())[i::count])
        write_gguf(path, dataclasses.replace(a, rope=a.rope if i == 0 else None), some, format, (gguf_metadata(a) if i == 0 else {}) | split)
    return paths
