//===- PrintFacts.cpp - greta-tile-print-facts ----------------------------===//

#include "greta/Passes.h"
#include "greta/Tile/Facts.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEPRINTFACTSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {
struct PrintFactsPass
    : greta::impl::GretaTilePrintFactsPassBase<PrintFactsPass> {
  void runOnOperation() override {
    Facts facts(getOperation());
    auto print = [&](Value value) {
      if (!isa<IntegerType, IndexType, PtrType>(
              getElementTypeOrSelf(value.getType())))
        return;
      std::string text;
      llvm::raw_string_ostream os(text);
      facts.of(value).print(os);
      if (auto range = facts.rangeOf(value))
        os << ", range [" << range->first << ", " << range->second << "]";
      emitRemark(value.getLoc()) << text;
    };
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
      llvm::for_each(op->getResults(), print);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          llvm::for_each(block.getArguments(), print);
    });
  }
};
} // namespace
