//===- OpBase.td - what the fused operators share -------------------------===//
#ifndef GRETA_OPBASE_TD
#define GRETA_OPBASE_TD

include "Greta/GretaDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// Element types and shapes are checked by the ops' verifiers, whose messages name the operand and the remedy.
class Greta_Op<string mnemonic, list<Trait> traits = []> : Op<Greta_Dialect, mnemonic, !listconcat([
    Pure, DeclareOpInterfaceMethods<Greta_DecomposableOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>], traits)> {
  let assemblyFormat = "operands attr-dict `:` type(operands) `->` type(results)";
  let hasVerifier = 1;
}

#endif
