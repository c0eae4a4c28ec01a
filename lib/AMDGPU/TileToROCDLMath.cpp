//===- TileToROCDLMath.cpp - floats on the AMDGPU backend -----------------===//
//
// f32 arithmetic may contract (a multiplication and an addition become one
// fma). Narrower types may not: they round where the source says so.
//
// Functions are those that have instructions (greta-expand). The backend's own
// expansions of exp and exp2 are good to an ulp or so and right for denormals.
// `fastmath<afn>` asks for the bare v_exp_f32: one instruction instead of six
// (exp2) or thirteen (exp). It flushes results below 2^-126, and for exp its
// relative error is |x| * 1e-7; for a softmax (x <= 0) that leaves the result's
// error below 4e-8.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace {
/// `exp` and `exp2` of f32 with afn.
template <typename OpT> struct BareExp : ConvertOpToLLVMPattern<OpT> {
  using ConvertOpToLLVMPattern<OpT>::ConvertOpToLLVMPattern;
  LogicalResult
  matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getType().isF32() ||
        !bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return failure();
    Value x = adaptor.getOperand();
    if (std::is_same_v<OpT, math::ExpOp>)
      x = LLVM::FMulOp::create(
          rewriter, op.getLoc(), x,
          LLVM::ConstantOp::create(rewriter, op.getLoc(),
                                   rewriter.getF32FloatAttr(1.44269504f)));
    rewriter.replaceOpWithNewOp<ROCDL::ROCDLExp2>(op, x.getType(), x);
    return success();
  }
};
} // namespace

void greta::rocdl::populateBareMathPatterns(const LLVMTypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<BareExp<math::ExpOp>, BareExp<math::Exp2Op>>(converter,
                                                            /*benefit=*/2);
}

void greta::rocdl::allowContraction(Operation *op) {
  auto fast = dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fast || isa<arith::ExtFOp>(op) || op->getNumResults() != 1 ||
      !getElementTypeOrSelf(op->getResult(0)).isF32())
    return;
  arith::FastMathFlags flags = arith::FastMathFlags::contract;
  if (arith::FastMathFlagsAttr given = fast.getFastMathFlagsAttr())
    flags = flags | given.getValue();
  op->setAttr(fast.getFastMathAttrName(),
              arith::FastMathFlagsAttr::get(op->getContext(), flags));
}
