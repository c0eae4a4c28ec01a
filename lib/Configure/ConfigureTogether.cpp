//===- ConfigureTogether.cpp - GEMMs that share a launch ------------------===//
//
// GEMMs of one A, queries, keys and values, say, fill the device better side
// by side than one after another, and cost one launch. They are configured as
// what they are together, one GEMM with all columns: the widest of those
// with heads, which are pickier, chooses, and the others take its tile. Shared
// memory is then that of one: a workgroup is in one of the branches. No GEMM
// is split along K: its neighbours are there to fill the device.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace greta;

FailureOr<bool> greta::chooseTogether(ArrayRef<Space> spaces, Limits limits,
                                      Schedule &schedule) {
  auto columnsOf = [](const Space &space) {
    int64_t columns = MatmulOp(space.matmul).getType().getShape().back();
    return ShapedType::isDynamic(columns) ? 1 : columns;
  };
  auto rankOf = [&](const Space &space) {
    return std::pair(bool(space.heads), columnsOf(space));
  };
  const Space *leader = &spaces.front();
  for (const Space &space : spaces) {
    limits.columns += columnsOf(space);
    if (rankOf(space) > rankOf(*leader))
      leader = &space;
  }
  MLIRContext *context = MatmulOp(leader->matmul).getContext();
  FailureOr<Choice> lead = choose(*leader, limits, context);
  if (failed(lead))
    return failure();
  if (lead->space.split > 1) // what was measured for it alone
    return false;
  limits.lead = &lead->tile;
  for (const Space &space : spaces) {
    FailureOr<Choice> choice = choose(space, limits, context);
    if (failed(choice))
      return failure();
    if (choice->tile.waves != lead->tile.waves || choice->space.split > 1 ||
        !choice->tile.instruction != !lead->tile.instruction)
      return false;
    schedule.spaces.push_back(std::move(choice->space));
  }
  schedule.blockSize = lead->tile.waves * limits.wave;
  return true;
}

SmallVector<KernelOp> greta::separateSpaces(KernelOp kernel) {
  SmallVector<KernelOp> kernels;
  OpBuilder b(kernel);
  unsigned nextShape = kernel.getInputs().size(), nextResult = 0;
  for (Region &space : kernel.getSpaces()) {
    // The kernel's operands that it uses.
    Block &block = space.front();
    SmallVector<Value> operands;
    SmallVector<Attribute> shapes, views;
    for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
      if (argument.use_empty())
        continue;
      AffineMap view = kernel.getView(i);
      operands.push_back(kernel.getInputs()[i]);
      shapes.push_back(kernel.getShapes()[i]);
      views.push_back(view ? Attribute(AffineMapAttr::get(view))
                           : b.getUnitAttr());
    }
    block.eraseArguments(
        [](BlockArgument argument) { return argument.use_empty(); });
    unsigned count = block.getTerminator()->getNumOperands();
    llvm::append_range(shapes,
                       kernel.getShapes().getValue().slice(nextShape, count));
    ResultRange results = kernel.getResults().slice(nextResult, count);
    kernels.push_back(KernelOp::create(b, kernel.getLoc(), results.getTypes(),
                                       operands, b.getArrayAttr(shapes),
                                       viewsAttribute(views), nullptr,
                                       /*spacesCount=*/1));
    kernels.back().getSpaces().front().takeBody(space);
    results.replaceAllUsesWith(kernels.back().getResults());
    nextShape += count;
    nextResult += count;
  }
  kernel.erase();
  return kernels;
}
