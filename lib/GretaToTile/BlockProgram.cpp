//===- BlockProgram.cpp - kernels that are block programs -----------------===//
//
// The values that all emitters emit, and the tensors of block programs.
//
// Elementwise arithmetic on bf16 and on 8-bit floats (and on f16 beyond + - *
// and comparisons) is done in f32 and rounded op by op, which is the same as
// doing it in the narrow type: f32 has more than twice its digits.
//
//===----------------------------------------------------------------------===//

#include "BlockProgram.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Values that all emitters emit
//===----------------------------------------------------------------------===//

Value Emitter::i64(int64_t value) {
  return arith::ConstantIntOp::create(b, value, 64);
}

Value Emitter::large(Value i32) {
  return arith::ExtSIOp::create(
      b, tile::withElementType(i32.getType(), b.getI64Type()), i32);
}

Value Emitter::large(AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return i64(constant.getValue());
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (binary && expr.getKind() == AffineExprKind::Mul)
    return mul(large(binary.getLHS()), large(binary.getRHS()));
  if (binary && expr.getKind() == AffineExprKind::Add)
    return add(large(binary.getLHS()), large(binary.getRHS()));
  return large(scalars.get(b, expr));
}

Value Emitter::constant(RankedTensorType type, double value) {
  return numberOf(b, type, value);
}

Value Emitter::constant(RankedTensorType type, TypedAttr value) {
  return constantOf(b, type, value);
}

Value Emitter::extend(Value v) {
  if (getElementTypeOrSelf(v).isF32())
    return v;
  return arith::ExtFOp::create(b, block(shapeOf(v), b.getF32Type()), v);
}

Value Emitter::narrow(Value v, Type element, Flags flags) {
  if (getElementTypeOrSelf(v) == element)
    return v;
  arith::FastMathFlagsAttr attr;
  if (flags != Flags::none)
    attr = arith::FastMathFlagsAttr::get(b.getContext(), flags);
  return arith::TruncFOp::create(b, block(shapeOf(v), element), v, nullptr,
                                 attr);
}

/// Whether an op in f16 gives exactly the rounded result of the op in f32.
static bool isExactInF16(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::NegFOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::CmpFOp, math::AbsFOp>(op);
}

Value Emitter::elementwise(Operation *op, ArrayRef<int64_t> shape,
                           llvm::function_ref<Value(Value)> blockOf) {
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
    Value block = blockOf(operand);
    operands.map(operand, mustWiden(operand) ? extend(block) : block);
  }
  Operation *clone = b.clone(*op, operands);
  Type element = elementOf(op->getResult(0));
  bool widened = mustWiden(op->getResult(0));
  clone->getResult(0).setType(
      block(shape, widened ? Type(b.getF32Type()) : element));
  return widened ? narrow(clone->getResult(0), element) : clone->getResult(0);
}

Value Emitter::reduce(Value v, unsigned dim,
                      llvm::function_ref<Value(Value, Value)> combine) {
  auto emitCombiner = [&](OpBuilder &, Location, ValueRange x, ValueRange y) {
    return SmallVector<Value>{combine(x.front(), y.front())};
  };
  return tile::ReduceOp::create(b, v, dim, emitCombiner)->getResult(0);
}

void Emitter::addDim(Access &access, Value offset, AffineExpr stride) {
  access.offsets.push_back(offset ? offset : i32(0));
  auto constant = dyn_cast<AffineConstantExpr>(stride);
  access.strides.push_back(constant ? constant.getValue()
                                    : ShapedType::kDynamic);
  if (!constant)
    access.dynamicStrides.push_back(scalars.get(b, stride));
}

tile::LoadOp Emitter::load(RankedTensorType type, Value pointer,
                           const Access &a, Value other) {
  auto loaded =
      tile::LoadOp::create(b, type, pointer, a.offsets, a.dynamicStrides,
                           a.bounds, other, a.strides, a.bounded, a.clamped);
  if (llvm::any_of(a.runs, [](int64_t run) { return run > 1; })) {
    loaded.setRuns(a.runs);
    loaded.setRunStrides(a.runStrides);
  }
  return loaded;
}

void Emitter::store(Value v, Value pointer, const Access &a) {
  tile::StoreOp::create(b, v, pointer, a.offsets, a.dynamicStrides, a.bounds,
                        a.strides, a.bounded, DenseI64ArrayAttr());
}

bool Emitter::isChecked() {
  return kernel->getParentOfType<func::FuncOp>()->hasAttr(checkedName);
}

void Emitter::check(llvm::function_ref<Value()> condition, StringRef message) {
  if (isChecked())
    tile::AssertOp::create(b, condition(), message);
}

void Emitter::checkAscending(Value index, Value count, Value most,
                             llvm::function_ref<Value(Value, int64_t)> at,
                             StringRef message) {
  OpBuilder::InsertionGuard guard(b);
  goOnIf(equal(index, i32(0)));
  loopOver(i32(0), count, 1, {}, [&](Value number, ValueRange) {
    Value begin = at(number, 0), end = at(number, 1);
    Value isFirst = equal(number, i32(0));
    Value wanted = select(isFirst, i32(0), begin);
    check(
        [&] {
          return both(
              both(equal(begin, wanted), compare(Predicate::sle, begin, end)),
              compare(Predicate::sle, end, most));
        },
        message);
    return SmallVector<Value>();
  });
}

Value Emitter::implied(Value asked, Value x) {
  Value all = splat(arith::ConstantIntOp::create(b, 1, 1), shapeOf(asked));
  return either(flip(asked, all), x);
}

Value Emitter::orLeftOut(Value isInside, Value slot) {
  Value zero = splat(i32(0), shapeOf(slot));
  Value isLeftOut = below(slot, zero);
  return either(isInside, isLeftOut);
}

void Emitter::goOnIf(Value condition) {
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
}

scf::ForOp Emitter::loopOver(
    Value from, Value to, int64_t step, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> iteration) {
  auto loop = scf::ForOp::create(b, from, to, i32(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      iteration(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return loop;
}

//===----------------------------------------------------------------------===//
// Kernels that are block programs
//===----------------------------------------------------------------------===//

BlockProgram::Tensor BlockProgram::input(Value argument) {
  unsigned number = cast<BlockArgument>(argument).getArgNumber();
  TensorLayout layout = TensorLayout::of(kernel, number);
  auto shape = cast<AffineMapAttr>(kernel.getShapes()[number]).getValue();
  Value pointer = pointers.inputs[number];
  if (layout.offset != fixed(0))
    pointer = tile::PtrAddOp::create(b, pointer, large(layout.offset));
  return {pointer, layout.strides, llvm::to_vector<4>(shape.getResults()),
          getElementTypeOrSelf(argument.getType())};
}

BlockProgram::Tensor BlockProgram::output(unsigned number,
                                          ArrayRef<AffineExpr> shape) {
  Value pointer = pointers.outputs[number];
  return {pointer, TensorLayout::contiguous(shape, kernel.getContext()).strides,
          llvm::to_vector<4>(shape),
          cast<tile::PtrType>(pointer.getType()).getElementType()};
}

Value BlockProgram::moved(Value pointer, ArrayRef<Move> moves) {
  for (auto [index, stride] : moves)
    pointer =
        tile::PtrAddOp::create(b, pointer, mul(large(index), large(stride)));
  return pointer;
}

Value BlockProgram::loadScalar(Value pointer, Value index) {
  Type element = cast<tile::PtrType>(pointer.getType()).getElementType();
  return tile::LoadScatteredOp::create(
      b, element, tile::PtrAddOp::create(b, pointer, index), Value(), Value());
}

BlockProgram::Access BlockProgram::access(ArrayRef<Dim> dims) {
  Access result;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    addDim(result, dim.offset, dim.stride);
    if (dim.bound)
      setBound(result, i, dim.bound);
  }
  return result;
}
