//===- Decompose.cpp - greta ops to linalg, arith and math ----------------===//
//
// The pass greta-decompose; the definitions are the ops' own
// (dialects/Greta/GretaDecompose.cpp).
//
//===----------------------------------------------------------------------===//

#include "Greta/Greta.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

namespace greta {
#define GEN_PASS_DEF_GRETADECOMPOSEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;

namespace {
struct GretaDecomposePass
    : greta::impl::GretaDecomposePassBase<GretaDecomposePass> {
  void runOnOperation() override {
    SmallVector<greta::DecomposableOpInterface> ops;
    getOperation()->walk(
        [&](greta::DecomposableOpInterface op) { ops.push_back(op); });
    for (greta::DecomposableOpInterface op : ops) {
      OpBuilder builder(op);
      SmallVector<Value> results = op.decompose(builder);
      // The definition may know more of a shape than the op's type says.
      for (auto [result, type] : llvm::zip(results, op->getResultTypes()))
        if (result.getType() != type)
          result = tensor::CastOp::create(builder, op.getLoc(), type, result);
      op->replaceAllUsesWith(results);
      op->erase();
    }
  }
};
} // namespace
