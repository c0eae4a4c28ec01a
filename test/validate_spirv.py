"""Lets testing's spirv-val judge every module of a package, or of what greta-opt -greta-tile-to-spirv prints: stdin, without a name of a package."""

import os
import re
import subprocess
import sys
import tempfile
import zipfile

drivers = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "vulkan-drivers")


def modules(text: str) -> list[tuple[str, str]]:
    """Name and text of every spirv.module; greta-opt indents each by two spaces."""
    return [(m.group(1), m.group(0)) for m in re.finditer(r"^  spirv\.module @(\w+).*?^  }$", text, re.M | re.S)]


def validate(binary: str) -> None:
    subprocess.run([drivers, "tool", "spirv-val", "--target-env", "vulkan1.3", binary], check=True)


def main() -> int:
    if len(sys.argv) > 1:
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(sys.argv[1]) as package:
            members = [name for name in package.namelist() if name.endswith(".spv")]
            for name in members:
                validate(package.extract(name, folder))
        return not members
    found = modules(sys.stdin.read())
    if not found:
        print("no spirv.module in the input", file=sys.stderr)
        return 1
    for name, text in found:
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, name + ".spv")
            subprocess.run(["mlir-translate", "--no-implicit-module", "--serialize-spirv", "-o", binary], input=text, text=True, check=True)
            validate(binary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
