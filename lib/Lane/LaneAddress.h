//===- LaneAddress.h - sums of offsets and strides of a block ---*- C++ -*-===//
//
// The arithmetic that the addresses of strided blocks (DistributeStrided.cpp)
// and of blocks of pointers (DistributePointers.cpp) are made of.
//
// Either address is a pointer, what is added to it for all elements, and an
// index times a stride along each dimension; a block of pointers may have more,
// of each element. What is uniform moves the pointer by 64 bits. The lane's
// part is the same for all registers, and has 32 bits if it is plainly small
// and not negative, so that targets add it to a uniform address; else the
// lane's pointer is moved by 64 bits.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_LANEADDRESS_H
#define GRETA_LIB_LANE_LANEADDRESS_H

#include "Distribute.h"

namespace greta::tile {

/// Sums and products of offsets, with 64 or (modulo 2^32) 32 bits.
class Offsets {
public:
  Offsets(mlir::ImplicitLocOpBuilder &b, unsigned bits) : b(b), bits(bits) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantOp::create(
        b, b.getIntegerAttr(b.getIntegerType(bits),
                            llvm::APInt(64, value, true).trunc(bits)));
  }
  mlir::Value fit(mlir::Value value) {
    unsigned width = value.getType().getIntOrFloatBitWidth();
    mlir::Type type = b.getIntegerType(bits);
    if (width < bits)
      return mlir::arith::ExtSIOp::create(b, type, value);
    return width == bits
               ? value
               : mlir::arith::TruncIOp::create(b, type, value).getResult();
  }
  /// Either may be null, which is nothing to add.
  mlir::Value add(mlir::Value x, mlir::Value y) { return accumulate(b, x, y); }
  mlir::Value multiply(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulIOp::create(b, x, y);
  }
  mlir::Value multiply(mlir::Value x, int64_t y) {
    return y == 1 ? x : multiply(x, constant(y));
  }
  /// The product of a lane's integers and a constant.
  mlir::Value product(llvm::ArrayRef<mlir::Value> factors, int64_t y) {
    mlir::Value result;
    for (mlir::Value factor : factors) {
      mlir::Value fitting = fit(factor);
      result = result ? multiply(result, fitting) : fitting;
    }
    return result ? multiply(result, y) : constant(y);
  }
  mlir::Value move(mlir::Value pointer, mlir::Value offset) {
    return offset ? PtrAddOp::create(b, pointer, offset).getResult() : pointer;
  }

private:
  mlir::ImplicitLocOpBuilder &b;
  unsigned bits;
};

/// The factor of an index along a dimension, which is shifted first.
struct Stride {
  int64_t fixed = 0;
  mlir::Value dynamic;
  int64_t shift = 0;
};

/// The part of a block's addresses that follows from indices.
struct Strides {
  const DistributedLayout &layout;
  llvm::SmallVector<Stride> dims;

  /// `sum` and an i32 index times its stride. Block, thread and register move
  /// different bits of an index, so that each part may be shifted alone.
  mlir::Value addIndex(mlir::ImplicitLocOpBuilder &b, Offsets &sums,
                       mlir::Value sum, mlir::Value index, unsigned dim) const {
    const Stride &stride = dims[dim];
    index = sums.fit(shifted(b, index, dim));
    if (stride.fixed)
      sum = sums.add(sum, sums.multiply(index, stride.fixed));
    if (stride.dynamic)
      sum = sums.add(sum, sums.multiply(index, sums.fit(stride.dynamic)));
    return sum;
  }
  mlir::Value shifted(mlir::ImplicitLocOpBuilder &b, mlir::Value index,
                      unsigned dim) const {
    if (!dims[dim].shift)
      return index;
    return mlir::arith::ShRUIOp::create(
        b, index, mlir::arith::ConstantIntOp::create(b, dims[dim].shift, 32));
  }
  /// `sum` and what a register adds along some dimensions.
  mlir::Value addRegister(Offsets sums, mlir::Value sum, unsigned reg,
                          const llvm::SmallBitVector &along) const {
    int64_t fixed = 0;
    for (unsigned dim : along.set_bits()) {
      int64_t index = layout.registerIndex[reg][dim] >> dims[dim].shift;
      fixed += index * dims[dim].fixed;
      if (index && dims[dim].dynamic)
        sum = sums.add(sum, sums.multiply(sums.fit(dims[dim].dynamic), index));
    }
    return fixed ? sums.add(sum, sums.constant(fixed)) : sum;
  }
};

} // namespace greta::tile

#endif // GRETA_LIB_LANE_LANEADDRESS_H
