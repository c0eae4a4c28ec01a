//===- Elementwise.h - types and constants of each element ------*- C++ -*-===//
//
// In: a scalar type, or a shaped one. Out: the same with other elements, and
// constants of it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_ELEMENTWISE_H
#define GRETA_LIB_LANE_ELEMENTWISE_H

#include "greta/Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace greta {

/// `element`, in the shape of `type` if that has one.
inline Type typeLike(Type type, Type element) {
  auto shaped = mlir::dyn_cast<mlir::ShapedType>(type);
  return shaped ? Type(shaped.clone(element)) : element;
}

/// A constant of `type` whose elements are all `number`.
inline Value constantOf(ImplicitLocOpBuilder &b, Type type,
                        mlir::TypedAttr number) {
  if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(type))
    number =
        mlir::DenseElementsAttr::get(shaped, mlir::ArrayRef<Attribute>(number));
  return arith::ConstantOp::create(b, number);
}

/// The same of integers.
inline Value constantOf(ImplicitLocOpBuilder &b, Type type, int64_t number) {
  return constantOf(b, type,
                    b.getIntegerAttr(mlir::getElementTypeOrSelf(type), number));
}

} // namespace greta

#endif
