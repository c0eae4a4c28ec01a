//===- GretaTileOps.cpp - ops of the waist; kernels and launches ----------===//

#include "GretaTile/GretaTile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace greta::tile;

#define GET_OP_CLASSES
/// `array`, or `array as type` where a value is not an element.
static ParseResult parseSharedAccess(OpAsmParser &parser, Type &array,
                                     Type &value) {
  SharedType shared;
  if (parser.parseCustomTypeWithFallback(shared))
    return failure();
  array = shared;
  if (succeeded(parser.parseOptionalKeyword("as")))
    return parser.parseType(value);
  value = shared.getElementType();
  return success();
}
static void printSharedAccess(OpAsmPrinter &printer, Operation *,
                              SharedType array, Type value) {
  printer.printStrippedAttrOrType(array);
  if (value != array.getElementType())
    printer << " as " << value;
}

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
  for (Type type : getFunctionType().getInputs())
    if (!isa<PtrType>(type) && !isScalarArgument(type))
      return emitOpError("has an argument of type ")
             << type
             << "; kernels take pointers, i1, i8, i16, i32, i64, f16, bf16, "
                "f32 and f64";
  for (unsigned i = 0, e = getNumArguments(); i < e; ++i)
    if (Attribute promised = getArgAttr(i, divisibilityName)) {
      auto multiple = dyn_cast<IntegerAttr>(promised);
      if (!multiple || multiple.getInt() <= 0)
        return emitOpError("has an argument with ")
               << divisibilityName << " = " << promised
               << "; it is a positive integer";
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

LogicalResult greta::tile::checkNoLaunch(Operation *module) {
  WalkResult walk = module->walk([](LaunchOp launch) {
    launch.emitOpError("refers to a kernel that is to be replaced");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

bool greta::tile::isScalarArgument(Type type) {
  return type.isInteger(1) || type.isInteger(8) || type.isInteger(16) ||
         type.isInteger(32) || type.isInteger(64) || type.isF16() ||
         type.isBF16() || type.isF32() || type.isF64();
}

Type greta::tile::getPassedType(Type scalar) {
  if (scalar.isF32())
    return scalar;
  unsigned bits = scalar.getIntOrFloatBitWidth();
  return IntegerType::get(scalar.getContext(), std::max(bits, 32u));
}

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
  if (getResident() &&
      (axes != 1 || !isa<AffineConstantExpr>(getGrid().getResult(0))))
    return emitOpError("is resident with the grid ")
           << getGridAttr()
           << "; that of a resident launch is a constant along one axis";
  if (getTied() && getTied()->size() != getNumResults())
    return emitOpError("names ")
           << getTied()->size() << " tied operands for " << getNumResults()
           << " results; -1 stands for none";
  SmallVector<Value> untied;
  for (auto [i, result] : llvm::enumerate(getResults())) {
    int64_t operand = getTied() ? (*getTied())[i] : -1;
    if (operand < 0) {
      untied.push_back(result);
      continue;
    }
    if (operand >= static_cast<int64_t>(getNumOperands()) ||
        getOperand(operand).getType() != result.getType())
      return emitOpError("ties result ")
             << i << " to operand " << operand << ", which is no "
             << result.getType();
    if (llvm::is_contained(getTied()->take_front(i), operand))
      return emitOpError("ties two results to operand ") << operand;
  }
  for (int64_t number : getZeroed().value_or(ArrayRef<int64_t>()))
    if (number < 0 || number >= static_cast<int64_t>(getNumResults()) ||
        getTiedOperand(number) || !getResult(number).use_empty())
      return emitOpError("names ")
             << number
             << " 'zeroed', which is scratch memory: a result that is "
                "not tied and that nothing uses";
  if (auto byRows = getByRows()) {
    int64_t tensors = getNumOperands() + getNumResults();
    if (getTied())
      return emitOpError("is by rows and has tied results, which a part of it "
                         "would write whole");
    for (int64_t number : *byRows)
      if (number < 0 || number >= tensors)
        return emitOpError("names argument ")
               << number << " 'by_rows'; it has " << tensors << " tensors";
    for (OpResult result : getResults())
      if (!result.use_empty() &&
          !llvm::is_contained(*byRows,
                              getNumOperands() + result.getResultNumber()))
        return emitOpError("is by rows, and result ")
               << result.getResultNumber() << " is not, which something uses";
  }
  if (getResultShapes().size() != untied.size())
    return emitOpError("has ") << getResultShapes().size() << " shapes for "
                               << untied.size() << " results that are not tied";
  for (auto [shape, result] :
       llvm::zip(getResultShapes().getAsValueRange<AffineMapAttr>(), untied))
    if (auto type = cast<RankedTensorType>(result.getType());
        static_cast<int64_t>(shape.getNumResults()) != type.getRank() ||
        shape.getNumDims() || !keepsExtents(type, shape))
      return emitOpError("has the shape ")
             << AffineMapAttr::get(shape) << " for a result of type "
             << result.getType();
  return success();
}

AffineMap LaunchOp::getShapeOf(unsigned result) {
  unsigned place = 0;
  for (unsigned i = 0; i < result; ++i)
    place += !getTiedOperand(i);
  return cast<AffineMapAttr>(getResultShapes()[place]).getValue();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FuncOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError("names the kernel ")
           << getKernelAttr() << ", which does not exist";
  SmallVector<Type> types(getOperandTypes());
  for (auto [i, result] : llvm::enumerate(getResults()))
    if (!getTiedOperand(i))
      types.push_back(result.getType());
  size_t expected = types.size() + getScalars().getNumResults();
  if (kernel.getNumArguments() != expected)
    return emitOpError("passes ") << expected << " arguments, the kernel has "
                                  << kernel.getNumArguments();
  auto fits = [](Type given, Type wanted) {
    auto pointer = dyn_cast<PtrType>(wanted);
    auto tensor = dyn_cast<RankedTensorType>(given);
    if (!tensor || !pointer)
      return given == wanted ||
             (isScalarArgument(given) && getPassedType(given) == wanted);
    // greta-expand-float8 leaves floats of 8 bits as their bits.
    Type element = tensor.getElementType();
    bool isBits = pointer.getElementType().isInteger(8) &&
                  isa<FloatType>(element) &&
                  element.getIntOrFloatBitWidth() == 8;
    return isBits || pointer.getElementType() == element;
  };
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (i >= types.size() && !type.isInteger(32) && !type.isInteger(64))
      return emitOpError("computes argument ")
             << i << ", an integer, of type " << type;
    if (i < types.size() && !fits(types[i], type))
      return emitOpError("passes ")
             << types[i] << " as argument " << i << " of type " << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// PrintOp
//===----------------------------------------------------------------------===//

LogicalResult PrintOp::verify() {
  for (int64_t number : getUnsignedValues().value_or(ArrayRef<int64_t>())) {
    if (number < 0 || number >= static_cast<int64_t>(getValues().size()))
      return emitOpError("says that value ")
             << number << " is unsigned; it has " << getValues().size();
    Type type = getElementTypeOrSelf(getValues()[number]);
    if (!isa<IntegerType>(type))
      return emitOpError("says that value ")
             << number << ", of " << type << ", is unsigned; only integers are";
  }
  return success();
}
