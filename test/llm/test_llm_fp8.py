"""Safetensors in fp8: which are read, what becomes of them, and what is wrong with others. Logits: test_llm.py, and of two devices test_llm_devices.py."""

import json

import ml_dtypes
import numpy as np
import pytest

import models
from models import ARCHITECTURES, OTHERS
from test_llm import TOKENS, assert_close, llm, logits_of
from test_llm_errors import refused, refused_model

pytestmark = pytest.mark.xdist_group("llm-fp8")  # one worker makes what these share
A = ARCHITECTURES["llama2"]
WEIGHTS = models.random_weights(A)
NAME = "model.layers.0.mlp.up_proj.weight"
COMPRESSED = models.compressed("channel")
BLOCKS = dict(quant_method="fp8", weight_block_size=[128, 128])


def group(**changes):
    return COMPRESSED | {"config_groups": {"group_0": COMPRESSED["config_groups"]["group_0"] | changes}}


def weights(**changes):
    return group(weights=models.compressed("channel", **changes)["config_groups"]["group_0"]["weights"])


@pytest.mark.parametrize(
    "about, says",
    [
        (BLOCKS | dict(fmt="e5m2"), "the field 'fmt' is \"e5m2\"; greta-llm runs models where it is \"e4m3\""),
        (BLOCKS | dict(bits=8), "the field 'bits' (8) is not known to greta-llm"),
        (BLOCKS | dict(kv_cache_scheme="static"), "the field 'kv_cache_scheme' is \"static\"; greta-llm runs models where it is null"),
        (BLOCKS | dict(weight_block_size=[128, 0]), "'weight_block_size' is no list of the rows and columns of a block"),
        (BLOCKS | dict(weight_block_size=128), "lacks the list 'weight_block_size'"),
        (COMPRESSED | dict(format="pack-quantized"), "the weights are in compressed-tensors' form 'pack-quantized'; greta-llm reads 'float-quantized'"),
        (COMPRESSED | dict(config_groups={}), "'config_groups' has 0 groups; greta-llm reads one, of fp8"),
        (COMPRESSED | dict(sparsity_config=dict(format="sparse-24-bitmask")), "the field 'format' is \"sparse-24-bitmask\"; greta-llm runs models where it is \"dense\""),
        (group(weights=None), "'quantization_config' lacks the object 'weights'"),
        (group(format="nvfp4-pack-quantized"), "the field 'format' is \"nvfp4-pack-quantized\""),
        (weights(num_bits=4), "the field 'num_bits' is 4; greta-llm runs models where it is 8"),
        (weights(strategy="group"), "weights share scales by 'group'; greta-llm reads tensor, channel and block"),
        (weights(observers=[]), "the field 'observers' ([]) is not known to greta-llm"),
    ],
)
def test_configs(tmp_path, about, says):
    (tmp_path / "config.json").write_text(json.dumps(models.config(A) | {"quantization_config": about}))
    (tmp_path / "model.safetensors").write_bytes(models.safetensors_bytes({}, "f16"))
    refused_model(says, tmp_path)


def changed(folder, monkeypatch, kind, change):
    """A model whose tensors `change` has changed."""
    whole = models.safetensors_bytes

    def changed_bytes(tensors, dtype):
        change(tensors)
        return whole(tensors, dtype)

    monkeypatch.setattr(models, "safetensors_bytes", changed_bytes)
    models.write_fp8(folder, A, WEIGHTS, kind)
    return folder


def put(suffix, value):
    return lambda tensors: tensors.update({NAME + suffix: value})


@pytest.mark.parametrize(
    "kind, change, says",
    [
        ("block", lambda tensors: tensors.pop(f"{NAME}_scale_inv"), "the fp8 weight 'blk.0.ffn_up' has no scale"),
        ("block", put("_scale_inv", np.ones((2, 1), np.float32)), "the fp8 weight 'blk.0.ffn_up' has scales of 2x1; its shape asks for 1x1"),
        ("block", put("_scale", np.ones(1, np.float32)), "the fp8 weight 'blk.0.ffn_up' has two scales"),
        ("channel", put("_scale", np.ones((8, 1), np.float32)), "the fp8 weight 'blk.0.ffn_up' has scales of 8x1; its shape asks for 96x1"),
        ("tensor", put("_scale", np.ones(1, np.int32)), "the fp8 weight 'blk.0.ffn_up' has scales of I32"),
        ("tensor", put("", np.ones(64, ml_dtypes.float8_e4m3fn)), "the fp8 weight 'blk.0.ffn_up' is no matrix"),
        ("tensor", put("", np.ones((96, 64), np.float32)), "the tensor 'blk.0.ffn_up.input_scale' is not a part of any weight that greta-llm knows"),
        ("tensor", put("_zero_point", np.ones(1, np.float32)), "the tensor 'blk.0.ffn_up.weight_zero_point' is not a part of any weight"),
    ],
)
def test_tensors(tmp_path, monkeypatch, kind, change, says):
    refused_model(says, changed(tmp_path, monkeypatch, kind, change))


def test_weights_that_the_config_does_not_name(tmp_path):
    models.write_fp8(tmp_path, A, WEIGHTS, "tensor")
    (tmp_path / "config.json").write_text(json.dumps(models.config(A)))
    refused_model("the fp8 weight 'blk.0.attn_k' is there, and 'quantization_config' does not say so", tmp_path)


def test_a_scale_without_dimensions_is_of_quantised_weights_alone(tmp_path):
    models.write_safetensors(tmp_path, A, WEIGHTS)
    named = models.joined(A, WEIGHTS, to_hugging_face=True) | {"model.norm.weight": np.ones((), np.float32)}
    (tmp_path / "model.safetensors").write_bytes(models.safetensors_bytes(named, "f32"))
    refused_model("the tensor 'model.norm.weight' does not lie within the file as its shape says", tmp_path)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fp8")
    models.write_fp8(folder / "m", A, WEIGHTS, "tensor")
    made = llm("compile", folder / "m", "--targets=gfx942", "-o", folder / "m.greta")
    assert made.returncode == 0 and "14 matrices in f8_e4m3, kept in 8 bits" in made.stdout, made.stderr
    return folder / "m.greta"


@pytest.mark.parametrize("kind, batch", [("tensor", 0), ("channel", 1)])
def test_one_package_for_all_kinds_of_scales(package, tmp_path, kind, batch):
    """Packages depend on the largest groups of columns alone."""
    want = models.logits(A, models.write_fp8(tmp_path / "m", A, WEIGHTS, kind), TOKENS)
    assert_close(logits_of(tmp_path / "m", package, "sim:gfx942", tmp_path, f"--batch={batch}"), want, "f16")


def test_fbgemm(package, tmp_path, monkeypatch):
    """Scales of rows, and what bounds those of activations."""

    def change(tensors):
        for name in [name for name in tensors if name.endswith("weight_scale")]:
            tensors[name] = tensors[name].astype(np.float32)
            tensors[name.removesuffix("weight_scale") + "input_scale_ub"] = np.full(1, 1200, np.float32)

    changed(tmp_path / "m", monkeypatch, "channel", change)
    about = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": ["lm_head"]}
    (tmp_path / "m" / "config.json").write_text(json.dumps(models.config(A) | {"quantization_config": about}))
    monkeypatch.undo()
    want = models.logits(A, models.write_fp8(tmp_path / "n", A, WEIGHTS, "channel"), TOKENS)
    assert_close(logits_of(tmp_path / "m", package, "sim:gfx942", tmp_path), want, "f16")


@pytest.mark.parametrize("name", ["qwen3-moe", "gpt-oss"])
def test_experts_in_one_tensor(tmp_path, name):
    """They are refused by name, even where experts in floats lie so."""
    a = OTHERS[name]
    models.write_fp8(tmp_path, a, models.random_weights(a), "channel")
    tensors = {"model.layers.0.mlp.experts." + part: np.ones((a.experts, 64, 64), ml_dtypes.float8_e4m3fn) for part in ("gate_up_proj", "down_proj")}
    tensors |= {part + "_scale_inv": np.ones((a.experts, 1, 1), np.float32) for part in tensors}
    (tmp_path / "model.safetensors").write_bytes(models.safetensors_bytes(tensors, "f16"))
    refused_model("the tensor 'model.layers.0.mlp.experts.down_proj", tmp_path)


def test_matrices_that_stay_in_floats(tmp_path):
    """Those that the lists of config.json name, or any others: tensors say it."""
    named = models.joined(A, WEIGHTS, to_hugging_face=True) | {NAME: np.ones((96, 64), ml_dtypes.float8_e4m3fn), f"{NAME}_scale": np.ones(1, np.float32)}
    (tmp_path / "config.json").write_text(json.dumps(models.config(A) | {"quantization_config": COMPRESSED | {"sparsity_config": {}}}))
    (tmp_path / "model.safetensors").write_bytes(models.safetensors_bytes(named, "f16"))
    made = llm("compile", tmp_path, "--mlir")
    assert made.returncode == 0 and made.stdout.count('format = "e4m3", group = 64') == 2, made.stderr


EMBEDDING = "model.embed_tokens.weight"  # which is expanded
NOT_FINITE = "has numbers or scales of fp8 that are not finite"


def e4m3(byte, *shape):
    return np.full(shape, byte, np.uint8).view(ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize(
    "name, parts, says",
    [
        (NAME, {"": e4m3(0xFF, 96, 64)}, f"'blk.0.ffn_up' {NOT_FINITE}"),
        (NAME, {"_scale": np.full(1, np.inf, np.float32)}, f"'blk.0.ffn_up' {NOT_FINITE}"),
        (NAME, {"_scale": np.full(1, 147, np.float32)}, "'blk.0.ffn_up' has numbers beyond 65504, which f16 does not have"),
        (EMBEDDING, {"": e4m3(0x7F, models.VOCABULARY, 64), "_scale": np.ones(1, np.float32)}, f"'token_embd' {NOT_FINITE}"),
    ],
)
def test_numbers(package, tmp_path, monkeypatch, name, parts, says):
    path = changed(tmp_path / "m", monkeypatch, "tensor", lambda tensors: tensors.update({name + suffix: part for suffix, part in parts.items()}))
    refused(f"the weight {says}", "logits", package, path, "--device=sim:gfx942", "--tokens=1", "-o", tmp_path / "x.npy", "-q")
