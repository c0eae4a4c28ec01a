//===- ConfigureProduct.cpp - tiles of matrix products --------------------===//
//
// Chooses the instruction, the block and the schedule of a product.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace greta;

static tile::LayoutAttr toAttr(MLIRContext *context,
                               const FragmentLayout &fragment) {
  SmallVector<int32_t> flat[2];
  ArrayRef<FragmentBasis> sources[2] = {fragment.reg, fragment.lane};
  for (auto [to, from] : llvm::zip(flat, sources))
    for (FragmentBasis basis : from)
      to.append({basis.row, basis.column});
  return tile::LayoutAttr::get(context, flat[0], flat[1], {}, {1, 1});
}

/// The first instruction of the target for these operands; null: none.
static const MatrixInstruction *chooseInstruction(MatmulOp matmul,
                                                  const Limits &limits) {
  Type element = matmul.getA().getType().getElementType();
  StringRef dtype = element.isF16()    ? "f16"
                    : element.isBF16() ? "bf16"
                    : element.isF32()  ? "f32"
                                       : "";
  for (const MatrixInstruction &instruction : limits.matrix)
    if (instruction.a == dtype && instruction.b == dtype &&
        instruction.acc == "f32" && instruction.blocks == 1 &&
        instruction.aLayout.isKnown() && instruction.bLayout.isKnown() &&
        instruction.accLayout.isKnown())
      return &instruction;
  return nullptr;
}

FailureOr<Choice> greta::chooseProduct(const Space &space, const Limits &limits,
                                       MLIRContext *context) {
  MatmulOp matmul = space.matmul;
  std::optional<int64_t> m = constantOf(space.shape[0]);
  std::optional<int64_t> n = constantOf(space.shape[1]);
  RankedTensorType a = matmul.getA().getType();
  int64_t k = a.getDimSize(matmul.getTransposeA() ? 0 : 1);
  const MatrixInstruction *instruction = chooseInstruction(matmul, limits);
  // With a matrix instruction 64x64 a wave at most, by multiply-adds sixteen
  // accumulators per lane.
  int64_t largest = instruction ? 128 : limits.wide ? 64 : 32;
  auto extent = [&](std::optional<int64_t> size, int64_t smallest) -> int64_t {
    int64_t wanted = size ? llvm::PowerOf2Ceil(*size) : 64;
    return std::clamp<int64_t>(wanted, smallest, largest);
  };
  Choice choice;
  choice.space.rows = {extent(m, instruction ? instruction->m : 16)};
  choice.space.columns = extent(n, instruction ? instruction->n : 16);
  int64_t smallest = instruction ? instruction->k : 1;
  int64_t deepest = std::max<int64_t>(smallest, instruction ? 32 : 16);
  choice.space.depth = deepest;
  if (!ShapedType::isDynamic(k))
    choice.space.depth = std::clamp<int64_t>(
        llvm::PowerOf2Ceil(std::max<int64_t>(k, 1)), smallest, deepest);
  int64_t size = choice.space.rows[0] * choice.space.columns;
  if (instruction) {
    choice.space.matrix = tile::MatrixAttr::get(
        context, StringAttr::get(context, instruction->name),
        toAttr(context, instruction->aLayout),
        toAttr(context, instruction->bLayout),
        toAttr(context, instruction->accLayout));
    choice.block =
        limits.wave *
        std::min<int64_t>(4, size / (instruction->m * instruction->n));
  } else {
    choice.block =
        std::clamp<int64_t>(size / 16, limits.wave, limits.shareBlock);
  }
  int64_t bytes = a.getElementTypeBitWidth() / 8 * choice.space.depth *
                  (choice.space.rows[0] + choice.space.columns);
  if (bytes > limits.ldsBytes)
    return matmul.emitOpError("needs ")
           << bytes << " bytes of shared memory for its smallest block, the "
           << "target has " << limits.ldsBytes << "; take another target";
  return choice;
}
