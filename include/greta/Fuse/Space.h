//===- Space.h - the index space of a kernel's region -----------*- C++ -*-===//
//
// A region of greta.kernel computes tensors of one shape, its *space*. Every
// value in it is indexed by some of the space's dimensions, its *mapping*:
//
//   space [T, H, D]     x [T, H, D]   0 1 2
//                       w [D]         2
//                       cos [T, D/2]  0 3      3 = half of the last dimension
//
// Row dimensions that all values have or lack together are one group, so a
// kernel's blocks have one dimension per group, then the columns. A space with
// rope splits its columns in two: [.., 2, D/2] for halves ("neox"), [.., D/2,
// 2] for neighbours ("gptj").
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_FUSE_SPACE_H
#define GRETA_FUSE_SPACE_H

#include "Greta/Greta.h"
#include "mlir/IR/AffineExpr.h"
#include <functional>

namespace greta {

using Mapping = llvm::SmallVector<int64_t, 4>;

/// The mapping of operand `operand` of `op` when `mapping` indexes its result,
/// in a space of `rank` dimensions.
Mapping operandMapping(mlir::OpOperand &operand, const Mapping &mapping,
                       int64_t rank);

/// Buffers of any launch.
inline constexpr size_t maxBuffers = 12;

/// Whether a launch of `parts` spaces side by side should have so many buffers,
/// in whose shapes are `symbols` dynamic extents: few, or such that they fit
/// with the scalars into the 128 bytes of push constants that every Vulkan
/// device has. An op that needs more gets its arguments through a buffer;
/// fusion plans for none. Spaces side by side may have the 256 bytes of Vulkan
/// 1.4, as a launch costs more than a buffer of arguments. Scalars are the
/// extents, where each part begins, and how the grid is folded; or they are the
/// slots and pages of a cache that the launch updates.
inline bool fitsArguments(size_t buffers, size_t symbols, size_t parts) {
  size_t bytes = parts > 1 ? 256 : 128;
  size_t scalars = symbols + parts + 1;
  return buffers <= maxBuffers || 8 * buffers + 4 * scalars <= bytes;
}

/// One result element from the operands' elements at the same index: arith and
/// math on tensors, and copies.
bool isElementwise(mlir::Operation *op);

/// Whether an op computes whole rows, so that only the space's own shape will
/// do for its result.
bool isRowOp(mlir::Operation *op);

/// Whether an op has a kernel of its own, which is a block program: attention
/// and the KV cache's updates.
bool isAlone(mlir::Operation *op);

/// Whether the kernel of an op that is alone also does elementwise work on its
/// first result, behind it.
bool takesEpilogue(mlir::Operation *op);

/// Whether a kernel of attention's gradients computes those of keys and values,
/// so that its space is theirs; else those of the queries.
bool isOfKeys(mlir::Operation *op);

/// Whether an attention's queries and result, and all that its gradients have,
/// are [B, S, H, D] in memory. Its space is [B, H, S, D] always, and so is the
/// type of queries that is given here.
bool hasTokensFirst(mlir::Operation *op);

/// Whether an attention's sequences have numbers of queries of their own: the
/// queries are [T, H, D] in memory, and given as [1, H, T, D].
bool hasBegins(mlir::Operation *op);

/// Queries of an attention for each head; where that is dynamic what
/// `greta.rows` says, else ShapedType::kDynamic, as where sequences have
/// numbers of their own.
int64_t expectedQueries(mlir::Operation *attention);
mlir::RankedTensorType queryTypeOf(mlir::Operation *attention);

/// Whether an attention's scales of keys, or of values, may differ from key to
/// key; there may be none.
bool differByKey(mlir::Operation *attention, mlir::Value scales);

/// The rows of a tile of a grouped GEMM that is skinny: twice what a group may
/// expect, as groups differ, and one where most groups have none. 0: nothing is
/// known of the number of rows, or there are no groups.
int64_t rowsOfGroup(MatmulOp matmul);

/// On a GEMM whose M is dynamic, or an attention with a dynamic number of
/// queries: launches have at least one row and at most so many, for which the
/// kernel is chosen.
constexpr llvm::StringLiteral rowsName = "greta.rows";

/// On a GEMM or an attention: a row's numbers do not depend on M, the number of
/// rows, so that kernels for ranges of M add in the order of those for any M.
/// A GEMM then has no `split`, is not skinny, and takes one matrix instruction
/// for every M.
constexpr llvm::StringLiteral batchInvariantName = "greta.batch_invariant";
bool isBatchInvariant(mlir::Operation *op);

/// M of a GEMM, times the batch that shares B; where that is dynamic what
/// `greta.rows` says, else ShapedType::kDynamic.
int64_t expectedRows(MatmulOp matmul);

/// Whether a GEMM is skinny, which the skinny schedule takes: few rows are
/// expected, columns and depth are static.
bool isSkinny(MatmulOp matmul);

/// Whether a GEMM takes packed weights straight to the registers of matrix
/// instructions. With fewer rows SIMT FMAs are as fast; with more rows the
/// weights are unpacked once.
bool takesPackedWeights(MatmulOp matmul);

/// Whether operand 0 (A) or 1 (B) of a GEMM can be computed in its kernel,
/// block by block: elementwise work, broadcasts, constants, dequant (for B as
/// [N, K]) down to values that `isLeaf`; A as [M, K] may be the `rms_norm` of
/// such, or the `patches` of a leaf, which with channels first are B as [K, N].
/// Calls `visit` for every op on the way. The depth is static then and there is
/// no batch, but of a convolution's groups and images; in a skinny GEMM only
/// vectors are computed for A.
bool isComputedOperand(MatmulOp matmul, unsigned number,
                       llvm::function_ref<bool(mlir::Value)> isLeaf,
                       llvm::function_ref<void(mlir::Operation *)> visit);

/// Whether two GEMMs can go through one loop over K: of one A, and alike in
/// everything but the values in B.
bool sharesLoop(MatmulOp first, MatmulOp second);

/// Whether a value of a space with `rank` dimensions is one number for each
/// row, as what greta.reduce_rows has of them is.
bool isPerRow(mlir::Value value, int64_t rank);

/// How many reductions over a row `op` needs, each depending on the one before.
unsigned numReductions(mlir::Operation *op);

/// Identity on `rank` dimensions.
Mapping identityMapping(int64_t rank);

/// Calls `visit` for every value that the yielded ones need, with its mapping;
/// each pair once. `isInside` says whose operands are followed. Fails on a row
/// op whose result is needed in another mapping than the identity: `culprit`.
mlir::LogicalResult
walkDemands(mlir::ValueRange yielded, int64_t rank,
            llvm::function_ref<bool(mlir::Value)> isInside,
            llvm::function_ref<void(mlir::Value, const Mapping &)> visit,
            mlir::Operation **culprit = nullptr);

/// The facts about a region that configure and to-tile need.
struct Space {
  enum class Pairs { None, Halves, Neighbours };

  /// Extents of the space over the function's symbols.
  llvm::SmallVector<mlir::AffineExpr> shape;
  /// Row dimensions by group; a space of rank 1 has one empty group. The last
  /// group of a GEMM has its M, those before are its batch.
  llvm::SmallVector<llvm::SmallVector<int64_t>> groups;
  Pairs pairs = Pairs::None;
  /// Every value has the whole shape and nothing looks along rows.
  bool isFlat = false;
  bool hasReduction = false;
  bool hasSoftmax = false;
  /// The op that has the kernel to itself, but for an epilogue. The space is
  /// then that of the queries, of the keys, or of an update's new rows.
  mlir::Operation *alone = nullptr;
  /// Its GEMM, and another one of the same A.
  MatmulOp matmul, second;
  /// The heads that the GEMM's columns are split into, or null.
  HeadsOp heads;
  /// Bits of the narrowest element that is loaded or stored.
  unsigned narrowest = 32;
  /// Loaded and stored tensors of the whole shape.
  unsigned fullOperands = 0;

  int64_t rank() const { return shape.size(); }
  llvm::SmallVector<MatmulOp, 2> gemms() const;
  /// Columns of a head; 1 where the GEMM's columns are not split.
  int64_t headSize() const;
  /// Number of rows of a group, and of (half) columns, when not flattened.
  mlir::AffineExpr rows(unsigned group, mlir::MLIRContext *context) const;
  mlir::AffineExpr columns(mlir::MLIRContext *context) const;
  /// Elements of the whole space.
  mlir::AffineExpr size(mlir::MLIRContext *context) const;
};

/// The most weights that a format unpacks together where GEMMs compute B by
/// `greta.dequant`; 0 where none does.
int64_t unitOfWeights(const Space &space);

/// The strides of a kernel's operand along each dimension, and the offset of
/// its first element.
struct TensorLayout {
  llvm::SmallVector<mlir::AffineExpr, 4> strides;
  mlir::AffineExpr offset;

  /// Row-major, nothing between or before.
  static TensorLayout contiguous(llvm::ArrayRef<mlir::AffineExpr> shape,
                                 mlir::MLIRContext *context);
  static TensorLayout of(KernelOp kernel, unsigned input);
};

/// The attribute of greta.kernel with one map or unit per operand: null if all
/// are taken as they are.
mlir::ArrayAttr viewsAttribute(llvm::ArrayRef<mlir::Attribute> views);

/// The spaces of a kernel; a region that is none gets a diagnostic.
mlir::FailureOr<llvm::SmallVector<Space>> analyzeSpaces(KernelOp kernel);

} // namespace greta

#endif
