"""Steps of random programs on numbers at the edges: f64 and its conversions, infinities, NaN and -0, powers, clamped loads, negative and huge strides.

What a step leaves are blocks of i32 again, of bits that are exact: a conversion's, those of one operation on f64, what kind of number a power is."""

import numpy as np

from program_builder import FAR_ROWS, mlir_type

# Bits of the mantissa, of the whole, the smallest exponent of a normal number, the code of infinity (NaN where there is none), exponents to draw from.
FORMATS = {
    "f16": (10, 16, -14, 0x7C00, (-26, 17)),
    "bf16": (7, 16, -126, 0x7F80, (-120, 127)),
    "f8E5M2": (2, 8, -14, 0x7C, (-18, 17)),
    "f8E4M3FN": (3, 8, -6, 0x7F, (-11, 10)),
    "f32": (23, 32, -126, 0x7F800000, (-120, 127)),
}
# The types without infinity and -0, whose only NaN is -0's code; callers take care of numbers that are too large.
FNUZ = {"f8E5M2FNUZ": (2, 8, -15, 0x80), "f8E4M3FNUZ": (3, 8, -7, 0x80)}
NAN = 0x1234  # what stands for any NaN
SPECIALS = {"0": 0, "-0": 1 << 63, "inf": 0x7FF << 52, "-inf": 0xFFF << 52, "nan": 0x7FF8 << 48}
FAR_COLUMNS = 16


def far_stride(target):
    """Elements between rows: on a device whose memory is mapped as it is touched more than 32 bits of bytes reach in a block; lavapipe has 2 GiB."""
    return 1000 if target.startswith("vulkan") else 200_000_001


def code_of(x, dtype):
    """The bits of f64 rounded to a type, ties to even; too large is infinity, or NaN where there is none."""
    mantissa, bits, least, infinity, *_ = (FORMATS | FNUZ)[dtype]
    size = np.abs(x)
    place = np.maximum(np.where(size > 0, np.frexp(size)[1] - 1, least), least)
    with np.errstate(invalid="ignore", over="ignore"):
        units = np.rint(np.ldexp(size, mantissa - place))
    # 2^mantissa of normal numbers is the implicit one; carries go into the exponent.
    code = np.where(np.isfinite(x), units, 0).astype(np.int64) + (np.where(np.isfinite(x), place - least, 0).astype(np.int64) << mantissa)
    code = np.where(np.isinf(x), infinity, np.minimum(code, infinity))
    has_sign = np.signbit(x) & ((code != 0) | (dtype not in FNUZ))
    return np.where(np.isnan(x) | (code == 0x7F) & (dtype == "f8E4M3FN"), NAN, code | has_sign.astype(np.int64) << (bits - 1))


class Numbers:
    """Mixed into a Builder."""

    uses_far = False

    def wide_constant(self, value, shape, dtype):
        return self.constant(value - (1 << 64) if value >= 1 << 63 else value, shape, dtype)

    def doubles_of(self, x, exponents, mantissa):
        """f64 from i32: of some exponents, with few bits of mantissa and then the next number below or above; some are special."""
        shape = x.shape
        wide = lambda v: self.cast("extsi", v, "i64")  # noqa: E731
        shifted = lambda v, by: self.elementwise("arith.shli", v, self.constant(by, shape, "i64"), np.left_shift)  # noqa: E731
        add = lambda a, b: self.elementwise("arith.addi", a, b, np.add)  # noqa: E731
        bits = shifted(wide(self.small(x, 1023 + exponents[0], 1023 + exponents[1])), 52)
        bits = add(bits, shifted(wide(self.wrapped(self.like(x), 1 << min(mantissa + 2, 20))), 52 - min(mantissa + 2, 20)))
        bits = add(bits, wide(self.small(self.like(x), -1, 1)))
        sign = shifted(wide(self.wrapped(self.like(x), 2)), 63)
        bits = self.elementwise("arith.ori", bits, sign, np.bitwise_or)
        if self.rng.random() < 0.5:
            special = self.wide_constant(SPECIALS[self.rng.choice(list(SPECIALS))], shape, "i64")
            mask = self.condition(x)
            bits = self.op(f"arith.select {mask.name}, {special.name}, {bits.name} : {mask.type}, {bits.type}", (mask, special, bits), shape, "i64", np.where)
        return self.cast("bitcast", bits, "f64", lambda a: a.view(np.float64))

    def canonical(self, bits, numbers):
        """i32 bits, with one NaN."""
        shape = bits.shape
        nan = self.elementwise("arith.cmpf uno,", numbers, numbers, lambda a, b: np.isnan(a), "i1")
        one = self.constant(NAN, shape)
        return self.keep(self.op(f"arith.select {nan.name}, {one.name}, {bits.name} : {nan.type}, {bits.type}", (nan, one, bits), shape, "i32", np.where))

    def narrowed(self):
        """f64 to a narrower type."""
        x, dtype = self.block(), self.rng.choice(list(FORMATS))
        mantissa, width, _, _, exponents = FORMATS[dtype]
        numbers = self.doubles_of(x, exponents, mantissa)
        name, made = numbers.name, f"%{self.name}_{self.count}"
        self.count += 2
        integer = f"tensor<{'x'.join(map(str, x.shape))}xi{width}>"
        self.lines.append(f"{made}n = arith.truncf {name} : {numbers.type} to {integer.replace(f'xi{width}', 'x' + dtype)}")
        self.lines.append(f"{made}b = arith.bitcast {made}n : {integer.replace(f'xi{width}', 'x' + dtype)} to {integer}")
        text = f"arith.extui {made}b : {integer} to {x.type}" if width < 32 else f"arith.addi {made}b, {self.constant(0, x.shape).name} : {x.type}"
        is_twice = dtype != "f32" and self.defect("double rounding")
        code = self.op(text, (numbers,), x.shape, "i32", lambda a: code_of(a.astype(np.float32).astype(np.float64) if is_twice else a, dtype))
        # Types without infinity have NaN where others have that; any NaN is one.
        if dtype == "f8E4M3FN":
            size = self.elementwise("arith.andi", code, self.constant(0x7F, x.shape), np.bitwise_and)
            mask = self.elementwise("arith.cmpi eq,", size, self.constant(0x7F, x.shape), np.equal, "i1")
            mask_or_known = lambda m, one, c: np.where(m | (c == NAN), one, c)  # noqa: E731
            one = self.constant(NAN, x.shape)
            self.keep(self.op(f"arith.select {mask.name}, {one.name}, {code.name} : {mask.type}, {code.type}", (mask, one, code), x.shape, "i32", mask_or_known))
        else:
            self.canonical(code, numbers)

    def double(self):
        """One operation on f64, or a conversion to it and back."""
        x = self.block()
        a, b = (self.doubles_of(v, (-60, 60), 18) for v in (x, self.like(x)))
        name, compute = self.rng.choice((("addf", np.add), ("subf", np.subtract), ("mulf", np.multiply), ("divf", np.divide)))
        made = self.elementwise(f"arith.{name}", a, b, compute)
        bits = self.cast("bitcast", made, "i64", lambda v: v.view(np.int64))
        if self.rng.random() < 0.5:
            bits = self.elementwise("arith.shrui", bits, self.constant(32, x.shape, "i64"), lambda v, by: v.astype(np.uint64) >> by.astype(np.uint64))
        self.canonical(self.cast("trunci", bits, "i32"), made)

    def edges(self, x, high):
        """f32 that are halves of small numbers, and some special ones."""
        number = self.elementwise("arith.mulf", self.cast("sitofp", self.small(x, -high, high), "f32"), self.constant(0.5, x.shape, "f32"), np.multiply)
        for special in self.rng.sample((0x7F800000, -0x800000, 0x7FC00000, -0x80000000, 0x3F800000, -0x40800000), 2):
            bits = self.constant(special, x.shape)
            value = self.cast("bitcast", bits, "f32", lambda a: a.view(np.float32))
            mask = self.condition(x)
            number = self.op(f"arith.select {mask.name}, {value.name}, {number.name} : {mask.type}, {number.type}", (mask, value, number), x.shape, "f32", np.where)
        return number

    def power(self):
        """The kind of number that a power is (NaN, infinite, zero or another) and its sign."""
        x = self.block()
        base = self.edges(x, 3)
        exponent = self.edges(self.like(x), 6) if self.rng.random() < 0.6 else self.constant(self.rng.choice((2, -3, 0, 0.5, -2.5, 64, 65, 1e30, -1e30)), x.shape, "f32")
        is_never = self.defect("power")

        def power(a, e):
            right = np.power(a.astype(np.float64), e.astype(np.float64))
            return np.where(np.signbit(a) & (np.floor(e) != e), np.nan, right) if is_never else right

        made = self.elementwise("math.powf", base, exponent, power)
        sign = self.elementwise("arith.shrui", self.cast("bitcast", made, "i32", lambda a: a.view(np.int32)), self.constant(31, x.shape), lambda a, by: (a < 0).astype(np.int32))
        kind = sign
        for bound, weight in ((0.0, 2), (float("inf"), 4)):
            number = self.cast("bitcast", self.constant(0 if not bound else 0x7F800000, x.shape), "f32", lambda a: a.view(np.float32))
            size = self.op(f"math.absf {made.name} : {made.type}", (made,), x.shape, "f32", np.abs)
            equal = self.elementwise("arith.cmpf oeq,", size, number, np.equal, "i1")
            term = self.elementwise("arith.muli", self.cast("extui", equal, "i32"), self.constant(weight, x.shape), np.multiply)
            kind = self.elementwise("arith.addi", kind, term, np.add)
        self.canonical(kind, made)

    def clamped(self):
        """Beyond a bound the last element within."""
        shape = self.shape()
        strides = [1] * len(shape)
        for dim in reversed(range(len(shape) - 1)):
            strides[dim] = strides[dim + 1] * (shape[dim + 1] + 4)
        dims = sorted(self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))))
        bounds = [self.constant(self.rng.randint(1, shape[d] + 2)) for d in dims]
        zero = self.constant(0)
        text = f"greta_tile.load %x[{', '.join([zero.name] * len(shape))}] strides {strides} bounds {dims} ({', '.join(b.name for b in bounds)}) clamp {dims}"

        is_unbounded = self.defect("clamp")

        def step(launch):
            index = [np.arange(e).reshape([-1 if k == d else 1 for k in range(len(shape))]) for d, e in enumerate(shape)]
            for d, b in zip(dims, bounds) if not is_unbounded else ():
                index[d] = np.minimum(index[d], launch.values[b.name] - 1)
            return launch.x[np.broadcast_to(sum(i * s for i, s in zip(index, strides)), shape)]

        if (shape[0] + 4) * strides[0] < 1 << 12:
            self.keep(self.emit(f"{text} : !greta_tile.ptr<i32> -> {mlir_type(shape, 'i32')}", [(shape, "i32")], step))

    def reversed_load(self):
        """Some strides are negative."""
        shape = self.shape()
        strides = [1] * len(shape)
        for dim in reversed(range(len(shape) - 1)):
            strides[dim] = strides[dim + 1] * shape[dim + 1]
        first = 0
        for dim in self.rng.sample(range(len(shape)), self.rng.randint(1, len(shape))):
            first += (shape[dim] - 1) * strides[dim]
            strides[dim] = -strides[dim]
        base, zero = self.pointers("%x", self.constant(first)), self.constant(0)

        def step(launch):
            index = [np.arange(e).reshape([-1 if k == d else 1 for k in range(len(shape))]) for d, e in enumerate(shape)]
            return launch.x[np.broadcast_to(first + sum(i * s for i, s in zip(index, strides)), shape)]

        text = f"greta_tile.load {base}[{', '.join([zero.name] * len(shape))}] strides {strides} bounds [] : !greta_tile.ptr<i32> -> {mlir_type(shape, 'i32')}"
        self.keep(self.emit(text, [(shape, "i32")], step))

    def far(self):
        """Rows that lie gigabytes apart in scratch memory: stored by strides and loaded through pointers, or the other way round."""
        if self.uses_far:
            return
        self.uses_far = True
        shape = (FAR_ROWS, FAR_COLUMNS)
        x = self.load(shape)
        first = self.elementwise("arith.muli", self.scalars[4], self.constant(FAR_COLUMNS), np.multiply)
        wide = lambda v: self.cast("extsi", v, "i64")  # noqa: E731
        # The text has the stride of a target; what is computed does not depend on it.
        stride = self.op(f"arith.constant dense<@FAR@> : {mlir_type(shape, 'i64')}", (), shape, "i64", lambda: np.full(shape, 1 << 20))
        rows = self.elementwise("arith.muli", wide(self.iota(0, shape)), stride, np.multiply)
        columns = wide(self.elementwise("arith.addi", self.iota(1, shape), self.splat(first, shape), np.add))
        at = self.elementwise("arith.addi", rows, columns, np.add)
        pointers, base, zero = self.pointers("%far", at), self.pointers("%far", first), self.constant(0).name
        strided = f"{base}[{zero}, {zero}] strides [@FAR@, 1] bounds []"
        # With 32 bits a row is found where another is.
        is_near = self.defect("far rows")
        kept = lambda launch: launch.values[x.name][np.arange(FAR_ROWS) // 2 if is_near else slice(None)]  # noqa: E731
        nothing = lambda launch: ()  # noqa: E731
        if self.rng.random() < 0.5:
            self.emit(f"greta_tile.store {x.name}, {strided} : {x.type} -> !greta_tile.ptr<i32>", [], nothing)
            self.emit("greta_tile.barrier", [], nothing)
            made = self.emit(f"greta_tile.load_scattered {pointers} : {mlir_type(shape, '!greta_tile.ptr<i32>')} -> {x.type}", [(shape, "i32")], kept)
        else:
            self.emit(f"greta_tile.store_scattered {x.name}, {pointers} : {x.type} -> {mlir_type(shape, '!greta_tile.ptr<i32>')}", [], nothing)
            self.emit("greta_tile.barrier", [], nothing)
            made = self.emit(f"greta_tile.load {strided} : !greta_tile.ptr<i32> -> {x.type}", [(shape, "i32")], kept)
        self.keep(made)
