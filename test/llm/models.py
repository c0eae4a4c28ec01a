"""Small random models for the tests of greta-llm: the files that hold them. architectures.py has what is in them.

Files are written by hand, so that the tests need neither transformers nor the gguf package; test_llm_peers.py compares them with theirs.
"""

import dataclasses
import json
import struct

import ml_dtypes
import numpy as np

from architectures import ARCHITECTURES, LLAMA3_ROPE, LONGROPE, OTHERS, VOCABULARY, YARN, in_fp8, in_q8_0, inverse_frequencies, logits, random_weights, shapes  # some are for others
from block_formats import FLOATS, FORMATS

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
DEEPSEEK = {f"ffn_{name}_shexp": f"mlp.shared_experts.{name}_proj" for name in ("gate", "up", "down")} | {
    "ffn_gate_inp": "mlp.gate", "attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm": "self_attn.kv_a_layernorm", "attn_kv_b": "self_attn.kv_b_proj", "exp_probs_b": "mlp.gate.e_score_correction",
}
OTHER_NAMES = {
    "gemma2": FOUR_NORMS,
    "gemma3_text": FOUR_NORMS,
    "olmo2": FOUR_NORMS,
    "glm4": {"post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm"},
    "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    "qwen3_moe": {"ffn_gate_inp": "mlp.gate"},
    "olmoe": {"ffn_gate_inp": "mlp.gate"},
    "gpt_oss": {"ffn_gate_inp": "mlp.router"},
    "qwen2_moe": {"ffn_gate_inp": "mlp.gate", "ffn_gate_inp_shexp": "mlp.shared_expert_gate"} | {f"ffn_{name}_shexp": f"mlp.shared_expert.{name}_proj" for name in ("gate", "up", "down")},
    "deepseek_v2": DEEPSEEK,
    "deepseek_v3": DEEPSEEK,
    "mixtral": {"ffn_gate_inp": "block_sparse_moe.gate"},
}
# Experts have tensors of their own.
NUMBERED = {name: f"mlp.experts.%d.{name[4:-5]}_proj" for name in ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps")}
EXPERTS = {
    "qwen3_moe": NUMBERED,
    "olmoe": NUMBERED,
    "qwen2_moe": NUMBERED,
    "deepseek_v2": NUMBERED,
    "deepseek_v3": NUMBERED,
    "mixtral": {"ffn_gate_exps": "block_sparse_moe.experts.%d.w1", "ffn_up_exps": "block_sparse_moe.experts.%d.w3", "ffn_down_exps": "block_sparse_moe.experts.%d.w2"},
}


def hugging_face_name(name, a=None):
    *layer, short, kind = name.split(".")
    prefix = f"model.layers.{layer[1]}." if layer else ""
    theirs = f"{prefix}{(HUGGING_FACE | OTHER_NAMES.get(a.kind if a else '', {}))[short]}"
    return f"{theirs}_bias" if short == "exp_probs_b" else f"{theirs}.{kind}"


def joined(a, weights, to_hugging_face):
    """Weights as files of the architecture have them: those that are one there are one below the other."""
    words = a.fused.split()
    parts = {"self_attn.qkv_proj" if to_hugging_face else "attn_qkv": ("attn_q", "attn_k", "attn_v")} if "qkv" in words or ("gguf-qkv" in words and not to_hugging_face) else {}
    parts |= {"mlp.gate_up_proj" if to_hugging_face else "ffn_up": ("ffn_gate", "ffn_up")} if "gate" in words else {}
    fused = {name for some in parts.values() for name in some}
    result = {}
    for name, w in weights.items():
        *layer, short, kind = name.split(".")
        if a.kind == "gpt_oss" and (short == "attn_sinks" or short.endswith("_exps")) and to_hugging_face:
            continue
        if a.kind == "gpt_oss" and short == "ffn_norm" and not to_hugging_face:
            short = "post_attention_norm"
            name = f"blk.{layer[1]}.{short}.{kind}"
        if short.endswith("_exps") and to_hugging_face:
            result |= {f"model.layers.{layer[1]}.{EXPERTS[a.kind][short] % e}.{kind}": w[e] for e in range(a.experts)}
        elif short == "attn_kv_b" and not to_hugging_face:
            result |= of_heads(a, f"blk.{layer[1]}.", w)
        elif short not in fused:
            less = a.less_one and to_hugging_face and short.endswith("_norm")
            result[hugging_face_name(name, a) if to_hugging_face else name] = w - np.float32(1) if less else w
    if a.kind == "gpt_oss" and to_hugging_face:
        result |= of_gpt_oss(a, weights)
    for i in range(a.layers):
        for whole, names in parts.items():
            prefix = f"model.layers.{i}." if to_hugging_face else f"blk.{i}."
            for kind in ("weight", "bias"):
                some = [weights[f"blk.{i}.{name}.{kind}"] for name in names if f"blk.{i}.{name}.{kind}" in weights]
                if some:
                    result[f"{prefix}{whole}.{kind}"] = np.concatenate(some)
    return result


def of_heads(a, prefix, both):
    """What makes keys and values of latents, as GGUF files have it: a matrix for each head, that of keys transposed."""
    _, rank, plain, _, value = a.latent
    heads = both.reshape(a.heads, plain + value, rank)
    return {f"{prefix}attn_k_b.weight": np.ascontiguousarray(heads[:, :plain].swapaxes(1, 2)), f"{prefix}attn_v_b.weight": np.ascontiguousarray(heads[:, plain:])}


def of_gpt_oss(a, weights):
    """Sinks and experts as its safetensors have them: gate and up in turn, matrices transposed."""
    result = {}
    for i in range(a.layers):
        theirs, ours = f"model.layers.{i}.", f"blk.{i}.ffn_"
        result[f"{theirs}self_attn.sinks"] = weights[f"blk.{i}.attn_sinks.weight"]
        for kind, suffix in (("weight", ""), ("bias", "_bias")):
            gate, up, down = (weights[f"{ours}{name}_exps.{kind}"] for name in ("gate", "up", "down"))
            both = np.stack([gate, up], axis=2).reshape(a.experts, -1, *gate.shape[2:])
            for name, w in (("gate_up", both), ("down", down)):
                result[f"{theirs}mlp.experts.{name}_proj{suffix}"] = np.ascontiguousarray(w.swapaxes(1, -1))
    return result


def rounded(weights, dtype):
    """What a model file in that type holds."""
    return {name: w.astype(FLOATS[dtype]).astype(np.float32) for name, w in weights.items()}


def taken_apart(a, weights):
    """The way back from GGUF's names."""
    result = dict(weights)
    for i in range(a.layers):
        if a.latent:
            k, v = (result.pop(f"blk.{i}.attn_{name}_b.weight") for name in "kv")
            result[f"blk.{i}.attn_kv_b.weight"] = np.concatenate([k.swapaxes(1, 2), v], axis=1).reshape(-1, a.latent[1])
        if a.kind == "gpt_oss":
            result[f"blk.{i}.ffn_norm.weight"] = result.pop(f"blk.{i}.post_attention_norm.weight")
        if "qkv" in a.fused:
            queries, keys = a.heads * a.head_size, a.key_heads * a.head_size
            for kind in ("weight", "bias"):
                if f"blk.{i}.attn_qkv.{kind}" in result:
                    parts = np.split(result.pop(f"blk.{i}.attn_qkv.{kind}"), [queries, queries + keys])
                    result |= {f"blk.{i}.attn_{name}.{kind}": part for name, part in zip("qkv", parts)}
        if "gate" in a.fused:
            result[f"blk.{i}.ffn_gate.weight"], result[f"blk.{i}.ffn_up.weight"] = np.split(result[f"blk.{i}.ffn_up.weight"], 2)
    return result


CLASSES = {"qwen2_moe": "Qwen2MoeForCausalLM", "deepseek_v2": "DeepseekV2ForCausalLM", "deepseek_v3": "DeepseekV3ForCausalLM", "gpt_oss": "GptOssForCausalLM", "gemma3_text": "Gemma3ForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM", "smollm3": "SmolLM3ForCausalLM"}


END = 2
# A token in a hundred ends what random weights say, or one in twenty-eight where a grammar leaves few others: answers that must last have none. A dialect that cannot
# forbid it takes the likeliest tokens, among which it is not.
NO_END = {str(END): -100}


def config(a):
    values = {
        "model_type": a.kind,
        "architectures": [CLASSES.get(a.kind, f"{a.kind.title()}ForCausalLM")],
        "hidden_act": "silu" if a.mlp in ("silu", "clamped") else "gelu_pytorch_tanh",
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
        "eos_token_id": END,
        "pad_token_id": 0,
    }
    if a.latent:
        names = "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"
        values |= dict(zip(names, (a.latent[0] or None, *a.latent[1:])))
        del values["head_dim"]
        values["num_key_value_heads"] = a.heads
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
        kind = dtype.upper() if tensor.dtype == np.float32 else {"int32": "I32", "uint8": "U8", "float16": "F16", "float8_e4m3fn": "F8_E4M3"}[tensor.dtype.name]
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


def write_mxfp4(folder, a, weights, dtype):
    """gpt-oss's safetensors: experts' matrices as blocks of neighbours and scales, the rest in another type; returns the weights that the files stand for."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(a) | {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}))
    meant = rounded(weights, dtype)
    meant |= {name: FORMATS["mxfp4"][1](w)[1] for name, w in weights.items() if name.endswith("_exps.weight")}
    named = joined(a, meant, to_hugging_face=True)
    for name in [name for name in named if name.endswith(("gate_up_proj", "down_proj"))]:
        rows = named.pop(name).swapaxes(1, 2)
        blocks = np.frombuffer(FORMATS["mxfp4"][1](np.ascontiguousarray(rows))[0], np.uint8).reshape(*rows.shape[:2], -1, 17)
        halves = np.concatenate([blocks[..., 1:] & 15, blocks[..., 1:] >> 4], axis=-1)  # 32 numbers
        named |= {f"{name}_blocks": halves[..., 0::2] | halves[..., 1::2] << 4, f"{name}_scales": np.ascontiguousarray(blocks[..., 0])}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(named, dtype))
    return meant


# fp8: matrices of e4m3, and a scale for each block of rows and columns, for each row, or for all.


def in_e4m3(w, block, dtype):
    """w [.., N, K] in f32 -> (numbers, scales, the numbers they stand for); of a block of 0 rows all have one scale."""
    n, k = w.shape[-2:]
    rows, columns = block if block[0] else (n, k)
    starts = np.arange(0, n, rows), np.arange(0, k, columns)
    largest = np.maximum.reduceat(np.maximum.reduceat(np.abs(w), starts[0], axis=-2), starts[1], axis=-1)
    scales = (largest / 448).astype(FLOATS[dtype]).astype(np.float32)
    each = scales.repeat(rows, axis=-2)[..., :n, :].repeat(columns, axis=-1)[..., :k]
    numbers = (w / each).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn)
    return numbers, scales, numbers.astype(np.float32) * each


def compressed(kind, **weights):
    """quantization_config of compressed-tensors, as llm-compressor writes it."""
    about = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": kind, "dynamic": False, "group_size": None, "observer": "minmax", "actorder": None} | weights
    group = {"targets": ["Linear"], "weights": about, "input_activations": {"num_bits": 8, "type": "float", "dynamic": True, "strategy": "token"}, "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": group}, "ignore": ["lm_head"], "kv_cache_scheme": None, "quantization_status": "compressed"}


def write_fp8(folder, a, weights, kind, **about):
    """Layers' matrices but the router in fp8, the rest and scales in f32, of `channel` in bf16; returns the weights that the files stand for. `kind`: tensor, channel or block, or ROWSxCOLUMNS of one."""
    folder.mkdir(parents=True, exist_ok=True)
    block = {"tensor": (0, 0), "channel": (1, 1 << 20), "block": (128, 128)}.get(kind) or tuple(map(int, kind.split("x")))
    how = compressed(kind) if kind == "channel" else {"quant_method": "fp8", "activation_scheme": "static"}
    if kind not in ("tensor", "channel"):
        how = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": block, "modules_to_not_convert": ["lm_head"]}
    (folder / "config.json").write_text(json.dumps(config(a) | {"quantization_config": how | about}))
    dtype = "bf16" if kind == "channel" else "f32"
    floats, meant, numbers, scales = {}, rounded(weights, dtype), {}, {}
    for name, w in weights.items():
        if w.ndim < 2 or not name.startswith("blk.") or "_inp" in name:
            floats[name] = w
        else:
            numbers[name], scales[name], meant[name] = in_e4m3(w, block, dtype)
    named = joined(a, floats | numbers, to_hugging_face=True)
    for name, scale in joined(a, floats | scales, to_hugging_face=True).items():
        if named[name].dtype == ml_dtypes.float8_e4m3fn:
            named[f"{name}_scale" if kind in ("tensor", "channel") else f"{name}_scale_inv"] = scale.reshape(()) if kind == "tensor" else scale
            if kind == "tensor":  # of activations
                named[name.removesuffix("weight") + "input_scale"] = np.ones(1, np.float32)
    (folder / "model.safetensors").write_bytes(safetensors_bytes(named, dtype))
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
    if isinstance(value, bytes):
        return 9, struct.pack("<IQ", 0, len(value)) + value
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
        if a.expert_hidden:
            values[f"{name}.expert_feed_forward_length"] = a.expert_hidden
        if a.shared_gate:
            values[f"{name}.expert_shared_feed_forward_length"] = a.shared
    if a.latent:
        of_queries, rank, plain, rope, size = a.latent
        values |= {f"{name}.attention.{key}": number for key, number in (("kv_lora_rank", rank), ("key_length", rank + rope), ("value_length", rank), ("key_length_mla", plain + rope), ("value_length_mla", size))}
        values |= {f"{name}.attention.head_count_kv": 1, f"{name}.rope.dimension_count": rope, f"{name}.leading_dense_block_count": a.dense, f"{name}.expert_shared_count": a.shared // a.expert_hidden}
        values |= {f"{name}.expert_weights_scale": a.routed, f"{name}.expert_weights_norm": a.normalises, f"{name}.expert_gating_func": 1 + a.sigmoids}
        values |= {f"{name}.expert_group_used_count": a.groups[0], f"{name}.expert_group_count": a.groups[1]} if a.groups[1] > 1 else {}
        values |= {f"{name}.attention.q_lora_rank": of_queries} if of_queries else {}
        values |= {f"{name}.rope.scaling.yarn_log_multiplier": 0.1 * a.rope["mscale_all_dim"]} if a.rope else {}
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
    fields = a.fields | {"swiglu_limit": 7.0} if a.kind == "gpt_oss" else a.fields
    a = dataclasses.replace(a, normalises=a.normalises if a.latent else a.kind not in ("olmoe", "qwen2_moe"), limit=7.0, fields=fields)
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
        number, write = FORMATS["f32" if w.ndim < 2 or name.endswith("bias") else format(name) if callable(format) else format]
        heads = {"attn_q": a.heads, "attn_k": a.key_heads}.get(name.split(".")[-2]) if a.gguf in PAIRED else None
        if name.endswith("ffn_gate_inp_shexp.weight"):
            w = w[0]  # the dimension of 1 is not there
            number, write = FORMATS["f32"]
        raw, values = write(interleaved(w, heads) if heads else w)
        meant[name] = halved(values, heads) if heads else values[None] if name.endswith("ffn_gate_inp_shexp.weight") else values
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
