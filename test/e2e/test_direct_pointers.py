"""Loads through blocks of pointers that go straight to shared memory, on gfx950 as it is simulated, with all checks: rows and columns that wrap around, a K that no tile divides."""

import re

import harness
import numpy as np
import pytest
from programs import TEXTS

AS_ROWS = {
    "%b, %b_rows :": "%b, %depth_down :",
    "%b_columns = greta_tile.broadcast %columns_right": "%k_right = greta_tile.splat %k : tensor<1x64xi32>\n  %b_right = arith.muli %columns_right, %k_right : tensor<1x64xi32>\n  %b_columns = greta_tile.broadcast %b_right",
    "%step_b = greta_tile.splat %n32": "%step_b = greta_tile.splat %c32",
    "-> (k, n)>": "-> (n, k)>",
}


def program(stages):
    """test/tile/matmul_pointers.mlir with the promises of a launch, B as [N, K], and a loop that says how it loads."""
    text = (TEXTS / "matmul_pointers.mlir").read_text()
    text = re.sub(r"(%[ab]: !greta_tile.ptr<f16>)", r"\1 {greta.divisibility = 16 : i64, greta.pointer_range}", text, count=2)
    text = re.sub(r"(%[mnk]: i32)", r"\1 {greta.divisibility = 8 : i64}", text, count=3)
    text = re.sub(r"(%[ab]: tensor<\?x\?xf16>)", r"\1 {greta.pointer_range}", text).replace("} {greta.shape", ", greta.shape")
    for before, after in AS_ROWS.items():
        assert before in text, before
        text = text.replace(before, after)
    pipeline = f"#greta_tile.pipeline<stages = {stages}, slice = 16, direct = 16>"
    return re.sub(r"(scf\.yield %next.*?\n  \})", rf"\1 {{greta_tile.pipeline = {pipeline}}}", text, count=1, flags=re.S)


@pytest.mark.parametrize("stages, m, k, n", [(2, 100, 104, 72), (3, 40, 232, 136), (2, 64, 8, 64)])
def test_numbers(tmp_path, stages, m, k, n):
    package = harness.compile_package(tmp_path, "direct", program(stages), "gfx950")
    code = harness.tool(harness.TRANSLATE, "--greta-to-amdgcn", "--target=gfx950", tmp_path / "direct.mlir")
    assert len(re.findall(r"buffer_load_dwordx4 .* lds", code.stdout)) >= 2 * (stages + 1), code.stderr
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    inputs = []
    for name, value in dict(a=a, b=b).items():
        np.save(tmp_path / f"{name}.npy", value)
        inputs.append(f"--input={tmp_path}/{name}.npy")
    ran = harness.tool(harness.RUN, package, "--device=sim:gfx950", *inputs, f"--output={tmp_path}/c.npy")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a.astype(float) @ b.astype(float).T, 2e-3, 2e-2)
