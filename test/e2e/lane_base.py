"""What a hand-written kernel at the lane level of greta_tile is: its text, its inputs and what it must give."""

import dataclasses

import numpy as np

from greta_runtime import DTYPES

MLIR_TYPES = {np.dtype(v): k for k, v in DTYPES.items()}
LANES = 64
EACH = 8  # elements a lane takes
SIZE = LANES * EACH


def mlir_type(array):
    return MLIR_TYPES[array.dtype]


@dataclasses.dataclass
class Kernel:
    """One kernel that is one function of a package; it starts `grid` workgroups."""

    name: str
    body: str
    inputs: list
    results: list  # expected
    wave_size: int = 1
    block_size: int = LANES
    grid: int = 1
    ulp: float = 0  # units in the last place of the result that it may be off, against a float64 reference
    absolute: float = 0  # or this much
    coopmat: list = dataclasses.field(default_factory=list)  # the manifest's requirements of that name
    layouts: list = dataclasses.field(default_factory=list)

    def mlir(self):
        arguments = ", ".join(f"%{n}{i}: !greta_tile.ptr<{mlir_type(a)}>" for n, arrays in (("x", self.inputs), ("y", self.results)) for i, a in enumerate(arrays))
        return f"greta_tile.func @{self.name}({arguments}) attributes {{waves = {self.block_size // self.wave_size} : i32, wave_size = {self.wave_size} : i32}} {{\n{self.body}\n  greta_tile.return\n}}\n"

    def check(self, actual):
        """None, or what is wrong."""
        for index, (a, e) in enumerate(zip(actual, self.results)):
            if a.dtype.kind in "iu":
                wrong = a != e
            else:
                reference = e.astype(np.float64)
                got = a.astype(np.float64)
                with np.errstate(all="ignore"):
                    allowed = self.ulp * np.abs(np.spacing(e.astype(a.dtype))).astype(np.float64) + self.absolute
                    close = np.abs(got - reference) <= allowed
                same = (got == reference) & (np.signbit(got) == np.signbit(reference)) | (np.isnan(got) & np.isnan(reference))
                wrong = ~(same | (close if self.ulp or self.absolute else False))
            if wrong.any():
                where = np.flatnonzero(wrong)
                shown = [f"[{i}] {a.flat[i]!r} instead of {e.flat[i]!r}" + (f" for {self.inputs[0].flat[i]!r}" if self.inputs[0].size == a.size else "") for i in where[:4]]
                return f"result {index}: {len(where)} of {a.size} wrong: " + "; ".join(shown)
        return None


def elementwise(name, formula, inputs, results, **options):
    """A kernel of as many workgroups as the arrays need; `formula` uses vectors %a0, %a1, ... and defines %r0, %r1, ..."""
    body = [
        "  %lane = greta_tile.wave_id" if options.get("wave_size", 1) == 1 else "  %lane = greta_tile.lane_id",
        f"  %each = arith.constant {EACH} : i32",
        f"  %perblock = arith.constant {SIZE} : i64",
        "  %pid = greta_tile.program_id 0",
        "  %pid64 = arith.extui %pid : i32 to i64",
        "  %base = arith.muli %pid64, %perblock : i64",
        "  %i = arith.muli %lane, %each : i32",
    ]
    for n, arrays in (("x", inputs), ("y", results)):
        body += [f"  %{n}b{i} = greta_tile.ptr_add %{n}{i}, %base : !greta_tile.ptr<{mlir_type(a)}>" for i, a in enumerate(arrays)]
    for i, a in enumerate(inputs):
        t = mlir_type(a)
        align = min(16, EACH * a.dtype.itemsize)
        body.append(f"  %a{i} = greta_tile.ptr_load %xb{i}[%i] align {align} : !greta_tile.ptr<{t}> -> vector<{EACH}x{t}>")
    body.append(formula)
    for i, a in enumerate(results):
        t = mlir_type(a)
        align = min(16, EACH * a.dtype.itemsize)
        body.append(f"  greta_tile.ptr_store %r{i}, %yb{i}[%i] align {align} : vector<{EACH}x{t}> -> !greta_tile.ptr<{t}>")
    padded = lambda a: np.concatenate([a, np.repeat(a[-1:], -a.size % SIZE)])
    return Kernel(name, "\n".join(body), [padded(a) for a in inputs], [padded(a) for a in results], grid=-(-inputs[0].size // SIZE), **options)


def V(kind):
    return f"vector<{EACH}x{kind}>"
