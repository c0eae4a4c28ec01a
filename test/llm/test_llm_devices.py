"""greta-llm on two devices that compute every layer together: logits against the definition and one device's, of experts and latents too, and what cannot
be divided.
"""

import dataclasses
import json
import zipfile

import numpy as np
import pytest

import models
from harness import WHOLE
from models import ARCHITECTURES
from test_llm import TARGETS, TOKENS, assert_close, llm

DEVICE = "sim:gfx942"

# Heads and MLPs whose halves are whole blocks of 32 weights; biases, and keys of a head for two.
A = dataclasses.replace(ARCHITECTURES["qwen2"], width=64, hidden=128, heads=4, key_heads=2, head_size=16, layers=2)


def write(path, format):
    weights = models.random_weights(models.as_in_gguf(A))
    return models.write_gguf(path, models.as_in_gguf(A), weights, format)


def logits(package, path, devices, tmp_path, batch, *words):
    out = tmp_path / "logits.npy"
    words = (f"--devices={devices}" if "," in devices else f"--device={devices}", *words)
    ran = llm("logits", package, path, *words, "--tokens=" + ",".join(map(str, TOKENS)), f"--batch={batch}", "-c", 64, "-o", out, "-q")
    assert ran.returncode == 0, ran.stderr
    return np.load(out).astype(np.float64)


@pytest.mark.parametrize("device, format", [("sim:gfx942", "f16"), ("vulkan", "q4_0")] + WHOLE * [("vulkan", "f16"), ("sim:gfx1100", "q4_0")])
def test_logits_of_two_devices(tmp_path, device, format):
    path = tmp_path / "m.gguf"
    want = models.logits(models.as_in_gguf(A), write(path, format), TOKENS)
    packages = {}
    for shards in (1, 2):
        packages[shards] = tmp_path / f"{shards}.greta"
        made = llm("compile", path, f"--targets={TARGETS[device]}", f"--shards={shards}", "--type=f16", "-o", packages[shards])
        assert made.returncode == 0, made.stderr
    element = "packed f16" if format != "f16" and device == "vulkan" else "f16"
    for batch in (0, 1):
        one = logits(packages[1], path, device, tmp_path, batch)
        two = logits(packages[2], path, f"{device},{device}", tmp_path, batch)
        assert_close(two, want, element)
        assert_close(two, one, element)
    assert np.array_equal(two, logits(packages[2], path, f"{device},{device}", tmp_path, 1))
    ran = llm("logits", packages[1], path, f"--devices={device},{device}", "--tokens=1", "-o", tmp_path / "x.npy")
    assert ran.returncode == 1 and "devices: none in the package, 2 in the model" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    # One that is not there, and one that is another: the first tells what is wrong, soon.
    for other, says in (("vulkan:99", "vulkan:99"), ("host", "host")):
        ran = llm("logits", packages[2], path, f"--devices={device},{other}", "--tokens=1", "-c", 64, "-o", tmp_path / "x.npy", "-q")
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


@pytest.mark.parametrize("device, sizes", [("vulkan", (0, 4)), ("sim:gfx942", (0, 4, 4096))])
def test_logits_with_sums_in_parts(tmp_path, monkeypatch, device, sizes):
    """Parts of a layer's products, sums and norms change no bits; fewer tokens than a part have one. Streams and ranks have no races."""
    monkeypatch.setenv("GRETA_CHECK", "1")
    path = tmp_path / "m.gguf"
    want = models.logits(models.as_in_gguf(A), write(path, "f16"), TOKENS)
    got = {}
    for rows in sizes:
        package = tmp_path / f"{rows}.greta"
        made = llm("compile", path, f"--targets={TARGETS[device]}", "--shards=2", "--type=f16", f"--part-rows={rows}", "-o", package)
        assert made.returncode == 0, made.stderr
        manifest = json.loads(zipfile.ZipFile(package).read("manifest.json"))
        parts = [sum_["parts"] for f in manifest["functions"] for v in f["variants"] for sum_ in v.get("sums", []) if "parts" in sum_]
        assert bool(parts) == (rows > 0) and all(one["rows"] == rows for one in parts)
        assert any(one["before"] for one in parts) == any(one["behind"] for one in parts) == (rows > 0)
        got[rows] = logits(package, path, f"{device},{device}", tmp_path, 0)
        assert_close(got[rows], want, "f16")
    assert all(np.array_equal(got[0], got[rows]) for rows in sizes)


KNOWN = ARCHITECTURES | models.OTHERS
# Name: the architecture, how its file is written, what activations are held in. Halves of an expert's MLP are whole blocks of 32.
DIVIDED = {
    "deepseek": (KNOWN["deepseek-v3"], lambda path, a, weights: models.write_safetensors(path, a, weights) and weights, "f32"),
    "gpt-oss": (models.as_in_gguf(KNOWN["gpt-oss"]), lambda path, a, weights: models.write_gguf(path, a, weights, "f32"), "f32"),
    # Heads begin within blocks, and what makes keys is transposed.
    "deepseek-fp8": (
        dataclasses.replace(KNOWN["deepseek-v3"], expert_hidden=64, shared=64, fields=KNOWN["deepseek-v3"].fields | {"moe_intermediate_size": 64}),
        lambda path, a, weights: models.write_fp8(path, a, weights, "16x32"), "f16",
    ),
    "gpt-oss-mxfp4": (dataclasses.replace(KNOWN["gpt-oss"], hidden=128), lambda path, a, weights: models.write_mxfp4(path, a, weights, "f16"), "f16"),
    "qwen2-moe-q8_0": (models.as_in_gguf(dataclasses.replace(KNOWN["qwen2-moe"], shared=128)), lambda path, a, weights: models.write_gguf(path, a, weights, "q8_0"), "f16"),
}


@pytest.mark.parametrize("name, device", [("deepseek", "sim:gfx942"), ("gpt-oss", "sim:gfx942"), ("gpt-oss-mxfp4", "sim:gfx942"), ("deepseek-fp8", "sim:gfx942"), ("qwen2-moe-q8_0", "vulkan")] + WHOLE * [("deepseek", "vulkan")])
def test_logits_of_divided_experts_and_latents(tmp_path, name, device):
    """Columns of each expert, heads of latents, sinks, and biases of sums, which count once."""
    a, write, element = DIVIDED[name]
    path, package = tmp_path / "m", tmp_path / "2.greta"
    want = models.logits(a, write(path, a, models.random_weights(a)), TOKENS)
    made = llm("compile", path, f"--targets={TARGETS[device]}", "--shards=2", f"--type={element}", "-o", package)
    assert made.returncode == 0, made.stderr
    for batch in (0, 1):
        assert_close(logits(package, path, f"{device},{device}", tmp_path, batch), want, element)


def test_logits_of_devices_with_layers(tmp_path):
    """The bits of one device, whose package they have; devices of different kinds are as right. An output that is the embedding is on the first and the last."""
    a = dataclasses.replace(A, layers=3, tied=True)
    path, package = models.write_safetensors(tmp_path / "m", a, models.random_weights(a), "f16"), tmp_path / "m.greta"
    made = llm("compile", path, "--targets=gfx942,vulkan:portable", "-o", package)
    assert made.returncode == 0, made.stderr
    for batch in (0, 1):
        one = logits(package, path, DEVICE, tmp_path, batch)
        assert np.array_equal(one, logits(package, path, ",".join([DEVICE] * 3), tmp_path, batch, "--split=layers"))
        assert_close(logits(package, path, f"{DEVICE},vulkan", tmp_path, batch, "--split=layers:2,1", "--chunk=16"), one, "f16")
    for split, says in (
        ("rows", "--split is tensor, layers, or the number of layers of each device: layers:20,12, not rows"),
        ("layers:2,", "not layers:2,"),
        ("layers:3,0", "not layers:3,0"),
        ("tensor:2,1", "not tensor:2,1"),
        ("layers:1,1", "--split: has 2 layers for 2 devices; the model has 3, and --devices 2"),
        ("layers:3", "--split: has 3 layers for 1 devices; the model has 3, and --devices 2"),
    ):
        ran = llm("logits", package, path, f"--devices={DEVICE},{DEVICE}", f"--split={split}", "--tokens=1", "-o", tmp_path / "x.npy", "-q")
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    ran = llm("logits", package, path, f"--devices={','.join([DEVICE] * 4)}", "--split=layers", "--tokens=1", "-o", tmp_path / "x.npy", "-q")
    assert ran.returncode == 1 and "has 3 layers for 4 devices" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
    ran = llm("logits", package, path, f"--devices={DEVICE}", "--split=layers:2,1", "--tokens=1", "-o", tmp_path / "x.npy", "-q")
    assert ran.returncode == 1 and "--split: has 3 layers for 2 devices; the model has 3, and --devices 1" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


def test_generation_of_two_devices_repeats_itself(tmp_path):
    package = tmp_path / "tiny.greta"
    made = llm("compile", "--synthetic=tiny", "--targets=gfx942,vulkan:portable", "--shards=2", "-o", package)
    assert made.returncode == 0, made.stderr
    words = ("generate", package, "--synthetic=tiny", "--devices=sim:gfx942,sim:gfx942", "-p", "hi", "-n", 9, "--seed=3", "-c", 64, "-q")
    first, second = llm(*words), llm(*words)
    assert first.returncode == 0 and len(first.stdout) > 9 and first.stdout == second.stdout, first.stderr
    unequal = words[:3] + ("--devices=sim:gfx942,vulkan", *words[4:])
    for ran, says in (
        (llm(*unequal), "--devices: a model is divided among equal devices, not "),
        (llm("generate", *unequal[2:]), "--devices: sim:gfx942 and vulkan run different kernels"),
    ):
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


def test_what_cannot_be_divided(tmp_path):
    def refused(says, *words, path=None):
        ran = llm("compile", *([path] if path else []), *words, "--targets=vulkan:portable", "-o", tmp_path / "k.greta")
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr

    refused("it has 4 heads, 2 of keys, and an MLP of 192", "--synthetic=tiny", "--shards=4")
    for name, says in (
        ("cohere", "its MLP is beside attention"),
        ("olmo2", "it has norms behind attention and MLP"),
    ):
        a = models.as_in_gguf((ARCHITECTURES | models.OTHERS)[name])
        path = tmp_path / f"{name}.gguf"
        models.write_gguf(path, a, models.random_weights(a), "f32")
        refused(f"cannot be divided among 2 devices: {says}", "--shards=2", path=path)
    refused("a part of a row of 'blk.0.ffn_down' is 48 weights, a block of q4_0 is 32", "--shards=2", path=odd(tmp_path))
    ran = llm("generate", "--synthetic=tiny", "--devices=vulkan,vulkan,vulkan", "-p", "a")
    assert ran.returncode == 1 and "there may be 2, 4 or 8" in ran.stderr, ran.stderr
    ran = llm("generate", "--synthetic=tiny", "--devices=vulkan,vulkan", "--device=vulkan", "-p", "a")
    assert ran.returncode != 0 and "--device" in ran.stderr, ran.stderr


def odd(folder):
    a = models.as_in_gguf(dataclasses.replace(A, hidden=96))
    models.write_gguf(folder / "odd.gguf", a, models.random_weights(a), "q4_0")
    return folder / "odd.gguf"
