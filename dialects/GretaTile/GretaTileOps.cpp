//===- GretaTileOps.cpp - ops of the waist; kernels and launches ----------===//

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
                   FunctionType type, int32_t waves, int32_t waveSize) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getWavesAttrName(state.name),
                     builder.getI32IntegerAttr(waves));
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
  std::optional<uint32_t> waveSize = getWaveSize();
  if (waveSize && (!llvm::isPowerOf2_32(*waveSize) || *waveSize > 64))
    return emitOpError("has wave_size ")
           << *waveSize << "; it is a power of two up to 64";
  constexpr uint32_t most = 1024;
  if (!llvm::isPowerOf2_32(getWaves()) || getWaves() > most)
    return emitOpError("has ")
           << getWaves() << " waves; they are a power of two up to " << most;
  return success();
}

LogicalResult FuncOp::checkTarget() {
  if (getWaveSize())
    return success();
  return emitOpError("has no wave_size; run greta-tile-set-target first");
}

//===----------------------------------------------------------------------===//
// LaunchOp
//===----------------------------------------------------------------------===//

bool greta::tile::keepsExtents(RankedTensorType type, AffineMap shape) {
  return llvm::all_of(llvm::zip(type.getShape(), shape.getResults()),
                      [](auto pair) {
                        auto [extent, expr] = pair;
                        auto constant = dyn_cast<AffineConstantExpr>(expr);
                        return ShapedType::isDynamic(extent) ||
                               (constant && constant.getValue() == extent);
                      });
}

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
    if (auto type = cast<RankedTensorType>(result.getType());
        static_cast<int64_t>(shape.getNumResults()) != type.getRank() ||
        shape.getNumDims() || !keepsExtents(type, shape))
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
