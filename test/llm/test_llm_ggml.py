"""GGUF's formats against llama.cpp's own library: what our blocks stand for, and models whose weights it has quantised. Debian testing's ggml, as
scripts/vulkan-drivers unpacks it.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import models
from conftest import DRIVERS, ROOT
from models import ARCHITECTURES
from test_llm import TOKENS, assert_close, llm, logits_of, mixed_formats

PLAIN = "f32", "f16", "bf16"
FORMATS = [name for name in models.FORMATS if name not in PLAIN]
PACKED = "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"
SHAPE = 8, 512


def of_ggml(folder, rows, quantises):
    """Files of ggml_formats.py of each name and its rows; the names that this ggml has. It quantises where that is wanted alone, because tables of some formats take it seconds."""
    pathlib.Path(folder).mkdir(exist_ok=True)
    jobs = {}
    for name, (format, values) in rows.items():
        number, write = models.FORMATS[format]
        jobs[name] = [number, *values.shape]
        if quantises:
            (folder / f"{name}.rows").write_bytes(np.ascontiguousarray(values, np.float32).tobytes())
        (folder / f"{name}.blocks").write_bytes(write(values)[0])
    (folder / "jobs.json").write_text(json.dumps(jobs))
    backends = pathlib.Path(subprocess.run([DRIVERS, "ggml"], capture_output=True, text=True, check=True).stdout.strip())
    words = DRIVERS, "lavapipe", sys.executable, ROOT / "test" / "llm" / "ggml_formats.py", backends.parents[1] / "libggml-base.so.0", folder
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return [name for name in rows if name not in ran.stdout.split()]


def floats(path, shape):
    return np.frombuffer(path.read_bytes(), np.float32).reshape(shape)


@pytest.fixture(scope="module")
def needs_ggml(driver_parts):
    if "ggml" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no ggml here")


@pytest.fixture(scope="module")
def formats(needs_ggml, tmp_path_factory):
    rng, folder = np.random.default_rng(5), tmp_path_factory.mktemp("ggml")
    rows = {name: (name, rng.standard_normal(SHAPE).astype(np.float32)) for name in FORMATS}
    return folder, rows, of_ggml(folder, rows, False)


@pytest.mark.parametrize("name", FORMATS)
def test_blocks(formats, name):
    """What the tests' blocks stand for; most of them are of random bits, scales apart."""
    folder, rows, known = formats
    if name not in known:
        pytest.skip(f"scripts/vulkan-drivers has no ggml with {name}")
    np.testing.assert_allclose(floats(folder / f"{name}.numbers", SHAPE), models.FORMATS[name][1](rows[name][1])[1], rtol=1e-6, atol=1e-7)


def quantised_by_ggml(folder, weights, format_of, monkeypatch):
    """Formats of write_gguf that write what ggml makes of a matrix, and the numbers that it means."""
    rows = {name.removesuffix(".weight"): (format_of(name), w) for name, w in weights.items() if w.ndim == 2}
    of_ggml(folder, rows, True)

    def writer(format):
        number, _ = models.FORMATS[format]

        def write(w):
            (name,) = [name for name, (its, values) in rows.items() if its == format and values.shape == w.shape and np.array_equal(values, w)]
            return (folder / f"{name}.theirs").read_bytes(), floats(folder / f"{name}.meant", w.shape)

        return number, write

    for format in {format for format, _ in rows.values()}:
        monkeypatch.setitem(models.FORMATS, format, writer(format))


@pytest.mark.parametrize("formats", [PACKED[:7], PACKED[7:]])
def test_models_that_ggml_quantised(needs_ggml, tmp_path, monkeypatch, formats):
    """Logits against float64, of the numbers that ggml says its blocks are. What a block means is the same on every device, whose kernels are test_llm.py's."""
    a, path, package = ARCHITECTURES["wide"], tmp_path / "m.gguf", tmp_path / "m.greta"
    format_of = mixed_formats(a, formats)
    weights = models.random_weights(a)
    # GGUF's heads have their pairs as neighbours.
    heads = {"attn_q": a.heads, "attn_k": a.key_heads}
    held = {name: models.interleaved(w, heads[part]) if (part := name.split(".")[-2]) in heads else w for name, w in models.joined(a, weights, to_hugging_face=False).items()}
    quantised_by_ggml(tmp_path / "ggml", held, format_of, monkeypatch)
    meant = models.write_gguf(path, a, weights, format_of)
    compiled = llm("compile", path, "--targets=gfx942", "-o", package)
    assert compiled.returncode == 0, compiled.stderr
    want = models.logits(a, meant, TOKENS)
    for batch in (0, 1):
        assert_close(logits_of(path, package, "sim:gfx942", tmp_path, f"--batch={batch}"), want, "f16")
