"""Comparisons of integers extended to 64 bits with constants, as masks of loads in a loop: every predicate, extended with and without sign."""

import numpy as np
import pytest

import greta
from greta import _compiler

ROWS, TURNS = 16, 2
PREDICATES = {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sle": np.less_equal, "sgt": np.greater, "sge": np.greater_equal}
PREDICATES |= {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}
# Within 32 bits with and without sign, at their ends, and beyond.
BOUNDS = (0, 3, -3, 2**31 - 1, -(2**31), 2**31 + 5, 2**32 - 3, 2**32 + 3, -(2**40))
CASES = [(extend, predicate, number) for extend in ("extsi", "extui") for predicate in PREDICATES for number in range(len(BOUNDS))]


def name_of(extend, predicate, number):
    return f"{extend}_{predicate}_{number}"


def source(extend, predicate, number):
    """y[i] = the sum of x[i] over the loop's iterations where i - 8, extended, compares with the bound, and 0 elsewhere."""
    name = name_of(extend, predicate, number)
    return f"""
greta_tile.func @k_{name}(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>, %n: i32) attributes {{waves = 1 : i32}} {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant dense<0> : tensor<{ROWS}xi32>
  %eight = arith.constant dense<8> : tensor<{ROWS}xi32>
  %i = greta_tile.iota 0 : tensor<{ROWS}xi32>
  %at = arith.subi %i, %eight : tensor<{ROWS}xi32>
  %wide = arith.{extend} %at : tensor<{ROWS}xi32> to tensor<{ROWS}xi64>
  %bound = arith.constant dense<{BOUNDS[number]}> : tensor<{ROWS}xi64>
  %mask = arith.cmpi {predicate}, %wide, %bound : tensor<{ROWS}xi64>
  %p = greta_tile.splat %x : tensor<{ROWS}x!greta_tile.ptr<i32>>
  %pi = greta_tile.ptr_add %p, %i : tensor<{ROWS}x!greta_tile.ptr<i32>>, tensor<{ROWS}xi32>
  %sum = scf.for %t = %zero to %n step %one iter_args(%s = %none) -> (tensor<{ROWS}xi32>) : i32 {{
    %v = greta_tile.load_scattered %pi mask %mask : tensor<{ROWS}x!greta_tile.ptr<i32>> -> tensor<{ROWS}xi32>
    %next = arith.addi %s, %v : tensor<{ROWS}xi32>
    scf.yield %next : tensor<{ROWS}xi32>
  }}
  greta_tile.store %sum, %y[%zero] strides [1] bounds [] : tensor<{ROWS}xi32> -> !greta_tile.ptr<i32>
  greta_tile.return
}}
func.func @{name}(%x: tensor<{ROWS}xi32>) -> tensor<{ROWS}xi32> {{
  %0 = greta_tile.launch @k_{name} grid affine_map<() -> (1)> scalars affine_map<() -> ({TURNS})> (%x) shapes [affine_map<() -> ({ROWS})>]
       : (tensor<{ROWS}xi32>) -> tensor<{ROWS}xi32>
  return %0 : tensor<{ROWS}xi32>
}}"""


def expected(x, extend, predicate, number):
    at = np.arange(ROWS, dtype=np.int32) - np.int32(8)
    wide = at.astype(np.int64) if extend == "extsi" else at.view(np.uint32).astype(np.int64)
    bound = np.full(ROWS, BOUNDS[number], np.int64)
    if predicate.startswith("u"):
        wide, bound = wide.view(np.uint64), bound.view(np.uint64)
    return np.where(PREDICATES[predicate](wide, bound), TURNS * x, 0)


@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942", "sim:gfx1100"))
def test_every_predicate(device, tmp_path):
    target = {"vulkan": "vulkan:portable"}.get(device, device.split(":")[-1])
    succeeded, data, messages = _compiler.compile([("".join(source(*case) for case in CASES), "")], target)
    assert succeeded, messages
    greta.Package(data).save(tmp_path / "k.greta")
    package = greta.load(tmp_path / "k.greta")
    greta.set_device(device)
    x = np.arange(1, ROWS + 1, dtype=np.int32)
    wrong = [case for case in CASES if not np.array_equal(greta.to_numpy(getattr(package, name_of(*case))(x)), expected(x, *case))]
    assert not wrong
