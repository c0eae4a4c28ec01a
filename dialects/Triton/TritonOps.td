//===- TritonOps.td - Triton IR as text: ops ------------------------------===//
#ifndef TRITON_OPS_TD
#define TRITON_OPS_TD

include "Triton/TritonDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class TT_Op<string mnem, list<Trait> traits = []> : Op<TT_Dialect, mnem, traits>;

class Block<list<Type> elements> : StaticShapeTensorOf<elements>;
class Like<list<Type> elements, string summary> : AnyTypeOf<!listconcat(elements, [Block<elements>]), summary>;
def Number : AnyTypeOf<[AnyFloat, AnySignlessInteger]>;
def NumberLike : Like<[AnyFloat, AnySignlessInteger], "number or block of numbers">;
def FloatLike_ : Like<[AnyFloat], "float or block of floats">;
def IntLike : Like<[AnySignlessInteger], "integer or block of integers">;
def BoolLike_ : Like<[I1], "i1 or block of i1">;
def PtrLike : Like<[TT_PtrType], "pointer or block of pointers">;
def ScalarLike : Like<[AnyFloat, AnySignlessInteger, TT_PtrType], "scalar or block">;
def NumberBlock : Block<[AnyFloat, AnySignlessInteger]>;
def AnyBlock : Block<[AnyFloat, AnySignlessInteger, TT_PtrType]>;
def I32Block : Block<[I32]>;
def RowBlock : Block<[I16, I32]>;

/// The type of what `pointers` point to.
class PointeeOf<string pointers, string value>
  : TypesMatchWith<value # " is what the pointers point to", pointers, value, "::greta::triton::getPointee($_self)">;
class OptionalPointeeOf<string pointers, string value>
  : OptionalTypesMatchWith<value # " is what the pointers point to", pointers, value, "::greta::triton::getPointee($_self)">;
class OptionalMaskOf<string pointers>
  : OptionalTypesMatchWith<"the mask has the shape of the pointers", pointers, "mask", "::greta::triton::getMaskType($_self)">;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

def TT_FuncOp : TT_Op<"func", [FunctionOpInterface, IsolatedFromAbove, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A kernel, where it is public, or what kernels call";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
  }];
  let hasCustomAssemblyFormat = 1;
}

def TT_CallOp : TT_Op<"call"> {
  let summary = "Calls a private function";
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyType>:$values);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$callee `(` $values `)` attr-dict `:` functional-type($values, $results)";
}

def TT_ReturnOp : TT_Op<"return", [Pure, HasParent<"FuncOp">, ReturnLike, Terminator]> {
  let summary = "End of a function";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let hasVerifier = 1;
}

class TT_GridOp<string mnem> : TT_Op<mnem, [Pure]> {
  let arguments = (ins StrAttr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "custom<Keyword>($axis) attr-dict `:` type($result)";
}
def TT_GetProgramIdOp : TT_GridOp<"get_program_id"> {
  let summary = "Index of this program along an axis of the grid";
}
def TT_GetNumProgramsOp : TT_GridOp<"get_num_programs"> {
  let summary = "Programs along an axis of the grid";
}

def TT_PrintOp : TT_Op<"print"> {
  let summary = "Prints values of all programs";
  let arguments = (ins StrAttr:$prefix, BoolAttr:$hex, DenseI32ArrayAttr:$isSigned, Variadic<ScalarLike>:$values);
  let assemblyFormat = "$prefix attr-dict (`:` $values^ `:` type($values))?";
}

def TT_AssertOp : TT_Op<"assert"> {
  let summary = "Ends the program where a condition is false";
  let arguments = (ins BoolLike_:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

def TT_MakeRangeOp : TT_Op<"make_range", [Pure]> {
  let summary = "The integers from start to end";
  let arguments = (ins I32Attr:$start, I32Attr:$end);
  let results = (outs I32Block:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

/// `%x : type -> type`
class TT_FromToOp<string mnem, Constraint from, Constraint to, string before = ""> : TT_Op<mnem, [Pure]> {
  let arguments = (ins from:$value);
  let results = (outs to:$result);
  let assemblyFormat = "$value " # before # " attr-dict `:` type($value) `->` type($result)";
}

def TT_SplatOp : TT_FromToOp<"splat", AnyType, AnyBlock> {
  let summary = "A block with one scalar in every element";
}
def TT_UnsplatOp : TT_Op<"unsplat", [Pure, TypesMatchWith<"the result is the block's element", "value", "result",
    "::llvm::cast<::mlir::RankedTensorType>($_self).getElementType()">]> {
  let summary = "The one element of a block";
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}
def TT_BroadcastOp : TT_FromToOp<"broadcast", AnyBlock, AnyBlock> {
  let summary = "Repeats a block along its dimensions of extent 1";
}
def TT_ExpandDimsOp : TT_FromToOp<"expand_dims", AnyBlock, AnyBlock> {
  let summary = "Inserts a dimension of extent 1";
  let arguments = (ins AnyBlock:$value, I32Attr:$axis);
}
def TT_ReshapeOp : TT_FromToOp<"reshape", AnyBlock, AnyBlock,
    "(`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)?"> {
  let summary = "The elements of a block under another shape";
  let arguments = (ins AnyBlock:$value, UnitAttr:$allow_reorder, UnitAttr:$efficient_layout);
}
def TT_TransOp : TT_FromToOp<"trans", AnyBlock, AnyBlock> {
  let summary = "A block with its dimensions in another order";
  let arguments = (ins AnyBlock:$value, DenseI32ArrayAttr:$order);
}
def TT_SplitOp : TT_Op<"split", [Pure, TypesMatchWith<"the results have one type", "first", "second", "$_self">]> {
  let summary = "The two blocks that lie side by side along the last dimension";
  let arguments = (ins AnyBlock:$value);
  let results = (outs AnyBlock:$first, AnyBlock:$second);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($first)";
}

class TT_PairOp<string mnem> : TT_Op<mnem, [Pure, TypesMatchWith<"the blocks have one type", "a", "b", "$_self">]> {
  let arguments = (ins AnyBlock:$a, AnyBlock:$b);
  let results = (outs AnyBlock:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `->` type($result)";
}
def TT_JoinOp : TT_PairOp<"join"> {
  let summary = "Two blocks side by side along a new last dimension";
}
def TT_CatOp : TT_PairOp<"cat"> {
  let summary = "Two blocks one after the other; with Triton's `can_reorder` in any order";
}

def TT_GatherOp : TT_Op<"gather", [Pure]> {
  let summary = "The elements of a block that another block names along an axis";
  let arguments = (ins NumberBlock:$value, Block<[AnySignlessInteger]>:$index, I32Attr:$axis, UnitAttr:$efficient_layout);
  let results = (outs NumberBlock:$result);
  let assemblyFormat = "$value `[` $index `]` attr-dict `:` functional-type(operands, $result)";
}

def TT_HistogramOp : TT_Op<"histogram", [Pure,
    OptionalTypesMatchWith<"the mask has the block's shape", "value", "mask", "::greta::triton::getMaskType($_self)">]> {
  let summary = "How often each number is among a block's elements";
  let arguments = (ins Block<[AnySignlessInteger]>:$value, Optional<Block<[I1]>>:$mask);
  let results = (outs Block<[AnySignlessInteger]>:$result);
  let assemblyFormat = "$value (`,` $mask^)? attr-dict `:` type($value) `->` type($result)";
}

/// Printed in the generic form.
class TT_CombineOp<string mnem> : TT_Op<mnem, [SingleBlock]> {
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$combiner);
}
def TT_ReduceOp : TT_CombineOp<"reduce"> {
  let summary = "Combines the elements of each line along an axis";
  let arguments = (ins Variadic<NumberBlock>:$values, I32Attr:$axis);
}
def TT_ScanOp : TT_CombineOp<"scan"> {
  let summary = "Combines each element with those before it along an axis";
  let arguments = (ins Variadic<NumberBlock>:$values, I32Attr:$axis, BoolAttr:$reverse);
}
def TT_MapElementwiseOp : TT_Op<"map_elementwise"> {
  let summary = "A program on scalars for every element";
  let arguments = (ins Variadic<AnyBlock>:$values, I32Attr:$pack);
  let results = (outs Variadic<AnyBlock>:$results);
  let regions = (region AnyRegion:$body);
}

class TT_YieldOp<string mnem, string parent> : TT_Op<mnem, [Pure, HasParent<parent>, ReturnLike, Terminator]> {
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}
def TT_ReduceReturnOp : TT_YieldOp<"reduce.return", "ReduceOp"> {
  let summary = "Gives the result of a reduction's region";
}
def TT_ScanReturnOp : TT_YieldOp<"scan.return", "ScanOp"> {
  let summary = "Gives the result of a scan's region";
}
def TT_MapElementwiseReturnOp : TT_YieldOp<"map_elementwise.return", "MapElementwiseOp"> {
  let summary = "The results of a program on scalars";
}

def TT_DotOp : TT_Op<"dot", [Pure, TypesMatchWith<"the accumulator has the result's type", "result", "c", "$_self">]> {
  let summary = "Matrix product of two blocks, added to a third";
  let arguments = (ins NumberBlock:$a, NumberBlock:$b, NumberBlock:$c,
                       OptionalAttr<StrAttr>:$inputPrecision, OptionalAttr<I32Attr>:$maxNumImpreciseAcc);
  let results = (outs NumberBlock:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $c (`,` `inputPrecision` `=` custom<Keyword>($inputPrecision)^)? attr-dict `:` type($a) `*` type($b) `->` type($result)
  }];
}

def TT_DotScaledOp : TT_Op<"dot_scaled", [Pure, AttrSizedOperandSegments,
    TypesMatchWith<"the accumulator has the result's type", "result", "c", "$_self">]> {
  let summary = "Matrix product of blocks in a microscaling format";
  let arguments = (ins NumberBlock:$a, NumberBlock:$b, NumberBlock:$c, Optional<NumberBlock>:$a_scale, Optional<NumberBlock>:$b_scale,
                       StrAttr:$lhs, StrAttr:$rhs, DefaultValuedAttr<BoolAttr, "false">:$fastMath,
                       DefaultValuedAttr<BoolAttr, "true">:$lhs_k_pack, DefaultValuedAttr<BoolAttr, "true">:$rhs_k_pack);
  let results = (outs NumberBlock:$result);
  let assemblyFormat = [{
    $a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` custom<Keyword>($lhs) `rhs` `=` custom<Keyword>($rhs) attr-dict
    `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Elementwise ops that arith and math lack
//===----------------------------------------------------------------------===//

def TT_BitcastOp : TT_FromToOp<"bitcast", ScalarLike, ScalarLike> {
  let summary = "The same bits as another type; of pointers, to another type";
}
def TT_FpToFpOp : TT_Op<"fp_to_fp", [Pure]> {
  let summary = "Converts floats with a rounding mode";
  let arguments = (ins FloatLike_:$value, OptionalAttr<StrAttr>:$rounding);
  let results = (outs FloatLike_:$result);
  let assemblyFormat = [{
    $value (`,` `rounding` `=` custom<Keyword>($rounding)^)? attr-dict `:` type($value) `->` type($result)
  }];
}

class TT_BinaryOp<string mnem, Constraint type> : TT_Op<mnem, [Pure, SameOperandsAndResultType]> {
  let arguments = (ins type:$x, type:$y);
  let results = (outs type:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` type($x)";
}
def TT_MulhiUIOp : TT_BinaryOp<"mulhiui", IntLike> {
  let summary = "The upper half of an unsigned product";
}
def TT_PreciseDivFOp : TT_BinaryOp<"precise_divf", FloatLike_> {
  let summary = "A quotient rounded to the nearest";
}
def TT_ApproxDivFOp : TT_BinaryOp<"approx_divf", FloatLike_> {
  let summary = "A quotient that may be off by a few units in the last place";
}
def TT_PreciseSqrtOp : TT_Op<"precise_sqrt", [Pure, SameOperandsAndResultType]> {
  let summary = "A square root rounded to the nearest";
  let arguments = (ins FloatLike_:$x);
  let results = (outs FloatLike_:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
def TT_ClampFOp : TT_Op<"clampf", [Pure, SameOperandsAndResultType]> {
  let summary = "The nearest to a float within limits";
  let arguments = (ins FloatLike_:$x, FloatLike_:$min, FloatLike_:$max, StrAttr:$propagateNan);
  let results = (outs FloatLike_:$result);
  let assemblyFormat = "$x `,` $min `,` $max `,` `propagateNan` `=` custom<Keyword>($propagateNan) attr-dict `:` type($x)";
}

def TT_ExternElementwiseOp : TT_Op<"extern_elementwise"> {
  let summary = "A function of a device library";
  let arguments = (ins Variadic<ScalarLike>:$values, StrAttr:$libname, StrAttr:$libpath, StrAttr:$symbol, BoolAttr:$pure);
  let results = (outs ScalarLike:$result);
  let assemblyFormat = "$values attr-dict `:` functional-type($values, $result)";
}
def TT_ElementwiseInlineAsmOp : TT_Op<"elementwise_inline_asm"> {
  let summary = "Another vendor's assembly for every element";
  let arguments = (ins StrAttr:$asm_string, StrAttr:$constraints, BoolAttr:$pure, I32Attr:$packed_element, Variadic<ScalarLike>:$values);
  let results = (outs Variadic<ScalarLike>:$results);
  let assemblyFormat = "$asm_string attr-dict ($values^ `:` type($values))? `->` type($results)";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def TT_AddPtrOp : TT_Op<"addptr", [Pure, TypesMatchWith<"the result has the pointers' type", "pointers", "result", "$_self">]> {
  let summary = "Moves pointers by numbers of elements";
  let arguments = (ins PtrLike:$pointers, IntLike:$offsets);
  let results = (outs PtrLike:$result);
  let assemblyFormat = "$pointers `,` $offsets attr-dict `:` type($pointers) `,` type($offsets)";
}
def TT_PtrToIntOp : TT_FromToOp<"ptr_to_int", PtrLike, IntLike> {
  let summary = "The addresses of pointers";
}
def TT_IntToPtrOp : TT_FromToOp<"int_to_ptr", IntLike, PtrLike> {
  let summary = "Pointers to addresses";
}

def TT_LoadOp : TT_Op<"load", [AttrSizedOperandSegments, OptionalMaskOf<"pointers">, OptionalPointeeOf<"pointers", "other">,
    PointeeOf<"pointers", "result">]> {
  let summary = "Loads what pointers point to";
  let description = "Hints for caches (`cacheModifier = cg evictionPolicy = evict_first` before Triton 3.9) are kept as words, which nothing depends on.";
  let arguments = (ins PtrLike:$pointers, Optional<BoolLike_>:$mask, Optional<NumberLike>:$other,
                       DefaultValuedAttr<BoolAttr, "false">:$isVolatile, OptionalAttr<DictionaryAttr>:$hints);
  let results = (outs NumberLike:$result);
  let assemblyFormat = "$pointers (`,` $mask^)? (`,` $other^)? custom<CacheHints>($hints) attr-dict `:` type($pointers)";
}
def TT_StoreOp : TT_Op<"store", [OptionalMaskOf<"pointers">, PointeeOf<"pointers", "value">]> {
  let summary = "Stores values where pointers point to";
  let arguments = (ins PtrLike:$pointers, NumberLike:$value, Optional<BoolLike_>:$mask, OptionalAttr<DictionaryAttr>:$hints);
  let assemblyFormat = "$pointers `,` $value (`,` $mask^)? custom<CacheHints>($hints) attr-dict `:` type($pointers)";
}

def TT_AtomicRmwOp : TT_Op<"atomic_rmw"> {
  let summary = "Combines values with what is in memory and gives what was there";
  let arguments = (ins StrAttr:$kind, StrAttr:$sem, StrAttr:$scope, PtrLike:$pointers, NumberLike:$value, Optional<BoolLike_>:$mask);
  let results = (outs NumberLike:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) `,` custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $pointers `,` $value (`,` $mask^)? attr-dict
    `:` functional-type(operands, $result)
  }];
}
def TT_AtomicCasOp : TT_Op<"atomic_cas"> {
  let summary = "Stores values where memory has the expected ones and gives what was there";
  let arguments = (ins StrAttr:$sem, StrAttr:$scope, PtrLike:$pointers, NumberLike:$expected, NumberLike:$value);
  let results = (outs NumberLike:$result);
  let assemblyFormat = [{
    custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $pointers `,` $expected `,` $value attr-dict `:` functional-type(operands, $result)
  }];
}
def TT_AtomicLoadOp : TT_Op<"atomic_load"> {
  let summary = "Loads in one step, in order with other atomics";
  let arguments = (ins StrAttr:$sem, StrAttr:$scope, PtrLike:$pointers, Optional<BoolLike_>:$mask);
  let results = (outs NumberLike:$result);
  let assemblyFormat = [{
    custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $pointers (`,` $mask^)? attr-dict `:` functional-type(operands, $result)
  }];
}
def TT_AtomicPollOp : TT_Op<"atomic_poll"> {
  let summary = "Waits until memory has the expected number; false where the time was over";
  let arguments = (ins StrAttr:$sem, StrAttr:$scope, PtrLike:$pointers, NumberLike:$expected, Optional<I64>:$timeout);
  let results = (outs BoolLike_:$result);
  let assemblyFormat = [{
    custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $pointers `,` $expected (`timeout` $timeout^)? attr-dict
    `:` type($pointers) `,` type($expected) `->` type($result)
  }];
}
def TT_AtomicStoreOp : TT_Op<"atomic_store", [OptionalMaskOf<"pointers">, PointeeOf<"pointers", "value">]> {
  let summary = "Stores in one step, in order with other atomics";
  let arguments = (ins StrAttr:$sem, StrAttr:$scope, PtrLike:$pointers, NumberLike:$value, Optional<BoolLike_>:$mask);
  let assemblyFormat = [{
    custom<Keyword>($sem) `,` custom<Keyword>($scope) `,` $pointers `,` $value (`,` $mask^)? attr-dict `:` type($pointers)
  }];
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

def TT_MakeTensorDescriptorOp : TT_Op<"make_tensor_descriptor", [Pure, AttrSizedOperandSegments]> {
  let summary = "Describes a tensor in global memory";
  let arguments = (ins TT_PtrType:$base, Variadic<I32>:$shape, Variadic<I64>:$strides, OptionalAttr<I32Attr>:$padding);
  let results = (outs TT_DescriptorType:$result);
  let assemblyFormat = "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base) `,` type($result)";
}
def TT_DescriptorLoadOp : TT_Op<"descriptor_load"> {
  let summary = "Loads the block at an index";
  let arguments = (ins TT_DescriptorType:$desc, Variadic<I32>:$indices, OptionalAttr<DictionaryAttr>:$hints);
  let results = (outs NumberBlock:$result);
  let assemblyFormat = "$desc `[` $indices `]` custom<CacheHints>($hints) attr-dict `:` qualified(type($desc)) `->` type($result)";
}
def TT_DescriptorStoreOp : TT_Op<"descriptor_store"> {
  let summary = "Stores the block at an index";
  let arguments = (ins TT_DescriptorType:$desc, NumberBlock:$value, Variadic<I32>:$indices);
  let assemblyFormat = "$desc `[` $indices `]` `,` $value attr-dict `:` qualified(type($desc)) `,` type($value)";
}
def TT_DescriptorReduceOp : TT_Op<"descriptor_reduce"> {
  let summary = "Combines a block with the one at an index, each element in one step";
  let arguments = (ins StrAttr:$kind, TT_DescriptorType:$desc, NumberBlock:$value, Variadic<I32>:$indices);
  let assemblyFormat = [{
    custom<Keyword>($kind) `,` $desc `[` $indices `]` `,` $value attr-dict `:` qualified(type($desc)) `,` type($value)
  }];
}
def TT_DescriptorGatherOp : TT_Op<"descriptor_gather"> {
  let summary = "Loads the rows that a block names, from a column on";
  let arguments = (ins TT_DescriptorType:$desc, RowBlock:$rows, I32:$column);
  let results = (outs NumberBlock:$result);
  let assemblyFormat = "$desc `[` $rows `,` $column `]` attr-dict `:` functional-type(operands, $result)";
}
def TT_DescriptorScatterOp : TT_Op<"descriptor_scatter"> {
  let summary = "Stores the rows that a block names, from a column on";
  let arguments = (ins TT_DescriptorType:$desc, RowBlock:$rows, I32:$column, NumberBlock:$value);
  let assemblyFormat = "$desc `[` $rows `,` $column `]` `,` $value attr-dict `:` type(operands)";
}

//===----------------------------------------------------------------------===//
// ttg
//===----------------------------------------------------------------------===//

def TTG_BarrierOp : Op<TTG_Dialect, "barrier"> {
  let summary = "All of the workgroup have come here; `tl.debug_barrier` since Triton 3.7";
  let assemblyFormat = "`all` attr-dict";
}

#endif
