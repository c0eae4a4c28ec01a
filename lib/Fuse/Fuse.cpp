//===- Fuse.cpp - the pass greta-fuse -------------------------------------===//
//
// Ops of a function into kernels: normalise (FuseNormalize.cpp), plan
// (FuseClusters.cpp), and here the last step, which writes the function anew:
//
//   args -> greta.kernel, view, greta.kernel, ... -> return
//
// Sums over ranks stay between them.
//
// Nothing of the old body stays: sizes of views are computed from dimensions of
// the arguments.
//
//===----------------------------------------------------------------------===//

#include "Fuse.h"
#include "greta/Fuse/Symbols.h"
#include "greta/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace greta {
#define GEN_PASS_DEF_GRETAFUSEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;

namespace {
class Emitter {
public:
  Emitter(func::FuncOp function, const Shapes &shapes)
      : function(function), shapes(shapes),
        terminator(function.getBody().front().getTerminator()),
        builder(terminator) {}
  void run(const KernelPlan &plan);

private:
  void emitKernel(ArrayRef<Cluster> clusters);
  void emitSum(AllReduceOp sum);
  void emitSpace(const Cluster &cluster, Region &region,
                 const IRMapping &arguments);
  Value materialize(Value value);
  AffineMap shapeOf(Value value) const { return shapes.at(value); }

  func::FuncOp function;
  const Shapes &shapes;
  Operation *terminator;
  OpBuilder builder;
  IRMapping buffers; // values of the old body to those of the new
};
} // namespace

SmallVector<OpFoldResult> greta::sizesOf(OpBuilder &builder, Location loc,
                                         func::FuncOp function,
                                         RankedTensorType type,
                                         AffineMap shape) {
  SmallVector<OpFoldResult> sizes;
  // Symbols are dimensions of arguments.
  SmallVector<Value> symbols;
  auto definitions = type.hasStaticShape()
                         ? ArrayAttr::get(type.getContext(), {})
                         : function->getAttrOfType<ArrayAttr>("greta.symbols");
  for (Attribute pair : definitions) {
    auto entry = cast<ArrayAttr>(pair);
    int64_t argument = cast<IntegerAttr>(entry[0]).getInt();
    int64_t dim = cast<IntegerAttr>(entry[1]).getInt();
    symbols.push_back(builder.createOrFold<tensor::DimOp>(
        loc, function.getArgument(argument), dim));
  }
  for (auto [dim, extent] : llvm::enumerate(shape.getResults()))
    sizes.push_back(type.isDynamicDim(dim)
                        ? OpFoldResult(affine::expandAffineExpr(
                              builder, loc, extent, {}, symbols))
                        : builder.getIndexAttr(type.getDimSize(dim)));
  return sizes;
}

/// The value in the new body: an argument, a kernel's result, or a view of
/// either other than a slice.
Value Emitter::materialize(Value value) {
  if (Value known = buffers.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  Value source = materialize(op->getOperand(0)), result;
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    result = tensor::ExpandShapeOp::create(
        builder, expand.getLoc(), expand.getResultType(), source,
        expand.getReassociationIndices(),
        sizesOf(builder, expand.getLoc(), function, expand.getResultType(),
                shapeOf(value)));
  } else {
    IRMapping operands;
    operands.map(op->getOperand(0), source);
    result = builder.clone(*op, operands)->getResult(0);
  }
  buffers.map(value, result);
  return result;
}

void Emitter::emitSpace(const Cluster &cluster, Region &region,
                        const IRMapping &arguments) {
  OpBuilder inner = OpBuilder::atBlockEnd(&region.front());
  IRMapping values = arguments;
  // Transparent ops come along with their users.
  std::function<void(Value)> bring = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (values.contains(value) || !op || !isTransparent(op))
      return;
    for (Value operand : op->getOperands())
      bring(operand);
    inner.clone(*op, values);
  };
  for (Operation *op : cluster.ops) {
    for (Value operand : op->getOperands())
      bring(operand);
    inner.clone(*op, values);
  }
  SmallVector<Value> yielded;
  for (Value output : cluster.outputs)
    yielded.push_back(values.lookup(output));
  YieldOp::create(inner, cluster.ops.back()->getLoc(), yielded);
}

void Emitter::emitKernel(ArrayRef<Cluster> clusters) {
  llvm::SetVector<Value> inputs;
  SmallVector<Value> outputs;
  for (const Cluster &cluster : clusters) {
    inputs.insert_range(cluster.inputs);
    llvm::append_range(outputs, cluster.outputs);
  }

  SmallVector<Value> operands;
  SmallVector<Attribute> shapeMaps, views;
  SmallVector<Type> resultTypes;
  SmallVector<Location> locations;
  for (Value input : inputs) {
    std::optional<Place> place;
    if (isStrided(input))
      place = placeOf(input, shapes);
    operands.push_back(materialize(place ? place->buffer : input));
    views.push_back(place ? Attribute(AffineMapAttr::get(place->view()))
                          : builder.getUnitAttr());
    shapeMaps.push_back(AffineMapAttr::get(shapeOf(input)));
    locations.push_back(input.getLoc());
  }
  for (Value output : outputs) {
    shapeMaps.push_back(AffineMapAttr::get(shapeOf(output)));
    resultTypes.push_back(output.getType());
  }
  auto kernel = KernelOp::create(
      builder, clusters[0].ops[0]->getLoc(), resultTypes, operands,
      builder.getArrayAttr(shapeMaps), viewsAttribute(views), nullptr,
      /*spacesCount=*/clusters.size());
  for (auto [cluster, region] : llvm::zip(clusters, kernel.getSpaces())) {
    Block &block = region.emplaceBlock();
    IRMapping arguments;
    for (auto [input, location] : llvm::zip(inputs, locations))
      arguments.map(input, block.addArgument(input.getType(), location));
    emitSpace(cluster, region, arguments);
  }
  for (auto [output, result] : llvm::zip(outputs, kernel.getResults()))
    buffers.map(output, result);
}

void Emitter::emitSum(AllReduceOp sum) {
  buffers.map(sum.getResult(),
              AllReduceOp::create(builder, sum.getLoc(), sum.getType(),
                                  materialize(sum.getX()),
                                  AffineMapAttr::get(shapeOf(sum.getResult())),
                                  sum.getPartRowsAttr()));
}

void Emitter::run(const KernelPlan &plan) {
  SmallVector<Operation *> old;
  for (Operation &op : function.getBody().front().without_terminator())
    old.push_back(&op);
  for (ArrayRef<Cluster> clusters : plan) {
    if (auto sum = dyn_cast<AllReduceOp>(clusters.front().ops.front()))
      emitSum(sum);
    else
      emitKernel(clusters);
  }
  for (OpOperand &operand : terminator->getOpOperands())
    operand.set(materialize(operand.get()));
  for (Operation *op : llvm::reverse(old))
    op->erase();
}

void greta::emitKernels(func::FuncOp function, const KernelPlan &plan,
                        const Shapes &shapes) {
  Emitter(function, shapes).run(plan);
}

/// Truth values have no form in memory.
static LogicalResult checkBuffers(func::FuncOp function,
                                  const KernelPlan &plan) {
  auto isBool = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getElementType().isInteger(1);
  };
  for (BlockArgument argument : function.getArguments())
    if (isBool(argument))
      return function.emitOpError("has argument ")
             << argument.getArgNumber()
             << " of i1; pass i8 and compare it with zero";
  for (ArrayRef<Cluster> clusters : plan)
    for (const Cluster &cluster : clusters)
      for (Value output : cluster.outputs)
        if (isBool(output))
          return output.getDefiningOp()->emitOpError(
              "has a result of i1 that leaves its kernel; select or convert "
              "to i8 before");
  return success();
}

namespace {
struct FusePass : greta::impl::GretaFusePassBase<FusePass> {
  using GretaFusePassBase::GretaFusePassBase;
  void runOnOperation() override {
    func::FuncOp function = getOperation();
    if (function.isExternal())
      return;
    ShapeAnalysis analysis(function);
    if (failed(analysis.run()) || failed(attachSymbols(function, analysis)))
      return signalPassFailure();
    Shapes shapes;
    auto note = [&](Value value) {
      if (isa<RankedTensorType>(value.getType()))
        shapes[value] = analysis.shapeOf(value);
    };
    for (Value argument : function.getArguments())
      note(argument);
    function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        note(result);
    });
    if (failed(normalizeForFusion(function, shapes, partsOfHeads)))
      return signalPassFailure();
    KernelPlan plan = planKernels(function, shapes);
    if (failed(checkBuffers(function, plan)))
      return signalPassFailure();
    emitKernels(function, plan, shapes);
  }
};
} // namespace
