//===- Launches.cpp - functions that launch kernels -----------------------===//
//
// In: a function of a source whose ops are launches. Out: the same, checked, in
// a module with its kernels, whose arguments say what the launches promise.
//
//   %1 = greta_tile.launch @k .. (%x, %sum) tied [1] ..   %1 has %sum's memory
//
// A launch that writes to an operand in place makes a new value: the old one is
// gone. So nothing may use it behind the launch, and where it is an argument of
// the function, what came of it is a result, which the runtime ties to it.
//
// A sum over ranks takes the memory of a kernel's result that nobody else uses.
//
// Updates of a KV cache write in place by the same rule: nobody else uses the
// cache, and where it is an argument, what came of it is a result. Elsewhere
// they get a copy.
//
//===----------------------------------------------------------------------===//

#include "greta/Interface/Launches.h"
#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace greta;

int64_t greta::alignmentOf(Value tensor) {
  constexpr int64_t usual = 16;
  auto argument = dyn_cast<BlockArgument>(memoryOf(tensor));
  if (!argument)
    return usual;
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto own = func ? func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                       tile::divisibilityName)
                  : IntegerAttr();
  return own ? std::min(own.getInt(), usual) : usual;
}

static bool isView(Operation *op) {
  return isa<tensor::CastOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp>(
      op);
}

/// Whether what an update makes, or what another makes of that, is a result.
static bool isReturned(Value updated) {
  return llvm::any_of(updated.getUsers(), [&](Operation *user) {
    return isa<func::ReturnOp>(user) ||
           llvm::any_of(user->getResults(), [&](OpResult made) {
             OpOperand *old = getUpdated(made);
             return old && old->get() == updated && updatesInPlace(made) &&
                    isReturned(made);
           });
  });
}

static bool hasOneUse(Value value) {
  return llvm::count_if(value.getUses(), [](OpOperand &use) {
           return !isa<tensor::DimOp>(use.getOwner());
         }) == 1;
}

bool greta::sumsOverRanks(Operation *op) { return isa<AllReduceOp>(op); }

/// Whether nobody but the sum sees what a kernel computed.
static bool sumsInPlace(AllReduceOp sum) {
  Value value = sum.getX();
  for (; hasOneUse(value); value = value.getDefiningOp()->getOperand(0)) {
    Operation *op = value.getDefiningOp();
    if (auto launch = dyn_cast_or_null<tile::LaunchOp>(op))
      return !launch.getTiedOperand(cast<OpResult>(value).getResultNumber());
    if (isa_and_nonnull<AllReduceOp>(op))
      return true;
    if (!op || !isView(op))
      return false;
  }
  return false;
}

bool greta::updatesInPlace(OpResult made) {
  Value cache = getUpdated(made)->get();
  if (isa<BlockArgument>(cache))
    return hasOneUse(cache) && isReturned(made);
  for (;; cache = cache.getDefiningOp()->getOperand(0)) {
    if (!hasOneUse(cache) || isa<BlockArgument>(cache))
      return false;
    if (!isView(cache.getDefiningOp()))
      return !isa<tensor::ExtractSliceOp, linalg::TransposeOp,
                  arith::ConstantOp>(cache.getDefiningOp());
  }
}

/// The value that `tensor` is made of in its memory; null: it is the first.
static Value before(Value tensor) {
  Operation *op = tensor.getDefiningOp();
  if (op && isView(op))
    return op->getOperand(0);
  if (OpOperand *cache = op ? getUpdated(cast<OpResult>(tensor)) : nullptr)
    return updatesInPlace(cast<OpResult>(tensor)) ? cache->get() : Value();
  if (auto sum = dyn_cast_or_null<AllReduceOp>(op))
    return sumsInPlace(sum) ? sum.getX() : Value();
  auto launch = dyn_cast_or_null<tile::LaunchOp>(op);
  if (!launch)
    return {};
  return launch.getTiedOperand(cast<OpResult>(tensor).getResultNumber());
}

Value greta::memoryOf(Value tensor) {
  while (Value from = before(tensor))
    tensor = from;
  return tensor;
}

std::optional<unsigned> greta::tiedArgument(Value result) {
  bool isWritten = false;
  for (Value from; (from = before(result)); result = from)
    isWritten |= !isView(result.getDefiningOp());
  auto argument = dyn_cast<BlockArgument>(result);
  if (!argument || !isWritten)
    return std::nullopt;
  return argument.getArgNumber();
}

/// Whether `tensor` was made of `from` in its memory, or is it.
static bool comesFrom(Value tensor, Value from) {
  for (; tensor; tensor = before(tensor))
    if (tensor == from)
      return true;
  return false;
}

/// Fails where somebody still wants what `launch` writes over.
static LogicalResult checkOverwritten(tile::LaunchOp launch, Value result,
                                      ArrayRef<Value> results) {
  Value old = launch.getTiedOperand(cast<OpResult>(result).getResultNumber());
  Value memory = memoryOf(old);
  unsigned count = llvm::count_if(launch.getOperands(), [&](Value operand) {
    return memoryOf(operand) == memory;
  });
  if (count > 1)
    return launch.emitOpError("writes to an operand in place that it reads as "
                              "another operand, too; pass it once");
  for (Operation *op = launch->getNextNode(); op; op = op->getNextNode())
    for (Value operand : op->getOperands())
      if (memoryOf(operand) == memory && !comesFrom(operand, result))
        return op->emitOpError("uses a tensor after a launch wrote to it in "
                               "place; use that launch's result, or do it "
                               "before");
  if (isa<BlockArgument>(memory) &&
      llvm::none_of(results, [&](Value r) { return memoryOf(r) == memory; }))
    return launch.emitOpError("writes to argument ")
           << cast<BlockArgument>(memory).getArgNumber()
           << " of the function in place, which does not return it; return the "
              "launch's result";
  return success();
}

LogicalResult greta::checkLaunches(func::FuncOp func) {
  if (!launchesKernels(func))
    return success();
  for (Operation &op : func.getOps())
    if (!isa<tile::LaunchOp, func::ReturnOp>(op) && !isView(&op))
      return op.emitOpError("stands in a function that launches kernels; such "
                            "a function has launches and views of their "
                            "tensors alone: put the op into another function");
  SmallVector<Value> results(
      func.getBody().front().getTerminator()->getOperands());
  for (auto [i, result] : llvm::enumerate(results)) {
    Value made = result;
    while (made.getDefiningOp() && isView(made.getDefiningOp()))
      made = made.getDefiningOp()->getOperand(0);
    if (isa<BlockArgument>(made))
      return func.emitError("result ")
             << i << " of function '" << func.getSymName()
             << "' is an argument as it came; return what a launch makes";
    for (Value other : ArrayRef(results).take_front(i))
      if (memoryOf(other) == memoryOf(result))
        return func.emitError("result ")
               << i << " of function '" << func.getSymName()
               << "' is another result, too; return it once";
  }
  for (auto launch : func.getOps<tile::LaunchOp>())
    for (Value result : launch.getResults())
      if (launch.getTiedOperand(cast<OpResult>(result).getResultNumber()) &&
          failed(checkOverwritten(launch, result, results)))
        return failure();
  return success();
}

OwningOpRef<ModuleOp> greta::withKernels(func::FuncOp func,
                                         SymbolTable &symbols) {
  // The first argument of each kernel that every launch computes.
  llvm::MapVector<StringRef, unsigned> computed;
  for (auto launch : func.getOps<tile::LaunchOp>()) {
    auto kernel = symbols.lookup<tile::FuncOp>(launch.getKernel());
    unsigned &first = computed[launch.getKernel()];
    first = std::max(first, kernel.getNumArguments() -
                                launch.getScalars().getNumResults());
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(func.getLoc());
  for (auto [name, first] : computed) {
    tile::FuncOp kernel = symbols.lookup<tile::FuncOp>(name).clone();
    for (unsigned i = first; i < kernel.getNumArguments(); ++i)
      kernel.setArgAttr(i, tile::nonNegativeName,
                        UnitAttr::get(func.getContext()));
    module->push_back(kernel);
  }
  module->push_back(func.clone());
  return module;
}
