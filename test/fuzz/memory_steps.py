"""Steps of random block programs about memory, loops and chains: what outside readers found wrong where no generator looked.

The in-place steps keep to what docs/internals/tile-language.md promises (Memory): a store in a loop has a load of the same memory in front of it, and behind such a loop comes a load.
"""

import math

import numpy as np

from program_builder import INPUT, OUTPUT, mlir_type

LATEST = 2**31 - 1


class MemorySteps:
    """For random_programs.Program, a Builder."""

    # Counters

    def counted(self, start, end, step, body, carried=None):
        """A loop; `body` takes its counter, and the carried value's argument, and gives what it carries on."""
        low, high, by = (self.constant(v) for v in (start, end, step))
        i, inside = self.argument(low), self.argument(carried) if carried else None
        outer = self.lines, self.steps, list(self.values), list(self.scalars)
        self.lines, self.steps = [], []
        on = body(i, inside)
        if carried:
            self.lines.append(f"scf.yield {on.name} : {carried.type}")
        lines, steps = self.close(outer)
        head = f"scf.for {i.name} = {low.name} to {high.name} step {by.name}"
        head += f" iter_args({inside.name} = {carried.name}) -> ({carried.type})" if carried else ""

        is_short = start > LATEST // 2 and self.defect("late counter")

        def run(launch):
            value = launch.values[carried.name] if carried else None
            for turn in range(start, end - is_short * step, step):
                launch.values[i.name] = np.int32(turn)
                if carried:
                    launch.values[inside.name] = value
                for one in steps:
                    one(launch)
                value = launch.values[on.name] if carried else None
            return value

        return self.emit(f"{head} : i32 {{\n{self.inner(lines)}\n  }}", [(carried.shape, carried.dtype)] if carried else [], run)

    def late_start(self, length):
        """A start for a loop of so many numbers; some loops end at the largest number, some begin at the least."""
        return self.rng.choice((0, 0, 3, LATEST - length, LATEST - length - 5, -(2**31), -length // 2))

    # In place

    MAPS = ("rows", "rows", "columns", "gaps", "reverse", "factor", "xor")

    def map_of(self, kind, shape):
        """The offsets of a block's elements in a map: as strides, or as numbers of the program."""
        size = math.prod(shape)
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        if kind == "columns":
            strides = [math.prod(shape[:d]) for d in range(len(shape))]
        if kind == "gaps":
            strides = [2 * s for s in strides]
        if kind in ("rows", "columns", "gaps"):
            grids = np.meshgrid(*(np.arange(e) for e in shape), indexing="ij")
            return sum(g * s for g, s in zip(grids, strides)), strides, None
        place, number = self.place(shape), np.arange(size).reshape(shape)
        if kind == "reverse":
            return size - 1 - number, None, self.elementwise("arith.subi", self.constant(size - 1, shape), place, np.subtract)
        if kind == "xor":
            by = self.rng.randrange(size)
            return number ^ by, None, self.elementwise("arith.xori", place, self.constant(by, shape), np.bitwise_xor)
        factor = next(f for f in (7, 11, 13, 1) if math.gcd(f, size) == 1)
        return number * factor % size, None, self.wrapped(self.elementwise("arith.muli", place, self.constant(factor, shape), np.multiply), size)

    def touch(self, shape, at, stored=None):
        """Loads, or stores, a block at a place of the window: by strides, or through pointers of 32 or 64 bits."""
        kind = self.rng.choice(self.MAPS)
        index, strides, numbers = self.map_of(kind, shape)
        block = mlir_type(shape, "i32")
        if strides and self.rng.random() < 0.5:
            base = self.pointers("%y", at)
            zeros = ", ".join([self.constant(0).name] * len(shape))
            where, pointee = f"{base}[{zeros}] strides {strides} bounds []", "!greta_tile.ptr<i32>"
            name = "greta_tile.store" if stored else "greta_tile.load"
        else:
            if strides:
                terms = [self.elementwise("arith.muli", self.iota(d, shape), self.constant(s, shape), np.multiply) for d, s in enumerate(strides)]
                numbers = terms[0]
                for term in terms[1:]:
                    numbers = self.elementwise("arith.addi", numbers, term, np.add)
            numbers = self.elementwise("arith.addi", numbers, self.splat(at, shape), np.add)
            if self.rng.random() < 0.4:
                numbers = self.cast("extsi", numbers, "i64")
            where, pointee = self.pointers("%y", numbers), mlir_type(shape, "!greta_tile.ptr<i32>")
            name = "greta_tile.store_scattered" if stored else "greta_tile.load_scattered"
        if stored:

            def store(launch):
                launch.before = launch.y.copy()
                launch.y[launch.values[at.name] + index] = launch.values[stored.name]

            return self.emit(f"{name} {stored.name}, {where} : {block} -> {pointee}", [], store)
        is_early = self.defect("in place")

        def load(launch):
            found = launch.y[launch.values[at.name] + index]
            return np.where(np.arange(found.size).reshape(shape) % 2, launch.before[launch.values[at.name] + index], found) if is_early else found

        return self.emit(f"{name} {where} : {pointee} -> {block}", [(shape, "i32")], load)

    def in_place(self):
        """Loads and stores of a window of the output, which overlap in whatever way."""
        shape = self.rng.choice(((64,), (256,), (16, 16), (32, 16), (8, 4, 4), (4,), (3, 24)))
        count, step = self.rng.randint(2, 4), self.rng.choice((0, 1, 7, 96, math.prod(shape)))
        size = math.prod(shape)
        span = 2 * size + 16 + count * step
        if self.stored + span > OUTPUT:
            return
        window = self.elementwise("arith.addi", self.first, self.constant(self.stored), np.add)
        self.stored += span

        def place():
            return self.elementwise("arith.addi", window, self.constant(self.rng.choice((0, 0, 1, 8, 16))), np.add)

        value = self.elementwise("arith.addi", self.place(shape), self.load(shape), np.add)
        self.touch(shape, place(), value)
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.5:
                value = self.touch(shape, place())
                if self.rng.random() < 0.7:
                    self.touch(shape, place(), self.mixed(value))
                continue
            start = self.late_start(count)

            def body(i, _):
                turn = self.elementwise("arith.subi", i, self.constant(start), np.subtract)
                moved = self.elementwise("arith.muli", turn, self.constant(step), np.multiply)
                near, far = (self.elementwise("arith.addi", place(), moved, np.add) for _ in range(2))
                loaded = self.touch(shape, near)
                self.touch(shape, far, self.mixed(self.elementwise("arith.addi", loaded, self.splat(turn, shape), np.add)))

            self.counted(start, start + count, 1, body)
            value = self.touch(shape, place())
        self.keep(value)

    def mixed(self, block):
        """A function of the block: elementwise, or a dot, whose layouts differ from the block's."""
        if block.shape not in ((16, 16), (32, 16)) or self.rng.random() < 0.4:
            return self.elementwise("arith.muli", block, self.constant(3, block.shape), np.multiply)
        a, b = self.cast("sitofp", self.small(block, -9, 9), "f16"), self.cast("sitofp", self.small(self.load((16, 16)), -9, 9), "f16")
        none = self.constant(0, block.shape, "f32")
        text = f"greta_tile.dot {a.name}, {b.name}, {none.name} : {a.type}, {b.type} -> {none.type}"
        made = self.op(text, (a, b), block.shape, "f32", lambda p, q: p.astype(np.float64) @ q.astype(np.float64))
        return self.cast("fptosi", made, "i32")

    # Main loops

    def main_loop(self):
        """Operands of a dot loaded under masks of 32 or 64 bits, in a loop that may end with the largest number."""
        (m, n), k, blocks = (self.rng.choice((16, 32)) for _ in range(2)), self.rng.choice((16, 32)), self.rng.randint(1, 4)
        start, extra = self.late_start(k * blocks), self.rng.choice((0, 0, 5))
        start = min(start, LATEST - k * blocks)
        operands = ((m, k), (k, n))
        wide = self.rng.random() < 0.5
        limits = [self.rng.choice((self.scalars[0], self.constant(self.rng.randint(1, 40)))) for _ in operands]
        if wide:
            extended = self.op(f"arith.extsi {self.scalars[0].name} : i32 to i64", (self.scalars[0],), (), "i64", lambda a: np.int64(a))
            limits = [self.rng.choice((extended, self.constant(self.rng.randint(1, 40), (), "i64"))) for _ in operands]

        def operand(number, shape, done):
            other, along = number, 1 - number  # the dimension of M or N, and of K
            outside = self.elementwise("arith.addi", self.splat(self.scalars[1], shape), self.iota(other, shape), np.add)
            depth = self.elementwise("arith.addi", self.splat(done, shape), self.iota(along, shape), np.add)
            stride = self.rng.choice((k * blocks, 160) if number == 0 else (n, 48))
            if wide:
                outside, depth = self.cast("extsi", outside, "i64"), self.cast("extsi", depth, "i64")
            line = self.elementwise("arith.muli", (outside, depth)[number], self.constant(stride, shape, outside.dtype), np.multiply)
            at = self.elementwise("arith.addi", line, (depth, outside)[number], np.add)
            mask = self.elementwise("arith.cmpi slt,", outside, self.splat(limits[number], shape), np.less, "i1")
            pointers = self.pointers("%x", at)
            found = self.emit(
                f"greta_tile.load_scattered {pointers} mask {mask.name} : {mlir_type(shape, '!greta_tile.ptr<i32>')} -> {mlir_type(shape, 'i32')}",
                [(shape, "i32")],
                lambda launch: np.where(launch.values[mask.name], launch.x[launch.values[at.name] % INPUT], 0),
            )
            return self.cast("sitofp", self.small(found, -9, 9), "f16")

        def body(i, total):
            done = self.elementwise("arith.subi", i, self.constant(start), np.subtract)
            a, b = (operand(number, shape, done) for number, shape in enumerate(operands))
            text = f"greta_tile.dot {a.name}, {b.name}, {total.name} : {a.type}, {b.type} -> {total.type}"
            return self.op(text, (a, b, total), (m, n), "f32", lambda p, q, c: p.astype(np.float64) @ q.astype(np.float64) + c)

        end = min(start + k * blocks - (extra if start >= 0 else 0), LATEST)
        total = self.counted(start, end, k, body, self.constant(0, (m, n), "f32"))
        self.keep(self.cast("fptosi", total, "i32"))

    # Chains

    def chain(self):
        """A block that each step uses twice or more, mostly one that a dot has made."""
        self.dot() if self.rng.random() < 0.6 else None
        x = self.values[-1]
        for _ in range(self.rng.choice((3, 30, 60))):
            squared = self.elementwise("arith.muli", x, x, np.multiply)
            x = squared if self.rng.random() < 0.7 else self.elementwise("arith.addi", squared, x, np.add)
        self.keep(x)

    def doubled(self):
        """An address and a mask that each step doubles."""
        extent = self.rng.choice((16, 64))
        at = self.iota(0, (extent,))
        for _ in range(self.rng.choice((2, 20, 24))):
            at = self.elementwise("arith.addi", at, at, np.add)
        mask = self.elementwise("arith.cmpi slt,", at, self.constant(INPUT, at.shape), np.less, "i1")
        for bound in self.rng.sample(range(INPUT), self.rng.choice((1, 25))):
            both = [self.elementwise("arith.cmpi slt,", at, self.constant(INPUT + bound + i, at.shape), np.less, "i1") for i in range(2)]
            both = [self.elementwise("arith.andi", mask, one, np.logical_and) for one in both]
            mask = self.elementwise("arith.andi", *both, np.logical_and)
        pointers = self.pointers("%x", at)
        self.keep(
            self.emit(
                f"greta_tile.load_scattered {pointers} mask {mask.name} : {mlir_type(at.shape, '!greta_tile.ptr<i32>')} -> {at.type}",
                [(at.shape, "i32")],
                lambda launch: np.where(launch.values[mask.name], launch.x[launch.values[at.name] % INPUT], 0),
            )
        )

    # Shared memory

    def kept(self):
        """One iteration of a loop, or each, stores a local that later iterations load, beside blocks that pass through shared memory."""
        shape = self.rng.choice(((16, 16), (32, 16), (64, 32)))
        x, chosen, inner = self.load(shape), self.rng.choice((0, 0, None)), self.rng.randint(1, 3)
        local = f"<1 x {mlir_type(shape, 'i32')}, <dim = 1, stride = {shape[1]}, vector = 4, rows = 1, phases = 1>>"
        name = f"%{self.name}_{self.count}"
        self.count += 1
        self.lines.append(f"{name} = greta_tile.local_alloc : {local}")
        zero, first = self.constant(0), self.constant(0 if chosen is None else chosen)
        # Memory that other blocks pass through while the local is still needed.
        is_reused = chosen is not None and self.defect("conditional store")

        def body(i, total):
            equal = self.elementwise("arith.cmpi eq,", i, first, np.equal, "i1")
            store = f"greta_tile.local_store {x.name}, {name}[{zero.name}] : {x.type} -> {local}"
            self.lines.append(store if chosen is None else f"scf.if {equal.name} {{\n    {store}\n    }}")

            def again(j, inside):
                text = f"greta_tile.local_load {name}[{zero.name}] [{zero.name}, {zero.name}] : {local} -> {x.type}"
                loaded = self.emit(text, [(shape, "i32")], lambda launch: launch.values[x.name][:: -1 if is_reused and launch.values[i.name] > 0 else 1])
                return self.elementwise("arith.addi", inside, loaded, np.add)

            total = self.counted(0, inner, 1, again, total)

            def turn(j, inside):
                back = (shape[1], shape[0])
                flipped = self.op(f"greta_tile.trans {inside.name} [1, 0] : {inside.type} -> {mlir_type(back, 'i32')}", (inside,), back, "i32", np.transpose)
                scaled = self.elementwise("arith.muli", flipped, self.place(back), np.multiply)
                return self.op(f"greta_tile.trans {scaled.name} [1, 0] : {scaled.type} -> {inside.type}", (scaled,), shape, "i32", np.transpose)

            return self.counted(0, 2, 1, turn, total)

        self.keep(self.counted(0, 3, 1, body, self.constant(1, shape)))
