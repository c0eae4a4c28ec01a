//===- WidenProducts.cpp - the pass greta-widen-products ------------------===//
//
// Products of 8-bit floats without an instruction become products of f16.
//
//===----------------------------------------------------------------------===//

#include "TileModel.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace greta {
#define GEN_PASS_DEF_GRETAWIDENPRODUCTSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

static void widen(MatmulOp matmul) {
  OpBuilder builder(matmul);
  Type f16 = builder.getF16Type(), f32 = builder.getF32Type();
  for (OpOperand &operand : matmul->getOpOperands()) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    operand.set(arith::ExtFOp::create(builder, matmul.getLoc(), type.clone(f16),
                                      operand.get()));
  }
  RankedTensorType type = matmul.getType();
  if (!type.getElementType().isBF16())
    return;
  // f16 goes to f16 or f32.
  Value product = matmul.getResult();
  product.setType(type.clone(f32));
  builder.setInsertionPointAfter(matmul);
  auto rounded =
      arith::TruncFOp::create(builder, matmul.getLoc(), type, product);
  product.replaceAllUsesExcept(rounded, rounded);
}

namespace {
struct WidenProductsPass
    : greta::impl::GretaWidenProductsPassBase<WidenProductsPass> {
  using GretaWidenProductsPassBase::GretaWidenProductsPassBase;
  void runOnOperation() override {
    llvm::Expected<const TargetRow *> row = lookupTarget(target);
    if (!row) {
      getOperation().emitError(llvm::toString(row.takeError()));
      return signalPassFailure();
    }
    Limits limits(**row, matrix);
    SmallVector<MatmulOp> products;
    getOperation().walk([&](MatmulOp matmul) {
      if (isFloat8(matmul.getA().getType().getElementType()) &&
          !hasFewRows(matmul) && instructionsFor(matmul, limits).empty())
        products.push_back(matmul);
    });
    llvm::for_each(products, widen);
  }
};
} // namespace
