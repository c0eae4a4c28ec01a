"""NumPy's views as kernels' arguments: any strides are right where the kernel takes them, and what has no strides in elements is an error."""

import os
import subprocess
import sys

import numpy as np
import pytest

import greta

pytest.importorskip("triton")

import greta.language as tl  # noqa: E402


@greta.jit
def copy(x, out, rows, columns, x_row, x_column, out_row, out_column, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < columns)
    tl.store(out + i * out_row + j * out_column, tl.load(x + i * x_row + j * x_column, mask=inside), mask=inside)


def run(x, out):
    assert x.shape == out.shape
    copy[1,](x, out, *x.shape, *(s // x.itemsize for s in x.strides), *(s // out.itemsize for s in out.strides), BLOCK=16)


def matrix():
    return np.arange(120, dtype=np.float32).reshape(12, 10)


def of_a_struct():
    pairs = np.zeros((12, 10), dtype=[("a", "i4"), ("b", "f4")])
    pairs["b"] = matrix()
    return pairs["b"]


VIEWS = {
    "flipped": lambda: matrix()[::-1, ::-1],
    "flipped_rows": lambda: matrix()[9:2:-1],
    "every_third_backwards": lambda: matrix()[:, ::-3],
    "transposed": lambda: matrix().T,
    "sliced": lambda: matrix()[3:7, 2:5],
    "one_row": lambda: np.broadcast_to(matrix()[3], (12, 10)),
    "one_column": lambda: np.broadcast_to(matrix()[:, 3:4], (12, 10)),
    "windows": lambda: np.lib.stride_tricks.sliding_window_view(matrix().ravel(), 7)[:16],
    "backwards_by_as_strided": lambda: np.lib.stride_tricks.as_strided(matrix()[11], (12, 10), (-40, 4)),
    "of_a_struct": of_a_struct,
    "real_parts": lambda: (matrix() * (1 + 2j)).astype(np.complex64).real,
    "of_bytes": lambda: np.frombuffer(matrix().tobytes(), np.float32).reshape(12, 10),
    "nothing": lambda: matrix()[:, :0][::-1],
}


@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942", "sim:gfx1100"))
@pytest.mark.parametrize("name", VIEWS)
def test_views(name, device):
    greta.set_device(device)
    x = VIEWS[name]()
    out = np.full(x.shape, -1, np.float32)
    run(x, out)
    assert (out == x).all()
    if not x.flags.writeable:
        with pytest.raises(ValueError, match="argument 'out' is read-only, and the kernel writes to it"):
            run(out, x)
    elif name != "windows":
        run(np.negative(out), x)
        assert (x == -out).all()


def test_what_lies_around_a_view_stays():
    greta.set_device("sim:gfx942")
    whole, want = matrix(), matrix()
    want[8:2:-1, 7:1:-1] = 5
    run(np.full((6, 6), 5, np.float32), whole[8:2:-1, 7:1:-1])
    assert (whole == want).all()


def test_views_without_strides_in_elements():
    greta.set_device("sim:gfx942")
    out = np.zeros((12, 10), np.float32)
    with pytest.raises(greta.Error, match="an array of '>f4' has its bytes in the other order"):
        run(matrix().astype(">f4"), out)
    packed = np.zeros((12, 10), dtype=[("a", "i1"), ("b", "f4")])
    with pytest.raises(greta.Error, match=r"elements of 4 bytes do not lie at multiples of 4 bytes \(strides \(50, 5\)\); pass a copy"):
        run(packed["b"], out)
    with pytest.raises(greta.Error, match="do not lie at multiples of 4 bytes"):
        run(out, np.zeros(481, np.uint8)[1:].view(np.float32).reshape(12, 10))


def test_checks_and_negative_strides():
    """Bounds are from an argument's first element on: what lies before it is not taken for a mistake."""
    program = """
import sys, numpy as np, greta
sys.path.insert(0, sys.argv[1])
from test_triton_views import matrix, run
greta.set_device("sim:gfx942")
out = np.zeros((12, 10), np.float32)
run(matrix().T.copy().T, out)
assert (out == matrix()).all()
run(matrix()[::-1], out)
"""
    done = subprocess.run([sys.executable, "-c", program, os.path.dirname(__file__)], env=os.environ | {"GRETA_CHECK": "1"}, capture_output=True, text=True)
    assert "ValueError: argument 'x' has elements before its first one, by a negative stride, and GRETA_CHECK checks from there on; pass a copy, x.copy()" in done.stderr, done.stderr
