//===- Joiner.cpp - see Joiner.h ------------------------------------------===//

#include "Joiner.h"
#include "greta/Interface/Launches.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace greta;
using namespace greta::tile;

std::optional<int64_t> greta::workgroupsOf(LaunchOp launch) {
  constexpr int64_t most = 1 << 30;
  int64_t count = 1;
  for (AffineExpr axis : launch.getGrid().getResults()) {
    auto constant = dyn_cast<AffineConstantExpr>(axis);
    if (!constant || constant.getValue() <= 0 || constant.getValue() > most)
      return std::nullopt;
    count *= constant.getValue();
    if (count > most)
      return std::nullopt;
  }
  return count;
}

uint64_t greta::iterationsOf(Block &body) {
  uint64_t iterations = 0;
  for (Operation &op : body) {
    uint64_t inside = isa<LoopLikeOpInterface>(op) ? 1 : 0, times = 1;
    for (Region &region : op.getRegions())
      for (Block &block : region)
        inside = llvm::SaturatingAdd(inside, iterationsOf(block));
    if (auto loop = dyn_cast<scf::ForOp>(op))
      if (std::optional<APInt> count = loop.getStaticTripCount())
        times = count->getLimitedValue();
    iterations = llvm::SaturatingAdd(iterations,
                                     llvm::SaturatingMultiply(inside, times));
  }
  return iterations;
}

void greta::eraseUnlaunched(ModuleOp module) {
  llvm::StringSet<> launched;
  module.walk([&](LaunchOp launch) { launched.insert(launch.getKernel()); });
  for (auto kernel : llvm::make_early_inc_range(module.getOps<FuncOp>()))
    if (!launched.contains(kernel.getSymName()))
      kernel.erase();
}

SmallVector<Joiner::Use> Joiner::usesOf(LaunchOp launch) {
  SmallVector<Use> uses;
  llvm::SmallDenseSet<Value> written;
  for (Value result : launch.getResults())
    written.insert(memoryOf(result));
  for (Value operand : launch.getOperands())
    uses.push_back({memoryOf(operand), written.contains(memoryOf(operand))});
  for (auto [i, result] : llvm::enumerate(launch.getResults()))
    if (!launch.getTiedOperand(i))
      uses.push_back({result, true});
  return uses;
}

bool Joiner::canFollow(LaunchOp launch) {
  FuncOp kernel = kernelOf(launch);
  if (launch.getResident() || kernel->hasAttr(logName) ||
      !kernel.getBody().hasOneBlock())
    return false;
  if (!launches.empty()) {
    FuncOp first = kernelOf(launches.front());
    if (first.getWaves() != kernel.getWaves() ||
        first.getWaveSize() != kernel.getWaveSize())
      return false;
    for (Operation *op = launches.back()->getNextNode(); op != launch;
         op = op->getNextNode())
      if (!isMemoryEffectFree(op) || sumsOverRanks(op))
        return false;
  }
  // A result that takes the place of another in its memory has its type.
  for (OpResult result : launch->getResults())
    if (launch.getTiedOperand(result.getResultNumber())) {
      auto known = memories.find(memoryOf(result));
      if (known != memories.end() &&
          known->second.passed.getType() != result.getType())
        return false;
    }
  return true;
}

bool Joiner::take(LaunchOp launch) {
  if (!canFollow(launch) || !admits(launch))
    return false;
  FuncOp kernel = kernelOf(launch);
  launches.push_back(launch);
  for (Value value : launch.getOperands()) {
    Argument &argument = memories[memoryOf(value)];
    if (!argument.passed)
      argument.passed = value;
  }
  for (auto [i, result] : llvm::enumerate(launch.getResults()))
    if (!launch.getTiedOperand(i)) {
      memories[result].passed = result;
      memories[result].isMade = true;
    }
  for (auto [i, use] : llvm::enumerate(usesOf(launch))) {
    Argument &argument = memories[use.memory];
    if (!argument.type)
      argument.type = kernel.getArgumentTypes()[i];
    argument.isWritten |= use.isWritten;
    argument.uses.push_back({kernel, i});
  }
  return true;
}

/// An integer that several launches compute is one argument, if they promise
/// the same of it.
void Joiner::collectScalars(LaunchOp launch,
                            SmallVectorImpl<unsigned> &places) {
  FuncOp kernel = kernelOf(launch);
  unsigned first =
      kernel.getNumArguments() - launch.getScalars().getNumResults();
  for (unsigned i = 0; i < launch.getScalars().getNumResults(); ++i) {
    AffineExpr expr = launch.getScalars().getResult(i);
    unsigned number = first + i;
    auto known = llvm::find_if(scalars, [&](const auto &scalar) {
      auto [other, place] = scalar.second.uses.front();
      return scalar.first == expr &&
             scalar.second.type == kernel.getArgumentTypes()[number] &&
             function_interface_impl::getArgAttrDict(other, place) ==
                 function_interface_impl::getArgAttrDict(kernel, number);
    });
    places.push_back(memories.size() + (known - scalars.begin()));
    if (known != scalars.end())
      continue;
    Argument argument;
    argument.type = kernel.getArgumentTypes()[number];
    argument.uses.push_back({kernel, number});
    scalars.push_back({expr, argument});
  }
}

/// Numbers the arguments: operands, then results.
void Joiner::collect() {
  llvm::SmallDenseMap<Value, unsigned> numbers;
  for (auto &[memory, argument] : memories)
    (argument.isMade ? results : operands).push_back(memory);
  for (Value memory : operands)
    numbers.try_emplace(memory, numbers.size());
  for (Value memory : results)
    numbers.try_emplace(memory, numbers.size());
  for (LaunchOp launch : launches) {
    SmallVector<unsigned> &own = places.emplace_back();
    for (const Use &use : usesOf(launch))
      own.push_back(numbers.at(use.memory));
    collectScalars(launch, own);
  }
}

FuncOp Joiner::createKernel(StringRef name) {
  ImplicitLocOpBuilder b(launches.front().getLoc(), kernelOf(launches.front()));
  SmallVector<Type> types;
  for (ArrayRef<Value> part : {ArrayRef(operands), ArrayRef(results)})
    for (Value memory : part)
      types.push_back(memories[memory].type);
  for (auto &[expr, argument] : scalars)
    types.push_back(argument.type);
  if (isResident)
    types.push_back(b.getI32Type()); // whether it is a trial
  // Scratch memory is a result; scalars follow.
  types.insert(types.begin() + memories.size(), PtrType::get(b.getI32Type()));
  FuncOp first = kernelOf(launches.front());
  return FuncOp::create(b, name, b.getFunctionType(types, {}), first.getWaves(),
                        first.getNumLanes());
}

/// Keeps what all phases promise of an argument.
void Joiner::setAttributes(FuncOp kernel) {
  auto set = [&](unsigned number, const Argument &argument, bool isMemory) {
    NamedAttrList kept;
    bool isFirst = true;
    for (auto [phase, place] : argument.uses) {
      DictionaryAttr attrs =
          function_interface_impl::getArgAttrDict(phase, place);
      if (std::exchange(isFirst, false)) {
        kept.append(attrs ? attrs.getValue() : ArrayRef<NamedAttribute>());
        continue;
      }
      for (NamedAttribute have : SmallVector<NamedAttribute>(kept.getAttrs())) {
        Attribute other = attrs ? attrs.get(have.getName()) : Attribute();
        auto mine = dyn_cast<IntegerAttr>(have.getValue());
        if (other == have.getValue())
          continue;
        kept.erase(have.getName());
        if (have.getName() == divisibilityName && other)
          kept.set(
              divisibilityName,
              IntegerAttr::get(
                  mine.getType(),
                  std::gcd(mine.getInt(), cast<IntegerAttr>(other).getInt())));
      }
    }
    // Another phase may write a tensor that one reads.
    if (isMemory && isa<PtrType>(argument.type)) {
      kept.erase(readonlyName);
      if (!argument.isWritten)
        kept.set(readonlyName, UnitAttr::get(kernel.getContext()));
    }
    function_interface_impl::setArgAttrs(kernel, number, kept);
  };
  unsigned number = 0;
  for (ArrayRef<Value> part : {ArrayRef(operands), ArrayRef(results)})
    for (Value memory : part)
      set(number++, memories[memory], /*isMemory=*/true);
  ++number; // the counter
  for (auto &[expr, argument] : scalars)
    set(number++, argument, /*isMemory=*/false);
}

void Joiner::emitPhase(unsigned number, FuncOp kernel, ImplicitLocOpBuilder &b,
                       Ids idsOf) {
  LaunchOp launch = launches[number];
  FuncOp phase = kernelOf(launch);
  IRMapping mapping;
  for (auto [argument, place] :
       llvm::zip(phase.getBody().getArguments(), places[number])) {
    unsigned passedAs = place + (place >= memories.size());
    Value passed = kernel.getBody().getArgument(passedAs);
    if (passed.getType() != argument.getType())
      passed = PtrCastOp::create(b, argument.getType(), passed);
    mapping.map(argument, passed);
  }
  // Arrays stand in the kernel's entry block.
  for (auto alloc : phase.getBody().getOps<SharedAllocOp>())
    b.clone(*alloc, mapping);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value, 3> ids = idsOf(launch);
  SmallVector<Operation *> cloned;
  for (Operation &op : phase.getBody().front().without_terminator())
    if (!isa<SharedAllocOp>(op))
      cloned.push_back(b.clone(op, mapping));
  for (Operation *op : cloned)
    op->walk([&](ProgramIdOp id) {
      id.replaceAllUsesWith(ids[id.getAxis()]);
      id.erase();
    });
}

LaunchOp Joiner::createLaunch(FuncOp kernel) {
  ImplicitLocOpBuilder b(launches.front().getLoc(), launches.back());
  unsigned numSymbols = 0;
  for (LaunchOp launch : launches)
    for (AffineMap map : {launch.getGrid(), launch.getScalars()})
      numSymbols = std::max(numSymbols, map.getNumSymbols());
  SmallVector<Value> passed;
  SmallVector<Type> types;
  SmallVector<int64_t> tied, zeroed;
  SmallVector<Attribute> shapes;
  for (Value memory : operands)
    passed.push_back(memories[memory].passed);
  for (Value memory : results) {
    auto made = cast<OpResult>(memory);
    auto launch = cast<LaunchOp>(made.getOwner());
    if (launch.isZeroed(made.getResultNumber()))
      zeroed.push_back(types.size());
    types.push_back(made.getType());
    tied.push_back(-1);
    shapes.push_back(
        AffineMapAttr::get(launch.getShapeOf(made.getResultNumber())));
  }
  auto map = [&](ArrayRef<AffineExpr> exprs) {
    return AffineMap::get(0, numSymbols, exprs, b.getContext());
  };
  zeroed.push_back(types.size());
  types.push_back(RankedTensorType::get({1}, b.getI32Type()));
  tied.push_back(-1);
  shapes.push_back(AffineMapAttr::get(map(b.getAffineConstantExpr(1))));
  // A written operand has a result in its memory.
  for (auto [i, memory] : llvm::enumerate(operands))
    if (Argument &argument = memories[memory]; argument.isWritten) {
      argument.tied = types.size();
      types.push_back(argument.passed.getType());
      tied.push_back(i);
    }
  SmallVector<AffineExpr> exprs;
  for (auto &[expr, argument] : scalars)
    exprs.push_back(expr);
  if (isResident)
    exprs.push_back(b.getAffineConstantExpr(0));
  Form form = formOf(kernel);
  return LaunchOp::create(
      b, types, FlatSymbolRefAttr::get(kernel.getSymNameAttr()), passed,
      AffineMapAttr::get(map(form.grid.getResults())),
      AffineMapAttr::get(map(exprs)), b.getDenseI64ArrayAttr(tied),
      b.getDenseI64ArrayAttr(zeroed), b.getArrayAttr(shapes),
      b.getDictionaryAttr(form.config), /*by_rows=*/nullptr,
      isResident ? b.getUnitAttr() : UnitAttr());
}

/// Views of what the launches made go behind the joined one.
void Joiner::replaceLaunches(LaunchOp joined) {
  llvm::SmallDenseMap<Value, Value> made;
  for (auto [i, memory] : llvm::enumerate(results))
    made[memory] = joined.getResult(i);
  for (Value memory : operands)
    if (auto tied = memories[memory].tied)
      made[memory] = joined.getResult(*tied);
  SmallVector<std::pair<Value, Value>> replaced;
  llvm::SetVector<Operation *> views;
  llvm::SmallDenseSet<Operation *> own(launches.begin(), launches.end());
  for (Operation *op = launches.front(); op != joined; op = op->getNextNode()) {
    if (auto launch = dyn_cast<LaunchOp>(op))
      for (Value result : launch.getResults())
        replaced.push_back({result, made.at(memoryOf(result))});
    else if (llvm::any_of(op->getOperands(), [&](Value operand) {
               Operation *from = operand.getDefiningOp();
               return from && (own.contains(from) || views.contains(from));
             }))
      views.insert(op);
  }
  for (Value result : launches.back().getResults())
    replaced.push_back({result, made.at(memoryOf(result))});
  Operation *place = launches.back();
  for (Operation *view : views) {
    view->moveAfter(place);
    place = view;
  }
  for (auto [before, now] : replaced)
    before.replaceAllUsesWith(now);
  for (LaunchOp launch : llvm::reverse(launches))
    launch.erase();
  for (Operation *view : llvm::reverse(views))
    if (view->use_empty())
      view->erase();
}

void Joiner::join(StringRef name) {
  collect();
  FuncOp kernel = createKernel(name);
  symbols.insert(kernel);
  setAttributes(kernel);
  emitPhases(kernel);
  replaceLaunches(createLaunch(kernel));
}
