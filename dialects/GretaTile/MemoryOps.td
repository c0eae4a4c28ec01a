//===- MemoryOps.td - blocks in global and shared memory ------------------===//
#ifndef GRETATILE_MEMORYOPS_TD
#define GRETATILE_MEMORYOPS_TD

include "GretaTile/OpBase.td"

def GretaTile_LoadOp : GretaTile_Op<"load", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments]> {
  let summary = "Loads a block from global memory";
  let description = [{
    Element (i0, i1, ...) of the block comes from `base[sum_d (offsets[d] + i_d) * strides[d]]`, in elements. For every dimension
    `bounded[k]` it is read only where `offsets[d] + i_d < bounds[k]`; elsewhere the value is `other`, or zero without one, and nothing
    is read. Along the dimensions `nonnegative[k]`, which are bounded too, it is read only where `0 <= offsets[d] + i_d` as well: a block of a
    padded image may begin before its row does. Along the dimensions `clamp[k]`, which are bounded too, what lies beyond is the last element within instead, if the block begins
    within: for rows of an operand whose products nobody keeps. With `divisors`, powers of two, `(offsets[d] + i_d) / divisors[d]`
    takes the index's place in the address (not in the bounds): neighbours share elements; there the offset is known to be a multiple of the
    divisor or of the block's extent. With `runs`, powers of two, index i along dimension d, after that division, counts as
    `i % runs[d] * strides[d] + i / runs[d] * run_strides[d]`, for rows that lie together in memory; there the offset is a multiple of the run or
    of the block's extent. A stride of -2^63 (`?`) is taken from `dynamic_strides`, in order.

    A block whose elements lie more than 2^31 bytes apart by its static strides is addressed with 64 bits. A dynamic stride keeps it below that: the
    runtime checks strides that launches compute, and an i32 product of the program's does not overflow. With `wide` all offsets have 64 bits, so that
    dynamic strides may be negative.

    A lane reads as many elements at once as the facts analysis proves possible from pointer, offsets, strides and bounds. If it does not prove
    that the block begins within its bounds (`assume`, a loop's counter, a branch around), the loads stand in a branch.

    ```mlir
    %v = greta_tile.load %x[%row, %col] strides [4096, 1] bounds [0] (%rows) : !greta_tile.ptr<f16> -> tensor<4x1024xf16>
    ```
  }];
  let arguments = (ins GretaTile_PtrType:$base, Variadic<I32>:$offsets, Variadic<I32>:$dynamic_strides,
                       Variadic<I32>:$bounds, Optional<AnyScalar>:$other, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$bounded, OptionalAttr<DenseI64ArrayAttr>:$clamped,
                       OptionalAttr<DenseI64ArrayAttr>:$divisors, OptionalAttr<DenseI64ArrayAttr>:$runs,
                       OptionalAttr<DenseI64ArrayAttr>:$run_strides, OptionalAttr<DenseI64ArrayAttr>:$nonnegative, UnitAttr:$wide);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$base, "::mlir::ValueRange":$offsets,
                                 "::mlir::ValueRange":$dynamicStrides, "::mlir::ValueRange":$bounds, "::mlir::Value":$other,
                                 "::llvm::ArrayRef<int64_t>":$strides, "::llvm::ArrayRef<int64_t>":$bounded,
                                 CArg<"::llvm::ArrayRef<int64_t>", "{}">:$clamped,
                                 CArg<"::llvm::ArrayRef<int64_t>", "{}">:$nonnegative), [{
    build($_builder, $_state, type, base, offsets, dynamicStrides, bounds, other, strides, bounded,
          clamped.empty() ? ::mlir::DenseI64ArrayAttr() : $_builder.getDenseI64ArrayAttr(clamped),
          ::mlir::DenseI64ArrayAttr(), ::mlir::DenseI64ArrayAttr(), ::mlir::DenseI64ArrayAttr(),
          nonnegative.empty() ? ::mlir::DenseI64ArrayAttr() : $_builder.getDenseI64ArrayAttr(nonnegative), /*wide=*/false);
  }]>];
  let extraClassDeclaration = [{
    /// How many neighbours along a dimension share an element.
    int64_t getDivisor(unsigned dim) {
      auto divisors = getDivisors();
      return divisors ? (*divisors)[dim] : 1;
    }
    /// How many neighbours along a dimension make a run, in which they are `strides` apart, and how far apart runs begin; 1 and 0: there are no runs.
    int64_t getRun(unsigned dim) {
      auto runs = getRuns();
      return runs ? (*runs)[dim] : 1;
    }
    int64_t getRunStride(unsigned dim) { return getRun(dim) > 1 ? (*getRunStrides())[dim] : 0; }
    bool isClamped(int64_t dim) { return getClamped() && ::llvm::is_contained(*getClamped(), dim); }
    bool isBoundedBelow(int64_t dim) { return getNonnegative() && ::llvm::is_contained(*getNonnegative(), dim); }
  }];
  let results = (outs NumberBlock:$result);
  let assemblyFormat = [{
    $base `[` $offsets `]` `strides` $strides (`(` $dynamic_strides^ `)`)? `bounds` $bounded (`(` $bounds^ `)`)?
    (`nonnegative` $nonnegative^)? (`clamp` $clamped^)? (`wide` $wide^)?
    (`other` $other^ `:` type($other))? attr-dict `:` type($base) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GretaTile_StoreOp : GretaTile_Op<"store", [MemoryEffects<[MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "Stores a block to global memory";
  let description = [{
    The counterpart of `greta_tile.load`: elements outside of the bounds are not written, replicated elements are written once.
  }];
  let arguments = (ins NumberBlock:$value, GretaTile_PtrType:$base, Variadic<I32>:$offsets, Variadic<I32>:$dynamic_strides,
                       Variadic<I32>:$bounds, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$bounded,
                       OptionalAttr<DenseI64ArrayAttr>:$nonnegative, UnitAttr:$wide);
  let extraClassDeclaration = [{
    /// As a load without divisors, runs and clamped dimensions, for code that takes either.
    int64_t getDivisor(unsigned) { return 1; }
    int64_t getRun(unsigned) { return 1; }
    int64_t getRunStride(unsigned) { return 0; }
    bool isClamped(int64_t) { return false; }
    bool isBoundedBelow(int64_t dim) { return getNonnegative() && ::llvm::is_contained(*getNonnegative(), dim); }
  }];
  let assemblyFormat = [{
    $value `,` $base `[` $offsets `]` `strides` $strides (`(` $dynamic_strides^ `)`)? `bounds` $bounded (`(` $bounds^ `)`)?
    (`nonnegative` $nonnegative^)? (`wide` $wide^)?
    attr-dict `:` type($value) `->` type($base)
  }];
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
    A `direct` one stores what a `load` of its block brings, which nothing else uses, without passing it through registers: the load happens
    here. Its layout gives every wave neighbours in shared memory, lane by lane: `greta_tile.local_store %v, %a[%stage] direct`.
  }];
  let arguments = (ins NumberBlock:$value, GretaTile_LocalType:$local, I32:$stage, UnitAttr:$direct);
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
  let results = (outs NumberBlock:$result);
  let assemblyFormat = "$local `[` $stage `]` `[` $offsets `]` attr-dict `:` type($local) `->` type($result)";
  let hasVerifier = 1;
}

#endif
