"""Triton's kernels (kernels.py), from the Triton IR that Triton's versions print to results: each text is imported, and run it gives what NumPy does.

The numerics are those of the texts of 3.9, on the simulated AMD families with all their checks and on this machine's Vulkan driver.
"""

import dataclasses
import math
import re

import ml_dtypes
import numpy as np
import pytest

from conftest import BUILD, DRIVERS, ROOT
from harness import AMD_FAMILIES, RUN, TRANSLATE, WHOLE, function_of, share_of, tool

TEXTS = ROOT / "test" / "triton" / "texts"
VERSIONS = ("3.6", "3.7", "3.8", "3.9")


@pytest.mark.parametrize("version", VERSIONS)
def test_texts_are_imported(version):
    texts = sorted((TEXTS / version).glob("*.ttir"))
    assert len(texts) >= 18
    for text in texts:
        imported = tool(BUILD / "bin" / "greta-opt", "--triton-to-tile", text)
        assert imported.returncode == 0, f"{text}: {imported.stderr[:2000]}"
        assert f"func.func @{text.stem}(" in imported.stdout and " tt." not in imported.stdout, text


@dataclasses.dataclass
class Launch:
    """Arguments in the kernel's order, flat arrays or scalars; of some the contents afterwards, with tolerances."""

    arguments: dict
    grid: tuple
    expected: dict
    rtol: float = 1e-6
    atol: float = 1e-6


def uniform(seed, *shape, low=-1.0, high=1.0, dtype=np.float32):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def vector_add():
    x, y = uniform(1, 1003), uniform(2, 1003)
    return Launch(dict(x=x, y=y, out=zeros(1003), n=np.int32(1003)), (4, 1, 1), dict(out=x + y))


def softmax():
    x = uniform(3, 7, 100, low=-4, high=4, dtype=np.float16)
    e = np.exp(x.astype(float) - x.max(1, keepdims=True))
    return Launch(dict(out=zeros(7, 100, dtype=np.float16), x=x, rows=np.int32(7), columns=np.int32(100)), (3, 1, 1), dict(out=e / e.sum(1, keepdims=True)), rtol=1e-3, atol=1e-5)


def matmul():
    m, n, k = 100, 70, 75
    a, b = uniform(4, m, k, dtype=np.float16), uniform(5, k, n, dtype=np.float16)
    c = a.astype(float) @ b.astype(float)
    sizes = {name: np.int32(value) for name, value in dict(M=m, N=n, K=k, stride_a=k, stride_b=n, stride_c=n).items()}
    return Launch(dict(a=a, b=b, c=zeros(m, n, dtype=np.float16), **sizes), (6, 1, 1), dict(c=np.where(c > 0, c, 0.125 * c)), rtol=2e-3, atol=2e-3)


def layer_norm_of(x):
    mean = x.mean(1, keepdims=True)
    scale = 1 / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
    return mean, scale, (x - mean) * scale


def layer_norm():
    rows, n = 5, 200
    x = uniform(6, rows, n, dtype=np.float16)
    weight, bias = uniform(7, n), uniform(8, n)
    mean, scale, normal = layer_norm_of(x.astype(float))
    arguments = dict(x=x, weight=weight, bias=bias, out=zeros(rows, n, dtype=np.float16), mean_out=zeros(rows), scale_out=zeros(rows), n=np.int32(n), eps=np.float32(1e-5))
    return Launch(arguments, (rows, 1, 1), dict(out=normal * weight + bias, mean_out=mean[:, 0], scale_out=scale[:, 0]), rtol=2e-3, atol=1e-3)


def layer_norm_backward():
    rows, n = 6, 200
    x, grad = uniform(9, rows, n, dtype=np.float16), uniform(10, rows, n, dtype=np.float16)
    weight = uniform(11, n)
    mean, scale, normal = layer_norm_of(x.astype(float))
    g = grad.astype(float)
    gw = g * weight
    dx = (gw - normal * (normal * gw).mean(1, keepdims=True) - gw.mean(1, keepdims=True)) * scale
    arguments = dict(x=x, weight=weight, grad=grad, mean=mean[:, 0].astype(np.float32), scale=scale[:, 0].astype(np.float32))
    arguments |= dict(dx=zeros(rows, n, dtype=np.float16), dweight=zeros(n), dbias=zeros(n), n=np.int32(n))
    return Launch(arguments, (rows, 1, 1), dict(dx=dx, dweight=(g * normal).sum(0), dbias=g.sum(0)), rtol=2e-3, atol=2e-3)


def attention(block=64, keys=100, scale=0.125):
    heads, queries, d = 2, 70, block
    q, k, v = (uniform(12 + i, heads, length, d, low=-2, high=2, dtype=np.float16) for i, length in enumerate((queries, keys, keys)))
    logits = q.astype(float) @ k.astype(float).transpose(0, 2, 1) * scale
    p = np.exp(logits - logits.max(-1, keepdims=True))
    arguments = dict(q=q, k=k, v=v, out=zeros(heads, queries, d, dtype=np.float16), scale=np.float32(scale), queries=np.int32(queries), keys=np.int32(keys))
    return Launch(arguments, (-(-queries // block), heads, 1), dict(out=p / p.sum(-1, keepdims=True) @ v.astype(float)), rtol=5e-3, atol=2e-3)


def grouped_matmul():
    rows, n, k = np.array([40, 5, 33], np.int32), 48, 40
    a, b = uniform(15, rows.sum(), k, dtype=np.float16), uniform(16, 3, k, n, dtype=np.float16)
    parts = np.split(a.astype(float), np.cumsum(rows)[:-1])
    c = np.concatenate([part @ b[g].astype(float) for g, part in enumerate(parts)])
    return Launch(dict(a=a, b=b, c=zeros(*c.shape), rows=rows, N=np.int32(n), K=np.int32(k)), (3, 1, 1), dict(c=c), rtol=1e-4, atol=1e-4)


def block_scaled_matmul(is_exact=False):
    """Exact: all sums are whole numbers of 128ths below 2^24."""
    rng = np.random.default_rng(17)
    m, n, k = 32, 32, 64
    a, b = rng.integers(0, 256, (m, k // 2), np.uint8), rng.integers(*((0x30, 0x50) if is_exact else (0, 0x78)), (k, n), np.uint8)
    sa, sb = (rng.integers(*((126, 129) if is_exact else (120, 134)), (rows, k // 32), np.uint8) for rows in (m, n))
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    x = numbers[np.stack([a & 15, a >> 4], -1).reshape(m, k)] * np.repeat(2.0 ** (sa.astype(float) - 127), 32, 1)
    y = b.view(ml_dtypes.float8_e4m3fn).astype(float)
    scaled = y * np.repeat(2.0 ** (sb.astype(float) - 127), 32, 1).T
    arguments = dict(a=a.view(np.int8), a_scale=sa.view(np.int8), b=b.view(np.int8), b_scale=sb.view(np.int8), c=zeros(m, n))
    return Launch(arguments, (1, 1, 1), dict(c=x @ scaled + x @ y), rtol=0 if is_exact else 1e-4, atol=0 if is_exact else np.abs(x).max() * np.abs(scaled).max() * 1e-4)


def combine():
    x = uniform(18, 8, 16)
    decayed, state = np.empty((8, 16)), np.zeros(8)
    for j in reversed(range(16)):
        state = state * 0.5 + x[:, j]
        decayed[:, j] = state
    out = np.concatenate([decayed, x.astype(float).cumsum(1), np.sort(x, 1)])
    arguments = dict(x=x, variance=zeros(8), best=zeros(8, dtype=np.int32), out=zeros(24, 16))
    return Launch(arguments, (1, 1, 1), dict(variance=x.astype(float).var(1), best=x.argmax(1), out=out), atol=1e-5)


def move():
    x, index = uniform(19, 32), np.random.default_rng(20).integers(0, 16, 32, np.int32)
    out = np.concatenate([x.reshape(4, 8).T.ravel(), x[1::2], x[::2], x[index], x.reshape(2, 2, 8).transpose(2, 0, 1).ravel(), x[::-1]])
    return Launch(dict(x=x, index=index, out=zeros(160), counts=zeros(16, dtype=np.int32)), (1, 1, 1), dict(out=out, counts=np.bincount(index, minlength=16)), rtol=0, atol=0)


def control(n, mode):
    x = uniform(21, 32, low=0.5, high=2.0)
    v = x.astype(float) + x[0] * 2.0 + 1.0
    for _ in range(n):
        v = v + 1.0 if mode > 1 else v * 2.0
    v = v + 1 + sum(range(0, n, 2))
    out = np.where(v < 8 - v, 8 - v + 2, v + 1) if mode else np.zeros(32)
    return Launch(dict(x=x, out=zeros(32), n=np.int32(n), mode=np.int32(mode)), (1, 1, 1), dict(out=out))


def atomics():
    x = np.random.default_rng(22).integers(-100, 100, 64, np.int32)
    out = np.zeros(41, np.int32)
    out[0], out[1:33], out[40] = x.sum(), np.maximum(np.maximum(x[:32], x[32:]), 0), 2
    return Launch(dict(x=x, out=zeros(41, dtype=np.int32), lock=zeros(1, dtype=np.int32)), (2, 1, 1), dict(out=out), rtol=0, atol=0)


def descriptors():
    a = uniform(23, 40, 44)
    return Launch(dict(a=a, out=zeros(40, 44), M=np.int32(40), N=np.int32(44)), (3, 3, 1), dict(out=a * 2), rtol=0, atol=0)


def philox(seed, counter):
    """The first word that Philox4x32-10 makes of a key and a counter."""
    c = [counter.astype(np.uint64), *np.zeros((3, len(counter)), np.uint64)]
    key, low = [seed & 0xFFFFFFFF, seed >> 32], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        even, odd = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [odd >> np.uint64(32) ^ c[1] ^ np.uint64(key[0]), odd & low, even >> np.uint64(32) ^ c[3] ^ np.uint64(key[1]), even & low]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c[0].astype(np.uint32).view(np.int32)


def dropout():
    n, p, seed = 1003, 0.4, 1234
    x, word = uniform(26, n), philox(seed, np.arange(n))
    drawn = np.where(word < 0, -word.astype(np.int64) - 1, word) * 4.6566127342e-10
    arguments = dict(x=x, out=zeros(n), n=np.int32(n), p=np.float32(p), seed=np.int32(seed))
    return Launch(arguments, (4, 1, 1), dict(out=np.where(drawn > p, x / (1 - p), 0)))


def towards_zero(x):
    nearest = x.astype(np.float16)
    return np.where(np.abs(nearest.astype(x.dtype)) > np.abs(x), np.nextafter(nearest, np.float16(0)), nearest).astype(float)


def elementwise():
    x, k = uniform(27, 64, low=0.05, high=1.9), np.random.default_rng(28).integers(-(2**20), 2**20, 64, np.int32)
    v, u = x.astype(float), k.view(np.uint32)
    erf = np.vectorize(math.erf)
    quotient, rest = np.trunc(k / 3).astype(np.int32), np.fmod(k, 7)
    z = (quotient + rest + (k << 2)) ^ (k & 5) | (k >> 1)
    high = (u * np.uint32(0x9E3779B9)).astype(np.uint64) * (u * np.uint32(0x85EBCA6B)) >> np.uint64(32)
    hundred = x * np.float32(100)
    rows = [
        np.exp(v) + np.log(v) - np.sin(v) + np.sqrt(v) + 1 / np.sqrt(v) + erf(v) + np.floor(v) + np.ceil(-v) + abs(v - 1),
        v * v + v + np.sqrt(v) + v / (v + 1) + np.clip(v, 0.25, 1) + np.minimum(v, 0.5) + np.fmod(x, np.float32(0.3)),
        (np.maximum(z, k) + np.minimum(z, 4)).astype(np.float32),
        (high.astype(np.uint32) // 7 % 1000 + (u >> 3)).astype(np.float32),
        x.astype(ml_dtypes.bfloat16).astype(float) + towards_zero(hundred) + np.trunc(np.float32(60) * x),
        hundred.astype(ml_dtypes.float8_e5m2).astype(float) + k + (k > 3),
    ]
    return Launch(dict(x=x, i=k, out=zeros(6, 64)), (1, 1, 1), dict(out=np.concatenate(rows)), rtol=2e-6, atol=2e-5)


def library():
    x = uniform(29, 64, low=0.05, high=3)
    v = x.astype(float)
    out = np.tanh(v) + v**2.5 + np.log1p(v) + np.expm1(v) + np.rint(x * np.float32(10)) + np.hypot(v, 2)
    return Launch(dict(x=x, out=zeros(64)), (1, 1, 1), dict(out=out), rtol=2e-6)


def padded_convolution():
    images, h, w, c, n = 2, 4, 37, 40, 24
    x, weights = uniform(50, images, h, w, c, dtype=np.float16), uniform(51, n, 3, 3, c, dtype=np.float16)
    wide = np.pad(x.astype(float), ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = sum(wide[:, i : i + h, j : j + w] @ weights[:, i, j].astype(float).T for i in range(3) for j in range(3))
    sizes = {name: np.int32(value) for name, value in dict(H=h, W=w, C=c, N=n).items()}
    return Launch(dict(x=x, w=weights, y=zeros(images, h, w, n), **sizes), (h, 2, images), dict(y=y), rtol=1e-4, atol=1e-4)


def chained_products(block=64):
    k, step = 128, block // 2
    a, b, low_a, low_b = (uniform(seed, block, k, dtype=np.float16) for seed in range(52, 56))
    scale = uniform(56, k // step, block)
    x, y, x_low, y_low = (v.astype(float) for v in (a, b, low_a, low_b))
    parts = [x[:, i : i + step] @ y[:, i : i + step].T for i in range(0, k, step)]
    expected = dict(total=x @ y.T + x @ y_low.T + x_low @ y.T, scaled=sum(s[:, None] * part for s, part in zip(scale.astype(float), parts)))
    arguments = dict(a=a, b=b, a_low=low_a, b_low=low_b, scale=scale, total=zeros(block, block), scaled=zeros(block, block), K=np.int32(k))
    return Launch(arguments, (1, 1, 1), expected, rtol=1e-4, atol=1e-4)


LAUNCHES = {
    "vector_add": vector_add,
    "softmax": softmax,
    "matmul": matmul,
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "attention": attention,
    "grouped_matmul": grouped_matmul,
    "block_scaled_matmul": block_scaled_matmul,
    "block_scaled_matmul-exact": lambda: block_scaled_matmul(is_exact=True),
    "padded_convolution": padded_convolution,
    "chained_products": chained_products,
    "combine": combine,
    "move": move,
    "control": lambda: control(3, 1),
    "control-early": lambda: control(3, 0),
    "control-other": lambda: control(2, 2),
    "atomics": atomics,
    "descriptors": descriptors,
    "dropout": dropout,
    "elementwise": elementwise,
    "library": library,
}
# By multiply-adds a lane has programs that Debian 12's lavapipe compiles for minutes: these run on matrices.
OF_TILES = "attention", "chained_products"
# Blocks of 64 that a target compiles for a minute; of 32 they take seconds.
HALVED = {("vulkan:lavapipe", "attention"), ("gfx1030", "chained_products")}
DTYPE = {np.dtype(np.int32): "i32", np.dtype(np.float32): "f32"}


def halved(text):
    """A text with all extents of blocks halved, and 2048, the product of two."""
    return re.sub(r"(?<=[<x ])(64|32|2048)(?=[x>]| :)", lambda extent: str(int(extent[0]) // (4 if extent[0] == "2048" else 2)), text)


def check(directory, device, target, name, launcher=(), text=None, flags=(), launch=None, **options):
    """Compiles a kernel's text, or another, with a launch's flags, and runs it, on its arguments or others: what it writes to is what is expected. `launcher`: the words before greta-run."""
    kernel, is_halved = name.partition("-")[0], (target, name) in HALVED
    launch = launch or (LAUNCHES[name](32) if is_halved else LAUNCHES[name]())
    if is_halved:
        text = directory / f"{kernel}.ttir"
        text.write_text(halved((TEXTS / "3.9" / text.name).read_text()))
    package = directory / "k.greta"
    made = tool(TRANSLATE, "--triton-to-package", f"--targets={target}", *flags, text or TEXTS / "3.9" / f"{kernel}.ttir", "-o", package)
    assert made.returncode == 0, made.stderr[:4000]
    inputs = []
    for argument, value in launch.arguments.items():
        if isinstance(value, np.ndarray):
            np.save(directory / f"{argument}.npy", value.ravel())
            inputs.append(f"--input={directory}/{argument}.npy")
        else:
            inputs.append(f"--input={DTYPE[value.dtype]}:{value}")
    inputs += [f"--input=i32:{programs}" for programs in launch.grid]
    written = [list(launch.arguments)[result["tied"]] for result in function_of(package, kernel)["results"]]
    assert set(launch.expected) <= set(written), written
    ran = tool(*launcher, RUN, package, f"--device={device}", *inputs, *(f"--output={directory}/{argument}.out.npy" for argument in written), **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for argument, expected in launch.expected.items():
        got = np.load(directory / f"{argument}.out.npy").astype(float)
        np.testing.assert_allclose(got, np.ravel(expected), launch.rtol, launch.atol, err_msg=argument)


def testing(driver_parts):
    """The words that run a command on testing's lavapipe."""
    if "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    return DRIVERS, "lavapipe"


@pytest.mark.parametrize("chip, name", [(chip, name) for chip in AMD_FAMILIES for name in share_of([*LAUNCHES], chip, 3)])
def test_simulated(tmp_path, chip, name):
    check(tmp_path, f"sim:{chip}", chip, name)


# CDNA takes each number of stages, RDNA two of them; cooperative matrices take lavapipe ten seconds, so Vulkan's two take one.
STAGES = {("sim:gfx942", "gfx942"): (1, 2, 3, 9), ("sim:gfx1100", "gfx1100"): (2, 9), ("vulkan", "vulkan:portable"): (2,), ("vulkan", "vulkan:lavapipe"): (3,)}


@pytest.mark.parametrize("device, target, stages", [(*of, number) for of, some in STAGES.items() for number in ((1, 2, 3, 9) if WHOLE else some)])
def test_stages_of_a_loop(tmp_path, driver_parts, device, target, stages):
    """`tl.range(..., num_stages)` on a GEMM's loop changes its schedule, not its result (test/lit/Tile/tile_schedule.mlir has the schedules)."""
    text, changed = (TEXTS / "3.9" / "matmul.ttir").read_text(), tmp_path / "matmul.ttir"
    loop = re.search(r"= scf\.for .*?^    \}", text, re.M | re.S)
    changed.write_text(f"{text[:loop.end()]} {{tt.num_stages = {stages} : i32}}{text[loop.end():]}")
    check(tmp_path, device, target, "matmul", testing(driver_parts) if target == "vulkan:lavapipe" else (), text=changed)


@pytest.mark.parametrize("stages", (1, 3))
def test_stages_of_a_launch(tmp_path, stages):
    """The same of a loop that does not say it."""
    check(tmp_path, "sim:gfx950", "gfx950", "matmul", flags=[f"--num-stages={stages}"])


@pytest.mark.parametrize("keys, scale", ((20, 0.125), (64, 0.125), (70, -0.125)))
def test_attention_of_few_keys(tmp_path, keys, scale):
    """The loop of whole blocks has no iteration, all, and none because the scale is negative (test/lit/Tile/split-loops.mlir)."""
    check(tmp_path, "sim:gfx942", "gfx942", "attention", launch=attention(keys=keys, scale=scale))


def test_debug(tmp_path):
    """Prints a block and a scalar; the assertion that n is positive has the place in the Python source."""
    package = tmp_path / "k.greta"
    made = tool(TRANSLATE, "--triton-to-package", "--targets=vulkan:portable,gfx90a", "--grid=1", TEXTS / "3.9" / "debug.ttir", "-o", package)
    assert made.returncode == 0, made.stderr
    for device in ("vulkan", "sim:gfx90a"):
        for n in (7, -1):
            ran = tool(RUN, package, f"--device={device}", "--input=16xf32:value:0.25", f"--input=i32:{n}", f"--output={tmp_path}/x.npy")
            assert f"pid (0, 0, 0) idx (15) x is: (operand 0) 0.25\npid (0, 0, 0) idx () x is: (operand 1) {n}\n" in ran.stdout
            assert ran.returncode == (n < 0)
            assert ("device-side assert failed: n must be positive (kernels.py:304), pid (0, 0, 0) idx ()" in ran.stderr) == (n < 0)


@pytest.mark.parametrize("name", LAUNCHES)
def test_vulkan(tmp_path, driver_parts, name):
    if name not in OF_TILES:
        return check(tmp_path, "vulkan", "vulkan:portable", name)
    return check(tmp_path, "vulkan", "vulkan:lavapipe", name, testing(driver_parts))
