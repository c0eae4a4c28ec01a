"""Integers to floats, rounded once: bf16, f16 and f32 of i32 and i64, with and without sign, on a device of each family and on the host. Quotients and
remainders of i64. Sums that overflow, as Triton checks them."""

import numpy as np
import pytest

import harness

DEVICES = ("vulkan", "sim:gfx90a", "sim:gfx942", "sim:gfx950", "sim:gfx1030", "sim:gfx1100", "sim:gfx1201", "host")
BITS = {"bf16": 8, "f16": 11, "f32": 24}
KINDS = {"i32": np.int32, "i64": np.int64}


def nearest(number, bits):
    """A whole number rounded to so many bits, ties to even."""
    drop = max(abs(number).bit_length() - bits, 0)
    low, kept = abs(number) & ((1 << drop) - 1), abs(number) >> drop
    half = 1 << drop >> 1
    kept += drop > 0 and (low > half or (low == half and kept & 1))
    return (kept << drop) * (-1 if number < 0 else 1)


def around_middles(width):
    """Powers of two, middles of neighbours in each type, and integers beside both, near and where f32 rounds them to the middle."""
    numbers = {0, 1, 3, 5, 100}
    for place in range(width):
        numbers |= {(1 << place) + by for by in (-1, 0, 1)}
        for bits in BITS.values():
            for odd in (1, 3, (2 << bits) - 1):
                middle = ((1 << bits) | odd) << place >> (bits + 1)
                numbers |= {middle + sign * by for sign in (1, -1) for by in (0, 1, 2, 1 << max(place - 25, 0), 1 << max(place - 31, 0))}
    return sorted({n for number in numbers for n in (number, -number) if -(1 << width - 1) <= n < 1 << width})


def program(op, source, to, count):
    """As f32, which holds all of them; one integer an element."""
    widened = "" if to == "f32" else f"  %z = arith.extf %y : tensor<{count}x{to}> to tensor<{count}xf32>"
    return f"""greta_tile.func @k(%x: !greta_tile.ptr<{source}>, %o: !greta_tile.ptr<f32>) attributes {{waves = 4 : i32}} {{
  %c0 = arith.constant 0 : i32
  %x0 = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<{source}> -> tensor<{count}x{source}>
  %y = arith.{op} %x0 : tensor<{count}x{source}> to tensor<{count}x{to}>
{widened}
  greta_tile.store {"%z" if widened else "%y"}, %o[%c0] strides [1] bounds [] : tensor<{count}xf32> -> !greta_tile.ptr<f32>
  greta_tile.return
}}
func.func @f(%x: tensor<{count}x{source}>) -> tensor<{count}xf32> {{
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x) shapes [affine_map<() -> ({count})>] : (tensor<{count}x{source}>) -> tensor<{count}xf32>
  return %0 : tensor<{count}xf32>
}}
"""


def function(op, source, to, count):
    """The same as a function of values, which the host has, too."""
    widened = "" if to == "f32" else f"  %z = arith.extf %y : tensor<{count}x{to}> to tensor<{count}xf32>"
    return f"""func.func @f(%x: tensor<{count}x{source}>) -> tensor<{count}xf32> {{
  %y = arith.{op} %x : tensor<{count}x{source}> to tensor<{count}x{to}>
{widened}
  return {"%z" if widened else "%y"} : tensor<{count}xf32>
}}
"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("to", BITS)
@pytest.mark.parametrize("op", ("sitofp", "uitofp"))
@pytest.mark.parametrize("source", KINDS)
def test_integers_are_rounded_once(tmp_path, source, op, to, device):
    if device == "host" and source == "i64":
        source = "i32"  # functions of values have no i64
    kind = KINDS[source]
    width = np.iinfo(kind).bits
    least, most = (-(1 << width - 1), 1 << width - 1) if op == "sitofp" else (0, 1 << width)
    numbers = [n for n in around_middles(width) if least <= n < most]
    count = 1 << (len(numbers) - 1).bit_length()
    numbers += [0] * (count - len(numbers))
    want = np.array([float(nearest(n, BITS[to])) for n in numbers])
    if to == "f16":
        want = np.where(np.abs(want) < 65520, want, np.copysign(np.inf, want))
    text = (function if device == "host" else program)(op, source, to, count)
    package = harness.compile_package(tmp_path, "integers", text, device.removeprefix("sim:"))
    x = np.array([n % (1 << width) for n in numbers], np.dtype(f"u{width // 8}")).view(kind)
    np.save(tmp_path / "x.npy", x)
    ran = harness.tool(harness.RUN, package, f"--device={device}", f"--input={tmp_path}/x.npy", f"--output={tmp_path}/y.npy")
    assert ran.returncode == 0, ran.stderr
    got = np.load(tmp_path / "y.npy")
    wrong = np.flatnonzero(got != want)
    assert not len(wrong), [(numbers[i], got[i], want[i]) for i in wrong[:8]]


def repeated(op, count):
    """The op with one divisor twice: what the first turn of a loop makes is divided in the second."""
    tensor = f"tensor<{count}xi64>"
    return f"""greta_tile.func @k(%x: !greta_tile.ptr<i64>, %y: !greta_tile.ptr<i64>, %o: !greta_tile.ptr<i64>) attributes {{waves = 4 : i32}} {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %x0 = greta_tile.load %x[%c0] strides [1] bounds [] : !greta_tile.ptr<i64> -> {tensor}
  %y0 = greta_tile.load %y[%c0] strides [1] bounds [] : !greta_tile.ptr<i64> -> {tensor}
  %z = scf.for %turn = %c0 to %c2 step %c1 iter_args(%a = %x0) -> ({tensor}) : i32 {{
    %r = arith.{op} %a, %y0 : {tensor}
    scf.yield %r : {tensor}
  }}
  greta_tile.store %z, %o[%c0] strides [1] bounds [] : {tensor} -> !greta_tile.ptr<i64>
  greta_tile.return
}}
func.func @f(%x: {tensor}, %y: {tensor}) -> {tensor} {{
  %0 = greta_tile.launch @k grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %y) shapes [affine_map<() -> ({count})>] : ({tensor}, {tensor}) -> {tensor}
  return %0 : {tensor}
}}
"""


@pytest.mark.parametrize("device", ("vulkan", "sim:gfx942"))
@pytest.mark.parametrize("op", ("divsi", "remsi", "divui", "remui"))
def test_quotients_of_64_bits(tmp_path, op, device):
    """Dividends and divisors on both sides of 0, 2^31, 2^32 and 2^63; pairs of both kinds are neighbours, so that lanes of one wave part."""
    numbers = sorted({sign * number for place in (0, 1, 3, 31, 32, 33, 62, 63) for by in (-1, 0, 1) for number in [(1 << place) + by] for sign in (1, -1)} | {7, -7, 10**12 + 39})
    if op.endswith("ui"):
        numbers = sorted({number % (1 << 64) for number in numbers})
    else:
        numbers = [number for number in numbers if -(1 << 63) <= number < 1 << 63]
    pairs = [(x, y) for x in numbers for y in numbers if y and (x, y) != (-(1 << 63), -1)]
    count = 1 << (len(pairs) - 1).bit_length()
    pairs += [(1, 1)] * (count - len(pairs))

    def once(x, y):
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient if op.startswith("div") else x - quotient * y

    package = harness.compile_package(tmp_path, "quotients", repeated(op, count), device.removeprefix("sim:"))
    for name, column in zip("xy", zip(*pairs)):
        np.save(tmp_path / f"{name}.npy", np.array([number % (1 << 64) for number in column], np.uint64).view(np.int64))
    ran = harness.tool(harness.RUN, package, f"--device={device}", f"--input={tmp_path}/x.npy", f"--input={tmp_path}/y.npy", f"--output={tmp_path}/o.npy")
    assert ran.returncode == 0, ran.stderr
    got = np.load(tmp_path / "o.npy").view(np.uint64)
    wrong = [(x, y, int(one)) for (x, y), one in zip(pairs, got) if int(one) != once(once(x, y), y) % (1 << 64)]
    assert not wrong, wrong[:8]


def checked_sum(bits):
    """The Triton IR of `tl.store(z, tl.load(x) + tl.load(y))` with sanitize_overflow."""
    pointers = ", ".join(f"%{name}: !tt.ptr<i{bits}>" for name in "xyz")
    return f"""tt.func public @k({pointers}) {{
  %least = arith.constant {-(1 << bits - 1)} : i64
  %most = arith.constant {(1 << bits - 1) - 1} : i64
  %0 = tt.load %x : !tt.ptr<i{bits}>
  %1 = tt.load %y : !tt.ptr<i{bits}>
  %2 = arith.extsi %0 : i{bits} to i64
  %3 = arith.extsi %1 : i{bits} to i64
  %4 = arith.addi %2, %3 : i64
  %5 = arith.cmpi sle, %4, %most : i64
  %6 = arith.cmpi sge, %4, %least : i64
  %7 = arith.andi %5, %6 : i1
  tt.assert %7, "int{bits} overflow detected for operation add" : i1
  %8 = arith.addi %0, %1 : i{bits}
  tt.store %z, %8 : !tt.ptr<i{bits}>
  tt.return
}}
"""


CHECKING = [device for device in DEVICES if device != "host"]


# A device takes one width.
@pytest.mark.parametrize("bits, device", [(bits, device) for i, device in enumerate(CHECKING) for j, bits in enumerate((8, 16, 32)) if harness.WHOLE or i % 3 == j])
def test_sums_that_overflow_are_reported(tmp_path, bits, device):
    (tmp_path / "sum.ttir").write_text(checked_sum(bits))
    made = harness.tool(harness.TRANSLATE, "--triton-to-package", f"--targets={device.removeprefix('sim:')}", tmp_path / "sum.ttir", "-o", tmp_path / "sum.greta")
    assert made.returncode == 0, made.stderr
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    for x, y in ((least, -1), (least, least), (most, 1), (most, most), (least, 1), (most, -1), (least, most), (-1, -1)):
        for name, number in zip("xyz", (x, y, 0)):
            np.save(tmp_path / f"{name}.npy", np.array([number], f"int{bits}"))
        inputs = [f"--input={tmp_path}/{name}.npy" for name in "xyz"]
        ran = harness.tool(harness.RUN, tmp_path / "sum.greta", f"--device={device}", *inputs, *["--input=i32:1"] * 3)
        reported = f"int{bits} overflow detected for operation add" in ran.stderr
        assert reported == (not least <= x + y <= most), (x, y, ran.stdout, ran.stderr)
