"""Writes the tables of docs/benchmarks/README.md and docs/internals/llm.md, and a sentence of docs/internals/numerics.md, from the CSV files beside it.

    python3 docs/benchmarks/tables.py [--check]

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`; NAME is one of the functions under `@table`. --check changes
nothing, prints what differs and exits 1 if anything does (test/test_repository.py runs it).
"""

import csv
import difflib
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
PAGES = FOLDER / "README.md", FOLDER.parent / "internals" / "numerics.md", FOLDER.parent / "internals" / "llm.md"
BLOCK = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
TABLES = {}


def table(function):
    TABLES[function.__name__] = function
    return function


def rows(name):
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def newest(records, *key):
    """The last record of each key, in the order in which keys first appear."""
    return list({tuple(record[k] for k in key): record for record in records}.values())


def distinct(records, key):
    return list(dict.fromkeys(record[key] for record in records))


def markdown(header, body):
    """Empty cells where a value is None or empty text."""
    lines = [header, ["---"] * len(header), *body]
    return "".join("| " + " | ".join(str(cell if cell is not None else "") for cell in line) + " |\n" for line in lines)


def number(value, digits=0):
    return "" if value in ("", None) else f"{float(value):.{digits}f}"


@table
def torch_gpu():
    body = [
        [r["case"], r["gpu"], r["unit"], number(r["rdna"], 1), number(r["cuda"], 1), number(r["ratio"], 3), r["goal"], r["error"], r["cuda_error"], r["commit"]]
        for r in newest(rows("torch_gpu.csv"), "case")
    ]
    return markdown(["case", "GPU", "unit", "rdna", "CUDA", "of CUDA", "goal", "error", "CUDA's error", "commit"], body)


@table
def llm_kv_cache():
    records = newest(rows("llm_kv_cache.csv"), "kv_cache", "test", "depth", "batch")
    places = distinct([{"place": (r["test"], r["depth"], r["batch"])} for r in records], "place")
    rate = {(r["kv_cache"], r["test"], r["depth"], r["batch"]): number(r["tokens_per_second"], 0) for r in records}
    caches = distinct(records, "kv_cache")
    return markdown(["test", "tokens before", "sequences", *caches], [[*place, *(rate.get((cache, *place)) for cache in caches)] for place in places])


@table
def launch_path():
    body = [
        [r["device"], number(r["launch_us"], 2), number(r["launch_min_us"], 2), number(r["record_us"], 2), number(r["replay_us"], 3),
         number(r["auto_graph_us"], 2), r["commit"]]
        for r in newest(rows("launch_path.csv"), "device")
    ]
    return markdown(["device", "launch, us", "fastest", "recorded", "replayed", "with automatic graphs", "commit"], body)


@table
def launch_overhead():
    body = [
        [r["device"], r["triton"], number(r["total_us"], 1), number(r["triton_us"], 1), number(r["launcher_us"], 2), r["commit"]]
        for r in newest(rows("launch_overhead.csv"), "device", "triton")
    ]
    return markdown(["device", "Triton", "a launch, us", "Triton's part", "the launcher", "commit"], body)


@table
def flash_attention():
    body = [
        [r["heads"], r["queries"], r["keys"], number(r["median_us"], 1), number(r["tflop_per_s"], 1), number(r["torch_tflop_per_s"], 1),
         number(r["torch_flash_tflop_per_s"], 1), r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200_flash.csv"), "program", "heads", "queries", "keys")
    ]
    return markdown(["heads", "queries", "keys", "us", "TFLOP/s", "torch", "FlashAttention-2", "error", "commit"], body)


@table
def attention():
    records = [r for r in newest(rows("h200_attention.csv"), "function", "batch", "queries", "keys") if "__" not in r["function"] or r["function"].endswith("k32w4s132")]
    body = [
        [r["function"], r["batch"], f"{r['heads']}/{r['key_heads']}", r["queries"], r["keys"], r["depth"], number(r["median_us"], 1), number(r["tflop_per_s"], 1),
         number(r["of_copy"], 2), number(r["torch_us"], 1), number(r["torch_flash_us"], 1), r["error_euclidean"], r["commit"]]
        for r in records
    ]
    return markdown(["function", "batch", "heads", "queries", "keys", "D", "us", "TFLOP/s", "of copy", "torch us", "FlashAttention-2 us", "error", "commit"], body)


@table
def kv_update():
    body = [
        [r["function"], r["tokens"], r["variant"], number(r["median_us"], 2), number(r["serial_us"], 2), number(r["added_us"], 2), r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200_kv_update.csv"), "function", "tokens")
    ]
    return markdown(["function", "tokens", "variant", "us", "us, serial", "more than the product", "error", "commit"], body)


@table
def row_ranges():
    measured = {(r["function"], int(r["tokens"]), r["kernels"]): r for r in newest(rows("h200_ranges.csv"), "function", "tokens", "kernels")}
    body = []
    for function, tokens in sorted({key[:2] for key in measured}):
        one, ranges = (measured[function, tokens, kernels] for kernels in ("any", "ranges"))
        serial = [float(r["serial_us"]) for r in (one, ranges)]
        body.append([function, tokens, number(serial[0], 1), number(serial[1], 1), number(serial[1] / serial[0], 2), number(one["median_us"], 1), number(ranges["median_us"], 1), ranges["commit"]])
    return markdown(["function", "M", "us, serial, one kernel", "kernels for ranges", "of it", "us, one kernel", "kernels for ranges", "commit"], body)


@table
def grouped():
    body = [
        [r["function"], r["tokens"], number(r["median_us"], 1), number(r["serial_us"], 1), number(r["of_copy"], 2), number(r["tflop_per_s"], 1), number(r["torch_us"], 1), number(r["torch_grouped_us"], 1),
         r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200_grouped.csv"), "function", "tokens")
    ]
    return markdown(["function", "tokens", "us", "us, serial", "of the copy", "TFLOP/s", "torch us, an expert at a time", "torch us, grouped, bf16", "error", "commit"], body)


@table
def collectives():
    body = [
        [r["way"], r["collective"], r["bytes"], number(r["us"], 1), number(r["gb_per_s"], 1), r["commit"]]
        for r in newest([r for r in rows("collectives.csv") if float(r["us"])], "way", "collective", "bytes")
    ]
    return markdown(["way", "what", "bytes", "us", "GB/s", "commit"], body)


@table
def tutorials():
    body = [
        [r["kernel"], r["shape"], r["block"], r["num_warps"], number(r["median_us"], 1), f"{number(r['rate'], 1)} {r['unit']}", number(r["of_triton"], 2), number(r["of_greta"], 2),
         r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200_tutorials.csv"), "kernel", "shape", "block", "num_warps")
    ]
    return markdown(["kernel", "shape", "block", "warps", "us", "", "of Triton's", "of the operator", "error", "commit"], body)


@table
def attention_backward():
    body = [
        [r["function"], f"{r['heads']}/{r['key_heads']}", r["queries"], r["keys"], r["depth"], number(r["median_us"], 1), number(r["tflop_per_s"], 1),
         number(r["torch_tflop_per_s"], 1), number(r["torch_flash_tflop_per_s"], 1), r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200_attention_backward.csv"), "function", "queries", "keys")
    ]
    return markdown(["function", "heads", "queries", "keys", "D", "us", "TFLOP/s", "torch", "FlashAttention-2", "error", "commit"], body)


@table
def pointers():
    body = [
        [r["m"], r["n"], r["k"], r["config"], number(r["median_us"], 1), number(r["tflop_per_s"], 1), r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200_pointers.csv"), "function", "config")
    ]
    return markdown(["M", "N", "K", "", "us", "TFLOP/s", "error", "commit"], body)


@table
def memory_bound():
    body = [
        [r["function"], r["shape"], number(r["median_us"], 1), number(r["gb_per_s"]), number(r["of_copy"], 3), number(r["serial_us"], 1), number(r["torch_us"], 1),
         number(r["of_torch"], 2), r["error_euclidean"], r["commit"]]
        for r in newest(rows("h200.csv"), "function")
    ]
    return markdown(["function", "shape", "us", "GB/s", "of the copy", "us, serial", "torch us, serial", "torch / ours, serial", "error", "commit"], body)


@table
def memory_bound_history():
    records = [r for r in rows("h200.csv") if r["variant"] != "vulkan-portable"]
    functions = distinct(records, "function")
    of_copy = {(r["commit"], r["function"]): r["of_copy"] for r in records}
    return markdown(["commit", *functions], [[commit, *(of_copy.get((commit, f)) for f in functions)] for commit in distinct(records, "commit")])


def speed(record):
    """TFLOP/s beside cuBLAS's."""
    return f"{number(record['tflop_per_s'])} ({number(record['torch_tflop_per_s'])}) = {number(record['of_torch'], 2)}"


def timed():
    """In short and in long batches; there are others, of experiments."""
    return [r for r in rows("h200_gemms.csv") if r["batch_ms"] in ("10", "100")]


@table
def gemm():
    records = [r for r in newest(timed(), "function", "config", "batch_ms") if int(r["m"]) > 64]
    body = [[r["function"].replace("_", " "), r["config"], r["batch_ms"], speed(r), r["error_euclidean"], r["commit"]] for r in sorted(records, key=lambda r: (r["function"], r["config"], float(r["batch_ms"])))]
    return markdown(["GEMM", "configuration", "batch, ms", "TFLOP/s (cuBLAS)", "error against float64", "commit"], body)


@table
def skinny():
    records = [r for r in newest(timed(), "function", "config") if int(r["m"]) <= 64 and r["config"] == "default"]
    body = [[r["function"].replace("_", " "), number(r["overlapping_us"], 1), number(r["median_us"], 1), number(r["torch_us"], 1), r["error_euclidean"], r["commit"]] for r in records]
    return markdown(["GEMM", "us", "us, serial", "torch us, serial", "error against float64", "commit"], body)


@table
def gemm_history():
    records = [r for r in timed() if r["config"] == "default" and int(r["m"]) > 64]
    functions = distinct(records, "function")
    cells = {(r["commit"], r["batch_ms"], r["function"]): speed(r) for r in records}
    keys = list(dict.fromkeys((r["commit"], r["batch_ms"]) for r in records))
    return markdown(["commit", "batch, ms", *(f.replace("_", " ") for f in functions)], [[*key, *(cells.get((*key, f)) for f in functions)] for key in keys])


@table
def gemm_candidates():
    records = [r for r in rows("h200_gemms.csv") if r["config"] not in ("default", "tuned")]
    return markdown(["GEMM", "tile, waves, instruction, GROUP_M", "TFLOP/s (cuBLAS)", "commit"], [[r["function"].replace("_", " "), r["config"].replace("_", " "), speed(r), r["commit"]] for r in records])


def errors(records, *columns):
    """A line per variant and type: how many results, how many over their limit, the largest errors as shares of it."""
    kind = lambda r: (*(r[c] for c in columns), r["variant"], "8-bit floats" if r["dtype"].startswith("f8") else r["dtype"], r["commit"])
    body = []
    for key in dict.fromkeys(map(kind, records)):
        group = [r for r in records if kind(r) == key]
        worst = [max(float(r[column]) for r in group) for column in ("euclidean_of_limit", "maximum_of_limit")]
        body.append([*key[:-1], sum(int(r["cases"]) for r in group), sum(int(r["failed"]) for r in group), *(number(w, 3) for w in worst), key[-1]])
    return markdown([*columns, "variant", "type", "results", "over a limit", "largest error of the limit, Euclidean", "maximum", "commit"], body)


@table
def h100():
    """The same packages on two cards: an H100, for which nothing was tuned, beside the H200's newest row."""
    body = []

    def beside(name, keys, ratio, select=lambda r: True):
        there = {tuple(r[k] for k in keys): r for r in newest([r for r in rows(f"h200_{name}.csv") if select(r)], *keys)}
        for r in filter(select, rows(f"h100_{name}.csv")):
            other = there.get(tuple(r[k] for k in keys))
            body.append([" ".join(r[k] for k in keys), number(r["median_us"], 1), number(ratio(r), 2), number(other["median_us"], 1) if other else "", number(ratio(other), 2) if other else "", r["commit"]])

    beside("gemms", ["function"], lambda r: r["of_torch"], lambda r: r["config"] == "default" and float(r["batch_ms"]) == 10)
    beside("attention", ["function", "batch", "queries", "keys"], lambda r: float(r["torch_us"]) / float(r["median_us"]))
    beside("grouped", ["function", "tokens"], lambda r: r["torch_grouped_us"] and float(r["torch_grouped_us"]) / float(r["median_us"]))
    return markdown(["what", "H100, us", "torch / ours", "H200, us", "torch / ours", "commit"], body)


@table
def numerics():
    """The newest record with GEMMs and row ops, and what came behind it: records may have some families of kernels alone."""
    records = rows("h200_numerics.csv")
    whole = [r["commit"] for r in records if r["kind"] == "norm_matmul"][-1]
    return errors(records[[r["commit"] for r in records].index(whole) :])


@table
def numerics_over_limits():
    """A sentence: how many results each record has over a limit, the newest first."""
    records = rows("h200_numerics.csv")

    def over(group):
        return f"{sum(int(r['failed']) for r in group)} of {sum(int(r['cases']) for r in group):,} ({group[0]['commit']}, {group[0]['date']})"

    each = [over([r for r in records if r["commit"] == commit]) for commit in reversed(distinct(records, "commit"))]
    return f"**On the H200** these results went over a limit: {', '.join(each)}. On an H100 {over(rows('h100_numerics.csv'))} did.\n"


@table
def radeon_numerics():
    return errors(rows("radeon_numerics.csv"), "gpu", "driver")


def busy(record):
    """A figure and its range when the model's rates and latencies are varied."""
    return f"{number(record['busy'], 3)} ({number(record['busy_low'], 2)}-{number(record['busy_high'], 2)})" if record else ""


@table
def triton_amd():
    beside = lambda r, key, digits=None: [number(r[k], digits) if digits else r[k] for k in (key, f"triton_{key}")]
    body = [
        [r["chip"], r["kernel"].replace("_kernel", ""), r["block"], r["num_warps"], *beside(r, "compile_s", 2), *beside(r, "vgprs"), *beside(r, "spills"),
         *beside(r, "density", 2), *beside(r, "alu", 1), *beside(r, "share", 2), *beside(r, "busy", 2)]
        for r in rows("triton_amd.csv")
    ]
    header = ["chip", "kernel", "block", "warps"]
    for name in ("compile s", "VGPRs", "spills", "density", "ALU", "share", "busy"):
        header += [name, "Triton's"]
    return markdown(header, body)


@table
def amd_loops():
    triton = {r["chip"]: r for r in rows("amd_loops.csv") if r["kernel"] == "Triton"}
    body = []
    for r in rows("amd_loops.csv"):
        if r["kernel"] == "greta":
            other = triton.get(r["chip"], {})
            tiles = [r["tile"], other.get("tile")]
            body.append([r["chip"], *tiles, number(r["share"], 3), number(other.get("share"), 3), busy(r), busy(other), r["bound"], number(r["density"], 2), number(other.get("density"), 2), r["vgprs"], r["waves_per_simd"], r["commit"]])
    return markdown(["chip", "tile", "Triton's", "share", "Triton's", "busy", "Triton's", "bound by", "density", "Triton's", "VGPRs", "waves a SIMD", "commit"], body)


@table
def grouped_gemm():
    """The grouped GEMM, and the one that does as much."""
    key = lambda r: (r["chip"], r["tokens"], r["weights"])
    plain, dynamic = ({key(r): r for r in rows("grouped_gemm.csv") if r["kernel"] == kernel} for kernel in ("plain", "dynamic"))
    body = []
    for r in rows("grouped_gemm.csv"):
        if r["kernel"] == "grouped":
            other = plain[key(r)]
            ratio = float(other["microseconds"]) / float(r["microseconds"])
            loops = [number(x["loop"], 2) if float(x["loop"]) else "" for x in (r, other)]
            of_any = number(dynamic[key(r)]["microseconds"], 1) if dynamic else ""
            body.append([*key(r), r["tile"], other["tile"], number(r["microseconds"], 1), of_any, number(other["microseconds"], 1), number(ratio, 2), r["bytes"], other["bytes"], *loops, r["commit"]])
    return markdown(["chip", "tokens", "weights", "tile", "plain GEMM's", "us", "T dynamic", "plain", "of its speed", "weight bytes a cycle", "plain", "loop's matrix units busy", "plain", "commit"], body)


@table
def skinny_amd():
    """GEMMs with one row: bytes of weights a cycle of each chip, and of its memory's."""
    records = [r for r in rows("weight_formats.csv") if r["m"] == "1" and r["type"] == "f16"]
    chips = distinct(records, "chip")
    cells = {(r["format"], r["chip"]): f"{r['launch_bytes']} ({number(r['of_memory'], 2)})" for r in records}
    bits = {r["format"]: r["bits"] for r in records}
    return markdown(["weights", "bits", *chips, "commit"], [[f, bits[f], *(cells.get((f, c)) for c in chips), records[0]["commit"]] for f in bits])


@table
def amd_attention():
    """Main loops of attention."""
    body = [
        [r["chip"], r["kernel"].split()[-1], r["tile"], number(r["share"], 3), r["instructions"], r["matrix"], number(r["alu"], 2), r["vgprs"], r["spills"], r["commit"]]
        for r in rows("amd_loops.csv")
        if r["kernel"].startswith("greta attention")
    ]
    return markdown(["chip", "D", "queries x keys x D", "share", "instructions", "of the matrix unit", "ALU for each", "VGPRs", "spills", "commit"], body)


@table
def radeon():
    body = [
        [r["chip"], r["mesa"], r["function"], number(r["hip_us"], 1), number(r["vulkan_us"], 1), number(r["ratio"], 2), r["bound"], r["waits"], number(r["matrix"], 2), number(r["hip_matrix"], 2),
         r["config"], r["vgprs"], r["scratch"], r["commit"], r["date"]]
        for r in newest(rows("radeon.csv"), "chip", "mesa", "function")
    ]
    return markdown(["chip", "Mesa", "function", "HIP, us", "Vulkan, us", "of HIP", "bound by", "waits", "matrix units busy", "HIP's", "tile", "VGPRs", "scratch", "commit", "date"], body)


@table
def dynamic_m():
    """One line for each GEMM of a chip: static over dynamic time at every M."""
    records = rows("dynamic_m.csv")
    sizes = distinct(records, "m")
    groups = {}
    for r in records:
        groups.setdefault((r["chip"], r["function"]), []).append(r)
    body = [
        [chip, function, *(next(number(r["ratio"], 2) for r in group if r["m"] == m) for m in sizes), len({r["range"] for r in group} - {"-"}), number(int(group[0]["bytes"]) / 1000), group[0]["compile_s"], group[0]["commit"]]
        for (chip, function), group in groups.items()
    ]
    return markdown(["chip", "function", *(f"M = {m}" for m in sizes), "ranges", "kB", "compile, s", "commit"], body)


def choices(records):
    """By type and M: at how many shapes GRETA's default takes at most 1.1 times AMD's winner's time, and less than it."""
    edges = (4, 16, 64, 256, 1024, 4096, 10**9)
    groups = {}
    for family in distinct(records, "family"):
        those = groups[family, "all"] = [r for r in records if r["family"] == family]
        for low, high in zip((0, *edges), edges):
            groups[family, f"{low + 1} to {high}" if high < 10**9 else f"over {low}"] = [r for r in those if low < int(r["m"]) <= high]
    for (family, name), group in groups.items():
        ratios = sorted(float(r["greta_us"]) / float(r["amd_us"]) for r in group)
        share = lambda holds: number(sum(map(holds, ratios)) / len(ratios), 2)
        yield dict(chip="gfx950", family=family, m=name, shapes=len(ratios), at_most_1_1=share(lambda q: q <= 1.1), faster=share(lambda q: q < 1), median=number(ratios[len(ratios) // 2], 2), worst=number(ratios[-1], 2))


@table
def calibration():
    """Every file that calibration/calibrate.py has written, whole but for the shapes of `choices`; commits stand above."""
    parts = []
    for path in sorted(FOLDER.glob("calibration*.csv")):
        records = rows(path.name)
        commits = ", ".join(distinct(records, "commit"))
        records = list(choices(records)) if path.stem == "calibration_choices" else [{k: v for k, v in r.items() if k not in ("date", "commit")} for r in records]
        parts.append(f"`{path.name}` ({commits}):\n\n" + markdown([column.replace("_", " ") for column in records[0]], [record.values() for record in records]))
    return "\n".join(parts)


@table
def compile_time():
    records = rows("compile_time.csv")
    targets = distinct(records, "target")
    cells = {(r["function"], r["target"]): f"{number(r['min_ms'])} / {number(r['median_ms'])}" for r in records}
    return markdown(["function", *targets], [[f, *(cells[f, t] for t in targets)] for f in distinct(records, "function")]) + f"\nCommit {records[0]['commit']}, {records[0]['cpu']}.\n"


@table
def radeon_peers():
    records = rows("radeon_peers.csv")
    both = lambda r, key: f"{r[f'greta_{key}']} / {r[f'peer_{key}']}"
    weights = lambda r: both(r, "type") if r["greta_type"] != r["peer_type"] else r["greta_type"]
    body = [
        [r["chip"], r["mesa"].split("-")[0], r["operator"].split()[0], r["shape"], weights(r), number(r["greta_us"], 1), number(r["peer_us"], 1), r["ratio"], both(r, "dispatches"), both(r, "vgprs"), both(r, "scratch"),
         both(r, "bound"), both(r, "wait"), r["commit"]]
        for r in records
    ]
    header = ["chip", "Mesa", "operator", "shape", "weights", "GRETA, us", "llama.cpp, us", "ratio", "dispatches", "VGPRs", "scratch", "bound by", "waits most for", "commit"]
    return markdown(header, body) + f"\n{records[0]['date']}, ggml {records[0]['ggml']}.\n"


@table
def radeon_peers_models():
    body = [[r["chip"], r["model"], r["test"], r["published"], r["peer_model"], r["greta_model"], r["commit"]] for r in rows("radeon_peers_models.csv")]
    return markdown(["chip", "model", "tokens", "llama.cpp, published", "llama.cpp, modelled", "GRETA, modelled", "commit"], body)


@table
def simulator():
    body = [[r["mode"], r["size"], r["wave_instructions"], number(r["median_ms"], 1), number(float(r["wave_instructions"]) / float(r["median_ms"]) / 1e3, 1), r["commit"]] for r in rows("simulator.csv")]
    return markdown(["mode", "M = N = K", "wave instructions", "ms, median", "million wave instructions a second", "commit"], body)


def write(page, text):
    def fill(match):
        if match[2] not in TABLES:
            sys.exit(f"{page}: no table '{match[2]}'; there are {', '.join(TABLES)}")
        return match[1] + TABLES[match[2]]() + match[3]

    return BLOCK.sub(fill, text)


def main():
    differs = False
    for page in PAGES:
        old = page.read_text()
        new = write(page, old)
        if "--check" in sys.argv[1:]:
            sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), str(page), "the CSV files"))
            differs |= old != new
        else:
            page.write_text(new)
    return differs


if __name__ == "__main__":
    sys.exit(main())
