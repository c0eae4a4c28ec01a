//===- ExpandAtomics.cpp - the pass greta-tile-expand-atomics -------------===//
//
// In: one lane's atomics of any type. Out: those that the target has. Floats
// are exchanged as integers. Additions of floats that the target does not add
// in memory, and comparisons of 16 bits, become a loop over the word around the
// element, which is replaced unless somebody else was faster:
//
//   %guess = ptr_atomic_rmw or %word, 0
//   %word = while (%seen = %guess) {
//     %old = ptr_atomic_cas %word, %seen, %seen with its element replaced
//     condition(%old != %seen) %old
//   }
//
// The first look is an atomic, too: a load would race with the others. A
// meeting of all workgroups becomes its atomics and fences:
//
//   grid_barrier %met until 264
//     →  fence release device; barrier global
//        if first lane of the workgroup
//          fence release device
//          ptr_atomic_rmw add %met, 1
//          while ptr_atomic_rmw or %met, 0 < 264
//          fence acquire device
//        barrier global; fence acquire device
//
// A fence orders what happened before it by the atomics of its own lane alone:
// the first lane's, behind the barrier, passes on what the others wrote. Theirs
// make it available to the device, and visible to them.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Target/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEEXPANDATOMICSPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Whether the target adds such floats in memory.
static bool adds(const TargetRow &row, Type type) {
  if (row.isVulkan())
    return type.isF32() && row.hasFeature("shaderBufferFloat32AtomicAdd");
  return (type.isF32() && row.hasFeature("atomic_add_f32")) ||
         (type.isF64() && row.hasFeature("atomic_add_f64"));
}

namespace {

/// An element in the word of 32 or 64 bits around it.
class Word {
public:
  Word(Value base, Value offset, Type type, MemoryScope scope,
       ImplicitLocOpBuilder &b);
  /// Replaces the element in memory by what `build` makes of it, and gives what
  /// was there.
  Value update(llvm::function_ref<Value(OpBuilder &, Value)> build);
  /// Puts a whole word's element into memory, and gives what was there.
  Value exchange(Value element) {
    return extract(b,
                   PtrAtomicRmwOp::create(b, AtomicKind::Xchg, scope, pointer,
                                          offset, insert(b, {}, element)));
  }

private:
  Value constant(ImplicitLocOpBuilder &at, Type type, int64_t value) {
    return arith::ConstantOp::create(at, at.getIntegerAttr(type, value));
  }
  static Value cast(ImplicitLocOpBuilder &at, Type type, Value value) {
    return value.getType() == type
               ? value
               : arith::BitcastOp::create(at, type, value).getResult();
  }
  Value extract(ImplicitLocOpBuilder &at, Value word);
  Value insert(ImplicitLocOpBuilder &at, Value word, Value element);

  ImplicitLocOpBuilder &b;
  MemoryScope scope;
  Type type, bits, word;
  Value pointer, offset;
  Value shift; // of half a word
};

} // namespace

Word::Word(Value base, Value offset, Type type, MemoryScope scope,
           ImplicitLocOpBuilder &b)
    : b(b), scope(scope), type(type),
      bits(b.getIntegerType(type.getIntOrFloatBitWidth())), word(bits),
      offset(offset) {
  if (bits.isInteger(16)) {
    word = b.getI32Type();
    // The halves are told apart by bit 1 of the address.
    Value half = PtrAddOp::create(b, base, offset);
    Value odd = arith::AndIOp::create(
        b, arith::TruncIOp::create(b, word, PtrToIntOp::create(b, half)),
        constant(b, word, 2));
    shift = arith::ShLIOp::create(b, odd, constant(b, word, 3));
    Value bytes = PtrCastOp::create(b, PtrType::get(b.getI8Type()), half);
    base = PtrAddOp::create(
        b, bytes, arith::SubIOp::create(b, constant(b, word, 0), odd));
    this->offset = constant(b, word, 0);
  }
  pointer = PtrCastOp::create(b, PtrType::get(word), base);
}

Value Word::extract(ImplicitLocOpBuilder &at, Value value) {
  if (shift)
    value = arith::TruncIOp::create(at, bits,
                                    arith::ShRUIOp::create(at, value, shift));
  return cast(at, type, value);
}

Value Word::insert(ImplicitLocOpBuilder &at, Value value, Value element) {
  element = cast(at, bits, element);
  if (!shift)
    return element;
  Value ones = arith::ShLIOp::create(at, constant(at, word, 0xffff), shift);
  Value others = arith::AndIOp::create(
      at, value, arith::XOrIOp::create(at, ones, constant(at, word, -1)));
  Value placed = arith::ShLIOp::create(
      at, arith::ExtUIOp::create(at, word, element), shift);
  return arith::OrIOp::create(at, others, placed);
}

Value Word::update(llvm::function_ref<Value(OpBuilder &, Value)> build) {
  Value guess = PtrAtomicRmwOp::create(b, AtomicKind::Or, scope, pointer,
                                       offset, constant(b, word, 0));
  auto loop = scf::WhileOp::create(
      b, TypeRange{word}, ValueRange{guess},
      [&](OpBuilder &builder, Location loc, ValueRange seen) {
        ImplicitLocOpBuilder at(loc, builder);
        Value updated = build(at, extract(at, seen[0]));
        Value old = PtrAtomicCasOp::create(at, scope, pointer, offset, seen[0],
                                           insert(at, seen[0], updated));
        Value again =
            arith::CmpIOp::create(at, arith::CmpIPredicate::ne, old, seen[0]);
        scf::ConditionOp::create(at, again, old);
      },
      [](OpBuilder &builder, Location loc, ValueRange old) {
        scf::YieldOp::create(builder, loc, old);
      });
  return extract(b, loop.getResult(0));
}

/// Whoever comes looks until the others have come, too.
static void waitForArrivals(GridBarrierOp op, Value zero,
                            ImplicitLocOpBuilder &b) {
  Type type = zero.getType();
  Value until =
      arith::ConstantOp::create(b, b.getI32IntegerAttr(op.getUntil()));
  scf::WhileOp::create(
      b, TypeRange{}, ValueRange{},
      [&](OpBuilder &at, Location loc, ValueRange) {
        Value seen = PtrAtomicRmwOp::create(at, loc, type, AtomicKind::Or,
                                            MemoryScope::Device,
                                            op.getCounter(), zero, zero);
        Value waits = arith::CmpIOp::create(at, loc, arith::CmpIPredicate::ult,
                                            seen, until);
        scf::ConditionOp::create(at, loc, waits, ValueRange());
      },
      [](OpBuilder &at, Location loc, ValueRange) {
        scf::YieldOp::create(at, loc);
      });
}

/// Who comes last leaves zero to the next launch: nobody looks any more.
static void leave(GridBarrierOp op, Value before, Value zero,
                  ImplicitLocOpBuilder &b) {
  Value all =
      arith::ConstantOp::create(b, b.getI32IntegerAttr(op.getUntil() - 1));
  Value isLast =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, before, all);
  scf::IfOp::create(b, isLast, [&](OpBuilder &at, Location loc) {
    PtrAtomicRmwOp::create(at, loc, zero.getType(), AtomicKind::Xchg,
                           MemoryScope::Device, op.getCounter(), zero, zero);
    scf::YieldOp::create(at, loc);
  });
}

static void expand(GridBarrierOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto barrier = [&] { BarrierOp::create(b, /*global=*/true); };
  if (!op.getLast()) {
    FenceOp::create(b, MemoryOrder::Release, MemoryScope::Device);
    barrier();
  }
  auto constant = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  Value zero = constant(0);
  Value number = arith::OrIOp::create(b, LaneIdOp::create(b, b.getI32Type()),
                                      WaveIdOp::create(b, b.getI32Type()));
  Value isFirst =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, zero);
  Value one = constant(1);
  scf::IfOp::create(b, isFirst, [&](OpBuilder &at, Location loc) {
    ImplicitLocOpBuilder inner(loc, at);
    if (!op.getLast())
      FenceOp::create(inner, MemoryOrder::Release, MemoryScope::Device);
    Value before =
        PtrAtomicRmwOp::create(inner, zero.getType(), AtomicKind::Add,
                               MemoryScope::Device, op.getCounter(), zero, one);
    if (op.getLast()) {
      leave(op, before, zero, inner);
    } else {
      waitForArrivals(op, zero, inner);
      FenceOp::create(inner, MemoryOrder::Acquire, MemoryScope::Device);
    }
    scf::YieldOp::create(inner);
  });
  if (!op.getLast()) {
    barrier();
    FenceOp::create(b, MemoryOrder::Acquire, MemoryScope::Device);
  }
  op.erase();
}

namespace {
struct ExpandAtomics
    : greta::impl::GretaTileExpandAtomicsPassBase<ExpandAtomics> {
  using GretaTileExpandAtomicsPassBase::GretaTileExpandAtomicsPassBase;
  void runOnOperation() override {
    const TargetRow *row = rowOfTarget(getOperation(), target);
    if (!row)
      return signalPassFailure();
    for (auto barrier : llvm::make_early_inc_range(
             getOperation().getBody().getOps<GridBarrierOp>()))
      expand(barrier);
    getOperation()->walk([&](Operation *op) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Value old;
      if (auto rmw = dyn_cast<PtrAtomicRmwOp>(op)) {
        Value value = rmw.getValue();
        bool exchanges = rmw.getKind() == AtomicKind::Xchg &&
                         isa<FloatType>(value.getType());
        if (!exchanges &&
            (rmw.getKind() != AtomicKind::FAdd || adds(*row, value.getType())))
          return;
        Word word(rmw.getBase(), rmw.getOffset(), value.getType(),
                  rmw.getScope(), b);
        old = exchanges ? word.exchange(value)
                        : word.update([&](OpBuilder &at, Value seen) -> Value {
                            return arith::AddFOp::create(at, rmw.getLoc(), seen,
                                                         value);
                          });
      } else if (auto cas = dyn_cast<PtrAtomicCasOp>(op)) {
        Value value = cas.getValue();
        if (!value.getType().isInteger(16))
          return;
        Word word(cas.getBase(), cas.getOffset(), value.getType(),
                  cas.getScope(), b);
        old = word.update([&](OpBuilder &at, Value seen) -> Value {
          Value same =
              arith::CmpIOp::create(at, cas.getLoc(), arith::CmpIPredicate::eq,
                                    seen, cas.getExpected());
          return arith::SelectOp::create(at, cas.getLoc(), same, value, seen);
        });
      } else {
        return;
      }
      op->getResult(0).replaceAllUsesWith(old);
      op->erase();
    });
  }
};
} // namespace
