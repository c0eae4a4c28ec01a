"""The runtime as others get it: built without the compiler, installed, and examples/c against that copy; README's commands and C."""

import os
import re
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

README = (ROOT / "README.md").read_text()
VERSION = re.search(r"project\(greta VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
EXAMPLE = ROOT / "examples" / "c" / "residual_rms_norm.c"
pytestmark = pytest.mark.xdist_group("install")  # one build for all
DEVICES = ("host", "vulkan", "sim:gfx942")


def tool(*command, **options):
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert run.returncode == 0, f"{command}\n{run.stdout}{run.stderr}"
    return run.stdout


def section(title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)[1]


def blocks(text, language):
    return [body for name, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if name == language]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """A runtime-only build with GCC, without a warning, installed, and moved to where nothing but its own files can lead back."""
    build, installed = BUILD / "test-install-gcc", tmp_path_factory.mktemp("install")
    # A third less to wait for, and of the runtime as one unit another third.
    unoptimised = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0 -Werror", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=64"]
    gcc = ["-DCMAKE_C_COMPILER=gcc", "-DCMAKE_CXX_COMPILER=g++"]  # and its own linker; all else is built with clang and lld
    gcc += [f"-DCMAKE_{kind}_LINKER_FLAGS=" for kind in ("EXE", "SHARED", "MODULE")]
    tool("cmake", "--preset", "default", "-B", build, "-DGRETA_BUILD_COMPILER=OFF", "-DGRETA_BUILD_TESTS=OFF", *gcc, *unoptimised, cwd=ROOT)
    tool("ninja", "-C", build)
    tool("cmake", "--install", build, "--prefix", installed / "first")
    return (installed / "first").rename(installed / "moved")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = tmp_path_factory.mktemp("package") / "norm.greta"
    tool(BUILD / "bin" / "greta-translate", "--greta-to-package", "--targets=gfx942,vulkan,host", ROOT / "examples" / "residual_rms_norm.mlir", "-o", path)
    return path


def runs_example(program, package, device="host", **environment):
    assert "0 of 24576 results are not 2.0" in tool(program, package, device, env=os.environ | environment)


def test_needs_neither_llvm_nor_amds_headers(prefix):
    build = BUILD / "test-install-gcc"
    headers = tool("ninja", "-C", build, "-t", "deps")
    assert "greta_runtime.h" in headers
    assert not re.search(r"/llvm-22/include/|/include/hip/", headers)
    assert not re.search(r"^(LLVM|MLIR)_DIR:", (build / "CMakeCache.txt").read_text(), re.MULTILINE)


def test_exports_the_api_alone(prefix):
    library = (prefix / "lib" / "libgreta_runtime.so").resolve()
    declared = set(re.findall(r"\b(greta_\w+)\(", tool("clang-22", "-E", "-P", prefix / "include" / "greta_runtime.h")))
    listed = tool("nm", "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    exported = {name.split("@")[0] for name, kind, *_ in map(str.split, listed) if kind != "A"}  # A: the version itself
    assert exported == declared
    assert "[libgreta_runtime.so.0]" in tool("readelf", "--dynamic", library)


def declarations(include):
    """Returns the declarations that a program is compiled against: each function, type and constant on a line, without comments."""
    text = ""
    for part in re.findall(r'#include "(greta_runtime/\w+\.h)"', (include / "greta_runtime.h").read_text()):
        text += re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", "", (include / part).read_text(), flags=re.DOTALL | re.MULTILINE).split('extern "C" {')[1].rsplit("}", 1)[0]
    lines, depth = [""], 0
    for character in text:
        depth += {"{": 1, "}": -1}.get(character, 0)
        lines[-1] += character
        if character == ";" and not depth:
            lines.append("")
    return [" ".join(line.split()) for line in lines if line.strip()]


def test_the_abi_is_the_committed_one():
    """runtime/abi.txt has it. A line that is new is added there; one that goes or changes breaks programs that are linked with this
    soname, unless it is a struct with struct_size that grows at its end (test/unit/runtime/AbiTest.cpp has offsets and sizes)."""
    declared = declarations(ROOT / "runtime" / "include")
    committed = (ROOT / "runtime" / "abi.txt").read_text().splitlines()
    assert sum(line.startswith("GRETA_API") for line in declared) > 70
    assert declared == committed


def test_example_with_cmake(prefix, package, tmp_path):
    tool("cmake", "-S", EXAMPLE.parent, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_COMPILER=cc")
    tool("cmake", "--build", tmp_path)
    runs_example(tmp_path / "example", package)


def test_example_with_pkg_config(prefix, package, tmp_path):
    flags = tool("pkg-config", "--cflags", "--libs", "greta-runtime", env=os.environ | {"PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}).split()
    tool("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", EXAMPLE, *flags, "-o", tmp_path / "example")
    runs_example(tmp_path / "example", package, LD_LIBRARY_PATH=str(prefix / "lib"))
    assert tool(prefix / "bin" / "greta-run", "--version").startswith(f"greta-run {VERSION}\n")


@pytest.mark.parametrize("device", DEVICES)
def test_example_on_device(package, tmp_path, device):
    flags = [f"-I{ROOT}/runtime/include", f"-L{BUILD}/lib", "-lgreta_runtime", f"-Wl,-rpath,{BUILD}/lib"]
    tool("cc", EXAMPLE, *flags, "-o", tmp_path / "example")
    runs_example(tmp_path / "example", package, device)


@pytest.mark.parametrize("device", ["vulkan", "sim:gfx942"])
def test_compute_example(tmp_path, device):
    """The shipped package's functions by name and shape, as a graph."""
    flags = [f"-I{ROOT}/runtime/include", f"-L{BUILD}/lib", "-lgreta_runtime", f"-Wl,-rpath,{BUILD}/lib"]
    tool("c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", EXAMPLE.parent / "compute.cpp", *flags, "-o", tmp_path / "compute")
    assert tool(tmp_path / "compute", device) == "0 of 1152 results are wrong\n"


def test_compute_example_without_the_shipped_package(prefix, tmp_path):
    """A runtime-only installation has no compiler to make it: that is said."""
    tool("cmake", "-S", EXAMPLE.parent, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_COMPILER=cc", "-DCMAKE_CXX_COMPILER=c++")
    tool("cmake", "--build", tmp_path, "--target", "compute")
    ran = subprocess.run([tmp_path / "compute", "host"], capture_output=True, text=True)
    assert ran.returncode == 1 and "greta_compute.greta" in ran.stderr and "No such file" in ran.stderr


def test_readme_shows_lines_of_the_example():
    lines = lambda text: "\n".join(map(str.strip, text.splitlines()))
    shown = blocks(section("From C"), "c")
    assert shown and all(lines(part) in lines(EXAMPLE.read_text()) for part in shown)


def test_readme_commands(tmp_path):
    """What README says to type, in order, in a folder that has the repository's build and examples."""
    for name in ("build", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    compiling, from_c = section("Compile and run a function"), section("From C")
    (source,) = blocks(compiling, "mlir")
    assert source.split("\n", 1)[1] in (ROOT / "examples" / "residual_rms_norm.mlir").read_text()
    for block in (*blocks(compiling, ""), *blocks(from_c, "")):
        tool("bash", "-euc", block.replace("/opt/greta", f"{tmp_path}/greta"), cwd=tmp_path)
    for name in ("greta-opt", "greta-run", "greta-sim", "greta-translate", "greta-tune"):
        assert tool(tmp_path / "greta" / "bin" / name, "--version").startswith(f"{name} {VERSION}\n")


def test_readme_python(tmp_path):
    """README's lines of Python, as a program."""
    pytest.importorskip("triton")
    code, _ = blocks(section("From Python"), "python")  # the other one trains: test/torch/test_torch_training.py
    (tmp_path / "readme.py").write_text(code)
    assert len(code.splitlines()) == 10
    assert "1000.0 greta.array([" in tool(sys.executable, "readme.py", cwd=tmp_path)
