"""Every kind of kernel on a GPU that no test run has, against float64; called by scripts/bench-h200.

usage: numerics.py --write DIR [--target=vulkan:nvidia] [--most=N] [--only=KIND]...   the cases, compiled, as DIR/numerics_*.greta, and their names as DIR/numerics.json
       numerics.py DIR CSV [--device=vulkan] [--launcher="WORDS"]    on the machine with the GPU; DIR/commit says what was compiled
GEMMs of every type x transposes x M, N, K of 1, 17, 129 and 1000, what follows the product and whether M is dynamic rotating; and the cases of
test/e2e: row ops and chains of every width, their special values, slices, few rows, computed operands, epilogues, batches, 8-bit floats, attention and
its gradients, layers, convolutions, groups, packed weights, quantised rows and reductions, in every variant that the device takes, judged by
test/e2e/limits.py. Appends a line per variant, type, kind of function and limit to CSV: how many
cases, how many failed, the largest error as a share of what docs/internals/numerics.md allows, and of all their elements the share that equals the
correctly rounded result (none in f32). A case that fails is printed and ends the run with status 1. --most takes the cases with at most N
multiply-adds and elements, for cards that are simulated; --launcher is what starts programs there (scripts/virtual-radeon CHIP), and
radeon_numerics.csv has these rows.
"""

import argparse
import collections
import concurrent.futures
import datetime
import itertools
import json
import math
import os
import pathlib
import shlex
import subprocess
import sys

import row_ops  # puts the project's helpers on the path

import cases
import limits
import gemms
import records
import registry
import tiled

SIZES = (1, 17, 129, 1000)
OUT = {"f16": "f16", "bf16": "bf16", "f32": "f32", "i8": "i32"}
ROWS = (3, 128)
TRANSLATE = row_ops.ROOT / "build" / "bin" / "greta-translate"
COLUMNS = ["date", "commit", "gpu", "driver", "variant", "dtype", "kind", "cases", "failed", "limit", "euclidean_of_limit", "maximum_of_limit", "rounded_share"]


def crossed(dtype):
    """Neighbours in the cross product have other kinds; so have neighbours in every dimension."""
    kinds = {"i8": ["plain"], "f32": [k for k in tiled.KINDS if k != "cast"]}.get(dtype, list(tiled.KINDS))
    for i, layout in enumerate(("nn", "nt", "tn", "tt")):
        for a, b, c in itertools.product(range(4), repeat=3):
            kind = kinds[(a + 2 * b + 3 * c + i) % len(kinds)]
            out = "f32" if kind == "plain" and dtype == "bf16" and a % 2 else OUT[dtype]
            dim = "s" if kind == "layer" else "ds"[(a + b + c) % 2]  # its constant is dense
            yield tiled.Product(kind, layout, dim, SIZES[a], SIZES[b], SIZES[c], dtype, out)


def row_cases(dtype):
    yield from cases.cases(dtype, cases.COLUMNS, cases.OPS, ROWS)
    yield from (registry.Special(case) for case in cases.cases(dtype, (7, 1000), cases.SINGLE_OPS, (8,)))


def chosen():
    """{name of a package: its cases}. Only the machine that compiles has pytest."""
    sys.path.append(str(row_ops.ROOT / "test"))
    import test_attention
    import test_attention_backward
    import test_convolution
    import test_epilogues
    import test_grouped
    import test_layer
    import test_prologues
    import test_quantized
    import test_reductions
    import test_slices
    import test_types
    import weights

    packages = {dtype: list(crossed(dtype)) for dtype in OUT}
    packages |= {f"rows_{dtype}": list(row_cases(dtype)) for dtype in cases.ELEMENT_TYPES}
    packages["decode"] = gemms.WIDE
    packages["prologues"] = test_prologues.SHAPES
    packages["epilogues"] = test_epilogues.CASES
    packages["slices"] = test_slices.CASES
    packages["types"] = test_types.BATCHED + test_types.FLOAT8 + test_types.CONVERSIONS
    packages |= {"attention": test_attention.CASES, "attention_backward": test_attention_backward.CASES, "layers": test_layer.CASES}
    packages |= {"convolution": test_convolution.SHAPES, "grouped": test_grouped.SHAPES, "weights": weights.CASES}
    packages |= {"quantized": test_quantized.SHAPES, "reductions": test_reductions.SHAPES}
    return packages


def work(case):
    """Multiply-adds of a GEMM, or elements of what it reads, whichever are more."""
    return max(math.prod(getattr(case, size, 1) for size in "mnk"), *(array.size for array in case.inputs()), 1)


def write(directory, target, most, only=()):
    names = {}
    for package, some in chosen().items():
        if only and package not in only:
            continue
        some = [case for case in some if most is None or work(case) <= most]
        functions = {case.function: case for case in some}
        source = directory / f"numerics_{package}.mlir"
        source.write_text("\n".join(case.mlir(target) for case in functions.values()))
        subprocess.run([TRANSLATE, "--greta-to-package", f"--targets={target}", source, "-o", source.with_suffix(".greta")], check=True)
        source.unlink()
        names[package] = [case.name for case in some]
    (directory / "numerics.json").write_text(json.dumps(names))


def start(launcher, *words, **options):
    command = [*launcher, sys.executable, *words]
    environment = {**os.environ, "PYTHONPATH": str(row_ops.ROOT / "scripts/lib")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


def describe(launcher, device):
    process = start(launcher, "-c", f"import json; from greta_runtime import Runtime; print(json.dumps(Runtime({device!r}).info()))", check=True)
    return json.loads(process.stdout)


def run(launcher, device, package, names):
    """worker.py's lines; a crash is one more problem."""
    process = start(launcher, row_ops.ROOT / "test/e2e/worker.py", device, package, input=json.dumps(names))
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    if process.returncode:
        lines.append({"case": lines[-1].get("start", "") if lines else "", "problem": f"worker ended with {process.returncode}: {process.stderr[-500:]}"})
    return [line for line in lines if "start" not in line]


def row_of(key, lines):
    """A line of the table: all cases of a variant, type, kind and limit."""
    variant, dtype, kind, name = key
    limit, shares = limits.LIMITS[name], []
    for line in lines:
        norms = limit.norms(line["precision"], registry.by_name(line["case"]).depth)
        shares.append([0.0 if e == 0 else e / most if most else float("inf") for e, most in zip((line["euclidean"], line["maximum"]), norms)])
    euclidean, maximum = (round(max(column), 3) for column in zip(*shares))
    row = dict(variant=variant, dtype=dtype, kind=kind, cases=len(lines), failed=sum("problem" in line for line in lines), limit=name)
    row |= dict(euclidean_of_limit=euclidean, maximum_of_limit=maximum)
    if limits.has_share(lines[0]["precision"], limit):
        elements = sum(line["elements"] for line in lines)
        row |= dict(rounded_share=round(1 - sum(line["unequal"] for line in lines) / elements, 4))
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--target", default="vulkan:nvidia")
    parser.add_argument("--most", type=int)
    parser.add_argument("--only", action="append")
    parser.add_argument("directory", type=pathlib.Path, nargs="?")
    parser.add_argument("csv", type=pathlib.Path, nargs="?")
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--launcher", type=shlex.split, default=[])
    options = parser.parse_args()
    if options.write:
        write(options.write, options.target, options.most, options.only)
        return 0
    info = describe(options.launcher, options.device)
    common = dict(date=datetime.date.today().isoformat(), commit=(options.directory / "commit").read_text().strip(), gpu=info.get("name"), driver=info.get("driver"))
    groups, problems = collections.defaultdict(list), []
    packages = json.loads((options.directory / "numerics.json").read_text())

    def results(package):
        return run(options.launcher, options.device, options.directory / f"numerics_{package}.greta", packages[package])

    # Most of the time is float64's, on one processor for a package.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ran = dict(zip(packages, pool.map(results, packages)))
    for package, names in packages.items():
        lines = ran[package]
        problems += [f"{line['case']}, {line.get('variant')}: {line['problem']}" for line in lines if "problem" in line]
        problems += [f"{name}: no result" for name in set(names) - {line["case"] for line in lines}]
        for line in lines:
            if "elements" in line:
                case = registry.by_name(line["case"])
                groups[line["variant"], case.precision, case.title, line["limit"]].append(line)
    table = []
    for key, lines in sorted(groups.items()):
        table.append(common | row_of(key, lines))
        problem = limits.judge_together(lines)
        problems += [f"{key}: together, {problem}"] if problem else []
        print("{variant:24} {dtype:5} {kind:18} {cases:4} cases, {failed} failed, errors {euclidean_of_limit} {maximum_of_limit} of what is allowed".format(**table[-1]), end="")
        print(f", {table[-1].get('rounded_share', '-')} rounded right")
    for problem in problems:
        print(problem, file=sys.stderr)
    records.append(options.csv, COLUMNS, table)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
