//===- GretaOps.cpp - the greta dialect and its verifiers -----------------===//
//
// Messages name the operand, the limit and the remedy. GretaDecompose.cpp
// defines the ops.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "Greta/Greta.h"
#include "GretaTile/GretaTile.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/InliningUtils.h"

using namespace mlir;
using namespace greta;

#include "Greta/GretaDialect.cpp.inc"
#include "Greta/GretaInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Greta/GretaAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "Greta/GretaOps.cpp.inc"
#define GET_OP_CLASSES
#include "Greta/GretaKernel.cpp.inc"

namespace {
/// All ops are free of side effects: they go wherever their function goes.
struct GretaInliner : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void GretaDialect::initialize() {
  addInterfaces<GretaInliner>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Greta/GretaAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Greta/GretaOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Greta/GretaKernel.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// NaN and negative values have no use; what is too small divides by zero only
/// where a row is zero, which is the model's choice.
static LogicalResult checkEps(Operation *op, const APFloat &eps) {
  if (!eps.isNaN() && !eps.isInfinity() && !eps.isNegative())
    return success();
  return op->emitOpError() << "'eps' is " << eps.convertToFloat()
                           << "; it must be finite and not negative";
}

LogicalResult RmsNormOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkRows(*this, "x", getX())) ||
      failed(checkRowVector(*this, "w", getW(), getX())) ||
      failed(checkEps(*this, getEps())))
    return failure();
  return checkSameType(*this, "result", getType(), "x", getX().getType());
}

LogicalResult LayerNormOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkRows(*this, "x", getX())) ||
      failed(checkRowVector(*this, "w", getW(), getX())) ||
      failed(checkRowVector(*this, "b", getB(), getX())) ||
      failed(checkEps(*this, getEps())))
    return failure();
  return checkSameType(*this, "result", getType(), "x", getX().getType());
}

LogicalResult SoftmaxOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkRows(*this, "x", getX())))
    return failure();
  return checkSameType(*this, "result", getType(), "x", getX().getType());
}

LogicalResult AllReduceOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkFloat(*this, "x", getX())))
    return failure();
  if (auto shape = getShape();
      shape &&
      (shape->getNumDims() || shape->getNumResults() != getType().getRank() ||
       !tile::keepsExtents(getType(), *shape)))
    return emitOpError() << "'shape' is " << getShapeAttr()
                         << ", not the extents of " << getType()
                         << " over the function's symbols";
  if (std::optional<int64_t> rows = getPartRows()) {
    if (*rows < 0 || *rows > 1 << 24) // as packages have it
      return emitOpError("has 'part_rows' ")
             << *rows
             << "; it is a number of rows up to 16777216, or 0 for one part";
    if (*rows && getType().getRank() == 0)
      return emitOpError("has 'part_rows' ")
             << *rows << ", and 'x' has no rows; leave it out";
  }
  return checkSameType(*this, "result", getType(), "x", getX().getType());
}

LogicalResult SwigluOp::verify() {
  if (failed(checkPlain(*this)) ||
      failed(checkRows(*this, "gate", getGate())) ||
      failed(checkSameType(*this, "up", getUp().getType(), "gate",
                           getGate().getType())))
    return failure();
  return checkSameType(*this, "result", getType(), "gate", getGate().getType());
}

LogicalResult RopeOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkRows(*this, "x", getX())) ||
      failed(checkRank(*this, "x", getX(), 3, "[T, H, D]")))
    return failure();
  RankedTensorType type = getX().getType();
  int64_t tokens = type.getDimSize(0), size = type.getDimSize(2);
  if (size % 2)
    return emitOpError() << "'x' has heads of " << size
                         << " elements; D must be even: pad the head";
  for (auto [name, table] :
       {std::pair("cos", getCos()), std::pair("sin", getSin())}) {
    if (!table.getType().getElementType().isF32())
      return emitOpError() << "'" << name << "' has element type "
                           << table.getType().getElementType()
                           << "; the tables are f32: convert with arith";
    if (failed(checkRank(*this, name, table, 2, "[T, D/2]")) ||
        failed(checkDim(*this, name, table, 0, tokens, "T of 'x'")))
      return failure();
    if (table.getType().getDimSize(1) != size / 2)
      return emitOpError() << "'" << name << "' is " << table.getType()
                           << "; it must have " << size / 2
                           << " columns, half the head size of 'x'";
  }
  if (getStyle() != "neox" && getStyle() != "gptj")
    return emitOpError() << "'style' is \"" << getStyle()
                         << "\"; it is \"neox\" (halves) or \"gptj\" (pairs)";
  return checkSameType(*this, "result", getType(), "x", type);
}

/// Operands that a product multiplies, and the result that it rounds to.
template <typename Product> static LogicalResult checkProductTypes(Product op) {
  Type a = op.getA().getType().getElementType();
  Type b = op.getB().getType().getElementType();
  Type result = op.getType().getElementType();
  if (!a.isInteger(8) && !isFloat8(a) &&
      failed(checkFloat(op, "a", op.getA(),
                        "f32, f16, bf16, i8, f8E4M3FN, f8E5M2, f8E4M3FNUZ or "
                        "f8E5M2FNUZ")))
    return failure();
  bool mixes = (isa<Float8E4M3FNType, Float8E5M2Type>(a) &&
                isa<Float8E4M3FNType, Float8E5M2Type>(b)) ||
               (isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(a) &&
                isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(b));
  if (b != a && !mixes)
    return op.emitOpError()
           << "'b' has element type " << b << "; it must be " << a
           << (isFloat8(a) ? ", the element type of 'a', or the "
                             "other 8-bit float of its kind"
                           : ", the element type of 'a'")
           << ": convert one with arith";
  if (a.isInteger(8)) {
    if (!result.isInteger(32))
      return op.emitOpError() << "'result' has element type " << result
                              << "; a product of i8 is i32: convert it after";
    return success();
  }
  if (isFloat8(a) && !isa<Float32Type, Float16Type, BFloat16Type>(result))
    return op.emitOpError() << "'result' has element type " << result
                            << "; it takes f32, f16 or bf16: convert with "
                               "arith after this op";
  if (isFloat8(a))
    return success();
  if (result != a && !result.isF32())
    return op.emitOpError()
           << "'result' has element type " << result << "; it must be " << a
           << " or f32: convert it after";
  return success();
}

/// The offsets of `groups` groups, or of any number of them.
static LogicalResult checkOffsets(Operation *op, Value offsets,
                                  int64_t groups) {
  auto type = cast<RankedTensorType>(offsets.getType());
  if (failed(checkRank(op, "offsets", offsets, 1, "[E + 1]")))
    return failure();
  if (!type.getElementType().isSignlessInteger(32))
    return op->emitOpError()
           << "'offsets' has element type " << type.getElementType()
           << "; they are i32: convert them with arith";
  constexpr int64_t most = 4096;
  int64_t size = type.getDimSize(0);
  if (size < 2 || size > most + 1 || (groups && size != groups + 1))
    return op->emitOpError()
           << "'offsets' is " << type << "; it has E + 1 elements, "
           << (groups ? "where E is the first dimension of 'b', "
                      : "where E is ")
           << "1 to " << most
           << ": give where each group begins, and where the last one ends";
  return success();
}

LogicalResult GroupedMatmulOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkProductTypes(*this)) ||
      failed(checkRank(*this, "a", getA(), 2, "[T, K]")) ||
      failed(checkRank(*this, "b", getB(), 3,
                       getTransposeB() ? "[E, N, K]" : "[E, K, N]")) ||
      failed(checkRank(*this, "result", getResult(), 2, "[T, N]")))
    return failure();
  RankedTensorType a = getA().getType(), b = getB().getType();
  if (!b.hasStaticShape())
    return emitOpError() << "'b' is " << b
                         << "; only T, the rows of 'a', may be dynamic: give "
                            "E, K and N in the type";
  if (failed(checkOffsets(*this, getOffsets(), b.getDimSize(0))))
    return failure();
  int64_t k = b.getDimSize(getTransposeB() ? 2 : 1);
  int64_t n = b.getDimSize(getTransposeB() ? 1 : 2);
  for (auto [name, value, dim, size] :
       {std::tuple("a", Value(getA()), 1, k),
        std::tuple("result", Value(getResult()), 1, n)})
    if (cast<RankedTensorType>(value.getType()).isDynamicDim(dim))
      return emitOpError() << "'" << name
                           << "' has a dynamic last dimension; only T, the "
                              "rows, may be dynamic: it is "
                           << size << " by 'b'";
  if (failed(checkDim(*this, "a", getA(), 1, k, "K of 'b'")) ||
      failed(checkDim(*this, "result", getResult(), 0, a.getDimSize(0),
                      "T of 'a'")))
    return failure();
  return checkDim(*this, "result", getResult(), 1, n, "N of 'b'");
}

LogicalResult QuantizeRowsOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkRows(*this, "x", getX())) ||
      failed(checkRank(*this, "x", getX(), 2, "[T, K]")))
    return failure();
  RankedTensorType x = getX().getType(), y = getResult().getType();
  Type element = y.getElementType();
  if (!element.isSignlessInteger(8) &&
      !isa<Float8E4M3FNType, Float8E4M3FNUZType>(element))
    return emitOpError() << "'result' has element type " << element
                         << "; it is i8, f8E4M3FN or f8E4M3FNUZ: convert "
                            "another one with arith";
  if (failed(checkSameType(*this, "result", y, "x", x.clone(element))))
    return failure();
  auto scale = RankedTensorType::get({x.getDimSize(0), 1},
                                     Float32Type::get(getContext()));
  if (getScale().getType() != scale)
    return emitOpError() << "'scale' has type " << getScale().getType()
                         << "; it must be " << scale
                         << ", a number for each row";
  return success();
}

/// A product whose rows are in groups (`offsets`), as greta-fuse makes it.
static LogicalResult verifyGrouped(MatmulOp op) {
  RankedTensorType a = op.getA().getType(), b = op.getB().getType();
  int64_t groups = op.getNumGroups();
  bool fits = a.getRank() == 2 && !op.getTransposeA() && b.hasStaticShape() &&
              (b.getRank() == 3 ? b.getDimSize(0) == groups
                                : b.getRank() == 2 && op.getTransposeB() &&
                                      b.getDimSize(0) % groups == 0);
  if (!fits)
    return op.emitOpError("has 'offsets', and operands that are not those of "
                          "greta.grouped_matmul: write that op");
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkProductTypes(*this)))
    return failure();
  if (getPrecision() && (*getPrecision() != "bf16x3" ||
                         !getA().getType().getElementType().isF32()))
    return emitOpError() << "'precision' is \"" << *getPrecision()
                         << "\" for operands of "
                         << getA().getType().getElementType()
                         << "; it is \"bf16x3\", for f32: leave it out";
  if (getOffsets()) {
    if (failed(checkOffsets(*this, getOffsets(), 0)))
      return failure();
    return verifyGrouped(*this);
  }
  RankedTensorType a = getA().getType(), b = getB().getType();
  int64_t rank = std::max(a.getRank(), b.getRank());
  if (a.getRank() < 2)
    return emitOpError() << "'a' has rank " << a.getRank() << "; it is "
                         << (getTransposeA() ? "[.., K, M]" : "[.., M, K]")
                         << " of rank 2 or more: reshape it";
  if (b.getRank() != 2 && b.getRank() != rank)
    return emitOpError() << "'b' has rank " << b.getRank() << "; it is "
                         << (getTransposeB() ? "[.., N, K]" : "[.., K, N]")
                         << " of rank 2, or of no less than the rank of 'a', "
                         << rank << ": reshape it";
  if (failed(checkRank(*this, "result", getResult(), rank,
                       rank == 2 ? "[M, N]" : "[.., M, N]")))
    return failure();
  int64_t withoutA = getRankWithoutA();
  for (int64_t dim = 0; dim < getBatchRank(); ++dim) {
    bool isOfA = dim >= withoutA;
    int64_t size = isOfA ? a.getDimSize(dim - withoutA) : b.getDimSize(dim);
    StringRef batch = isOfA ? "the batch of 'a'" : "the batch of 'b'";
    if ((hasBatchedB() &&
         failed(checkDim(*this, "b", getB(), dim, size, batch))) ||
        failed(checkDim(*this, "result", getResult(), dim, size, batch)))
      return failure();
  }
  if (failed(checkDim(*this, "b", getB(), dimKOfB(), getDepth(), "K of 'a'")) ||
      failed(checkDim(*this, "result", getResult(), rank - 2,
                      a.getDimSize(dimM()), "M of 'a'")))
    return failure();
  return checkDim(*this, "result", getResult(), rank - 1, b.getDimSize(dimN()),
                  "N of 'b'");
}

/// The names of all formats, for people.
static std::string formatNames() {
  std::string names;
  for (const WeightFormat &row : weightFormats)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

/// Whether the operands are as many as the format has, and the group is one of
/// its groups.
static LogicalResult checkFormat(DequantOp op) {
  if (!findWeightFormat(op.getFormat()))
    return op.emitOpError() << "'format' is \"" << op.getFormat()
                            << "\"; it is one of " << formatNames();
  const WeightFormat &row = op.getRow();
  unsigned least = row.highBits ? 3 : 2, most = least;
  if (row.zeros == WeightFormat::Zeros::Minima)
    least = ++most;
  else if (row.zeros == WeightFormat::Zeros::Any)
    ++most;
  if (op.getNumOperands() < least || op.getNumOperands() > most) {
    StringRef last = row.zeros == WeightFormat::Zeros::Minima ? ", minima"
                     : row.zeros == WeightFormat::Zeros::Any
                         ? " and maybe zeros or minima"
                         : "";
    return op.emitOpError()
           << "has " << op.getNumOperands() << " operands; \"" << op.getFormat()
           << "\" takes q, " << (row.highBits ? "high, " : "") << "scales"
           << last;
  }
  int64_t group = op.getGroup();
  if (group < row.leastGroup || group > largestGroup ||
      !llvm::isPowerOf2_64(group)) {
    std::string sizes;
    for (int size = row.leastGroup; size <= largestGroup; size *= 2)
      sizes += (size == row.leastGroup ? ""
                : size == largestGroup ? " or "
                                       : ", ") +
               std::to_string(size);
    return op.emitOpError() << "'group' is " << group << "; it is " << sizes
                            << ": repeat the scales of a larger group";
  }
  return success();
}

/// The element type of a format's scales, and what to do about another one.
static std::pair<Type, StringRef> scaleOf(const WeightFormat &row,
                                          MLIRContext *context) {
  switch (row.scale) {
  case WeightFormat::Scale::F16:
    return {Float16Type::get(context), "f16: convert it with arith"};
  case WeightFormat::Scale::F32:
    return {Float32Type::get(context), "f32: convert it with arith"};
  case WeightFormat::Scale::E8M0:
    return {IntegerType::get(context, 8), "i8, exponents of two plus 127"};
  }
  llvm_unreachable("scales are of f16, f32 or e8m0");
}

LogicalResult DequantOp::verify() {
  if (failed(checkPlain(*this)) || failed(checkFormat(*this)))
    return failure();
  const WeightFormat &row = getRow();
  int64_t group = getGroup();
  std::string words = "[N, K/" + std::to_string(row.perWord()) + "]",
              highWords = "[N, K/" + std::to_string(row.perHigh()) + "]";
  if (failed(checkRank(*this, "q", getQ(), 2, words)))
    return failure();
  if (getQ().getType().isDynamicDim(1))
    return emitOpError() << "'q' has a dynamic last dimension; only N may be "
                            "dynamic: give K/"
                         << row.perWord() << " in the type";
  int64_t n = getQ().getType().getDimSize(0), k = getDepth();
  if (ShapedType::isDynamic(n) && row.scaleRows > 1)
    return emitOpError() << "'q' has a dynamic N, of which " << row.scaleRows
                         << " rows share scales; give N in the type";
  if (n % row.rowsTogether() ||
      (row.rowsTogether() > 1 && ShapedType::isDynamic(n)))
    return emitOpError() << "'q' has "
                         << (ShapedType::isDynamic(n) ? "a dynamic number of"
                                                      : "an odd number of")
                         << " rows, of which \"" << row.name
                         << "\" has two together; give an even N in the type";
  int64_t whole = std::max<int64_t>(group, row.unit());
  if (k == 0 || k % whole)
    return emitOpError() << "'q' has rows of " << k << " weights; "
                         << (whole == group
                                 ? "'group' "
                                 : "the weights of a word of 'high', ")
                         << whole
                         << " must divide them: pad K or take a smaller group";
  int64_t groups = k / group;
  MLIRContext *context = getContext();
  Type i32 = IntegerType::get(context, 32), f16 = Float16Type::get(context);
  auto [scale, howToScale] = scaleOf(row, context);
  bool areMinima = hasMinima() || row.zeros == WeightFormat::Zeros::Minima;
  std::string eight = row.perWord() == 8 ? "eight" : "four",
              packs = "i32: pack " + eight + " weights of " +
                      std::to_string(row.bits) + " bits into each";
  constexpr StringRef convert = "f16: convert it with arith";
  Type result = getType().getElementType();
  if (!result.isBF16())
    result = f16;
  struct {
    StringRef name;
    Value value;
    int64_t columns;
    StringRef shape;
    Type element;
    StringRef remedy;
  } operands[] = {
      {"q", getQ(), k / row.perWord(), words, i32, packs},
      {"high", getHigh(), row.highBits ? k / row.perHigh() : 0, highWords, i32,
       "i32: pack the upper bits of weights into each"},
      {"scales", getScales(), groups, "[N, K/group]", scale, howToScale},
      {"minima", areMinima ? getZeros() : Tensor(), groups, "[N, K/group]", f16,
       convert},
      {"zeros", areMinima ? Tensor() : getZeros(), (groups + 7) / 8,
       "[N, ceil(K/group/8)]", i32,
       "i32, eight zeros of 4 bits in each, or f16, minima"},
      {"result", getResult(), k, "[N, K]", result,
       "f16 or bf16: convert it with arith"}};
  for (const auto &[name, value, columns, shape, element, remedy] : operands) {
    if (!value)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() != element)
      return emitOpError() << "'" << name << "' has element type "
                           << type.getElementType() << "; it is " << remedy;
    bool shareRows = row.scaleRows > 1 && value == getScales();
    int64_t rows = shareRows ? llvm::divideCeil(n, row.scaleRows) : n;
    // No launch compares these rows with N.
    if (shareRows && type.isDynamicDim(0))
      return emitOpError() << "'" << name << "' is " << type
                           << "; its rows have to be in the type: " << rows;
    if (failed(checkRank(*this, name, value, 2, shape)) ||
        failed(checkDim(*this, name, value, 0, rows,
                        shareRows ? "N/" + std::to_string(row.scaleRows) +
                                        " of 'q', rounded up"
                                  : "N of 'q'")))
      return failure();
    if (type.getDimSize(1) != columns)
      return emitOpError() << "'" << name << "' is " << type
                           << "; it must have " << columns << " columns: it is "
                           << shape << " with K = " << k;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes of results in terms of operands
//===----------------------------------------------------------------------===//

static LogicalResult reifyLike(OpBuilder &builder, Location loc, Value like,
                               ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(tensor::getMixedSizes(builder, loc, like));
  return success();
}

LogicalResult
RmsNormOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getLoc(), getX(), shapes);
}
LogicalResult
LayerNormOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getLoc(), getX(), shapes);
}
LogicalResult
SoftmaxOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getLoc(), getX(), shapes);
}
LogicalResult
AllReduceOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getLoc(), getX(), shapes);
}
LogicalResult RopeOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getLoc(), getX(), shapes);
}
LogicalResult SwigluOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, getLoc(), getGate(), shapes);
}
LogicalResult MatmulOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  // A dimension that the result's type gives stays static.
  auto size = [&](int64_t dim, Value operand,
                  int64_t operandDim) -> OpFoldResult {
    if (!getType().isDynamicDim(dim))
      return builder.getIndexAttr(getType().getDimSize(dim));
    return tensor::getMixedSize(builder, getLoc(), operand, operandDim);
  };
  SmallVector<OpFoldResult> &sizes = shapes.emplace_back();
  int64_t batch = getBatchRank();
  int64_t withoutA = getRankWithoutA();
  for (int64_t dim = 0; dim < batch; ++dim)
    sizes.push_back(dim < withoutA ? size(dim, getB(), dim)
                                   : size(dim, getA(), dim - withoutA));
  sizes.push_back(size(batch, getA(), dimM()));
  sizes.push_back(size(batch + 1, getB(), dimN()));
  return success();
}
LogicalResult
GroupedMatmulOp::reifyResultShapes(OpBuilder &builder,
                                   ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back({tensor::getMixedSize(builder, getLoc(), getA(), 0),
                    builder.getIndexAttr(getType().getDimSize(1))});
  return success();
}
LogicalResult
QuantizeRowsOp::reifyResultShapes(OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  (void)reifyLike(builder, getLoc(), getX(), shapes);
  shapes.push_back({shapes[0][0], builder.getIndexAttr(1)});
  return success();
}
LogicalResult
DequantOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back({tensor::getMixedSize(builder, getLoc(), getQ(), 0),
                    builder.getIndexAttr(getType().getDimSize(1))});
  return success();
}
