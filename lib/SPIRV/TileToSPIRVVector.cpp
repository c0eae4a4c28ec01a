//===- TileToSPIRVVector.cpp - small vectors to SPIR-V --------------------===//
//
// Vectors are lists of scalars here, or of words, so that taking them apart and
// putting them together costs no instruction.
//
//===----------------------------------------------------------------------===//

#include "TileToSPIRVKernel.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using greta::tospirv::KernelEmitter;
using greta::tospirv::PartList;
using greta::tospirv::Parts;

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
      .Case<vector::FromElementsOp>([&](vector::FromElementsOp op) {
        PartList parts;
        for (Value element : op.getElements())
          parts.push_back(getScalar(element));
        set(op, parts);
        return success();
      })
      .Case<vector::ToElementsOp>([&](vector::ToElementsOp op) {
        for (auto [result, part] :
             llvm::zip(op.getElements(), get(op.getSource())))
          set(result, part);
        return success();
      })
      .Case<vector::BroadcastOp>([&](vector::BroadcastOp op) {
        Parts source = get(op.getSource());
        int64_t count = countOf(op.getType());
        set(op, static_cast<int64_t>(source.size()) == count
                    ? source
                    : Parts(PartList(count, source.front())));
        return success();
      })
      .Case<vector::ExtractOp>([&](vector::ExtractOp op) -> LogicalResult {
        FailureOr<int64_t> at = position(op);
        if (failed(at))
          return failure();
        set(op, get(op.getSource())[*at]);
        return success();
      })
      .Case<vector::InsertOp>([&](vector::InsertOp op) -> LogicalResult {
        FailureOr<int64_t> at = position(op);
        if (failed(at))
          return failure();
        PartList parts(get(op.getDest()));
        parts[*at] = getScalar(op.getValueToStore());
        set(op, parts);
        return success();
      })
      .Case<vector::ShuffleOp>([&](vector::ShuffleOp op) {
        PartList both(get(op.getV1()));
        llvm::append_range(both, get(op.getV2()));
        PartList parts;
        // An element that may be anything (-1) is the first one.
        for (int64_t index : op.getMask())
          parts.push_back(both[std::max<int64_t>(index, 0)]);
        set(op, parts);
        return success();
      })
      .Case<vector::ExtractStridedSliceOp>(
          [&](vector::ExtractStridedSliceOp op) {
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
      .Case<vector::BitCastOp>([&](vector::BitCastOp op) -> LogicalResult {
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
        if (isPacked(op.getType()))
          setWords(op, words);
        else
          set(op, unpack(to, words));
        return success();
      })
      .Default([&](Operation *) { return unknown(op); });
}

/// Weights e and e+4 of a word come out of it together, as f16 with the bits of
/// the exponent put in front: 64 + w / 16, or 4 + w / 16 for the upper of two.
/// Differences to the zero are exact. They are multiplied by pairs; each half
/// of two sums takes as many products as there are words, twice, before they
/// go on in f32. As sixteenths they overflow only where `a` itself nearly does.
LogicalResult KernelEmitter::emitDotPacked(tile::DotPackedOp op) {
  Type half = registerType(b.getF16Type());
  Type pair = VectorType::get(2, half), i32 = b.getI32Type();
  auto withExponent = [&](Value x, int64_t exponent) {
    return bitcast(pair, make<spirv::BitwiseOrOp>(i32, x, constI32(exponent)));
  };
  Value zeros =
      same<spirv::IMulOp>(getScalar(op.getZero()), constI32(0x00010001));
  Value bias[2] = {
      withExponent(zeros, 0x54005400),
      withExponent(make<spirv::ShiftLeftLogicalOp>(i32, zeros, constI32(4)),
                   0x44004400)};
  PartList a(get(op.getA())), words(get(op.getWords()));
  Value sums[2];
  for (auto [i, word] : llvm::enumerate(words))
    for (unsigned e = 0; e < 4; ++e) {
      Value bits = word;
      if (e >= 2)
        bits = make<spirv::ShiftRightLogicalOp>(i32, word, constI32(8));
      bits = make<spirv::BitwiseAndOp>(
          i32, bits, constI32(e % 2 ? 0x00f000f0 : 0x000f000f));
      Value weights = same<spirv::FSubOp>(
          withExponent(bits, e % 2 ? 0x44004400 : 0x54005400), bias[e % 2]);
      Value x = spirv::CompositeConstructOp::create(
          b, pair, ValueRange{a[8 * i + e], a[8 * i + e + 4]});
      Value &sum = sums[e % 2];
      sum = sum ? same<spirv::GLFmaOp>(weights, x, sum)
                : same<spirv::FMulOp>(weights, x);
    }
  Value total;
  for (Value sum : sums)
    for (int32_t i = 0; i < 2; ++i) {
      Value part = make<spirv::FConvertOp>(
          b.getF32Type(), spirv::CompositeExtractOp::create(b, sum, {i}));
      total = total ? same<spirv::FAddOp>(total, part) : part;
    }
  set(op, same<spirv::FMulOp>(total, constF32(16.0f)));
  return success();
}

/// Weights e and e+4 together, as f16 with the bits of the exponent put in
/// front: 1024 + w. The difference to 1024 + zero is exact, and its product
/// with the scale is rounded once.
LogicalResult KernelEmitter::emitDequantWord(tile::DequantWordOp op) {
  Type pair = VectorType::get(2, registerType(b.getF16Type()));
  Type i32 = b.getI32Type();
  auto raised = [&](Value weights) {
    return bitcast(
        pair, make<spirv::BitwiseOrOp>(i32, weights, constI32(0x64006400)));
  };
  Value zero = raised(
      same<spirv::IMulOp>(getScalar(op.getZero()), constI32(0x00010001)));
  Value half = getScalar(op.getScale());
  Value scale =
      spirv::CompositeConstructOp::create(b, pair, ValueRange{half, half});
  PartList parts(8);
  for (int32_t e = 0; e < 4; ++e) {
    Value bits = getScalar(op.getWord());
    if (e)
      bits = make<spirv::ShiftRightLogicalOp>(i32, bits, constI32(4 * e));
    bits = make<spirv::BitwiseAndOp>(i32, bits, constI32(0x000f000f));
    Value weights =
        same<spirv::FMulOp>(same<spirv::FSubOp>(raised(bits), zero), scale);
    for (int32_t i : {0, 1})
      parts[e + 4 * i] = spirv::CompositeExtractOp::create(b, weights, {i});
  }
  set(op, parts);
  return success();
}
