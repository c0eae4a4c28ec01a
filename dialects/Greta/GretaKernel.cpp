//===- GretaKernel.cpp - verifiers of what greta-fuse makes ---------------===//
//
// greta.kernel and greta.broadcast appear between greta-fuse and greta-to-tile
// only; the messages are for those who write them by hand in tests.
//
//===----------------------------------------------------------------------===//

#include "Greta/Greta.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace greta;

AffineMap KernelOp::getView(unsigned input) {
  if (!getViewsAttr())
    return AffineMap();
  auto view = dyn_cast<AffineMapAttr>(getViewsAttr()[input]);
  return view ? view.getValue() : AffineMap();
}

LogicalResult KernelOp::verify() {
  if (ArrayAttr views = getViewsAttr()) {
    if (views.size() != getInputs().size())
      return emitOpError("has ") << views.size() << " views for "
                                 << getInputs().size() << " operands";
    for (Attribute view : views)
      if (!isa<UnitAttr, AffineMapAttr>(view))
        return emitOpError("has the view ")
               << view << "; a view is a map over symbols, or unit";
  }
  size_t tensors = getInputs().size() + getOutputs().size();
  if (getShapes().size() != tensors)
    return emitOpError("has ") << getShapes().size() << " shapes for "
                               << tensors << " operands and results";
  SmallVector<Type> types(getInputs().getTypes());
  llvm::append_range(types, getOutputs().getTypes());
  for (auto [i, type] : llvm::enumerate(types)) {
    // The regions' argument has the type that a view shows.
    if (i < getInputs().size() && getView(i) && !getSpaces().empty())
      type = getSpaces().front().getArgument(i).getType();
    auto tensor = cast<RankedTensorType>(type);
    AffineMap map = cast<AffineMapAttr>(getShapes()[i]).getValue();
    if (map.getNumDims() || map.getNumResults() != tensor.getRank())
      return emitOpError("has the shape ")
             << getShapes()[i] << " for " << tensor
             << "; a shape is a map over symbols with one result per dimension";
    for (auto [extent, size] : llvm::zip(map.getResults(), tensor.getShape())) {
      auto constant = dyn_cast<AffineConstantExpr>(extent);
      if (constant && !ShapedType::isDynamic(size) &&
          constant.getValue() != size)
        return emitOpError("has the shape ")
               << getShapes()[i] << " for " << tensor;
    }
  }
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (getSpaces().empty())
    return emitOpError("has no space");
  if (ScheduleAttr schedule = getScheduleAttr())
    if (size_t count = schedule.getValue().spaces.size();
        count != getSpaces().size())
      return emitOpError("has a schedule of ")
             << count << " spaces; it has " << getSpaces().size();
  SmallVector<Type> yielded;
  for (Region &space : getSpaces()) {
    if (space.getNumArguments() != getInputs().size())
      return emitOpError("has a space whose arguments are not the operands");
    for (auto [i, argument] : llvm::enumerate(space.getArguments())) {
      Type type = argument.getType();
      AffineMap view = getView(i);
      if (!view && type != getInputs()[i].getType())
        return emitOpError("has a space whose arguments are not the operands");
      if (!view)
        continue;
      if (type != getSpaces().front().getArgument(i).getType() ||
          getElementTypeOrSelf(type) != getElementTypeOrSelf(getInputs()[i]))
        return emitOpError("has spaces that do not see the same of operand ")
               << i;
      if (view.getNumDims() || static_cast<int64_t>(view.getNumResults()) !=
                                   cast<RankedTensorType>(type).getRank() + 1)
        return emitOpError("has the view ")
               << AffineMapAttr::get(view) << " for " << type
               << "; a view is a map over symbols whose results are a stride "
                  "per dimension and an offset";
    }
    auto yield = dyn_cast<YieldOp>(space.front().back());
    if (!yield)
      return emitOpError("has a space that does not end in greta.yield");
    llvm::append_range(yielded, yield.getOperandTypes());
  }
  if (yielded != SmallVector<Type>(getResultTypes()))
    return emitOpError("yields types that are not the results'");
  return success();
}

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = getValue().getType(), to = getType();
  if (from.getElementType() != to.getElementType())
    return emitOpError("changes the element type");
  if (static_cast<int64_t>(getDims().size()) != from.getRank())
    return emitOpError("names ")
           << getDims().size() << " dimensions for " << from;
  int64_t last = -1;
  for (auto [i, dim] : llvm::enumerate(getDims())) {
    if (dim <= last || dim >= to.getRank())
      return emitOpError("has dims ")
             << getDims() << "; they increase and are below the rank "
             << to.getRank();
    last = dim;
    if (from.getDimSize(i) != to.getDimSize(dim))
      return emitOpError("repeats dimension ")
             << i << " of " << from << "; only new dimensions repeat";
  }
  return success();
}

LogicalResult HeadsOp::verify() {
  RankedTensorType from = getValue().getType(), to = getType();
  if (from.getElementType() != to.getElementType() || from.getRank() != 2 ||
      to.getRank() != 3 || from.getDimSize(0) != to.getDimSize(0) ||
      to.isDynamicDim(1) || to.isDynamicDim(2) ||
      from.getDimSize(1) != to.getDimSize(1) * to.getDimSize(2))
    return emitOpError("makes ")
           << to << " of " << from << "; it takes [T, H * D] to [T, H, D]";
  return success();
}

//===----------------------------------------------------------------------===//
// Reductions of rows
//===----------------------------------------------------------------------===//

bool greta::isCombined(Type type) {
  return type.isF32() || type.isSignlessInteger(32) ||
         type.isSignlessInteger(1);
}

bool greta::isPartOfCombination(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         isPure(op) && op->getNumRegions() == 0 && op->getNumResults() == 1 &&
         isCombined(op->getResult(0).getType());
}

LogicalResult ReduceRowsOp::verify() {
  if (getValues().empty() || getValues().size() != getNumResults())
    return emitOpError("makes ") << getNumResults() << " results of "
                                 << getValues().size() << " tensors";
  auto shapeOf = [](Type type) {
    return cast<RankedTensorType>(type).getShape();
  };
  for (auto [value, result] :
       llvm::zip(getValues().getTypes(), getResultTypes())) {
    auto from = cast<RankedTensorType>(value);
    Type element = from.getElementType();
    if (from.getRank() == 0 || !isCombined(element) ||
        from.getShape() != shapeOf(getValues()[0].getType()) ||
        result != RankedTensorType::get(from.getShape().drop_back(), element))
      return emitOpError("makes ") << result << " of " << from
                                   << "; it takes [.., D] of f32, i32 or i1 to "
                                      "[..], all of one shape";
  }
  return success();
}

LogicalResult ReduceRowsOp::verifyRegions() {
  SmallVector<Type> elements, both;
  for (Type type : getResultTypes())
    elements.push_back(getElementTypeOrSelf(type));
  both = elements;
  llvm::append_range(both, elements);
  Block &block = getCombiner().front();
  if (!llvm::equal(block.getArgumentTypes(), both) ||
      !llvm::equal(block.getTerminator()->getOperandTypes(), elements))
    return emitOpError("has a combination that does not make one element of "
                       "each tensor of two");
  for (Operation &op : block.without_terminator())
    if (!isPartOfCombination(&op))
      return op.emitOpError("stands in a combination of elements, which is "
                            "arith and math on f32, i32 and i1 that is "
                            "defined for any operands");
  return success();
}

SmallVector<TypedAttr> ReduceRowsOp::neutralElements() {
  Block &block = getCombiner().front();
  SmallVector<TypedAttr> elements;
  for (auto [i, made] : llvm::enumerate(block.getTerminator()->getOperands())) {
    Operation *op = made.getDefiningOp();
    Value x = block.getArgument(i), y = block.getArgument(getNumResults() + i);
    bool isOfBoth = op && op->getNumOperands() == 2 &&
                    llvm::is_contained(op->getOperands(), x) &&
                    llvm::is_contained(op->getOperands(), y);
    auto neutral = isOfBoth ? arith::getNeutralElement(op) : std::nullopt;
    if (!neutral)
      return {};
    elements.push_back(*neutral);
  }
  return elements;
}

SmallVector<Value> ReduceRowsOp::combine(OpBuilder &builder, ValueRange x,
                                         ValueRange y) {
  Block &block = getCombiner().front();
  auto shaped = dyn_cast<RankedTensorType>(x[0].getType());
  IRMapping values;
  values.map(block.getArguments().take_front(x.size()), x);
  values.map(block.getArguments().drop_front(x.size()), y);
  for (Operation &op : block.without_terminator()) {
    Operation *clone = builder.clone(op, values);
    if (!shaped)
      continue;
    RankedTensorType type = shaped.clone(op.getResult(0).getType());
    clone->getResult(0).setType(type);
    if (auto constant = dyn_cast<arith::ConstantOp>(clone))
      constant.setValueAttr(
          DenseElementsAttr::get(type, Attribute(constant.getValue())));
  }
  SmallVector<Value> made;
  for (Value value : block.getTerminator()->getOperands())
    made.push_back(values.lookup(value));
  return made;
}
