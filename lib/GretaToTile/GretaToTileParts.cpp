//===- GretaToTileParts.cpp - kernels beside sums that are made in parts --===//
//
// In: a kernel whose result a sum over ranks takes, or that reads such a sum,
// where the sum is made in parts of rows. Out: the arguments of its launch that
// begin at a part's first row, if the kernel computes each row by itself.
//
//   greta.kernel(%a, %w) : (tensor<?x32xf32>, tensor<64x32xf32>) ->
//   tensor<?x64xf32>
//     with the shapes (s0, 32), (64, 32), (s0, 64)        %a and the result
//
// One symbol stands for the rows. It is the first extent of every tensor that
// has it, and no other: a region indexes such a tensor by the rows of its space
// then, as no other dimension of the space has that extent. A row op goes along
// the last dimension.
//
//===----------------------------------------------------------------------===//

#include "GretaToTile.h"

using namespace mlir;
using namespace greta;

/// Bytes that every pointer of a kernel is promised to be a multiple of.
static constexpr int64_t alignment = 16;

/// Calls `visit` with the sums over ranks whose operand or result is `value`.
static void forEachSum(Value value,
                       llvm::function_ref<void(AllReduceOp)> visit) {
  if (auto sum = value.getDefiningOp<AllReduceOp>())
    visit(sum);
  for (Operation *user : value.getUsers())
    if (auto sum = dyn_cast<AllReduceOp>(user))
      visit(sum);
}

/// The sums next to a kernel that are made in parts, if they agree on them.
static AllReduceOp sumInParts(KernelOp kernel) {
  AllReduceOp found;
  bool agree = true;
  auto note = [&](AllReduceOp sum) {
    if (!sum.getPartRows().value_or(0) || !sum.getShape())
      return;
    agree &= !found ||
             (found.getPartRows() == sum.getPartRows() &&
              found.getShape()->getResult(0) == sum.getShape()->getResult(0));
    found = sum;
  };
  for (Value value : kernel->getOperands())
    forEachSum(value, note);
  for (Value value : kernel->getResults())
    forEachSum(value, note);
  return agree ? found : AllReduceOp();
}

/// Whether rows of a kernel's results are independent of each other in all that
/// shapes do not say.
static bool hasIndependentRows(KernelOp kernel) {
  return !tile::hasOpThat(kernel, [](Operation *op) {
    auto matmul = dyn_cast<MatmulOp>(op);
    return isAlone(op) || isa<PatchesOp>(op) || (matmul && matmul.getOffsets());
  });
}

DenseI64ArrayAttr greta::rowArguments(KernelOp kernel,
                                      ArrayRef<Value> buffers) {
  AllReduceOp sum = sumInParts(kernel);
  if (!sum || !hasIndependentRows(kernel))
    return nullptr;
  auto symbol = dyn_cast<AffineSymbolExpr>(sum.getShape()->getResult(0));
  if (!symbol)
    return nullptr;
  unsigned numInputs = kernel.getInputs().size();
  SmallVector<int64_t> numbers;
  for (auto [i, shape] :
       llvm::enumerate(kernel.getShapes().getAsValueRange<AffineMapAttr>())) {
    auto isOfRows = [&](AffineExpr extent) {
      return extent.isFunctionOfSymbol(symbol.getPosition());
    };
    bool isInput = i < numInputs;
    if (llvm::none_of(shape.getResults(), isOfRows)) {
      if (!isInput)
        return nullptr;
      continue;
    }
    // A space of one dimension has its rows in it.
    if (shape.getResult(0) != symbol ||
        llvm::any_of(shape.getResults().drop_front(), isOfRows) ||
        (isInput ? bool(kernel.getView(i)) : shape.getNumResults() < 2))
      return nullptr;
    Value tensor = isInput ? kernel.getInputs()[i]
                           : Value(kernel->getResult(i - numInputs));
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t bytes = *sum.getPartRows() *
                    (type.getElementType().getIntOrFloatBitWidth() / 8);
    for (AffineExpr extent : shape.getResults().drop_front())
      bytes *= extent.getLargestKnownDivisor();
    if (bytes % alignment)
      return nullptr;
    int64_t number = isInput ? llvm::find(buffers, tensor) - buffers.begin()
                             : buffers.size() + (i - numInputs);
    if (!llvm::is_contained(numbers, number))
      numbers.push_back(number);
  }
  return DenseI64ArrayAttr::get(kernel.getContext(), numbers);
}
