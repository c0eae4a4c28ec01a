//===- Elementwise.h - constants of each element ----------------*- C++ -*-===//
//
// In: a scalar type, or a shaped one. Out: constants of it.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_TILE_ELEMENTWISE_H
#define GRETA_TILE_ELEMENTWISE_H

#include "greta/Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

namespace greta {

/// A constant of `type` whose elements are all `number`.
inline Value constantOf(ImplicitLocOpBuilder &b, Type type,
                        mlir::TypedAttr number) {
  if (auto shaped = mlir::dyn_cast<mlir::ShapedType>(type))
    number =
        mlir::DenseElementsAttr::get(shaped, mlir::ArrayRef<Attribute>(number));
  return arith::ConstantOp::create(b, number);
}

/// The same of integers, and of integers or floats.
inline Value constantOf(ImplicitLocOpBuilder &b, Type type, int64_t number) {
  return constantOf(b, type,
                    b.getIntegerAttr(mlir::getElementTypeOrSelf(type), number));
}
inline Value numberOf(ImplicitLocOpBuilder &b, Type type, double number) {
  Type element = mlir::getElementTypeOrSelf(type);
  return mlir::isa<mlir::FloatType>(element)
             ? constantOf(b, type, b.getFloatAttr(element, number))
             : constantOf(b, type, int64_t(number));
}

} // namespace greta

#endif
