"""All families of cases of the end-to-end tests, and the case of a name."""

import dataclasses

import numpy as np

import attention_backward_ops
import attention_epilogues
import attention_ops
import cache_ops
import layer_ops
import cases
import convolution
import epilogues
import precision
import prologues
import gemms
import grouped
import programs
import quantized
import reductions
import slices
import tiled
import typed
import weights
from case import Case


@dataclasses.dataclass(frozen=True)
class Special:
    """Another case with infinities, NaNs and denormals among its inputs; the rest of it, its function too, is the same."""

    case: Case
    family = "special"

    @classmethod
    def parse(cls, *texts):
        return cls(by_name("_".join(texts)))

    def __getattr__(self, name):
        return getattr(self.case, name)

    @property
    def name(self):
        return f"{self.family}_{self.case.name}"

    @property
    def title(self):
        return f"special {self.case.title}"

    def inputs(self):
        """The first matrix of floats has rows as a mask makes them and others that go wrong, each of which must leave the rows beside it alone; the others
        have a NaN and, where a loop that reads beyond the end would meet it again, an infinity: not where a kernel may apply them to sums."""
        arrays = [np.ascontiguousarray(a) for a in self.case.inputs()]  # so that rows are views
        floats = [a for a in arrays if a.dtype.kind not in "iu"]
        matrix = next(a for a in floats if a.ndim > 1)
        for i, row in enumerate(matrix):
            plant(row.reshape(-1), PATTERNS[i % len(PATTERNS)], self.case.is_gemm)
        for array in floats:
            if array is not matrix and not self.case.spec.forms:
                array.reshape(-1)[array.size // 3] = np.nan
                array.reshape(-1)[-1] = np.inf
        return arrays


PATTERNS = "one masked", "none", "all masked", "nan", "inf", "none", "half masked", "denormal"


def plant(row, pattern, is_gemm):
    if pattern == "one masked":
        row[len(row) // 2] = -np.inf
    elif pattern == "all masked":
        row[:] = -np.inf
    elif pattern == "nan":
        row[0] = np.nan
    elif pattern == "inf":
        row[-1] = np.inf
    elif pattern == "half masked":
        row[len(row) // 2 :] = -np.inf
    elif pattern == "denormal" and row.dtype == np.float16 and not is_gemm:  # which others keep is the device's choice (docs/internals/numerics.md)
        row[:] = (np.arange(1, len(row) + 1) % 63).astype(np.uint16).view(np.float16)


CASES = cases.RowOp, gemms.Product, tiled.Product, epilogues.Epilogue, prologues.Product, grouped.Grouped, convolution.Convolution, convolution.ChannelsFirst, precision.Split, quantized.Quantize, reductions.Reduction, slices.Slice, typed.Product, typed.Conversion, weights.Weights, programs.Program, attention_ops.Attention, attention_ops.Fixed, attention_ops.Decode,\
    attention_ops.Paged, attention_ops.Rows, attention_ops.PagedDecode, cache_ops.Update, attention_ops.View, attention_epilogues.Epilogue, attention_epilogues.SplitEpilogue, attention_backward_ops.Backward, attention_backward_ops.BackwardView, layer_ops.Layer, Special
FAMILIES = {case.family: case for case in CASES}


def by_name(name):
    family, *fields = name.split("_")
    return FAMILIES[family].parse(*fields)
