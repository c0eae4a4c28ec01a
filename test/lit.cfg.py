"""lit configuration: what runs under test/lit, the tools it may call, and the features it may ask for.

Substitutions: every tool below by its name, and
  %python        the Python of build/venv (numpy, ml_dtypes)
  %lavapipe      runs its command on testing's lavapipe, with the validation layer: any message fails the test
  %radv CHIP     runs its command on RADV's null device
  %radeon CHIP   runs it on the virtual Radeon: RADV over the simulator
  %spirv-val     testing's spirv-val, which knows every extension we emit
Features: compiler (the compiler was built), vulkan (a Vulkan driver of this machine), coopmat-lavapipe (testing's lavapipe, validation
layer and spirv-val), radv-null (RADV's null device).
"""

import glob
import os
import subprocess
import sys

import lit.formats

root = config.greta_source_root
build = config.greta_build_root

config.name = "greta"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(root, "test", "lit")
config.test_exec_root = os.path.join(build, "test", "lit")

llvm_tools = config.llvm_tools or "/usr/lib/llvm-22/bin"
config.environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), llvm_tools, os.environ["PATH"]])
for name in ("HOME", "XDG_CACHE_HOME", "GRETA_CACHE", "VK_DRIVER_FILES"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# A compiler bug should say where.
config.environment["LLVM_SYMBOLIZER_PATH"] = os.path.join(llvm_tools, "llvm-symbolizer")

drivers = os.path.join(root, "scripts", "vulkan-drivers")
venv_python = os.path.join(root, "build", "venv", "bin", "python")
config.substitutions += [
    ("%python", venv_python if os.path.exists(venv_python) else sys.executable),
    ("%lavapipe", f"{drivers} lavapipe --validate"),
    ("%radv", f"{drivers} radv"),
    ("%radeon", os.path.join(root, "scripts", "virtual-radeon")),
    ("%spirv-val", f"{drivers} tool spirv-val"),
    ("%root", root),
    ("%build", build),
]

if os.path.exists(os.path.join(build, "bin", "greta-opt")):
    config.available_features.add("compiler")
parts = subprocess.run([drivers, "status"], capture_output=True, text=True, check=True).stdout.split()
config.available_features |= {feature for part, feature in {"lavapipe": "coopmat-lavapipe", "radv": "radv-null"}.items() if part in parts}
if "VK_DRIVER_FILES" in os.environ or glob.glob("/usr/share/vulkan/icd.d/lvp*.json"):
    config.available_features.add("vulkan")
