//===- SharedOrder.cpp - who must wait for whom in shared memory ----------===//
//
// In: one lane's program. Out: the places of missing barriers (SharedOrder.h).
//
// The state at a point of the program is what lanes may be doing to each stage
// of each array since the last barrier: reading, writing, or waiting for direct
// loads, with how many loads this lane has issued since. An access that meets a
// pending one of which either writes needs a barrier before it. As late as
// possible is where a barrier then stands, so one covers what the next would
// have. An access that was pending before a loop or a branch is waited for
// before that.
//
// A loop's state comes round: its body is followed with what its end leaves
// until that no longer changes. Stages are numbers modulo their count, so that
// the loop's `stage` and the next iteration's `1 - stage` are known to differ.
//
// The addresses within a stage are not looked at, nor which lane has them.
//
//===----------------------------------------------------------------------===//

#include "SharedOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace greta::tile;

int64_t greta::tile::getSharedBytes(SharedType type) {
  Type element = type.getElementType();
  int64_t count = 1;
  if (auto vector = dyn_cast<VectorType>(element))
    count = llvm::PowerOf2Ceil(vector.getNumElements());
  int64_t bits = getElementTypeOrSelf(element).getIntOrFloatBitWidth();
  return type.getSize() * count * llvm::divideCeil(bits, 8);
}

SharedAllocOp greta::tile::getSharedArray(Value value) {
  while (auto stage = value.getDefiningOp<SharedStageOp>())
    value = stage.getArray();
  return value.getDefiningOp<SharedAllocOp>();
}

static bool isLoop(Operation *op) { return isa<scf::ForOp, scf::WhileOp>(op); }

/// Returns the smaller of two numbers of loads in flight.
static int64_t fewer(int64_t x, int64_t y) {
  return x == SharedOrder::none   ? y
         : y == SharedOrder::none ? x
                                  : std::min(x, y);
}

SharedOrder::SharedOrder(FuncOp kernel, DirectWait wait) : wait(wait) {
  Block &body = kernel.getBody().front();
  kernel.walk([&](Operation *op) { collect(op); });
  State state;
  do {
    missing.clear();
    allowsLess = false;
    state.clear();
    visit(body, state);
  } while (allowsLess);
  // Nothing may arrive when the shared memory is another workgroup's.
  if (llvm::all_of(state, [](const Pending &p) { return p.age == none; }))
    return;
  Operation *last =
      *llvm::find_if(llvm::reverse(relevant[&body]), hasOp<PtrLoadSharedOp>);
  missing.try_emplace(last->getNextNode(), none).first->second = 0;
}

double SharedOrder::cost() const {
  double sum = 0;
  for (auto [op, inFlight] : missing) {
    double each = 1;
    for (Operation *at = op->getParentOp(); at; at = at->getParentOp())
      each *= isLoop(at) ? 16 : 1;
    sum += each;
  }
  return sum;
}

void SharedOrder::collect(Operation *op) {
  bool isRelevant = isa<BarrierOp, GridBarrierOp>(op) ||
                    llvm::any_of(op->getRegions(), [&](Region &region) {
                      return llvm::any_of(region, [&](Block &b) {
                        return relevant.contains(&b);
                      });
                    });
  auto array = llvm::find_if(op->getOperands(), [](Value operand) {
    return isa<SharedType>(operand.getType());
  });
  if (isa<SharedStageOp>(op)) {
    if (Value root = stageOf(op->getResult(0)).root)
      roots.insert(root);
  } else if (array != op->operand_end()) {
    // An op that is not known to do one of both does both.
    accesses[op] = {stageOf(*array),
                    !isa<SharedStoreOp, FragmentStoreOp, PtrLoadSharedOp>(op),
                    !isa<SharedLoadOp, FragmentLoadOp>(op),
                    isa<PtrLoadSharedOp>(op), isa<SharedAddOp>(op)};
    isRelevant = true;
  }
  if (isRelevant && op->getBlock())
    relevant[op->getBlock()].push_back(op);
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

bool SharedOrder::Stage::operator==(const Stage &other) const {
  return array == other.array && isKnown == other.isKnown &&
         (!isKnown || (root == other.root && offset == other.offset));
}

/// Adds a value to the number of a stage, which was a constant.
void SharedOrder::setResidue(Stage &stage, Value value) {
  auto isMoved = [&](Value rest, int64_t sign, Value by) {
    std::optional<int64_t> number = getConstantIntValue(by);
    if (!number)
      return false;
    int64_t sum = stage.offset + sign * *number;
    stage.offset = (sum % stage.count + stage.count) % stage.count;
    if (rest)
      setResidue(stage, rest);
    return true;
  };
  auto add = value.getDefiningOp<arith::AddIOp>();
  auto sub = value.getDefiningOp<arith::SubIOp>();
  // Modulo two, minus is plus.
  if (isMoved(Value(), 1, value) ||
      (add && isMoved(add.getLhs(), 1, add.getRhs())) ||
      (sub && isMoved(sub.getLhs(), -1, sub.getRhs())) ||
      (sub && stage.count == 2 && isMoved(sub.getRhs(), 1, sub.getLhs())))
    return;
  if (auto select = value.getDefiningOp<arith::SelectOp>()) {
    Stage either = stage, other = stage;
    setResidue(either, select.getTrueValue());
    setResidue(other, select.getFalseValue());
    if (either == other) {
      stage = either;
      return;
    }
  }
  stage.root = value;
}

SharedOrder::Stage SharedOrder::stageOf(Value array) {
  Stage stage;
  stage.array = getSharedArray(array);
  auto op = array.getDefiningOp<SharedStageOp>();
  // A stage of a stage is anything of its array.
  stage.isKnown = op && op.getArray() == stage.array.getResult();
  if (stage.isKnown) {
    stage.count = op.getStages();
    setResidue(stage, op.getStage());
  }
  return stage;
}

bool SharedOrder::mayMeet(const Stage &x, const Stage &y) {
  if (x.array == y.array)
    return !x.isKnown || !y.isKnown || x.count != y.count || x.root != y.root ||
           x.offset == y.offset;
  SharedAllocOp a = x.array, b = y.array;
  if (!a.getOffset() || !b.getOffset())
    return false;
  int64_t begin = *a.getOffset(), other = *b.getOffset();
  return begin < other + getSharedBytes(b.getResult().getType()) &&
         other < begin + getSharedBytes(a.getResult().getType());
}

void SharedOrder::enter(Operation *loop, ValueRange given, State &state) {
  auto forOp = dyn_cast<scf::ForOp>(loop);
  auto rename = [&](Stage &stage) {
    for (auto [arg, value] : llvm::zip(forOp.getRegionIterArgs(), given)) {
      Stage from;
      from.count = stage.count;
      if (!roots.contains(arg))
        continue;
      setResidue(from, value);
      if (from.root != stage.root)
        continue;
      stage.root = arg;
      stage.offset = (stage.offset - from.offset + stage.count) % stage.count;
      return true;
    }
    return false;
  };
  State result;
  for (Pending &pending : state) {
    State one = {pending};
    one.front().writer = nullptr;
    if (!forOp || !pending.stage.isKnown || !rename(one.front().stage))
      leave(loop, one);
    join(result, one);
  }
  state = std::move(result);
}

void SharedOrder::leave(Operation *op, State &state) {
  for (Pending &pending : state) {
    Stage &stage = pending.stage;
    if (stage.root &&
        op->isAncestor(stage.root.getParentBlock()->getParentOp()))
      stage.isKnown = false;
    pending.level = std::min(pending.level, level);
  }
}

/// Adds the pending accesses of another path. Returns whether any of them is
/// new.
bool SharedOrder::join(State &into, const State &from) {
  bool changed = false;
  auto set = [&](auto &slot, auto value) {
    changed |= slot != value;
    slot = value;
  };
  for (const Pending &p : from) {
    auto known = llvm::find_if(into, [&](const Pending &have) {
      return have.stage == p.stage && have.level == p.level &&
             have.adds == p.adds;
    });
    if (known == into.end()) {
      into.push_back(p);
      changed = true;
      continue;
    }
    if (p.writes)
      set(known->writer,
          known->writes && known->writer != p.writer ? nullptr : p.writer);
    set(known->reads, known->reads || p.reads);
    set(known->writes, known->writes || p.writes);
    if (p.age == none)
      continue;
    if (known->age != none && known->passed != p.passed)
      set(known->passed, nullptr);
    else
      set(known->passed, p.passed);
    set(known->agePassed, fewer(known->agePassed, p.agePassed));
    set(known->age, fewer(known->age, p.age));
  }
  return changed;
}

//===----------------------------------------------------------------------===//
// Through the program
//===----------------------------------------------------------------------===//

void SharedOrder::pass(Operation *barrier, int64_t inFlight, State &state) {
  for (Pending &p : state) {
    p.reads = p.writes = false;
    p.writer = nullptr;
    if (p.age != none && inFlight != none && p.age >= inFlight)
      p.age = none;
    p.passed = barrier;
    p.agePassed = p.age;
  }
  llvm::erase_if(state, [](const Pending &p) { return p.age == none; });
}

void SharedOrder::place(Operation *op, int64_t inFlight, State &state) {
  auto [slot, isNew] = missing.try_emplace(op, none);
  slot->second = fewer(slot->second, inFlight);
  if (auto known = allowed.find(op); known != allowed.end())
    slot->second = fewer(slot->second, known->second);
  pass(op, slot->second, state);
}

std::optional<SharedOrder::Need> SharedOrder::visit(Block &block,
                                                    State &state) {
  if (auto ops = relevant.find(&block); ops != relevant.end())
    for (Operation *op : ops->second)
      if (std::optional<Need> need = visit(op, state))
        return need;
  return std::nullopt;
}

std::optional<SharedOrder::Need> SharedOrder::visit(Operation *op,
                                                    State &state) {
  missing.erase(op);
  if (auto barrier = dyn_cast<BarrierOp>(op)) {
    int64_t inFlight = barrier.getInFlight().value_or(none);
    if (auto known = allowed.find(op); known != allowed.end())
      existing[op] = inFlight = fewer(inFlight, known->second);
    pass(op, inFlight, state);
    return std::nullopt;
  }
  // Its workgroup's barriers wait for no direct loads.
  if (isa<GridBarrierOp>(op)) {
    pass(op, none, state);
    return std::nullopt;
  }
  if (!op->getNumRegions())
    return visitAccess(op, state);
  while (true) {
    State inside = state;
    ++level;
    std::optional<Need> need =
        isLoop(op) ? visitLoop(op, inside) : visitBranches(op, inside);
    --level;
    if (!need) {
      leave(op, inside);
      state.clear();
      join(state, inside);
      return std::nullopt;
    }
    if (need->level < level)
      return need;
    place(op, need->inFlight, state);
  }
}

std::optional<SharedOrder::Need> SharedOrder::visitAccess(Operation *op,
                                                          State &state) {
  const Access &access = accesses.at(op);
  Need need{none, 0};
  bool isNeeded = false, isPassed = true;
  SmallVector<Pending *> late;
  for (Pending &p : state) {
    if (p.stage.array != access.stage.array)
      unordered.insert({access.stage.array, p.stage.array});
    bool isSameSum =
        p.adds && access.adds && p.stage.array == access.stage.array;
    if (isSameSum || !mayMeet(p.stage, access.stage))
      continue;
    bool isSameStore = p.writes && p.writer == op->getBlock() &&
                       p.stage.array == access.stage.array && !access.reads;
    bool arrives = p.age != none && !(access.isDirect && isSameStore);
    bool meets = access.writes ? p.reads || (p.writes && !isSameStore)
                               : p.writes && p.age == none;
    if (!arrives && !meets)
      continue;
    isNeeded = true;
    need.level = std::max(need.level, p.level);
    if (arrives)
      need.inFlight = fewer(need.inFlight, p.age);
    isPassed &= arrives && !meets && p.passed && p.level == level;
    late.push_back(&p);
  }
  bool isAllowed = false;
  if (isNeeded && wait == DirectWait::Earlier && isPassed)
    for (Pending *p : late) {
      auto [slot, isNew] = allowed.try_emplace(p->passed, p->agePassed);
      isAllowed |= isNew || p->agePassed < slot->second;
      slot->second = std::min(slot->second, p->agePassed);
    }
  if (isAllowed) {
    for (Pending *p : late)
      p->age = none;
    allowsLess = true;
  } else if (isNeeded && need.level < level) {
    return need;
  } else if (isNeeded) {
    place(op, need.inFlight, state);
  }
  if (access.isDirect)
    for (Pending &p : state)
      if (p.age != none)
        ++p.age;
  Pending now{access.stage, level};
  now.reads = access.reads && !access.isDirect;
  now.adds = access.adds;
  now.writes = access.writes;
  now.writer = access.writes ? op->getBlock() : nullptr;
  now.age = access.isDirect ? 0 : none;
  join(state, {now});
  return std::nullopt;
}

std::optional<SharedOrder::Need> SharedOrder::visitBranches(Operation *op,
                                                            State &state) {
  auto branch = dyn_cast<scf::IfOp>(op);
  State joined;
  if (!branch || branch.getElseRegion().empty())
    joined = state;
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    State inside = state;
    if (std::optional<Need> need = visit(region.front(), inside))
      return need;
    join(joined, inside);
  }
  state = std::move(joined);
  return std::nullopt;
}

std::optional<SharedOrder::Need> SharedOrder::visitLoop(Operation *op,
                                                        State &state) {
  auto loop = dyn_cast<scf::ForOp>(op);
  Block &first = op->getRegion(0).front();
  // First what its own iterations leave, so that a barrier that they need
  // anyway counts for what was pending before; then with that.
  State round, end;
  for (bool withBefore : {false, true}) {
    State before;
    if (withBefore) {
      before = state;
      enter(op, loop ? ValueRange(loop.getInitArgs()) : ValueRange(), before);
    }
    // An access that once seemed to come round may be ordered in the next
    // iteration.
    constexpr unsigned fewIterations = 8;
    for (unsigned iteration = 0;; ++iteration) {
      State now = before;
      join(now, round);
      if (std::optional<Need> need = visit(first, now))
        return need;
      end = now;
      if (!loop)
        if (std::optional<Need> need = visit(op->getRegion(1).front(), now))
          return need;
      enter(op, first.getTerminator()->getOperands(), now);
      State both = round;
      bool changed = join(both, now);
      if (!changed)
        break;
      round = iteration < fewIterations ? std::move(now) : std::move(both);
    }
  }
  // A while loop's condition is looked at at least once.
  if (loop) {
    join(state, end);
  } else {
    state = std::move(end);
  }
  return std::nullopt;
}
