"""Elementwise work behind attention, which its kernel does (test_attention_epilogues.py): the functions, their inputs, and their definition in float64 NumPy.

A name is that of attention_ops.py with other first words, behind_KIND_.. with dynamic extents and behindsplit_KIND_.. with a static number of queries, whose keys are split over workgroups. KIND also says
what is behind: multiplied by sigmoid(gate) of the result's shape, by a row of a number for each column (row) or for each head and column (heads), by a number for each row of a head (number), an addend (sum),
and whether attention's own result is returned as well (both). All of it is in f32, rounded once to the queries' type or, of narrow, to bf16.
"""

import dataclasses

import attention_ops
from attention_ops import Attention, Split, heads_first, query_type
from case import Kind


class Behind:
    @property
    def spec(self):
        return BEHIND

    @property
    def result(self):
        return "bf16" if self.has("narrow") else self.dtype

    @property
    def precision(self):
        return self.result


@dataclasses.dataclass(frozen=True)
class Epilogue(Behind, Attention, family="behind"):
    pass


@dataclasses.dataclass(frozen=True)
class SplitEpilogue(Behind, Split, Attention, family="behindsplit"):
    pass


def order(c):
    """The dimensions of the result in memory."""
    return ("b", "s", "hq", "d") if c.has("tokensfirst") else ("b", "hq", "s", "d")


def operands(c):
    """(name, type in MLIR's words, dimensions) of what the work takes beside the result."""
    forms = dict(gate=(c.dtype, order(c)), row=("f32", ("d",)), heads=("f32", ("hq", "d")), number=("f32", order(c)[:3]), sum=("f32", order(c)))
    return [(name, dtype, dims) for name, (dtype, dims) in forms.items() if name in c.kind]


def behind_mlir(c, target):
    q, k = query_type(c), c.type("b", "hkv", "t", "d")
    wide, result = c.type(*order(c), dtype="f32"), c.type(*order(c), dtype=c.result)
    attention = [("q", q), ("k", k), ("v", k), *attention_ops.options(c)]
    arguments = attention + [(name, c.type(*dims, dtype=dtype)) for name, dtype, dims in operands(c)]
    given = "".join(f" {name}(%{name})" for name, _ in attention_ops.options(c))
    lines, at = [f"%o = greta.attention %q, %k, %v{given}{attention_ops.attributes(c)} : {', '.join(t for _, t in attention)} -> {q}"], "%o"
    for number, extent in enumerate(order(c)):
        lines.append(f"%c{number} = arith.constant {number} : index")
        lines.append(f"%n{number} = tensor.dim %q, %c{number} : {q}")
    sizes = ", ".join(f"%n{number}" for number, extent in enumerate(order(c)) if extent in c.dynamic)
    lines.append(f"%init = tensor.empty({sizes}) : {wide}")
    lines.append("%one = arith.constant 1.0 : f32")
    lines.append(f"%ones = linalg.fill ins(%one : f32) outs(%init : {wide}) -> {wide}")

    def widened(name, dtype, dims):
        if dtype == "f32":
            return f"%{name}"
        lines.append(f"%{name}_wide = arith.extf %{name} : {c.type(*dims, dtype=dtype)} to {c.type(*dims, dtype='f32')}")
        return f"%{name}_wide"

    if c.dtype != "f32":
        lines.append(f"%o_wide = arith.extf %o : {q} to {wide}")
        at = "%o_wide"
    for name, dtype, dims in operands(c):
        value = widened(name, dtype, dims)
        if name == "gate":
            lines += [f"%minus = arith.negf {value} : {wide}", f"%power = math.exp %minus : {wide}", f"%more = arith.addf %power, %ones : {wide}", f"%sigmoid = arith.divf %ones, %more : {wide}"]
            value = "%sigmoid"
        if len(dims) < 4:
            missing = [place for place, dim in enumerate(order(c)) if dim not in dims]
            kind = c.type(*dims, dtype="f32")
            lines.append(f"%{name}_all = linalg.broadcast ins({value} : {kind}) outs(%init : {wide}) dimensions = {missing}")
            value = f"%{name}_all"
        lines.append(f"%after_{name} = arith.{'addf' if name == 'sum' else 'mulf'} {at}, {value} : {wide}")
        at = f"%after_{name}"
    if c.result != "f32":
        lines.append(f"%result = arith.truncf {at} : {wide} to {result}")
        at = "%result"
    returned = [(at, result)] + [("%o", q)] * c.has("both")
    body = "".join(f"  {line}\n" for line in lines)
    types = ", ".join(kind for _, kind in returned)
    return f"""func.func @{c.function}({', '.join(f'%{name}: {kind}' for name, kind in arguments)}) -> ({types}) {{
{body}  return {', '.join(name for name, _ in returned)} : {types}
}}"""


def behind_inputs(c, rng):
    yield from attention_ops.attention_inputs(c, rng)
    for _, dtype, dims in operands(c):
        yield rng.standard_normal([getattr(c, dim) for dim in dims]), dtype


def behind(c, rounded, q, k, v, *rest):
    named = [name for name, _ in attention_ops.options(c)]
    options, others = dict(zip(named, rest)), rest[len(named) :]
    o = heads_first(c, attention_ops.attend(c, heads_first(c, q), k, v, **options)[0])
    y = rounded(o) if c.result == c.dtype else o
    for (name, _, dims), x in zip(operands(c), others, strict=True):
        if name == "gate":
            x = 1 / (1 + attention_ops.np.exp(-x))
        if name == "number":
            x = x[..., None]
        if name == "heads" and not c.has("tokensfirst"):
            x = x[:, None]
        y = y + x if name == "sum" else y * x
    return [y, o] if c.has("both") else y


BEHIND = Kind(behind_mlir, behind_inputs, behind, "attention", attention_ops.FORMS)
