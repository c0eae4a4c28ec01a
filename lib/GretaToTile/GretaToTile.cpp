//===- GretaToTile.cpp - the pass greta-to-tile ---------------------------===//
//
// Every greta.kernel with a schedule becomes a greta_tile.func and a
// greta_tile.launch in its place. This file makes the kernel's arguments and
// its grid, and gives each workgroup a space. GretaToTileSpace.cpp and
// GretaToTileOps.cpp emit a workgroup's work in its space.
//
//   pointers of operands, pointers of results, i32 scalars
//   workgroups 0 .. n0-1 do space 0, the next n1 space 1, ..
//
// If one axis of the grid is limited and the number of workgroups n is not
// known to stay below, the grid has two axes: y = n floordiv limit + 1 and
// x = ceildiv(n, y), and the workgroups beyond n do nothing.
//
//===----------------------------------------------------------------------===//

#include "GretaToTileCache.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

namespace greta {
#define GEN_PASS_DEF_GRETATOTILEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

namespace {
class KernelConverter {
public:
  KernelConverter(KernelOp kernel, StringRef name,
                  ArrayRef<CacheUpdate> updates, int64_t units)
      : kernel(kernel), name(name), updates(updates), units(units) {}
  LogicalResult run();

private:
  SmallVector<Type> collectBuffers(SmallVector<Type> &pointers);
  void emitFunction(ImplicitLocOpBuilder &b, ArrayRef<Type> pointers);
  void emitBody(ImplicitLocOpBuilder &b);
  tile::LaunchOp emitLaunch(ImplicitLocOpBuilder &b, ArrayRef<Type> results);
  void replaceKernel(tile::LaunchOp launch);
  std::unique_ptr<Emitter> emitterOf(const EmitterContext &context);
  Value linearIndex(ImplicitLocOpBuilder &b);
  const CacheUpdate *updateOf(unsigned result) const {
    auto found = llvm::find_if(updates, [&](const CacheUpdate &update) {
      return update.rows == kernel->getResult(result);
    });
    return found == updates.end() ? nullptr : &*found;
  }
  Value argumentOf(Value buffer) {
    return func.getBody().getArgument(llvm::find(buffers, buffer) -
                                      buffers.begin());
  }
  DictionaryAttr launchConfig();

  KernelOp kernel;
  std::string name;
  ArrayRef<CacheUpdate> updates; // that take rows from this kernel
  int64_t units;                 // workgroups that run at a time, at least
  SmallVector<Space> spaces;
  Schedule schedule;
  // The operands that results have the memory of, where a cache is updated.
  SmallVector<Value> updated;
  tile::FuncOp func;
  std::unique_ptr<ScalarArguments> scalars;
  llvm::SetVector<Value> buffers; // the operands, each once
  SmallVector<AffineExpr> grid;
  AffineExpr total; // workgroups
  SmallVector<AffineExpr> scratchExtents;
  SmallVector<int64_t> zeroed; // results of the launch
};
} // namespace

/// Chooses the grid, and returns the number of this workgroup in it.
Value KernelConverter::linearIndex(ImplicitLocOpBuilder &b) {
  Value x = tile::ProgramIdOp::create(b, 0);
  auto constant = dyn_cast<AffineConstantExpr>(total);
  if (!schedule.gridLimit ||
      (constant && constant.getValue() <= schedule.gridLimit)) {
    grid = {total};
    return x;
  }
  AffineExpr rows = total.floorDiv(schedule.gridLimit) + 1;
  grid = {total.ceilDiv(rows), rows};
  Value y = tile::ProgramIdOp::create(b, 1);
  return arith::AddIOp::create(
      b, arith::MulIOp::create(b, y, scalars->get(b, grid[0])), x);
}

std::unique_ptr<Emitter>
KernelConverter::emitterOf(const EmitterContext &context) {
  Operation *alone = context.space.alone;
  if (!alone)
    return std::make_unique<SpaceEmitter>(context,
                                          spaces.size() == 1 ? units : 0);
  if (!updated.empty())
    return makeUpdateEmitter(context);
  return isa<AttentionBackwardOp>(alone) ? makeAttentionBackwardEmitter(context)
                                         : makeAttentionEmitter(context);
}

void KernelConverter::emitBody(ImplicitLocOpBuilder &b) {
  SmallVector<Value> inputs, outputs;
  SmallVector<CacheRows> caches;
  for (Value input : kernel.getInputs())
    inputs.push_back(argumentOf(input));
  ArrayRef<BlockArgument> others =
      func.getBody().getArguments().drop_front(buffers.size());
  for (unsigned i = 0; updated.empty() && i < kernel.getNumResults(); ++i) {
    CacheRows &rows = caches.emplace_back();
    if (const CacheUpdate *update = updateOf(i)) {
      outputs.push_back(argumentOf(update->cache));
      rows = {argumentOf(update->slots), update->count};
    } else {
      outputs.push_back(others.front());
      others = others.drop_front();
    }
  }
  SmallVector<Value> scratch(others);
  unsigned nextOutput = 0, nextScratch = 0;
  SmallVector<std::unique_ptr<Emitter>> emitters;
  SmallVector<AffineExpr> counts;
  total = getAffineConstantExpr(0, kernel.getContext());
  for (auto [i, region] : llvm::enumerate(kernel.getSpaces())) {
    unsigned numOutputs = region.front().getTerminator()->getNumOperands();
    size_t numScratch = scratchTypes(spaces[i], schedule.spaces[i]).size();
    unsigned numStored = updated.empty() ? numOutputs : 0;
    EmitterContext::Pointers pointers{
        inputs, ValueRange(outputs).slice(nextOutput, numStored),
        ValueRange(scratch).slice(nextScratch, numScratch),
        ArrayRef(caches).slice(nextOutput, numStored)};
    emitters.push_back(emitterOf({{b},
                                  kernel,
                                  region,
                                  spaces[i],
                                  schedule.spaces[i],
                                  *scalars,
                                  pointers}));
    nextOutput += numOutputs;
    nextScratch += numScratch;
    counts.push_back(emitters.back()->workgroups());
    total = total + counts.back();
  }
  Value index = linearIndex(b);
  bool isGuarded = grid.size() > 1;
  OpBuilder::InsertionGuard guard(b);
  for (auto [i, emitter] : llvm::enumerate(emitters)) {
    bool isLast = i + 1 == emitters.size();
    auto emit = [&, &emitter = emitter] {
      emitter->emit(index);
      llvm::append_range(scratchExtents, emitter->scratchExtents());
    };
    if (isLast && !isGuarded) {
      emit();
      continue;
    }
    Value count = scalars->get(b, counts[i]);
    Value mine =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, count);
    auto branch = scf::IfOp::create(b, mine, /*withElseRegion=*/!isLast);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    emit();
    if (isLast)
      continue;
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
    index = arith::SubIOp::create(b, index, count);
  }
}

/// Returns an instruction's name, "mfma.f32.32x32x8f16" or "coopmat 16x8x16",
/// whose sizes are M, N and K.
static std::string describe(tile::MatrixAttr matrix) {
  std::string text = matrix.getIntrinsic().str();
  if (!matrix.isCooperative())
    return text;
  Index a = toLayout(matrix.getA()).shape(),
        b = toLayout(matrix.getB()).shape();
  return (text + " " + Twine(a[0]) + "x" + Twine(b[1]) + "x" + Twine(a[1]))
      .str();
}

/// Returns the schedule for people and tools: its entries as integers and
/// names.
DictionaryAttr KernelConverter::launchConfig() {
  Builder b(kernel.getContext());
  NamedAttrList entries;
  entries.set("waves", b.getI64IntegerAttr(schedule.numWaves()));
  for (auto [i, space] : llvm::enumerate(schedule.spaces)) {
    auto set = [&, i = i](StringRef name, Attribute value) {
      entries.set(i ? (name + "_" + Twine(i)).str() : name.str(), value);
    };
    auto add = [&, &space = space](StringRef name, auto member) {
      const auto &value = space.*member;
      using Entry = std::decay_t<decltype(value)>;
      if (value == SpaceSchedule().*member && name != "columns")
        return;
      if constexpr (std::is_same_v<Entry, tile::MatrixAttr>) {
        set("instruction", b.getStringAttr(describe(value)));
      } else if constexpr (std::is_same_v<Entry, tile::PipelineAttr>) {
        set("stages", b.getI64IntegerAttr(value.getStages()));
        set("slice", b.getI64IntegerAttr(value.getSlice()));
        if (value.getDirect())
          set("direct", b.getI64IntegerAttr(value.getDirect()));
      } else if constexpr (std::is_same_v<Entry, SmallVector<int64_t>>) {
        set(name, b.getI64IntegerAttr(llvm::product_of(value)));
      } else {
        set(name, b.getI64IntegerAttr(value));
      }
    };
    SpaceSchedule::forEachEntry(add);
  }
  return entries.getDictionary(kernel.getContext());
}

/// Returns the types of the launch's results, temporary memory included.
/// `pointers` gets the types of the kernel's pointers.
SmallVector<Type> KernelConverter::collectBuffers(SmallVector<Type> &pointers) {
  buffers.insert_range(kernel.getInputs());
  for (const CacheUpdate &update : updates)
    buffers.insert_range(ValueRange{update.cache, update.slots});
  auto addPointer = [&](Value tensor) {
    pointers.push_back(tile::PtrType::get(getElementTypeOrSelf(tensor)));
  };
  llvm::for_each(buffers, addPointer);
  if (Operation *alone = spaces.front().alone; alone && getUpdatedCache(alone))
    for (Value made :
         kernel.getSpaces().front().front().getTerminator()->getOperands()) {
      auto cache = cast<BlockArgument>(getUpdated(cast<OpResult>(made))->get());
      updated.push_back(kernel.getInputs()[cache.getArgNumber()]);
    }
  SmallVector<Type> results(kernel.getResultTypes());
  for (const CacheUpdate &update : updates)
    results[update.rows.getResultNumber()] = update.cache.getType();
  for (OpResult result : kernel->getResults())
    if (updated.empty() && !updateOf(result.getResultNumber()))
      addPointer(result);
  // Scratch memory is results that nobody uses.
  for (auto [space, spaceConfig] : llvm::zip(spaces, schedule.spaces)) {
    SmallVector<Type> scratch = scratchTypes(space, spaceConfig);
    for (Type element : scratch) {
      pointers.push_back(tile::PtrType::get(element));
      results.push_back(RankedTensorType::get({ShapedType::kDynamic}, element));
    }
    if (!scratch.empty())
      zeroed.push_back(results.size() - 1);
  }
  return results;
}

void KernelConverter::emitFunction(ImplicitLocOpBuilder &b,
                                   ArrayRef<Type> pointers) {
  b.setInsertionPoint(kernel->getParentOfType<func::FuncOp>());
  func = tile::FuncOp::create(b, name, b.getFunctionType(pointers, {}),
                              schedule.numWaves(), schedule.waveSize);
  if (schedule.waves)
    func.removeWaveSizeAttr();
  // If workgroups wait for each other's partial sums, their loads need no order
  // with that.
  if (!zeroed.empty())
    for (unsigned i = 0; i < buffers.size(); ++i)
      func.setArgAttr(i, tile::readonlyName, b.getUnitAttr());
  scalars = std::make_unique<ScalarArguments>(func);
  b.setInsertionPointToStart(&func.getBody().front());
  auto end = tile::ReturnOp::create(b);
  b.setInsertionPoint(end);
  emitBody(b);
}

tile::LaunchOp KernelConverter::emitLaunch(ImplicitLocOpBuilder &b,
                                           ArrayRef<Type> results) {
  unsigned numSymbols = 0;
  for (AffineMap shape : kernel.getShapes().getAsValueRange<AffineMapAttr>())
    numSymbols = std::max(numSymbols, shape.getNumSymbols());
  auto mapOf = [&](ArrayRef<AffineExpr> results) {
    return AffineMap::get(0, numSymbols, results, b.getContext());
  };
  // Results in the memory of an operand, and the shapes of the others.
  SmallVector<int64_t> tied(results.size(), -1);
  SmallVector<Attribute> shapes;
  for (unsigned i = 0; i < kernel.getNumResults(); ++i) {
    const CacheUpdate *update = updateOf(i);
    if (Value memory = update            ? update->cache
                       : updated.empty() ? Value()
                                         : updated[i])
      tied[i] = llvm::find(buffers, memory) - buffers.begin();
    else
      shapes.push_back(kernel.getShapes()[kernel.getInputs().size() + i]);
  }
  bool hasTied =
      llvm::any_of(tied, [](int64_t operand) { return operand >= 0; });
  for (AffineExpr extent : scratchExtents)
    shapes.push_back(AffineMapAttr::get(mapOf(extent)));
  b.setInsertionPoint(kernel);
  return tile::LaunchOp::create(
      b, results, name, buffers.getArrayRef(), mapOf(grid),
      mapOf(scalars->expressions()),
      hasTied ? b.getDenseI64ArrayAttr(tied) : nullptr,
      zeroed.empty() ? nullptr : b.getDenseI64ArrayAttr(zeroed),
      b.getArrayAttr(shapes), launchConfig(),
      updates.empty() && updated.empty()
          ? rowArguments(kernel, buffers.getArrayRef())
          : nullptr);
}

void KernelConverter::replaceKernel(tile::LaunchOp launch) {
  for (OpResult result : kernel->getResults()) {
    Value made = launch.getResult(result.getResultNumber());
    if (const CacheUpdate *update = updateOf(result.getResultNumber())) {
      // Ops that only brought the rows there go away with their users.
      KernelOp moves = update->kernel;
      moves->getResult(0).replaceAllUsesWith(made);
      Value rows = update->moved;
      moves.erase();
      while (rows != result) {
        Operation *view = rows.getDefiningOp();
        rows = view->getOperand(0);
        view->erase();
      }
      continue;
    }
    result.replaceAllUsesWith(made);
  }
  kernel.erase();
}

LogicalResult KernelConverter::run() {
  FailureOr<SmallVector<Space>> analyzed = analyzeSpaces(kernel);
  if (failed(analyzed))
    return failure();
  spaces = std::move(*analyzed);
  if (failed(checkSchedule(kernel, spaces)))
    return failure();
  schedule = kernel.getScheduleAttr().getValue();
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  SmallVector<Type> pointers;
  SmallVector<Type> results = collectBuffers(pointers);
  emitFunction(b, pointers);
  replaceKernel(emitLaunch(b, results));
  return success();
}

namespace {
struct GretaToTilePass : greta::impl::GretaToTilePassBase<GretaToTilePass> {
  using GretaToTilePassBase::GretaToTilePassBase;
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<std::pair<KernelOp, std::string>> kernels;
    llvm::DenseMap<Operation *, SmallVector<CacheUpdate>> updates;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      llvm::SmallDenseSet<Operation *> joined;
      for (const CacheUpdate &update : findCacheUpdates(function)) {
        updates[update.rows.getOwner()].push_back(update);
        joined.insert(update.kernel);
      }
      unsigned number = 0;
      function.walk([&](KernelOp kernel) {
        if (!joined.contains(kernel))
          kernels.push_back(
              {kernel, (function.getName() + "_" + Twine(number++)).str()});
      });
    }
    for (auto &[kernel, name] : kernels) {
      if (symbols.lookup(name)) {
        kernel.emitOpError("would become @")
            << name << ", which exists; rename that function";
        return signalPassFailure();
      }
      if (failed(KernelConverter(kernel, name, updates[kernel], units).run()))
        return signalPassFailure();
    }
  }
};
} // namespace
