//===- Structure.cpp - branches as structured control flow ----------------===//
//
// A `return` in the middle of a function leaves blocks and branches; loops and
// ifs are scf already. MLIR lifts the branches to scf.if:
//
//   cf.cond_br %c, ^bb1, ^bb2        scf.if %c {
//   ^bb1: return               ->    } else {
//   ^bb2: store .. return              store ..
//                                    }
//                                    return
//
//===----------------------------------------------------------------------===//

#include "GretaTile/Structure.h"
#include "GretaTile/GretaTile.h"
#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace greta::tile;

namespace {
class Lifting : public ControlFlowToSCFTransformation {
public:
  /// The first of two ways is taken if the flag is its case.
  void createCFGSwitchOp(Location loc, OpBuilder &builder, Value flag,
                         ArrayRef<unsigned> cases, BlockRange destinations,
                         ArrayRef<ValueRange> arguments, Block *otherwise,
                         ValueRange otherArguments) override {
    if (cases.size() != 1)
      return ControlFlowToSCFTransformation::createCFGSwitchOp(
          loc, builder, flag, cases, destinations, arguments, otherwise,
          otherArguments);
    Value number = getCFGSwitchValue(loc, builder, cases[0]);
    Value isFirst = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, flag, number);
    cf::CondBranchOp::create(builder, loc, isFirst, destinations[0],
                             arguments[0], otherwise, otherArguments);
  }

  /// The value of a path that nobody reads: zero, as no target knows poison.
  Value getUndefValue(Location loc, OpBuilder &builder, Type type) override {
    Type element = getElementTypeOrSelf(type);
    bool isPointer = isa<PtrType>(element);
    Type number =
        isPointer ? withElementType(type, builder.getI64Type()) : type;
    TypedAttr zero = builder.getZeroAttr(number);
    if (!zero)
      return ControlFlowToSCFTransformation::getUndefValue(loc, builder, type);
    Value value = arith::ConstantOp::create(builder, loc, zero);
    return isPointer ? IntToPtrOp::create(builder, loc, type, value) : value;
  }

  FailureOr<Operation *> createUnreachableTerminator(Location loc, OpBuilder &,
                                                     Region &) override {
    return emitError(loc, "a loop that never ends; give it a condition");
  }
};
} // namespace

LogicalResult greta::tile::structureBranches(Region &body) {
  if (body.empty() || body.hasOneBlock())
    return success();
  DominanceInfo dominance(body.getParentOp());
  Lifting lifting;
  return success(succeeded(transformCFGToSCF(body, lifting, dominance)));
}
