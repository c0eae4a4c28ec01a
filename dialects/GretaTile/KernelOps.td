//===- KernelOps.td - kernels and their launches --------------------------===//
#ifndef GRETATILE_KERNELOPS_TD
#define GRETATILE_KERNELOPS_TD

include "GretaTile/OpBase.td"

def GretaTile_FuncOp : GretaTile_Op<"func", [FunctionOpInterface, IsolatedFromAbove,
    HasParent<"::mlir::ModuleOp">, AutomaticAllocationScope]> {
  let summary = "A kernel: what one workgroup executes";
  let description = [{
    Arguments are pointers and scalars, integers of 1 to 64 bits and floats of 16 to 64, in any order; nothing is returned. A `greta_tile.return` may
    stand in any block of `cf`, and private functions may be called: branches become `scf`, calls are inlined. A workgroup has `waves` waves, a power of two, of `wave_size` lanes, which
    exchange values by shuffles. A block program leaves `wave_size` to the target (`greta-tile-set-target`), so that one text
    serves all; `wave_size` 1 stands for a target without shuffles, where every exchange goes through shared memory.

    Attributes of arguments hold what callers promise: `greta.divisibility`, a multiple of what a pointer is in bytes or a scalar in units, and `greta.readonly` of a
    pointer: while the kernel runs nobody writes what it reaches. `greta.noalias` of a pointer says that no other argument reaches what it reaches, unless
    the kernel writes through neither.
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
    /// The lanes of a wave.
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
    Stands in the function that the package exports. The kernel's arguments are the `operands`, tensors as pointers and scalars of the function, then the `results`,
    then the integers that `scalars` computes, which are not negative. Behind `greta-tile-explicit-arguments` all scalars are i32, i64 and f32: others are passed
    as their bits. `grid` is the number of workgroups per axis (one to three results). Both are over
    the symbols of the enclosing function (its attribute `greta.symbols`: dynamic dims and integer scalars of its arguments), as are
    `result_shapes`, one map per result that is not tied. `config` records what the compiler chose.

    A result may be `tied` to an operand: the kernel writes to the operand's memory in place, and the result is what that holds then. `tied` has
    the operand's number for each result, or -1; a tied result is no argument of its own. Nothing uses the operand behind the launch.

    Results that `zeroed` numbers are scratch memory of the kernel, which holds zeros before every launch because each leaves zeros behind: counters on which
    workgroups meet. Nothing uses them.

    `by_rows` numbers the kernel's arguments of which each row belongs to a row of the results alone; results that others use are among them. Such a launch may be made in parts of
    rows: with pointers to a part's first row, and the part's number of rows in place of the symbol that is the first extent of these tensors.

    A launch is `resident` if all its workgroups run at a time, which kernels with `grid_barrier` need. Its grid is a constant along one axis.

    ```mlir
    %sum = greta_tile.launch @accumulate grid affine_map<()[n] -> (n ceildiv 64)> scalars affine_map<()[n] -> (n)> (%x, %start, %scale) tied [1] shapes []
           : (tensor<?xf32>, tensor<f32>, f32) -> tensor<f32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyTypeOf<[AnyRankedTensor, AnyScalar]>>:$operands,
                       AffineMapAttr:$grid, AffineMapAttr:$scalars, OptionalAttr<DenseI64ArrayAttr>:$tied,
                       OptionalAttr<DenseI64ArrayAttr>:$zeroed, AffineMapArrayAttr:$result_shapes, OptionalAttr<DictionaryAttr>:$config,
                       OptionalAttr<DenseI64ArrayAttr>:$by_rows, UnitAttr:$resident);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $kernel `grid` $grid `scalars` $scalars `(` $operands `)` (`tied` $tied^)? (`zeroed` $zeroed^)? `shapes` $result_shapes (`by_rows` $by_rows^)? (`resident` $resident^)? attr-dict
    `:` functional-type($operands, $results)
  }];
  let extraClassDeclaration = [{
    /// The operand whose memory a result has; null: it has its own.
    ::mlir::Value getTiedOperand(unsigned result) {
      auto tied = getTied();
      return tied && (*tied)[result] >= 0 ? getOperand((*tied)[result]) : ::mlir::Value();
    }
    bool isZeroed(unsigned result) {
      return getZeroed() && ::llvm::is_contained(*getZeroed(), result);
    }
    /// The workgroups of a resident launch.
    int64_t getResidents() {
      return ::llvm::cast<::mlir::AffineConstantExpr>(getGrid().getResult(0)).getValue();
    }
    /// The shape of a result that is not tied.
    ::mlir::AffineMap getShapeOf(unsigned result);
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

def GretaTile_NumProgramsOp : GretaTile_Op<"num_programs", [Pure]> {
  let summary = "The grid's extent along an axis";
  let description = "`greta-tile-explicit-arguments` makes it an argument of the kernel.";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict";
}

def GretaTile_AssumptionResource : Resource<"::greta::tile::AssumptionResource">;

def GretaTile_AssumeOp : GretaTile_Op<"assume", [MemoryEffects<[MemWrite<GretaTile_AssumptionResource>]>]> {
  let summary = "Says that a condition holds";
  let description = [{
    If it does not hold, the ops that follow have undefined results. The facts analysis learns from it what no arithmetic says, as that a block begins within its bounds,
    so that nobody asks again: `%c = arith.cmpi slt, %row, %rows : i32` and `greta_tile.assume %c`.
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}

#endif
