"""Attention with every option beside every other: cases that are drawn for tests, and, as a command, cases that cover.

    PYTHONPATH=scripts/lib build/venv/bin/python test/e2e/attention_matrix.py gfx942,gfx1100,vulkan:lavapipe,host --pairs --sizes

compiles and runs cases for each target (simulated, on testing's lavapipe, on this machine's driver, on the host). `--pairs`: for each op so many that any two values of two axes meet in one of them; axes are the type, the form
of keys and values, S, T, D, the batch, the heads of keys, the queries that share one, and each option, which is given or not. `--sizes`: every S beside every T, D and type, attention without options and gradients with all of them. `--drawn=N` runs N cases
drawn from the product of all axes, of the ops in turn.
S, T and D meet as far as `--most` products of a head allow (the values that never do are printed); `--ops` and `--only-sizes` leave ops and sizes of heads out.
"""

import argparse
import itertools
import math
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
    Paged: ("window", "softcap", "sinks", "tokensfirst"),
    PagedDecode: ("window", "softcap", "sinks", "tokensfirst"),
}
STORED = ("", "e4m3perhead", "e5m2perall", "fnuzpertoken", "i8pertoken", "half")
TYPES = ("f16", "bf16", "f32")
ROWS = (1, 7, 64, 129, 1000, 4096)
SIZES, SIZES_OF_DRIVERS = (64, 80, 96, 128), (8, 16)
MORE_SIZES, MORE_OF_DRIVERS = (72, 256), (24, 32, 64)  # compiled for longer than a test may take
MOST = 1 << 18  # products of a query head in a test's case
MOST_LOGITS = 1 << 24  # of a case, for the memory of the definition's


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


def axes_for(cls, sizes):
    """{axis: values} of an op."""
    axes = {"dtype": TYPES, "stored": STORED[:1] if cls is Backward else STORED, "s": ROWS[:2] if cls in (Decode, PagedDecode) else ROWS}
    axes |= {"t": ROWS[2:] if cls is Backward else ROWS, "d": sizes, "b": (1, 4), "heads": (1, 2), "shared": (1, 2, 3)}
    return axes | {option: (False, True) for option in OPTIONS[cls]}


def case_of(cls, point):
    kind = "".join(option for option in OPTIONS[cls] if point[option]) + point["stored"]
    return cls(kind or "plain", point["dtype"], point["b"], point["shared"] * point["heads"], point["heads"], *(point[axis] for axis in "std"))


def pairs(cls, sizes, most, seed=1):
    """Cases in which any two values of two axes meet, and the pairs that no case has. Each case begins with a pair that is missing and is the best of some."""
    axes, rng = axes_for(cls, sizes), np.random.default_rng(seed)
    logits = lambda point: point["b"] * point["heads"] * point["shared"] * point["s"] * point["t"]
    fits = lambda point: logits(point) <= MOST_LOGITS and point["s"] * point["t"] * point["d"] <= most
    allowed = lambda point: fits(point) and (point["stored"] != "half" or point["dtype"] == "f32")
    missing = {((x, a), (y, b)): None for x, y in itertools.combinations(axes, 2) for a in axes[x] for b in axes[y]}
    cases, never = [], []
    while missing:
        first = next(iter(missing))
        points = ({axis: values[rng.integers(len(values))] for axis, values in axes.items()} | dict(first) for _ in range(4096))
        points = list(itertools.islice(filter(allowed, points), 48))
        if not points:
            never.append(first)
            del missing[first]
            continue
        met = [[pair for pair in itertools.combinations(point.items(), 2) if pair in missing] for point in points]
        best = max(range(len(points)), key=lambda n: len(met[n]))
        for pair in met[best]:
            del missing[pair]
        cases.append(case_of(cls, points[best]))
    return cases, never


def every_size(sizes, most):
    for dtype, d, s, t in itertools.product(TYPES, sizes, ROWS, ROWS):
        if s * t * d <= most:
            yield Attention("plain", dtype, 1, 1, 1, s, t, d)
            if t in axes_for(Backward, sizes)["t"]:
                yield Backward("".join(OPTIONS[Backward]), dtype, 1, 1, 1, s, t, d)


def run(target, cases):
    """{name of a case: what was wrong}"""
    wrong = {}
    device, launcher = f"sim:{target}" if target in harness.AMD_CHIPS else target.partition(":")[0], ()
    if target == "vulkan:lavapipe":
        launcher = harness.lavapipe_launcher()
    of_function = {}
    for case in cases:
        of_function.setdefault(case.function, []).append(case)
    for same in of_function.values():  # a package each, so that a function that does not compile stops no other
        with tempfile.TemporaryDirectory() as directory:
            try:
                package = harness.compile_package(pathlib.Path(directory), "case", same[0].mlir(target), target)
                results = harness.run_cases(device, package, [case.name for case in same], launcher)
            except AssertionError as problem:
                results = {case.name: [dict(problem=str(problem))] for case in same}
        for case in same:
            try:
                harness.check(results, case)
            except AssertionError as problem:
                wrong[case.name] = str(problem)[:500]
            print(f"  {target} {case.name}: {'wrong' if case.name in wrong else 'right'}", file=sys.stderr, flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--drawn", type=int, default=0, help="cases of the whole product, in turn of the ops")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--most", type=int, default=1 << 31, help="products of a query head")
    parser.add_argument("--ops", type=lambda names: names.split(","), default=[cls.__name__ for cls in OPTIONS])
    parser.add_argument("--only-sizes", type=lambda sizes: tuple(map(int, sizes.split(","))))
    args = parser.parse_args()
    failed = False
    for target in args.targets.split(","):
        sizes = args.only_sizes or sizes_for(target, more=True)
        parts = {}
        if args.pairs:
            parts |= {f"{cls.__name__} in pairs": pairs(cls, sizes, args.most) for cls in OPTIONS if cls.__name__ in args.ops}
        if args.sizes:
            parts["every size"] = [case for case in every_size(sizes, args.most) if type(case).__name__ in args.ops], []
        if args.drawn:
            drawn_cases = sample(target, args.seed, args.most, args.drawn, more=True)
            parts["drawn"] = [case for case in drawn_cases if type(case).__name__ in args.ops and math.prod((case.b, case.hq, case.s, case.t)) <= MOST_LOGITS], []
        for name, (cases, never) in parts.items():
            wrong = run(target, cases)
            failed |= bool(wrong)
            print(f"{target}, {name}: {len(cases) - len(wrong)} of {len(cases)} right{'; never: ' * bool(never)}{', '.join(f'{x} {a} with {y} {b}' for (x, a), (y, b) in never)}", flush=True)
            for case, problem in wrong.items():
                print(f"  {case}: {problem}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
