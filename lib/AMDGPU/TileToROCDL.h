//===- TileToROCDL.h - what the parts of the conversion share ---*- C++ -*-===//
//
// The patterns of greta-tile-to-rocdl by subject, and what they ask of a chip.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_LIB_AMDGPU_TILETOROCDL_H
#define GRETA_LIB_AMDGPU_TILETOROCDL_H

#include "GretaTile/GretaTile.h"
#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/DenseMap.h"

namespace greta::rocdl {

/// How a chip exchanges values between lanes.
struct LaneExchange {
  unsigned waveSize;
  /// DPP row_xmask and v_permlanex16 (RDNA).
  bool rowXmask;
  /// v_permlane32_swap (gfx950).
  bool permlane32Swap;
};

/// The facts that patterns need about the kernel they work in.
struct Kernel {
  int32_t blockSize = 0, waveSize = 0;
  /// The LDS global of every shared_alloc, and where in it the array begins.
  DenseMap<Operation *, std::pair<mlir::LLVM::GlobalOp, uint64_t>> shared;
  /// The alias scope of direct loads to shared memory; null if there are none.
  /// Barriers order them, so nothing else there aliases them.
  mlir::LLVM::AliasScopeAttr direct;
  /// Loads in pipelined loops, and the last step to their base where it fits
  /// into the 32 bits of a buffer load's scalar offset.
  DenseMap<Operation *, tile::PtrAddOp> inPipeline;
  /// The last word of a buffer descriptor without bounds, and with them.
  int32_t bufferFlags = 0, boundedFlags = 0;

  /// An access of shared memory that is not direct.
  template <typename OpT> void setUndirect(OpT access) const {
    if (!direct)
      return;
    access.setNoaliasScopesAttr(
        mlir::ArrayAttr::get(access.getContext(), {direct}));
    access.setAliasScopesAttr(
        mlir::ArrayAttr::get(access.getContext(), {indirect}));
  }
  /// The scope of these.
  mlir::LLVM::AliasScopeAttr indirect;
};

/// The builder of a pattern, which knows what became of other values.
struct LoweringBuilder : ImplicitLocOpBuilder {
  LoweringBuilder(mlir::Location loc, mlir::ConversionPatternRewriter &rewriter)
      : ImplicitLocOpBuilder(loc, rewriter), rewriter(rewriter) {}
  mlir::ConversionPatternRewriter &rewriter;
};

/// Patterns that are one function each: what it makes is the op's result, and
/// null of an op that has none.
class Lowerings {
public:
  Lowerings(const mlir::LLVMTypeConverter &converter,
            mlir::RewritePatternSet &patterns)
      : converter(converter), patterns(patterns) {}

  template <typename OpT, typename BuildT> void add(BuildT build) {
    patterns.insert<Pattern<OpT, BuildT>>(converter, build);
  }

private:
  template <typename OpT, typename BuildT>
  struct Pattern : mlir::ConvertOpToLLVMPattern<OpT> {
    Pattern(const mlir::LLVMTypeConverter &converter, BuildT build)
        : mlir::ConvertOpToLLVMPattern<OpT>(converter), build(build) {}
    LogicalResult
    matchAndRewrite(OpT op, typename OpT::Adaptor adaptor,
                    mlir::ConversionPatternRewriter &rewriter) const override {
      LoweringBuilder b(op.getLoc(), rewriter);
      if (Value result = build(op, adaptor, b))
        rewriter.replaceOp(op, result);
      else
        rewriter.eraseOp(op);
      return mlir::success();
    }
    BuildT build;
  };

  const mlir::LLVMTypeConverter &converter;
  mlir::RewritePatternSet &patterns;
};

/// Address spaces of the AMDGPU target.
constexpr unsigned globalSpace = 1, sharedSpace = 3, bufferSpace = 8;

Value constantI32(ImplicitLocOpBuilder &b, int32_t value);
/// Returns an offset in elements as one in bytes, which has 32 bits, too.
Value byteOffset(ImplicitLocOpBuilder &b, Value offset, Type element);
/// Address of the element at `offset` from a uniform base.
Value laneAddress(ImplicitLocOpBuilder &b, Value base, Value offset,
                  Type element);
/// Address of an element of an array in shared memory.
Value sharedAddress(ImplicitLocOpBuilder &b, Value array, Value index,
                    tile::SharedType type);

/// Loads from global memory, also straight to shared (TileToROCDLBuffer.cpp).
void populateLoadPatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const Kernel &kernel);

/// Emits a transposed load by an instruction for elements of 16 bits, which
/// takes vectors of any type, or by one for 8 bits, which takes words.
template <typename Bits16, typename Bits8, typename NoteT>
Value loadTransposed(ImplicitLocOpBuilder &b, Type result, Value address,
                     NoteT note) {
  auto type = mlir::cast<VectorType>(result);
  if (type.getElementTypeBitWidth() == 16) {
    auto load = Bits16::create(b, type, address);
    note(load);
    return load;
  }
  auto load = Bits8::create(b, VectorType::get(2, b.getI32Type()), address);
  note(load);
  return mlir::LLVM::BitcastOp::create(b, type, load);
}

/// Ids, memory, barriers (TileToROCDLOps.cpp).
void populateLanePatterns(const mlir::LLVMTypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const Kernel &kernel);

/// Pointer arithmetic, atomics, fences (TileToROCDLPointers.cpp).
void populatePointerPatterns(const mlir::LLVMTypeConverter &converter,
                             mlir::RewritePatternSet &patterns);

/// shuffle_xor and shuffle (TileToROCDLShuffle.cpp).
void populateShufflePatterns(const mlir::LLVMTypeConverter &converter,
                             mlir::RewritePatternSet &patterns,
                             const LaneExchange &exchange);

/// Combines the halves of a wave (TileToROCDLShuffle.cpp).
void combineHalves(Operation *kernel, const TargetRow &row);

/// Functions whose flags ask for the bare instruction (TileToROCDLMath.cpp).
void populateBareMathPatterns(const mlir::LLVMTypeConverter &converter,
                              mlir::RewritePatternSet &patterns);

/// Two numbers at a time: arithmetic on neighbours of f32, sums of products of
/// f16 (TileToROCDLPairs.cpp).
void pairElements(Operation *kernel, const TargetRow &row);

/// Lets an op of f32 be one with another (TileToROCDLMath.cpp).
void allowContraction(Operation *op);

} // namespace greta::rocdl

#endif
