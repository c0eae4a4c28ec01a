//===- LaneOps.cpp - verifiers of the lane level --------------------------===//

#include "GretaTile/GretaTile.h"

using namespace mlir;
using namespace greta::tile;

static LogicalResult verifyLaneAccess(Operation *op, PtrType pointer, Type type,
                                      int64_t align) {
  Type element = getElementTypeOrSelf(type);
  if (element != pointer.getElementType())
    return op->emitOpError("moves ") << type << " through " << pointer;
  if (element.isInteger(1))
    return op->emitOpError("moves i1, which is a byte in memory; move i8");
  if (align <= 0 || !llvm::isPowerOf2_64(align))
    return op->emitOpError("has alignment ")
           << align << "; it is a power of two";
  return success();
}

void BarrierOp::build(OpBuilder &builder, OperationState &state, bool global) {
  if (global)
    state.getOrAddProperties<Properties>().setGlobal(builder.getUnitAttr());
}

LogicalResult GridBarrierOp::verify() {
  if (!getCounter().getType().getElementType().isInteger(32))
    return emitOpError("counts in ")
           << getCounter().getType() << "; arrivals are i32";
  auto kernel = dyn_cast<FuncOp>((*this)->getParentOp());
  if (!kernel || !(*this)->getBlock()->isEntryBlock())
    return emitOpError("stands in no kernel's entry block, so that some "
                       "workgroups may never come there");
  return success();
}

/// Arrays of i8 are bytes, which have any type.
static bool isBytes(TypedValue<SharedType> array) {
  return array.getType().getElementType().isInteger(8);
}

static LogicalResult
verifySharedAccess(Operation *op, TypedValue<SharedType> array, Type type) {
  if (type != array.getType().getElementType() && !isBytes(array))
    return op->emitOpError("moves ")
           << type << " through " << array.getType()
           << "; it takes a whole element, or of bytes (i8) any type";
  return success();
}

LogicalResult SharedLoadOp::verify() {
  auto vector = dyn_cast<VectorType>(getResult().getType());
  if (getTransposed() &&
      (!vector ||
       vector.getNumElements() * bytesInMemory(vector.getElementType()) != 8))
    return emitOpError("transposes ")
           << getResult().getType() << "; it takes vectors of 8 bytes";
  return verifySharedAccess(*this, getArray(), getResult().getType());
}

LogicalResult SharedStoreOp::verify() {
  return verifySharedAccess(*this, getArray(), getValue().getType());
}

LogicalResult PtrLoadSharedOp::verify() {
  Type element = getElementTypeOrSelf(getArray().getType().getElementType());
  Type loaded = getBase().getType().getElementType();
  int64_t bytes = getWidth() * loaded.getIntOrFloatBitWidth() / 8;
  if (element != loaded && !isBytes(getArray()))
    return emitOpError("loads ") << loaded << " into an array of " << element;
  if (bytes != 4 && bytes != 16)
    return emitOpError("loads ") << bytes << " bytes a lane; it takes 4 or 16";
  return success();
}

LogicalResult SharedStageOp::verify() {
  int64_t size = getArray().getType().getSize(), stages = getStages();
  if (size % stages)
    return emitOpError("has ") << stages << " stages in an array of " << size
                               << "; they are equal parts of it";
  return success();
}

LogicalResult PtrLoadOp::verify() {
  Type type = getResult().getType();
  auto vector = dyn_cast<VectorType>(type);
  int64_t bytes = bytesInMemory(getElementTypeOrSelf(type)) *
                  (vector ? vector.getNumElements() : 1);
  if (getMask() && (getElementTypeOrSelf(type).isInteger(1) || bytes > 16 ||
                    !llvm::isPowerOf2_64(bytes) ||
                    int64_t(getAlign()) < std::min<int64_t>(bytes, 4)))
    return emitOpError("loads ")
           << type << " aligned to " << getAlign()
           << " under a mask; that takes 1, 2, 4, 8 or 16 bytes, aligned to "
              "their number or 4";
  if (getTransposed() && (getMask() || !vector || int64_t(getAlign()) != bytes))
    return emitOpError("is 'transposed', which takes a vector, aligned to all "
                       "its bytes, and no mask");
  return verifyLaneAccess(*this, getBase().getType(), getResult().getType(),
                          getAlign());
}

LogicalResult PtrStoreOp::verify() {
  return verifyLaneAccess(*this, getBase().getType(), getValue().getType(),
                          getAlign());
}

//===----------------------------------------------------------------------===//
// Matrix instructions
//===----------------------------------------------------------------------===//

LogicalResult SharedAddOp::verify() {
  if (!getArray().getType().getElementType().isInteger(32) &&
      !isBytes(getArray()))
    return emitOpError("adds to ")
           << getArray().getType() << "; its elements are i32";
  return success();
}

LogicalResult MmaOp::verify() {
  auto a = dyn_cast<FragmentType>(getA().getType());
  auto b = dyn_cast<FragmentType>(getB().getType());
  auto acc = dyn_cast<FragmentType>(getAcc().getType());
  if (!a && !b && !acc)
    return success();
  if (!a || !b || !acc)
    return emitOpError("mixes fragments and vectors");
  if (a.getUse() != FragmentUse::A || b.getUse() != FragmentUse::B ||
      acc.getUse() != FragmentUse::Acc || a.getRows() != acc.getRows() ||
      a.getColumns() != b.getRows() || b.getColumns() != acc.getColumns())
    return emitOpError("multiplies ") << a << " by " << b << " into " << acc;
  return success();
}

/// A fragment's line, `length` elements, is whole elements of the array.
static LogicalResult verifyFragmentAccess(Operation *op, SharedType array,
                                          FragmentType fragment,
                                          bool transposed) {
  Type element = getElementTypeOrSelf(array.getElementType());
  auto vector = dyn_cast<VectorType>(array.getElementType());
  int64_t bits =
      element.getIntOrFloatBitWidth() * (vector ? vector.getNumElements() : 1);
  int64_t length = transposed ? fragment.getRows() : fragment.getColumns();
  Type member = fragment.getElementType();
  if ((element != member && !isa<IntegerType>(element)) ||
      length * member.getIntOrFloatBitWidth() % bits)
    return op->emitOpError("moves ")
           << fragment << " through " << array
           << "; its lines are whole elements of the array";
  return success();
}

LogicalResult FragmentLoadOp::verify() {
  return verifyFragmentAccess(*this, getArray().getType(),
                              getResult().getType(), getTransposed());
}

LogicalResult FragmentStoreOp::verify() {
  return verifyFragmentAccess(*this, getArray().getType(), getValue().getType(),
                              getTransposed());
}

LogicalResult FragmentSplatOp::verify() {
  if (getValue().getType() != getResult().getType().getElementType())
    return emitOpError("puts ")
           << getValue().getType() << " into " << getResult().getType();
  return success();
}

/// A lane's share: the fragment's elements over the lanes of a wave, or more
/// where several lanes have the same ones.
static LogicalResult verifyElements(Operation *op, FragmentType fragment,
                                    Type elements) {
  auto vector = cast<VectorType>(elements);
  int64_t size = fragment.getRows() * fragment.getColumns();
  auto kernel = op->getParentOfType<FuncOp>();
  if (vector.getElementType() != fragment.getElementType() ||
      (kernel && kernel.getWaveSize() &&
       (vector.getNumElements() * kernel.getNumLanes()) % size))
    return op->emitOpError("has ")
           << vector << " for a lane's elements of " << fragment;
  return success();
}

LogicalResult FragmentElementsOp::verify() {
  return verifyElements(*this, getValue().getType(), getResult().getType());
}

LogicalResult FragmentFromElementsOp::verify() {
  return verifyElements(*this, getResult().getType(), getValue().getType());
}

LogicalResult UnpackOp::verify() {
  const WeightFormat *row = findWeightFormat(getFormat());
  if (row && bool(row->highBits) == bool(getHigh()) &&
      getResult().getType().getNumElements() == row->perWord())
    return success();
  return emitOpError("unpacks ")
         << getResult().getType().getNumElements() << " weights of \""
         << getFormat()
         << "\"; it takes the weights of a word of a format, and 'high' where "
            "the format has it";
}

LogicalResult VectorDotOp::verify() {
  if (getA().getType().getNumElements() % 2)
    return emitOpError("multiplies vectors of ")
           << getA().getType() << "; it takes an even number of elements";
  return success();
}
