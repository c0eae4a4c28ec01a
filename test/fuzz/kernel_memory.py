"""Steps of random Triton kernels that change memory, and control: loops, branches, while loops.

In-place steps keep to the promises of docs/internals/tile-language.md (Memory): a store in a loop has a load of the same memory in front of it, a load follows such a
loop, and two arguments are one buffer only where the same element is loaded through one and stored through the other."""

import contextlib
import math

from kernel_builder import ATOMICS, BITS, COUNTERS, EIGHT, FAR_COLUMNS, FAR_ROWS, GIVEN, INTEGERS, NAMES, PART, PROGRAMS, WINDOW, Region
from kernel_steps import COMPUTING, Steps

LATEST = 2**31 - 1
# Regions compute with these steps, which are cheap for the interpreter: it runs them several times.
INNER = ("arithmetic", "arithmetic", "mixed", "shift", "cast", "select", "floats", "edge", "reduce", "permute", "scan", "gather", "bits", "to_integers", "divide", "narrowed")


class Memory(Steps):
    # Control

    @contextlib.contextmanager
    def region(self, head):
        """Some steps under `head`; none stores."""
        self.loops += 1
        with self.block(head):
            yield
        self.loops -= 1

    def steps(self):
        for _ in range(self.rng.randint(1, 3)):
            choices = (*INNER, "branch", "loop") if self.loops < 2 else INNER
            getattr(self, self.rng.choice(choices))()

    def turned(self, x):
        """The text of a block like `x` that depends on what a region made."""
        last = self.values[-1] if self.values else x
        if last.dtype in EIGHT:
            # Neither bits of NaN nor signs of zeros are promised.
            last = self.make(f"tl.where(tl.abs({last.name}.to(tl.float32)) > 0, {last.name}.to(tl.uint8, bitcast=True), 0).to(tl.int32)", "i32", last.shape)
        elif last.dtype not in INTEGERS:
            last = self.make(f"({last.name} == {last.name}).to(tl.int32)", "i32", last.shape)
        if last.shape != x.shape:
            return f"{x.name} ^ tl.sum(tl.reshape({last.name}, {self.listed((last.size,))}).to(tl.int32), 0).to({NAMES[x.dtype]})"
        return f"{x.name} * 3 + {last.name}"

    def bounds(self):
        """A loop's start, end and step; some loops end at the largest number, some begin at the least. Late ones say so."""
        length, step = self.rng.randint(0, 4), self.rng.choice((1, 1, 2, 3))
        start = self.rng.choice((0, 0, 2, LATEST - length * step, LATEST - length * step - 5, -(2**31), -1))
        end = start + length * step - (self.rng.randint(0, step - 1) if length else 0)
        return start, end, step, start > 2**30

    def head(self, start, end, step, is_late):
        """The text of a `for`; the defect is a counter that wraps before the last turn."""
        if is_late and self.defect("late counter") and end > start:
            end = start + (end - start - 1) // step * step  # without it
        kind = self.rng.random()
        if kind < 0.3:
            return f"range({start}, {end}, {step})"
        if kind < 0.5:
            return f"tl.range({start}, {end}, {step}, num_stages={self.rng.randint(1, 3)})"
        if kind < 0.6 and end - start < 16:
            return f"tl.static_range({start}, {end}, {step})"
        return f"range(zero + ({start}), zero + ({end}), {step})"

    def loop(self):
        """Carries a block and a number."""
        x, s = self.some(INTEGERS), self.rng.choice(self.scalars)
        block, number = self.make(f"{x.name}", x.dtype, x.shape), self.make(f"{s.name}.to(tl.int32)", "i32", ())
        counter = self.fresh()
        with self.region(f"for {counter} in {self.head(*self.bounds())}:"):
            turn = self.make(f"zero + {counter}", "i32", ())
            self.values.append(block)
            self.scalars += [number, turn]
            self.steps()
            self.line(f"{block.name} = ({self.turned(block)}).to({NAMES[block.dtype]})")
            self.line(f"{number.name} = {number.name} * 5 + {turn.name}")
        self.keep(block)
        self.keep(number)

    def branch(self):
        x, s = self.some(INTEGERS), self.rng.choice(self.scalars)
        made = self.make(x.name, x.dtype, x.shape)
        both = self.rng.random() < 0.7
        with self.region(f"if {s.name} {self.rng.choice(('<', '>=', '==', '!='))} {self.rng.choice([v.name for v in self.scalars] + ['1', '2'])}:"):
            self.steps()
            self.line(f"{made.name} = ({self.turned(x)}).to({NAMES[x.dtype]})")
        if both:
            with self.region("else:"):
                self.steps()
                self.line(f"{made.name} = ({self.turned(x)} + 1).to({NAMES[x.dtype]})")
        self.keep(made)

    def turns(self):
        """A while loop that ends after a few turns, or when a block is as it wishes."""
        x = self.some(("i32", "i64", "u32"))
        block, turn = self.make(x.name, x.dtype, x.shape), self.make("zero + 0", "i32", ())
        odd = f"(tl.xor_sum(tl.reshape({block.name}, {self.listed((x.size,))}), 0) & 3) != 1"
        with self.region(f"while ({turn.name} < {self.rng.randint(1, 4)}) & ({odd}):"):
            self.values.append(block)
            self.scalars.append(turn)
            self.steps()
            self.line(f"{block.name} = ({self.turned(block)}).to({NAMES[block.dtype]})")
            self.line(f"{turn.name} += 1")
        self.keep(block)
        self.keep(turn)

    def conditional_store(self):
        """In some turn of a loop, or under a condition of the program: elements that nobody stores stay zero."""
        value = self.some(("i32", "i16", "i64", "u8"))
        dtype, first = value.dtype, self.room(value.dtype, value.size)
        if first is None:
            return
        self.note(first, dtype, value.size)
        condition = self.rng.choice((f"{self.rng.choice(self.scalars).name} < {self.rng.randint(0, 3)}", f"pid != {self.rng.randint(0, 3)}", f"tl.max(tl.reshape({value.name}, {self.listed((value.size,))}), 0) > 5"))
        if self.defect("conditional store"):
            condition = "pid < 2"
        counter = self.fresh() if self.rng.random() < 0.5 else None
        with self.block(f"for {counter} in range(0, 3):") if counter else contextlib.nullcontext():
            also = f"({counter} == {self.rng.randint(0, 2)}) & " if counter else ""
            with self.block(f"if {also}({condition}):"):
                self.line(f"tl.store({self.output(dtype, first)} + {self.place(value.shape)}, {value.name})")

    def note(self, first, dtype, count):
        self.regions.append(Region(first * BITS[dtype] // 8, dtype, count))

    # In place

    MAPS = ("rows", "rows", "columns", "gaps", "reverse", "factor", "xor")

    def map_of(self, shape):
        """The text of offsets of a block's elements, each once."""
        kind, size = self.rng.choice(self.MAPS), math.prod(shape)
        strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        if kind == "columns":
            strides = [math.prod(shape[:d]) for d in range(len(shape))]
        if kind == "gaps":
            strides = [2 * s for s in strides]
        place = f"({self.place(shape, strides)})"
        if kind == "reverse":
            return f"({size - 1} - {place})"
        if kind == "xor":
            return f"({place} ^ {self.rng.randrange(size)})"
        return f"({place} * 7 % {size})" if kind == "factor" else place

    def in_place(self):
        """Loads and stores of a window of one argument, which overlap in whatever way."""
        shape = self.rng.choice(((64,), (256,), (16, 16), (32, 16), (8, 4, 4), (4,)))
        count, step = self.rng.randint(2, 4), self.rng.choice((0, 1, 7, 96, math.prod(shape)))
        span = 2 * math.prod(shape) + 16 + count * step
        if self.window + span > WINDOW:
            return
        base = f"{self.argument('z')} + pid * {WINDOW} + {self.window}"
        self.window += span

        def place(also=""):
            return f"{base} + {self.widened(f'{self.map_of(shape)} + {self.rng.choice((0, 0, 1, 8, 16))}{also}')}"

        self.line(f"tl.store({place()}, {self.place(shape)} + {self.load('i32', shape).name})")
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.5:
                value = self.make(f"tl.load({place()})", "i32", shape)
                if self.rng.random() < 0.7:
                    self.line(f"tl.store({place()}, {self.changed(value)})")
                continue
            start, counter = self.rng.choice((0, 0, LATEST - count, -5)), self.fresh()
            near, far = (place(f" + ({counter} - ({start})) * {step}") for _ in range(2))
            with self.block(f"for {counter} in {self.head(start, start + count, 1, start > 2**30)}:"):
                value = self.make(f"tl.load({near})", "i32", shape)
                self.line(f"tl.store({far}, {self.changed(value)} + ({counter} - ({start})))")
            value = self.make(f"tl.load({place()})", "i32", shape)
        self.keep(self.make(f"tl.load({place()})", "i32", shape))

    def changed(self, block):
        """The text of a function of the block: elementwise, or a dot, whose layouts differ from the block's."""
        if block.shape not in ((16, 16), (32, 16)) or self.rng.random() < 0.4:
            return f"{block.name} * 3"
        return f"tl.dot({self.operand('f16', block.shape, block)}, {self.operand('f16', (16, 16), self.load('i32', (16, 16)))}).to(tl.int32)"

    def aliased(self):
        """c = f(c) through two arguments that are one buffer, or through one block of pointers, in a loop: f takes elements of other lanes."""
        shape = self.rng.choice(((16, 16), (32, 32), (16, 32), (64,)))
        size = math.prod(shape)
        if self.window + size > WINDOW:
            return
        load, store = self.rng.choice((("z", "z"), ("za", "zb"), ("zb", "za")))
        place = self.place(shape)
        offset = f"pid * {WINDOW} + {self.window} + {place}"
        self.window += size
        pointers = [self.fresh() for _ in range(2)]
        self.line(f"{pointers[0]} = {self.argument(load)} + {offset}")
        self.line(f"{pointers[1]} = {pointers[0]}" if load == store else f"{pointers[1]} = {self.argument(store)} + {offset}")
        self.line(f"tl.store({pointers[1]}, {self.load('i32', shape).name} & 15)")
        others = self.load("i32", (shape[-1], shape[-1])) if len(shape) > 1 else None

        def changed(value):
            if len(shape) == 1:
                return f"tl.cumsum({value.name}, 0) & 0xff"
            if self.rng.random() < 0.25 and shape[0] == shape[1]:
                return f"tl.permute({value.name}, [1, 0]) + 1"
            return f"tl.dot({self.operand('f16', shape, value)}, {self.operand('f16', others.shape, others)}).to(tl.int32) & 0xff"

        with self.block(f"for {self.fresh()} in range(0, {self.rng.randint(1, 4)}):"):
            value = self.make(f"tl.load({pointers[0]})", "i32", shape)
            text = changed(value)
            if self.defect("in place"):
                # Some lanes have stored before others load.
                half = f"({place} < {size // 2})"
                self.line(f"tl.store({pointers[1]}, {text}, mask={half})")
                self.line(f"{value.name} = tl.load({pointers[0]})")
                self.line(f"tl.store({pointers[1]}, {text}, mask=({place} >= {size // 2}))")
            else:
                self.line(f"tl.store({pointers[1]}, {text})")
        self.keep(self.make(f"tl.load({pointers[0]})", "i32", shape))

    # Atomics

    def atomic(self):
        """All programs change words behind their parts, in ways whose order does not count."""
        kind, x = self.rng.randrange(len(ATOMICS)), self.some(("i32",))
        dtype = self.rng.choice(("i32", "u32", "f32")) if ATOMICS[kind] == "add" else "i32"
        first = PART * PROGRAMS // 4 + COUNTERS * kind if dtype == "i32" else PART * PROGRAMS // 4 + COUNTERS * (len(ATOMICS) + (dtype == "f32"))
        value = self.like(x).name if dtype != "f32" else f"({self.like(x).name} & 15)"
        mask = f", mask={self.condition(x)}" if self.rng.random() < 0.6 else ""
        self.line(f"tl.atomic_{ATOMICS[kind]}({self.argument(f'y_{dtype}')} + {first} + ({x.name} & {COUNTERS - 1}), {value}.to({NAMES[dtype]}){mask})")

    def atomic_alone(self):
        """On words of its own: what was there comes back."""
        x = self.some(("i32",))
        first = self.room("i32", x.size)
        if first is None:
            return
        self.note(first, "i32", x.size)
        pointers = self.fresh()
        self.line(f"{pointers} = {self.output('i32', first)} + {self.place(x.shape)}")
        if self.rng.random() < 0.5:
            self.line(f"tl.store({pointers}, {self.like(x).name})")
        for _ in range(self.rng.randint(1, 2)):
            name = self.rng.choice((*ATOMICS, "xchg", "cas"))
            compared = f"{self.like(x).name} & 1, " if name == "cas" else ""
            self.keep(self.make(f"tl.atomic_{name}({pointers}, {compared}{self.like(x).name})", "i32", x.shape))

    # Descriptors and far rows

    def descriptor(self):
        """A block of a matrix that it partly lies beyond: zeros there, and nothing stored."""
        dtype = self.rng.choice(("i32", "f32", "i16", "f16"))
        per = 16 * 8 // BITS[dtype]
        block = (self.rng.choice((8, 16)), self.rng.choice((16, 32)))
        shape, stride = (self.rng.randint(1, 24), self.rng.randint(1, 48)), per * self.rng.choice((4, 8))
        self.shifted[dtype] = False
        made = self.fresh()
        self.line(f"{made} = tl.make_tensor_descriptor({self.argument(f'x_{dtype}')}, shape=[{shape[0]} + zero, {shape[1]} + zero], strides=[{stride}, 1], block_shape={list(block)})")
        at = (self.rng.choice((0, 3, 8)), per * self.rng.choice((0, 0, 1)))
        value = self.make(f"{made}.load([{at[0]}, {at[1]}])", dtype, block, GIVEN.get(dtype))
        self.keep(value)
        first = self.room(dtype, block[0] * 64)
        if first is None or self.rng.random() < 0.5:
            return
        self.note(first, dtype, block[0] * 64)
        made = self.fresh()
        self.line(f"{made} = tl.make_tensor_descriptor({self.output(dtype, first)}, shape=[{self.rng.randint(1, block[0])}, {self.rng.randint(1, 48)}], strides=[64, 1], block_shape={list(block)})")
        self.line(f"{made}.store([0, {per * self.rng.choice((0, 1))}], {value.name})")

    def far(self):
        """Rows that lie gigabytes apart, as many elements as the launch says."""
        x = self.load("i32", (FAR_ROWS, FAR_COLUMNS))
        rows, columns = self.index(0, x.shape), self.index(1, x.shape)
        near = f"{columns} + pid * {FAR_COLUMNS}"
        at = self.argument("far") + f" + ({rows}).to(tl.int64) * far_stride + {near}"
        stored = at
        if self.defect("far rows"):
            # The interpreter has rows of kilobytes, so the offsets' lower half is of as many bits less.
            stored = self.argument("far") + f" + ((({rows}).to(tl.int64) * far_stride * 4) & 0xffff) // 4 + {near}"
        self.argument("far_stride")
        self.line(f"tl.store({stored}, {x.name})")
        self.line("tl.debug_barrier()")
        self.keep(self.make(f"tl.load({at})", "i32", x.shape))
        # Each row twice, as a dot's operand.
        shape = (2 * FAR_ROWS, FAR_COLUMNS)
        row, column = (self.index(dim, shape) for dim in range(2))
        loaded = self.make(f"tl.load(far + ({row} % {FAR_ROWS}).to(tl.int64) * far_stride + {column} + pid * {FAR_COLUMNS})", "i32", shape)
        a = self.make(self.operand("f16", shape, loaded), "f16", shape)
        self.keep(self.make(f"tl.dot({a.name}, tl.trans({a.name})).to(tl.int32)", "i32", (2 * FAR_ROWS,) * 2))

    # Main loops

    def main_loop(self):
        """Operands of a dot loaded under masks of 32 or 64 bits, in a loop that may end with the largest number."""
        (m, n), k, blocks = (self.rng.choice((16, 32)) for _ in range(2)), self.rng.choice((16, 32)), self.rng.randint(1, 3)
        m, n = (16, n) if m * n > 512 else (m, n)
        start, dtype = self.rng.choice((0, 0, LATEST - k * blocks, LATEST - k * blocks - 5, -(2**31))), self.rng.choice(("f16", "bf16", "f32"))
        end, counter, total = start + k * blocks - self.rng.choice((0, 0, 5)), self.fresh(), self.make(f"tl.zeros([{m}, {n}], tl.float32)", "f32", (m, n), (0, 24))
        wide = ".to(tl.int64)" if self.rng.random() < 0.5 else ""
        with self.block(f"for {counter} in {self.head(start, end, k, start > 2**30)}:"):
            done = f"({counter} - ({start}))"
            operands = []
            for number, shape in enumerate(((m, k), (k, n))):
                outside, depth = (self.index(0, shape), self.index(1, shape)) if number == 0 else (self.index(1, shape), self.index(0, shape))
                stride = self.rng.choice((k * blocks, 100) if number == 0 else (n, 41))
                line, along = (outside, f"({depth} + {done})") if number == 0 else (f"({depth} + {done})", outside)
                pointer = f"{self.argument('x_i32')} + ({line}){wide} * {stride} + {along}"
                mask = self.rng.choice((f"({outside}){wide} < n", f"({depth} + {done}){wide} < {k * blocks - self.rng.randint(0, 9)}", f"({outside}){wide} < {self.rng.randint(1, 40)}"))
                value = self.make(f"tl.load({pointer}, mask={mask}, other=0)", "i32", shape)
                operands.append(self.operand(dtype, shape, value))
            precision = ', input_precision="ieee"' if dtype == "f32" else ""
            self.line(f"{total.name} = tl.dot({operands[0]}, {operands[1]}, {total.name}{precision})")
        self.keep(self.make(self.apart(total.name, "f32"), "f32", total.shape, total.span))
        self.keep(self.make(f"{total.name}.to(tl.int32)", "i32", total.shape))


CHANGING = dict(loop=2, branch=1, turns=1, conditional_store=1.5, in_place=1.5, aliased=1, atomic=0.8, atomic_alone=0.7, descriptor=1, far=0.15, main_loop=1)
STEPS = COMPUTING | CHANGING
