"""greta-tune on the virtual Radeon: times are the model's of what RADV compiles, one launch each, and entries say so."""

import json
import re

import pytest

import harness
from radeon import fresh, launcher

TUNE = harness.BUILD / "bin" / "greta-tune"
GEMM = """func.func @product(%a: tensor<{n}x{n}xf16>, %b: tensor<{n}x{n}xf16>) -> tensor<{n}x{n}xf16> {{
  %0 = greta.matmul %a, %b {{transpose_b}} : tensor<{n}x{n}xf16>, tensor<{n}x{n}xf16> -> tensor<{n}x{n}xf16>
  return %0 : tensor<{n}x{n}xf16>
}}
"""


@pytest.fixture
def tune(tmp_path, driver_parts):
    def run(chip, mesa, target, size, *flags, **variables):
        source, database = tmp_path / "product.mlir", tmp_path / "db.json"
        source.write_text(GEMM.format(n=size))
        ran = harness.tool(*launcher(driver_parts, chip, mesa), TUNE, source, f"--targets={target}", "-o", database, *flags, env=fresh(tmp_path, **variables))
        assert ran.returncode == 0, ran.stderr
        return json.loads(database.read_text())["entries"], ran.stderr

    return run


def test_tunes_by_the_model(tune):
    """Results are compared, times repeat, and work is taken up again."""
    (entry,), said = tune("phoenix", "backports", "vulkan:rdna3", 128, "--candidates=2", '--also={"tile": [64, 48, 32], "waves": 64}')
    assert re.fullmatch(r"estimate: .*RADV PHOENIX\), radv Mesa 25.*", entry["device"])
    times = [candidate.get("us") for candidate in entry["candidates"]]
    assert all(time > 0 for time in times[:2]) and "does not fit" in entry["candidates"][2]["rejected"]
    (more,), said = tune("phoenix", "backports", "vulkan:rdna3", 128, "--candidates=3")
    assert "3 candidates, 2 known" in said and more["candidates"][:3] == entry["candidates"]
    (anew,), _ = tune("phoenix", "backports", "vulkan:rdna3", 128, "--candidates=2", "--restart")
    assert [candidate["us"] for candidate in anew["candidates"]] == times[:2]


def test_tunes_large_sizes_by_estimates_alone(tune):
    """Nothing is compared, and the entry is the testing Mesa's on another chip."""
    (entry,), _ = tune("gfx1201", "testing", "vulkan:rdna4", 1024, "--candidates=2", GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY="1")
    assert entry["device"].startswith("estimate: ") and "GFX1201" in entry["device"] and "Mesa 26" in entry["device"]
    assert all(candidate["us"] > 1 for candidate in entry["candidates"])
