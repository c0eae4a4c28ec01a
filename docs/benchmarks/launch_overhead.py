"""Times a cached launch of a Triton kernel with six arguments, in microseconds of the thread that launches, on arrays of the device.

total: kernel[grid](...), as a program calls it. launcher: what GRETA's launcher takes of that, from arguments in Python to the runtime's
greta_function_launch, which is in it. The rest is Triton's own. The kernel does nothing, so that the device keeps up. The median of several runs is printed,
and --csv adds a row to a table.
"""

import argparse
import pathlib
import statistics
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


def do_nothing(*_):
    pass


def measure(calls, launches, runs=9):
    """The calling thread's time for each of `calls`, which take turns, so that a busy machine is so for all of them."""
    times = [[] for _ in calls]
    for _ in range(runs):
        for call, mine in zip(calls, times):
            greta.synchronize()
            start = time.thread_time()
            for _ in range(launches):
                call()
            mine.append((time.thread_time() - start) / launches * 1e6)
    return [statistics.median(mine) for mine in times]


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
    launcher = compiled._run

    def launch():
        compiled._run = launcher
        nothing[1,](*arguments)

    # Triton's cost without any launcher: the same path into one that does nothing.
    def launch_nothing():
        compiled._run = do_nothing
        nothing[1,](*arguments)

    total, frontend, alone = measure([launch, launch_nothing, lambda: launcher(1, 1, 1, device, compiled.function, None, None, None, None, *arguments)], options.launches)
    print(f"device {options.device}: total {total:.1f} us, Triton {frontend:.1f} us, launcher {alone:.1f} us")
    if options.csv:
        row = records.origin() | dict(device=options.device, triton=triton.__version__, launches=options.launches)
        row |= dict(total_us=round(total, 2), triton_us=round(frontend, 2), launcher_us=round(alone, 2))
        records.append(options.csv, COLUMNS, [row])


if __name__ == "__main__":
    main()
