"""Attention with every option beside every other: cases that are drawn, for tests and in any number.

    PYTHONPATH=scripts/lib build/venv/bin/python test/e2e/attention_matrix.py gfx942,gfx1100,vulkan:lavapipe,host --count=100 --seed=1

compiles and runs so many cases for each target (simulated, on testing's lavapipe, on this machine's driver, on the host), of S and T up to 4096 as far as `--most` products of a head allow. It prints how many are
right, which values of an axis (op, type, form of keys and values, S, T, D) none has, and how many pairs of values of two axes, or of an axis and an option, some case has.
"""

import argparse
import itertools
import pathlib
import sys
import tempfile
import zlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import harness
from attention_backward_ops import Backward
from attention_ops import Attention, Decode, Paged, PagedDecode

OPTIONS = {
    Attention: ("causal", "window", "softcap", "mask", "lengths", "sinks", "tokensfirst"),
    Backward: ("causal", "window", "softcap", "mask", "lengths", "sinks", "tokensfirst"),
    Decode: ("causal", "window", "softcap", "mask", "lengths", "sinks"),
    Paged: ("window", "softcap", "tokensfirst"),
    PagedDecode: ("window", "softcap", "tokensfirst"),
}
STORED = ("", "e4m3perhead", "e5m2perall", "fnuzpertoken", "i8pertoken", "half")
TYPES = ("f16", "bf16", "f32")
ROWS = (1, 7, 64, 129, 1000, 4096)
SIZES, SIZES_OF_DRIVERS = (64, 80, 96, 128), (8, 16, 24, 32)
MORE_SIZES, MORE_OF_DRIVERS = (72, 256), (64,)  # compiled for longer than a test may take
MOST = 1 << 18  # products of a query head in a test's case


def drawn(rng, cls, stored, sizes, most):
    kind = "".join(option for option in OPTIONS[cls] if rng.random() < 0.85)
    stored = "" if cls is Backward else stored
    dtype = "f32" if stored == "half" else str(rng.choice(TYPES))
    size = int(rng.choice(sizes))
    rows = ROWS[:2] if issubclass(cls, (Decode, PagedDecode)) else ROWS
    # Gradients of a row that sees one key cancel to nothing, relative to which every error is large.
    keys = ROWS[2:] if cls is Backward else ROWS
    s, t = (int(x) for x in rng.choice([(s, t) for s, t in itertools.product(rows, keys) if s * t * size <= most]))
    shared, heads = int(rng.choice((1, 2, 3))), int(rng.choice((1, 2)))
    return cls(kind + stored or "plain", dtype, int(rng.choice((1, 4))), shared * heads, heads, s, t, size)


def covers(cases):
    """All options of each class."""
    return all(any(option in case.kind for case in cases if type(case) is cls) for cls, all_of_it in OPTIONS.items() for option in all_of_it)


def axes_of(case):
    """Where a case stands on each axis, and the options that it has."""
    base = next(name for name in STORED[::-1] if name in case.kind)
    axes = {"op": type(case).__name__, "type": case.dtype, "stored": base, "S": case.s, "T": case.t, "D": case.d}
    return [*axes.items(), *(("option", option) for option in OPTIONS[type(case)] if option in case.kind)]


def coverage(cases, sizes):
    """Values that no case has; pairs that some case has."""
    values = {"op": [cls.__name__ for cls in OPTIONS], "type": TYPES, "stored": STORED, "S": ROWS, "T": ROWS, "D": sizes}
    seen = {entry for case in cases for entry in axes_of(case)}
    missing = [f"{axis} {value}" for axis, all_of_it in values.items() for value in all_of_it if (axis, value) not in seen]
    return missing, len({pair for case in cases for pair in itertools.combinations(axes_of(case), 2)})


def sizes_for(target, more=False):
    sizes, others = (SIZES_OF_DRIVERS, MORE_OF_DRIVERS) if target.startswith("vulkan") else (SIZES, MORE_SIZES)
    return sizes + others if more else sizes


def sample(target, seed=0, most=MOST, count=5, more=False):
    """So many cases of each class in turn; what is drawn for tests covers everything, forms of keys and values over all targets."""
    for attempt in itertools.count(seed):
        rng = np.random.default_rng((zlib.crc32(target.encode()), attempt))
        sizes = sizes_for(target, more)
        of_gradients = sizes_for(target, more and not target.startswith("vulkan"))  # a driver compiles larger ones for minutes
        classes, forms = (itertools.islice(itertools.cycle(x), first, None) for x, first in ((OPTIONS, 0), (STORED, len(target))))
        cases = [drawn(rng, cls, stored, of_gradients if cls is Backward else sizes, most) for _, cls, stored in zip(range(count), classes, forms)]
        if seed or covers(cases):
            return list(dict.fromkeys(cases))


def run(target, cases):
    """{name of a case: what was wrong}"""
    wrong = {}
    device, launcher = f"sim:{target}" if target in harness.AMD_CHIPS else target.partition(":")[0], ()
    if target == "vulkan:lavapipe":
        launcher = harness.lavapipe_launcher()
    for case in cases:  # a package each, so that a case that does not compile stops no other
        with tempfile.TemporaryDirectory() as directory:
            try:
                package = harness.compile_package(pathlib.Path(directory), "case", case.mlir(target), target)
                harness.check(harness.run_cases(device, package, [case.name], launcher), case)
            except AssertionError as problem:
                wrong[case.name] = str(problem)[:500]
        print(f"  {case.name}: {'wrong' if case.name in wrong else 'right'}", file=sys.stderr, flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=1 << 24, help="products of a query head")
    args = parser.parse_args()
    failed = False
    for target in args.targets.split(","):
        cases = sample(target, args.seed, args.most, args.count, more=True)
        wrong = run(target, cases)
        failed |= bool(wrong)
        missing, pairs = coverage(cases, sizes_for(target, more=True))
        print(f"{target}: {len(cases) - len(wrong)} of {len(cases)} right; {pairs} pairs; without: {', '.join(missing) or 'nothing'}", flush=True)
        for name, problem in wrong.items():
            print(f"  {name}: {problem}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
