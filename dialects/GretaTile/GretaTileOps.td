//===- GretaTileOps.td - ops of the waist ---------------------------------===//
#ifndef GRETATILE_OPS_TD
#define GRETATILE_OPS_TD

include "GretaTile/GretaTileDialect.td"
include "GretaTile/LayoutInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

class GretaTile_Op<string mnem, list<Trait> traits = []> : Op<GretaTile_Dialect, mnem, traits>;

def AnyBlock : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def FloatBlock : StaticShapeTensorOf<[AnyFloat]>;
def AnyScalar : AnyTypeOf<[AnyFloat, AnySignlessInteger]>;
def AnyLaneValue : AnyTypeOf<[AnyFloat, AnySignlessInteger, VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>]>;

//===----------------------------------------------------------------------===//
// Kernels and their launches
//===----------------------------------------------------------------------===//

def GretaTile_FuncOp : GretaTile_Op<"func", [FunctionOpInterface, IsolatedFromAbove,
    HasParent<"::mlir::ModuleOp">, AutomaticAllocationScope]> {
  let summary = "A kernel: what one workgroup executes";
  let description = [{
    Arguments are pointers, then `i32` scalars; nothing is returned. `block_size` is the number of lanes of the workgroup,
    `wave_size` the number that exchange values by shuffles; `wave_size` 1 stands for a target without such operations, where
    every exchange goes through shared memory.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       ConfinedAttr<I32Attr, [IntPositive]>:$block_size,
                       ConfinedAttr<I32Attr, [IntPositive]>:$wave_size,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, "int32_t":$blockSize,
                                 "int32_t":$waveSize)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    int32_t getNumWaves() { return getBlockSize() / getWaveSize(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def GretaTile_ReturnOp : GretaTile_Op<"return", [Pure, HasParent<"FuncOp">, Terminator]> {
  let summary = "End of a kernel";
  let assemblyFormat = "attr-dict";
}

def GretaTile_LaunchOp : GretaTile_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel over a grid of workgroups";
  let description = [{
    Stands in the function that the package exports. `operands` then `results` are the kernel's pointer arguments; `scalars`
    gives the values of its `i32` arguments and `grid` the number of workgroups per axis (one to three results), both over
    the symbols of the enclosing function (its attribute `greta.symbols`), as are `result_shapes`, one map per result.
    `config` records what the compiler chose.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$operands, AffineMapAttr:$grid,
                       AffineMapAttr:$scalars, AffineMapArrayAttr:$result_shapes, OptionalAttr<DictionaryAttr>:$config);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `grid` $grid `scalars` $scalars `(` $operands `)` `shapes` $result_shapes attr-dict
    `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Block level
//===----------------------------------------------------------------------===//

def GretaTile_ProgramIdOp : GretaTile_Op<"program_id", [Pure]> {
  let summary = "Index of this workgroup along an axis of the grid";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let builders = [OpBuilder<(ins "int32_t":$axis), [{ build($_builder, $_state, $_builder.getI32Type(), axis); }]>];
  let assemblyFormat = "$axis attr-dict";
}

def GretaTile_LoadOp : GretaTile_Op<"load", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "Loads a block from global memory";
  let description = [{
    Element (i0, i1, ...) of the block comes from `base[sum_d (offsets[d] + i_d) * strides[d]]`, in elements. For every dimension
    `bounded[k]` it is read only where `offsets[d] + i_d < bounds[k]`; elsewhere the value is `other`, or zero without one. The block's first element
    lies within the bounds. Along the dimensions `clamp[k]`, which are bounded too, what lies beyond is the last element within instead, for
    rows of an operand whose products nobody keeps. With `divisors`, powers of two, `(offsets[d] + i_d) / divisors[d]`
    takes the index's place in the address (not in the bounds): neighbours share elements; there the offset is a multiple of the block's
    extent. A stride of -2^63 (`?`) is taken from `dynamic_strides`, in order. `align` is the alignment in bytes
    that the base pointer is known to have, and that strides and offsets are promised to keep in units of the vector they allow.

    ```mlir
    %v = greta_tile.load %x[%row, %col] strides [4096, 1] bounds [0] (%rows) align 16
           : !greta_tile.ptr<f16> -> tensor<4x1024xf16>
    ```
  }];
  let arguments = (ins GretaTile_PtrType:$base, Variadic<I32>:$offsets, Variadic<I32>:$dynamic_strides,
                       Variadic<I32>:$bounds, Optional<AnyScalar>:$other, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$bounded, OptionalAttr<DenseI64ArrayAttr>:$clamped,
                       DefaultValuedAttr<I64Attr, "16">:$align, OptionalAttr<DenseI64ArrayAttr>:$divisors);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$base, "::mlir::ValueRange":$offsets,
                                 "::mlir::ValueRange":$dynamicStrides, "::mlir::ValueRange":$bounds, "::mlir::Value":$other,
                                 "::llvm::ArrayRef<int64_t>":$strides, "::llvm::ArrayRef<int64_t>":$bounded, "int64_t":$align,
                                 CArg<"::llvm::ArrayRef<int64_t>", "{}">:$clamped), [{
    build($_builder, $_state, type, base, offsets, dynamicStrides, bounds, other, strides, bounded,
          clamped.empty() ? ::mlir::DenseI64ArrayAttr() : $_builder.getDenseI64ArrayAttr(clamped), align,
          ::mlir::DenseI64ArrayAttr());
  }]>];
  let extraClassDeclaration = [{
    /// How many neighbours along a dimension share an element.
    int64_t getDivisor(unsigned dim) {
      auto divisors = getDivisors();
      return divisors ? (*divisors)[dim] : 1;
    }
    bool isClamped(int64_t dim) { return getClamped() && ::llvm::is_contained(*getClamped(), dim); }
  }];
  let results = (outs AnyBlock:$result);
  let assemblyFormat = [{
    $base `[` $offsets `]` `strides` $strides (`(` $dynamic_strides^ `)`)? `bounds` $bounded (`(` $bounds^ `)`)? (`clamp` $clamped^)?
    (`other` $other^ `:` type($other))? (`align` $align^)? attr-dict `:` type($base) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GretaTile_StoreOp : GretaTile_Op<"store", [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "Stores a block to global memory";
  let description = [{
    The counterpart of `greta_tile.load`: elements outside of the bounds are not written, replicated elements are written once.
  }];
  let arguments = (ins AnyBlock:$value, GretaTile_PtrType:$base, Variadic<I32>:$offsets, Variadic<I32>:$dynamic_strides,
                       Variadic<I32>:$bounds, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$bounded,
                       DefaultValuedAttr<I64Attr, "16">:$align);
  let assemblyFormat = [{
    $value `,` $base `[` $offsets `]` `strides` $strides (`(` $dynamic_strides^ `)`)? `bounds` $bounded (`(` $bounds^ `)`)?
    (`align` $align^)? attr-dict `:` type($value) `->` type($base)
  }];
  let hasVerifier = 1;
}

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
  let arguments = (ins AnyScalar:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def GretaTile_BroadcastOp : GretaTile_Op<"broadcast", [Pure, LayoutTransfer]> {
  let summary = "Repeats a block along its dimensions of extent 1";
  let description = "`greta_tile.broadcast %s : tensor<4x1xf32> -> tensor<4x1024xf32>`; ranks are equal.";
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_ReduceOp : GretaTile_Op<"reduce", [IsolatedFromAbove, RecursiveMemoryEffects, SingleBlock,
    DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims", "takesOneLayout"]>]> {
  let summary = "Combines the elements of each line along an axis";
  let description = [{
    Of one or several blocks of a shape; the axis is dropped, and of blocks with one dimension scalars are left. The region combines two
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
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "uint32_t":$axis,
      "::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder &, ::mlir::Location, ::mlir::ValueRange, ::mlir::ValueRange)>":$combine)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def GretaTile_YieldOp : GretaTile_Op<"yield", [Pure, ReturnLike, Terminator, HasParent<"ReduceOp">]> {
  let summary = "What a region combines its arguments to";
  let arguments = (ins Variadic<AnyScalar>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def GretaTile_FlipOp : GretaTile_Op<"flip", [Pure, SameOperandsAndResultType]> {
  let summary = "Exchanges the two slices of a block along a dimension of extent 2";
  let description = [{
    `greta_tile.flip %x dim 1 : tensor<4x2x64xf32>`. The layout holds the dimension in registers, so that nothing moves, or in
    one bit of the lane, which is a shuffle.
  }];
  let arguments = (ins AnyBlock:$value, ConfinedAttr<I32Attr, [IntMinValue<0>]>:$dim);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value `dim` $dim attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def GretaTile_ReshapeOp : GretaTile_Op<"reshape", [Pure, DeclareOpInterfaceMethods<LayoutTransferOpInterface, ["operandDims"]>]> {
  let summary = "The elements of a block, in row-major order, under another shape";
  let description = [{
    Splits, merges, drops and inserts dimensions: `greta_tile.reshape %x : tensor<64x256xf32> -> tensor<64x2x2x64xf32>`. Where the algebra has the
    operand's layout under the new shape nothing moves; else the elements pass through shared memory.
  }];
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_DotOp : GretaTile_Op<"dot", [Pure, TypesMatchWith<"the accumulator has the result's type", "result",
    "acc", "$_self">]> {
  let summary = "Matrix product of two blocks, added to a third";
  let description = [{
    `greta_tile.dot %a, %b, %c : tensor<64x16xf16>, tensor<16x64xf16> -> tensor<64x64xf32>` is c + a b. Products are
    formed and summed in the accumulator's type. With `matrix` an instruction does it tile by tile, which orders the sum as
    it likes; without, it is a chain of fused multiply-adds along K.
  }];
  let arguments = (ins AnyBlock:$a, AnyBlock:$b, AnyBlock:$acc, OptionalAttr<GretaTile_MatrixAttr>:$matrix);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_ContractOp : GretaTile_Op<"contract", [Pure, TypesMatchWith<"the accumulator has the result's type", "result",
    "acc", "$_self">]> {
  let summary = "Adds up the products of two blocks along dimensions that a lane holds";
  let description = [{
    `greta_tile.contract %x, %w, %c dims [3] : tensor<2x1x64x8xf16>, tensor<1x4x64x8xf16> -> tensor<2x4x64x1xf32>` is c plus the
    sum over dimension 3 of x * w, in c's type. Along the other dimensions operands have the result's extent, or 1 and repeat. The
    layout holds `dims` in registers, so that nothing moves: a chain of fused multiply-adds per element of the result.

    Where the result has more than one element along `dims`, each is the sum of a group of neighbours, which a lane holds:
    `greta_tile.contract %x, %x, %c dims [1] : tensor<64x32xf16>, tensor<64x32xf16> -> tensor<64x4xf32>` adds squares of eight.
  }];
  let arguments = (ins AnyBlock:$a, AnyBlock:$b, AnyBlock:$acc, DenseI64ArrayAttr:$dims);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b `,` $acc `dims` $dims attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_ContractPackedOp : GretaTile_Op<"contract_packed", [Pure, TypesMatchWith<"the accumulator has the result's type",
    "result", "acc", "$_self">]> {
  let summary = "contract with weights of 4 bits, eight in a word";
  let description = [{
    The last two dimensions are words and the eight weights of each: `a` is `[.., W, 8]` of f16, `words` `[.., W, 1]` of i32, `zeros`
    (i32, 0 to 15) and `scales` (f16) `[.., 1, 1]`. The result is `acc + scales * sum(a * (weight - zeros))` over both, in f32;
    a target may round products and sums of up to eight of them to f16.

    ```mlir
    %r = greta_tile.contract_packed %x, %q, %z, %s, %c : tensor<1x1x32x4x8xf16>, tensor<1x2x32x4x1xi32>, tensor<1x2x32x1x1xi32>,
           tensor<1x2x32x1x1xf16> -> tensor<1x2x32x1x1xf32>
    ```
  }];
  let arguments = (ins AnyBlock:$a, AnyBlock:$words, AnyBlock:$zeros, AnyBlock:$scales, AnyBlock:$acc);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = [{
    $a `,` $words `,` $zeros `,` $scales `,` $acc attr-dict `:` type($a) `,` type($words) `,` type($zeros) `,` type($scales)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

def GretaTile_DequantOp : GretaTile_Op<"dequant", [Pure, LayoutTransfer]> {
  let summary = "Weights of 4 bits as f16";
  let description = [{
    Along one dimension `words` (i32) have an eighth of the result's extent: each is eight neighbours, the low bits first. `scales` (f16) and
    `zeros` (i32, 0 to 15) have extents that divide the result's, so that neighbours share them. The result is `(weight - zero) * scale`,
    rounded once.

    ```mlir
    %b = greta_tile.dequant %q, %s, %z : tensor<8x128xi32>, tensor<2x128xf16>, tensor<1x128xi32> -> tensor<64x128xf16>
    ```
  }];
  let arguments = (ins AnyBlock:$words, AnyBlock:$scales, AnyBlock:$zeros);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = [{
    $words `,` $scales `,` $zeros attr-dict `:` type($words) `,` type($scales) `,` type($zeros) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// The dimension along which words are packed.
    unsigned getDim();
  }];
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

def GretaTile_LocalAllocOp : GretaTile_Op<"local_alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Blocks in shared memory that live as long as the workgroup";
  let description = "Stands in the kernel's entry block.";
  let results = (outs GretaTile_LocalType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def GretaTile_LocalStoreOp : GretaTile_Op<"local_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stores a block to one stage of a local";
  let description = [{
    Barriers are the program's business. A `direct` one stores what a `load` of its block brings, which nothing else uses, without passing it through
    registers: the load happens here. Its layout gives every wave neighbours in shared memory, lane by lane, and it has arrived behind a barrier that
    waits for it: `greta_tile.local_store %v, %a[%stage] direct`.
  }];
  let arguments = (ins AnyBlock:$value, GretaTile_LocalType:$local, I32:$stage, UnitAttr:$direct);
  let assemblyFormat = "$value `,` $local `[` $stage `]` (`direct` $direct^)? attr-dict `:` type($value) `->` type($local)";
  let hasVerifier = 1;
}

def GretaTile_LocalLoadOp : GretaTile_Op<"local_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads a part of one stage of a local";
  let description = [{
    The part begins at `offsets`, which are multiples of its extents:
    `greta_tile.local_load %a[%stage][%c0, %k] : !greta_tile.local<2 x tensor<128x64xf16>, ..> -> tensor<128x16xf16, #layout>`. An offset that is no
    constant stands along a dimension that the placement does not swizzle.
  }];
  let arguments = (ins GretaTile_LocalType:$local, I32:$stage, Variadic<I32>:$offsets);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$local `[` $stage `]` `[` $offsets `]` attr-dict `:` type($local) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_ScheduleOp : GretaTile_Op<"schedule"> {
  let summary = "Asks for an even mix of what stands before it";
  let description = [{
    Of the accesses and products since the last barrier or `schedule` of its block: `greta-tile-distribute` counts them and says in
    `schedule_group`s how they are to alternate. With `compute`, as much other work comes after each product, until all is stored: `greta_tile.schedule compute 7`.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I32Attr, [IntPositive]>>:$compute);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "(`compute` $compute^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Lane level
//===----------------------------------------------------------------------===//

def GretaTile_LaneIdOp : GretaTile_Op<"lane_id", [Pure]> {
  let summary = "Index of this lane in its wave, 0 to wave_size-1";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def GretaTile_WaveIdOp : GretaTile_Op<"wave_id", [Pure]> {
  let summary = "Index of this wave in its workgroup; the same in all its lanes";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def GretaTile_PtrAddOp : GretaTile_Op<"ptr_add", [Pure, TypesMatchWith<"result is the base's type", "base", "result", "$_self">]> {
  let summary = "Moves a pointer by a number of elements";
  let description = "The offset is 64 bits wide and the same in all lanes of the workgroup.";
  let arguments = (ins GretaTile_PtrType:$base, I64:$offset);
  let results = (outs GretaTile_PtrType:$result);
  let assemblyFormat = "$base `,` $offset attr-dict `:` type($base)";
}

def GretaTile_PtrLoadOp : GretaTile_Op<"ptr_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads one lane's scalar or vector at an element offset from a pointer";
  let description = [{
    The offset is unsigned and its bytes stay below 2^32, so that targets may add it to a uniform address as it is. `align` is
    in bytes; a vector of 16 bytes with alignment 16 becomes one access.
  }];
  let arguments = (ins GretaTile_PtrType:$base, I32:$offset, I64Attr:$align);
  let results = (outs AnyLaneValue:$result);
  let assemblyFormat = "$base `[` $offset `]` `align` $align attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_PtrStoreOp : GretaTile_Op<"ptr_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stores one lane's scalar or vector at an element offset from a pointer";
  let description = "Offset and alignment as in `ptr_load`.";
  let arguments = (ins AnyLaneValue:$value, GretaTile_PtrType:$base, I32:$offset, I64Attr:$align);
  let assemblyFormat = "$value `,` $base `[` $offset `]` `align` $align attr-dict `:` type($value) `->` type($base)";
  let hasVerifier = 1;
}

def GretaTile_PtrLoadSharedOp : GretaTile_Op<"ptr_load_shared", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads from global memory straight into an array in shared memory";
  let description = [{
    Each lane has its place in global memory, `width` numbers of the pointer's type at `offset` as in `ptr_load`; the wave's lanes, one after another,
    fill the array from element `index` on, on which they agree. Zeros come to the places of lanes whose `mask` is false. What was loaded is there
    behind a barrier that waits for it.

    ```mlir
    greta_tile.ptr_load_shared %base[%offset] mask %m, %array[%i] width 8 : !greta_tile.ptr<f16> -> !greta_tile.shared<2048 x vector<8xf16>>
    ```
  }];
  let arguments = (ins GretaTile_PtrType:$base, I32:$offset, Optional<I1>:$mask, GretaTile_SharedType:$array, I32:$index,
                       ConfinedAttr<I64Attr, [IntPositive]>:$width);
  let assemblyFormat = [{
    $base `[` $offset `]` (`mask` $mask^)? `,` $array `[` $index `]` `width` $width attr-dict `:` type($base) `->` type($array)
  }];
  let hasVerifier = 1;
}

def GretaTile_SharedAllocOp : GretaTile_Op<"shared_alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "An array in shared memory that lives as long as the workgroup";
  let description = "Stands in the kernel's entry block.";
  let results = (outs GretaTile_SharedType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def GretaTile_SharedLoadOp : GretaTile_Op<"shared_load", [MemoryEffects<[MemRead]>,
    TypesMatchWith<"result is the array's element type", "array", "result",
                   "::llvm::cast<::greta::tile::SharedType>($_self).getElementType()">]> {
  let summary = "Loads one element of an array in shared memory";
  let arguments = (ins GretaTile_SharedType:$array, I32:$index);
  let results = (outs AnyLaneValue:$result);
  let assemblyFormat = "$array `[` $index `]` attr-dict `:` type($array)";
}

def GretaTile_SharedStoreOp : GretaTile_Op<"shared_store", [MemoryEffects<[MemWrite]>,
    TypesMatchWith<"value is of the array's element type", "array", "value",
                   "::llvm::cast<::greta::tile::SharedType>($_self).getElementType()">]> {
  let summary = "Stores one element of an array in shared memory";
  let arguments = (ins AnyLaneValue:$value, GretaTile_SharedType:$array, I32:$index);
  let assemblyFormat = "$value `,` $array `[` $index `]` attr-dict `:` type($array)";
}

def GretaTile_BarrierOp : GretaTile_Op<"barrier"> {
  let summary = "All lanes of the workgroup meet; shared memory written before is visible after";
  let description = [{
    With `in_flight` that holds for loads straight to shared memory as well, but for the last so many of each lane: `greta_tile.barrier in_flight 8`.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$in_flight);
  let builders = [OpBuilder<(ins)>];
  let assemblyFormat = "(`in_flight` $in_flight^)? attr-dict";
}

def GretaTile_ShuffleXorOp : GretaTile_Op<"shuffle_xor", [Pure, SameOperandsAndResultType]> {
  let summary = "The value of the lane whose id differs by the bits of a mask";
  let arguments = (ins AnyScalar:$value, ConfinedAttr<I32Attr, [IntPositive]>:$mask);
  let results = (outs AnyScalar:$result);
  let assemblyFormat = "$value `,` $mask attr-dict `:` type($value)";
}

def GretaTile_ShuffleOp : GretaTile_Op<"shuffle", [Pure, TypesMatchWith<"result is the value's type", "value", "result", "$_self">]> {
  let summary = "The value of the lane with a given id";
  let arguments = (ins AnyScalar:$value, I32:$lane);
  let results = (outs AnyScalar:$result);
  let assemblyFormat = "$value `,` $lane attr-dict `:` type($value)";
}

def GretaTile_ScheduleKind : I32EnumAttr<"ScheduleKind", "what a scheduler may order", [
    I32EnumAttrCase<"Mma", 0, "mma">, I32EnumAttrCase<"SharedLoad", 1, "shared_load">,
    I32EnumAttrCase<"SharedStore", 2, "shared_store">, I32EnumAttrCase<"Load", 3, "load">,
    I32EnumAttrCase<"Compute", 4, "compute">]> {
  let cppNamespace = "::greta::tile";
}

def GretaTile_ScheduleGroupOp : GretaTile_Op<"schedule_group"> {
  let summary = "The next so many instructions of a kind, in the order of these ops";
  let description = "A wish that a target may ignore: `greta_tile.schedule_group mma 2`.";
  let arguments = (ins GretaTile_ScheduleKind:$kind, ConfinedAttr<I32Attr, [IntPositive]>:$count);
  let assemblyFormat = "$kind $count attr-dict";
}

def AnyMatrixOperand : AnyTypeOf<[AnyVectorOfNonZeroRank, GretaTile_FragmentType]>;

def GretaTile_DotPackedOp : GretaTile_Op<"dot_packed", [Pure]> {
  let summary = "One lane's product with weights of 4 bits";
  let description = [{
    The sum of `a[8 i + j] * (w - zero)` over the words `i` and their four bits `j`, the lowest first, in f32; a target may round
    products and sums of up to eight of them to f16. `zero` is 0 to 15.
  }];
  let arguments = (ins VectorOfRankAndType<[1], [I32]>:$words, I32:$zero, VectorOfRankAndType<[1], [F16]>:$a);
  let results = (outs F32:$result);
  let assemblyFormat = "$words `,` $zero `,` $a attr-dict `:` type($words) `,` type($a)";
  let hasVerifier = 1;
}

def GretaTile_DequantWordOp : GretaTile_Op<"dequant_word", [Pure]> {
  let summary = "The eight weights of a word as f16";
  let description = [{
    `(weight - zero) * scale` for the four bits of a word, the lowest first: `greta_tile.dequant_word %w, %s, %z`. `zero` is 0 to 15.
  }];
  let arguments = (ins I32:$word, F16:$scale, I32:$zero);
  let results = (outs VectorOfLengthAndType<[8], [F16]>:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$word, "::mlir::Value":$scale, "::mlir::Value":$zero), [{
    build($_builder, $_state, ::mlir::VectorType::get(8, $_builder.getF16Type()), word, scale, zero);
  }]>];
  let assemblyFormat = "$word `,` $scale `,` $zero attr-dict `:` type($result)";
}

def GretaTile_MmaOp : GretaTile_Op<"mma", [Pure, TypesMatchWith<"the accumulator has the result's type", "result", "acc", "$_self">]> {
  let summary = "One matrix instruction of a wave";
  let description = [{
    Operands are the lane's registers in the order of the instruction's layouts, or fragments; all lanes of the wave take part.
  }];
  let arguments = (ins StrAttr:$intrinsic, AnyMatrixOperand:$a, AnyMatrixOperand:$b, AnyMatrixOperand:$acc);
  let results = (outs AnyMatrixOperand:$result);
  let assemblyFormat = "$intrinsic $a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_FragmentLoadOp : GretaTile_Op<"fragment_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads a fragment from an array in shared memory";
  let description = [{
    Row r of the matrix begins at array element `index + r * stride`; with `transposed` it is column r. What follows it in memory are its
    neighbours. The array's elements may be vectors of the matrix's type. All lanes of the wave agree on `index`.

    ```mlir
    %f = greta_tile.fragment_load %array[%i] stride 9 transposed : !greta_tile.shared<1440 x vector<8xf16>> -> !greta_tile.fragment<16x8xf16, b>
    ```
  }];
  let arguments = (ins GretaTile_SharedType:$array, I32:$index, ConfinedAttr<I32Attr, [IntPositive]>:$stride, UnitAttr:$transposed);
  let results = (outs GretaTile_FragmentType:$result);
  let assemblyFormat = "$array `[` $index `]` `stride` $stride (`transposed` $transposed^)? attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_FragmentStoreOp : GretaTile_Op<"fragment_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stores a fragment to an array in shared memory";
  let description = "The counterpart of `fragment_load`.";
  let arguments = (ins GretaTile_FragmentType:$value, GretaTile_SharedType:$array, I32:$index,
                       ConfinedAttr<I32Attr, [IntPositive]>:$stride, UnitAttr:$transposed);
  let assemblyFormat = "$value `,` $array `[` $index `]` `stride` $stride (`transposed` $transposed^)? attr-dict `:` type($value) `->` type($array)";
  let hasVerifier = 1;
}

def GretaTile_FragmentSplatOp : GretaTile_Op<"fragment_splat", [Pure]> {
  let summary = "A fragment with one scalar in every element";
  let arguments = (ins AnyScalar:$value);
  let results = (outs GretaTile_FragmentType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_FragmentElementsOp : GretaTile_Op<"fragment_elements", [Pure]> {
  let summary = "The elements of a fragment that this lane holds";
  let description = [{
    In the device's order; which ones they are is only known for a device whose layouts were probed:
    `greta_tile.fragment_elements %f : !greta_tile.fragment<16x8xf32, acc> -> vector<4xf32>` in waves of 32.
  }];
  let arguments = (ins GretaTile_FragmentType:$value);
  let results = (outs VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_FragmentFromElementsOp : GretaTile_Op<"fragment_from_elements", [Pure]> {
  let summary = "A fragment of the elements that the lanes give";
  let description = "The inverse of `fragment_elements`.";
  let arguments = (ins VectorOfRankAndType<[1], [AnyFloat, AnySignlessInteger]>:$value);
  let results = (outs GretaTile_FragmentType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

#endif
