//===- ConvolutionOps.td - convolutions -----------------------------------===//
#ifndef GRETA_CONVOLUTIONOPS_TD
#define GRETA_CONVOLUTIONOPS_TD

include "Greta/OpBase.td"

/// How taps lie on an image, in rows and columns; they have been verified.
class Greta_WindowOp<string mnemonic> : Greta_Op<mnemonic> {
  code windowDeclaration = [{
    /// Along rows (0) or columns (1).
    int64_t strideOf(unsigned dim) { return entry(getStrides(), dim); }
    int64_t dilationOf(unsigned dim) { return entry(getDilations(), dim); }
    /// Zeros before the first and behind the last element.
    int64_t paddingBefore(unsigned dim) { return entry(getPadding(), dim); }
    int64_t paddingBehind(unsigned dim) { return entry(getPadding(), 2 + dim); }
    /// Positions along a dimension are (extent + shift) / stride + 1.
    int64_t shiftOf(unsigned dim) {
      return paddingBefore(dim) + paddingBehind(dim) - dilationOf(dim) * (kernelExtent(dim) - 1) - 1;
    }
    static int64_t entry(::mlir::ArrayAttr list, unsigned i) {
      return ::llvm::cast<::mlir::IntegerAttr>(list[i]).getInt();
    }
    bool hasChannelsFirst() { return getLayout() == "nchw"; }
    /// The dimension of `x` that has rows (0) or columns (1), and the one that has channels.
    unsigned dimOf(unsigned dim) { return (hasChannelsFirst() ? 2 : 1) + dim; }
    unsigned channelDim() { return hasChannelsFirst() ? 1 : 3; }
  }];
}

def Greta_Conv2dOp : Greta_WindowOp<"conv2d"> {
  let summary = "Two-dimensional convolution";
  let description = [{
    | operand | shape |
    |---|---|
    | `x` | `[B, H, W, C]`: images of H rows, W columns, C channels; f32, f16, bf16 or i8 |
    | `w` | `[KO, R, S, C/groups]`, static: R x S taps; the element type of `x` |
    | `bias` | `[KO]`, or left out: a number for each output channel, f32 or the element type of `x`, for i8 i32 |
    | result | `[B, Ho, Wo, KO]`, of the element type of `x` or f32, for i8 i32 |

    | attribute | default | |
    |---|---|---|
    | `strides` | `[1, 1]` | elements of `x` between neighbours of the result, in rows and columns; from 1 |
    | `padding` | `[0, 0, 0, 0]` | rows above, columns left, rows below and columns right of `x` that are zero; from 0 |
    | `dilations` | `[1, 1]` | elements of `x` between taps, in rows and columns; from 1 |
    | `groups` | 1 | divides C and KO: output channel o sees the channels of group `o / (KO / groups)` |
    | `layout` | `"nhwc"` | with `"nchw"` `x` is `[B, C, H, W]`, `w` `[KO, C/groups, R, S]` and the result `[B, KO, Ho, Wo]` |

    `y[b, p, q, o] = bias[o] + sum(x[b, p * strides[0] - top + r * dilations[0], q * strides[1] - left + s * dilations[1], c] * w[o, r, s, c])` over r, s and
    c, where x is zero outside of its rows and columns. `Ho = floor((H + top + bottom - dilations[0] * (R - 1) - 1) / strides[0]) + 1`, and Wo likewise.
    Sums are f32 (i32 for i8); the bias is added to them, and the result is rounded once. B, H and W may be dynamic, each in x and the result; C is static.

    On GPUs it is a GEMM of `B * Ho * Wo` rows, KO columns and `R * S * C` products, whose kernel gathers its rows (`greta.patches`); elementwise work behind it is part of that
    kernel. Channels are best multiples of 32. Groups cost a kernel that moves data; a group is a GEMM of its own.

    With "nchw" each group of each image is a GEMM of KO / groups rows, `Ho * Wo` columns and `C / groups * R * S` products. Its kernel gathers the columns one element at a time, so
    "nhwc" is faster where there is a choice; one tap with stride 1 and no padding is a plain GEMM in both.

    Source: K. Chellapilla, S. Puri, P. Simard, "High Performance Convolutional Neural Networks for Document Processing", 2006; without the matrix in memory: S. Chetlur et al.,
    "cuDNN: Efficient Primitives for Deep Learning", 2014, arXiv:1410.0759.

    ```mlir
    %0 = greta.conv2d %x, %w, %bias {strides = [2, 2], padding = [1, 1, 1, 1]}
        : tensor<?x56x56x64xf16>, tensor<128x3x3x64xf16>, tensor<128xf32> -> tensor<?x28x28x128xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, Optional<AnyRankedTensor>:$bias,
                       DefaultValuedAttr<I64ArrayAttr, "{1, 1}">:$strides, DefaultValuedAttr<I64ArrayAttr, "{0, 0, 0, 0}">:$padding,
                       DefaultValuedAttr<I64ArrayAttr, "{1, 1}">:$dilations, DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedStrAttr<StrAttr, "nhwc">:$layout);
  let results = (outs AnyRankedTensor:$result);
  let extraClassDeclaration = windowDeclaration # [{
    int64_t kernelExtent(unsigned dim) { return getW().getType().getDimSize(dimOf(dim)); }
    /// The type in which products are summed: i32 for i8, else f32.
    ::mlir::Type getSumType() {
      return getX().getType().getElementType().isInteger(8)
                 ? ::mlir::Type(::mlir::IntegerType::get(getContext(), 32))
                 : ::mlir::Type(::mlir::Float32Type::get(getContext()));
    }
  }];
}

def Greta_PatchesOp : Greta_WindowOp<"patches"> {
  let summary = "The gathered operand of the GEMM that is a convolution";
  let description = [{
    `greta-fuse` makes a `greta.conv2d` a GEMM of these patches of its images. The GEMM's kernel gathers blocks of them, and they are never in memory. The op has no kernel of its
    own; write `greta.conv2d`.

    | operand | shape |
    |---|---|
    | `x` | `[B, H, W, C]`, with the layout "nchw" `[B, C, H, W]` |
    | result | `[B * Ho * Wo, R * S * C]`, or `[groups, B * Ho * Wo, R * S * C / groups]` with groups, of the element type of `x`; with "nchw" `[B, groups, C / groups * R * S, Ho * Wo]` |

    The row of the position (b, p, q) has what the R x S taps `kernel` see there, tap after tap, C channels each (of one group), zero outside of the image. With "nchw" these are columns,
    channel after channel, R x S taps each. The attributes are those of `greta.conv2d`.

    ```mlir
    %0 = greta.patches %x {kernel = [3, 3], strides = [1, 1], padding = [1, 1, 1, 1], dilations = [1, 1]}
        : tensor<?x56x56x64xf16> -> tensor<?x576xf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, I64ArrayAttr:$kernel, I64ArrayAttr:$strides, I64ArrayAttr:$padding, I64ArrayAttr:$dilations,
                       DefaultValuedStrAttr<StrAttr, "nhwc">:$layout);
  let results = (outs AnyRankedTensor:$result);
  let extraClassDeclaration = windowDeclaration # [{
    int64_t kernelExtent(unsigned dim) { return entry(getKernel(), dim); }
    bool hasGroups() { return getType().getRank() > 2; }
    /// The dimensions of the result that have positions, and what taps see there.
    int64_t positionDim() { return getType().getRank() - (hasChannelsFirst() ? 1 : 2); }
    int64_t depthDim() { return getType().getRank() - (hasChannelsFirst() ? 2 : 1); }
    int64_t numTaps() { return kernelExtent(0) * kernelExtent(1); }
    /// Channels of a group.
    int64_t getChannels() { return getType().getDimSize(depthDim()) / numTaps(); }
  }];
}

#endif
