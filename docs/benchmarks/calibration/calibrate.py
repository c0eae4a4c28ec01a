"""How well the simulator's cycle estimate tells the times that AMD measured, on AMD's own kernels, and GRETA's kernels beside them.

    build/venv/bin/python docs/benchmarks/calibration/calibrate.py AITER [--tables=FOLDER] [--work=FOLDER] [--threads=2] [--shapes=N] [--gemms=MxNxK,...] [--steps=STEP,...]

AITER is a checkout of ROCm/aiter (hsa/ and aiter/configs are enough); the figures in docs/benchmarks are of commit e404860. Steps, all by default, each writing a table:

  times     calibration.csv: the estimate of every measured row (its kernel, shape and split) beside the measured time, by chip, family and range of times:
            Spearman's rank correlation, estimate over measured; calibration_fit.csv: absolute time as a sum of a constant, compute and memory time
  winners   calibration_winners.csv: for N shapes a family (whole small families), all kernels and splits that AMD's tuner had to choose from:
            at which place of the estimate's ranking the measured winner stands, with the memory latency of the chip table and with 700 cycles
  greta     calibration_greta.csv: GRETA's default bf16 GEMM of a shape beside AMD's best, both estimated, and AMD's measured time. AMD's best is the
            measured winner; where AMD measured nothing (gfx942 with 304 compute units), the best estimate of all kernels, whose weights lie shuffled
  ours      calibration_greta.csv anew: GRETA's kernels and estimates of today beside AMD's as they stand there (of amd_commit), in minutes; only if it is asked for
  choices   calibration_choices.csv: the same for every bf16 and fp8 shape that AMD measured on gfx950. AMD's fp8 kernels scale blocks of 128 of K in their
            loop; GRETA's GEMM beside them has no scales
  numerics  calibration_numerics.csv: kernels run with all checks on small operands, against NumPy (numerics.py)

Estimates are kept in the work folder, and a run that was stopped goes on; measured rows stay there too. Whole: a few processor hours.
"""

import argparse
import collections
import concurrent.futures
import csv
import json
import math
import pathlib
import random
import subprocess
import sys
import zipfile

import aiter
import attention
import gemm
import numerics
import numpy as np
from simulator import ROOT, Estimates

sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import records  # noqa: E402

CLOCK = {"gfx942": 2100, "gfx950": 2400}  # MHz, as lib/Sim/Timing/TimingTable.cpp
RANGES = ((0, 10), (10, 20), (20, 50), (50, 200), (200, np.inf))  # microseconds
BETWEEN = 4  # microseconds between two kernels that depend on each other, as tools/greta-tune
# MxNxK that AMD measured on gfx950.
GEMMS = "32x8192x3584,64x5120x5120,128x2048x7168,256x5120x6400,512x16384x4096,1024x16384x6656,2048x5120x5120,4096x4096x4096,8192x8192x8192,16384x5120x1280"
UNITS = {"gfx942": 304, "gfx950": 256}  # compute units that GRETA's kernels are estimated for
BYTES = dict(f32=4, i32=4, f16=2, bf16=2)
TYPES = {"bf16": ("bf16", "bf16", 2), "fp8": ("f8E4M3FN", "f16", 1)}  # of GRETA's operands and results on gfx950, and bytes of an operand's element
OLD_LATENCY = 700  # of memory: the table's before calibration


def ranks(values):
    """Each value's rank; equals have the mean of theirs."""
    values = np.asarray(values, float)
    order = np.sort(values)
    return (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right")) / 2


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


class Calibration:
    def __init__(self, options):
        self.options = options
        records.build("greta-translate", "greta-sim")
        self.origin = records.origin()
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        checkout = pathlib.Path(options.aiter)
        self.kernels = aiter.kernels(checkout)
        self.measured = [row for row in aiter.measured(checkout) if (row.chip, row.family, row.kernel) in self.kernels]
        if not self.measured:
            sys.exit(f"calibrate.py: {checkout} holds no measured GEMM; it should be a checkout of ROCm/aiter with hsa/ and aiter/configs/")
        self.estimates = Estimates(self.work, options.threads)

    def write(self, name, rows):
        rows = list(rows)
        if not rows:
            print(f"{name}: not enough measured rows", file=sys.stderr)
            return
        records.write(pathlib.Path(self.options.tables) / name, [*self.origin, *rows[0]], [self.origin | row for row in rows])
        for row in rows:
            print(json.dumps(row), flush=True)

    # Estimates.

    def key(self, kernel, shape, split, units, latency):
        return (kernel.chip, units, kernel.name, *vars(shape).values(), split, latency)

    def job(self, kernel, shape, split, units, latency):
        """The estimate of greta-sim for a code object with options."""
        buffers, options = {}, [f"--compute-units={units}"] + ([f"--latency=memory:{latency}"] if latency else [])
        if kernel.family == "bf16":
            resident = 1
            if split > 1:
                resident = min(self.estimates[self.resident_key(kernel)]["workgroups"], aiter.up(aiter.workgroups(kernel, shape, split), units))
                options.append(f"--cu-workgroups={resident}")
            buffers["semaphores"] = f"in:{self.semaphores(kernel, shape, split, resident)}"
        return kernel.code, [*options, *aiter.launch(kernel, shape, split, buffers)]

    def semaphores(self, kernel, shape, split, resident):
        """A split-K workgroup waits for its tile's semaphore until that of the first part has set it to the number of parts. Estimated workgroups stand evenly in the
        grid, one part behind the other: for those of later parts the first has done so."""
        tiles = aiter.workgroups(kernel, shape, 1)
        values = np.zeros(max(tiles, 1024), np.uint32)
        for place in range(resident if split > 1 else 0):
            at = (2 * place + 1) * tiles * split // (2 * resident)
            if at >= tiles:
                values[at % tiles] = split
        name = self.work / "semaphores" / f"{tiles}-{split}-{resident}.bin"
        if not name.exists():
            name.parent.mkdir(exist_ok=True)
            part = name.with_suffix(f".{random.getrandbits(32)}")
            values.tofile(part)
            part.rename(name)
        return name

    def resident_key(self, kernel):
        return kernel.chip, kernel.name, "resident"

    def resident_job(self, kernel):
        """How many workgroups a compute unit holds, on a grid that is large enough."""
        shape = aiter.Shape(64 * kernel.tile_m, 64 * kernel.tile_n, 256)
        return kernel.code, aiter.launch(kernel, shape, 1, dict(semaphores=f"in:{self.semaphores(kernel, shape, 1, 1)}"))

    def run(self, wanted):
        """Estimates (kernel, shape, split, compute units, latency); their results in order."""
        splitting = {w[0] for w in wanted if w[0].family == "bf16" and w[0].splits}
        self.estimates.run({self.resident_key(k): lambda k=k: self.resident_job(k) for k in splitting})
        self.estimates.run({self.key(*w): lambda w=w: self.job(*w) for w in wanted})
        return [self.estimates[self.key(*w)] for w in wanted]

    # Steps.

    def times(self):
        wanted = []
        for row in self.measured:
            kernel = self.kernels[row.chip, row.family, row.kernel]
            wanted.append((kernel, row.shape, aiter.split_of(kernel, row.shape, row.split), row.compute_units, 0))
        results = self.run(wanted)
        failed = collections.Counter(r["error"] for r in results if "error" in r)
        for text, count in failed.most_common(5):
            print(f"{count} rows without an estimate: {text}", file=sys.stderr)
        good = [(row, result, want) for row, result, want in zip(self.measured, results, wanted) if "error" not in result]
        self.write("calibration.csv", self.times_table(good))
        self.write("calibration_fit.csv", self.fit_table(good))

    def times_table(self, good):
        def line(chip, units, family, span, part):
            measured, estimated = np.array([row.us for row, _, _ in part]), np.array([result["microseconds"] for _, result, _ in part])
            low, middle, high = np.percentile(estimated / measured, (10, 50, 90))
            return dict(chip=chip, compute_units=units, family=family, measured_us=span, rows=len(part), spearman=round(spearman(estimated, measured), 3),
                        ratio_p10=round(low, 3), ratio_median=round(middle, 3), ratio_p90=round(high, 3))  # fmt: skip

        yield line("all", "", "all", "all", good)
        for (chip, units, family), part in sorted(self.groups(good, lambda g: (g[0].chip, g[0].compute_units, g[0].family)).items()):
            yield line(chip, units, family, "all", part)
            for low, high in RANGES:
                inside = [g for g in part if low <= g[0].us < high]
                if len(inside) >= 10:
                    yield line(chip, units, family, f"{low}-{high:g}", inside)

    @staticmethod
    def groups(items, key):
        found = collections.defaultdict(list)
        for item in items:
            found[key(item)].append(item)
        return found

    def fit_table(self, good):
        """measured = constant + a * compute time + b * memory time, least squares of the relative error; rows of 20 us and more."""
        for (chip, units), part in sorted(self.groups(good, lambda g: (g[0].chip, g[0].compute_units)).items()):
            part = [g for g in part if g[0].us >= 20]
            if len(part) < 100:
                continue
            terms = []
            for row, result, (kernel, shape, split, _, _) in part:
                rounds = aiter.up(aiter.workgroups(kernel, shape, split), result["workgroups"] * units)
                terms.append([1, rounds * result["cycles"] / CLOCK[chip], result["memory_cycles"] / CLOCK[chip]])
            us, terms = np.array([row.us for row, _, _ in part]), np.array(terms)
            fit, *_ = np.linalg.lstsq(terms / us[:, None], np.ones(len(us)), rcond=None)
            errors = np.abs(terms @ fit / us - 1)
            yield dict(chip=chip, compute_units=units, rows=len(part), constant_us=round(fit[0], 2), compute=round(fit[1], 2), memory=round(fit[2], 2),
                       error_median=round(float(np.median(errors)), 3), error_p90=round(float(np.percentile(errors, 90)), 3))  # fmt: skip

    def candidates(self, chip, family, shape, shuffled=None):
        return [(kernel, split) for (c, f, _), kernel in self.kernels.items() if (c, f) == (chip, family) and aiter.takes(kernel, shape, shuffled)
                for split in aiter.splits(kernel, shape)]  # fmt: skip

    def winners(self):
        picked = random.Random(7)
        plan = []
        for (chip, units, family), part in sorted(self.groups(self.measured, lambda row: (row.chip, row.compute_units, row.family)).items()):
            part = [row for row in part if row.us < 400]
            plan.append((chip, units, family, picked.sample(part, min(self.options.shapes, len(part)))))
        self.write("calibration_winners.csv", (row for group in plan for latency in (0, OLD_LATENCY) for row in self.winners_of(*group, latency)))

    def winners_of(self, chip, units, family, rows, latency):
        places, counts = [], []
        # AMD tuned i8 of the 304-unit chip without split-K.
        choices = {row: [c for c in self.candidates(chip, family, row.shape) if units != 304 or c[1] <= 1] for row in rows}
        self.run([(kernel, row.shape, split, units, latency) for row, choice in choices.items() for kernel, split in choice])
        for row, choice in choices.items():
            winner = self.kernels[chip, family, row.kernel]
            results = {c: self.estimates[self.key(c[0], row.shape, c[1], units, latency)] for c in choice}
            us = {c: r["microseconds"] for c, r in results.items() if "error" not in r}
            best = (winner, aiter.split_of(winner, row.shape, row.split))
            if best not in us or len(us) < 2:
                continue
            places.append(1 + sum(other < 0.9999 * us[best] for other in us.values()))
            counts.append(len(us))
        if places:
            places, counts = np.array(places), np.array(counts)
            share = lambda most: round(float(np.mean(places <= most)), 3)
            yield dict(chip=chip, compute_units=units, family=family, memory_latency=latency or "table", shapes=len(places), candidates=int(np.median(counts)),
                       first=share(1), in_three=share(3), in_five=share(5), by_chance=round(float(np.mean(1 / counts)), 3))  # fmt: skip

    def greta(self):
        self.write("calibration_greta.csv", (row for chip in aiter.CHIPS for shape in self.options.gemms.split(",")
                                            for row in self.greta_row(chip, "bf16", aiter.Shape(*map(int, shape.split("x"))))))  # fmt: skip

    def ours(self):
        with open(pathlib.Path(self.options.tables) / "calibration_greta.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row.setdefault("amd_commit", row["commit"])
            row["greta_config"], ours = self.greta_kernel(row["chip"], "bf16", aiter.Shape(*(int(row[name]) for name in "mnk")))
            row |= dict(greta_us=round(ours, 2), greta_of_amd=row["amd_us"] and round(float(row["amd_us"]) / ours, 3))
        self.write("calibration_greta.csv", ({name: row[name] for name in row if name not in self.origin} for row in rows))

    def choices(self):
        found = {(row.family, row.shape) for row in self.measured if row.chip == "gfx950" and row.family in TYPES}
        shapes = sorted(found, key=lambda one: (one[0], *vars(one[1]).values()))
        with concurrent.futures.ThreadPoolExecutor(self.options.threads) as pool:
            rows = [row for part in pool.map(lambda one: list(self.greta_row("gfx950", *one)), shapes) for row in part]
        self.write("calibration_choices.csv", rows)
        for family in TYPES:
            ratios = np.array([row["greta_us"] / row["amd_us"] for row in rows if row["family"] == family])
            print(f"{family}, {len(ratios)} shapes: at most 1.1 x AMD's {np.mean(ratios <= 1.1):.3f}, faster {np.mean(ratios < 1):.3f}, median {np.median(ratios):.3f}")

    def greta_row(self, chip, family, shape):
        units = UNITS[chip]
        rows = [row for row in self.measured if (row.chip, row.compute_units, row.family, row.shape) == (chip, units, family, shape)]
        if rows:
            winner = min(rows, key=lambda row: row.us)
            kernel = self.kernels[chip, family, winner.kernel]
            choice = [(kernel, aiter.split_of(kernel, shape, winner.split))]
        else:
            choice = self.candidates(chip, family, shape, shuffled=True)
        results = self.run([(kernel, shape, split, units, 0) for kernel, split in choice])
        us, kernel, split = min(((r["microseconds"], *c) for c, r in zip(choice, results) if "error" not in r), key=lambda a: a[0], default=(None, None, None))
        config, ours = self.greta_kernel(chip, family, shape)
        yield dict(chip=chip, family=family, m=shape.m, n=shape.n, k=shape.k, greta_config=config, greta_us=round(ours, 2), amd_kernel=kernel and kernel.code.stem, amd_split=split,
                   amd_us=us and round(us, 2), greta_of_amd=us and round(us / ours, 3), amd_measured_us=rows and round(winner.us, 2) or None)  # fmt: skip

    def greta_kernel(self, chip, family, shape):
        """Configuration and estimated microseconds of GRETA's default kernels for the GEMM, both operands with K contiguous."""
        operand, result, size = TYPES[family]
        tensor = lambda rows, columns, dtype: f"tensor<{rows}x{columns}x{dtype}>"
        a, b, d = tensor(shape.m, shape.k, operand), tensor(shape.n, shape.k, operand), tensor(shape.m, shape.n, "f32" if shape.out_bytes == 4 else result)
        folder = self.work / "greta" / "-".join(map(str, (chip, family, *vars(shape).values())))
        folder.mkdir(parents=True, exist_ok=True)
        source, package = folder / "gemm.mlir", folder / "gemm.greta"
        source.write_text(f"func.func @gemm(%a: {a}, %b: {b}) -> {d} {{\n  %0 = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {d}\n  return %0 : {d}\n}}\n")
        command = [ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={chip}", source, "-o", package]
        subprocess.run([str(c) for c in command], check=True)
        with zipfile.ZipFile(package) as archive:
            manifest = json.loads(archive.read("manifest.json"))
            (variant,) = manifest["functions"][0]["variants"]
            objects = {kernel["file"]: archive.read(kernel["file"]) for kernel in variant["kernels"]}
        sizes = dict(arg=[size * shape.m * shape.k, size * shape.n * shape.k], result=[shape.out_bytes * shape.m * shape.n], temp=[BYTES[temp["dtype"]] * math.prod(temp["shape"]) for temp in variant["temps"]])
        total = BETWEEN * (len(variant["kernels"]) - 1)
        for at, kernel in enumerate(variant["kernels"]):
            code = folder / f"{chip}-{at}.hsaco"
            code.write_bytes(objects[kernel["file"]])
            dims = lambda name: f"--{name}=" + ",".join(map(str, kernel[name]))
            buffers = [self.buffer(folder, one, sizes[one["kind"]][one["index"]], variant, kernel) for one in kernel["args"]]
            key = (chip, "greta", family, *vars(shape).values(), at, kernel["sha256"])
            self.estimates.run({key: lambda: (code, [f"--kernel={kernel['entry']}", dims("grid"), dims("block"), *buffers])})
            result = self.estimates[key]
            if "error" in result:
                raise RuntimeError(result["error"])
            total += result["microseconds"]
        config = variant["kernels"][0]["config"]
        return "x".join(str(config[name]) for name in ("rows", "columns", "depth")) + f", {config['waves']} waves", total

    @staticmethod
    def buffer(folder, argument, size, variant, kernel):
        """Zeros; for the counters on which the parts of a GEMM meet, what makes every workgroup the last one, which adds the parts up."""
        if argument["kind"] != "temp" or not variant["temps"][argument["index"]].get("zeroed"):
            return f"--arg=zero:{size}"
        full = folder / "arrivals.bin"
        np.full(size // 4, kernel["config"]["split"] - 1, np.uint32).tofile(full)
        return f"--arg=in:{full}"

    def numerics(self):
        self.write("calibration_numerics.csv", numerics.table(self.small_cases(), self.work, self.options.threads))

    def small_cases(self):
        for kernel in self.kernels.values():
            yield kernel.chip, kernel.family, kernel.code, gemm.cases(kernel)
        for kernel in attention.kernels(pathlib.Path(self.options.aiter)):
            yield kernel.chip, "bf16 attention", kernel.code, attention.cases(kernel)


def main():
    steps = ("times", "winners", "greta", "choices", "numerics")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aiter")
    parser.add_argument("--steps", default=",".join(steps))
    parser.add_argument("--tables", default=ROOT / "docs" / "benchmarks")
    parser.add_argument("--work", default=ROOT / "build" / "calibration")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shapes", type=int, default=40)
    parser.add_argument("--gemms", default=GEMMS)
    options = parser.parse_args()
    chosen = options.steps.split(",")
    for step in chosen:
        if step not in (*steps, "ours"):
            parser.error(f"no step '{step}'; there are {', '.join(steps)} and ours")
    calibration = Calibration(options)
    for step in chosen:
        getattr(calibration, step)()


if __name__ == "__main__":
    main()
