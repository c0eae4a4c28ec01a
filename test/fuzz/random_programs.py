"""Random block programs, compiled for several targets, run there and compared with their evaluation in NumPy, element by element.

usage: random_programs.py [--seed N] [--first K] [--count N] [--targets vulkan:portable,gfx942,...] [--batch N] [--jobs N] [--seconds N] [--print | --constructs | --plant DEFECT]

Program k of a seed depends on both alone. It takes blocks of i32 through a dozen ops of the language: elementwise work, accesses by strides and through
pointers with masks, movement, reductions, scans, dots, atomics, loops, branches and while loops, other types on the way, and those of memory_steps.py. All of it is
exact: floats hold integers that they can hold. For a Vulkan target other than vulkan:portable programs are compiled and not run; vulkan:portable@lavapipe runs on testing's lavapipe (scripts/vulkan-drivers). `--batch` programs are functions of one package. A program may be refused with one of the compiler's named limits (random_runs.REFUSALS); what
compiles must agree. `--plant` compares NumPy's evaluation with another that has one of PLANTS. Prints what became of the programs and every one that is wrong; exit status 1 if any is.
"""

import json
import pathlib
import random
import re
import sys
import tempfile

import numpy as np

import random_runs
from memory_steps import MemorySteps
from number_steps import Numbers, far_stride
from program_builder import MAX_ELEMENTS, Builder, Value, mlir_type
from random_runs import REFUSALS, ROOT, compiled_for, device_of, run_process, under_driver

sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import greta_runtime  # noqa: E402

TARGETS = ("vulkan:portable", "gfx90a", "gfx942", "gfx1100", "gfx1201")
# Defects that GRETA had, as another evaluation: a loop whose counter ends near 2^31 is a turn short; a local is stored in each iteration, whatever its condition; some lanes
# load what others stored too late to be seen; a clamped load goes on beyond its bound; rows that lie far apart are found with 32 bits; f64 is rounded to f32 on its way;
# no power of -0 or of -inf by a fraction is a number.
PLANTS = ("late counter", "conditional store", "in place", "clamp", "far rows", "double rounding", "power")


class Program(MemorySteps, Numbers, Builder):
    """Some steps, each of which takes blocks that are there and leaves others; then some are stored."""

    def __init__(self, name, rng, plant=None):
        super().__init__(name, rng, plant)
        for _ in range(rng.randint(4, 14)):
            self.step()
        for value in [self.values[-1], *rng.sample(self.values, min(5, len(self.values)))]:
            self.store(value)

    def step(self):
        kinds = dict(arithmetic=5, shift=1, select=2, divide=1, narrow=2, wide=1, number=2, reshape_any=2, trans=2, broadcast=2, join=1, split=1, cat=1, gather=1, histogram=1)
        kinds |= dict(reduce=2, argmax=1, scan=2, recurrence=1, dot=2, load_scattered=2, store_scattered=1, atomic=1, fresh=1, loop=1, branch=1, turns=1)
        kinds |= dict(narrowed=1, double=1, power=1, clamped=1, reversed_load=1, far=0.3)
        kinds |= dict(in_place=3, main_loop=1.5, chain=0.7, doubled=0.5, kept=0.7)
        kind = self.rng.choices(list(kinds), list(kinds.values()))[0]
        self.used.append(kind)
        getattr(self, kind)()

    def fresh(self):
        self.keep(self.load(self.shape()))

    def arithmetic(self):
        name, compute = self.rng.choice(
            (("addi", np.add), ("subi", np.subtract), ("muli", np.multiply), ("andi", np.bitwise_and), ("ori", np.bitwise_or), ("xori", np.bitwise_xor))
            + (("maxsi", np.maximum), ("minsi", np.minimum), ("maxui", self.unsigned(np.maximum)), ("minui", self.unsigned(np.minimum)))
        )
        x = self.block() if self.rng.random() < 0.85 else self.rng.choice(self.scalars)
        y = self.like(x) if x.shape else self.rng.choice(self.scalars)
        self.keep(self.elementwise(f"arith.{name}", x, y, compute))

    @staticmethod
    def unsigned(compute):
        return lambda a, b: compute(a.astype(np.uint32), b.astype(np.uint32)).astype(np.int32)

    def shift(self):
        x = self.block()
        by = self.constant(self.rng.randint(0, 31), x.shape) if self.rng.random() < 0.6 else self.wrapped(self.like(x), 32)
        name, compute = self.rng.choice((("shli", np.left_shift), ("shrsi", np.right_shift), ("shrui", self.unsigned(np.right_shift))))
        self.keep(self.elementwise(f"arith.{name}", x, by, compute))

    def select(self):
        x = self.block()
        mask, y = self.condition(x), self.like(x)
        self.keep(self.op(f"arith.select {mask.name}, {x.name}, {y.name} : {mask.type}, {x.type}", (mask, x, y), x.shape, "i32", np.where))

    def divide(self):
        x = self.block()
        by = self.small(self.like(x), 1, 50) if self.rng.random() < 0.5 else self.constant(self.rng.choice((1, 3, 8, 100)), x.shape)
        name, compute = self.rng.choice((("divsi", lambda a, b: np.trunc(a / b)), ("remsi", np.fmod), ("divui", self.unsigned(np.floor_divide)), ("remui", self.unsigned(np.mod))))
        self.keep(self.elementwise(f"arith.{name}", x, by, compute))

    def narrow(self):
        x, dtype = self.block(), self.rng.choice(("i8", "i16", "i1"))
        if dtype == "i1":
            thin = self.condition(x)
        else:
            thin = self.cast("trunci", x, dtype)
            thin = self.elementwise("arith.addi", thin, self.cast("trunci", self.like(x), dtype), np.add)
        if dtype != "i1" and self.rng.random() < 0.5:
            return self.keep(self.cast("extsi", thin, "i32"))
        return self.keep(self.cast("extui", thin, "i32", lambda a: a if a.dtype == np.bool_ else a.view(f"u{a.dtype.itemsize}").astype(np.int32)))

    def wide(self):
        x = self.block()
        product = self.elementwise("arith.muli", self.cast("extsi", x, "i64"), self.cast("extsi", self.like(x), "i64"), np.multiply)
        high = self.elementwise("arith.shrsi", product, self.constant(self.rng.choice((16, 32)), x.shape, "i64"), np.right_shift)
        self.keep(self.cast("trunci", high, "i32"))

    def number(self):
        """Through floats that hold what they are given exactly."""
        x, dtype = self.block(), self.rng.choice(("f16", "f32"))
        high = 40 if dtype == "f16" else 2000
        a, b = (self.cast("sitofp", self.small(v, -high, high), dtype) for v in (x, self.like(x)))
        name, compute = self.rng.choice((("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("maximumf", np.maximum), ("minimumf", np.minimum)))
        self.keep(self.cast("fptosi", self.elementwise(f"arith.{name}", a, b, compute), "i32"))

    def reshape_any(self):
        x = self.block()
        rest, shape = x.size, []
        while rest > 1 and len(shape) < 4:
            extent = self.rng.choice([e for e in range(2, rest + 1) if rest % e == 0 and e <= 128] or [rest])
            shape.append(extent)
            rest //= extent
        if rest > 1 or not shape:
            shape.append(rest)
        self.rng.shuffle(shape)
        if self.rng.random() < 0.2:
            shape.insert(self.rng.randint(0, len(shape)), 1)
        self.keep(self.reshape(x, shape))

    def trans(self):
        x = self.block()
        order = self.rng.sample(range(len(x.shape)), len(x.shape))
        shape = [x.shape[d] for d in order]
        self.keep(self.op(f"greta_tile.trans {x.name} {order} : {x.type} -> {mlir_type(shape, 'i32')}", (x,), shape, "i32", lambda a: a.transpose(order)))

    def broadcast(self):
        x = self.block()
        dim, extent = self.rng.randint(0, len(x.shape)), self.rng.choice((2, 3, 4, 8, 16))
        if x.size * extent > MAX_ELEMENTS or len(x.shape) > 3:
            return self.reduce()
        thin = self.reshape(x, (*x.shape[:dim], 1, *x.shape[dim:]))
        shape = (*x.shape[:dim], extent, *x.shape[dim:])
        self.keep(self.op(f"greta_tile.broadcast {thin.name} : {thin.type} -> {mlir_type(shape, 'i32')}", (thin,), shape, "i32", lambda a: np.broadcast_to(a, shape)))

    def join(self):
        x = self.block()
        if x.size * 2 > MAX_ELEMENTS or len(x.shape) > 3:
            return self.reduce()
        y, shape = self.like(x), (*x.shape, 2)
        self.keep(self.op(f"greta_tile.join {x.name}, {y.name} : {x.type} -> {mlir_type(shape, 'i32')}", (x, y), shape, "i32", lambda a, b: np.stack([a, b], -1)))

    def split(self):
        pairs = [v for v in self.values if v.shape[-1] == 2 and len(v.shape) > 1]
        if not pairs:
            return self.join()
        x = self.rng.choice(pairs)
        shape = x.shape[:-1]
        made = self.emit(
            f"greta_tile.split {x.name} : {x.type} -> {mlir_type(shape, 'i32')}",
            [(shape, "i32")] * 2,
            lambda launch: (launch.values[x.name][..., 0], launch.values[x.name][..., 1]),
        )
        for value in made:
            self.keep(value)

    def cat(self):
        x = self.block()
        if x.size * 2 > MAX_ELEMENTS:
            return self.reduce()
        y, axis = self.like(x), self.rng.randrange(len(x.shape))
        shape = [e * 2 if d == axis else e for d, e in enumerate(x.shape)]
        self.keep(
            self.op(f"greta_tile.cat {x.name}, {y.name} axis {axis} : {x.type} -> {mlir_type(shape, 'i32')}", (x, y), shape, "i32", lambda a, b: np.concatenate([a, b], axis))
        )

    def gather(self):
        x = self.block()
        axis = self.rng.randrange(len(x.shape))
        index = self.wrapped(self.like(x), x.shape[axis])
        text = f"greta_tile.gather {x.name}[{index.name}] axis {axis} : {x.type}[{index.type}] -> {x.type}"
        self.keep(self.op(text, (x, index), x.shape, "i32", lambda a, i: np.take_along_axis(a, i, axis)))

    def histogram(self):
        x, bins = self.block(), self.rng.choice((16, 64, 128))
        values, mask = self.small(x, -5, bins + 5), self.condition(x) if self.rng.random() < 0.5 else None
        text = f"greta_tile.histogram {values.name}" + (f" mask {mask.name} : {values.type}, {mask.type}" if mask else f" : {values.type}")

        def compute(a, chosen=None):
            counted = a.ravel() if chosen is None else a[chosen]
            return np.bincount(counted[(counted >= 0) & (counted < bins)], minlength=bins)

        self.keep(self.op(f"{text} -> {mlir_type((bins,), 'i32')}", (values, mask) if mask else (values,), (bins,), "i32", compute))

    def reduce(self):
        x = self.block()
        axis = self.rng.randrange(len(x.shape))
        name, compute = self.rng.choice((("addi", np.add), ("xori", np.bitwise_xor), ("maxsi", np.maximum), ("minsi", np.minimum), ("muli", np.multiply)))
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        text = f"greta_tile.reduce {{arith.{name}}} {x.name} axis {axis} : {x.type} -> {mlir_type(shape, 'i32')}"
        self.keep(self.op(text, (x,), shape, "i32", lambda a: compute.reduce(a, axis, dtype=np.int32)))

    def argmax(self):
        """The largest and the first place of it."""
        x = self.block()
        axis = self.rng.randrange(len(x.shape))
        index, shape = self.iota(axis, x.shape), x.shape[:axis] + x.shape[axis + 1 :]
        result = mlir_type(shape, "i32")
        text = f"""greta_tile.reduce {x.name}, {index.name} axis {axis} : {x.type}, {x.type} -> ({result}, {result}) {{
    ^bb0(%a: i32, %i: i32, %b: i32, %j: i32):
      %greater = arith.cmpi sgt, %a, %b : i32
      %equal = arith.cmpi eq, %a, %b : i32
      %before = arith.cmpi slt, %i, %j : i32
      %tie = arith.andi %equal, %before : i1
      %first = arith.ori %greater, %tie : i1
      %v = arith.select %first, %a, %b : i32
      %k = arith.select %first, %i, %j : i32
      greta_tile.yield %v, %k : i32, i32
    }}"""
        made = self.emit(text, [(shape, "i32")] * 2, lambda launch: (launch.values[x.name].max(axis), launch.values[x.name].argmax(axis)))
        for value in made:
            self.keep(value)

    def scan(self):
        x = self.block()
        axis, reverse = self.rng.randrange(len(x.shape)), self.rng.random() < 0.5
        name, compute = self.rng.choice((("addi", np.add), ("maxsi", np.maximum), ("xori", np.bitwise_xor)))
        text = f"greta_tile.scan {{arith.{name}}} {x.name} axis {axis}{' reverse' if reverse else ''} : {x.type}"

        def run(a):
            a = np.flip(a, axis) if reverse else a
            out = compute.accumulate(a, axis, dtype=np.int32)
            return np.flip(out, axis) if reverse else out

        self.keep(self.op(text, (x,), x.shape, "i32", run))

    def recurrence(self):
        """s = f s' + x, whose composition does not commute."""
        x = self.block()
        f, axis, reverse = self.like(x), self.rng.randrange(len(x.shape)), self.rng.random() < 0.5
        text = f"""greta_tile.scan {f.name}, {x.name} axis {axis}{" reverse" if reverse else ""} : {x.type}, {x.type} {{
    ^bb0(%f0: i32, %s0: i32, %f1: i32, %s1: i32):
      %f = arith.muli %f0, %f1 : i32
      %m = arith.muli %f1, %s0 : i32
      %s = arith.addi %m, %s1 : i32
      greta_tile.yield %f, %s : i32, i32
    }}"""

        def run(launch):
            lines = [np.moveaxis(launch.values[v.name], axis, 0) for v in (f, x)]
            factors, sums = (np.array(line[::-1] if reverse else line) for line in lines)
            for i in range(1, len(sums)):
                sums[i] += factors[i] * sums[i - 1]
                factors[i] *= factors[i - 1]
            return tuple(np.moveaxis(a[::-1] if reverse else a, 0, axis) for a in (factors, sums))

        for value in self.emit(text, [(x.shape, "i32")] * 2, run):
            self.keep(value)

    def dot(self):
        m, n, k = (self.rng.choice((16, 16, 32)) for _ in range(3))
        batch = (2,) if self.rng.random() < 0.2 else ()
        dtype, acc = self.rng.choice((("f16", "f32"), ("f16", "f32"), ("f32", "f32"), ("i8", "i32")))
        operands = []
        for shape in ((*batch, m, k), (*batch, k, n)):
            same = [v for v in self.values if v.shape == shape]
            x = self.small(self.rng.choice(same) if same else self.load(shape), -9, 9)
            operands.append(self.cast("trunci", x, dtype) if dtype == "i8" else self.cast("sitofp", x, dtype))
        a, b = operands
        c = self.constant(0, (*batch, m, n), acc)
        text = f"greta_tile.dot {a.name}, {b.name}, {c.name} : {a.type}, {b.type} -> {c.type}"
        made = self.op(text, (a, b), c.shape, acc, lambda p, q: p.astype(np.float64) @ q.astype(np.float64))
        self.keep(made if acc == "i32" else self.cast("fptosi", made, "i32"))

    # Control

    def region(self, arguments=()):
        """Runs some steps in a list of their own; what they made is seen in it alone."""
        outer = self.lines, self.steps, list(self.values), list(self.scalars)
        self.lines, self.steps = [], []
        self.values, self.scalars = self.values + [v for v in arguments if v.shape], self.scalars + [v for v in arguments if not v.shape]
        for _ in range(self.rng.randint(1, 3)):
            self.rng.choice((self.arithmetic, self.arithmetic, self.shift, self.select, self.reduce, self.trans, self.scan, self.gather, self.load_scattered))()
        return outer

    def close(self, outer):
        made = self.lines, self.steps
        self.lines, self.steps, self.values, self.scalars = outer
        return made

    def argument(self, like):
        self.count += 1
        return Value(f"%{self.name}_{self.count - 1}", like.shape, like.dtype)

    def turned(self, x):
        """A block of the shape of `x` that depends on what the region made."""
        last = self.values[-1]
        if last.shape == x.shape:
            return last
        total = last
        while total.shape:
            shape = total.shape[1:]
            total = self.op(f"greta_tile.reduce {{arith.addi}} {total.name} axis 0 : {total.type} -> {mlir_type(shape, 'i32')}", (total,), shape, "i32", lambda a: a.sum(0, dtype=np.int32))
        return self.elementwise("arith.xori", x, self.splat(total, x.shape), np.bitwise_xor)

    def inner(self, lines):
        return "\n".join("  " + line for line in lines)

    def loop(self):
        x, s = self.block(), self.rng.choice(self.scalars)
        low, high, step = self.constant(self.rng.randint(0, 2)), self.wrapped(self.rng.choice(self.scalars), 5), self.constant(self.rng.randint(1, 2))
        a, t, i = self.argument(x), self.argument(s), self.argument(s)
        outer = self.region((a, i, t))
        next_a = self.turned(a)
        next_t = self.elementwise("arith.addi", t, i, np.add)
        self.lines.append(f"scf.yield {next_a.name}, {next_t.name} : {a.type}, {t.type}")
        lines, steps = self.close(outer)
        text = f"scf.for {i.name} = {low.name} to {high.name} step {step.name} iter_args({a.name} = {x.name}, {t.name} = {s.name}) -> ({a.type}, {t.type}) : i32 {{\n{self.inner(lines)}\n  }}"

        def run(launch):
            block, scalar = launch.values[x.name], launch.values[s.name]
            for turn in range(launch.values[low.name], launch.values[high.name], launch.values[step.name]):
                launch.values |= {a.name: block, t.name: scalar, i.name: np.int32(turn)}
                for inner in steps:
                    inner(launch)
                block, scalar = launch.values[next_a.name], launch.values[next_t.name]
            return block, scalar

        for value in self.emit(text, [(x.shape, "i32"), ((), "i32")], run):
            self.keep(value)

    def branch(self):
        x, s = self.block(), self.rng.choice(self.scalars)
        flag = self.elementwise("arith.cmpi slt,", s, self.rng.choice(self.scalars), np.less, "i1")
        arms = []
        for _ in range(2):
            outer = self.region()
            result = self.turned(x)
            self.lines.append(f"scf.yield {result.name} : {x.type}")
            arms.append((*self.close(outer), result))
        texts = [self.inner(lines) for lines, _, _ in arms]
        text = f"scf.if {flag.name} -> ({x.type}) {{\n{texts[0]}\n  }} else {{\n{texts[1]}\n  }}"

        def run(launch):
            _, steps, result = arms[0 if launch.values[flag.name] else 1]
            for inner in steps:
                inner(launch)
            return launch.values[result.name]

        self.keep(self.emit(text, [(x.shape, "i32")], run))

    def turns(self):
        """A while loop that ends after a few turns, or when a block is as it wishes."""
        x = self.block()
        zero, most = self.constant(0), self.constant(self.rng.randint(1, 4))
        a, t, b, u = self.argument(x), self.argument(zero), self.argument(x), self.argument(zero)
        outer = self.region((a, t))
        sum_ = self.turned(a)
        total = sum_
        while total.shape:
            shape = total.shape[1:]
            total = self.op(f"greta_tile.reduce {{arith.xori}} {total.name} axis 0 : {total.type} -> {mlir_type(shape, 'i32')}", (total,), shape, "i32", lambda p: np.bitwise_xor.reduce(p, 0))
        few = self.elementwise("arith.cmpi slt,", t, most, np.less, "i1")
        odd = self.elementwise("arith.cmpi ne,", total, most, np.not_equal, "i1")
        more = self.elementwise("arith.andi", few, odd, np.logical_and)
        self.lines.append(f"scf.condition({more.name}) {t.name}, {sum_.name} : i32, {x.type}")
        before = self.close(outer)
        outer = self.region((u, b))
        next_a, next_t = self.turned(b), self.elementwise("arith.addi", u, self.constant(1), np.add)
        self.lines.append(f"scf.yield {next_a.name}, {next_t.name} : {x.type}, i32")
        after = self.close(outer)
        text = f"scf.while ({a.name} = {x.name}, {t.name} = {zero.name}) : ({x.type}, i32) -> (i32, {x.type}) {{\n{self.inner(before[0])}\n  }} do {{\n"
        text += f"  ^bb0({u.name}: i32, {b.name}: {x.type}):\n{self.inner(after[0])}\n  }}"

        def run(launch):
            launch.values |= {a.name: launch.values[x.name], t.name: np.int32(0)}
            while True:
                for inner in before[1]:
                    inner(launch)
                passed = launch.values[t.name], launch.values[sum_.name]
                if not launch.values[more.name]:
                    return passed
                launch.values |= {u.name: passed[0], b.name: passed[1]}
                for inner in after[1]:
                    inner(launch)
                launch.values |= {a.name: launch.values[next_a.name], t.name: launch.values[next_t.name]}

        for value in self.emit(text, [((), "i32"), (x.shape, "i32")], run):
            self.keep(value)


def program(seed, index, plant=None):
    return Program(f"f{index}", random.Random(f"{seed}:{index}"), plant)


def text_for(program, target):
    return program.text(far_stride(target) if program.uses_far else None)


def compile_here(target, source, package):
    """In a process of its own, which the compiler may take along: it says on stderr what it refuses, with the source's line."""
    from greta._compile import CompileError, compile_source  # the Python package, which machines have that have no build

    try:
        pathlib.Path(package).write_bytes(compile_source(pathlib.Path(source).read_text(), target, name=str(source)))
    except CompileError as e:
        print(e, file=sys.stderr)
        return 1
    return 0


def run_here(seed, target, package, indices):
    """In a process of its own, which a driver may take along: a line of JSON for each program."""
    runtime = greta_runtime.Runtime(device_of(target))
    opened = greta_runtime.Package(runtime, package)
    for index in indices:
        one = program(seed, index)
        print(json.dumps({"start": index}), flush=True)
        x, y = one.inputs()
        expected = one.evaluate(x, y)
        function = opened.function(one.name)
        # The result is a copy of y that the kernel changes.
        (got,) = function(x, y, np.int32(one.n))
        function.destroy()
        wrong = np.flatnonzero(got != expected)
        problem = f"{len(wrong)} words, the first at {wrong[0]}: {got[wrong[0]]} instead of {expected[wrong[0]]}" if len(wrong) else ""
        print(json.dumps({"index": index, "problem": problem}), flush=True)


def run_batch(seed, target, indices):
    """{index: (what, detail)} of programs in one package; those that are refused leave it."""
    outcomes, left = {}, list(indices)
    with tempfile.TemporaryDirectory() as directory:
        source, package = pathlib.Path(directory) / "p.mlir", pathlib.Path(directory) / "p.greta"
        while left:
            source.write_text("".join(text_for(program(seed, k), target) for k in left))
            status, _, errors = run_process([sys.executable, __file__, "--compile", compiled_for(target), source, package])
            if status == 0:
                break
            line = re.search(r"p\.mlir:(\d+):", errors)
            blamed = left[0]
            if line:
                above = source.read_text().splitlines()[: int(line[1])]
                blamed = int(next(re.search(r"@f(\d+)", text)[1] for text in reversed(above) if re.search(r"func @f\d+", text)))
            named = any(reason in errors for reason in REFUSALS)
            outcomes[blamed] = ("refused" if named else "not compiled", errors[:3000])
            left.remove(blamed)
        if target.startswith("vulkan") and compiled_for(target) != "vulkan:portable":
            return outcomes | {k: ("right", "compiled") for k in left}
        command = under_driver(target, [sys.executable, __file__, "--seed", str(seed), "--run", target, package])
        for index, line in random_runs.run_each(left, lambda left: [*command, json.dumps(left)]).items():
            problem = line.get("problem", "")
            outcomes[index] = ("not run", line["crash"]) if "crash" in line else ("wrong", problem) if problem else ("right", "")
    return outcomes


def run_all(seed, count, targets=TARGETS, **options):
    return random_runs.run_all(lambda target, indices: run_batch(seed, target, indices), count, targets, **options)


def planted(seed, name, indices):
    """(index, whether the program has a place for the defect, whether its result shows it): NumPy's evaluation with it beside the one without."""
    assert name in PLANTS, f"{name} is none of {PLANTS}"
    for index in indices:
        one, other = program(seed, index), program(seed, index, name)
        has = name in one.places
        shows = has and bool((one.evaluate(*one.inputs()) != other.evaluate(*other.inputs())).any())
        yield index, has, shows


def main():
    parser = random_runs.parser(__doc__.splitlines()[0], TARGETS)
    parser.add_argument("--run", nargs=3, metavar=("TARGET", "PACKAGE", "INDICES"), help="used by the script itself")
    parser.add_argument("--compile", nargs=3, metavar=("TARGET", "SOURCE", "PACKAGE"), help="used by the script itself")
    options = parser.parse_args()
    indices = range(options.first, options.first + options.count)
    if options.compile:
        return compile_here(*options.compile)
    if options.run:
        target, package, chosen = options.run
        return run_here(options.seed, target, package, json.loads(chosen))
    if options.print:
        for index in indices:
            print(text_for(program(options.seed, index), options.targets.split(",")[0]))
        return 0
    if options.constructs:
        return random_runs.report_constructs((k, program(options.seed, k).used) for k in indices)
    if options.plant:
        return random_runs.report_planted(options.plant, planted(options.seed, options.plant, indices))
    outcomes = run_all(options.seed, options.count, options.targets.split(","), first=options.first, batch=options.batch, jobs=options.jobs, seconds=options.seconds)
    return random_runs.report(options, outcomes)


if __name__ == "__main__":
    sys.exit(main())
