"""A kernel in a C program: compile ahead of time, generate a header, launch.

greta.compile makes a package of the kernel for several targets; greta-translate makes a C header of the package, with the bytes and a typed function for each
kernel; the program links GRETA's runtime alone. Neither Python nor a compiler is on the machine where it runs.

    python packages_in_c.py PREFIX        PREFIX: where GRETA is installed (cmake --install build --prefix=PREFIX)
"""

import pathlib
import subprocess
import sys
import tempfile

import greta
import greta.language as gl

HERE = pathlib.Path(__file__).parent


@greta.jit
def saxpy(x, y, a, n, BLOCK: gl.constexpr):
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK)
    gl.store(y + i, a * gl.load(x + i, mask=i < n) + gl.load(y + i, mask=i < n), mask=i < n)


def build(prefix, folder):
    """The program, from the kernel above."""
    prefix, folder = pathlib.Path(prefix), pathlib.Path(folder)
    package = greta.compile(saxpy, "*fp32:16, *fp32:16, fp32, i32, 256", ["gfx942", "gfx1100", "vulkan"], grid=lambda m: ((m["n"] + m["BLOCK"] - 1) // m["BLOCK"],))
    package.save(folder / "saxpy.greta")
    subprocess.run([prefix / "bin" / "greta-translate", "--package-to-header", folder / "saxpy.greta", "-o", folder / "saxpy.h"], check=True)
    flags = [f"-I{folder}", f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", "-lgreta_runtime", f"-Wl,-rpath,{(prefix / 'lib').resolve()}"]
    subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", HERE / "saxpy.c", *flags, "-o", folder / "saxpy"], check=True)
    return folder / "saxpy"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print(subprocess.run([build(sys.argv[1], folder)], check=True, capture_output=True, text=True).stdout, end="")
