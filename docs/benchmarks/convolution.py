"""The main loops of convolutions in f16 on AMD chips beside those of GEMMs of the same M, N and K, by the simulator's model: nothing here needs a GPU.

    build/venv/bin/python docs/benchmarks/convolution.py [--csv=FILE] [CHIP...]

The shapes are ResNet-50's 3x3 layers, a strided one, and its first layer, for 32 images. The columns are those of amd_loops.py; `ratio` is the share of time
in which the matrix units are busy in the loop (`busy`), over the GEMM's.
"""

import argparse
import pathlib
import tempfile

from amd_loops import compiled, look, records, simulated

FIELDS = ["date", "commit", "chip", "shape", "kernel", "tile", "matrix", "density", "alu", "vgprs", "spills", "waves_per_simd", "busy", "ratio", "bound"]
CHIPS = ["gfx942", "gfx1100"]
IMAGES = 32
# The dimensions of images and weights in memory's order.
LAYOUTS = {"nhwc": (0, 1, 2, 3), "nchw": (0, 3, 1, 2)}
# Rows and columns, channels, outputs, taps of a side, stride, padding.
SHAPES = [(56, 64, 64, 3, 1, 1), (28, 128, 128, 3, 1, 1), (28, 128, 128, 3, 2, 1), (224, 3, 64, 7, 2, 3)]


def row_of(folder, chip, text, sizes):
    code, kernel, _ = compiled(folder, chip, text)
    launch = [f"--grid={kernel['grid'][0]}", f"--block={kernel['block'][0]}", *(f"--arg=zero:{2 * size}" for size in sizes)]
    tile = "x".join(str(kernel["config"][name]) for name in ("rows", "columns", "depth"))
    row = look(code, chip) | dict(tile=tile) | simulated(code, launch)
    return {name: row[name] for name in FIELDS if name in row}


def rows(chips, folder):
    for chip in chips:
        for extent, channels, outputs, taps, stride, padding in SHAPES:
            positions = (extent + 2 * padding - taps) // stride + 1
            m, n, k = IMAGES * positions**2, outputs, taps**2 * channels
            a, b, c = (f"tensor<{height}x{width}xf16>" for height, width in ((m, k), (n, k), (m, n)))
            gemm = f"func.func @f(%a: {a}, %b: {b}) -> {c} {{\n  %0 = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {c}\n  return %0 : {c}\n}}\n"
            shape = f"{IMAGES}x{extent}x{extent}x{channels} by {outputs}x{taps}x{taps}, stride {stride}"
            peer = dict(shape=shape, kernel="gemm") | row_of(folder, chip, gemm, (m * k, n * k, m * n))
            yield peer
            for layout, order in LAYOUTS.items():
                last = ((IMAGES, extent, extent, channels), (outputs, taps, taps, channels), (IMAGES, positions, positions, outputs))
                x, w, y = ("tensor<" + "x".join(str(shape[dim]) for dim in order) + "xf16>" for shape in last)
                flags = f'strides = {[stride] * 2}, padding = {[padding] * 4}, layout = "{layout}"'
                conv = f"func.func @f(%x: {x}, %w: {w}) -> {y} {{\n  %0 = greta.conv2d %x, %w {{{flags}}} : {x}, {w} -> {y}\n  return %0 : {y}\n}}\n"
                ours = dict(shape=shape, kernel=f"conv2d {layout}") | row_of(folder, chip, conv, (IMAGES * extent**2 * channels, n * k, m * n))
                if peer.get("busy") and ours.get("busy"):
                    ours["ratio"] = round(ours["busy"] / peer["busy"], 3)
                yield ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=CHIPS)
    parser.add_argument("--csv")
    options = parser.parse_args()
    records.build("greta-translate", "greta-sim")
    with tempfile.TemporaryDirectory() as name:
        records.collect(rows(options.chips, pathlib.Path(name)), options.csv, FIELDS)


if __name__ == "__main__":
    main()
