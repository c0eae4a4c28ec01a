"""Hand-written kernels at the lane level that multiply with fragments, in lavapipe's shape."""

import numpy as np

from greta_runtime import DTYPES
from lane_base import Kernel, mlir_type

# lavapipe's matrices: (row, column) of each bit of the lane and of the element, probed; A's and the accumulator's, and B's.
ALONG_COLUMNS, ALONG_ROWS = [[0, 1], [0, 2], [0, 4]], [[1, 0], [2, 0], [4, 0]]
PRODUCTS = {"f32": ("f16", "f32"), "f16": ("f16", "f16"), "i32": ("i8", "i32")}


def layout(use, dtype):
    lane, element = (ALONG_ROWS, ALONG_COLUMNS) if use == "b" else (ALONG_COLUMNS, ALONG_ROWS)
    return {"use": use, "dtype": dtype, "rows": 8, "cols": 8, "lane": lane, "element": element}


def shared_of(size, kind):
    return f"!greta_tile.shared<{size} x vector<8x{kind}>>"


def product(name, a, bt, result, finish, edge=8, lanes=8, **options):
    """x0 (2 edge x K) times the transpose of x1 (edge x K), by two waves, K in a loop that carries the accumulator and, as the fast kernels do,
    the next operands on their way from global to shared memory, 8 elements a lane; `finish` does something with the sum %r#0. Lines are padded."""
    source, acc = mlir_type(a), mlir_type(result)
    k, line, stride = a.shape[1], edge // 8, edge // 4
    align = 8 * a.dtype.itemsize
    vector, shared = f"vector<8x{source}>", lambda rows: shared_of(stride * rows, source)
    fragment = {use: f"!greta_tile.fragment<{edge}x{edge}x{kind}, {use}>" for use, kind in (("a", source), ("b", source), ("acc", acc))}
    zero = "0" if acc == "i32" else "0.0"
    body = f"""  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %edge = arith.constant {edge} : i32
  %line = arith.constant {line} : i32
  %stride = arith.constant {stride} : i32
  %k = arith.constant {k} : i32
  %zero = arith.constant {zero} : {acc}
  %as = greta_tile.shared_alloc : {shared(2 * edge)}
  %bs = greta_tile.shared_alloc : {shared(edge)}
  %lr = arith.divui %lane, %line : i32
  %part = arith.remui %lane, %line : i32
  %first = arith.muli %wave, %edge : i32
  %row = arith.addi %first, %lr : i32
  %part8 = arith.muli %part, %c8 : i32
  %ak = arith.muli %row, %k : i32
  %arow = arith.addi %ak, %part8 : i32
  %bk = arith.muli %lr, %k : i32
  %brow = arith.addi %bk, %part8 : i32
  %sr = arith.muli %row, %stride : i32
  %s = arith.addi %sr, %part : i32
  %lsr = arith.muli %lr, %stride : i32
  %ls = arith.addi %lsr, %part : i32
  %ws = arith.muli %first, %stride : i32
  %last = arith.subi %k, %edge : i32
  %zeros = greta_tile.fragment_splat %zero : {acc} -> {fragment["acc"]}
  %a0 = greta_tile.ptr_load %x0[%arow] align {align} : !greta_tile.ptr<{source}> -> {vector}
  %b0 = greta_tile.ptr_load %x1[%brow] align {align} : !greta_tile.ptr<{source}> -> {vector}
  %r:3 = scf.for %i = %c0 to %k step %edge iter_args(%sum = %zeros, %an = %a0, %bn = %b0) -> ({fragment["acc"]}, {vector}, {vector}) : i32 {{
    greta_tile.barrier
    greta_tile.shared_store %an, %as[%s] : {shared(2 * edge)}
    greta_tile.shared_store %bn, %bs[%ls] : {shared(edge)}
    greta_tile.barrier
    %next = arith.addi %i, %edge : i32
    %there = arith.minui %next, %last : i32
    %ai = arith.addi %arow, %there : i32
    %bi = arith.addi %brow, %there : i32
    %a2 = greta_tile.ptr_load %x0[%ai] align {align} : !greta_tile.ptr<{source}> -> {vector}
    %b2 = greta_tile.ptr_load %x1[%bi] align {align} : !greta_tile.ptr<{source}> -> {vector}
    %a = greta_tile.fragment_load %as[%ws] stride {stride} : {shared(2 * edge)} -> {fragment["a"]}
    %b = greta_tile.fragment_load %bs[%c0] stride {stride} transposed : {shared(edge)} -> {fragment["b"]}
    %more = greta_tile.mma "coopmat" %a, %b, %sum : {fragment["a"]}, {fragment["b"]} -> {fragment["acc"]}
    scf.yield %more, %a2, %b2 : {fragment["acc"]}, {vector}, {vector}
  }}
{finish}"""
    coopmat = [{"m": edge, "n": edge, "k": edge, "a": source, "b": source, "c": acc, "result": acc}]
    return Kernel(name, body, [a, bt], [result], wave_size=lanes, block_size=2 * lanes, coopmat=coopmat, **options)


def through_shared(acc, edge=8, lanes=8):
    """Stores the sum through shared memory, there by columns."""
    shared, fragment = f"!greta_tile.shared<{2 * edge * edge} x {acc}>", f"!greta_tile.fragment<{edge}x{edge}x{acc}, acc>"
    return f"""  %ss = greta_tile.shared_alloc : {shared}
  %size = arith.constant {edge * edge} : i32
  %lanes = arith.constant {lanes} : i32
  %base = arith.muli %wave, %size : i32
  greta_tile.fragment_store %r#0, %ss[%base] stride {edge} transposed : {fragment} -> {shared}
  greta_tile.barrier
  scf.for %j = %c0 to %size step %lanes : i32 {{
    %f = arith.addi %j, %lane : i32
    %g = arith.addi %base, %f : i32
    %x = greta_tile.shared_load %ss[%g] : {shared}
    %column = arith.divui %f, %edge : i32
    %inside = arith.remui %f, %edge : i32
    %m = arith.addi %first, %inside : i32
    %o = arith.muli %m, %edge : i32
    %q = arith.addi %o, %column : i32
    greta_tile.ptr_store %x, %y0[%q] align {DTYPES[acc]().itemsize} : {acc} -> !greta_tile.ptr<{acc}>
  }}"""


def by_element(value, kind):
    """Lane l has column l of the wave's rows."""
    lines = [f"  %e:8 = vector.to_elements {value} : vector<8x{kind}>"]
    for i in range(8):
        lines.append(f"  %n{i} = arith.constant {i} : i32\n  %m{i} = arith.addi %first, %n{i} : i32\n  %o{i} = arith.muli %m{i}, %c8 : i32\n  %p{i} = arith.addi %o{i}, %lane : i32")
        lines.append(f"  greta_tile.ptr_store %e#{i}, %y0[%p{i}] align {DTYPES[kind]().itemsize} : {kind} -> !greta_tile.ptr<{kind}>")
    return "\n".join(lines)


def fragments(rng):
    """Cooperative matrices. Everything is a small integer, so that every order of summation gives the same."""
    for acc, (source, _) in PRODUCTS.items():
        high = 100 if source == "i8" else 4
        a = rng.integers(-high, high, (16, 40)).astype(DTYPES[source])
        b = rng.integers(-high, high, (8, 40)).astype(DTYPES[source])
        exact = a.astype(np.float64) @ b.T.astype(np.float64)
        fragment = f"!greta_tile.fragment<8x8x{acc}, acc>"
        elements = f"  %v = greta_tile.fragment_elements %r#0 : {fragment} -> vector<8x{acc}>\n"
        yield product(f"mma_{acc}", a, b, exact.astype(DTYPES[acc]), elements + by_element("%v", acc), layouts=[layout("acc", acc)])
        yield product(f"mma_store_{acc}", a, b, exact.astype(DTYPES[acc]), through_shared(acc))
    # An accumulator as the next product's A, in registers, and used twice: (ab) b + (ab) + (ab).
    a = rng.integers(-2, 3, (16, 8)).astype(np.float16)
    b = rng.integers(-2, 3, (8, 8)).astype(np.float16)
    ab = a.astype(np.float64) @ b.T
    f = {use: f"!greta_tile.fragment<8x8xf16, {use}>" for use in ("a", "b", "acc")}
    chain = f"""  %v = greta_tile.fragment_elements %r#0 : {f["acc"]} -> vector<8xf16>
  %twice = arith.addf %v, %v : vector<8xf16>
  %left = greta_tile.fragment_from_elements %v : vector<8xf16> -> {f["a"]}
  %sum2 = greta_tile.fragment_from_elements %twice : vector<8xf16> -> {f["acc"]}
  %right = greta_tile.fragment_load %bs[%c0] stride 2 : {shared_of(16, "f16")} -> {f["b"]}
  %z = greta_tile.mma "coopmat" %left, %right, %sum2 : {f["a"]}, {f["b"]} -> {f["acc"]}
  %u = greta_tile.fragment_elements %z : {f["acc"]} -> vector<8xf16>
"""
    expected = (ab @ b.astype(np.float64) + 2 * ab).astype(np.float16)
    yield product("mma_chain", a, b, expected, chain + by_element("%u", "f16"), layouts=[layout("acc", "f16"), layout("a", "f16")])


def wmma():
    """The same for RDNA3, to be compiled only."""
    for acc, source in (("f32", "f16"), ("i32", "i8")):
        operands = [np.zeros((rows, 64), DTYPES[source]) for rows in (32, 16)]
        yield product(f"wmma_{acc}", *operands, np.zeros((32, 16), DTYPES[acc]), through_shared(acc, 16, 32), edge=16, lanes=32)
