//===- ExpandBytes.cpp - bytes to f16, a word at a time -------------------===//
//
// In: conversions to f16 of elements of vectors of i8 and of E4M3FN, which
// kernels load from caches of 8 bits. Out: arithmetic on their words, each of
// four numbers, two at once. Each alone takes twice as many instructions and a
// conversion from an integer, which is slow on NVIDIA.
//
// A byte plus 128 in the last bits of an f16's mantissa is that number plus
// 1024, so of word %w the elements 0 and 2 are
//
//   ((%w ^ 0x80808080) & 0x00ff00ff | 0x64006400 as vector<2xf16>) - 1152
//
// In the upper bits of an f16, the exponent a place lower, an E4M3FN is 1/256
// of itself; denormals are among them, which the runtime has drivers keep
// (Denormals.cpp). Elements 1 and 3:
//
//   %m = %w >> 1 & 0x3f803f80 | %w & 0x80008000
//   %n = %m + 0x00800080 & 0x40004000    0x7f gets the exponent of NaN
//   %p = (%m | %n as vector<2xf16>) * 256
//
// The others are those of the word shifted by a byte. All of this is exact.
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "GretaTile/GretaTile.h"
#include "PairBuilder.h"
#include "greta/Tile/Elementwise.h"
#include <array>
#include <tuple>

using namespace mlir;
using namespace greta;

namespace {
/// Builds arithmetic on one word of bytes.
struct WordBuilder : PairBuilder {
  using PairBuilder::PairBuilder;

  /// The lower bytes of both halves, whose upper bits are flipped.
  Value integers(Value word) {
    Value raised = with<arith::OrIOp>(with<arith::AndIOp>(word, twice(0xff)),
                                      twice(0x6400));
    return fsub(asPair(raised), pairOf(1152), contract);
  }
  /// The upper bytes of both halves.
  Value floats(Value word) {
    Value code = floatsInUpperBytes(word);
    Value special = with<arith::AndIOp>(with<arith::AddIOp>(code, twice(0x80)),
                                        twice(0x4000));
    code = either(code, special);
    return fmul(asPair(code), pairOf(256), contract);
  }

private:
  Value pairOf(double number) {
    return constantOf(*this, pairType, FloatAttr::get(getF16Type(), number));
  }
};

class BytesExpander {
public:
  explicit BytesExpander(const TargetRow &row) : row(row) {}
  void expand(Operation *op);

private:
  /// Elements 0 and 2 of a word, and 1 and 3.
  using Pairs = std::array<Value, 2>;
  static Pairs pairsOf(WordBuilder &b, Value vector, int64_t word);

  const TargetRow &row;
  /// The pairs of a word stand where a block first uses one of them: a word
  /// that a loop loads ahead of its use stays a word until then.
  llvm::DenseMap<std::tuple<Block *, Value, int64_t>, Pairs> known;
};
} // namespace

BytesExpander::Pairs BytesExpander::pairsOf(WordBuilder &b, Value vector,
                                            int64_t i) {
  auto type = cast<VectorType>(vector.getType());
  Value words = vector::BitCastOp::create(
      b, VectorType::get(type.getNumElements() / 4, b.getI32Type()), vector);
  Value word = vector::ExtractOp::create(b, words, i);
  if (!type.getElementType().isInteger())
    return {b.floats(b.with<arith::ShLIOp>(word, 8)), b.floats(word)};
  word = b.with<arith::XOrIOp>(word, 0x80808080);
  return {b.integers(word), b.integers(b.with<arith::ShRUIOp>(word, 8))};
}

void BytesExpander::expand(Operation *op) {
  Value source = op->getOperand(0), result = op->getResult(0);
  auto element = source.getDefiningOp<vector::ExtractOp>();
  if (!element || element.hasDynamicPosition() || !result.getType().isF16())
    return;
  bool isInteger = isa<arith::SIToFPOp>(op) && source.getType().isInteger(8);
  // Nobody knows whether a device of the portable family keeps denormals.
  bool isFloat = isa<arith::ExtFOp>(op) && row.fp8 != Fp8Kind::Ocp &&
                 row.waveSize > 1 && isa<Float8E4M3FNType>(source.getType());
  VectorType type = element.getSourceVectorType();
  if (!(isInteger || isFloat) || type.getRank() != 1 ||
      type.getNumElements() % 4)
    return;
  int64_t i = element.getStaticPosition().front();
  WordBuilder b(op->getLoc(), op);
  auto [entry, isNew] =
      known.try_emplace({op->getBlock(), element.getSource(), i / 4});
  if (isNew)
    entry->second = pairsOf(b, element.getSource(), i / 4);
  result.replaceAllUsesWith(
      vector::ExtractOp::create(b, entry->second[i % 2], i % 4 / 2)
          .getResult());
  op->erase();
}

void greta::expandBytes(Operation *root, const TargetRow &row) {
  if (!isa<tile::FuncOp>(root))
    return;
  BytesExpander expander(row);
  root->walk([&](Operation *op) {
    if (isa<arith::SIToFPOp, arith::ExtFOp>(op))
      expander.expand(op);
  });
}
