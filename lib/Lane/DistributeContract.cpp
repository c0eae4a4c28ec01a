//===- DistributeContract.cpp - products that lanes add up ----------------===//
//
// greta_tile.contract becomes a chain of multiply-adds per register of the
// result:
//
//   %c = greta_tile.contract %x, %w, %acc dims [3]
//     →  %c0 = math.fma %x0, %w0, %acc0 ; %c0 = math.fma %x1, %w1, %c0 ; ..
//
// Narrow elements are widened once for all the chains that use them.
// greta_tile.contract_packed becomes a greta_tile.dot_packed per register,
// greta_tile.dequant a greta_tile.dequant_word per word.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

namespace {
/// One operand's registers by their index.
struct ContractOperand {
  std::map<std::vector<int64_t>, Value> at;
  RankedTensorType type;

  /// The element at `index`, which repeats along extents of 1.
  Value lookup(std::vector<int64_t> index) const {
    for (auto [dim, extent] : llvm::enumerate(type.getShape()))
      if (extent == 1)
        index[dim] = 0;
    auto it = at.find(index);
    return it == at.end() ? Value() : it->second;
  }
};
} // namespace

LogicalResult Distributor::distributeContract(ContractOp op) {
  auto acc = layoutOf(op, op.getResult());
  if (failed(acc))
    return failure();
  Location loc = op.getLoc();
  auto sums = cast<RankedTensorType>(op.getResult().getType());
  Type type = sums.getElementType();
  bool isFloat = isa<FloatType>(type);
  unsigned rank = (*acc)->layout.rank();
  ContractOperand operands[2];
  // Elements along `dims` that one of the result is the sum of.
  SmallVector<int64_t> extents(rank, 1);
  for (auto [operand, value] :
       llvm::zip(operands, ValueRange{op.getA(), op.getB()})) {
    auto layout = layoutOf(op, value);
    if (failed(layout))
      return failure();
    operand.type = cast<RankedTensorType>(value.getType());
    for (unsigned dim = 0; dim < rank; ++dim) {
      int64_t extent = operand.type.getDimSize(dim);
      bool summed = llvm::is_contained(op.getDims(), dim);
      int64_t part = summed ? extent / sums.getDimSize(dim) : 1;
      extents[dim] = std::max(extents[dim], part);
      // Lanes hold the same rows and columns, and all of a sum.
      bool fits = summed || extent == 1 ||
                  (*layout)->threadIndex[dim] == (*acc)->threadIndex[dim];
      auto follows = [&](const Bases &from, const Bases &to) {
        return llvm::all_of(llvm::zip(from, to), [&](auto bases) {
          auto &[whole, sum] = bases;
          return whole[dim] == sum[dim] * part;
        });
      };
      if (summed)
        fits = follows((*layout)->layout.lane(), (*acc)->layout.lane()) &&
               follows((*layout)->layout.wave(), (*acc)->layout.wave());
      if (!fits)
        return op.emitOpError("has an operand that is not laid out like its "
                              "result, with 'dims' in registers");
    }
    for (auto [reg, index] : llvm::enumerate((*layout)->registerIndex)) {
      Value element = lanes(value)[reg];
      if (isFloat && element.getType() != type)
        element = arith::ExtFOp::create(builder, loc, type, element);
      else if (element.getType() != type)
        element = arith::ExtSIOp::create(builder, loc, type, element);
      operand.at[std::vector<int64_t>(index.begin(), index.end())] = element;
    }
  }
  LaneValues out(lanes(op.getAcc()));
  SmallVector<int64_t> at(rank, 0); // counts through the summed dimensions
  bool more = true;
  while (more) {
    for (auto [reg, index] : llvm::enumerate((*acc)->registerIndex)) {
      std::vector<int64_t> position(index.begin(), index.end());
      for (int64_t dim : op.getDims())
        position[dim] = position[dim] * extents[dim] + at[dim];
      Value x = operands[0].lookup(position), y = operands[1].lookup(position);
      if (!x || !y)
        return op.emitOpError("has an operand whose registers do not follow "
                              "its result's");
      if (isFloat)
        out[reg] = math::FmaOp::create(builder, loc, x, y, out[reg]);
      else
        out[reg] = arith::AddIOp::create(
            builder, loc, arith::MulIOp::create(builder, loc, x, y), out[reg]);
    }
    more = false;
    for (int64_t dim : llvm::reverse(op.getDims())) {
      if (++at[dim] < extents[dim]) {
        more = true;
        break;
      }
      at[dim] = 0;
    }
  }
  values[op.getResult()] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeContractPacked(ContractPackedOp op) {
  auto acc = layoutOf(op, op.getResult());
  if (failed(acc))
    return failure();
  Location loc = op.getLoc();
  ContractOperand operands[4];
  for (auto [operand, value] :
       llvm::zip(operands, op->getOperands().drop_back())) {
    auto layout = layoutOf(op, value);
    if (failed(layout))
      return failure();
    operand.type = cast<RankedTensorType>(value.getType());
    unsigned rank = operand.type.getRank();
    for (unsigned dim = 0; dim < rank; ++dim) {
      bool fits = dim + 2 >= rank || operand.type.getDimSize(dim) == 1 ||
                  (*layout)->threadIndex[dim] == (*acc)->threadIndex[dim];
      for (const ThreadBit &bit : (*layout)->layout.threadBits())
        fits &= dim + 2 < rank || !bit.basis[dim];
      if (!fits)
        return op.emitOpError("has an operand that is not laid out like its "
                              "result, with words in registers");
    }
    for (auto [reg, index] : llvm::enumerate((*layout)->registerIndex))
      operand.at[std::vector<int64_t>(index.begin(), index.end())] =
          lanes(value)[reg];
  }
  auto &[a, words, zeros, scales] = operands;
  unsigned rank = words.type.getRank();
  int64_t numWords = words.type.getDimSize(rank - 2);
  LaneValues out(lanes(op.getAcc()));
  // What registers share is put together once.
  std::map<std::vector<void *>, Value> vectors;
  auto gather = [&](const ContractOperand &operand, std::vector<int64_t> at,
                    int64_t perWord) {
    LaneValues elements;
    std::vector<void *> key;
    for (at[rank - 2] = 0; at[rank - 2] < numWords; ++at[rank - 2])
      for (at[rank - 1] = 0; at[rank - 1] < perWord; ++at[rank - 1]) {
        elements.push_back(operand.lookup(at));
        key.push_back(elements.back().getAsOpaquePointer());
      }
    Value &vector = vectors[key];
    if (!vector)
      vector = vector::FromElementsOp::create(
          builder, loc,
          VectorType::get(elements.size(), elements.front().getType()),
          elements);
    return vector;
  };
  for (auto [reg, index] : llvm::enumerate((*acc)->registerIndex)) {
    std::vector<int64_t> at(index.begin(), index.end());
    Value sum = DotPackedOp::create(builder, loc, builder.getF32Type(),
                                    gather(words, at, 1), zeros.lookup(at),
                                    gather(a, at, 8));
    Value scale = arith::ExtFOp::create(builder, loc, builder.getF32Type(),
                                        scales.lookup(at));
    out[reg] = math::FmaOp::create(builder, loc, sum, scale, out[reg]);
  }
  values[op.getResult()] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeDequant(DequantOp op) {
  auto found = layoutOf(op, op.getResult());
  if (failed(found))
    return failure();
  const DistributedLayout &layout = **found;
  auto type = cast<RankedTensorType>(op.getResult().getType());
  unsigned dim = op.getDim();
  if (layout.layout.contiguity(dim) % 8)
    return op.emitOpError("is not laid out with the weights of a word in a "
                          "lane's neighbouring registers");
  // By index, in units of what shares an element.
  struct Source {
    std::map<std::vector<int64_t>, Value> at;
    SmallVector<int64_t> factors;
  } sources[3];
  for (auto [source, value] : llvm::zip(sources, op->getOperands())) {
    auto part = layoutOf(op, value);
    if (failed(part))
      return failure();
    auto shape = cast<RankedTensorType>(value.getType()).getShape();
    for (auto [whole, extent] : llvm::zip(type.getShape(), shape))
      source.factors.push_back(whole / extent);
    for (auto [index, lane] : llvm::zip((*part)->registerIndex, lanes(value)))
      source.at[std::vector<int64_t>(index.begin(), index.end())] = lane;
  }
  LaneValues out;
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += 8) {
    Value operands[3];
    for (auto [operand, source] : llvm::zip(operands, sources)) {
      std::vector<int64_t> index;
      for (auto [at, factor] :
           llvm::zip(layout.registerIndex[reg], source.factors))
        index.push_back(at / factor);
      auto known = source.at.find(index);
      if (known == source.at.end())
        return op.emitOpError("has an operand whose registers do not follow "
                              "its result's");
      operand = known->second;
    }
    out.push_back(DequantWordOp::create(builder, op.getLoc(), operands[0],
                                        operands[1], operands[2]));
  }
  setVectors(op.getResult(), std::move(out));
  return success();
}
