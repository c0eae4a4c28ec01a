"""Products on a GPU that no test run has, against float64; called by scripts/bench-h200.

usage: numerics.py --write DIR      the cases as DIR/numerics_DTYPE.mlir
       numerics.py DIR CSV [--device=vulkan]
Every type x transposes x M, N, K of 1, 17, 129 and 1000, what follows the product and whether M is dynamic rotating, and the cases of
test_decode.py, in every variant that the device takes. Appends a line per variant, type and kind of product to CSV: how many cases, and
the largest error as a share of what docs/numerics.md allows. A case that fails is printed and ends the run with status 1.
"""

import argparse
import collections
import datetime
import itertools
import json
import os
import pathlib
import subprocess
import sys

import row_ops  # puts the project's helpers on the path

import products
import records
import tiled
from greta_runtime import Runtime

SIZES = (1, 17, 129, 1000)
OUT = {"f16": "f16", "bf16": "bf16", "f32": "f32", "i8": "i32"}
COLUMNS = ["date", "commit", "gpu", "driver", "variant", "dtype", "kind", "cases", "failed", "euclidean_of_limit", "maximum_of_limit"]


def crossed(dtype):
    """Neighbours in the cross product have other kinds; so have neighbours in every dimension."""
    kinds = {"i8": ["plain"], "f32": [k for k in tiled.KINDS if k != "cast"]}.get(dtype, list(tiled.KINDS))
    for i, layout in enumerate(("nn", "nt", "tn", "tt")):
        for a, b, c in itertools.product(range(4), repeat=3):
            kind = kinds[(a + 2 * b + 3 * c + i) % len(kinds)]
            out = "f32" if kind == "plain" and dtype == "bf16" and a % 2 else OUT[dtype]
            dim = "s" if kind == "layer" else "ds"[(a + b + c) % 2]  # its constant is dense
            yield tiled.Product(kind, layout, dim, SIZES[a], SIZES[b], SIZES[c], dtype, out)


def chosen():
    """{name of a package: its cases}."""
    packages = {f"numerics_{dtype}": list(crossed(dtype)) for dtype in OUT}
    packages["numerics_decode"] = products.WIDE + products.DEVICE
    return packages


def source(case):
    return case.mlir("vulkan") if isinstance(case, tiled.Product) else case.mlir()


def run(device, package, cases):
    """worker.py's lines; a crash is one more problem."""
    command = [sys.executable, row_ops.ROOT / "test/e2e/worker.py", device, package]
    environment = {**os.environ, "PYTHONPATH": str(row_ops.ROOT / "scripts/lib")}
    worker = subprocess.run(command, input=json.dumps([[c.name, c.m] for c in cases]), capture_output=True, text=True, env=environment)
    lines = [json.loads(line) for line in worker.stdout.splitlines()]
    if worker.returncode:
        lines.append({"case": lines[-1]["start"][0] if lines else "", "problem": f"worker ended with {worker.returncode}: {worker.stderr[-500:]}"})
    return [line for line in lines if "start" not in line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path, nargs="?")
    parser.add_argument("csv", type=pathlib.Path, nargs="?")
    parser.add_argument("--device", default="vulkan")
    options = parser.parse_args()
    if options.write:
        for name, cases in chosen().items():
            (options.write / f"{name}.mlir").write_text("\n".join(map(source, cases)))
        return 0
    runtime = Runtime(options.device)
    info = runtime.info()
    runtime.close()
    common = dict(date=datetime.date.today().isoformat(), commit=(options.directory / "commit").read_text(), gpu=info.get("name"), driver=info.get("driver"))
    groups, problems = collections.defaultdict(list), []
    for name, cases in chosen().items():
        known, seen = {c.name: c for c in cases}, set()
        for line in run(options.device, options.directory / f"{name}.greta", cases):
            if "problem" in line:
                problems.append(f"{line['case']}: {line['problem']}")
                continue
            case = known[line["case"]]
            seen.add(case.name)
            shares = [0.0 if e == 0 else e / limit if limit else float("inf") for e, limit in zip(line["errors"], case.tolerances)]
            if not max(shares) <= 1:
                problems.append(f"{case.name}, {line['variant']}: {line['errors']} is over {case.tolerances}")
            groups[line["variant"], case.dtype, case.kind].append(shares)
        problems += [f"{name}: no result" for name in known.keys() - seen]
    table = []
    for (variant, dtype, kind), shares in sorted(groups.items()):
        euclidean, maximum = (round(max(column), 3) for column in zip(*shares))
        failed = sum(not max(s) <= 1 for s in shares)
        table.append(common | dict(variant=variant, dtype=dtype, kind=kind, cases=len(shares), failed=failed, euclidean_of_limit=euclidean, maximum_of_limit=maximum))
        print(f"{variant:24} {dtype:5} {kind:10} {len(shares):4} cases, {failed} failed, errors {euclidean} {maximum} of what is allowed")
    for problem in problems:
        print(problem, file=sys.stderr)
    records.append(options.csv, COLUMNS, table)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
