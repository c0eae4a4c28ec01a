"""Block programs piece by piece: each op's text, and what it does in NumPy. random_programs.py makes programs of them."""

import math

import numpy as np

from random_runs import integers

INPUT, OUTPUT, COUNTERS = 1 << 13, 1 << 12, 64  # words: of the input, of a program's part of the output, of what all programs add to
GRID = (2, 2)
FAR_ROWS = 8  # of scratch memory whose rows may lie gigabytes apart
MAX_ELEMENTS = 512
EXTENTS = (1, 2, 2, 4, 4, 8, 16, 32, 64, 3, 6, 12, 24, 96)
DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def mlir_type(shape, dtype):
    return f"tensor<{'x'.join(map(str, shape))}x{dtype}>" if shape else dtype


class Value:
    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(shape), dtype

    @property
    def type(self):
        return mlir_type(self.shape, self.dtype)

    @property
    def size(self):
        return math.prod(self.shape)


class Launch:
    """What the evaluation of one program of the grid works on: arrays of the whole launch, the program's ids, and values by name."""

    def __init__(self, x, y, n, ids):
        self.x, self.y, self.ids, self.values = x, y, ids, {"%n": np.int32(n)}
        self.before = y.copy()  # what was there before the last store in place


class Builder:
    """The text of function `name` and its evaluation: each line has a step, a function of the Launch. `plant` names a defect that the evaluation is to have
    (PLANTS in random_programs.py)."""

    def __init__(self, name, rng, plant=None):
        self.name, self.rng, self.count, self.plant = name, rng, 0, plant
        self.used, self.places = [], set()  # steps, and defects that have a place in the program
        self.lines, self.steps, self.values = [], [], []
        self.n = rng.randint(0, 40)
        self.waves = rng.choice((1, 1, 2, 4))
        self.stored = 0
        self.scalars = [Value("%n", (), "i32")]
        self.prologue()

    # Building

    def emit(self, text, results, step):
        """`text` with a `$` for the results' names; `step` gives their arrays."""
        made = []
        for shape, dtype in results:
            made.append(Value(f"%{self.name}_{self.count}", shape, dtype))
            self.count += 1
        self.lines.append(f"{', '.join(v.name for v in made)} = {text}" if made else text)

        def run(launch):
            arrays = step(launch)
            for value, array in zip(made, arrays if isinstance(arrays, tuple) else (arrays,), strict=True) if made else ():
                array = np.asarray(array)
                assert array.shape == value.shape, (text, array.shape, value.shape)
                launch.values[value.name] = array.astype(DTYPES[value.dtype])

        self.steps.append(run)
        return made[0] if len(made) == 1 else made

    def op(self, text, operands, shape, dtype, compute):
        """An op of one result, of some values: `compute` takes their arrays."""
        return self.emit(text, [(shape, dtype)], lambda launch: compute(*(launch.values[v.name] for v in operands)))

    def constant(self, value, shape=(), dtype="i32"):
        number = str(value) if dtype[0] == "i" else f"{float(value):.8e}"
        text = f"arith.constant {f'dense<{number}>' if shape else number} : {mlir_type(shape, dtype)}"
        return self.op(text, (), shape, dtype, lambda: np.full(shape, value, DTYPES[dtype]))

    def elementwise(self, name, x, y, compute, dtype=None):
        """Of two values of one type; `name` may hold a comparison's predicate."""
        return self.op(f"{name} {x.name}, {y.name} : {x.type}", (x, y), x.shape, dtype or x.dtype, compute)

    def cast(self, name, x, dtype, compute=lambda a: a):
        return self.op(f"arith.{name} {x.name} : {x.type} to {mlir_type(x.shape, dtype)}", (x,), x.shape, dtype, compute)

    def iota(self, dim, shape):
        index = np.arange(shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(shape))])
        return self.op(f"greta_tile.iota {dim} : {mlir_type(shape, 'i32')}", (), shape, "i32", lambda: np.broadcast_to(index, shape))

    def splat(self, scalar, shape):
        return self.op(f"greta_tile.splat {scalar.name} : {mlir_type(shape, scalar.dtype)}", (scalar,), shape, scalar.dtype, lambda a: np.full(shape, a))

    def reshape(self, x, shape):
        return self.op(f"greta_tile.reshape {x.name} : {x.type} -> {mlir_type(shape, x.dtype)}", (x,), shape, x.dtype, lambda a: a.reshape(shape))

    def place(self, shape):
        """The row-major index of each element."""
        total, stride = None, 1
        for dim in reversed(range(len(shape))):
            term = self.elementwise("arith.muli", self.iota(dim, shape), self.constant(stride, shape), np.multiply)
            total = term if total is None else self.elementwise("arith.addi", total, term, np.add)
            stride *= shape[dim]
        return total

    def wrapped(self, x, count):
        """Numbers from 0 to count - 1."""
        return self.elementwise("arith.remui", x, self.constant(count, x.shape), lambda a, b: (a.astype(np.uint32) % b.astype(np.uint32)))

    def small(self, x, low, high):
        """The same as numbers from low to high."""
        return self.elementwise("arith.addi", self.wrapped(x, high - low + 1), self.constant(low, x.shape), np.add)

    def defect(self, name):
        """Whether the evaluation is to have this defect here."""
        self.places.add(name)
        return self.plant == name

    # Choosing

    def shape(self, limit=MAX_ELEMENTS):
        rank = self.rng.choice((1, 1, 2, 2, 2, 3, 4))
        while True:
            shape = tuple(self.rng.choice(EXTENTS) for _ in range(rank))
            if 2 <= math.prod(shape) <= limit:
                return shape

    def block(self):
        return self.rng.choice(self.values[-6:])

    def like(self, x):
        """A block of the shape of `x`."""
        same = [v for v in self.values if v.shape == x.shape and v is not x]
        choice = self.rng.random()
        if same and choice < 0.6:
            return self.rng.choice(same)
        if choice < 0.7:
            return self.iota(self.rng.randrange(len(x.shape)), x.shape)
        if choice < 0.8:
            return self.splat(self.rng.choice(self.scalars), x.shape)
        return self.load(x.shape)

    def condition(self, x):
        """A mask of the shape of `x`."""
        name, compute = self.rng.choice((("slt", np.less), ("sge", np.greater_equal), ("eq", np.equal), ("ne", np.not_equal), ("ult", lambda a, b: a.astype(np.uint32) < b.astype(np.uint32))))
        return self.elementwise(f"arith.cmpi {name},", x, self.like(x), compute, "i1")

    def keep(self, value):
        (self.values if value.shape else self.scalars).append(value)
        return value

    # Accesses

    def prologue(self):
        for axis in range(2):
            self.scalars.append(self.op(f"greta_tile.program_id {axis}", (), (), "i32", lambda axis=axis: 0))
            self.steps[-1] = lambda launch, name=self.scalars[-1].name, axis=axis: launch.values.update({name: np.int32(launch.ids[axis])})
        programs = self.op("greta_tile.num_programs 0", (), (), "i32", lambda: GRID[0])
        line = self.elementwise("arith.muli", self.scalars[2], programs, np.multiply)
        number = self.elementwise("arith.addi", line, self.scalars[1], np.add)
        self.first = self.elementwise("arith.muli", number, self.constant(OUTPUT), np.multiply)
        self.scalars += [programs, number]
        self.keep(self.load(self.shape()))

    def load(self, shape):
        """By strides, of any order and with gaps, with bounds along some dimensions."""
        order = self.rng.sample(range(len(shape)), len(shape)) if self.rng.random() < 0.3 else list(reversed(range(len(shape))))
        strides, stride = [0] * len(shape), 1
        for dim in order:
            strides[dim] = stride
            stride *= shape[dim] + (self.rng.choice((0, 0, 0, 1, 3)) if stride * (shape[dim] + 3) < 2048 else 0)
        offsets = [self.constant(self.rng.choice((0, 0, 1, 4, 16)) if (s * 16) * len(shape) < 2048 else 0) for s in strides]
        bounded = [d for d in range(len(shape)) if self.rng.random() < 0.3]
        bounds = [self.rng.choice((self.scalars[0], self.constant(self.rng.randint(0, shape[d] + 16)))) for d in bounded]
        other = self.constant(self.rng.randint(-99, 99)) if bounded and self.rng.random() < 0.5 else None
        bound_text = f" ({', '.join(b.name for b in bounds)})" if bounds else ""
        text = f"greta_tile.load %x[{', '.join(o.name for o in offsets)}] strides {strides} bounds {bounded}{bound_text}"
        text += (f" other {other.name} : i32" if other else "") + f" : !greta_tile.ptr<i32> -> {mlir_type(shape, 'i32')}"

        def step(launch):
            index = [launch.values[o.name] + np.arange(e).reshape([-1 if k == d else 1 for k in range(len(shape))]) for d, (o, e) in enumerate(zip(offsets, shape))]
            inside = np.full(shape, True)
            for d, b in zip(bounded, bounds):
                inside = inside & (index[d] < launch.values[b.name])
            places = np.broadcast_to(sum(i * s for i, s in zip(index, strides)), shape)
            return np.where(inside, launch.x[np.where(inside, places, 0)], launch.values[other.name] if other else 0)

        return self.emit(text, [(shape, "i32")], step)

    def load_scattered(self):
        x = self.block()
        at, mask = self.wrapped(x, INPUT), self.condition(x) if self.rng.random() < 0.6 else None
        pointers = self.pointers("%x", at)
        other = self.like(x) if mask and self.rng.random() < 0.5 else None
        text = f"greta_tile.load_scattered {pointers}" + (f" mask {mask.name}" if mask else "") + (f" other {other.name}" if other else "")

        def step(launch):
            found = launch.x[launch.values[at.name]]
            return found if not mask else np.where(launch.values[mask.name], found, launch.values[other.name] if other else 0)

        self.keep(self.emit(f"{text} : {mlir_type(x.shape, '!greta_tile.ptr<i32>')} -> {x.type}", [(x.shape, "i32")], step))

    def pointers(self, base, at):
        """The name of pointers to elements of a buffer."""
        name = f"%{self.name}_{self.count}"
        self.count += 1
        self.lines.append(f"{name} = greta_tile.ptr_add {base}, {at.name} : !greta_tile.ptr<i32>, {at.type}")
        return name

    def store(self, value):
        """To a place of the output that nothing else is stored to."""
        if self.stored + value.size > OUTPUT:
            return
        base = self.pointers("%y", self.elementwise("arith.addi", self.first, self.constant(self.stored), np.add))
        start, shape = self.stored, value.shape
        self.stored += value.size
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        end = self.rng.choice((None, None, self.constant(self.rng.randint(0, shape[-1]))))
        zero = ", ".join([self.constant(0).name] * len(shape))
        bounds = f"[{len(shape) - 1}] ({end.name})" if end else "[]"

        def step(launch):
            first = launch.values[self.first.name] + start
            inside = np.broadcast_to(np.arange(shape[-1]) < (launch.values[end.name] if end else shape[-1]), shape).ravel()
            launch.y[first : first + value.size][inside] = launch.values[value.name].ravel()[inside]

        self.emit(f"greta_tile.store {value.name}, {base}[{zero}] strides {strides} bounds {bounds} : {value.type} -> !greta_tile.ptr<i32>", [], step)

    def store_scattered(self):
        """The elements in an order that a factor without common divisors gives."""
        x = self.block()
        if self.stored + x.size > OUTPUT:
            return
        factor = next(f for f in (7, 11, 13, 1) if math.gcd(f, x.size) == 1)
        turned = self.wrapped(self.elementwise("arith.muli", self.place(x.shape), self.constant(factor, x.shape), np.multiply), x.size)
        first = self.elementwise("arith.addi", self.first, self.constant(self.stored), np.add)
        self.stored += x.size
        at, mask = self.elementwise("arith.addi", turned, self.splat(first, x.shape), np.add), self.condition(x)
        pointers = self.pointers("%y", at)

        def step(launch):
            chosen = launch.values[mask.name]
            launch.y[launch.values[at.name][chosen]] = launch.values[x.name][chosen]

        self.emit(f"greta_tile.store_scattered {x.name}, {pointers} mask {mask.name} : {x.type} -> {mlir_type(x.shape, '!greta_tile.ptr<i32>')}", [], step)

    def atomic(self):
        """All programs add to the words behind their outputs."""
        x = self.block()
        at = self.elementwise("arith.addi", self.wrapped(x, COUNTERS), self.constant(OUTPUT * math.prod(GRID), x.shape), np.add)
        value, mask = self.like(x), self.condition(x)
        pointers = self.pointers("%y", at)
        text = f"greta_tile.atomic_rmw add relaxed device {pointers}, {value.name} mask {mask.name} : {mlir_type(x.shape, '!greta_tile.ptr<i32>')} -> {x.type}"
        name = f"%{self.name}_{self.count}"
        self.count += 1

        def step(launch):
            chosen = launch.values[mask.name]
            np.add.at(launch.y, launch.values[at.name][chosen], launch.values[value.name][chosen])

        self.emit(f"{name} = {text}", [], step)

    # The function

    @property
    def words(self):
        return OUTPUT * math.prod(GRID) + COUNTERS

    def text(self, far=None):
        """With `far`, as many elements apart are the rows of scratch memory that the kernel has beside its buffers."""
        body = "\n".join(f"  {line}" for line in self.lines)
        x, y = f"tensor<{INPUT}xi32>", f"tensor<{self.words}xi32>"
        scratch = ", %far: !greta_tile.ptr<i32>" if far else ""
        body, results = (body.replace("@FAR@", str(far)), f"({y}, tensor<?xi32>)") if far else (body, y)
        tied, shapes = ("[1, -1]", f"[affine_map<()[n] -> ({FAR_ROWS} * {far})>]") if far else ("[1]", "[]")
        return f"""greta_tile.func @{self.name}_kernel(%x: !greta_tile.ptr<i32>, %y: !greta_tile.ptr<i32>, %n: i32{scratch}) attributes {{waves = {self.waves} : i32}} {{
{body}
  greta_tile.return
}}
func.func @{self.name}(%x: {x}, %y: {y}, %n: i32) -> {y} {{
  %0{":2" if far else ""} = greta_tile.launch @{self.name}_kernel grid affine_map<()[n] -> {GRID}> scalars affine_map<()[n] -> ()> (%x, %y, %n) tied {tied} shapes {shapes} : ({x}, {y}, i32) -> {results}
  return %0{"#0" if far else ""} : {y}
}}
"""

    def inputs(self):
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        return integers(rng, INPUT, "int32"), np.zeros(self.words, np.int32)

    def evaluate(self, x, y):
        y = y.copy()
        with np.errstate(all="ignore"):
            for j in range(GRID[1]):
                for i in range(GRID[0]):
                    launch = Launch(x, y, self.n, (i, j))
                    for step in self.steps:
                        step(launch)
        return y
