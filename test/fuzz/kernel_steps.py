"""Steps of random Triton kernels that compute: each takes blocks that are there and leaves others. kernel_memory.py has those that change memory, and control."""

from kernel_builder import BITS, EIGHT, FLOATS, INTEGERS, LEAST, MANTISSA, MAX_ELEMENTS, NAMES, NAN, Builder

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")


class Steps(Builder):
    # Integers

    def arithmetic(self):
        x = self.some(INTEGERS)
        y = self.like(x)
        name = self.rng.choice(("+", "-", "*", "&", "|", "^"))
        text = f"{x.name} {name} {y.name}"
        if self.rng.random() < 0.2:
            text = f"tl.{self.rng.choice(('minimum', 'maximum'))}({x.name}, {y.name})"
        if self.rng.random() < 0.1:
            text = f"{x.name} {name} {self.rng.choice(self.scalars).name}"
        self.keep(self.make(f"({text}).to({NAMES[x.dtype]})", x.dtype, x.shape))

    def mixed(self):
        """Arithmetic of two types, by the rules of the language."""
        x = self.some(INTEGERS)
        y, to = self.like(x, self.rng.choice(INTEGERS)), self.rng.choice(INTEGERS)
        self.keep(self.make(f"({x.name} {self.rng.choice('+-*&|^')} {y.name}).to({NAMES[to]})", to, x.shape))

    def unary(self):
        x = self.some(SIGNED)
        self.keep(self.make(self.rng.choice((f"-{x.name}", f"~{x.name}", f"tl.where({x.name} > 0, tl.abs({x.name}), {x.name})")), x.dtype, x.shape))

    def shift(self):
        x = self.some(INTEGERS)
        most = BITS[x.dtype] - 1
        by = str(self.rng.randint(0, most)) if self.rng.random() < 0.6 else f"({self.like(x).name} & {most})"
        self.keep(self.make(f"({x.name} {self.rng.choice(('<<', '>>'))} {by}).to({NAMES[x.dtype]})", x.dtype, x.shape))

    def divide(self):
        """Never by zero, nor the least number by -1."""
        x = self.some(INTEGERS)
        by = f"(({self.like(x).name} & 31) + 1)" if self.rng.random() < 0.6 else str(self.rng.choice((1, 3, 8, 100)))
        if x.dtype[0] == "i" and self.rng.random() < 0.3:
            by = f"(-2 - ({self.like(x).name} & 31))"
        self.keep(self.make(f"({x.name} {self.rng.choice(('//', '%'))} {by}).to({NAMES[x.dtype]})", x.dtype, x.shape))

    def high(self):
        x = self.some(("i32", "u32", "u64"))
        self.keep(self.make(f"tl.umulhi({x.name}, {self.like(x).name})", x.dtype, x.shape))

    def cast(self):
        x, to = self.some(INTEGERS), self.rng.choice(INTEGERS)
        self.keep(self.make(f"{x.name}.to({NAMES[to]})", to, x.shape))

    def select(self):
        x = self.some((*INTEGERS, *FLOATS))
        y = self.like(x)
        span = self.joined(x, y)
        self.keep(self.make(f"tl.where({self.condition(self.some((*INTEGERS, *FLOATS), shape=x.shape))}, {x.name}, {y.name})", x.dtype, x.shape, span))

    # Floats

    @staticmethod
    def joined(x, y):
        return (min(x.span[0], y.span[0]), max(x.span[1], y.span[1])) if x.span and y.span else None

    def numbers(self, dtypes=FLOATS, shape=None):
        return self.some(dtypes, lambda v: v.span[0] > LEAST[v.dtype] and v.span[1] < 100, shape)

    @staticmethod
    def apart(text, dtype):
        """A product or a dot of which a sum does not see that it is one: AMD's devices would round product and sum at once, and Triton has the sum begin with what is
        added to a dot."""
        bits = f"tl.int{BITS[dtype]}"
        return f"(({text}).to({bits}, bitcast=True) ^ (pid >> 20).to({bits})).to({NAMES[dtype]}, bitcast=True)"

    def floats(self):
        x = self.numbers()
        y, name = self.like(x), self.rng.choice("+-*")
        low, most = (min(x.span[0], y.span[0]), max(x.span[1], y.span[1]) + 1) if name != "*" else (x.span[0] + y.span[0], x.span[1] + y.span[1])
        if low < LEAST[x.dtype] or most > 120 or x.name == y.name:
            return self.edge(x, y)
        text = f"{x.name} {name} {y.name}"
        if name == "*":
            text = self.apart(text, x.dtype)
        self.keep(self.make(text, x.dtype, x.shape, (low, most)))

    def edge(self, x=None, y=None):
        """Smaller and larger ones, as C has them or such that NaN goes on; what is whole; what has no sign."""
        x = x or self.numbers()
        y = y or self.like(x)
        every = self.rng.choice(("", ", propagate_nan=tl.PropagateNan.ALL"))
        name = self.rng.choice(("minimum", "maximum", "abs", "floor", "ceil", "clamp"))
        if name in ("floor", "ceil") and x.dtype not in ("f32", "f64"):
            name = "abs"
        if name == "clamp" and x.dtype == "bf16":
            name = "minimum"
        # Triton 3.6 makes f32 of bf16 here, and of f16 beside constants.
        narrow = f".to({NAMES[x.dtype]})" if BITS[x.dtype] < 32 else ""
        if name == "clamp":
            return self.keep(self.make(f"tl.clamp({x.name}, -3.0, 5.5{every}){narrow}", x.dtype, x.shape, (min(x.span[0], -1), x.span[1])))
        if name in ("minimum", "maximum"):
            return self.keep(self.make(f"tl.{name}({x.name}, {y.name}{every}){narrow}", x.dtype, x.shape, self.joined(x, y)))
        self.keep(self.make(f"tl.{name}({x.name})", x.dtype, x.shape, x.span if name == "abs" else (0, max(x.span[1], 1))))

    def exact_division(self):
        x = self.numbers(("f32", "f64"))
        text = self.rng.choice((f"tl.div_rn({x.name}, {self.like(x).name})", f"tl.sqrt_rn(tl.abs({x.name}))")) if x.dtype == "f32" else f"{x.name} / {self.like(x).name}"
        if x.span[0] < -40 and x.dtype == "f32":
            return self.edge(x)
        made = self.make(text, x.dtype, x.shape, (-200, 200))  # further arithmetic would leave what is exact
        self.store(made)

    def narrowed(self):
        """Floats of a type as those of a narrower one, rounded once."""
        x = self.numbers(("f64", "f64", "f32", "bf16", "f16"))
        to = self.rng.choice([one for one in ("f32", "f16", "bf16", *EIGHT) if BITS[one] < BITS[x.dtype] or {one, x.dtype} == {"f16", "bf16"}])
        if to in ("f32", "bf16") and x.span[0] < -126:
            return self.edge(x)
        rounding = ', fp_downcast_rounding="rtz"' if self.rng.random() < 0.15 and BITS[to] < BITS[x.dtype] else ""
        text = f"{x.name}.to({NAMES[to]}{rounding})"
        if x.dtype == "f64" and to != "f32" and not rounding and self.defect("double rounding"):
            text = f"{x.name}.to(tl.float32).to({NAMES[to]})"
        made = self.make(text, to, x.shape, (max(x.span[0], -24) if to == "f16" else x.span[0], x.span[1]) if to in FLOATS else None)
        self.keep(made)
        if self.rng.random() < 0.4:
            self.store(made)

    def extended(self):
        """The other way round, which loses nothing."""
        x = self.some(("f16", "bf16", "f32", *EIGHT))
        to = self.rng.choice([one for one in FLOATS if BITS[one] > BITS[x.dtype]] or ["f64"])
        self.keep(self.make(f"{x.name}.to({NAMES[to]})", to, x.shape, x.span or (-17, 16)))

    def of_integers(self):
        x = self.some(INTEGERS)
        to = self.rng.choice(("f32", "f64", "f16", "bf16"))
        text = x.name if to in ("f32", "f64") else f"({x.name} & 0xff)" if to == "f16" and BITS[x.dtype] > 8 else x.name
        self.keep(self.make(f"({text}).to({NAMES[to]})", to, x.shape, (0, 64)))

    def to_integers(self):
        """The number within the range of a type; NaN is zero."""
        x, to = self.numbers(), self.rng.choice(("i8", "i16", "i32", "i64", "u8", "u16", "u32"))
        low, high = (0.0, 200.0) if to[0] == "u" else (-100.0, 100.0)
        whole = f"tl.where({x.name} == {x.name}, {x.name}, 0.0).to({NAMES[x.dtype]})"
        self.keep(self.make(f"tl.minimum(tl.maximum({whole}, {low}), {high}).to({NAMES[to]})", to, x.shape))

    def bits(self):
        """Bits of floats as integers: of any NaN the same, of zero without its sign."""
        x = self.some(FLOATS)
        to = f"i{BITS[x.dtype]}"
        raw = f"{x.name}.to({NAMES[to]}, bitcast=True)"
        self.keep(self.make(f"tl.where({x.name} != {x.name}, {NAN}, tl.where({x.name} == 0, 0, {raw})).to({NAMES[to]})", to, x.shape))

    # Operations that devices round differently

    def near(self):
        x = self.numbers(("f32",), shape=self.rng.choice(self.values[-3:]).shape)
        small = f"tl.clamp(tl.where({x.name} == {x.name}, {x.name}, 0.5), -8.0, 8.0)"
        above = f"(tl.abs({small}) + 0.25)"
        # In units of the last place at the result (2^-23 of it at most): Vulkan's limits, and twice that.
        text, bound = self.rng.choice(
            (
                (f"tl.exp({small})", lambda r: f"tl.abs({r}) * {(3 + 2 * 8) * 2.0**-22}"),
                (f"tl.exp2({small})", lambda r: f"tl.abs({r}) * {(3 + 2 * 8) * 2.0**-22}"),
                (f"tl.log({above})", lambda r: f"tl.abs({r}) * {3 * 2.0**-22} + {2.0**-20}"),
                (f"tl.log2({above})", lambda r: f"tl.abs({r}) * {3 * 2.0**-22} + {2.0**-20}"),
                (f"tl.sin({small})", lambda r: f"tl.abs({r}) * 0 + {2.0**-20}"),
                (f"tl.cos({small})", lambda r: f"tl.abs({r}) * 0 + {2.0**-20}"),
                (f"tl.sqrt({above})", lambda r: f"tl.abs({r}) * {5 * 2.0**-22}"),
                (f"tl.rsqrt({above})", lambda r: f"tl.abs({r}) * {3 * 2.0**-22}"),
                (f"{small} / {above}", lambda r: f"tl.abs({r}) * {3 * 2.0**-22}"),
                (f"tl.erf({small})", lambda r: f"tl.abs({r}) * 0 + {2.0**-20}"),
                (f"tl.fma({small}, {above}, {small})", lambda r: f"tl.abs({r}) * {2.0**-23} + tl.abs({small} * {above}) * {2.0**-23}"),
            )
        )
        result = self.make(text, "f32", x.shape)
        self.store_near(result.name, bound(result.name), x.shape)

    def near_sum(self):
        """A float sum in any order: each of the additions rounds at most the sum of sizes."""
        x = self.numbers(("f32", "f64"))
        finite = self.make(f"tl.clamp(tl.where({x.name} == {x.name}, {x.name}, 0.5), -1000.0, 1000.0)", x.dtype, x.shape)
        axis = self.rng.randrange(len(x.shape))
        shape, unit = x.shape[:axis] + x.shape[axis + 1 :], 2.0 ** -MANTISSA[x.dtype]
        self.store_near(f"tl.sum({finite.name}, {axis})", f"tl.sum(tl.abs({finite.name}), {axis}) * {x.shape[axis] * unit}", shape, x.dtype)

    # Movement

    def reshape(self):
        x = self.some()
        rest, shape = x.size, []
        while rest > 1 and len(shape) < 3:
            extent = 1 << self.rng.randint(1, min(rest.bit_length() - 1, 7))
            shape.append(extent)
            rest //= extent
        if rest > 1 or not shape:
            shape.append(rest)
        self.rng.shuffle(shape)
        self.keep(self.make(f"tl.reshape({x.name}, {self.listed(shape)})", x.dtype, shape, x.span))

    def permute(self):
        x = self.some(condition=lambda v: len(v.shape) > 1)
        order = self.rng.sample(range(len(x.shape)), len(x.shape))
        self.keep(self.make(f"tl.permute({x.name}, {order})", x.dtype, [x.shape[d] for d in order], x.span))

    def broadcast(self):
        x = self.some()
        dim, extent = self.rng.randint(0, len(x.shape)), self.rng.choice((2, 4, 8, 16))
        if x.size * extent > MAX_ELEMENTS or len(x.shape) > 2:
            return self.reduce()
        shape = (*x.shape[:dim], extent, *x.shape[dim:])
        self.keep(self.make(f"tl.broadcast_to(tl.expand_dims({x.name}, {dim}), {self.listed(shape)})", x.dtype, shape, x.span))

    def join(self):
        x = self.some()
        if x.size * 2 > MAX_ELEMENTS or len(x.shape) > 2:
            return self.split()
        y = self.like(x)
        self.keep(self.make(f"tl.join({x.name}, {y.name})", x.dtype, (*x.shape, 2), self.joined(x, y)))

    def split(self):
        pairs = [v for v in self.values if len(v.shape) > 1 and v.shape[-1] == 2]
        if not pairs:
            return self.reduce()
        x = self.rng.choice(pairs)
        names = self.fresh(), self.fresh()
        self.line(f"{names[0]}, {names[1]} = tl.split({x.name})")
        for name in names:
            self.keep(type(x)(name, x.dtype, x.shape[:-1], x.span))

    def cat(self):
        x = self.some(condition=lambda v: len(v.shape) == 1 and v.size * 2 <= MAX_ELEMENTS, shape=(self.rng.choice((16, 64)),))
        y, name = self.like(x), self.rng.choice(("cat", "interleave"))
        self.keep(self.make(f"tl.{name}({x.name}, {y.name}{', can_reorder=True' if name == 'cat' else ''})", x.dtype, (x.size * 2,), self.joined(x, y)))

    def gather(self):
        x = self.some()
        axis = self.rng.randrange(len(x.shape))
        index = self.like(x, "i32")
        self.keep(self.make(f"tl.gather({x.name}, {index.name} & {x.shape[axis] - 1}, {axis})", x.dtype, x.shape, x.span))

    def histogram(self):
        x, bins = self.some(("i32",)), self.rng.choice((16, 64))
        flat = self.make(f"tl.reshape({x.name}, {self.listed((x.size,))}) & {2 * bins - 1}", "i32", (x.size,))
        mask = f", mask={self.condition(flat)}" if self.rng.random() < 0.4 else ""
        self.keep(self.make(f"tl.histogram({flat.name}, {bins}{mask})", "i32", (bins,)))

    def order(self):
        """Sorted, or turned round."""
        x = self.some(("i16", "i32", "i64", "u32"))
        if self.rng.random() < 0.5 or x.size > 256:
            return self.keep(self.make(f"tl.flip({x.name}, {self.rng.randrange(len(x.shape))})", x.dtype, x.shape))
        self.keep(self.make(f"tl.sort({x.name}, descending={self.rng.random() < 0.5})", x.dtype, x.shape))

    # Lines

    def reduce(self):
        x = self.some(INTEGERS)
        axis = self.rng.randrange(len(x.shape))
        name = self.rng.choice(("sum", "max", "min", "xor_sum"))
        text = f"tl.{name}({x.name}, {axis})"
        if self.rng.random() < 0.15:
            return self.keep(self.make(f"tl.{name}({x.name}).to({NAMES[x.dtype]})", x.dtype, ()))
        if x.size <= 128 and self.rng.random() < 0.3:
            text = f"tl.reduce({x.name}, {axis}, {self.rng.choice(('combine_product', 'combine_odd'))})"
        self.keep(self.make(f"{text}.to({NAMES[x.dtype]})", x.dtype, x.shape[:axis] + x.shape[axis + 1 :]))

    def extreme(self):
        """The maximum or minimum of floats, which passes over NaN."""
        x = self.some(("f16", "f32", "f64"))
        axis, name = self.rng.randrange(len(x.shape)), self.rng.choice(("max", "min"))
        self.keep(self.make(f"tl.{name}({x.name}, {axis}).to({NAMES[x.dtype]})", x.dtype, x.shape[:axis] + x.shape[axis + 1 :], x.span))

    def place_of_extreme(self):
        """The first place of the largest or smallest, with it or alone."""
        x = self.some(("i8", "i16", "i32", "i64", "u32"))
        axis, name = self.rng.randrange(len(x.shape)), self.rng.choice(("max", "min"))
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        if self.rng.random() < 0.5:
            return self.keep(self.make(f"tl.arg{name}({x.name}, {axis})", "i32", shape))
        names = self.fresh(), self.fresh()
        self.line(f"{names[0]}, {names[1]} = tl.{name}({x.name}, {axis}, return_indices=True)")
        self.keep(self.make(f"{names[0]}.to({NAMES[x.dtype]})", x.dtype, shape))
        self.keep(self.make(f"{names[1]}.to(tl.int32)", "i32", shape))

    def scan(self):
        x = self.some(INTEGERS)
        axis, reverse = self.rng.randrange(len(x.shape)), self.rng.random() < 0.5
        choice = self.rng.random()
        if choice < 0.5 or x.size > 128:
            name = self.rng.choice(("cumsum", "cumprod"))
            return self.keep(self.make(f"tl.{name}({x.name}, {axis}, reverse={reverse}).to({NAMES[x.dtype]})", x.dtype, x.shape))
        if choice < 0.75:
            return self.keep(self.make(f"tl.associative_scan({x.name}, {axis}, combine_larger, reverse={reverse})", x.dtype, x.shape))
        # s = f s' + x, whose composition does not commute.
        f, names = self.like(x), (self.fresh(), self.fresh())
        self.line(f"{names[0]}, {names[1]} = tl.associative_scan(({f.name}, {x.name}), {axis}, combine_recurrence, reverse={reverse})")
        for name in names:
            self.keep(self.make(f"{name}.to({NAMES[x.dtype]})", x.dtype, x.shape))

    # Products

    def operand(self, dtype, shape, source=None):
        """Small whole numbers, of which every sum is exact."""
        x = source or self.some(INTEGERS, shape=shape)
        small = f"(({x.name} & 15).to(tl.int8) - 7)"
        if dtype == "i8":
            return f"{small}.to(tl.int8)"
        return f"{small}.to(tl.float32).to({NAMES[dtype]})"

    def dot(self):
        m, n, k = (self.rng.choice((16, 16, 32)) for _ in range(3))
        batch = (2,) if self.rng.random() < 0.15 and m * n * 2 <= MAX_ELEMENTS else ()
        dtype = self.rng.choice(("f16", "f16", "bf16", "f32", "i8", "f8e5", "f8e4"))
        a, b = (self.make(self.operand(dtype, shape), dtype, shape) for shape in ((*batch, m, k), (*batch, k, n)))
        acc, shape = "i32" if dtype == "i8" else "f32", (*batch, m, n)
        precision = ', input_precision="ieee"' if dtype == "f32" else ""
        text = f"tl.dot({a.name}, {b.name}{precision}{', out_dtype=tl.int32' if dtype == 'i8' else ''})"
        if self.rng.random() < 0.4:
            c = self.make(f"(tl.zeros({self.listed(shape)}, tl.int32) + {self.place(shape)}).to({NAMES[acc]})", acc, shape)
            text = f"tl.dot({a.name}, {b.name}, {c.name}{precision}{', out_dtype=tl.int32' if dtype == 'i8' else ''})"
        made = self.make(self.apart(text, acc) if acc == "f32" else text, acc, shape, (0, 24))
        self.keep(made)
        if acc == "f32" and self.rng.random() < 0.6:
            self.keep(self.make(f"{made.name}.to(tl.int32)", "i32", shape))

    def called(self):
        """A function of the file, which is inlined, or not."""
        x = self.some(("i32", "i64"))
        name = self.rng.choice(("mixed_up", "mixed_apart"))
        if name == "mixed_apart":
            s = self.rng.choice(self.scalars).name
            return self.keep(self.make(f"({x.name} + mixed_apart(({s} + zero).to(tl.int32), 3)).to({NAMES[x.dtype]})", x.dtype, x.shape))
        self.keep(self.make(f"mixed_up({x.name}, {self.like(x).name}, {self.rng.randint(0, 3)}).to({NAMES[x.dtype]})", x.dtype, x.shape))


COMPUTING = dict(arithmetic=4, mixed=2, unary=1, shift=1.5, divide=1, high=0.7, cast=2, select=2, floats=4, edge=2, exact_division=0.7, narrowed=3, extended=2, of_integers=1.5)
COMPUTING |= dict(to_integers=1.5, bits=1, near=0.8, near_sum=0.6, reshape=1.5, permute=1.5, broadcast=1.5, join=0.7, split=0.7, cat=0.7, gather=1, histogram=0.5, order=0.5)
COMPUTING |= dict(reduce=2, extreme=1, place_of_extreme=0.7, scan=1.5, dot=1.5, called=0.7)
assert all(hasattr(Steps, name) for name in COMPUTING)
