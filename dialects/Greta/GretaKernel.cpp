//===- GretaKernel.cpp - verifiers of what greta-fuse makes ---------------===//
//
// greta.kernel and greta.broadcast appear between greta-fuse and greta-to-tile
// only; the messages are for those who write them by hand in tests.
//
//===----------------------------------------------------------------------===//

#include "Greta/Greta.h"
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

LogicalResult ReduceRowsOp::verify() {
  RankedTensorType from = getValue().getType(), to = getType();
  if (!llvm::is_contained({"add", "mul", "max", "min"}, getKind()))
    return emitOpError("has kind \"")
           << getKind() << "\"; it is \"add\", \"mul\", \"max\" or \"min\"";
  Type element = from.getElementType();
  Type wide =
      element.isInteger() ? element : Type(Float32Type::get(getContext()));
  if (from.getRank() == 0 ||
      to != RankedTensorType::get(from.getShape().drop_back(), wide))
    return emitOpError("makes ") << to << " of " << from
                                 << "; it takes [.., D] to [..], floats to f32";
  return success();
}
