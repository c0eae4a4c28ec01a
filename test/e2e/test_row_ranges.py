"""GEMMs with a dynamic M that have kernels for ranges of it, on both sides of each range's ends: compared with the function's meaning on the CPU, and, where a row's numbers may not depend on M, bit by bit. On lavapipe and on simulated AMD chips."""

import numpy as np
import pytest

import harness

N, K = 96, 256
ENDS = (1, 8, 64)
ROWS = (0, 1, 2, 8, 9, 64, 65)
DEVICES = {"vulkan": "vulkan:lavapipe", "sim:gfx942": "gfx942", "sim:gfx1100": "gfx1100", "sim:gfx1201": "gfx1201"}


def function(name, arguments, result, body):
    parameters = ", ".join(f"%{letter}: tensor<{t}>" for letter, t in zip("abcdefg", arguments))
    lines = "\n".join(f"  {line}" for line in body)
    return f"func.func @{name}({parameters}) -> tensor<{result}> {{\n{lines}\n  return %r : tensor<{result}>\n}}\n"


def gemm(a, b, r, attributes="transpose_b", names="%a, %b", result="%r"):
    comma = ", " if attributes else ""
    ranges = f"greta.ranges = [{', '.join(map(str, ENDS))}]"
    return f"{result} = greta.matmul {names} {{{attributes}{comma}{ranges}}} : tensor<{a}>, tensor<{b}> -> tensor<{r}>"


def rows_of(dtype, k=K):
    return f"?x{k}x{dtype}"


X, Y, W = rows_of("f16"), rows_of("f16", N), f"{N}x{K}xf16"
SQUARE = f"{K}x{K}xf16"
# Name, the arguments' types, the result's, the body.
FUNCTIONS = {
    "plain": ([X, W], Y, [gemm(X, W, Y)]),
    "columns": (
        [rows_of("f32"), f"{K}x{N}xf32", rows_of("f32", N)],
        rows_of("f32", N),
        [gemm(rows_of("f32"), f"{K}x{N}xf32", rows_of("f32", N), "", result="%0"), f"%r = arith.addf %0, %c : tensor<{rows_of('f32', N)}>"],
    ),
    "packed": (
        [X, f"{N}x{K // 8}xi32", f"{N}x{K // 128}xf16"],
        Y,
        [f"%w = greta.dequant %b, %c {{group = 128}} : tensor<{N}x{K // 8}xi32>, tensor<{N}x{K // 128}xf16> -> tensor<{W}>", gemm(X, W, Y, names="%a, %w")],
    ),
    "layer": (
        [X, f"{K}xf16", SQUARE, SQUARE],
        X,
        [
            f"%0 = greta.rms_norm %a, %b {{eps = 1.0e-5 : f32}} : tensor<{X}>, tensor<{K}xf16> -> tensor<{X}>",
            gemm(X, SQUARE, X, names="%0, %c", result="%1"),
            gemm(X, SQUARE, X, names="%1, %d", result="%2"),
            f"%r = arith.addf %2, %a : tensor<{X}>",
        ],
    ),
    # Queries beside a cache of keys: few of them take kernels of their own.
    "attention": (
        ["2x4x?x16xf16", "2x2x50x16xf16", "2x2x50x16xf16"],
        "2x4x?x16xf16",
        [f"%r = greta.attention %a, %b, %c {{causal, greta.ranges = [{', '.join(map(str, ENDS))}]}} : tensor<2x4x?x16xf16>, tensor<2x2x50x16xf16>, tensor<2x2x50x16xf16> -> tensor<2x4x?x16xf16>"],
    ),
    "grouped": (
        [X, f"4x{W}", "5xi32"],
        Y,
        [f"%r = greta.grouped_matmul %a, %b, %c {{transpose_b, greta.ranges = [{', '.join(map(str, ENDS))}]}} : tensor<{X}>, tensor<4x{W}>, tensor<5xi32> -> tensor<{Y}>"],
    ),
    "batch": ([f"?x?x{K}xf16", W], f"?x?x{N}xf16", [gemm(f"?x?x{K}xf16", W, f"?x?x{N}xf16")]),
}


def functions_for(device):
    """gfx942 and Vulkan take all; LLVM takes longer for RDNA, whose two share them. GRETA_TEST_WHOLE=1: both take all."""
    rdna = "sim:gfx1100", "sim:gfx1201"
    return [*FUNCTIONS] if harness.WHOLE or device not in rdna else [*FUNCTIONS][rdna.index(device) :: 2]


@pytest.fixture(scope="session")
def package_for(tmp_path_factory):
    made = {}

    def package(device):
        if device not in made:
            text = "".join(function(name, *FUNCTIONS[name]) for name in functions_for(device))
            made[device] = harness.compile_package(tmp_path_factory.mktemp("ranges"), "ranges", text, f"{DEVICES[device]},host")
        return made[device]

    return package


def ranges_of(package, name):
    return [r["when"] for r in harness.function_of(package, name)["variants"][0]["ranges"]]


@pytest.mark.parametrize("device, name", [pytest.param(d, name, marks=harness.group("ranges", d)) for d in DEVICES for name in functions_for(d)])
def test_rows_on_both_sides(package_for, name, device):
    package = package_for(device)
    ranges = ranges_of(package, name)
    # The last range may have the choice for any M, and is then left out.
    assert ranges[0][0][1:] in ([1, 1], [1, 8]) and ranges[-1][0][2] in ENDS[1:]
    assert all(when[0][0] == (["*", "d0", "d1"] if name == "batch" else "d0") for when in ranges)
    for rows in ROWS:
        # Two of a batch where that makes as many rows.
        batch = 2 if rows % 2 == 0 else 1
        leading = f"{batch}x{rows // batch}" if name == "batch" else str(rows)
        scales = {f"{N}x{K // 128}xf16": "value:0.25", "5xi32": "value:50"}  # offsets: the first 50 rows are the first group's
        inputs = [f"--input={t.replace('?x?', leading).replace('?', leading)}:{scales.get(t, f'random:{seed}')}" for seed, t in enumerate(FUNCTIONS[name][0])]
        done = harness.tool(harness.RUN, package, f"--device={device}", f"--function={name}", "--check", *inputs)
        assert done.returncode == 0, f"M = {rows}: {done.stdout[-1000:]} {done.stderr[-1000:]}"


DEPTH = 512  # so that parts along K would be worth it
INVARIANT = "greta.batch_invariant, greta.ranges = [1, 64]"
A, WEIGHTS, OUT = f"tensor<?x{DEPTH}xf16>", f"tensor<{N}x{DEPTH}xf16>", f"tensor<?x{N}xf16>"
# Name: the other arguments, what comes before the GEMM, the GEMM.
INVARIANTS = {
    "packed": (
        [f"tensor<{N}x{DEPTH // 8}xi32>", f"tensor<{N}x{DEPTH // 128}xf16>"],
        f"%w = greta.dequant %b0, %b1 {{group = 128}} : tensor<{N}x{DEPTH // 8}xi32>, tensor<{N}x{DEPTH // 128}xf16> -> {WEIGHTS}",
        f"greta.matmul %x, %w {{transpose_b, {INVARIANT}}} : {A}, {WEIGHTS} -> {OUT}",
    ),
    "normed": (
        [f"tensor<{DEPTH}xf16>", WEIGHTS],
        f"%n = greta.rms_norm %x, %b0 {{eps = 1.0e-5 : f32}} : {A}, tensor<{DEPTH}xf16> -> {A}",
        f"greta.matmul %n, %b1 {{transpose_b, {INVARIANT}}} : {A}, {WEIGHTS} -> {OUT}",
    ),
    "grouped": ([f"tensor<4x{N}x{DEPTH}xf16>", "tensor<5xi32>"], "", f"greta.grouped_matmul %x, %b0, %b1 {{transpose_b, {INVARIANT}}} : {A}, tensor<4x{N}x{DEPTH}xf16>, tensor<5xi32> -> {OUT}"),
    "f32": ([WEIGHTS.replace("f16", "f32")], "", f"greta.matmul %x, %b0 {{transpose_b, {INVARIANT}}} : {A}, {WEIGHTS} -> {OUT}".replace("f16", "f32")),
}


@pytest.mark.parametrize("device", [pytest.param(d, marks=harness.group("ranges", d)) for d in DEVICES])
def test_batch_invariant(tmp_path, device):
    """One row and 33 have the bits that they have among 66."""
    # LLVM takes seconds for each of them on RDNA, and lavapipe's as well.
    some = {"vulkan": ("normed", "f32"), "sim:gfx1100": ("packed",), "sim:gfx1201": ("normed",)}
    functions = {name: what for name, what in INVARIANTS.items() if harness.WHOLE or name in some.get(device, INVARIANTS)}
    text = ""
    for name, (others, before, gemm) in functions.items():
        a, out = (t.replace("f16", "f32") if name == "f32" else t for t in (A, OUT))
        parameters = ", ".join([f"%x: {a}", *(f"%b{i}: {t}" for i, t in enumerate(others))])
        text += f"func.func @{name}({parameters}) -> {out} {{\n  {before}\n  %r = {gemm}\n  return %r : {out}\n}}\n"
    package = harness.compile_package(tmp_path, "invariant", text, DEVICES[device])
    rng, most = np.random.default_rng(7), 66
    for name, (others, _, _) in functions.items():
        assert ranges_of(package, name)
        element = np.float32 if name == "f32" else np.float16
        x = rng.standard_normal((most, DEPTH)).astype(element)
        arguments = []
        for other in others:
            *shape, kind = other[len("tensor<"):-1].split("x")
            shape = tuple(map(int, shape))
            arguments.append(rng.integers(-(2**31), 2**31, shape).astype(np.int32) if kind == "i32" else (rng.standard_normal(shape) / 16).astype(element))

        def run(rows):
            np.save(tmp_path / "x.npy", x[:rows])
            for i, argument in enumerate(arguments):
                np.save(tmp_path / f"{i}.npy", np.minimum([0, 3, 5, 30, most], rows).astype(np.int32) if argument.shape == (5,) else argument)
            done = harness.tool(harness.RUN, package, f"--device={device}", f"--function={name}", f"--input={tmp_path}/x.npy", *(f"--input={tmp_path}/{i}.npy" for i in range(len(arguments))), f"--output={tmp_path}/y.npy")
            assert done.returncode == 0, done.stderr
            return np.load(tmp_path / "y.npy")

        whole = run(most)
        for rows in (1, 33):
            assert run(rows).tobytes() == whole[:rows].tobytes(), (name, rows)
