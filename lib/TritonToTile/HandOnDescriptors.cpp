//===- HandOnDescriptors.cpp - descriptors that control flow hands on -----===//
//
// A loop, an if or a choice that hands on a descriptor hands on what it
// consists of, and whoever uses it makes it again of that:
//
//   scf.for iter_args(%d = %first)      scf.for iter_args(%base, %shape0, ..)
//                                 ->      %d = tt.make_tensor_descriptor %base,
//                                                [%shape0, ..], [%stride0, ..]
//
// So each use finds the op that makes its descriptor, or a kernel's argument.
// The padding is no value: descriptors that are handed on all have the same.
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace greta;
using namespace greta::triton;

namespace {
struct SelectPattern : OpConversionPattern<arith::SelectOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(arith::SelectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> parts;
    for (auto [yes, no] :
         llvm::zip_equal(adaptor.getTrueValue(), adaptor.getFalseValue()))
      parts.push_back(arith::SelectOp::create(rewriter, op.getLoc(),
                                              op.getCondition(), yes, no));
    rewriter.replaceOpWithMultiple(op, {parts});
    return success();
  }
};
} // namespace

static bool handsOn(Operation *op) {
  auto isDescriptor = [](Type type) { return isa<DescriptorType>(type); };
  return llvm::any_of(op->getResultTypes(), isDescriptor) ||
         (isa<scf::WhileOp>(op) &&
          llvm::any_of(op->getOperandTypes(), isDescriptor));
}

/// Adds the types of a descriptor's parts: the pointer, the extents, the
/// strides.
static void addParts(DescriptorType type, SmallVectorImpl<Type> &parts) {
  Builder b(type.getContext());
  Type element = type.getBlock().getElementType();
  if (element.isInteger())
    element = b.getIntegerType(element.getIntOrFloatBitWidth());
  unsigned rank = type.getBlock().getRank();
  parts.push_back(tile::PtrType::get(element));
  parts.append(rank, b.getI32Type());
  parts.append(rank, b.getI64Type());
}

LogicalResult triton::handOnDescriptors(Region &body) {
  auto isHandedOn = [](Operation *op) {
    return isa<scf::SCFDialect, arith::ArithDialect>(op->getDialect()) &&
           handsOn(op);
  };
  if (!tile::hasOpThat(body.getParentOp(), isHandedOn))
    return success();
  std::optional<IntegerAttr> padding;
  WalkResult walk = body.walk([&](Operation *op) -> WalkResult {
    auto make = dyn_cast<MakeTensorDescriptorOp>(op);
    if (!make && !isa<UnrealizedConversionCastOp>(op))
      return WalkResult::advance();
    auto own = make ? make.getPaddingAttr()
                    : op->getAttrOfType<IntegerAttr>(paddingName);
    if (padding && *padding != own)
      return op->emitError("a descriptor pads otherwise than another one of "
                           "this kernel, in which a loop or an if hands "
                           "descriptors on; pad alike, or make each where it "
                           "is used");
    padding = own;
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();

  TypeConverter converter;
  converter.addConversion([](Type type) { return type; });
  converter.addConversion(
      [](DescriptorType type, SmallVectorImpl<Type> &parts) {
        addParts(type, parts);
        return success();
      });
  converter.addSourceMaterialization([&](OpBuilder &b, DescriptorType type,
                                         ValueRange parts,
                                         Location loc) -> Value {
    unsigned rank = type.getBlock().getRank();
    return MakeTensorDescriptorOp::create(
        b, loc, type, parts[0], parts.slice(1, rank),
        parts.slice(1 + rank, rank), padding.value_or(IntegerAttr()));
  });
  converter.addTargetMaterialization([](OpBuilder &, TypeRange types,
                                        ValueRange values, Location) {
    if (values.size() != 1)
      return SmallVector<Value>();
    Operation *source = values[0].getDefiningOp();
    auto argument = dyn_cast<UnrealizedConversionCastOp>(source);
    SmallVector<Value> parts =
        argument ? descriptorParts(argument, (types.size() - 1) / 2)
                 : SmallVector<Value>(source->getOperands());
    return TypeRange(ValueRange(parts)) == types ? parts : SmallVector<Value>();
  });
  ConversionTarget target(*body.getContext());
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  target.addDynamicallyLegalOp<arith::SelectOp>(
      [](arith::SelectOp op) { return !isa<DescriptorType>(op.getType()); });
  RewritePatternSet patterns(body.getContext());
  patterns.add<SelectPattern>(converter, body.getContext());
  scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                       target);
  SmallVector<Operation *> ops;
  for (Operation &op : body.front())
    ops.push_back(&op);
  return applyPartialConversion(ops, target, std::move(patterns));
}
