//===- GretaTileDialect.td - the waist: dialect, types, attributes --------===//
#ifndef GRETATILE_DIALECT_TD
#define GRETATILE_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/IR/EnumAttr.td"

def GretaTile_Dialect : Dialect {
  let name = "greta_tile";
  let cppNamespace = "::greta::tile";
  let summary = "One workgroup's program on block tensors";
  let description = [{
    The waist of the compiler: the fused operators and the Python frontend meet here, and both code generators start here.

    A `greta_tile.func` is what one workgroup executes. Its values are statically shaped block tensors and scalars; elementwise
    work is `arith` and `math` on the tensors, loops are `scf`. The ops come at two levels. *Block* ops (load, store, reduce,
    broadcast, dot, ...) speak of whole block tensors. `greta-tile-distribute` replaces them by *lane* ops (ptr_load,
    shared_store, shuffle_xor, ...), which speak of one lane's scalars and small vectors and which each target lowers.

    Ranks change by `reshape`, `join`, `split` and reductions; a tensor with an extent of 1 broadcasts along it.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

class GretaTile_Type<string name, string mnem> : TypeDef<GretaTile_Dialect, name> {
  let mnemonic = mnem;
}

def GretaTile_PtrType : GretaTile_Type<"Ptr", "ptr"> {
  let summary = "Pointer into global memory";
  let description = [{
    The address of an element of the given type in global memory, 64 bits wide. `!greta_tile.ptr<f16>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let builders = [TypeBuilderWithInferredContext<(ins "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), elementType);
  }]>];
  let assemblyFormat = "`<` $elementType `>`";
}

def GretaTile_SharedType : GretaTile_Type<"Shared", "shared"> {
  let summary = "An array in the workgroup's shared memory (LDS)";
  let description = [{
    `size` elements of a scalar or vector type: `!greta_tile.shared<256 x vector<4xf32>>`. Accesses move whole elements.
  }];
  let parameters = (ins "int64_t":$size, "::mlir::Type":$elementType);
  let builders = [TypeBuilderWithInferredContext<(ins "int64_t":$size, "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), size, elementType);
  }]>];
  let assemblyFormat = "`<` $size `x` $elementType `>`";
}

def GretaTile_FragmentUse : I32EnumAttr<"FragmentUse", "which operand of a matrix instruction", [
    I32EnumAttrCase<"A", 0, "a">, I32EnumAttrCase<"B", 1, "b">, I32EnumAttrCase<"Acc", 2, "acc">]> {
  let cppNamespace = "::greta::tile";
  let genSpecializedAttr = 0;
}

def GretaTile_FragmentType : GretaTile_Type<"Fragment", "fragment"> {
  let summary = "A wave's operand of a cooperative-matrix instruction";
  let description = [{
    A matrix that the lanes of a wave hold together, as the driver likes: `!greta_tile.fragment<16x8xf32, acc>`. Which lane has which
    element is known only where the device was probed for it.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "::mlir::Type":$elementType,
                        EnumParameter<GretaTile_FragmentUse>:$use);
  let hasCustomAssemblyFormat = 1;
}

def GretaTile_LayoutAttr : AttrDef<GretaTile_Dialect, "Layout",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "Which lane and register of a workgroup holds which element of a block tensor";
  let description = [{
    A linear map over GF(2) inside one tile, times an integer repetition per dimension.

    `reg`, `lane` and `wave` list one index vector (basis) per bit of the register number, of the lane and of the wave. The
    index of an element inside its tile is the XOR of the bases of the bits that are set. A tile's extents are powers of two;
    the tensor's extents are the tile's times `rep`. Register `r` of repetition `i` (row-major) has number
    `i * tileRegisters + r`. An all-zero basis says that the bit does not matter: the value is replicated.

    Example: `tensor<2x32xf32, #greta_tile.layout<{reg = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0]], wave = [], rep = [1, 2]}>>`:
    eight lanes in two rows of four, four consecutive elements in each, twice along the row. Element (1, 21) = tile 1 of the
    row, (1, 5) within: register bit 0 and lane bits 0 and 2, so lane 5, register 1*4+1 = 5.
  }];
  let parameters = (ins ArrayRefParameter<"int32_t">:$reg, ArrayRefParameter<"int32_t">:$lane,
                        ArrayRefParameter<"int32_t">:$wave, ArrayRefParameter<"int32_t">:$rep);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def GretaTile_MatrixAttr : AttrDef<GretaTile_Dialect, "Matrix"> {
  let mnemonic = "matrix";
  let summary = "A matrix instruction and where one wave holds its operands";
  let description = [{
    `intrinsic` is the target's name for it, for AMD what follows "llvm.amdgcn.", for Vulkan "coopmat"; a `swapped` one gets the
    operands in the other order, so that its accumulator lies transposed; of an `opaque` one nobody knows which lane has which element, and the
    layouts only say how many each has; cooperative matrices are loaded whole from shared memory, and those that have `elements` by the lanes' elements; `a`, `b` and `acc` are the layouts of one
    M x K, K x N and M x N tile over the lanes of one wave (no waves, no repetitions).

    ```mlir
    #greta_tile.matrix<"mfma.f32.16x16x16f16",
        a = <{reg = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 4], [0, 8]], wave = [], rep = [1, 1]}>,
        b = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>,
        acc = <{reg = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0], [8, 0]], wave = [], rep = [1, 1]}>>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$intrinsic, DefaultValuedParameter<"bool", "false">:$swapped,
                        DefaultValuedParameter<"bool", "false">:$opaque, DefaultValuedParameter<"bool", "false">:$elements, "::greta::tile::LayoutAttr":$a, "::greta::tile::LayoutAttr":$b,
                        "::greta::tile::LayoutAttr":$acc);
  let assemblyFormat = "`<` $intrinsic (`swapped` `=` $swapped^)? (`opaque` `=` $opaque^)? (`elements` `=` $elements^)? `,` `a` `=` $a `,` `b` `=` $b `,` `acc` `=` $acc `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Operands are fragments, not vectors of registers.
    bool isCooperative() const { return getIntrinsic().getValue() == "coopmat"; }
    /// Drivers load operands from shared memory, in any order.
    bool isLoadedWhole() const { return isCooperative() && !getElements(); }
  }];
}

def GretaTile_PlacementAttr : AttrDef<GretaTile_Dialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "The places of a block's elements in shared memory";
  let description = [{
    Dimension `dim` runs along rows that begin `stride` elements apart; element `column` of row `row` (row-major over the other dimensions) lies at
    `row * stride + (column ^ row / rows % phases * vector)`. Phases of 1 mean no swizzle.

    `#greta_tile.placement<dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>`
  }];
  let parameters = (ins "int64_t":$dim, "int64_t":$stride, "int64_t":$vector, "int64_t":$rows, "int64_t":$phases);
  let assemblyFormat = [{
    `<` `dim` `=` $dim `,` `stride` `=` $stride `,` `vector` `=` $vector `,` `rows` `=` $rows `,` `phases` `=` $phases `>`
  }];
  let genVerifyDecl = 1;
}

def GretaTile_LocalType : GretaTile_Type<"Local", "local"> {
  let summary = "A number of equal blocks in shared memory";
  let description = [{
    `!greta_tile.local<2 x tensor<128x64xf16>, <dim = 1, stride = 64, vector = 8, rows = 1, phases = 8>>`: two stages of a block, and where its elements lie.
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::RankedTensorType":$block, "::greta::tile::PlacementAttr":$placement);
  let assemblyFormat = "`<` $stages `x` $block `,` $placement `>`";
  let genVerifyDecl = 1;
}

def GretaTile_PipelineAttr : AttrDef<GretaTile_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "How a loop over K moves its operands";
  let description = [{
    Stands on a loop as `greta_tile.pipeline`. Without stages operands are loaded, and computed, in the registers where the dot takes them. With one stage of shared memory the next block waits in registers while this one is
    multiplied, in a loop over slices of `slice` along K. With two, the next block is stored while this one is multiplied, with three the one after it;
    where `slice` is half a block, the operands of one half are read while the other is multiplied. With `direct`, bytes a lane, blocks go from global to
    shared memory without passing through registers: `#greta_tile.pipeline<stages = 3, slice = 16, direct = 16>`.
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$slice, DefaultValuedParameter<"int64_t", "0">:$direct);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif
