//===- ExpandShared.cpp - places in shared memory -------------------------===//
//
// In: arrays in shared memory whose elements are what a lane moves at a time.
// Out: arrays of what the target's shared memory is made of, with places
// counted in that, so that an emitter has nothing left to compute.
//
// On AMD these are bytes, and an access takes as many as its type has. The
// factor goes down to where it meets constants and other factors:
//
//   %i = %row * 9 + (%column xor 3)
//   %v = shared_load %array[%i] : shared<144 x vector<8xf16>>
//     →  %i = %row * 144 + (%column * 16 xor 48)
//        %v = shared_load %array[%i] : shared<2304 x i8> as vector<8xf16>
//
// In SPIR-V a variable has one type. Vectors of one, two or four words are
// those words; of other vectors each element has a place of its own. A truth
// value is a word, bf16 is its bits.
//
//   %v = shared_load %array[%i] : shared<144 x vector<8xf16>>
//     →  %w = shared_load %array[%i] : shared<144 x vector<4xi32>>
//        %v = vector.bitcast %w : vector<4xi32> to vector<8xf16>
//
//===----------------------------------------------------------------------===//

#include "Expand.h"
#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// AMD's shared memory is bytes; SPIR-V's, arrays of a type.
static bool sharesBytes(const TargetRow &row) { return row.isHip(); }

namespace {

/// The form of an element of an array: `count` entries of a type.
struct Form {
  Type entry;
  int64_t count;
};

class SharedExpander {
public:
  explicit SharedExpander(const TargetRow &row) : row(row) {}
  /// An array, or a stage of one, whose elements have that form.
  void expand(Value array, Form form);
  Form formOf(Type element) const;

private:
  void expandAccess(Operation *access, Form form);
  void expandLoad(SharedLoadOp op, Form form);
  void expandStore(SharedStoreOp op, Form form);
  Value scaled(Value index, int64_t factor);

  const TargetRow &row;
  llvm::DenseMap<std::pair<Value, int64_t>, Value> products;
};

} // namespace

Form SharedExpander::formOf(Type type) const {
  MLIRContext *context = type.getContext();
  auto integer = [&](unsigned bits) -> Type {
    return IntegerType::get(context, bits);
  };
  auto vector = dyn_cast<VectorType>(type);
  Type element = getElementTypeOrSelf(type);
  int64_t count = vector ? vector.getNumElements() : 1;
  int64_t bits = element.getIntOrFloatBitWidth();
  if (sharesBytes(row))
    return {integer(8), static_cast<int64_t>(llvm::PowerOf2Ceil(
                            llvm::divideCeil(bits * count, 8)))};
  if (count > 1 && bits > 1 &&
      llvm::is_contained({32, 64, 128}, bits * count)) {
    Type word = bits == 32 ? element : integer(32);
    int64_t words = bits * count / 32;
    return {words > 1 ? VectorType::get(words, word) : word, 1};
  }
  return {bits == 1          ? integer(32)
          : element.isBF16() ? integer(16)
                             : element,
          count};
}

/// A value in another form of as many bits.
static Value reinterpret(Value value, Type type, ImplicitLocOpBuilder &b) {
  auto from = dyn_cast<VectorType>(value.getType());
  auto to = dyn_cast<VectorType>(type);
  if (value.getType() == type)
    return value;
  if (value.getType().isInteger(1))
    return arith::ExtUIOp::create(b, type, value);
  if (type.isInteger(1)) {
    Value zero = arith::ConstantIntOp::create(b, value.getType(), 0);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, value, zero);
  }
  if (from && to)
    return vector::BitCastOp::create(b, to, value);
  if (from)
    return vector::ExtractOp::create(
        b, reinterpret(value, VectorType::get(1, type), b), 0);
  if (to)
    return reinterpret(vector::FromElementsOp::create(
                           b, VectorType::get(1, value.getType()), value),
                       to, b);
  return arith::BitcastOp::create(b, type, value);
}

/// The place of an access's entry `i`.
template <typename OpT>
static Value place(OpT access, int64_t i, ImplicitLocOpBuilder &b) {
  Value first = access.getIndex();
  if (!i)
    return first;
  return arith::AddIOp::create(
      b, first, arith::ConstantIntOp::create(b, first.getType(), i));
}

/// `index * factor`. Sums pass the factor on to their operands, those of bits
/// where it is a power of two.
Value SharedExpander::scaled(Value index, int64_t factor) {
  if (factor == 1)
    return index;
  if (Value known = products.lookup({index, factor}))
    return known;
  ImplicitLocOpBuilder b(index.getLoc(), index.getContext());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, index.getType(), value);
  };
  auto times = [&](Value value, int64_t number) -> Value {
    b.setInsertionPointAfterValue(index);
    return arith::MulIOp::create(b, value, constant(number * factor));
  };
  APInt number;
  Value product =
      isa<BlockArgument>(index)
          ? times(index, 1)
          : llvm::TypeSwitch<Operation *, Value>(index.getDefiningOp())
                .Case<arith::AddIOp, arith::XOrIOp>([&](auto sum) -> Value {
                  if (isa<arith::XOrIOp>(sum) && !llvm::isPowerOf2_64(factor))
                    return times(index, 1);
                  Value x = scaled(sum.getLhs(), factor);
                  Value y = scaled(sum.getRhs(), factor);
                  b.setInsertionPointAfter(sum);
                  return decltype(sum)::create(b, x, y);
                })
                .Case([&](arith::MulIOp op) {
                  return matchPattern(op.getRhs(), m_ConstantInt(&number))
                             ? times(op.getLhs(), number.getSExtValue())
                             : times(index, 1);
                })
                .Case([&](arith::ConstantIntOp op) {
                  b.setInsertionPointAfter(op);
                  return constant(op.value() * factor);
                })
                .Default([&](Operation *) { return times(index, 1); });
  return products[{index, factor}] = product;
}

void SharedExpander::expandLoad(SharedLoadOp op, Form form) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type type = op.getResult().getType();
  Type part = form.count > 1 ? getElementTypeOrSelf(type) : type;
  SmallVector<Value> parts;
  for (int64_t i = 0; i < form.count; ++i)
    parts.push_back(reinterpret(
        SharedLoadOp::create(b, form.entry, op.getArray(), place(op, i, b)),
        part, b));
  op.replaceAllUsesWith(
      form.count > 1
          ? vector::FromElementsOp::create(b, type, parts).getResult()
          : parts.front());
  op.erase();
}

void SharedExpander::expandStore(SharedStoreOp op, Form form) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  for (int64_t i = 0; i < form.count; ++i) {
    Value part = op.getValue();
    if (form.count > 1)
      part = vector::ExtractOp::create(b, part, i);
    SharedStoreOp::create(b, reinterpret(part, form.entry, b), op.getArray(),
                          place(op, i, b));
  }
  op.erase();
}

void SharedExpander::expandAccess(Operation *access, Form form) {
  llvm::TypeSwitch<Operation *>(access)
      .Case<SharedLoadOp, SharedStoreOp, SharedAddOp, PtrLoadSharedOp,
            FragmentLoadOp, FragmentStoreOp>([&](auto op) {
        op.getIndexMutable().assign(scaled(op.getIndex(), form.count));
      });
  llvm::TypeSwitch<Operation *>(access).Case<FragmentLoadOp, FragmentStoreOp>(
      [&](auto op) { op.setStride(op.getStride() * form.count); });
  if (sharesBytes(row)) // where an access takes any type
    return;
  llvm::TypeSwitch<Operation *>(access)
      .Case([&](SharedLoadOp op) { expandLoad(op, form); })
      .Case([&](SharedStoreOp op) { expandStore(op, form); });
}

void SharedExpander::expand(Value array, Form form) {
  for (Operation *user : llvm::make_early_inc_range(array.getUsers())) {
    if (auto stage = dyn_cast<SharedStageOp>(user))
      expand(stage, form);
    else
      expandAccess(user, form);
  }
  int64_t size = cast<SharedType>(array.getType()).getSize();
  array.setType(SharedType::get(size * form.count, form.entry));
}

void greta::expandShared(Operation *kernel, const TargetRow &row) {
  SharedExpander expander(row);
  kernel->walk([&](SharedAllocOp alloc) {
    Type element = alloc.getResult().getType().getElementType();
    expander.expand(alloc, expander.formOf(element));
  });
}
