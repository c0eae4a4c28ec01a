"""The coefficients of the tile model for CDNA (LoopLimits in lib/Target/Amdgpu.cpp, cyclesOfLoop in lib/Configure/TileModel.cpp), fitted to the simulator's estimates.

    build/venv/bin/python docs/benchmarks/tile_times.py collect WORK [--chips=gfx90a,gfx942,gfx950] [--shapes=12] [--tiles=60] [--seed=1]
    build/venv/bin/python docs/benchmarks/tile_times.py fit WORK

`collect` estimates random tiles of random f16 GEMMs (greta-tune --device=estimate) and keeps what it finds in WORK; it may be stopped and goes on with other shapes at another
seed. `fit` looks for the coefficients whose times and choices are nearest to the estimates' by a random search, and prints them, and per shape how far the tile that the
model takes is from the best one that was tried.
"""

import argparse
import collections
import concurrent.futures
import json
import math
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# MHz, compute units, LDS bytes, and bytes a cycle of a unit's share of the second cache (lib/Sim/TimingTable.cpp).
CHIPS = {"gfx90a": (1700, 110, 65536, 37), "gfx942": (2100, 304, 65536, 54), "gfx950": (2400, 256, 163840, 64)}
SIMDS, WAVE, REGISTERS, MOST_WAVES = 4, 64, 512, 8
CYCLES = {("gfx90a", 16): 32, ("gfx90a", 32): 64}  # of a matrix instruction; else its M
EXTENTS = (16, 32, 64, 96, 128, 160, 192, 256)


def up(x, y):
    return -(-x // y)


# Collecting.


def instructions(chip):
    return [[16, 16, 32], [32, 32, 16]] if chip == "gfx950" else [[16, 16, 16], [32, 32, 8]]


def random_tile(pick, chip, m):
    while True:
        mi = pick.choice(instructions(chip))
        rows, columns, depth, waves = pick.choice(EXTENTS), pick.choice(EXTENTS), pick.choice((32, 64, 128, 256)), pick.choice((2, 4, 8))
        if rows % mi[0] or columns % mi[1] or depth % mi[2] or rows > max(32, 2 * m) or not waves * mi[0] * mi[1] <= rows * columns <= waves * WAVE * 128:
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


# The model, as in cyclesOfLoop.


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


def resources(chip, shape, config):
    """What a tile asks of a compute unit; none where lanes have unequal shares of it."""
    (m, n, k), (rows, columns, depth), mi, waves = shape, config["tile"], config["instruction"], config["waves"]
    part = wave_tile(rows, columns, mi, waves)
    if not part or rows * depth % (8 * waves * WAVE) or columns * depth % (8 * waves * WAVE) or config["stages"] < 2:
        return None
    _, units, lds, _ = CHIPS[chip]
    in_lane = mi[0] * mi[2] // WAVE
    width = min(16, 2 * in_lane * (config["slice"] // mi[2]))
    stored = (rows + columns) * depth * 2
    direct = config.get("direct", False)
    registers = part[0] * part[1] / WAVE + sum(part) * mi[2] / WAVE + (0 if direct else stored / (4 * waves * WAVE)) + 40
    split = config.get("split", 1)
    return dict(
        chip=chip, direct=direct, stages=config["stages"], split=split, elements=rows * columns, stored=stored,
        groups=up(up(m, rows) * up(n, columns) * split, units), steps=up(up(k, depth), split),
        cycles=CYCLES.get((chip, mi[0]), mi[0]), matrix=rows // mi[0] * (columns // mi[1]) * (depth // mi[2]) * CYCLES.get((chip, mi[0]), mi[0]) / min(waves, SIMDS),
        reads=waves * sum(part) * depth * 2 * 16 / width, ahead=config["slice"] < depth and width == 16,
        resident=max(1, min(lds // (config["stages"] * stored), int(min(MOST_WAVES, REGISTERS // registers) * SIMDS // waves))))  # fmt: skip


START = dict(latency=365, step=226, ends=870, contention=0.17, direct_latency=720, direct_step=446, lds=140, lds_gfx950=158, cache=0.88, whole=0.17, issue=1.1, ahead=0.92,
             waits=0.16, others=0.12, hidden=0.15, meeting=4385, parts=58)  # fmt: skip


def model(tile, q):
    shared = (tile["reads"] + tile["stored"]) / (q["lds_gfx950"] if tile["chip"] == "gfx950" else q["lds"])
    cached = tile["stored"] / (q["cache"] * CHIPS[tile["chip"]][3])
    matrix = tile["matrix"] * (1 + q["issue"] / tile["cycles"])
    busiest = max(matrix, shared, cached)
    beside = max(0, q["direct_step"] - q["hidden"] * matrix) if tile["direct"] else q["step"]
    chain = busiest + (q["ahead"] * beside if tile["ahead"] else beside + q["whole"] * shared)
    latency = q["direct_latency"] / (tile["stages"] - 1) if tile["direct"] else q["latency"]
    chain = max(chain, latency + q["waits"] * matrix)
    left, time = tile["groups"], 0
    while left > 0:
        together = min(left, tile["resident"])
        time += tile["steps"] * max(chain + q["contention"] * (together - 1) * busiest, together * (busiest + q["others"] * (matrix + shared + cached - busiest))) + q["ends"]
        if tile["split"] > 1:
            time += q["meeting"] + (tile["split"] + 1) * tile["elements"] * 4 * together / q["parts"]
        left -= together
    return time


def fit(options):
    shapes = collections.defaultdict(list)
    for path in sorted(options.work.glob("*/*/tiles.json")):
        chip, shape = path.parts[-3], tuple(map(int, path.parts[-2].split("-")))
        for candidate in json.loads(path.read_text())["entries"][0]["candidates"]:
            tile = resources(chip, shape, candidate["config"]) if "us" in candidate else None
            if tile:
                shapes[chip, shape].append((tile, candidate["us"] * CHIPS[chip][0]))
    best = {key: min(cycles for _, cycles in tiles) for key, tiles in shapes.items()}

    def error(q):
        """Per shape: the error of its tiles, those near the best counting most, and how far the tile that the model takes is from the best."""
        whole = 0
        for key, tiles in shapes.items():
            times = [model(tile, q) for tile, _ in tiles]
            whole += sum(abs(math.log(time / cycles)) / (1 + 4 * math.log(cycles / best[key])) for time, (_, cycles) in zip(times, tiles)) / len(tiles)
            whole += 1.5 * math.log(tiles[times.index(min(times))][1] / best[key])
        return whole / len(shapes)

    pick, q = random.Random(1), dict(START)
    least = error(q)
    for turn in range(options.turns):
        spread = 0.2 if turn < options.turns / 3 else 0.06
        other = {name: value * math.exp(pick.gauss(0, spread)) if pick.random() < 0.4 else value for name, value in q.items()}
        if (found := error(other)) < least:
            q, least = other, found
    print(f"{sum(map(len, shapes.values()))} tiles of {len(shapes)} shapes, {least:.3f}")
    print({name: round(value, 2) for name, value in q.items()})
    for (chip, shape), tiles in sorted(shapes.items()):
        taken = min(tiles, key=lambda t: model(t[0], q))
        print(chip, "x".join(map(str, shape)), round(taken[1] / best[chip, shape], 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("collect", "fit"))
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--shapes", type=int, default=12)
    parser.add_argument("--tiles", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--turns", type=int, default=6000)
    options = parser.parse_args()
    {"collect": collect, "fit": fit}[options.step](options)


if __name__ == "__main__":
    main()
