//===- Reduce.cpp - greta_tile.reduce: syntax and verifier ----------------===//
//
// A combiner of one op is written as that op, `reduce {arith.addf} %x axis 1`,
// any other as a region behind the types.
//
//===----------------------------------------------------------------------===//

#include "GretaTile/GretaTile.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace greta::tile;

/// What is left of a block along an axis: a block without the dimension, or the
/// element of one that has no other.
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
static Operation *onlyOp(ReduceOp reduce) {
  Block &block = reduce.getCombiner().front();
  if (block.getOperations().size() != 2)
    return nullptr;
  Operation &op = block.front();
  bool isWhole =
      llvm::equal(op.getOperands(), block.getArguments()) &&
      llvm::equal(op.getResults(), block.getTerminator()->getOperands()) &&
      op.getNumRegions() == 0;
  return isWhole ? &op : nullptr;
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &state) {
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
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseKeyword("axis") ||
      parser.parseAttribute(axis, parser.getBuilder().getI32Type(),
                            getAxisAttrName(state.name), state.attributes) ||
      parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonTypeList(types) ||
      parser.resolveOperands(operands, types, loc, state.operands) ||
      parser.parseArrowTypeList(state.types))
    return failure();
  if (!name)
    return parser.parseRegion(*region);
  OpBuilder builder(parser.getContext());
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

void ReduceOp::print(OpAsmPrinter &printer) {
  Operation *op = onlyOp(*this);
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
  printer << " " << getValues() << " axis " << getAxis();
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                getAxisAttrName().getValue());
  printer << " : " << getValues().getTypes();
  printer.printArrowTypeList(getResultTypes());
  if (!op) {
    printer << " ";
    printer.printRegion(getCombiner());
  }
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

LogicalResult ReduceOp::verify() {
  if (getValues().empty())
    return emitOpError("has nothing to combine");
  auto first = cast<RankedTensorType>(getValues().front().getType());
  if (getAxis() >= first.getRank())
    return emitOpError("names axis ") << getAxis() << " of " << first;
  if (getNumResults() != getValues().size())
    return emitOpError("makes ") << getNumResults() << " results of "
                                 << getValues().size() << " blocks";
  for (auto [value, result] : llvm::zip(getValues(), getResultTypes())) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getShape() != first.getShape())
      return emitOpError("combines ")
             << first << " and " << type << "; the shapes are equal";
    Type wanted = reducedType(type, getAxis()), found = result;
    if (auto block = dyn_cast<RankedTensorType>(found))
      found = RankedTensorType::get(block.getShape(), block.getElementType());
    if (found != wanted)
      return emitOpError("makes ") << result << " of " << type << "; axis "
                                   << getAxis() << " is dropped: " << wanted;
  }
  return success();
}

LogicalResult ReduceOp::verifyRegions() {
  SmallVector<Type> elements, both;
  for (Type type : getValues().getTypes())
    elements.push_back(getElementTypeOrSelf(type));
  both = elements;
  llvm::append_range(both, elements);
  Block &block = getCombiner().front();
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || !llvm::equal(block.getArgumentTypes(), both) ||
      !llvm::equal(yield.getOperandTypes(), elements))
    return emitOpError("has a combiner that does not make one element of each "
                       "block of two");
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op) || op.getNumRegions())
      return op.emitOpError("stands in a combiner, which only computes");
  return success();
}
