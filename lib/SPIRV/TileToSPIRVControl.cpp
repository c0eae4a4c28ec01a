//===- TileToSPIRVControl.cpp - control flow ------------------------------===//
//
// Loops and conditionals become structured ones whose results leave through
// spirv.mlir.merge, that is OpPhi; a vector carried by a loop becomes as many
// of them as it has elements.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SPIRV/IR/SPIRVDialect.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;

/// Returns the registers of `operands`, one after another.
static PartList flatten(KernelEmitter &emitter, ValueRange operands) {
  PartList all;
  for (Value operand : operands)
    llvm::append_range(all, emitter.getCarried(operand));
  return all;
}

/// Sets `results` from `parts`, each from as many as it has registers.
static void distribute(KernelEmitter &emitter, ValueRange results,
                       ValueRange parts) {
  for (Value result : results) {
    size_t count = emitter.carriedTypes(result.getType()).size();
    PartList own(parts.take_front(count));
    if (KernelEmitter::isPacked(result.getType()))
      emitter.setWords(result, own);
    else
      emitter.set(result, own);
    parts = parts.drop_front(count);
  }
}

/// Returns the unrolling that a loop asks of drivers. They unroll loops of
/// known length completely. RADV does so with 64 iterations, finds that several
/// loops over a row have equal loads, and keeps the row in registers that it
/// does not have. NVIDIA's driver unrolls other loops, too. A loop that exceeds
/// the instruction cache is slower than one that branches, and unrolling a loop
/// with barriers, over which nothing moves, gains nothing.
static spirv::LoopControl loopControl(scf::ForOp op, Region &body) {
  constexpr unsigned mostIterations = 16;
  constexpr unsigned mostOps = 2000, mostOpsOfBarriers = 500;
  std::optional<APInt> iterations = op.getStaticTripCount();
  unsigned ops = 0;
  bool hasBarrier = false;
  body.walk([&](Operation *op) {
    ++ops;
    hasBarrier |= isa<spirv::ControlBarrierOp>(op);
  });
  bool isLarge = ops > (hasBarrier ? mostOpsOfBarriers : mostOps);
  return isLarge || (iterations && iterations->ugt(mostIterations))
             ? spirv::LoopControl::DontUnroll
             : spirv::LoopControl::None;
}

namespace {
/// The blocks of a structured loop. `header` takes the values that an iteration
/// begins with; the loop's own blocks come behind it.
struct LoopBlocks {
  Block *header, *latch, *merge;
  SmallVector<Block *, 2> body;
};
} // namespace

static LoopBlocks addLoopBlocks(KernelEmitter &emitter, spirv::LoopOp loop,
                                ValueRange start, unsigned count) {
  ImplicitLocOpBuilder &b = emitter.b;
  Region &region = loop.getBody();
  LoopBlocks blocks;
  b.createBlock(&region);
  blocks.header = b.createBlock(&region);
  for (unsigned i = 0; i < count; ++i)
    blocks.body.push_back(b.createBlock(&region));
  blocks.latch = b.createBlock(&region);
  blocks.merge = b.createBlock(&region);
  for (Value value : start)
    blocks.header->addArgument(value.getType(), loop.getLoc());
  b.setInsertionPointToEnd(&region.front());
  spirv::BranchOp::create(b, blocks.header, start);
  return blocks;
}

/// Ends a loop's body, and passes `first`, which is built in the latch, and
/// `next` to the next iteration.
static void closeIteration(KernelEmitter &emitter, const LoopBlocks &blocks,
                           PartList next, llvm::function_ref<Value()> first) {
  ImplicitLocOpBuilder &b = emitter.b;
  // MLIR's serializer writes id 0 for a back edge's value that is the result
  // of a structured op: such values pass through an argument of the latch.
  PartList passed;
  for (Value &value : next) {
    if (!isa_and_nonnull<spirv::SelectionOp, spirv::LoopOp>(
            value.getDefiningOp()))
      continue;
    passed.push_back(value);
    value = blocks.latch->addArgument(value.getType(), b.getLoc());
  }
  spirv::BranchOp::create(b, blocks.latch, passed);
  b.setInsertionPointToEnd(blocks.latch);
  if (first)
    next.insert(next.begin(), first());
  spirv::BranchOp::create(b, blocks.header, next);
}

LogicalResult KernelEmitter::emitFor(scf::ForOp op) {
  Type counter = op.getInductionVar().getType();
  if (!counter.isInteger(32) && !counter.isInteger(64))
    return op.emitOpError("counts in ")
           << counter << "; greta-tile-to-spirv takes loops over i32 and i64";
  PartList start = flatten(*this, op.getInitArgs());
  SmallVector<Type> types(ValueRange(start).getTypes());
  start.insert(start.begin(), getScalar(op.getLowerBound()));

  auto loop = spirv::LoopOp::create(b, types, spirv::LoopControl::None);
  OpBuilder::InsertionGuard guard(b);
  LoopBlocks blocks = addLoopBlocks(*this, loop, start, 1);

  b.setInsertionPointToEnd(blocks.header);
  Value index = blocks.header->getArgument(0);
  Value upper = getScalar(op.getUpperBound());
  Value more = op.getUnsignedCmp() ? compare<spirv::ULessThanOp>(index, upper)
                                   : compare<spirv::SLessThanOp>(index, upper);
  spirv::BranchConditionalOp::create(b, more, blocks.body[0], ValueRange(),
                                     blocks.merge, ValueRange());

  b.setInsertionPointToEnd(blocks.body[0]);
  set(op.getInductionVar(), index);
  if (isNonNegative(op.getLowerBound()) && isNonNegative(op.getUpperBound()))
    setMaximum(op.getInductionVar(), rangeOf(op.getUpperBound()).umax());
  ValueRange carried = ValueRange(blocks.header->getArguments()).drop_front();
  distribute(*this, op.getRegionIterArgs(), carried);
  if (failed(emitBlock(*op.getBody())))
    return failure();
  b.setLoc(op.getLoc());
  closeIteration(
      *this, blocks,
      flatten(*this, op.getBody()->getTerminator()->getOperands()),
      [&] { return same<spirv::IAddOp>(index, getScalar(op.getStep())); });

  b.setInsertionPointToEnd(blocks.merge);
  spirv::MergeOp::create(b, carried);
  loop.setLoopControl(loopControl(op, loop.getBody()));
  b.setInsertionPointAfter(loop);
  distribute(*this, op.getResults(), loop.getResults());
  return success();
}

LogicalResult KernelEmitter::emitWhile(scf::WhileOp op) {
  PartList start = flatten(*this, op.getInits());
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    llvm::append_range(types, carriedTypes(type));
  auto loop = spirv::LoopOp::create(b, types, spirv::LoopControl::None);
  OpBuilder::InsertionGuard guard(b);
  LoopBlocks blocks = addLoopBlocks(*this, loop, start, 2);

  // The header has the loop's merge and branches on, so that what computes the
  // condition may branch itself.
  b.setInsertionPointToEnd(blocks.header);
  spirv::BranchOp::create(b, blocks.body[0], ValueRange());

  b.setInsertionPointToEnd(blocks.body[0]);
  distribute(*this, op.getBeforeArguments(), blocks.header->getArguments());
  if (failed(emitBlock(*op.getBeforeBody())))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  b.setLoc(condition.getLoc());
  PartList passed = flatten(*this, condition.getArgs());
  spirv::BranchConditionalOp::create(b, getScalar(condition.getCondition()),
                                     blocks.body[1], ValueRange(), blocks.merge,
                                     ValueRange());

  b.setInsertionPointToEnd(blocks.body[1]);
  distribute(*this, op.getAfterArguments(), passed);
  if (failed(emitBlock(*op.getAfterBody())))
    return failure();
  b.setLoc(op.getLoc());
  closeIteration(*this, blocks, flatten(*this, op.getYieldOp().getOperands()),
                 {});

  b.setInsertionPointToEnd(blocks.merge);
  spirv::MergeOp::create(b, passed);
  b.setInsertionPointAfter(loop);
  distribute(*this, op.getResults(), loop.getResults());
  return success();
}

FailureOr<PartList> KernelEmitter::emitSelection(TypeRange types,
                                                 Value condition, Arm onTrue,
                                                 Arm onFalse) {
  Location loc = b.getLoc();
  auto selection =
      spirv::SelectionOp::create(b, types, spirv::SelectionControl::None);
  OpBuilder::InsertionGuard guard(b);
  Region &region = selection.getBody();
  Block *header = b.createBlock(&region), *trueBlock = b.createBlock(&region),
        *falseBlock = onFalse ? b.createBlock(&region) : nullptr,
        *merge = b.createBlock(&region);
  for (Type type : types)
    merge->addArgument(type, loc);
  b.setInsertionPointToEnd(header);
  spirv::BranchConditionalOp::create(b, condition, trueBlock, ValueRange(),
                                     falseBlock ? falseBlock : merge,
                                     ValueRange());
  for (auto [block, arm] :
       {std::pair(trueBlock, onTrue), {falseBlock, onFalse}}) {
    if (!block)
      continue;
    b.setInsertionPointToEnd(block);
    FailureOr<PartList> parts = arm();
    if (failed(parts))
      return failure();
    b.setLoc(loc);
    spirv::BranchOp::create(b, merge, *parts);
  }
  b.setInsertionPointToEnd(merge);
  spirv::MergeOp::create(b, merge->getArguments());
  return PartList(selection.getResults());
}

LogicalResult KernelEmitter::emitIf(scf::IfOp op) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    llvm::append_range(types, carriedTypes(type));
  auto emitArm = [&](Block *source) -> FailureOr<PartList> {
    if (failed(emitBlock(*source)))
      return failure();
    return flatten(*this, source->getTerminator()->getOperands());
  };
  auto onTrue = [&] { return emitArm(op.thenBlock()); };
  auto onFalse = [&] { return emitArm(op.elseBlock()); };
  FailureOr<PartList> results =
      emitSelection(types, getScalar(op.getCondition()), onTrue,
                    op.getElseRegion().empty() ? Arm() : Arm(onFalse));
  if (failed(results))
    return failure();
  distribute(*this, op.getResults(), *results);
  return success();
}
