//===- GretaToTileOps.cpp - what the ops of a space are on blocks ---------===//
//
// Elementwise ops become themselves on blocks (BlockProgram.cpp); the ops of
// the greta dialect what their definition says, in f32, rounded once.
//
// exp(x) is exp2(x * log2(e)); divisions by a row's sum are one division and a
// product per element.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cmath>

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Small pieces
//===----------------------------------------------------------------------===//

Value SpaceEmitter::wide(Value v, const Mapping &mapping) {
  return broadcast(extend(value(v, mapping)), shapeOf(identity));
}

/// Returns the number of elements that a row op's reductions combine.
static int64_t rowLength(Operation *op) {
  return cast<RankedTensorType>(op->getOperand(0).getType()).getShape().back();
}

//===----------------------------------------------------------------------===//
// Columns beyond the row's end
//===----------------------------------------------------------------------===//

/// Whether a load should give -inf beyond the last column: its value goes,
/// perhaps through casts, to a softmax.
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

/// Returns the number that a value has in the columns beyond the row's end;
/// none: it is not known.
std::optional<double> SpaceEmitter::beyondRow(Value v) {
  if (auto known = beyondRows.find(v); known != beyondRows.end())
    return known->second;
  std::optional<double> beyond;
  Operation *op = v.getDefiningOp();
  if (!op)
    beyond = wantsNegativeInfinity(v) ? -HUGE_VAL : 0;
  else if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    beyond = beyondRow(op->getOperand(0));
  else if (isa<arith::AddFOp, arith::SubFOp>(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) {
             return beyondRow(operand) == 0.0;
           }))
    beyond = 0;
  return beyondRows[v] = beyond;
}

Value SpaceEmitter::maskColumns(Value block, TypedAttr other) {
  auto type = cast<RankedTensorType>(block.getType());
  Value rest = constant(type, other);
  // The pair's dimension has no edge: index by columns alone.
  Value mask = isWithin(columnDim, dims.size());
  return select(broadcast(mask, type.getShape()), block, rest);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value SpaceEmitter::addNumbers(Value x, Value y) {
  return getElementTypeOrSelf(x).isInteger() ? add(x, y) : fadd(x, y);
}

Value SpaceEmitter::sumAlong(Value v, unsigned dim) {
  SmallVector<int64_t> shape(shapeOf(v));
  shape[dim] = 1;
  return reshape(
      reduce(v, dim, [&](Value x, Value y) { return addNumbers(x, y); }),
      shape);
}

/// Whether a number is `other`; none: that is not known.
static bool isNumber(TypedAttr number, std::optional<double> other) {
  if (auto real = dyn_cast<FloatAttr>(number))
    return real.getValueAsDouble() == other;
  return cast<IntegerAttr>(number).getInt() == other;
}

/// Returns a reduction's neutral elements; empty: they are not known.
SmallVector<TypedAttr>
SpaceEmitter::neutralElements(const Reduction &reduction) {
  auto [op, index] = reduction;
  if (auto rows = dyn_cast<ReduceRowsOp>(op))
    return rows.neutralElements();
  bool isMaximum = isa<SoftmaxOp>(op) && index == 0;
  return {b.getF32FloatAttr(isMaximum ? -HUGE_VALF : 0)};
}

SmallVector<Value> SpaceEmitter::combine(const Reduction &reduction,
                                         ValueRange x, ValueRange y) {
  auto [op, index] = reduction;
  auto rows = dyn_cast<ReduceRowsOp>(op);
  // A NaN that the maximum drops comes back through the exponentials.
  if (!rows && isa<SoftmaxOp>(op) && index == 0)
    return {arith::MaxNumFOp::create(b, x[0], y[0], Flags::nnan)};
  if (!rows)
    return {fadd(x[0], y[0])};
  unsigned numValues = rows.getNumResults();
  SmallVector<Value> made =
      rows.combine(b, x.take_front(numValues), y.take_front(numValues));
  if (x.size() == numValues)
    return made;
  // An element that is not there leaves the other as it is.
  Value isX = x.back(), isY = y.back();
  for (auto [value, ofX, ofY] : llvm::zip(made, x, y))
    value = select(isY, select(isX, value, ofY), ofX);
  made.push_back(either(isX, isY));
  return made;
}

/// Returns the block that a norm or a softmax combines, and its number beyond
/// the row's end.
std::pair<Value, std::optional<double>>
SpaceEmitter::normInput(Operation *op, unsigned index) {
  Value x = wide(op->getOperand(0), identity);
  std::optional<double> beyond = beyondRow(op->getOperand(0));
  if (isa<RmsNormOp>(op))
    return {fmul(x, x, contract), beyond == 0.0 ? beyond : std::nullopt};
  if (index == 0)
    return {x, beyond};
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return {exponentials(softmax),
            beyond == -HUGE_VAL ? std::optional(0.0) : std::nullopt};
  Value centred = fsub(x, meanOf(op), contract);
  return {fmul(centred, centred, contract), std::nullopt};
}

SmallVector<Value> SpaceEmitter::reductionInputs(const Reduction &reduction) {
  auto [op, index] = reduction;
  SmallVector<std::pair<Value, std::optional<double>>> inputs;
  if (!isa<ReduceRowsOp>(op))
    inputs.push_back(normInput(op, index));
  else
    for (Value v : op->getOperands())
      inputs.push_back(
          {broadcast(value(v, identity), shapeOf(identity)), beyondRow(v)});
  SmallVector<TypedAttr> neutral = neutralElements(reduction);
  bool masked = dims[columnDim].masked;
  SmallVector<Value> blocks;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto [block, beyond] = input;
    bool isMasked = masked && !neutral.empty();
    blocks.push_back(isMasked && !isNumber(neutral[i], beyond)
                         ? maskColumns(block, neutral[i])
                         : block);
  }
  if (neutral.empty() && (masked || config.loop)) {
    Value whole =
        constant(blockType(identity, b.getI1Type()), b.getBoolAttr(true));
    blocks.push_back(masked ? maskColumns(whole, b.getBoolAttr(false)) : whole);
  }
  return blocks;
}

SmallVector<Value> SpaceEmitter::nothingCombined(const Reduction &reduction) {
  SmallVector<TypedAttr> numbers = neutralElements(reduction);
  if (numbers.empty()) {
    for (Type type : reduction.first->getResultTypes())
      numbers.push_back(b.getZeroAttr(getElementTypeOrSelf(type)));
    numbers.push_back(b.getBoolAttr(false));
  }
  SmallVector<Value> blocks;
  for (TypedAttr number : numbers)
    blocks.push_back(constant(blockType(identity, number.getType()), number));
  return blocks;
}

Value SpaceEmitter::rowValue(Operation *op, unsigned part, unsigned reduction,
                             llvm::function_ref<Value(Value)> compute) {
  Value row = memoize(op, part, {}, [&] {
    return compute(reductions.at({op, reduction}).front());
  });
  return broadcast(row, shapeOf(identity));
}

/// Returns sum / D.
Value SpaceEmitter::meanOf(Operation *op) {
  return rowValue(op, 0, 0, [&](Value sum) {
    return fmul(sum, like(sum, 1.0 / rowLength(op)));
  });
}

/// Returns rsqrt(sum / D + eps).
Value SpaceEmitter::scaleOf(Operation *op, Value sum, APFloat eps) {
  Value mean = fmul(sum, like(sum, 1.0 / rowLength(op)));
  Value shifted = fadd(mean, like(mean, eps.convertToFloat()));
  return math::RsqrtOp::create(b, shifted);
}

Value SpaceEmitter::scaleOf(Operation *op, unsigned reduction, APFloat eps) {
  return rowValue(op, 1, reduction,
                  [&](Value sum) { return scaleOf(op, sum, eps); });
}

/// Returns exp(x - max), which both the sum and the result need.
Value SpaceEmitter::exponentials(SoftmaxOp op) {
  return memoize(op.getOperation(), 0, identity, [&]() -> Value {
    Value x = wide(op.getX(), identity);
    Value max = rowValue(op, 0, 0, [](Value reduced) { return reduced; });
    Value shifted = fsub(x, max);
    // At most 1, so results below the normal numbers may be flushed.
    return math::Exp2Op::create(b, fmul(shifted, like(x, log2e)), Flags::afn);
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
    return constant(blockType(mapping, element),
                    cast<TypedAttr>(elements.getSplatValue<Attribute>()));
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
    return reductions.at({op, 0})[cast<OpResult>(v).getResultNumber()];
  if (isRowOp(op))
    return computeRowOp(op);
  return elementwise(op, shapeOf(mapping),
                     [&](Value v) { return value(v, mapping); });
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
    Value inverse =
        rowValue(op, 1, 1, [&](Value sum) { return fdiv(like(sum, 1), sum); });
    result = mul(exponentials(softmax), inverse);
  } else if (auto swiglu = dyn_cast<SwigluOp>(op)) {
    Value x = wide(swiglu.getGate(), identity);
    // Added to 1, so small results may be flushed.
    Value e = math::Exp2Op::create(b, mul(x, like(x, -log2e)), Flags::afn);
    Value d = fadd(like(x, 1), e);
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

/// Returns x cos + partner sin, with the negative sine for the first of a pair.
Value SpaceEmitter::computeRope(RopeOp op) {
  Value x = extend(value(op.getX(), identity));
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
