//===- ExpandPacked.cpp - packed weights and dots of vectors --------------===//
//
// In: greta_tile.unpack and greta_tile.vector_dot. Out: arithmetic on pairs,
// vectors of two f16, which is one register and what targets compute with at a
// time.
//
// A number in the last bits of an f16's mantissa is that number plus a constant
// that the exponent says, and taking the constant away is exact. For 4 bits:
//
//   0x6400 | w        1024 + w                from bits 3:0
//   0x5400 | w << 4   64 + w                  from bits 7:4
//   0x4800 | w        8 + w / 128             from bits 3:0
//   0x3800 | w << 4   0.5 + w / 128           from bits 7:4
//
// So with one `and` and one `or` numbers e and e + 4 of a word are a pair, in
// paired formats neighbours; upper bits of a word of their own are one `and`
// and one `or` more. A zero is part of the constant. A scale that is the
// format's unit of sums chooses the last two lines. Bits 7:4 need no shift of
// their own. If the target permutes bytes in one instruction, neighbours are a
// pair, and a fused multiply-add takes the sixteen of the upper one away:
//
//   %d = greta_tile.unpack "gptq4" %w scale %s zero %z : f16, i32 ->
//   vector<8xf16>
//     →  pairs i = 0 .. 3:  (byte i, byte i) & 0x00f0000f | 0x64006400
//                             * (1, 1/16) - (1024 + zero, 64 + zero)
//
// There bytes get their exponents by a permutation, and codes, whose numbers
// are in tables, their two bytes. Elsewhere codes are selected bit by bit, but
// for those of e2m1: their bits in the last two of an f16's exponent, the first
// of its mantissa and the sign are 2^-14 of the number, denormals too.
// IQ4_NL's numbers are the whole numbers nearest to a polynomial.
//
// A float of 8 bits in the upper bits of an f16, its exponent a place lower, is
// 1/256 of that float, denormals too. The factor is one with that of the scale,
// which is of f32: such weights are multiplied in f32, as all are whose result
// is of bf16.
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "GretaTile/GretaTile.h"
#include "PairBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include <cmath>

using namespace mlir;
using namespace greta;

/// AMD permutes bytes (v_perm_b32) and adds two products of f16 to an f32
/// (v_dot2_f32_f16); SPIR-V has neither.
static bool permutesBytes(const TargetRow &row) { return row.isHip(); }
static bool hasDot2(const TargetRow &row) { return row.isHip(); }
/// Whether that instruction takes denormal factors for zero.
static bool flushesDot2(const TargetRow &row) { return row.name == "gfx90a"; }

//===----------------------------------------------------------------------===//
// Words to pairs
//===----------------------------------------------------------------------===//

namespace {
/// Replaces one greta_tile.unpack; in front of `at`, or where it is null, where
/// it stands.
class WordExpander : PairBuilder {
public:
  WordExpander(tile::UnpackOp op, Operation *at, const TargetRow &target,
               bool hasFewRows)
      : PairBuilder(op.getLoc(), at ? at : op.getOperation()), op(op),
        row(op.getRow()), permutes(permutesBytes(target)),
        hasFewRows(hasFewRows),
        convertsToBF16(target.hasFeature("cvt_pk_bf16")) {
    APFloat factor(0.0f);
    isBF16 = op.getType().getElementType().isBF16();
    isUnit = !isBF16 && matchPattern(op.getScale(), m_ConstantFloat(&factor)) &&
             factor.convertToDouble() == std::ldexp(1.0, row.sumExponent());
  }
  void expand() {
    auto repeated = [&](Value shared) -> Value {
      auto type = VectorType::get(2, shared.getType());
      return vector::BroadcastOp::create(*this, type, shared);
    };
    bool hasMinimum = op.getZero().getType().isF16();
    Value scale = row.isE4M3 ? factorOfFloats() : op.getScale();
    if (isBF16) {
      setFactor(wide(scale), hasMinimum ? wide(op.getZero()) : Value());
    } else {
      if (hasMinimum)
        minima = repeated(op.getZero());
      if (row.isE4M3 || !isUnit)
        scales = repeated(scale);
    }
    bool areFloats = row.codes == codesOfE2M1 && !permutes;
    bool areNearCurve = row.codes == codesOfIQ4NL && !permutes;
    unpacked.resize(row.perWord());
    areFloats       ? codesOfFloats()
    : areNearCurve  ? codesNearCurve()
    : row.codes     ? codes()
    : row.isE4M3    ? floats()
    : row.bits == 8 ? bytes()
                    : nibbles();
    op.replaceAllUsesWith(
        vector::FromElementsOp::create(*this, op.getType(), unpacked)
            .getResult());
    op.erase();
  }

private:
  Value permute(Value upper, Value lower, uint32_t selector) {
    return LLVM::CallIntrinsicOp::create(
               *this, getI32Type(), getStringAttr("llvm.amdgcn.perm"),
               ValueRange{upper, lower, bits(selector)})
        .getResult(0);
  }
  /// The bits before a number in an f16; the unit of sums is
  /// that of a number that begins at bit `place`.
  uint32_t exponents(int place) {
    return twice(0x6400 + ((isUnit ? row.sumExponent() : 0) - place) * 0x400);
  }
  Value wide(Value x);
  void setFactor(Value scale, Value minimum);
  Value rounded(Value pair);
  Value zero(uint32_t exponents, uint32_t places);
  Value finish(Value pair);
  /// Finishes pair `i` of the word's numbers, which are neighbours, or as far
  /// apart as there are pairs.
  void put(int i, bool areNeighbours, Value pair) {
    pair = finish(pair);
    unpacked[areNeighbours ? 2 * i : i] = at(pair, 0);
    unpacked[areNeighbours ? 2 * i + 1 : i + unpacked.size() / 2] = at(pair, 1);
  }
  void nibbles();
  void bytes();
  void codes();
  void codesOfFloats();
  void codesNearCurve();
  void floats();
  Value factorOfFloats();
  Value tableBytes(Value numbers, int byte);
  Value selected(int number, int bit, unsigned first);
  uint16_t code(int i);

  tile::UnpackOp op;
  const WeightFormat &row;
  bool permutes, hasFewRows, isUnit, isBF16, convertsToBF16;
  SmallVector<Value> unpacked; // the word's numbers, in order
  Value scales, minima;        // as pairs; null: none
  // If the result is of bf16: a weight is a number times `factor` and `addend`,
  // in f32, and is rounded by adding `half` to its bits.
  Value factor, addend, half;
};
} // namespace

/// A zero where numbers are, behind their exponents.
Value WordExpander::zero(uint32_t exponents, uint32_t places) {
  APInt fixed(32, 0);
  Value zero = op.getZero();
  if (zero.getType().isF16() || matchPattern(zero, m_ConstantInt(&fixed)))
    return asPair(bits(exponents | fixed.getZExtValue() * places));
  APInt mask;
  auto masked = zero.getDefiningOp<arith::AndIOp>();
  if (!masked || !matchPattern(masked.getRhs(), m_ConstantInt(&mask)) ||
      mask != 15)
    zero = with<arith::AndIOp>(zero, 15);
  return asPair(
      with<arith::OrIOp>(with<arith::MulIOp>(zero, places), exponents));
}

/// A scalar as f32.
Value WordExpander::wide(Value x) {
  Type f32 = getF32Type();
  return x.getType() == f32 ? x : arith::ExtFOp::create(*this, f32, x);
}

/// Without a minimum the addend is a zero, because AMD takes an f16 as it is
/// only into sums of products. A carry would make a number of a NaN, so -1 is
/// added in place of half a place if the scale or the minimum is one.
void WordExpander::setFactor(Value scale, Value minimum) {
  factor = scale;
  addend = minimum ? minimum : fmul(scale, zeroOf(getF32Type()));
  half =
      select(compare(FPredicate::UNO, factor, addend), bits(~0u), bits(0x7fff));
}

/// A pair of f16 as one of bf16: numbers times the factor, with the addend.
Value WordExpander::rounded(Value pair) {
  auto type = VectorType::get(2, getBF16Type());
  Value halves[2];
  for (int64_t i : {0, 1}) {
    halves[i] = math::FmaOp::create(*this, wide(at(pair, i)), factor, addend);
    if (convertsToBF16)
      continue;
    Value word = arith::BitcastOp::create(*this, getI32Type(), halves[i]);
    Value isOdd = with<arith::AndIOp>(with<arith::ShRUIOp>(word, 16), 1);
    halves[i] = add(add(word, isOdd), half);
  }
  if (convertsToBF16)
    return arith::TruncFOp::create(
        *this, type,
        vector::FromElementsOp::create(*this, VectorType::get(2, getF32Type()),
                                       halves));
  if (permutes) // the upper halves
    return asPair(permute(halves[1], halves[0], 0x07060302), type);
  return asPair(either(with<arith::AndIOp>(halves[1], 0xffff0000),
                       with<arith::ShRUIOp>(halves[0], 16)),
                type);
}

/// Times the scale, and the minimum on top, in the result's type.
Value WordExpander::finish(Value pair) {
  if (isBF16)
    return rounded(pair);
  if (!scales)
    return pair;
  if (minima)
    return math::FmaOp::create(*this, pair, scales, minima);
  if (scales.getType() == pairType)
    return fmul(pair, scales, contract);
  pair = arith::ExtFOp::create(*this, scales.getType(), pair);
  return arith::TruncFOp::create(*this, pairType, fmul(pair, scales, contract));
}

void WordExpander::nibbles() {
  bool inOrder = permutes && !isUnit && !row.isPaired;
  // Every other pair is taken from bits 7:4, which saves its shift, but takes
  // another form of the zero. Kernels of many rows were not measured with it.
  bool isZeroFixed = op.getZero().getType().isF16() ||
                     matchPattern(op.getZero(), m_Constant());
  bool skipsShifts = isUnit || (hasFewRows && !permutes && isZeroFixed);
  for (int i = 0; i < 4; ++i) {
    Value pair;
    if (inOrder) {
      // Selectors of bytes; 12 is a zero.
      Value twoBytes =
          permute(op.getWord(), op.getWord(), 0x0c000c00 + i * 0x00010001);
      Value raised = asPair(with<arith::OrIOp>(
          with<arith::AndIOp>(twoBytes, 0x00f0000f), 0x64006400));
      Attribute units[] = {getF16FloatAttr(1), getF16FloatAttr(0.0625)};
      Value unit = arith::ConstantOp::create(
          *this, DenseElementsAttr::get(pairType, ArrayRef<Attribute>(units)));
      // -(1024 + zero) and -(64 + zero).
      pair = math::FmaOp::create(*this, raised, unit,
                                 zero(0xd400e400, 0x00100001));
    } else {
      int place = skipsShifts && i % 2 ? 4 : 0;
      uint32_t raised = exponents(place);
      Value word = op.getWord();
      if (int shift = skipsShifts ? i / 2 * 8 : i * 4)
        word = with<arith::ShRUIOp>(word, shift);
      word = with<arith::OrIOp>(with<arith::AndIOp>(word, twice(15 << place)),
                                raised);
      if (Value high = op.getHigh()) {
        int moved = place + row.bits - row.highBits * i;
        if (moved > 0)
          high = with<arith::ShLIOp>(high, moved);
        else if (moved < 0)
          high = with<arith::ShRUIOp>(high, -moved);
        uint32_t mask = ((1 << row.highBits) - 1) << (place + row.bits);
        word = either(word, with<arith::AndIOp>(high, twice(mask)));
      }
      pair = fsub(asPair(word), zero(raised, twice(1 << place)), contract);
    }
    put(i, inOrder || row.isPaired, pair);
  }
}

void WordExpander::bytes() {
  Value word = op.getWord();
  if (row.offset())
    word = with<arith::XOrIOp>(word, twice(0x0101 * row.offset()));
  uint32_t raised = exponents(0);
  for (int i = 0; i < 2; ++i) {
    Value pair;
    if (permutes) {
      pair = permute(bits(twice(0x0101 * (raised >> 24))), word,
                     0x04010400 + i * 0x00020002);
    } else {
      Value moved = i ? with<arith::ShRUIOp>(word, 8) : word;
      pair = with<arith::OrIOp>(with<arith::AndIOp>(moved, 0x00ff00ff), raised);
    }
    put(i, permutes, fsub(asPair(pair), zero(raised, twice(1)), contract));
  }
}

/// The factor of floats that are 1/256 of what they stand for.
Value WordExpander::factorOfFloats() {
  Value scale = op.getScale();
  if (isUnit)
    return arith::ConstantOp::create(
        *this, getF16FloatAttr(std::ldexp(1.0f, row.sumExponent() + 8)));
  return fmul(wide(scale),
              arith::ConstantOp::create(*this, getF32FloatAttr(256)), contract);
}

void WordExpander::floats() {
  for (int i = 0; i < 2; ++i) {
    // The upper byte of both halves is a weight's.
    Value word = op.getWord();
    if (permutes)
      word = permute(word, word, 0x010c000c + i * 0x02000200);
    else if (i == 0)
      word = with<arith::ShLIOp>(word, 8);
    put(i, permutes, asPair(floatsInUpperBytes(word)));
  }
}

/// The bits of a code, in the unit of sums where that is asked for.
uint16_t WordExpander::code(int i) {
  uint16_t bits = row.codes[i];
  return isUnit && (bits & 0x7fff) ? bits + row.sumExponent() * 0x400 : bits;
}

/// The low or the high byte of the code of each of four numbers in bytes; null
/// where that is zero for all.
Value WordExpander::tableBytes(Value numbers, int byte) {
  uint32_t tables[4] = {};
  bool isMirrored = true;
  for (int i = 0; i < 16; ++i) {
    uint32_t part = code(i) >> (8 * byte) & 0xff;
    tables[i / 4] |= part << i % 4 * 8;
    // A zero may have a sign.
    uint16_t positive = code(i & 7), sign = (i & 8) << 12;
    isMirrored &= code(i) == (positive ? positive | sign : 0);
  }
  if (llvm::all_of(tables, [](uint32_t table) { return !table; }))
    return {};
  Value within = with<arith::AndIOp>(numbers, 0x07070707);
  auto lookUp = [&](uint32_t upper, uint32_t lower) -> Value {
    return LLVM::CallIntrinsicOp::create(
               *this, getI32Type(), getStringAttr("llvm.amdgcn.perm"),
               ValueRange{bits(upper), bits(lower), within})
        .getResult(0);
  };
  Value first = lookUp(tables[1], tables[0]);
  Value fourth = with<arith::AndIOp>(numbers, 0x08080808);
  if (isMirrored) // the sign
    return byte ? either(first, with<arith::ShLIOp>(fourth, 4)) : first;
  // All bits of the bytes whose fourth bit is set.
  Value mask =
      sub(with<arith::ShLIOp>(fourth, 5), with<arith::ShRUIOp>(fourth, 3));
  Value second = lookUp(tables[3], tables[2]);
  return either(both(second, mask),
                both(first, with<arith::XOrIOp>(mask, ~0u)));
}

/// Codes `first` and its neighbour in one word, or others that higher bits of
/// the number choose, from `bit` down.
Value WordExpander::selected(int number, int bit, unsigned first) {
  if (bit == 0)
    return bits(code(first) | uint32_t(code(first + 1)) << 16);
  Value isSet =
      differ(with<arith::AndIOp>(op.getWord(), 1u << (row.bits * number + bit)),
             bits(0));
  return select(isSet, selected(number, bit - 1, first | 1u << bit),
                selected(number, bit - 1, first));
}

void WordExpander::codesOfFloats() {
  Value factor = arith::ConstantOp::create(
      *this, DenseElementsAttr::get(
                 pairType, getF16FloatAttr(std::ldexp(
                               1.0f, 14 + (isUnit ? row.sumExponent() : 0)))));
  for (int i = 0; i < 4; ++i) {
    // Numbers i and i + 4 in both halves.
    auto moved = [&](int left) {
      Value word = op.getWord();
      return left > 0   ? with<arith::ShLIOp>(word, left)
             : left < 0 ? with<arith::ShRUIOp>(word, -left)
                        : word;
    };
    Value pair = either(with<arith::AndIOp>(moved(9 - 4 * i), twice(0x0e00)),
                        with<arith::AndIOp>(moved(12 - 4 * i), twice(0x8000)));
    put(i, /*areNeighbours=*/false, fmul(asPair(pair), factor, contract));
  }
}

/// A polynomial in w - 7 is within 0.47 of the number, however products and
/// sums of f16 are rounded; with 1536 on top, the last place of an f16 is 1, so
/// that the last sum is rounded to that number.
void WordExpander::codesNearCurve() {
  auto all = [&](float number) -> Value {
    return arith::ConstantOp::create(
        *this, DenseElementsAttr::get(pairType, getF16FloatAttr(number)));
  };
  constexpr float top = 1536;
  for (int i = 0; i < 4; ++i) {
    Value word = op.getWord();
    if (i / 2)
      word = with<arith::ShRUIOp>(word, 8);
    int place = i % 2 * 4; // 1024 + w or 64 + w
    word = with<arith::OrIOp>(with<arith::AndIOp>(word, twice(15 << place)),
                              twice(0x6400 - place * 0x400));
    Value x = fsub(asPair(word), all((1024 >> place) + 7), contract);
    Value sum = all(0.0015611648559570312f);
    for (float coefficient :
         {0.07720947265625f, -0.252197265625f, 11.640625f, top - 10})
      sum = math::FmaOp::create(*this, sum, x, all(coefficient));
    float unit = std::ldexp(1.0f, row.sumExponent());
    if (isUnit)
      sum = math::FmaOp::create(*this, sum, all(unit), all(-top * unit));
    else // without `contract`: the sum before it has to be rounded
      sum = fsub(sum, all(top));
    put(i, /*areNeighbours=*/false, sum);
  }
}

void WordExpander::codes() {
  if (!permutes) {
    // A code comes into the lower or the upper half of its word.
    auto half = [&](int number, bool isUpper) -> Value {
      Value both = selected(number, row.bits - 1, 0);
      Value isSecond =
          differ(with<arith::AndIOp>(op.getWord(), 1u << (row.bits * number)),
                 bits(0));
      Value first = isUpper ? with<arith::ShLIOp>(both, 16)
                            : with<arith::AndIOp>(both, 0xffff);
      Value second = isUpper ? with<arith::AndIOp>(both, 0xffff0000)
                             : with<arith::ShRUIOp>(both, 16);
      return select(isSecond, second, first);
    };
    for (int i = 0; i < 4; ++i)
      put(i, /*areNeighbours=*/true,
          asPair(either(half(2 * i, false), half(2 * i + 1, true))));
    return;
  }
  // Numbers in bytes, as they come: those of even bits 7:4 and odd places.
  Value even = with<arith::AndIOp>(op.getWord(), 0x0f0f0f0f);
  Value odd =
      with<arith::AndIOp>(with<arith::ShRUIOp>(op.getWord(), 4), 0x0f0f0f0f);
  for (int i = 0; i < 4; i += 2) {
    Value four = permute(odd, even, 0x05010400 + i * 0x01010101);
    Value high = tableBytes(four, 1), low = tableBytes(four, 0);
    for (int j = 0; j < 2; ++j) {
      uint32_t selector =
          low ? 0x05010400 + j * 0x02020202 : 0x050c040c + j * 0x02000200;
      put(i + j, /*areNeighbours=*/true,
          asPair(permute(high, low ? low : high, selector)));
    }
  }
}

//===----------------------------------------------------------------------===//
// Dots of vectors
//===----------------------------------------------------------------------===//

/// The source of element i of a vector: a vector that nobody put together of
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
    sum = sum ? b.fadd(sum, x) : x;
  }
  if (sums[1])
    sums[0] = b.fadd(sums[0], sums[1]);
  return math::FmaOp::create(b, sums[0], wide(op.getB(), 0), op.getAcc());
}

/// Element by element of B, in the order in which words are unpacked: what is
/// a register together is multiplied together.
static void expandDot(tile::VectorDotOp op, const TargetRow &row,
                      bool hasFewRows, bool hasDenormals) {
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
    auto word = numbers.getDefiningOp<tile::UnpackOp>();
    if (word && isForDots(numbers, op->getBlock()))
      WordExpander(word, op, row, hasFewRows).expand();
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
    if (hasDenormals && flushesDot2(row))
      for (int64_t half : {0, 1})
        total = math::FmaOp::create(
            b, arith::ExtFOp::create(b, b.getF32Type(), b.at(x, half)),
            arith::ExtFOp::create(b, b.getF32Type(), b.at(y, half)), total);
    else if (hasDot2(row))
      total = tile::VectorDotOp::create(b, x, y, total);
    else if (sum)
      sum = math::FmaOp::create(b, x, y, sum);
    else
      sum = b.fmul(x, y, contract);
  }
  for (Value sum : sums)
    for (int64_t half = 0; sum && half < 2; ++half) {
      Value part = arith::ExtFOp::create(b, b.getF32Type(), b.at(sum, half));
      total =
          matchPattern(total, m_AnyZeroFloat()) ? part : b.fadd(total, part);
    }
  op.replaceAllUsesWith(total);
  op.erase();
}

void greta::expandPacked(Operation *kernel, const TargetRow &row) {
  bool hasFewRows = !tile::sharesInLoops(kernel);
  // The dots, and whether floats of 8 bits, in their unit, are factors.
  SmallVector<std::pair<tile::VectorDotOp, bool>> dots;
  kernel->walk([&](tile::VectorDotOp dot) {
    auto word = originOf(dot.getB(), 0).first.getDefiningOp<tile::UnpackOp>();
    dots.push_back({dot, word && word.getRow().isE4M3});
  });
  for (auto [dot, hasDenormals] : dots)
    expandDot(dot, row, hasFewRows, hasDenormals);
  // An unpacked value at a dot stands behind some of its dead uses.
  if (IRRewriter rewriter(kernel->getContext()); !dots.empty())
    (void)runRegionDCE(rewriter, kernel->getRegions());
  SmallVector<tile::UnpackOp> words;
  kernel->walk([&](tile::UnpackOp word) { words.push_back(word); });
  for (tile::UnpackOp word : words)
    WordExpander(word, nullptr, row, hasFewRows).expand();
}
