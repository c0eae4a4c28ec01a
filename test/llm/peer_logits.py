"""Models that greta-llm and llama.cpp both read, and the record of llama.cpp's logits for them, which test_llm_peer_logits.py compares with.

    PYTHON test/llm/peer_logits.py LLAMA_CPP FOLDER [--whole]     LLAMA_CPP: the Python of an environment that has llama-cpp-python

Writes FOLDER/logits.json, and the models that llama.cpp has quantised; --whole: one of each format, beside those of a format for each matrix. Other models are of
random numbers from a seed, so the record has their bytes' hash alone.
"""

import dataclasses
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import architectures
import models
from models import ARCHITECTURES, FORMATS, OTHERS, VOCABULARY

TOKENS = [int(t) for t in np.random.default_rng(3).integers(0, 64, 21)]
ROWS, COLUMNS = [6, 11, 16, 20], 16  # of a model's logits: these tokens', and so many of each
# Tensors of blocks of 32 (and 64) numbers, and of 256, that one model each has.
NARROW = "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4", "nvfp4", "q2_0", "f16", "bf16"
WIDE = tuple(name for name in FORMATS if name not in NARROW and name != "f32")


def metadata(a, vocabulary=VOCABULARY):
    """With what llama.cpp asks for beside, as its own converter writes it."""
    values = {"attention.value_length": a.head_size, "vocab_size": vocabulary} | ({"expert_feed_forward_length": a.hidden} if a.kind in ("qwen3_moe", "gpt_oss") else {})
    metadata = {f"{a.gguf}.{key}": value for key, value in values.items()} | models.gguf_metadata(a) | {"tokenizer.ggml.model": "no_vocab"}
    # Latents' norms have an epsilon of 1e-6, which llama.cpp takes from the file.
    return metadata | ({f"{a.gguf}.attention.layer_norm_rms_epsilon": a.latent_epsilon} if a.latent else {})


# These changes leave out what llama.cpp refuses: biases of Qwen 3, fewer heads of keys in OLMoE, and queries without latents in DeepSeek models that have not 27 layers.
# They also leave out the windows of Phi 3 and StarCoder 2, which llama.cpp ignores and transformers computes. llama.cpp rounds the ends of YaRN's ramp and gpt-oss
# does not; with this theta the ends are whole numbers.
CHANGES = {"qwen3-yarn": {"bias": False, "fields": {}}, "olmoe": {"key_heads": 4}, "gpt-oss": {"theta": 672.81}, "deepseek-v2-lite": {"layers": 27}, "phi3": {"window": None}, "starcoder2": {"window": None}}


def architecture(name):
    return models.as_in_gguf(dataclasses.replace((ARCHITECTURES | OTHERS)[name], **CHANGES.get(name, {})))


# Name: (architecture, format). llama.cpp takes mistral for llama, without a window.
SEEDED = {name: (name, "f32") for name in ARCHITECTURES | OTHERS if name not in (*architectures.NOT_IN_GGUF, "mistral")}
SEEDED |= {f"blocks-{format}": ("wide", format) for format in FORMATS if format != "f32"}


def write_seeded(path, name):
    a, format = architecture(SEEDED[name][0]), SEEDED[name][1]
    models.write_gguf(path, a, models.random_weights(a), format, metadata(a))


def write_plain(path, a, vocabulary):
    """In f32, for llama.cpp to quantise; returns {matrix: its columns}."""
    weights = {name: w[:vocabulary] if w.shape[0] == VOCABULARY else w for name, w in models.random_weights(a).items()}
    models.write_gguf(path, a, weights, "f32", metadata(a, vocabulary))
    return {name: w.shape[-1] for name, w in weights.items() if w.ndim == 2}


def quantised_models(whole):
    """Name: (architecture, tokens of its vocabulary, formats in which its matrices are in turn)"""
    narrow, wide = (dataclasses.replace(ARCHITECTURES[name], layers=2) for name in ("llama2", "wide"))
    cases = {"narrow": (dataclasses.replace(narrow, hidden=128), 64, NARROW), "wide": (dataclasses.replace(wide, heads=8, head_size=32), 64, WIDE)}
    return {f"quantised-{name}": case for name, case in cases.items()} | ({f"quantised-{format}": (ARCHITECTURES["wide"], VOCABULARY, [format]) for format in NARROW + WIDE} if whole else {})


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sample(rows):
    """What the record has of all logits; `largest` is of the whole rows."""
    rows = rows[ROWS]
    return np.abs(rows).max(axis=1), rows[:, :: rows.shape[1] // COLUMNS]


def numbers(values):
    return [[float(f"{x:.7g}") for x in row] for row in values]


def main(python, folder, whole=""):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work, jobs, paths = pathlib.Path(temporary), [], {}
        for name in SEEDED:
            paths[name] = work / f"{name}.gguf"
            write_seeded(paths[name], name)
        for name, (a, vocabulary, formats) in quantised_models(whole).items():
            paths[name] = folder / f"{name}.gguf"
            matrices = write_plain(work / f"{name}.plain", a, vocabulary)
            # Formats in turn, by the matrices' sizes: the smallest matrices are in the formats of most bits.
            order = sorted(formats, key=lambda format: -len(FORMATS[format][1](np.ones((1, 768), np.float32))[0]))
            sizes = sorted(matrices, key=lambda name: (name.startswith("blk") and "attn_k" not in name and "attn_v" not in name, name))
            of_name = [[name.replace(".", r"\."), FORMATS[order[i % len(order)]][0]] for i, name in enumerate(sizes)]
            jobs.append({"quantise": str(work / f"{name}.plain"), "to": str(paths[name]), "formats": of_name, "matrices": matrices})
        # llama.cpp rounds what it multiplies blocks by to 8 bits; it computes in f32 with the numbers that it says the blocks are.
        for name, path in paths.items():
            expanded = str(work / f"{name}.expanded")
            jobs.append({"quantise": str(path), "to": expanded, "formats": [], "matrices": {}})
            jobs.append({"logits": expanded, "tokens": TOKENS, "to": str(work / f"{name}.npy")})
        (work / "jobs.json").write_text(json.dumps(jobs))
        subprocess.run([python, pathlib.Path(__file__).with_name("llama_cpp_jobs.py"), work / "jobs.json"], check=True)
        version = subprocess.run([python, "-c", "import llama_cpp; print(llama_cpp.__version__)"], capture_output=True, text=True, check=True).stdout.strip()
        cases = {}
        for name, path in paths.items():
            largest, logits = sample(np.load(work / f"{name}.npy"))
            cases[name] = {"sha256": sha256(path), "largest": numbers([largest])[0], "logits": numbers(logits)}
    (folder / "logits.json").write_text(json.dumps({"llama-cpp-python": version, "cases": cases}).replace('}, "', '},\n"') + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
