//===- FuseOperands.cpp - what a GEMM's kernel computes itself ------------===//
//
// Decides whether a GEMM's kernel computes an operand. Every workgroup that
// takes a block of the operand then computes it again: each column of tiles
// computes A, each row of tiles computes B. In return the operand is neither
// written nor read again, and a launch is saved.
//
//   skinny GEMMs  compute B: a block is needed once, and loads take longer
//   elementwise   is computed if matrix instructions hide it (few ops, no
//                 divisions, no functions), and if it loads at most twice the
//                 operand's bits, since caches serve them again and again
//   patches       of a convolution are always computed; there is no other way
//   rms_norm      of A is computed for few columns: rows are scaled after the
//                 GEMM, so nothing is read twice. But the work shows if loads
//                 and matrix instructions do not overlap, as on Vulkan. A
//                 kernel of its own would move 4 bytes an element and cost a
//                 launch
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace greta;

static constexpr int64_t maxOps = 8;
static constexpr int64_t maxColumnsOfNorm = 1024;
/// Whether an op fits into the time that matrix instructions leave to the
/// vector unit.
static bool isCheap(Operation *op) {
  return isa<arith::ArithDialect>(op->getDialect()) &&
         !isa<arith::DivFOp, arith::RemFOp, arith::DivSIOp, arith::DivUIOp,
              arith::RemSIOp, arith::RemUIOp>(op);
}

bool greta::paysInGemm(MatmulOp matmul, unsigned number,
                       ArrayRef<Operation *> ops) {
  if (ops.empty() || isSkinny(matmul))
    return true;
  auto typeOf = [](Value value) {
    return cast<RankedTensorType>(value.getType());
  };
  RankedTensorType type = typeOf(matmul->getOperand(number));
  int64_t loaded = 0, count = 0; // bits of an element, elementwise ops
  for (Operation *op : ops) {
    if (isa<RmsNormOp>(op)) {
      int64_t columns = matmul.getType().getShape().back();
      // A row's squares are added up in the order of the tile's blocks.
      if (ShapedType::isDynamic(columns) || columns > maxColumnsOfNorm ||
          isBatchInvariant(matmul))
        return false;
    } else if (!isTransparent(op) && !isa<DequantOp, PatchesOp>(op)) {
      ++count;
      if (!isCheap(op))
        return false;
    }
    for (Value operand : op->getOperands())
      if (!llvm::is_contained(ops, operand.getDefiningOp()) &&
          typeOf(operand).getShape() == type.getShape())
        loaded += typeOf(operand).getElementTypeBitWidth();
  }
  return count <= maxOps && loaded <= 2 * type.getElementTypeBitWidth();
}
