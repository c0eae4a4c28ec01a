"""The table of layers of test/e2e/convolution_layers.py, and the command that computes them beside float64 (docs/benchmarks/convolution_layers.py), on its
smallest layers.
"""

import csv
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "e2e"), str(ROOT / "scripts" / "lib")]
import convolution_layers as models  # noqa: E402
from convolution_layers import Layer  # noqa: E402


def test_table():
    """Models have as many parameters as torchvision says, with two of a batch norm for each output, but a bias where a block squeezes, and the linear layers."""

    def parameters(layers):
        return sum(one.outputs * (one.taps**2 * one.channels // one.groups + (1 if one.extent == 1 else 2)) for one in layers)

    def linear(*widths):
        return sum((inputs + 1) * outputs for inputs, outputs in zip(widths, widths[1:]))

    every = list(models.resnet50())
    assert parameters(every) + linear(2048, 1000) == 25_557_032
    assert parameters(models.mobilenet_v3(models.LARGE)) + linear(960, 1280, 1000) == 5_483_032
    assert parameters(models.mobilenet_v3(models.SMALL)) + linear(576, 1024, 1000) == 2_542_856
    assert every[-1].extent == 7


def test_layers():
    layers = models.layers()
    assert layers[Layer(14, 1024, 2048, stride=2)] == ["ResNet-50"]  # the last shortcut
    assert layers[Layer(1, 120, 32)] == ["MobileNet-v3 large", "MobileNet-v3 small"]  # squeezes
    assert Layer(8, 2560, 1280, taps=3).cut() == Layer(4, 2560, 1280, taps=3)
    assert layers[Layer(4, 2560, 1280, taps=3)] == ["Stable Diffusion"]
    assert max(layer.products() for layer in layers) <= models.MOST


def test_command(tmp_path):
    def run(*options):
        command = [sys.executable, ROOT / "docs/benchmarks/convolution_layers.py", tmp_path / "layers.csv", "--targets=sim:gfx1201", "--jobs=1", *options]
        return subprocess.run(command, capture_output=True, text=True)

    ran = run("--most=200")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with open(tmp_path / "layers.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["layer"], row["models"], row["elements"]) for row in rows] == [
        ("1x1x16 by 8x1x1, stride 1, groups 1", "MobileNet-v3 small", "8"),
        ("1x1x8 by 16x1x1, stride 1, groups 1", "MobileNet-v3 small", "16"),
    ]
    assert all(float(row["euclidean"]) <= 1.25 and not row["problem"] for row in rows)
    # Known rows are not run again, and rows that time does not suffice for are told.
    ran = run("--most=2000", "--seconds=0")
    assert ran.returncode == 1 and ran.stdout.endswith("2 layers, 0 wrong, 2 not run\n"), ran.stdout + ran.stderr
