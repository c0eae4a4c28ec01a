//===- BlockOps.td - ops on blocks in registers ---------------------------===//
#ifndef GRETATILE_BLOCKOPS_TD
#define GRETATILE_BLOCKOPS_TD

include "GretaTile/OpBase.td"

def GretaTile_IotaOp : GretaTile_Op<"iota", [Pure]> {
  let summary = "The index of every element along one dimension";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>]>:$dim);
  let results = (outs StaticShapeTensorOf<[I32]>:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def GretaTile_SplatOp : GretaTile_Op<"splat", [Pure, TypesMatchWith<"the scalar has the block's element type", "result",
    "value", "::llvm::cast<::mlir::RankedTensorType>($_self).getElementType()">]> {
  let summary = "A block with one scalar in every element";
  let arguments = (ins AnyTypeOf<[AnyFloat, AnySignlessInteger, GretaTile_PtrType]>:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def GretaTile_DotOp : GretaTile_Op<"dot", [Pure, TypesMatchWith<"the accumulator has the result's type", "result",
    "acc", "$_self">]> {
  let summary = "Matrix product of two blocks, added to a third";
  let description = [{
    `greta_tile.dot %a, %b, %c : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>` is c + a b; with a leading
    dimension each is a batch: `tensor<4x64x16xf16>, tensor<4x16x64xf16> -> tensor<4x64x64xf32>`. Products are formed and summed in
    the accumulator's type. With `matrix` an instruction does it tile by tile, which orders the sum as it likes; without, it is a
    chain of fused multiply-adds along K. With `step` that chain is a loop: operands, in any layout, pass through shared memory, from which a
    lane takes what it multiplies by `step` of K at a time.
  }];
  let arguments = (ins NumberBlock:$a, NumberBlock:$b, NumberBlock:$acc, OptionalAttr<GretaTile_MatrixAttr>:$matrix,
                       OptionalAttr<ConfinedAttr<I32Attr, [IntPositive]>>:$step);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$acc, "MatrixAttr":$matrix),
      [{ build($_builder, $_state, type, a, b, acc, matrix, /*step=*/nullptr); }]>];
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_RescaleOp : GretaTile_Op<"rescale", !listconcat([Pure, AllTypesMatch<["value", "factor", "result"]>,
    AllShapesMatch<["value", "where"]>], ElementwiseMappable.traits)> {
  let summary = "A block times factors that mostly are one";
  let description = [{
    `greta_tile.rescale %x, %f where %moved : tensor<128x64xf32>` is x times f. f is one wherever `moved`, of i1, is not set, so that on targets
    whose waves can vote, a wave in which nothing is set leaves its registers as they are.
  }];
  let arguments = (ins NumberBlock:$value, NumberBlock:$factor, StaticShapeTensorOf<[I1]>:$where);
  let results = (outs NumberBlock:$result);
  let assemblyFormat = "$value `,` $factor `where` $where attr-dict `:` type($result) `,` type($where)";
}

def GretaTile_ContractOp : GretaTile_Op<"contract", [Pure, TypesMatchWith<"the accumulator has the result's type", "result",
    "acc", "$_self">]> {
  let summary = "Adds up the products of two blocks along dimensions that a lane holds";
  let description = [{
    `greta_tile.contract %x, %w, %c dims [3] : tensor<2x1x64x8xf16>, tensor<1x4x64x8xf16> -> tensor<2x4x64x1xf32>` is c plus the
    sum over dimension 3 of x * w, in c's type. Along the other dimensions operands have the result's extent, or 1 and repeat. The
    layout holds `dims` in registers, so that nothing moves: a chain of fused multiply-adds per element of the result.

    If the result has more than one element along `dims`, each is the sum of a group of neighbours, which a lane holds:
    `greta_tile.contract %x, %x, %c dims [1] : tensor<64x32xf16>, tensor<64x32xf16> -> tensor<64x4xf32>` adds squares of eight.

    With `narrow`, for f16 into f32, a target may round products and sums of up to eight of them to f16, but not where `b` is one number:
    that is a sum of `a`'s elements, which may overflow.
  }];
  let arguments = (ins NumberBlock:$a, NumberBlock:$b, NumberBlock:$acc, DenseI64ArrayAttr:$dims, UnitAttr:$narrow);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$a, "::mlir::Value":$b, "::mlir::Value":$acc,
      "::llvm::ArrayRef<int64_t>":$dims), [{ build($_builder, $_state, type, a, b, acc, dims, /*narrow=*/false); }]>];
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b `,` $acc `dims` $dims (`narrow` $narrow^)? attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_DequantOp : GretaTile_Op<"dequant", [Pure, LayoutTransfer]> {
  let summary = "Packed weights as f16 or bf16";
  let description = [{
    Along one dimension `words` (i32) have as much less than the result's extent as weights are in a word of the `format`, a row of
    `greta.dequant`'s table, and so has `high` (i32), which stands behind `words` for formats that have it. `scales` (f16, or f32) and `zeros`
    (i32) have extents that divide the result's, so that neighbours share them. The result is `(weight - zero) * scale`, rounded once.
    Weights in two's complement count as the natural numbers that lie 128 above them, and so do their zeros; where weights are codes,
    zeros are not read. If `zeros` are of f16, they are minima and the result is `weight * scale + minimum`, a fused multiply-add of f16.
    If the result is of bf16, products and sums are of f32 and rounded to it.

    ```mlir
    %b = greta_tile.dequant %q, %s, %z : tensor<8x128xi32>, tensor<2x128xf16>, tensor<1x128xi32> -> tensor<64x128xf16>
    %c = greta_tile.dequant %q, %h, %t, %z {format = "q6_k"}
        : tensor<8x128xi32>, tensor<4x128xi32>, tensor<4x128xf16>, tensor<1x128xi32> -> tensor<64x128xf16>
    ```
  }];
  let arguments = (ins AnyBlock:$words, Variadic<AnyBlock>:$others, DefaultValuedStrAttr<StrAttr, "gptq4">:$format);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "operands attr-dict `:` type(operands) `->` type(results)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$words, "::mlir::Value":$high, "::mlir::Value":$scales,
      "::mlir::Value":$zeros, "const ::greta::WeightFormat &":$row)>];
  let extraClassDeclaration = [{
    /// The row of `format`.
    const ::greta::WeightFormat &getRow() { return *::greta::findWeightFormat(getFormat()); }
    /// Null where there is none.
    ::mlir::Value getHigh() { return getNumOperands() > 3 ? getOperand(1) : ::mlir::Value(); }
    ::mlir::Value getScales() { return getOperand(getNumOperands() - 2); }
    ::mlir::Value getZeros() { return getOperand(getNumOperands() - 1); }
    /// The dimension along which words are packed.
    unsigned getDim();
  }];
  let hasVerifier = 1;
}

def GretaTile_ScheduleOp : GretaTile_Op<"schedule"> {
  let summary = "Asks for an even mix of what stands before it";
  let description = [{
    `greta-tile-interleave` counts the accesses and products since the last barrier or `schedule` of the op's block, and says in
    `schedule_group`s how they are to alternate.
  }];
  let assemblyFormat = "attr-dict";
}

#endif
