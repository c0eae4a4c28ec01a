"""The host's time for a launch, in microseconds: outside of a graph, recorded into one, replayed; called by scripts/bench-h200 launches.

usage: launch_path.py DIR CSV [--device=vulkan] [--reps=200]
DIR is what scripts/bench-h200 prepare makes: greta-run, launch_path.greta, commit. greta-run --bench-host measures: the time of the calls of one thread, submits
included, without waiting for the device; median and minimum of `reps` rounds of 256 launches of one kernel with three tensors.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib"))
import records  # noqa: E402

COLUMNS = ["date", "commit", "device", "launches", "launch_us", "launch_min_us", "record_us", "record_min_us", "replay_us", "replay_min_us", "auto_graph_us", "auto_graph_min_us"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("csv", type=pathlib.Path)
    parser.add_argument("--device", default="vulkan")
    parser.add_argument("--reps", type=int, default=200)
    options = parser.parse_args()
    command = [options.directory / "greta-run", options.directory / "launch_path.greta", f"--device={options.device}", f"--reps={options.reps}"]
    command += ["--input=1x64xf32:random:1", "--input=64xf32:random:2", "--bench-host", "--json"]
    report = json.loads(subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout)
    row = dict(date=datetime.date.today().isoformat(), commit=(options.directory / "commit").read_text(), device=report["device"])
    row["launches"] = report["host"]["launches"]
    for what in ("launch", "record", "replay", "auto_graph"):
        row |= {f"{what}_us": round(report["host"][what]["median_us"], 4), f"{what}_min_us": round(report["host"][what]["min_us"], 4)}
    print(", ".join(f"{key} {value}" for key, value in row.items()))
    records.append(options.csv, COLUMNS, [row])


if __name__ == "__main__":
    main()
