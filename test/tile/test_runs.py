"""Loads with runs against NumPy: an index that counts in runs, as of rows that lie together in memory. Shapes, strides, offsets, bounds and types are random;
the seed is the test's.
"""

import random

import numpy as np
import pytest

import harness
from greta_runtime import Package, Runtime

ELEMENTS, CASES = 4096, 24
TYPES = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "i8": np.int8}


def places(indices, run, stride, run_stride):
    return indices % run * stride + indices // run * run_stride if run > 1 else indices * stride


def draw(choose, name, wave_size):
    """The kernel, its launch, and where each of its elements lies; None where that is bound off."""
    while True:
        element = choose.choice(list(TYPES))
        rows, columns = (2 ** choose.randint(0, 5) for _ in range(2))
        runs = [2 ** choose.randint(0, 3) for _ in range(2)]
        strides = choose.choice((1, columns, runs[1], 4, 8)), choose.choice((1, 1, 1, 2, rows))
        run_strides = choose.choice((columns, 2 * columns, 16, 32)), choose.choice((runs[1], 2 * runs[1], 8))
        offsets = choose.choice((choose.randint(0, 3) * runs[0], choose.randint(0, 2) * rows)), choose.randint(0, 3) * runs[1]
        bound = choose.choice((None, choose.randint(1, rows + offsets[0])))
        along = [np.arange(extent) + offset for extent, offset in zip((rows, columns), offsets)]
        at = places(along[0], runs[0], strides[0], run_strides[0])[:, None] + places(along[1], runs[1], strides[1], run_strides[1])
        if at.max() < ELEMENTS:
            break
    block = f"tensor<{rows}x{columns}x{element}>"
    text = f"""greta_tile.func @{name}_kernel(%x: !greta_tile.ptr<{element}>, %y: !greta_tile.ptr<{element}>) attributes {{wave_size = {wave_size} : i32, waves = {choose.choice((1, 2, 4))} : i32}} {{
  %zero = arith.constant 0 : i32
  %i = arith.constant {offsets[0]} : i32
  %j = arith.constant {offsets[1]} : i32
  %bound = arith.constant {bound or 0} : i32
  %0 = greta_tile.load %x[%i, %j] strides [{strides[0]}, {strides[1]}] bounds {"[0](%bound)" if bound else "[]"} {{runs = array<i64: {runs[0]}, {runs[1]}>, run_strides = array<i64: {run_strides[0]}, {run_strides[1]}>}} : <{element}> -> {block}
  greta_tile.store %0, %y[%zero, %zero] strides [{columns}, 1] bounds [] : {block} -> <{element}>
  greta_tile.return
}}
func.func @{name}(%x: tensor<{ELEMENTS}x{element}>) -> {block} attributes {{greta.symbols = [], greta.shapes = [[{ELEMENTS}], [{rows}, {columns}]]}} {{
  %0 = greta_tile.launch @{name}_kernel grid affine_map<() -> (1)> scalars affine_map<() -> ()>(%x) shapes [affine_map<() -> ({rows}, {columns})>] : (tensor<{ELEMENTS}x{element}>) -> {block}
  return %0 : {block}
}}
"""
    is_read = along[0][:, None] < (bound or rows + offsets[0])
    return text, TYPES[element], np.where(is_read, at, -1)


@pytest.mark.parametrize("target, device, wave_size", [("gfx942", "sim:gfx942", 64), ("gfx1100", "sim:gfx1100", 32), ("vulkan:portable", "vulkan", 1)])
def test_loads_with_runs(tmp_path, target, device, wave_size):
    choose = random.Random(3)
    cases = {f"case{number}": draw(choose, f"case{number}", wave_size) for number in range(CASES)}
    package = harness.compile_package(tmp_path, "runs", "".join(text for text, _, _ in cases.values()), target)
    runtime = Runtime(device)
    opened = Package(runtime, package)
    try:
        for name, (text, element, at) in cases.items():
            x = (np.arange(ELEMENTS) * 37 % 2039 % 251 - 125).astype(element)
            function = opened.function(name)
            (y,) = function(x)
            function.destroy()
            assert np.array_equal(y, np.where(at < 0, 0, x[at])), text
    finally:
        runtime.close()
