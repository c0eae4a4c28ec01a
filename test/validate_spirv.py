"""Reads what greta-opt -greta-tile-to-spirv prints, serializes every spirv.module in it and lets testing's spirv-val judge each."""

import os
import re
import subprocess
import sys
import tempfile

drivers = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "vulkan-drivers")


def modules(text: str) -> list[tuple[str, str]]:
    """Name and text of every spirv.module; greta-opt indents each by two spaces."""
    return [(m.group(1), m.group(0)) for m in re.finditer(r"^  spirv\.module @(\w+).*?^  }$", text, re.M | re.S)]


def main() -> int:
    found = modules(sys.stdin.read())
    if not found:
        print("no spirv.module in the input", file=sys.stderr)
        return 1
    for name, text in found:
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, name + ".spv")
            subprocess.run(["mlir-translate", "--no-implicit-module", "--serialize-spirv", "-o", binary], input=text, text=True, check=True)
            subprocess.run([drivers, "tool", "spirv-val", "--target-env", "vulkan1.3", binary], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
