"""Runs the kernels of lane_kernels.py through greta-expand and greta-tile-to-spirv on this machine's Vulkan driver and on testing's lavapipe, where the
validation layer listens.

The package is put together here, because greta-translate takes functions, not kernels.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import zipfile

import pytest

import lane_fragments
import lane_kernels
from conftest import BUILD, DRIVERS, ROOT
from harness import RUN, lavapipe_launcher, tool
from lane_base import mlir_type

OPT = BUILD / "bin" / "greta-opt"
LLVM_TOOLS = re.search(r'llvm_tools = r"(.*)"', (BUILD / "test" / "lit" / "lit.site.cfg.py").read_text())[1]
FEATURES = {
    "Int64": "shaderInt64",
    "Int16": "shaderInt16",
    "Int8": "shaderInt8",
    "Float16": "shaderFloat16",
    "StorageBuffer16BitAccess": "storageBuffer16BitAccess",
    "StorageBuffer8BitAccess": "storageBuffer8BitAccess",
    "PhysicalStorageBufferAddresses": "bufferDeviceAddress",
    "RoundingModeRTE": "shaderRoundingModeRTEFloat16",
    "VulkanMemoryModel": "vulkanMemoryModel",
    "CooperativeMatrixKHR": "cooperativeMatrix",
}
SUBGROUP_OPS = {"GroupNonUniform": "basic", "GroupNonUniformShuffle": "shuffle"}


def shared_bytes(module):
    """What the module's arrays in workgroup memory take."""
    declared = re.findall(r"spirv\.GlobalVariable @\w+ : !spirv\.ptr<(.*), Workgroup>", module)
    arrays = [re.fullmatch(r"!spirv\.array<(\d+) x (?:vector<(\d+)x)?[if](\d+)>?(?:, stride=\d+)?>", array).groups() for array in declared]
    return sum(int(size) * int(width or 1) * int(bits) // 8 for size, width, bits in arrays)


def describe(kernel, module, binary):
    """The manifest's entry of one kernel."""
    capabilities = re.search(r"#spirv\.vce<v1\.5, \[(.*?)\]", module)[1].split(", ")
    unknown = set(capabilities) - FEATURES.keys() - SUBGROUP_OPS.keys() - {"Shader"}
    assert not unknown, f"{kernel.name} declares {unknown}"
    requires = {"features": [FEATURES[c] for c in capabilities if c in FEATURES]}
    if "GroupNonUniform" in capabilities:
        requires |= {"subgroup_size": kernel.wave_size, "subgroup_ops": [SUBGROUP_OPS[c] for c in capabilities if c in SUBGROUP_OPS]}

    for name in ("coopmat", "layouts"):
        if getattr(kernel, name):
            requires[name] = getattr(kernel, name)

    def tensors(prefix, arrays, access):
        return [{"name": f"{prefix}{i}", "dtype": mlir_type(a), "shape": list(a.shape), "access": access} for i, a in enumerate(arrays)]

    arguments = [{"kind": kind, "index": i} for kind, arrays in (("arg", kernel.inputs), ("result", kernel.results)) for i in range(len(arrays))]
    code = {
        "file": f"objects/{kernel.name}.spv",
        "sha256": hashlib.sha256(binary).hexdigest(),
        "entry": kernel.name,
        "block": [kernel.block_size, 1, 1],
        "grid": [kernel.grid, 1, 1],
        "lds_bytes": shared_bytes(module),
        "args": arguments,
    }
    variant = {"id": "lane", "target": "vulkan", "backend": "vulkan", "requires": requires, "temps": [], "kernels": [code]}
    return {"name": kernel.name, "symbols": [], "args": tensors("x", kernel.inputs, "read"), "results": tensors("y", kernel.results, "write"), "variants": [variant]}


def make_package(path, kernels):
    made = tool(OPT, "--pass-pipeline=builtin.module(greta_tile.func(greta-expand{target=vulkan:portable}),greta-tile-to-spirv)", "-", input="".join(k.mlir() for k in kernels))
    assert made.returncode == 0, made.stderr[:4000]
    modules = {m[1]: m[0] for m in re.finditer(r"^  spirv\.module @(\w+).*?^  }$", made.stdout, re.M | re.S)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        functions = []
        for kernel in kernels:
            command = [os.path.join(LLVM_TOOLS, "mlir-translate"), "--no-implicit-module", "--serialize-spirv"]
            binary = subprocess.run(command, input=modules[kernel.name].encode(), capture_output=True, check=True).stdout
            archive.writestr(f"objects/{kernel.name}.spv", binary)
            functions.append(describe(kernel, modules[kernel.name], binary))
        manifest = {"schema": 1, "compiler": {"greta": "0.1.0", "llvm": "22.1.8"}, "functions": functions}
        archive.writestr("manifest.json", json.dumps(manifest))
    return path


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return make_package(tmp_path_factory.mktemp("lane") / "lane.greta", lane_kernels.kernels())


@pytest.mark.parametrize("driver", ["system", "testing"])
def test_lane_kernels(package, driver, driver_parts):
    if driver == "testing" and "lavapipe" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no lavapipe here")
    launcher = lavapipe_launcher() if driver == "testing" else ()
    # Debian 12's drivers have no cooperative matrices.
    names = [k.name for k in lane_kernels.kernels() if driver == "testing" or not k.coopmat]
    command = [*launcher, sys.executable, ROOT / "test" / "e2e" / "lane_kernels.py", "vulkan", package, *names]
    ran = tool(*command, env={**os.environ, "PYTHONPATH": str(ROOT / "scripts" / "lib")})
    outcomes = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [o["kernel"] for o in outcomes] == names, ran.stderr[-2000:]
    problems = [f"{o['kernel']}: {o['problem']}" for o in outcomes if o["problem"]]
    assert not problems, "\n".join(problems)
    assert ran.returncode == 0, ran.stderr[-4000:]


def test_radv_has_wmma(tmp_path, driver_parts):
    """RADV's compiler for RDNA3 makes matrix instructions of the products, with 16 bytes an access and without spills."""
    if "radv" not in driver_parts:
        pytest.skip("scripts/vulkan-drivers has no RADV here")
    package = make_package(tmp_path / "wmma.greta", list(lane_fragments.wmma()))
    command = [DRIVERS, "radv", "navi31", "env", f"XDG_CACHE_HOME={tmp_path}", RUN, package, "--inspect", "--device=vulkan"]
    ran = tool(*command, env={**os.environ, "RADV_DEBUG": "shaders,nocache"})
    assert ran.returncode == 0, ran.stderr[-2000:]
    code = ran.stdout + ran.stderr
    for instruction in ("v_wmma_f32_16x16x16_f16", "v_wmma_i32_16x16x16_iu8", "ds_store_b128", "global_load_b128"):
        assert instruction in code
    statistics = re.findall(r"driver, wmma_\w+: .*", ran.stdout)
    assert len(statistics) == 2
    for line in statistics:
        assert "Scratch size 0, Spilled SGPRs 0, Spilled VGPRs 0" in line
