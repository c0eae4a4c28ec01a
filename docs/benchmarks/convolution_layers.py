"""Every convolution of ResNet-50, MobileNet-v3 and Stable Diffusion's UNet (test/e2e/convolution_layers.py) by greta.ops.conv2d, beside float64.

    build/venv/bin/python docs/benchmarks/convolution_layers.py CSV [--targets=sim:gfx942,sim:gfx1100,sim:gfx1201,vulkan] [--jobs=N] [--seconds=N] [--most=N]

A row of CSV is a layer on a target: `unequal` of its `elements` are not the correctly rounded float64 results; the worst row is off by `euclidean`, and by
`maximum` of its largest element, both in roundings of f16, of which limits.py allows 1.25. `problem` is what is over a limit, or the error's last line: then the
command ends with status 1. Layers that CSV has from before are not run again. --seconds starts none after that time, which ends with status 1, too; --most
leaves out layers of more multiply-adds. `vulkan` is this machine's driver. On a machine without the repository the Python package will do, with this file,
scripts/lib/{greta_runtime,records}.py and test/e2e/{case,convolution,convolution_layers,limits}.py at their places in a folder that has the commit's name
in a file, `commit`.
"""

import argparse
import concurrent.futures
import csv
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test" / "e2e"), str(ROOT / "scripts" / "lib")]
import convolution_layers as models  # noqa: E402
import limits  # noqa: E402
import records  # noqa: E402

FIELDS = ["date", "commit", "target", "layer", "models", "elements", "unequal", "euclidean", "maximum", "seconds", "problem"]
TARGETS = "sim:gfx942,sim:gfx1100,sim:gfx1201,vulkan"
LIMIT_S = 300  # of a layer


def title(layer):
    return f"{layer.extent}x{layer.extent}x{layer.channels} by {layer.outputs}x{layer.taps}x{layer.taps}, stride {layer.stride}, groups {layer.groups}"


def compute(number, target):
    """Prints the verdict on a layer, whose data its name decides."""
    import greta

    case = list(models.layers())[number].case()
    greta.set_device(target)
    x, w, bias = case.inputs()
    begin = time.monotonic()
    result = greta.to_numpy(greta.ops.conv2d(x, w, bias, stride=case.strides, padding=case.padding, dilation=case.dilations, groups=case.groups))
    seconds = time.monotonic() - begin
    print(json.dumps(limits.judge(case, list(case.references([x, w, bias])), [result]) | dict(seconds=round(seconds, 1))))


def row_of(number, layer, target, names):
    environment = os.environ | dict(OPENBLAS_NUM_THREADS="1")
    row = dict(target=target, layer=title(layer), models=", ".join(names))
    try:
        command = [sys.executable, __file__, "--one", str(number), target]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return row | dict(problem=f"took more than {LIMIT_S} s")
    if ran.returncode:
        return row | dict(problem=(ran.stderr.strip().splitlines() or [f"status {ran.returncode}"])[-1])
    verdict = json.loads(ran.stdout)
    for norm in ("euclidean", "maximum"):
        if norm in verdict:
            verdict[norm] = round(verdict[norm] / limits.UNIT["f16"], 3)
    return row | {name: verdict[name] for name in FIELDS if name in verdict}


def origin():
    packed = ROOT / "commit"
    return dict(date=datetime.date.today().isoformat(), commit=packed.read_text().strip()) if packed.exists() else records.origin()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=pathlib.Path)
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--most", type=int, default=models.MOST)
    options = parser.parse_args()
    deadline, run_by = time.monotonic() + options.seconds, origin()
    known = {}
    if options.csv.exists():
        with options.csv.open(newline="") as file:
            known = {(row["target"], row["layer"]): row for row in csv.DictReader(file)}
    wanted = [
        (number, layer, target, names)
        for target in options.targets.split(",")
        for number, (layer, names) in enumerate(models.layers().items())
        if layer.products() <= options.most
    ]
    place = {(target, title(layer)): i for i, (_, layer, target, _) in enumerate(wanted)}
    left = [one for one in wanted if (one[2], title(one[1])) not in known]

    def run(one):
        return run_by | row_of(*one) if time.monotonic() < deadline else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, one) for one in left]):
            if row := future.result():
                known[row["target"], row["layer"]] = row
                records.write(options.csv, FIELDS, sorted(known.values(), key=lambda one: place.get((one["target"], one["layer"]), -1)))
                print(json.dumps(row), flush=True)
    missing = len(place.keys() - known.keys())
    wrong = sum(bool(row.get("problem")) for row in known.values())
    print(f"{len(known)} layers, {wrong} wrong, {missing} not run")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        compute(int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
