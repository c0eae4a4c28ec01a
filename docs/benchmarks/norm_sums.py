"""A norm between two products of one row, by sums of squares that the first one writes, on AMD chips by the simulator's model: nothing here needs a GPU, and no time is a measurement.

    build/venv/bin/python docs/benchmarks/norm_sums.py [--csv=FILE] [--check] [CHIP...]

The products are those of a layer of Llama 3 8B: the output's and the down weights, each with the residual, and behind them gate and up, and queries, keys and values (6,144
columns, without rope). The kernels are the compiler's own behind greta-to-tile, into whose text this script writes what docs/experiments/norm-sums.md describes:
  product          as it is
  product sums     and the sum of squares of each workgroup's columns
  product tail     and the norm by its last workgroup, which the estimate does not run: add the norm's time
  norm             of a row, with as many lanes as the product has; norm sums: by the sums
  next             the product behind the norm, which reads f16; next sums: which norms while it reads
  next scaled      reads f16 of which each eight numbers have a factor of their own, and multiplies by that and the root, which it waits for
  product late     writes the row times the norm's weight in f16, and the sums; next late: reads that, and multiplies its result by the root
  cycles           of the compute units alone, as if memory had any bandwidth; us: of the launch
--check runs all forms in the simulator with small sizes and compares what the second product writes.
"""

import argparse
import json
import pathlib
import re
import tempfile
import zipfile

import numpy as np

from issue_model import ROOT, records, tool

FIELDS = ["date", "commit", "chip", "weights", "product", "kernel", "workgroups", "lanes", "cycles", "us", "of_plain", "bound", "vgprs"]
CHIPS = "gfx942", "gfx1100", "gfx1151", "gfx1201"
WIDTH, HIDDEN, QKV = 4096, 14336, 6144
BIN = ROOT / "build/bin"


def matrix(name, weights, rows, columns):
    """(arguments, lines that make %name of them, its type)"""
    whole = f"tensor<{rows}x{columns}xf16>"
    if weights == "f16":
        return f"%{name}: {whole}", "", whole
    words, scales = f"tensor<{rows}x{columns // 8}xi32>", f"tensor<{rows}x{columns // 32}xf16>"
    return f"%{name}w: {words}, %{name}s: {scales}", f'  %{name} = greta.dequant %{name}w, %{name}s {{format = "{weights}", group = 32}} : {words}, {scales} -> {whole}\n', whole


def product(name, weights, width, depth):
    arguments, lines, whole = matrix("w", weights, width, depth)
    a, y = f"tensor<1x{depth}xf16>", f"tensor<1x{width}xf32>"
    return f"""func.func @{name}(%a: {a}, {arguments}, %x: {y}) -> {y} {{
{lines}  %0 = greta.matmul %a, %w {{transpose_b}} : {a}, {whole} -> {y}
  %1 = arith.addf %x, %0 : {y}
  return %1 : {y}
}}
"""


NORM = """  %n = greta.rms_norm {0}, %g {{eps = 1.0e-5 : f32}} : tensor<1x{1}xf32>, tensor<{1}xf32> -> tensor<1x{1}xf32>
  %h = arith.truncf %n : tensor<1x{1}xf32> to tensor<1x{1}xf16>
"""


def with_norm(text, width):
    row, half = f"tensor<1x{width}xf32>", f"tensor<1x{width}xf16>"
    text = text.replace(f") -> {row} {{", f", %g: tensor<{width}xf32>) -> ({row}, {half}) {{")
    return text.replace(f"  return %1 : {row}", NORM.format("%1", width) + f"  return %1, %h : {row}, {half}")


def behind(name, weights, columns, width):
    """Gate and up, or one product."""
    a, y = f"tensor<1x{width}xf16>", f"tensor<1x{columns}xf16>"
    arguments, lines, whole = matrix("w", weights, columns, width)
    one = f"  %0 = greta.matmul %a, %w {{transpose_b}} : {a}, {whole} -> {y}\n"
    if name == "qkv":
        return f"func.func @qkv(%a: {a}, {arguments}) -> {y} {{\n{lines}{one}  return %0 : {y}\n}}\n"
    others, more, _ = matrix("v", weights, columns, width)
    two = f"  %1 = greta.matmul %a, %v {{transpose_b}} : {a}, {whole} -> {y}\n  %2 = greta.swiglu %0, %1 : {y}, {y} -> {y}\n"
    return f"func.func @{name}(%a: {a}, {arguments}, {others}) -> {y} {{\n{lines}{more}{one}{two}  return %2 : {y}\n}}\n"


def block_program(folder, chip, text):
    """The module behind greta-to-tile."""
    source = folder / "source.mlir"
    source.write_text(text)
    command = [BIN / "greta-opt", f"--greta-to-lanes=target={chip}", "--mlir-print-ir-after=greta-to-tile", "--mlir-print-ir-module-scope", "--mlir-disable-threading", source, "-o", "/dev/null"]
    printed = tool("sh", "-c", '"$0" "$@" 2>&1', *command)
    return printed.split("----- //\n", 1)[1]


def more(text, kernel, pointers, arguments, results=""):
    """`text` with more pointers of a kernel, more arguments (name, type) of its launch and function, and perhaps another result (type)."""
    names = [int(n) for n in re.findall(r"%arg(\d+)", re.search(rf"greta_tile.func @{kernel}_0\((.*?)\) attributes", text)[1])]
    first = names[-1]  # the result's, behind which the others come
    listed = ", ".join(f"%{name}: !greta_tile.ptr<{kind}>" for name, kind in pointers)
    out = ", ".join(f"%{name}: !greta_tile.ptr<f32>" for name in ["sums"] * bool(results))
    head = re.search(rf"greta_tile.func @{kernel}_0\((.*)(, %arg{first}: [^)]*)\) attributes", text)
    text = text.replace(head[0], f"greta_tile.func @{kernel}_0({head[1]}{', ' * bool(listed)}{listed}{head[2]}{', ' * bool(out)}{out}) attributes")
    launch = re.search(r"launch @.*?\((%arg[^)]*)\) shapes \[(#map\d+)\](.*?): \((.*)\) -> (tensor<.*>)", text)
    operands = launch[1] + "".join(f", %{name}" for name, _ in arguments)
    types = launch[4] + "".join(f", {kind}" for _, kind in arguments)
    whole = f"({launch[5]}, {results})" if results else launch[5]
    shapes = f"{launch[2]}, affine_map<() -> ({', '.join(re.findall(r'[0-9]+(?=x)', results))})>" if results else launch[2]
    text = text.replace(launch[0], launch[0].split("(%arg")[0] + f"({operands}) shapes [{shapes}]{launch[3]}: ({types}) -> {whole}")
    signature = re.search(rf"func.func @{kernel}\((.*)\) -> (\S+) attributes {{.*}} {{", text)
    text = text.replace(signature[0], f"func.func @{kernel}({signature[1]}{''.join(f', %{name}: {kind}' for name, kind in arguments)}) -> {whole} {{")
    return text.replace("%0 = greta_tile.launch", "%0:2 = greta_tile.launch").replace(f"return %0 : {launch[5]}", f"return %0#0, %0#1 : {launch[5]}, {results}") if results else text


def with_sums(text, kernel):
    """The product's text with a sum of squares for each workgroup, and how many they are."""
    store = re.search(r"( *greta_tile.store) (%\w+), %arg\d+\[.*: tensor<(1x(\d+)(?:x1)+)xf32> -> <f32>\n", text)
    ones = re.sub(r"^1x\d+", "1x1", store[3])
    less = ones[2:]
    count = int(re.search(r"affine_map<\(\) -> \((\d+)\)>", text)[1])
    places = ", ".join(["%c0_i32", "%0"] + ["%c0_i32"] * (ones.count("1") - 2))
    strides = ", ".join(["0", "1"] + ["0"] * (ones.count("1") - 2))
    lines = f"""    %square = arith.mulf {store[2]}, {store[2]} : tensor<{store[3]}xf32>
    %added = greta_tile.reduce {{arith.addf}} %square axis 1 : tensor<{store[3]}xf32> -> tensor<{less}xf32>
    %sum = greta_tile.reshape %added : tensor<{less}xf32> -> tensor<{ones}xf32>
    greta_tile.store %sum, %sums[{places}] strides [{strides}] bounds [] : tensor<{ones}xf32> -> <f32>
"""
    text = text.replace(store[0], store[0] + lines)
    return more(text, kernel, [], [], f"tensor<1x{count}xf32>"), count


def with_weighted(text, kernel):
    """The text of the product with sums that also writes the row times the norm's weight in f16."""
    store = re.search(r" *greta_tile.store (%\w+), (%arg\d+)(\[.*?\]) strides (\[.*?\]) bounds \[\] : tensor<(1x\d+(?:x1)+)xf32> -> <f32>\n", text)
    _, row, _, at, strides, shape = (store[0], *store.groups())
    lines = f"""    %weight = greta_tile.load %pg{at} strides {strides} bounds [] : <f32> -> tensor<{shape}xf32>
    %product = arith.mulf {row}, %weight : tensor<{shape}xf32>
    %half = arith.truncf %product : tensor<{shape}xf32> to tensor<{shape}xf16>
    greta_tile.store %half, %ph{at} strides {strides} bounds [] : tensor<{shape}xf16> -> <f16>
"""
    text = text.replace(store[0], store[0] + lines)
    # The launch's two results become three, and the weight its last argument.
    text = text.replace(f"%sums: !greta_tile.ptr<f32>) attributes", "%sums: !greta_tile.ptr<f32>, %ph: !greta_tile.ptr<f16>) attributes")
    text = re.sub(rf"(greta_tile.func @{kernel}_0\(.*?)(, {store[2]}: )", r"\1, %pg: !greta_tile.ptr<f32>\2", text)
    width = re.search(r"-> \(tensor<1x(\d+)xf32>, tensor", text)[1]
    launch = re.search(r"launch @.*?\((%arg[^)]*)\) shapes \[(#map\d+), (.*?)\] \{.*?\} : \((.*)\) -> \((.*)\)\n", text)
    grown = launch[0].replace(f"({launch[1]})", f"({launch[1]}, %g)").replace(f"[{launch[2]}, {launch[3]}]", f"[{launch[2]}, {launch[3]}, {launch[2]}]")
    grown = grown.replace(f"({launch[4]})", f"({launch[4]}, tensor<{width}xf32>)").replace(f"({launch[5]})", f"({launch[5]}, tensor<1x{width}xf16>)")
    text = text.replace(launch[0], grown).replace("%0:2 = ", "%0:3 = ").replace("return %0#0, %0#1 :", "return %0#0, %0#1, %0#2 :")
    text = text.replace(f"    return %0#0, %0#1, %0#2 : {launch[5]}", f"    return %0#0, %0#1, %0#2 : {launch[5]}, tensor<1x{width}xf16>")
    signature = re.search(rf"func.func @{kernel}\((.*)\) -> \((.*?)\) {{", text)
    return text.replace(signature[0], f"func.func @{kernel}({signature[1]}, %g: tensor<{width}xf32>) -> ({signature[2]}, tensor<1x{width}xf16>) {{")


def root(count, width, rank=2):
    """Lines that make %root, the reciprocal of the root of the row's mean square, of `count` sums."""
    ones = "x".join(["1"] * rank)
    return f"""    %zero = arith.constant 0 : i32
    %parts = greta_tile.load %psums[%zero, %zero] strides [0, 1] bounds [] : <f32> -> tensor<1x{count}xf32>
    %all = greta_tile.reduce {{arith.addf}} %parts axis 1 : tensor<1x{count}xf32> -> tensor<1xf32>
    %one = greta_tile.reshape %all : tensor<1xf32> -> tensor<{ones}xf32>
    %by = arith.constant dense<{1 / width:e}> : tensor<{ones}xf32>
    %mean = arith.mulf %one, %by : tensor<{ones}xf32>
    %eps = arith.constant dense<1.0e-5> : tensor<{ones}xf32>
    %more = arith.addf %mean, %eps : tensor<{ones}xf32>
    %root = math.rsqrt %more : tensor<{ones}xf32>
"""


def by_sums(text, kernel, width, count):
    """The text of the product behind the norm, which norms the row in its loads of it."""
    loads = re.findall(r"(    (%\w+) = greta_tile.load (%arg\d+)(\[.*?\]) strides (\[.*?\]) bounds \[\] : <f16> -> tensor<(1x1x\d+x.*)xf16>\n)", text)
    row = loads[0][2]
    for i, (line, name, pointer, at, strides, shape) in enumerate(loads):
        assert pointer == row
        kind = f"tensor<{shape}xf32>"
        text = text.replace(line, f"""    %x{i} = greta_tile.load %px{at} strides {strides} bounds [] : <f32> -> {kind}
    %g{i} = greta_tile.load %pg{at} strides {strides} bounds [] : <f32> -> {kind}
    %r{i} = greta_tile.broadcast %root : tensor<{'x'.join('1' * (shape.count('x') + 1))}xf32> -> {kind}
    %m{i} = arith.mulf %x{i}, %r{i} fastmath<contract> : {kind}
    %s{i} = arith.mulf %m{i}, %g{i} fastmath<contract> : {kind}
    {name} = arith.truncf %s{i} : {kind} to tensor<{shape}xf16>
""")
    text = text.replace("    %0 = greta_tile.program_id 0\n", "    %0 = greta_tile.program_id 0\n" + root(count, width, loads[0][5].count("x") + 1), 1)
    pointers = ("px", "f32"), ("pg", "f32"), ("psums", "f32")
    return more(text, kernel, pointers, (("x", f"tensor<1x{width}xf32>"), ("g", f"tensor<{width}xf32>"), ("sums", f"tensor<1x{count}xf32>")))


def by_scales(text, kernel, width, count):
    """The text of the product behind the norm, which multiplies each eight numbers that it loads by a factor and the root."""
    loads = re.findall(r"(    (%\w+) = greta_tile.load (%arg\d+)(\[.*?\]) strides \[(.*?)\] bounds \[\] : <f16> -> tensor<(1x1x\d+x.*?8)xf16>\n)", text)
    for i, (line, name, _, at, strides, shape) in enumerate(loads):
        eighths = ", ".join(str(int(stride) // 8) for stride in strides.split(", "))
        few, whole = f"{shape[:-1]}1", f"tensor<{shape}xf16>"
        text = text.replace(line, f"""{line.replace(f"{name} =", f"%h{i} =")}    %f{i} = greta_tile.load %pf{at} strides [{eighths}] bounds [] : <f32> -> tensor<{few}xf32>
    %r{i} = greta_tile.broadcast %root : tensor<{'x'.join('1' * (shape.count('x') + 1))}xf32> -> tensor<{few}xf32>
    %m{i} = arith.mulf %f{i}, %r{i} : tensor<{few}xf32>
    %t{i} = arith.truncf %m{i} : tensor<{few}xf32> to tensor<{few}xf16>
    %b{i} = greta_tile.broadcast %t{i} : tensor<{few}xf16> -> {whole}
    {name} = arith.mulf %h{i}, %b{i} : {whole}
""")
    text = text.replace("    %0 = greta_tile.program_id 0\n", "    %0 = greta_tile.program_id 0\n" + root(count, width, loads[0][5].count("x") + 1), 1)
    return more(text, kernel, (("pf", "f32"), ("psums", "f32")), (("factors", f"tensor<1x{width // 8}xf32>"), ("sums", f"tensor<1x{count}xf32>")))


def late_root(text, kernel, width, count):
    """The text of the product behind the norm, which multiplies its sums by the root."""
    sums = re.findall(r"(    (%\w+) = greta_tile.reshape %\w+ : tensor<\S+xf32> -> tensor<(1x\d+(?:x1)+)xf32>\n)", text)
    for i, (line, name, shape) in enumerate(sums):
        kind = f"tensor<{shape}xf32>"
        text = text.replace(line, line.replace(f"{name} =", f"%sum{i} =") + f"    %r{i} = greta_tile.broadcast %root : tensor<{'x'.join('1' * (shape.count('x') + 1))}xf32> -> {kind}\n    {name} = arith.mulf %sum{i}, %r{i} : {kind}\n")
    text = text.replace("    %0 = greta_tile.program_id 0\n", "    %0 = greta_tile.program_id 0\n" + root(count, width, sums[0][2].count("x") + 1), 1)
    return more(text, kernel, [("psums", "f32")], [("sums", f"tensor<1x{count}xf32>")])


def norm_by_sums(width, count, waves, size):
    row, half = f"tensor<1x{width}xf32>", f"tensor<1x{width}xf16>"
    return f"""greta_tile.func @norm_0(%px: !greta_tile.ptr<f32>, %pg: !greta_tile.ptr<f32>, %psums: !greta_tile.ptr<f32>, %py: !greta_tile.ptr<f16>) attributes {{wave_size = {size} : i32, waves = {waves} : i32}} {{
{root(count, width)}    %x = greta_tile.load %px[%zero, %zero] strides [{width}, 1] bounds [] : <f32> -> {row}
    %roots = greta_tile.broadcast %root : tensor<1x1xf32> -> {row}
    %m = arith.mulf %x, %roots fastmath<contract> : {row}
    %g = greta_tile.load %pg[%zero, %zero] strides [0, 1] bounds [] : <f32> -> {row}
    %s = arith.mulf %m, %g fastmath<contract> : {row}
    %y = arith.truncf %s : {row} to {half}
    greta_tile.store %y, %py[%zero, %zero] strides [{width}, 1] bounds [] : {half} -> <f16>
    greta_tile.return
}}
func.func @norm(%x: {row}, %g: tensor<{width}xf32>, %sums: tensor<1x{count}xf32>) -> {half} {{
  %0 = greta_tile.launch @norm_0 grid affine_map<() -> (1)> scalars affine_map<() -> ()> (%x, %g, %sums) shapes [affine_map<() -> (1, {width})>] : ({row}, tensor<{width}xf32>, tensor<1x{count}xf32>) -> {half}
  return %0 : {half}
}}
"""


def plain_norm(width):
    return f"func.func @norm(%x: tensor<1x{width}xf32>, %g: tensor<{width}xf32>) -> tensor<1x{width}xf16> {{\n{NORM.format('%x', width)}  return %h : tensor<1x{width}xf16>\n}}\n"


def package(folder, chip, text):
    source, path = folder / "f.mlir", folder / "f.greta"
    source.write_text(text)
    tool(BIN / "greta-translate", "--greta-to-package", f"--targets={chip}", source, "-o", path)
    return path


def estimate(folder, chip, text):
    """The kernel of the manifest and greta-sim's estimate of it."""
    code = folder / "f.hsaco"
    with zipfile.ZipFile(package(folder, chip, text)) as archive:
        (variant,) = json.loads(archive.read("manifest.json"))["functions"][0]["variants"]
        (kernel,) = variant["kernels"]
        code.write_bytes(archive.read(kernel["file"]))
    dims = [f"--{each}={','.join(map(str, kernel[each]))}" for each in ("grid", "block")]
    arguments = [f"--arg=zero:{1 << 28}"] * len(kernel["args"])
    return kernel, json.loads(tool(BIN / "greta-sim", code, "--check=none", "--estimate", "--json", f"--kernel={kernel['entry']}", *dims, *arguments))


def forms(folder, chip, weights, name, width, depth, follower, columns):
    """(what it is, text) of every kernel between the first product and the second."""
    first, second = product(name, weights, width, depth), behind(follower, weights, columns, width)
    lanes = block_program(folder, chip, first)
    summed, count = with_sums(lanes, name)
    waves, size = (re.search(rf"{key} = (\d+) : i32", lanes)[1] for key in ("waves", "wave_size"))
    norm = re.sub(r"waves = \d+ : i32", f"waves = {waves} : i32", block_program(folder, chip, plain_norm(width)))
    yield "product", lanes
    yield "product sums", summed
    yield "product tail", with_norm(first, width)
    yield "norm", norm
    yield "norm sums", norm_by_sums(width, count, waves, size)
    plain = block_program(folder, chip, second)
    yield "next", plain
    yield "next sums", by_sums(plain, follower, width, count)
    yield "product late", with_weighted(summed, name)
    yield "next late", late_root(plain, follower, width, count)
    yield "next scaled", by_scales(plain, follower, width, count)


def check(folder, chip, weights):
    """What all forms write with small sizes, of the same random numbers."""
    width, depth, columns = 512, 768, 1024
    texts = dict(forms(folder, chip, weights, "product", width, depth, "gate_up", columns))
    rng = np.random.default_rng(0)

    def numbers(rows, k):
        if weights == "f16":
            return [(rng.standard_normal((rows, k)) / k**0.5).astype(np.float16)]
        return [rng.integers(-(2**31), 2**31, (rows, k // 8)).astype(np.int32), (rng.random((rows, k // 32)) / k**0.5).astype(np.float16)]

    def run(text, *inputs, results):
        path, files = package(folder, chip, text), []
        for i, value in enumerate(inputs):
            np.save(folder / f"{i}.npy", value)
            files.append(f"--input={folder / f'{i}.npy'}")
        outputs = [folder / f"out{i}.npy" for i in range(results)]
        tool(BIN / "greta-run", path, f"--device=sim:{chip}", *files, *(f"--output={path}" for path in outputs))
        return [np.load(path) for path in outputs]

    a, w, x, g = rng.standard_normal((1, depth)).astype(np.float16), numbers(width, depth), rng.standard_normal((1, width)).astype(np.float32), rng.random(width).astype(np.float32)
    both = numbers(columns, width) + numbers(columns, width)
    row, normed = run(texts["product tail"], a, *w, x, g, results=2)
    (want,) = run(texts["next"], normed, *both, results=1)
    same, sums = run(texts["product sums"], a, *w, x, results=2)
    (of_sums,) = run(texts["norm sums"], row, g, sums, results=1)
    # The argument that the second product does not read any more stays.
    (got,) = run(texts["next sums"], normed * 0, *both, row, g, sums, results=1)
    late_row, late_sums, weighted = run(texts["product late"], a, *w, x, g, results=3)
    assert np.array_equal(row, late_row) and np.array_equal(sums, late_sums)
    largest = np.abs(row * g).reshape(-1, 8).max(1)
    factors = 2.0 ** np.ceil(np.log2(largest)).astype(np.float32)[None]
    (scaled,) = run(texts["next scaled"], (row * g / np.repeat(factors, 8, axis=1)).astype(np.float16), *both, factors, sums, results=1)
    (late,) = run(texts["next late"], weighted, *both, sums, results=1)
    assert np.array_equal(row, same) and np.allclose(sums.sum(), (row.astype(np.float64) ** 2).sum(), rtol=1e-6)
    for name, ours, theirs in (("norm sums", of_sums, normed), ("next sums", got, want), ("next late", late, want), ("next scaled", scaled, want)):
        off = np.abs(ours.astype(np.float64) - theirs).max() / np.abs(theirs).max()
        print(f"{chip} {weights} {name}: off by {off:.1e} of the largest", flush=True)
        assert off < 2e-3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("chips", nargs="*", default=list(CHIPS))
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.csv:
        records.build("greta-translate", "greta-sim", "greta-opt")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for chip in options.chips:
            for weights in ("q4_0", "f16"):
                if options.check:
                    check(folder, chip, weights)
                    continue
                for name, depth, follower, columns in (("out", WIDTH, "gate_up", HIDDEN), ("down", HIDDEN, "qkv", QKV)):
                    plain = {}
                    for what, text in forms(folder, chip, weights, name, WIDTH, depth, follower, columns):
                        kernel, e = estimate(folder, chip, text)
                        plain.setdefault(what.split()[0], e["microseconds"])
                        row = dict(chip=chip, weights=weights, product=follower if what.startswith("next") else name, kernel=what, workgroups=kernel["grid"][0], lanes=kernel["block"][0])
                        row |= dict(cycles=round(e["cycles"]), us=round(e["microseconds"], 2), of_plain=round(e["microseconds"] / plain[what.split()[0]], 3), bound=e["bound"], vgprs=kernel["stats"]["vgprs"])
                        rows.append(records.origin() | row)
                        print({key: value for key, value in row.items()}, flush=True)
    if options.csv:
        records.renew(options.csv, FIELDS, rows)


if __name__ == "__main__":
    main()
