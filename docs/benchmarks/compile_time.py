"""Compile time of every example function for every kind of target: the whole greta-translate process on one core.

usage: compile_time.py [--csv=FILE] [--reps=7] [--check]
Called by scripts/bench-compile-time. Budgets of the median: 200 ms for the norms and for SPIR-V, 300 ms for anything; --check exits 1
when a median is over its budget. Time is processor time, user and system, which other work on the machine changes least; beside it stands
the shortest wall-clock time.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import records  # noqa: E402

TRANSLATE = ROOT / "build" / "bin" / "greta-translate"
TARGETS = ("gfx942", "gfx1100", "gfx1201", "vulkan:portable", "vulkan", "host")
COLUMNS = ["date", "commit", "cpu", "function", "target", "median_ms", "min_ms", "max_ms", "wall_ms", "budget_ms"]


def budget(function, target):
    return 200 if "norm" in function or target.startswith("vulkan") else 300


def compile_once(source, target, output):
    """(processor time, wall-clock time) in milliseconds."""
    command = ["taskset", "-c", "0", TRANSLATE, "--greta-to-package", f"--targets={target}", source, "-o", output]
    began = time.perf_counter()
    process = subprocess.Popen([str(c) for c in command])
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    if status:
        sys.exit(f"{source.name} for {target}: greta-translate failed")
    return (usage.ru_utime + usage.ru_stime) * 1e3, wall * 1e3


def cpu_name():
    names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return names[0] if names else "unknown"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--reps", type=int, default=7)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    records.build("greta-translate")
    common = records.origin() | dict(cpu=cpu_name())
    table = []
    with tempfile.TemporaryDirectory() as directory:
        for source in sorted((ROOT / "examples").glob("*.mlir")):
            for target in TARGETS:
                runs = [compile_once(source, target, pathlib.Path(directory) / "k.greta") for _ in range(options.reps)]
                cpu, wall = zip(*runs)
                row = common | dict(function=source.stem, target=target, median_ms=round(statistics.median(cpu), 1), min_ms=round(min(cpu), 1))
                row |= dict(max_ms=round(max(cpu), 1), wall_ms=round(min(wall), 1), budget_ms=budget(source.stem, target))
                table.append(row)
                over = "  OVER" if row["median_ms"] > row["budget_ms"] else ""
                print(f"{source.stem:20} {target:16} {row['median_ms']:7.1f} ms (min {row['min_ms']:.1f}, budget {row['budget_ms']}){over}", flush=True)
    if options.csv:
        records.write(options.csv, COLUMNS, table)
    return 1 if options.check and any(row["median_ms"] > row["budget_ms"] for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
