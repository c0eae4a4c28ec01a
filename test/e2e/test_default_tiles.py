"""What ships is what runs: the configuration that the compiler chooses by itself for a GEMM of 4096x4096x4096 is executed in the simulator,
with all its checks, on every family and for every type; none of them spills.

The GEMM itself is only compiled; its manifest says what was chosen. `greta.config` asks for the same on a GEMM of one tile with more K
tiles than the pipeline has stages, and on a twin whose M, N and K the tile does not divide, whose manifest must then say the same. The
numbers are small integers, so that every sum is exact and every element equal to NumPy's.
"""

import dataclasses
import re

import numpy as np
import pytest

import harness
from case import tensor
from greta_runtime import DTYPES
from harness import AMD_CHIPS
from gemms import nibbles

LARGE = 4096
OUT = {"f16": "f16", "bf16": "bf16", "f32": "f32", "i8": "i32", "f8": "f16", "w4": "f16", "batch": "f16"}
LAYOUTS = {"f16": ("nt", "nn", "tn", "tt"), "i8": ("nt", "nn", "tn", "tt"), "f8": ("nt", "nn", "tn", "tt"), "w4": ("nt",), "batch": ("nt",)}
KINDS = tuple(f"{dtype}{layout}" for dtype in OUT for layout in LAYOUTS.get(dtype, ("nt", "nn")))


@dataclasses.dataclass(frozen=True)
class Gemm:
    """"nt": A [M, K] as it is, B transposed, [N, K]; "w4": B of 4 bits (greta.dequant), A of f16; "batch": two of f16."""

    chip: str
    kind: str
    m: int = LARGE
    n: int = LARGE
    k: int = LARGE
    group: int = 128  # of packed weights
    config: str = ""

    @property
    def name(self):
        return f"{self.kind}_{self.m}_{self.n}_{self.k}"

    @property
    def dtype(self):
        kind = self.kind[:-2]
        return {"w4": "f16", "batch": "f16", "f8": "f8e4m3fnuz" if self.chip == "gfx942" else "f8e4m3fn"}.get(kind, kind)

    @property
    def out(self):
        return OUT[self.kind[:-2]]

    @property
    def transposed(self):
        return [letter == "t" for letter in self.kind[-2:]]

    @property
    def shapes(self):
        """Of A, B and the result as they are stored."""
        batch = (2,) if self.kind.startswith("batch") else ()
        a, b = (shape[::-1] if t else shape for shape, t in zip(((self.m, self.k), (self.k, self.n)), self.transposed))
        return [(*batch, *shape) for shape in (a, b, (self.m, self.n))]

    def mlir(self):
        dtype = self.dtype.replace("f8e4m3", "f8E4M3").replace("fnuz", "FNUZ").replace("fn", "FN")
        a, b, y = (tensor(*shape, t) for shape, t in zip(self.shapes, (dtype, dtype, self.out)))
        flags = ", ".join([f"transpose_{x}" for x, t in zip("ab", self.transposed) if t] + [self.config] * bool(self.config))
        arguments, dequant = f"%b: {b}", ""
        if self.kind.startswith("w4"):
            groups = self.k // self.group
            q, scales, zeros = tensor(self.n, self.k // 8, "i32"), tensor(self.n, groups, "f16"), tensor(self.n, -(-groups // 8), "i32")
            arguments = f"%q: {q}, %scales: {scales}, %zeros: {zeros}"
            dequant = f"  %b = greta.dequant %q, %scales, %zeros {{group = {self.group}}} : {q}, {scales}, {zeros} -> {b}\n"
        return f"""func.func @{self.name}(%a: {a}, {arguments}) -> {y} {{
{dequant}  %0 = greta.matmul %a, %b {{{flags}}} : {a}, {b} -> {y}
  return %0 : {y}
}}
"""

    def inputs(self, rng):
        """The arguments, and A [.., M, K] and B [.., K, N] as integers."""
        a, b = (rng.integers(-2, 3, shape) for shape in self.shapes[:2])
        if not self.kind.startswith("w4"):
            return [a, b], *(np.swapaxes(x, -1, -2) if t else x for x, t in zip((a, b), self.transposed))
        groups = self.k // self.group
        q, zeros = (rng.integers(-(2**31), 2**31, (self.n, columns)) for columns in (self.k // 8, -(-groups // 8)))
        scales = rng.choice([-1, 1, 2], (self.n, groups))
        b = (nibbles(q, self.k) - nibbles(zeros, groups).repeat(self.group, axis=1)) * scales.repeat(self.group, axis=1)
        return [a, q, scales, zeros], a, b.T

    def like(self, config, twin):
        """One tile with more K tiles than stages; or a tile and a bit along M, a part of one along N, and as many K tiles and a part of one."""
        m, n, k, stages = config["rows"], config["columns"], config["depth"], config.get("stages", 1)
        names = {"tile": [m, n, k], "waves": config["waves"]}
        if "instruction" in config:
            names["instruction"] = [int(x) for x in re.search(r"(\d+)x(\d+)x(\d+)", config["instruction"]).groups()]
        names |= {name: config[name] for name in ("stages", "slice", "group", "split") if name in config}
        text = ", ".join([*(f"{name} = {value}" for name, value in names.items()), *(["direct"] if "direct" in config else [])])
        # Rows stay aligned to 16 bytes, without which LLVM gets other code, and packed weights are made of whole groups.
        k *= stages + 1
        group = 128
        if self.kind.startswith("w4"):
            group = 32 if twin else 128
            k = -(-k // group) * group
        size = dict(m=m + (16 if self.transposed[0] else 1), n=n - 16, k=k + (32 if self.kind.startswith("w4") else 16)) if twin else dict(m=m, n=n, k=k)
        return dataclasses.replace(self, **size, group=group, config=f"greta.config = {{{text}}}")


def config_of(package, gemm):
    """Configuration and statistics of the GEMM's only kernel."""
    (variant,) = [v for v in harness.function_of(package, gemm.name)["variants"] if v["id"].startswith(gemm.chip)][:1]
    (kernel,) = variant["kernels"]
    return kernel["config"], kernel["stats"]


def kinds_of(chip):
    """All of them on one chip of each family; three siblings that follow each other share them."""
    return harness.share_of(KINDS, chip, 3) if chip in harness.AMD_SIBLINGS else KINDS


def kinds_run_on(chip):
    """Two families that follow each other share what is run, each most types in half of their layouts. GRETA_TEST_WHOLE=1: all of them."""
    return kinds_of(chip) if chip in harness.AMD_SIBLINGS else harness.share_of(KINDS, chip, 2)


@pytest.fixture(scope="session")
def chosen(tmp_path_factory):
    """chip -> kind -> (what is chosen for the large GEMM, [the GEMMs to run], their package); compiled once."""
    made = {}

    def of(chip):
        if chip not in made:
            directory = tmp_path_factory.mktemp("default_tiles")
            large = [Gemm(chip, kind) for kind in kinds_of(chip)]
            package = harness.compile_package(directory, "large", "\n".join(g.mlir() for g in large), chip)
            found = {g.kind: config_of(package, g) for g in large}
            run = kinds_run_on(chip)
            small = {g.kind: [g.like(found[g.kind][0], twin) for twin in (False, True) if g.kind in run] for g in large}
            package = harness.compile_package(directory, "small", "\n".join(g.mlir() for both in small.values() for g in both), chip)
            made[chip] = {kind: (found[kind], small[kind], package) for kind in found}
        return made[chip]

    return of


def run(directory, package, gemm):
    arrays, a, b = gemm.inputs(np.random.default_rng(gemm.m))
    types = [gemm.dtype, gemm.dtype] if len(arrays) == 2 else [gemm.dtype, "i32", "f16", "i32"]
    inputs = []
    for i, (array, dtype) in enumerate(zip(arrays, types)):
        array = array.astype(DTYPES[dtype])
        prefix = f"{dtype}:" if dtype.startswith(("bf", "f8")) else ""
        np.save(directory / f"{i}.npy", array.view({2: np.uint16, 1: np.uint8}[array.itemsize]) if prefix else array)
        inputs.append(f"--input={prefix}{directory / f'{i}.npy'}")
    ran = harness.tool(harness.RUN, package, f"--function={gemm.name}", f"--device=sim:{gemm.chip}", *inputs, f"--output={directory / 'y.npy'}")
    assert ran.returncode == 0, ran.stderr
    y, want = np.load(directory / "y.npy"), (a @ b).astype(DTYPES[gemm.out])
    if gemm.out == "bf16":
        want = want.view(np.uint16)
    wrong = np.argwhere(y != want)
    assert not len(wrong), f"{gemm.name}: {len(wrong)} of {y.size} elements differ, the first at {wrong[0]}: {y[tuple(wrong[0])]} is not {want[tuple(wrong[0])]}"


@pytest.mark.parametrize("chip, kind", [pytest.param(c, k, id=f"{c}-{k}", marks=pytest.mark.xdist_group(f"default-{c}")) for c in AMD_CHIPS for k in kinds_of(c)])
def test_default_tile(chosen, tmp_path, chip, kind):
    (config, stats), gemms, package = chosen(chip)[kind]
    assert not stats["vgpr_spills"] and not stats["scratch_bytes"], f"the default {config} spills: {stats}"
    for gemm in gemms:
        assert config_of(package, gemm)[0] == config
        run(tmp_path, package, gemm)
