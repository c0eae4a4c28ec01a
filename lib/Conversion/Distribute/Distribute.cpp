//===- Distribute.cpp - greta-tile-distribute: driver and register ops ----===//
//
// Turns every kernel from block tensors into one lane's program. In: every
// block tensor has a layout (greta-tile-assign-layouts). Out: only scalars and
// small vectors; a tensor became as many SSA values as a lane has registers.
//
//   %s = arith.addf %a, %b : tensor<1x64xf32, #l>        #l: 2 registers
//     →  %s0 = arith.addf %a0, %b0 : f32
//        %s1 = arith.addf %a1, %b1 : f32
//
// How values are held is in DistributePieces.cpp, memory accesses are in
// DistributeMemory.cpp, what crosses lanes and waves in DistributeExchange.cpp,
// products in DistributeDot.cpp.
//
//===----------------------------------------------------------------------===//

#include "Distribute.h"
#include "greta/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/TypeSwitch.h"

namespace greta {
#define GEN_PASS_DEF_GRETATILEDISTRIBUTEPASS
#include "greta/Conversion/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::tile;

static bool isBlock(Type type) { return isa<RankedTensorType>(type); }
static bool isBlock(Value value) { return isBlock(value.getType()); }

Distributor::Distributor(FuncOp kernel)
    : kernel(kernel), builder(kernel.getContext()),
      prologue(kernel.getContext()) {}

LogicalResult Distributor::run() {
  builder.setInsertionPoint(kernel);
  result = FuncOp::create(builder, kernel.getLoc(), kernel.getSymName(),
                          kernel.getFunctionType(), kernel.getNumWaves(),
                          kernel.getNumLanes());
  result->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  kernel.getBody().walk([&](DotOp dot) {
    if (MatrixAttr matrix = dot.getMatrixAttr(); matrix && matrix.getOpaque())
      opaque = matrix;
  });
  Block &from = kernel.getBody().front();
  Block &to = result.getBody().front();
  for (auto [old, arg] : llvm::zip(from.getArguments(), to.getArguments()))
    values[old] = {arg};
  // Shared values go before this marker, the body after it.
  builder.setInsertionPointToStart(&to);
  Operation *marker = ReturnOp::create(builder, kernel.getLoc());
  prologue.setInsertionPoint(marker);
  builder.setInsertionPointToEnd(&to);
  LogicalResult status = distributeBlock(from);
  marker->erase();
  if (failed(status)) {
    result.erase();
    return failure();
  }
  kernel.erase();
  return success();
}

//===----------------------------------------------------------------------===//
// Values that depend on the thread only
//===----------------------------------------------------------------------===//

Value Distributor::constant(int32_t value) {
  Value &slot = constants[value];
  if (!slot)
    slot = arith::ConstantIntOp::create(prologue, kernel.getLoc(), value, 32);
  return slot;
}

Value Distributor::laneId() {
  if (!lane)
    lane = LaneIdOp::create(prologue, kernel.getLoc());
  return lane;
}

Value Distributor::waveId() {
  if (!wave)
    wave = WaveIdOp::create(prologue, kernel.getLoc());
  return wave;
}

Value Distributor::maskedId(bool ofWave, uint32_t mask) {
  return arith::AndIOp::create(prologue, kernel.getLoc(),
                               ofWave ? waveId() : laneId(), constant(mask));
}

Value Distributor::isZero(bool ofWave, uint32_t mask) {
  return arith::CmpIOp::create(prologue, kernel.getLoc(),
                               arith::CmpIPredicate::eq, maskedId(ofWave, mask),
                               constant(0));
}

Value Distributor::ownsCopies(const Layout &layout, ImplicitLocOpBuilder &b) {
  uint32_t lanes = layout.freeLaneBits(), waves = layout.freeWaveBits();
  if (lanes && waves)
    return arith::AndIOp::create(b, isZero(false, lanes), isZero(true, waves));
  if (lanes || waves)
    return isZero(waves != 0, lanes | waves);
  return {};
}

void Distributor::storeWhere(
    Value condition, ImplicitLocOpBuilder &b,
    llvm::function_ref<void(ImplicitLocOpBuilder &)> body) {
  if (!condition)
    return body(b);
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  ImplicitLocOpBuilder inner(b.getLoc(), branch.thenBlock()->getTerminator());
  body(inner);
}

Value Distributor::offsetBy(ImplicitLocOpBuilder &b, Value value,
                            int32_t offset) {
  return offset ? arith::AddIOp::create(b, value, constant(offset)).getResult()
                : value;
}

Value Distributor::fromBits(ArrayRef<std::pair<ThreadBit, int32_t>> bits) {
  Location loc = kernel.getLoc();
  std::vector<std::array<int32_t, 3>> key;
  for (auto [bit, weight] : bits)
    key.push_back({bit.isWave, static_cast<int32_t>(bit.bit), weight});
  Value &sum = idSums[key];
  if (sum)
    return sum;
  int32_t covered = 0;
  for (size_t i = 0; i < bits.size();) {
    // A run of bits whose contributions double is one field of the id.
    auto [first, weight] = bits[i];
    size_t n = 1;
    while (llvm::isPowerOf2_32(weight) && i + n < bits.size() &&
           bits[i + n].first.isWave == first.isWave &&
           bits[i + n].first.bit == first.bit + n &&
           bits[i + n].second == weight << n)
      ++n;
    i += n;
    Value field = maskedId(first.isWave, ((1u << n) - 1) << first.bit);
    int32_t scale = 1 << first.bit;
    if (weight % scale == 0) {
      if (weight != scale)
        field = arith::MulIOp::create(prologue, loc, field,
                                      constant(weight / scale));
    } else {
      field = arith::ShRUIOp::create(prologue, loc, field, constant(first.bit));
      if (weight != 1)
        field = arith::MulIOp::create(prologue, loc, field, constant(weight));
    }
    int32_t moved = weight * ((1 << n) - 1);
    if (!sum)
      sum = field;
    else if (covered & moved)
      sum = arith::XOrIOp::create(prologue, loc, sum, field);
    else
      sum = arith::AddIOp::create(prologue, loc, sum, field);
    covered |= moved;
  }
  if (!sum)
    sum = constant(0);
  return sum;
}

FailureOr<const DistributedLayout *> Distributor::layoutOf(Operation *op,
                                                           Value value) {
  LayoutAttr attr = getLayoutOf(value.getType());
  if (!attr) {
    op->emitOpError("has a block tensor without a layout, ")
        << value.getType() << "; run greta-tile-assign-layouts first";
    return failure();
  }
  std::unique_ptr<DistributedLayout> &slot = layouts[attr];
  if (slot)
    return slot.get();
  auto entry = std::make_unique<DistributedLayout>();
  entry->layout = toLayout(attr);
  const Layout &layout = entry->layout;
  if (layout.numLanes() * layout.numWaves() != kernel.getBlockSize() ||
      layout.numLanes() != kernel.getNumLanes()) {
    op->emitOpError("has a layout of ")
        << layout.numWaves() << " waves of " << layout.numLanes()
        << " lanes in a kernel of " << kernel.getNumWaves() << " waves of "
        << kernel.getNumLanes();
    return failure();
  }
  for (unsigned dim = 0; dim < layout.rank(); ++dim) {
    if (!layout.registersAdd(dim)) {
      op->emitOpError("has a layout whose registers and lanes share bits of "
                      "dimension ")
          << dim;
      return failure();
    }
    SmallVector<std::pair<ThreadBit, int32_t>> bits;
    for (const ThreadBit &bit : layout.threadBits())
      if (bit.basis[dim])
        bits.push_back({bit, bit.basis[dim]});
    entry->threadIndex.push_back(fromBits(bits));
  }
  for (unsigned r = 0; r < layout.numRegisters(); ++r)
    entry->registerIndex.push_back(layout.registerIndex(r));
  slot = std::move(entry);
  return slot.get();
}

Value Distributor::sharedAlloc(int64_t size, Type element) {
  auto known = llvm::find_if(freeArrays, [&](Value array) {
    return cast<SharedType>(array.getType()).getElementType() == element;
  });
  Value array;
  if (known != freeArrays.end()) {
    array = *known;
    freeArrays.erase(known);
    size = std::max<int64_t>(size, cast<SharedType>(array.getType()).getSize());
    array.setType(SharedType::get(size, element));
  } else {
    array = SharedAllocOp::create(prologue, kernel.getLoc(),
                                  SharedType::get(size, element));
  }
  usedArrays.push_back(array);
  return array;
}

bool Distributor::inLoop(Operation *op) {
  return op->getParentOfType<scf::ForOp>() != nullptr;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

LogicalResult Distributor::distributeBlock(Block &block) {
  for (Operation &op : block)
    if (failed(distributeOp(&op)))
      return failure();
  return success();
}

LogicalResult Distributor::distributeOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](LoadOp o) { return distributeLoad(o); })
      .Case([&](StoreOp o) { return distributeStore(o); })
      .Case([&](IotaOp o) { return distributeIota(o); })
      .Case([&](BroadcastOp o) { return distributeBroadcast(o); })
      .Case([&](FlipOp o) { return distributeFlip(o); })
      .Case([&](ReshapeOp o) { return distributeReshape(o); })
      .Case([&](ReduceOp o) { return distributeReduce(o); })
      .Case([&](DotOp o) { return distributeDot(o); })
      .Case([&](ContractOp o) { return distributeContract(o); })
      .Case([&](ContractPackedOp o) { return distributeContractPacked(o); })
      .Case([&](DequantOp o) { return distributeDequant(o); })
      .Case([&](ConvertLayoutOp o) { return distributeConvertLayout(o); })
      .Case([&](LocalAllocOp o) { return distributeLocalAlloc(o); })
      .Case([&](LocalStoreOp o) { return distributeLocalStore(o); })
      .Case([&](LocalLoadOp o) { return distributeLocalLoad(o); })
      .Case([&](ScheduleOp o) { return distributeSchedule(o); })
      .Case([&](SplatOp o) -> LogicalResult {
        auto layout = layoutOf(o, o.getResult());
        if (failed(layout))
          return failure();
        values[o.getResult()] =
            LaneValues((*layout)->registerIndex.size(), scalar(o.getValue()));
        return success();
      })
      .Case<scf::ForOp>([&](Operation *o) { return distributeFor(o); })
      .Case<scf::IfOp>([&](Operation *o) { return distributeIf(o); })
      .Case<scf::YieldOp>([&](scf::YieldOp o) {
        LaneValues flat;
        auto types = carriedTypes.find(o->getParentOp());
        for (auto [i, operand] : llvm::enumerate(o.getOperands())) {
          if (types == carriedTypes.end())
            llvm::append_range(flat, lanes(operand));
          else
            llvm::append_range(flat, pieces(operand, types->second[i]));
        }
        scf::YieldOp::create(builder, o.getLoc(), flat);
        return success();
      })
      .Default([&](Operation *o) -> LogicalResult {
        bool blocks = llvm::any_of(o->getOperandTypes(),
                                   [](Type t) { return isBlock(t); }) ||
                      llvm::any_of(o->getResultTypes(),
                                   [](Type t) { return isBlock(t); });
        if (blocks)
          return o->hasTrait<OpTrait::ConstantLike>()
                     ? distributeConstant(o)
                     : distributeElementwise(o);
        if (o->getNumRegions())
          return o->emitOpError("cannot stand in a kernel");
        IRMapping mapping;
        for (Value operand : o->getOperands())
          mapping.map(operand, scalar(operand));
        Operation *copy = builder.clone(*o, mapping);
        for (auto [old, now] : llvm::zip(o->getResults(), copy->getResults()))
          values[old] = {now};
        return success();
      });
}

LogicalResult Distributor::distributeFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  LaneValues inits;
  SmallVector<unsigned> counts;
  SmallVector<Type> &types = carriedTypes[op];
  for (auto [init, arg] :
       llvm::zip(loop.getInitArgs(), loop.getRegionIterArgs())) {
    types.push_back(carriedType(init, arg));
    LaneValues list = pieces(init, types.back());
    counts.push_back(list.size());
    llvm::append_range(inits, list);
  }
  auto copy = scf::ForOp::create(
      builder, loop.getLoc(), scalar(loop.getLowerBound()),
      scalar(loop.getUpperBound()), scalar(loop.getStep()), inits);
  copy->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  values[loop.getInductionVar()] = {copy.getInductionVar()};
  unsigned next = 0;
  for (auto [arg, type, count, res] :
       llvm::zip(loop.getRegionIterArgs(), types, counts, loop.getResults())) {
    auto &map = isa<VectorType, FragmentType>(type) ? pieceValues : values;
    map[arg] = LaneValues(copy.getRegionIterArgs().slice(next, count));
    map[res] = LaneValues(copy.getResults().slice(next, count));
    next += count;
  }
  OpBuilder::InsertionGuard guard(builder);
  if (inits.empty())
    copy.getBody()->getTerminator()->erase();
  builder.setInsertionPointToEnd(copy.getBody());
  return distributeBlock(*loop.getBody());
}

LogicalResult Distributor::distributeIf(Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  SmallVector<Type> types;
  SmallVector<unsigned> counts;
  for (Value res : branch.getResults()) {
    unsigned count = 1;
    Type type = res.getType();
    if (isBlock(res)) {
      auto layout = layoutOf(op, res);
      if (failed(layout))
        return failure();
      count = (*layout)->registerIndex.size();
      type = cast<RankedTensorType>(type).getElementType();
    }
    types.append(count, type);
    counts.push_back(count);
  }
  bool hasElse = !branch.getElseRegion().empty();
  auto copy = scf::IfOp::create(builder, branch.getLoc(), types,
                                scalar(branch.getCondition()),
                                /*addThenBlock=*/true, hasElse);
  unsigned next = 0;
  for (auto [res, count] : llvm::zip(branch.getResults(), counts)) {
    values[res] = LaneValues(copy.getResults().slice(next, count));
    next += count;
  }
  OpBuilder::InsertionGuard guard(builder);
  // A workgroup takes one branch: what the other has in shared memory is free.
  size_t before = usedArrays.size();
  SmallVector<Value> freeBefore = freeArrays;
  for (auto [from, to] : llvm::zip(branch->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    freeArrays = freeBefore;
    for (Value array : ArrayRef(usedArrays).drop_front(before))
      if (!llvm::is_contained(freeArrays, array))
        freeArrays.push_back(array);
    // Some builders leave an implicit yield; ours is copied from the source.
    to.front().clear();
    builder.setInsertionPointToEnd(&to.front());
    if (failed(distributeBlock(from.front())))
      return failure();
  }
  freeArrays = freeBefore;
  llvm::erase_if(freeArrays, [&](Value array) {
    return llvm::is_contained(ArrayRef(usedArrays).drop_front(before), array);
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Ops that stay in their registers
//===----------------------------------------------------------------------===//

LogicalResult Distributor::distributeConstant(Operation *op) {
  auto layout = layoutOf(op, op->getResult(0));
  if (failed(layout))
    return failure();
  auto constant = cast<arith::ConstantOp>(op);
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat())
    return op->emitOpError("is not a splat; pass other constants as arguments");
  Value value = arith::ConstantOp::create(
      prologue, op->getLoc(),
      cast<TypedAttr>(dense.getSplatValue<Attribute>()));
  values[op->getResult(0)] = LaneValues((*layout)->registerIndex.size(), value);
  return success();
}

LogicalResult Distributor::distributeElementwise(Operation *op) {
  if (op->getNumRegions() || op->getNumResults() != 1 ||
      !isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return op->emitOpError(
        "has no meaning on block tensors; kernels take arith, "
        "math and greta_tile ops");
  auto layout = layoutOf(op, op->getResult(0));
  if (failed(layout))
    return failure();
  unsigned count = (*layout)->registerIndex.size();
  LaneValues out;
  out.reserve(count);
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  SmallVector<LaneValues, 3> sources;
  for (Value operand : op->getOperands())
    sources.push_back(isBlock(operand) ? LaneValues(lanes(operand))
                                       : LaneValues(count, scalar(operand)));
  for (unsigned r = 0; r < count; ++r) {
    SmallVector<Value, 3> operands;
    for (const LaneValues &source : sources)
      operands.push_back(source[r]);
    // Registers that hold the same (splats) need computing once.
    if (r && llvm::all_of(sources, [&](const LaneValues &source) {
          return source[r] == source[r - 1];
        })) {
      out.push_back(out.back());
      continue;
    }
    // What constants decide: signs along a dimension that registers hold.
    if (isa<arith::SelectOp>(op))
      if (auto condition = operands[0].getDefiningOp<arith::ConstantIntOp>()) {
        out.push_back(operands[condition.value() ? 1 : 2]);
        continue;
      }
    OperationState state(op->getLoc(), op->getName(), operands, element,
                         op->getAttrs());
    out.push_back(builder.create(state)->getResult(0));
  }
  values[op->getResult(0)] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeIota(IotaOp op) {
  auto layout = layoutOf(op, op.getResult());
  if (failed(layout))
    return failure();
  LaneValues out;
  for (const Index &index : (*layout)->registerIndex)
    out.push_back(builder.createOrFold<arith::AddIOp>(
        op.getLoc(), (*layout)->threadIndex[op.getDim()],
        constant(index[op.getDim()])));
  values[op.getResult()] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeBroadcast(BroadcastOp op) {
  auto src = layoutOf(op, op.getValue());
  auto dst = layoutOf(op, op.getResult());
  if (failed(src) || failed(dst))
    return failure();
  auto map = relabel((*src)->layout, (*dst)->layout);
  if (!map)
    return op.emitOpError("broadcasts between layouts that need data to move; "
                          "convert_layout first");
  LaneValues out;
  for (unsigned reg : *map)
    out.push_back(lanes(op.getValue())[reg]);
  values[op.getResult()] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeFlip(FlipOp op) {
  auto found = layoutOf(op, op.getResult());
  if (failed(found))
    return failure();
  const DistributedLayout &layout = **found;
  unsigned dim = op.getDim();
  ArrayRef<Value> from = lanes(op.getValue());
  LaneValues out;
  SmallVector<ThreadBit> moving;
  for (const ThreadBit &bit : layout.layout.threadBits())
    if (bit.basis[dim])
      moving.push_back(bit);
  if (moving.empty()) {
    std::map<Index, unsigned> registers;
    for (auto [reg, index] : llvm::enumerate(layout.registerIndex))
      registers[index] = reg;
    for (Index index : layout.registerIndex) {
      index[dim] = 1 - index[dim];
      out.push_back(from[registers.at(index)]);
    }
  } else {
    bool isOneLane =
        moving.size() == 1 && !moving.front().isWave &&
        llvm::count_if(moving.front().basis, [](int32_t n) { return n; }) == 1;
    if (!isOneLane)
      return op.emitOpError("needs dimension ")
             << dim << " in registers or in one bit of the lane";
    for (Value value : from)
      out.push_back(ShuffleXorOp::create(builder, op.getLoc(), value,
                                         1u << moving.front().bit));
  }
  values[op.getResult()] = std::move(out);
  return success();
}

LogicalResult Distributor::distributeReshape(ReshapeOp op) {
  auto src = layoutOf(op, op.getValue());
  auto dst = layoutOf(op, op.getResult());
  if (failed(src) || failed(dst))
    return failure();
  SmallVector<unsigned> registers;
  std::optional<Layout> layout = (*src)->layout.reshape(
      cast<RankedTensorType>(op.getResult().getType()).getShape(), &registers);
  if (layout && layout->sameMap((*dst)->layout)) {
    LaneValues out;
    for (unsigned reg : registers)
      out.push_back(lanes(op.getValue())[reg]);
    values[op.getResult()] = std::move(out);
    return success();
  }
  ImplicitLocOpBuilder b(op.getLoc(), builder);
  values[op.getResult()] =
      reshapeThroughShared(op, lanes(op.getValue()), **src, **dst, b);
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct DistributePass
    : greta::impl::GretaTileDistributePassBase<DistributePass> {
  void runOnOperation() override {
    for (FuncOp kernel :
         llvm::make_early_inc_range(getOperation().getOps<FuncOp>()))
      if (failed(kernel.checkTarget()) || failed(Distributor(kernel).run()))
        return signalPassFailure();
  }
};
} // namespace
