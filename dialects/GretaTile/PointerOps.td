//===- PointerOps.td - pointers, scattered accesses, atomics --------------===//
#ifndef GRETATILE_POINTEROPS_TD
#define GRETATILE_POINTEROPS_TD

include "GretaTile/OpBase.td"

//===----------------------------------------------------------------------===//
// Pointers
//===----------------------------------------------------------------------===//

def GretaTile_PtrAddOp : GretaTile_Op<"ptr_add", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Moves pointers by numbers of elements";
  let description = [{
    A pointer or a block of them, by an offset or a block of them; where one is a block, so is the result. Offsets are signed. The sums and products that
    make an i32 offset do not overflow for elements that are accessed, so that parts of a sum may be added to the pointer one by one, with 64 bits.

    ```mlir
    %p = greta_tile.ptr_add %x, %i : !greta_tile.ptr<f32>, tensor<128xi32>   // tensor<128x!greta_tile.ptr<f32>>
    ```
  }];
  let arguments = (ins PtrLike:$base, OffsetLike:$offset);
  let results = (outs PtrLike:$result);
  let assemblyFormat = "$base `,` $offset attr-dict `:` type($base) `,` type($offset)";
  let hasVerifier = 1;
}

def GretaTile_PtrToIntOp : GretaTile_Op<"ptr_to_int", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "The addresses of pointers, in bytes";
  let arguments = (ins PtrLike:$pointers);
  let results = (outs I64Like:$result);
  let assemblyFormat = "$pointers attr-dict `:` type($pointers)";
}

def GretaTile_IntToPtrOp : GretaTile_Op<"int_to_ptr", [Pure]> {
  let summary = "Pointers to addresses, which are in bytes";
  let arguments = (ins I64Like:$addresses);
  let results = (outs PtrLike:$result);
  let assemblyFormat = "$addresses attr-dict `:` type($addresses) `->` type($result)";
  let hasVerifier = 1;
}

def GretaTile_PtrCastOp : GretaTile_Op<"ptr_cast", [Pure]> {
  let summary = "The same pointers, to elements of another type";
  let description = "`greta_tile.ptr_cast %p : !greta_tile.ptr<f32> -> !greta_tile.ptr<i32>`";
  let arguments = (ins PtrLike:$pointers);
  let results = (outs PtrLike:$result);
  let assemblyFormat = "$pointers attr-dict `:` type($pointers) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Scattered accesses
//===----------------------------------------------------------------------===//

/// The mask of an access has its pointers' shape.
class MaskOf<string pointers> : OptionalTypesMatchWith<"the mask has the shape of the pointers", pointers, "mask",
    "::greta::tile::withElementType($_self, ::mlir::IntegerType::get($_self.getContext(), 1))">;
/// The value of an access has its pointers' shape and pointee.
class PointeeOf<string pointers, string value>
  : TypesMatchWith<value # " is what the pointers point to", pointers, value, "::greta::tile::getPointee($_self)">;

def GretaTile_LoadScatteredOp : GretaTile_Op<"load_scattered", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments,
    MaskOf<"pointers">, PointeeOf<"pointers", "result">,
    OptionalTypesMatchWith<"'other' is of the result's type", "result", "other", "$_self">]> {
  let summary = "Loads what each pointer of a block points to";
  let description = [{
    If the mask is false no memory is touched and the value is `other`, or zero without one. One pointer gives one value, the same in the whole
    workgroup. An i1 is a byte in memory, 0 or 1.

    ```mlir
    %v = greta_tile.load_scattered %p mask %m other %o : tensor<128x!greta_tile.ptr<f32>> -> tensor<128xf32>
    %n = greta_tile.load_scattered %count : !greta_tile.ptr<i32> -> i32
    ```
  }];
  let arguments = (ins PtrLike:$pointers, Optional<MaskLike>:$mask, Optional<NumberLike>:$other);
  let results = (outs NumberLike:$result);
  let assemblyFormat = "$pointers (`mask` $mask^)? (`other` $other^)? attr-dict `:` type($pointers) `->` type($result)";
}

def GretaTile_StoreScatteredOp : GretaTile_Op<"store_scattered", [MemoryEffects<[MemWrite]>, LayoutTransferTogether,
    MaskOf<"pointers">, PointeeOf<"pointers", "value">]> {
  let summary = "Stores each element of a block where its pointer points to";
  let description = [{
    If the mask is false no memory is touched. Replicated elements are stored once, and so is one value through one pointer, by one lane of the
    workgroup. If several elements have one address, any of them is stored.

    `greta_tile.store_scattered %v, %p mask %m : tensor<128xf32> -> tensor<128x!greta_tile.ptr<f32>>`
  }];
  let arguments = (ins NumberLike:$value, PtrLike:$pointers, Optional<MaskLike>:$mask);
  let assemblyFormat = "$value `,` $pointers (`mask` $mask^)? attr-dict `:` type($value) `->` type($pointers)";
}

//===----------------------------------------------------------------------===//
// Atomics
//===----------------------------------------------------------------------===//

def GretaTile_AtomicKind : I32EnumAttr<"AtomicKind", "what an atomic does with the value in memory", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"FAdd", 1, "fadd">, I32EnumAttrCase<"And", 2, "and">,
    I32EnumAttrCase<"Or", 3, "or">, I32EnumAttrCase<"Xor", 4, "xor">, I32EnumAttrCase<"Xchg", 5, "xchg">,
    I32EnumAttrCase<"Max", 6, "max">, I32EnumAttrCase<"Min", 7, "min">, I32EnumAttrCase<"UMax", 8, "umax">,
    I32EnumAttrCase<"UMin", 9, "umin">]> {
  let cppNamespace = "::greta::tile";
}

def GretaTile_MemoryOrder : I32EnumAttr<"MemoryOrder", "which other accesses are ordered", [
    I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
    I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">]> {
  let cppNamespace = "::greta::tile";
}

def GretaTile_MemoryScope : I32EnumAttr<"MemoryScope", "among whom", [
    I32EnumAttrCase<"Workgroup", 0, "workgroup">, I32EnumAttrCase<"Device", 1, "device">,
    I32EnumAttrCase<"System", 2, "system">]> {
  let cppNamespace = "::greta::tile";
}

def GretaTile_AtomicRmwOp : GretaTile_Op<"atomic_rmw", [MemoryEffects<[MemRead, MemWrite]>, MaskOf<"pointers">, PointeeOf<"pointers", "value">,
    PointeeOf<"pointers", "result">]> {
  let summary = "Combines values with what is in memory, each in one step, and gives what was there";
  let description = [{
    Through a block of pointers each element once, replicated or not; through one pointer once by the workgroup, and all its lanes have the result.
    If the mask is false nothing happens and the result is zero. Integers have 32 or 64 bits; `fadd` adds floats.

    The order is the program's, not a lane's: with `release` or `acq_rel` all that the workgroup has accessed before is visible to who, within the
    scope, acquires what this op writes; with `acquire` or `acq_rel` all that it accesses after sees what was released.

    ```mlir
    %old = greta_tile.atomic_rmw fadd relaxed device %p, %v mask %m : tensor<128x!greta_tile.ptr<f32>> -> tensor<128xf32>
    %ticket = greta_tile.atomic_rmw add acq_rel device %count, %one : !greta_tile.ptr<i32> -> i32
    ```
  }];
  let arguments = (ins GretaTile_AtomicKind:$kind, GretaTile_MemoryOrder:$order, GretaTile_MemoryScope:$scope, PtrLike:$pointers,
                       NumberLike:$value, Optional<MaskLike>:$mask);
  let results = (outs NumberLike:$result);
  let assemblyFormat = [{
    $kind $order $scope $pointers `,` $value (`mask` $mask^)? attr-dict `:` type($pointers) `->` type($result)
  }];
  let hasVerifier = 1;
}

def GretaTile_AtomicCasOp : GretaTile_Op<"atomic_cas", [MemoryEffects<[MemRead, MemWrite]>, MaskOf<"pointers">, PointeeOf<"pointers", "expected">,
    PointeeOf<"pointers", "value">, PointeeOf<"pointers", "result">]> {
  let summary = "Stores values where memory has the expected ones, each in one step, and gives what was there";
  let description = [{
    Otherwise as `atomic_rmw`; integers of 16, 32 or 64 bits. A lock of the value 0:

    ```mlir
    %old = greta_tile.atomic_cas acquire device %lock, %zero, %one : !greta_tile.ptr<i32> -> i32
    ```
  }];
  let arguments = (ins GretaTile_MemoryOrder:$order, GretaTile_MemoryScope:$scope, PtrLike:$pointers, NumberLike:$expected,
                       NumberLike:$value, Optional<MaskLike>:$mask);
  let results = (outs NumberLike:$result);
  let assemblyFormat = [{
    $order $scope $pointers `,` $expected `,` $value (`mask` $mask^)? attr-dict `:` type($pointers) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
