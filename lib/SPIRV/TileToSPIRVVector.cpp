//===- TileToSPIRVVector.cpp - small vectors to SPIR-V --------------------===//
//
// Vectors are lists of scalars here, or of words, so that taking them apart and
// putting them together costs no instruction. Pairs of f16 are put together
// where they are made, once for all that computes with them.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;
using greta::tospirv::Parts;

void KernelEmitter::setElements(Value value, Parts parts) {
  set(value, parts);
  if (isPair(value.getType()))
    setWords(value, Value(spirv::CompositeConstructOp::create(
                        b, pairType(), ValueRange(parts))));
}

LogicalResult KernelEmitter::emitVectorOp(Operation *op) {
  // Positions that are known, one number each.
  auto position = [&](auto op) -> FailureOr<int64_t> {
    ArrayRef<int64_t> at = op.getStaticPosition();
    if (at.size() == 1 && !ShapedType::isDynamic(at.front()))
      return at.front();
    return op.emitOpError("has a position that is not one constant; lanes hold "
                          "vectors in registers, which have no addresses");
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](vector::FromElementsOp op) {
        PartList parts;
        for (Value element : op.getElements())
          parts.push_back(getScalar(element));
        setElements(op, parts);
        return success();
      })
      .Case([&](vector::ToElementsOp op) {
        for (auto [result, part] :
             llvm::zip(op.getElements(), get(op.getSource())))
          set(result, part);
        return success();
      })
      .Case([&](vector::BroadcastOp op) {
        Parts source = get(op.getSource());
        int64_t count = countOf(op.getType());
        setElements(op, static_cast<int64_t>(source.size()) == count
                            ? source
                            : Parts(PartList(count, source.front())));
        return success();
      })
      .Case([&](vector::ExtractOp op) -> LogicalResult {
        FailureOr<int64_t> at = position(op);
        if (failed(at))
          return failure();
        set(op, get(op.getSource())[*at]);
        return success();
      })
      .Case([&](vector::InsertOp op) -> LogicalResult {
        FailureOr<int64_t> at = position(op);
        if (failed(at))
          return failure();
        PartList parts(get(op.getDest()));
        parts[*at] = getScalar(op.getValueToStore());
        set(op, parts);
        return success();
      })
      .Case([&](vector::ShuffleOp op) {
        PartList both(get(op.getV1()));
        llvm::append_range(both, get(op.getV2()));
        PartList parts;
        // An element that may be anything (-1) is the first one.
        for (int64_t index : op.getMask())
          parts.push_back(both[std::max<int64_t>(index, 0)]);
        set(op, parts);
        return success();
      })
      .Case([&](vector::ExtractStridedSliceOp op) {
        int64_t first = cast<IntegerAttr>(op.getOffsets()[0]).getInt();
        int64_t count = op.getType().getNumElements();
        int64_t perWord =
            32 / op.getType().getElementType().getIntOrFloatBitWidth();
        if (hasWords(op.getSource()) && isPacked(op.getType()) &&
            first % perWord == 0)
          setWords(op, Parts(getWords(op.getSource()))
                           .slice(first / perWord, count / perWord));
        else
          set(op, get(op.getSource()).slice(first, count));
        return success();
      })
      .Case([&](vector::BitCastOp op) -> LogicalResult {
        Type from = op.getSourceVectorType().getElementType();
        Type to = op.getResultVectorType().getElementType();
        int64_t bits = op.getSourceVectorType().getNumElements() *
                       from.getIntOrFloatBitWidth();
        if (from.isInteger(1) || to.isInteger(1) || bits % 32)
          return op.emitOpError("reinterprets ")
                 << op.getSourceVectorType() << " as "
                 << op.getResultVectorType()
                 << "; greta-tile-to-spirv does so by whole 32-bit words";
        PartList words = isPacked(op.getSourceVectorType())
                             ? getWords(op.getSource())
                             : pack(from, get(op.getSource()));
        if (isPair(op.getType()))
          setWords(op, bitcast(pairType(), words.front()));
        else if (isPacked(op.getType()))
          setWords(op, words);
        else
          set(op, unpack(to, words));
        return success();
      })
      .Default([&](Operation *) { return unknown(op); });
}
