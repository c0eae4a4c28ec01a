"""greta.paged_attention where sequences have numbers of rows of their own: against float64, and bit by bit against each sequence alone."""

import numpy as np
import pytest

import harness
import limits
from attention_ops import Rows

# Kind, type, B, Hq, Hkv, S, T, D.
EVERYTHING = "windowsoftcapsinksi8pergroup"
CASES = {
    "gfx942": [Rows(EVERYTHING, "f16", 5, 4, 2, 180, 200, 64), Rows(EVERYTHING, "f16", 40, 4, 2, 42, 20, 64)],  # of 40 the search looks at sixteenths first
    "gfx1201": [Rows("windowsinks", "f16", 5, 7, 1, 180, 200, 64)],  # a head of the tile is none
    "host": [Rows(EVERYTHING, "f16", 5, 4, 2, 180, 200, 32)],
}
# Lavapipe compiles these kernels for long.
if harness.WHOLE:
    CASES["vulkan:lavapipe"] = [Rows("windowsinks", "f16", 5, 4, 2, 180, 200, 16), Rows(EVERYTHING, "f16", 5, 4, 2, 180, 200, 32)]
    CASES["vulkan:portable"] = [Rows("windowsinks", "f16", 5, 3, 1, 180, 200, 16)]


results, test_case, test_together = harness.suite("attention_rows", CASES.get, CASES)


K = 64  # of the projection
DEVICES = {"vulkan": Rows("plain", "f16", 5, 4, 2, 180, 200, 16), "sim:gfx942": Rows("plain", "f16", 5, 4, 2, 180, 200, 32), "sim:gfx1100": Rows("plain", "f16", 5, 4, 2, 180, 200, 16)}
TARGETS = {"vulkan": "vulkan:lavapipe", "sim:gfx942": "gfx942", "sim:gfx1100": "gfx1100"}


def function(case, name, batch, rows, begins, is_projected):
    """Attention for any number of rows; of queries that a projection computes, with kernels of its own for up to 8."""
    columns = case.hq * case.d
    q, y = f"tensor<{rows}{case.hq}x{case.d}xf16>", f"tensor<?x{columns}xf16>"
    x, w, cache = f"tensor<?x{K}xf16>", f"tensor<{columns}x{K}xf16>", f"tensor<?x16x{case.hkv}x{case.d}xf16>"
    operands = dict(q=q, k=cache, v=cache, table=f"tensor<{batch}x?xi32>", lengths=f"tensor<{batch}xi32>") | ({"begins": "tensor<?xi32>"} if begins else {})
    arguments, before = operands, ""
    if is_projected:
        arguments = dict(x=x, w=w) | {a: t for a, t in operands.items() if a != "q"}
        split, sizes = ("[[0], [1, 2]]", "%n") if begins else ("[[0, 1], [2, 3]]", "1, %n")
        before = f"""  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : {x}
  %y = greta.matmul %x, %w {{transpose_b, greta.batch_invariant, greta.ranges = [8]}} : {x}, {w} -> {y}
  %q = tensor.expand_shape %y {split} output_shape [{sizes}, {case.hq}, {case.d}] : {y} into {q}
"""
    return f"""func.func @{name}({', '.join(f'%{a}: {t}' for a, t in arguments.items())}) -> {q} {{
{before}  %0 = greta.paged_attention %q, %k, %v, %table, %lengths{' begins(%begins)' * begins} {{greta.batch_invariant{', tokens_first' * (not begins)}}} : {', '.join(operands.values())} -> {q}
  return %0 : {q}
}}
"""


@pytest.mark.parametrize("device", [pytest.param(d, marks=harness.group("attention_rows_bits", d)) for d in DEVICES])
def test_bits_of_each_sequence_alone(tmp_path, driver_parts, device):
    """In a launch of its own, with kernels for as many rows, and by the op without `begins`."""
    case, is_projected = DEVICES[device], device == "sim:gfx942"
    is_driver = device == "vulkan"
    if is_driver and "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    names = ("rows", "alone") if harness.WHOLE or not is_driver else ("rows",)
    forms = {"rows": ("?", "?x", True), "alone": ("1", "1x?x", False)}
    package = harness.compile_package(tmp_path, "rows", "".join(function(case, name, *forms[name], is_projected) for name in names), TARGETS[device])
    assert not is_projected or len(harness.function_of(package, "rows")["variants"][0]["ranges"]) == 1
    inputs = case.inputs()
    q, k, v, table, lengths, begins = inputs
    given, weights = q, []
    if is_projected:
        rng = np.random.default_rng(3)
        given, weights = rng.standard_normal((case.s, K)).astype(np.float16), [(rng.standard_normal((case.hq * case.d, K)) / 8).astype(np.float16)]

    def run(name, rows, *rest):
        arrays = [rows, *weights, k, v, *rest]
        for i, array in enumerate(arrays):
            np.save(tmp_path / f"{i}.npy", array)
        launcher = harness.lavapipe_launcher() if is_driver else ()
        done = harness.tool(*launcher, harness.RUN, package, f"--device={device}", f"--function={name}", *(f"--input={tmp_path}/{i}.npy" for i in range(len(arrays))), f"--output={tmp_path}/y.npy")
        assert done.returncode == 0, done.stderr
        return np.load(tmp_path / "y.npy").reshape(-1, case.hq, case.d)

    whole = run("rows", given, table, lengths, begins)
    assert not whole[begins[-1] :].any()
    if not is_projected:
        judged = limits.judge(case, list(case.references(inputs)), [whole], TARGETS[device])
        assert "problem" not in judged, judged
    for n in (2, 4):
        own, one = slice(begins[n], begins[n + 1]), slice(n, n + 1)
        for name in names:
            x = given[own] if is_projected or name == "rows" else given[None, own]
            rest = [np.array([0, own.stop - own.start], np.int32)] * (name == "rows")
            assert run(name, x, table[one], lengths[one], *rest).tobytes() == whole[own].tobytes(), (n, name)
