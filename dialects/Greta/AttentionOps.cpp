//===- AttentionOps.cpp - verifiers of attention and the KV cache ---------===//
//
// Messages name the operand, the limit and the remedy. What an op means is in
// AttentionDecompose.cpp.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "Greta/Greta.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// The types of operands, those that are given
//===----------------------------------------------------------------------===//

ParseResult greta::parseGivenTypes(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> lengths,
    std::optional<OpAsmParser::UnresolvedOperand> mask,
    std::optional<OpAsmParser::UnresolvedOperand> sinks, Type &q, Type &k,
    Type &v, Type &lengthsType, Type &maskType, Type &sinksType) {
  if (parser.parseType(q) || parser.parseComma() || parser.parseType(k) ||
      parser.parseComma() || parser.parseType(v))
    return failure();
  for (auto [given, type] : {std::pair(lengths.has_value(), &lengthsType),
                             std::pair(mask.has_value(), &maskType),
                             std::pair(sinks.has_value(), &sinksType)})
    if (given && (parser.parseComma() || parser.parseType(*type)))
      return failure();
  return success();
}

void greta::printGivenTypes(OpAsmPrinter &printer, Operation *op, Value, Value,
                            Value, Type, Type, Type, Type, Type, Type) {
  llvm::interleaveComma(op->getOperandTypes(), printer);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static LogicalResult checkElement(Operation *op, StringRef name, Value value,
                                  Type element, StringRef remedy) {
  if (typeOf(value).getElementType() == element)
    return success();
  return op->emitOpError() << "'" << name << "' has element type "
                           << typeOf(value).getElementType() << "; it is "
                           << element << ": " << remedy;
}

/// An extent that kernels are made for: static, and at least 1.
static LogicalResult checkStatic(Operation *op, StringRef name, Value value,
                                 int64_t dim, StringRef what) {
  int64_t extent = typeOf(value).getDimSize(dim);
  if (ShapedType::isDynamic(extent))
    return op->emitOpError() << "'" << name << "' has dynamic " << what
                             << "; give the number in the type";
  if (extent == 0)
    return op->emitOpError()
           << "'" << name << "' has no " << what << "; there is at least one";
  return success();
}

/// Query heads, key heads and the head size, whose dimensions in the keys are
/// given.
static LogicalResult checkHeads(Operation *op, Value q, StringRef name, Value k,
                                int64_t headsOfK, int64_t headsOfQ = 1) {
  if (failed(
          checkRank(op, name, k, 4,
                    headsOfK == 1 ? "[B, Hkv, T, D]" : "[P, page, Hkv, D]")) ||
      failed(checkElement(op, name, k, typeOf(q).getElementType(),
                          "it must match 'q'; convert it with arith")) ||
      failed(checkStatic(op, name, k, headsOfK, "heads")) ||
      failed(checkDim(op, name, k, 3, typeOf(q).getDimSize(3), "D of 'q'")))
    return failure();
  int64_t heads = typeOf(q).getDimSize(headsOfQ);
  int64_t shared = typeOf(k).getDimSize(headsOfK);
  if (heads % shared)
    return op->emitOpError()
           << "'" << name << "' has " << shared
           << " heads, which do not divide " << heads
           << ", those of 'q': each is read by as many query heads";
  if (ShapedType::isDynamic(typeOf(k).getDimSize(3)))
    return op->emitOpError() << "'" << name
                             << "' has a dynamic last dimension; "
                                "give D in the type";
  return success();
}

static LogicalResult checkQueries(Operation *op, Value q, int64_t heads = 1) {
  if (failed(checkPlain(op)) || failed(checkFloat(op, "q", q)) ||
      failed(checkRank(op, "q", q, 4,
                       heads == 1 ? "[B, Hq, S, D]" : "[B, S, Hq, D]")) ||
      failed(checkStatic(op, "q", q, heads, "heads")) ||
      failed(checkStatic(op, "q", q, 3, "head size")))
    return failure();
  if (int64_t size = typeOf(q).getDimSize(3); size % 8)
    return op->emitOpError() << "'q' has heads of " << size
                             << " elements; D is a multiple of 8: pad the head";
  return success();
}

/// A value that has the type of another.
static LogicalResult checkLike(Operation *op, StringRef name, Value value,
                               StringRef otherName, Value other) {
  return checkSameType(op, name, value.getType(), otherName, other.getType());
}

/// The numbers that several ops take.
static LogicalResult checkNumbers(Operation *op, std::optional<APFloat> scale,
                                  std::optional<int64_t> window,
                                  std::optional<APFloat> softcap) {
  if (scale && (scale->isNaN() || scale->isInfinity()))
    return op->emitOpError() << "'scale' is not finite";
  if (window && *window < 1)
    return op->emitOpError() << "'window' is " << *window
                             << "; a row sees at least one key: leave it out "
                                "to see all";
  if (softcap && !(softcap->isFiniteNonZero() && !softcap->isNegative()))
    return op->emitOpError() << "'softcap' is " << softcap->convertToFloat()
                             << "; it is finite and above 0: leave it out for "
                                "no cap";
  return success();
}

static LogicalResult checkNumbersPerSequence(Operation *op, StringRef name,
                                             Value value, int64_t sequences,
                                             const Twine &what) {
  if (failed(checkRank(op, name, value, 1, "[B]")) ||
      failed(checkElement(op, name, value,
                          IntegerType::get(op->getContext(), 32),
                          "convert it with arith")))
    return failure();
  return checkDim(op, name, value, 0, sequences, what);
}

static RankedTensorType numberPerRow(Value q) {
  return RankedTensorType::get(typeOf(q).getShape().drop_back(),
                               Float32Type::get(q.getContext()));
}

static LogicalResult checkNumberPerRow(Operation *op, StringRef name,
                                       Value value, Value q) {
  RankedTensorType type = numberPerRow(q);
  if (value.getType() == type)
    return success();
  return op->emitOpError() << "'" << name << "' has type " << value.getType()
                           << "; it must be " << type << ", a number per row";
}

/// The operands and numbers that attention and its gradients share.
template <typename Op> static LogicalResult checkAttention(Op op) {
  RankedTensorType q = op.getQ().getType();
  if (failed(checkQueries(op, op.getQ())) ||
      failed(checkHeads(op, op.getQ(), "k", op.getK(), 1)) ||
      failed(checkHeads(op, op.getQ(), "v", op.getV(), 1)) ||
      failed(checkNumbers(op, op.getScale(), op.getWindow(), op.getSoftcap())))
    return failure();
  int64_t batch = q.getDimSize(0), heads = q.getDimSize(1);
  int64_t rows = q.getDimSize(2), keys = op.getK().getType().getDimSize(2);
  if (failed(checkDim(op, "k", op.getK(), 0, batch, "B of 'q'")) ||
      failed(checkDim(op, "v", op.getV(), 0, batch, "B of 'q'")) ||
      failed(checkDim(op, "v", op.getV(), 1, op.getK().getType().getDimSize(1),
                      "the heads of 'k'")) ||
      failed(checkDim(op, "v", op.getV(), 2, keys, "T of 'k'")))
    return failure();
  if (op.getLengths() &&
      failed(checkNumbersPerSequence(op, "lengths", op.getLengths(), batch,
                                     "B of 'q'")))
    return failure();
  Value mask = op.getMask();
  if (!mask)
    return success();
  if (failed(checkFloat(op, "mask", mask)) ||
      failed(checkRank(op, "mask", mask, 4, "[B or 1, Hq or 1, S, T]")))
    return failure();
  for (auto [dim, extent, what] :
       {std::tuple(0, batch, "B of 'q', or be 1"),
        std::tuple(1, heads, "the heads of 'q', or be 1")})
    if (typeOf(mask).getDimSize(dim) != 1 &&
        failed(checkDim(op, "mask", mask, dim, extent, what)))
      return failure();
  if (failed(checkDim(op, "mask", mask, 2, rows, "S of 'q'")))
    return failure();
  return checkDim(op, "mask", mask, 3, keys, "T of 'k'");
}

LogicalResult AttentionOp::verify() {
  if (failed(checkAttention(*this)) ||
      failed(checkLike(*this, "result", getResult(), "q", getQ())))
    return failure();
  if (Value sinks = getSinks())
    if (failed(checkRank(*this, "sinks", sinks, 1, "[Hq]")) ||
        failed(checkElement(*this, "sinks", sinks,
                            Float32Type::get(getContext()),
                            "convert it with arith")) ||
        failed(checkDim(*this, "sinks", sinks, 0,
                        getQ().getType().getDimSize(1), "the heads of 'q'")))
      return failure();
  return getLse() ? checkNumberPerRow(*this, "lse", getLse(), getQ())
                  : success();
}

LogicalResult AttentionBackwardOp::verify() {
  Value q = getQ();
  if (failed(checkAttention(*this)))
    return failure();
  if (getO().getType() != q.getType() && getO().getType() != numberPerRow(q))
    return emitOpError() << "'o' has type " << getO().getType()
                         << "; it is attention's result, " << q.getType()
                         << ", or the rows' sums of do * o, "
                         << numberPerRow(q);
  if (failed(checkNumberPerRow(*this, "lse", getLse(), q)) ||
      failed(checkLike(*this, "do", getDO(), "q", q)) ||
      failed(checkLike(*this, "dq", getDq(), "q", q)) ||
      failed(checkLike(*this, "dk", getDk(), "k", getK())) ||
      failed(checkLike(*this, "dv", getDv(), "v", getV())))
    return failure();
  return getDelta() ? checkNumberPerRow(*this, "delta", getDelta(), q)
                    : success();
}

LogicalResult PagedAttentionOp::verify() {
  int64_t heads = getTokensFirst() ? 2 : 1;
  if (failed(checkQueries(*this, getQ(), heads)) ||
      failed(checkLike(*this, "result", getResult(), "q", getQ())) ||
      failed(checkHeads(*this, getQ(), "k_cache", getKCache(), 2, heads)) ||
      failed(checkStatic(*this, "k_cache", getKCache(), 1, "rows in a page")) ||
      failed(checkSameType(*this, "v_cache", getVCache().getType(), "k_cache",
                           getKCache().getType())) ||
      failed(checkNumbers(*this, getScale(), getWindow(), getSoftcap())) ||
      failed(checkRank(*this, "table", getTable(), 2, "[B, maxpages]")) ||
      failed(checkElement(*this, "table", getTable(),
                          IntegerType::get(getContext(), 32),
                          "convert it with arith")))
    return failure();
  int64_t batch = getQ().getType().getDimSize(0);
  if (failed(checkDim(*this, "table", getTable(), 0, batch, "B of 'q'")))
    return failure();
  return checkNumbersPerSequence(*this, "lengths", getLengths(), batch,
                                 "B of 'q'");
}

/// What both updates check: a cache of four dimensions, new rows of its type.
static LogicalResult checkUpdate(Operation *op, Value cache, StringRef shape,
                                 Value rows, int64_t rank, StringRef rowsShape,
                                 Value result) {
  if (failed(checkPlain(op)) ||
      failed(checkRank(op, "cache", cache, 4, shape)) ||
      failed(checkRank(op, "new", rows, rank, rowsShape)) ||
      failed(checkElement(op, "new", rows, typeOf(cache).getElementType(),
                          "it must match 'cache'; convert it with arith")))
    return failure();
  return checkSameType(op, "result", result.getType(), "cache",
                       cache.getType());
}

LogicalResult KvUpdateOp::verify() {
  RankedTensorType cache = getCache().getType();
  if (failed(checkUpdate(*this, getCache(), "[B, H, Tmax, D]", getNewRows(), 4,
                         "[B, H, S, D]", getResult())))
    return failure();
  for (auto [dim, what] :
       {std::pair(0, "B of 'cache'"), std::pair(1, "the heads of 'cache'"),
        std::pair(3, "D of 'cache'")})
    if (failed(checkDim(*this, "new", getNewRows(), dim, cache.getDimSize(dim),
                        what)))
      return failure();
  return checkNumbersPerSequence(*this, "pos", getPos(), cache.getDimSize(0),
                                 "B of 'cache'");
}

LogicalResult PagedKvUpdateOp::verify() {
  RankedTensorType cache = getCache().getType();
  if (failed(checkUpdate(*this, getCache(), "[P, page, H, D]", getNewRows(), 3,
                         "[T, H, D]", getResult())))
    return failure();
  for (auto [dim, what] :
       {std::pair(1, "the heads of 'cache'"), std::pair(2, "D of 'cache'")})
    if (failed(checkDim(*this, "new", getNewRows(), dim,
                        cache.getDimSize(dim + 1), what)))
      return failure();
  return checkNumbersPerSequence(*this, "slots", getSlots(),
                                 getNewRows().getType().getDimSize(0),
                                 "T of 'new'");
}

//===----------------------------------------------------------------------===//
// Shapes of results in terms of operands
//===----------------------------------------------------------------------===//

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, getLoc(), getQ());
  shapes.push_back(sizes);
  if (getLse())
    shapes.push_back(llvm::to_vector(ArrayRef(sizes).drop_back()));
  return success();
}
LogicalResult
AttentionBackwardOp::reifyResultShapes(OpBuilder &builder,
                                       ReifiedRankedShapedTypeDims &shapes) {
  for (Value operand : {Value(getQ()), Value(getK()), Value(getV())})
    shapes.push_back(tensor::getMixedSizes(builder, getLoc(), operand));
  if (getDelta())
    shapes.push_back(llvm::to_vector(ArrayRef(shapes.front()).drop_back()));
  return success();
}
LogicalResult
PagedAttentionOp::reifyResultShapes(OpBuilder &builder,
                                    ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getQ()));
  return success();
}
LogicalResult
KvUpdateOp::reifyResultShapes(OpBuilder &builder,
                              ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getCache()));
  return success();
}
LogicalResult
PagedKvUpdateOp::reifyResultShapes(OpBuilder &builder,
                                   ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getCache()));
  return success();
}
