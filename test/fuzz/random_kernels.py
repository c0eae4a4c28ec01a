"""Random Triton kernels, run on GRETA's devices through Triton's driver and compared with Triton's own interpreter.

usage: random_kernels.py [--seed N] [--first K] [--count N] [--targets vulkan,gfx942,...] [--batch N] [--jobs N] [--seconds N] [--print | --constructs | --plant DEFECT]

Kernel k of a seed depends on both alone. It takes blocks of all integer and float types through a dozen steps (kernel_steps.py: arithmetic, conversions, movement,
reductions, scans, dots; kernel_memory.py: loops, branches, in-place updates, arguments that are one buffer, atomics, descriptors, far rows) and stores some. Integers and
what every device rounds once must be equal, of NaNs and zeros any; other floats are stored beside a bound of their error. The interpreter (triton_interpreter.py mends what it is known to get wrong) runs once for all targets. A kernel may be
refused with one of the compiler's named limits (random_runs.REFUSALS). `vulkan@lavapipe` is testing's lavapipe (scripts/vulkan-drivers). Prints what became of the kernels and every one that is wrong; exit status 1 if any is. `--plant` compares
the interpreter with itself on a text that has one of PLANTS. Needs Triton, torch, ml_dtypes and the Python package; nothing else of the repository."""

import json
import os
import pathlib
import random
import sys
import tempfile
import threading

import ml_dtypes
import numpy as np

import random_runs
from kernel_builder import EIGHT, FLOATS, INTEGERS, PART, PROGRAMS, WINDOW
from kernel_memory import STEPS, Memory
from number_steps import far_stride
from random_runs import REFUSALS, device_of, under_driver

TARGETS = ("vulkan", "gfx942", "gfx1100", "gfx1201", "gfx1030")
HERE = pathlib.Path(__file__).resolve().parent
INTERPRETED_STRIDE = 5000  # of far rows, where the interpreter has them: what is computed does not depend on it
# Defects that GRETA had, as a text of another meaning: a loop whose counter ends near 2^31 is a turn short; the condition of a store is another; lanes store before others
# load what they store over; rows that lie far apart are found with 32 bits; masks of 64 bits are compared in 32; f64 is rounded to f32 on its way.
PLANTS = ("late counter", "conditional store", "in place", "far rows", "wide mask", "double rounding")
NUMPY = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}
NUMPY |= {"f8e5": ml_dtypes.float8_e5m2, "f8e4": ml_dtypes.float8_e4m3fn, "f8e5z": ml_dtypes.float8_e5m2fnuz, "f8e4z": ml_dtypes.float8_e4m3fnuz}
HEAD = '''import triton
import triton.language as tl


@triton.jit
def combine_product(a, b):
    return a * b


@triton.jit
def combine_odd(a, b):
    return (a ^ b) | (a & b)


@triton.jit
def combine_larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def combine_recurrence(f0, s0, f1, s1):
    return f0 * f1, f1 * s0 + s1


@triton.jit
def mixed_up(a, b, KIND: tl.constexpr):
    if KIND == 0:
        return a * 2 + b
    elif KIND == 1:
        return tl.where(a < b, b, a - b)
    else:
        c = a ^ b
        return c * c + KIND


@triton.jit(noinline=True)
def mixed_apart(a, b):
    return a * b + 7
'''


class Kernel(Memory):
    """Some steps, then the last block and some others are stored. One of 16 kernels has more arguments than the 128 bytes that some devices take at once."""

    def __init__(self, name, rng, plant=None):
        super().__init__(name, rng, plant)
        self.inputs = rng.randrange(1 << 30)
        self.keep(self.load("i32", self.shape()))
        for _ in range(rng.randint(4, 14)):
            step = rng.choices(list(STEPS), list(STEPS.values()))[0]
            self.used.append(step)
            getattr(self, step)()
        if self.inputs % 16 == 4:
            self.used.append("many arguments")
            for dtype in (*INTEGERS, *FLOATS):
                self.store(self.load(dtype, (8,)))
        for value in [self.values[-1], *rng.sample(self.values, min(5, len(self.values))), *self.scalars[3:][-2:]]:
            self.store(value)


def kernel(seed, index, plant=None):
    return Kernel(f"k{index}", random.Random(f"{seed}:{index}"), plant)


def module_of(kernels):
    return "\n\n".join([HEAD, *(one.text() for one in kernels)])


def run(directory, target, kernels, stride):
    """{index: what became of it} and its arrays as files `directory`/index.npz."""
    directory = pathlib.Path(directory)
    module = directory / "kernels.py"
    module.write_text(module_of(kernels.values()))

    def command(left):
        jobs = []
        for index in left:
            one = kernels[index]
            job = dict(index=index, name=one.name, arguments=list(one.arguments), inputs=one.inputs, n=one.n, warps=one.warps, far_stride=stride)
            jobs.append(job | dict(shifted=[k for k, v in one.shifted.items() if v], output=str(directory / f"{index}.npz")))
        path = directory / "job.json"
        path.write_text(json.dumps({"module": str(module), "kernels": jobs}))
        device = target if target == "interpreter" else device_of(target)
        return under_driver(target, [sys.executable, HERE / "kernel_process.py", device, path])

    # A cache of its own: another run must not find the compiler of before.
    environment = os.environ | {"TRITON_INTERPRET": "1" if target == "interpreter" else "0", "TRITON_CACHE_DIR": str(directory / "cache"), "OMP_NUM_THREADS": "1"}
    return random_runs.run_each(kernels, command, environment)


def differences(one, right, got):
    """The first mistake in a kernel's arrays, or nothing."""
    for name in ("z", "za"):
        wrong = np.flatnonzero(right[name] != got[name])
        if len(wrong):
            at = wrong[0]
            return f"{name}: {len(wrong)} elements, the first of program {at // WINDOW} at {at % WINDOW}: {got[name][at]} instead of {right[name][at]}"
    behind = PART * PROGRAMS
    wrong = np.flatnonzero((right["y"][behind:] != got["y"][behind:]).reshape(-1, 4).any(-1))
    if len(wrong):
        return f"{len(wrong)} words that atomics change, the first at {wrong[0]}"
    for program in range(PROGRAMS):
        parts = [array["y"][program * PART : (program + 1) * PART] for array in (right, got)]
        known = np.zeros(PART, bool)
        for region in one.regions:
            dtype = np.dtype(NUMPY.get(region.dtype) or region.dtype.replace("i", "int").replace("u", "uint"))
            end = region.first + region.count * dtype.itemsize
            known[region.first : end] = True
            a, b = (part[region.first : end].view(dtype) for part in parts)
            is_wrong = a != b
            if region.dtype in (*FLOATS, *EIGHT):
                a, b = a.astype(np.float64), b.astype(np.float64)
                is_wrong = ~((a == b) | np.isnan(a) & np.isnan(b))
            if region.bound is not None:
                bounds = parts[0][region.bound : region.bound + 4 * region.count].view(np.float32)
                known[region.bound : region.bound + 4 * region.count] = True
                is_wrong &= ~(np.abs(a - b) <= bounds)
            wrong = np.flatnonzero(is_wrong)
            if len(wrong):
                return f"{len(wrong)} of {region.count} {region.dtype} at byte {region.first} of program {program}, the first at {wrong[0]}: {b[wrong[0]]} instead of {a[wrong[0]]}"
        if (parts[0] != parts[1])[~known].any():
            return f"program {program} wrote where it should not"
    return ""


class Interpreted:
    """The interpreter's results of parts of the kernels: once for all targets that ask within some parts."""

    KEPT = 8

    def __init__(self, seed):
        self.seed, self.lock, self.parts = seed, threading.Lock(), {}

    def of(self, indices):
        """{index: (kernel, arrays or None, problem)}"""
        with self.lock:
            own = self.parts.setdefault(tuple(indices), {"lock": threading.Lock()})
            for old in list(self.parts)[: -self.KEPT]:
                del self.parts[old]
        with own["lock"]:
            if "made" not in own:
                kernels = {k: kernel(self.seed, k) for k in indices}
                with tempfile.TemporaryDirectory() as directory:
                    lines = run(directory, "interpreter", kernels, INTERPRETED_STRIDE)
                    own["made"] = {k: (kernels[k], *outcome_of(directory, k, line)) for k, line in lines.items()}
        return own["made"]


def outcome_of(directory, index, line):
    """(arrays or None, problem) of a kernel that ran."""
    problem = line.get("crash") or line.get("problem")
    if problem:
        return None, problem
    with np.load(pathlib.Path(directory) / f"{index}.npz") as arrays:
        return dict(arrays), ""


def run_batch(interpreted, target, indices):
    """{index: (what, detail)} of kernels on a target."""
    made = interpreted.of(indices)
    outcomes = {k: ("not interpreted", problem) for k, (_, arrays, problem) in made.items() if arrays is None}
    kernels = {k: made[k][0] for k in indices if k not in outcomes}
    with tempfile.TemporaryDirectory() as directory:
        for index, line in run(directory, target, kernels, far_stride(target)).items():
            got, problem = outcome_of(directory, index, line)
            if got is None:
                named = any(reason in problem for reason in REFUSALS)
                outcomes[index] = ("refused" if named else "not run" if "crash" in line else "not compiled", problem[:3000])
                continue
            wrong = differences(kernels[index], made[index][1], got)
            outcomes[index] = ("wrong", wrong) if wrong else ("right", "")
    return outcomes


def run_all(seed, count, targets=TARGETS, **options):
    interpreted = Interpreted(seed)
    return random_runs.run_all(lambda target, indices: run_batch(interpreted, target, indices), count, targets, **options)


def showing(interpreted, with_it):
    """The kernels of {index: kernel with a defect} whose results differ from the interpreter's of the kernel without it."""
    right = interpreted.of(list(with_it))
    found = set()
    with tempfile.TemporaryDirectory() as directory:
        for k, line in run(directory, "interpreter", with_it, INTERPRETED_STRIDE).items():
            got, problem = outcome_of(directory, k, line)
            assert not problem, problem
            if differences(right[k][0], right[k][1], got):
                found.add(k)
    return found


def planted(seed, name, indices, batch=50):
    """(index, whether the kernel has a place for the defect, whether its result shows it)."""
    assert name in PLANTS, f"{name} is none of {PLANTS}"
    with_it = {k: one for k in indices if (one := kernel(seed, k, name)).planted}
    having, interpreted, shown = list(with_it), Interpreted(seed), set()
    for first in range(0, len(having), batch):
        shown |= showing(interpreted, {k: with_it[k] for k in having[first : first + batch]})
    return [(k, k in with_it, k in shown) for k in indices]


def main():
    options = random_runs.parser(__doc__.splitlines()[0], TARGETS).parse_args()
    indices = range(options.first, options.first + options.count)
    if options.print:
        print(module_of(kernel(options.seed, k) for k in indices))
        return 0
    if options.constructs:
        return random_runs.report_constructs((k, kernel(options.seed, k).used) for k in indices)
    if options.plant:
        return random_runs.report_planted(options.plant, planted(options.seed, options.plant, indices, options.batch))
    outcomes = run_all(options.seed, options.count, options.targets.split(","), first=options.first, batch=options.batch, jobs=options.jobs, seconds=options.seconds)
    return random_runs.report(options, outcomes)


if __name__ == "__main__":
    sys.exit(main())
