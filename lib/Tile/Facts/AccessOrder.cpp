//===- AccessOrder.cpp - which accesses wait for which --------------------===//
//
// Pointers that come from one argument meet unless their sums say otherwise.
// Pointers from two arguments meet if the arguments may be one buffer
// (no `greta.noalias`); then element i of one block is taken for element i of
// the other, as in a kernel that works in place.
//
// The flow analysis carries the accesses that some lanes may still be at. An
// access that conflicts with one of them waits, and the barrier ends them all.
// Loops are visited until nothing new comes round.
//
//===----------------------------------------------------------------------===//

#include "greta/Tile/AccessOrder.h"
#include "GretaTile/LinearAddress.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Sums of more terms stay one unknown number.
static constexpr size_t mostTerms = 16;
/// Distances beyond it, in bytes, are not compared.
static constexpr int64_t mostDistance = int64_t(1) << 40;

static int64_t bytesOf(Type element) {
  return isa<PtrType>(element) ? 8 : bytesInMemory(element);
}

static int64_t pointeeBytes(Value pointers) {
  return bytesOf(getPointee(getElementTypeOrSelf(pointers.getType())));
}

/// Signed arithmetic that wraps, as addresses do.
static int64_t times(int64_t x, int64_t y) { return uint64_t(x) * uint64_t(y); }

bool AccessOrder::Term::operator<(const Term &other) const {
  auto key = [](const Term &t) {
    std::vector<const void *> all;
    for (Value factor : t.factors)
      all.push_back(factor.getAsOpaquePointer());
    return std::tuple(t.dim, t.block.getAsOpaquePointer(), std::move(all));
  };
  return key(*this) < key(other);
}

bool AccessOrder::Term::operator==(const Term &other) const {
  return dim == other.dim && block == other.block && factors == other.factors;
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

void AccessOrder::add(Sum &to, const Sum &sum, int64_t factor) {
  for (auto &[term, constant] : sum) {
    int64_t &all = to[term];
    all = uint64_t(all) + uint64_t(times(constant, factor));
    if (!all)
      to.erase(term);
  }
}

/// At most one of them varies along a dimension, or has blocks.
AccessOrder::Sum AccessOrder::product(const Sum &x, const Sum &y) {
  Sum result;
  for (auto &[a, constantA] : x)
    for (auto &[b, constantB] : y) {
      Term term = a;
      llvm::append_range(term.factors, b.factors);
      llvm::sort(term.factors, [](Value p, Value q) {
        return p.getAsOpaquePointer() < q.getAsOpaquePointer();
      });
      term.dim = std::max(a.dim, b.dim);
      if (!term.block)
        term.block = b.block;
      add(result, {{term, times(constantA, constantB)}}, 1);
    }
  return result;
}

/// Offsets of accessed elements do not overflow (ptr_add), so an extended sum
/// is the sum of what is extended.
AccessOrder::Sum AccessOrder::sumOf(Value scalar) {
  if (auto known = sums.find(scalar); known != sums.end())
    return known->second;
  APInt constant;
  Operation *op = scalar.getDefiningOp();
  Sum sum;
  if (matchPattern(scalar, m_ConstantInt(&constant))) {
    if (!constant.isZero())
      sum[{}] = constant.getSExtValue();
  } else if (isa_and_nonnull<arith::ExtSIOp>(op) &&
             !op->getOperand(0).getType().isInteger(1)) {
    sum = sumOf(op->getOperand(0));
  } else if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    sum = sumOf(op->getOperand(0));
    add(sum, sumOf(op->getOperand(1)), isa<arith::AddIOp>(op) ? 1 : -1);
  } else if (isa_and_nonnull<arith::MulIOp>(op)) {
    Sum x = sumOf(op->getOperand(0)), y = sumOf(op->getOperand(1));
    if (x.size() * y.size() <= mostTerms)
      sum = product(x, y);
    else
      sum[{{scalar}, -1, {}}] = 1;
  } else {
    sum[{{scalar}, -1, {}}] = 1;
  }
  bool isLarge = sum.size() > mostTerms || llvm::any_of(sum, [](auto &entry) {
                   return entry.first.factors.size() > 8;
                 });
  if (isLarge) {
    sum.clear();
    sum[{{scalar}, -1, {}}] = 1;
  }
  return sums[scalar] = sum;
}

/// Collects the origins of a pointer: arguments, and pointers made otherwise.
static void collectRoots(Value pointer, llvm::SmallSetVector<Value, 1> &roots) {
  llvm::SetVector<Value> seen;
  seen.insert(pointer);
  for (size_t i = 0; i < seen.size(); ++i) {
    Value value = seen[i];
    Operation *op = value.getDefiningOp();
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *parent = argument.getOwner()->getParentOp();
      unsigned number = argument.getArgNumber();
      if (auto loop = dyn_cast<scf::ForOp>(parent)) {
        seen.insert(loop.getTiedLoopInit(argument)->get());
        seen.insert(loop.getTiedLoopYieldedValue(argument)->get());
      } else if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
        if (argument.getOwner() == loop.getBeforeBody()) {
          seen.insert(loop.getInits()[number]);
          seen.insert(loop.getYieldOp()->getOperand(number));
        } else {
          seen.insert(loop.getConditionOp().getArgs()[number]);
        }
      } else {
        roots.insert(value);
      }
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      seen.insert(
          loop.getRegionIterArgs()[cast<OpResult>(value).getResultNumber()]);
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      seen.insert(loop.getConditionOp()
                      .getArgs()[cast<OpResult>(value).getResultNumber()]);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      seen.insert(branch.thenYield().getOperand(number));
      seen.insert(branch.elseYield().getOperand(number));
    } else {
      // Ops on pointers choose among those that they have.
      bool isMade = false;
      if (isMemoryEffectFree(op))
        for (Value operand : op->getOperands())
          if (isa<PtrType>(getElementTypeOrSelf(operand.getType()))) {
            seen.insert(operand);
            isMade = true;
          }
      if (!isMade)
        roots.insert(value);
    }
  }
}

/// The pointer, or the block of pointers, of an access.
static Value pointersOf(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([](LoadOp o) { return o.getBase(); })
      .Case([](StoreOp o) { return o.getBase(); })
      .Case<LoadScatteredOp, StoreScatteredOp, AtomicRmwOp, AtomicCasOp>(
          [](auto o) { return o.getPointers(); })
      .Default([](Operation *) { return Value(); });
}

/// offsets[d] * strides[d] and index * stride along each dimension.
template <typename OpT>
static void
forEachStride(OpT op,
              llvm::function_ref<void(unsigned, Value, Value, int64_t)> visit) {
  unsigned next = 0;
  for (auto [dim, stride] : llvm::enumerate(op.getStrides())) {
    Value dynamic;
    if (stride == ShapedType::kDynamic)
      dynamic = op.getDynamicStrides()[next++];
    visit(dim, op.getOffsets()[dim], dynamic, stride);
  }
}

void AccessOrder::setPlace(Access &access) {
  if (access.roots.size() != 1)
    return;
  Operation *op = access.op;
  Sum place;
  Value pointer = pointersOf(op);
  auto addStrides = [&](auto strided) {
    forEachStride(strided, [&](unsigned dim, Value offset, Value dynamic,
                               int64_t stride) {
      Sum scale = dynamic ? sumOf(dynamic) : Sum();
      if (!dynamic && stride)
        scale[{}] = stride;
      Sum index = sumOf(offset);
      add(index, {{{{}, int64_t(dim), {}}, 1}}, 1);
      add(place, product(scale, index), bytesOf(access.element));
    });
  };
  if (auto load = dyn_cast<LoadOp>(op)) {
    // Neighbours that share an element are not told apart here.
    if (load.getDivisors() || load.getRuns() || load.getClamped())
      return;
    addStrides(load);
  } else if (auto store = dyn_cast<StoreOp>(op)) {
    addStrides(store);
  } else if (isa<RankedTensorType>(pointer.getType())) {
    LinearAddress address = getLinearAddress(pointer);
    if (!address.hasUniformBase())
      return;
    for (const LinearTerm &term : address.terms) {
      Sum sum = {{{{}, term.dim, term.block}, term.constant}};
      for (Value factor : term.factors)
        sum = product(sum, sumOf(factor));
      add(place, sum, pointeeBytes(pointer));
    }
    pointer = address.base;
  }
  while (pointer != access.roots.front()) {
    Operation *made = pointer.getDefiningOp();
    if (auto step = dyn_cast_or_null<PtrAddOp>(made))
      add(place, sumOf(step.getOffset()), pointeeBytes(step.getBase()));
    else if (!isa_and_nonnull<PtrCastOp>(made))
      return;
    pointer = made->getOperand(0);
  }
  if (place.size() <= mostTerms)
    access.place = std::move(place);
}

/// The argument with a kernel's log, its last pointer; null: it has none.
static Value logOf(FuncOp kernel) {
  Value log;
  if (kernel->hasAttr(logName))
    for (BlockArgument argument : kernel.getArguments())
      if (isa<PtrType>(argument.getType()))
        log = argument;
  return log;
}

void AccessOrder::addAccess(Operation *op) {
  Value pointers = pointersOf(op);
  if (!pointers)
    return;
  bool isAtomic = isa<AtomicRmwOp, AtomicCasOp>(op);
  Access access{op,
                isAtomic || isa<LoadOp, LoadScatteredOp>(op),
                isAtomic || isa<StoreOp, StoreScatteredOp>(op),
                isAtomic,
                getPointee(getElementTypeOrSelf(pointers.getType())),
                {},
                {},
                {},
                std::nullopt};
  Value block = pointers;
  if (auto load = dyn_cast<LoadOp>(op))
    block = load.getResult();
  else if (auto store = dyn_cast<StoreOp>(op))
    block = store.getValue();
  if (auto type = dyn_cast<RankedTensorType>(block.getType())) {
    llvm::append_range(access.shape, type.getShape());
    access.layout = getLayoutOf(type);
  }
  collectRoots(pointers, access.roots);
  // Each record of the log is in words of its own.
  if (access.roots.size() == 1 && access.roots.front() == logOf(kernel))
    return;
  setPlace(access);
  accesses.insert({op, std::move(access)});
}

AccessOrder::AccessOrder(FuncOp kernel, const Facts &facts)
    : kernel(kernel), facts(facts) {
  kernel.getBody().walk([&](Operation *op) { addAccess(op); });
}

//===----------------------------------------------------------------------===//
// Pairs of accesses
//===----------------------------------------------------------------------===//

static bool promises(Value root, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(root);
  auto kernel = argument ? dyn_cast<FuncOp>(argument.getOwner()->getParentOp())
                         : FuncOp();
  return kernel && kernel.getArgAttr(argument.getArgNumber(), name);
}

static bool isFixedIn(Value value, Operation *loop) {
  return !value || !loop ||
         cast<LoopLikeOpInterface>(loop).isDefinedOutsideOfLoop(value);
}

/// Whether an access addresses other elements in each iteration of a loop that
/// the other access is not in.
static bool variesAlone(Operation *access, Operation *other) {
  for (Operation *loop = access->getParentOp(); !loop->isAncestor(other);
       loop = loop->getParentOp()) {
    if (!isa<LoopLikeOpInterface>(loop))
      continue;
    bool isFixed = isFixedIn(pointersOf(access), loop);
    if (auto load = dyn_cast<LoadOp>(access))
      for (Value offset : load.getOffsets())
        isFixed &= isFixedIn(offset, loop);
    else if (auto store = dyn_cast<StoreOp>(access))
      for (Value offset : store.getOffsets())
        isFixed &= isFixedIn(offset, loop);
    if (!isFixed)
      return true;
  }
  return false;
}

bool AccessOrder::shareRoot(const Access &a, const Access &b) {
  return llvm::any_of(a.roots,
                      [&](Value root) { return b.roots.contains(root); });
}

/// Whether accesses through different pointers are those of a kernel that works
/// in place: one loads a block and the other stores the same block.
bool AccessOrder::mayMeetElsewhere(const Access &a, const Access &b) const {
  auto isAlone = [](Value root) {
    return promises(root, noaliasName) || promises(root, readonlyName);
  };
  if (llvm::all_of(a.roots, isAlone) || llvm::all_of(b.roots, isAlone))
    return false;
  return a.element == b.element && a.shape == b.shape &&
         !variesAlone(a.op, b.op) && !variesAlone(b.op, a.op);
}

/// Whether two blocks have no byte in common; none where nobody knows how far
/// one begins behind the other.
std::optional<bool> AccessOrder::areDisjoint(const Access &a, const Access &b,
                                             Operation *crossed) const {
  if (!a.place || !b.place)
    return std::nullopt;
  Sum difference = *a.place;
  add(difference, *b.place, -1);
  int64_t low[2] = {0, 0}, high[2] = {0, 0};
  const Access *sides[] = {&a, &b};
  for (auto [side, access] : llvm::enumerate(sides)) {
    for (auto &[term, constant] : *access->place) {
      if (term.dim < 0 && !term.block) {
        for (Value factor : term.factors)
          if (!isFixedIn(factor, crossed))
            return std::nullopt;
        continue;
      }
      if (term.block || !term.factors.empty() ||
          std::abs(constant) > mostDistance)
        return std::nullopt;
      int64_t end = constant * (access->shape[term.dim] - 1);
      (end < 0 ? low : high)[side] += end;
      difference.erase(term);
    }
    high[side] += bytesOf(access->element);
  }
  if (!isFixedIn(a.roots.front(), crossed))
    return std::nullopt;
  // a begins so many bytes behind b.
  int64_t first = 0;
  for (auto &[term, constant] : difference) {
    if (!term.factors.empty() || std::abs(constant) > mostDistance)
      return std::nullopt;
    first = constant;
  }
  return first + low[0] >= high[1] || low[1] >= first + high[0];
}

/// Whether both address each index of their blocks in the same way, in this
/// iteration of a loop and any other.
bool AccessOrder::addressesAlike(const Access &a, const Access &b,
                                 Operation *crossed) const {
  if (!a.place || !b.place || *a.place != *b.place || a.shape != b.shape ||
      bytesOf(a.element) != bytesOf(b.element))
    return false;
  if (!crossed)
    return true;
  // An iteration moves the block by whole blocks of memory or not at all: then
  // the address alone says which index it is.
  llvm::SmallVector<std::pair<int64_t, int64_t>> strides;
  bool isFixed = isFixedIn(a.roots.front(), crossed), isStatic = true;
  int64_t step = 0;
  for (auto &[term, constant] : *a.place) {
    bool changes = !isFixedIn(term.block, crossed);
    int64_t multiple = constant & -constant;
    for (Value factor : term.factors) {
      changes |= !isFixedIn(factor, crossed);
      multiple = std::min<int64_t>(facts.of(factor).divisibility(),
                                   (int64_t(1) << 40)) *
                 std::min<int64_t>(multiple, int64_t(1) << 20);
    }
    if (term.dim >= 0 || term.block)
      isStatic &= !changes && !term.block && term.factors.empty();
    else if (changes)
      step = step ? std::min(step, multiple) : multiple;
    isFixed &= !changes;
    if (term.dim >= 0)
      strides.push_back({std::abs(constant), a.shape[term.dim]});
  }
  if (isFixed)
    return true;
  if (!isStatic || !step || !isFixedIn(a.roots.front(), crossed))
    return false;
  llvm::sort(strides);
  int64_t covered = bytesOf(a.element);
  for (auto [stride, extent] : strides) {
    if (extent == 1)
      continue;
    if (stride != covered)
      return false;
    covered *= extent;
  }
  return step % covered == 0;
}

bool AccessOrder::mayMeet(const Access &a, const Access &b,
                          Operation *crossed) const {
  if (!(a.writes || b.writes) || (a.isAtomic && b.isAtomic))
    return false;
  if (!shareRoot(a, b))
    return mayMeetElsewhere(a, b);
  if (llvm::all_of(a.roots,
                   [](Value root) { return promises(root, readonlyName); }))
    return false;
  std::optional<bool> disjoint = areDisjoint(a, b, crossed);
  if (disjoint || a.reads || b.reads)
    return !disjoint.value_or(false);
  // Stores at offsets whose distance nobody knows are taken for disjoint, and
  // so is a store with itself where it moves.
  auto isByData = [](const Access &access) {
    return !access.place || llvm::any_of(*access.place, [](auto &entry) {
      return bool(entry.first.block);
    });
  };
  return a.op != b.op &&
         (isByData(a) || isByData(b) || addressesAlike(a, b, crossed));
}

/// A store's and an atomic's elements are each written by one of the lanes that
/// have copies, a load's are read by all. Lanes of one wave run in step.
bool AccessOrder::hasSameLanes(const Access &a, const Access &b,
                               Operation *crossed) const {
  FuncOp func = kernel;
  if (func.getBlockSize() == 1)
    return true;
  if (bool(a.layout) != bool(b.layout))
    return false;
  bool hasCopies = func.getNumWaves() > 1;
  if (a.layout) {
    Layout layout = toLayout(a.layout);
    if (layout != toLayout(b.layout))
      return false;
    hasCopies = layout.freeWaveBits();
  }
  bool readsCopies = (a.reads && !a.isAtomic) || (b.reads && !b.isAtomic);
  if (hasCopies && readsCopies)
    return false;
  return !shareRoot(a, b) || addressesAlike(a, b, crossed);
}

/// The outermost loop around both; null: none.
static Operation *commonLoop(Operation *a, Operation *b) {
  Operation *loop = nullptr;
  for (Operation *at = a->getParentOp(); !isa<FuncOp>(at);
       at = at->getParentOp())
    if (isa<LoopLikeOpInterface>(at) && at->isAncestor(b))
      loop = at;
  return loop;
}

bool AccessOrder::isWritten(Operation *load) const {
  const Access &access = accesses.find(load)->second;
  return llvm::any_of(accesses, [&](auto &entry) {
    const Access &other = entry.second;
    return other.writes && shareRoot(access, other) &&
           mayMeet(access, other, commonLoop(load, entry.first));
  });
}

bool AccessOrder::isWrittenIn(Operation *loop, Operation *load) const {
  const Access &access = accesses.find(load)->second;
  return llvm::any_of(accesses, [&](auto &entry) {
    return entry.second.writes && loop->isAncestor(entry.first) &&
           mayMeet(access, entry.second, loop);
  });
}

bool AccessOrder::isUnordered(BlockArgument argument) const {
  for (auto &[op, access] : accesses) {
    if (!access.roots.contains(argument))
      continue;
    for (auto &[other, otherAccess] : accesses) {
      if (conflict(access, otherAccess, nullptr))
        return false;
      Operation *loop = commonLoop(op, other);
      if (loop && conflict(access, otherAccess, loop))
        return false;
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Flow
//===----------------------------------------------------------------------===//

void AccessOrder::visit(const Access &access, State &state) {
  bool acquires = false;
  if (access.isAtomic) {
    auto rmw = dyn_cast<AtomicRmwOp>(access.op);
    MemoryOrder order =
        rmw ? rmw.getOrder() : cast<AtomicCasOp>(access.op).getOrder();
    acquires = order == MemoryOrder::Acquire || order == MemoryOrder::AcqRel;
    // Its own fences and barriers order all others.
    if (order == MemoryOrder::Release || order == MemoryOrder::AcqRel)
      state.clear();
  }
  if (llvm::any_of(state, [&](const Pending &pending) {
        return conflict(*pending.first, access, pending.second);
      })) {
    waits.insert(access.op);
    state.clear();
  }
  if (!acquires)
    state.insert({&access, nullptr});
}

void AccessOrder::visitLoop(Operation *loop, State &state) {
  State entry = state;
  for (bool isNew = true; isNew;) {
    State round = rounds[loop];
    state = entry;
    state.insert(round.begin(), round.end());
    State end;
    if (auto iterations = dyn_cast<scf::WhileOp>(loop)) {
      visit(*iterations.getBeforeBody(), state);
      end = state;
      visit(*iterations.getAfterBody(), end);
    } else {
      visit(*cast<scf::ForOp>(loop).getBody(), state);
      end = state;
      // There may be no iteration.
      state.insert(entry.begin(), entry.end());
    }
    isNew = false;
    for (auto [access, crossed] : end)
      isNew |= round.insert({access, loop});
    rounds[loop] = std::move(round);
  }
}

void AccessOrder::visit(Block &block, State &state) {
  for (Operation &op : block) {
    if (auto found = accesses.find(&op); found != accesses.end()) {
      visit(found->second, state);
    } else if (isa<BarrierOp>(op)) {
      state.clear();
    } else if (isa<scf::ForOp, scf::WhileOp>(op)) {
      visitLoop(&op, state);
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      State other = state;
      visit(*branch.thenBlock(), state);
      if (branch.elseBlock())
        visit(*branch.elseBlock(), other);
      state.insert(other.begin(), other.end());
    }
  }
}

llvm::DenseSet<Operation *> AccessOrder::findWaits() {
  State state;
  visit(kernel.getBody().front(), state);
  return waits;
}
