"""What is wrong with a model is one line on stderr and exit status 1, and nothing is written. Requests and packages: test_llm_requests.py."""

import dataclasses
import json
import os
import re
import struct
import subprocess

import numpy as np
import pytest

import architectures
import models
import texts
from models import ARCHITECTURES, OTHERS
from test_llm import LLM, llm
from test_llm_tokenizer import model_with

A = ARCHITECTURES["llama2"]
WEIGHTS = models.random_weights(A)
QWEN3_WEIGHTS = models.random_weights(dataclasses.replace(A, head_norms=True))


DEEPSEEK = dict(model_type="deepseek_v3", kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=8, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1, n_group=1, topk_group=1)


def refused(says, *words):
    ran = llm(*words)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert says in ran.stderr and ran.stderr.startswith("greta-llm: error: ") and ran.stderr.count("\n") == 1, ran.stderr
    assert ran.stdout == ""


def refused_model(says, path):
    refused(says, "compile", path, "--mlir")


def changed(folder, **config):
    models.write_safetensors(folder, A, WEIGHTS)
    (folder / "config.json").write_text(json.dumps(models.config(A) | config))
    return folder


@pytest.mark.parametrize(
    "config, says",
    [
        (dict(model_type="gpt_neox"), "the model type 'gpt_neox' is not known; greta-llm runs llama, mistral, qwen2, qwen3"),
        (dict(hidden_act="gelu"), "the activation is 'gelu'; greta-llm takes silu"),
        (dict(mlp_bias=True), "the field 'mlp_bias' is true; greta-llm runs models where it is false"),
        (dict(model_type="mistral", attention_bias=True), "the field 'attention_bias' is true; greta-llm runs models where it is false"),
        (dict(partial_rotary_factor=0.5), "the field 'partial_rotary_factor' is 0.5; greta-llm runs models where it is 1"),
        (dict(final_logit_softcapping=30.0), "the field 'final_logit_softcapping' (30.0) is not known to greta-llm, and may change what the model computes"),
        (dict(num_experts=8), "the field 'num_experts' (8) is not known to greta-llm"),
        (dict(logit_scale=0.5), "the field 'logit_scale' (0.5) is not known to greta-llm"),
        (dict(query_pre_attn_scalar=16), "the field 'query_pre_attn_scalar' (16) is not known to greta-llm"),
        (dict(model_type="granite", residual_multiplier=-1.0), "'residual_multiplier' is -1.000000; it has to be a positive number"),
        (dict(model_type="granite", attention_multiplier=0), "'attention_multiplier' is 0.000000; it has to be a positive number"),
        (dict(model_type="phi3", partial_rotary_factor=0.7), "the part of a head that rope turns is 11; it has to be 2 to 16 and a multiple of 2"),
        (dict(model_type="gpt_oss", num_local_experts=4, num_experts_per_tok=2, swiglu_limit=1e60), "the bound of the MLP's gate is 9"),
        (dict(model_type="gpt_oss", num_local_experts=4, num_experts_per_tok=2, swiglu_alpha=1e-60), "the slope of the MLP's gate is 0.000000; it has to be a positive number of f32"),
        (DEEPSEEK | dict(num_experts_per_tok=3, n_group=4, topk_group=1), "3 of 8 experts cannot be in 1 of 4 groups"),
        (DEEPSEEK | dict(n_group=8, topk_group=4), "the number of experts in a group is 1; it has to be 2 to 8"),
        (DEEPSEEK | dict(n_shared_experts=10**10, moe_intermediate_size=8 * 10**10), "the width of an expert is"),
        (DEEPSEEK | dict(n_shared_experts=10**14, moe_intermediate_size=1 << 20), "the width of shared experts is -1"),
        (DEEPSEEK | dict(model_type="deepseek_v2", norm_topk_prob=True), "the field 'norm_topk_prob' is true; greta-llm runs models where it is false"),
        (DEEPSEEK | dict(model_type="deepseek_v2", topk_method="noaux_tc"), "'topk_method' is 'noaux_tc'; greta-llm takes greedy and group_limited_greedy"),
        (DEEPSEEK | dict(decoder_sparse_step=2), "the field 'decoder_sparse_step' (2) is not known to greta-llm"),
        (dict(model_type="gemma2", hidden_act="silu"), "the activation is 'silu'; greta-llm takes gelu_pytorch_tanh for this model type"),
        (dict(model_type="gemma2", hidden_act="gelu_pytorch_tanh", sliding_window_pattern=3), "the field 'sliding_window_pattern' (3) is not known"),
        (dict(model_type="gemma3_text", hidden_act="gelu_pytorch_tanh", rope_parameters={"full_attention": {}, "x": {}}), "'rope_parameters' has 'x' beside 'full_attention' and 'sliding_attention'"),
        (dict(model_type="gemma3_text", hidden_act="gelu_pytorch_tanh", rope_parameters={"rope_type": "linear", "factor": 2}), "'rope_parameters' lacks 'full_attention'"),
        (dict(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, sliding_window=7, use_sliding_window=True, layer_types=["full_attention", "sliding_attention"]), "'layer_types' gives a part of the layers a window"),
        (dict(model_type="cohere", use_qk_norm=True, rms_norm_eps=None), "the field 'use_qk_norm' is true; greta-llm runs models where it is false"),
        (dict(model_type="smollm3", no_rope_layers=[1]), "'no_rope_layers' is no list of a number for each layer"),
        (dict(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=5), "the number of a token's experts is 5; it has to be 1 to 4"),
        (dict(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, decoder_sparse_step=0), "'first_k_dense_replace' or 'decoder_sparse_step' is no number of layers"),
        (dict(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, mlp_only_layers={"0": 1}), "lacks the list 'mlp_only_layers'"),
        (dict(sliding_window=7), "has a 'sliding_window', which this model type does not use"),
        (dict(layer_types=["sliding_attention"]), "'layer_types' is no list of 'full_attention' and 'sliding_attention' for each layer"),
        (dict(model_type="mistral", sliding_window=7, layer_types=["full_attention", "sliding_attention"]), "'layer_types' gives a part of the layers a window; this model type has one in all layers"),
        (dict(model_type="mistral", sliding_window=-7), "the window is -1; it has to be 0 to"),
        (dict(model_type="qwen3", sliding_window=7, use_sliding_window=True), "lacks the number 'max_window_layers'"),
        (dict(model_type="qwen3", sliding_window=7, use_sliding_window="yes"), "'use_sliding_window' is neither true nor false"),
        (dict(head_dim=1 << 34), "the size of a head is 17179869184; it has to be 8 to 1024"),
        (dict(rms_norm_eps=-1.0), "the norms' epsilon is -1.000000; it has to be a positive number"),
        (dict(rms_norm_eps=float("nan")), "is no JSON"),
        (dict(rope_theta=0), "rope's base is 0.000000; it has to be a positive number"),
        (dict(rope_scaling={"rope_type": "linear"}), "lacks the number 'factor'"),
        (dict(rope_scaling={"rope_type": "linear", "factor": 0}), "a factor of rope is 0.000000; it has to be a positive number"),
        (dict(rope_scaling=models.LLAMA3_ROPE | {"high_freq_factor": 1.0}), "the second greater than the first"),
        (dict(rope_scaling={"rope_type": "default", "mrope_section": [16]}), "the field 'mrope_section' ([16]) is not known"),
        (dict(rope_scaling={"rope_type": "linear", "type": "llama3", "factor": 2}), "rope's 'type' is 'llama3', its 'rope_type' 'linear'"),
        (dict(rope_scaling=2), "what it says about rope is no object"),
        (dict(rope_scaling={"type": "linear", "factor": 2}, rope_parameters={"rope_theta": 1e4}), "'rope_parameters' and 'rope_scaling' differ"),
        (dict(eos_token_id=[2, 320]), "'eos_token_id' is no token of the model"),
        (dict(quantization_config=3), "'quantization_config' is no object"),
        (dict(quantization_config=dict(quant_method="gptq", bits=4, group_size=64, dynamic={"x": 1})), "the field 'dynamic' ({\"x\":1}) is not known"),
        (dict(quantization_config=dict(quant_method="gptq", bits=4, group_size=64, checkpoint_format="marlin")), "the weights are in gptq's form 'marlin'"),
        (dict(quantization_config={}), "the weights are quantised by ''; greta-llm reads awq, gptq, fp8, fbgemm_fp8, compressed-tensors and mxfp4, and GGUF files"),
        (dict(quantization_config=dict(quant_method="awq", bits=8, group_size=64)), "the weights have 8 bits; greta-llm reads awq and gptq with 4"),
        (dict(quantization_config=dict(quant_method="awq", bits=4, group_size=64, version="gemv")), "the weights are in awq's form 'gemv'; greta-llm reads 'gemm'"),
        (dict(num_hidden_layers=None), "lacks the number 'num_hidden_layers'"),
        (dict(num_hidden_layers=3), "the weight 'blk.2.attn_norm' is missing"),
        (dict(num_hidden_layers=-1), "the number of layers is -1; it has to be 1 to 4096"),
        (dict(num_attention_heads=3), "3 heads cannot share the keys of 2"),
        (dict(num_attention_heads=8, num_key_value_heads=4), "the weight 'blk.0.attn_q' is 64x64; the model's sizes ask for 128x64"),
        (dict(hidden_size=60), "the width is 60; it has to be 8 to 1048576 and a multiple of 8"),
        (dict(rope_scaling={"rope_type": "proportional"}), "rope scaling 'proportional' is not known; greta-llm takes default, linear, dynamic, llama3, yarn and longrope"),
        (dict(rope_scaling={"rope_type": "dynamic", "factor": 0.5}), "the factor of rope's dynamic scaling has to be 1 to 1024"),
        (dict(rope_scaling={"rope_type": "dynamic", "factor": 2, "original_max_position_embeddings": 64}), "from which 'original_max_position_embeddings' differs"),
        (dict(rope_scaling={"rope_type": "yarn", "factor": -2}), "YaRN's factor, original_max_position_embeddings, beta_fast and beta_slow have to be positive"),
        (dict(rope_scaling={"rope_type": "longrope", "short_factor": [1] * 8}), "lacks the list 'long_factor'"),
        (dict(rope_scaling={"rope_type": "longrope", "short_factor": [1] * 8, "long_factor": [2] * 7}), "have to be lists of 8 numbers"),
        (dict(rope_scaling={"rope_type": "longrope", "short_factor": [1] * 8, "long_factor": [2] * 7 + ["x"]}), "'long_factor' is no list of numbers"),
        (dict(rope_scaling={"rope_type": "longrope", "short_factor": [1] * 8, "long_factor": [2] * 8, "original_max_position_embeddings": 1}), "'original_max_position_embeddings' is no number of tokens"),
        (dict(model_type="qwen3", sliding_window=7, use_sliding_window=True, max_window_layers=-1), "'max_window_layers' is no number of layers"),
        (dict(model_type="smollm3", no_rope_layer_interval=0), "'no_rope_layer_interval' is no number of layers"),
        (dict(model_type="gemma3_text", hidden_act="gelu_pytorch_tanh", sliding_window=7, sliding_window_pattern=0), "'sliding_window_pattern' is no number of layers"),
        (dict(hidden_act=None), "lacks the text 'hidden_act'"),
        (dict(rope_scaling={"rope_type": "longrope", "short_factor": [0] * 8, "long_factor": [2] * 8, "original_max_position_embeddings": 32}), "a factor of rope is 0.000000"),
    ],
)
def test_config(tmp_path, config, says):
    refused_model(says, changed(tmp_path, **config))


@pytest.mark.parametrize(
    "part, change, says",
    [
        ("qzeros", lambda x: x[1:], "has no 'qzeros' of I32 that fits its shape"),
        ("scales", lambda x: x[1:], "has no 'scales' of F16 that fits its shape"),
        ("qweight", lambda x: x.reshape(-1), "is no matrix"),
        ("qweight", lambda x: x[:3], "has 24 rows in groups of 32 and 32 columns; they have to be whole groups, and eights"),
        ("g_idx", lambda x: x + 7, "has a 'g_idx' of 7; there are 2 groups"),
    ],
)
def test_parts_of_quantised_weights(tmp_path, monkeypatch, part, change, says):
    sound = models.quantised

    def changed_parts(*arguments):
        parts, meant = sound(*arguments)
        return parts | {part: change(parts[part])}, meant

    monkeypatch.setattr(models, "quantised", changed_parts)
    models.write_quantised(tmp_path, A, WEIGHTS, "gptq", 32)
    refused_model(says, tmp_path)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "is empty or no file that can be mapped"),
        ("{", "is no JSON"),
        ("[]", "is no JSON object"),
        ("nonsense", "is no JSON"),
        ("{}", "no 'model_type' says what the model is; greta-llm runs llama, "),
        ('{"model_type": 3}', "'model_type' is no text"),
        ('{"x": ' + DEEP + "}", "the JSON is nested more than 64 deep"),
        ('{"model_type": "gemma3", "text_config": 3}', "'text_config' is no object"),
        (json.dumps(models.config(A))[:-1] + ', "rms_norm_eps": 0.5}', "an object of the JSON has a name twice"),
        ('{"model_type": "llama", "rope_scaling": {"factor": 1, "fact\\u006fr": 2}}', "an object of the JSON has a name twice"),
    ],
    ids=["empty", "cut", "list", "words", "nothing", "number", "deep", "vision", "twice", "spelt twice"],
)
def test_config_json(tmp_path, text, says):
    folder = models.write_safetensors(tmp_path, A, WEIGHTS)
    (folder / "config.json").write_text(text)
    refused_model(says, folder)


def test_pipes(tmp_path):
    """Nobody writes to them, so opening one would wait for ever."""
    os.mkfifo(tmp_path / "m.gguf")
    refused_model("is empty or no file that can be mapped", tmp_path / "m.gguf")
    for name in ("config.json", "model.safetensors"):
        folder = models.write_safetensors(tmp_path / name, A, WEIGHTS)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        refused_model("is empty or no file that can be mapped", folder)


def test_windows_that_are_understood(tmp_path):
    """Qwen's fields say which layers have one."""

    def windows(**config):
        folder = changed(tmp_path, model_type="qwen3", **config)
        (folder / "model.safetensors").write_bytes(models.safetensors_bytes({models.hugging_face_name(n): w for n, w in QWEN3_WEIGHTS.items()}, "f32"))
        ran = llm("compile", folder, "--mlir")
        assert ran.returncode == 0, ran.stderr
        return set(re.findall(r"window = (\d+)", ran.stdout))

    assert windows(sliding_window=7, use_sliding_window=False, max_window_layers=0) == set()
    assert windows(sliding_window=7, use_sliding_window=True, max_window_layers=2) == set()
    assert windows(sliding_window=7, use_sliding_window=True, max_window_layers=0) == {"7"}
    assert windows(sliding_window=7, use_sliding_window=True, max_window_layers=1) == {"7"}
    assert windows(sliding_window=7, use_sliding_window=True, max_window_layers=0, layer_types=["full_attention"] * 2) == set()


def header_of(tensors):
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "data, says",
    [
        (b"", "is empty or no file that can be mapped"),
        (b"\1\0\0", "the safetensors header is cut off"),
        (struct.pack("<Q", 1 << 60) + b"{}", "the safetensors header is cut off"),
        (struct.pack("<Q", 2) + b"xx", "the safetensors header: is no JSON"),
        (header_of([]), "the safetensors header is no JSON object"),
        (header_of({"model.norm.weight": {"dtype": "F16", "shape": [1] * 5, "data_offsets": [0, 2]}}) + bytes(2), "does not lie within the file"),
        (header_of({"model.norm.weight": {"dtype": "F16", "shape": [1e300], "data_offsets": [0, 2]}}) + bytes(2), "does not lie within the file"),
        (header_of({"model.vision.weight": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}}) + bytes(2), "the tensor 'model.vision.weight' is not one that greta-llm knows"),
        (
            header_of({f"model.layers.{i}.input_layernorm.weight": {"dtype": "F16", "shape": [2], "data_offsets": [2 * i, 2 * i + 4]} for i in range(2)}) + bytes(8),
            "tensors overlap: one begins at byte 2, where another goes to 4",
        ),
        pytest.param(struct.pack("<Q", 200_006) + f'{{"x":{DEEP}}}'.encode(), "the JSON is nested more than 64 deep", id="deep"),
        (struct.pack("<Q", 46) + b'{"x": {"dtype": "F32"}, "x": {"dtype": "F16"}}', "the safetensors header: an object of the JSON has a name twice"),
        (header_of({"lm_head.weight": {"dtype": "F32"}}), "the safetensors header describes 'lm_head.weight' in a way that cannot be read"),
        (header_of({"lm_head.weight": {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]}}), "is of I64; greta-llm reads F32, F16, BF16 and F8_E4M3"),
        (header_of({"lm_head.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}), "does not lie within the file as its shape says"),
        (header_of({"lm_head.weight": {"dtype": "F32", "shape": [1 << 62, 1 << 62], "data_offsets": [0, 0]}}), "does not lie within the file"),
    ],
)
def test_safetensors(tmp_path, data, says):
    folder = models.write_safetensors(tmp_path, A, WEIGHTS)
    (folder / "model.safetensors").write_bytes(data)
    refused_model(says, folder)


def test_long_safetensors_header(tmp_path):
    folder = models.write_safetensors(tmp_path, A, WEIGHTS)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", 200_000_000))
        file.truncate(200_000_008)  # a hole: nothing is written
    refused_model("the safetensors header has 200000000 bytes; 100 MB are possible", folder)


def test_weights_that_nobody_uses(tmp_path):
    bias = {"model.layers.0.self_attn.o_proj.bias": np.zeros(A.width, np.float32)}

    def with_bias(value):
        named = {models.hugging_face_name(n): w for n, w in WEIGHTS.items()} | {name: w + np.float32(value) for name, w in bias.items()}
        (tmp_path / "model.safetensors").write_bytes(models.safetensors_bytes(named, "f16"))

    models.write_safetensors(tmp_path, A, WEIGHTS)
    with_bias(0)  # as quantisers write it
    assert llm("compile", tmp_path, "--mlir").returncode == 0
    with_bias(1)
    refused_model("the weight 'blk.0.attn_output_bias' is not one that greta-llm uses", tmp_path)


def test_a_tensor_in_two_parts(tmp_path):
    folder = models.write_safetensors(tmp_path, A, WEIGHTS)
    data = (folder / "model.safetensors").read_bytes()
    for part in ("a", "b"):
        (folder / f"{part}.safetensors").write_bytes(data)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    refused_model("is in another part, too", folder)


def test_untied_without_an_output(tmp_path):
    weights = {name: w for name, w in WEIGHTS.items() if name != "output.weight"}
    models.write_safetensors(tmp_path, A, weights)
    refused_model("the weight 'lm_head' is missing, and 'tie_word_embeddings' is false", tmp_path)


def test_latents_of_another_size(tmp_path):
    a = OTHERS["deepseek-v3"]
    models.write_safetensors(tmp_path, a, models.random_weights(a))
    (tmp_path / "config.json").write_text(json.dumps(models.config(a) | {"kv_lora_rank": 24}))
    refused_model("the weight 'blk.0.attn_kv_a_mqa' is 40x64; the model's sizes ask for 32x64, not quantised by awq or gptq", tmp_path)


def test_ggufs_of_latents(tmp_path, monkeypatch):
    """Some have what makes keys and values twice; another function of experts' weights is refused."""
    a = OTHERS["deepseek-v3"]
    weights, path = models.random_weights(a), tmp_path / "m.gguf"
    metadata = models.gguf_metadata(a)
    models.write_gguf(path, a, weights, "f16", metadata | {"deepseek2.expert_gating_func": 3})
    refused_model("'deepseek2.expert_gating_func' is 3; greta-llm takes 1 and 2", path)
    both, sound = weights["blk.0.attn_kv_b.weight"], models.joined
    monkeypatch.setattr(models, "joined", lambda *arguments, **named: sound(*arguments, **named) | {"blk.0.attn_kv_b.weight": both})
    models.write_gguf(path, a, weights, lambda name: "q8_0" if "attn_kv_b" in name else "f16")
    ran = llm("compile", path, "--mlir")
    assert ran.returncode == 0, ran.stderr


def test_parts_elsewhere(tmp_path):
    folder = models.write_safetensors(tmp_path, A, WEIGHTS)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": "../other"}}))
    refused_model("'lm_head.weight' is in no file of the folder", folder)
    index.write_text("{}")
    refused_model("has no weight_map", folder)


def test_large_vocabulary(tmp_path, monkeypatch):
    for module in (architectures, models):
        monkeypatch.setattr(module, "VOCABULARY", 262145)
    small = dataclasses.replace(A, width=8, hidden=8, heads=1, key_heads=1, head_size=8, layers=1)
    models.write_safetensors(tmp_path, small, models.random_weights(small), "f16")
    refused_model("the vocabulary has 262145 tokens; the device chooses from up to 262144", tmp_path)


def test_missing(tmp_path):
    refused_model("cannot open: No such file or directory", tmp_path / "none.gguf")
    refused_model("is a folder without config.json; name a .gguf file, or a folder with safetensors and config.json", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(bytes(16))
    refused_model("is no GGUF file; of safetensors name the folder, with their config.json", tmp_path / "model.safetensors")
    refused("name one model: a .gguf file, a folder with safetensors, or --synthetic=NAME", "compile", "--mlir")
    refused("no such model; there are tiny", "compile", "--synthetic=huge", "--mlir")
    for format in ("q3", "iq1_s", "nvfp4", "f8_e4m3", "int4", "q9_k_m"):  # also those of files that are expanded
        refused(f"the format '{format}' is not one of f32, f16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs, bf16, mxfp4, q4_k_m, q5_k_m", "compile", f"--synthetic=tiny:{format}", "--mlir")
    refused("the format 'q4_k' has blocks of 256 weights, and the model rows of 64", "compile", "--synthetic=tiny:q4_k", "--mlir")
    refused("say with --targets", "compile", "--synthetic=tiny")
    refused("a language model has no form for the host; compile for vulkan", "compile", "--synthetic=tiny", "--targets=vulkan,host", "-o", "none.greta")


def test_gguf_that_is_cut_off(tmp_path):
    """Wherever it ends."""
    whole, path = tmp_path / "whole.gguf", tmp_path / "m.gguf"
    models.write_gguf(whole, A, WEIGHTS, "q8_0")
    data = whole.read_bytes()
    for size in (1, 4, 7, 20, 24, 31, 60, 200, 500, 900, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        begins = ("is no GGUF file", "the GGUF file is cut off: byte ", "the GGUF file is cut off: the tensor '")
        refused_model(begins[(size > 3) + (size > 900)], path)


def test_several_weights_in_one_that_are_quantised(tmp_path):
    a = OTHERS["phi3"]
    config = models.config(a) | {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    named = {}
    for name, w in models.joined(a, models.random_weights(a), to_hugging_face=True).items():
        parts = models.quantised(w, "awq", 32)[0] if "_proj" in name else {"weight": w}
        named |= {name.removesuffix("weight") + part: value for part, value in parts.items()}
    (tmp_path / "model.safetensors").write_bytes(models.safetensors_bytes(named, "f16"))
    refused_model("is several in one, which greta-llm does not read quantised by awq or gptq", tmp_path)


def write_shortened(folder, architecture, part):
    """A model of which the first weight with `part` in its name lacks 8 rows; returns how many it should have."""
    a = OTHERS[architecture]
    models.write_safetensors(folder, a, models.random_weights(a))
    named = models.joined(a, models.random_weights(a), to_hugging_face=True)
    one = next(name for name in named if part in name)
    (folder / "model.safetensors").write_bytes(models.safetensors_bytes(named | {one: named[one][:-8]}, "f32"))
    return named[one].shape[0]


def test_several_weights_in_one_with_other_rows(tmp_path):
    rows = write_shortened(tmp_path, "phi3", "qkv_proj")
    refused_model(f"has {rows - 8} rows; the model's sizes ask for {rows}", tmp_path)


def test_experts_of_several_shapes(tmp_path):
    write_shortened(tmp_path, "mixtral", ".experts.1.")
    refused_model("has another shape or format than those of other experts", tmp_path)


@pytest.mark.parametrize(
    "metadata, says",
    [
        ({"general.architecture": "jina-bert-v2"}, "the architecture 'jina-bert-v2' is not known"),
        ({"general.architecture": 3}, "'general.architecture' of the GGUF metadata is not a text"),
        ({"llama.block_count": "two"}, "'llama.block_count' of the GGUF metadata is not a number"),
        ({"general.alignment": 0}, "the GGUF alignment is 0"),
        ({"general.alignment": 24}, "the GGUF alignment is 24"),
        ({"split.count": 2}, "the GGUF metadata lacks the number 'split.no'"),
        ({"split.count": 1001, "split.no": 0}, "is of a model in 1001 files; greta-llm reads up to 1000"),
        ({"llama.rope.scaling.type": "longrope"}, "rope scaling 'longrope' is not known; greta-llm takes none, linear, yarn"),
        ({"llama.rope.scaling.type": "linear"}, "lacks the number 'llama.rope.scaling.factor'"),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0}, "a factor of rope is 0.000000"),
        ({"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": -1.0}, "YaRN's factor, original context and betas have to be positive, and rope's base above 1"),
        ({"llama.rope.scaling.factor": 0.0}, "a factor of rope is 0.000000"),
        ({"llama.rope.freq_base": float("nan")}, "rope's base is nan; it has to be a positive number"),
        ({"llama.attention.layer_norm_rms_epsilon": float("nan")}, "the norms' epsilon is nan"),
        ({"llama.attention.key_length": 1 << 28}, "the size of a head is 268435456"),
        ({"llama.attention.value_length": 8}, "'llama.attention.value_length' is 8; a head's keys have 16"),
        ({"llama.rope.dimension_count": 8}, "'llama.rope.dimension_count' is 8; a head's keys have 16"),
        ({"llama.expert_count": 8}, "lacks the number 'llama.expert_used_count'"),
        ({"general.architecture": "qwen2", "qwen2.expert_count": 8}, "'qwen2.expert_count' is 8; greta-llm runs 'qwen2' without experts"),
        ({"llama.logit_scale": 2.0}, "the field 'logit_scale' (2.0) is not known to greta-llm"),
        ({"llama.attention.sliding_window": [1, 2]}, "'llama.attention.sliding_window' of the GGUF metadata is not a number"),
    ],
)
def test_gguf_metadata(tmp_path, metadata, says):
    models.write_gguf(tmp_path / "m.gguf", A, WEIGHTS, "f32", models.gguf_metadata(A) | metadata)
    refused_model(says, tmp_path / "m.gguf")


WRONG_TYPES = [
    ({"llama.rope.scaling.type": 2}, "a text"),
    ({"llama.block_count": 2.0}, "a whole number"),
    ({"llama.block_count": True}, "a number"),
    ({"llama.rope.freq_base": "10000"}, "a number"),
    ({"llama.rope.dimension_count": 16.0}, "a whole number"),
    ({"llama.attention.head_count_kv": [2, 2]}, "a number"),
    ({"general.alignment": "32"}, "a number"),
    ({"split.count": "2"}, "a number"),
    ({"tokenizer.chat_template": 1}, "a text"),
    ({"tokenizer.ggml.model": 1}, "a text"),
    ({"tokenizer.ggml.pre": True}, "a text"),
    ({"tokenizer.ggml.tokens": [1, 2]}, "an array of texts"),
    ({"tokenizer.ggml.tokens": "a"}, "an array of texts"),
    ({"tokenizer.ggml.scores": ["1"]}, "an array of numbers"),
    ({"tokenizer.ggml.token_type": [1.0]}, "an array of whole numbers"),
    ({"tokenizer.ggml.merges": [1]}, "an array of texts"),
    ({"tokenizer.ggml.precompiled_charsmap": "AAAA"}, "an array of whole numbers"),
    *(({f"tokenizer.ggml.{token}_token_id": "1"}, "a whole number") for token in ("bos", "eos", "eot", "cls", "seperator", "unknown")),
    *(({f"tokenizer.ggml.{flag}": 1}, "true or false") for flag in ("add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces", "normalizer.lowercase")),
]


@pytest.mark.parametrize("metadata, kind", WRONG_TYPES, ids=[f"{key}-{value}" for metadata, _ in WRONG_TYPES for key, value in metadata.items()])
def test_gguf_types(tmp_path, metadata, kind):
    """A value of another type is an error and not a value that is not there."""
    models.write_gguf(tmp_path / "m.gguf", A, WEIGHTS, "f32", models.gguf_metadata(A) | metadata)
    refused_model(f"m.gguf: '{next(iter(metadata))}' of the GGUF metadata is not {kind}", tmp_path / "m.gguf")


def test_gguf_flag_of_experts(tmp_path):
    a = models.as_in_gguf(models.OTHERS["deepseek-v2-lite"])
    models.write_gguf(tmp_path / "m.gguf", a, models.random_weights(a), "f32", models.gguf_metadata(a) | {f"{a.gguf}.expert_weights_norm": 1})
    refused_model(f"'{a.gguf}.expert_weights_norm' of the GGUF metadata is not true or false", tmp_path / "m.gguf")


def test_gguf_bytes(tmp_path):
    path = tmp_path / "m.gguf"
    meant = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + models.gguf_string("key")
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 9, 0, 0))
    refused_model("GGUF version 9 is not known; 2 and 3 are", path)
    path.write_bytes(meant + struct.pack("<I", 77) + bytes(64))
    refused_model("the GGUF metadata has a value of unknown type 77", path)
    path.write_bytes(meant + (struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ", 9, 1) * 60))
    refused_model("the GGUF metadata has an array of unknown type 9", path)
    path.write_bytes(meant + struct.pack("<IIQ", 9, 4, 1 << 61) + bytes(64))
    refused_model("says that 2305843009213693952 things follow", path)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60) + bytes(64))
    refused_model("says that 1152921504606846976 things follow", path)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 17) + bytes(1 << 21))
    refused_model("the GGUF metadata has 131072 values; greta-llm reads up to 65536", path)
    key = models.gguf_string("key") + struct.pack("<IB", 0, 7)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + key + key)
    refused_model("the GGUF metadata has 'key' twice", path)

    def tensor(rank, extents, kind):
        config = models.gguf_metadata(A)
        header = b"".join(models.gguf_string(k) + struct.pack("<I", (v := models.gguf_value(value))[0]) + v[1] for k, value in config.items())
        about = models.gguf_string("t") + struct.pack("<I", rank) + struct.pack(f"<{len(extents)}Q", *extents) + struct.pack("<IQ", kind, 0)
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, len(config)) + header + about + bytes(256))

    tensor(7, [1] * 7, 0)
    refused_model("the tensor 't' has 7 dimensions; 1 to 4 are possible", path)
    tensor(2, [1 << 40, 1 << 40], 0)
    refused_model("the tensor 't' has an extent of", path)
    tensor(1, [32], (1 << 32) - 1)
    refused_model("the tensor 't' has the format 4294967295, which greta-llm does not read", path)
    tensor(1, [32], 9)
    refused_model("the tensor 't' has the format 9, which greta-llm does not read; it reads f32, f16, q4_0", path)


def test_a_files_sizes_take_no_memory(tmp_path):
    """With 64 MiB of memory: what a file says of its sizes is refused before anything is made of it, and values that nobody asks for are passed over."""
    path = tmp_path / "m.gguf"
    limited = "prlimit", f"--data={64 << 20}", LLM, "compile", path, "--mlir"

    def says(of_key, value, words):
        models.write_gguf(path, A, WEIGHTS, "f32", models.gguf_metadata(A) | {of_key: value})
        ran = subprocess.run([str(word) for word in limited], capture_output=True, text=True)
        assert words in ran.stderr and ran.returncode == bool(words), ran.stderr

    says("llama.attention.key_length", 1 << 28, "the size of a head is 268435456")
    says("tokenizer.ggml.scores", bytes(1 << 24), "the GGUF metadata has an array of 16777216 values; greta-llm reads up to 4194304")
    says("general.picture", bytes(1 << 24), "")


def test_parts_of_mxfp4(tmp_path):
    models.write_safetensors(tmp_path / "llama", A, WEIGHTS)
    named = models.joined(A, WEIGHTS, to_hugging_face=True) | {"model.layers.0.mlp.up_proj_blocks": np.zeros((96, 2, 16), np.uint8), "model.layers.0.mlp.up_proj_scales": np.zeros((96, 2), np.uint8)}
    del named["model.layers.0.mlp.up_proj.weight"]
    (tmp_path / "llama" / "config.json").write_text(json.dumps(models.config(A) | {"quantization_config": {"quant_method": "mxfp4"}}))
    (tmp_path / "llama" / "model.safetensors").write_bytes(models.safetensors_bytes(named, "f32"))
    refused_model("the weight 'blk.0.ffn_up' is in mxfp4, which greta-llm does not read for this model type", tmp_path / "llama")
    a = OTHERS["gpt-oss"]
    folder = tmp_path / "m"
    models.write_mxfp4(folder, a, models.random_weights(a), "f16")
    raw = (folder / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    scales = header["model.layers.0.mlp.experts.down_proj_scales"]
    for dtype, shape in (("F16", scales["shape"]), ("U8", [*scales["shape"][:-1], scales["shape"][-1] + 1])):
        header["model.layers.0.mlp.experts.down_proj_scales"] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + int(np.prod(shape)) * (2 if dtype == "F16" else 1)]}
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data + bytes(4096))
        refused_model("the mxfp4 weight 'blk.0.ffn_down_exps' has no scales that fit its blocks", folder)


def test_gguf_rows_that_are_no_blocks(tmp_path):
    # The MLP's rows are 96 numbers long: no whole block of 256.
    weights = dict(WEIGHTS)
    models.write_gguf(tmp_path / "m.gguf", A, weights, "q4_k")
    refused_model("has rows of 64 numbers, which are no whole q4_k blocks of 256", tmp_path / "m.gguf")


def test_gguf_twice_and_rope(tmp_path):
    path = tmp_path / "m.gguf"
    models.write_gguf(path, A, WEIGHTS, "f32")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"blk.1.attn_q.weight", b"blk.0.attn_q.weight"))
    refused_model("the tensor 'blk.0.attn_q' is there twice", path)
    place = data.index(b"blk.0.attn_q.weight") + len("blk.0.attn_q.weight") + 4 + 16 + 4
    (offset,) = struct.unpack_from("<Q", data, place)
    path.write_bytes(data[:place] + struct.pack("<Q", offset + 4) + data[place + 8 :])
    refused_model(f"the tensor 'blk.0.attn_q' begins at {offset + 4}, which is no multiple of 32", path)
    path.write_bytes(data[:place] + struct.pack("<Q", offset + 32) + data[place + 8 :])
    refused_model("the tensors 'blk.0.attn_q' and 'blk.0.attn_k' overlap", path)
    models.write_gguf(path, A, WEIGHTS | {"blk.0.ffn_gate_inp.weight": np.ones((2, 64), np.float32)}, "f32")
    refused_model("the weight 'blk.0.ffn_gate_inp' is not one that greta-llm uses", path)
    scaled = dict(WEIGHTS, **{"rope_freqs.weight": np.ones((1, 8), np.float32)})
    models.write_gguf(path, A, scaled, "f16")
    refused_model("rope_freqs is no list of 8 numbers of f32", path)


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(normalizer={"type": "Lowercase"}), "the tokenizer's normalizer 'Lowercase' is not one that greta-llm knows"),
        (dict(pre_tokenizer={"type": "Whitespace"}), "the tokenizer's pre-tokenizer 'Whitespace'"),
        (dict(post_processor={"type": "Bracket"}), "the tokenizer's post-processor 'Bracket'"),
        (dict(model={"type": "Unigram"}), "the tokenizer's model 'Unigram'"),
        (dict(model={"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"}), "the tokenizer has a end_of_word_suffix"),
        (dict(model={"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}), "the tokenizer joins 'a' and 'b', which are no tokens of it"),
        (dict(model={"type": "BPE", "vocab": {"a": 0}, "merges": ["ab"]}), "the tokenizer's merge \"ab\" is no pair"),
        (dict(model={"type": "BPE", "vocab": {"a": -5}}), "the tokenizer has the id -5, the model"),
        (
            dict(pre_tokenizer={"type": "Split", "pattern": {"Regex": r"\C"}, "behavior": "Isolated"}),
            "the tokenizer's pattern cannot be read at character 2",
        ),
        (
            dict(pre_tokenizer={"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated"}),
            "the tokenizer's pattern cannot be read at character 1",
        ),
    ],
)
def test_tokenizer(tmp_path, change, says):
    tokenizer = texts.naive_tokenizer(3)
    model = model_with(tmp_path, tokenizer)
    (model / "tokenizer.json").write_text(json.dumps(tokenizer | change))
    refused(says, "tokenize", model, "text")


@pytest.mark.parametrize(
    "metadata, says",
    [
        ({}, "has no tokenizer (tokenizer.json)"),
        ({"tokenizer.ggml.model": "rwkv"}, "the tokenizer 'rwkv' is not known; greta-llm takes gpt2, llama, gemma4, bert and t5"),
        ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a"] * 999}, "the tokenizer has 999 tokens, the model 320"),
        ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.pre": "x"}, "the tokenizer's pattern 'x' is not known; greta-llm takes llama-bpe, llama3, "),
        (
            {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.merges": ["aa"]},
            "the tokenizer's merge 'aa' is no pair",
        ),
        ({"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a"]}, "the tokenizer has no score for each token"),
        (
            {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a"], "tokenizer.ggml.scores": [float("nan")]},
            "the tokenizer's score of token 0 is no finite number",
        ),
        ({"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a" * 1025]}, "the tokenizer's token 0 has 1025 bytes; up to 1024 are possible"),
    ],
)
def test_gguf_tokenizer(tmp_path, metadata, says):
    models.write_gguf(tmp_path / "m.gguf", A, WEIGHTS, "f32", models.gguf_metadata(A) | metadata)
    refused(says, "tokenize", tmp_path / "m.gguf", "text")
