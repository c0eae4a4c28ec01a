//===- Fuse.h - the steps of greta-fuse -------------------------*- C++ -*-===//
//
// Shared by Fuse*.cpp: what an op is to fusion, and the three steps.
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
  /// Says that a value that was made has the shape `shape`.
  Value note(Value made, AffineMap shape) {
    (*this)[made] = shape;
    return made;
  }
  /// Gives `value` a buffer of its own.
  Value copy(mlir::OpBuilder &builder, mlir::Location loc, Value value) {
    auto rank = mlir::cast<RankedTensorType>(value.getType()).getRank();
    Value made = BroadcastOp::create(builder, loc, value.getType(), value,
                                     identityMapping(rank));
    return note(made, at(value));
  }
};

/// Costs nothing and is repeated in every kernel that uses it: a constant, a
/// broadcast along new dimensions.
bool isTransparent(Operation *op);

/// Another shape of the same buffer; stays in the function.
bool isView(Operation *op);

/// Ops that become part of exactly one kernel.
bool isCompute(Operation *op);

/// Whether a GEMM is faster when its kernel computes operand 0 (A) or 1 (B)
/// by `ops` than when a kernel before does (FuseOperands.cpp).
bool paysInGemm(MatmulOp matmul, unsigned number, ArrayRef<Operation *> ops);

/// Reports a linalg.reduce that kernels do not compute. Afterwards its region
/// takes nothing from around it.
LogicalResult checkReduction(mlir::linalg::ReduceOp reduce);

/// Ops that are made of others become those (FuseRewrite.cpp).
void makeGemms(Block &block, Shapes &shapes);
void makeReductions(Block &block, Shapes &shapes);

/// Convolutions become GEMMs of greta.patches, and elementwise work on them
/// work on their rows (FuseConvolution.cpp).
LogicalResult makeConvolutions(mlir::func::FuncOp function, Shapes &shapes);

/// Sizes of a tensor for an op that makes it, over dimensions of arguments.
SmallVector<mlir::OpFoldResult> sizesOf(mlir::OpBuilder &builder,
                                        mlir::Location loc,
                                        mlir::func::FuncOp function,
                                        RankedTensorType type, AffineMap shape);

/// The places of a view's elements (FuseSlices.cpp).
struct Place {
  Value buffer;
  TensorLayout layout;
  unsigned symbols;
  /// As greta.kernel has it.
  AffineMap view() const;
};

/// Whether a slice or a transpose is between a value and its buffer.
bool isStrided(Value value);

/// Follows views to the buffer; none where its elements do not lie in regular
/// distances, or rows not as neighbours.
std::optional<Place> placeOf(Value value, const Shapes &shapes);

/// Reports a slice that no kernel can read where it lies.
LogicalResult checkSlice(mlir::tensor::ExtractSliceOp slice,
                         const Shapes &shapes);
LogicalResult checkTranspose(mlir::linalg::TransposeOp transpose);

/// Slices of what is computed become computations of slices where that lets
/// something fuse; those that are left have places.
void normalizeSlices(mlir::func::FuncOp function, Shapes &shapes);

/// Step 1: checks that every op is understood, and leaves transparent ops
/// (with one use each), views, compute ops and index arithmetic. Every result
/// of the function is then the only one with its buffer.
LogicalResult normalizeForFusion(mlir::func::FuncOp function, Shapes &shapes);

/// Compute ops, in program order, that share an index space.
struct Cluster {
  SmallVector<Operation *> ops;
  AffineMap shape;
  /// Once it is planned: the values that `ops` take from elsewhere, and those
  /// of theirs that others use.
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
