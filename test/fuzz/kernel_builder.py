"""Random Triton kernels piece by piece: their arguments, values by name, accesses to memory. random_kernels.py makes kernels of them.

A kernel is text alone: what it means is what Triton's interpreter makes of it. Integers are exact. So are floats: operations are those that every device rounds once, and
a value knows of which power of two all its numbers are multiples and below which they are, so that none is a denormal f32. Numbers that devices round differently are stored
beside the bound of their error, and used no further."""

import contextlib
import math

INPUT = 1 << 12  # elements of each argument that is read
PART = 1 << 14  # bytes of a program's part of the output
COUNTERS = 64  # words of each kind of atomic that all programs change, behind their parts
ATOMICS = ("add", "max", "min", "and", "or", "xor")
WINDOW = 1 << 12  # elements of i32 that a program changes in place
GRID = (2, 2)
PROGRAMS = math.prod(GRID)
MAX_ELEMENTS = 512
FAR_ROWS, FAR_COLUMNS = 8, 16
EXTENTS = (1, 2, 2, 4, 4, 8, 16, 16, 32, 64, 128)
NAN = 0x1234  # the bits that stand for those of any NaN
BIG = 1 << 33

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
EIGHT = ("f8e5", "f8e4", "f8e5z", "f8e4z")
NAMES = {
    **{name: f"tl.{'uint' if name[0] == 'u' else 'int'}{name[1:]}" for name in (*INTEGERS, "i1")},
    **{"f16": "tl.float16", "bf16": "tl.bfloat16", "f32": "tl.float32", "f64": "tl.float64"},
    **{"f8e5": "tl.float8e5", "f8e4": "tl.float8e4nv", "f8e5z": "tl.float8e5b16", "f8e4z": "tl.float8e4b8"},
}
BITS = {name: 16 if name == "bf16" else 8 if name in EIGHT or name == "i1" else int(name[1:]) for name in NAMES}
# The least exponent that arithmetic may reach, and the bits of a number.
LEAST = {"f16": -40, "bf16": -126, "f32": -126, "f64": -1000}
MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
# The arguments' floats are multiples of one power of two and below another (kernel_process.py makes them).
GIVEN = {"f16": (-18, 8), "bf16": (-14, 8), "f32": (-31, 8), "f64": (-82, 30)}


class Value:
    def __init__(self, name, dtype, shape, span=None):
        self.name, self.dtype, self.shape, self.span = name, dtype, tuple(shape), span

    @property
    def size(self):
        return math.prod(self.shape)


class Region:
    """A piece of each program's part of the output: where, what, and for what is not exact where the bounds are."""

    def __init__(self, first, dtype, count, bound=None):
        self.first, self.dtype, self.count, self.bound = first, dtype, count, bound


class Builder:
    """The text of kernel `name`. `plant` names a defect that the text is to have (PLANTS in random_kernels.py); all else is as without it."""

    def __init__(self, name, rng, plant=None):
        self.name, self.rng, self.plant, self.planted, self.count, self.depth = name, rng, plant, False, 0, 1
        self.lines, self.values, self.regions, self.arguments, self.used = [], [], [], {}, []
        self.n, self.warps = rng.randint(0, 40), rng.choice((1, 1, 2, 4))
        self.shifted = {dtype: rng.random() < 0.2 for dtype in (*INTEGERS, *FLOATS)}
        self.stored = self.window = 0
        self.loops = 0
        self.line("pid = tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)")
        self.line("zero = pid * 0")
        self.scalars = [Value(one, "i32", ()) for one in ("pid", "(n + zero)", "tl.program_id(0)")]

    # Text

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def block(self, head):
        """Lines under `head`; what they make is seen in them alone."""
        self.line(head)
        values, scalars = list(self.values), list(self.scalars)
        self.depth += 1
        yield
        self.depth -= 1
        self.values, self.scalars = values, scalars

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def make(self, text, dtype, shape, span=None):
        value = Value(self.fresh(), dtype, shape, span)
        self.line(f"{value.name} = {text}")
        return value

    def keep(self, value):
        if value.shape:
            self.values.append(value)
        elif value.dtype in INTEGERS:
            self.scalars.append(value)
        elif not self.loops:
            self.store(value)
        return value

    def argument(self, name):
        self.arguments[name] = None
        return name

    def defect(self, name):
        """Whether the text is to have this defect here."""
        self.used.append(name)
        if self.plant == name:
            self.planted = True
        return self.plant == name

    def text(self):
        arguments = ", ".join([*self.arguments, "n", "big"])
        return f"@triton.jit\ndef {self.name}({arguments}):\n" + "\n".join(self.lines) + "\n"

    # Choosing

    def shape(self, limit=MAX_ELEMENTS, rank=None):
        rank = rank or self.rng.choice((1, 1, 2, 2, 2, 3))
        while True:
            shape = tuple(self.rng.choice(EXTENTS) for _ in range(rank))
            if 2 <= math.prod(shape) <= limit:
                return shape

    def some(self, dtypes=None, condition=lambda v: True, shape=None):
        """A block of one of these types, a late one if there is; another is loaded or made of one that is there."""
        dtypes = dtypes or (*INTEGERS, *FLOATS)
        right = [v for v in self.values if v.dtype in dtypes and condition(v) and (shape is None or v.shape == shape)]
        if right and self.rng.random() < 0.85:
            return self.rng.choice(right[-6:])
        return self.load(self.rng.choice(dtypes), shape or self.shape())

    def like(self, x, dtype=None):
        """A block of the shape of `x`."""
        dtype = dtype or x.dtype
        same = [v for v in self.values if v.shape == x.shape and v.dtype == dtype and v is not x]
        choice = self.rng.random()
        if same and choice < 0.5:
            return self.rng.choice(same)
        if choice < 0.7 and dtype in INTEGERS:
            text = self.index(self.rng.randrange(len(x.shape)), x.shape) if choice < 0.6 else self.rng.choice(self.scalars).name
            return self.make(f"tl.zeros({self.listed(x.shape)}, {NAMES[dtype]}) + ({text}).to({NAMES[dtype]})", dtype, x.shape)
        return self.load(dtype, x.shape)

    def listed(self, shape):
        return f"[{', '.join(map(str, shape))}]"

    def condition(self, x):
        """The text of a mask of the shape of `x`, whose type has an order."""
        y, name = self.like(x).name, self.rng.choice(("<", "<=", ">", ">=", "==", "!="))
        text = f"({x.name} {name} {y})"
        if self.rng.random() < 0.2:
            text = f"({text} {self.rng.choice('&|^')} ({self.index(0, x.shape)} % 3 != 1))"
        return text

    # Places

    def index(self, dim, shape, first=0):
        """The text of a dimension's numbers."""
        expanded = ", ".join(":" if d == dim else "None" for d in range(len(shape)))
        return f"tl.arange({first}, {first + shape[dim]})" + (f"[{expanded}]" if len(shape) > 1 else "")

    def place(self, shape, strides=None):
        strides = strides or [math.prod(shape[d + 1 :]) for d in range(len(shape))]
        return " + ".join(f"{self.index(d, shape)} * {s}" for d, s in enumerate(strides))

    def widened(self, text):
        """The same numbers with 64 bits, on the way there perhaps such that 32 do not hold."""
        choice = self.rng.random()
        if choice < 0.6:
            return text
        if choice < 0.8:
            return f"({text}).to(tl.int64)"
        return f"(({text}).to(tl.int64) + big - {BIG})" if choice < 0.9 else f"(({text}).to(tl.int64) * big // {BIG})"

    # Memory that is read

    def load(self, dtype, shape):
        """By strides of any order with gaps, under masks along some dimensions."""
        if dtype in EIGHT:
            raw = self.load("u8", shape)
            return self.make(f"{raw.name}.to({NAMES[dtype]}, bitcast=True)", dtype, shape)
        order = self.rng.sample(range(len(shape)), len(shape)) if self.rng.random() < 0.3 else list(reversed(range(len(shape))))
        strides, stride = [0] * len(shape), 1
        for dim in order:
            strides[dim] = stride
            stride *= shape[dim] + (self.rng.choice((0, 0, 0, 1, 3)) if stride * (shape[dim] + 3) < INPUT // 2 else 0)
        first = self.rng.choice((0, 0, 1, 4, 16))
        pointer = self.argument(f"x_{dtype}")
        at = f"{pointer} + {self.widened(f'{self.place(shape, strides)} + {first}')}"
        if self.rng.random() < 0.1:
            at = f"({pointer} + big) + (({self.place(shape, strides)} + {first}).to(tl.int64) - {BIG})"
        mask = ""
        if self.rng.random() < 0.4:
            tests = []
            for dim in range(len(shape)):
                if not tests or self.rng.random() < 0.3:
                    limit, index = self.rng.choice(("n", str(self.rng.randint(0, shape[dim] + 16)))), self.index(dim, shape)
                    choice = self.rng.random()
                    if choice < 0.3:
                        # A mask of 64 bits, of which the lower 32 say something else.
                        wide = f"({index}).to(tl.int64) + big"
                        tests.append(f"(({wide}).to(tl.int32) < {limit} - 3)" if self.defect("wide mask") else f"({wide} < big + {limit})")
                    else:
                        tests.append(f"({index} < {limit})")
            other = self.rng.choice((", other=0", f", other={self.rng.randint(0, 9)}", ""))
            mask = f", mask={' & '.join(tests)}{other}"
        return self.make(f"tl.load({at}{mask})", dtype, shape, GIVEN.get(dtype))

    # Memory that is written

    def room(self, dtype, count):
        """The first element of a new piece of this type, or None."""
        size = BITS[dtype] // 8
        first = -(-self.stored // 16) * 16
        if first + size * count > PART:
            return None
        self.stored = first + size * count
        return first // size

    def output(self, dtype, first):
        """The text of a pointer to an element of the program's part."""
        return f"{self.argument(f'y_{dtype}')} + pid * {PART * 8 // BITS[dtype]} + {first}"

    def store(self, value):
        """To a piece of its own: by strides, or in an order that a factor gives; perhaps under a mask."""
        dtype, shape, name = value.dtype, value.shape or (1,), value.name
        if dtype in EIGHT:
            dtype, name = "u8", f"{name}.to(tl.uint8, bitcast=True)"
        elif dtype == "i1":
            dtype, name = "i8", f"{name}.to(tl.int8)"
        first = self.room(dtype, math.prod(shape))
        if first is None:
            return
        self.regions.append(Region(first * BITS[dtype] // 8, value.dtype if value.dtype in EIGHT else dtype, math.prod(shape)))
        if not value.shape:
            return self.line(f"tl.store({self.output(dtype, first)}, {name})")
        place, mask, size = self.place(shape), "", value.size
        if self.rng.random() < 0.3:
            factor = next(f for f in (7, 11, 13, 1) if math.gcd(f, size) == 1)
            place = f"(({place}) * {factor}) % {size}"
        if self.rng.random() < 0.4:
            dim = self.rng.randrange(len(shape))
            limit = self.rng.choice(("n", str(self.rng.randint(0, shape[dim]))))
            mask = f", mask=({self.index(dim, shape)} < {limit}) & ({place} >= 0)"
        self.line(f"tl.store({self.output(dtype, first)} + {self.widened(place)}, {name}{mask})")

    def store_near(self, text, bound, shape, dtype="f32"):
        """Numbers that devices round differently, and how far they may be from what is right."""
        regions = [self.room(one, math.prod(shape)) for one in (dtype, "f32")]
        if None in regions:
            return
        self.regions.append(Region(regions[0] * BITS[dtype] // 8, dtype, math.prod(shape), regions[1] * 4))
        where = f" + {self.place(shape)}" if shape else ""
        self.line(f"tl.store({self.output(dtype, regions[0])}{where}, {text})")
        self.line(f"tl.store({self.output('f32', regions[1])}{where}, ({bound}).to(tl.float32))")
