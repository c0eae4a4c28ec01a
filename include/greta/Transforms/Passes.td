//===- Passes.td - passes on the greta and greta_tile dialects ------------===//
#ifndef GRETA_TRANSFORMS_PASSES_TD
#define GRETA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def GretaDecomposePass : Pass<"greta-decompose"> {
  let summary = "Replace greta ops by their definition in linalg, arith and math";
  let description = [{
    Every op of the `greta` dialect gives its definition through `DecomposableOpInterface`; this pass puts it in place. What
    comes out has no op of the dialect. It runs on any op, needs nothing before it, and is the first step of the `host` target.

    ```mlir
    %0 = greta.swiglu %gate, %up : tensor<4x8xf16>, tensor<4x8xf16> -> tensor<4x8xf16>
    // becomes
    %1 = tensor.empty() : tensor<4x8xf16>
    %2 = linalg.generic {..} ins(%gate, %up) outs(%1) { extf, extf, negf, exp, addf, divf, mulf, truncf }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif
