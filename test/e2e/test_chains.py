"""Chains of ops that use a value twice, sixty of them: 2^60 ways lead through one, so whatever follows uses without noting what it has seen never ends.

Each kind puts its chain where another part of the compiler follows it. Nothing runs: numbers that are squared sixty times are infinite.
"""

import pytest

import harness

LENGTH = 60
LIMIT = 60  # seconds; each takes one or two


def chain(first, kind, step="arith.mulf {v}, {v}", name="v"):
    """The ops, and the last one's name."""
    lines, value = [], first
    for i in range(LENGTH):
        lines.append(f"  %{name}{i} = {step.format(v=value)} : {kind}")
        value = f"%{name}{i}"
    return "\n".join(lines), value


def gemm(rows, where):
    """In front of a GEMM's operand, or behind it."""
    a, b, out = f"tensor<{rows}x256xf16>", "tensor<256x256xf16>", f"tensor<{rows}x256xf16>"
    operands = {"a": "%a", "b": "%b"}
    before = behind = ""
    result = "%0"
    if where == "result":
        behind, result = chain("%0", out)
    else:
        before, operands[where] = chain(f"%{where}", a if where == "a" else b)
    return f"""func.func @f(%a: {a}, %b: {b}) -> {out} {{
{before}
  %0 = greta.matmul {operands["a"]}, {operands["b"]} {{transpose_b}} : {a}, {b} -> {out}
{behind}
  return {result} : {out}
}}
"""


def rows(op):
    """In front of a row op."""
    block = "tensor<?x256xf16>"
    lines, value = chain("%x", block)
    return f"func.func @f(%x: {block}, %w: tensor<256xf16>) -> {block} {{\n{lines}\n  %r = {op.format(v=value)} -> {block}\n  return %r : {block}\n}}\n"


def heads():
    """Between a GEMM and rope: on heads."""
    block = "tensor<64x256xf16>"
    lines, value = chain("%0", block)
    return f"""func.func @f(%a: {block}, %b: tensor<256x256xf16>, %cos: tensor<64x32xf32>, %sin: tensor<64x32xf32>) -> tensor<64x4x64xf16> {{
  %0 = greta.matmul %a, %b {{transpose_b}} : {block}, tensor<256x256xf16> -> {block}
{lines}
  %h = tensor.expand_shape {value} [[0], [1, 2]] output_shape [64, 4, 64] : {block} into tensor<64x4x64xf16>
  %r = greta.rope %h, %cos, %sin {{style = "neox"}} : tensor<64x4x64xf16>, tensor<64x32xf32>, tensor<64x32xf32> -> tensor<64x4x64xf16>
  return %r : tensor<64x4x64xf16>
}}
"""


def slices():
    block, half = "tensor<16x256xf16>", "tensor<16x128xf16>"
    lines, value = chain("%x", block)
    return f"""func.func @f(%x: {block}) -> ({half}, {half}) {{
{lines}
  %r = tensor.extract_slice {value}[0, 0] [16, 128] [1, 1] : {block} to {half}
  %s = tensor.extract_slice {value}[0, 128] [16, 128] [1, 1] : {block} to {half}
  return %r, %s : {half}, {half}
}}
"""


def vectors():
    """The chain makes a vector that all rows take."""
    lines, value = chain("%w", "tensor<256xf16>")
    return f"""func.func @f(%x: tensor<16x256xf16>, %w: tensor<256xf16>) -> tensor<16x256xf16> {{
{lines}
  %none = tensor.empty() : tensor<16x256xf16>
  %b = linalg.broadcast ins({value} : tensor<256xf16>) outs(%none : tensor<16x256xf16>) dimensions = [0]
  %r = arith.addf %x, %b : tensor<16x256xf16>
  return %r : tensor<16x256xf16>
}}
"""


def extents():
    """The chain makes a result's size."""
    lines, value = chain("%n", "index", "arith.addi {v}, {v}")
    return f"""func.func @f(%x: tensor<?xf32>) -> tensor<?x4xf32> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
{lines}
  %y = arith.addf %x, %x : tensor<?xf32>
  %r = tensor.expand_shape %y [[0, 1]] output_shape [{value}, 4] : tensor<?xf32> into tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}}
"""


def program(body):
    """A block program with two matrices, a dot, and what `body` makes of it."""
    return f"""greta_tile.func @k(%a: !greta_tile.ptr<f16>, %b: !greta_tile.ptr<f16>, %x: !greta_tile.ptr<f32>, %n: i32, %c: !greta_tile.ptr<f32>) attributes {{waves = 4 : i32}} {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %32 = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x32xf32>
{body}
  greta_tile.return
}}
func.func @f(%a: tensor<1024xf16>, %b: tensor<1024xf16>, %x: tensor<1024xf32>, %n: i32) -> tensor<1024xf32> {{
  %0 = greta_tile.launch @k grid affine_map<()[n] -> (1)> scalars affine_map<()[n] -> ()> (%a, %b, %x, %n) shapes [affine_map<()[n] -> (1024)>]
       : (tensor<1024xf16>, tensor<1024xf16>, tensor<1024xf32>, i32) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}}
"""


LOAD_A = "%left = greta_tile.load %a[%zero, %zero] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>"
LOAD_B = "%right = greta_tile.load %b[%zero, %zero] strides [32, 1] bounds [] : !greta_tile.ptr<f16> -> tensor<32x32xf16>"
DOT = "%d = greta_tile.dot {left}, {right}, %none : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>"
STORE = "greta_tile.store {v}, %c[%zero, %zero] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>"
INDEX = """%i = greta_tile.iota 0 : tensor<32x32xi32>
  %j = greta_tile.iota 1 : tensor<32x32xi32>"""


def behind_dot():
    lines, value = chain("%d", "tensor<32x32xf32>")
    return program("\n".join((LOAD_A, LOAD_B, DOT.format(left="%left", right="%right"), lines, STORE.format(v=value))))


def newton():
    block, lines, y = "tensor<32x32xf32>", [], "%d"
    for i in range(20):
        lines += [f"%p{i} = arith.mulf {y}, {y} : {block}", f"%q{i} = arith.mulf %p{i}, {y} : {block}", f"%y{i} = arith.subf {y}, %q{i} : {block}"]
        y = f"%y{i}"
    return program("\n".join((LOAD_A, LOAD_B, DOT.format(left="%left", right="%right"), *lines, STORE.format(v=y))))


def before_dot(where):
    lines, value = chain(f"%{where}", "tensor<32x32xf16>")
    operands = {"left": "%left", "right": "%right"} | {where: value}
    return program("\n".join((LOAD_A, LOAD_B, lines, DOT.format(**operands), STORE.format(v="%d"))))


def in_loop():
    """Operands of a dot in a loop, of which one is a chain."""
    lines, value = chain("%right", "tensor<32x32xf16>")
    body = f"""%sum = scf.for %k = %zero to %n step %32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {{
  %left = greta_tile.load %a[%zero, %k] strides [64, 1] bounds [1] (%n) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
  %right = greta_tile.load %b[%k, %zero] strides [32, 1] bounds [0] (%n) : !greta_tile.ptr<f16> -> tensor<32x32xf16>
{lines}
  %d = greta_tile.dot %left, {value}, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  scf.yield %d : tensor<32x32xf32>
  }}"""
    return program(body + "\n" + STORE.format(v="%sum"))


def in_address(kind, loop=False):
    """Offsets of pointers; in a loop those of a dot's operand."""
    block = f"tensor<32x32x{kind}>"
    lines, value = chain("%o", block, "arith.addi {v}, {v}", "w")
    widen = "%o = arith.addi %i, %j : tensor<32x32xi32>" if kind == "i32" else f"%s = arith.addi %i, %j : tensor<32x32xi32>\n  %o = arith.extsi %s : tensor<32x32xi32> to {block}"
    load = f"""%at = greta_tile.ptr_add %b, {value} : !greta_tile.ptr<f16>, {block}
  %right = greta_tile.load_scattered %at : tensor<32x32x!greta_tile.ptr<f16>> -> tensor<32x32xf16>"""
    if not loop:
        return program("\n".join((INDEX, widen, lines, LOAD_A, load, DOT.format(left="%left", right="%right"), STORE.format(v="%d"))))
    body = f"""{INDEX}
  %sum = scf.for %k = %zero to %n step %32 iter_args(%acc = %none) -> (tensor<32x32xf32>) : i32 {{
  %t = greta_tile.splat %k : tensor<32x32xi32>
  %u = arith.addi %i, %t : tensor<32x32xi32>
  {widen.replace("%i,", "%u,")}
{lines}
  {LOAD_A}
  {load}
  %d = greta_tile.dot %left, %right, %acc : tensor<32x32xf16>, tensor<32x32xf16> -> tensor<32x32xf32>
  scf.yield %d : tensor<32x32xf32>
  }}"""
    return program(body + "\n" + STORE.format(v="%sum"))


def in_mask():
    """Each mask is the one before and two others."""
    lines, mask = [], "%m"
    for i in range(LENGTH):
        lines += [f"%b{i} = greta_tile.splat %s{i} : tensor<32x32xi32>", f"%less{i} = arith.cmpi slt, %i, %b{i} : tensor<32x32xi32>"]
        lines += [f"%le{i} = arith.cmpi sle, %j, %b{i} : tensor<32x32xi32>", f"%and{i} = arith.andi {mask}, %less{i} : tensor<32x32xi1>"]
        lines += [f"%both{i} = arith.andi {mask}, %le{i} : tensor<32x32xi1>", f"%m{i} = arith.andi %and{i}, %both{i} : tensor<32x32xi1>"]
        mask = f"%m{i}"
    bounds = [f"%c{i} = arith.constant {i} : i32\n  %s{i} = arith.subi %n, %c{i} : i32" for i in range(LENGTH)]
    body = f"""{INDEX}
  %all = greta_tile.splat %n : tensor<32x32xi32>
  %m = arith.cmpi slt, %j, %all : tensor<32x32xi32>
  %wide = arith.constant dense<32> : tensor<32x32xi32>
  %r = arith.muli %i, %wide : tensor<32x32xi32>
  %o = arith.addi %r, %j : tensor<32x32xi32>
  %at = greta_tile.ptr_add %x, %o : !greta_tile.ptr<f32>, tensor<32x32xi32>
  %v = greta_tile.load_scattered %at mask {mask} : tensor<32x32x!greta_tile.ptr<f32>> -> tensor<32x32xf32>"""
    at = body.index("  %at")
    return program("\n".join((body[:at], *bounds, *lines, body[at:], STORE.format(v="%v"))))


def in_condition():
    """Scalars that a branch around loads asks for, and others behind it do not."""
    lines, flag = [], "%f"
    for i in range(LENGTH):
        lines += [f"%c{i} = arith.constant {i + 2} : i32", f"%is{i} = arith.cmpi sgt, %n, %c{i} : i32"]
        lines += [f"%odd{i} = arith.cmpi ne, %n, %c{i} : i32", f"%p{i} = arith.andi {flag}, %is{i} : i1"]
        lines += [f"%q{i} = arith.andi {flag}, %odd{i} : i1", f"%f{i} = arith.andi %p{i}, %q{i} : i1"]
        flag = f"%f{i}"
    body = f"""%v = scf.if {flag} -> (tensor<32x32xf32>) {{
  %w = greta_tile.load %x[%zero, %zero] strides [32, 1] bounds [0, 1] (%n, %n) : !greta_tile.ptr<f32> -> tensor<32x32xf32>
  scf.yield %w : tensor<32x32xf32>
  }} else {{
  scf.yield %none : tensor<32x32xf32>
  }}
  %w = greta_tile.load %x[%one, %zero] strides [32, 1] bounds [0, 1] (%n, %n) : !greta_tile.ptr<f32> -> tensor<32x32xf32>
  %sum = arith.addf %v, %w : tensor<32x32xf32>"""
    return program("\n".join(("%f = arith.cmpi sgt, %n, %one : i32", *lines, body, STORE.format(v="%sum"))))


def of_scalars():
    """A scalar offset, uniform or not."""
    lines, value = chain("%n", "i32", "arith.addi {v}, {v}")
    more, other = chain("%p", "i32", "arith.muli {v}, {v}", "q")
    load = f"%w = greta_tile.load %x[{value}, {other}] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x32xf32>"
    return program("\n".join(("%p = greta_tile.program_id 0", lines, more, load, STORE.format(v="%w"))))


def of_stores():
    """A store's address beside a load's, which are compared."""
    lines, value = chain("%n", "i32", "arith.addi {v}, {v}")
    more, other = chain("%p", "i32", "arith.addi {v}, {v}", "q")
    body = f"""%w = greta_tile.load %c[{value}, {other}] strides [32, 1] bounds [] : !greta_tile.ptr<f32> -> tensor<32x32xf32>
  greta_tile.store %w, %c[{other}, {value}] strides [32, 1] bounds [] : tensor<32x32xf32> -> !greta_tile.ptr<f32>"""
    return program("\n".join(("%p = greta_tile.program_id 0", lines, more, body)))


def triton():
    """Triton IR: calls of one function from within another, an address and a dot's result."""
    block, offsets, pointers = "tensor<32x32xf32>", "tensor<32x32xi32>", "tensor<32x32x!tt.ptr<f32>>"
    added, offset = chain("%o", offsets, "arith.addi {v}, {v}", "w")
    squared, value = chain("%d", block)
    return f"""tt.func private @twice(%v: {block}) -> {block} {{
  %0 = arith.addf %v, %v : {block}
  tt.return %0 : {block}
}}
tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {{
  %o = tt.splat %n : i32 -> {offsets}
{added}
  %p = tt.splat %x : !tt.ptr<f32> -> {pointers}
  %at = tt.addptr %p, {offset} : {pointers}, {offsets}
  %v = tt.load %at : {pointers}
  %t = tt.call @twice(%v) : ({block}) -> {block}
  %d = tt.dot %t, %v, %t : {block} * {block} -> {block}
{squared}
  %q = tt.splat %y : !tt.ptr<f32> -> {pointers}
  %to = tt.addptr %q, %o : {pointers}, {offsets}
  tt.store %to, {value} : {pointers}
  tt.return
}}
"""


KINDS = {f"gemm-{m}-{where}": lambda m=m, where=where: gemm(m, where) for m in (1, 4, 16, 64) for where in ("a", "b", "result")}
KINDS |= {"softmax": lambda: rows("greta.softmax {v} : tensor<?x256xf16>"), "norm": lambda: rows("greta.rms_norm {v}, %w {{eps = 1.0e-5 : f32}} : tensor<?x256xf16>, tensor<256xf16>")}
KINDS |= {f.__name__: f for f in (heads, slices, vectors, extents, behind_dot, newton, in_loop, in_mask, in_condition, of_scalars, of_stores, triton)}
KINDS |= {f"before_dot-{side}": lambda side=side: before_dot(side) for side in ("left", "right")}
KINDS |= {f"in_address-{kind}{'-loop' * loop}": lambda kind=kind, loop=loop: in_address(kind, loop) for kind in ("i32", "i64") for loop in (False, True)}
FUSED = [kind for kind in KINDS if "greta_tile" not in KINDS[kind]() and kind != "triton"]


@pytest.mark.parametrize("target", ("gfx942", "vulkan:nvidia", "vulkan:portable", "host"))
@pytest.mark.parametrize("kind", KINDS)
def test_chains_end(tmp_path, kind, target):
    if target == "host" and kind not in FUSED:
        target = "gfx1201"
    source = tmp_path / f"{kind}.mlir"
    source.write_text(KINDS[kind]())
    command = "--triton-to-package" if kind == "triton" else "--greta-to-package"
    made = harness.tool("timeout", LIMIT, harness.TRANSLATE, command, f"--targets={target}", source, "-o", tmp_path / "p.greta")
    assert made.returncode == 0, f"took longer than {LIMIT} s" if made.returncode == 124 else made.stderr[:2000]
