"""llama.cpp's Vulkan kernels and GRETA's for the same work, on the same virtual Radeon, Mesa and model of its time; nothing here needs a GPU.

    build/venv/bin/python docs/benchmarks/radeon_peers.py [--csv] [--chips=phoenix,navi31,gfx1201,gfx1151] [--only=TEXT]

llama.cpp's operators are ggml's with its Vulkan back end, as Debian testing distributes them (`scripts/vulkan-drivers setup`); `ggml_operator.py` runs one. Each side
runs once, and the virtual Radeon records its dispatches (docs/guide/virtual-radeon.md). **Microseconds are the simulator's estimates**, the sum over all
dispatches of the operator, without what lies between two of them. A row is an operator on a chip:
  us            ours (greta_) and llama.cpp's (peer_); ratio: theirs over ours, above 1 where GRETA is ahead
  vgprs, scratch, bound, wait   of the longest dispatch; wait: the reason for which its waves wait most, and its share of the time
  mesa          Debian testing's; some rows also have Debian 12's backports', which has no cooperative matrices on RDNA 4
  type          the weights' as each holds them: GRETA expands Q6_K to f16 while it loads a model, as greta-llm does
MODELS are sums of rows, for comparison with what was measured elsewhere: tokens per second = tokens / sum of (count x us), with no time for the operators that
are left out (rotations, additions, SwiGLU, writing to the cache, sampling) or between dispatches. --csv writes both tables beside this file. That
llama.cpp computes right on these cards is test/radeon/test_llama_cpp.py's.
"""

import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lib"))
import records  # noqa: E402

ROOT = records.ROOT
FOLDER = pathlib.Path(__file__).resolve().parent
TARGETS = {"phoenix": "vulkan:rdna3", "navi31": "vulkan:rdna3", "gfx1151": "vulkan:rdna3", "gfx1201": "vulkan:rdna4"}
SIDE = ["type", "dispatches", "us", "vgprs", "scratch", "bound", "wait"]
FIELDS = ["date", "commit", "mesa", "ggml", "chip", "operator", "shape", *(f"greta_{name}" for name in SIDE), *(f"peer_{name}" for name in SIDE), "ratio"]
MODEL_FIELDS = ["date", "commit", "mesa", "ggml", "chip", "model", "test", "published", "peer_model", "greta_model"]
PACKED = {"q4_0", "q4_k"}  # what greta.dequant takes: scales for 32 weights each
MINIMA = {"q4_k"}  # and of these those with minima


def matmul(kind, m, n, k):
    return dict(op="matmul", type=kind, m=m, n=n, k=k)


def attention(queries, keys, key_heads=8):
    return dict(op="attention", heads=32, key_heads=key_heads, size=128, queries=queries, keys=keys)


def rows_of(op, rows):
    return dict(op=op, rows=rows, columns=4096)


SIZES = [(4096, 4096), (14336, 4096), (4096, 14336)]
CASES = [matmul("f16", 4096, 4096, 4096)]
CASES += [matmul(kind, 512, 4096, 4096) for kind in ("f16", "q4_0", "q4_k")]
CASES += [matmul(kind, 1, *size) for kind in ("f16", "q4_0", "q4_k") for size in SIZES]
CASES += [attention(512, 512), attention(1, 4096), rows_of("rms_norm", 512), rows_of("softmax", 512)]
# Chips and operators that also run on the older Mesa.
OLDER = [(chip, case) for chip in ("navi31", "gfx1201") for case in CASES if case.get("m") == 512 or case["op"] == "attention"]


def layers(m, keys, hidden, kv, mlp, vocabulary, mixed=False, kind="q4_0"):
    """The operators of 32 layers and the output with their counts; `mixed` is Q4_K_M: half of the values' and the MLP's last matrices, and the output, in Q6_K."""
    most = "q6_k" if mixed else kind
    last = [(most, 16), (kind, 16)]
    counts = [(matmul(kind, m, hidden, hidden), 64), (matmul(kind, m, kv, hidden), 32), (matmul(kind, m, mlp, hidden), 64)]
    counts += [(matmul(k, m, kv, hidden), n) for k, n in last] + [(matmul(k, m, hidden, mlp), n) for k, n in last]
    counts += [(attention(m, keys, kv // 128), 32), (rows_of("rms_norm", m), 64), (matmul(most, 1, vocabulary, hidden), 1)]
    return counts


# Generation of 128 tokens attends to 256 keys in llama.cpp, which pads.
LLAMA3 = dict(hidden=4096, kv=1024, mlp=14336, vocabulary=128256)
LLAMA2 = dict(hidden=4096, kv=4096, mlp=11008, vocabulary=32000)
MODELS = [  # chip, model, test, tokens, what was published for llama.cpp with Vulkan, operators
    ("gfx1201", "8B Q4_K_M", "prompt of 512", 512, "4802", layers(512, 512, **LLAMA3, mixed=True, kind="q4_k")),
    ("gfx1201", "8B Q4_K_M", "generation of 128", 1, "119.6", layers(1, 256, **LLAMA3, mixed=True, kind="q4_k")),
    ("navi31", "7B Q4_0", "generation of 128", 1, "167-177", layers(1, 256, **LLAMA2)),
    ("gfx1151", "8B Q4_0", "prompt of 512", 512, "875", layers(512, 512, **LLAMA3)),
]


def name_of(case):
    """(operator, shape)"""
    if case["op"] == "matmul":
        return f"{'GEMV' if case['m'] == 1 else 'GEMM'} {case['type']}", "{m}x{n}x{k}".format(**case)
    if case["op"] == "attention":
        return "attention", "{heads}/{key_heads} heads, {queries} queries, {keys} keys".format(**case)
    return case["op"], "{rows}x{columns}".format(**case)


def function(case):
    """GRETA's function for the work, the types of its arguments, and how it holds the weights."""
    kind = case.get("type", "f16")
    if case["op"] == "matmul":
        m, n, k = case["m"], case["n"], case["k"]
        a, b, d = f"{m}x{k}xf16", f"{n}x{k}xf16", f"{m}x{n}xf16"
        packed = [f"{n}x{k // 8}xi32", *[f"{n}x{k // 32}xf16"] * (1 + (kind in MINIMA))] if kind in PACKED else []
        arguments = [a, *(packed or [b])]
        words, types = ", ".join(f"%{i + 1}" for i in range(len(packed))), ", ".join(f"tensor<{t}>" for t in packed)
        unpacked = f"%w = greta.dequant {words} {{group = 32}} : {types} -> tensor<{b}>\n  " if packed else ""
        body, result = f"{unpacked}%r = greta.matmul %0, {'%w' if unpacked else '%1'} {{transpose_b}} : tensor<{a}>, tensor<{b}> -> tensor<{d}>", d
    elif case["op"] == "attention":
        q, k = (f"1x{heads}x{rows}x128xf16" for heads, rows in ((case["heads"], case["queries"]), (case["key_heads"], case["keys"])))
        arguments, result = [q, k, k], q
        body = f"%r = greta.attention %0, %1, %2 {{causal}} : tensor<{q}>, tensor<{k}>, tensor<{k}> -> tensor<{q}>"
    else:
        result = f"{case['rows']}x{case['columns']}xf32"
        arguments = [result, f"{case['columns']}xf32"] if case["op"] == "rms_norm" else [result]
        types = ", ".join(f"tensor<{t}>" for t in arguments)
        words = "%0, %1 {eps = 1.0e-5 : f32}" if case["op"] == "rms_norm" else "%0"
        body = f"%r = greta.{case['op']} {words} : {types} -> tensor<{result}>"
    parameters = ", ".join(f"%{i}: tensor<{t}>" for i, t in enumerate(arguments))
    text = f"func.func @f({parameters}) -> tensor<{result}> {{\n  {body}\n  return %r : tensor<{result}>\n}}\n"
    held = (kind if kind in PACKED else "f16") if case["op"] == "matmul" else ""
    return text, arguments, held


def run(command, **options):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def launcher(chip, mesa, *options):
    return ["nice", ROOT / "scripts/virtual-radeon", f"--mesa={mesa}", *options, chip]


def environment(folder, case):
    """Attention runs whole: llama.cpp's second kernel reads what its first one has found in the mask."""
    (folder / "record").unlink(missing_ok=True)
    extra = dict(GRETA_VIRTUAL_RADEON_RECORD=str(folder / "record"), GRETA_SIM_CHECKS="none", GRETA_PROFILE="fast")
    if case["op"] != "attention":
        extra["GRETA_VIRTUAL_RADEON_ESTIMATE_ONLY"] = "1"
    return os.environ | extra


def side(dispatches, held):
    longest = max(dispatches, key=lambda d: d["microseconds"])
    reason, share = max(longest["wait"].items(), key=lambda entry: entry[1])
    microseconds = sum(d["microseconds"] for d in dispatches)
    return dict(type=held, dispatches=len(dispatches), us=round(microseconds, 2), vgprs=longest["vgprs"], scratch=longest["scratch_bytes"], bound=longest["bound"],
                wait=f"{reason} {share:.2f}")  # fmt: skip


def ours(folder, chip, mesa, case):
    text, arguments, held = function(case)
    source, package = folder / "function.mlir", folder / "function.greta"
    source.write_text(text)
    run([ROOT / "build/bin/greta-translate", "--greta-to-package", f"--targets={TARGETS[chip]}", source, "-o", package])
    inputs = [f"--input={argument}:zeros" for argument in arguments]
    ran = json.loads(run([*launcher(chip, mesa), ROOT / "build/bin/greta-run", package, "--device=vulkan", *inputs, "--json"], env=environment(folder, case)))
    with zipfile.ZipFile(package) as archive:
        variants = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
    kernels = next(variant["kernels"] for variant in variants if variant["id"] == ran["variant"])
    # Ours have waves of 32, RADV's own copies and fills 64; before them come the runtime's checks of the device.
    dispatches = [d for d in recorded(folder) if d["wave_size"] == 32][-len(kernels) :]
    assert [d["block"][0] for d in dispatches] == [kernel["block"][0] for kernel in kernels], (kernels, dispatches)
    return side(dispatches, held)


def recorded(folder):
    return [json.loads(line) for line in (folder / "record").read_text().splitlines()]


def theirs(folder, chip, mesa, ggml, case):
    said = run([*launcher(chip, mesa, "--newer-libc"), sys.executable, FOLDER / "ggml_operator.py", json.dumps(case)], env=environment(folder, case), cwd=ggml)
    version, before = said.split()
    return version, side(recorded(folder)[int(before) :], case.get("type", ""))


@functools.cache
def mesa_version(chip, mesa):
    listed = json.loads(run([*launcher(chip, mesa), ROOT / "build/bin/greta-run", "--list-devices", "--json"]))
    driver = next(device["driver"] for device in listed if device["backend"] == "vulkan")
    return re.search(r"Mesa (\S+)", driver)[1]


class Bench:
    """Each case of each chip once, whoever asks for it."""

    def __init__(self, folder, ggml):
        self.folder, self.ggml, self.rows = folder, ggml, {}
        self.origin = records.origin()

    def row(self, chip, case, release="testing"):
        key = chip, json.dumps(case), release
        if key not in self.rows:
            mesa = mesa_version(chip, release)
            version, peer = theirs(self.folder, chip, release, self.ggml, case)
            greta = ours(self.folder, chip, release, case)
            operator, shape = name_of(case)
            both = {f"greta_{name}": value for name, value in greta.items()} | {f"peer_{name}": value for name, value in peer.items()}
            self.rows[key] = self.origin | dict(mesa=mesa, ggml=version, chip=chip, operator=operator, shape=shape) | both | dict(ratio=round(peer["us"] / greta["us"], 2))
            print(json.dumps(self.rows[key]), flush=True)
        return self.rows[key]

    def model(self, chip, model, test, tokens, published, operators):
        rows = [(self.row(chip, case), count) for case, count in operators]
        rate = {name: round(tokens * 1e6 / sum(row[f"{name}_us"] * count for row, count in rows), 1) for name in ("peer", "greta")}
        first = rows[0][0]
        row = self.origin | dict(mesa=first["mesa"], ggml=first["ggml"], chip=chip, model=model, test=test, published=published)
        row |= dict(peer_model=rate["peer"], greta_model=rate["greta"])
        print(json.dumps(row), flush=True)
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", action="store_true")
    parser.add_argument("--chips", default=",".join(TARGETS))
    parser.add_argument("--only", default="", help="rows whose operator has this text, and no models")
    options = parser.parse_args()
    chips = options.chips.split(",")
    records.build("greta-translate", "greta-run", "greta_virtual_radeon")
    ggml = pathlib.Path(run([ROOT / "scripts/vulkan-drivers", "ggml"]).strip())
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(pathlib.Path(name), ggml)
        cases = [case for case in CASES if options.only in name_of(case)[0]]
        table = [bench.row(chip, case) for chip in chips for case in cases if chip != "gfx1151"]
        table += [bench.row(chip, case, "backports") for chip, case in OLDER if chip in chips and options.only in name_of(case)[0]]
        models = [bench.model(*model) for model in MODELS if model[0] in chips and not options.only]
    if options.csv:
        records.renew(FOLDER / "radeon_peers.csv", FIELDS, table)
        records.renew(FOLDER / "radeon_peers_models.csv", MODEL_FIELDS, models)


if __name__ == "__main__":
    main()
