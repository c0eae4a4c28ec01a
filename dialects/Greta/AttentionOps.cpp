//===- AttentionOps.cpp - verifiers of attention and the KV cache ---------===//
//
// Messages name the operand, the limit and the remedy. AttentionDecompose.cpp
// defines the ops.
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
    std::optional<OpAsmParser::UnresolvedOperand> sinks,
    std::optional<OpAsmParser::UnresolvedOperand> kScale,
    std::optional<OpAsmParser::UnresolvedOperand> vScale, Type &q, Type &k,
    Type &v, Type &lengthsType, Type &maskType, Type &sinksType,
    Type &kScaleType, Type &vScaleType) {
  if (parser.parseType(q) || parser.parseComma() || parser.parseType(k) ||
      parser.parseComma() || parser.parseType(v))
    return failure();
  for (auto [given, type] : {std::pair(lengths.has_value(), &lengthsType),
                             std::pair(mask.has_value(), &maskType),
                             std::pair(sinks.has_value(), &sinksType),
                             std::pair(kScale.has_value(), &kScaleType),
                             std::pair(vScale.has_value(), &vScaleType)})
    if (given && (parser.parseComma() || parser.parseType(*type)))
      return failure();
  return success();
}

void greta::printGivenTypes(OpAsmPrinter &printer, Operation *op, Value, Value,
                            Value, Value, Value, Type, Type, Type, Type, Type,
                            Type, Type, Type) {
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

/// Keys or values, all of whose numbers the queries' type has.
static LogicalResult checkWidened(Operation *op, StringRef name, Value value,
                                  Type element) {
  Type found = typeOf(value).getElementType();
  if (found == element || found.isSignlessInteger(8) || isFloat8(found) ||
      (element.isF32() && isa<Float16Type, BFloat16Type>(found)))
    return success();
  return op->emitOpError() << "'" << name << "' has element type " << found
                           << "; it is that of 'q', " << element
                           << ", or i8, a float of 8 bits or, beside f32, f16 "
                              "or bf16: convert it with arith";
}

/// The scales of keys or values, each dimension of which is theirs or 1.
static LogicalResult checkScales(Operation *op, StringRef name, Value scales,
                                 StringRef scaled, Value values,
                                 StringRef shape) {
  if (!scales)
    return success();
  if (failed(checkRank(op, name, scales, 3, shape)) ||
      failed(checkElement(op, name, scales, Float32Type::get(op->getContext()),
                          "convert it with arith")))
    return failure();
  for (int64_t dim : {0, 1, 2})
    if (typeOf(scales).getDimSize(dim) != 1 &&
        failed(checkDim(op, name, scales, dim, typeOf(values).getDimSize(dim),
                        "'" + scaled + "', or be 1")))
      return failure();
  return success();
}

/// A scale for each of some neighbours of a cache's rows of i8.
static LogicalResult checkGroupScales(Operation *op, StringRef name,
                                      Value scales, StringRef cacheName,
                                      Value cache, StringRef shape) {
  Type element = typeOf(cache).getElementType();
  if (!element.isSignlessInteger(8))
    return op->emitOpError()
           << "'" << name << "' are scales of groups, beside '" << cacheName
           << "' of " << element << "; they are of i8 alone";
  if (failed(checkRank(op, name, scales, 4, shape)) ||
      failed(checkElement(op, name, scales, Float16Type::get(op->getContext()),
                          "convert it with arith")))
    return failure();
  for (int64_t dim : {0, 1, 2})
    if (failed(checkDim(op, name, scales, dim, typeOf(cache).getDimSize(dim),
                        "'" + cacheName.str() + "'")))
      return failure();
  int64_t size = typeOf(cache).getDimSize(3);
  int64_t count = typeOf(scales).getDimSize(3);
  for (int64_t group : {16, 32, 64})
    if (count * group == size)
      return success();
  return op->emitOpError() << "'" << name << "' has " << typeOf(scales)
                           << " for rows of " << size << " numbers of '"
                           << cacheName
                           << "'; a scale is of 16, 32 or 64 neighbours";
}

/// Query heads, key heads and the head size, where heads are in the keys'
/// `shape` and in the queries'.
static LogicalResult checkHeads(Operation *op, Value q, StringRef name, Value k,
                                StringRef shape, int64_t headsOfK,
                                int64_t headsOfQ) {
  if (failed(checkRank(op, name, k, 4, shape)) ||
      failed(checkWidened(op, name, k, typeOf(q).getElementType())) ||
      failed(checkStatic(op, name, k, headsOfK, "heads")) ||
      failed(checkDim(op, name, k, 3, typeOf(q).getShape().back(), "D of 'q'")))
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

/// `isRagged`: sequences have numbers of rows of their own.
static LogicalResult checkQueries(Operation *op, Value q, int64_t heads,
                                  bool isRagged = false) {
  int64_t rank = isRagged ? 3 : 4;
  if (failed(checkPlain(op)) || failed(checkFloat(op, "q", q)) ||
      failed(checkRank(op, "q", q, rank,
                       isRagged     ? "[T, Hq, D]"
                       : heads == 1 ? "[B, Hq, S, D]"
                                    : "[B, S, Hq, D]")) ||
      failed(checkStatic(op, "q", q, heads, "heads")) ||
      failed(checkStatic(op, "q", q, rank - 1, "head size")))
    return failure();
  if (int64_t size = typeOf(q).getShape().back(); size % 8)
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
                                             const Twine &what,
                                             StringRef shape = "[B]") {
  if (failed(checkRank(op, name, value, 1, shape)) ||
      failed(checkElement(op, name, value,
                          IntegerType::get(op->getContext(), 32),
                          "convert it with arith")))
    return failure();
  return checkDim(op, name, value, 0, sequences, what);
}

/// A logit of each query head, where there are some.
static LogicalResult checkSinks(Operation *op, Value sinks, Value q,
                                int64_t headsOfQ) {
  if (!sinks)
    return success();
  if (failed(checkRank(op, "sinks", sinks, 1, "[Hq]")) ||
      failed(checkStatic(op, "sinks", sinks, 0, "heads")) ||
      failed(checkElement(op, "sinks", sinks,
                          Float32Type::get(op->getContext()),
                          "convert it with arith")))
    return failure();
  return checkDim(op, "sinks", sinks, 0, typeOf(q).getDimSize(headsOfQ),
                  "the heads of 'q'");
}

static RankedTensorType numberPerRow(Value q, int64_t headsOfQ) {
  RankedTensorType type = typeOf(q);
  return RankedTensorType::get({type.getDimSize(0), type.getDimSize(headsOfQ),
                                type.getDimSize(3 - headsOfQ)},
                               Float32Type::get(q.getContext()));
}

static LogicalResult checkNumberPerRow(Operation *op, StringRef name,
                                       Value value, Value q, int64_t headsOfQ) {
  RankedTensorType type = numberPerRow(q, headsOfQ);
  if (value.getType() == type)
    return success();
  return op->emitOpError() << "'" << name << "' has type " << value.getType()
                           << "; it must be " << type << ", a number per row";
}

/// The operands and numbers that attention and its gradients share; where heads
/// are in queries and in keys.
template <typename Op>
static LogicalResult checkAttention(Op op, int64_t headsOfQ, int64_t headsOfK) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  StringRef shape = headsOfK == 1 ? "[B, Hkv, T, D]" : "[B, T, Hkv, D]";
  if (failed(checkQueries(op, op.getQ(), headsOfQ)) ||
      failed(checkHeads(op, op.getQ(), "k", op.getK(), shape, headsOfK,
                        headsOfQ)) ||
      failed(checkHeads(op, op.getQ(), "v", op.getV(), shape, headsOfK,
                        headsOfQ)) ||
      failed(checkNumbers(op, op.getScale(), op.getWindow(), op.getSoftcap())))
    return failure();
  int64_t batch = q.getDimSize(0), heads = q.getDimSize(headsOfQ);
  int64_t rows = q.getDimSize(3 - headsOfQ);
  int64_t keysDim = 3 - headsOfK, keys = k.getDimSize(keysDim);
  if (failed(checkDim(op, "k", op.getK(), 0, batch, "B of 'q'")) ||
      failed(checkDim(op, "v", op.getV(), 0, batch, "B of 'q'")) ||
      failed(checkDim(op, "v", op.getV(), headsOfK, k.getDimSize(headsOfK),
                      "the heads of 'k'")) ||
      failed(checkDim(op, "v", op.getV(), keysDim, keys, "T of 'k'")))
    return failure();
  if (op.getLengths() &&
      failed(checkNumbersPerSequence(op, "lengths", op.getLengths(), batch,
                                     "B of 'q'")))
    return failure();
  Value mask = op.getMask();
  if (!mask)
    return success();
  if (failed(checkFloat(op, "mask", mask)) ||
      failed(checkRank(op, "mask", mask, 4, "[B or 1, Hq or 1, S or 1, T]")))
    return failure();
  for (auto [dim, extent, what] :
       {std::tuple(0, batch, "B of 'q', or be 1"),
        std::tuple(1, heads, "the heads of 'q', or be 1"),
        std::tuple(2, rows, "S of 'q', or be 1")})
    if (typeOf(mask).getDimSize(dim) != 1 &&
        failed(checkDim(op, "mask", mask, dim, extent, what)))
      return failure();
  return checkDim(op, "mask", mask, 3, keys, "T of 'k'");
}

LogicalResult AttentionOp::verify() {
  int64_t headsOfQ = getTokensFirst() ? 2 : 1;
  if (failed(checkAttention(*this, headsOfQ, /*headsOfK=*/1)) ||
      failed(checkLike(*this, "result", getResult(), "q", getQ())))
    return failure();
  for (auto [name, scales, scaled, values] :
       {std::tuple("k_scale", getKScale(), "k", getK()),
        std::tuple("v_scale", getVScale(), "v", getV())})
    if (failed(checkScales(*this, name, scales, scaled, values,
                           "[B or 1, Hkv or 1, T or 1]")))
      return failure();
  if (failed(checkSinks(*this, getSinks(), getQ(), headsOfQ)))
    return failure();
  return getLse() ? checkNumberPerRow(*this, "lse", getLse(), getQ(), headsOfQ)
                  : success();
}

LogicalResult AttentionBackwardOp::verify() {
  Value q = getQ();
  Type element = typeOf(q).getElementType();
  for (auto [name, value] :
       {std::pair("k", Value(getK())), std::pair("v", Value(getV()))})
    if (failed(checkElement(*this, name, value, element,
                            "gradients are of numbers of the type of 'q', not "
                            "of a quantised cache; convert it with arith")))
      return failure();
  int64_t heads = getTokensFirst() ? 2 : 1;
  if (failed(checkAttention(*this, heads, heads)))
    return failure();
  RankedTensorType perRow = numberPerRow(q, heads);
  if (getO().getType() != q.getType() && getO().getType() != perRow)
    return emitOpError() << "'o' has type " << getO().getType()
                         << "; it is attention's result, " << q.getType()
                         << ", or the rows' sums of do * o, " << perRow;
  if (failed(checkNumberPerRow(*this, "lse", getLse(), q, heads)) ||
      failed(checkLike(*this, "do", getDO(), "q", q)) ||
      failed(checkLike(*this, "dq", getDq(), "q", q)) ||
      failed(checkLike(*this, "dk", getDk(), "k", getK())) ||
      failed(checkLike(*this, "dv", getDv(), "v", getV())))
    return failure();
  return getDelta() ? checkNumberPerRow(*this, "delta", getDelta(), q, heads)
                    : success();
}

LogicalResult PagedAttentionOp::verify() {
  bool isRagged = static_cast<bool>(getBegins());
  if (isRagged && getTokensFirst())
    return emitOpError("has 'begins' and 'tokens_first'; the rows of 'begins' "
                       "are tokens first: leave 'tokens_first' out");
  int64_t heads = getTokensFirst() ? 2 : 1;
  if (failed(checkQueries(*this, getQ(), heads, isRagged)) ||
      failed(checkLike(*this, "result", getResult(), "q", getQ())) ||
      failed(checkHeads(*this, getQ(), "k_cache", getKCache(),
                        "[P, page, Hkv, D]", /*headsOfK=*/2, heads)) ||
      failed(checkStatic(*this, "k_cache", getKCache(), 1, "rows in a page")) ||
      failed(checkSameType(*this, "v_cache", getVCache().getType(), "k_cache",
                           getKCache().getType())) ||
      failed(checkNumbers(*this, getScale(), getWindow(), getSoftcap())) ||
      failed(checkSinks(*this, getSinks(), getQ(), heads)) ||
      failed(checkRank(*this, "table", getTable(), 2, "[B, maxpages]")) ||
      failed(checkElement(*this, "table", getTable(),
                          IntegerType::get(getContext(), 32),
                          "convert it with arith")))
    return failure();
  for (auto [name, scales, scaled, values] :
       {std::tuple("k_scale", getKScale(), "k_cache", getKCache()),
        std::tuple("v_scale", getVScale(), "v_cache", getVCache())})
    if (scales && typeOf(scales).getRank() == 4
            ? failed(checkGroupScales(*this, name, scales, scaled, values,
                                      "[P, page, Hkv, D / g]"))
            : failed(checkScales(*this, name, scales, scaled, values,
                                 "[P or 1, page or 1, Hkv or 1]")))
      return failure();
  if (getKScale() &&
      typeOf(getKScale()).getRank() != typeOf(getVScale()).getRank())
    return emitOpError("has scales of groups for one of 'k_cache' and "
                       "'v_cache'; both have them, or none");
  if (!isRagged) {
    int64_t batch = getQ().getType().getDimSize(0);
    if (failed(checkDim(*this, "table", getTable(), 0, batch, "B of 'q'")))
      return failure();
    return checkNumbersPerSequence(*this, "lengths", getLengths(), batch,
                                   "B of 'q'");
  }
  int64_t batch = getTable().getType().getDimSize(0);
  if (failed(checkNumbersPerSequence(*this, "lengths", getLengths(), batch,
                                     "B of 'table'")))
    return failure();
  if (ShapedType::isDynamic(batch))
    batch = getLengths().getType().getDimSize(0);
  return checkNumbersPerSequence(*this, "begins", getBegins(),
                                 ShapedType::isDynamic(batch) ? batch
                                                              : batch + 1,
                                 "B of 'lengths' and one more", "[B + 1]");
}

/// Both updates check this: a cache of four dimensions with rows of a static
/// size, new rows of its type.
static LogicalResult checkUpdate(Operation *op, Value cache, StringRef shape,
                                 Value rows, int64_t rank, StringRef rowsShape,
                                 Value result, bool isQuantised = false) {
  if (failed(checkPlain(op)) ||
      failed(checkRank(op, "cache", cache, 4, shape)) ||
      failed(checkStatic(op, "cache", cache, 3, "row size")) ||
      failed(checkRank(op, "new", rows, rank, rowsShape)) ||
      (isQuantised ? failed(checkFloat(op, "new", rows))
                   : failed(checkElement(
                         op, "new", rows, typeOf(cache).getElementType(),
                         "it must match 'cache'; convert it with "
                         "arith"))))
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
                         "[T, H, D]", getResult(),
                         /*isQuantised=*/bool(getScales()))))
    return failure();
  if (bool(getScales()) != bool(getNewScales()))
    return emitOpError() << "has " << (getScales() ? "no" : "a")
                         << " second result; it is what 'scales' become";
  if (getScales() &&
      (failed(checkGroupScales(*this, "scales", getScales(), "cache",
                               getCache(), "[P, page, H, D / g]")) ||
       failed(checkSameType(*this, "new_scales", getNewScales().getType(),
                            "scales", getScales().getType()))))
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
  if (getTokensFirst())
    std::swap(sizes[1], sizes[2]);
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
  if (getScales())
    shapes.push_back(tensor::getMixedSizes(builder, getLoc(), getScales()));
  return success();
}
