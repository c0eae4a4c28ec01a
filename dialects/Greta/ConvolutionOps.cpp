//===- ConvolutionOps.cpp - convolutions: verifiers and definitions -------===//
//
// The definition of greta.conv2d is one linalg.generic over [B, Ho, Wo, KO] and
// [R, S, C/groups]. It reads `x` at a position that it computes, moved into the
// image, and takes zero where that was outside; of images that may be empty it
// reads only what is inside.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"
#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Numbers of 16 bits: positions and their sums stay far within i32.
static constexpr int64_t mostElements = 65535;

static LogicalResult checkList(Operation *op, StringRef name, ArrayAttr list,
                               size_t count, int64_t least) {
  auto isWithin = [&](Attribute entry) {
    int64_t value = cast<IntegerAttr>(entry).getInt();
    return value >= least && value <= mostElements;
  };
  if (list.size() == count && llvm::all_of(list, isWithin))
    return success();
  return op->emitOpError() << "'" << name << "' is " << list << "; it has "
                           << count << " numbers from " << least << " to "
                           << mostElements;
}

template <typename Window> static LogicalResult checkWindow(Window op) {
  if (failed(checkList(op, "strides", op.getStrides(), 2, 1)) ||
      failed(checkList(op, "dilations", op.getDilations(), 2, 1)))
    return failure();
  return checkList(op, "padding", op.getPadding(), 4, 0);
}

/// Positions along rows (0) or columns (1); kDynamic where `size` is.
template <typename Window>
static int64_t positionsOf(Window op, unsigned dim, int64_t size) {
  if (ShapedType::isDynamic(size))
    return size;
  return (size + op.shiftOf(dim)) / op.strideOf(dim) + 1;
}

static LogicalResult checkElements(Conv2dOp op) {
  Type x = op.getX().getType().getElementType(), sum = op.getSumType();
  if (!x.isSignlessInteger(8) &&
      failed(checkFloat(op, "x", op.getX(), "f32, f16, bf16 or i8")))
    return failure();
  auto check = [&](StringRef name, Type type, bool isSum,
                   bool isElement) -> LogicalResult {
    if ((isElement && type == x) || (isSum && type == sum))
      return success();
    auto diagnostic = op.emitOpError()
                      << "'" << name << "' has element type " << type
                      << "; beside 'x' of " << x << " it is ";
    if (isElement)
      diagnostic << x;
    if (isSum && (!isElement || x != sum))
      diagnostic << (isElement ? " or " : "") << sum;
    return diagnostic << ": convert it with arith";
  };
  bool isFloat = isa<FloatType>(x);
  if (failed(check("w", op.getW().getType().getElementType(), false, true)) ||
      failed(check("result", op.getType().getElementType(), true, isFloat)))
    return failure();
  return op.getBias() ? check("bias", op.getBias().getType().getElementType(),
                              true, isFloat)
                      : success();
}

template <typename Window> static LogicalResult checkLayout(Window op) {
  if (op.getLayout() == "nhwc" || op.getLayout() == "nchw")
    return success();
  return op.emitOpError() << "'layout' is \"" << op.getLayout()
                          << "\"; it is \"nhwc\" or \"nchw\"";
}

LogicalResult Conv2dOp::verify() {
  if (failed(checkLayout(*this)))
    return failure();
  bool first = hasChannelsFirst();
  if (failed(checkPlain(*this)) ||
      failed(checkRank(*this, "x", getX(), 4,
                       first ? "[B, C, H, W]" : "[B, H, W, C]")) ||
      failed(
          checkRank(*this, "w", getW(), 4,
                    first ? "[KO, C/groups, R, S]" : "[KO, R, S, C/groups]")) ||
      failed(checkRank(*this, "result", getResult(), 4,
                       first ? "[B, KO, Ho, Wo]" : "[B, Ho, Wo, KO]")) ||
      failed(checkElements(*this)) || failed(checkWindow(*this)))
    return failure();
  RankedTensorType x = getX().getType(), w = getW().getType();
  unsigned channel = channelDim();
  int64_t channels = x.getDimSize(channel), outputs = w.getDimSize(0);
  if (!w.hasStaticShape() || ShapedType::isDynamic(channels) ||
      getType().isDynamicDim(channel))
    return emitOpError() << "'w' is " << w << " and 'x' " << x
                         << "; only B, H and W may be dynamic: give channels "
                            "and taps in the types";
  if (llvm::any_of(w.getShape(),
                   [](int64_t n) { return n < 1 || n > mostElements; }))
    return emitOpError() << "'w' is " << w << "; its extents are from 1 to "
                         << mostElements;
  if (getGroups() < 1 || outputs % getGroups() ||
      channels != w.getDimSize(channel) * int64_t(getGroups()))
    return emitOpError() << "'groups' is " << getGroups() << " with 'w' of "
                         << w << " and 'x' of " << x
                         << "; groups divide KO, and C is groups times the "
                            "channels of 'w'";
  if (getBias() &&
      (failed(checkRank(*this, "bias", getBias(), 1, "[KO]")) ||
       failed(checkDim(*this, "bias", getBias(), 0, outputs, "KO of 'w'"))))
    return failure();
  if (failed(checkDim(*this, "result", getResult(), 0, x.getDimSize(0),
                      "B of 'x'")) ||
      failed(checkDim(*this, "result", getResult(), channel, outputs,
                      "KO of 'w'")))
    return failure();
  for (unsigned dim : {0u, dimOf(0), dimOf(1)})
    if (x.isDynamicDim(dim) != getType().isDynamicDim(dim))
      return emitOpError() << "'x' is " << x << " and the result " << getType()
                           << "; dimension " << dim
                           << " is dynamic in both or in neither";
  for (unsigned dim : {0u, 1u}) {
    int64_t size = x.getDimSize(dimOf(dim));
    if (!ShapedType::isDynamic(size) && (size < 1 || size + shiftOf(dim) < 0))
      return emitOpError() << "'x' has " << size << (dim ? " columns" : " rows")
                           << ", and the taps of 'w' reach over "
                           << dilationOf(dim) * (kernelExtent(dim) - 1) + 1
                           << "; give as many, by 'padding' too";
    if (failed(checkDim(*this, "result", getResult(), dimOf(dim),
                        positionsOf(*this, dim, size),
                        "the positions of the taps on 'x'")))
      return failure();
  }
  return success();
}

LogicalResult PatchesOp::verify() {
  if (failed(checkLayout(*this)))
    return failure();
  RankedTensorType x = getX().getType(), type = getType();
  bool first = hasChannelsFirst();
  if (failed(checkRank(*this, "x", getX(), 4,
                       first ? "[B, C, H, W]" : "[B, H, W, C]")) ||
      failed(checkList(*this, "kernel", getKernel(), 2, 1)) ||
      failed(checkWindow(*this)))
    return failure();
  int64_t rank = type.getRank(), channels = x.getDimSize(channelDim());
  bool fits = first ? rank == 4 : rank == 2 || rank == 3;
  int64_t groups = fits && hasGroups() ? type.getDimSize(first ? 1 : 0) : 1;
  if (type.getElementType() != x.getElementType() || !fits ||
      ShapedType::isDynamic(channels) ||
      type.getDimSize(depthDim()) !=
          channels * numTaps() / std::max<int64_t>(1, groups))
    return emitOpError("has another result than greta.conv2d needs: write that "
                       "op");
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Positions along a dimension of `size`.
template <typename Window>
static Value emitPositions(ImplicitLocOpBuilder &b, Window op, unsigned dim,
                           Value size) {
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  Value sum = arith::AddIOp::create(b, size, index(op.shiftOf(dim)));
  sum = arith::FloorDivSIOp::create(b, sum, index(op.strideOf(dim)));
  return arith::AddIOp::create(b, sum, index(1));
}

LogicalResult Conv2dOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  SmallVector<OpFoldResult> &sizes = shapes.emplace_back();
  for (int64_t dim = 0; dim < 4; ++dim) {
    if (!getType().isDynamicDim(dim))
      sizes.push_back(b.getIndexAttr(getType().getDimSize(dim)));
    else if (dim == 0)
      sizes.push_back(tensor::getMixedSize(b, getLoc(), getX(), 0));
    else
      sizes.push_back(
          emitPositions(b, *this, dim - dimOf(0),
                        tensor::DimOp::create(b, getX(), dim).getResult()));
  }
  return success();
}

LogicalResult
PatchesOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  SmallVector<OpFoldResult> &sizes = shapes.emplace_back();
  for (int64_t size : getType().getShape())
    sizes.push_back(b.getIndexAttr(size));
  auto sizeOfX = [&](int64_t dim) -> Value {
    return tensor::DimOp::create(b, getX(), dim);
  };
  // With channels first, the images are a dimension of their own.
  if (hasChannelsFirst() && getType().isDynamicDim(0))
    sizes[0] = sizeOfX(0);
  if (!getType().isDynamicDim(positionDim()))
    return success();
  Value rows = emitPositions(b, *this, 0, sizeOfX(dimOf(0)));
  if (!hasChannelsFirst())
    rows = arith::MulIOp::create(b, sizeOfX(0), rows);
  Value columns = emitPositions(b, *this, 1, sizeOfX(dimOf(1)));
  sizes[positionDim()] = arith::MulIOp::create(b, rows, columns).getResult();
  return success();
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

namespace {
/// Reads images at places that taps see, inside of a linalg.generic.
template <typename Window> struct ImageReader {
  ImplicitLocOpBuilder &b;
  Window op;
  Value sizes[2];          // rows and columns of the images
  bool mayBeEmpty = false; // so that there may be no element to read

  ImageReader(ImplicitLocOpBuilder &b, Window op, unsigned firstDim)
      : b(b), op(op) {
    for (unsigned dim : {0u, 1u}) {
      sizes[dim] = tensor::DimOp::create(b, op.getX(), firstDim + dim);
      mayBeEmpty |= op.getX().getType().isDynamicDim(firstDim + dim);
    }
  }
  static Value index(ImplicitLocOpBuilder &b, int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  /// The element at the row and the column that tap `taps` of the position
  /// `positions` sees. `placeOf` gives the indices of one in the image.
  Value read(ImplicitLocOpBuilder &b, ArrayRef<Value> positions,
             ArrayRef<Value> taps,
             llvm::function_ref<SmallVector<Value>(ValueRange)> placeOf) {
    SmallVector<Value> place;
    Value isInside, zero = index(b, 0);
    for (unsigned dim : {0u, 1u}) {
      auto scaled = [&](Value v, int64_t by) -> Value {
        return arith::MulIOp::create(b, v, index(b, by));
      };
      Value at =
          arith::AddIOp::create(b, scaled(positions[dim], op.strideOf(dim)),
                                scaled(taps[dim], op.dilationOf(dim)));
      at = arith::SubIOp::create(b, at, index(b, op.paddingBefore(dim)));
      Value last = arith::SubIOp::create(b, sizes[dim], index(b, 1));
      Value moved =
          arith::MaxSIOp::create(b, arith::MinSIOp::create(b, at, last), zero);
      Value isHere =
          arith::CmpIOp::create(b, arith::CmpIPredicate::ult, at, sizes[dim]);
      isInside = isInside ? arith::AndIOp::create(b, isInside, isHere) : isHere;
      place.push_back(moved);
    }
    SmallVector<Value> indices = placeOf(place);
    auto element = [&](OpBuilder &then, Location loc) -> Value {
      return tensor::ExtractOp::create(then, loc, op.getX(), indices);
    };
    Type type = op.getX().getType().getElementType();
    Value none = arith::ConstantOp::create(b, b.getZeroAttr(type));
    if (!mayBeEmpty)
      return arith::SelectOp::create(b, isInside, element(b, b.getLoc()), none);
    return scf::IfOp::create(
               b, isInside,
               [&](OpBuilder &then, Location loc) {
                 scf::YieldOp::create(then, loc, element(then, loc));
               },
               [&](OpBuilder &otherwise, Location loc) {
                 scf::YieldOp::create(otherwise, loc, none);
               })
        .getResult(0);
  }
};
} // namespace

static Value widened(ImplicitLocOpBuilder &b, Value v, Type type) {
  if (v.getType() == type)
    return v;
  return isa<FloatType>(type) ? Value(arith::ExtFOp::create(b, type, v))
                              : Value(arith::ExtSIOp::create(b, type, v));
}

SmallVector<Value> Conv2dOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(b, shapes)))
    return {};
  Type sum = getSumType();
  bool isFloat = isa<FloatType>(sum), first = hasChannelsFirst();
  ImageReader<Conv2dOp> reader(b, *this, dimOf(0));
  // Loops: the image, the position, the output channel; the tap, the channel.
  enum { Image, Row, Column, Output, TapRow, TapColumn, Channel, Loops };
  auto mapOf = [&](std::initializer_list<unsigned> loops) {
    SmallVector<AffineExpr> results;
    for (unsigned loop : loops)
      results.push_back(b.getAffineDimExpr(loop));
    return AffineMap::get(Loops, 0, results, b.getContext());
  };
  AffineMap ofW = first ? mapOf({Output, Channel, TapRow, TapColumn})
                        : mapOf({Output, TapRow, TapColumn, Channel});
  AffineMap ofResult = first ? mapOf({Image, Output, Row, Column})
                             : mapOf({Image, Row, Column, Output});
  SmallVector<utils::IteratorType> iterators(Loops,
                                             utils::IteratorType::parallel);
  for (unsigned loop : {TapRow, TapColumn, Channel})
    iterators[loop] = utils::IteratorType::reduction;
  Value empty = tensor::EmptyOp::create(b, shapes[0], sum);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(sum));
  Value sums = linalg::FillOp::create(b, zero, empty).getResult(0);
  auto body = [&](OpBuilder &nested, Location loc, ValueRange v) {
    ImplicitLocOpBuilder inner(loc, nested);
    auto at = [&](unsigned loop) -> Value {
      return linalg::IndexOp::create(inner, loop);
    };
    auto index = [&](int64_t value) {
      return ImageReader<Conv2dOp>::index(inner, value);
    };
    Value group = arith::DivUIOp::create(
        inner, at(Output), index(getW().getType().getDimSize(0) / getGroups()));
    Value channel = arith::AddIOp::create(
        inner, at(Channel),
        arith::MulIOp::create(
            inner, group, index(getW().getType().getDimSize(channelDim()))));
    Value x =
        reader.read(inner, {at(Row), at(Column)}, {at(TapRow), at(TapColumn)},
                    [&](ValueRange place) -> SmallVector<Value> {
                      if (first)
                        return {at(Image), channel, place[0], place[1]};
                      return {at(Image), place[0], place[1], channel};
                    });
    x = widened(inner, x, sum);
    Value w = widened(inner, v[0], sum), next;
    auto flags = arith::FastMathFlags::reassoc | arith::FastMathFlags::contract;
    if (isFloat)
      next = arith::AddFOp::create(
          inner, v[1], arith::MulFOp::create(inner, x, w, flags), flags);
    else
      next = arith::AddIOp::create(inner, v[1],
                                   arith::MulIOp::create(inner, x, w));
    linalg::YieldOp::create(inner, next);
  };
  sums = linalg::GenericOp::create(b, sums.getType(), getW(), sums,
                                   {ofW, ofResult}, iterators, body)
             .getResult(0);
  Type element = getType().getElementType();
  if (!getBias() && element == sum)
    return {sums};
  // The bias, and the rounding.
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<Value> inputs{sums};
  SmallVector<AffineMap> maps{identity};
  if (getBias()) {
    inputs.push_back(getBias());
    maps.push_back(
        AffineMap::get(4, 0, b.getAffineDimExpr(channelDim()), b.getContext()));
  }
  maps.push_back(identity);
  Value rounded = tensor::EmptyOp::create(b, shapes[0], element);
  auto finish = [&](OpBuilder &nested, Location loc, ValueRange v) {
    ImplicitLocOpBuilder inner(loc, nested);
    Value result = v[0];
    if (getBias()) {
      Value bias = widened(inner, v[1], sum);
      result = isFloat ? Value(arith::AddFOp::create(inner, result, bias))
                       : Value(arith::AddIOp::create(inner, result, bias));
    }
    if (element != sum)
      result = arith::TruncFOp::create(inner, element, result);
    linalg::YieldOp::create(inner, result);
  };
  return {linalg::GenericOp::create(b, rounded.getType(), inputs, rounded, maps,
                                    SmallVector<utils::IteratorType>(
                                        4, utils::IteratorType::parallel),
                                    finish)
              .getResult(0)};
}

SmallVector<Value> PatchesOp::decompose(OpBuilder &builder) {
  ImplicitLocOpBuilder b(getLoc(), builder);
  ReifiedRankedShapedTypeDims shapes;
  if (failed(reifyResultShapes(b, shapes)))
    return {};
  bool first = hasChannelsFirst();
  ImageReader<PatchesOp> reader(b, *this, dimOf(0));
  SmallVector<Value, 2> positions;
  for (unsigned dim : {0u, 1u})
    positions.push_back(emitPositions(b, *this, dim, reader.sizes[dim]));
  unsigned rank = getType().getRank();
  Value empty =
      tensor::EmptyOp::create(b, shapes[0], getType().getElementType());
  auto body = [&](OpBuilder &nested, Location loc, ValueRange) {
    ImplicitLocOpBuilder inner(loc, nested);
    auto at = [&](unsigned dim) -> Value {
      return linalg::IndexOp::create(inner, dim);
    };
    auto index = [&](int64_t value) {
      return ImageReader<PatchesOp>::index(inner, value);
    };
    auto split = [&](Value v, Value by) -> std::pair<Value, Value> {
      return {arith::DivUIOp::create(inner, v, by),
              arith::RemUIOp::create(inner, v, by)};
    };
    auto [line, column] = split(at(positionDim()), positions[1]);
    Value image = first ? at(0) : Value(), row = line;
    if (!first)
      std::tie(image, row) = split(line, positions[0]);
    auto [high, low] =
        split(at(depthDim()), index(first ? numTaps() : getChannels()));
    Value tap = first ? low : high, channel = first ? high : low;
    auto [tapRow, tapColumn] = split(tap, index(kernelExtent(1)));
    if (hasGroups())
      channel =
          arith::AddIOp::create(inner, channel,
                                arith::MulIOp::create(inner, at(first ? 1 : 0),
                                                      index(getChannels())));
    auto placeOf = [&](ValueRange place) -> SmallVector<Value> {
      if (first)
        return {image, channel, place[0], place[1]};
      return {image, place[0], place[1], channel};
    };
    linalg::YieldOp::create(
        inner, reader.read(inner, {row, column}, {tapRow, tapColumn}, placeOf));
  };
  return {
      linalg::GenericOp::create(
          b, empty.getType(), ValueRange{}, empty,
          ArrayRef<AffineMap>{b.getMultiDimIdentityMap(rank)},
          SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
          body)
          .getResult(0)};
}
