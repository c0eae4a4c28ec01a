"""Triton's code objects give NumPy's answer in the simulator, with all checks on. Skipped where Triton is not installed."""

import json
import subprocess
import sys

import numpy as np
import pytest

from conftest import BUILD, ROOT

pytest.importorskip("triton", reason="pip install triton to run Triton's kernels in the simulator")
ml_dtypes = pytest.importorskip("ml_dtypes")
CHIPS = ["gfx942", "gfx950", "gfx1100", "gfx1201"]
DTYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8e4b8": ml_dtypes.float8_e4m3fnuz, "fp8e4nv": ml_dtypes.float8_e4m3fn}


# Triton compiles a chip's kernels once, for one worker.
@pytest.fixture(scope="module", params=[pytest.param(chip, marks=pytest.mark.xdist_group(f"triton-{chip}")) for chip in CHIPS])
def kernels(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("triton") / request.param
    command = [sys.executable, ROOT / "test" / "sim" / "triton_kernels.py", out, request.param]
    run = subprocess.run(command, capture_output=True, text=True, env={"TRITON_CACHE_DIR": str(out / "cache"), "PATH": "/usr/bin:/bin"})
    assert run.returncode == 0, run.stderr[-3000:]
    return out


def launch(folder, name, grid, args, out_array):
    """args: arrays (in), None (the output) or (type, value); returns the output."""
    record = json.loads((folder / f"{name}.json").read_text())
    command = [BUILD / "bin" / "greta-sim", folder / f"{name}.hsaco", f"--kernel={record['entry']}", f"--grid={','.join(map(str, grid))}",
               f"--block={record['block']}", f"--lds={record['shared']}"]
    for k, a in enumerate(args):
        if a is None:
            command.append(f"--arg=out:{folder / 'o.bin'}:{out_array.nbytes}")
        elif isinstance(a, tuple):
            command.append(f"--arg={a[0]}:{a[1]}")
        else:
            a.tofile(folder / f"{k}.bin")
            command.append(f"--arg=in:{folder / f'{k}.bin'}")
    # Triton appends pointers to scratch buffers that these kernels do not use.
    command += ["--arg=i64:0", "--arg=i64:0"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return np.fromfile(folder / "o.bin", out_array.dtype).reshape(out_array.shape)


def test_vector_add(kernels):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 5000)).astype(np.float32)
    got = launch(kernels, "vector_add", (5,), [x, y, None, ("i32", 5000)], x)
    assert np.array_equal(got, x + y)


@pytest.mark.parametrize("warps", [1, 4])
def test_softmax(kernels, warps):
    x = np.random.default_rng(2).standard_normal((7, 1000)).astype(np.float16)
    got = launch(kernels, f"softmax_w{warps}", (7,), [None, x, ("i32", 1000)], x)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(got.astype(np.float64), e / e.sum(1, keepdims=True), rtol=2e-3, atol=1e-6)


def test_layer_norm(kernels):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, 1000)).astype(np.float16)
    w, b = rng.standard_normal((2, 1000)).astype(np.float32)
    got = launch(kernels, "layer_norm", (5,), [None, x, w, b, ("i32", 1000), ("f32", 1e-5)], x)
    v = x.astype(np.float64)
    want = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * w + b
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-3, atol=2e-3)


def test_matmul(kernels):
    names = sorted(p.stem for p in kernels.glob("matmul_*.json"))
    assert len(names) >= 5
    m, n, k = 160, 200, 96 + 8
    rng = np.random.default_rng(4)
    for name in names:
        dtype = DTYPES[name.split("_")[1]]
        bm, bn = map(int, name.split("_")[2].split("x")[:2])
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((n, k)).astype(dtype)
        got = launch(kernels, name, (-(-m // bm), -(-n // bn)), [a, b, None, ("i32", m), ("i32", n), ("i32", k)], np.empty((m, n), np.float32))
        want = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4, err_msg=name)


def test_attention(kernels):
    rng = np.random.default_rng(5)
    heads, s, t, d = 2, 128, 96, 64
    q = rng.standard_normal((heads, s, d)).astype(np.float16)
    k, v = rng.standard_normal((2, heads, t, d)).astype(np.float16)
    got = launch(kernels, "attention", (s // 64, heads), [q, k, v, None, ("f32", 0.125), ("i32", s), ("i32", t)], q)
    logits = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 0.125
    p = np.exp(logits - logits.max(-1, keepdims=True))
    want = p / p.sum(-1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-2, atol=2e-3)
