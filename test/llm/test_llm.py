"""greta-llm against the definition of its models in float64: every architecture and every format of weights, on lavapipe and on simulated chips, whole
prompts and token by token.
"""

import dataclasses
import json
import re
import subprocess
import zipfile

import numpy as np
import pytest

import architectures
import models
import texts
from conftest import BUILD
from harness import WHOLE
from models import ARCHITECTURES, OTHERS

LLM = BUILD / "bin" / "greta-llm"
DEVICES = ("vulkan", "sim:gfx942", "sim:gfx1100")
TARGETS = {"vulkan": "vulkan:portable", "sim:gfx942": "gfx942", "sim:gfx1100": "gfx1100"}
# More than a page of the cache, and than mistral's window.
TOKENS = [int(t) for t in np.random.default_rng(3).integers(0, models.VOCABULARY, 21)]
# Limits relative to a row's largest logit, and to all logits by the Euclidean norm. f32 computes in f32 throughout; in f16 and bf16 each of some ten values a layer is rounded, and errors
# of rows add up like a random walk. Right kernels: f32 1.7e-6 and 9e-7, f16 4.1e-3 and 1.9e-3, bf16 1.7e-2 and 1.1e-2. test_llm_limits.py shows what these reject.
# Vulkan's skinny GEMMs of packed weights add up in f16 (docs/internals/numerics.md): 7.2e-3 and 2.8e-3.
LIMITS = {"f32": (5e-6, 2e-6), "f16": (6e-3, 2.5e-3), "bf16": (2.5e-2, 1.5e-2), "packed f16": (9e-3, 3.6e-3)}
BLOCKS = "q4_0", "q4_1", "q4_k", "q5_0", "q5_1", "q5_k", "q6_k", "q8_0", "mxfp4"
# Formats of one file's matrices, one after another, and its device. GRETA_TEST_WHOLE=1: each format has a file of its own, too.
MIXED = {
    "sim:gfx942": ("q4_k", "q5_k", "q8_0", "mxfp4"),
    "sim:gfx1100": ("q5_0", "q6_k", "q3_k", "iq4_nl", "iq4_xs", "q2_k"),
    "vulkan": ("q4_1", "q5_1"),
}
PACKED = "llama2-fp8-48x32", "gpt-oss-mxfp4-f16", "mistral-gguf-q4_0", "glm4-gguf-q4_0", "qwen3-moe-gguf-q8_0", "wide-awq-64", "wide-gptq-32", *(f"wide-gguf-{format}" for format in BLOCKS)

# Name: (architecture, file's format, what activations are held in)
CASES = {f"{name}-safetensors-f32": (name, "safetensors-f32", "f32") for name in ("llama2", "llama3", "mistral", "qwen2", "qwen3")}
CASES |= {f"{name}-gguf-f32": (name, "gguf-f32", "f32") for name in ("llama3", "qwen3")}
ROWS = [name for name in OTHERS if name not in architectures.NOT_IN_GGUF]
CASES |= {f"{name}-safetensors-f32": (name, "safetensors-f32", "f32") for name in ROWS}
CASES |= {f"{name}-gguf-f32": (name, "gguf-f32", "f32") for name in ROWS}
CASES["gemma3-safetensors-bf16"] = ("gemma3", "safetensors-bf16", "bf16")
CASES["qwen3-moe-gguf-q8_0"] = ("qwen3-moe", "gguf-q8_0", "f16")
CASES["gpt-oss-mxfp4-f16"] = ("gpt-oss", "mxfp4-f16", "f16")
CASES["glm4-gguf-q4_0"] = ("glm4", "gguf-q4_0", "f16")
CASES |= {
    "llama2-safetensors-f16": ("llama2", "safetensors-f16", "f16"),
    "llama2-safetensors-bf16": ("llama2", "safetensors-bf16", "bf16"),
    "mistral-gguf-q4_0": ("mistral", "gguf-q4_0", "f16"),
    "qwen2-gguf-q8_0": ("qwen2", "gguf-q8_0", "f16"),
    "qwen2-gguf-q4_0": ("qwen2", "gguf-q4_0", "f16"),
}
CASES |= {f"wide-{format}": ("wide", format, "f16") for format in ("awq-64", "gptq-32", "gptq-ordered")}
CASES |= {f"wide-gguf-{format}": ("wide", f"gguf-{format}", "f16") for format in ("f16", "bf16", *BLOCKS)}
CASES["llama2-fp8-48x32"] = ("llama2", "fp8-48x32", "f16")
CASES |= {f"{name}-safetensors-f32": (name, "safetensors-f32", "f32") for name in architectures.NOT_IN_GGUF}


# Tokens that a step has room for, of which a sequence has one: the others stay empty.
SIZES = {"llama3-safetensors-f32": 3, "qwen3-moe-safetensors-f32": 3, "llama2-safetensors-bf16": 2}


def llm(*words, **options):
    return subprocess.run([str(w) for w in (LLM, *words)], capture_output=True, text=True, errors="replace", timeout=600, **options)


def architecture_of(name):
    architecture, file, _ = CASES[name]
    a = (ARCHITECTURES | OTHERS)[architecture]
    return models.as_in_gguf(a) if file.startswith(("gguf", "mxfp4")) else a


def make_model(folder, name):
    """(path, the weights that it stands for)"""
    file = CASES[name][1]
    a = architecture_of(name)
    weights = models.random_weights(a)
    kind, format = file.split("-")
    if kind in ("awq", "gptq"):
        is_ordered = format == "ordered"
        return folder / name, models.write_quantised(folder / name, a, weights, kind, 128 if is_ordered else int(format), is_ordered)
    if kind == "fp8":
        return folder / name, models.write_fp8(folder / name, a, weights, format)
    if kind == "mxfp4":
        return folder / name, models.write_mxfp4(folder / name, a, weights, format)
    if kind == "safetensors":
        models.write_safetensors(folder / name, a, weights, format, parts=2 if name == "llama3-safetensors-f32" else 1)
        return folder / name, models.rounded(weights, format)
    path = folder / f"{name}.gguf"
    return path, models.write_gguf(path, a, weights, format)


def test_a_model_in_several_files(tmp_path, made):
    """As gguf-split writes them: the metadata is in the first, tensors are in all."""
    whole, package, want = made("llama3-gguf-f32")
    architecture = ARCHITECTURES["llama3"]
    paths = models.split_gguf(tmp_path, architecture, models.random_weights(architecture), "f32", 3)
    assert (logits_of(paths[0], package, "sim:gfx942", tmp_path) == logits_of(whole, package, "sim:gfx942", tmp_path)).all()

    def refused(path, says):
        ran = llm("tokenize", path, "a")
        assert ran.returncode == 1 and says in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr

    refused(paths[1], "is one of a model's 3 files; name the first, ..-00001-of-00003.gguf")
    renamed = tmp_path / "m.gguf"
    renamed.write_bytes(paths[0].read_bytes())
    refused(renamed, "is one of a model's 3 files; name the first")
    third = paths[2].read_bytes()
    paths[2].write_bytes(paths[1].read_bytes())
    refused(paths[0], "is not file 3 of 3 by its own metadata")
    paths[2].write_bytes(models.split_gguf(tmp_path / "empty", architecture, {}, "f32", 3)[2].read_bytes())
    refused(paths[0], "tensors; its files have")
    paths[2].unlink()
    refused(paths[0], "00003-of-00003.gguf: cannot open: No such file or directory")
    paths[2].write_bytes(third[:100])
    refused(paths[0], "00003-of-00003.gguf: the GGUF file is cut off")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """(name of a case, device) -> (model, package, the definition's logits), each made once."""
    folder, known, packages = tmp_path_factory.mktemp("llm"), {}, set()

    def make(name, device="sim:gfx942"):
        if name not in known:
            path, weights = make_model(folder, name)
            known[name] = path, models.logits(architecture_of(name), weights, TOKENS)
        path, want = known[name]
        package = folder / f"{name}-{device}.greta"
        if package not in packages:
            compiled = llm("compile", path, f"--targets={TARGETS[device]}", f"--type={CASES[name][2]}", f"--batch={SIZES.get(name, 1)}", "-o", package)
            assert compiled.returncode == 0, compiled.stderr
            packages.add(package)
        return path, package, want

    return make


def logits_of(path, package, device, tmp_path, *options):
    out = tmp_path / "logits.npy"
    ran = llm("logits", package, path, f"--device={device}", "--tokens=" + ",".join(map(str, TOKENS)), "-o", out, "-q", *options)
    assert ran.returncode == 0, ran.stderr
    return np.load(out).astype(np.float64)


def problem(got, want, element):
    """Says how logits are wrong; nothing if they are right."""
    assert got.shape == want.shape
    worst, whole = (np.abs(got - want).max(axis=1) / np.abs(want).max(axis=1)).max(), np.linalg.norm(got - want) / np.linalg.norm(want)
    of_row, of_all = LIMITS[element]
    if not worst <= of_row:
        return f"off by {worst:.2e} of a row's largest logit, more than {of_row}"
    return "" if whole <= of_all else f"off by {whole:.2e} of all, more than {of_all}"


def assert_close(got, want, element):
    said = problem(got, want, element)
    assert not said, said


# Token by token, too: architectures, and formats with functions of their own. Lavapipe compiles for seconds, so there it is a part of them.
BY_TOKEN_ON_VULKAN = ("llama2-safetensors-f32", "qwen3-safetensors-f32", "mistral-gguf-q4_0", "wide-gguf-q4_1", "wide-gguf-q4_k", "wide-gguf-q6_k", "llama2-safetensors-bf16", "gemma3-safetensors-f32", "phi4-mini-gguf-f32", "cohere2-gguf-f32", "starcoder2-safetensors-f32", "mixtral-safetensors-f32")
# The same functions and weights in both kinds of files: compiled once, of which safetensors' prompt is computed whole and GGUF's token by token. An exception is too slow on lavapipe.
TWINS = {
    f"{name}-safetensors-f32": f"{name}-gguf-f32"
    for name in ("llama3", "qwen3", *ROWS)
    if name != "deepseek-v2-lite" and models.as_in_gguf((ARCHITECTURES | OTHERS)[name]) == (ARCHITECTURES | OTHERS)[name]
}

EXPANDED = "wide-gguf-f16", "wide-gguf-bf16", "wide-gptq-ordered"


# The layer of qwen2-gguf-q4_0 has more arguments than 128 bytes of push constants, all that Debian 12's lavapipe has. Dense layers, windows, experts
# and biases are on all three, latents on lavapipe and gfx942; f32 with a rope in a GEMM's epilogue takes gfx1100 10 to 20 s to compile, and shaders take lavapipe as long, so gfx942 has what differs from those by less.
OF_ONE_DEVICE = {
    "vulkan": (
        "llama2-safetensors-f32", "qwen2-gguf-q4_0", "llama2-fp8-48x32", "mistral-gguf-q4_0", "glm4-gguf-q4_0", "wide-awq-64", "wide-gguf-f16", "gemma3-safetensors-bf16",
        "qwen3-moe-safetensors-f32", "deepseek-v2-lite-safetensors-f32", "gpt-oss-safetensors-f32", "qwen2-window-safetensors-f32",
    ),
    "sim:gfx1100": (
        "qwen3-yarn-safetensors-f32", "gemma3-gguf-f32", "olmoe-safetensors-f32", "gpt-oss-mxfp4-f16", "llama2-safetensors-bf16",
    ),
}


def devices_of(name):
    """Each case runs on one device. GRETA_TEST_WHOLE=1: on all."""
    return DEVICES if WHOLE else [device for device in OF_ONE_DEVICE if name in OF_ONE_DEVICE[device]] or ["sim:gfx942"]


def functions_of(path, element):
    """A model's functions, whose numbers are those of f32."""
    ran = llm("compile", path, "--targets=gfx942", f"--type={element}", "--mlir")
    assert ran.returncode == 0, ran.stderr
    return re.sub(r"\d\.\d+e[+-]\d+", lambda number: f"{float(number[0]):.6g}", ran.stdout)


# Files of which others have a part.
SHARED = {*TWINS.values(), *(f"wide-gguf-{format}" for format in BLOCKS[1:])}


@pytest.mark.parametrize("name, device", [(name, device) for name in CASES if WHOLE or name not in SHARED for device in devices_of(name)])
def test_logits(made, tmp_path, name, device):
    path, package, want = made(name, device)
    if name in TWINS and not WHOLE:
        twin, _ = make_model(tmp_path, TWINS[name])
        assert functions_of(path, "f32") == functions_of(twin, "f32")
        assert_close(logits_of(path, package, device, tmp_path, "--batch=0"), want, "f32")
        assert_close(logits_of(twin, package, device, tmp_path, "--batch=1"), want, "f32")
        return
    element = CASES[name][2]
    assert_close(logits_of(path, package, device, tmp_path, "--batch=0"), want, element)
    if device == "vulkan" and name in PACKED:
        element = "packed f16"
    if name in BY_TOKEN_ON_VULKAN if device == "vulkan" else name not in EXPANDED:
        assert_close(logits_of(path, package, device, tmp_path, "--batch=1"), want, element)


IN_BF16 = {"wide-gguf-q6_k": "sim:gfx942", "mistral-gguf-q4_0": "vulkan", "gpt-oss-mxfp4-f16": "sim:gfx942", "llama2-fp8-48x32": "sim:gfx1100"}


@pytest.mark.parametrize("name", IN_BF16)
def test_packed_weights_in_bf16(tmp_path, name):
    """As near to the definition as the same weights from a file that is not packed, within a seventh: activations' roundings are most of the error, and prompts mostly have the same bits."""
    a, device = architecture_of(name), IN_BF16[name]
    packed, weights = make_model(tmp_path, name)
    whole, errors = tmp_path / "whole", []
    models.write_safetensors(whole, a, weights, "f32")
    want = models.logits(a, weights, TOKENS)
    for path in (whole, packed):
        package = tmp_path / f"{path.name}.greta"
        compiled = llm("compile", path, f"--targets={TARGETS[device]}", "--type=bf16", "-o", package)
        assert compiled.returncode == 0 and (", kept in " in compiled.stdout) == (path == packed), compiled.stdout + compiled.stderr
        errors.append([np.linalg.norm(logits_of(path, package, device, tmp_path, f"--batch={batch}") - want) for batch in (0, 1)])
    expanded, held = np.array(errors)
    assert (expanded < 0.02 * np.linalg.norm(want)).all() and (held < 8 / 7 * expanded).all(), errors


@pytest.mark.parametrize("device", DEVICES if WHOLE else DEVICES[1:2])
def test_a_mixed_file(tmp_path, device):
    """As Q4_K_M: the output and some matrices in Q6_K; here also a layer with Q4_0 in place of Q4_K. Layers whose matrices are taken alike share functions."""
    a = dataclasses.replace(ARCHITECTURES["wide"], layers=4)
    formats = {"output.weight": "q6_k", "blk.1.attn_v.weight": "q6_k", "blk.1.ffn_down.weight": "q6_k", "blk.3.ffn_down.weight": "q4_0"}
    path, package = tmp_path / "m.gguf", tmp_path / "m.greta"
    weights = models.write_gguf(path, a, models.random_weights(a), lambda name: formats.get(name, "q4_k"))
    compiled = llm("compile", path, f"--targets={TARGETS[device]}", "-o", package)
    assert compiled.returncode == 0, compiled.stderr
    with zipfile.ZipFile(package) as archive:
        functions = {f["name"] for f in json.loads(archive.read("manifest.json"))["functions"]}
    assert {name for name in functions if name.startswith("layer")} == {"layer0_1", "layer1_1", "layer2_1"}
    want = models.logits(a, weights, TOKENS)
    assert_close(logits_of(path, package, device, tmp_path, "--batch=0"), want, "f16")
    assert_close(logits_of(path, package, device, tmp_path, "--batch=1"), want, "packed f16" if device == "vulkan" else "f16")


HELD = {"q8_0": models.in_q8_0, "fp8": models.in_fp8}


@pytest.mark.parametrize("cache, device", [(cache, device) for cache in HELD for device in (DEVICES if WHOLE else {"q8_0": DEVICES[:2], "fp8": DEVICES[2:]}[cache])])
def test_kv_caches(tmp_path, cache, device):
    """Against keys and values that were quantised in float64. In f32 a number hardly ever lies so close to the middle of two that the device takes the other one; in f16 some do, which the
    limits of f32 would not forgive (6e-3 of all logits, and 1.5e-2 in fp8)."""
    a, path, package = ARCHITECTURES["qwen3"], tmp_path / "m", tmp_path / "m.greta"
    weights = models.random_weights(a)
    models.write_safetensors(path, a, weights)
    compiled = llm("compile", path, f"--targets={TARGETS[device]}", f"--kv-cache={cache}", "-o", package)
    assert compiled.returncode == 0, compiled.stderr
    want = models.logits(a, models.rounded(weights, "f32"), TOKENS, HELD[cache])
    for batch in (0, 1):
        got = logits_of(path, package, device, tmp_path, f"--batch={batch}")
        assert_close(got, want, "f32")
    assert problem(got, models.logits(a, weights, TOKENS), "f16")  # in full it would be something else


def test_largest_numbers(tmp_path):
    """65504 in q8_0 is 65532 by its scale, which f16 has not; an embedding of it is 65504 all the same."""
    a, path, package = ARCHITECTURES["wide"], tmp_path / "m.gguf", tmp_path / "m.greta"
    weights = models.random_weights(a)
    name = "token_embd.weight"
    weights[name][TOKENS[2], 5], weights[name][TOKENS[4], 40] = 65504, -65504
    held = models.write_gguf(path, a, weights, lambda tensor: "q8_0" if "token_embd" in tensor else "f16")
    assert np.abs(held[name]).max() == 65532
    assert llm("compile", path, "--targets=gfx942", "-o", package).returncode == 0
    held[name] = held[name].clip(-65504, 65504)
    assert_close(logits_of(path, package, "sim:gfx942", tmp_path), models.logits(a, models.rounded(held, "f16"), TOKENS), "f16")


EXPANDED_FORMATS = "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "tq1_0", "tq2_0", "nvfp4", "q1_0", "q2_0"


def mixed_formats(a, formats):
    """Matrices of a model in these formats, one after another."""
    names = [name for name, shape in models.shapes(a).items() if len(shape) > 1]
    return lambda name: formats[names.index(name) % len(formats)]


@pytest.mark.parametrize("device, formats", [(device, formats) for formats in MIXED.values() for device in DEVICES if WHOLE or MIXED[device] == formats])
def test_formats(tmp_path, device, formats):
    a, path, package = ARCHITECTURES["wide"], tmp_path / "m.gguf", tmp_path / "m.greta"
    weights = models.write_gguf(path, a, models.random_weights(a), mixed_formats(a, formats))
    compiled = llm("compile", path, f"--targets={TARGETS[device]}", "-o", package)
    assert compiled.returncode == 0, compiled.stderr
    for format in formats:
        bits = {"q5": 5, "q6": 6, "q8": 8}.get(format[:2], 4)
        assert re.search(rf"\d matri(x|ces) in {format}, kept in {bits} bits", compiled.stdout), compiled.stdout
    want = models.logits(a, weights, TOKENS)
    assert_close(logits_of(path, package, device, tmp_path, "--batch=0"), want, "f16")
    assert_close(logits_of(path, package, device, tmp_path, "--batch=1"), want, "packed f16" if device == "vulkan" else "f16")


@pytest.mark.parametrize("first", [0, 4])
def test_formats_that_are_expanded(made, tmp_path, first):
    """Nine of them in a file, and the last eight in another; the package is the one for f16."""
    package, a, path = made("wide-gguf-f16")[1], ARCHITECTURES["wide"], tmp_path / "m.gguf"
    weights = models.write_gguf(path, a, models.random_weights(a), mixed_formats(a, EXPANDED_FORMATS[first:]))
    assert_close(logits_of(path, package, "sim:gfx942", tmp_path, "--batch=1"), models.logits(a, weights, TOKENS), "f16")


@pytest.mark.parametrize("prefix", ["language_model.model.", "model.language_model."])
def test_the_text_part_of_a_model_that_sees(made, tmp_path, prefix):
    """Gemma 3 with a vision tower: the text part runs as a model of text, without the tokens of images."""
    path, package, _ = made("gemma3-safetensors-f32")
    a = OTHERS["gemma3"]
    named = models.joined(a, models.random_weights(a), to_hugging_face=True)
    embedding = named["model.embed_tokens.weight"]
    named["model.embed_tokens.weight"] = np.concatenate([embedding, np.ones((8, a.width), np.float32)])
    named = {prefix + name.removeprefix("model."): w for name, w in named.items()} | {"vision_tower.vision_model.x.weight": np.ones((4, 4), np.float32)}
    text = models.config(a) | {"vocab_size": models.VOCABULARY + 8}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {"x": 1}, "image_token_index": models.VOCABULARY, "eos_token_id": [2]}
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    (tmp_path / "m" / "model.safetensors").write_bytes(models.safetensors_bytes(named, "f32"))
    want = logits_of(path, package, "sim:gfx942", tmp_path, "--batch=1")
    assert np.array_equal(logits_of(tmp_path / "m", package, "sim:gfx942", tmp_path, "--batch=1"), want)
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | {"mm_scale": 2}))
    ran = llm("logits", package, tmp_path / "m", "--tokens=1", "-o", tmp_path / "x.npy")
    assert ran.returncode == 1 and "the field 'mm_scale' (2) is not known to greta-llm" in ran.stderr


def test_mixtures_without_a_file(tmp_path):
    """Generation with graphs repeats itself without them."""
    package = tmp_path / "m.greta"
    assert llm("compile", "--synthetic=tiny-moe", "--targets=gfx942", "--batch=1,2", "-o", package).returncode == 0
    words = ("generate", package, "--synthetic=tiny-moe", "--device=sim:gfx942", "-p", "Once", "-n", "8", "--temp=0", "-q")
    said = llm(*words)
    assert said.returncode == 0 and said.stdout and said.stdout == llm(*words, "--no-graphs").stdout, said.stderr


@pytest.mark.parametrize("device", DEVICES if WHOLE else DEVICES[1:2])
def test_tokens_that_all_choose_one_expert(tmp_path, monkeypatch, device):
    """The last one, as their first choice; the first ones have no rows."""
    a = OTHERS["mixtral"]
    weights = models.random_weights(a)
    common = np.where(np.arange(a.width) % 2, 1, -1).astype(np.float32)
    weights["token_embd.weight"] += 6 * common
    for i in range(a.layers):
        router = weights[f"blk.{i}.ffn_gate_inp.weight"]
        router[-1] = common
        router[:-1] -= router[:-1].mean(1, keepdims=True) + 0.5 * common
    seen, mixture = [], architectures.mixture
    monkeypatch.setattr(architectures, "mixture", lambda a, scores, *others: seen.append(np.argsort(-scores)) or mixture(a, scores, *others))
    want = models.logits(a, weights, TOKENS)
    assert len(seen) == a.layers and all((order[:, 0] == a.experts - 1).all() for order in seen)
    path, package = models.write_safetensors(tmp_path / "m", a, weights), tmp_path / "m.greta"
    compiled = llm("compile", path, f"--targets={TARGETS[device]}", "-o", package)
    assert compiled.returncode == 0, compiled.stderr
    assert_close(logits_of(path, package, device, tmp_path, "--batch=0"), want, "f32")
    assert_close(logits_of(path, package, device, tmp_path, "--batch=1"), want, "f32")


def test_one_package_for_both_files_of_experts_in_mxfp4(made, tmp_path):
    """gpt-oss's safetensors have gates and ups in turn, scales apart and numbers in another order."""
    path, package, _ = made("gpt-oss-mxfp4-f16")
    a, weights = OTHERS["gpt-oss"], models.random_weights(OTHERS["gpt-oss"])
    weights |= {name: w for name, w in models.rounded(weights, "f16").items() if not name.endswith("_exps.weight")}
    models.write_gguf(tmp_path / "m.gguf", a, weights, lambda name: "mxfp4" if "_exps" in name else "f16")
    want = logits_of(path, package, "sim:gfx942", tmp_path, "--batch=1")
    assert np.array_equal(logits_of(tmp_path / "m.gguf", package, "sim:gfx942", tmp_path, "--batch=1"), want)
    raw = models.FORMATS["mxfp4"][1](weights["blk.0.ffn_down_exps.weight"])[0]
    whole = (tmp_path / "m.gguf").read_bytes()
    at = whole.index(raw[:64])
    (tmp_path / "m.gguf").write_bytes(whole[:at] + bytes([143]) + whole[at + 1 :])
    ran = llm("logits", package, tmp_path / "m.gguf", "--device=sim:gfx942", "--tokens=1", "-o", tmp_path / "x.npy")
    assert ran.returncode == 1 and "the weight 'blk.0.ffn_down_exps' has numbers of MXFP4 beyond 65504, which f16 does not have" in ran.stderr


def test_one_package_for_both_files_of_a_model(made, tmp_path):
    """llama's GGUF files have rope's pairs in another order; the loader puts them right, so the bits are the same."""
    path, package, _ = made("llama2-safetensors-f16")
    a = ARCHITECTURES["llama2"]
    models.write_gguf(tmp_path / "m.gguf", a, models.rounded(models.random_weights(a), "f16"), "f16")
    want = logits_of(path, package, "sim:gfx942", tmp_path, "--batch=0")
    assert np.array_equal(logits_of(tmp_path / "m.gguf", package, "sim:gfx942", tmp_path, "--batch=0"), want)


@pytest.mark.parametrize("device", DEVICES[1:])
def test_pieces_and_graphs_change_nothing(made, tmp_path, device):
    """The same kernels give the same bits, whether graphs replay them or not."""
    path, package, _ = made("llama2-safetensors-f16", device)
    one = logits_of(path, package, device, tmp_path, "--batch=1")
    assert np.array_equal(one, logits_of(path, package, device, tmp_path, "--batch=1", "--no-graphs"))
    assert np.array_equal(one, logits_of(path, package, device, tmp_path, "--batch=1"))


def test_perplexity(made, tmp_path):
    """Windows of 24 tokens, of which the later half is predicted, as the definition predicts it."""
    path, package, _ = made("llama2-safetensors-f32")
    tokenizer = texts.naive_tokenizer(40)
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    text = tmp_path / "text"
    text.write_text(texts.SCRIPTS["latin"])
    tokens = texts.naive_encode(tokenizer, texts.SCRIPTS["latin"])
    weights = models.random_weights(ARCHITECTURES["llama2"])
    surprises = []
    for first in range(0, len(tokens) - 23, 24):
        window = tokens[first : first + 24]
        rows = models.logits(ARCHITECTURES["llama2"], weights, window)[12:23]
        surprises += list(np.log(np.exp(rows).sum(1)) - rows[np.arange(11), window[13:]])
    ran = llm("perplexity", package, path, "--device=sim:gfx942", "-f", text, "--window=24", "-q")
    assert ran.returncode == 0, ran.stderr
    said = re.fullmatch(r"perplexity (\S+) \+- (\S+) \((\d+) tokens\)\n", ran.stdout)
    assert int(said[3]) == len(surprises) >= 22
    assert float(said[1]) == pytest.approx(np.exp(np.mean(surprises)), rel=1e-4)
    assert float(said[2]) == pytest.approx(np.exp(np.mean(surprises)) * np.std(surprises) / np.sqrt(len(surprises) - 1), rel=1e-3)
    for words, says in ((["--window=4096"], "tokens; a window has 4096 (--window)"), (["--window=24", "-c", "16"], "the context of 16 tokens is less than a window")):
        refused = llm("perplexity", package, path, "--device=sim:gfx942", "-f", text, *words)
        assert refused.returncode == 1 and says in refused.stderr


@pytest.mark.parametrize("format", ["q4_1", "q5_0", "q5_1", "q8_0", "mxfp4"])
def test_synthetic_weights_in_blocks(tmp_path, format):
    package, words = tmp_path / "m.greta", (f"--synthetic=tiny:{format}", "--device=sim:gfx942")
    compiled = llm("compile", words[0], "--targets=gfx942", "-o", package)
    assert compiled.returncode == 0 and f"in {format}, kept in" in compiled.stdout, compiled.stderr
    ran = llm("logits", package, *words, "--tokens=1,2,3", "-o", tmp_path / "logits.npy", "-q")
    assert ran.returncode == 0, ran.stderr
    logits = np.load(tmp_path / "logits.npy")
    assert np.isfinite(logits).all() and (logits.std(axis=1) > 0.1).all() and np.abs(logits).max() < 30
    ran = llm("generate", package, *words, "-p", "a", "--drafts=3")
    assert ran.returncode == 1 and "has kernels for one token at a time alone; --drafts needs others" in ran.stderr


def formats_of(model):
    """Formats of matrices of each function of a model's module."""
    ran = llm("compile", f"--synthetic={model}", "--targets=gfx942", "--mlir")
    assert ran.returncode == 0, ran.stderr
    functions = {}
    for line in ran.stdout.splitlines():
        if function := re.match(r"func.func @(\w+)\(", line):
            held = functions[function[1]] = {}
        if used := re.search(r'greta.dequant %(\w+),.* \{format = "(\w+)"', line):
            held[used[1]] = used[2]
    return functions


def test_synthetic_mixes():
    """As llama-quantize chooses them: which layers have more bits, and what is always larger."""
    functions = formats_of("llama3-8b:q4_k_m")
    assert functions["head_1"] == {"output": "q6_k"}
    more, fewer = (functions[name] for name in ("layer0_1", "layer1_1"))
    assert {name for name in more if more[name] == "q6_k"} == {"attn_v", "ffn_down"} and set(more.values()) == {"q6_k", "q4_k_interleaved"} and set(fewer.values()) == {"q4_k_interleaved"}
    assert {name for name, format in formats_of("llama3-70b")["layer1_1"].items() if format == "q5_k"} == {"attn_v"}
    assert formats_of("llama3-8b:q4_0")["head_1"] == {"output": "q6_k"} and formats_of("tiny:q4_0")["head_1"] == {"output": "q8_0"}
    functions = formats_of("gpt-oss-20b")
    assert functions["head_1"] == {"output": "q8_0"}
    assert {format for held in functions.values() for name, format in held.items() if "exps" in name} == {"mxfp4"}


@pytest.mark.parametrize("format, bits", [("q4_0", 4), ("q4_k", 4), ("q5_k", 5), ("q6_k", 6), ("q8_0", 8)])
def test_what_formats_become(made, tmp_path, format, bits):
    path, _ = make_model(tmp_path, f"wide-gguf-{format}")
    said = llm("compile", path, "--targets=vulkan:portable", "-o", tmp_path / "m.greta")
    assert f"8 matrices in {format}, kept in {bits} bits" in said.stdout and f"1 matrix in {format}, expanded to f16" in said.stdout
