"""Updates of a KV cache: the functions, their inputs, and their definition in NumPy.

update_KIND_TYPE_B_H_S_T_D puts S new rows into a cache of T; KIND says how the cache lies, and whether the new rows are quantised on their way.
"""

import dataclasses

import numpy as np

from attention_ops import PAGE
from case import Case, Kind, rounded_to, tensor
from typed import MLIR


@dataclasses.dataclass(frozen=True)
class Update(Case, family="update"):
    kind: str
    dtype: str
    b: int
    h: int
    s: int
    t: int
    d: int

    @property
    def function(self):
        return "_".join(map(str, (self.family, self.kind, self.dtype, self.h, self.d)))

    @property
    def spec(self):
        return UPDATES[self.kind]


def update_mlir(case, target):
    cache, new, pos = f"tensor<?x{case.h}x?x{case.d}x{case.dtype}>", f"tensor<?x{case.h}x?x{case.d}x{case.dtype}>", "tensor<?xi32>"
    if case.kind == "paged":
        cache, new = f"tensor<?x{PAGE}x{case.h}x{case.d}x{case.dtype}>", f"tensor<?x{case.h}x{case.d}x{case.dtype}>"
    op = "paged_kv_update" if case.kind == "paged" else "kv_update"
    if case.kind == "turned":  # the new rows by token
        by_token = f"tensor<?x?x{case.h}x{case.d}x{case.dtype}>"
        return f"""func.func @{case.function}(%cache: {cache}, %rows: {by_token}, %pos: {pos}) -> {cache} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %b = tensor.dim %rows, %zero : {by_token}
  %s = tensor.dim %rows, %one : {by_token}
  %init = tensor.empty(%b, %s) : {new}
  %new = linalg.transpose ins(%rows : {by_token}) outs(%init : {new}) permutation = [0, 2, 1, 3]
  %0 = greta.{op} %cache, %new, %pos : {cache}, {new}, {pos} -> {cache}
  return %0 : {cache}
}}"""
    update = f"%0 = greta.{op} %cache, %new, %pos : {cache}, {new}, {pos} -> {cache}"
    if case.kind == "kept":  # the old cache is looked at afterwards: it cannot be in place
        return f"""func.func @{case.function}(%cache: {cache}, %new: {new}, %pos: {pos}) -> ({cache}, {cache}) {{
  {update}
  %1 = arith.addf %cache, %cache : {cache}
  return %0, %1 : {cache}, {cache}
}}"""
    return f"""func.func @{case.function}(%cache: {cache}, %new: {new}, %pos: {pos}) -> {cache} {{
  {update}
  return %0 : {cache}
}}"""


def update_inputs(case, rng):
    if case.kind == "paged":
        pages = -(-case.t // PAGE)
        yield rng.standard_normal((pages, PAGE, case.h, case.d)), case.dtype
        yield rng.standard_normal((case.s, case.h, case.d)), case.dtype
        slots = rng.permutation(pages * PAGE)[: case.s]
        slots[::5] = -1
        slots[3::7] = pages * PAGE + 2
        yield slots, "i32"
        return
    yield rng.standard_normal((case.b, case.h, case.t, case.d)), case.dtype
    yield rng.standard_normal((case.b, case.s, case.h, case.d) if case.kind == "turned" else (case.b, case.h, case.s, case.d)), case.dtype
    yield np.array([(0, case.t - 1, case.t // 2, -2)[n % 4] for n in range(case.b)]), "i32"


def update(case, rounded, cache, new, at):
    y = cache.copy()
    if case.kind == "paged":
        for token, slot in enumerate(at):
            if 0 <= slot < len(cache) * PAGE:
                y[slot // PAGE, slot % PAGE] = new[token]
        return y
    if case.kind == "turned":
        new = new.transpose(0, 2, 1, 3)
    for n, first in enumerate(at):
        for i in range(case.s):
            if 0 <= first + i < case.t:
                y[n, :, first + i] = new[n, :, i]
    return [y, 2 * cache] if case.kind == "kept" else y


SCALE = 0.375


def quantised_mlir(case, target):
    """New rows in f16 are divided by a scale and rounded to a cache of 8 bits; those of a projection in its kernel."""
    is_projected = case.kind == "projected"
    wide = f"tensor<?x{case.h * case.d}xf32>" if is_projected else f"tensor<?x{case.h}x?x{case.d}xf32>"
    half, narrow = wide.replace("f32", "f16"), wide.replace("f32", MLIR[case.dtype])
    cache = f"tensor<?x{PAGE}x{case.h}x{case.d}x{MLIR[case.dtype]}>" if is_projected else narrow
    weights = tensor(case.h * case.d, case.h * case.d, "f16")
    computed, new, extent, op = "", "%small", 2, "kv_update"
    if is_projected:
        computed = f"  %product = greta.matmul %rows, %weights {{transpose_b}} : {half}, {weights} -> {half}\n"
        heads = f"tensor<?x{case.h}x{case.d}x{MLIR[case.dtype]}>"
        last = f"  %heads = tensor.expand_shape %small [[0], [1, 2]] output_shape [%n, {case.h}, {case.d}] : {narrow} into {heads}\n"
        new, extent, op = "%heads", 0, "paged_kv_update"
    sizes = "%n" if is_projected else "%b, %n"
    return f"""func.func @{case.function}(%cache: {cache}, %rows: {half}, {f'%weights: {weights}, ' * is_projected}%at: tensor<?xi32>) -> {cache} {{
  %zero = arith.constant 0 : index
  %dim = arith.constant {extent} : index
  %b = tensor.dim %rows, %zero : {half}
  %n = tensor.dim %rows, %dim : {half}
  %scale = arith.constant {SCALE} : f32
  %scales = tensor.splat %scale[{sizes}] : {wide}
{computed}  %wide = arith.extf {'%product' if is_projected else '%rows'} : {half} to {wide}
  %scaled = arith.divf %wide, %scales : {wide}
  %small = arith.truncf %scaled : {wide} to {narrow}
{last if is_projected else ''}  %0 = greta.{op} %cache, {new}, %at : {cache}, {heads if is_projected else narrow}, tensor<?xi32> -> {cache}
  return %0 : {cache}
}}"""


def quantised_inputs(case, rng):
    """A projection by the identity is exact."""
    if case.kind == "quantised":
        (cache, dtype), (rows, _), at = update_inputs(case, rng)
        yield from ((cache, dtype), (rows, "f16"), at)
        return
    (cache, dtype), (rows, _), slots = update_inputs(dataclasses.replace(case, kind="paged"), rng)
    yield from ((cache, dtype), (rows.reshape(case.s, -1), "f16"), (np.eye(case.h * case.d), "f16"), slots)


def quantised(case, rounded, cache, rows, *rest):
    kind = "paged" if case.kind == "projected" else "rows"
    new = rows.reshape(case.s, case.h, case.d) if kind == "paged" else rows
    return update(dataclasses.replace(case, kind=kind), rounded, cache, rounded_to(case.dtype, new / SCALE), rest[-1])


def grouped_mlir(case, target):
    """New rows become numbers of 8 bits with a scale for each 32."""
    cache, scales = f"tensor<?x{PAGE}x{case.h}x{case.d}xi8>", f"tensor<?x{PAGE}x{case.h}x{case.d // 32}xf16>"
    new = f"tensor<?x{case.h}x{case.d}x{case.dtype}>"
    return f"""func.func @{case.function}(%cache: {cache}, %new: {new}, %slots: tensor<?xi32>, %scales: {scales}) -> ({cache}, {scales}) {{
  %0, %1 = greta.paged_kv_update %cache, %new, %slots, %scales : {cache}, {new}, tensor<?xi32>, {scales} -> {cache}, {scales}
  return %0, %1 : {cache}, {scales}
}}"""


def grouped_inputs(case, rng):
    """Groups whose scales are powers of two, so that every form rounds alike; one is zero."""
    (cache, _), (new, _), slots = update_inputs(dataclasses.replace(case, kind="paged"), rng)
    new = np.clip(np.round(new * 40), -127, 127).reshape(case.s, case.h, -1, 32)
    new[..., 7] = -127
    factors = np.exp2(rng.integers(-8, 3, new.shape[:-1]))
    factors[0, 0, 0] = 0
    yield np.clip(np.round(cache * 40), -127, 127), "i8"
    yield (new * factors[..., None]).reshape(case.s, case.h, case.d), case.dtype
    yield slots
    yield np.exp2(rng.integers(-8, 3, (*cache.shape[:-1], case.d // 32))), "f16"


def grouped(case, rounded, cache, new, slots, scales):
    parts = new.reshape(case.s, case.h, -1, 32)
    new_scales = np.abs(parts).max(-1) / 127
    numbers = np.round(parts / np.where(new_scales == 0, 1, new_scales)[..., None]).reshape(new.shape)
    paged_case = dataclasses.replace(case, kind="paged")
    return [update(paged_case, rounded, cache, numbers, slots), update(paged_case, rounded, scales, new_scales, slots)]


UPDATES = {kind: Kind(update_mlir, update_inputs, update, "exact") for kind in ("rows", "kept", "paged", "turned")}
UPDATES |= {kind: Kind(quantised_mlir, quantised_inputs, quantised, "exact") for kind in ("quantised", "projected")}
UPDATES |= {"grouped": Kind(grouped_mlir, grouped_inputs, grouped, "exact")}
