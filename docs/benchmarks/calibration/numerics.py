"""AMD's kernels on small operands, run by the simulator with all checks, against NumPy.

Out: a table of how many kernels of a chip and family are right, report a race (also LDS that another wave's load may not have filled yet), are refused with another
diagnostic, or are wrong. A kernel that breaks a hazard rule which is an error is counted beside, and judged without that check.
"""

import collections
import concurrent.futures
import pathlib
import re
import tempfile

import numpy as np
from simulator import greta_sim


def checked(code, options):
    """greta-sim's diagnostic, if any, and whether a hazard ended the launch before."""
    hazard = False
    for checks in ("all", "bounds,uninit,races,waits"):
        try:
            greta_sim(code, *options, f"--check={checks}", "--threads=1")
            return None, hazard
        except RuntimeError as error:
            if hazard or "wait state" not in str(error):
                return str(error), hazard
            hazard = True


def outcome(code, cases, folder):
    """(right, race, wrong or the diagnostic; whether a hazard rule is broken). The cases are those of gemm.py or attention.py."""
    broken = False
    for arrays, results, options, is_right in cases:
        with tempfile.TemporaryDirectory(dir=folder) as name:
            buffers = {buffer: f"out:{name}/{buffer}:{size}" for buffer, size in results.items()}
            for buffer, array in arrays.items():
                array.tofile(f"{name}/{buffer}")
                buffers[buffer] = f"in:{name}/{buffer}"
            problem, hazard = checked(code, options(buffers))
            broken |= hazard
            if problem:
                is_race = "race" in problem or re.search(r"vmcnt of wave \d+ covers the direct-to-LDS load", problem)
                return "race" if is_race else problem, broken
            if not is_right({buffer: np.frombuffer(pathlib.Path(name, buffer).read_bytes(), np.uint8) for buffer in results}):
                return "wrong", broken
    return "right", broken


def table(kernels, folder, threads):
    """`kernels`: (chip, family, code object, cases)."""
    kernels = list(kernels)
    found = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for (chip, family, code, _), (result, hazard) in zip(kernels, pool.map(lambda kernel: outcome(kernel[2], kernel[3], folder), kernels)):
            if result != "right" or hazard:
                print(f"{chip} {family} {code.parent.name}/{code.stem}: {result}{', breaks a hazard rule' if hazard else ''}", flush=True)
            found[chip, family][result if result in ("right", "race", "wrong") else "refused"] += 1
            found[chip, family]["hazard"] += hazard
    for (chip, family), counts in sorted(found.items()):
        kinds = {kind: counts[kind] for kind in ("right", "race", "wrong", "refused", "hazard")}
        yield dict(chip=chip, family=family, kernels=counts.total() - counts["hazard"], **kinds)
