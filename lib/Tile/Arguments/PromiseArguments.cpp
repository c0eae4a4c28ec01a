//===- PromiseArguments.cpp - greta-tile-promise-arguments ----------------===//
//
// In: kernels and the launches that run them. Out: a `greta.divisibility` on
// every argument that all launches keep, for the facts analysis: the alignment
// of buffers (alignmentOf), and the divisors of scalars, which are expressions
// of the function's symbols. If arguments of a function are values, no tensor
// that a launch writes overlaps another of its tensors: `greta.noalias`.
//
//===----------------------------------------------------------------------===//

#include "greta/Interface/Launches.h"
#include "greta/Passes.h"
#include "greta/Tile/Facts.h"
#include "llvm/ADT/MapVector.h"
#include <numeric>

namespace greta {
#define GEN_PASS_DEF_GRETATILEPROMISEARGUMENTSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {
struct PromiseArgumentsPass
    : greta::impl::GretaTilePromiseArgumentsPassBase<PromiseArgumentsPass> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::MapVector<FuncOp, SmallVector<int64_t>> multiples;
    llvm::DenseSet<FuncOp> inPlace;
    getOperation().walk([&](LaunchOp launch) {
      if (launch->getParentOfType<func::FuncOp>()->hasAttr(inPlaceName))
        inPlace.insert(symbols.lookup<FuncOp>(launch.getKernel()));
      SmallVector<int64_t> all;
      for (Value operand : launch->getOperands())
        all.push_back(isa<RankedTensorType>(operand.getType())
                          ? alignmentOf(operand)
                          : 1);
      for (OpResult result : launch->getResults())
        if (!launch.getTiedOperand(result.getResultNumber()))
          all.push_back(alignmentOf(result));
      for (AffineExpr scalar : launch.getScalars().getResults())
        all.push_back(scalar.getLargestKnownDivisor());
      auto [known, isNew] =
          multiples.insert({symbols.lookup<FuncOp>(launch.getKernel()), all});
      for (auto [before, now] : llvm::zip(known->second, all))
        before = std::gcd(before, now);
    });
    Builder b(&getContext());
    for (auto &[kernel, all] : multiples)
      for (auto [i, multiple] : llvm::enumerate(all)) {
        if (multiple > 1 && !kernel.getArgAttr(i, divisibilityName))
          kernel.setArgAttr(i, divisibilityName, b.getI64IntegerAttr(multiple));
        if (isa<PtrType>(kernel.getArgumentTypes()[i]) &&
            !inPlace.contains(kernel))
          kernel.setArgAttr(i, noaliasName, b.getUnitAttr());
      }
  }
};
} // namespace
