//===- ConfigureTogether.cpp - GEMMs that share a launch ------------------===//
//
// GEMMs of one A, queries, keys and values, say, fill the device better side
// by side than one after another, and cost one launch. They are configured as
// what they are together, one GEMM with all columns: the widest of those
// with heads, which are pickier, chooses, and the others take its tile. Shared
// memory is then that of one: a workgroup is in one of the branches. No GEMM
// is split along K: its neighbours are there to fill the device.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace greta;

FailureOr<std::optional<KernelConfig>>
greta::chooseTogether(ArrayRef<Space> spaces, Limits limits,
                      MLIRContext *context) {
  auto columnsOf = [](const Space &space) {
    int64_t columns = MatmulOp(space.matmul).getType().getShape().back();
    return ShapedType::isDynamic(columns) ? 1 : columns;
  };
  auto rankOf = [&](const Space &space) {
    return std::pair(bool(space.heads), columnsOf(space));
  };
  const Space *leader = &spaces.front();
  for (const Space &space : spaces) {
    limits.columns += columnsOf(space);
    if (rankOf(space) > rankOf(*leader))
      leader = &space;
  }
  FailureOr<Choice> lead = choose(*leader, limits, 0, context);
  if (failed(lead))
    return failure();
  if (lead->space.split > 1) // what was measured for it alone
    return std::optional<KernelConfig>();
  limits.waves = lead->block / limits.wave;
  limits.tile = lead->tile.get();
  KernelConfig config;
  config.blockSize = lead->block;
  for (const Space &space : spaces) {
    FailureOr<Choice> choice = choose(space, limits, 0, context);
    if (failed(choice))
      return failure();
    if (choice->block != lead->block || choice->space.split > 1 ||
        !choice->tile != !lead->tile)
      return std::optional<KernelConfig>();
    config.spaces.push_back(std::move(choice->space));
  }
  return std::optional<KernelConfig>(std::move(config));
}

namespace {
/// A kernel of some of what another one has, and other operands.
class KernelBuilder {
public:
  KernelBuilder(KernelOp from) : from(from), b(from) {}

  /// The old kernel's arguments among what `ops`, of one space, use.
  void addInputs(ArrayRef<Operation *> ops) {
    llvm::SmallDenseSet<Value> used;
    for (Operation *op : ops)
      used.insert(op->operand_begin(), op->operand_end());
    for (auto [i, argument] :
         llvm::enumerate(ops.front()->getBlock()->getArguments()))
      if (used.contains(argument))
        addInput(argument, i);
  }
  AffineMap shapeOf(unsigned i) {
    return cast<AffineMapAttr>(from.getShapes()[i]).getValue();
  }
  /// Creates the kernel; `mapping` and the builder are for its body then.
  KernelOp create(TypeRange results, ArrayRef<AffineMap> resultShapes) {
    for (AffineMap shape : resultShapes)
      shapes.push_back(AffineMapAttr::get(shape));
    auto kernel =
        KernelOp::create(b, from.getLoc(), results, operands,
                         b.getArrayAttr(shapes), viewsAttribute(views), nullptr,
                         /*spacesCount=*/1);
    Block &block = kernel.getSpaces().front().emplaceBlock();
    for (auto [inner, type] : llvm::zip(inners, types))
      mapping.map(inner, block.addArgument(type, from.getLoc()));
    b.setInsertionPointToEnd(&block);
    return kernel;
  }

  KernelOp from;
  OpBuilder b;
  IRMapping mapping;

private:
  /// The old region's `inner` becomes an operand, whole or a view.
  void addInput(Value inner, unsigned i) {
    AffineMap view = from.getView(i);
    inners.push_back(inner);
    operands.push_back(from.getInputs()[i]);
    shapes.push_back(AffineMapAttr::get(shapeOf(i)));
    types.push_back(inner.getType());
    views.push_back(view ? Attribute(AffineMapAttr::get(view))
                         : b.getUnitAttr());
  }

  SmallVector<Value> inners, operands;
  SmallVector<Type> types;
  SmallVector<Attribute> shapes, views;
};
} // namespace

SmallVector<KernelOp> greta::separateSpaces(KernelOp kernel) {
  SmallVector<KernelOp> kernels;
  unsigned next = 0;
  for (Region &space : kernel.getSpaces()) {
    SmallVector<Operation *> ops;
    for (Operation &op : space.front())
      ops.push_back(&op);
    KernelBuilder builder(kernel);
    builder.addInputs(ops);
    unsigned count = ops.back()->getNumOperands();
    SmallVector<AffineMap> shapes;
    for (unsigned i = 0; i < count; ++i)
      shapes.push_back(builder.shapeOf(kernel.getInputs().size() + next + i));
    ResultRange results = kernel.getResults().slice(next, count);
    kernels.push_back(builder.create(results.getTypes(), shapes));
    for (Operation *op : ops)
      builder.b.clone(*op, builder.mapping);
    for (auto [old, now] : llvm::zip(results, kernels.back().getResults()))
      old.replaceAllUsesWith(now);
    next += count;
  }
  kernel.erase();
  return kernels;
}
