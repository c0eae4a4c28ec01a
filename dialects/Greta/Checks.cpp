//===- Checks.cpp - what the verifiers of several ops check ---------------===//

#include "Checks.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

LogicalResult greta::checkFloat(Operation *op, StringRef name, Value value,
                                StringRef allowed) {
  Type type = getElementTypeOrSelf(value.getType());
  if (isa<Float32Type, Float16Type, BFloat16Type>(type))
    return success();
  return op->emitOpError() << "'" << name << "' has element type " << type
                           << "; it takes " << allowed
                           << ": convert with arith before this op";
}

LogicalResult greta::checkRank(Operation *op, StringRef name, Value value,
                               int64_t rank, StringRef shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "'" << name << "' has rank " << type.getRank()
                           << "; it is " << shape << " of rank " << rank
                           << ": reshape it";
}

LogicalResult greta::checkDim(Operation *op, StringRef name, Value value,
                              int64_t dim, int64_t size, const Twine &what) {
  int64_t found = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  if (ShapedType::isDynamic(found) || ShapedType::isDynamic(size) ||
      found == size)
    return success();
  return op->emitOpError() << "'" << name << "' has " << found
                           << " elements in dimension " << dim << ", not "
                           << size << "; it must match " << what;
}

LogicalResult greta::checkRows(Operation *op, StringRef name, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  if (failed(checkFloat(op, name, value)))
    return failure();
  if (type.getRank() == 0)
    return op->emitOpError() << "'" << name
                             << "' has rank 0; it is [.., D] "
                                "with at least one dimension: expand it";
  int64_t size = type.getShape().back();
  if (ShapedType::isDynamic(size))
    return op->emitOpError()
           << "'" << name
           << "' has a dynamic last dimension; only leading "
              "dimensions may be dynamic: give the row length in the type";
  if (size == 0)
    return op->emitOpError()
           << "'" << name
           << "' has rows of no elements; they have at least one";
  return success();
}

LogicalResult greta::checkRowVector(Operation *op, StringRef name, Value value,
                                    Value rows) {
  if (failed(checkFloat(op, name, value)) ||
      failed(checkRank(op, name, value, 1, "[D]")))
    return failure();
  int64_t size = cast<RankedTensorType>(rows.getType()).getShape().back();
  if (cast<RankedTensorType>(value.getType()).getDimSize(0) == size)
    return success();
  return op->emitOpError() << "'" << name << "' is " << value.getType()
                           << "; it must be tensor<" << size
                           << "x..> to match the last dimension of 'x'";
}

LogicalResult greta::checkSameType(Operation *op, StringRef name, Type type,
                                   StringRef otherName, Type other) {
  if (type == other)
    return success();
  return op->emitOpError() << "'" << name << "' has type " << type
                           << "; it must be " << other << ", the type of '"
                           << otherName << "'";
}

LogicalResult greta::checkPlain(Operation *op) {
  for (Type type : op->getOperandTypes())
    if (cast<RankedTensorType>(type).getEncoding())
      return op->emitOpError() << "has an operand of type " << type
                               << "; tensors of this level have no encoding: "
                                  "remove it";
  return success();
}
