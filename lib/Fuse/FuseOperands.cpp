//===- FuseOperands.cpp - what a GEMM's kernel computes itself ------------===//
//
// Work on an operand is repeated by every workgroup that takes the block: A by
// each column of blocks, B by each row of them. In return the operand is
// neither written nor read again, and a launch is saved.
//
//   skinny GEMMs      B is taken once, and loading it is the time: always
//   elementwise   where it is hidden under the matrix instructions (few ops, no
//                 divisions, no functions), and where what is loaded is not
//                 more than twice the operand: caches serve it again and again
//   patches       the GEMM of a convolution: there is no other place for them
//   rms_norm of A rows are scaled after the GEMM, so that nothing is read
//                 twice; but where loading and multiplying do not overlap, as
//                 on Vulkan, the work shows. A kernel of its own moves 4 bytes
//                 an element and costs a launch.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace greta;

static constexpr int64_t maxOps = 8;
static constexpr int64_t maxColumnsOfNorm = 1024;
/// Within what matrix instructions leave of the vector unit's time.
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
      // The order of a row's squares is that of the tile's blocks.
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
