//===- Combine.cpp - reduce and scan: syntax and verifiers ----------------===//
//
// A combiner of one op is written as that op, `reduce {arith.addf} %x axis 1`,
// any other as a region behind the types. A scan's results have its operands'
// types, which are written once.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace greta::tile;

/// The type of a block reduced along an axis: a block without the dimension, or
/// the element of one that has no other.
static Type reducedType(RankedTensorType block, uint32_t axis) {
  SmallVector<int64_t> shape(block.getShape());
  shape.erase(shape.begin() + axis);
  if (shape.empty())
    return block.getElementType();
  return RankedTensorType::get(shape, block.getElementType());
}

void ReduceOp::build(OpBuilder &builder, OperationState &state,
                     ValueRange values, uint32_t axis,
                     llvm::function_ref<SmallVector<Value>(
                         OpBuilder &, Location, ValueRange, ValueRange)>
                         combine) {
  state.addOperands(values);
  state.addAttribute(getAxisAttrName(state.name),
                     builder.getI32IntegerAttr(axis));
  SmallVector<Type> elements;
  for (Value value : values) {
    auto type = cast<RankedTensorType>(value.getType());
    elements.push_back(type.getElementType());
    state.addTypes(reducedType(type, axis));
  }
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(state.addRegion());
  for (unsigned i = 0; i < 2; ++i)
    block->addArguments(elements,
                        SmallVector<Location>(elements.size(), state.location));
  ValueRange arguments = block->getArguments();
  YieldOp::create(builder, state.location,
                  combine(builder, state.location,
                          arguments.take_front(elements.size()),
                          arguments.drop_front(elements.size())));
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// The one op of a combiner that gives its arguments to it in order and yields
/// its result; null: there is more.
static Operation *onlyOp(Region &combiner) {
  Block &block = combiner.front();
  if (block.getOperations().size() != 2)
    return nullptr;
  Operation &op = block.front();
  bool isWhole =
      llvm::equal(op.getOperands(), block.getArguments()) &&
      llvm::equal(op.getResults(), block.getTerminator()->getOperands()) &&
      op.getNumRegions() == 0;
  return isWhole ? &op : nullptr;
}

template <typename OpT>
static ParseResult parseCombining(OpAsmParser &parser, OperationState &state) {
  constexpr bool isScan = std::is_same_v<OpT, ScanOp>;
  std::optional<OperationName> name;
  NamedAttrList attributes;
  if (succeeded(parser.parseOptionalLBrace())) {
    FailureOr<OperationName> parsed = parser.parseCustomOperationName();
    if (failed(parsed) || parser.parseOptionalAttrDict(attributes) ||
        parser.parseRBrace())
      return failure();
    name = *parsed;
  }
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  IntegerAttr axis;
  Region *region = state.addRegion();
  OpBuilder builder(parser.getContext());
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseKeyword("axis") ||
      parser.parseAttribute(axis, builder.getI32Type(),
                            OpT::getAxisAttrName(state.name), state.attributes))
    return failure();
  if constexpr (isScan)
    if (succeeded(parser.parseOptionalKeyword("reverse")))
      state.addAttribute(OpT::getReverseAttrName(state.name),
                         builder.getUnitAttr());
  if (parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonTypeList(types) ||
      parser.resolveOperands(operands, types, loc, state.operands))
    return failure();
  if (isScan)
    state.addTypes(types);
  else if (parser.parseArrowTypeList(state.types))
    return failure();
  if (!name)
    return parser.parseRegion(*region);
  Block *block = builder.createBlock(region);
  for (unsigned i = 0; i < 2; ++i)
    for (Type type : types)
      block->addArgument(getElementTypeOrSelf(type), state.location);
  SmallVector<Type> elements;
  for (Type type : types)
    elements.push_back(getElementTypeOrSelf(type));
  OperationState op(state.location, *name, block->getArguments(), elements,
                    attributes);
  YieldOp::create(builder, state.location, builder.create(op)->getResults());
  return success();
}

template <typename OpT>
static void printCombining(OpT combining, OpAsmPrinter &printer) {
  constexpr bool isScan = std::is_same_v<OpT, ScanOp>;
  Operation *op = onlyOp(combining.getCombiner());
  if (op) {
    // Flags that ask for nothing are not worth a word.
    SmallVector<StringRef> elided;
    for (NamedAttribute attribute : op->getAttrs()) {
      auto flags = dyn_cast<arith::FastMathFlagsAttr>(attribute.getValue());
      auto overflow =
          dyn_cast<arith::IntegerOverflowFlagsAttr>(attribute.getValue());
      if ((flags && flags.getValue() == arith::FastMathFlags::none) ||
          (overflow &&
           overflow.getValue() == arith::IntegerOverflowFlags::none))
        elided.push_back(attribute.getName());
    }
    printer << " {" << op->getName();
    printer.printOptionalAttrDict(op->getAttrs(), elided);
    printer << "}";
  }
  printer << " " << combining.getValues() << " axis " << combining.getAxis();
  SmallVector<StringRef> written{combining.getAxisAttrName()};
  if constexpr (isScan) {
    if (combining.getReverse())
      printer << " reverse";
    written.push_back(combining.getReverseAttrName());
  }
  printer.printOptionalAttrDict(combining->getAttrs(), written);
  printer << " : " << combining.getValues().getTypes();
  if (!isScan)
    printer.printArrowTypeList(combining->getResultTypes());
  if (!op) {
    printer << " ";
    printer.printRegion(combining.getCombiner());
  }
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseCombining<ReduceOp>(parser, state);
}
ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseCombining<ScanOp>(parser, state);
}
void ReduceOp::print(OpAsmPrinter &printer) { printCombining(*this, printer); }
void ScanOp::print(OpAsmPrinter &printer) { printCombining(*this, printer); }

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// Blocks of one shape with the axis, and as many results.
template <typename OpT> static LogicalResult verifyBlocks(OpT op) {
  if (op.getValues().empty())
    return op.emitOpError("has nothing to combine");
  auto first = cast<RankedTensorType>(op.getValues().front().getType());
  if (op.getAxis() >= first.getRank())
    return op.emitOpError("names axis ") << op.getAxis() << " of " << first;
  if (op->getNumResults() != op.getValues().size())
    return op.emitOpError("makes ") << op->getNumResults() << " results of "
                                    << op.getValues().size() << " blocks";
  for (Type type : op.getValues().getTypes())
    if (cast<RankedTensorType>(type).getShape() != first.getShape())
      return op.emitOpError("combines ")
             << first << " and " << type << "; the shapes are equal";
  return success();
}

LogicalResult ReduceOp::verify() {
  if (failed(verifyBlocks(*this)))
    return failure();
  for (auto [value, result] : llvm::zip(getValues(), getResultTypes())) {
    auto type = cast<RankedTensorType>(value.getType());
    Type wanted = reducedType(type, getAxis()), found = result;
    if (auto block = dyn_cast<RankedTensorType>(found))
      found = RankedTensorType::get(block.getShape(), block.getElementType());
    if (found != wanted)
      return emitOpError("makes ") << result << " of " << type << "; axis "
                                   << getAxis() << " is dropped: " << wanted;
  }
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyBlocks(*this)))
    return failure();
  for (auto [type, result] :
       llvm::zip(getValues().getTypes(), getResultTypes()))
    if (result != type)
      return emitOpError("makes ")
             << result << " of " << type << "; the types are equal";
  return success();
}

template <typename OpT> static LogicalResult verifyCombiner(OpT op) {
  SmallVector<Type> elements, both;
  for (Type type : op.getValues().getTypes())
    elements.push_back(getElementTypeOrSelf(type));
  both = elements;
  llvm::append_range(both, elements);
  Block &block = op.getCombiner().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || !llvm::equal(block.getArgumentTypes(), both) ||
      !llvm::equal(yield.getOperandTypes(), elements))
    return op.emitOpError("has a combiner that does not make one element of "
                          "each block of two");
  for (Operation &inner : block.without_terminator())
    if (!isMemoryEffectFree(&inner) || inner.getNumRegions())
      return inner.emitOpError("stands in a combiner, which only computes");
  return success();
}

LogicalResult ReduceOp::verifyRegions() { return verifyCombiner(*this); }
LogicalResult ScanOp::verifyRegions() { return verifyCombiner(*this); }
