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
// Nobody but HIP's drivers promises that all workgroups of such a kernel run at
// a time. Elsewhere its last argument says whether a launch only tries:
//
//   rest
//     →  if %trial == 0
//          rest
//        else
//          if first lane of the workgroup
//            ptr_atomic_rmw add %met, 1
//            up to 131072 times (%looks) while %seen <= 132:
//              %seen = ptr_atomic_rmw or %met, 0
//          barrier
//          if first lane, and %seen != 132 or %looks != 131072
//            ptr_atomic_rmw or %met, 1 << 31
//
// The word holds 132, the number of workgroups, behind a trial in which each
// has seen all others come and nobody gave up. Who gives up frees the others. A
// driver that ends long loops, as llvmpipe does, would end waits, and is found
// by the number of looks. The barrier keeps the other waves: AMD's chips free a
// wave's registers when it ends, and would have places for more workgroups than
// in any other launch.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "greta/Interface/Targets.h"
#include "greta/Passes.h"
#include "greta/Target/Target.h"
#include "greta/Tile/Workgroup.h"

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
class Word : Arithmetic {
public:
  Word(Value base, Value offset, Type type, MemoryScope scope,
       ImplicitLocOpBuilder &b);
  /// Replaces the element in memory by what `build` makes of it, and gives what
  /// was there.
  Value update(llvm::function_ref<Value(Value)> build);
  /// Puts a whole word's element into memory, and gives what was there.
  Value exchange(Value element) {
    return extract(PtrAtomicRmwOp::create(b, AtomicKind::Xchg, scope, pointer,
                                          offset, insert({}, element)));
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, b.getIntegerAttr(word, value));
  }
  Value cast(Type type, Value value) {
    return value.getType() == type
               ? value
               : arith::BitcastOp::create(b, type, value).getResult();
  }
  Value extract(Value word);
  Value insert(Value word, Value element);

  MemoryScope scope;
  Type type, bits, word;
  Value pointer, offset;
  Value shift; // of half a word
};

} // namespace

Word::Word(Value base, Value offset, Type type, MemoryScope scope,
           ImplicitLocOpBuilder &b)
    : Arithmetic{b}, scope(scope), type(type),
      bits(b.getIntegerType(type.getIntOrFloatBitWidth())), word(bits),
      offset(offset) {
  if (bits.isInteger(16)) {
    word = b.getI32Type();
    // The halves are told apart by bit 1 of the address.
    Value half = PtrAddOp::create(b, base, offset);
    Value odd =
        both(arith::TruncIOp::create(b, word, PtrToIntOp::create(b, half)),
             constant(2));
    shift = shl(odd, constant(3));
    Value bytes = PtrCastOp::create(b, PtrType::get(b.getI8Type()), half);
    base = PtrAddOp::create(b, bytes, sub(constant(0), odd));
    this->offset = constant(0);
  }
  pointer = PtrCastOp::create(b, PtrType::get(word), base);
}

Value Word::extract(Value value) {
  if (shift)
    value = arith::TruncIOp::create(b, bits, shr(value, shift));
  return cast(type, value);
}

Value Word::insert(Value value, Value element) {
  element = cast(bits, element);
  if (!shift)
    return element;
  Value ones = shl(constant(0xffff), shift);
  Value others = both(value, flip(ones, constant(-1)));
  Value placed = shl(arith::ExtUIOp::create(b, word, element), shift);
  return either(others, placed);
}

Value Word::update(llvm::function_ref<Value(Value)> build) {
  Value guess = PtrAtomicRmwOp::create(b, AtomicKind::Or, scope, pointer,
                                       offset, constant(0));
  auto loop = scf::WhileOp::create(
      b, TypeRange{word}, ValueRange{guess},
      [&](OpBuilder &, Location, ValueRange seen) {
        Value updated = build(extract(seen[0]));
        Value old = PtrAtomicCasOp::create(b, scope, pointer, offset, seen[0],
                                           insert(seen[0], updated));
        scf::ConditionOp::create(b, differ(old, seen[0]), old);
      },
      [&](OpBuilder &, Location, ValueRange old) {
        scf::YieldOp::create(b, old);
      });
  return extract(loop.getResult(0));
}

/// How often a workgroup looks for the others: some 0.1 s.
static int64_t looksOf(const TargetRow &row) {
  return row.most.iterations ? row.most.iterations / 2 : 1 << 17;
}

/// Whether the first lane, which calls this, has to give up, because it did not
/// see all of so many workgroups, or not for so long.
static Value emitLooks(Value counter, int64_t workgroups, const TargetRow &row,
                       ImplicitLocOpBuilder &b) {
  Arithmetic a{b};
  Value all = a.i32(workgroups), most = a.i32(looksOf(row)), zero = a.i32(0),
        one = a.i32(1);
  auto count = [&](AtomicKind kind, Value by) {
    return updateCount(b, kind, counter, by);
  };
  count(AtomicKind::Add, one);
  Type type = b.getI32Type();
  auto loop = scf::WhileOp::create(
      b, TypeRange{type, type}, ValueRange{zero},
      [&](OpBuilder &, Location, ValueRange looks) {
        Value seen = count(AtomicKind::Or, zero);
        Value next = a.add(looks[0], one);
        Value isOn = a.both(a.compare(arith::CmpIPredicate::ult, next, most),
                            a.compare(arith::CmpIPredicate::ule, seen, all));
        scf::ConditionOp::create(b, isOn, ValueRange{seen, next});
      },
      [&](OpBuilder &, Location, ValueRange values) {
        scf::YieldOp::create(b, values[1]);
      });
  return a.either(a.differ(loop.getResult(0), all),
                  a.differ(loop.getResult(1), most));
}

/// Whether all of so many workgroups run at a time.
static void emitTrial(Value counter, int64_t workgroups, const TargetRow &row,
                      ImplicitLocOpBuilder &b) {
  Arithmetic a{b};
  auto givesUp = scf::IfOp::create(
      b, isFirstLane(b),
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(b, emitLooks(counter, workgroups, row, b));
      },
      [&](OpBuilder &, Location) {
        Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
        scf::YieldOp::create(b, no);
      });
  BarrierOp::create(b);
  emitIf(b, givesUp.getResult(0),
         [&] { updateCount(b, AtomicKind::Or, counter, a.i32(INT32_MIN)); });
}

/// Takes the kernel into a branch, beside which the trial is.
static void addTrial(FuncOp kernel, Value counter, int64_t workgroups,
                     const TargetRow &row) {
  Block &entry = kernel.getBody().front();
  SmallVector<Operation *> rest;
  for (Operation &op : entry.without_terminator())
    if (!isa<SharedAllocOp>(op)) // stands in the entry block
      rest.push_back(&op);
  ImplicitLocOpBuilder b(kernel.getLoc(), entry.getTerminator());
  Arithmetic a{b};
  auto branch = scf::IfOp::create(
      b, a.equal(entry.getArguments().back(), a.i32(0)),
      [&](OpBuilder &, Location) { scf::YieldOp::create(b); },
      [&](OpBuilder &, Location) {
        emitTrial(counter, workgroups, row, b);
        scf::YieldOp::create(b);
      });
  for (Operation *op : rest)
    op->moveBefore(branch.thenBlock()->getTerminator());
}

static void expand(GridBarrierOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Arithmetic a{b};
  Value zero = a.i32(0), one = a.i32(1);
  auto count = [&](AtomicKind kind, Value by) {
    return updateCount(b, kind, op.getCounter(), by);
  };
  if (op.getLast()) {
    // Who comes last leaves zero to the next launch: nobody looks any more.
    emitIf(b, isFirstLane(b), [&] {
      Value before = count(AtomicKind::Add, one);
      emitIf(b, a.equal(before, a.i32(op.getUntil() - 1)),
             [&] { count(AtomicKind::Xchg, zero); });
    });
    op.erase();
    return;
  }
  meetForAtomics(b, [&] {
    // Whoever comes looks until the others have come, too.
    count(AtomicKind::Add, one);
    Value until = a.i32(op.getUntil());
    scf::WhileOp::create(
        b, TypeRange{}, ValueRange{},
        [&](OpBuilder &, Location, ValueRange) {
          Value waits = a.compare(arith::CmpIPredicate::ult,
                                  count(AtomicKind::Or, zero), until);
          scf::ConditionOp::create(b, waits, ValueRange());
        },
        [&](OpBuilder &, Location, ValueRange) { scf::YieldOp::create(b); });
  });
  FenceOp::create(b, MemoryOrder::Acquire, MemoryScope::Device);
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
    if (failed(expandBarriers(*row)))
      return signalPassFailure();
    getOperation()->walk([&](Operation *op) {
      ImplicitLocOpBuilder b(op->getLoc(), op);
      Arithmetic a{b};
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
        old = exchanges ? word.exchange(value) : word.update([&](Value seen) {
          return a.fadd(seen, value);
        });
      } else if (auto cas = dyn_cast<PtrAtomicCasOp>(op)) {
        Value value = cas.getValue();
        if (!value.getType().isInteger(16))
          return;
        Word word(cas.getBase(), cas.getOffset(), value.getType(),
                  cas.getScope(), b);
        old = word.update([&](Value seen) {
          return a.select(a.equal(seen, cas.getExpected()), value, seen);
        });
      } else {
        return;
      }
      op->getResult(0).replaceAllUsesWith(old);
      op->erase();
    });
  }

private:
  LogicalResult expandBarriers(const TargetRow &row) {
    FuncOp kernel = getOperation();
    auto barriers = llvm::to_vector(kernel.getBody().getOps<GridBarrierOp>());
    if (barriers.empty())
      return success();
    if (!kernel.getArgumentTypes().back().isInteger(32))
      return kernel.emitOpError("has barriers over the grid, and its last "
                                "argument, which says whether a launch only "
                                "tries, is no i32");
    Value counter = barriers.front().getCounter();
    int64_t workgroups = barriers.front().getUntil();
    // A trial is beside all other values.
    if (!row.isHip() && !isa<BlockArgument>(counter))
      return barriers.front().emitOpError(
          "counts in a word that is no argument of the kernel");
    for (GridBarrierOp barrier : barriers)
      expand(barrier);
    if (!row.isHip())
      addTrial(kernel, counter, workgroups, row);
    return success();
  }
};
} // namespace
