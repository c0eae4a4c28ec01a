"""greta.paged_attention where sequences have numbers of rows of their own: against float64, and bit by bit against each sequence alone."""

import numpy as np
import pytest

import harness
from attention_ops import Rows
from harness import check, results_on

# Kind, type, B, Hq, Hkv, S, T, D.
CASES = {
    "gfx942": [Rows("plain", "f16", 5, 4, 2, 180, 200, 64), Rows("windowsoftcapsinks", "bf16", 5, 4, 2, 180, 200, 64), Rows("i8pergroup", "f16", 5, 4, 2, 180, 200, 64)],
    "gfx1100": [Rows("plain", "f16", 5, 4, 2, 180, 200, 64)],
    "gfx1201": [Rows("windowsinks", "f16", 5, 7, 1, 180, 200, 64)],
    "vulkan:lavapipe": [Rows("plain", "f16", 5, 4, 2, 180, 200, 16), Rows("windowsinks", "f16", 5, 4, 2, 180, 200, 16), Rows("i8pergroup", "f16", 5, 4, 2, 180, 200, 32)],
    "vulkan:portable": [Rows("windowsinks", "f16", 5, 3, 1, 180, 200, 16)],
    "host": [Rows("windowsoftcapsinks", "f16", 5, 4, 2, 180, 200, 16), Rows("i8pergroup", "f16", 5, 4, 2, 180, 200, 32)],
}


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """(target, device, launcher) -> results of the cases, compiled and run once."""
    return harness.compiled_once(tmp_path_factory, "attention_rows", CASES.get)


@pytest.mark.parametrize("target, case", harness.grid("attention_rows", CASES.get, *CASES))
def test_rows(results, driver_parts, target, case):
    check(results_on(results, target, driver_parts), case, target=target)


HEADS, SHARED, D, K = 4, 2, 32, 64
DEVICES = {"vulkan": "vulkan:lavapipe", "sim:gfx942": "gfx942", "sim:gfx1100": "gfx1100"}
INVARIANT = "greta.batch_invariant"


def layer(name, batch, rows, begins=""):
    """Queries of a projection, with kernels for up to 8 rows, and their attention."""
    q, y = (f"tensor<{rows}{HEADS}x{D}xf16>", f"tensor<?x{HEADS * D}xf16>")
    x, w, cache = f"tensor<?x{K}xf16>", f"tensor<{HEADS * D}x{K}xf16>", f"tensor<?x16x{SHARED}x{D}xf16>"
    arguments = dict(x=x, w=w, k=cache, v=cache, table=f"tensor<{batch}x?xi32>", lengths=f"tensor<{batch}xi32>") | ({"begins": "tensor<?xi32>"} if begins else {})
    split, sizes = ("[[0], [1, 2]]", f"%n, {HEADS}, {D}") if begins else ("[[0, 1], [2, 3]]", f"1, %n, {HEADS}, {D}")
    operands = ", ".join(f"%{a}" for a in ("q", "k", "v", "table", "lengths"))
    types = ", ".join([q, *[t for a, t in arguments.items() if a not in "xw"]])
    return f"""func.func @{name}({', '.join(f'%{a}: {t}' for a, t in arguments.items())}) -> {q} {{
  %zero = arith.constant 0 : index
  %n = tensor.dim %x, %zero : {x}
  %y = greta.matmul %x, %w {{transpose_b, {INVARIANT}, greta.ranges = [8]}} : {x}, {w} -> {y}
  %q = tensor.expand_shape %y {split} output_shape [{sizes}] : {y} into {q}
  %0 = greta.paged_attention {operands}{begins} {{{INVARIANT}{'' if begins else ', tokens_first'}}} : {types} -> {q}
  return %0 : {q}
}}
"""


@pytest.mark.parametrize("device", [pytest.param(d, marks=harness.group("attention_rows_bits", d)) for d in DEVICES])
def test_bits_of_each_sequence_alone(tmp_path, device):
    """In the same launch and in one of its own, with kernels for as many rows, and those of the op without `begins`."""
    text = layer("rows", "?", "?x", " begins(%begins)") + layer("alone", "1", "1x?x")
    package = harness.compile_package(tmp_path, "rows", text, DEVICES[device])
    # On a CPU its GEMM has one kernel for any number of rows.
    assert device == "vulkan" or len(harness.function_of(package, "rows")["variants"][0]["ranges"]) == 1
    case = Rows("plain", "f16", 5, HEADS, SHARED, 180, 200, D)
    _, *cache, begins = case.inputs()
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((case.s, K)).astype(np.float16), (rng.standard_normal((HEADS * D, K)) / 8).astype(np.float16)

    def run(function, *arrays):
        for i, array in enumerate(arrays):
            np.save(tmp_path / f"{i}.npy", array)
        done = harness.tool(harness.RUN, package, f"--device={device}", f"--function={function}", *(f"--input={tmp_path}/{i}.npy" for i in range(len(arrays))), f"--output={tmp_path}/y.npy")
        assert done.returncode == 0, done.stderr
        return np.load(tmp_path / "y.npy").reshape(-1, HEADS, D)

    k, v, table, lengths = cache
    whole = run("rows", x, w, k, v, table, lengths, begins)
    assert not whole[begins[-1]:].any()
    for n in (0, 2, 4):
        own, one = slice(begins[n], begins[n + 1]), slice(n, n + 1)
        given = x[own], w, k, v, table[one], lengths[one]
        for function, rest in (("rows", [np.array([0, own.stop - own.start], np.int32)]), ("alone", [])):
            assert run(function, *given, *rest).tobytes() == whole[own].tobytes(), (n, function)
