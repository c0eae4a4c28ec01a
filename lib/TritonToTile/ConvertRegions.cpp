//===- ConvertRegions.cpp - Triton IR's ops with functions of scalars -----===//
//
// Reductions and scans take a function of two elements, map_elementwise one of
// one or more. The former keep theirs; what it asserts, which a combiner here
// does not, is combined beside the elements and asserted of the result:
//
//   combine(x, y):                  combine(x, f, y, g):
//     assert c(x, y)         ->       return op(x, y), f | g | !c(x, y)
//     return op(x, y)               assert the combined flags are 0
//
// The latter runs on whole blocks: both ways of an if, then a choice.
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

//===----------------------------------------------------------------------===//
// Reductions and scans
//===----------------------------------------------------------------------===//

/// Copies constants that a region takes from outside into it. Fails if it takes
/// anything else.
static LogicalResult isolate(Operation *op) {
  Region &region = op->getRegion(0);
  OpBuilder inside = OpBuilder::atBlockBegin(&region.front());
  WalkResult result = region.walk([&](Operation *user) -> WalkResult {
    for (OpOperand &operand : user->getOpOperands()) {
      if (region.isAncestor(operand.get().getParentRegion()))
        continue;
      Operation *source = operand.get().getDefiningOp();
      if (!source || !source->hasTrait<OpTrait::ConstantLike>())
        return op->emitOpError("combines elements with a value from outside of "
                               "its function; it takes their values alone");
      operand.set(inside.clone(*source)->getResult(0));
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Adds a flag for each assertion of a combiner, which is 1 if it failed, to
/// the `values` that it combines. Returns the messages.
FailureOr<SmallVector<StringAttr>>
OpConverter::flagAsserts(Operation *op, SmallVectorImpl<Value> &values) {
  Block &body = op->getRegion(0).front();
  SmallVector<StringAttr> messages;
  SmallVector<tile::AssertOp> asserts;
  op->getRegion(0).walk([&](tile::AssertOp one) { asserts.push_back(one); });
  OpBuilder::InsertionGuard guard(b);
  Type i32 = b.getI32Type();
  for (tile::AssertOp one : asserts) {
    if (one->getBlock() != &body)
      return one.emitOpError("asserts in a branch of a function that combines "
                             "elements; make the branch part of the condition");
    unsigned numValues = values.size();
    auto block = cast<RankedTensorType>(values[0].getType());
    b.setInsertionPoint(op);
    values.push_back(numberOf(b, block.clone(i32), 0));
    Value first = body.insertArgument(numValues, i32, one.getLoc());
    Value second = body.addArgument(i32, one.getLoc());
    b.setInsertionPoint(one);
    Value isTrue = arith::ExtUIOp::create(b, i32, one.getCondition());
    Value isFalse = flip(isTrue, numberOf(b, i32, 1));
    Value flag = either(either(first, second), isFalse);
    body.getTerminator()->insertOperands(numValues, flag);
    messages.push_back(one.getMessageAttr());
    one.erase();
  }
  return messages;
}

template <typename ToT, typename OpT, typename... ArgsT>
LogicalResult OpConverter::convertCombining(OpT op, ArgsT... args) {
  SmallVector<Value> values = op.getValues();
  FailureOr<SmallVector<StringAttr>> messages = flagAsserts(op, values);
  if (failed(messages) || failed(isolate(op)))
    return failure();
  // The flags come behind the results.
  SmallVector<Type> types(op->getResultTypes());
  types.append(messages->size(),
               tile::withElementType(types[0], b.getI32Type()));
  auto made = ToT::create(b, types, values, op.getAxis(), args...);
  made.getCombiner().takeBody(op.getCombiner());
  auto [results, flags] =
      std::pair(made->getResults().take_front(op->getNumResults()),
                made->getResults().drop_front(op->getNumResults()));
  for (auto [flag, message] : llvm::zip(flags, *messages))
    tile::AssertOp::create(b, equal(flag, numberOf(b, flag.getType(), 0)),
                           message);
  return replace(op, results);
}

LogicalResult OpConverter::convert(ReduceOp op) {
  return convertCombining<tile::ReduceOp>(op);
}

LogicalResult OpConverter::convert(ScanOp op) {
  return convertCombining<tile::ScanOp>(op, op.getReverse());
}

//===----------------------------------------------------------------------===//
// Functions mapped over blocks
//===----------------------------------------------------------------------===//

/// Divides a block of one dimension into `pack` blocks. Block i has element i
/// of each group of `pack` neighbours.
void OpConverter::unpack(Value block, unsigned pack,
                         MutableArrayRef<Value> parts) {
  if (pack == 1) {
    parts[0] = block;
    return;
  }
  auto type = cast<RankedTensorType>(block.getType());
  int64_t half = type.getDimSize(0) / 2;
  auto split = tile::SplitOp::create(
      b, {type.clone({half}), type.clone({half})}, reshape(block, {half, 2}));
  SmallVector<Value> side(pack / 2);
  for (unsigned i : {0, 1}) {
    unpack(split->getResult(i), pack / 2, side);
    for (auto [j, part] : llvm::enumerate(side))
      parts[2 * j + i] = part;
  }
}

Value OpConverter::repack(ArrayRef<Value> parts) {
  if (parts.size() == 1)
    return parts[0];
  SmallVector<Value> sides[2];
  for (auto [i, part] : llvm::enumerate(parts))
    sides[i % 2].push_back(part);
  Value even = repack(sides[0]), odd = repack(sides[1]);
  auto type = cast<RankedTensorType>(even.getType());
  int64_t half = type.getDimSize(0);
  Value pairs = tile::JoinOp::create(b, type.clone({half, 2}), even, odd);
  return reshape(pairs, {2 * half});
}

/// Converts an op on scalars to one on blocks of `shape`; `blocks` has those of
/// its operands.
LogicalResult OpConverter::mapOp(Operation &scalar, ArrayRef<int64_t> shape,
                                 IRMapping &blocks) {
  auto blockOf = [&](Value value) {
    Value block = blocks.lookupOrDefault(value);
    return isa<RankedTensorType>(block.getType()) ? block : splat(block, shape);
  };
  if (auto choice = dyn_cast<scf::IfOp>(scalar)) {
    for (Region &way : choice->getRegions())
      if (!way.empty() && failed(mapBlock(way.front(), shape, blocks)))
        return failure();
    for (auto [i, result] : llvm::enumerate(choice.getResults()))
      blocks.map(result, select(blockOf(choice.getCondition()),
                                blockOf(choice.thenYield().getOperand(i)),
                                blockOf(choice.elseYield().getOperand(i))));
    return success();
  }
  if (scalar.hasTrait<OpTrait::ConstantLike>()) {
    b.clone(scalar, blocks);
    return success();
  }
  if (!OpTrait::hasElementwiseMappableTraits(&scalar))
    return scalar.emitError("'")
           << scalar.getName()
           << "' has no meaning for every element of a block at once";
  OperationState state(scalar.getLoc(), scalar.getName());
  for (Value operand : scalar.getOperands())
    state.operands.push_back(blockOf(operand));
  for (Type type : scalar.getResultTypes())
    state.types.push_back(RankedTensorType::get(shape, type));
  state.attributes = scalar.getAttrs();
  blocks.map(scalar.getResults(), b.create(state)->getResults());
  return success();
}

LogicalResult OpConverter::mapBlock(Block &scalars, ArrayRef<int64_t> shape,
                                    IRMapping &blocks) {
  for (Operation &scalar : scalars.without_terminator())
    if (failed(mapOp(scalar, shape, blocks)))
      return failure();
  return success();
}

/// With `pack`, the function takes so many neighbours of each block.
LogicalResult OpConverter::convert(MapElementwiseOp op) {
  unsigned pack = op.getPack(), numValues = op.getValues().size();
  Block &scalars = op.getBody().front();
  if (op.getResults().empty() || !llvm::isPowerOf2_32(pack) ||
      scalars.getNumArguments() != numValues * pack ||
      scalars.getTerminator()->getNumOperands() != op.getNumResults() * pack)
    return op.emitOpError("maps a function of ")
           << scalars.getNumArguments() << " elements on " << numValues
           << " blocks, " << pack << " elements at once";
  auto type = cast<RankedTensorType>(op.getResultTypes()[0]);
  int64_t count = type.getNumElements();
  if (count < pack)
    return op.emitOpError("maps a function of ")
           << pack << " neighbours on " << type;
  SmallVector<int64_t> shape(type.getShape());
  if (pack > 1)
    shape = {count / pack};
  IRMapping blocks;
  SmallVector<Value> parts(pack);
  for (auto [i, value] : llvm::enumerate(op.getValues())) {
    unpack(pack > 1 ? reshape(value, {count}) : value, pack, parts);
    for (auto [j, part] : llvm::enumerate(parts))
      blocks.map(scalars.getArgument(i * pack + j), part);
  }
  if (failed(mapBlock(scalars, shape, blocks)))
    return failure();
  SmallVector<Value> results;
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    for (unsigned j = 0; j < pack; ++j) {
      Value part = blocks.lookupOrDefault(
          scalars.getTerminator()->getOperand(i * pack + j));
      parts[j] =
          isa<RankedTensorType>(part.getType()) ? part : splat(part, shape);
    }
    results.push_back(reshape(repack(parts), type.getShape()));
  }
  return replace(op, results);
}
