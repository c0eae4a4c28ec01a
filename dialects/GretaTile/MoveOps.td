//===- MoveOps.td - ops that give elements another place ------------------===//
#ifndef GRETATILE_MOVEOPS_TD
#define GRETATILE_MOVEOPS_TD

include "GretaTile/OpBase.td"

def GretaTile_BroadcastOp : GretaTile_Op<"broadcast", [Pure, LayoutTransfer]> {
  let summary = "Repeats a block along its dimensions of extent 1";
  let description = [{
    `greta_tile.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>`; ranks are equal.

    For pointers with `greta.pointer_range`, their offsets are broadcast, so that an address keeps the scalar that it begins at.
  }];
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def GretaTile_ReshapeOp : GretaTile_Op<"reshape", [Pure, DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims"]>]> {
  let summary = "The elements of a block, in row-major order, under another shape";
  let description = [{
    Splits, merges, drops and inserts dimensions: `greta_tile.reshape %x : tensor<64x256xf32> -> tensor<64x2x2x64xf32>`. If the algebra has the
    operand's layout under the new shape nothing moves; else the elements pass through shared memory. Pointers are treated as by `broadcast`.
  }];
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def GretaTile_TransOp : GretaTile_Op<"trans", [Pure, DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims"]>]> {
  let summary = "A block with its dimensions in another order";
  let description = [{
    Dimension `i` of the result is dimension `order[i]` of the operand: `greta_tile.trans %x [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>`.
    The registers get other names, nothing moves.
  }];
  let arguments = (ins AnyBlock:$value, DenseI64ArrayAttr:$order);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value $order attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_JoinOp : GretaTile_Op<"join", [Pure, TypesMatchWith<"the blocks have one type", "a", "b", "$_self">,
    DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims", "takesOneLayout"]>]> {
  let summary = "Two blocks as one, side by side along a new last dimension";
  let description = [{
    `greta_tile.join %a, %b : tensor<4x8xf32> -> tensor<4x8x2xf32>`: element `[i, j, 0]` is a's, `[i, j, 1]` is b's. If lanes hold the new dimension in
    registers nothing moves; where it is a bit of the lane or the wave, each takes the one it is to have.
  }];
  let arguments = (ins AnyBlock:$a, AnyBlock:$b);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_SplitOp : GretaTile_Op<"split", [Pure, TypesMatchWith<"the results have one type", "first", "second", "$_self">,
    DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims"]>]> {
  let summary = "The two blocks that lie side by side along the last dimension";
  let description = [{
    Undoes `join`: `%a, %b = greta_tile.split %x : tensor<4x8x2xf32> -> tensor<4x8xf32>`. The operand is taken with the last dimension in registers.
  }];
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$first, AnyBlock:$second);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($first)";
  let hasVerifier = 1;
}

def GretaTile_CatOp : GretaTile_Op<"cat", [Pure, TypesMatchWith<"the blocks have one type", "a", "b", "$_self">]> {
  let summary = "Two blocks as one, one after the other along a dimension";
  let description = [{
    `greta_tile.cat %a, %b axis 0 : tensor<32xf32> -> tensor<64xf32>`: a's elements, then b's. `greta-tile-assign-layouts` makes
    it a `join`, whose new dimension moves in front of the axis and merges with it.
  }];
  let arguments = (ins AnyBlock:$a, AnyBlock:$b, ConfinedAttr<I32Attr, [IntMinValue<0>]>:$axis);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b `axis` $axis attr-dict `:` type($a) `->` type($result)";
  let extraClassDeclaration = [{
    /// The same by `join`, `trans` and `reshape`, of blocks without layouts.
    ::mlir::Value expand(::mlir::OpBuilder &builder);
  }];
  let hasVerifier = 1;
}

def GretaTile_GatherOp : GretaTile_Op<"gather", [Pure,
    DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims"]>]> {
  let summary = "The elements of a block that another block names along an axis";
  let description = [{
    `greta_tile.gather %x[%i] axis 0 : tensor<64x8xf32>[tensor<16x8xi32>] -> tensor<16x8xf32>`: element `[i, j]` of the result is `[index[i, j], j]` of
    the source. The indices have the source's shape but for the extent of the axis. An index outside of the source gives some
    element of the source. The elements pass through shared memory.
  }];
  let arguments = (ins NumberBlock:$value, StaticShapeTensorOf<[I32]>:$index, ConfinedAttr<I32Attr, [IntMinValue<0>]>:$axis);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value `[` $index `]` `axis` $axis attr-dict `:` type($value) `[` type($index) `]` `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_HistogramOp : GretaTile_Op<"histogram", [Pure,
    DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims", "takesOneLayout"]>]> {
  let summary = "How often each number is among a block's elements";
  let description = [{
    `greta_tile.histogram %x mask %m : tensor<1024xi32> -> tensor<256xi32>`: element `i` of the result counts the elements that are `i` and whose mask is set.
    Numbers beyond the result's are not counted. Lanes add to counters in shared memory.
  }];
  let arguments = (ins StaticShapeTensorOf<[I32]>:$value, Optional<StaticShapeTensorOf<[I1]>>:$mask);
  let results = (outs StaticShapeTensorOf<[I32]>:$result);
  let assemblyFormat = "$value (`mask` $mask^)? attr-dict `:` type($value) (`,` type($mask)^)? `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_ConvertLayoutOp : GretaTile_Op<"convert_layout", [Pure]> {
  let summary = "The same block under another layout";
  let description = [{
    Costs nothing, a shuffle or a trip through shared memory, whichever the layout algebra finds to be enough.
  }];
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

#endif
