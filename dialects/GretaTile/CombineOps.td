//===- CombineOps.td - reductions and scans -------------------------------===//
#ifndef GRETATILE_COMBINEOPS_TD
#define GRETATILE_COMBINEOPS_TD

include "GretaTile/OpBase.td"

/// An op that combines the elements of one or several blocks along an axis by a region.
class GretaTile_CombiningOp<string mnem, list<Trait> traits = []> : GretaTile_Op<mnem, !listconcat(
    [IsolatedFromAbove, RecursiveMemoryEffects, SingleBlock], traits)> {
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def GretaTile_ReduceOp : GretaTile_CombiningOp<"reduce", [
    DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims", "takesOneLayout"]>]> {
  let summary = "Combines the elements of each line along an axis";
  let description = [{
    Takes one or several blocks of a shape and drops the axis; blocks with one dimension become scalars. The region combines two
    elements of each block, `(x0, .., xn, y0, .., yn)`, is associative and commutative, and has no effects. The order of combination is a fixed tree
    (registers, then lanes, then waves), so the result is the same from run to run. A region of one op is written as that op.

    ```mlir
    %s = greta_tile.reduce {arith.addf} %x axis 1 : tensor<4x1024xf32> -> tensor<4xf32>
    %m, %i = greta_tile.reduce %x, %n axis 0 : tensor<64xf32>, tensor<64xi32> -> (f32, i32) {
    ^bb0(%a: f32, %ia: i32, %b: f32, %ib: i32):
      %greater = arith.cmpf ogt, %a, %b : f32
      %v = arith.select %greater, %a, %b : f32
      %k = arith.select %greater, %ia, %ib : i32
      greta_tile.yield %v, %k : f32, i32
    }
    ```
  }];
  let arguments = (ins Variadic<AnyBlock>:$values, ConfinedAttr<I32Attr, [IntMinValue<0>]>:$axis);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "uint32_t":$axis,
      "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange, ::mlir::ValueRange)>":$combine)>];
}

def GretaTile_ScanOp : GretaTile_CombiningOp<"scan"> {
  let summary = "Combines each element with those before it along an axis";
  let description = [{
    Takes one or several blocks of a shape. Element i of the result combines elements 0 to i, or with `reverse` the last down to i. The region
    is `reduce`'s, associative but not commutative: its first arguments are what was combined before. The order of combination is a fixed tree.

    ```mlir
    %c = greta_tile.scan {arith.addf} %x axis 1 reverse : tensor<4x1024xf32>
    %s, %f = greta_tile.scan %x, %first axis 0 : tensor<64xf32>, tensor<64xi1> {
    ^bb0(%a: f32, %fa: i1, %b: f32, %fb: i1):
      %sum = arith.addf %a, %b : f32
      %v = arith.select %fb, %b, %sum : f32
      %either = arith.ori %fa, %fb : i1
      greta_tile.yield %v, %either : f32, i1
    }
    ```
  }];
  let arguments = (ins Variadic<AnyBlock>:$values, ConfinedAttr<I32Attr, [IntMinValue<0>]>:$axis, UnitAttr:$reverse);
}

def GretaTile_YieldOp : GretaTile_Op<"yield", [Pure, ReturnLike, Terminator, ParentOneOf<["ReduceOp", "ScanOp"]>]> {
  let summary = "Gives the result of a region that combines elements";
  let arguments = (ins Variadic<AnyScalar>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
