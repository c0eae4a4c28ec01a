//===- SplitProduct.cpp - products in parts along K -----------------------===//
//
// A product with few blocks and a long K leaves compute units idle. Its kernel
// becomes two:
//
//   parts   the products of `split` ranges of K, in the accumulator's type,
//           below each other in a temporary [split * M, N]
//   sum     adds the parts in order and does what followed the product
//
// Products of one A that share a launch (ConfigureTogether.cpp) are taken apart
// here where they cannot.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace greta;

double greta::splitCycles(const TargetRow &row, int64_t split, int64_t m,
                          int64_t n) {
  if (split == 1)
    return 0;
  // Between two kernels that depend on each other 3 to 5 microseconds pass.
  constexpr double launch = 4;
  double bytes = 2.0 * split * m * n * 4;
  return row.clockMHz * (launch + bytes / (1000.0 * row.bandwidthGBs));
}

bool greta::canSplit(MatmulOp matmul) {
  return !ShapedType::isDynamic(matmul.getDepth()) && !matmul.getBatchRank() &&
         isa<BlockArgument>(matmul.getA()) &&
         llvm::none_of(matmul->getUsers(), llvm::IsaPred<HeadsOp>);
}

bool greta::fitsSplit(MatmulOp matmul, const SpaceConfig &config) {
  int64_t split = matmul.getSplit();
  int64_t k = matmul.getDepth();
  if (split == 1)
    return true;
  if (!canSplit(matmul))
    return false;
  // Few rows: parts are whole blocks, which need no masks.
  if (config.run)
    return k % (config.depth * split) == 0;
  return partsOf(llvm::divideCeil(k, config.depth), split) == split;
}

namespace {
/// A kernel of some of what another one has, and other operands.
class KernelBuilder {
public:
  KernelBuilder(KernelOp from) : from(from), b(from) {}

  /// `inner`, a value of the old region, becomes the operand `tensor`, whole
  /// or a view.
  void addInput(Value inner, Value tensor, AffineMap shape,
                AffineMap view = {}) {
    inners.push_back(inner);
    operands.push_back(tensor);
    shapes.push_back(AffineMapAttr::get(shape));
    types.push_back(view ? inner.getType() : tensor.getType());
    views.push_back(view ? Attribute(AffineMapAttr::get(view))
                         : b.getUnitAttr());
  }
  /// The old kernel's arguments among what `ops`, of one space, use.
  void addInputs(ArrayRef<Operation *> ops) {
    llvm::SmallDenseSet<Value> used;
    for (Operation *op : ops)
      used.insert(op->operand_begin(), op->operand_end());
    for (auto [i, argument] :
         llvm::enumerate(ops.front()->getBlock()->getArguments()))
      if (used.contains(argument))
        addInput(argument, from.getInputs()[i], shapeOf(i), from.getView(i));
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
  SmallVector<Value> inners, operands;
  SmallVector<Type> types;
  SmallVector<Attribute> shapes, views;
};
} // namespace

/// `op` and what it needs of its block, without looking through products.
static void collect(Operation *op, llvm::SmallDenseSet<Operation *> &needed) {
  if (!needed.insert(op).second)
    return;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp();
        source && !isa<MatmulOp>(source))
      collect(source, needed);
}

KernelOp greta::splitProduct(KernelOp kernel, const KernelConfig &config,
                             int64_t split) {
  Block &body = kernel.getSpaces().front().front();
  SmallVector<MatmulOp> products(body.getOps<MatmulOp>());
  RankedTensorType type = products.front().getType();
  bool isInteger =
      products.front().getA().getType().getElementType().isInteger(8);
  Builder types(kernel.getContext());
  SmallVector<int64_t> extents(type.getShape());
  if (!ShapedType::isDynamic(extents[0]))
    extents[0] *= split;
  auto partsType = RankedTensorType::get(
      extents, isInteger ? Type(types.getI32Type()) : types.getF32Type());

  llvm::SmallDenseSet<Operation *> before, after;
  for (MatmulOp product : products)
    collect(product, before);
  collect(body.getTerminator(), after);
  SmallVector<Operation *> first, second;
  for (Operation &op : body) {
    if (before.contains(&op))
      first.push_back(&op);
    if (after.contains(&op))
      second.push_back(&op);
  }

  KernelBuilder parts(kernel);
  parts.addInputs(first);
  unsigned numInputs = kernel.getInputs().size();
  AffineMap shape = parts.shapeOf(numInputs);
  AffineMap partsShape = AffineMap::get(
      0, shape.getNumSymbols(),
      {shape.getResult(0) * split, shape.getResult(1)}, kernel.getContext());
  KernelOp partsKernel =
      parts.create(SmallVector<Type>(products.size(), partsType),
                   SmallVector<AffineMap>(products.size(), partsShape));
  SmallVector<Value> yielded;
  for (Operation *op : first)
    if (auto product = dyn_cast<MatmulOp>(parts.b.clone(*op, parts.mapping))) {
      product.setSplit(split);
      product.getResult().setType(partsType);
      product->removeAttr("greta.config");
      yielded.push_back(product);
    }
  YieldOp::create(parts.b, kernel.getLoc(), yielded);
  partsKernel.setConfigAttr(toAttribute(kernel.getContext(), config));

  KernelBuilder sum(kernel);
  sum.addInputs(second);
  for (auto [product, part] : llvm::zip(products, partsKernel.getResults()))
    sum.addInput(product, part, partsShape);
  SmallVector<AffineMap> resultShapes;
  for (unsigned i = 0; i < kernel.getNumResults(); ++i)
    resultShapes.push_back(sum.shapeOf(numInputs + i));
  KernelOp sumKernel = sum.create(kernel.getResultTypes(), resultShapes);
  for (MatmulOp product : products)
    sum.mapping.map(
        product.getResult(),
        SumPartsOp::create(sum.b, product.getLoc(), product.getType(),
                           sum.mapping.lookup(product.getResult()), split));
  for (Operation *op : second)
    sum.b.clone(*op, sum.mapping);
  kernel->replaceAllUsesWith(sumKernel);
  kernel.erase();
  return sumKernel;
}

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
