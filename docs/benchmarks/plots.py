"""Pictures of the CSV files beside it: what the H200's kernels reach of its limits, and how that changed from commit to commit.

usage: plots.py [DIR]     writes DIR/*.svg (build/plots); needs matplotlib
roofline.svg: operations a second over operations a byte of memory, of GEMMs, attention and memory-bound kernels, newest measurement each, under the copy
bandwidth and the f16 rate of the data sheet. history_*.svg: of each function the best variant of every commit that was measured, in the order of the commits' first rows.
"""

import csv
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent
COPY_GBS, F16_TFLOPS = 4263.5, 989.4  # h200.csv's copy; NVIDIA H200 data sheet, dense


def rows(name):
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def gemms():
    """(name, operations, bytes, microseconds) of each f16 or bf16 GEMM's newest commit, its fastest variant."""
    best = {}
    for r in rows("h200_gemms.csv"):
        if r["dtype"] not in ("f16", "bf16") or not r["median_us"]:
            continue
        m, n, k, us = int(r["m"]), int(r["n"]), int(r["k"]), float(r["median_us"])
        old = best.get(r["function"])
        if not old or old[0] != r["commit"] or us < old[1][3]:
            best[r["function"]] = r["commit"], (r["function"], 2 * m * n * k, 2 * (m * k + n * k + m * n), us)
    return [point for _, point in best.values()]


def attention():
    newest = {(r["function"], r["queries"], r["keys"], r["batch"]): r for r in rows("h200_attention.csv") if r["tflop_per_s"] and r["median_us"]}
    points = []
    for r in newest.values():
        batch, heads, key_heads, queries, keys, depth = (int(r[c]) for c in ("batch", "heads", "key_heads", "queries", "keys", "depth"))
        us = float(r["median_us"])
        points.append((r["function"], float(r["tflop_per_s"]) * us * 1e6, 2 * batch * depth * (2 * heads * queries + 2 * key_heads * keys), us))
    return points


def memory_bound():
    """One operation an element of two bytes: what counts is how near they are to the slope."""
    newest = {(r["function"], r["shape"]): r for r in rows("h200.csv") if r["gb_per_s"]}
    return [(r["function"], int(r["bytes"]) / 2, int(r["bytes"]), float(r["median_us"])) for r in newest.values()]


def roofline(path):
    figure, axes = plt.subplots(figsize=(9, 5.5))
    intensities = [0.1, F16_TFLOPS * 1e3 / COPY_GBS, 2e4]
    axes.plot(intensities, [min(COPY_GBS * i / 1e3, F16_TFLOPS) for i in intensities], color="black", linewidth=1, label=f"{COPY_GBS / 1e3:.2f} TB/s copy, {F16_TFLOPS:.0f} TFLOP/s")
    for label, marker, points in (("GEMM", "o", gemms()), ("attention", "^", attention()), ("memory-bound", "s", memory_bound())):
        axes.scatter([f / b for _, f, b, _ in points], [f / us / 1e6 for _, f, _, us in points], marker=marker, s=18, alpha=0.7, label=label)
    axes.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="TFLOP/s", title="H200 through Vulkan, newest measurements")
    axes.grid(True, which="both", linewidth=0.3)
    axes.legend()
    save(figure, path)


def history(path, name, key, value, title, smallest=False):
    """Lines over commits of the functions that were measured at three or more."""
    order, series = [], {}
    for r in rows(name):
        if not r.get(value):
            continue
        if r["commit"] not in order:
            order.append(r["commit"])
        line, v = series.setdefault(key(r), {}), float(r[value])
        line[r["commit"]] = min(line.get(r["commit"], v), v) if smallest else max(line.get(r["commit"], v), v)
    figure, axes = plt.subplots(figsize=(9, 5.5))
    for label, line in series.items():
        if len(line) >= 3:
            axes.plot([order.index(c) for c in line], list(line.values()), marker=".", linewidth=1, label=label)
    axes.set_xticks(range(len(order)), order, rotation=90, fontsize=6)
    axes.set(ylabel=value, title=title)
    axes.grid(True, linewidth=0.3)
    if axes.get_lines():
        axes.legend(fontsize=6, ncol=2)
    save(figure, path)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(path)


def main():
    matplotlib.rcParams["svg.hashsalt"] = "greta"  # the same file from the same rows
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else FOLDER.parents[1] / "build" / "plots")
    folder.mkdir(parents=True, exist_ok=True)
    roofline(folder / "roofline.svg")
    history(folder / "history_memory_bound.svg", "h200.csv", lambda r: r["function"], "of_copy", "memory-bound kernels on the H200, of the copy")
    history(folder / "history_gemms.svg", "h200_gemms.csv", lambda r: r["function"], "tflop_per_s", "GEMMs on the H200")
    history(folder / "history_compile_time.svg", "compile_time.csv", lambda r: f"{r['function']} {r['target']}", "median_ms", "compile time", smallest=True)


if __name__ == "__main__":
    main()
