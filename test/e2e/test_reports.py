"""What a package says of its main loops, beside what the vendor's peak rates say of the matrix unit and the simulator's estimate with
the same code running."""

import json
import re
import zipfile

import numpy as np
import pytest

import harness

SIZE = 1024
# Dense f16 operations per cycle of a SIMD's matrix unit: peak over units and clock of AMD's product pages (MI250X 383 T, 220 units, 1.7 GHz;
# MI300X 1307.4 T, 304, 2.1; MI355X 2516.6 T, 256, 2.4; RX 7900 XTX 122.8 T, 96, 2.5; RX 9070 XT 194.6 T, 64, 2.97), by its SIMDs.
OPERATIONS = {"gfx90a": 1024 / 4, "gfx942": 2048 / 4, "gfx950": 4096 / 4, "gfx1100": 512 / 2, "gfx1201": 1024 / 2}
SOURCE = f"""func.func @product(%a: tensor<{SIZE}x{SIZE}xf16>, %b: tensor<{SIZE}x{SIZE}xf16>) -> tensor<{SIZE}x{SIZE}xf16> {{
  %0 = greta.matmul %a, %b {{transpose_b, greta.config = {{tile = [128, 128, 32], waves = 4, gfx950 = {{tile = [256, 256, 64], waves = 8}}, gfx1100 = {{waves = 8}}}}}} : tensor<{SIZE}x{SIZE}xf16>, tensor<{SIZE}x{SIZE}xf16> -> tensor<{SIZE}x{SIZE}xf16>
  return %0 : tensor<{SIZE}x{SIZE}xf16>
}}
"""


@pytest.mark.parametrize("chip", ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"))
def test_main_loop(tmp_path, chip):
    package = harness.compile_package(tmp_path, "product", SOURCE, chip)
    kernel = harness.function_of(package, "product")["variants"][0]["kernels"][0]
    stats = kernel["stats"]
    with zipfile.ZipFile(package) as archive:
        (tmp_path / "k.hsaco").write_bytes(archive.read(kernel["file"]))
    np.random.default_rng(1).standard_normal((SIZE, SIZE)).astype(np.float16).tofile(tmp_path / "x.bin")
    arguments = [f"--arg=in:{tmp_path}/x.bin"] * 2 + [f"--arg=out:{tmp_path}/y.bin:{SIZE * SIZE * 2}"]
    # As many workgroups on a compute unit as its registers and LDS allow.
    waves = kernel["block"][0] // (64 if chip.startswith("gfx9") else 32)
    workgroups = stats["occupancy"] * 4 // waves
    flags = [f"--grid={kernel['grid'][0]}", f"--block={kernel['block'][0]}", "--check=none", "--estimate", f"--cu-workgroups={workgroups}"]
    run = harness.tool(harness.BUILD / "bin" / "greta-sim", tmp_path / "k.hsaco", *flags, *arguments)
    assert run.returncode == 0, run.stderr
    estimated = float(re.search(r"main loop .*matrix units busy ([\d.]+)% of its time", run.stdout)[1]) / 100
    assert abs(stats["loop"]["matrix_share"] - estimated) < 0.1, f"{stats} but {run.stdout}"
    matrix = stats["loop"]["matrix"]
    config = kernel["config"]
    m, n, k = map(int, re.search(r"(\d+)x(\d+)x(\d+)", config["instruction"]).groups())
    # The matrix unit's cycles in a turn of one wave follow from its peak rate, and its share of the time is that of all waves on the SIMD.
    turn, busy = map(float, re.search(r"([\d.]+) cycles each, of them matrix ([\d.]+);", run.stdout).groups())
    assert busy == pytest.approx(matrix * 2 * m * n * k / OPERATIONS[chip], abs=0.1), run.stdout
    on_simd = workgroups * waves / 4
    # Waves begin and end apart: at the ends fewer of them share the unit.
    assert busy * on_simd <= turn * 1.03, f"more than the unit can do: {run.stdout}"
    assert estimated == pytest.approx(busy * on_simd / turn, abs=0.05), run.stdout
    # A turn is whole blocks.
    assert matrix * m * n * k * waves % (config["rows"] * config["columns"] * config["depth"]) == 0, f"{matrix} instructions in {json.dumps(config)}"
    assert f"main loop: {matrix} matrix instructions of {stats['loop']['instructions']}" in harness.tool(harness.RUN, package, "--inspect").stdout
