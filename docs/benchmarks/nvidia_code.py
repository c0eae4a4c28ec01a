"""The machine code that NVIDIA's driver made of kernels: from the pipeline cache that GRETA's runtime keeps (~/.cache/greta/vulkan-pipelines-*).

usage: nvidia_code.py CACHE [--arch=SM90] [--all] [--out=DIR]

On the machine with the GPU `greta-run --inspect --device=vulkan PACKAGE`, with an XDG_CACHE_HOME of its own, leaves a cache of the package's kernels alone. Anywhere else, this prints of each
kernel how many instructions it has and, of each of its loops, how many of each kind; kernels without matrix instructions only with --all. --out writes the listings. It takes nvdisasm, which
Triton's package brings, and zstd.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMPRESSED, CODE = b"\x28\xb5\x2f\xfd", b"NVuc"
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;")


def disassembler():
    found = shutil.which("nvdisasm")
    if not found:
        try:
            import triton
        except ImportError:
            sys.exit("nvidia_code.py: no nvdisasm: it comes with CUDA, and with Triton's package (scripts/setup --triton)")
        found = pathlib.Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    return found


def codes(cache):
    """The driver's containers of code, which are compressed one by one."""
    place = cache.find(COMPRESSED)
    while place >= 0:
        # No frame follows the first one: zstd says so after it has written that one.
        data = subprocess.run(["zstd", "-d", "-q", "-c"], input=cache[place:], capture_output=True).stdout
        if CODE in data:
            yield data[data.index(CODE) :]
        place = cache.find(COMPRESSED, place + 1)


def listing(tool, code, arch):
    """[(address, instruction)], or what nvdisasm has against the code"""
    with tempfile.NamedTemporaryFile() as file:
        file.write(code)
        file.flush()
        ran = subprocess.run([tool, "-b", arch, file.name], capture_output=True, text=True)
    if ran.returncode:
        return ran.stderr.strip()
    return [(int(found[1], 16), found[2]) for found in map(INSTRUCTION.match, ran.stdout.splitlines()) if found]


def kinds(instructions):
    return collections.Counter(text.split()[0].split(".")[0] for _, text in instructions)


def loops(instructions):
    """The instructions between a branch and the earlier place that it goes to."""
    for address, text in instructions:
        to = re.search(r"BRA.*?(0x[0-9a-f]+)", text)
        if to and int(to[1], 16) < address:
            yield [entry for entry in instructions if int(to[1], 16) <= entry[0] <= address]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--arch", default="SM90")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    try:
        cache = options.cache.read_bytes()
    except OSError as problem:
        sys.exit(f"nvidia_code.py: {options.cache}: {problem.strerror}")
    if not shutil.which("zstd"):
        sys.exit("nvidia_code.py: no zstd, which the driver's code is packed with")
    tool, number, refused = disassembler(), 0, []
    for code in codes(cache):
        instructions = listing(tool, code, options.arch)
        if isinstance(instructions, str):
            refused.append(instructions)
            continue
        if not (options.all or "HMMA" in kinds(instructions)):
            continue
        print(f"kernel {number}: {len(instructions)} instructions")
        for loop in loops(instructions):
            print(f"  loop of {len(loop)}:", *(f"{kind} {count}" for kind, count in kinds(loop).most_common()))
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            text = "".join(f"{address:6x}  {text}\n" for address, text in instructions)
            (options.out / f"kernel_{number}.sass").write_text(text)
        number += 1
    if refused:
        print(f"nvdisasm does not read the code of {len(refused)} kernels; what it says of the first: {refused[0]}", file=sys.stderr)
    if not number:
        sys.exit(f"nvidia_code.py: {options.cache} has no kernel{'' if options.all else ' with matrix instructions (--all)'}; is it a cache of NVIDIA's driver?")


if __name__ == "__main__":
    main()
