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


def test_table_of_stable_diffusion():
    """The UNet of Stable Diffusion 1.5 has as many parameters as its published weights, with those of its norms and linear layers, which are no convolutions."""
    every = list(models.stable_diffusion())
    convolutions = sum(one.outputs * (one.taps**2 * one.channels + 1) for one in every)
    # Attention to itself and to a text of width 768, and two linear layers, of which the first is gated; a group norm and three layer norms.
    widths = [one.channels for one in every if one.taps == 1 and one.channels == one.outputs][::2]
    attention = sum(4 * c * c + 2 * c * c + 2 * 768 * c + 12 * c * c + 11 * c + 8 * c for c in widths)
    # A residual block has two group norms, and a linear layer from the time's 1280 numbers.
    outputs = 2 * (320 + 640 + 1280 + 1280) + 2 * 1280 + 3 * (1280 + 1280 + 640 + 320)
    inputs = outputs + sum(one.channels - one.outputs for one in every if one.taps == 1 and one.channels != one.outputs)
    residuals = 2 * (inputs + outputs) + 1281 * outputs
    rest = 321 * 1280 + 1281 * 1280 + 2 * 320  # two linear layers of the time, and the last norm
    assert convolutions + attention + residuals + rest == 859_520_964


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
