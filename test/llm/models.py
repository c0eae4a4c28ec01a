"""Small random models for the tests of greta-llm: the weights, the files that hold them, and the model's definition in float64.

Files are written by hand, so that the tests need neither transformers nor the gguf package; test_llm_peers.py compares both the files and the
definition with theirs.
"""

import dataclasses
import json
import struct

import numpy as np

from block_formats import FLOATS, FORMATS

VOCABULARY = 320


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What config.json says, beside sizes, and what the architecture's name says."""

    kind: str  # Hugging Face's model_type
    gguf: str
    bias: bool | str = False  # of queries, keys and values; "attention": of the output, too; "all": also of the MLP
    head_norms: bool | str = False  # "rows": of all heads together
    tied: bool = False
    window: int | None = None
    period: int = 0  # each so many-th layer has no window
    rope: dict | None = None  # scaling
    theta: float = 10000.0
    local_theta: float | None = None  # of layers with a window
    rotated: float = 1.0  # part of a head that rope turns
    without_rope: str = ""  # "whole": layers without a window; "fourth": each fourth
    neighbours: bool = False  # rope's pairs, in all files
    norms: str = "before"  # "both", "after"
    norm: str = "rms"  # "mean", "biased"
    less_one: bool = False  # norms' weights are stored so in safetensors
    mlp: str = "silu"  # "gelu", "ungated"
    parallel: bool = False
    caps: tuple = (None, None)  # of scores and logits
    scales: dict = dataclasses.field(default_factory=dict)  # embedding, scores, residual, logits
    fused: str = ""  # "gate", "qkv gate"
    experts: int = 0
    used: int = 0  # by a token
    normalises: bool = True  # a token's experts' weights add up to one
    fields: dict = dataclasses.field(default_factory=dict)  # of config.json
    metadata: dict = dataclasses.field(default_factory=dict)  # of GGUF
    width: int = 64
    hidden: int = 96
    heads: int = 4
    key_heads: int = 2
    head_size: int = 16
    layers: int = 2

    def has_window(self, layer):
        return self.window and not (self.period and (layer + 1) % self.period == 0)

    def has_rope(self, layer):
        return self.has_window(layer) if self.without_rope == "whole" else not self.without_rope or (layer + 1) % 4 != 0

    @property
    def turned(self):
        return int(self.head_size * self.rotated)

    @property
    def biased(self):
        attention = ["attn_q", "attn_k", "attn_v"] if self.bias else []
        return attention + {"attention": ["attn_output"], "all": ["attn_output", "ffn_up", "ffn_down"]}.get(self.bias, [])


LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
# More tokens than those of training: the long factors count.
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0, 1.5, 2.0, 2.5, 3.0, 3.5], "long_factor": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]}
GEMMA = dict(tied=True, norms="both", less_one=True, mlp="gelu", window=7)
ARCHITECTURES = {
    "llama2": Architecture("llama", "llama"),
    "llama3": Architecture("llama", "llama", tied=True, rope=LLAMA3_ROPE, theta=500000.0),
    "mistral": Architecture("mistral", "llama", window=7),
    "qwen2": Architecture("qwen2", "qwen2", bias=True, tied=True, theta=1000000.0),
    "qwen3": Architecture("qwen3", "qwen3", head_norms=True, head_size=32, theta=1000000.0),
    # Rows of 256 numbers, which the formats with blocks of 256 need.
    "wide": Architecture("llama", "llama", width=256, hidden=256, heads=4, key_heads=1, head_size=64, layers=1),
}
# Further rows of greta-llm's table. Tests that need one architecture of each kind take `ARCHITECTURES`.
OTHERS = {
    "qwen3-yarn": Architecture("qwen3", "qwen3", head_norms=True, rope=YARN, theta=1000000.0, bias="attention", fields={"attention_bias": True}),
    "smollm3": Architecture("smollm3", "smollm3", tied=True, without_rope="fourth", layers=4, theta=2000000.0),
    "gemma2": Architecture("gemma2", "gemma2", **GEMMA, period=2, caps=(5.0, 3.0), scales={"embedding": 8.0, "scores": 24**-0.5}, fields={"query_pre_attn_scalar": 24}),
    "gemma3": Architecture(
        "gemma3_text", "gemma3", **GEMMA, period=6, head_norms=True, theta=1000000.0, local_theta=10000.0, rope={"rope_type": "linear", "factor": 8.0}, layers=6,
        scales={"embedding": 8.0, "scores": 24**-0.5}, fields={"query_pre_attn_scalar": 24},
    ),
    "phi3": Architecture("phi3", "phi3", window=9, fused="qkv gate"),
    "phi4-mini": Architecture("phi3", "phi3", tied=True, fused="qkv gate", rotated=0.75, rope=LONGROPE, fields={"original_max_position_embeddings": 16}),
    "glm4": Architecture("glm4", "glm4", bias=True, norms="both", fused="gate", rotated=0.5, neighbours=True, fields={"attention_bias": True}),
    "granite": Architecture(
        "granite", "granite", tied=True, scales={"embedding": 12.0, "scores": 0.1, "residual": 0.25, "logits": 1 / 8},
        fields={"embedding_multiplier": 12.0, "attention_multiplier": 0.1, "residual_multiplier": 0.25, "logits_scaling": 8.0},
        metadata={"embedding_scale": 12.0, "attention.scale": 0.1, "residual_scale": 0.25, "logit_scale": 8.0},
    ),
    "olmo2": Architecture("olmo2", "olmo2", norms="after", head_norms="rows"),
    "cohere": Architecture("cohere", "command-r", tied=True, norm="mean", parallel=True, neighbours=True, scales={"logits": 0.0625}, theta=500000.0, metadata={"logit_scale": 0.0625}),
    "cohere2": Architecture(
        "cohere2", "cohere2", tied=True, norm="mean", parallel=True, neighbours=True, window=7, period=4, without_rope="whole", layers=4, scales={"logits": 0.25}, fields={"logit_scale": 0.25},
        metadata={"logit_scale": 0.25},
    ),
    "qwen3-moe": Architecture(
        "qwen3_moe", "qwen3moe", head_norms=True, experts=12, used=3, normalises=False,
        fields={"num_experts": 12, "num_experts_per_tok": 3, "moe_intermediate_size": 96, "norm_topk_prob": False, "intermediate_size": 160, "mlp_only_layers": []},
    ),
    "olmoe": Architecture("olmoe", "olmoe", head_norms="rows", experts=8, used=2, normalises=False, fields={"num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": False}),
    "mixtral": Architecture("mixtral", "llama", experts=4, used=2, fields={"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "starcoder2": Architecture("starcoder2", "starcoder2", tied=True, bias="all", norm="biased", mlp="ungated", window=7),
}


def shapes(a):
    """{GGUF's name: shape}"""
    queries, keys = a.heads * a.head_size, a.key_heads * a.head_size
    matrices = {
        "attn_q": (queries, a.width),
        "attn_k": (keys, a.width),
        "attn_v": (keys, a.width),
        "attn_output": (a.width, queries),
        "ffn_gate": (a.hidden, a.width),
        "ffn_up": (a.hidden, a.width),
        "ffn_down": (a.width, a.hidden),
    }
    if a.experts:
        matrices |= {"ffn_gate_inp": (a.experts, a.width)} | {f"{name}_exps": (a.experts, *matrices[name]) for name in ("ffn_gate", "ffn_up", "ffn_down")}
    for name in {"ffn_gate"} if a.mlp == "ungated" else {"ffn_gate", "ffn_up", "ffn_down"} if a.experts else ():
        del matrices[name]
    before = a.norms != "after"
    order = ["attn_norm"] * before + [name for name in matrices if name.startswith("attn")] + ["ffn_norm"] * (before and not a.parallel) + [name for name in matrices if name.startswith("ffn")]
    order += ["post_attention_norm", "post_ffw_norm"] * (a.norms != "before")
    layer = {f"{name}.weight": matrices.get(name, (a.width,)) for name in order}
    layer |= {f"{name}.bias": shape[:1] for name, shape in matrices.items() if name in a.biased}
    if a.head_norms:
        layer |= {"attn_q_norm.weight": (queries if a.head_norms == "rows" else a.head_size,), "attn_k_norm.weight": (keys if a.head_norms == "rows" else a.head_size,)}
    all = {"token_embd.weight": (VOCABULARY, a.width), "output_norm.weight": (a.width,)}
    if not a.tied:
        all["output.weight"] = (VOCABULARY, a.width)
    for i in range(a.layers):
        all |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    if a.norm == "biased":
        all |= {name.replace("weight", "bias"): (a.width,) for name in all if name.endswith("_norm.weight")}
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
            weights[name] = rng.standard_normal(shape) * (1.5 / np.sqrt(shape[-1]))
    return {name: w.astype(np.float32) for name, w in weights.items()}


# The definition


def yarn(a, inverse):
    count = len(inverse)
    low, high = (count * np.log(a.rope["original_max_position_embeddings"] / (turns * 2 * np.pi)) / np.log(a.theta) for turns in (32, 1))
    low, high = max(np.floor(low), 0), min(np.ceil(high), 2 * count - 1)
    ramp = np.clip((np.arange(count) - low) / (high - low), 0, 1)
    return inverse * (1 - ramp) + inverse / a.rope["factor"] * ramp


def inverse_frequencies(a):
    """The angles of a token, and what is turned is multiplied by."""
    inverse = a.theta ** (-np.arange(0, a.turned, 2) / a.turned)
    kind = a.rope["rope_type"] if a.rope else None
    if kind == "linear":
        return inverse / a.rope["factor"], 1
    if kind == "yarn":
        return yarn(a, inverse), 0.1 * np.log(a.rope["factor"]) + 1
    if kind == "longrope":
        trained = a.fields["original_max_position_embeddings"]
        return inverse / np.array(a.rope["long_factor"]), np.sqrt(1 + np.log(128 / trained) / np.log(trained))
    if kind == "llama3":
        waves = 2 * np.pi / inverse
        smooth = (a.rope["original_max_position_embeddings"] / waves - a.rope["low_freq_factor"]) / (a.rope["high_freq_factor"] - a.rope["low_freq_factor"])
        smooth = np.clip(smooth, 0, 1)
        return (1 - smooth) * inverse / a.rope["factor"] + smooth * inverse, 1
    return inverse, 1


def norm(a, x, w, bias=0, eps=1e-5):
    if a.norm != "rms":
        x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w + bias


def turned(a, layer, y):
    """y [tokens, heads, size]"""
    if not a.has_rope(layer):
        return y
    local = a.local_theta and a.has_window(layer)
    inverse, scale = inverse_frequencies(dataclasses.replace(a, theta=a.local_theta, rope=None) if local else a)
    angles = np.arange(len(y))[:, None] * inverse
    cos, sin = scale * np.cos(angles)[:, None], scale * np.sin(angles)[:, None]
    y, rest = y[..., : a.turned], y[..., a.turned :]
    left, right = (y[..., 0::2], y[..., 1::2]) if a.neighbours else np.split(y, 2, axis=-1)
    pairs = left * cos - right * sin, right * cos + left * sin
    together = np.stack(pairs, axis=-1).reshape(y.shape) if a.neighbours else np.concatenate(pairs, axis=-1)
    return np.concatenate([together, rest], axis=-1)


def capped(x, cap):
    return cap * np.tanh(x / cap) if cap else x


def attention(a, layer, linear, normed_by, x):
    count = len(x)

    def heads(name):
        y = linear(x, name)
        if a.head_norms == "rows" and name != "attn_v":
            y = normed_by(y, f"{name}_norm")
        y = y.reshape(count, -1, a.head_size)
        if name == "attn_v":
            return y
        return turned(a, layer, normed_by(y, f"{name}_norm") if a.head_norms is True else y)

    q, k, v = (heads(name) for name in ("attn_q", "attn_k", "attn_v"))
    k, v = (np.repeat(y, a.heads // a.key_heads, axis=1) for y in (k, v))
    scores = capped(np.einsum("shd,thd->hst", q, k) * a.scales.get("scores", a.head_size**-0.5), a.caps[0])
    distance = np.arange(count)[:, None] - np.arange(count)
    scores = np.where((distance >= 0) & (distance < (a.window if a.has_window(layer) else count)), scores, -np.inf)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("hst,thd->shd", scores / scores.sum(-1, keepdims=True), v)
    return linear(mixed.reshape(count, -1), "attn_output")


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def mixture(a, router, weights, x):
    """`weights` are [experts, N, K] of gate, up and down."""
    scores = x @ router.T
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    chosen = np.argsort(-scores, axis=-1, kind="stable")[:, : a.used]
    y = np.zeros_like(x)
    for t, some in enumerate(chosen):
        whole = shares[t, some].sum() if a.normalises else shares[t].sum()
        for e in some:
            gate, up = (x[t] @ weights[i][e].T for i in (0, 1))
            y[t] += shares[t, e] / whole * ((gate / (1 + np.exp(-gate)) * up) @ weights[2][e].T)
    return y


def mlp(a, linear, x):
    up = linear(x, "ffn_up")
    if a.mlp == "ungated":
        return linear(gelu(up), "ffn_down")
    gate = linear(x, "ffn_gate")
    return linear((gelu(gate) if a.mlp == "gelu" else gate / (1 + np.exp(-gate))) * up, "ffn_down")


def logits(a, weights, tokens):
    """[tokens, vocabulary], in float64, of weights under GGUF's names with Hugging Face's order of rope's pairs."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["token_embd.weight"][tokens] * a.scales.get("embedding", 1)
    for i in range(a.layers):

        def linear(y, name):
            return y @ w[f"blk.{i}.{name}.weight"].T + w.get(f"blk.{i}.{name}.bias", 0)

        def normed_by(y, name):
            return norm(a, y, w[f"blk.{i}.{name}.weight"], w.get(f"blk.{i}.{name}.bias", 0))

        def read(y, name):
            return y if a.norms == "after" else normed_by(y, name)

        def added(y, name):
            return (y if a.norms == "before" else normed_by(y, name)) * a.scales.get("residual", 1)

        normed = read(x, "attn_norm")
        x = x + added(attention(a, i, linear, normed_by, normed), "post_attention_norm")
        normed = normed if a.parallel else read(x, "ffn_norm")
        if a.experts:
            of_experts = [w[f"blk.{i}.ffn_{name}_exps.weight"] for name in ("gate", "up", "down")]
            x = x + mixture(a, w[f"blk.{i}.ffn_gate_inp.weight"], of_experts, normed)
        else:
            x = x + added(mlp(a, linear, normed), "post_ffw_norm")
    x = norm(a, x, w["output_norm.weight"], w.get("output_norm.bias", 0))
    return capped(x @ w["token_embd.weight" if a.tied else "output.weight"].T * a.scales.get("logits", 1), a.caps[1])


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


# Norms around attention and the MLP, where there are others than two before them, and other names.
FOUR_NORMS = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
OTHER_NAMES = {
    "gemma2": FOUR_NORMS,
    "gemma3_text": FOUR_NORMS,
    "olmo2": FOUR_NORMS,
    "glm4": {"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm"},
    "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    "qwen3_moe": {"ffn_gate_inp": "mlp.gate"},
    "olmoe": {"ffn_gate_inp": "mlp.gate"},
    "mixtral": {"ffn_gate_inp": "block_sparse_moe.gate"},
}
# Experts have tensors of their own.
NUMBERED = {name: f"mlp.experts.%d.{name[4:-5]}_proj" for name in ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")}
EXPERTS = {
    "qwen3_moe": NUMBERED,
    "olmoe": NUMBERED,
    "mixtral": {"ffn_gate_exps": "block_sparse_moe.experts.%d.w1", "ffn_up_exps": "block_sparse_moe.experts.%d.w3", "ffn_down_exps": "block_sparse_moe.experts.%d.w2"},
}


def hugging_face_name(name, a=None):
    *layer, short, kind = name.split(".")
    prefix = f"model.layers.{layer[1]}." if layer else ""
    return f"{prefix}{(HUGGING_FACE | OTHER_NAMES.get(a.kind if a else '', {}))[short]}.{kind}"


def joined(a, weights, to_hugging_face):
    """Weights as files of the architecture have them: those that are one there are one below the other."""
    parts = {"self_attn.qkv_proj" if to_hugging_face else "attn_qkv": ("attn_q", "attn_k", "attn_v")} if "qkv" in a.fused else {}
    parts |= {"mlp.gate_up_proj" if to_hugging_face else "ffn_up": ("ffn_gate", "ffn_up")} if "gate" in a.fused else {}
    fused = {name for some in parts.values() for name in some}
    result = {}
    for name, w in weights.items():
        *layer, short, kind = name.split(".")
        if short.endswith("_exps") and to_hugging_face:
            result |= {f"model.layers.{layer[1]}.{EXPERTS[a.kind][short] % e}.{kind}": w[e] for e in range(a.experts)}
        elif short not in fused:
            less = a.less_one and to_hugging_face and short.endswith("_norm")
            result[hugging_face_name(name, a) if to_hugging_face else name] = w - np.float32(1) if less else w
    for i in range(a.layers):
        for whole, names in parts.items():
            prefix = f"model.layers.{i}." if to_hugging_face else f"blk.{i}."
            for kind in ("weight", "bias"):
                some = [weights[f"blk.{i}.{name}.{kind}"] for name in names if f"blk.{i}.{name}.{kind}" in weights]
                if some:
                    result[f"{prefix}{whole}.{kind}"] = np.concatenate(some)
    return result


def rounded(weights, dtype):
    """What a model file in that type holds."""
    return {name: w.astype(FLOATS[dtype]).astype(np.float32) for name, w in weights.items()}


def taken_apart(a, weights):
    """The way back from GGUF's names."""
    result = dict(weights)
    for i in range(a.layers):
        if "qkv" in a.fused:
            queries, keys = a.heads * a.head_size, a.key_heads * a.head_size
            parts = np.split(result.pop(f"blk.{i}.attn_qkv.weight"), [queries, queries + keys])
            result |= {f"blk.{i}.attn_{name}.weight": part for name, part in zip("qkv", parts)}
        if "gate" in a.fused:
            result[f"blk.{i}.ffn_gate.weight"], result[f"blk.{i}.ffn_up.weight"] = np.split(result[f"blk.{i}.ffn_up.weight"], 2)
    return result


CLASSES = {"gemma3_text": "Gemma3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM", "smollm3": "SmolLM3ForCausalLM"}


def config(a):
    values = {
        "model_type": a.kind,
        "architectures": [CLASSES.get(a.kind, f"{a.kind.title()}ForCausalLM")],
        "hidden_act": "silu" if a.mlp == "silu" else "gelu_pytorch_tanh",
        "hidden_size": a.width,
        "intermediate_size": a.hidden,
        "num_hidden_layers": a.layers,
        "num_attention_heads": a.heads,
        "num_key_value_heads": a.key_heads,
        "head_dim": a.head_size,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 128,
        {"rms": "rms_norm_eps", "mean": "layer_norm_eps", "biased": "norm_epsilon"}[a.norm]: 1e-5,
        "rope_theta": a.theta,
        "tie_word_embeddings": a.tied,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    if a.rope:
        values["rope_scaling"] = a.rope
    if a.window or a.kind == "mistral":
        values["sliding_window"] = a.window
    if a.rotated != 1:
        values["partial_rotary_factor"] = a.rotated
    if a.local_theta:
        values["rope_local_base_freq"] = a.local_theta
    if a.less_one:  # Gemma's
        values |= {"attn_logit_softcapping": a.caps[0], "final_logit_softcapping": a.caps[1], "hidden_activation": values["hidden_act"]}
    return values | a.fields


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
    named = joined(a, weights, to_hugging_face=True)
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


# GGUF


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
        f"{name}.attention.layer_norm_{'rms_' if a.norm == 'rms' else ''}epsilon": 1e-5,
        f"{name}.rope.freq_base": a.theta,
    }
    if a.window:
        values[f"{name}.attention.sliding_window"] = a.window
    if a.rotated != 1:
        values[f"{name}.rope.dimension_count"] = a.turned
    if a.experts:
        values |= {f"{name}.expert_count": a.experts, f"{name}.expert_used_count": a.used}
    kind = a.rope["rope_type"] if a.rope else None
    if kind in ("linear", "yarn"):
        values |= {f"{name}.rope.scaling.type": kind, f"{name}.rope.scaling.factor": a.rope["factor"]}
    if kind == "yarn":
        values[f"{name}.rope.scaling.original_context_length"] = a.rope["original_max_position_embeddings"]
    if kind == "longrope":
        values |= {f"{name}.rope.scaling.attn_factor": float(inverse_frequencies(a)[1]), f"{name}.rope.scaling.original_context_length": a.fields["original_max_position_embeddings"]}
    for cap, where in zip(a.caps, ("attn", "final")):
        if cap:
            values[f"{name}.{where}_logit_softcapping"] = cap
    return values | {f"{name}.{key}": value for key, value in a.metadata.items()}


def as_in_gguf(a):
    """The architecture that a GGUF file describes: Gemma's have no other divisor of scores than the head's size says, and weights of experts add up to one but in OLMoE's."""
    a = dataclasses.replace(a, normalises=a.kind != "olmoe")
    return a if a.metadata or not a.less_one else dataclasses.replace(a, scales={name: scale for name, scale in a.scales.items() if name != "scores"})


# Architectures whose GGUF files have rope's pairs as neighbours where Hugging Face's have halves.
PAIRED = "llama", "granite", "smollm3"


def write_gguf(path, a, weights, format, metadata=None):
    """Writes matrices in `format`, or each in format(name), vectors in f32; returns the weights that the file stands for."""
    header = b"".join(gguf_string(key) + struct.pack("<I", (v := gguf_value(value))[0]) + v[1] for key, value in (metadata or gguf_metadata(a)).items())
    count = len(metadata or gguf_metadata(a))
    described, data, meant = b"", b"", {}
    tensors = joined(a, weights, to_hugging_face=False)
    if a.rope == LLAMA3_ROPE:
        plain_frequencies, _ = inverse_frequencies(dataclasses.replace(a, rope=None))
        tensors["rope_freqs.weight"] = (plain_frequencies / inverse_frequencies(a)[0]).astype(np.float32)
    if a.rope == LONGROPE:
        tensors |= {f"rope_factors_{which}.weight": np.array(a.rope[f"{which}_factor"], np.float32) for which in ("short", "long")}
    for name, w in tensors.items():
        number, write = FORMATS["f32" if w.ndim < 2 else format(name) if callable(format) else format]
        heads = {"attn_q": a.heads, "attn_k": a.key_heads}.get(name.split(".")[-2]) if a.gguf in PAIRED else None
        raw, values = write(interleaved(w, heads) if heads else w)
        meant[name] = halved(values, heads) if heads else values
        data += b"\0" * (-len(data) % 32)
        described += gguf_string(name) + struct.pack("<I", w.ndim) + struct.pack(f"<{w.ndim}Q", *reversed(w.shape)) + struct.pack("<IQ", number, len(data))
        data += raw
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), count) + header + described
    path.write_bytes(start + b"\0" * (-len(start) % 32) + data)
    return taken_apart(a, meant)


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
