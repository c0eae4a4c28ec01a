"""Chains of ops become one kernel, what cannot be fused becomes several, spills are none, and the answer stays the definition's."""

import pytest

import cases
import harness
from harness import check

# A package for every third op: CDNA's and RDNA's chips share the ops.
TARGETS = [("gfx942", "gfx1201", "vulkan", "host"), ("gfx90a", "gfx1100", "vulkan", "host"), ("gfx950", "gfx1201", "vulkan", "host")]
OPS_OF = [list(cases.OPS)[i::3] for i in range(3)]
COLUMNS = (7, 1000, 4096)
ROWS = (1, 3)
KERNELS = [pytest.param(op, cases.OPS[op].kernels, id=op) for op in cases.OPS]


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """{op: (its package, the package's targets)}"""
    known, directory = {}, tmp_path_factory.mktemp("fusion")
    for number, (ops, targets) in enumerate(zip(OPS_OF, TARGETS)):
        source = "\n".join(c.mlir() for c in cases.cases("f16", (4096,), ops))
        known |= dict.fromkeys(ops, (harness.compile_package(directory, f"ops{number}", source, ",".join(targets)), targets))
    return known


@pytest.mark.xdist_group("fusion")
@pytest.mark.parametrize("op, kernels", KERNELS)
def test_kernels_of_a_function(packages, op, kernels):
    """Also where the target splits a GEMM along K: the last workgroup at a tile adds the parts."""
    package, targets = packages[op]
    function = harness.function_of(package, cases.RowOp(op, "f16", 4096, 1).function)
    splits = any("split" in k.get("config", {}) for v in function["variants"] for k in v["kernels"])
    assert splits == ("matmul_deep" in op)
    found = {v["id"]: len(v["kernels"]) for v in function["variants"]}
    assert {v["target"].split(":")[0].split("-")[0] for v in function["variants"]} >= set(targets) - {"vulkan"}
    assert any(v["backend"] == "vulkan" for v in function["variants"])
    assert found == {i: 1 if i == "host" else kernels for i in found}


@pytest.mark.xdist_group("fusion")
@pytest.mark.parametrize("op", cases.OPS)
def test_no_spills(packages, op):
    package, targets = packages[op]
    function = harness.function_of(package, cases.RowOp(op, "f16", 4096, 1).function)
    checked = 0
    for variant in function["variants"]:
        for kernel in variant["kernels"]:
            if variant["backend"] == "hip":
                stats = kernel["stats"]
                spilled = {k: stats[k] for k in ("scratch_bytes", "vgpr_spills", "sgpr_spills")}
                assert not any(spilled.values()), f"{variant['id']}: {spilled}"
                checked += 1
    assert checked >= len(targets) - 2


@pytest.mark.xdist_group("fusion")
@pytest.mark.parametrize("op, kernels", KERNELS)
def test_inspect_shows_the_kernels(packages, op, kernels):
    shown = harness.tool(harness.RUN, packages[op][0], "--inspect", f"--function={cases.RowOp(op, 'f16', 4096, 1).function}")
    assert shown.returncode == 0, shown.stderr
    assert f"{kernels} kernel" in shown.stdout


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    """Results of the chains on a device, run once."""
    made = {}

    def results(device, dtype):
        target = device.removeprefix("sim:")
        if (device, dtype) not in made:
            work = [c.name for c in cases.cases(dtype, COLUMNS, cases.CHAINS, ROWS)]
            source = "\n".join(c.mlir() for c in cases.cases(dtype, COLUMNS, cases.CHAINS))
            package = harness.compile_package(tmp_path_factory.mktemp("chains"), f"{target}_{dtype}", source, target)
            made[device, dtype] = harness.run_cases(device, package, work)
        return made[device, dtype]

    return results


@pytest.mark.xdist_group("chains")
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("op", cases.CHAINS)
@pytest.mark.parametrize("dtype", cases.ELEMENT_TYPES)
@pytest.mark.parametrize("device", ("vulkan", "host", "sim:gfx942", "sim:gfx1100"))
def test_numerics_of_chains(chains, device, dtype, op, columns):
    check(chains(device, dtype), *cases.cases(dtype, (columns,), (op,), ROWS))
