//===- GretaOps.td - the fused operators ----------------------------------===//
#ifndef GRETA_OPS_TD
#define GRETA_OPS_TD

include "Greta/AttentionOps.td"
include "Greta/ConvolutionOps.td"
include "Greta/OpBase.td"

def Greta_RmsNormOp : Greta_Op<"rms_norm"> {
  let summary = "Root-mean-square normalisation of rows";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | `[.., D]`, f32, f16 or bf16 |
    | `w` | `[D]`, f32, f16 or bf16 |
    | result | the type of `x` |

    For every row: `y[i] = x[i] / sqrt(sum(x[j]^2) / D + eps) * w[i]`, in f32, rounded once.

    Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019, arXiv:1910.07467.

    ```mlir
    %0 = greta.rms_norm %x, %w {eps = 1.0e-5 : f32} : tensor<?x4096xf16>, tensor<4096xf16> -> tensor<?x4096xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, F32Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_LayerNormOp : Greta_Op<"layer_norm"> {
  let summary = "Layer normalisation of rows";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | `[.., D]`, f32, f16 or bf16 |
    | `w`, `b` | `[D]`, f32, f16 or bf16 |
    | result | the type of `x` |

    For every row: `m = sum(x[j]) / D`, `v = sum((x[j] - m)^2) / D` (two passes: the mean first),
    `y[i] = (x[i] - m) / sqrt(v + eps) * w[i] + b[i]`, in f32, rounded once.

    Source: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", 2016, arXiv:1607.06450.

    ```mlir
    %0 = greta.layer_norm %x, %w, %b {eps = 1.0e-5 : f32}
        : tensor<?x768xf32>, tensor<768xf32>, tensor<768xf32> -> tensor<?x768xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, AnyRankedTensor:$b, F32Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_SoftmaxOp : Greta_Op<"softmax"> {
  let summary = "Softmax over the last dimension";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | `[.., D]`, f32, f16 or bf16 |
    | result | the type of `x` |

    For every row: `m = max(x[j])`, `y[i] = exp(x[i] - m) / sum(exp(x[j] - m))`, in f32, rounded once. A row with a NaN, with
    +inf or with nothing but -inf is NaN.

    Source: J. S. Bridle, "Probabilistic Interpretation of Feedforward Classification Network Outputs", 1990; the maximum is
    subtracted so that no exponential overflows (P. Blanchard, D. J. Higham, N. J. Higham, "Accurately computing the
    log-sum-exp and softmax functions", 2021).

    ```mlir
    %0 = greta.softmax %x : tensor<?x?x1024xf16> -> tensor<?x?x1024xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_RopeOp : Greta_Op<"rope"> {
  let summary = "Rotary position embedding";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | `[T, H, D]` (tokens, heads, head size; D even), f32, f16 or bf16 |
    | `cos`, `sin` | `[T, D/2]`, f32 |
    | result | the type of `x` |

    Rotates pairs of elements of every head: `y[a] = x[a] * cos[t, i] - x[b] * sin[t, i]`,
    `y[b] = x[b] * cos[t, i] + x[a] * sin[t, i]`, for i in `[0, D/2)`, in f32, rounded once. With `style = "neox"` a pair is
    `a = i, b = i + D/2` (halves), with `"gptj"` `a = 2i, b = 2i + 1` (neighbours).

    Source: J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, arXiv:2104.09864.

    ```mlir
    %0 = greta.rope %x, %cos, %sin {style = "neox"}
        : tensor<?x32x128xf16>, tensor<?x64xf32>, tensor<?x64xf32> -> tensor<?x32x128xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$cos, AnyRankedTensor:$sin, StrAttr:$style);
  let results = (outs AnyRankedTensor:$result);
  let extraClassDeclaration = [{
    /// True when a pair is the two neighbours 2i and 2i+1, false for i, i+D/2.
    bool pairsAreNeighbours() { return getStyle() == "gptj"; }
  }];
}

def Greta_SwigluOp : Greta_Op<"swiglu"> {
  let summary = "Gated linear unit with the SiLU gate";
  let description = [{
    | operand | shape |
    |---|---|
    | `gate`, `up` | `[.., D]`, f32, f16 or bf16, of one type |
    | result | the same type |

    `y = gate / (1 + exp(-gate)) * up`, in f32, rounded once.

    Source: N. Shazeer, "GLU Variants Improve Transformer", 2020, arXiv:2002.05202.

    ```mlir
    %0 = greta.swiglu %gate, %up : tensor<?x14336xbf16>, tensor<?x14336xbf16> -> tensor<?x14336xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$gate, AnyRankedTensor:$up);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_MatmulOp : Greta_Op<"matmul"> {
  let summary = "Matrix product";
  let description = [{
    | operand | shape |
    |---|---|
    | `a` | `[.., M, K]`, or `[.., K, M]` with `transpose_a`; it may lack leading dimensions of the batch that `b` has, and then serves all of these |
    | `b` | `[.., K, N]`, or `[.., N, K]` with `transpose_b`; of rank 2 it serves the whole batch |
    | result | `[.., M, N]` |

    `y[.., m, n] = sum(a[.., m, k] * b[.., k, n])`; the leading dimensions are the batch, the same in all that have them. `a` and `b` have one element type. f32,
    f16 and bf16 accumulate in f32, rounded once to a result of f32 or of the operands' type; i8 accumulates in i32, which is the result. Floats
    of 8 bits (f8E4M3FN and f8E5M2, which may be mixed, f8E4M3FNUZ and f8E5M2FNUZ likewise) accumulate in f32, rounded once to a result of f32,
    f16 or bf16.

    With `precision = "bf16x3"` a product of f32 may be three of bf16: each operand is `hi + lo`, its number in bf16 and what is left, cut off, and
    `hi * hi + hi * lo + lo * hi` is summed in f32. A product is off by less than 2^-13 of |a| |b|, to either side; an operand that is infinite, or too large for bf16, gives NaN. Targets whose matrix
    instructions take bf16 use them where the GEMM is no skinny one; elsewhere the products are those of f32, which is the definition.

    `offsets` is what `greta-fuse` makes of `greta.grouped_matmul`, whose `b` may then be of rank 2, group below group.

    Source: C. L. Lawson et al., "Basic Linear Algebra Subprograms for Fortran Usage", 1979; level 3: J. Dongarra et al., 1990.

    ```mlir
    %0 = greta.matmul %a, %b {transpose_b} : tensor<?x4096xf16>, tensor<14336x4096xf16> -> tensor<?x14336xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, Optional<AnyRankedTensor>:$offsets, UnitAttr:$transpose_a, UnitAttr:$transpose_b,
                       OptionalAttr<StrAttr>:$precision);
  let results = (outs AnyRankedTensor:$result);
  let extraClassDeclaration = [{
    /// How many groups of rows there are, each with a matrix of its own; 0: the product is one of two matrices.
    int64_t getNumGroups() { return getOffsets() ? getOffsets().getType().getDimSize(0) - 1 : 0; }
    /// The dimensions of `a` that are M and K, of `b` that are K and N.
    int64_t dimM() { return getA().getType().getRank() - (getTransposeA() ? 1 : 2); }
    int64_t dimKOfA() { return getA().getType().getRank() - (getTransposeA() ? 2 : 1); }
    int64_t dimKOfB() { return getB().getType().getRank() - (getTransposeB() ? 1 : 2); }
    int64_t dimN() { return getB().getType().getRank() - (getTransposeB() ? 2 : 1); }
    /// The extent of K.
    int64_t getDepth() { return getA().getType().getDimSize(dimKOfA()); }
    /// The type in which products are summed: i32 for i8, else f32.
    ::mlir::Type getSumType() {
      ::mlir::MLIRContext *context = getContext();
      return getA().getType().getElementType().isInteger(8)
                 ? ::mlir::Type(::mlir::IntegerType::get(context, 32))
                 : ::mlir::Type(::mlir::Float32Type::get(context));
    }
    /// Leading dimensions of the result.
    int64_t getBatchRank() { return getType().getRank() - 2; }
    /// Leading dimensions of the batch that `a` lacks: it serves all of these.
    int64_t getRankWithoutA() { return getType().getRank() - getA().getType().getRank(); }
    /// Whether `b` is another one in every product of a batch.
    bool hasBatchedB() { return getBatchRank() > 0 && getB().getType().getRank() > 2; }
  }];
}

def Greta_GroupedMatmulOp : Greta_Op<"grouped_matmul"> {
  let summary = "Matrix products of groups of rows, each with a matrix of its own";
  let description = [{
    | operand | shape |
    |---|---|
    | `a` | `[T, K]` |
    | `b` | `[E, K, N]`, or `[E, N, K]` with `transpose_b` |
    | `offsets` | `[E + 1]`, i32, ascending from 0: group e has the rows `offsets[e]` to `offsets[e + 1] - 1`. E is at most 4096 |
    | result | `[T, N]` |

    `y[t, n] = sum(a[t, k] * b[e, k, n])` where e is the group of row t. Rows from `offsets[E]` on are in no group, and zero; a group may be empty, and T may be 0.
    Element types are those of `greta.matmul`, and so are sums and the rounding. Only T may be dynamic. Weights of `greta.dequant`, whose rows lie group below group, are `b` with
    `transpose_b` through `tensor.expand_shape`, and are read as they are packed.

    `offsets` come from the device, and nobody checks them but checked functions. Each is taken as 0 where it is negative and as T beyond T, and the first as 0, so that nothing outside of the
    tensors is read or written whatever they are. If they do not ascend it is not defined which group has a row, or whether one has.

    Source: T. Gale et al., "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts", 2022, arXiv:2211.15841.

    ```mlir
    %0 = greta.grouped_matmul %a, %b, %offsets {transpose_b}
        : tensor<?x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<?x768xf16>

    %q = greta.dequant %words, %scales {group = 32} : tensor<98304x256xi32>, tensor<98304x64xf16> -> tensor<98304x2048xf16>
    %w = tensor.expand_shape %q [[0, 1], [2]] output_shape [128, 768, 2048] : tensor<98304x2048xf16> into tensor<128x768x2048xf16>
    %1 = greta.grouped_matmul %a, %w, %offsets {transpose_b}
        : tensor<?x2048xf16>, tensor<128x768x2048xf16>, tensor<129xi32> -> tensor<?x768xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, AnyRankedTensor:$offsets, UnitAttr:$transpose_b);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_AllReduceOp : Greta_Op<"all_reduce"> {
  let summary = "Sum over the ranks of a communicator";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | any, f32, f16 or bf16 |
    | result | the type of `x` |

    `y` is the sum of the `x` of all ranks, as `greta_comm_all_reduce` makes it: through the host's memory in f32, in the order of the ranks, rounded once. Over one rank it is `x`. All ranks launch the same function with the same
    shapes, and get the same bits. A launch needs a communicator (`greta_function_set_comm`). The sum stands between two kernels, so what is before it and what is behind it do not fuse.
    The `host` target has no ranks.

    With `part_rows` the sum is made in parts of so many rows along the first dimension, each while the next is computed where the kernels beside it work by rows
    ([several-devices.md](../internals/several-devices.md#sums-in-parts)); 0 asks for one part. It says nothing about values. Without it the compiler chooses. It is the same on all ranks.

    `shape` is what `greta-fuse` notes: the extents over the symbols of the function.

    Source: Message Passing Interface Forum, "MPI: A Message-Passing Interface Standard", 1994, MPI_Allreduce.

    ```mlir
    %0 = greta.all_reduce %x : tensor<?x4096xf32> -> tensor<?x4096xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, OptionalAttr<AffineMapAttr>:$shape, OptionalAttr<I64Attr>:$part_rows);
  let results = (outs AnyRankedTensor:$result);
}

def Greta_QuantizeRowsOp : Greta_Op<"quantize_rows"> {
  let summary = "Rows as 8 bits with a scale each";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | `[T, K]`, f32, f16 or bf16; K static |
    | result | `[T, K]`, i8, f8E4M3FN or f8E4M3FNUZ |
    | `scale` | `[T, 1]`, f32 |

    For every row: `scale = max(|x[j]|) * (1 / L)`, `y[i] = x[i] * (L / max(|x[j]|))`, in f32, rounded to the nearest number, ties to even; L is 127 for i8, the largest number of a float: 448 of
    f8E4M3FN, 240 of f8E4M3FNUZ. A row of zeros has the scale 0 and stays zero. A row with an infinity or a NaN has no defined `y`; its scale is that.

    A `greta.matmul` of `y` with weights of 8 bits, times `scale` and the scales of the columns, is that of `x` in 8 bits; the factors are its epilogue.

    Source: T. Dettmers et al., "LLM.int8(): 8-bit Matrix Multiplication for Transformers at Scale", 2022, arXiv:2208.07339.

    ```mlir
    %y, %scale = greta.quantize_rows %x : tensor<?x4096xf16> -> tensor<?x4096xi8>, tensor<?x1xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$scale);
}

def Greta_DequantOp : Greta_Op<"dequant"> {
  let summary = "Weights from few bits with a scale and a zero or a minimum per group";
  let description = [{
    | operand | shape |
    |---|---|
    | `q` | `[N, K/8]`, i32: words of eight weights; of `[N, K/4]` in formats of 8 bits |
    | `high` | of formats of 5 and 6 bits, else left out: `[N, K/32]` or `[N, K/16]`, i32: the upper bits of weights |
    | `scales` | `[N, K/group]` of f16; mxfp4 has i8 and e4m3 f32. e4m3_block has `[ceil(N/128), K/group]` of f32, with N in the type |
    | `zeros` | of gptq4, or left out: `[N, ceil(K/group/8)]`, i32: packed like `q`. Without it every zero is 8 |
    | or minima | `[N, K/group]`, f16: what a weight of zero bits is |
    | result | `[N, K]`, f16 or bf16 |

    `y[n, k] = (w[n, k] - zero) * scales[n, k / group]`, rounded once, with scales of f32 to f32 and to the result's type; with minima
    `y[n, k] = w[n, k] * scales[n, k / group] + minima[n, k / group]`, rounded to f32 and to that type. `group` is a power of two up to 128
    and divides K. `format` says what `w` and the zero are:

    | `format` | bits, in `q` and `high` | order | `w` | zero | third operand | groups from |
    |---|---|---|---|---|---|---|
    | `"gptq4"`, the default | 4 | in order | 0 to 15 | `zeros`, or 8 | `zeros`, minima or none | 32 |
    | `"q4_0"` | 4 | in order | 0 to 15 | 8 | none | 32 |
    | `"q4_1"`, `"q4_k"` | 4 | in order | 0 to 15 | | minima | 32 |
    | `"q4_0_interleaved"` | 4 | pairs, interleaved rows | 0 to 15 | 8 | none | 32 |
    | `"q4_1_interleaved"`, `"q4_k_interleaved"` | 4 | pairs, interleaved rows | 0 to 15 | | minima | 32 |
    | `"q5_0"` | 4 and 1 | pairs | 0 to 31 | 16 | none | 32 |
    | `"q5_1"`, `"q5_k"` | 4 and 1 | pairs | 0 to 31 | | minima | 32 |
    | `"q6_k"` | 4 and 2 | pairs | 0 to 63 | 32 | none | 16 |
    | `"q2_k"` | 4 | in order | 0 to 15 | | minima | 16 |
    | `"q3_k"` | 4 | in order | 0 to 15 | 4 | none | 16 |
    | `"iq4_nl"` | 4 | in order | IQ4_NL's sixteen whole numbers from -127 to 113 | 0 | none | 32 |
    | `"q8_0"` | 8 | in order | -128 to 127 | 0 | none | 32 |
    | `"mxfp4"` | 4 | in order | 0, 0.5, 1, 1.5, 2, 3, 4, 6; from 8 on the same less than zero | 0 | none | 32 |
    | `"nf4"` | 4 | in order | NF4's sixteen numbers from -1 to 1, as f16 | 0 | none | 64 |
    | `"e4m3"`, `"e4m3_block"` | 8 | in order | f8E4M3FN, which may not be NaN | 0 | none | 32 |

    In order, weight e of a word of b bits each begins at bit `b e`; in pairs at bit `b floor(e / 2) + 16 (e mod 2)`, in words of `q`,
    where b is 4 and there are eight of them, and in words of `high`. With interleaved rows N is even and static, and rows 2i and 2i + 1
    of `q` are stored together as one row of twice the length: 4 words of row 2i, then 4 words of row 2i + 1, and so on. Their scales and
    minima take turns one by one. A GEMM of few rows reads this order from fewer lines of memory. The formats of GGUF are what a reader of its files makes of
    its blocks: scales and minima that blocks have as products are one f16 here. A scale of mxfp4 is the exponent of a power of two
    plus 127 (OCP's e8m0); 0 is zero, and it may be from 103 to 142 for a result of f16, as f16 has these, and up to 248 for bf16. 128 rows of e4m3_block share
    their scales, as DeepSeek-V3's weights have them, with `group = 128`: `y[n, k] = w[n, k] * scales[n / 128, k / group]`.

    As `b` of a `greta.matmul` with `transpose_b` it becomes part of that kernel, and the weights are read as they are packed. The result's
    type is then that of `a`.

    Sources: E. Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", 2022,
    arXiv:2210.17323, whose implementations pack weights like `"gptq4"`; the gguf package's quants.py; Open Compute Project,
    "OCP Microscaling Formats (MX) Specification", 2023, and "OCP 8-bit Floating Point Specification (OFP8)", 2023; DeepSeek-AI,
    "DeepSeek-V3 Technical Report", 2024, arXiv:2412.19437; T. Dettmers et al., "QLoRA: Efficient Finetuning of Quantized LLMs",
    2023, arXiv:2305.14314. The rows are in include/greta/Interface/WeightFormats.h.

    ```mlir
    %w = greta.dequant %q, %scales, %zeros {group = 128}
        : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x4xi32> -> tensor<14336x4096xf16>
    %v = greta.dequant %q, %scales, %minima {group = 128}
        : tensor<14336x512xi32>, tensor<14336x32xf16>, tensor<14336x32xf16> -> tensor<14336x4096xf16>
    %u = greta.dequant %q, %high, %scales {format = "q6_k", group = 16}
        : tensor<14336x512xi32>, tensor<14336x256xi32>, tensor<14336x256xf16> -> tensor<14336x4096xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, Variadic<AnyRankedTensor>:$others, I64Attr:$group, DefaultValuedStrAttr<StrAttr, "gptq4">:$format);
  let extraClassDeclaration = [{
    using Tensor = ::mlir::TypedValue<::mlir::RankedTensorType>;
    /// The row of `format`.
    const ::greta::WeightFormat &getRow() { return *::greta::findWeightFormat(getFormat()); }
    /// Null where there are none.
    Tensor getHigh() { return getRow().highBits ? operandAt(1) : Tensor(); }
    Tensor getScales() { return operandAt(getRow().highBits ? 2 : 1); }
    Tensor getZeros() { return operandAt(getRow().highBits ? 3 : 2); }
    /// Whether `zeros` are minima: floats that are added, one per group.
    bool hasMinima() { return getZeros() && getZeros().getType().getElementType().isF16(); }
    /// K.
    int64_t getDepth() { return getQ().getType().getDimSize(1) * getRow().perWord(); }
    private:
    Tensor operandAt(unsigned i) {
      return i < getNumOperands() ? ::llvm::cast<Tensor>(::mlir::Value(getOperand(i))) : Tensor();
    }
    public:
  }];
  let results = (outs AnyRankedTensor:$result);
}

#endif
