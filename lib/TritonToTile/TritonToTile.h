//===- TritonToTile.h - parts of the pass triton-to-tile --------*- C++ -*-===//
#ifndef GRETA_LIB_TRITONTOTILE_H
#define GRETA_LIB_TRITONTOTILE_H

#include "GretaTile/GretaTile.h"
#include "Triton/Triton.h"
#include "greta/Names.h"
#include "greta/Tile/Blocks.h"
#include "greta/Tile/Formula.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

namespace greta::triton {

/// Makes every function one block of structured control flow, and inlines the
/// calls of public functions.
LogicalResult structureFunctions(mlir::ModuleOp module);

/// Adds the function that launches a kernel, with the kernel's arguments. The
/// pass describes `grid`.
LogicalResult addLaunch(tile::FuncOp kernel, StringRef name, StringRef grid);

/// Makes loops, ifs and selections of a kernel's body pass on the parts of
/// descriptors. Descriptors are made again from these at their uses.
LogicalResult handOnDescriptors(Region &body);

/// Names the padding of a kernel's argument that is a descriptor, as in
/// tt.make_tensor_descriptor.
inline constexpr llvm::StringLiteral paddingName = "padding";

/// Returns the parts of a kernel's argument that is a descriptor: the argument
/// and those behind it.
SmallVector<Value> descriptorParts(mlir::UnrealizedConversionCastOp desc,
                                   unsigned rank);

/// Returns the source's name of an argument.
std::string sourceName(BlockArgument argument);

/// Expands a function of a device library to ops of arith and math; null: the
/// table has no function of that name.
Value expandLibraryFunction(StringRef symbol, ValueRange operands,
                            ImplicitLocOpBuilder &b);

/// A float, or a block of them, in the making.
struct Number : Formula<Number, double, int64_t> {
  using Formula::Formula;
};

/// J, Y and I of order 0, or 1 where they are odd.
Number besselFirst(Number x, bool isOdd);
Number besselSecond(Number x, bool isOdd);
Number besselModified(Number x, bool isOdd);

/// Replaces the ops of Triton IR in a kernel.
class OpConverter : Blocks {
public:
  OpConverter(Region &body, ImplicitLocOpBuilder &b) : Blocks{b}, body(body) {}
  LogicalResult run();

private:
  LogicalResult convert(Operation *op);
  /// Replaces an op's results by `values`, and erases the op.
  LogicalResult replace(Operation *op, ValueRange values);

  // ConvertBlocks.cpp
  template <typename ToT, typename OpT> LogicalResult convertAxis(OpT op);
  LogicalResult convert(GetProgramIdOp op);
  LogicalResult convert(GetNumProgramsOp op);
  LogicalResult convert(MakeRangeOp op);
  LogicalResult convert(UnsplatOp op);
  LogicalResult convert(GatherOp op);
  LogicalResult convert(HistogramOp op);
  /// Repeats `line` along all dimensions of `shape` but `dim`.
  Value spread(Value line, unsigned dim, ArrayRef<int64_t> shape);

  // ConvertRegions.cpp
  LogicalResult convert(ReduceOp op);
  LogicalResult convert(ScanOp op);
  LogicalResult convert(MapElementwiseOp op);
  FailureOr<SmallVector<mlir::StringAttr>>
  flagAsserts(Operation *op, llvm::SmallVectorImpl<Value> &values);
  template <typename ToT, typename OpT, typename... ArgsT>
  LogicalResult convertCombining(OpT op, ArgsT... args);
  void unpack(Value block, unsigned pack, llvm::MutableArrayRef<Value> parts);
  Value repack(ArrayRef<Value> parts);
  LogicalResult mapOp(Operation &scalar, ArrayRef<int64_t> shape,
                      IRMapping &blocks);
  LogicalResult mapBlock(Block &scalars, ArrayRef<int64_t> shape,
                         IRMapping &blocks);

  // ConvertMemory.cpp
  LogicalResult convert(AddPtrOp op);
  LogicalResult convert(PtrToIntOp op);
  LogicalResult convert(IntToPtrOp op);
  LogicalResult convert(BitcastOp op);
  LogicalResult convert(LoadOp op);
  LogicalResult convert(StoreOp op);
  LogicalResult convert(AtomicRmwOp op);
  LogicalResult convert(AtomicCasOp op);
  LogicalResult convert(AtomicLoadOp op);
  LogicalResult convert(AtomicPollOp op);
  LogicalResult convert(AtomicStoreOp op);
  struct Order {
    tile::MemoryOrder semantics;
    tile::MemoryScope scope;
  };
  FailureOr<Order> readOrder(Operation *op, StringRef sem, StringRef scope);
  Value pointersToBits(Value pointers);
  FailureOr<Value> atomicLoad(Operation *op, Value pointers, Value mask,
                              Value other, Order order);

  // ConvertDescriptors.cpp
  struct Descriptor;
  LogicalResult convert(DescriptorLoadOp op);
  LogicalResult convert(DescriptorStoreOp op);
  LogicalResult convert(DescriptorReduceOp op);
  LogicalResult convert(DescriptorGatherOp op);
  LogicalResult convert(DescriptorScatterOp op);
  FailureOr<Descriptor> describe(Operation *op, Value desc, size_t rank);
  struct Access {
    Value pointers, mask;
  };
  /// The pointers of the block of `shape` at `indices`, the first of which may
  /// be a line.
  Access access(const Descriptor &desc, ArrayRef<Value> indices,
                ArrayRef<int64_t> shape);
  /// A block that a descriptor's op moves, as it lies in memory.
  struct Described {
    RankedTensorType block;
    Value pointers, mask;
    bool fillsWithNan;
  };
  FailureOr<Described> locate(Operation *op, Value desc,
                              ArrayRef<Value> indices, RankedTensorType moved);
  LogicalResult load(Operation *op, Value desc, ArrayRef<Value> indices);
  LogicalResult store(Operation *op, Value desc, ArrayRef<Value> indices,
                      Value value);

  // ConvertDots.cpp
  LogicalResult convert(DotOp op);
  LogicalResult convert(DotScaledOp op);

  // ConvertFloats.cpp
  LogicalResult convert(FpToFpOp op);
  LogicalResult convert(MulhiUIOp op);
  LogicalResult convert(PreciseDivFOp op);
  LogicalResult convert(PreciseSqrtOp op);
  LogicalResult convert(ClampFOp op);
  LogicalResult convert(ExternElementwiseOp op);

  Region &body;
};

} // namespace greta::triton

#endif
