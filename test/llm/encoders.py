"""Small random models of embeddings for the tests of greta-llm: BERT's, RoBERTa's and Nomic's, their definition in float64, and their files.

test_llm_embeddings.py compares the definition with transformers'.
"""

import json
import math

import numpy as np

import models
from architectures import VOCABULARY, Architecture

CONTEXT, LAYERS, WIDTH, HIDDEN, HEADS, EPSILON = 48, 2, 64, 96, 4, 1e-12
KINDS = {
    "bert": Architecture("bert", "bert", key_heads=4),
    "nomic": Architecture("nomic_bert", "nomic-bert", key_heads=4, fused="qkv", theta=1000.0),
    "roberta": Architecture("roberta", "bert", key_heads=4),
    "xlm-roberta": Architecture("xlm-roberta", "bert", key_heads=4),
}
SKIPPED = 2  # rows of RoBERTa's positions that no token of a text has
erf = np.vectorize(math.erf)
NORMS = "token_embd_norm", "attn_output_norm", "layer_output_norm"
BERT = {
    "attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value", "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm",
    "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm",
}
NOMIC = {"attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj", "attn_output_norm": "norm1", "ffn_up": "mlp.fc11", "ffn_gate": "mlp.fc12", "ffn_down": "mlp.fc2", "layer_output_norm": "norm2"}
OUTER = {"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings", "token_types": "embeddings.token_type_embeddings"}


def random_weights(kind, seed=11):
    rng = np.random.default_rng(seed)
    is_bert = kind != "nomic"
    shapes = {"token_embd": (VOCABULARY, WIDTH), "token_types": (1 if "roberta" in kind else 2, WIDTH), "token_embd_norm": (WIDTH,)} | ({"position_embd": (CONTEXT, WIDTH)} if is_bert else {})
    for i in range(LAYERS):
        of_layer = {name: (WIDTH, WIDTH) for name in ("attn_q", "attn_k", "attn_v", "attn_output")} | {"ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)} | dict.fromkeys(NORMS[1:], (WIDTH,))
        shapes |= {f"blk.{i}.{name}": shape for name, shape in (of_layer | ({} if is_bert else {"ffn_gate": (HIDDEN, WIDTH)})).items()}
    weights = {}
    for name, shape in shapes.items():
        is_norm = name.endswith("_norm")
        weights[f"{name}.weight"] = 1 + 0.2 * rng.standard_normal(shape) if is_norm else rng.standard_normal(shape) * (1.5 / np.sqrt(shape[-1]))
        if is_norm or (is_bert and name.startswith("blk")):
            weights[f"{name}.bias"] = 0.3 * rng.standard_normal(shape[0])
    return {name: w.astype(np.float32) for name, w in weights.items()}


def states(kind, weights, tokens):
    """The state of each token, [tokens, width]."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def turned(y):
        if kind != "nomic":
            return y
        half = y.shape[-1] // 2
        angles = np.arange(len(tokens))[:, None] * 1000.0 ** (-np.arange(half) / half)
        c, s, a, b = np.cos(angles)[:, None], np.sin(angles)[:, None], y[..., :half], y[..., half:]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    x = w["token_embd.weight"][tokens] + w["token_types.weight"][0]
    if kind != "nomic":
        x = x + w["position_embd.weight"][: len(tokens)]
    x = norm(x, "token_embd_norm")
    for i in range(LAYERS):
        q, k, v = (linear(x, f"blk.{i}.attn_{n}").reshape(len(tokens), HEADS, -1) for n in "qkv")
        scores = np.einsum("ihd,jhd->hij", turned(q), turned(k)) / np.sqrt(q.shape[-1])
        p = np.exp(scores - scores.max(-1, keepdims=True))
        attended = np.einsum("hij,jhd->ihd", p / p.sum(-1, keepdims=True), v).reshape(len(tokens), WIDTH)
        x = norm(x + linear(attended, f"blk.{i}.attn_output"), f"blk.{i}.attn_output_norm")
        up = linear(x, f"blk.{i}.ffn_up")
        if kind != "nomic":
            active = up / 2 * (1 + erf(up / np.sqrt(2)))
        else:
            gate = linear(x, f"blk.{i}.ffn_gate")
            active = up * gate / (1 + np.exp(-gate))
        x = norm(x + linear(active, f"blk.{i}.ffn_down"), f"blk.{i}.layer_output_norm")
    return x


def embedding(kind, weights, tokens, pooling="mean"):
    all = states(kind, weights, tokens)
    pooled = all.mean(0) if pooling == "mean" else all[0]
    return pooled / np.linalg.norm(pooled)


def config(kind, **more):
    sizes = dict(vocab_size=VOCABULARY, type_vocab_size=2, pad_token_id=0)
    if kind != "nomic":
        sizes |= dict(model_type=kind, hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, max_position_embeddings=CONTEXT, layer_norm_eps=EPSILON, hidden_act="gelu", position_embedding_type="absolute", hidden_dropout_prob=0.1)
    if "roberta" in kind:
        sizes |= dict(type_vocab_size=1, pad_token_id=SKIPPED - 1, max_position_embeddings=CONTEXT + SKIPPED)
    if kind == "nomic":  # as Nomic's own code has them
        sizes |= dict(model_type="nomic_bert", n_embd=WIDTH, n_inner=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=8192, max_trained_positions=CONTEXT, layer_norm_epsilon=EPSILON, activation_function="swiglu", rotary_emb_base=1000, rotary_emb_fraction=1.0, causal=False, prenorm=False, use_rms_norm=False)
    return sizes | more


def write_safetensors(folder, kind, weights, dtype="f32", pooling=None, prefix="", **more):
    """`pooling`: the one mode that sentence-transformers' file has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(kind, **more)))
    if pooling:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        modes = {f"pooling_mode_{mode}": mode == pooling for mode in ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH} | modes))
        modules = [{"idx": i, "name": str(i), "path": "1_Pooling" if name == "Pooling" else "", "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(("Transformer", "Pooling", "Normalize"))]
        (folder / "modules.json").write_text(json.dumps(modules))
    outer = OUTER | {"token_embd_norm": "emb_ln" if kind == "nomic" else "embeddings.LayerNorm"}
    named = {}
    for name, w in weights.items():
        *layer, short, part = name.split(".")
        inner = NOMIC if kind == "nomic" else BERT
        if short == "position_embd" and "roberta" in kind:
            w = np.concatenate([np.full((SKIPPED, WIDTH), 9.0, np.float32), w])
        if not layer:
            named[f"{prefix}{outer[short]}.{part}"] = w
        elif kind != "nomic" or short not in ("attn_q", "attn_k", "attn_v"):
            named[f"{prefix}encoder.{'layers' if kind == 'nomic' else 'layer'}.{layer[1]}.{inner[short]}.{part}"] = w
    for i in range(LAYERS if kind == "nomic" else 0):
        named[f"{prefix}encoder.layers.{i}.attn.Wqkv.weight"] = np.concatenate([weights[f"blk.{i}.attn_{n}.weight"] for n in "qkv"])
    # greta-llm does not read the pooler.
    named[f"{prefix}pooler.dense.weight"] = np.zeros((WIDTH, WIDTH), np.float32)
    (folder / "model.safetensors").write_bytes(models.safetensors_bytes(named, dtype))
    return folder


def metadata(kind, pooling):
    name = KINDS[kind].gguf
    values = {
        "general.architecture": name,
        f"{name}.block_count": LAYERS,
        f"{name}.embedding_length": WIDTH,
        f"{name}.feed_forward_length": HIDDEN,
        f"{name}.context_length": CONTEXT,
        f"{name}.attention.head_count": HEADS,
        f"{name}.attention.layer_norm_epsilon": EPSILON,
        f"{name}.attention.causal": False,
        f"{name}.pooling_type": {"mean": 1, "cls": 2}.get(pooling, pooling),
    }
    return values | ({f"{name}.rope.freq_base": 1000.0} if kind == "nomic" else {})


def write_gguf(path, kind, weights, format, pooling="mean", more={}):
    """Returns the weights that the file stands for."""
    plain = "position_embd", "token_types"
    return models.write_gguf(path, KINDS[kind], weights, lambda name: "f32" if name.startswith(plain) else format, metadata(kind, pooling) | more)
