"""Formats of packed weights against float64: products with few and with many rows, and kernels that unpack, on the simulated AMD chips with all
their checks, on testing's lavapipe (cooperative matrices) under its validation layer, on this machine's Vulkan driver, and on the CPU.
"""

import numpy as np
import pytest

import harness
import weights
from harness import AMD_CHIPS, AMD_FAMILIES

TARGETS = ("vulkan:portable", "vulkan:lavapipe", "host", *AMD_CHIPS)


def features(case):
    """Its format and use, with few rows or with many, in bf16 or not, its group and the result's type."""
    return {(case.format, case.use, case.m > 16, case.element == "bf16"), case.group, case.dtype}


def chosen_for(target):
    """A CDNA and an RDNA family take each format with few rows and with many, alone and of each group; the CPU takes half of the cases, and Vulkan's two, whose
    drivers compile for a CPU, a third together, and IQ4_NL's single rows as well: its numbers are computed there, and looked up elsewhere."""
    if target in AMD_FAMILIES:
        return harness.spread(weights.CASES, target, features)
    chosen = harness.share_of(weights.CASES, target, {"host": 2, **dict.fromkeys(harness.CPU_DRIVERS, 6)}.get(target, 3))
    computed = [case for case in weights.CASES if target in harness.CPU_DRIVERS and case.format == "iq4nl" and case.m == 1]
    return chosen + [case for case in computed if case not in chosen]


results, test_case, test_together = harness.suite("weights", chosen_for, TARGETS, harness.one_kernel, in_units=False)


Q, S = "tensor<384x64xi32>", "tensor<3x2xf32>"
WEIGHTS = f'%w = greta.dequant %q, %s {{format = "e4m3_block", group = 128}} : {Q}, {S} -> tensor<384x256xf16>'


def behind_shared_scales(name, others, result, *body):
    lines = "\n".join(f"  {line}" for line in (WEIGHTS, *body))
    return f"func.func @{name}(%x: tensor<5x256xf16>, %q: {Q}, %s: {S}{others}) -> {result} {{\n{lines}\n  return %r : {result}\n}}\n"


def grouped(name, groups, columns):
    b, y, o = f"tensor<{groups}x{columns}x256xf16>", f"tensor<5x{columns}xf16>", f"tensor<{groups + 1}xi32>"
    expand = f"%b = tensor.expand_shape %w [[0, 1], [2]] output_shape [{groups}, {columns}, 256] : tensor<384x256xf16> into {b}"
    return behind_shared_scales(name, f", %o: {o}", y, expand, f"%r = greta.grouped_matmul %x, %b, %o {{transpose_b}} : tensor<5x256xf16>, {b}, {o} -> {y}")


PRODUCT = "%y = greta.matmul %x, %w {transpose_b} : tensor<5x256xf16>, tensor<384x256xf16> -> tensor<5x384xf16>"
HEADS, ANGLES, HALF = "tensor<5x6x64xf16>", "tensor<5x32xf32>", "tensor<5x192xf16>"
# Name: kernels, the function, its inputs behind the weights'.
SHARED = {
    "rope": (  # columns that share scales are no heads
        2,
        behind_shared_scales(
            "rope",
            f", %cos: {ANGLES}, %sin: {ANGLES}",
            HEADS,
            PRODUCT,
            f"%h = tensor.expand_shape %y [[0], [1, 2]] output_shape [5, 6, 64] : tensor<5x384xf16> into {HEADS}",
            f'%r = greta.rope %h, %cos, %sin {{style = "neox"}} : {HEADS}, {ANGLES}, {ANGLES} -> {HEADS}',
        ),
        ["5x32xf32:random:2", "5x32xf32:random:3"],
    ),
    "halves": (  # nor are they sliced
        2,
        behind_shared_scales(
            "halves",
            "",
            HALF,
            PRODUCT,
            f"%a = tensor.extract_slice %y[0, 0] [5, 192] [1, 1] : tensor<5x384xf16> to {HALF}",
            f"%b = tensor.extract_slice %y[0, 192] [5, 192] [1, 1] : tensor<5x384xf16> to {HALF}",
            f"%r = greta.swiglu %a, %b : {HALF}, {HALF} -> {HALF}",
        ),
        [],
    ),
    "grouped": (1, grouped("grouped", 3, 128), [[0, 2, 2, 5]]),
    "uneven": (2, grouped("uneven", 4, 96), [[0, 1, 3, 3, 5]]),  # groups that share scales are unpacked before
}


@pytest.mark.parametrize("device, target", [("sim:gfx942", "gfx942"), ("sim:gfx1201", "gfx1201"), ("vulkan", "vulkan:lavapipe")])
@pytest.mark.parametrize("name", SHARED)
def test_rows_that_share_scales(tmp_path, device, target, name):
    kernels, text, others = SHARED[name]
    package = harness.compile_package(tmp_path, name, text, f"{target},host")
    assert len(harness.function_of(package, name)["variants"][0]["kernels"]) == kernels
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0x20, 0x60, (384, 256), np.uint8).view(np.int32), rng.uniform(0.001, 0.1, (3, 2)).astype(np.float32)]
    inputs = ["--input=5x256xf16:random:1"]
    for i, given in enumerate([*arrays, *others]):
        if not isinstance(given, str):
            np.save(tmp_path / f"{i}.npy", np.asarray(given, getattr(given, "dtype", np.int32)))
            given = f"{tmp_path}/{i}.npy"
        inputs.append(f"--input={given}")
    done = harness.tool(harness.RUN, package, f"--device={device}", f"--function={name}", "--check", *inputs)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]


# Format, rope's style, rows, heads, their size; tile, waves and slice. Parts of heads from 8 columns of each half up, one slice or several, heads of no power of two.
PARTS_OF_HEADS = [
    ("gfx942", "q4_0_interleaved", "neox", 33, 2, 128, (48, 16, 128), 2, 64),
    ("gfx942", "q4_k_interleaved", "gptj", 8, 2, 64, (16, 32, 64), 1, 64),
    ("gfx1100", "q4_k", "neox", 17, 3, 64, (32, 32, 128), 2, 64),
    ("gfx1201", "q6_k", "neox", 9, 2, 80, (16, 16, 256), 4, 64),
]


@pytest.mark.parametrize("chip, form, style, m, heads, d, tile, waves, piece", PARTS_OF_HEADS)
def test_parts_of_heads(tmp_path, chip, form, style, m, heads, d, tile, waves, piece):
    """Rope and the cache's update in the kernel of a product whose tiles are parts of heads, and rope in a kernel of its own that stores keys in the cache: the
    same numbers, but for one rounding of rope's two products."""
    case = weights.Weights(form.replace("_", ""), "product", 16 if form == "q6_k" else 32, m, heads * d, 256, "f16")
    config = f"{{transpose_b, greta.config = {{instruction = [16, 16, 16], tile = {list(tile)}, waves = {waves}, stages = 0, slice = {piece}}}}}"
    whole, table = f"tensor<{m}x{heads}x{d}xf16>", f"tensor<{m}x{d // 2}xf32>"
    text = case.spec.mlir(case, chip).replace("{transpose_b}", config)
    head, body = text.split(") -> ", 1)
    y, body = body.split(" {", 1)
    cache = f"tensor<3x16x{heads}x{d}xf16>"
    arguments = f", %cos: {table}, %sin: {table}, %cache: {cache}, %slots: tensor<{m}xi32>"
    text = f"{head}{arguments}) -> {cache} {{" + body[: body.index("  return")] + f"""  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [{m}, {heads}, {d}] : {y} into {whole}
  %2 = greta.rope %1, %cos, %sin {{style = "{style}"}} : {whole}, {table}, {table} -> {whole}
  %3 = greta.paged_kv_update %cache, %2, %slots : {cache}, {whole}, tensor<{m}xi32> -> {cache}
  return %3 : {cache}
}}"""
    apart = harness.compile_package(tmp_path, "apart", text, chip)
    pipeline = f"builtin.module(func.func(greta-fuse{{parts-of-heads=true}},greta-configure{{target={chip}}}),greta-to-tile)"
    made = harness.tool(harness.RUN.with_name("greta-opt"), tmp_path / "apart.mlir", f"--pass-pipeline={pipeline}")
    assert made.returncode == 0, made.stderr[:4000]
    together = harness.compile_package(tmp_path, "together", made.stdout, chip)
    kernels = [len(harness.function_of(package, case.name)["variants"][0]["kernels"]) for package in (apart, together)]
    assert kernels == [2, 1]
    angles = np.random.default_rng(1).uniform(0, 6, (m, d // 2))
    # The last token has no slot, and rows that no token has stay as they are.
    slots = np.random.default_rng(2).permutation(48)[:m].astype(np.int32)
    slots[-1] = -1
    old = np.full((3, 16, heads, d), 7, np.float16)
    inputs = []
    for i, array in enumerate([*case.inputs(), np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32), old, slots]):
        np.save(tmp_path / f"{i}.npy", array)
        inputs.append(f"--input={tmp_path}/{i}.npy")
    results = []
    for package in (apart, together):
        done = harness.tool(harness.RUN, package, f"--device=sim:{chip}", f"--function={case.name}", *inputs, f"--output={tmp_path}/y.npy")
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
        results.append(np.load(tmp_path / "y.npy").reshape(48, -1).astype(np.float64))
        assert sorted(np.flatnonzero((results[-1] != 7).any(1))) == sorted(slots[:-1])
    # The least distance of two f16, or what f32 leaves of the terms.
    most = np.spacing(np.abs(results[0]).astype(np.float16)).astype(np.float64) + 2.0**-22 * np.abs(results[0]).max()
    assert (np.abs(results[0] - results[1]) <= most).all() and np.abs(results[0]).max() > 0.1


@pytest.mark.parametrize("device, target", [("sim:gfx942", "gfx942"), ("sim:gfx950", "gfx950"), ("sim:gfx1201", "gfx1201"), ("vulkan", "vulkan:lavapipe")])
def test_scales_that_are_no_numbers(tmp_path, device, target):
    """Weights are rounded to bf16 by adding to their bits, which must not carry a NaN of all ones to a zero. An infinity may give NaN."""
    case = next(c for c in weights.CASES if (c.format, c.use, c.m, c.dtype) == ("q40", "product", 33, "bf16"))
    package = harness.compile_package(tmp_path, "nan", case.spec.mlir(case, target), target)
    a, q, scales = case.inputs()
    scales.view(np.uint16)[[3, 4, 5], [0, 1, 2]] = 0x7FFF, 0xFFFF, 0x7C00
    inputs = []
    for i, array in enumerate((a.view(np.uint16), q, scales)):
        np.save(tmp_path / f"{i}.npy", array)
        inputs.append(f"--input={'' if i else 'bf16:'}{tmp_path}/{i}.npy")
    done = harness.tool(harness.RUN, package, f"--device={device}", f"--function={case.function}", *inputs, f"--output={tmp_path}/y.npy")
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-1000:]
    exponents = np.load(tmp_path / "y.npy") & 0x7F80
    assert (exponents[:, 3:6] == 0x7F80).all() and (np.delete(exponents, (3, 4, 5), 1) < 0x7F80).all()
