"""Times a cached launch of a Triton kernel with six arguments, in microseconds of the host, on arrays of the device.

total: kernel[grid](...), as a program calls it. launcher: what GRETA's launcher takes of that, from arguments in Python to the runtime's
greta_function_launch, which is in it. The rest is Triton's own. The kernel does nothing, so that the device keeps up. The median of several runs is printed,
and --csv adds a row to a table.
"""

import argparse
import datetime
import pathlib
import statistics
import subprocess
import sys
import time

import greta
import triton
import triton.language as tl

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import records  # noqa: E402

COLUMNS = ["date", "commit", "device", "triton", "launches", "total_us", "triton_us", "launcher_us"]


@triton.jit
def nothing(x, y, out, n, stride, BLOCK: tl.constexpr):
    tl.store(out, 0.0, mask=n < 0)


def measure(call, launches, runs=7):
    times = []
    for _ in range(runs):
        greta.synchronize()
        start = time.perf_counter()
        for _ in range(launches):
            call()
        times.append((time.perf_counter() - start) / launches * 1e6)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    device = greta.triton.activate(options.device)
    x, y, out = (greta.empty(1024) for _ in range(3))
    arguments = (x, y, out, 1000, 7, 64)
    compiled = nothing[1,](*arguments)
    # Triton's cost without any launcher: the same path into one that does nothing.
    launcher, compiled._run = compiled._run, lambda *_: None
    frontend = measure(lambda: nothing[1,](*arguments), options.launches)
    compiled._run = launcher
    total = measure(lambda: nothing[1,](*arguments), options.launches)
    alone = measure(lambda: launcher(1, 1, 1, device, compiled.function, None, None, None, None, *arguments), options.launches)
    print(f"device {options.device}: total {total:.1f} us, Triton {frontend:.1f} us, launcher {alone:.1f} us")
    if options.csv:
        commit = subprocess.run(["git", "describe", "--always", "--exclude=*", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        row = dict(date=datetime.date.today().isoformat(), commit=commit, device=options.device, triton=triton.__version__, launches=options.launches)
        row |= dict(total_us=round(total, 2), triton_us=round(frontend, 2), launcher_us=round(alone, 2))
        records.append(options.csv, COLUMNS, [row])


if __name__ == "__main__":
    main()
