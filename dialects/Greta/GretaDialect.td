//===- GretaDialect.td - the greta dialect and its interface --------------===//
#ifndef GRETA_DIALECT_TD
#define GRETA_DIALECT_TD

include "mlir/IR/OpBase.td"

def Greta_Dialect : Dialect {
  let name = "greta";
  let cppNamespace = "::greta";
  let summary = "Fused operators of language models on tensors";
  let useDefaultAttributePrinterParser = 1;
  let description = [{
    One op per operator that a language model's layers are made of. Functions mix them with `arith` and `math` on tensors, and with
    `linalg.reduce` along the last dimension, by any associative and commutative combination of one or several tensors (`greta.reduce_rows` says what is asked of it);
    each public function compiles to as few kernels as possible.

    Element types are f32, f16 and bf16 where an op says no more. Leading dimensions may be dynamic (`?`); the row length,
    the last dimension of the row ops, is static. Every op computes in f32 and rounds once, to the type of its result.

    All ops print as `greta.op operands attr-dict : operand types -> result type`.
  }];
}

def Greta_DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::greta";
  let description = [{
    The decomposition is the op's definition. The code of every target must agree with it up to rounding and the order of sums.
  }];
  let methods = [InterfaceMethod<[{
      Creates the linalg, arith, math and tensor ops that define this op and returns the values that stand for its results.
      The builder is set where the op stands; the caller replaces the op.
    }], "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}

#endif
