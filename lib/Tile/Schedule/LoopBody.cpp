//===- LoopBody.cpp - what a loop's body loads and computes ---------------===//

#include "greta/Tile/LoopBody.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Tile/AccessOrder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetOperations.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

static bool isBlock(Value value) {
  return isa<RankedTensorType>(value.getType());
}

static bool hasBlocks(Operation *op) {
  return llvm::any_of(op->getOperands(), isBlock) ||
         llvm::any_of(op->getResults(), isBlock);
}

bool greta::writesMemory(scf::ForOp loop, Except except) {
  return loop.getBody()
      ->walk([&](Operation *op) {
        bool isHarmless =
            isMemoryEffectFree(op) || isa<AssumeOp>(op) ||
            (except == Except::Locals && isa<LocalStoreOp>(op)) ||
            (except == Except::Stores && isa<StoreOp, StoreScatteredOp>(op)) ||
            op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
            hasSingleEffect<MemoryEffects::Read>(op);
        return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

int64_t greta::askedStages(scf::ForOp loop, const TargetRow &row) {
  auto asked = loop->getAttrOfType<IntegerAttr>(stagesName);
  if (!asked && row.tiles.stagesOfLoop > 1)
    asked =
        loop->getParentOfType<FuncOp>()->getAttrOfType<IntegerAttr>(stagesName);
  return asked ? std::clamp<int64_t>(asked.getInt(), 0, 3) : 0;
}

int64_t greta::sharedBytes(RankedTensorType type, int64_t padding) {
  ArrayRef<int64_t> matrix = type.getShape().take_back(2);
  int64_t outer = type.getRank() > 2
                      ? type.getNumElements() / (matrix.front() * matrix.back())
                      : 1;
  return type.getNumElements() * bytesInMemory(type.getElementType()) +
         padding * outer * *llvm::max_element(matrix);
}

int64_t LoadedOperand::tileDepth() const {
  return toLayout(getLayoutOf(type)).tile()[kDim];
}

bool LoopBody::isLoadedWhole() const {
  DotOp first = dots.front();
  MatrixAttr matrix = first.getMatrixAttr();
  return matrix && matrix.isLoadedWhole();
}

namespace {
using OpSet = llvm::SmallDenseSet<Operation *, 16>;

/// The ops of a body that a value is computed by.
struct Origin {
  OpSet loads, addresses, work;
};
} // namespace

class LoopBody::Analysis {
public:
  Analysis(LoopBody &body, scf::ForOp loop, bool mayHaveRest)
      : body(body), loop(loop), block(loop.getBody()),
        mayHaveRest(mayHaveRest) {}
  void run();

private:
  bool inBody(Operation *op) { return op && op->getBlock() == block; }
  bool collect(Value value, OpSet &work, Origin *origin);
  void addCandidate(OpOperand &operand);
  void addSum(BlockArgument carried);
  bool isNeededInIteration(Operation *op, const OpSet &ahead);
  OpSet runningAhead();
  void addAddressesOfOpaque(OpSet &ahead);
  void dropNeededInIteration();
  void dropWhatIsWritten();
  void setOperands();
  void partition();
  void separateFixed();
  LogicalResult setChains();
  void setRest();
  bool isGemm();

  LoopBody &body;
  scf::ForOp loop;
  Block *block;
  bool mayHaveRest;
  bool stores = false;
  /// Operands of dots, and contracts, whose values may run ahead.
  llvm::MapVector<OpOperand *, Origin> candidates;
  llvm::MapVector<Operation *, Origin> contracts;
};

/// Whether ops without effects compute a value from the iteration's number,
/// values from outside, and loads. The loads of blocks are added to `origin`.
/// Without an `origin` the value belongs to an address, and its loads are part
/// of that.
bool LoopBody::Analysis::collect(Value value, OpSet &work, Origin *origin) {
  if (auto arg = dyn_cast<BlockArgument>(value))
    return arg.getOwner() != block || arg == loop.getInductionVar();
  Operation *op = value.getDefiningOp();
  if (!inBody(op) || work.contains(op))
    return true;
  if (origin && isa<LoadOp, LoadScatteredOp>(op) && isBlock(value)) {
    origin->loads.insert(op);
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return collect(operand, origin->addresses, nullptr);
    });
  }
  bool isLoad = !origin && isa<LoadOp, LoadScatteredOp>(op);
  if (!(isLoad || isMemoryEffectFree(op)) || op->getNumRegions() ||
      isa<DotOp>(op))
    return false;
  work.insert(op);
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return collect(operand, work, origin);
  });
}

/// Returns a dot's operand before it is laid out for the dot.
static Value sourceOf(OpOperand &operand) {
  auto convert = operand.get().getDefiningOp<ConvertLayoutOp>();
  return convert && convert->getBlock() == operand.getOwner()->getBlock()
             ? convert.getValue()
             : operand.get();
}

void LoopBody::Analysis::addCandidate(OpOperand &operand) {
  Origin origin;
  if (collect(sourceOf(operand), origin.work, &origin) && !origin.loads.empty())
    candidates[&operand] = std::move(origin);
}

/// Adds a contract that is the only op to use and to change a carried value.
void LoopBody::Analysis::addSum(BlockArgument carried) {
  Value yielded = loop.getTiedLoopYieldedValue(carried)->get();
  auto contract = yielded.getDefiningOp<ContractOp>();
  Origin origin;
  if (contract && inBody(contract) && contract.getAcc() == carried &&
      carried.hasOneUse() && contract->hasOneUse() &&
      collect(contract.getA(), origin.work, &origin) &&
      collect(contract.getB(), origin.work, &origin))
    contracts[contract] = std::move(origin);
}

OpSet LoopBody::Analysis::runningAhead() {
  OpSet ahead;
  for (auto &[operand, origin] : candidates)
    for (const OpSet *ops : {&origin.loads, &origin.work})
      ahead.insert(ops->begin(), ops->end());
  for (auto &[contract, origin] : contracts) {
    ahead.insert(contract);
    ahead.insert(origin.work.begin(), origin.work.end());
  }
  return ahead;
}

/// Adds blocks of addresses that only loads ahead need. Loads for matrices of
/// unknown layout have to run ahead, as these are read from shared memory, so
/// that a mask may share its blocks with the addresses.
void LoopBody::Analysis::addAddressesOfOpaque(OpSet &ahead) {
  auto isAddress = [&](Operation *op) {
    return llvm::any_of(candidates, [&](auto &entry) {
      auto dot = cast<DotOp>(entry.first->getOwner());
      return dot.getMatrixAttr() && dot.getMatrixAttr().getOpaque() &&
             entry.second.addresses.contains(op);
    });
  };
  for (Operation &op : llvm::reverse(block->without_terminator()))
    if (hasBlocks(&op) && isAddress(&op) &&
        llvm::all_of(op.getUsers(),
                     [&](Operation *user) { return ahead.contains(user); }))
      ahead.insert(&op);
}

/// Whether an op that runs ahead is also needed in its own iteration. Scalars
/// are computed again there, blocks are not.
bool LoopBody::Analysis::isNeededInIteration(Operation *op,
                                             const OpSet &ahead) {
  auto isAhead = [&](OpOperand &use) {
    return ahead.contains(use.getOwner()) || candidates.contains(&use);
  };
  return hasBlocks(op) && !contracts.contains(op) &&
         !llvm::all_of(op->getUses(), [&](OpOperand &use) {
           return isAhead(use) ||
                  (isa<ConvertLayoutOp>(use.getOwner()) &&
                   llvm::all_of(use.getOwner()->getUses(), isAhead));
         });
}

void LoopBody::Analysis::dropNeededInIteration() {
  while (true) {
    OpSet ahead = runningAhead(), needed;
    addAddressesOfOpaque(ahead);
    for (Operation *op : ahead)
      if (isNeededInIteration(op, ahead))
        needed.insert(op);
    OpSet loads;
    for (auto &[operand, origin] : candidates)
      loads.insert(origin.loads.begin(), origin.loads.end());
    size_t before = candidates.size() + contracts.size();
    auto isNeeded = [&](const Origin &origin) {
      return llvm::any_of(needed, [&](Operation *op) {
        return origin.loads.contains(op) || origin.work.contains(op);
      });
    };
    candidates.remove_if([&](auto &entry) { return isNeeded(entry.second); });
    // Sums alone are no reason to load ahead.
    contracts.remove_if([&](auto &entry) {
      return isNeeded(entry.second) ||
             !llvm::set_is_subset(entry.second.loads, loads);
    });
    if (candidates.size() + contracts.size() == before)
      return;
  }
}

/// Removes loads that the loop may write, since a load that runs ahead passes
/// the stores of iterations before its own.
void LoopBody::Analysis::dropWhatIsWritten() {
  auto kernel = loop->getParentOfType<FuncOp>();
  Facts facts(kernel);
  AccessOrder order(kernel, facts);
  auto isWritten = [&](Operation *op) {
    return isa<LoadOp, LoadScatteredOp>(op) && order.isWrittenIn(loop, op);
  };
  auto isAnyWritten = [&](auto &entry) {
    const Origin &origin = entry.second;
    return llvm::any_of(origin.loads, isWritten) ||
           llvm::any_of(origin.addresses, isWritten) ||
           llvm::any_of(origin.work, isWritten);
  };
  candidates.remove_if(isAnyWritten);
  contracts.remove_if(isAnyWritten);
}

void LoopBody::Analysis::setOperands() {
  for (auto &[operand, origin] : candidates) {
    auto dot = cast<DotOp>(operand->getOwner());
    if (!llvm::is_contained(body.dots, dot))
      body.dots.push_back(dot);
  }
  // The dots that continue carried accumulators, in the order of these.
  auto placeOf = [&](DotOp dot) {
    auto arg = dyn_cast<BlockArgument>(dot.getAcc());
    return arg && arg.getOwner() == block ? arg.getArgNumber() : 0;
  };
  llvm::stable_sort(body.dots,
                    [&](DotOp a, DotOp b) { return placeOf(a) < placeOf(b); });
  llvm::DenseMap<std::pair<Value, Type>, unsigned> known;
  for (DotOp dot : body.dots)
    for (unsigned side : {0u, 1u}) {
      OpOperand &operand = dot->getOpOperand(side);
      if (!candidates.contains(&operand))
        continue;
      auto type = cast<RankedTensorType>(operand.get().getType());
      Value source = sourceOf(operand);
      auto [entry, isNew] =
          known.insert({{source, type}, unsigned(body.operands.size())});
      if (isNew)
        body.operands.push_back(
            {source, type, unsigned(type.getRank()) - 1 - side});
      body.places[&operand] = entry->second;
    }
}

void LoopBody::Analysis::partition() {
  OpSet loads, addresses, prepare, aheadOnly = runningAhead();
  auto addAll = [](OpSet &to, const OpSet &from) {
    to.insert(from.begin(), from.end());
  };
  for (auto &[operand, origin] : candidates) {
    addAll(loads, origin.loads);
    addAll(addresses, origin.addresses);
    addAll(prepare, origin.work);
  }
  for (auto &[contract, origin] : contracts) {
    addAll(prepare, origin.work);
    prepare.insert(contract);
  }
  for (auto [i, arg] : llvm::enumerate(loop.getRegionIterArgs())) {
    Operation *made = loop.getTiedLoopYieldedValue(arg)->get().getDefiningOp();
    if (made && contracts.contains(made))
      body.sums.push_back({i, cast<ContractOp>(made)});
    else
      body.carried.push_back(i);
  }
  for (Operation &op : block->without_terminator()) {
    // Assumptions about addresses hold for those ahead.
    bool isAssumed =
        isa<AssumeOp>(op) && collect(op.getOperand(0), addresses, nullptr);
    if (loads.contains(&op))
      body.loads.push_back(&op);
    if (prepare.contains(&op))
      body.prepare.push_back(&op);
    bool isOperand =
        isa<ConvertLayoutOp>(op) && llvm::all_of(op.getUses(), [&](auto &use) {
          return candidates.contains(&use);
        });
    if (!isOperand && (!aheadOnly.contains(&op) || !hasBlocks(&op)))
      body.compute.push_back(&op);
    if (isAssumed)
      addresses.insert(&op);
  }
  for (Operation &op : block->without_terminator())
    if (addresses.contains(&op))
      body.addresses.push_back(&op);
  // Ops that only served loads ahead have no use in the iteration.
  OpSet used(body.compute.begin(), body.compute.end());
  used.insert(block->getTerminator());
  for (Operation *op : llvm::reverse(body.compute))
    if ((isMemoryEffectFree(op) || hasSingleEffect<MemoryEffects::Read>(op)) &&
        llvm::none_of(op->getUsers(), [&](Operation *user) {
          return used.contains(block->findAncestorOpInBlock(*user));
        }))
      used.erase(op);
  llvm::erase_if(body.compute,
                 [&](Operation *op) { return !used.contains(op); });
}

/// Separates loads of operands that do not depend on the iteration's number.
/// They are done once, before the loop.
void LoopBody::Analysis::separateFixed() {
  OpSet fixed, changing;
  auto separate = [&](const Origin &origin) {
    const OpSet *all[] = {&origin.loads, &origin.addresses, &origin.work};
    bool isFixed = llvm::none_of(all, [&](const OpSet *ops) {
      return llvm::any_of(*ops, [&](Operation *op) {
        return llvm::is_contained(op->getOperands(), loop.getInductionVar());
      });
    });
    for (const OpSet *ops : all)
      (isFixed ? fixed : changing).insert(ops->begin(), ops->end());
    return isFixed;
  };
  for (auto &[contract, origin] : contracts)
    changing.insert(origin.work.begin(), origin.work.end());
  for (auto &[operand, origin] : candidates)
    body.operands[body.places.at(operand)].isFixed = separate(origin);
  for (Operation &op : *block)
    if (fixed.contains(&op))
      body.fixed.push_back(&op);
  for (SmallVector<Operation *> *ops :
       {&body.loads, &body.addresses, &body.prepare})
    llvm::erase_if(*ops, [&](Operation *op) {
      return fixed.contains(op) && !changing.contains(op);
    });
}

/// Puts the dots into chains. Fails if a dot takes something that is not
/// loaded, or that the iteration computes from another dot.
LogicalResult LoopBody::Analysis::setChains() {
  // In the order of the body a dot comes after the one that it continues.
  for (DotOp dot : block->getOps<DotOp>()) {
    if (!body.isLoaded(dot, 0) || !body.isLoaded(dot, 1))
      return failure();
    auto before = dot.getAcc().getDefiningOp<DotOp>();
    auto found =
        before ? body.chainNumbers.find(before) : body.chainNumbers.end();
    if (found == body.chainNumbers.end()) {
      body.chainNumbers[dot] = body.chains.size();
      body.chains.push_back({dot.getAcc(), dot});
      continue;
    }
    if (!before->hasOneUse())
      return failure();
    body.chainNumbers[dot] = found->second;
    body.chains[found->second].last = dot;
  }
  return success();
}

/// Finds the ops that the iteration needs beside its dots, for carried values
/// and for stores.
void LoopBody::Analysis::setRest() {
  OpSet needed;
  SmallVector<Operation *> worklist{block->getTerminator()};
  for (Operation *op : body.compute)
    if (stores && !isMemoryEffectFree(op) && !isa<AssumeOp>(op) &&
        !hasSingleEffect<MemoryEffects::Read>(op) && needed.insert(op).second)
      worklist.push_back(op);
  while (!worklist.empty())
    worklist.pop_back_val()->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (Operation *made = operand.getDefiningOp();
            made && (made = block->findAncestorOpInBlock(*made)) &&
            llvm::is_contained(body.compute, made) &&
            needed.insert(made).second)
          worklist.push_back(made);
    });
  OpSet late;
  for (Operation *op : body.compute) {
    bool follows = false;
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *made = operand.getDefiningOp())
          follows |= late.contains(block->findAncestorOpInBlock(*made));
    });
    // Beside stores memory is read in its place.
    follows |= stores && !isMemoryEffectFree(op);
    if (isa<DotOp>(op) || follows)
      late.insert(op);
    if (!isa<DotOp>(op) && needed.contains(op))
      (follows ? body.after : body.before).push_back(op);
  }
}

bool LoopBody::Analysis::isGemm() {
  if (!llvm::all_equal(llvm::map_range(
          body.operands, [](const LoadedOperand &o) { return o.depth(); })) ||
      failed(setChains()))
    return false;
  setRest();
  for (const DotChain &chain : body.chains)
    if (Operation *made = chain.init.getDefiningOp();
        inBody(made) && !llvm::is_contained(body.before, made))
      return false;
  // If the driver loads matrices, slices are the iterations of a loop whose
  // results are the carried sums.
  if (mayHaveRest && !body.isLoadedWhole())
    return true;
  auto isCarried = [&](DotChain &chain) {
    auto acc = dyn_cast<BlockArgument>(chain.init);
    return acc && acc.getOwner() == block && acc.hasOneUse() &&
           chain.last->hasOneUse() &&
           loop.getTiedLoopYieldedValue(acc)->get() == chain.last.getResult();
  };
  return body.chains.size() == body.carried.size() &&
         llvm::all_of(body.chains, isCarried) &&
         llvm::none_of(body.compute, [&](Operation *op) {
           return hasBlocks(op) && !isa<DotOp>(op);
         });
}

void LoopBody::Analysis::run() {
  stores = writesMemory(loop);
  // Schedules divide by the step. The canonicalizer takes loops out whose step
  // is not positive.
  auto step = getConstantIntValue(loop.getStep());
  if (writesMemory(loop, Except::Stores) || (step && *step <= 0))
    return;
  for (auto dot : block->getOps<DotOp>())
    for (unsigned side : {0u, 1u})
      addCandidate(dot->getOpOperand(side));
  for (BlockArgument arg : loop.getRegionIterArgs())
    addSum(arg);
  if (stores && !candidates.empty())
    dropWhatIsWritten();
  dropNeededInIteration();
  if (candidates.empty())
    return;
  setOperands();
  partition();
  body.isGemm = isGemm();
  if (body.isGemm)
    return;
  body.chains.clear();
  body.before.clear();
  body.after.clear();
  separateFixed();
}

LoopBody::LoopBody(scf::ForOp loop, bool rest) {
  Analysis(*this, loop, rest).run();
}
