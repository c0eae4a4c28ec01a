//===- TileToSPIRVMath.cpp - math to SPIR-V -------------------------------===//
//
// The functions of f32 that Vulkan specifies well enough (exp, log, sqrt, ...
// within a few units in the last place) are GLSL's instructions. greta-expand
// has made the others of these.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::Parts;

LogicalResult KernelEmitter::emitMathOp(Operation *op) {
  if (op->getNumResults() != 1)
    return unknown(op);
  Type scalar = getElementTypeOrSelf(op->getResult(0).getType());
  // Vulkan counts the bits of 32-bit integers only.
  if (!scalar.isF32() && !isa<math::AbsIOp>(op) &&
      !(isa<math::CtPopOp>(op) && scalar.isInteger(32)) &&
      !(isa<math::FmaOp>(op) && scalar.isF16()))
    return unknown(op);
  return elementwise(op, [&](Parts x) -> Value {
    return llvm::TypeSwitch<Operation *, Value>(op)
        .Case([&](math::AbsIOp) { return same<spirv::GLSAbsOp>(x[0]); })
        .Case([&](math::CtPopOp) { return same<spirv::BitCountOp>(x[0]); })
        .Case([&](math::AbsFOp) { return same<spirv::GLFAbsOp>(x[0]); })
        .Case([&](math::ExpOp) { return same<spirv::GLExpOp>(x[0]); })
        .Case([&](math::Exp2Op) { return same<spirv::GLExp2Op>(x[0]); })
        .Case([&](math::FloorOp) { return same<spirv::GLFloorOp>(x[0]); })
        .Case(
            [&](math::FmaOp) { return same<spirv::GLFmaOp>(x[0], x[1], x[2]); })
        .Case([&](math::LogOp) { return same<spirv::GLLogOp>(x[0]); })
        .Case([&](math::Log2Op) { return same<spirv::GLLog2Op>(x[0]); })
        .Case(
            [&](math::RoundEvenOp) { return same<spirv::GLRoundEvenOp>(x[0]); })
        .Case([&](math::RsqrtOp) { return same<spirv::GLInverseSqrtOp>(x[0]); })
        .Case([&](math::SqrtOp) { return same<spirv::GLSqrtOp>(x[0]); })
        .Default([](auto) { return Value(); });
  });
}
