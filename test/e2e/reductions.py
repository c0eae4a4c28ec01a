"""Rows reduced by combinations of one or several values, for test_reductions.py: the functions, their inputs, and their definition in NumPy.

A name says everything: reduction_KIND_DIM_T_K, with DIM "d" for a dynamic T. The functions of a kind differ in their shapes alone.
"""

import dataclasses

import numpy as np

from case import Case, Kind, tensor

F32, I32 = "f32", "i32"


@dataclasses.dataclass(frozen=True)
class Reduction(Case, family="reduction"):
    kind: str
    dim: str
    t: int
    k: int

    @property
    def rows(self):
        return "?" if self.dim == "d" else self.t

    @property
    def precision(self):
        return BY_OP[self.kind][1] if self.kind in BY_OP else F32

    @property
    def depth(self):
        return self.k


class Text:
    """The lines of a case's function; `rows` and `row` are the types of a tensor of the whole shape and of one number for each row."""

    def __init__(self, p, **arguments):
        self.p, self.arguments, self.lines = p, arguments, []
        self.size = "%t" if p.rows == "?" else ""
        if p.rows == "?":
            self.lines += ["%c0 = arith.constant 0 : index", f"%t = tensor.dim %x, %c0 : {arguments['x']}"]

    def rows(self, dtype):
        return tensor(self.p.rows, self.p.k, dtype)

    def row(self, dtype):
        return tensor(self.p.rows, dtype)

    def filled(self, name, type, value):
        element = type[-4:-1]
        self.lines += [
            f"%c{name} = arith.constant {value} : {element}",
            f"%e{name} = tensor.empty({self.size}) : {type}",
            f"%{name} = linalg.fill ins(%c{name} : {element}) outs(%e{name} : {type}) -> {type}",
        ]

    def repeated(self, name, source, source_type, type, dim):
        self.lines += [f"%e{name} = tensor.empty({self.size}) : {type}", f"%{name} = linalg.broadcast ins(%{source} : {source_type}) outs(%e{name} : {type}) dimensions = [{dim}]"]

    def reduce(self, name, inputs, inits, body):
        """`inputs` is {name: element type}, `inits` the names of as many values; `body` combines (%a0, .., %b0, ..) to (%r0, ..)."""
        types = list(inputs.values())
        operands = lambda values, shape: f"{', '.join('%' + v for v in values)} : {', '.join(shape(t) for t in types)}"
        arguments = ", ".join(f"%{side}{i}: {t}" for side in "ab" for i, t in enumerate(types))
        results = f"{', '.join(f'%r{i}' for i in range(len(types)))} : {', '.join(types)}"
        count = f":{len(types)}" if len(types) > 1 else ""
        self.lines += [f"%{name}{count} = linalg.reduce ins({operands(inputs, self.rows)}) outs({operands(inits, self.row)}) dimensions = [1] ({arguments}) {{", body.strip(), f"linalg.yield {results}", "}"]

    def function(self, **results):
        arguments = ", ".join(f"%{name}: {type}" for name, type in self.arguments.items())
        types = ", ".join(results.values())
        values = ", ".join("%" + name.replace("_", "#") for name in results)
        return "\n".join([f"func.func @{self.p.name}({arguments}) -> ({types}) {{", *self.lines, f"return {values} : {types}", "}", ""])


# Combinations of one op: the op, its type, what changes nothing, and NumPy's.
BY_OP = {
    "sum": ("arith.addf", F32, "0.0", np.add),
    "product": ("arith.mulf", F32, "1.0", np.multiply),
    "maximum": ("arith.maximumf", F32, "0xFF800000", np.maximum),
    "minimum": ("arith.minimumf", F32, "0x7F800000", np.minimum),
    "maxnum": ("arith.maxnumf", F32, "0xFF800000", np.fmax),
    "sumi": ("arith.addi", I32, "0", np.add),
    "leasti": ("arith.minsi", I32, "2147483647", np.minimum),
    "mosti": ("arith.maxsi", I32, "-2147483648", np.maximum),
    "andi": ("arith.andi", I32, "-1", np.bitwise_and),
    "ori": ("arith.ori", I32, "0", np.bitwise_or),
    "xori": ("arith.xori", I32, "0", np.bitwise_xor),
}


def op_mlir(p, target):
    op, dtype, start, _ = BY_OP[p.kind]
    f = Text(p, x=tensor(p.rows, p.k, dtype))
    f.filled("s", f.row(dtype), start)
    f.lines.append(f"%y = linalg.reduce {{ {op} }} ins(%x : {f.rows(dtype)}) outs(%s : {f.row(dtype)}) dimensions = [1]")
    return f.function(y=f.row(dtype))


def op_inputs(p, rng):
    dtype = BY_OP[p.kind][1]
    if p.kind == "product":
        yield rng.choice([0.5, 1, 2, -1], (p.t, p.k)), dtype
    elif p.kind in ("andi", "ori", "xori"):
        few = np.int32(-1) << rng.integers(0, 31, (p.t, 1), np.int32)  # so that not all bits meet
        yield rng.integers(-(2**31), 2**31, (p.t, p.k)) | few if p.kind == "andi" else rng.integers(-(2**31), 2**31, (p.t, p.k)) & few, dtype
    else:
        yield rng.integers(-1000, 1000, (p.t, p.k)), dtype  # sums are exact


def op_reference(p, rounded, x):
    return BY_OP[p.kind][3].reduce(x, axis=1)


# The greater value, or of equal ones that which stands first.
FIRST_GREATEST = """%greater = arith.cmpf ogt, %a0, %b0 : f32
%equal = arith.cmpf oeq, %a0, %b0 : f32
%before = arith.cmpi slt, %a1, %b1 : i32
%tie = arith.andi %equal, %before : i1
%isA = arith.ori %greater, %tie : i1
%r0 = arith.select %isA, %a0, %b0 : f32
%r1 = arith.select %isA, %a1, %b1 : i32
"""


def argmax_mlir(p, target):
    """And how far below the maximum each element is."""
    f = Text(p, x=tensor(p.rows, p.k, F32), place=tensor(p.k, I32))
    f.repeated("places", "place", tensor(p.k, I32), f.rows(I32), 0)
    f.filled("least", f.row(F32), "0xFF800000")
    f.filled("none", f.row(I32), "2147483647")
    f.reduce("m", {"x": F32, "places": I32}, ["least", "none"], FIRST_GREATEST)
    f.repeated("most", "m#0", f.row(F32), f.rows(F32), 1)
    f.lines.append(f"%d = arith.subf %most, %x : {f.rows(F32)}")
    return f.function(m_0=f.row(F32), m_1=f.row(I32), d=f.rows(F32))


def argmax_inputs(p, rng):
    yield rng.integers(-1000, 1000, (p.t, p.k)), F32  # some maxima are twice there
    yield np.arange(p.k), I32


def argmax(p, rounded, x, place):
    most = x.max(axis=1)
    return [most, x.argmax(axis=1).astype(np.int32), most[:, None] - x]


def byKey_mlir(p, target):
    """The number whose key is least. Keys differ, so that the init, of the greatest key, never counts."""
    f = Text(p, x=tensor(p.rows, p.k, F32), key=tensor(p.rows, p.k, I32))
    f.filled("zero", f.row(F32), "0.0")
    f.filled("greatest", f.row(I32), "2147483647")
    body = "%isA = arith.cmpi slt, %a1, %b1 : i32\n%r0 = arith.select %isA, %a0, %b0 : f32\n%r1 = arith.minsi %a1, %b1 : i32\n"
    f.reduce("m", {"x": F32, "key": I32}, ["zero", "greatest"], body)
    return f.function(m_0=f.row(F32), m_1=f.row(I32))


def byKey_inputs(p, rng):
    yield rng.standard_normal((p.t, p.k)), F32
    yield np.stack([rng.permutation(p.k) for _ in range(p.t)]) - p.k // 2, I32


def byKey(p, rounded, x, key):
    return [np.take_along_axis(x, key.argmin(axis=1)[:, None], 1)[:, 0], key.min(axis=1)]


# Two sums of exponentials, each relative to its own maximum, as one.
JOINED_EXPONENTIALS = """%r0 = arith.maximumf %a0, %b0 : f32
%belowA = arith.subf %a0, %r0 : f32
%belowB = arith.subf %b0, %r0 : f32
%scaleA = math.exp %belowA : f32
%scaleB = math.exp %belowB : f32
%partA = arith.mulf %a1, %scaleA : f32
%partB = arith.mulf %b1, %scaleB : f32
%r1 = arith.addf %partA, %partB : f32
"""


def logsumexp_mlir(p, target):
    f = Text(p, x=tensor(p.rows, p.k, F32))
    f.filled("one", f.rows(F32), "1.0")
    f.filled("least", f.row(F32), "-1.0e30")
    f.filled("zero", f.row(F32), "0.0")
    f.reduce("m", {"x": F32, "one": F32}, ["least", "zero"], JOINED_EXPONENTIALS)
    f.lines += [f"%l = math.log %m#1 : {f.row(F32)}", f"%y = arith.addf %m#0, %l : {f.row(F32)}"]
    return f.function(y=f.row(F32))


def logsumexp(p, rounded, x):
    most = x.max(axis=1)
    return most + np.log(np.exp(x - most[:, None]).sum(axis=1))


# Chan, Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
JOINED_MOMENTS = """%r2 = arith.addf %a2, %b2 : f32
%delta = arith.subf %b0, %a0 : f32
%share = arith.divf %b2, %r2 : f32
%step = arith.mulf %delta, %share : f32
%r0 = arith.addf %a0, %step : f32
%square = arith.mulf %delta, %delta : f32
%weight = arith.mulf %a2, %share : f32
%between = arith.mulf %square, %weight : f32
%within = arith.addf %a1, %b1 : f32
%r1 = arith.addf %within, %between : f32
"""


def welford_mlir(p, target):
    """Rows without their mean, of the variance 1."""
    f = Text(p, x=tensor(p.rows, p.k, F32))
    f.filled("one", f.rows(F32), "1.0")
    f.filled("none", f.rows(F32), "0.0")
    f.filled("zero", f.row(F32), "0.0")
    f.reduce("m", {"x": F32, "none": F32, "one": F32}, ["zero", "zero", "zero"], JOINED_MOMENTS)
    f.lines += [f"%v = arith.divf %m#1, %m#2 : {f.row(F32)}", f"%s = math.rsqrt %v : {f.row(F32)}"]
    f.repeated("means", "m#0", f.row(F32), f.rows(F32), 1)
    f.repeated("scales", "s", f.row(F32), f.rows(F32), 1)
    f.lines += [f"%d = arith.subf %x, %means : {f.rows(F32)}", f"%y = arith.mulf %d, %scales : {f.rows(F32)}"]
    return f.function(m_0=f.row(F32), y=f.rows(F32))


def welford(p, rounded, x):
    return [x.mean(axis=1), (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)]


def both_mlir(p, target):
    """Two numbers of a row that have nothing to do with each other, from inits that count: one number for all rows, and one for each."""
    f = Text(p, x=tensor(p.rows, p.k, F32), y=tensor(p.rows, p.k, I32), start=tensor(p.rows, I32))
    f.filled("hundred", f.row(F32), "100.0")
    f.reduce("m", {"x": F32, "y": I32}, ["hundred", "start"], "%r0 = arith.addf %a0, %b0 : f32\n%r1 = arith.maxsi %a1, %b1 : i32\n")
    return f.function(m_0=f.row(F32), m_1=f.row(I32))


def both_inputs(p, rng):
    yield rng.integers(-1000, 1000, (p.t, p.k)), F32
    yield rng.integers(-1000, 1000, (p.t, p.k)), I32
    yield rng.integers(900, 1100, p.t), I32


def both(p, rounded, x, y, start):
    return [x.sum(axis=1) + 100, np.maximum(y.max(axis=1), start)]


def anyOf_mlir(p, target):
    """Rows of which an element is above 3 are negated."""
    f = Text(p, x=tensor(p.rows, p.k, F32))
    f.filled("three", f.rows(F32), "3.0")
    f.lines += [f"%is = arith.cmpf ogt, %x, %three : {f.rows(F32)}", "%cno = arith.constant false", f"%eno = tensor.empty({f.size}) : {f.row('i1')}"]
    f.lines += [f"%no = linalg.fill ins(%cno : i1) outs(%eno : {f.row('i1')}) -> {f.row('i1')}"]
    f.lines += [f"%any = linalg.reduce {{ arith.ori }} ins(%is : {f.rows('i1')}) outs(%no : {f.row('i1')}) dimensions = [1]"]
    f.repeated("any_", "any", f.row("i1"), f.rows("i1"), 1)
    f.lines += [f"%n = arith.negf %x : {f.rows(F32)}", f"%y = arith.select %any_, %n, %x : {f.rows('i1')}, {f.rows(F32)}"]
    return f.function(y=f.rows(F32))


def softmax_mlir(p, target):
    """By hand: two reductions, and what goes back to the rows."""
    f = Text(p, x=tensor(p.rows, p.k, F32))
    f.filled("least", f.row(F32), "0xFF800000")
    f.filled("zero", f.row(F32), "0.0")
    f.lines.append(f"%m = linalg.reduce {{ arith.maximumf }} ins(%x : {f.rows(F32)}) outs(%least : {f.row(F32)}) dimensions = [1]")
    f.repeated("most", "m", f.row(F32), f.rows(F32), 1)
    f.lines += [f"%below = arith.subf %x, %most : {f.rows(F32)}", f"%e = math.exp %below : {f.rows(F32)}"]
    f.lines.append(f"%s = linalg.reduce {{ arith.addf }} ins(%e : {f.rows(F32)}) outs(%zero : {f.row(F32)}) dimensions = [1]")
    f.repeated("sums", "s", f.row(F32), f.rows(F32), 1)
    f.lines.append(f"%y = arith.divf %e, %sums : {f.rows(F32)}")
    return f.function(y=f.rows(F32))


def softmax(p, rounded, x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def normal_inputs(p, rng):
    yield rng.standard_normal((p.t, p.k)) + 10 * (np.arange(p.t) % 2)[:, None] * (p.k > 1), F32


def anyOf_inputs(p, rng):
    x = rng.uniform(-3, 3, (p.t, p.k))
    x[::2, -1] = 4
    yield x, F32


KINDS = {
    **{name: Kind(op_mlir, op_inputs, op_reference, "exact") for name in BY_OP},
    "argmax": Kind(argmax_mlir, argmax_inputs, argmax, "exact"),
    "byKey": Kind(byKey_mlir, byKey_inputs, byKey, "exact"),
    "both": Kind(both_mlir, both_inputs, both, "exact"),
    "anyOf": Kind(anyOf_mlir, anyOf_inputs, lambda p, r, x: np.where((x > 3).any(axis=1, keepdims=True), -x, x), "exact"),
    "logsumexp": Kind(logsumexp_mlir, normal_inputs, logsumexp, "gemm, row op"),
    "softmax": Kind(softmax_mlir, normal_inputs, softmax, "gemm, row op"),
    "welford": Kind(welford_mlir, normal_inputs, welford, "layer norm", ("one after the other",)),
}
