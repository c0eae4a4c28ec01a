"""Products on a GPU that no test run has, against float64; called by scripts/bench-h200.

usage: numerics.py --write DIR      the cases as DIR/numerics_*.mlir and their names as DIR/numerics.json, on the machine that compiles
       numerics.py DIR CSV [--device=vulkan]
Every type x transposes x M, N, K of 1, 17, 129 and 1000, what follows the product and whether M is dynamic rotating; and the cases of
test/e2e's few rows, computed operands, epilogues, batches and 8-bit floats, in every variant that the device takes. Appends a line per variant, type and kind
of product to CSV: how many cases, and the largest error as a share of what docs/numerics.md allows. A case that fails is printed and ends
the run with status 1.
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

import epilogues
import products
import prologues
import records
import tiled
import typed
import worker
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
    """{name of a package: its cases}. Only the machine that compiles has pytest."""
    sys.path.append(str(row_ops.ROOT / "test"))
    import test_epilogues
    import test_prologues
    import test_types

    packages = {dtype: list(crossed(dtype)) for dtype in OUT}
    packages["decode"] = products.WIDE
    packages["prologues"] = test_prologues.SHAPES
    packages["epilogues"] = test_epilogues.CASES
    packages["types"] = test_types.BATCHED + test_types.FLOAT8 + test_types.CONVERSIONS
    return packages


def source(case):
    return case.mlir("vulkan") if isinstance(case, (tiled.Product, epilogues.Epilogue)) else case.mlir()


def kind_of(case):
    """Its type, and what is special about it."""
    if isinstance(case, prologues.Product):
        return case.dtype, f"{case.a} x {case.b}"
    if isinstance(case, typed.Conversion):
        return case.dtype, case.direction
    if isinstance(case, typed.Product):
        return f"{case.a} {case.b}" if case.a != case.b else case.a, f"{case.kind} batch {case.batch}"
    return case.dtype, case.kind


def run(device, package, cases):
    """worker.py's lines; a crash is one more problem."""
    command = [sys.executable, row_ops.ROOT / "test/e2e/worker.py", device, package]
    environment = {**os.environ, "PYTHONPATH": str(row_ops.ROOT / "scripts/lib")}
    process = subprocess.run(command, input=json.dumps([[c.name, c.m] for c in cases]), capture_output=True, text=True, env=environment)
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    if process.returncode:
        lines.append({"case": lines[-1]["start"][0] if lines else "", "problem": f"worker ended with {process.returncode}: {process.stderr[-500:]}"})
    return [line for line in lines if "start" not in line]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path, nargs="?")
    parser.add_argument("csv", type=pathlib.Path, nargs="?")
    parser.add_argument("--device", default="vulkan")
    options = parser.parse_args()
    if options.write:
        packages = chosen()
        for name, cases in packages.items():
            (options.write / f"numerics_{name}.mlir").write_text("\n".join(map(source, cases)))
        names = {name: [case.name for case in cases] for name, cases in packages.items()}
        (options.write / "numerics.json").write_text(json.dumps(names))
        return 0
    runtime = Runtime(options.device)
    info = runtime.info()
    runtime.close()
    common = dict(date=datetime.date.today().isoformat(), commit=(options.directory / "commit").read_text(), gpu=info.get("name"), driver=info.get("driver"))
    groups, problems = collections.defaultdict(list), []
    for package, names in json.loads((options.directory / "numerics.json").read_text()).items():
        known, seen = {name: worker.by_name(name) for name in names}, set()
        for line in run(options.device, options.directory / f"numerics_{package}.greta", known.values()):
            if "problem" in line:
                problems.append(f"{line['case']}: {line['problem']}")
                continue
            case = known[line["case"]]
            seen.add(case.name)
            shares = [0.0 if e == 0 else e / limit if limit else float("inf") for e, limit in zip(line["errors"], case.tolerances)]
            if not max(shares) <= 1:
                problems.append(f"{case.name}, {line['variant']}: {line['errors']} is over {case.tolerances}")
            groups[line["variant"], *kind_of(case)].append(shares)
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
