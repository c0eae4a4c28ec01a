//===- GretaToTileSpace.cpp - blocks of a space, and the order of the work ===//
//
// The places of a workgroup's blocks in every tensor, and what is computed
// when:
//
//   stage 0     reductions of the inputs: sums of squares, maxima
//   stage 1     reductions that need those: variances, sums of exponentials
//   ..
//   at the end  the outputs
//
// With the row in registers all of it is straight-line code. With `loop`, each
// stage is a loop over blocks of columns whose accumulators are blocks, reduced
// once after the loop, and one more loop writes; what depends on columns is
// computed again in each, what does not goes before the loop.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/LoopAttributes.h"
#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

Value ScalarArguments::get(ImplicitLocOpBuilder &b, AffineExpr expr) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return Arithmetic{b}.i32(constant.getValue());
  for (auto [known, argument] : llvm::zip(exprs, arguments))
    if (known == expr)
      return argument;
  exprs.push_back(expr);
  auto isExtent = b.getNamedAttr(tile::nonNegativeName, b.getUnitAttr());
  LogicalResult added =
      kernel.insertArgument(kernel.getNumArguments(), b.getI32Type(),
                            b.getDictionaryAttr(isExtent), kernel.getLoc());
  assert(succeeded(added) && "kernels take i32");
  (void)added;
  arguments.push_back(kernel.getArguments().back());
  return arguments.back();
}

SpaceEmitter::SpaceEmitter(const EmitterContext &context, int64_t units)
    : Emitter(context), units(units), identity(identityMapping(space.rank())) {
  MLIRContext *mlir = kernel.getContext();
  // A block that moved would lie across rows of scales.
  bool sharesRows = false;
  kernel.walk(
      [&](DequantOp dequant) { sharesRows |= dequant.getRow().scaleRows > 1; });
  auto add = [&](Dim::Kind kind, int64_t group, int64_t extent,
                 AffineExpr size) {
    auto constant = dyn_cast<AffineConstantExpr>(size);
    bool masked =
        constant ? constant.getValue() % extent != 0
                 : extent > 1 && size.getLargestKnownDivisor() % extent != 0;
    // The last block of a GEMM's side moves in from the edge where that
    // keeps accesses aligned: two workgroups then write the same results, and
    // no block needs clamps or masks.
    constexpr int64_t aligned = 16;
    int64_t unit = group == 1 ? space.headSize() : 1;
    bool moved = masked && config.pipeline && constant &&
                 (!sharesRows || kind != Dim::Column) &&
                 constant.getValue() > extent &&
                 (constant.getValue() - extent) * unit % aligned == 0;
    bool grouped = kind == Dim::Group && isGrouped();
    if (grouped) {
      masked = extent > 1;
      moved = false;
    }
    dims.push_back({kind, group, extent, size, masked && !moved, Value(), 0});
    dims.back().moved = moved;
    dims.back().grouped = grouped;
  };
  if (config.flat) {
    add(Dim::Group, -1, 1, fixed(1));
    add(Dim::Column, -1, config.columns, space.size(mlir));
    columnDim = 1;
    return;
  }
  for (unsigned group = 0; group < space.groups.size(); ++group) {
    AffineExpr rows = space.rows(group, mlir);
    if (space.matmul && !space.heads && group + 1 < space.groups.size())
      batch.push_back(
          {Dim::Group, group, 1, rows, /*masked=*/false, Value(), 0});
    else
      add(Dim::Group, group, config.rows[group], rows);
    // A dynamic M that its range keeps within a tile.
    bool isM =
        space.matmul && group == (space.heads ? 0 : space.groups.size() - 1);
    if (isM && !isGrouped() && !isa<AffineConstantExpr>(rows)) {
      int64_t most = expectedRows(space.matmul);
      dims.back().isAlone =
          !ShapedType::isDynamic(most) && most <= dims.back().extent;
    }
  }
  AffineExpr two = fixed(2);
  if (space.pairs == Space::Pairs::Halves) {
    pairDim = dims.size();
    add(Dim::Pair, -1, 2, two);
  }
  columnDim = dims.size();
  add(Dim::Column, -1, config.columns, space.columns(mlir));
  if (space.pairs == Space::Pairs::Neighbours) {
    pairDim = dims.size();
    add(Dim::Pair, -1, 2, two);
  }
  if (config.run)
    addDepth();
}

/// Whether a dimension is divided among workgroups. Columns are not if the
/// workgroup loops over them, or needs whole rows; a skinny GEMM's K never is.
bool SpaceEmitter::isSplit(const Dim &dim) const {
  return dim.kind == Dim::Group || (dim.kind == Dim::Column && !config.loop);
}

AffineExpr SpaceEmitter::workgroups() {
  AffineExpr count = fixed(config.split);
  for (const Dim &dim : dims) {
    if (!isSplit(dim))
      continue;
    count = count * blocksOf(dim);
  }
  for (const Dim &dim : batch)
    count = count * dim.size;
  return count;
}

/// Sets the offsets of workgroup `index`. Columns vary fastest, the batch
/// slowest.
void SpaceEmitter::locate(Value index) {
  SmallVector<Dim *> shared;
  for (Dim &dim : dims)
    if (isSplit(dim) && (dim.grouped || blocksOf(dim) != fixed(1)))
      shared.push_back(&dim);
  auto countOf = [&](const Dim &dim) -> Value {
    AffineExpr blocks = blocksOf(dim);
    if (isa<AffineConstantExpr>(blocks) || dim.grouped)
      return scalars.get(b, blocks);
    Value count = scalars.get(b, dim.size);
    if (dim.extent == 1)
      return count;
    count = add(count, i32(dim.extent - 1));
    return div(count, i32(dim.extent));
  };
  auto place = [&](Dim &dim, Value at) {
    bool isSlot = dim.extent == 1 || dim.grouped; // enterGroup has the rows
    dim.offset = isSlot ? at : mul(at, i32(dim.extent));
    if (dim.moved)
      dim.offset =
          minU(dim.offset,
               i32(cast<AffineConstantExpr>(dim.size).getValue() - dim.extent));
  };
  if (!batch.empty()) {
    Value each = i32(1);
    for (const Dim *dim : shared)
      each = mul(each, countOf(*dim));
    Value product = div(index, each);
    index = rem(index, each);
    for (Dim &dim : llvm::reverse(batch)) {
      dim.offset = product;
      if (&dim == batch.begin())
        break;
      Value count = scalars.get(b, dim.size);
      dim.offset = rem(product, count);
      product = div(product, count);
    }
  }
  // The parts of a split GEMM follow one another.
  auto takePart = [&](Value tiles) {
    if (config.split == 1)
      return;
    part = div(index, tiles);
    tileNumber = index = rem(index, tiles);
  };
  // Workgroups that run at a time cover a near square, so that they find
  // blocks of both operands in the cache: columns of `group` rows each, the
  // last group of rows may be smaller.
  if (config.group > 1 && shared.size() == 2) {
    Value rows = countOf(*shared[0]), columns = countOf(*shared[1]);
    Value all = mul(rows, columns);
    // Workgroups go to the chiplets in turn, and each has a cache of its own:
    // give each a part of the order. Workgroups beyond the last whole share
    // keep their places.
    if (config.chiplets > 1) {
      Value chiplets = i32(config.chiplets);
      Value each = div(mul(all, i32(config.split)), chiplets);
      Value moved = add(mul(rem(index, chiplets), each), div(index, chiplets));
      Value divides = compare(Predicate::ult, index, mul(each, chiplets));
      index = select(divides, moved, index);
    }
    takePart(all);
    Value size = mul(columns, i32(config.group));
    Value first = mul(div(index, size), i32(config.group));
    Value high = minU(sub(rows, first), i32(config.group));
    Value rest = rem(index, size);
    place(*shared[0], add(first, rem(rest, high)));
    return place(*shared[1], div(rest, high));
  }
  Value tiles = i32(1);
  for (Dim *dim : shared)
    tiles = mul(tiles, countOf(*dim));
  takePart(tiles);
  // Columns before (inside of) the rows, whatever their place in the block.
  for (Dim *dim : llvm::reverse(shared)) {
    Value at = index;
    if (dim != shared.front()) {
      Value count = countOf(*dim);
      at = rem(index, count);
      index = div(index, count);
    }
    place(*dim, at);
  }
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

bool SpaceEmitter::hasColumns(const Mapping &mapping) const {
  if (config.flat)
    return mapping.size() == identity.size();
  return llvm::is_contained(mapping, space.rank()) ||
         (space.rank() > 0 && llvm::is_contained(mapping, space.rank() - 1));
}

bool SpaceEmitter::isMapped(const Dim &dim, const Mapping &mapping) const {
  if (dim.kind == Dim::Column)
    return hasColumns(mapping);
  if (dim.kind == Dim::Pair)
    return llvm::is_contained(mapping, space.rank() - 1);
  if (dim.kind == Dim::Depth || dim.kind == Dim::Run)
    return hasDepth(mapping);
  if (dim.group < 0 || space.groups[dim.group].empty())
    return false;
  return llvm::is_contained(mapping, space.groups[dim.group].front());
}

SmallVector<int64_t> SpaceEmitter::shapeOf(const Mapping &mapping) const {
  SmallVector<int64_t> shape;
  for (const Dim &dim : dims)
    shape.push_back(isMapped(dim, mapping) ? dim.extent : 1);
  return shape;
}

RankedTensorType SpaceEmitter::blockType(const Mapping &mapping, Type element) {
  return block(shapeOf(mapping), element);
}

AffineMap SpaceEmitter::shapeOfArgument(unsigned index) {
  return cast<AffineMapAttr>(kernel.getShapes()[index]).getValue();
}

/// Returns the layout of one matrix of a grouped GEMM, or of any other tensor.
TensorLayout SpaceEmitter::layoutOf(BlockArgument argument) {
  TensorLayout layout = TensorLayout::of(kernel, argument.getArgNumber());
  if (isGrouped() && layout.strides.size() == 3)
    layout.strides.erase(layout.strides.begin());
  return layout;
}

/// Returns the pointer of an argument. Pointers of views are computed before
/// anything else.
Value SpaceEmitter::pointerOf(BlockArgument argument) {
  unsigned number = argument.getArgNumber();
  Value view = views.lookup(number);
  return view ? view : pointers.inputs[number];
}

Value SpaceEmitter::elements(AffineExpr count) {
  auto constant = dyn_cast<AffineConstantExpr>(count);
  return constant ? i64(constant.getValue()) : large(scalars.get(b, count));
}

void SpaceEmitter::locateViews() {
  for (BlockArgument argument : region.getArguments()) {
    AffineExpr offset = layoutOf(argument).offset;
    if (argument.use_empty() || offset == fixed(0))
      continue;
    views[argument.getArgNumber()] =
        advance(pointerOf(argument), elements(offset));
  }
}

AffineExpr greta::strideOf(int64_t spaceDim, const TensorLayout &layout,
                           const Mapping &mapping) {
  return layout.strides[llvm::find(mapping, spaceDim) - mapping.begin()];
}

/// Moves a pointer, before all loops, to the part of the tensor that belongs to
/// this workgroup's GEMM.
Value SpaceEmitter::inBatch(Value pointer, const TensorLayout &layout,
                            const Mapping &mapping) {
  OpBuilder::InsertionGuard guard(b);
  while (auto around =
             dyn_cast<scf::ForOp>(b.getInsertionBlock()->getParentOp()))
    b.setInsertionPoint(around);
  for (const Dim &dim : batch) {
    int64_t last = space.groups[dim.group].back();
    if (!llvm::is_contained(mapping, last))
      continue;
    Value stride = elements(strideOf(last, layout, mapping));
    pointer = advance(pointer, mul(large(dim.offset), stride));
  }
  return pointer;
}

Value SpaceEmitter::reached(Value offset, Value bound) {
  if (!getConstantIntValue(offset))
    tile::AssumeOp::create(b, below(offset, bound));
  return bound;
}

SpaceEmitter::Access SpaceEmitter::access(const TensorLayout &layout,
                                          const Mapping &mapping) {
  Access result;
  bool isHalf = llvm::is_contained(mapping, space.rank()),
       isDepth = hasDepth(mapping);
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!isMapped(dim, mapping)) {
      addDim(result, Value(), fixed(0));
      continue;
    }
    AffineExpr stride = fixed(1);
    if (dim.kind == Dim::Group)
      stride = strideOf(space.groups[dim.group].back(), layout, mapping);
    else if (isDepth)
      stride =
          strideOf(dim.unit ? depthId() : space.rank() - 1, layout, mapping) *
          std::max<int64_t>({1, dim.unit, dim.step});
    else if (space.pairs == Space::Pairs::Neighbours && !isHalf)
      stride = fixed(dim.kind == Dim::Column ? 2 : 1);
    else if (dim.kind == Dim::Pair)
      stride = space.columns(kernel.getContext());

    addDim(result, dim.offset, stride);
    if (!dim.masked)
      continue;
    setBound(result, i, reached(result.offsets.back(), boundOf(dim)));
    // Elements beyond M or N go into results that nobody keeps.
    if (isDepth && inOperand && dim.kind != Dim::Depth &&
        result.strides.back() != 1)
      result.clamped.push_back(i);
  }
  return result;
}

Value SpaceEmitter::load(BlockArgument argument, const Mapping &mapping) {
  auto tensor = cast<RankedTensorType>(argument.getType());
  Type element = tensor.getElementType();
  TensorLayout layout = layoutOf(argument);
  // The columns of B as the space has them.
  if (hasDepth(mapping) && mapping.size() > layout.strides.size()) {
    unsigned n = MatmulOp(space.matmul).dimN();
    layout.strides.insert(layout.strides.begin() + n,
                          layout.strides[n] * space.headSize());
  }
  Access a = access(layout, mapping);
  // If columns end inside a block that is reduced, the rest is neutral.
  Value other;
  if (space.hasReduction && !hasDepth(mapping) && hasColumns(mapping) &&
      dims[columnDim].masked) {
    if (auto type = dyn_cast<FloatType>(element)) {
      APFloat fill = wantsNegativeInfinity(argument)
                         ? APFloat::getInf(type.getFloatSemantics(), true)
                         : APFloat::getZero(type.getFloatSemantics());
      other = arith::ConstantFloatOp::create(b, type, fill);
    } else {
      other = zeroOf(element);
    }
  }
  Value pointer = inBatch(pointerOf(argument), layout, mapping);
  return load(blockType(mapping, element), pointer, a, other);
}

void SpaceEmitter::store(unsigned output, Value v) {
  Mapping mapping = identityMapping(space.rank());
  if (isPerRow(v, space.rank()))
    mapping.pop_back();
  TensorLayout layout = TensorLayout::contiguous(
      ArrayRef(space.shape).take_front(mapping.size()), kernel.getContext());
  Value stored = broadcast(value(v, mapping), shapeOf(mapping));
  if (pointers.caches[output].slots)
    return storeRows(output, stored);
  Access a = access(layout, mapping);
  store(stored, inBatch(pointers.outputs[output], layout, mapping), a);
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Returns the first stage in which everything that `v` needs is known.
unsigned SpaceEmitter::stageOf(Value v) {
  if (auto it = stages.find(v); it != stages.end())
    return it->second;
  unsigned stage = 0;
  // A GEMM sees to its operands itself.
  if (Operation *op = v.getDefiningOp(); op && !isa<MatmulOp>(op)) {
    for (Value operand : op->getOperands())
      stage = std::max(stage, stageOf(operand));
    stage += numReductions(op);
  }
  return stages[v] = stage;
}

/// Whether a value differs between iterations. Blocks along K do even without a
/// loop.
bool SpaceEmitter::variesInLoop(const Mapping &mapping) const {
  return config.run || inOperand ? hasDepth(mapping)
                                 : loop && hasColumns(mapping);
}

Value SpaceEmitter::memoize(const void *key, unsigned part,
                            const Mapping &mapping,
                            llvm::function_ref<Value()> compute) {
  Key full(key, part, std::vector<int64_t>(mapping.begin(), mapping.end()));
  for (Scope *scope : {&outer, &inner})
    if (auto it = scope->find(full); it != scope->end())
      return it->second;
  bool varies = variesInLoop(mapping), before = loop && !varies;
  OpBuilder::InsertionGuard guard(b);
  scf::ForOp within = loop;
  if (before) {
    b.setInsertionPoint(loop);
    loop = nullptr;
  }
  Value result = compute();
  loop = within;
  (varies ? inner : outer)[full] = result;
  return result;
}

Value SpaceEmitter::value(Value v, const Mapping &mapping) {
  return memoize(v.getAsOpaquePointer(), 0, mapping,
                 [&] { return compute(v, mapping); });
}

SmallVector<Value> SpaceEmitter::reduceAll(const Reduction &reduction,
                                           SmallVector<Value> blocks) {
  for (int dim : {static_cast<int>(columnDim), pairDim}) {
    SmallVector<int64_t> shape(shapeOf(blocks[0]));
    if (dim < 0 || shape[dim] == 1)
      continue;
    auto combineTwo = [&](OpBuilder &, Location, ValueRange x, ValueRange y) {
      return combine(reduction, x, y);
    };
    auto reduced = tile::ReduceOp::create(b, blocks, dim, combineTwo);
    shape[dim] = 1;
    for (auto [block, result] : llvm::zip(blocks, reduced.getResults()))
      block = reshape(result, shape);
  }
  return blocks;
}

scf::ForOp SpaceEmitter::loopOverColumns(
    ValueRange carried,
    llvm::function_ref<SmallVector<Value>(ValueRange)> iteration) {
  scf::ForOp done =
      loopOver(i32(0), scalars.get(b, dims[columnDim].size), config.columns,
               carried, [&](Value column, ValueRange values) {
                 loop = cast<scf::ForOp>(b.getInsertionBlock()->getParentOp());
                 dims[columnDim].offset = column;
                 return iteration(values);
               });
  loop = nullptr;
  return done;
}

void SpaceEmitter::emitStage(unsigned stage) {
  SmallVector<Reduction> due;
  for (Operation &op : region.front())
    for (unsigned i = 0, n = numReductions(&op); i < n; ++i)
      if (stageOf(op.getResult(0)) - n + i == stage)
        due.push_back({&op, i});
  if (!config.loop) {
    for (const Reduction &one : due)
      reductions[one] = reduceAll(one, reductionInputs(one));
    return;
  }
  SmallVector<Value> none;
  SmallVector<size_t> counts; // of each reduction's blocks
  for (const Reduction &one : due) {
    SmallVector<Value> blocks = nothingCombined(one);
    counts.push_back(blocks.size());
    llvm::append_range(none, blocks);
  }
  auto forEachOf = [&](ValueRange blocks, auto visit) {
    for (auto [one, count] : llvm::zip(due, counts)) {
      visit(one, blocks.take_front(count));
      blocks = blocks.drop_front(count);
    }
  };
  scf::ForOp done = loopOverColumns(none, [&](ValueRange carried) {
    SmallVector<Value> next;
    forEachOf(carried, [&](const Reduction &one, ValueRange before) {
      llvm::append_range(next, combine(one, before, reductionInputs(one)));
    });
    return next;
  });
  inner = Scope();
  forEachOf(done.getResults(), [&](const Reduction &one, ValueRange blocks) {
    reductions[one] = reduceAll(one, blocks);
  });
}

void SpaceEmitter::emitOutputs() {
  OperandRange yielded = region.front().getTerminator()->getOperands();
  if (!config.loop) {
    for (auto [i, v] : llvm::enumerate(yielded))
      store(i, v);
    return;
  }
  auto isOfRows = [&](Value v) { return isPerRow(v, space.rank()); };
  for (auto [i, v] : llvm::enumerate(yielded))
    if (isOfRows(v))
      store(i, v);
  if (llvm::all_of(yielded, isOfRows))
    return;
  loopOverColumns({}, [&](ValueRange) {
    for (auto [i, v] : llvm::enumerate(yielded))
      if (!isOfRows(v))
        store(i, v);
    return SmallVector<Value>();
  });
}

void SpaceEmitter::emit(Value index) {
  OpBuilder::InsertionGuard guard(b);
  locateViews();
  locate(index);
  if (isGrouped())
    enterGroup();
  if (config.split > 1)
    joinParts();
  unsigned numStages = 0;
  for (Value v : region.front().getTerminator()->getOperands())
    numStages = std::max(numStages, stageOf(v));
  for (unsigned stage = 0; stage < numStages; ++stage)
    emitStage(stage);
  emitOutputs();
}
