//===- TileToSPIRVMath.cpp - math to SPIR-V -------------------------------===//
//
// The functions of f32 that Vulkan specifies well enough (exp, log, sqrt, ...
// within a few units in the last place) are GLSL's instructions. greta-expand
// has made the others of these.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::Parts;

LogicalResult KernelEmitter::emitMathOp(Operation *op) {
  if (op->getNumResults() != 1)
    return unknown(op);
  Type scalar = getElementTypeOrSelf(op->getResult(0).getType());
  // Vulkan counts the bits of 32-bit integers only. greta-expand leaves only
  // GLSL's roundings and roots of f64.
  if (!scalar.isF32() && !scalar.isF64() && !isa<math::AbsIOp>(op) &&
      !(isa<math::CtPopOp>(op) && scalar.isInteger(32)) &&
      !(isa<math::FmaOp>(op) && scalar.isF16()))
    return unknown(op);
  using namespace spirv;
  return elementwise(op, [&](Parts x) {
    return emitByRow<
        Row<math::AbsFOp, GLFAbsOp>, Row<math::AbsIOp, GLSAbsOp>,
        Row<math::CtPopOp, BitCountOp>, Row<math::ExpOp, GLExpOp>,
        Row<math::Exp2Op, GLExp2Op>, Row<math::FloorOp, GLFloorOp>,
        Row<math::FmaOp, GLFmaOp>, Row<math::LogOp, GLLogOp>,
        Row<math::Log2Op, GLLog2Op>, Row<math::RoundEvenOp, GLRoundEvenOp>,
        Row<math::RsqrtOp, GLInverseSqrtOp>, Row<math::SqrtOp, GLSqrtOp>>(op,
                                                                          x);
  });
}
