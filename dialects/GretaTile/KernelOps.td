//===- KernelOps.td - kernels and their launches ------------------------===//
#ifndef GRETATILE_KERNELOPS_TD
#define GRETATILE_KERNELOPS_TD

include "GretaTile/OpBase.td"

def GretaTile_FuncOp : GretaTile_Op<"func", [FunctionOpInterface, IsolatedFromAbove,
    HasParent<"::mlir::ModuleOp">, AutomaticAllocationScope]> {
  let summary = "A kernel: what one workgroup executes";
  let description = [{
    Arguments are pointers, then `i32` scalars; nothing is returned. A workgroup has `waves` waves, a power of two, of `wave_size` lanes, which
    exchange values by shuffles. A block program leaves `wave_size` to the target (`greta-tile-set-target`), so that one text
    serves all; `wave_size` 1 stands for a target without shuffles, where every exchange goes through shared memory.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       ConfinedAttr<I32Attr, [IntPositive]>:$waves,
                       OptionalAttr<ConfinedAttr<I32Attr, [IntPositive]>>:$wave_size,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, "int32_t":$waves,
                                 "int32_t":$waveSize)>];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    int32_t getNumWaves() { return getWaves(); }
    /// Fails where the target is not known, which what follows needs.
    ::llvm::LogicalResult checkTarget();
    /// Of a wave.
    int32_t getNumLanes() { return *getWaveSize(); }
    int32_t getBlockSize() { return getNumWaves() * getNumLanes(); }
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

def GretaTile_ProgramIdOp : GretaTile_Op<"program_id", [Pure]> {
  let summary = "Index of this workgroup along an axis of the grid";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let builders = [OpBuilder<(ins "int32_t":$axis), [{ build($_builder, $_state, $_builder.getI32Type(), axis); }]>];
  let assemblyFormat = "$axis attr-dict";
}

#endif
