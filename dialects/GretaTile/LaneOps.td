//===- LaneOps.td - one lane's program ------------------------------------===//
#ifndef GRETATILE_LANEOPS_TD
#define GRETATILE_LANEOPS_TD

include "GretaTile/PointerOps.td"

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

def GretaTile_PtrLoadOp : GretaTile_Op<"ptr_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads one lane's scalar or vector at an element offset from a pointer";
  let description = [{
    The offset is unsigned and its bytes stay below 2^32, so that targets may add it to a uniform address as it is; a lane whose address is
    not of this form has a base of its own, by `ptr_add`. `align` is in bytes; a vector of 16 bytes with alignment 16 becomes one access.

    Lanes whose `mask` is false have zero and touch no memory: of 1, 2, 4, 8 or 16 bytes from a uniform base, on targets whose buffers have bounds
    (AMD). Elsewhere it is a branch of the program.

    With `wraps`, the offset is a sum modulo 2^32 whose parts may be out of its range: targets do not take the sum apart.

    With `transposed` lanes then hand each other elements, as the target's `TransposedLoad` of that type says; all lanes of a wave take part, so that
    there is no mask: `greta_tile.ptr_load %base[%offset] transposed align 16 : !greta_tile.ptr<f16> -> vector<8xf16>`.
  }];
  let arguments = (ins GretaTile_PtrType:$base, I32:$offset, Optional<I1>:$mask, I64Attr:$align, UnitAttr:$wraps, UnitAttr:$transposed);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$base, "::mlir::Value":$offset, "int64_t":$align), [{
    build($_builder, $_state, type, base, offset, ::mlir::Value(), align);
  }]>];
  let results = (outs AnyLaneValue:$result);
  let assemblyFormat = "$base `[` $offset (`wraps` $wraps^)? `]` (`mask` $mask^)? (`transposed` $transposed^)? `align` $align attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_PtrStoreOp : GretaTile_Op<"ptr_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stores one lane's scalar or vector at an element offset from a pointer";
  let description = "Offset and alignment as in `ptr_load`.";
  let arguments = (ins AnyLaneValue:$value, GretaTile_PtrType:$base, I32:$offset, I64Attr:$align);
  let assemblyFormat = "$value `,` $base `[` $offset `]` `align` $align attr-dict `:` type($value) `->` type($base)";
  let hasVerifier = 1;
}

def GretaTile_PtrAtomicRmwOp : GretaTile_Op<"ptr_atomic_rmw", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["value", "result"]>]> {
  let summary = "One lane's `atomic_rmw`";
  let description = [{
    Orders nothing but accesses of this place; `fence` does the rest.

    `greta_tile.ptr_atomic_rmw add device %base[%offset], %v : !greta_tile.ptr<i32> -> i32`, the offset as in `ptr_load`.
  }];
  let arguments = (ins GretaTile_AtomicKind:$kind, GretaTile_MemoryScope:$scope, GretaTile_PtrType:$base, I32:$offset, AnyScalar:$value);
  let results = (outs AnyScalar:$result);
  let assemblyFormat = "$kind $scope $base `[` $offset `]` `,` $value attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_PtrAtomicCasOp : GretaTile_Op<"ptr_atomic_cas", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["expected", "value", "result"]>]> {
  let summary = "One lane's `atomic_cas`";
  let description = "Otherwise as `ptr_atomic_rmw`.";
  let arguments = (ins GretaTile_MemoryScope:$scope, GretaTile_PtrType:$base, I32:$offset, AnyScalar:$expected, AnyScalar:$value);
  let results = (outs AnyScalar:$result);
  let assemblyFormat = "$scope $base `[` $offset `]` `,` $expected `,` $value attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_FenceOp : GretaTile_Op<"fence"> {
  let summary = "Orders a lane's accesses of global memory before and after it, within a scope";
  let description = [{
    With `release` what the lane has accessed is visible to who acquires what it writes by an atomic after the fence; with `acquire` its
    later accesses see what was released by whom it read from by an atomic before it: `greta_tile.fence release device`.
  }];
  let arguments = (ins GretaTile_MemoryOrder:$order, GretaTile_MemoryScope:$scope);
  let assemblyFormat = "$order $scope attr-dict";
  let hasVerifier = 1;
}

def GretaTile_PtrLoadSharedOp : GretaTile_Op<"ptr_load_shared", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Loads from global memory straight into an array in shared memory";
  let description = [{
    Each lane has its place in global memory, `width` numbers of the pointer's type at `offset` as in `ptr_load`; the wave's lanes, one after another,
    fill the array from element `index` on, on which they agree. Zeros come to the places of lanes whose `mask` is false. The numbers are there
    behind a barrier that waits for them.

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
  let description = [{
    Stands in the kernel's entry block. `greta-tile-plan-memory` says where it begins in the workgroup's shared memory, `offset` bytes from its start;
    arrays that are never in use together may share bytes. One without a place shares with none.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$offset);
  let results = (outs GretaTile_SharedType:$result);
  let builders = [OpBuilder<(ins "::greta::tile::SharedType":$type), [{ build($_builder, $_state, type, ::mlir::IntegerAttr()); }]>];
  let assemblyFormat = "(`offset` $offset^)? attr-dict `:` type($result)";
}

def GretaTile_SharedStageOp : GretaTile_Op<"shared_stage", [Pure, TypesMatchWith<"result is the array's type", "array", "result", "$_self">]> {
  let summary = "An array in shared memory, of which one of several equal parts is used";
  let description = [{
    All accesses through the result lie in part `stage` of `of`, counted from 0 and the same in all lanes; indices count from the array's start
    all the same. That two stages do not meet is what lets one be filled while another is read.

    ```mlir
    %second = greta_tile.shared_stage %array[%c1] of 2 : !greta_tile.shared<512 x vector<8xf16>>
    ```
  }];
  let arguments = (ins GretaTile_SharedType:$array, I32:$stage, ConfinedAttr<I64Attr, [IntPositive]>:$stages);
  let results = (outs GretaTile_SharedType:$result);
  let assemblyFormat = "$array `[` $stage `]` `of` $stages attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def GretaTile_SharedLoadOp : GretaTile_Op<"shared_load", [MemoryEffects<[MemRead]>]> {
  let summary = "Loads one element of an array in shared memory";
  let description = [{
    From bytes, an array of i8, a value of any type: as many of them as the type has, from a multiple of their number on.
    With `transposed` lanes then hand each other elements, as the target's `TransposedLoad` of that type says; all lanes of a wave take part.

    ```mlir
    %v = greta_tile.shared_load %array[%i] : !greta_tile.shared<256 x vector<4xf32>>
    %w = greta_tile.shared_load %bytes[%j] : !greta_tile.shared<4096 x i8> as vector<4xf32>
    %t = greta_tile.shared_load %array[%i] transposed : !greta_tile.shared<256 x vector<4xf16>>
    ```
  }];
  let arguments = (ins GretaTile_SharedType:$array, I32:$index, UnitAttr:$transposed);
  let results = (outs AnyLaneValue:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$array, "::mlir::Value":$index, CArg<"bool", "false">:$transposed), [{
    build($_builder, $_state, ::llvm::cast<::greta::tile::SharedType>(array.getType()).getElementType(), array, index, transposed);
  }]>];
  let assemblyFormat = "$array `[` $index `]` (`transposed` $transposed^)? attr-dict `:` custom<SharedAccess>(type($array), type($result))";
  let hasVerifier = 1;
}

def GretaTile_SharedStoreOp : GretaTile_Op<"shared_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "Stores one element of an array in shared memory";
  let description = "The counterpart of `shared_load`.";
  let arguments = (ins AnyLaneValue:$value, GretaTile_SharedType:$array, I32:$index);
  let assemblyFormat = "$value `,` $array `[` $index `]` attr-dict `:` custom<SharedAccess>(type($array), type($value))";
  let hasVerifier = 1;
}

def GretaTile_SharedAddOp : GretaTile_Op<"shared_add", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Adds to a counter of an array in shared memory, in one step";
  let arguments = (ins I32:$value, GretaTile_SharedType:$array, I32:$index);
  let assemblyFormat = "$value `,` $array `[` $index `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def GretaTile_BarrierOp : GretaTile_Op<"barrier"> {
  let summary = "All lanes of the workgroup meet; shared memory written before is visible after";
  let description = [{
    With `in_flight` that holds for loads straight to shared memory as well, but for the last so many of each lane: `greta_tile.barrier in_flight 8`.
    With `global` it holds for global memory as well, within the workgroup.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$in_flight, UnitAttr:$global);
  let builders = [OpBuilder<(ins CArg<"bool", "false">:$global)>];
  let assemblyFormat = "(`in_flight` $in_flight^)? (`global` $global^)? attr-dict";
}

def GretaTile_GridBarrierOp : GretaTile_Op<"grid_barrier"> {
  let summary = "All workgroups of a resident launch meet; global memory written before is visible after";
  let description = [{
    Stands in the entry block of a kernel whose launch is `resident`. `counter` points to a word that holds zero before the launch and counts arrivals: those at
    this barrier are over when it holds `until`, the number of workgroups times that of barriers so far. With `last` nobody waits: who comes last sets
    the word to zero for the next launch, and the kernel ends. Shared memory is visible after as behind `barrier`.

    `greta-tile-expand-atomics` makes atomics, fences and barriers of it. The last argument of a kernel with barriers over the grid is an i32 that is zero. Where it is one, on
    Vulkan, the launch is a trial, which finds out in `counter` whether all workgroups run at a time, and does nothing else. HIP's drivers promise that they do.

    ```mlir
    greta_tile.grid_barrier %counter until 264 : !greta_tile.ptr<i32>
    greta_tile.grid_barrier %counter until 528 last : !greta_tile.ptr<i32>
    ```
  }];
  let arguments = (ins GretaTile_PtrType:$counter, ConfinedAttr<I32Attr, [IntPositive]>:$until, UnitAttr:$last);
  let assemblyFormat = "$counter `until` $until (`last` $last^)? attr-dict `:` type($counter)";
  let hasVerifier = 1;
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

def GretaTile_AnyOp : GretaTile_Op<"any", [Pure]> {
  let summary = "Whether a condition holds in a lane of the wave";
  let description = "All lanes of a wave have the same result. Code that depends on it is expected to run rarely.";
  let arguments = (ins I1:$condition);
  let results = (outs I1:$result);
  let assemblyFormat = "$condition attr-dict";
}

def GretaTile_ScheduleKind : I32EnumAttr<"ScheduleKind", "what a scheduler may order", [
    I32EnumAttrCase<"Mma", 0, "mma">, I32EnumAttrCase<"SharedLoad", 1, "shared_load">,
    I32EnumAttrCase<"SharedStore", 2, "shared_store">, I32EnumAttrCase<"Load", 3, "load">]> {
  let cppNamespace = "::greta::tile";
}

def GretaTile_ScheduleGroupOp : GretaTile_Op<"schedule_group"> {
  let summary = "The next so many instructions of a kind, in the order of these ops";
  let description = "A wish that a target may ignore: `greta_tile.schedule_group mma 2`.";
  let arguments = (ins GretaTile_ScheduleKind:$kind, ConfinedAttr<I32Attr, [IntPositive]>:$count);
  let assemblyFormat = "$kind $count attr-dict";
}

def GretaTile_UnpackOp : GretaTile_Op<"unpack", [Pure]> {
  let summary = "One lane's word of packed weights as f16 or bf16";
  let description = [{
    Unpacks a word of `format`, as `dequant` defines it. `high`, if the format has it, begins with the upper bits of the word's weights.
    `greta-expand` turns the op into arithmetic on pairs.

    ```mlir
    %w = greta_tile.unpack "q6_k" %word high %high scale %s zero %z : f16, i32 -> vector<8xf16>
    ```
  }];
  let arguments = (ins StrAttr:$format, I32:$word, Optional<I32>:$high, AnyTypeOf<[F16, F32]>:$scale, AnyTypeOf<[I32, F16]>:$zero);
  let results = (outs VectorOfRankAndType<[1], [F16, BF16]>:$result);
  let assemblyFormat = "$format $word (`high` $high^)? `scale` $scale `zero` $zero attr-dict `:` type($scale) `,` type($zero) `->` type($result)";
  let extraClassDeclaration = [{
    /// The row of `format`.
    const ::greta::WeightFormat &getRow() { return *::greta::findWeightFormat(getFormat()); }
  }];
  let hasVerifier = 1;
}

def AnyMatrixOperand : AnyTypeOf<[AnyVectorOfNonZeroRank, GretaTile_FragmentType]>;

def GretaTile_VectorDotOp : GretaTile_Op<"vector_dot", [Pure, AllTypesMatch<["a", "b"]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "One lane's dot of two vectors of f16, added to an f32";
  let description = [{
    A target may round products and sums of up to eight of them to f16. `greta-expand` makes instructions for two of it, or arithmetic on pairs:
    `greta_tile.vector_dot %a, %b, %c : vector<32xf16>`.
  }];
  let arguments = (ins VectorOfRankAndType<[1], [F16]>:$a, VectorOfRankAndType<[1], [F16]>:$b, F32:$acc);
  let results = (outs F32:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a)";
  let hasVerifier = 1;
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
    Row r of the matrix begins at array element `index + r * stride`; with `transposed` it is column r. Its neighbours
    follow it in memory. The array's elements may be vectors of the matrix's type, or integers that hold its bits. All lanes of the wave agree on `index`.

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
