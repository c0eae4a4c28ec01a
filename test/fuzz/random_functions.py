"""Random functions of the greta dialect, compiled for several devices, run there and compared with `host` (greta-run --check). What host
and devices have in common, the front end, is compared with NumPy by test/e2e and by random_programs.py.

usage: random_functions.py [--seed N] [--count N] [--devices vulkan:0,sim:gfx942,...] [--jobs N] [--print | --plant DEFECT]

Half of the functions are made up (Maker), half are examples and functions of test/fuzz/compiler/corpus in which some words became others
everywhere (`mutated`). A function may be refused with a diagnostic; what compiles must run on every device and agree. Prints what
became of the functions and every one that is wrong; exit status 1 if any is. Function k of a run depends on the seed and k alone.
In some functions the rows of one argument lie so far apart that 32 bits of bytes do not reach all of them (far_functions.py). `--plant` counts how
many functions could show a defect that GRETA had (PLANTS), and how many do.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import far_functions  # noqa: E402
import greta_runtime  # noqa: E402
import random_runs  # noqa: E402

DEVICES = ("vulkan:0", "sim:gfx90a", "sim:gfx942", "sim:gfx1100", "sim:gfx1201")
SOURCES = sorted([*(ROOT / "examples").glob("*.mlir"), *(ROOT / "test/fuzz/compiler/corpus").glob("*.mlir")])
# Results that --check refuses may differ by this much of the whole result's largest number, by the narrowest type in the function: two roundings, as both
# sides round at each of up to five steps.
ROUNDING = {"f32": 4e-5, "f16": 2 * 2.0**-11, "bf16": 2 * 2.0**-8}
# And so few of the functions that ran may need it.
AS_A_WHOLE = 0.1
# Sizes that the simulator runs in a second or two.
MAX_ELEMENTS = 1 << 16
# Elements of A in some functions: one in 30 is beyond 8,734, where a product with a weight of 4 bits overflows f16 before the scale.
LARGE = 4096
# Sums of a value with itself, one behind the other.
DOUBLINGS = 25
# Formats of packed weights: bits in words and in words of their own, the smallest group, whether there are minima.
FORMATS = [("q5_0", 4, 1, 32, False), ("q5_k", 4, 1, 32, True), ("q6_k", 4, 2, 16, False), ("q8_0", 8, 0, 32, False), ("nf4", 4, 0, 64, False)]
COLUMNS = (1, 2, 3, 8, 16, 31, 32, 48, 64, 96, 100, 128, 256)
ROWS = ("?", "?", "?", 1, 2, 5, 16, 17, 33, 64)
FAR = 0.1  # of the functions that are made up
# Combinations of two values of a row: the types, the inits (the first counts), and what the region does with (%a, %k) and (%b, %l). Which of two values is taken
# is never said by a number that was rounded before.
COMBINATIONS = {
    "sum and maximum": (("f32", "1.0"), ("f32", "-2.0"), ("%p = math.absf %a : f32", "%q = math.absf %b : f32", "%v = arith.addf %p, %q : f32", "%w = arith.maximumf %k, %l : f32")),
    "least key": (
        ("f32", "0.5"),
        ("i32", "2147483647"),
        ("%less = arith.cmpi slt, %k, %l : i32", "%same = arith.cmpi eq, %k, %l : i32", "%most = arith.maximumf %a, %b : f32")
        + ("%one = arith.select %less, %a, %b : f32", "%v = arith.select %same, %most, %one : f32", "%w = arith.minsi %k, %l : i32"),
    ),
    "exponentials": (
        ("f32", "-1.0"),
        ("f32", "1.0"),
        ("%v = arith.maximumf %a, %b : f32", "%p = arith.subf %a, %v : f32", "%q = arith.subf %b, %v : f32", "%e = math.exp %p : f32", "%f = math.exp %q : f32")
        + ("%g = math.absf %k : f32", "%h = math.absf %l : f32", "%r = arith.mulf %g, %e : f32", "%s = arith.mulf %h, %f : f32", "%w = arith.addf %r, %s : f32"),
    ),
}
PLANTS = ("far rows",)  # rows of an argument are found with 32 bits


@dataclasses.dataclass(frozen=True)
class Value:
    name: str
    shape: tuple  # of numbers and "?"
    dtype: str

    @property
    def type(self):
        return f"tensor<{''.join(f'{d}x' for d in self.shape)}{self.dtype}>"


class Maker:
    """A function of some steps, each of which makes a value of the last one: a row op, elementwise work, a product, a view or a cast."""

    def __init__(self, rng):
        self.rng, self.arguments, self.lines, self.rows = rng, [], [], rng.choice(ROWS)
        columns, dtype = rng.choice(COLUMNS), rng.choice(("f16", "f16", "bf16", "f32"))
        self.far_operand = rng.choice("ab") if rng.random() < FAR else None
        if self.far_operand == "a":
            self.rows = rng.choice(far_functions.ROWS)
            self.values = [self.far_slice(self.rows, columns, dtype)]
        else:
            self.values = [self.argument((self.rows, columns), dtype)]
        if self.far_operand and (self.far_operand == "b" or rng.random() < 0.7):
            self.product(self.values[-1])
        for _ in range(rng.randint(1, 5) if not self.far_operand else rng.randint(0, 2)):
            steps = [self.unary, self.binary, self.binary, self.norm, self.softmax, self.swiglu, self.rope, self.reduced, self.product, self.product, self.quantized, self.columns, self.cast]
            if self.far_operand:
                steps.remove(self.quantized)
            rng.choice(steps)(self.values[-1])
        results = self.values[-1:]
        if len(self.values) > 2 and rng.random() < 0.3:
            results = [self.values[-2], *results]
        names, types = ", ".join(v.name for v in results), ", ".join(v.type for v in results)
        head = f"func.func @f({', '.join(f'{a.name}: {a.type}' for a in self.arguments)}) -> ({types}) {{"
        self.text = "\n".join([head, *(f"  {line}" for line in self.lines), f"  return {names} : {types}", "}", ""])

    def argument(self, shape, dtype, kind="x"):
        self.arguments.append(Value(f"%{kind}{len(self.arguments)}", tuple(shape), dtype))
        return self.arguments[-1]

    def line(self, text, shape, dtype):
        """A value %N = `text`, in which `$T` is its type."""
        value = Value(f"%{len(self.lines)}", tuple(shape), dtype)
        self.lines.append(f"{value.name} = {text.replace('$T', value.type)}")
        return value

    def emit(self, text, shape, dtype):
        self.values.append(self.line(text, shape, dtype))
        return self.values[-1]

    def far_slice(self, rows, columns, dtype):
        """The first rows and some columns of an argument whose rows lie gigabytes apart; no function has two."""
        source = self.argument((rows, far_functions.distance(self.rng, rows, dtype)), dtype, "far")
        first = self.rng.choice((0, 0, 8, 3))
        return self.line(f"tensor.extract_slice {source.name}[0, {first}] [{rows}, {columns}] [1, 1] : {source.type} to $T", (rows, columns), dtype)

    def like(self, value):
        """Another value of the type of `value`: one that is there, or an argument."""
        same = [v for v in self.values if (v.shape, v.dtype) == (value.shape, value.dtype) and v != value]
        return self.rng.choice(same) if same and self.rng.random() < 0.5 else self.argument(value.shape, value.dtype)

    def size(self, value, dim):
        """The extent of a dimension as an operand."""
        if value.shape[dim] != "?":
            return str(value.shape[dim])
        index = Value(f"%c{len(self.lines)}", (), "index")
        self.lines.append(f"{index.name} = arith.constant {dim} : index")
        self.lines.append(f"%d{len(self.lines)} = tensor.dim {value.name}, {index.name} : {value.type}")
        return f"%d{len(self.lines) - 1}"

    def unary(self, value):
        self.emit(f"{self.rng.choice(('arith.negf', 'math.tanh', 'math.absf'))} {value.name} : $T", value.shape, value.dtype)

    def binary(self, value):
        # No difference of values that are alike: what is left of them is their rounding.
        op = self.rng.choice(("addf", "mulf", "maximumf", "minimumf"))
        self.emit(f"arith.{op} {value.name}, {self.like(value).name} : $T", value.shape, value.dtype)

    def norm(self, value):
        weights = [self.argument(value.shape[-1:], value.dtype) for _ in range(self.rng.randint(1, 2))]
        types = ", ".join(v.type for v in (value, *weights))
        op = "rms_norm" if len(weights) == 1 else "layer_norm"
        self.emit(f"greta.{op} {', '.join(v.name for v in (value, *weights))} {{eps = 1.0e-5 : f32}} : {types} -> $T", value.shape, value.dtype)

    def softmax(self, value):
        # An argument's range: an exponential makes a large number's rounding a relative error.
        source = value if value in self.arguments else self.argument(value.shape, value.dtype)
        softmax = self.emit(f"greta.softmax {source.name} : {source.type} -> $T", value.shape, value.dtype)
        if source != value:
            self.emit(f"arith.mulf {softmax.name}, {value.name} : $T", value.shape, value.dtype)

    def reduced(self, value):
        """Two numbers of each row of two tensors, which go back to the row."""
        if value.dtype != "f32":
            value = self.emit(f"arith.extf {value.name} : {value.type} to $T", value.shape, "f32")
        kind = self.rng.choice(sorted(COMBINATIONS))
        first, second, body = COMBINATIONS[kind]
        # An argument's range, as softmax has it.
        source = self.argument(value.shape, "f32") if kind == "exponentials" else value
        other = self.argument(value.shape, second[0])
        size = f"({self.size(value, 0)})" if value.shape[0] == "?" else "()"
        row = value.shape[:1]
        inits = []
        for dtype, number in (first, second):
            number = self.line(f"arith.constant {number} : {dtype}", (), dtype)
            empty = self.line(f"tensor.empty{size} : $T", row, dtype)
            inits.append(self.line(f"linalg.fill ins({number.name} : {dtype}) outs({empty.name} : $T) -> $T", row, dtype))
        types = f"{first[0]}, {second[0]}"
        made = self.line(
            f"linalg.reduce ins({source.name}, {other.name} : {source.type}, {other.type}) outs({inits[0].name}, {inits[1].name} : {inits[0].type}, {inits[1].type}) dimensions = [1]"
            f" (%a: {first[0]}, %k: {second[0]}, %b: {first[0]}, %l: {second[0]}) {{ {' '.join(body)} linalg.yield %v, %w : {types} }}",
            row,
            "f32",
        )
        self.lines[-1] = self.lines[-1].replace(" =", ":2 =", 1)
        numbers = [Value(f"{made.name}#{i}", row, dtype) for i, (dtype, _) in enumerate((first, second))]
        if kind == "sum and maximum":
            numbers.append(self.line(f"arith.divf {numbers[1].name}, {numbers[0].name} : $T", row, "f32"))
        number = numbers[0 if kind == "least key" else -1]
        empty = self.line(f"tensor.empty{size} : $T", value.shape, "f32")
        repeated = self.line(f"linalg.broadcast ins({number.name} : {number.type}) outs({empty.name} : $T) dimensions = [1]", value.shape, "f32")
        self.emit(f"arith.mulf {value.name}, {repeated.name} : $T", value.shape, "f32")

    def swiglu(self, value):
        self.emit(f"greta.swiglu {value.name}, {self.like(value).name} : {value.type}, {value.type} -> $T", value.shape, value.dtype)

    def rope(self, value):
        heads = [h for h in (1, 2, 4) if value.shape[-1] % (2 * h) == 0]
        if len(value.shape) != 2 or not heads:
            return self.unary(value)
        count = self.rng.choice(heads)
        rows, width = self.size(value, 0), value.shape[-1] // count
        shape = (value.shape[0], count, width)
        split = self.line(f"tensor.expand_shape {value.name} [[0], [1, 2]] output_shape [{rows}, {count}, {width}] : {value.type} into $T", shape, value.dtype)
        tables = [self.argument((value.shape[0], width // 2), "f32") for _ in range(2)]
        style = self.rng.choice(("neox", "gptj"))
        turned = self.line(
            f'greta.rope {split.name}, {tables[0].name}, {tables[1].name} {{style = "{style}"}} : {split.type}, {tables[0].type}, {tables[1].type} -> $T', shape, value.dtype
        )
        self.emit(f"tensor.collapse_shape {turned.name} [[0], [1, 2]] : {turned.type} into $T", value.shape, value.dtype)

    def multiply(self, a, b, n, dtype, flags):
        flags = f" {{{', '.join(flags)}}}" if flags else ""
        return self.emit(f"greta.matmul {a.name}, {b.name}{flags} : {a.type}, {b.type} -> $T", (self.rows_of(a, flags), n), dtype)

    def rows_of(self, a, flags):
        return a.shape[1 if "transpose_a" in flags else 0]

    def product(self, value):
        is_far = self.far_operand == "b" and len(self.arguments) == 1
        k, n = value.shape[-1], self.rng.choice(far_functions.ROWS if is_far else COLUMNS)
        flags = [f for f in ("transpose_a", "transpose_b") if self.rng.random() < 0.5]
        if is_far:
            flags = ["transpose_b"]
        if "transpose_a" in flags:
            if value not in self.arguments:
                flags.remove("transpose_a")
            else:
                k = value.shape[0]  # the argument is [K, M]
        if k == "?" and "transpose_a" in flags and self.rng.random() < 0.5:
            flags.remove("transpose_a")
            k = value.shape[-1]
        shape = (n, k) if "transpose_b" in flags else (k, n)
        b = self.far_slice(*shape, value.dtype) if is_far else self.argument(shape, value.dtype, "w")
        made = self.multiply(value, b, n, self.rng.choice((value.dtype, "f32")), flags)
        if made.dtype == "f32" and len(self.arguments) % 2:
            self.chain(made)

    def chain(self, value):
        """Sums of a value with itself, each of which has twice as many paths to it, and back to its size: all but the last product are exact."""
        for _ in range(DOUBLINGS):
            value = self.emit(f"arith.addf {value.name}, {value.name} : $T", value.shape, value.dtype)
        self.emit(f"arith.mulf {value.name}, {self.argument(value.shape, value.dtype, 'tiny').name} : $T", value.shape, value.dtype)

    def quantized(self, value):
        """Weights of 4 or 8 bits, or both operands of 8."""
        k, n = value.shape[-1], self.rng.choice(COLUMNS)
        if value.dtype == "f16" and k in (64, 128, 256) and self.rng.random() < 0.3:
            name, bits, high, least, has_minima = self.rng.choice(FORMATS)
            group = self.rng.choice([g for g in (16, 32, 64, 128) if k % g == 0 and g >= least])
            parts = [self.argument((n, k * b // 32), "i32") for b in (bits, high) if b]
            parts += [self.argument((n, k // group), "f16", "w") for _ in range(1 + has_minima)]
            b = self.line(f'greta.dequant {", ".join(p.name for p in parts)} {{format = "{name}", group = {group}}} : {", ".join(p.type for p in parts)} -> $T', (n, k), "f16")
            self.multiply(value, b, n, "f16", ["transpose_b"])
        elif value.dtype == "f16" and k in (64, 96, 128, 256) and self.rng.random() < 0.5:
            group = self.rng.choice([g for g in (32, 64, 128) if k % g == 0])
            # Some products are of numbers that f16 sums of plain weights could not hold.
            is_large = len(self.arguments) % 2 == 1
            kind = "small" if is_large else "w"
            value = self.argument(value.shape, "f16", "large") if is_large else value
            parts = [self.argument((n, k // 8), "i32"), self.argument((n, k // group), "f16", kind)]
            zeros, minima = ((n, (k // group + 7) // 8), "i32"), ((n, k // group), "f16", kind)
            parts += [self.argument(*third) for third in self.rng.choice(([], [zeros], [minima]))]
            b = self.line(f"greta.dequant {', '.join(p.name for p in parts)} {{group = {group}}} : {', '.join(p.type for p in parts)} -> $T", (n, k), "f16")
            self.multiply(value, b, n, "f16", ["transpose_b"])
        elif self.rng.random() < 0.5:
            b = self.line(f"arith.sitofp {self.argument((n, k), 'i8').name} : tensor<{n}x{k}xi8> to $T", (n, k), value.dtype)
            self.multiply(value, b, n, value.dtype, ["transpose_b"])
        else:
            dtype, result = self.rng.choice((("i8", "i32"), ("f8E4M3FN", "f32"), ("f8E5M2", "f16"), ("f8E4M3FNUZ", "f32")))
            product = self.multiply(self.argument(value.shape, dtype), self.argument((n, k), dtype, "w"), n, result, ["transpose_b"])
            if result == "i32":
                self.emit(f"arith.sitofp {product.name} : {product.type} to $T", product.shape, "f32")

    def columns(self, value):
        width = self.rng.choice([c for c in COLUMNS if c <= value.shape[-1]])
        first = self.rng.randint(0, value.shape[-1] - width)
        rows = self.size(value, 0)
        self.emit(f"tensor.extract_slice {value.name}[0, {first}] [{rows}, {width}] [1, 1] : {value.type} to $T", (value.shape[0], width), value.dtype)

    def cast(self, value):
        dtype = self.rng.choice(("f16", "bf16")) if value.dtype == "f32" else "f32"
        op = "truncf" if value.dtype == "f32" else "extf"
        self.emit(f"arith.{op} {value.name} : {value.type} to $T", value.shape, dtype)


# Words that may stand for each other.
KINDS = (
    [str(c) for c in COLUMNS] + ["4", "7", "1000", "?"],
    ["f16", "bf16", "f32", "i8", "i32", "f8E4M3FN"],
    ["addf", "mulf", "maximumf", "minimumf", "divf"],
    ["tanh", "absf", "sqrt", "rsqrt", "exp"],
    ["softmax", "rms_norm", "swiglu"],
    ["transpose_a", "transpose_b"],
    ["neox", "gptj"],
)
WORD = re.compile(r"(?<![%@\w.])(?:\d+|\?)(?=x|\]|,| )|(?<=x)(?:\d+|\?|i8|i32|b?f\d+\w*)(?=[x>])|[a-z]\w+")


def mutated(rng, text):
    """`text` with one to three of its words become others of their kind, each everywhere, so that types still agree."""
    for _ in range(rng.randint(1, 3)):
        word = rng.choice(sorted(set(WORD.findall(text))))
        number = word.isdigit()
        others = [w for kind in KINDS if word in kind or (number and kind is KINDS[0]) for w in kind]
        if others:
            other = rng.choice(others)
            text = WORD.sub(lambda found: other if found[0] == word else found[0], text)
    return text


def made(seed, index):
    rng = random.Random(f"{seed}.{index}")
    if SOURCES and index % 2:
        return mutated(rng, re.sub(r"//.*\n", "\n", rng.choice(SOURCES).read_text()))
    return Maker(rng).text


def evaluate(extent, symbols):
    """An extent of the manifest: a number, a symbol's name or [op, a, b]."""
    if isinstance(extent, list):
        a, b = (evaluate(e, symbols) for e in extent[1:])
        return {"+": a + b, "*": a * b, "floordiv": a // max(b, 1), "ceildiv": -(-a // max(b, 1)), "mod": a % max(b, 1)}[extent[0]]
    return symbols[extent] if isinstance(extent, str) else extent


def inputs_of(function, rng):
    """--input flags for a function of the manifest; None where a tensor is larger than a simulator wants."""
    symbols = {s["name"]: rng.choice((1, 3, 17, 40)) for s in function["symbols"]}
    flags = []
    for i, argument in enumerate(function["args"]):
        shape = [evaluate(e, symbols) for e in argument["shape"]]
        count = 1
        for extent in shape:
            count *= extent
        if count > MAX_ELEMENTS:
            return None
        sigma = sigma_of(argument, shape)
        sigma = f":{sigma:.4g}" if sigma != 1 and argument["dtype"][0] != "i" else ""
        flags.append(f"--input={'x'.join(map(str, [*shape, argument['dtype']]))}:random:{i + 1}{sigma}")
    return flags


def sigma_of(argument, shape):
    # Weights of a product, so that it is about as large as its rows, or as those of the other products.
    weight = max(shape[-1] if shape else 1, 1) ** -0.5
    sigmas = {"w": weight, "large": LARGE, "small": weight / LARGE, "tiny": 2.0**-DOUBLINGS}
    return sigmas.get(argument["name"].rstrip("0123456789"), 1)


def run(command, timeout):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, errors="replace", timeout=timeout)


def agrees_as_a_whole(package, function, device, flags, text):
    """Whether the results are the host's up to ROUNDING. --check takes rows one by one and the result's type; a row of next to nothing, or an
    f32 result of f16 values, may carry the error of what it was made of."""
    outputs = {}
    for where in ("host", device):
        files = [package.with_suffix(f".{where.replace(':', '-')}.{i}.npy") for i in range(len(function["results"]))]
        if run([BIN / "greta-run", package, f"--function={function['name']}", f"--device={where}", *flags, *(f"--output={f}" for f in files)], 300).returncode:
            return False
        outputs[where] = [np.load(f).view(greta_runtime.DTYPES[r["dtype"]]).astype(np.float64) for f, r in zip(files, function["results"])]
    return all(is_near(got, want, limit_of(text)) for got, want in zip(outputs[device], outputs["host"], strict=True))


def is_near(got, want, limit):
    if not (np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))):
        return False
    finite = np.isfinite(want)
    return bool(np.array_equal(got[~finite], want[~finite], equal_nan=True) and np.all(np.abs(got[finite] - want[finite]) <= limit * np.max(np.abs(want[finite]), initial=0.0)))


@dataclasses.dataclass
class Outcome:
    index: int
    text: str
    what: str  # one of HARMLESS, or what is wrong
    detail: str = ""
    ran: tuple = ()  # devices


def compile_function(text, devices, package):
    """The manifest's function; or what became of the text instead, as an Outcome has it."""
    source = package.with_suffix(".mlir")
    source.write_text(text)
    targets = ["vulkan:portable,vulkan:lavapipe" if d.startswith("vulkan") else d.split(":")[1] for d in devices]
    try:
        compiled = run([BIN / "greta-translate", "--greta-to-package", f"--targets={','.join(['host', *targets])}", source, "-o", package], 120)
    except subprocess.TimeoutExpired:
        return "hangs the compiler", ""
    errors = [line for line in compiled.stderr.splitlines() if re.search(r"\berror:", line)]
    if compiled.returncode == 1 and errors and not package.exists():
        return "refused", errors[0]
    if compiled.returncode:
        return "crashes the compiler, or is refused badly", f"exit status {compiled.returncode}\n{compiled.stderr[-2000:]}"
    with zipfile.ZipFile(package) as archive:
        return json.loads(archive.read("manifest.json"))["functions"][0]


def arrays_of(seed, index, function):
    """A function's arguments, whose symbols are one number."""
    rng, rows = np.random.default_rng([seed, index]), random.Random(f"{seed}.{index}.inputs").choice((1, 3, 17, 40))
    arrays = []
    for argument in function["args"]:
        shape = [evaluate(e, {s["name"]: rows for s in function["symbols"]}) for e in argument["shape"]]
        arrays.append((rng.standard_normal(shape) * sigma_of(argument, shape)).astype(greta_runtime.DTYPES[argument["dtype"]]))
    return arrays


def results_of(device, package, function, arrays):
    """A function's results on a device, as f64; or what went wrong, as an Outcome has it."""
    folder = package.with_suffix(f".{device.replace(':', '-')}")
    try:
        ran = run([sys.executable, far_functions.__file__, device, package, function["name"], far_functions.stored(folder, arrays)], 300)
    except subprocess.TimeoutExpired:
        return f"hangs on {device}", ""
    return (f"is wrong on {device}", ran.stderr[-2000:]) if ran.returncode else far_functions.loaded(folder, function)


def limit_of(text):
    return max(tolerance for dtype, tolerance in ROUNDING.items() if re.search(rf"[x<]{dtype}>", text))


def try_far(seed, index, text, devices, folder):
    """Simulated devices, which take memory as it is touched, have the rows where the text says, all others and `host` beside one another: what is computed does not depend on it."""
    simulated = [d for d in devices if d.startswith("sim:")]
    near, far = folder / f"{index}.near.greta", folder / f"{index}.far.greta"
    functions = {}
    for package, one, at in ((near, far_functions.near(text), [d for d in devices if d not in simulated]), (far, text, simulated)):
        functions[package] = compile_function(one, at, package)
        if isinstance(functions[package], tuple):
            return Outcome(index, text, *functions[package])
    arrays = arrays_of(seed, index, functions[near])
    wants = None
    for device in ("host", *devices):
        package = far if device in simulated else near
        results = results_of(device, package, functions[package], arrays)
        if isinstance(results, tuple):
            return Outcome(index, text, *results)
        wants = wants or results
        if not all(is_near(got, want, limit_of(text)) for got, want in zip(results, wants, strict=True)):
            return Outcome(index, text, f"is wrong on {device}", "its rows lie far apart" if device in simulated else "")
    return Outcome(index, text, "agrees", ran=tuple(devices))


def shows_far(seed, index, folder):
    """Whether a function has far rows, and whether its results show it if they are found with 32 bits."""
    text = made(seed, index)
    if not far_functions.is_far(text):
        return False, False
    package = folder / f"{index}.greta"
    function = compile_function(far_functions.near(text), (), package)
    if isinstance(function, tuple):
        return True, False
    arrays = arrays_of(seed, index, function)
    rights, wrongs = (results_of("host", package, function, of) for of in (arrays, far_functions.wrapped(text, function, arrays)))
    return True, not all(is_near(wrong, right, limit_of(text)) for wrong, right in zip(wrongs, rights, strict=True))


def planted(seed, indices):
    with tempfile.TemporaryDirectory() as folder:
        return [(k, *shows_far(seed, k, pathlib.Path(folder))) for k in indices]


def try_function(seed, index, devices, folder):
    text = made(seed, index)
    if far_functions.is_far(text):
        return try_far(seed, index, text, devices, folder)
    compiled = compile_function(text, devices, folder / f"{index}.greta")
    if isinstance(compiled, tuple):
        return Outcome(index, text, *compiled)
    package, function = folder / f"{index}.greta", compiled
    flags = inputs_of(function, random.Random(f"{seed}.{index}.inputs"))
    if flags is None:
        return Outcome(index, text, "large")
    rounds = False
    for device in devices:
        try:
            checked = run([BIN / "greta-run", package, f"--function={function['name']}", f"--device={device}", "--check", *flags], 300)
        except subprocess.TimeoutExpired:
            return Outcome(index, text, f"hangs on {device}", " ".join(flags))
        if checked.returncode and not agrees_as_a_whole(package, function, device, flags, text):
            return Outcome(index, text, f"is wrong on {device}", f"{' '.join(flags)}\n{checked.stderr[-2000:]}")
        rounds |= checked.returncode != 0
    package.unlink()
    return Outcome(index, text, "agrees as a whole" if rounds else "agrees", ran=tuple(devices))


def run_all(seed, count, devices=DEVICES, jobs=1, first=0):
    """Outcomes in the order of their functions."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda index: try_function(seed, index, devices, pathlib.Path(folder)), range(first, first + count))


HARMLESS = ("refused", "large", "agrees", "agrees as a whole")


def too_many_as_a_whole(outcomes):
    """Complains if too many functions agree only as a whole; "" if they are few."""
    ran, whole = sum(bool(o.ran) for o in outcomes), sum(o.what == "agrees as a whole" for o in outcomes)
    return f"{whole} of {ran} functions agree as a whole only" if whole > max(2, AS_A_WHOLE * ran) else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first function")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--devices", default=",".join(DEVICES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="print the functions instead of trying them")
    parser.add_argument("--plant", choices=PLANTS, help="how many functions have a place for this defect and show it, alone")
    options = parser.parse_args()
    if options.plant:
        return random_runs.report_planted(options.plant, planted(options.seed, range(options.first, options.first + options.count)))
    if options.print:
        for index in range(options.first, options.first + options.count):
            print(made(options.seed, index))
        return 0
    outcomes, counts = [], collections.Counter()
    for outcome in run_all(options.seed, options.count, options.devices.split(","), options.jobs, options.first):
        counts[outcome.what] += 1
        outcomes.append(dataclasses.replace(outcome, text=""))
        if outcome.what not in HARMLESS:
            print(f"function {outcome.index} {outcome.what}\n{outcome.detail}\n{outcome.text}", flush=True)
    print(f"seed {options.seed}, {options.count} functions: " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    if said := too_many_as_a_whole(outcomes):
        print(said)
    return int(any(what not in HARMLESS for what in counts) or bool(said))


if __name__ == "__main__":
    sys.exit(main())
