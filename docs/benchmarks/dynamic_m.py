"""GEMMs with a dynamic M beside the same GEMMs with M in the type, by the simulator's model: nothing here needs a GPU, and no time is a measurement.

    build/venv/bin/python docs/benchmarks/dynamic_m.py [--csv=FILE] [--only=NAME,..] [--rows=1,8,..] [--translate=FILE] [CHIP...]

Each function is compiled once with M dynamic and once for each M. The kernels of the function with a dynamic M are those that the runtime would launch (docs/internals/package.md, "Ranges"). All are estimated
by `greta-sim --estimate` on zeros; where a GEMM is split along K every workgroup is estimated as the last one of its tile. Such an estimate has few workgroups and no bound by memory, so no
time is below what the function's tensors take at the chip's bandwidth. Times of several kernels are added.
  static_us, dynamic_us   microseconds by the model; ratio: static over dynamic, so 1 is as fast
  range                   M for which the kernels of the dynamic one were chosen; -: those for any M
  compile_s, bytes        of the package with the dynamic M: processor seconds, its size
"""

import argparse
import json
import os
import pathlib
import resource
import struct
import tempfile
import zipfile

from issue_model import ROOT, records, tool

# Chip -> GB/s, as the target table has it (lib/Target/Amdgpu.cpp).
CHIPS = {"gfx942": 5300, "gfx1100": 960, "gfx1201": 640}
FIELDS = ["date", "commit", "chip", "function", "m", "static_us", "dynamic_us", "ratio", "range", "compile_s", "bytes", "static_config", "dynamic_config"]
N, K, GROUP = 4096, 4096, 128
BYTES = {"f16": 2, "f32": 4, "i32": 4}


def matmul(m):
    a, b, r = f"tensor<{m}x{K}xf16>", f"tensor<{N}x{K}xf16>", f"tensor<{m}x{N}xf16>"
    return f"func.func @f(%a: {a}, %b: {b}) -> {r} {{\n  %0 = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {r}\n  return %0 : {r}\n}}\n"


def epilogue(m):
    a, b, r = f"tensor<{m}x{K}xf16>", f"tensor<{N}x{K}xf16>", f"tensor<{m}x{N}xf16>"
    return (
        f"func.func @f(%a: {a}, %b: {b}, %r: {r}) -> {r} {{\n  %0 = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {r}\n"
        f"  %1 = arith.addf %0, %r : {r}\n  return %1 : {r}\n}}\n"
    )


def weights(m):
    a, w, r = f"tensor<{m}x{K}xf16>", f"tensor<{N}x{K}xf16>", f"tensor<{m}x{N}xf16>"
    p, s, z = f"tensor<{N}x{K // 8}xi32>", f"tensor<{N}x{K // GROUP}xf16>", f"tensor<{N}x{K // GROUP // 8}xi32>"
    return (
        f"func.func @f(%a: {a}, %p: {p}, %s: {s}, %z: {z}) -> {r} {{\n  %w = greta.dequant %p, %s, %z {{group = {GROUP}}} : {p}, {s}, {z} -> {w}\n"
        f"  %0 = greta.matmul %a, %w {{transpose_b}} : {a}, {w} -> {r}\n  return %0 : {r}\n}}\n"
    )


FUNCTIONS = {"matmul": matmul, "matmul_add": epilogue, "matmul_w4": weights}


def evaluate(expression, symbols):
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        return symbols[expression]
    op, *operands = expression
    a, b = (evaluate(o, symbols) for o in operands)
    return {"+": lambda: a + b, "*": lambda: a * b, "floordiv": lambda: a // b, "ceildiv": lambda: -(-a // b), "mod": lambda: a % b}[op]()


class Package:
    """One function for one chip."""

    def __init__(self, translate, folder, chip, text, name):
        source, package = folder / f"{name}.mlir", folder / f"{name}.{chip}.greta"
        source.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        tool(translate, "--greta-to-package", f"--targets={chip}", source, "-o", package)
        self.chip = chip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.seconds, self.bytes = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, package.stat().st_size
        with zipfile.ZipFile(package) as archive:
            self.function = json.loads(archive.read("manifest.json"))["functions"][0]
            (self.variant,) = self.function["variants"]
            self.objects = {}
            for part in [self.variant, *self.variant.get("ranges", [])]:
                for kernel in part["kernels"]:
                    path = folder / f"{name}.{chip}.{kernel['file'].rsplit('/', 1)[1]}"
                    path.write_bytes(archive.read(kernel["file"]))
                    self.objects[kernel["file"]] = path

    def part(self, symbols):
        """The kernels that the runtime launches for these values, and their range."""
        for part in self.variant.get("ranges", []):
            if all(low <= evaluate(e, symbols) <= high for e, low, high in part["when"]):
                return part, " ".join(f"{low}..{high}" for _, low, high in part["when"])
        return self.variant, "-"

    def estimate(self, folder, m):
        symbols = {s["name"]: m for s in self.function["symbols"]}
        part, bounds = self.part(symbols)

        def bytes_of(tensor):
            count = BYTES[tensor["dtype"]]
            for extent in tensor["shape"]:
                count *= evaluate(extent, symbols)
            return count

        total, configs = 0, []
        for kernel in part["kernels"]:
            grid = [evaluate(e, symbols) for e in kernel["grid"]]
            configs.append(kernel["config"])
            arguments = []
            for number, argument in enumerate(kernel["args"]):
                if argument["kind"] in ("i32", "i64"):
                    arguments.append(f"--arg={argument['kind']}:{evaluate(argument['value'], symbols)}")
                    continue
                lists = {"arg": self.function["args"], "result": self.function["results"], "temp": part.get("temps", [])}
                tensor = lists[argument["kind"]][argument["index"]]
                if tensor.get("zeroed") and "split" in kernel["config"]:
                    path = folder / f"counters.{os.getpid()}.{id(self)}.{number}.{m}"
                    path.write_bytes(struct.pack("<i", kernel["config"]["split"] - 1) * (bytes_of(tensor) // 4))
                    arguments.append(f"--arg=inout:{path}")
                else:
                    arguments.append(f"--arg=zero:{bytes_of(tensor)}")
            dims = [f"--{name}={','.join(map(str, value))}" for name, value in (("grid", grid), ("block", kernel["block"]))]
            said = tool(ROOT / "build/bin/greta-sim", self.objects[kernel["file"]], "--check=none", "--estimate", "--json", "--threads=1", f"--kernel={kernel['entry']}", *dims, *arguments)
            total += json.loads(said)["microseconds"]
        tensors = sum(bytes_of(t) for t in [*self.function["args"], *self.function["results"]])
        return max(total, tensors / CHIPS[self.chip] / 1000), bounds, configs


def described(configs):
    return "; ".join(f"{c.get('rows', '')}x{c.get('columns', '')}x{c.get('depth', '')}" + "".join(f" {k} {c[k]}" for k in ("waves", "stages", "split") if k in c) for c in configs)


def rows(options, folder):
    for chip in options.chips or CHIPS:
        for name in options.only.split(",") if options.only else FUNCTIONS:
            text = FUNCTIONS[name]
            dynamic = Package(options.translate, folder, chip, text("?"), name)

            for m in map(int, options.rows.split(",")):
                fixed = Package(options.translate, folder, chip, text(m), f"{name}.{m}")
                static_us, _, static = fixed.estimate(folder, m)
                dynamic_us, bounds, configs = dynamic.estimate(folder, m)
                yield dict(chip=chip, function=name, m=m, static_us=f"{static_us:.2f}", dynamic_us=f"{dynamic_us:.2f}", ratio=f"{static_us / dynamic_us:.3f}", range=bounds) | dict(
                    compile_s=f"{dynamic.seconds:.2f}", bytes=dynamic.bytes, static_config=described(static), dynamic_config=described(configs)
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chips", nargs="*")
    parser.add_argument("--csv")
    parser.add_argument("--only")
    parser.add_argument("--rows", default="1,8,64,512,8192")
    parser.add_argument("--translate", default=ROOT / "build/bin/greta-translate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        origin, table = records.origin(), []
        for row in rows(options, pathlib.Path(folder)):
            table.append(origin | row)
            print(" ".join(f"{row[field]}" for field in FIELDS if field in row), flush=True)
    if options.csv:
        records.renew(options.csv, FIELDS, table)


if __name__ == "__main__":
    main()
