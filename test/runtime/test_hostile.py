"""Packages from elsewhere: what is wrong with one ends in one diagnostic of greta-run, and nothing of it runs unasked."""

import os
import struct
import subprocess

import make_package
import pytest
from test_run import run

INPUT = "--input=2x2xf32:value:1"


def spirv(*instructions):
    words = [0x07230203, 0x10500, 0, 8, 0]
    for op, *operands in instructions:
        words += [len(operands) + 1 << 16 | op, *operands]
    return struct.pack(f"<{len(words)}I", *words)


# 64 bytes: an entry point "scale" and its LocalSize, and no function.
TINY = spirv((15, 5, 1, 0x6C616373, 0x65), (16, 1, 17, 64, 1, 1))
HEADER = b"\x7fELF\2\1\1\x40\4" + bytes(7) + struct.pack("<HHIQQQIHHHHHH", 3, 224, 1, 0, 1 << 40, 1 << 40, 0x4C, 64, 56, 8, 64, 15, 13)


def test_modules_that_end_early(tmp_path):
    assert len(TINY) == 64
    for module, says in (
        (TINY, "the entry point's function is not there"),
        (TINY[:-4], "an instruction of 6 words, 5 are left"),
        (TINY[:20], "no compute entry point 'scale'"),
        (b"", "not a SPIR-V module"),
        (b"\3\2\x23\7\0", "not a SPIR-V module"),
    ):
        package = make_package.make(tmp_path / "p.greta", objects={"scale.spv": module})
        message = run(package, "--device=vulkan", INPUT, "--output=y.npy", status=1, cwd=tmp_path)
        assert says in message and "objects/scale.spv" in message, message
        assert not (tmp_path / "y.npy").exists()


def for_gfx942(manifest):
    code = make_package.kernel("scale.gfx942.hsaco", "scale")
    manifest["functions"][0]["variants"] = [{"id": "gfx942", "target": "gfx942", "backend": "hip", "requires": {"arch": "gfx942"}, "kernels": [code]}]


def test_code_objects_that_end_early(tmp_path):
    assert len(HEADER) == 64
    for code, says in ((HEADER, "the program headers"), (HEADER[:5], "the ELF header"), (b"", "not an ELF file"), (b"hsaco", "not an ELF file")):
        package = make_package.make(tmp_path / "p.greta", for_gfx942, {"scale.gfx942.hsaco": code})
        message = run(package, "--device=sim:gfx942", INPUT, "--output=y.npy", status=1, cwd=tmp_path)
        assert says in message and "objects/scale.gfx942.hsaco" in message, message
        assert not (tmp_path / "y.npy").exists()


def test_host_objects_that_end_early(tmp_path):
    whole = (make_package.FIXTURES / "host_scale.so").read_bytes()
    for size in (0, 5, 64, 200, len(whole) // 2):
        package = make_package.make(tmp_path / "p.greta", objects={"host_scale.so": whole[:size]})
        assert "objects/host_scale.so" in run(package, "--device=host", INPUT, status=1)


@pytest.fixture
def trap(tmp_path):
    """A package whose host object leaves a mark as soon as it is loaded."""
    source = tmp_path / "trap.c"
    mark = tmp_path / "mark"
    source.write_text(
        f"""#include <stdio.h>
        __attribute__((constructor)) static void run(void) {{ fclose(fopen("{mark}", "w")); }}
        void scale(void **pointers, const long *symbols) {{
          const float *x = pointers[0];
          float *y = pointers[1];
          for (long i = 0; i < symbols[0] * symbols[1]; i++)
            y[i] = 2 * x[i] + 1;
        }}"""
    )
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", tmp_path / "trap.so"], check=True)
    package = make_package.make(tmp_path / "trap.greta", objects={"host_scale.so": (tmp_path / "trap.so").read_bytes()})
    return package, mark


# No GPU is left, so the default device is the host.
NO_GPU = {"GRETA_VULKAN_DENY": "a,e,i,o,u", "GRETA_HIP_LIBRARY": "/nonexistent"}


def test_native_code_only_where_asked_for(trap):
    package, mark = trap
    message = run(package, INPUT, status=1, **NO_GPU)
    assert "native code" in message and "ask for the device by its name" in message
    run(package, "--inspect")
    run(package, "--device=vulkan", INPUT)
    assert not mark.exists()
    for asked in (["--device=host"], ["--device=vulkan", "--check"]):
        run(package, INPUT, "--expect=2x2xf32:value:3", *asked)
        assert mark.exists()
        mark.unlink()


def test_native_code_refused(trap):
    package, mark = trap
    for asked in (["--device=host"], ["--device=vulkan", "--check"]):
        assert "which this process refuses" in run(package, INPUT, "--no-native-code", *asked, status=1)
        assert "which this process refuses" in run(package, INPUT, *asked, status=1, GRETA_NO_NATIVE="1")
    assert not mark.exists()


def test_caches_are_private(tmp_path):
    folder = tmp_path / "greta"
    package = make_package.make(tmp_path / "p.greta")
    old = os.umask(0)
    try:
        run(package, "--device=vulkan", INPUT, XDG_CACHE_HOME=str(tmp_path))
        assert folder.stat().st_mode & 0o777 == 0o700 and list(folder.iterdir())
        folder.chmod(0o777)  # as older versions left it
        run(package, "--device=vulkan", INPUT, XDG_CACHE_HOME=str(tmp_path))
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(old)


def test_caches_of_others_are_not_used(tmp_path):
    folder = tmp_path / "greta"
    if os.geteuid() == 0:
        folder.mkdir(mode=0o777)
        os.chown(folder, 12345, 12345)
    else:
        folder.symlink_to("/tmp")  # root's, and anybody may write there
    run(make_package.make(tmp_path / "p.greta"), "--device=vulkan", INPUT, XDG_CACHE_HOME=str(tmp_path))
    assert not list(folder.glob("vulkan-*"))
