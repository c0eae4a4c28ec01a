//===- ExpandPacked.cpp - 4-bit numbers and dots of vectors ---------------===//
//
// In: conversions of words, as vectors of eight i4, to f16, and
// greta_tile.vector_dot. Out: arithmetic on pairs, vectors of two f16, which is
// one register and what targets compute with at a time.
//
// A number in the last bits of an f16's mantissa is that number plus a constant
// that the exponent says, and taking the constant away is exact:
//
//   0x6400 | w        1024 + w                from bits 3:0
//   0x4800 | w        8 + w / 128             from bits 3:0
//   0x3800 | w << 4   0.5 + w / 128           from bits 7:4
//
// So with one `and` and one `or` numbers e and e + 4 of a word are a pair. What
// comes next is done on pairs as well, as long as it is the same for all eight:
// a number of 4 bits that is subtracted is part of the constant, a factor of
// 1/128 chooses the second and third line, which need half of the shifts, and
// a scale with a minimum that may be contracted is a fused multiply-add.
// Where the target permutes bytes in one instruction, neighbours are a pair,
// and a fused multiply-add takes the sixteen of the upper one away:
//
//   %v = arith.uitofp %w : vector<8xi4> to vector<8xf16>
//   %d = arith.subf %v, %zeros
//     →  pairs i = 0 .. 3:  (byte i, byte i) & 0x00f0000f | 0x64006400
//                             * (1, 1/16) - (1024 + zero, 64 + zero)
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace greta;

/// AMD permutes bytes (v_perm_b32) and adds two products of f16 to an f32
/// (v_dot2_f32_f16); SPIR-V has neither.
static bool permutesBytes(const TargetRow &row) { return row.isHip(); }
static bool hasDot2(const TargetRow &row) { return row.isHip(); }

/// Nothing here is rounded that could be fused, so targets need not be told.
static constexpr auto contract = arith::FastMathFlags::contract;

namespace {
/// Builds arithmetic on words and pairs.
struct PairBuilder : ImplicitLocOpBuilder {
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;
  VectorType pairType = VectorType::get(2, getF16Type());

  Value bits(uint32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(value));
  }
  template <typename OpT> Value with(Value word, uint32_t value) {
    return OpT::create(*this, word, bits(value));
  }
  Value asPair(Value word) {
    Value words = vector::FromElementsOp::create(
        *this, VectorType::get(1, getI32Type()), word);
    return vector::BitCastOp::create(*this, pairType, words);
  }
  Value pair(Value low, Value high) {
    return vector::FromElementsOp::create(*this, pairType,
                                          ValueRange{low, high});
  }
  Value at(Value vector, int64_t i) {
    return createOrFold<vector::ExtractOp>(vector, i);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Words to pairs
//===----------------------------------------------------------------------===//

/// A conversion of a word's eight numbers.
static bool isWord(arith::UIToFPOp convert) {
  auto type = dyn_cast<VectorType>(convert.getIn().getType());
  return type && type.getElementType().isInteger(4);
}

/// The i32 of whose low bits `value`, an f16, is the number; null: it is none.
static Value fourBits(Value value, PairBuilder &b) {
  auto convert = value.getDefiningOp<arith::UIToFPOp>();
  auto narrow =
      convert ? convert.getIn().getDefiningOp<arith::TruncIOp>() : nullptr;
  if (!narrow || !narrow.getType().isInteger(4) ||
      !narrow.getIn().getType().isInteger(32))
    return {};
  APInt mask;
  auto masked = narrow.getIn().getDefiningOp<arith::AndIOp>();
  if (masked && matchPattern(masked.getRhs(), m_ConstantInt(&mask)) &&
      mask == 15)
    return masked;
  return b.with<arith::AndIOp>(narrow.getIn(), 15);
}

/// What op, the only user of `value`, combines it with, the same for all
/// elements; null: it is not such an op.
template <typename OpT> static Value combinedWith(Value value) {
  if (!value.hasOneUse())
    return {};
  auto op = dyn_cast<OpT>(*value.user_begin());
  auto same = op && op.getLhs() == value
                  ? op.getRhs().template getDefiningOp<vector::BroadcastOp>()
                  : nullptr;
  return same && !isa<VectorType>(same.getSource().getType()) ? same.getSource()
                                                              : Value();
}

/// Replaces what becomes of a word's numbers as far as it is the same for all
/// eight; in front of `at`, or where it is null, of the last op that it takes.
static void expandWord(arith::UIToFPOp op, bool permutes, Operation *at) {
  PairBuilder b(op.getLoc(), at ? at : op.getOperation());
  Value value = op.getResult();
  auto take = [&] {
    Operation *user = *value.user_begin();
    if (!at)
      b.setInsertionPoint(user);
    value = user->getResult(0);
  };
  Value zero;
  if (Value subtracted = combinedWith<arith::SubFOp>(value)) {
    if (!at)
      b.setInsertionPoint(*value.user_begin());
    if ((zero = fourBits(subtracted, b)))
      take();
  }
  APFloat factor(0.0f);
  bool isScaled = false;
  SmallVector<Value> scales;
  while (Value scale = combinedWith<arith::MulFOp>(value)) {
    if (scales.empty() && !isScaled &&
        matchPattern(scale, m_ConstantFloat(&factor)) &&
        factor.convertToDouble() == 1.0 / 128)
      isScaled = true;
    else
      scales.push_back(scale);
    take();
  }
  Value minimum = scales.empty() ? Value() : combinedWith<arith::AddFOp>(value);
  if (minimum && cast<arith::AddFOp>(*value.user_begin()).getFastmath() ==
                     arith::FastMathFlags::contract) {
    take();
    minimum = vector::BroadcastOp::create(b, b.pairType, minimum);
  } else {
    minimum = {};
  }
  for (Value &scale : scales)
    scale = vector::BroadcastOp::create(b, b.pairType, scale);
  Value words = b.createOrFold<vector::BitCastOp>(
      VectorType::get(1, b.getI32Type()), op.getIn());
  Value word = b.at(words, 0);
  auto bias = [&](uint32_t exponents, uint32_t places) {
    if (!zero)
      return b.asPair(b.bits(exponents));
    return b.asPair(
        b.with<arith::OrIOp>(b.with<arith::MulIOp>(zero, places), exponents));
  };

  bool inOrder = permutes && !isScaled;
  Value pairs[4];
  for (auto [i, pair] : llvm::enumerate(pairs)) {
    if (inOrder) {
      // Selectors of bytes; 12 is a zero.
      Value bytes =
          LLVM::CallIntrinsicOp::create(
              b, b.getI32Type(), b.getStringAttr("llvm.amdgcn.perm"),
              ValueRange{word, word, b.bits(0x0c000c00 + i * 0x00010001)})
              .getResult(0);
      Value raised = b.asPair(b.with<arith::OrIOp>(
          b.with<arith::AndIOp>(bytes, 0x00f0000f), 0x64006400));
      Attribute units[] = {b.getF16FloatAttr(1), b.getF16FloatAttr(0.0625)};
      Value unit = arith::ConstantOp::create(
          b, DenseElementsAttr::get(b.pairType, ArrayRef<Attribute>(units)));
      // -(1024 + zero) and -(64 + zero).
      pair = math::FmaOp::create(b, raised, unit, bias(0xd400e400, 0x00100001));
    } else {
      bool isUpper = isScaled && i % 2;
      uint32_t exponents = isUpper    ? 0x38003800
                           : isScaled ? 0x48004800
                                      : 0x64006400;
      Value bits = word;
      if (int64_t shift = isScaled ? i / 2 * 8 : i * 4)
        bits = b.with<arith::ShRUIOp>(word, shift);
      bits = b.with<arith::AndIOp>(bits, isUpper ? 0x00f000f0 : 0x000f000f);
      pair = arith::SubFOp::create(
          b, b.asPair(b.with<arith::OrIOp>(bits, exponents)),
          bias(exponents, isUpper ? 0x00100010 : 0x00010001), contract);
    }
    for (Value scale : ArrayRef(scales).drop_back(minimum ? 1 : 0))
      pair = arith::MulFOp::create(b, pair, scale, contract);
    if (minimum)
      pair = math::FmaOp::create(b, pair, scales.back(), minimum);
  }
  SmallVector<Value> numbers;
  for (int64_t i = 0; i < 8; ++i)
    numbers.push_back(inOrder ? b.at(pairs[i / 2], i % 2)
                              : b.at(pairs[i % 4], i / 4));
  value.replaceAllUsesWith(
      vector::FromElementsOp::create(b, op.getType(), numbers));
}

//===----------------------------------------------------------------------===//
// Dots of vectors
//===----------------------------------------------------------------------===//

/// Where element i of a vector comes from: a vector that nobody put together of
/// scalars and its element, or a scalar and -1.
static std::pair<Value, int64_t> originOf(Value vector, int64_t i) {
  while (auto made = vector.getDefiningOp<vector::FromElementsOp>()) {
    Value element = made.getElements()[i];
    auto taken = element.getDefiningOp<vector::ExtractOp>();
    if (!taken || taken.hasDynamicPosition())
      return {element, -1};
    vector = taken.getSource();
    i = taken.getStaticPosition().front();
  }
  return {vector, i};
}

/// The unexpanded word that a vector of f16 is computed from; null: none.
static arith::UIToFPOp wordOf(Value vector) {
  while (isa_and_nonnull<arith::SubFOp, arith::MulFOp>(vector.getDefiningOp()))
    vector = vector.getDefiningOp()->getOperand(0);
  auto convert = vector.getDefiningOp<arith::UIToFPOp>();
  return convert && isWord(convert) ? convert : nullptr;
}

/// Whether dots of one block are all that a vector is for, so that it may come
/// into being at the first of them.
static bool isForDots(Value vector, Block *block) {
  return llvm::all_of(vector.getUsers(), [&](Operation *taken) {
    return isa<vector::ExtractOp>(taken) &&
           llvm::all_of(taken->getUsers(), [&](Operation *made) {
             return isa<vector::FromElementsOp>(made) &&
                    llvm::all_of(made->getUsers(), [&](Operation *user) {
                      return isa<tile::VectorDotOp>(user) &&
                             user->getBlock() == block;
                    });
           });
  });
}

/// Whether the elements of a vector are one number.
static bool isOneNumber(Value vector) {
  DenseElementsAttr all;
  if (matchPattern(vector, m_Constant(&all)))
    return all.isSplat();
  auto made = vector.getDefiningOp<vector::FromElementsOp>();
  return made ? llvm::all_equal(made.getElements())
              : vector.getDefiningOp<vector::BroadcastOp>() != nullptr;
}

/// The dot with one number, which is multiplied by A's sum. That sum is of f32:
/// a driver may take the number out of a sum of products of f16, which then
/// overflows.
static Value sumTimesNumber(PairBuilder &b, tile::VectorDotOp op) {
  int64_t count = op.getA().getType().getNumElements();
  auto wide = [&](Value vector, int64_t i) -> Value {
    auto [from, at] = originOf(vector, i);
    return arith::ExtFOp::create(b, b.getF32Type(),
                                 at < 0 ? from : b.at(from, at));
  };
  Value sums[2];
  for (int64_t i = 0; i < count; ++i) {
    Value x = wide(op.getA(), i), &sum = sums[i % 2];
    sum = sum ? arith::AddFOp::create(b, sum, x).getResult() : x;
  }
  if (sums[1])
    sums[0] = arith::AddFOp::create(b, sums[0], sums[1]);
  return math::FmaOp::create(b, sums[0], wide(op.getB(), 0), op.getAcc());
}

/// Element by element of B, in the order in which words are unpacked: what is
/// a register together is multiplied together.
static void expandDot(tile::VectorDotOp op, const TargetRow &row) {
  PairBuilder b(op.getLoc(), op);
  int64_t count = op.getA().getType().getNumElements();
  if (count == 2 && hasDot2(row))
    return;
  if (!hasDot2(row) && isOneNumber(op.getB())) {
    op.replaceAllUsesWith(sumTimesNumber(b, op));
    op.erase();
    return;
  }
  auto element = [&](Value vector, int64_t i) {
    auto [from, at] = originOf(vector, i);
    return at < 0 ? from : b.at(from, at);
  };
  // Without an instruction eight products are one sum of f16; sums take turns.
  SmallVector<Value> sums(llvm::divideCeil(count, 16));
  Value total = op.getAcc();
  SmallVector<bool> done(count, false);
  for (int64_t i = 0, number = 0; i < count; ++i) {
    if (done[i])
      continue;
    // Words are unpacked where they are needed first.
    Value numbers = originOf(op.getB(), i).first;
    arith::UIToFPOp word = wordOf(numbers);
    if (word && isForDots(numbers, op->getBlock()))
      expandWord(word, permutesBytes(row), op);
    auto [vector, at] = originOf(op.getB(), i);
    int64_t other = count;
    if (vector.getType() == b.pairType && at == 0)
      for (other = i + 1; other < count; ++other)
        if (originOf(op.getB(), other) == std::pair(vector, int64_t(1)))
          break;
    bool isPair = other < count && !done[other];
    done[i] = true;
    if (!isPair)
      other = llvm::find(done, false) - done.begin();
    done[other] = true;
    Value x = b.pair(element(op.getA(), i), element(op.getA(), other));
    Value y = isPair ? vector
                     : b.pair(element(op.getB(), i), element(op.getB(), other));
    Value &sum = sums[number++ % sums.size()];
    if (hasDot2(row))
      total = tile::VectorDotOp::create(b, x, y, total);
    else if (sum)
      sum = math::FmaOp::create(b, x, y, sum);
    else
      sum = arith::MulFOp::create(b, x, y, contract);
  }
  for (Value sum : sums)
    for (int64_t half = 0; sum && half < 2; ++half) {
      Value part = arith::ExtFOp::create(b, b.getF32Type(), b.at(sum, half));
      total = matchPattern(total, m_AnyZeroFloat())
                  ? part
                  : arith::AddFOp::create(b, total, part).getResult();
    }
  op.replaceAllUsesWith(total);
  op.erase();
}

void greta::expandPacked(Operation *kernel, const TargetRow &row) {
  SmallVector<tile::VectorDotOp> dots;
  SmallVector<arith::UIToFPOp> words;
  kernel->walk([&](tile::VectorDotOp dot) { dots.push_back(dot); });
  for (tile::VectorDotOp dot : dots)
    expandDot(dot, row);
  // What was unpacked at a dot stands behind some of its dead uses.
  if (IRRewriter rewriter(kernel->getContext()); !dots.empty())
    (void)runRegionDCE(rewriter, kernel->getRegions());
  kernel->walk([&](arith::UIToFPOp convert) {
    if (isWord(convert))
      words.push_back(convert);
  });
  for (arith::UIToFPOp word : words)
    expandWord(word, permutesBytes(row), nullptr);
}
