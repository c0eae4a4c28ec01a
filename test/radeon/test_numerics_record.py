"""docs/benchmarks/numerics.py on virtual cards. Its case is one that was wrong there: Mesa 26 multiplies by halves of scalar registers, of which the simulator took the low one always."""

import csv
import shlex
import sys

import pytest

import harness
import registry
from radeon import fresh, launcher

BENCHMARKS = harness.ROOT / "docs" / "benchmarks"
SMALL, LARGE = "row_norm_matmul_f16_7_3", "row_norm_matmul_f16_1000_3"


@pytest.mark.parametrize("chip, target", [("phoenix", "vulkan:rdna3"), ("gfx1201", "vulkan:rdna4")])
def test_errors_are_recorded(tmp_path, driver_parts, monkeypatch, chip, target):
    words = launcher(driver_parts, chip, "testing")
    monkeypatch.syspath_prepend(BENCHMARKS)
    import numerics

    small, large = map(registry.by_name, (SMALL, LARGE))
    monkeypatch.setattr(numerics, "chosen", lambda: {"norm": [small, large]})
    numerics.write(tmp_path, target, numerics.work(small))
    assert SMALL in (tmp_path / "numerics.json").read_text() and LARGE not in (tmp_path / "numerics.json").read_text()
    (tmp_path / "commit").write_text("0000000")
    table = tmp_path / "errors.csv"
    ran = harness.tool(sys.executable, BENCHMARKS / "numerics.py", tmp_path, table, f"--launcher={shlex.join(map(str, words))}", env=fresh(tmp_path))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = list(csv.DictReader(table.read_text().splitlines()))
    variant = target.replace(":", "-")
    assert {row["variant"] for row in rows} == {variant, f"{variant}-coopmat"}
    assert all(row["failed"] == "0" and "RADV" in row["gpu"] and row["commit"] == "0000000" for row in rows)
