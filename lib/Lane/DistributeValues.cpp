//===- DistributeValues.cpp - scalars, vectors and fragments --------------===//
//
// A lane's part of a block tensor is held in the form in which it came: as
// scalars, as pieces, or as fragments. Callers that need another form ask for
// it here; ops that take a value apart stand right behind its definition.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// The place where an op that takes `value` apart dominates all of its uses.
static void setAfter(OpBuilder &builder, Value value) {
  if (Operation *op = value.getDefiningOp())
    builder.setInsertionPointAfter(op);
  else
    builder.setInsertionPointToStart(cast<BlockArgument>(value).getOwner());
}

/// A lane's elements of a fragment of a value, some of them perhaps copies.
static VectorType elementsOf(FragmentType fragment, Value value,
                             int64_t lanes) {
  int64_t count = fragment.getRows() * fragment.getColumns() / lanes;
  for (const Basis &basis : toLayout(getLayoutOf(value.getType())).lane())
    if (llvm::all_of(basis, [](int32_t step) { return step == 0; }))
      count *= 2;
  return VectorType::get(count, fragment.getElementType());
}

ArrayRef<Value> Distributor::lanes(Value value) {
  if (auto known = values.find(value); known != values.end())
    return known->second;
  LaneValues out;
  OpBuilder::InsertionGuard guard(b);
  for (Value piece : pieceValues.at(value)) {
    setAfter(b, piece);
    if (opaque && isa<FragmentType>(piece.getType())) {
      llvm::append_range(out, throughShared(piece));
      continue;
    }
    if (auto fragment = dyn_cast<FragmentType>(piece.getType()))
      piece = FragmentElementsOp::create(
          b, piece.getLoc(), elementsOf(fragment, value, kernel.getNumLanes()),
          piece);
    int64_t count = cast<VectorType>(piece.getType()).getNumElements();
    for (int64_t i = 0; i < count; ++i)
      out.push_back(vector::ExtractOp::create(b, piece.getLoc(), piece, i));
  }
  return values[value] = std::move(out);
}

/// A lane's elements of an accumulator, by way of the wave's part of shared
/// memory.
LaneValues Distributor::throughShared(Value piece) {
  auto type = cast<FragmentType>(piece.getType());
  int64_t size = type.getRows() * type.getColumns();
  Value &array = scratch[type];
  if (!array)
    array = sharedAlloc(size * kernel.getNumWaves(), type.getElementType());
  Layout tile = toLayout(opaque.getAcc());
  auto at = [&](const auto &index) {
    return index[0] * type.getColumns() + index[1];
  };
  Value first = mul(waveId(), constant(size));
  Value mine =
      fromBits(tile, [&](const ThreadBit &bit) { return at(bit.basis); });
  mine = add(first, mine);
  FragmentStoreOp::create(b, piece, array, first, type.getColumns(),
                          /*transposed=*/false);
  LaneValues out;
  for (unsigned reg = 0; reg < tile.tileRegisters(); ++reg)
    out.push_back(SharedLoadOp::create(
        b, array, offsetBy(mine, at(tile.registerIndex(reg)))));
  return out;
}

/// A vector of scalars. Selections by one condition become one of vectors, so
/// that what was loaded together stays together.
static Value joined(ArrayRef<Value> scalars, VectorType type, Location loc,
                    OpBuilder &b) {
  auto select = scalars.front().getDefiningOp<arith::SelectOp>();
  if (select && llvm::all_of(scalars, [&](Value scalar) {
        auto other = scalar.getDefiningOp<arith::SelectOp>();
        return other && other.getCondition() == select.getCondition();
      })) {
    auto of = [&](unsigned operand) {
      auto parts = llvm::map_to_vector(scalars, [&](Value scalar) {
        return scalar.getDefiningOp()->getOperand(operand);
      });
      return joined(parts, type, loc, b);
    };
    Value yes = of(1), no = of(2);
    return arith::SelectOp::create(b, loc, select.getCondition(), yes, no);
  }
  auto taken = scalars.front().getDefiningOp<vector::ExtractOp>();
  if (taken && taken.getSource().getType() == type &&
      llvm::all_of(llvm::seq<int64_t>(0, scalars.size()), [&](int64_t i) {
        auto other = scalars[i].getDefiningOp<vector::ExtractOp>();
        return other && other.getSource() == taken.getSource() &&
               !other.hasDynamicPosition() &&
               other.getStaticPosition().front() == i;
      }))
    return taken.getSource();
  return vector::FromElementsOp::create(b, loc, type, scalars);
}

LaneValues Distributor::vectors(Value value, Type type) {
  if (auto known = pieceValues.find(value); known != pieceValues.end()) {
    const LaneValues &list = known->second;
    if (list.front().getType() == type)
      return list;
    // Parts of larger vectors.
    auto part = dyn_cast<VectorType>(type);
    auto whole = dyn_cast<VectorType>(list.front().getType());
    if (part && whole && whole.getNumElements() % part.getNumElements() == 0) {
      LaneValues out;
      OpBuilder::InsertionGuard guard(b);
      int64_t size = part.getNumElements();
      for (Value piece : list) {
        setAfter(b, piece);
        for (int64_t at = 0; at < whole.getNumElements(); at += size)
          out.push_back(vector::ShuffleOp::create(
              b, piece.getLoc(), piece, piece,
              llvm::to_vector(llvm::seq<int64_t>(at, at + size))));
      }
      return out;
    }
  }
  ArrayRef<Value> scalars = lanes(value);
  if (!isa<VectorType, FragmentType>(type))
    return LaneValues(scalars);
  Location loc = value.getLoc();
  auto vector = dyn_cast<VectorType>(type);
  auto fragment = dyn_cast<FragmentType>(type);
  if (fragment)
    vector = elementsOf(fragment, value, kernel.getNumLanes());
  LaneValues out;
  int64_t size = vector.getNumElements();
  // A fragment that a loop does not change is put together in front of it.
  // RADV's compiler keeps a fragment beside its elements: there each use makes
  // one.
  OpBuilder::InsertionGuard guard(b);
  while (auto loop =
             dyn_cast<scf::ForOp>(b.getInsertionBlock()->getParentOp())) {
    if ((fragment && row.tiles.matricesByElement) ||
        !llvm::all_of(scalars, [&](Value scalar) {
          return loop.isDefinedOutsideOfLoop(scalar);
        }))
      break;
    b.setInsertionPoint(loop);
  }
  for (size_t at = 0; at < scalars.size(); at += size) {
    ArrayRef<Value> group = scalars.slice(at, size);
    if (fragment && llvm::all_equal(group)) {
      out.push_back(FragmentSplatOp::create(b, loc, type, group.front()));
      continue;
    }
    Value piece = joined(group, vector, loc, b);
    if (fragment)
      piece = FragmentFromElementsOp::create(b, loc, type, piece);
    out.push_back(piece);
  }
  return out;
}

/// The instruction that continues a carried accumulator, if one does.
static MatrixAttr continuingInstruction(Value argument) {
  for (OpOperand &use : argument.getUses()) {
    if (auto dot = dyn_cast<DotOp>(use.getOwner()))
      if (dot.getAcc() == argument)
        return dot.getMatrixAttr();
    if (auto loop = dyn_cast<scf::ForOp>(use.getOwner()))
      if (BlockArgument inner = loop.getTiedLoopRegionIterArg(&use))
        return continuingInstruction(inner);
    if (auto loop = dyn_cast<scf::WhileOp>(use.getOwner()))
      return continuingInstruction(
          loop.getBeforeArguments()[use.getOperandNumber()]);
    if (auto loop = dyn_cast<scf::ConditionOp>(use.getOwner()))
      return continuingInstruction(
          loop.getParentOp<scf::WhileOp>()
              .getAfterArguments()[use.getOperandNumber() - 1]);
  }
  return {};
}

void Distributor::setCarried(Value value, Type type, ValueRange parts) {
  auto &map = isa<VectorType, FragmentType>(type) ? pieceValues : values;
  map[value] = LaneValues(parts);
}

Type Distributor::carriedType(Value init, Value argument) {
  Type element = getElementTypeOrSelf(init.getType());
  if (!isa<RankedTensorType>(init.getType()))
    return element;
  if (MatrixAttr matrix = continuingInstruction(argument))
    return getOperandType(matrix, FragmentUse::Acc, element);
  if (auto known = pieceValues.find(init); known != pieceValues.end())
    return known->second.front().getType();
  return element;
}
