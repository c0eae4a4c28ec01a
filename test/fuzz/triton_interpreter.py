"""Triton's interpreter as a second opinion (TRITON_INTERPRET=1, which is chosen at import): what it gets wrong, mended.

Each function stands for a known defect of the interpreter (Triton 3.9); its first line is what the interpreter does."""

import ml_dtypes
import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from number_steps import NAN, code_of

Handle, Builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
# Triton's names of types: those of number_steps.py, and the code of NaN.
CODES = {"fp8e5": ("f8E5M2", 0x7F), "fp8e4nv": ("f8E4M3FN", 0x7F), "fp8e5b16": ("f8E5M2FNUZ", 0x80), "fp8e4b8": ("f8E4M3FNUZ", 0x80), "fp16": ("f16", 0x7E00), "bf16": ("bf16", 0x7FC0)}
EIGHT = {"fp8e5": ml_dtypes.float8_e5m2, "fp8e4nv": ml_dtypes.float8_e4m3fn, "fp8e5b16": ml_dtypes.float8_e5m2fnuz, "fp8e4b8": ml_dtypes.float8_e4m3fnuz}


def decoded(data, dtype):
    """f64 of any floats."""
    if dtype.name == "bf16":
        return (data.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return data.view(EIGHT[dtype.name]).astype(np.float64) if dtype.name in EIGHT else data.astype(np.float64)


def encoded(x, dtype, toward_zero=False):
    """The floats nearest to f64, ties to even, or those nearest below in size; of 8 bits they end at the largest."""
    if dtype.name == "fp64":
        return x
    if dtype.name == "fp32":
        made = x.astype(np.float32)
    else:
        if dtype.name in EIGHT:
            most = float(ml_dtypes.finfo(EIGHT[dtype.name]).max)
            x = np.clip(x, -most, most)
        name, nan = CODES[dtype.name]
        made = np.where(np.isnan(x), nan, code_of(x, name)).astype(np.uint8 if dtype.name in EIGHT else np.uint16)
        made = made.view(np.float16) if dtype.name == "fp16" else made
    if toward_zero:
        bits = made.view(f"u{made.itemsize}")
        back = bits - np.array(1, bits.dtype)
        back = np.where((back == 0x80) & (dtype.name in ("fp8e5b16", "fp8e4b8")), 0, back)  # there is no -0
        made = np.where(np.abs(decoded(made, dtype)) > np.abs(x), back, bits).astype(bits.dtype).view(made.dtype)
    return made


def cast_impl(self, src, dst_type):
    """Cuts f32 off to bf16 where Triton rounds, and takes the bits of a bf16 for an integer beside any type but f32."""
    source, target = src.dtype.scalar, dst_type.scalar
    if source.is_floating() and target.is_floating():
        return Handle(encoded(decoded(src.data, source), target), target)
    if target.is_bf16():
        return Handle(encoded(src.data.astype(np.float32).astype(np.float64), target), target)
    return Handle((decoded(src.data, source) if source.is_bf16() else src.data).astype(interpreter._get_np_dtype(target)), target)


def create_fp_to_fp(self, src, dst_type, rounding_mode):
    """Rounds halves up and carries nothing into the exponent, gives 8-bit infinities and NaNs finite numbers of other types, and wraps what is too large."""
    source, target = src.dtype.scalar, dst_type.scalar
    return Handle(encoded(decoded(src.data, source), target, rounding_mode == interpreter._ir.ROUNDING_MODE.RTZ), target)


def get_bf16(self, value):
    """Through the conversion above, without a type that it knows."""
    return Handle(encoded(np.array([value], np.float64), tl.bfloat16), tl.bfloat16)


def binary_op(self, lhs, rhs, op, binary_op=Builder.binary_op):
    """Computes with the bits of bf16 as integers."""
    if not lhs.dtype.scalar.is_bf16():
        return binary_op(self, lhs, rhs, op)
    made = op(*(decoded(x.data, tl.bfloat16).astype(np.float32) for x in (lhs, rhs)))
    return Handle(made, tl.int1) if made.dtype == bool else Handle(encoded(made.astype(np.float64), tl.bfloat16), tl.bfloat16)


def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc, create_dot=Builder.create_dot):
    """Multiplies the bits of bf16 as integers."""
    if a.dtype.scalar.is_bf16():
        a, b = (Handle(decoded(x.data, tl.bfloat16).astype(np.float32), tl.float32) for x in (a, b))
    return create_dot(self, a, b, d, input_precision, max_num_imprecise_acc)


# Defects of Triton 3.6, mended since.


def create_umulhi(self, lhs, rhs):
    """Multiplies signed numbers as such."""
    bits = 8 * lhs.data.itemsize
    x, y = (one.data.view(f"u{one.data.itemsize}").astype(object) for one in (lhs, rhs))
    return Handle(((x * y) >> bits).astype(f"u{bits // 8}").view(lhs.data.dtype), lhs.dtype.scalar)


def create_clampf(self, arg, lo, hi, propagate_nans):
    """Lets NaN through where it is to be passed over."""
    least, most = (np.fmin, np.fmax) if propagate_nans == interpreter._ir.PROPAGATE_NAN.NONE else (np.minimum, np.maximum)
    return self.binary_op(self.binary_op(arg, lo, most), hi, least)


def create_minnumf(self, lhs, rhs):
    """Lets NaN through where it is to be passed over, as in the next one."""
    return self.binary_op(lhs, rhs, np.fmin)


def create_maxnumf(self, lhs, rhs):
    return self.binary_op(lhs, rhs, np.fmax)


def create_histogram(self, data, bins, mask, create_histogram=Builder.create_histogram):
    """Counts what is one beyond the last bin in it."""
    inside = data.data < bins
    return create_histogram(self, data, bins, Handle(inside if mask is None else inside & mask.data, tl.int1))


def create_atomic_rmw(self, op, ptr, val, mask, sem, scope, create_atomic_rmw=Builder.create_atomic_rmw):
    """Takes what lies in memory behind a view's first element for its elements, as in the next one."""
    return create_atomic_rmw(self, op, *(in_order(one) for one in (ptr, val, mask)), sem, scope)


def create_atomic_cas(self, ptr, cmp, val, sem, scope, create_atomic_cas=Builder.create_atomic_cas):
    return create_atomic_cas(self, *(in_order(one) for one in (ptr, cmp, val)), sem, scope)


def in_order(handle):
    return Handle(np.ascontiguousarray(handle.data), handle.dtype)


def to_tensor(self, ret, dtype, to_tensor=interpreter.ReduceScanOpInterface.to_tensor):
    """Fails on a number of Python that the type does not hold, instead of wrapping it."""
    if not getattr(ret, "shape", ()):
        ret = np.array([ret]).astype(interpreter._get_np_dtype(dtype))[0]
    return to_tensor(self, ret, dtype)


def patch_core(lang, scope, patch=interpreter._patch_lang_core):
    """Does not know the types of 8 bits without -0."""
    patch(lang, scope)
    to_ir = lang.dtype.to_ir
    scope.set_attr(lang.dtype, "to_ir", lambda self, builder: self if self.name in ("fp8e5b16", "fp8e4b8") else to_ir(self, builder))


def patch_tensor(tensor, scope, patch=interpreter._patch_lang_tensor):
    """Takes an array of one element for a number, which NumPy no longer does."""
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))


MENDS = (cast_impl, create_fp_to_fp, get_bf16, binary_op, create_dot)
MENDS += (create_umulhi, create_clampf, create_minnumf, create_maxnumf, create_histogram, create_atomic_rmw, create_atomic_cas)


def mend():
    for one in MENDS:
        setattr(Builder, one.__name__, one)
    interpreter.ReduceScanOpInterface.to_tensor = to_tensor
    interpreter._patch_lang_core, interpreter._patch_lang_tensor = patch_core, patch_tensor
