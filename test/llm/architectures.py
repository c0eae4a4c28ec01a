"""Small random models for the tests of greta-llm: what tells architectures from each other, the weights, and the models' definition in float64.

models.py writes their files; test_llm_peers.py compares the definition with transformers'.
"""

import dataclasses

import numpy as np

from case import rounded_to

VOCABULARY = 320
EPSILON = 1e-5


@dataclasses.dataclass(frozen=True)
class Architecture:
    """What config.json says, beside sizes, and what the architecture's name says."""

    kind: str  # Hugging Face's model_type
    gguf: str
    bias: bool | str = False  # of queries, keys and values; "attention": of the output, too; "all": also of the MLP, or of router and experts
    head_norms: bool | str = False  # "rows": of all heads together
    tied: bool = False
    window: int | None = None
    period: int = 0  # each so many-th layer has no window
    first: int = 0  # layers before have no window
    rope: dict | None = None  # scaling
    theta: float = 10000.0
    local_theta: float | None = None  # of layers with a window
    rotated: float = 1.0  # part of a head that rope turns
    without_rope: str = ""  # "whole": layers without a window; "fourth": each fourth
    neighbours: bool = False  # rope's pairs, in all files
    norms: str = "before"  # "both", "after"
    norm: str = "rms"  # "mean", "biased"
    less_one: bool = False  # norms' weights are stored so in safetensors
    mlp: str = "silu"  # "gelu", "ungated", "clamped"
    limit: float = 7.0  # of "clamped"
    sinks: bool = False
    parallel: bool = False
    caps: tuple = (None, None)  # of scores and logits
    scales: dict = dataclasses.field(default_factory=dict)  # embedding, scores, residual, logits
    fused: str = ""  # "gate", "qkv gate"; "gguf-qkv": in GGUF files alone
    experts: int = 0
    used: int = 0  # by a token
    expert_hidden: int = 0  # where it is not the MLP's
    shared: int = 0  # width of the MLP that all tokens have beside
    shared_gate: bool = False
    dense: int = 0  # first layers without experts
    sigmoids: bool = False  # and a bias of the choice
    groups: tuple = (1, 1)  # used and all
    routed: float = 1.0  # a factor of experts' weights
    latent: tuple = ()  # ranks of queries (or 0) and keys; sizes of keys without rope and with, and of values
    latent_epsilon: float = 1e-6  # of latents' norms, which do not have that of others
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
        return self.window and layer >= self.first and not (self.period and (layer + 1) % self.period == 0)

    def has_experts(self, layer):
        return self.experts and layer >= self.dense

    def has_rope(self, layer):
        return self.has_window(layer) if self.without_rope == "whole" else not self.without_rope or (layer + 1) % 4 != 0

    @property
    def turned(self):
        return self.latent[3] if self.latent else int(self.head_size * self.rotated)

    @property
    def biased(self):
        attention = ["attn_q", "attn_k", "attn_v"] if self.bias else []
        mlp = ["ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] if self.experts else ["ffn_up", "ffn_down"]
        return attention + {"attention": ["attn_output"], "all": ["attn_output", *mlp]}.get(self.bias, [])


LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
GPT_OSS_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "truncate": False}
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
    "qwen2-window": Architecture("qwen2", "qwen2", bias=True, tied=True, theta=1000000.0, window=7, first=1, fields={"use_sliding_window": True, "max_window_layers": 1}),
    # Three times the context is as long as the tests' prompt.
    "llama-dynamic": Architecture("llama", "llama", tied=True, rope={"rope_type": "dynamic", "factor": 3.0}, fields={"max_position_embeddings": 7}),
    "qwen3-yarn": Architecture("qwen3", "qwen3", head_norms=True, rope=YARN, theta=1000000.0, bias="attention", fields={"attention_bias": True}),
    "smollm3": Architecture("smollm3", "smollm3", tied=True, without_rope="fourth", layers=4, theta=2000000.0),
    "gemma2": Architecture("gemma2", "gemma2", **GEMMA, period=2, caps=(5.0, 3.0), scales={"embedding": 8.0, "scores": 24**-0.5}, fields={"query_pre_attn_scalar": 24}),
    "gemma3": Architecture(
        "gemma3_text", "gemma3", **GEMMA, period=6, head_norms=True, theta=1000000.0, local_theta=10000.0, rope={"rope_type": "linear", "factor": 8.0}, layers=6,
        scales={"embedding": 8.0, "scores": 24**-0.5}, fields={"query_pre_attn_scalar": 24},
    ),
    "phi3": Architecture("phi3", "phi3", window=9, fused="qkv gate"),
    "phi4-mini": Architecture("phi3", "phi3", tied=True, fused="qkv gate", rotated=0.75, rope=LONGROPE, fields={"original_max_position_embeddings": 16}),
    "glm": Architecture("glm", "chatglm", bias=True, fused="gguf-qkv gate", rotated=0.5, neighbours=True),
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
    "qwen2-moe": Architecture(
        "qwen2_moe", "qwen2moe", bias=True, experts=6, used=2, normalises=False, expert_hidden=64, shared=96, shared_gate=True, layers=1,
        fields={"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 96, "norm_topk_prob": False, "sliding_window": 32},
    ),
    "deepseek-v2-lite": Architecture(
        "deepseek_v2", "deepseek2", experts=6, used=2, normalises=False, expert_hidden=32, shared=64, dense=1, latent=(0, 32, 16, 8, 24), neighbours=True,
        fields={"n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 2, "first_k_dense_replace": 1, "topk_method": "greedy", "n_group": 1, "topk_group": 1},
    ),
    "deepseek-v3": Architecture(
        "deepseek_v3", "deepseek2", experts=16, used=3, expert_hidden=32, shared=32, sigmoids=True, groups=(2, 4), routed=2.5, latent=(24, 32, 16, 8, 24), neighbours=True,
        rope=YARN | {"mscale": 1.0, "mscale_all_dim": 1.0}, layers=1,
        fields={"n_routed_experts": 16, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "n_shared_experts": 1, "first_k_dense_replace": 0, "n_group": 4, "topk_group": 2},
    ),
    "mixtral": Architecture("mixtral", "llama", experts=4, used=2, fields={"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "gpt-oss": Architecture(
        "gpt_oss", "gpt-oss", bias="all", sinks=True, window=7, period=2, mlp="clamped", limit=1.5, rope=GPT_OSS_YARN, experts=6, used=2, theta=150000.0,
        fields={"num_local_experts": 6, "num_experts_per_tok": 2, "swiglu_limit": 1.5, "attention_bias": True},
    ),
    "starcoder2": Architecture("starcoder2", "starcoder2", tied=True, bias="all", norm="biased", mlp="ungated", window=7),
}
# GGUF does not say which layers have a window, and has no rope with a base by the context.
NOT_IN_GGUF = "qwen2-window", "llama-dynamic"


def latent_shapes(a):
    """Of attention's matrices over latents, and of the norms of these."""
    of_queries, rank, plain, rope, value = a.latent
    some = {"attn_q_a": (of_queries, a.width), "attn_q_b": (a.heads * (plain + rope), of_queries)} if of_queries else {"attn_q": (a.heads * (plain + rope), a.width)}
    some |= {"attn_kv_a_mqa": (rank + rope, a.width), "attn_kv_b": (a.heads * (plain + value), rank), "attn_output": (a.width, a.heads * value)}
    return some, {"attn_kv_a_norm.weight": (rank,)} | ({"attn_q_a_norm.weight": (of_queries,)} if of_queries else {})


def layer_shapes(a, number):
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
    more = {}
    if a.latent:
        latents, more = latent_shapes(a)
        matrices = latents | {name: shape for name, shape in matrices.items() if name.startswith("ffn")}
    has_experts = a.has_experts(number)
    if has_experts:

        def mlp(hidden):
            return {"ffn_gate": (hidden, a.width), "ffn_up": (hidden, a.width), "ffn_down": (a.width, hidden)}

        matrices |= {"ffn_gate_inp": (a.experts, a.width)} | {f"{name}_exps": (a.experts, *shape) for name, shape in mlp(a.expert_hidden or a.hidden).items()}
        if a.shared:
            matrices |= {f"{name}_shexp": shape for name, shape in mlp(a.shared).items()}
        if a.shared_gate:
            matrices["ffn_gate_inp_shexp"] = (1, a.width)
        if a.sigmoids:
            more["exp_probs_b.bias"] = (a.experts,)
    for name in {"ffn_gate"} if a.mlp == "ungated" else {"ffn_gate", "ffn_up", "ffn_down"} if has_experts else ():
        del matrices[name]
    before = a.norms != "after"
    order = ["attn_norm"] * before + [name for name in matrices if name.startswith("attn")] + ["ffn_norm"] * (before and not a.parallel) + [name for name in matrices if name.startswith("ffn")]
    order += ["post_attention_norm", "post_ffw_norm"] * (a.norms != "before")
    layer = {f"{name}.weight": matrices.get(name, (a.width,)) for name in order}
    layer |= {f"{name}.bias": shape[:-1] for name, shape in matrices.items() if name in a.biased}
    if a.sinks:
        layer["attn_sinks.weight"] = (a.heads,)
    if a.head_norms:
        layer |= {"attn_q_norm.weight": (queries if a.head_norms == "rows" else a.head_size,), "attn_k_norm.weight": (keys if a.head_norms == "rows" else a.head_size,)}
    return layer | more


def shapes(a):
    """{GGUF's name: shape}"""
    all = {"token_embd.weight": (VOCABULARY, a.width), "output_norm.weight": (a.width,)}
    if not a.tied:
        all["output.weight"] = (VOCABULARY, a.width)
    for i in range(a.layers):
        all |= {f"blk.{i}.{name}": shape for name, shape in layer_shapes(a, i).items()}
    if a.norm == "biased":
        all |= {name.replace("weight", "bias"): (a.width,) for name in all if name.endswith("_norm.weight")}
    return all


def random_weights(a, seed=7):
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes(a).items():
        if "norm" in name:
            weights[name] = 1 + 0.2 * rng.standard_normal(shape)
        elif len(shape) == 1 or name.endswith("bias"):
            weights[name] = 0.5 * rng.standard_normal(shape)
        else:
            weights[name] = rng.standard_normal(shape) * (1.5 / np.sqrt(shape[-1]))
        if name.endswith(("attn_q_a.weight", "attn_kv_a_mqa.weight")):
            weights[name][: a.latent["q" not in name.split("_")]] *= 2**-9  # so small that the norms' epsilon counts
    return {name: w.astype(np.float32) for name, w in weights.items()}


# The definition


def yarn(a, inverse):
    count = len(inverse)
    low, high = (count * np.log(a.rope["original_max_position_embeddings"] / (turns * 2 * np.pi)) / np.log(a.theta) for turns in (32, 1))
    if a.rope.get("truncate", True):
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, 2 * count - 1)
    ramp = np.clip((np.arange(count) - low) / (high - low), 0, 1)
    return inverse * (1 - ramp) + inverse / a.rope["factor"] * ramp


def inverse_frequencies(a):
    """The angles of a token, and what is turned is multiplied by."""
    inverse = a.theta ** (-np.arange(0, a.turned, 2) / a.turned)
    kind = a.rope["rope_type"] if a.rope else None
    if kind == "linear":
        return inverse / a.rope["factor"], 1
    if kind == "dynamic":  # of a prompt as long as the factor allows
        stretch = a.rope["factor"] * a.rope["factor"] - (a.rope["factor"] - 1)
        return (a.theta * stretch ** (a.turned / (a.turned - 2))) ** (-np.arange(0, a.turned, 2) / a.turned), 1
    if kind == "yarn":
        return yarn(a, inverse), 1 if "mscale_all_dim" in a.rope else 0.1 * np.log(a.rope["factor"]) + 1
    if kind == "longrope":
        trained = a.fields["original_max_position_embeddings"]
        return inverse / np.array(a.rope["long_factor"]), np.sqrt(1 + np.log(128 / trained) / np.log(trained))
    if kind == "llama3":
        waves = 2 * np.pi / inverse
        smooth = (a.rope["original_max_position_embeddings"] / waves - a.rope["low_freq_factor"]) / (a.rope["high_freq_factor"] - a.rope["low_freq_factor"])
        smooth = np.clip(smooth, 0, 1)
        return (1 - smooth) * inverse / a.rope["factor"] + smooth * inverse, 1
    return inverse, 1


def norm(a, x, w, bias=0, eps=EPSILON):
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


def of_latents(a, layer, linear, normed_by, x):
    """Queries, keys and values of all heads."""
    of_queries, rank, plain, rope, value = a.latent
    count = len(x)
    q = linear(normed_by(linear(x, "attn_q_a"), "attn_q_a_norm", a.latent_epsilon), "attn_q_b") if of_queries else linear(x, "attn_q")
    q = q.reshape(count, a.heads, plain + rope)
    latents = linear(x, "attn_kv_a_mqa")
    both = linear(normed_by(latents[:, :rank], "attn_kv_a_norm", a.latent_epsilon), "attn_kv_b").reshape(count, a.heads, plain + value)
    k_rope = np.repeat(turned(a, layer, latents[:, None, rank:]), a.heads, axis=1)
    q = np.concatenate([q[..., :plain], turned(a, layer, q[..., plain:])], axis=-1)
    return q, np.concatenate([both[..., :plain], k_rope], axis=-1), both[..., plain:]


def attention(a, layer, linear, normed_by, x, sinks=None, held=None):
    count = len(x)

    def heads(name):
        y = linear(x, name)
        if a.head_norms == "rows" and name != "attn_v":
            y = normed_by(y, f"{name}_norm")
        y = y.reshape(count, -1, a.head_size)
        if name == "attn_v":
            return y
        return turned(a, layer, normed_by(y, f"{name}_norm") if a.head_norms is True else y)

    q, k, v = of_latents(a, layer, linear, normed_by, x) if a.latent else (heads(name) for name in ("attn_q", "attn_k", "attn_v"))
    if held:
        k, v = held(k), held(v)
    k, v = (np.repeat(y, a.heads // y.shape[1], axis=1) for y in (k, v))
    scores = capped(np.einsum("shd,thd->hst", q, k) * a.scales.get("scores", q.shape[-1] ** -0.5), a.caps[0])
    if a.rope and "mscale_all_dim" in a.rope:
        scores *= (0.1 * a.rope["mscale_all_dim"] * np.log(a.rope["factor"]) + 1) ** 2
    distance = np.arange(count)[:, None] - np.arange(count)
    scores = np.where((distance >= 0) & (distance < (a.window if a.has_window(layer) else count)), scores, -np.inf)
    if sinks is not None:
        scores = np.concatenate([scores, np.broadcast_to(sinks[:, None, None], (a.heads, count, 1))], axis=-1)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("hst,thd->shd", (scores / scores.sum(-1, keepdims=True))[..., :count], v)
    return linear(mixed.reshape(count, -1), "attn_output")


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gated(a, gate, up):
    if a.mlp == "clamped":
        gate, up = np.minimum(gate, a.limit), np.clip(up, -a.limit, a.limit)
        return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)
    return (gelu(gate) if a.mlp == "gelu" else gate / (1 + np.exp(-gate))) * up


def mixture(a, scores, expert, x, bias=None):
    """`scores` [tokens, experts] are the router's; expert(e, name, y) multiplies by a weight of one."""
    shares = 1 / (1 + np.exp(-scores)) if a.sigmoids else np.exp(scores - scores.max(-1, keepdims=True))
    if a.sigmoids:
        scores = shares + bias
    used, groups = a.groups
    if groups > 1:
        grouped = np.sort(scores.reshape(len(x), groups, -1), axis=-1)
        of_group = grouped[..., -2:].sum(-1) if a.sigmoids else grouped[..., -1]
        kept = np.argsort(-of_group, axis=-1, kind="stable")[:, :used]
        mask = np.zeros((len(x), groups), bool)
        np.put_along_axis(mask, kept, True, axis=-1)
        scores = np.where(np.repeat(mask, a.experts // groups, axis=-1), scores, -np.inf)
    chosen = np.argsort(-scores, axis=-1, kind="stable")[:, : a.used]
    y = np.zeros_like(x)
    for t, some in enumerate(chosen):
        whole = (shares[t, some].sum() if a.normalises else 1 if a.sigmoids else shares[t].sum()) / a.routed
        for e in some:
            gate, up = (expert(e, name, x[t]) for name in ("gate", "up"))
            y[t] += shares[t, e] / whole * expert(e, "down", gated(a, gate, up))
    return y


def mlp(a, linear, x, suffix=""):
    up = linear(x, f"ffn_up{suffix}")
    if a.mlp == "ungated":
        return linear(gelu(up), "ffn_down")
    return linear(gated(a, linear(x, f"ffn_gate{suffix}"), up), f"ffn_down{suffix}")


def in_q8_0(x):
    """Numbers of 8 bits, times a scale in f16 for each 32, as a KV cache holds them."""
    parts = x.reshape(*x.shape[:-1], -1, 32)
    scale = (np.abs(parts).max(-1, keepdims=True) / 127).astype(np.float16).astype(np.float64)
    return (np.clip(np.round(parts / np.where(scale == 0, 1, scale)), -127, 127) * scale).reshape(x.shape)


def in_fp8(x):
    return rounded_to("f8e4m3fn", np.clip(x, -448, 448))


def logits(a, weights, tokens, held=None):
    """[tokens, vocabulary], in float64, of weights under GGUF's names with Hugging Face's order of rope's pairs. Keys and values are what `held` makes of them."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = w["token_embd.weight"][tokens] * a.scales.get("embedding", 1)
    for i in range(a.layers):

        def linear(y, name):
            return y @ w[f"blk.{i}.{name}.weight"].T + w.get(f"blk.{i}.{name}.bias", 0)

        def normed_by(y, name, epsilon=EPSILON):
            return norm(a, y, w[f"blk.{i}.{name}.weight"], w.get(f"blk.{i}.{name}.bias", 0), epsilon)

        def read(y, name):
            return y if a.norms == "after" else normed_by(y, name)

        def added(y, name):
            return (y if a.norms == "before" else normed_by(y, name)) * a.scales.get("residual", 1)

        normed = read(x, "attn_norm")
        sinks = w.get(f"blk.{i}.attn_sinks.weight")
        x = x + added(attention(a, i, linear, normed_by, normed, sinks, held), "post_attention_norm")
        normed = normed if a.parallel else read(x, "ffn_norm")
        if a.has_experts(i):

            def expert(e, name, y):
                bias = w.get(f"blk.{i}.ffn_{name}_exps.bias")
                return y @ w[f"blk.{i}.ffn_{name}_exps.weight"][e].T + (0 if bias is None else bias[e])

            x = x + mixture(a, linear(normed, "ffn_gate_inp"), expert, normed, w.get(f"blk.{i}.exp_probs_b.bias"))
            if a.shared:
                gate = 1 / (1 + np.exp(-linear(normed, "ffn_gate_inp_shexp"))) if a.shared_gate else 1
                x = x + gate * mlp(a, linear, normed, "_shexp")
        else:
            x = x + added(mlp(a, linear, normed), "post_ffw_norm")
    x = norm(a, x, w["output_norm.weight"], w.get("output_norm.bias", 0))
    return capped(x @ w["token_embd.weight" if a.tied else "output.weight"].T * a.scales.get("logits", 1), a.caps[1])
