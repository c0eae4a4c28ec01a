//===- DistributeContract.cpp - products that lanes add up ----------------===//
//
// greta_tile.contract becomes a chain of FMAs per register of the
// result:
//
//   %c = greta_tile.contract %x, %w, %acc dims [3]
//     →  %c0 = math.fma %x0, %w0, %acc0 ; %c0 = math.fma %x1, %w1, %c0 ; ..
//
// Narrow elements are widened once for all the chains that use them; where sums
// may be narrow, a register's elements are multiplied as vectors, by one
// greta_tile.vector_dot. greta_tile.dequant becomes a greta_tile.unpack for
// each word.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

LogicalResult Distributor::distributeContract(ContractOp op) {
  const DistributedLayout &acc = layoutOf(op.getResult());
  auto sums = cast<RankedTensorType>(op.getResult().getType());
  Type type = sums.getElementType();
  unsigned rank = acc.layout.rank();
  std::map<Index, Value> registers[2];
  // Elements along `dims` that one of the result is the sum of.
  SmallVector<int64_t> extents(rank, 1);
  Value factors[] = {op.getA(), op.getB()};
  for (auto [at, value] : llvm::zip(registers, factors)) {
    const DistributedLayout &layout = layoutOf(value);
    auto block = cast<RankedTensorType>(value.getType());
    for (unsigned dim = 0; dim < rank; ++dim) {
      int64_t extent = block.getDimSize(dim);
      bool summed = llvm::is_contained(op.getDims(), dim);
      int64_t part = summed ? extent / sums.getDimSize(dim) : 1;
      extents[dim] = std::max(extents[dim], part);
      // Lanes hold the same rows and columns, and all of a sum.
      bool fits = summed || extent == 1 ||
                  layout.threadIndex[dim] == acc.threadIndex[dim];
      auto follows = [&](const Bases &from, const Bases &to) {
        return llvm::all_of(llvm::zip(from, to), [&](auto bases) {
          auto &[whole, sum] = bases;
          return whole[dim] == sum[dim] * part;
        });
      };
      if (summed)
        fits = follows(layout.layout.lane(), acc.layout.lane()) &&
               follows(layout.layout.wave(), acc.layout.wave());
      if (!fits)
        return op.emitOpError("has an operand that is not laid out like its "
                              "result, with 'dims' in registers");
    }
    for (auto [reg, index] : llvm::enumerate(layout.registerIndex)) {
      Value element = lanes(value)[reg];
      if (!op.getNarrow())
        element = widen(element, type);
      at[index] = element;
    }
  }
  // It finds the element at `index`, which repeats along extents of 1.
  auto lookUp = [&](unsigned number, Index index) {
    auto block = cast<RankedTensorType>(factors[number].getType());
    for (auto [at, extent] : llvm::zip(index, block.getShape()))
      at = extent == 1 ? 0 : at;
    auto found = registers[number].find(index);
    return found == registers[number].end() ? Value() : found->second;
  };
  LaneValues out(lanes(op.getAcc()));
  SmallVector<LaneValues> xs(out.size()), ys(out.size()); // of narrow sums
  SmallVector<int64_t> at(rank, 0); // counts through the summed dimensions
  bool more = true;
  while (more) {
    for (auto [reg, index] : llvm::enumerate(acc.registerIndex)) {
      Index position = index;
      for (int64_t dim : op.getDims())
        position[dim] = position[dim] * extents[dim] + at[dim];
      Value x = lookUp(0, position), y = lookUp(1, position);
      if (!x || !y)
        return op.emitOpError("has an operand whose registers do not follow "
                              "its result's");
      if (op.getNarrow()) {
        xs[reg].push_back(x);
        ys[reg].push_back(y);
      } else {
        out[reg] = multiplyAdd(x, y, out[reg]);
      }
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
  if (op.getNarrow())
    for (auto [sum, x, y] : llvm::zip(out, xs, ys)) {
      auto vector = VectorType::get(x.size(), b.getF16Type());
      sum = VectorDotOp::create(b, vector::FromElementsOp::create(b, vector, x),
                                vector::FromElementsOp::create(b, vector, y),
                                sum);
    }
  values[op.getResult()] = std::move(out);
  return success();
}

/// Returns the upper bits of the weights from `index` along `dim` on, which
/// begin somewhere in `word`.
Value Distributor::highFrom(Value word, const WeightFormat &row,
                            const DistributedLayout &layout, unsigned dim,
                            int64_t index) {
  int64_t perHigh = row.perHigh();
  auto isWhole = [&](const Bases &bases) {
    return llvm::all_of(
        bases, [&](const auto &basis) { return basis[dim] % perHigh == 0; });
  };
  if (isWhole(layout.layout.lane()) && isWhole(layout.layout.wave())) {
    int64_t shift = index % perHigh / 2 * row.highBits;
    return shift ? shr(word, constant(shift)) : word;
  }
  Value thread = layout.threadIndex[dim];
  Value within = both(offsetBy(thread, index), constant(perHigh - 1));
  Value shift = row.highBits == 2 ? within : shr(within, constant(1));
  return shr(word, shift);
}

LogicalResult Distributor::distributeDequant(DequantOp op) {
  const DistributedLayout &layout = layoutOf(op.getResult());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const WeightFormat &row = op.getRow();
  unsigned dim = op.getDim();
  int64_t perWord = row.perWord();
  if (layout.layout.contiguity(dim) % perWord)
    return op.emitOpError("is not laid out with the weights of a word in a "
                          "lane's neighbouring registers");
  // By index, in units of what shares an element.
  struct Source {
    std::map<Index, Value> at;
    SmallVector<int64_t> factors;
  };
  SmallVector<Source, 4> sources(op->getNumOperands());
  for (auto [source, value] : llvm::zip(sources, op->getOperands())) {
    const DistributedLayout &part = layoutOf(value);
    auto shape = cast<RankedTensorType>(value.getType()).getShape();
    for (auto [whole, extent] : llvm::zip(type.getShape(), shape))
      source.factors.push_back(whole / extent);
    for (auto [index, lane] : llvm::zip(part.registerIndex, lanes(value)))
      source.at[index] = lane;
  }
  LaneValues out;
  auto weights = VectorType::get(perWord, type.getElementType());
  for (unsigned reg = 0; reg < layout.registerIndex.size(); reg += perWord) {
    SmallVector<Value, 4> operands;
    for (const Source &source : sources) {
      Index index;
      for (auto [at, factor] :
           llvm::zip(layout.registerIndex[reg], source.factors))
        index.push_back(at / factor);
      auto known = source.at.find(index);
      if (known == source.at.end())
        return op.emitOpError("has an operand whose registers do not follow "
                              "its result's");
      operands.push_back(known->second);
    }
    Value high;
    if (row.highBits)
      high = highFrom(operands[1], row, layout, dim,
                      layout.registerIndex[reg][dim]);
    out.push_back(UnpackOp::create(b, weights, row.name, operands.front(), high,
                                   operands.end()[-2], operands.back()));
  }
  setVectors(op.getResult(), std::move(out));
  return success();
}
