//===- GretaToTileAttentionEpilogue.cpp - work behind attention's result --===//
//
// In: elementwise ops, splats and broadcasts that a region of attention has on
// the op's first result. Out: the same on blocks of a workgroup's rows,
// [rows, D], the rows of all its heads one after another; what lacks all
// dimensions of rows or the columns has extent 1 there.
//
// An operand is loaded where the op's result would be stored. Its dimensions
// are those of the result in memory, tokens first or heads first. If keys are
// split over workgroups, the one that stores the result does the work.
//
//===----------------------------------------------------------------------===//

#include "GretaToTileAttention.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace greta;

SmallVector<int64_t>
AttentionEmitter::shapeOfBlock(const Mapping &mapping) const {
  bool hasRows = false, hasColumns = false;
  for (int64_t dim : mapping) {
    int64_t inBlock = inHeads(dim);
    hasRows |= inBlock == 2 || (inBlock == 1 && headsOfTile() > 1);
    hasColumns |= inBlock == 3;
  }
  return {hasRows ? rows : 1, hasColumns ? size() : 1};
}

Value AttentionEmitter::loadOperand(BlockArgument argument,
                                    const Mapping &mapping) {
  Tensor whole = input(argument), tensor = whole;
  tensor.shape.assign(4, fixed(1));
  tensor.strides.assign(4, fixed(0));
  llvm::SmallBitVector has(4);
  for (auto [dim, stride, extent] :
       llvm::zip(mapping, whole.strides, whole.shape)) {
    tensor.strides[inHeads(dim)] = stride;
    tensor.shape[inHeads(dim)] = extent;
    has.set(inHeads(dim));
  }
  tensor = headOf(tensor, queryHead);
  // Along a dimension that the operand lacks there is one element.
  RowsPlace place = placeOfRows(tensor);
  const bool isOfHeads = headsOfTile() > 1;
  SmallVector<int64_t> shape(place.shape);
  for (auto [i, dim] : llvm::enumerate(place.dims))
    if (!has[i + (isOfHeads ? 1 : 2)]) {
      place.shape[i] = 1;
      dim = Dim{Value(), fixed(0), Value()};
    }
  Value loaded = load(tensor, place);
  SmallVector<int64_t> inBlock = shapeOfBlock(mapping);
  if (inBlock[0] == 1)
    return reshape(loaded, inBlock);
  shape.back() = inBlock[1];
  return reshape(broadcast(loaded, shape), inBlock);
}

/// Returns the block of a value that `mapping` indexes by the result's
/// dimensions in memory.
Value AttentionEmitter::valueOf(Value v, const Mapping &mapping,
                                Blocks &blocks) {
  std::pair<const void *, Mapping> key(v.getAsOpaquePointer(), mapping);
  if (auto known = blocks.find(key); known != blocks.end())
    return known->second;
  auto compute = [&]() -> Value {
    if (auto argument = dyn_cast<BlockArgument>(v))
      return loadOperand(argument, mapping);
    Operation *op = v.getDefiningOp();
    SmallVector<int64_t> shape = shapeOfBlock(mapping);
    if (auto splat = dyn_cast<arith::ConstantOp>(op)) {
      auto elements = cast<SplatElementsAttr>(splat.getValue());
      return constant(block(shape, elements.getElementType()),
                      cast<TypedAttr>(elements.getSplatValue<Attribute>()));
    }
    if (isa<BroadcastOp>(op)) {
      OpOperand &operand = op->getOpOperand(0);
      Mapping inner = operandMapping(operand, mapping, space.rank());
      return broadcast(valueOf(operand.get(), inner, blocks), shape);
    }
    return elementwise(op, shape, [&](Value operand) {
      return valueOf(operand, mapping, blocks);
    });
  };
  Value made = compute();
  blocks[key] = made;
  return made;
}
