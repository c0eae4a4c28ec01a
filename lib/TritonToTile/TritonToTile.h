//===- TritonToTile.h - parts of the pass triton-to-tile --------*- C++ -*-===//
#ifndef GRETA_LIB_TRITONTOTILE_H
#define GRETA_LIB_TRITONTOTILE_H

#include "GretaTile/GretaTile.h"
#include "Triton/Triton.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace greta::triton {

/// Leaves one block of structured control flow of every function, and in public
/// functions no calls.
llvm::LogicalResult structureFunctions(mlir::ModuleOp module);

/// Adds the function that launches a kernel, with its arguments; `grid` as the
/// pass describes it.
llvm::LogicalResult addLaunch(tile::FuncOp kernel, mlir::StringRef name,
                              mlir::StringRef grid);

/// Descriptors that loops, ifs and choices of a kernel's body hand on become
/// what they consist of, and are made again where they are used.
llvm::LogicalResult handOnDescriptors(mlir::Region &body);

/// Names the padding of a kernel's argument that is a descriptor, as in
/// tt.make_tensor_descriptor.
inline constexpr llvm::StringLiteral paddingName = "padding";

/// Returns the parts of a kernel's argument that is a descriptor: the argument
/// and those behind it.
llvm::SmallVector<mlir::Value>
descriptorParts(mlir::UnrealizedConversionCastOp desc, unsigned rank);

/// The source's name of an argument.
std::string sourceName(mlir::BlockArgument argument);

/// A function of a device library as ops of arith and math; null where the
/// table has none of its name.
mlir::Value expandLibraryFunction(mlir::StringRef symbol,
                                  mlir::ValueRange operands,
                                  mlir::ImplicitLocOpBuilder &b);

/// J, Y and I of order 0, or 1 where they are odd.
mlir::Value besselFirst(mlir::Value x, bool isOdd,
                        mlir::ImplicitLocOpBuilder &b);
mlir::Value besselSecond(mlir::Value x, bool isOdd,
                         mlir::ImplicitLocOpBuilder &b);
mlir::Value besselModified(mlir::Value x, bool isOdd,
                           mlir::ImplicitLocOpBuilder &b);

/// A constant in every element of a type.
mlir::Value constantOf(mlir::Type type, double value,
                       mlir::ImplicitLocOpBuilder &b);
mlir::Value constantOf(mlir::Type type, const llvm::APInt &bits,
                       mlir::ImplicitLocOpBuilder &b);

/// Replaces the ops of Triton IR in a kernel, each by what it means.
class OpConverter {
public:
  explicit OpConverter(mlir::Region &body) : body(body) {}
  llvm::LogicalResult run();

private:
  llvm::LogicalResult convert(mlir::Operation *op);
  /// Gives the op's results to others and erases it.
  llvm::LogicalResult replace(mlir::Operation *op, mlir::ValueRange values);

  // ConvertBlocks.cpp
  llvm::LogicalResult convert(GetProgramIdOp op);
  llvm::LogicalResult convert(GetNumProgramsOp op);
  llvm::LogicalResult convert(MakeRangeOp op);
  llvm::LogicalResult convert(SplatOp op);
  llvm::LogicalResult convert(UnsplatOp op);
  llvm::LogicalResult convert(BroadcastOp op);
  llvm::LogicalResult convert(ExpandDimsOp op);
  llvm::LogicalResult convert(ReshapeOp op);
  llvm::LogicalResult convert(TransOp op);
  llvm::LogicalResult convert(SplitOp op);
  llvm::LogicalResult convert(JoinOp op);
  llvm::LogicalResult convert(CatOp op);
  llvm::LogicalResult convert(GatherOp op);
  llvm::LogicalResult convert(HistogramOp op);
  mlir::Value reshape(mlir::Value block, llvm::ArrayRef<int64_t> shape);
  /// A block that repeats `line` along all dimensions of `shape` but one.
  mlir::Value spread(mlir::Value line, unsigned dim,
                     llvm::ArrayRef<int64_t> shape);
  mlir::Value splat(mlir::Value scalar, llvm::ArrayRef<int64_t> shape);

  // ConvertRegions.cpp
  llvm::LogicalResult convert(ReduceOp op);
  llvm::LogicalResult convert(ScanOp op);
  llvm::LogicalResult convert(MapElementwiseOp op);
  mlir::FailureOr<llvm::SmallVector<mlir::StringAttr>>
  flagAsserts(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &values);
  template <typename ToT, typename OpT, typename... ArgsT>
  llvm::LogicalResult convertCombining(OpT op, ArgsT... args);
  /// Gives `op` the first results of `made`, and asserts of the others.
  llvm::LogicalResult
  replaceCombining(mlir::Operation *op, mlir::Operation *made,
                   llvm::ArrayRef<mlir::StringAttr> messages);
  void unpack(mlir::Value block, unsigned pack,
              llvm::MutableArrayRef<mlir::Value> parts);
  mlir::Value repack(llvm::ArrayRef<mlir::Value> parts);
  llvm::LogicalResult mapOp(mlir::Operation &scalar,
                            llvm::ArrayRef<int64_t> shape,
                            mlir::IRMapping &blocks);
  llvm::LogicalResult mapBlock(mlir::Block &scalars,
                               llvm::ArrayRef<int64_t> shape,
                               mlir::IRMapping &blocks);

  // ConvertMemory.cpp
  llvm::LogicalResult convert(AddPtrOp op);
  llvm::LogicalResult convert(PtrToIntOp op);
  llvm::LogicalResult convert(IntToPtrOp op);
  llvm::LogicalResult convert(BitcastOp op);
  llvm::LogicalResult convert(LoadOp op);
  llvm::LogicalResult convert(StoreOp op);
  llvm::LogicalResult convert(AtomicRmwOp op);
  llvm::LogicalResult convert(AtomicCasOp op);
  llvm::LogicalResult convert(AtomicLoadOp op);
  llvm::LogicalResult convert(AtomicPollOp op);
  llvm::LogicalResult convert(AtomicStoreOp op);
  struct Order {
    tile::MemoryOrder semantics;
    tile::MemoryScope scope;
  };
  mlir::FailureOr<Order> readOrder(mlir::Operation *op, mlir::StringRef sem,
                                   mlir::StringRef scope);
  mlir::Value pointersToBits(mlir::Value pointers);
  mlir::FailureOr<mlir::Value> atomicLoad(mlir::Operation *op,
                                          mlir::Value pointers,
                                          mlir::Value mask, mlir::Value other,
                                          Order order);

  // ConvertDescriptors.cpp
  struct Descriptor;
  llvm::LogicalResult convert(DescriptorLoadOp op);
  llvm::LogicalResult convert(DescriptorStoreOp op);
  llvm::LogicalResult convert(DescriptorReduceOp op);
  llvm::LogicalResult convert(DescriptorGatherOp op);
  llvm::LogicalResult convert(DescriptorScatterOp op);
  mlir::FailureOr<Descriptor> describe(mlir::Operation *op, mlir::Value desc,
                                       size_t rank);
  struct Access {
    mlir::Value pointers, mask;
  };
  /// The pointers of the block of `shape` at `indices`, the first of which may
  /// be a line.
  Access access(const Descriptor &desc, llvm::ArrayRef<mlir::Value> indices,
                llvm::ArrayRef<int64_t> shape);
  /// A block that a descriptor's op moves, as it lies in memory.
  struct Described {
    mlir::RankedTensorType block;
    mlir::Value pointers, mask;
    bool fillsWithNan;
  };
  mlir::FailureOr<Described> locate(mlir::Operation *op, mlir::Value desc,
                                    llvm::ArrayRef<mlir::Value> indices,
                                    mlir::RankedTensorType moved);
  llvm::LogicalResult load(mlir::Operation *op, mlir::Value desc,
                           llvm::ArrayRef<mlir::Value> indices);
  llvm::LogicalResult store(mlir::Operation *op, mlir::Value desc,
                            llvm::ArrayRef<mlir::Value> indices,
                            mlir::Value value);

  // ConvertDots.cpp
  llvm::LogicalResult convert(DotOp op);
  llvm::LogicalResult convert(DotScaledOp op);

  // ConvertFloats.cpp
  llvm::LogicalResult convert(FpToFpOp op);
  llvm::LogicalResult convert(MulhiUIOp op);
  llvm::LogicalResult convert(PreciseDivFOp op);
  llvm::LogicalResult convert(ApproxDivFOp op);
  llvm::LogicalResult convert(PreciseSqrtOp op);
  llvm::LogicalResult convert(ClampFOp op);
  llvm::LogicalResult convert(ExternElementwiseOp op);

  mlir::Region &body;
  mlir::ImplicitLocOpBuilder b{mlir::UnknownLoc::get(body.getContext()),
                               body.getContext()};
};

} // namespace greta::triton

#endif
