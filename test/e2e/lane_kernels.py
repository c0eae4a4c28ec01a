"""Hand-written kernels at the lane level of greta_tile, their inputs and what they must give: the SPIR-V generator on its own.

Run as a script it is the worker: lane_kernels.py DEVICE PACKAGE NAME... prints one JSON object {"kernel", "problem"} a kernel, problem null
where the results are right.
"""

import json
import math
import sys

import numpy as np

import lane_fragments
from greta_runtime import DTYPES
from lane_base import EACH, LANES, SIZE, Kernel, V, elementwise


def all_halves(kind):
    return np.arange(65536, dtype=np.uint16).view(DTYPES[kind])


def float_pairs(kind, rng):
    """Random numbers of all magnitudes, and every pair of special ones."""
    special = np.array([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 6e-8, 65504.0, 1 + 2**-10, 3.0, 1e-3])
    a, b = (v.ravel() for v in np.meshgrid(special, special))
    size = 4 * SIZE - a.size
    random = [rng.standard_normal(size) * np.exp2(rng.uniform(-8, 8, size)) for _ in range(2)]
    return [np.concatenate([s, r]).astype(DTYPES[kind]) for s, r in zip((a, b), random)]


def arithmetic(rng):
    operations = {
        "addf": np.add,
        "subf": np.subtract,
        "mulf": np.multiply,
        "divf": np.divide,
        "maximumf": np.maximum,
        "minimumf": np.minimum,
        "maxnumf": np.fmax,
        "minnumf": np.fmin,
    }
    for kind in ("f32", "f16", "bf16"):
        a, b = float_pairs(kind, rng)
        wide = np.float32 if kind != "f32" else np.float64
        for op, function in operations.items():
            with np.errstate(all="ignore"):
                expected = function(a.astype(wide), b.astype(wide)).astype(DTYPES[kind])
            if op[:3] in ("max", "min"):
                # Either zero may be the larger.
                expected = np.where((a == 0) & (b == 0), np.abs(expected), expected).astype(a.dtype)
                x, y = np.where((a == 0) & (b == 0), np.abs(a), a).astype(a.dtype), np.where((a == 0) & (b == 0), np.abs(b), b).astype(a.dtype)
            else:
                x, y = a, b
            # Vulkan grants f32 division 2.5 ulp; everything narrower is rounded from f32.
            ulp = {"f32": 2.5, "f16": 1, "bf16": 1}[kind] if op == "divf" else 0
            yield elementwise(f"{op}_{kind}", f"  %r0 = arith.{op} %a0, %a1 : {V(kind)}", [x, y], [expected], ulp=ulp)


def rounding(rng):
    """Conversions between f32 and the narrow types: ties, carries, subnormals, overflow, NaN."""
    for kind, mantissa in (("f16", 10), ("bf16", 7)):
        grid = all_halves(kind).astype(np.float32)
        grid = np.sort(grid[np.isfinite(grid)])
        middle = ((grid[1:].astype(np.float64) + grid[:-1]) / 2).astype(np.float32)
        beside = [np.nextafter(middle, np.float32(d)) for d in (np.inf, -np.inf)]
        edges = np.array([65519.996, 65520, 65536, 1e6, 3.39e38, np.inf, -np.inf, np.nan, -65519.996, -65520], np.float32)
        x = np.concatenate([middle, *beside, edges])
        # f32 subnormals may be flushed, by Vulkan's leave.
        x = x[(np.abs(x) >= np.finfo(np.float32).tiny) | (x == 0) | np.isnan(x)]
        with np.errstate(all="ignore"):
            yield elementwise(f"truncf_{kind}", f"  %r0 = arith.truncf %a0 : {V('f32')} to {V(kind)}", [x], [x.astype(DTYPES[kind])])
        x = all_halves(kind)
        with np.errstate(invalid="ignore"):
            x = x[~((np.abs(x.astype(np.float32)) < np.finfo(np.float32).tiny) & (x != 0))]
        yield elementwise(f"extf_{kind}", f"  %r0 = arith.extf %a0 : {V(kind)} to {V('f32')}", [x], [x.astype(np.float32)])
        whole = np.concatenate([np.arange(-3000, 3000), rng.integers(-(2**31), 2**31, 1000)]).astype(np.int32)
        with np.errstate(all="ignore"):
            yield elementwise(f"sitofp_{kind}", f"  %r0 = arith.sitofp %a0 : {V('i32')} to {V(kind)}", [whole], [whole.astype(np.float32).astype(DTYPES[kind])])
    x = (rng.standard_normal(SIZE) * 1e5).astype(np.float32)
    yield elementwise("fptosi", f"  %r0 = arith.fptosi %a0 : {V('f32')} to {V('i32')}", [x], [np.trunc(x).astype(np.int32)])


def functions(rng):
    # Units in the last place: Vulkan's promise for what is GLSL's own, one or two more than lavapipe needs for our formulas.
    def spread(low, high, size=8 * SIZE):
        return np.sort(rng.uniform(low, high, size)).astype(np.float32)

    near_zero = np.concatenate([spread(-12, 12), np.exp2(rng.uniform(-30, 2, 4 * SIZE)), [0.0, -0.0, np.inf, -np.inf, np.nan]]).astype(np.float32)
    vector_erf = np.vectorize(math.erf)
    positive = np.exp2(rng.uniform(-30, 30, 8 * SIZE)).astype(np.float32)
    cases = [
        ("tanh", near_zero, np.tanh, dict(ulp=3)),
        ("erf", near_zero, vector_erf, dict(ulp=2)),
        ("expm1", near_zero, np.expm1, dict(ulp=16)),
        ("log1p", near_zero[near_zero >= 0], np.log1p, dict(ulp=4)),
        ("exp", spread(-10, 10), np.exp, dict(ulp=23)),
        ("exp2", spread(-10, 10), np.exp2, dict(ulp=23)),
        ("log", positive, np.log, dict(ulp=4, absolute=2**-21)),
        ("log2", positive, np.log2, dict(ulp=4, absolute=2**-21)),
        ("sqrt", positive, np.sqrt, dict(ulp=1)),
        ("rsqrt", positive, lambda x: 1 / np.sqrt(x), dict(ulp=2)),
        ("sin", np.concatenate([spread(-10, 10), spread(-1e5, 1e5)]), np.sin, dict(absolute=2.0**-22)),
        ("cos", np.concatenate([spread(-10, 10), spread(-1e5, 1e5)]), np.cos, dict(absolute=2.0**-22)),
        ("absf", near_zero, np.abs, {}),
        ("floor", near_zero, np.floor, {}),
        ("ceil", near_zero, np.ceil, {}),
        ("trunc", near_zero, np.trunc, {}),
        ("roundeven", near_zero, np.rint, {}),
        ("round", np.concatenate([near_zero, np.arange(-20, 20) / 2, [0.49999997, 8388609.0, -8388609.0]]).astype(np.float32), lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), {}),
    ]
    for op, x, function, limits in cases:
        with np.errstate(all="ignore"):
            expected = function(x.astype(np.float64))
            yield elementwise(f"{op}_f32", f"  %r0 = math.{op} %a0 : {V('f32')}", [x], [expected.astype(np.float32)], **limits)
    for kind in ("f16", "bf16"):
        x = (rng.standard_normal(4 * SIZE) * 2).astype(DTYPES[kind])
        with np.errstate(all="ignore"):
            yield elementwise(f"tanh_{kind}", f"  %r0 = math.tanh %a0 : {V(kind)}", [x], [np.tanh(x.astype(np.float64)).astype(DTYPES[kind])], ulp=1)
            yield elementwise(f"exp_{kind}", f"  %r0 = math.exp %a0 : {V(kind)}", [x], [np.exp(x.astype(np.float64)).astype(DTYPES[kind])], ulp=1)
    base = np.array([2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 0.0, 10.0], np.float32)
    a, b = (v.ravel() for v in np.meshgrid(base, np.array([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -2.5, 7.0], np.float32)))
    with np.errstate(all="ignore"):
        expected = np.power(a.astype(np.float64), b)
    defined = ~((a == 0) & (b < 0))
    yield elementwise("powf", f"  %r0 = math.powf %a0, %a1 : {V('f32')}", [a[defined], b[defined]], [expected[defined].astype(np.float32)], ulp=16)
    x = spread(-3, 3, SIZE)
    yield elementwise("cube", f"  %c = arith.constant dense<3.0> : {V('f32')}\n  %r0 = math.powf %a0, %c : {V('f32')}", [x], [(x.astype(np.float64) ** 3).astype(np.float32)], ulp=2)


def comparisons(rng):
    a, b = float_pairs("f32", rng)
    unordered = np.isnan(a) | np.isnan(b)
    with np.errstate(all="ignore"):
        truth = {"eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": (a != b) & ~unordered}
    predicates = {f"o{p}": t for p, t in truth.items()} | {f"u{p}": t | unordered for p, t in truth.items()} | {"ord": ~unordered, "uno": unordered}
    for predicate, expected in predicates.items():
        formula = f"  %c = arith.cmpf {predicate}, %a0, %a1 : {V('f32')}\n  %r0 = arith.extui %c : vector<{EACH}xi1> to {V('i32')}"
        yield elementwise(f"cmpf_{predicate}", formula, [a, b], [expected.astype(np.int32)])
    i = np.concatenate([rng.integers(-(2**31), 2**31, SIZE - 4), [0, 1, -1, 2**31 - 1]]).astype(np.int32)
    j = rng.permutation(i)
    u, v = i.view(np.uint32), j.view(np.uint32)
    orders = {"slt": i < j, "sge": i >= j, "ult": u < v, "uge": u >= v, "eq": i == j}
    for predicate, expected in orders.items():
        formula = f"  %c = arith.cmpi {predicate}, %a0, %a1 : {V('i32')}\n  %r0 = arith.extsi %c : vector<{EACH}xi1> to {V('i32')}"
        yield elementwise(f"cmpi_{predicate}", formula, [i, j], [-expected.astype(np.int32)])


def integers(rng):
    i = rng.integers(-(2**31), 2**31, SIZE).astype(np.int32)
    j = rng.integers(-1000, 1000, SIZE).astype(np.int32)
    j[j == 0] = 7
    s = rng.integers(0, 32, SIZE).astype(np.int32)
    u, v = i.view(np.uint32), j.view(np.uint32)
    quotient = np.trunc(i.astype(np.float64) / j).astype(np.int32)
    wide = i.astype(np.int64)
    binary = {
        "divsi": (j, quotient),
        "remsi": (j, (wide - quotient.astype(np.int64) * j).astype(np.int32)),
        "divui": (j, (u // v).view(np.int32)),
        "remui": (j, (u % v).view(np.int32)),
        "muli": (j, (wide * j).astype(np.int32)),
        "shli": (s, (u << s.astype(np.uint32)).view(np.int32)),
        "shrsi": (s, i >> s),
        "shrui": (s, (u >> s.astype(np.uint32)).view(np.int32)),
        "maxsi": (j, np.maximum(i, j)),
        "minui": (j, np.minimum(u, v).view(np.int32)),
        "xori": (j, i ^ j),
    }
    for op, (right, expected) in binary.items():
        yield elementwise(op, f"  %r0 = arith.{op} %a0, %a1 : {V('i32')}", [i, right], [expected])
    b = np.arange(SIZE).astype(np.int8)
    yield elementwise("extsi_i8", f"  %r0 = arith.extsi %a0 : {V('i8')} to {V('i32')}", [b], [b.astype(np.int32)])
    yield elementwise("trunci_i8", f"  %r0 = arith.trunci %a0 : {V('i32')} to {V('i8')}", [i], [i.astype(np.int8)])
    high = f"  %w = arith.extsi %a0 : {V('i32')} to {V('i64')}\n  %v = arith.extsi %a1 : {V('i32')} to {V('i64')}\n  %p = arith.muli %w, %v : {V('i64')}\n"
    high += f"  %c = arith.constant dense<32> : {V('i64')}\n  %h = arith.shrsi %p, %c : {V('i64')}\n  %r0 = arith.trunci %h : {V('i64')} to {V('i32')}"
    yield elementwise("mul_high", high, [i, j], [((wide * j) >> 32).astype(np.int32)])


def reinterpretation(rng):
    words = rng.integers(-(2**31), 2**31, SIZE).astype(np.int32)
    # Signalling NaNs may become quiet on the way through a float type.
    halves = words.view(np.uint16)
    for kind, exponent in (("f16", 0x7C00), ("bf16", 0x7F80)):
        clean = np.where((halves & exponent) == exponent, halves & 0x8FFF, halves)
        clean = np.where((clean & exponent) == 0, clean & 0x8000, clean).astype(np.uint16).view(np.int32)
        formula = f"  %h = vector.bitcast %a0 : {V('i32')} to vector<{2 * EACH}x{kind}>\n  %n = arith.negf %h : vector<{2 * EACH}x{kind}>\n"
        formula += f"  %r0 = vector.bitcast %n : vector<{2 * EACH}x{kind}> to {V('i32')}"
        yield elementwise(f"bitcast_{kind}", formula, [clean], [(clean.view(np.uint32) ^ np.uint32(0x80008000)).view(np.int32)])
        formula = f"  %h = arith.bitcast %a0 : {V(kind)} to {V('i16')}\n  %r0 = arith.extui %h : {V('i16')} to {V('i32')}"
        yield elementwise(f"bits_{kind}", formula, [clean.view(DTYPES[kind])], [clean.view(np.uint16).astype(np.int32)])


def memory(rng):
    x = rng.standard_normal(SIZE).astype(np.float16)
    # Offsets up to 2^31 elements: a base far below the array and a lane offset that leads back.
    far = 2**31 - SIZE - 8
    body = f"""  %lane = greta_tile.wave_id
  %each = arith.constant {EACH} : i32
  %back = arith.constant {-far} : i64
  %forth = arith.constant {far} : i32
  %xb = greta_tile.ptr_add %x0, %back : !greta_tile.ptr<f16>, i64
  %yb = greta_tile.ptr_add %y0, %back : !greta_tile.ptr<f16>, i64
  %e = arith.muli %lane, %each : i32
  %i = arith.addi %forth, %e : i32
  %v = greta_tile.ptr_load %xb[%i] align 16 : !greta_tile.ptr<f16> -> vector<8xf16>
  greta_tile.ptr_store %v, %yb[%i] align 16 : vector<8xf16> -> !greta_tile.ptr<f16>"""
    yield Kernel("far", body, [x], [x.copy()])
    # One element at a time, every second, in a loop whose bounds are the lane's.
    for kind in ("f32", "f16", "bf16", "i8", "i32"):
        x = rng.integers(-100, 100, SIZE).astype(DTYPES[kind])
        body = f"""  %lane = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %each = arith.constant {EACH} : i32
  scf.for %j = %c0 to %each step %c1 : i32 {{
    %b = arith.muli %lane, %each : i32
    %i = arith.addi %b, %j : i32
    %last = arith.subi %each, %c1 : i32
    %r = arith.subi %last, %j : i32
    %k = arith.addi %b, %r : i32
    %v = greta_tile.ptr_load %x0[%i] align {x.dtype.itemsize} : !greta_tile.ptr<{kind}> -> {kind}
    greta_tile.ptr_store %v, %y0[%k] align {x.dtype.itemsize} : {kind} -> !greta_tile.ptr<{kind}>
  }}"""
        yield Kernel(f"reverse_{kind}", body, [x], [x.reshape(-1, EACH)[:, ::-1].ravel().copy()])
    # Vectors through shared memory, each to the lane across.
    for kind in ("f32", "f16", "bf16", "i8", "i32"):
        x = rng.integers(-100, 100, SIZE).astype(DTYPES[kind])
        t = V(kind)
        align = min(16, EACH * x.dtype.itemsize)
        body = f"""  %lane = greta_tile.wave_id
  %s = greta_tile.shared_alloc : !greta_tile.shared<{LANES} x {t}>
  %last = arith.constant {LANES - 1} : i32
  %each = arith.constant {EACH} : i32
  %i = arith.muli %lane, %each : i32
  %v = greta_tile.ptr_load %x0[%i] align {align} : !greta_tile.ptr<{kind}> -> {t}
  greta_tile.shared_store %v, %s[%lane] : !greta_tile.shared<{LANES} x {t}>
  greta_tile.barrier
  %across = arith.subi %last, %lane : i32
  %w = greta_tile.shared_load %s[%across] : !greta_tile.shared<{LANES} x {t}>
  greta_tile.ptr_store %w, %y0[%i] align {align} : {t} -> !greta_tile.ptr<{kind}>"""
        yield Kernel(f"across_{kind}", body, [x], [x.reshape(-1, EACH)[::-1].ravel().copy()])


def packed(rng):
    """Vectors of words on their way through a loop and a conditional, chosen by one condition, cut, reinterpreted, and used by element."""
    for kind in ("f16", "bf16", "i8"):
        x = rng.integers(-100, 100, SIZE).astype(DTYPES[kind])
        t, half = V(kind), f"vector<{EACH // 2}x{kind}>"
        align = min(16, EACH * x.dtype.itemsize)
        words = f"vector<{EACH * x.dtype.itemsize // 4}xi32>"
        body = f"""  %lane = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %turns = arith.constant 5 : i32
  %mask = arith.constant {LANES - 1} : i32
  %each = arith.constant {EACH} : i32
  %i = arith.muli %lane, %each : i32
  %v = greta_tile.ptr_load %x0[%i] align {align} : !greta_tile.ptr<{kind}> -> {t}
  %first = vector.extract %v[0] : {kind} from {t}
  %r:2 = scf.for %j = %c0 to %turns step %c1 iter_args(%a = %v, %last = %first) -> ({t}, {kind}) : i32 {{
    %p = arith.addi %lane, %j : i32
    %q = arith.andi %p, %mask : i32
    %o = arith.muli %q, %each : i32
    %n = greta_tile.ptr_load %x0[%o] align {align} : !greta_tile.ptr<{kind}> -> {t}
    %bit = arith.andi %p, %c1 : i32
    %odd = arith.cmpi eq, %bit, %c1 : i32
    %s = arith.select %odd, %n, %a : {t}
    %bit2 = arith.andi %p, %c2 : i32
    %two = arith.cmpi eq, %bit2, %c2 : i32
    %w:2 = scf.if %two -> ({t}, {kind}) {{
      %e = vector.extract %s[3] : {kind} from {t}
      %f = vector.insert %e, %s[1] : {kind} into {t}
      scf.yield %f, %e : {t}, {kind}
    }} else {{
      scf.yield %s, %last : {t}, {kind}
    }}
    scf.yield %w#0, %w#1 : {t}, {kind}
  }}
  %low = vector.extract_strided_slice %r#0 {{offsets = [4], sizes = [4], strides = [1]}} : {t} to {half}
  %b = vector.bitcast %r#0 : {t} to {words}
  %back = vector.bitcast %b : {words} to {t}
  %last2 = vector.insert %r#1, %back[7] : {kind} into {t}
  greta_tile.ptr_store %last2, %y0[%i] align {align} : {t} -> !greta_tile.ptr<{kind}>
  %i2 = arith.divui %i, %c2 : i32
  greta_tile.ptr_store %low, %y1[%i2] align {x.dtype.itemsize} : {half} -> !greta_tile.ptr<{kind}>"""
        rows = x.reshape(LANES, EACH)
        whole, low = np.empty_like(rows), np.empty((LANES, EACH // 2), rows.dtype)
        for lane in range(LANES):
            a, last = rows[lane].copy(), rows[lane][0]
            for p in range(lane, lane + 5):
                a = (rows[p % LANES] if p & 1 else a).copy()
                if p & 2:
                    last = a[1] = a[3]
            low[lane], whole[lane] = a[4:], a
            whole[lane][7] = last
        yield Kernel(f"packed_{kind}", body, [x], [whole.ravel(), low.ravel()])


def reductions(rng):
    """The sum of LANES numbers in every lane: by shared memory alone, and by shuffles within waves, then shared memory."""
    x = rng.integers(-50, 50, LANES).astype(np.float32)
    total = np.full(LANES, x.sum(), np.float32)
    tree = []
    for half in (32, 16, 8, 4, 2, 1):
        tree.append(f"""  %h{half} = arith.constant {half} : i32
  %c{half} = arith.cmpi ult, %lane, %h{half} : i32
  scf.if %c{half} {{
    %o = arith.addi %lane, %h{half} : i32
    %a = greta_tile.shared_load %s[%lane] : !greta_tile.shared<{LANES} x f32>
    %b = greta_tile.shared_load %s[%o] : !greta_tile.shared<{LANES} x f32>
    %t = arith.addf %a, %b : f32
    greta_tile.shared_store %t, %s[%lane] : !greta_tile.shared<{LANES} x f32>
  }}
  greta_tile.barrier""")
    body = f"""  %lane = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %s = greta_tile.shared_alloc : !greta_tile.shared<{LANES} x f32>
  %v = greta_tile.ptr_load %x0[%lane] align 4 : !greta_tile.ptr<f32> -> f32
  greta_tile.shared_store %v, %s[%lane] : !greta_tile.shared<{LANES} x f32>
  greta_tile.barrier
""" + "\n".join(tree) + f"""
  %sum = greta_tile.shared_load %s[%c0] : !greta_tile.shared<{LANES} x f32>
  greta_tile.ptr_store %sum, %y0[%lane] align 4 : f32 -> !greta_tile.ptr<f32>"""
    yield Kernel("sum_shared", body, [x], [total])
    wave = 8
    for kind in ("f32", "f16", "bf16", "i32"):
        x = rng.integers(-4, 4, LANES).astype(DTYPES[kind])
        total = np.full(LANES, x.astype(np.float32).sum(), DTYPES[kind])
        add = "addi" if kind == "i32" else "addf"
        zero = "0" if kind == "i32" else "0.0"
        steps, last = [], "%v"
        for mask in (4, 2, 1):
            steps.append(f"  %m{mask} = greta_tile.shuffle_xor {last}, {mask} : {kind}\n  %s{mask} = arith.{add} {last}, %m{mask} : {kind}")
            last = f"%s{mask}"
        body = f"""  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %size = arith.constant {wave} : i32
  %waves = arith.constant {LANES // wave} : i32
  %zero = arith.constant {zero} : {kind}
  %w = arith.muli %wave, %size : i32
  %i = arith.addi %w, %lane : i32
  %p = greta_tile.shared_alloc : !greta_tile.shared<{LANES // wave} x {kind}>
  %v = greta_tile.ptr_load %x0[%i] align {x.dtype.itemsize} : !greta_tile.ptr<{kind}> -> {kind}
""" + "\n".join(steps) + f"""
  %first = arith.cmpi eq, %lane, %c0 : i32
  scf.if %first {{
    greta_tile.shared_store {last}, %p[%wave] : !greta_tile.shared<{LANES // wave} x {kind}>
  }}
  greta_tile.barrier
  %sum = scf.for %j = %c0 to %waves step %c1 iter_args(%acc = %zero) -> ({kind}) : i32 {{
    %one = greta_tile.shared_load %p[%j] : !greta_tile.shared<{LANES // wave} x {kind}>
    %next = arith.{add} %acc, %one : {kind}
    scf.yield %next : {kind}
  }}
  greta_tile.ptr_store %sum, %y0[%i] align {x.dtype.itemsize} : {kind} -> !greta_tile.ptr<{kind}>"""
        yield Kernel(f"sum_waves_{kind}", body, [x], [total], wave_size=wave)
    # shuffle: every lane asks the one behind it, of i64 and i1.
    x = rng.integers(-(2**31), 2**31, LANES).astype(np.int32)
    body = f"""  %lane = greta_tile.lane_id
  %wave = greta_tile.wave_id
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %c0 = arith.constant 0 : i32
  %size = arith.constant {wave} : i32
  %w = arith.muli %wave, %size : i32
  %i = arith.addi %w, %lane : i32
  %v = greta_tile.ptr_load %x0[%i] align 4 : !greta_tile.ptr<i32> -> i32
  %n = arith.addi %lane, %c1 : i32
  %behind = arith.andi %n, %c7 : i32
  %wide = arith.extsi %v : i32 to i64
  %c33 = arith.constant 4294967297 : i64
  %big = arith.muli %wide, %c33 : i64
  %moved = greta_tile.shuffle %big, %behind : i64
  %c32 = arith.constant 32 : i64
  %h = arith.shrui %moved, %c32 : i64
  %high = arith.trunci %h : i64 to i32
  %neg = arith.cmpi slt, %v, %c0 : i32
  %flag = greta_tile.shuffle %neg, %behind : i1
  %flagged = arith.extui %flag : i1 to i32
  greta_tile.ptr_store %high, %y0[%i] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.ptr_store %flagged, %y1[%i] align 4 : i32 -> !greta_tile.ptr<i32>"""
    behind = np.roll(x.reshape(-1, wave), -1, axis=1).ravel()
    high = ((behind.astype(np.int64) * 4294967297) >> 32).astype(np.int32)
    yield Kernel("shuffle", body, [x], [high, (behind < 0).astype(np.int32)], wave_size=wave)


def control(rng):
    """A loop of the lane's own length that carries a scalar and a vector, with a conditional that gives values and holds a loop."""
    x = rng.integers(0, 9, LANES).astype(np.int32)
    body = """  %lane = greta_tile.wave_id
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %n = greta_tile.ptr_load %x0[%lane] align 4 : !greta_tile.ptr<i32> -> i32
  %start = vector.from_elements %c0, %c1 : vector<2xi32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c0, %pair = %start) -> (i32, vector<2xi32>) : i32 {
    %odd = arith.andi %i, %c1 : i32
    %isodd = arith.cmpi eq, %odd, %c1 : i32
    %q:2 = scf.if %isodd -> (i32, vector<2xi32>) {
      %t = scf.for %j = %c0 to %i step %c1 iter_args(%u = %acc) -> (i32) : i32 {
        %w = arith.addi %u, %j : i32
        scf.yield %w : i32
      }
      scf.yield %t, %pair : i32, vector<2xi32>
    } else {
      %a = vector.extract %pair[0] : i32 from vector<2xi32>
      %b = vector.extract %pair[1] : i32 from vector<2xi32>
      %s = arith.addi %a, %b : i32
      %next = vector.from_elements %b, %s : vector<2xi32>
      scf.yield %acc, %next : i32, vector<2xi32>
    }
    scf.yield %q#0, %q#1 : i32, vector<2xi32>
  }
  %b = vector.extract %r#1[1] : i32 from vector<2xi32>
  greta_tile.ptr_store %r#0, %y0[%lane] align 4 : i32 -> !greta_tile.ptr<i32>
  greta_tile.ptr_store %b, %y1[%lane] align 4 : i32 -> !greta_tile.ptr<i32>"""
    sums, pairs = [], []
    for n in x:
        total, a, b = 0, 0, 1
        for i in range(n):
            if i % 2:
                total += sum(range(i))
            else:
                a, b = b, a + b
        sums.append(total)
        pairs.append(b)
    yield Kernel("control", body, [x], [np.array(sums, np.int32), np.array(pairs, np.int32)])


def kernels():
    rng = np.random.default_rng(20261121)
    return [k for group in (arithmetic, rounding, functions, comparisons, integers, reinterpretation, memory, packed, reductions, control, lane_fragments.fragments) for k in group(rng)]


def main(device, path, *names):
    from greta_runtime import GretaError, Package, Runtime

    runtime = Runtime(device)
    package = Package(runtime, path)
    for kernel in kernels():
        if kernel.name not in names:
            continue
        try:
            problem = kernel.check(package.function(kernel.name)(*kernel.inputs))
        except GretaError as error:
            problem = str(error)
        print(json.dumps({"kernel": kernel.name, "problem": problem}), flush=True)
    runtime.lib.greta_package_destroy(package.handle)
    runtime.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
