//===- Checks.cpp - see Checks.h ------------------------------------------===//

#include "Checks.h"
#include "greta/Interface/Launches.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

Origins::Origins(FuncOp kernel) : arguments(kernel.getNumArguments()) {
  for (BlockArgument argument : kernel.getBody().getArguments())
    if (isa<PtrType>(argument.getType()))
      follow(argument);
}

/// Whatever takes a pointer may hand it on to all pointers that it makes, those
/// of its regions and, where it ends a region, of the op around it.
void Origins::follow(BlockArgument argument) {
  SmallVector<Value> left{argument};
  auto reach = [&](ValueRange values) {
    for (Value value : values)
      if (isa<PtrType>(value.getType()))
        left.push_back(value);
  };
  while (!left.empty()) {
    Value value = left.pop_back_val();
    auto [known, isNew] = origins.try_emplace(value, arguments);
    if (known->second.test(argument.getArgNumber()))
      continue;
    known->second.set(argument.getArgNumber());
    for (Operation *user : value.getUsers()) {
      bool ends = user->hasTrait<OpTrait::IsTerminator>();
      for (Operation *op : {user, ends ? user->getParentOp() : nullptr}) {
        if (!op || isa<FuncOp>(op))
          continue;
        reach(op->getResults());
        for (Region &region : op->getRegions())
          for (Block &block : region)
            reach(block.getArguments());
      }
    }
  }
}

/// The pointer that an op writes through, if it does.
static Value writtenBy(Operation *op) {
  if (auto store = dyn_cast<PtrStoreOp>(op))
    return store.getBase();
  return isa<PtrAtomicRmwOp, PtrAtomicCasOp>(op) ? op->getOperand(0) : Value();
}

Touched::Touched(Operation *root, unsigned arguments, const Origins &origins)
    : reads(arguments), writes(arguments) {
  root->walk([&](Operation *op) {
    if (isa<PtrLoadOp, PtrLoadSharedOp, PtrAtomicRmwOp, PtrAtomicCasOp>(op))
      reads |= origins.of(op->getOperand(0));
    if (Value pointer = writtenBy(op))
      writes |= origins.of(pointer);
  });
}

/// Arguments are told apart by their numbers, so that they have to be memory of
/// their own. Loads of what is only read may be served by a cache that knows
/// nothing of the stores.
LogicalResult greta::checkMemory(FuncOp kernel, LaunchOp launch,
                                 const Origins &origins) {
  llvm::SmallDenseMap<Value, unsigned> known;
  for (auto [number, operand] : llvm::enumerate(launch.getOperands())) {
    auto [first, isNew] = known.try_emplace(memoryOf(operand), number);
    if (!isNew && isa<RankedTensorType>(operand.getType()))
      return launch.emitOpError("has a kernel that does several launches' "
                                "work, and passes one tensor as operand ")
             << first->second << " and as operand " << number;
  }
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    Value pointer = writtenBy(op);
    if (!pointer || !origins.isKnown(pointer))
      return WalkResult::advance();
    for (unsigned number : origins.of(pointer).set_bits()) {
      DictionaryAttr attrs =
          function_interface_impl::getArgAttrDict(kernel, number);
      if (attrs && attrs.contains(readonlyName))
        return op->emitOpError("writes argument ")
               << number << ", which the kernel promises only to read";
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

bool greta::isZeroed(LaunchOp launch, unsigned number) {
  unsigned next = launch.getNumOperands();
  for (unsigned i = 0; i < launch.getNumResults(); ++i)
    if (!launch.getTiedOperand(i) && next++ == number)
      return launch.isZeroed(i);
  return false;
}
