//===- GretaTileOps.cpp - verifiers and custom syntax of the waist --------===//

#include "GretaTile/GretaTile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace greta::tile;

#define GET_OP_CLASSES
#include "GretaTile/GretaTileOps.cpp.inc"

LayoutAttr greta::tile::getLayoutOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding())
                : LayoutAttr();
}

RankedTensorType greta::tile::withLayout(RankedTensorType type,
                                         LayoutAttr layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

//===----------------------------------------------------------------------===//
// FuncOp
//===----------------------------------------------------------------------===//

void FuncOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                   FunctionType type, int32_t blockSize, int32_t waveSize) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getBlockSizeAttrName(state.name),
                     builder.getI32IntegerAttr(blockSize));
  state.addAttribute(getWaveSizeAttrName(state.name),
                     builder.getI32IntegerAttr(waveSize));
  Block &entry = state.addRegion()->emplaceBlock();
  for (Type input : type.getInputs())
    entry.addArgument(input, state.location);
}

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &state) {
  auto buildType = [](Builder &builder, ArrayRef<Type> args,
                      ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag, std::string &) {
    return builder.getFunctionType(args, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, state, /*allowVariadic=*/false,
      getFunctionTypeAttrName(state.name), buildType,
      getArgAttrsAttrName(state.name), getResAttrsAttrName(state.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

LogicalResult FuncOp::verify() {
  if (!getFunctionType().getResults().empty())
    return emitOpError("returns values; a kernel stores its results");
  bool scalars = false;
  for (Type type : getFunctionType().getInputs()) {
    if (isa<PtrType>(type) && scalars)
      return emitOpError("has a pointer after a scalar; pointers come first");
    if (!isa<PtrType>(type) && !type.isInteger(32))
      return emitOpError("has an argument of type ")
             << type << "; kernels take pointers and i32";
    scalars |= !isa<PtrType>(type);
  }
  if (!llvm::isPowerOf2_32(getWaveSize()) || getWaveSize() > 64)
    return emitOpError("has wave_size ")
           << getWaveSize() << "; it is a power of two up to 64";
  if (getBlockSize() % getWaveSize())
    return emitOpError("has block_size ")
           << getBlockSize() << ", which is no multiple of wave_size "
           << getWaveSize();
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

LogicalResult LaunchOp::verify() {
  if (getGrid().getNumDims() || getScalars().getNumDims())
    return emitOpError("has maps over dims; they are over symbols");
  unsigned axes = getGrid().getNumResults();
  if (axes < 1 || axes > 3)
    return emitOpError("has a grid of ") << axes << " axes; it is 1 to 3";
  if (getResultShapes().size() != getResults().size())
    return emitOpError("has ") << getResultShapes().size() << " shapes for "
                               << getResults().size() << " results";
  for (auto [shape, result] : llvm::zip(
           getResultShapes().getAsValueRange<AffineMapAttr>(), getResults()))
    if (static_cast<int64_t>(shape.getNumResults()) !=
        cast<RankedTensorType>(result.getType()).getRank())
      return emitOpError("has the shape ")
             << AffineMapAttr::get(shape) << " for a result of type "
             << result.getType();
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("names the kernel ")
           << getKernelAttr() << ", which does not exist";
  size_t tensors = getOperands().size() + getResults().size();
  size_t expected = tensors + getScalars().getNumResults();
  if (kernel.getNumArguments() != expected)
    return emitOpError("passes ") << expected << " arguments, the kernel has "
                                  << kernel.getNumArguments();
  SmallVector<Type> types(getOperandTypes());
  llvm::append_range(types, getResultTypes());
  for (auto [i, type] : llvm::enumerate(types)) {
    auto pointer = dyn_cast<PtrType>(kernel.getArgumentTypes()[i]);
    Type element = cast<RankedTensorType>(type).getElementType();
    // greta-expand-float8 leaves floats of 8 bits as their bits.
    bool isBits = pointer && pointer.getElementType().isInteger(8) &&
                  isa<FloatType>(element) &&
                  element.getIntOrFloatBitWidth() == 8;
    if (!pointer || (pointer.getElementType() != element && !isBits))
      return emitOpError("passes ")
             << type << " as argument " << i << " of type "
             << kernel.getArgumentTypes()[i];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Block ops
//===----------------------------------------------------------------------===//

/// What load and store share: one offset and stride per dimension, dynamic
/// strides and bounds as many as announced.
template <typename OpT>
static LogicalResult verifyAccess(OpT op, RankedTensorType block) {
  int64_t rank = block.getRank();
  if (op.getBase().getType().getElementType() != block.getElementType())
    return op.emitOpError("moves ")
           << block.getElementType() << " through " << op.getBase().getType();
  if (static_cast<int64_t>(op.getOffsets().size()) != rank ||
      static_cast<int64_t>(op.getStrides().size()) != rank)
    return op.emitOpError("has ")
           << op.getOffsets().size() << " offsets and "
           << op.getStrides().size() << " strides for a block of rank " << rank;
  size_t dynamic = llvm::count(op.getStrides(), ShapedType::kDynamic);
  if (dynamic != op.getDynamicStrides().size())
    return op.emitOpError("has ")
           << op.getDynamicStrides().size()
           << " dynamic strides, 'strides' names " << dynamic;
  if (op.getBounded().size() != op.getBounds().size())
    return op.emitOpError("has ")
           << op.getBounds().size() << " bounds, 'bounded' names "
           << op.getBounded().size();
  int64_t last = -1;
  for (int64_t dim : op.getBounded()) {
    if (dim <= last || dim >= rank)
      return op.emitOpError("has bounded dimension ")
             << dim << "; they are increasing and below the rank " << rank;
    last = dim;
  }
  return success();
}

LogicalResult LoadOp::verify() {
  auto block = cast<RankedTensorType>(getResult().getType());
  if (getOther() && getOther().getType() != block.getElementType())
    return emitOpError("has 'other' of type ")
           << getOther().getType() << " for elements "
           << block.getElementType();
  if (getClamped())
    for (int64_t dim : getClampedAttr().asArrayRef())
      if (!llvm::is_contained(getBounded(), dim))
        return emitOpError("clamps dimension ")
               << dim << ", which is not among the bounded ones";
  if (auto divisors = getDivisors())
    if (static_cast<int64_t>(divisors->size()) != block.getRank() ||
        !llvm::all_of(*divisors, [](int64_t d) {
          return d > 0 && llvm::isPowerOf2_64(d);
        }))
      return emitOpError("has divisors ")
             << *divisors << "; they are a power of two for each dimension of "
             << block;
  return verifyAccess(*this, block);
}

LogicalResult StoreOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getValue().getType()));
}

LogicalResult IotaOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (getDim() >= static_cast<uint32_t>(type.getRank()))
    return emitOpError("counts along dimension ")
           << getDim() << " of rank " << type.getRank();
  return success();
}

LogicalResult BroadcastOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType() ||
      from.getRank() != to.getRank())
    return emitOpError("changes rank or element type");
  for (auto [f, t] : llvm::zip(from.getShape(), to.getShape()))
    if (f != t && f != 1)
      return emitOpError("repeats an extent of ")
             << f << " to " << t << "; only 1 repeats";
  return success();
}

LogicalResult FlipOp::verify() {
  auto type = cast<RankedTensorType>(getValue().getType());
  if (getDim() >= type.getRank() || type.getDimSize(getDim()) != 2)
    return emitOpError("flips dimension ")
           << getDim() << " of " << type << "; it takes one of extent 2";
  return success();
}

LogicalResult ReshapeOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getElementType() != to.getElementType() ||
      from.getNumElements() != to.getNumElements())
    return emitOpError("makes ")
           << to << " of " << from
           << "; the shapes have as many elements, of one type";
  return success();
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType());
  auto b = cast<RankedTensorType>(getB().getType());
  auto c = cast<RankedTensorType>(getAcc().getType());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2 ||
      a.getDimSize(0) != c.getDimSize(0) ||
      a.getDimSize(1) != b.getDimSize(0) || b.getDimSize(1) != c.getDimSize(1))
    return emitOpError("multiplies ") << a << " by " << b << " into " << c
                                      << "; it takes [M,K] by [K,N] into [M,N]";
  return success();
}

LogicalResult ContractOp::verify() {
  auto acc = cast<RankedTensorType>(getAcc().getType());
  int64_t last = -1;
  for (int64_t dim : getDims()) {
    if (dim <= last || dim >= acc.getRank())
      return emitOpError("has dims ")
             << getDims() << "; they increase and are below the rank "
             << acc.getRank();
    last = dim;
  }
  for (Type type : {getA().getType(), getB().getType()}) {
    auto operand = cast<RankedTensorType>(type);
    bool fits = operand.getRank() == acc.getRank() &&
                isa<FloatType>(operand.getElementType()) ==
                    isa<FloatType>(acc.getElementType());
    for (int64_t dim = 0; fits && dim < acc.getRank(); ++dim)
      fits = llvm::is_contained(getDims(), dim)
                 ? operand.getDimSize(dim) % acc.getDimSize(dim) == 0
                 : operand.getDimSize(dim) == 1 ||
                       operand.getDimSize(dim) == acc.getDimSize(dim);
    if (!fits)
      return emitOpError("contracts ")
             << operand << " into " << acc
             << "; along 'dims' the result has extent 1 or one that divides "
                "theirs, elsewhere operands have its extent or 1, and both are "
                "floats or both integers";
  }
  return success();
}

LogicalResult ContractPackedOp::verify() {
  auto acc = cast<RankedTensorType>(getAcc().getType());
  int64_t rank = acc.getRank();
  auto a = cast<RankedTensorType>(getA().getType());
  auto words = cast<RankedTensorType>(getWords().getType());
  // Extents along words and weights, and what else it is made of.
  auto fits = [&](Value value, int64_t numWords, int64_t perWord,
                  auto isElement) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != rank || rank < 3 ||
        type.getDimSize(rank - 2) != numWords ||
        type.getDimSize(rank - 1) != perWord ||
        !isElement(type.getElementType()))
      return false;
    for (int64_t dim = 0; dim < rank - 2; ++dim)
      if (type.getDimSize(dim) != 1 &&
          type.getDimSize(dim) != acc.getDimSize(dim))
        return false;
    return true;
  };
  auto isF16 = [](Type type) { return type.isF16(); };
  auto isF32 = [](Type type) { return type.isF32(); };
  auto isI32 = [](Type type) { return type.isInteger(32); };
  int64_t numWords =
      words.getRank() > 1 ? words.getDimSize(words.getRank() - 2) : 0;
  if (!fits(getA(), numWords, 8, isF16) ||
      !fits(getWords(), numWords, 1, isI32) || !fits(getZeros(), 1, 1, isI32) ||
      !fits(getScales(), 1, 1, isF16) || !fits(getAcc(), 1, 1, isF32))
    return emitOpError("contracts ")
           << a << " with " << words
           << "; it takes [.., W, 8] of f16, [.., W, 1] of i32, zeros of i32 "
              "and scales of f16 [.., 1, 1] into [.., 1, 1] of f32";
  return success();
}

unsigned DequantOp::getDim() {
  auto words = cast<RankedTensorType>(getWords().getType());
  auto type = cast<RankedTensorType>(getResult().getType());
  unsigned dim = 0;
  while (dim + 1 < type.getRank() &&
         words.getDimSize(dim) == type.getDimSize(dim))
    ++dim;
  return dim;
}

LogicalResult DequantOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  auto words = cast<RankedTensorType>(getWords().getType());
  SmallVector<int64_t> packed(words.getShape());
  if (packed.size() == static_cast<size_t>(type.getRank()) && !packed.empty())
    packed[getDim()] *= 8;
  auto divides = [&](Value value) {
    auto shared = cast<RankedTensorType>(value.getType());
    return shared.getRank() == type.getRank() &&
           llvm::all_of(llvm::zip(shared.getShape(), type.getShape()),
                        [](auto pair) {
                          auto [part, whole] = pair;
                          return whole % part == 0;
                        });
  };
  auto isOf = [](Value value, auto isElement) {
    return isElement(cast<RankedTensorType>(value.getType()).getElementType());
  };
  auto isF16 = [](Type type) { return type.isF16(); };
  auto isI32 = [](Type type) { return type.isInteger(32); };
  if (ArrayRef<int64_t>(packed) != type.getShape() || !divides(getScales()) ||
      !divides(getZeros()) || !isOf(getWords(), isI32) ||
      !isOf(getScales(), isF16) || !isOf(getZeros(), isI32) ||
      !type.getElementType().isF16())
    return emitOpError("makes ")
           << type << " of " << words << ", " << getScales().getType()
           << " and " << getZeros().getType()
           << "; it takes words of i32 with an eighth of one extent, scales of "
              "f16 and zeros of i32 whose extents divide the result's of f16";
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType());
  auto to = cast<RankedTensorType>(getResult().getType());
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError(
        "changes the shape or element type; only the layout may");
  return success();
}

LogicalResult LocalStoreOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  RankedTensorType block = getLocal().getType().getBlock();
  if (value.getShape() != block.getShape() ||
      value.getElementType() != block.getElementType())
    return emitOpError("stores ") << value << " to a local of " << block;
  if (!getDirect())
    return success();
  auto load = getValue().getDefiningOp<LoadOp>();
  if (!load || !load->hasOneUse() || load->getBlock() != (*this)->getBlock() ||
      load.getOther() || load.getDivisors())
    return emitOpError("is 'direct' but its value is not of a load in its "
                       "block, without 'other' and 'divisors', that nothing "
                       "else uses");
  return success();
}

LogicalResult LocalLoadOp::verify() {
  auto part = cast<RankedTensorType>(getResult().getType());
  RankedTensorType block = getLocal().getType().getBlock();
  bool fits = part.getElementType() == block.getElementType() &&
              part.getRank() == block.getRank() &&
              static_cast<int64_t>(getOffsets().size()) == block.getRank();
  for (int64_t dim = 0; fits && dim < block.getRank(); ++dim)
    fits = block.getDimSize(dim) % part.getDimSize(dim) == 0;
  if (!fits)
    return emitOpError("loads ")
           << part << " at " << getOffsets().size() << " offsets from a local "
           << "of " << block << "; parts divide the block";
  return success();
}

//===----------------------------------------------------------------------===//
// Lane ops
//===----------------------------------------------------------------------===//

static LogicalResult verifyLaneAccess(Operation *op, PtrType pointer, Type type,
                                      int64_t align) {
  Type element = getElementTypeOrSelf(type);
  if (element != pointer.getElementType())
    return op->emitOpError("moves ") << type << " through " << pointer;
  if (align <= 0 || !llvm::isPowerOf2_64(align))
    return op->emitOpError("has alignment ")
           << align << "; it is a power of two";
  return success();
}

void BarrierOp::build(OpBuilder &, OperationState &) {}

void ScheduleOp::build(OpBuilder &, OperationState &) {}

LogicalResult PtrLoadSharedOp::verify() {
  Type element = getElementTypeOrSelf(getArray().getType().getElementType());
  int64_t bytes = getWidth() * element.getIntOrFloatBitWidth() / 8;
  if (element != getBase().getType().getElementType())
    return emitOpError("loads ") << getBase().getType().getElementType()
                                 << " into an array of " << element;
  if (bytes != 4 && bytes != 16)
    return emitOpError("loads ") << bytes << " bytes a lane; it takes 4 or 16";
  return success();
}

LogicalResult PtrLoadOp::verify() {
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
  int64_t width = vector ? vector.getNumElements() : 1;
  int64_t length = transposed ? fragment.getRows() : fragment.getColumns();
  if (element != fragment.getElementType() || length % width)
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

/// A lane's share: the fragment's elements over the lanes of a wave.
static LogicalResult verifyElements(Operation *op, FragmentType fragment,
                                    Type elements) {
  auto vector = cast<VectorType>(elements);
  int64_t size = fragment.getRows() * fragment.getColumns();
  auto kernel = op->getParentOfType<FuncOp>();
  if (vector.getElementType() != fragment.getElementType() ||
      (kernel && vector.getNumElements() * kernel.getWaveSize() != size))
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

LogicalResult DotPackedOp::verify() {
  int64_t words = getWords().getType().getNumElements();
  if (getA().getType().getNumElements() != 8 * words)
    return emitOpError("multiplies ")
           << words << " words by " << getA().getType()
           << "; a word has eight weights";
  return success();
}
