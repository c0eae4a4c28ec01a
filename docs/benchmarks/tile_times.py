"""The coefficients of the tile model (LoopRates in lib/Target, lib/Configure/TileTime.cpp), fitted to the simulator's estimates, or to what was measured on the H200.

    build/venv/bin/python docs/benchmarks/tile_times.py collect WORK [--chips=gfx90a,gfx942,gfx950,gfx1100,gfx1201] [--shapes=12] [--tiles=60] [--seed=1]
    build/venv/bin/python docs/benchmarks/tile_times.py fit WORK cdna|rdna|nvidia

`collect` estimates random tiles of random f16 GEMMs (greta-tune --device=estimate) and keeps what it finds in WORK; it may be stopped and goes on with other shapes at another
seed. `fit` looks for the coefficients whose times and choices are nearest to the estimates' by a random search that stays near those of today (START), and prints them, and per shape how far the
tile that the model takes is from the best one that was tried. `nvidia` takes h200_tuning.json and the database that ships with the compiler, and no WORK.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import math
import pathlib
import random
import subprocess

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Chip:
    """Rates of the unit that a workgroup's waves spread over: a CU, RDNA's WGP, an SM. `halves` have queues of their own for the LDS and the caches."""

    family: str
    mhz: int
    gbs: int
    units: int
    lds: int
    cache: float  # bytes a cycle, a unit's share of the second cache (lib/Sim/Timing/TimingTable.cpp)
    wave: int = 64
    registers: int = 512
    most_waves: int = 8
    spare: int = 4  # registers that choices leave the compiler
    halves: int = 1
    simds = 4


CHIPS = {
    "gfx90a": Chip("cdna", 1700, 1638, 110, 65536, 37),
    "gfx942": Chip("cdna", 2100, 5300, 304, 65536, 54),
    "gfx950": Chip("cdna", 2400, 8000, 256, 163840, 64),
    "gfx1100": Chip("rdna", 2500, 960, 48, 131072, 128, 32, 1536, 16, 32, 2),
    "gfx1201": Chip("rdna", 2970, 640, 32, 131072, 128, 32, 1536, 16, 16, 2),
    "vulkan:nvidia": Chip("nvidia", 1980, 4800, 132, 57344, 128, 32, 512, 16, 48),
}
# Cycles of a matrix instruction by chip and M x N (lib/Target).
CYCLES = {"gfx90a": {256: 32, 1024: 64}, "gfx942": {256: 16, 1024: 32}, "gfx950": {256: 16, 1024: 32}, "gfx1100": {256: 32}, "gfx1201": {256: 16}, "vulkan:nvidia": {128: 7, 256: 18}}
EXTENTS = (16, 32, 64, 96, 128, 160, 192, 256)


def up(x, y):
    return -(-x // y)


# Collecting.


def instructions(chip):
    if CHIPS[chip].family == "rdna":
        return [[16, 16, 16]]
    return [[16, 16, 32], [32, 32, 16]] if chip == "gfx950" else [[16, 16, 16], [32, 32, 8]]


def random_tile(pick, chip, m):
    depths = (16, 32, 64, 128) if CHIPS[chip].family == "rdna" else (32, 64, 128, 256)
    while True:
        mi = pick.choice(instructions(chip))
        rows, columns, depth, waves = pick.choice(EXTENTS), pick.choice(EXTENTS), pick.choice(depths), pick.choice((2, 4, 8))
        if rows % mi[0] or columns % mi[1] or depth % mi[2] or rows > max(32, 2 * m) or not waves * mi[0] * mi[1] <= rows * columns <= waves * CHIPS[chip].wave * 128:
            continue
        tile = {"tile": [rows, columns, depth], "waves": waves, "stages": 2, "instruction": mi, "slice": pick.choice([s for s in (mi[2], 32, depth) if s <= depth and s % mi[2] == 0])}
        if chip == "gfx950" and pick.random() < 0.4:
            tile |= {"direct": True, "stages": pick.choice((2, 3))}
        if pick.random() < 0.25:
            tile["split"] = pick.choice((2, 3, 4, 8))
        return tile


def collect_one(work, pick, chip, shape, tiles):
    m, n, k = shape
    folder = work / chip / "-".join(map(str, shape))
    folder.mkdir(parents=True, exist_ok=True)
    a, b, d = (f"tensor<{rows}x{columns}xf16>" for rows, columns in ((m, k), (n, k), (m, n)))
    source = folder / "gemm.mlir"
    source.write_text(f"func.func @gemm(%a: {a}, %b: {b}) -> {d} {{\n  %0 = greta.matmul %a, %b {{transpose_b}} : {a}, {b} -> {d}\n  return %0 : {d}\n}}\n")
    also = [f"--also={json.dumps(random_tile(pick, chip, m))}" for _ in range(tiles)]
    command = [ROOT / "build/bin/greta-tune", source, "-o", folder / "tiles.json", "--restart", f"--targets={chip}", "--device=estimate", "--candidates=6", *also]
    subprocess.run([str(c) for c in command], capture_output=True, check=True)


def collect(options):
    pick = random.Random(options.seed)
    jobs = []
    for chip in options.chips.split(","):
        while sum(job[0] == chip for job in jobs) < options.shapes:
            m = pick.choice((32, 64, 100, 128, 256, 300, 512, 768, 1024, 2048, 4096))
            n, k = pick.choice((128, 256, 384, 512, 1024, 2048, 3072, 4096, 5120, 7168, 8192)), pick.choice((1024, 2048, 4096, 5120, 7168, 8192))
            if m * n * k < 2e11:
                jobs.append((chip, (m, n, k), random.Random(pick.random())))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda job: collect_one(options.work, job[2], job[0], job[1], options.tiles), jobs))


# The model, as in TileTime.cpp.


def wave_tile(rows, columns, mi, waves):
    """A wave's part: waves halve the longer side, where it has a tile for each."""
    while waves > 1:
        longer = 0 if rows >= columns else 1
        fits = (rows % (2 * mi[0]) == 0, columns % (2 * mi[1]) == 0)
        side = longer if fits[longer] else 1 - longer
        if not fits[side]:
            return None
        rows, columns = (rows // 2, columns) if side == 0 else (rows, columns // 2)
        waves //= 2
    return rows, columns


def lane_registers(c, part, config, stored, in_lane):
    """As TileModel::registers, for operands that are not transposed."""
    (_, _, depth), mi, waves, taken = config["tile"], config["instruction"], config["waves"], config["slice"]
    ahead = taken < depth

    def fragment(extent, tile):
        each = max(1, (in_lane or tile * mi[2] // c.wave) // 2)
        return extent // tile * each * (taken // mi[2] if ahead else min(taken // mi[2], max(1, 4 // each)))

    left, right = fragment(part[0], mi[0]), fragment(part[1], mi[1])
    operands = 2 * (left + right) if config["stages"] > 1 and ahead else max(left, right) + 16
    blocks = 0 if config.get("direct") else sum(up(extent * depth * 16, 128 * waves * c.wave) * 4 for extent in config["tile"][:2])
    return part[0] * part[1] / c.wave + 24 + operands + blocks


def resources(chip, shape, config, bits=16):
    """The work of a unit for a tile; none where choices would not take it, or where lanes have unequal shares of a block, from which LoopRates::narrow keeps choices away."""
    c, (m, n, k), (rows, columns, depth), mi, waves, stages = CHIPS[chip], shape, config["tile"], config["instruction"], config["waves"], config["stages"]
    part = wave_tile(rows, columns, mi, waves)
    if not part or not stages:
        return None
    driver = c.family == "nvidia"
    in_lane = 0 if driver else 16 if chip == "gfx1100" else mi[0] * mi[2] // c.wave
    stored, direct, split = (rows + columns) * depth * 2, config.get("direct", False), config.get("split", 1)
    registers = lane_registers(c, part, config, stored, in_lane)
    if not driver and not direct and any(extent * depth % (8 * waves * c.wave) for extent in (rows, columns)):
        return None
    if not driver and registers > min(256 if c.family == "rdna" else 512, c.registers // up(waves, c.simds)) - c.spare:
        return None
    wider = 1 if driver else 16 / min(16, 2 * in_lane * (config["slice"] // mi[2])) * in_lane * c.wave / (mi[0] * mi[2])
    lds = stages * (stored + driver * 16 * (rows + columns))
    share = c.simds / min(waves, c.simds)
    return dict(
        gfx950=chip == "gfx950", direct=direct, stages=stages, split=split, elements=rows * columns, few=m <= 128,
        groups=up(up(m, rows) * up(n, columns) * split, c.units), steps=up(up(k, depth), split), share=share, halves=min(share, c.halves),
        count=rows // mi[0] * (columns // mi[1]) * (depth // mi[2]) / c.simds, cycles=CYCLES[chip][mi[0] * mi[1]],
        lds=stored + waves * sum(part) * depth * 2 * wider, loaded=depth * (min(rows, m) * 2 + min(columns, n) * bits / 8) / c.cache,
        partial=(1.04 if m % rows else 1) * (1.04 if n % columns else 1), memory=(m * k * 2 + n * k * bits / 8) / (1000 * c.gbs) * c.mhz,
        resident=max(1, min(c.lds // lds, int(min(c.most_waves, c.registers // registers) * c.simds // waves))))  # fmt: skip


# lds, lds_gfx950 and cache are LoopRates' ldsBytes, and cacheBytes as a part of the unit's share. A family's fixed values are in FIXED.
START = {
    "cdna": dict(issue=1, lds=155, lds_gfx950=169, cache=0.88, busiest=1, others=0.06, iteration=227, iteration_direct=440, hidden=0.14, latency=340, latency_few=0,
                 latency_direct=700, behind=0.2, contention=0.5, crowded=0.06, ends=2650, meeting=1400, part_bytes=40),
    "rdna": dict(issue=0, lds=256, lds_gfx950=1, cache=0.85, busiest=1, others=0.06, iteration=81, iteration_direct=0, hidden=0, latency=401, latency_few=0,
                 latency_direct=0, behind=0.25, contention=0.46, crowded=0.1, ends=1260, meeting=2880, part_bytes=82),
    "nvidia": dict(issue=0, lds=128, lds_gfx950=1, cache=1, busiest=0.6, others=0.3, iteration=1260, iteration_direct=0, hidden=0, latency=1200, latency_few=1400,
                   latency_direct=0, behind=0.1, contention=1, crowded=0, ends=1100, meeting=16300, part_bytes=104),
}  # fmt: skip
FIXED = {"cdna": ("issue", "busiest", "others", "cache"), "rdna": ("busiest", "others", "lds", "lds_gfx950"), "nvidia": ("busiest", "others", "lds", "lds_gfx950", "cache", "latency", "behind", "contention", "part_bytes")}


def model(f, q):
    matrix, shared, cached = f["count"] * (f["cycles"] + q["issue"]), f["lds"] / np.where(f["gfx950"] > 0, q["lds_gfx950"], q["lds"]), f["loaded"] / q["cache"]

    def parts(*units):
        busiest = np.maximum.reduce(units)
        return busiest, sum(units) - busiest

    busiest, others = parts(matrix, shared, cached)
    own, own_others = parts(matrix * f["share"], shared * f["halves"], cached * f["halves"])
    beside = np.maximum(0, np.where(f["direct"] > 0, q["iteration_direct"], q["iteration"]) - q["hidden"] * matrix * f["share"])
    alone = q["busiest"] * own + q["others"] * own_others + beside
    latency = np.where(f["direct"] > 0, q["latency_direct"] / np.maximum(1, f["stages"] - 1), q["latency"]) + f["few"] * q["latency_few"]
    alone = np.maximum(alone, latency + q["behind"] * (own + own_others))

    def together(n):
        iteration = np.maximum(alone + q["contention"] * (n - 1) * busiest, n * (q["busiest"] * busiest + q["crowded"] * others))
        return f["steps"] * iteration + q["ends"] + (f["split"] > 1) * (q["meeting"] + (f["split"] + 1) * f["elements"] * 4 * n / q["part_bytes"])

    full = np.floor(f["groups"] / f["resident"])
    left = f["groups"] - full * f["resident"]
    return np.maximum((full * together(f["resident"]) + np.where(left > 0, together(left), 0)) * f["partial"], f["memory"])


# Fitting.


def estimated(work, family):
    """(chip, shape), configuration, cycles, bits of a weight."""
    for path in sorted(work.glob("*/*/tiles.json")):
        chip, shape = path.parts[-3], tuple(map(int, path.parts[-2].split("-")))
        if CHIPS[chip].family == family:
            yield from (((chip, shape), c["config"], c["us"] * CHIPS[chip].mhz, 16) for c in json.loads(path.read_text())["entries"][0]["candidates"] if "us" in c)


def measured():
    for file in ("lib/Configure/Measured.json", "docs/benchmarks/h200_tuning.json"):
        for entry in json.loads((ROOT / file).read_text())["entries"]:
            for c in entry["candidates"]:
                if "us" in c and "stages" in c["config"] and isinstance(entry["shape"][0], int):
                    bits = 4 if "dequant" in entry["op"] else 16
                    yield ("vulkan:nvidia", tuple(entry["shape"]), entry["op"]), c["config"], c["us"] * CHIPS["vulkan:nvidia"].mhz, bits


def fit(options):
    shapes = collections.defaultdict(list)
    for key, config, cycles, bits in measured() if options.family == "nvidia" else estimated(options.work, options.family):
        if tile := resources(*key[:2], config, bits):
            shapes[key].append((tile, cycles))
    tiles = [tile for pairs in shapes.values() for tile in pairs]
    features = {name: np.array([tile[name] for tile, _ in tiles], float) for name in tiles[0][0]}
    cycles = np.array([c for _, c in tiles])
    ends = np.cumsum([len(pairs) for pairs in shapes.values()])
    ranges = list(zip([0, *ends[:-1]], ends))
    best = np.concatenate([np.full(e - a, cycles[a:e].min()) for a, e in ranges])
    weight = np.concatenate([np.full(e - a, 1 / (e - a)) for a, e in ranges]) / (1 + 4 * np.log(cycles / best)) / len(ranges)
    start = START[options.family]
    names = [name for name, value in start.items() if value and name not in FIXED[options.family]]

    def judged(q):
        """The error of the times, those near a shape's best counting most; how far the tiles that the model takes are from the best; with a bit for leaving START."""
        times = model(features, q)
        error = (weight * np.abs(np.log(times / cycles))).sum()
        regret = sum(math.log(cycles[a + times[a:e].argmin()] / best[a]) for a, e in ranges) / len(ranges)
        return error + 1.5 * regret + 0.001 * sum(math.log(q[name] / start[name]) ** 2 for name in names), error, regret

    found = []
    for seed in range(4):
        pick, q = random.Random(seed), dict(start)
        least = judged(q)
        for iteration in range(options.iterations):
            spread = 0.2 if iteration < options.iterations / 3 else 0.06
            other = q | {name: q[name] * math.exp(pick.gauss(0, spread)) for name in names if pick.random() < 0.4}
            if (here := judged(other)) < least:
                q, least = other, here
        found.append((least, q))
    (_, error, regret), q = min(found, key=lambda pair: pair[0])
    print(f"{len(tiles)} tiles of {len(ranges)} shapes: START {judged(start)[1]:.3f}, choice {judged(start)[2]:.3f}; fitted {error:.3f}, choice {regret:.3f}")
    print({name: float(f"{q[name]:.3g}") for name in names})
    times = model(features, start)
    for key, (a, e) in zip(shapes, ranges):
        print(*key, round(cycles[a + times[a:e].argmin()] / best[a], 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("collect", "fit"))
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("family", choices=FIXED, nargs="?")
    parser.add_argument("--chips", default=",".join(chip for chip in CHIPS if chip.startswith("gfx")))
    parser.add_argument("--shapes", type=int, default=12)
    parser.add_argument("--tiles", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=6000)
    options = parser.parse_args()
    {"collect": collect, "fit": fit}[options.step](options)


if __name__ == "__main__":
    main()
