//===- PipelineParts.cpp - parts of a loop's body at another place --------===//

#include "GretaTile/LinearAddress.h"
#include "GretaTile/LoopAttributes.h"
#include "PipelineLoop.h"

using namespace mlir;
using namespace greta;
using namespace greta::tile;

/// Emits the addresses of an iteration's loads. Facts that hold for all
/// iterations of the loop are stated again, since bounds of accesses follow
/// from them; ranges know those of constants.
IRMapping LoopPipeliner::emitAddresses(Value k) {
  using Predicate = arith::CmpIPredicate;
  auto assume = [&](Predicate predicate, Value bound) {
    AssumeOp::create(b, compare(predicate, k, bound));
  };
  if (!length()) {
    assume(Predicate::sge, loop.getLowerBound());
    assume(Predicate::slt, loop.getUpperBound());
  }
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (Operation *op : body.addresses)
    b.clone(*op, mapping);
  return mapping;
}

SmallVector<Value> LoopPipeliner::emitLoads(Value k) {
  IRMapping mapping = emitAddresses(k);
  SmallVector<Value> results;
  for (Operation *op : body.loads) {
    Operation *load = b.clone(*op, mapping);
    if (selected.contains(op))
      load->setAttr(aheadName, b.getUnitAttr());
    if (body.isGemm && isa<LoadOp>(load) &&
        load->getBlock() == loop->getBlock())
      load->setAttr(firstName, b.getUnitAttr());
    results.push_back(load->getResult(0));
  }
  return results;
}

/// Chooses the masked loads whose selection comes later, when the block is
/// stored. With one stage those do that have no mask of the target's own, if
/// elements that are masked off lie only at the ends of dimensions: the
/// selection is then in a branch of the whole workgroup, for blocks there. More
/// stages hide the selection, so it stays at the load.
void LoopPipeliner::chooseSelects(const Facts &facts) {
  if (attr.getStages() != 1)
    return;
  for (Operation *op : body.loads) {
    SmallVector<Bound> asked;
    if (auto scattered = dyn_cast<LoadScatteredOp>(op)) {
      auto bounds = scattered.getMask() ? getMaskBounds(scattered.getMask())
                                        : std::nullopt;
      if (bounds && bounds->areUpper())
        for (const MaskBound &bound : bounds->bounds)
          asked.push_back(
              {bound.dim, *bound.scalarOffset(), *bound.scalarBound()});
    } else if (auto load = cast<LoadOp>(op); !row.masksLoads()) {
      auto type = cast<RankedTensorType>(load.getResult().getType());
      for (auto [dim, bound] : llvm::zip(load.getBounded(), load.getBounds())) {
        Value offset = load.getOffsets()[dim];
        if (!load.isClamped(dim) &&
            !facts.isWithin(op, offset, bound, type.getDimSize(dim)))
          asked.push_back({unsigned(dim), offset, bound});
      }
      if (load.getNonnegative())
        asked.clear();
    }
    if (!asked.empty())
      selected[op] = asked;
  }
}

/// Returns the mask of a strided block: along each dimension an index is below
/// what the bound leaves from the block's first element on.
static Value maskOf(RankedTensorType block,
                    ArrayRef<std::pair<unsigned, Value>> ends, Arithmetic &a) {
  Type indices = block.clone(a.b.getI32Type());
  Value mask;
  for (auto [dim, end] : ends) {
    Value index = IotaOp::create(a.b, indices, dim);
    Value within = a.below(index, SplatOp::create(a.b, indices, end));
    mask = a.allOf(mask, within);
  }
  return mask;
}

/// Emits selections of the values that `mapping` has for loads.
void LoopPipeliner::emitSelects(Value k, IRMapping &mapping) {
  if (selected.empty())
    return;
  IRMapping iteration = emitAddresses(k);
  Value isPartial;
  SmallVector<Value> blocks;
  llvm::MapVector<Operation *, SmallVector<std::pair<unsigned, Value>>> limits;
  for (auto &[load, bounds] : selected) {
    auto type = cast<RankedTensorType>(load->getResult(0).getType());
    for (const Bound &bound : bounds) {
      Value within = iteration.lookupOrDefault(bound.bound);
      if (bound.offset) {
        Value offset = iteration.lookupOrDefault(bound.offset);
        Type type = within.getType().getIntOrFloatBitWidth() <
                            offset.getType().getIntOrFloatBitWidth()
                        ? offset.getType()
                        : within.getType();
        for (Value *value : {&within, &offset})
          if (value->getType() != type)
            *value = arith::ExtSIOp::create(b, type, *value);
        if (getConstantIntValue(offset) != 0)
          within = sub(within, offset);
      }
      limits[load].push_back({bound.dim, within});
      Value extent = arith::ConstantIntOp::create(b, within.getType(),
                                                  type.getDimSize(bound.dim));
      Value ends = below(within, extent);
      isPartial = isPartial ? either(isPartial, ends) : ends;
    }
    blocks.push_back(mapping.lookup(load->getResult(0)));
  }
  auto branch = scf::IfOp::create(b, ValueRange(blocks).getTypes(), isPartial,
                                  /*addThenBlock=*/true, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, blocks);
  b.setInsertionPointToEnd(branch.thenBlock());
  for (auto [entry, block] : llvm::zip(limits, blocks)) {
    auto scattered = dyn_cast<LoadScatteredOp>(entry.first);
    auto type = cast<RankedTensorType>(block.getType());
    Value mask = scattered ? iteration.lookupOrDefault(scattered.getMask())
                           : maskOf(type, entry.second, *this);
    Value other =
        scattered ? scattered.getOther() : cast<LoadOp>(entry.first).getOther();
    other = other ? iteration.lookupOrDefault(other) : zeroOf(type);
    if (!isa<RankedTensorType>(other.getType()))
      other = SplatOp::create(b, type, other);
    block = select(mask, block, other);
  }
  scf::YieldOp::create(b, blocks);
  for (auto [entry, block] : llvm::zip(limits, branch.getResults()))
    mapping.map(entry.first->getResult(0), block);
}

Value LoopPipeliner::asStored(const Placed &place, Value block) {
  if (block.getType() == place.stored)
    return block;
  return ConvertLayoutOp::create(b, place.stored, block);
}

/// Computes the operands from the loaded values.
SmallVector<Value> LoopPipeliner::emitPrepared(Value k, ValueRange loaded,
                                               SmallVectorImpl<Value> &sums) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), k);
  for (auto [entry, sum] : llvm::zip(body.sums, sums))
    mapping.map(loop.getRegionIterArg(entry.first), sum);
  for (auto [load, value] : llvm::zip(body.loads, loaded))
    mapping.map(load->getResult(0), value);
  emitSelects(k, mapping);
  for (Operation *op : body.prepare)
    b.clone(*op, mapping);
  for (auto [entry, sum] : llvm::zip(body.sums, sums))
    sum = mapping.lookup(entry.second->getResult(0));
  SmallVector<Value> prepared;
  for (auto [operand, place] : llvm::zip(body.operands, placed)) {
    prepared.push_back(
        operand.isFixed
            ? Value()
            : asStored(place, mapping.lookupOrDefault(operand.source)));
  }
  return prepared;
}

void LoopPipeliner::emitStores(ValueRange prepared, Value stage) {
  for (auto [place, value] : llvm::zip(placed, prepared))
    if (value)
      LocalStoreOp::create(b, value, place.local, stage);
}

void LoopPipeliner::emitFixed() {
  IRMapping mapping;
  for (Operation *op : body.fixed)
    b.clone(*op, mapping);
  for (auto [operand, place] : llvm::zip(body.operands, placed))
    if (operand.isFixed)
      LocalStoreOp::create(b, asStored(place, mapping.lookup(operand.source)),
                           place.local, i32(0));
}

void LoopPipeliner::emitDirect(Value k, Value stage) {
  IRMapping mapping = emitAddresses(k);
  for (auto [operand, place] : llvm::zip(body.operands, placed)) {
    Operation *load = b.clone(*operand.source.getDefiningOp(), mapping);
    load->getResult(0).setType(place.stored);
    LocalStoreOp::create(b, load->getResult(0), place.local, stage,
                         /*direct=*/true);
  }
}

Value LoopPipeliner::advanced(Value stage, int64_t distance) {
  int64_t stages = attr.getStages();
  if (std::optional<int64_t> known = getConstantIntValue(stage))
    return i32((*known + distance) % stages);
  if (stages == 2)
    return sub(i32(1), stage);
  // Adds, or takes off, whatever the sum is.
  Value more = add(stage, i32(distance));
  Value less = add(stage, i32(distance - stages));
  Value fits = below(more, i32(stages));
  return select(fits, more, less);
}

Parts LoopPipeliner::emitReads(ArrayRef<DotOp> dots, Value stage, Value at,
                               int64_t extent) {
  Parts parts(body.operands.size());
  for (DotOp dot : dots)
    for (unsigned side : {0u, 1u}) {
      if (!body.isLoaded(dot, side))
        continue;
      const LoadedOperand &operand = body.operandOf(dot, side);
      unsigned number = &operand - body.operands.begin();
      if (parts[number])
        continue;
      Layout layout = toLayout(getLayoutOf(operand.type));
      Basis rep(layout.rep());
      rep[operand.kDim] = extent / operand.tileDepth();
      SmallVector<int64_t> shape(operand.type.getShape());
      shape[operand.kDim] = extent;
      auto type = RankedTensorType::get(
          shape, operand.type.getElementType(),
          toAttr(b.getContext(),
                 Layout(layout.reg(), layout.lane(), layout.wave(), rep)));
      SmallVector<Value> offsets(shape.size(), i32(0));
      offsets[operand.kDim] = at;
      parts[number] =
          LocalLoadOp::create(b, type, placed[number].local,
                              operand.isFixed ? i32(0) : stage, offsets);
    }
  return parts;
}

SmallVector<Value> LoopPipeliner::emitDots(ArrayRef<DotOp> dots,
                                           const Parts &parts,
                                           ValueRange accumulators) {
  SmallVector<Value> sums(accumulators);
  auto partOf = [&](DotOp dot, unsigned side) {
    return parts[&body.operandOf(dot, side) - body.operands.begin()];
  };
  for (DotOp dot : dots) {
    Value &sum = sums[body.isGemm ? body.chainOf(dot) : 0];
    sum = DotOp::create(b, sum.getType(), partOf(dot, 0), partOf(dot, 1), sum,
                        dot.getMatrixAttr());
  }
  return sums;
}

SmallVector<Value> LoopPipeliner::emitSlices(ArrayRef<DotOp> dots, Value stage,
                                             int64_t slice,
                                             ValueRange accumulators,
                                             llvm::function_ref<void()> fill) {
  int64_t depth = body.operandOf(dots.front(), 0).depth();
  SmallVector<Value> sums(accumulators);
  if (body.isLoadedWhole() && !isStagedGemm()) {
    auto slices = scf::ForOp::create(b, i32(0), i32(depth), i32(slice), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(slices.getBody());
    Parts parts = emitReads(dots, stage, slices.getInductionVar(), slice);
    scf::YieldOp::create(b, emitDots(dots, parts, slices.getRegionIterArgs()));
    return slices.getResults();
  }
  // The place of a slice in a swizzled local must be a constant.
  for (int64_t at = 0; at < depth; at += slice) {
    Parts parts = emitReads(dots, stage, i32(at), slice);
    if (at == (isFilledLate() ? depth - slice : 0))
      fill();
    sums = emitDots(dots, parts, sums);
    endStretch();
  }
  return sums;
}

Value LoopPipeliner::emitDot(DotOp dot, Value stage, IRMapping &mapping,
                             llvm::function_ref<bool()> fill) {
  Value acc = mapping.lookupOrDefault(dot.getAcc());
  if (body.isLoaded(dot, 0) && body.isLoaded(dot, 1)) {
    fill();
    const LoadedOperand &operand = body.operandOf(dot, 0);
    bool inTiles = body.isLoadedWhole() || isShortOfRegisters();
    return emitSlices(dot, stage,
                      inTiles ? operand.tileDepth() : operand.depth(), acc)
        .front();
  }
  // An operand in registers has no slices.
  unsigned side = body.isLoaded(dot, 0) ? 0 : 1;
  const LoadedOperand &operand = body.operandOf(dot, side);
  // RADV keeps reads in front of stores there, and what they read in registers,
  // which attention with causal masks then spills.
  bool isFilledFirst = dot.getMatrixAttr() && dot.getMatrixAttr().getElements();
  bool isFirst = isFilledFirst && fill();
  Parts parts = emitReads(dot, stage, i32(0), operand.depth());
  if (!isFilledFirst)
    isFirst = fill();
  Value operands[2];
  operands[side] = parts[&operand - body.operands.begin()];
  operands[1 - side] = mapping.lookupOrDefault(dot->getOperand(1 - side));
  auto product = DotOp::create(b, acc.getType(), operands[0], operands[1], acc,
                               dot.getMatrixAttr());
  endStretch(isFirst);
  return product;
}

IRMapping LoopPipeliner::beginIteration(Value k, ValueRange carried) {
  IRMapping iteration;
  iteration.map(loop.getInductionVar(), k);
  for (auto [place, value] : llvm::zip(body.carried, carried))
    iteration.map(loop.getRegionIterArg(place), value);
  for (Operation *op : body.before)
    b.clone(*op, iteration);
  return iteration;
}

SmallVector<Value> LoopPipeliner::chainInits(IRMapping &iteration) {
  return llvm::map_to_vector(body.chains, [&](const DotChain &chain) {
    return iteration.lookupOrDefault(chain.init);
  });
}

SmallVector<Value> LoopPipeliner::endIteration(IRMapping &iteration,
                                               ValueRange sums) {
  for (auto [chain, sum] : llvm::zip(body.chains, sums))
    iteration.map(DotOp(chain.last).getResult(), sum);
  for (Operation *op : body.after)
    b.clone(*op, iteration);
  return llvm::map_to_vector(body.carried, [&](unsigned place) {
    return iteration.lookupOrDefault(loop.getYieldedValues()[place]);
  });
}

SmallVector<Value> LoopPipeliner::emitCompute(Value k, Value stage,
                                              ValueRange carried,
                                              llvm::function_ref<void()> fill) {
  IRMapping mapping = beginIteration(k, carried);
  bool isFilled = false;
  for (Operation *op : body.compute) {
    auto dot = dyn_cast<DotOp>(op);
    if (!dot || !llvm::is_contained(body.dots, dot)) {
      b.clone(*op, mapping);
      continue;
    }
    mapping.map(dot.getResult(), emitDot(dot, stage, mapping, [&] {
                  if (std::exchange(isFilled, true))
                    return false;
                  fill();
                  return true;
                }));
  }
  return endIteration(mapping, /*sums=*/{});
}
