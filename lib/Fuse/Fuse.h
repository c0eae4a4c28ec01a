//===- Fuse.h - the steps of greta-fuse -------------------------*- C++ -*-===//
//
// The three steps of fusion, and how it classifies ops. Shared by Fuse*.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_FUSE_FUSE_H
#define GRETA_LIB_FUSE_FUSE_H

#include "greta/Fuse/Space.h"
#include "greta/Names.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineMap.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace greta {

/// The shape of every tensor of the function over its symbols.
struct Shapes : DenseMap<Value, AffineMap> {
  /// Notes the shape of a new value, and returns the value.
  Value note(Value made, AffineMap shape) {
    (*this)[made] = shape;
    return made;
  }
  /// Copies a value to a buffer of its own.
  Value copy(mlir::OpBuilder &builder, mlir::Location loc, Value value) {
    auto rank = mlir::cast<RankedTensorType>(value.getType()).getRank();
    Value made = BroadcastOp::create(builder, loc, value.getType(), value,
                                     identityMapping(rank));
    return note(made, at(value));
  }
};

/// Whether an op costs nothing, so that every kernel that uses it repeats it: a
/// constant, or a broadcast along new dimensions.
bool isTransparent(Operation *op);

/// Whether an op's result is another shape of its operand's buffer. Such ops
/// stay in the function.
bool isView(Operation *op);

/// Whether an op becomes part of exactly one kernel.
bool isCompute(Operation *op);

/// Whether a GEMM is faster when its kernel computes operand 0 (A) or 1 (B)
/// by `ops` than when a kernel before does (FuseOperands.cpp).
bool paysInGemm(MatmulOp matmul, unsigned number, ArrayRef<Operation *> ops);

/// The space of an op that is alone; a region with more than the op and its
/// epilogue gets a diagnostic (FuseAlone.cpp).
mlir::FailureOr<Space> spaceOfAlone(KernelOp kernel, mlir::Region &region,
                                    Operation *op);

/// Reports a linalg.reduce that kernels cannot compute. Constants that its
/// region takes from outside are copied into it.
LogicalResult checkReduction(mlir::linalg::ReduceOp reduce);

/// These replace ops by ops that fusion knows: GEMMs, and reductions with
/// elementwise ops (FuseRewrite.cpp).
void makeGemms(Block &block, Shapes &shapes);
void makeReductions(Block &block, Shapes &shapes);

/// Replaces convolutions by GEMMs of greta.patches, and elementwise ops on
/// their results by ops on the GEMMs' rows (FuseConvolution.cpp).
void makeConvolutions(mlir::func::FuncOp function, Shapes &shapes);

/// Returns the sizes of a tensor for the op that makes it, computed from
/// dimensions of arguments.
SmallVector<mlir::OpFoldResult> sizesOf(mlir::OpBuilder &builder,
                                        mlir::Location loc,
                                        mlir::func::FuncOp function,
                                        RankedTensorType type, AffineMap shape);

/// The places of a view's elements (FuseSlices.cpp).
struct Place {
  Value buffer;
  TensorLayout layout;
  unsigned symbols;
  /// The map that greta.kernel has in `views`.
  AffineMap view() const;
};

/// Whether a slice or a transpose lies between a value and its buffer.
bool isStrided(Value value);

/// Follows views to the buffer. None: the value's elements do not lie at
/// regular distances, or those of a row are not neighbours.
std::optional<Place> placeOf(Value value, const Shapes &shapes);

/// Reports a slice that no kernel can read where it lies.
LogicalResult checkSlice(mlir::tensor::ExtractSliceOp slice,
                         const Shapes &shapes);
LogicalResult checkTranspose(mlir::linalg::TransposeOp transpose);

/// Replaces slices of computed values by computations of slices, if something
/// can then be fused. All other slices have places afterwards.
void normalizeSlices(mlir::func::FuncOp function, Shapes &shapes);

/// Step 1: checks that every op is understood, and leaves transparent ops
/// (with one use each), views, compute ops and index arithmetic. Every result
/// of the function is then the only one with its buffer. `partsOfHeads`: tiles
/// of the target's GEMMs may be parts of heads.
LogicalResult normalizeForFusion(mlir::func::FuncOp function, Shapes &shapes,
                                 bool partsOfHeads);

/// Compute ops, in program order, that share an index space.
struct Cluster {
  SmallVector<Operation *> ops;
  AffineMap shape;
  /// After planning: the values that `ops` take from elsewhere, and the results
  /// of `ops` that others use.
  llvm::SetVector<Value> inputs;
  SmallVector<Value> outputs;
};

/// Step 2: the kernels in order of execution, each the clusters of one launch.
using KernelPlan = SmallVector<SmallVector<Cluster>>;
KernelPlan planKernels(mlir::func::FuncOp function, Shapes &shapes);

/// Step 3: replaces the function's body by one greta.kernel per plan entry.
void emitKernels(mlir::func::FuncOp function, const KernelPlan &plan,
                 const Shapes &shapes);

} // namespace greta

#endif
