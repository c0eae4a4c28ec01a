//===- BlockOps.cpp - verifiers of ops on blocks in registers -------------===//

#include "GretaTile/GretaTile.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (getDim() >= static_cast<uint32_t>(type.getRank()))
    return emitOpError("counts along dimension ")
           << getDim() << " of rank " << type.getRank();
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType());
  auto b = cast<RankedTensorType>(getB().getType());
  auto c = cast<RankedTensorType>(getAcc().getType());
  int64_t rank = c.getRank();
  auto fits = [&] {
    if (rank < 2 || rank > 3 || a.getRank() != rank || b.getRank() != rank)
      return false;
    ArrayRef<int64_t> x = a.getShape(), y = b.getShape(), z = c.getShape();
    return x.drop_back() == z.drop_back() && x.back() == y[rank - 2] &&
           y.drop_back(2) == z.drop_back(2) && y.back() == z.back();
  };
  if (!fits())
    return emitOpError("multiplies ")
           << a << " by " << b << " into " << c
           << "; it takes [M,K] by [K,N] into [M,N], or a batch of them, "
              "[B,M,K] by [B,K,N] into [B,M,N]";
  if (getStep() && getMatrix())
    return emitOpError("has 'step' beside 'matrix'; steps along K are those of "
                       "multiply-adds, an instruction has its own");
  return success();
}

/// Whether sums of `count` elements are one, or of neighbours in powers of two.
static bool isGroup(int64_t count, int64_t sums) {
  return sums == 1 || (count % sums == 0 && llvm::isPowerOf2_64(count / sums));
}

LogicalResult ContractOp::verify() {
  auto acc = cast<RankedTensorType>(getAcc().getType());
  int64_t last = -1;
  for (int64_t dim : getDims()) {
    if (dim <= last || dim >= acc.getRank())
      return emitOpError("has dims ")
             << getDims() << "; they increase and are below the rank "
             << acc.getRank();
    last = dim;
  }
  for (Type type : {getA().getType(), getB().getType()}) {
    auto operand = cast<RankedTensorType>(type);
    bool fits = operand.getRank() == acc.getRank() &&
                isa<FloatType>(operand.getElementType()) ==
                    isa<FloatType>(acc.getElementType());
    for (int64_t dim = 0; fits && dim < acc.getRank(); ++dim)
      fits = llvm::is_contained(getDims(), dim)
                 ? isGroup(operand.getDimSize(dim), acc.getDimSize(dim))
                 : operand.getDimSize(dim) == 1 ||
                       operand.getDimSize(dim) == acc.getDimSize(dim);
    if (!fits)
      return emitOpError("contracts ")
             << operand << " into " << acc
             << "; along 'dims' the result has extent 1 or theirs divided by "
                "a power of two, elsewhere operands have its extent or 1, and "
                "both are floats or both integers";
  }
  auto elementOf = [](Value value) { return getElementTypeOrSelf(value); };
  if (getNarrow() && !(elementOf(getA()).isF16() && elementOf(getB()).isF16() &&
                       elementOf(getAcc()).isF32()))
    return emitOpError("is narrow with ")
           << elementOf(getA()) << " and " << elementOf(getB()) << " into "
           << elementOf(getAcc()) << "; sums of f16 into f32 may be";
  return success();
}

unsigned DequantOp::getDim() {
  auto words = cast<RankedTensorType>(getWords().getType());
  auto type = cast<RankedTensorType>(getResult().getType());
  unsigned dim = 0;
  while (dim + 1 < type.getRank() && dim < words.getRank() &&
         words.getDimSize(dim) == type.getDimSize(dim))
    ++dim;
  return dim;
}

void DequantOp::build(OpBuilder &builder, OperationState &state, Type type,
                      Value words, Value high, Value scales, Value zeros,
                      const WeightFormat &row) {
  SmallVector<Value> others{scales, zeros};
  if (high)
    others.insert(others.begin(), high);
  build(builder, state, type, words, others, row.name);
}

LogicalResult DequantOp::verify() {
  const WeightFormat *row = findWeightFormat(getFormat());
  if (!row)
    return emitOpError("has an unknown format, \"") << getFormat() << "\"";
  unsigned operands = row->highBits ? 4 : 3;
  if (getNumOperands() != operands)
    return emitOpError("has ") << getNumOperands() << " operands; of \""
                               << getFormat() << "\" it takes " << operands;
  auto type = cast<RankedTensorType>(getResult().getType());
  unsigned dim = getDim();
  auto isOf = [](Value value, auto isElement) {
    return isElement(cast<RankedTensorType>(value.getType()).getElementType());
  };
  auto isF16 = [](Type type) { return type.isF16(); };
  auto isF32 = [](Type type) { return type.isF32(); };
  auto isI32 = [](Type type) { return type.isInteger(32); };
  auto packs = [&](Value value, int64_t perWord) {
    SmallVector<int64_t> packed(
        cast<RankedTensorType>(value.getType()).getShape());
    if (dim < packed.size())
      packed[dim] *= perWord;
    return ArrayRef<int64_t>(packed) == type.getShape() && isOf(value, isI32);
  };
  auto divides = [&](Value value) {
    auto shared = cast<RankedTensorType>(value.getType());
    return shared.getRank() == type.getRank() &&
           llvm::all_of(llvm::zip(shared.getShape(), type.getShape()),
                        [](auto pair) {
                          auto [part, whole] = pair;
                          return whole % part == 0;
                        });
  };
  if (packs(getWords(), row->perWord()) &&
      (!getHigh() || packs(getHigh(), row->perHigh())) &&
      divides(getScales()) && divides(getZeros()) &&
      (isOf(getScales(), isF16) || isOf(getScales(), isF32)) &&
      (isOf(getZeros(), isI32) || isOf(getZeros(), isF16)) &&
      (type.getElementType().isF16() || type.getElementType().isBF16()))
    return success();
  return emitOpError("makes ")
         << type << " of " << getOperandTypes()
         << "; it takes words of i32 with one extent divided by the weights in "
            "a word, scales of f16 or f32 and zeros of i32 or minima of f16 "
            "whose "
            "extents divide the result's of f16 or bf16";
}
