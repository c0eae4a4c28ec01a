//===- GretaToTileOps.cpp - what the ops of a space are on blocks ---------===//
//
// Elementwise ops become themselves on blocks; the ops of the greta dialect
// what their definition says, in f32, rounded once. Arithmetic on bf16 and on
// 8-bit floats (and on f16 beyond + - * and comparisons) is done in f32 and
// rounded op by op, which is the same as doing it in the narrow type: f32 has
// more than twice its digits.
//
// exp(x) is exp2(x * log2(e)); divisions by a row's sum are one division and a
// product per element.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include <cmath>

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value SpaceEmitter::widen(Value v) {
  return getElementTypeOrSelf(v).isF32() ? v : extend(v);
}

Value SpaceEmitter::wide(Value v, const Mapping &mapping) {
  return broadcast(widen(value(v, mapping)), shapeOf(identity));
}

/// Elements that the reductions of a row op combine.
static int64_t rowLength(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType()).getShape().back();
}

//===----------------------------------------------------------------------===//
// Columns beyond the row's end
//===----------------------------------------------------------------------===//

/// Whether a load should put -inf where there are no columns: its value goes
/// (through casts) to a softmax.
bool SpaceEmitter::wantsNegativeInfinity(Value v) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(v.getType()));
  if (!type || !APFloat::semanticsHasInf(type.getFloatSemantics()))
    return false;
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (isa<SoftmaxOp>(user))
      return true;
    return isa<arith::ExtFOp, arith::TruncFOp>(user) &&
           wantsNegativeInfinity(user->getResult(0));
  });
}

/// The mapping of a value without columns.
SpaceEmitter::Masked SpaceEmitter::maskedValue(Value v) {
  if (auto known = maskedValues.find(v); known != maskedValues.end())
    return known->second;
  Masked masked = Masked::Unknown;
  Operation *op = v.getDefiningOp();
  if (!op)
    masked = wantsNegativeInfinity(v) ? Masked::NegativeInfinity : Masked::Zero;
  else if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    masked = maskedValue(op->getOperand(0));
  else if (isa<arith::AddFOp, arith::SubFOp>(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return maskedValue(operand) == Masked::Zero;
           }))
    masked = Masked::Zero;
  return maskedValues[v] = masked;
}

Value SpaceEmitter::maskColumns(Value block, Value other) {
  auto type = cast<RankedTensorType>(block.getType());
  // The pair's dimension has no edge: index by columns alone.
  Value mask = isWithin(columnDim, dims.size());
  return select(broadcast(mask, type.getShape()), block, other);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

SpaceEmitter::Combine SpaceEmitter::reductionKind(Operation *op,
                                                  unsigned index) {
  if (auto reduce = dyn_cast<ReduceRowsOp>(op))
    return llvm::StringSwitch<Combine>(reduce.getKind())
        .Case("add", Combine::Add)
        .Case("mul", Combine::Multiply)
        .Case("max", Combine::Greatest)
        .Case("min", Combine::Least);
  return isa<SoftmaxOp>(op) && index == 0 ? Combine::Max : Combine::Add;
}

Value SpaceEmitter::combine(Combine kind, Value x, Value y) {
  // A NaN that the maximum drops comes back through the exponentials.
  if (kind == Combine::Max)
    return arith::MaxNumFOp::create(b, x, y, Flags::nnan);
  bool isInteger = getElementTypeOrSelf(x.getType()).isInteger();
  switch (kind) {
  case Combine::Multiply:
    return isInteger ? mul(x, y) : fmul(x, y);
  case Combine::Greatest:
    return isInteger ? most(x, y) : arith::MaximumFOp::create(b, x, y);
  case Combine::Least:
    return isInteger ? least(x, y) : arith::MinimumFOp::create(b, x, y);
  default:
    return isInteger ? add(x, y) : fadd(x, y);
  }
}

Value SpaceEmitter::reduce(Combine kind, Value v, unsigned dim) {
  SmallVector<int64_t> shape(shapeOf(v));
  shape[dim] = 1;
  return tile::ReshapeOp::create(
      b, block(shape, getElementTypeOrSelf(v)),
      reduce(v, dim, [&](Value x, Value y) { return combine(kind, x, y); }));
}

Value SpaceEmitter::neutral(Combine kind, RankedTensorType type) {
  bool isInteger = type.getElementType().isInteger();
  switch (kind) {
  case Combine::Multiply:
    return constant(type, 1);
  case Combine::Max:
  case Combine::Greatest:
    return constant(type, isInteger ? double(INT32_MIN) : -HUGE_VAL);
  case Combine::Least:
    return constant(type, isInteger ? double(INT32_MAX) : HUGE_VAL);
  case Combine::Add:
    return constant(type, 0);
  }
  llvm_unreachable("all kinds have a neutral element");
}

Value SpaceEmitter::reductionInput(Operation *op, unsigned index) {
  Value input = op->getOperand(0);
  bool isInteger = getElementTypeOrSelf(input.getType()).isInteger();
  Value x = isInteger ? broadcast(value(input, identity), shapeOf(identity))
                      : wide(input, identity);
  Masked beyond = dims[columnDim].masked ? maskedValue(input) : Masked::Zero;
  bool neutralBeyond = !dims[columnDim].masked;
  Value result;
  if (isa<RmsNormOp>(op)) {
    result = fmul(x, x, contract);
    neutralBeyond |= beyond == Masked::Zero;
  } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
    result = x;
    neutralBeyond |= index == 0 && beyond == Masked::Zero;
    if (index == 1) {
      Value centred = fsub(x, meanOf(op), contract);
      result = fmul(centred, centred, contract);
    }
  } else if (isa<ReduceRowsOp>(op)) {
    result = x;
    neutralBeyond |=
        reductionKind(op, index) == Combine::Add && beyond == Masked::Zero;
  } else {
    result = index == 0 ? x : exponentials(cast<SoftmaxOp>(op));
    neutralBeyond |= beyond == Masked::NegativeInfinity;
  }
  if (neutralBeyond)
    return result;
  return maskColumns(result, neutral(reductionKind(op, index),
                                     cast<RankedTensorType>(result.getType())));
}

Value SpaceEmitter::rowValue(Operation *op, unsigned part, unsigned reduction,
                             llvm::function_ref<Value(Value)> compute) {
  Value row = memoize(op, part, {},
                      [&] { return compute(reductions.at({op, reduction})); });
  return broadcast(row, shapeOf(identity));
}

/// sum / D
Value SpaceEmitter::meanOf(Operation *op) {
  return rowValue(op, 0, 0, [&](Value sum) -> Value {
    auto type = cast<RankedTensorType>(sum.getType());
    return fmul(sum, constant(type, 1.0 / rowLength(op)));
  });
}

/// rsqrt(sum / D + eps)
Value SpaceEmitter::scaleOf(Operation *op, Value sum, APFloat eps) {
  auto type = cast<RankedTensorType>(sum.getType());
  Value mean = fmul(sum, constant(type, 1.0 / rowLength(op)));
  Value shifted = fadd(mean, constant(type, eps.convertToFloat()));
  return math::RsqrtOp::create(b, shifted);
}

Value SpaceEmitter::scaleOf(Operation *op, unsigned reduction, APFloat eps) {
  return rowValue(op, 1, reduction,
                  [&](Value sum) { return scaleOf(op, sum, eps); });
}

/// exp(x - max), which both the sum and the result need.
Value SpaceEmitter::exponentials(SoftmaxOp op) {
  return memoize(op.getOperation(), 0, identity, [&]() -> Value {
    Value x = wide(op.getX(), identity);
    Value max = rowValue(op, 0, 0, [](Value reduced) { return reduced; });
    Value shifted = fsub(x, max);
    auto type = cast<RankedTensorType>(x.getType());
    // At most 1, so results below the normal numbers may be flushed.
    return math::Exp2Op::create(b, fmul(shifted, constant(type, log2e)),
                                Flags::afn);
  });
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value SpaceEmitter::compute(Value v, const Mapping &mapping) {
  if (auto argument = dyn_cast<BlockArgument>(v))
    return load(argument, mapping);
  Operation *op = v.getDefiningOp();
  Type element = cast<RankedTensorType>(v.getType()).getElementType();
  if (auto splat = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = cast<DenseElementsAttr>(splat.getValue());
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(blockType(mapping, element),
                                  elements.getSplatValue<Attribute>()));
  }
  if (isa<BroadcastOp>(op)) {
    OpOperand &operand = op->getOpOperand(0);
    return broadcast(
        value(operand.get(), operandMapping(operand, mapping, space.rank())),
        shapeOf(mapping));
  }
  if (auto dequant = dyn_cast<DequantOp>(op))
    return inOperand ? computeDequantBlock(dequant)
                     : computeDequant(dequant, mapping);
  if (auto patches = dyn_cast<PatchesOp>(op))
    return computePatches(patches);
  if (auto norm = dyn_cast<RmsNormOp>(op); norm && space.matmul)
    return weighted(norm, mapping);
  if (isa<ReduceRowsOp>(op))
    return reductions.at({op, 0});
  if (isRowOp(op))
    return computeRowOp(op);
  return computeElementwise(op, mapping);
}

/// Whether f16 hardware does exactly what f32 and a rounding would.
static bool isExactInF16(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::CmpFOp, math::AbsFOp>(op);
}

Value SpaceEmitter::computeElementwise(Operation *op, const Mapping &mapping) {
  auto elementOf = [](Value v) { return getElementTypeOrSelf(v.getType()); };
  bool isMove =
      isa<arith::SelectOp, arith::ExtFOp, arith::TruncFOp, arith::BitcastOp>(
          op);
  auto mustWiden = [&](Value v) {
    return !isMove && (elementOf(v).isBF16() || isFloat8(elementOf(v)) ||
                       (elementOf(v).isF16() && !isExactInF16(op)));
  };
  IRMapping operands;
  for (Value operand : op->getOperands()) {
    Value block = value(operand, mapping);
    operands.map(operand, mustWiden(operand) ? widen(block) : block);
  }
  Operation *clone = b.clone(*op, operands);
  Type element = elementOf(op->getResult(0));
  bool widened = mustWiden(op->getResult(0));
  clone->getResult(0).setType(
      blockType(mapping, widened ? Type(b.getF32Type()) : element));
  return widened ? narrow(clone->getResult(0), element) : clone->getResult(0);
}

Value SpaceEmitter::computeRowOp(Operation *op) {
  auto mul = [&](Value x, Value y) -> Value { return fmul(x, y, contract); };
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  Mapping vector = {identity.back()};
  Value result;
  if (auto norm = dyn_cast<RmsNormOp>(op)) {
    Value y = mul(wide(norm.getX(), identity), scaleOf(op, 0, norm.getEps()));
    result = mul(y, wide(norm.getW(), vector));
  } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
    Value y = fsub(wide(norm.getX(), identity), meanOf(op), contract);
    y = mul(mul(y, scaleOf(op, 1, norm.getEps())), wide(norm.getW(), vector));
    result = fadd(y, wide(norm.getB(), vector), contract);
  } else if (auto softmax = dyn_cast<SoftmaxOp>(op)) {
    Value inverse = rowValue(op, 1, 1, [&](Value sum) -> Value {
      auto type = cast<RankedTensorType>(sum.getType());
      return fdiv(constant(type, 1.0), sum);
    });
    result = mul(exponentials(softmax), inverse);
  } else if (auto swiglu = dyn_cast<SwigluOp>(op)) {
    Value x = wide(swiglu.getGate(), identity);
    auto type = cast<RankedTensorType>(x.getType());
    // Added to 1, so small results may be flushed.
    Value e =
        math::Exp2Op::create(b, mul(x, constant(type, -log2e)), Flags::afn);
    Value d = fadd(constant(type, 1.0), e);
    // A reciprocal is within an ulp, and 0 for infinity as it should be.
    Value silu = fdiv(x, d, Flags::arcp | Flags::afn);
    result = mul(silu, wide(swiglu.getUp(), identity));
  } else if (auto rope = dyn_cast<RopeOp>(op)) {
    result = computeRope(rope);
  } else if (auto heads = dyn_cast<HeadsOp>(op)) {
    result = value(heads.getValue(), identity);
    if (!config.run) // with few rows it has the space's dimensions already
      result = tile::ReshapeOp::create(b, blockType(identity, element), result);
  } else {
    result = computeMatmul(cast<MatmulOp>(op));
  }
  return isa<FloatType>(element) ? narrow(result, element) : result;
}

/// x cos + partner sin, the sine negative for the first of a pair.
Value SpaceEmitter::computeRope(RopeOp op) {
  Value x = widen(value(op.getX(), identity));
  SmallVector<int64_t> shape = shapeOf(identity), along(shape.size(), 1);
  auto table = [&](Value v) {
    return broadcast(value(v, {0, space.rank()}), shape);
  };
  auto mul = [&](Value p, Value q) -> Value { return fmul(p, q, contract); };
  along[pairDim] = 2;
  auto indices = block(along, b.getI32Type());
  Value isFirst =
      equal(tile::IotaOp::create(b, indices, pairDim), zeroOf(indices));
  // The partner: pairs go last, where they part, change places and meet.
  SmallVector<int64_t> pairLast, back, last;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
    if (dim != pairDim)
      pairLast.push_back(dim);
    back.push_back(dim < pairDim ? dim : dim - 1);
  }
  pairLast.push_back(pairDim);
  back[pairDim] = shape.size() - 1;
  for (int64_t dim : pairLast)
    last.push_back(shape[dim]);
  auto pairs = block(last, b.getF32Type());
  auto half = block(ArrayRef(last).drop_back(), b.getF32Type());
  auto halves = tile::SplitOp::create(
      b, half, half, tile::TransOp::create(b, pairs, x, pairLast));
  Value turnedPairs =
      tile::JoinOp::create(b, pairs, halves.getSecond(), halves.getFirst());
  Value partner = tile::TransOp::create(b, x.getType(), turnedPairs, back);
  Value product = mul(partner, table(op.getSin()));
  Value turned = select(broadcast(isFirst, shape),
                        arith::NegFOp::create(b, product), product);
  return fadd(mul(x, table(op.getCos())), turned, contract);
}
