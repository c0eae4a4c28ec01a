//===- LaneAddress.h - sums of offsets and strides of a block ---*- C++ -*-===//
//
// The arithmetic that the addresses of strided blocks (DistributeStrided.cpp)
// and of blocks of pointers (DistributePointers.cpp) are made of.
//
// Either address is a pointer, what is added to it for all elements, and an
// index times a stride along each dimension; a block of pointers may have more,
// of each element. A uniform part moves the pointer by 64 bits. The lane's
// part is the same for all registers, and has 32 bits if it is plainly small
// and not negative, so that targets add it to a uniform address; else the
// lane's pointer is moved by 64 bits.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_LANE_LANEADDRESS_H
#define GRETA_LIB_LANE_LANEADDRESS_H

#include "Distribute.h"
#include "greta/Names.h"

namespace greta::tile {

/// Sums and products of offsets, with 64 or (modulo 2^32) 32 bits.
class Offsets : Arithmetic {
public:
  Offsets(ImplicitLocOpBuilder &b, unsigned bits) : Arithmetic{b}, bits(bits) {}

  Value constant(int64_t value) {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(b.getIntegerType(bits),
                            llvm::APInt(64, value, true).trunc(bits)));
  }
  Value fit(Value value) {
    unsigned width = value.getType().getIntOrFloatBitWidth();
    Type type = b.getIntegerType(bits);
    if (width < bits)
      return arith::ExtSIOp::create(b, type, value);
    return width == bits ? value
                         : arith::TruncIOp::create(b, type, value).getResult();
  }
  using Arithmetic::mul, Arithmetic::sum;
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, constant(y)); }
  /// The product of a lane's integers and a constant.
  Value product(ArrayRef<Value> factors, int64_t y) {
    Value result;
    for (Value factor : factors) {
      Value fitting = fit(factor);
      result = result ? mul(result, fitting) : fitting;
    }
    return result ? mul(result, y) : constant(y);
  }
  Value move(Value pointer, Value offset) {
    return offset ? PtrAddOp::create(b, pointer, offset).getResult() : pointer;
  }

private:
  unsigned bits;
};

/// An index along a dimension is shifted and then multiplied by `fixed`. If
/// `run` is above 1, runs of so many indices begin `ofRun` elements apart.
struct Stride {
  int64_t fixed = 0;
  Value dynamic;
  int64_t shift = 0;
  int64_t run = 1, ofRun = 0;

  int64_t times(int64_t index) const {
    return run > 1 ? index % run * fixed + index / run * ofRun : index * fixed;
  }
};

/// The part of a block's addresses that follows from indices.
struct Strides : Arithmetic {
  const DistributedLayout &layout;
  SmallVector<Stride> dims = SmallVector<Stride>(layout.layout.rank());

  /// `total` and an i32 index times its stride. Block, thread and register move
  /// different bits of an index, so that each part may be shifted alone.
  Value addIndex(Offsets &sums, Value total, Value index, unsigned dim) {
    const Stride &stride = dims[dim];
    index = shifted(index, dim);
    if (stride.run > 1) {
      Value within = both(index, i32(stride.run - 1));
      Value run = shr(index, i32(llvm::Log2_64(stride.run)));
      total = sums.sum(total, sums.mul(sums.fit(within), stride.fixed));
      return sums.sum(total, sums.mul(sums.fit(run), stride.ofRun));
    }
    index = sums.fit(index);
    if (stride.fixed)
      total = sums.sum(total, sums.mul(index, stride.fixed));
    if (stride.dynamic)
      total = sums.sum(total, sums.mul(index, sums.fit(stride.dynamic)));
    return total;
  }
  Value shifted(Value index, unsigned dim) {
    return dims[dim].shift ? shr(index, i32(dims[dim].shift)) : index;
  }
  /// `total` and what a register adds along some dimensions.
  Value addRegister(Offsets sums, Value total, unsigned reg,
                    const llvm::SmallBitVector &along) const {
    int64_t fixed = 0;
    for (unsigned dim : along.set_bits()) {
      int64_t index = layout.registerIndex[reg][dim] >> dims[dim].shift;
      fixed += dims[dim].times(index);
      if (index && dims[dim].dynamic)
        total = sums.sum(total, sums.mul(sums.fit(dims[dim].dynamic), index));
    }
    return fixed ? sums.sum(total, sums.constant(fixed)) : total;
  }
};

} // namespace greta::tile

#endif // GRETA_LIB_LANE_LANEADDRESS_H
