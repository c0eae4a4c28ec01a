//===- TritonToTile.cpp - the pass triton-to-tile -------------------------===//
//
// In: a module of Triton IR. Out: its kernels as block programs, and functions
// that launch them. In this order:
//
//   1. functions become one block each, calls are inlined (Structure.cpp);
//   2. pointers become GRETA's everywhere, so that loops and ifs need no care;
//   3. kernels become greta_tile.func, their ops one by one what they mean
//      (Convert*.cpp; arith, math and scf stay as they are);
//   4. functions launch them (Launch.cpp).
//
//===----------------------------------------------------------------------===//

#include "TritonToTile.h"
#include "GretaTile/LoopAttributes.h"
#include "greta/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/TypeSwitch.h"

namespace greta {
#define GEN_PASS_DEF_TRITONTOTILEPASS
#include "greta/Passes.h.inc"
} // namespace greta

using namespace mlir;
using namespace greta;
using namespace greta::triton;

std::string triton::sourceName(BlockArgument argument) {
  if (auto name = dyn_cast<NameLoc>(argument.getLoc()))
    return name.getName().str();
  return "arg" + std::to_string(argument.getArgNumber());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult OpConverter::replace(Operation *op, ValueRange values) {
  op->replaceAllUsesWith(values);
  op->erase();
  return success();
}

LogicalResult OpConverter::convert(Operation *op) {
  b.setLoc(op->getLoc());
  b.setInsertionPoint(op);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<GetProgramIdOp, GetNumProgramsOp, MakeRangeOp, UnsplatOp, GatherOp,
            HistogramOp, ReduceOp, ScanOp, MapElementwiseOp, AddPtrOp,
            PtrToIntOp, IntToPtrOp, BitcastOp, LoadOp, StoreOp, AtomicRmwOp,
            AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicStoreOp,
            DescriptorLoadOp, DescriptorStoreOp, DescriptorReduceOp,
            DescriptorGatherOp, DescriptorScatterOp, DotOp, DotScaledOp,
            FpToFpOp, MulhiUIOp, PreciseDivFOp, PreciseSqrtOp, ClampFOp,
            ExternElementwiseOp>([&](auto o) { return convert(o); })
      .Case([&](SplatOp o) {
        return replace(o,
                       {tile::SplatOp::create(b, o.getType(), o.getValue())});
      })
      .Case([&](BroadcastOp o) {
        if (o.getType() == o.getValue().getType())
          return replace(o, {o.getValue()});
        return replace(
            o, {tile::BroadcastOp::create(b, o.getType(), o.getValue())});
      })
      .Case<ExpandDimsOp, ReshapeOp>([&](auto o) {
        return replace(o, {reshape(o.getValue(), shapeOf(o.getResult()))});
      })
      .Case([&](TransOp o) {
        auto order = llvm::to_vector_of<int64_t>(o.getOrder());
        return replace(
            o, {tile::TransOp::create(b, o.getType(), o.getValue(), order)});
      })
      .Case([&](SplitOp o) {
        auto made = tile::SplitOp::create(b, o->getResultTypes(), o.getValue());
        return replace(o, made->getResults());
      })
      .Case([&](JoinOp o) {
        return replace(
            o, {tile::JoinOp::create(b, o.getType(), o.getA(), o.getB())});
      })
      .Case([&](CatOp o) {
        return replace(
            o, {tile::CatOp::create(b, o.getType(), o.getA(), o.getB(), 0)});
      })
      .Case([&](ApproxDivFOp o) {
        return replace(o, {fdiv(o.getX(), o.getY())});
      })
      .Case([&](ReturnOp o) {
        tile::ReturnOp::create(b);
        return replace(o, {});
      })
      .Case<ReduceReturnOp, ScanReturnOp>([&](auto o) {
        tile::YieldOp::create(b, o.getValues());
        return replace(o, {});
      })
      .Case<gpu::BarrierOp, mlir::gpu::BarrierOp>([&](auto o) {
        tile::BarrierOp::create(b);
        return replace(o, {});
      })
      .Case([&](PrintOp o) {
        SmallVector<int64_t> unsignedValues;
        for (auto [i, isSigned] : llvm::enumerate(o.getIsSigned()))
          if (!isSigned && getElementTypeOrSelf(o.getValues()[i]).isInteger())
            unsignedValues.push_back(i);
        tile::PrintOp::create(b, o.getPrefixAttr(), o.getValues(),
                              o.getHexAttr().getValue() ? b.getUnitAttr()
                                                        : UnitAttr(),
                              b.getDenseI64ArrayAttr(unsignedValues));
        return replace(o, {});
      })
      .Case([&](AssertOp o) {
        tile::AssertOp::create(b, o.getCondition(), o.getMessageAttr());
        return replace(o, {});
      })
      // It goes with its parent.
      .Case([](MapElementwiseReturnOp) { return success(); })
      // A descriptor, which those who used it read.
      .Case<MakeTensorDescriptorOp, UnrealizedConversionCastOp>(
          [&](auto o) -> LogicalResult {
            if (!o->use_empty())
              return o.emitOpError("makes a descriptor that no load or store "
                                   "of a descriptor takes");
            return replace(o, {});
          })
      .Case([&](LLVM::AssumeOp o) {
        tile::AssumeOp::create(b, o.getCond());
        return replace(o, {});
      })
      // Only where control flow gave a value to a path that does not use it.
      .Case([&](ub::PoisonOp o) {
        return replace(o, numberOf(b, o.getType(), 0));
      })
      .Case([&](ElementwiseInlineAsmOp o) -> LogicalResult {
        return o.emitOpError("is assembly of another vendor's GPU, '")
               << o.getAsmString()
               << "'; write it in tl, or branch on the target";
      })
      .Default([](Operation *o) -> LogicalResult {
        return o->emitOpError("has no meaning in a block program; kernels are "
                              "of Triton IR, arith, math and scf");
      });
}

LogicalResult OpConverter::run() {
  SmallVector<Operation *> ops, descriptors;
  body.walk([&](Operation *op) {
    Dialect *dialect = op->getDialect();
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(dialect) &&
        !isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::YieldOp,
             scf::ConditionOp>(op))
      (isa<MakeTensorDescriptorOp, UnrealizedConversionCastOp>(op) ? descriptors
                                                                   : ops)
          .push_back(op);
    if (Attribute stages = op->getAttr("tt.num_stages"))
      op->setAttr(tile::stagesName, stages);
    // Hints: divisibility of values.
    for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
      if (attr.getName().getValue().starts_with("tt."))
        op->removeDiscardableAttr(attr.getName());
    // Triton's exponentials are its devices' instructions.
    if (isa<math::ExpOp, math::Exp2Op>(op))
      op->setAttr("fastmath", arith::FastMathFlagsAttr::get(
                                  op->getContext(), arith::FastMathFlags::afn));
  });
  llvm::append_range(ops, descriptors);
  for (Operation *op : ops)
    if (failed(convert(op)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Replaces Triton's pointers by GRETA's. Booleans lie in bytes, as which
/// Triton's frontend loads and stores them.
static void replacePointers(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](PtrType type) {
    Type pointee = type.getPointee();
    return tile::PtrType::get(pointee.isInteger(1)
                                  ? IntegerType::get(type.getContext(), 8)
                                  : pointee);
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// Returns the type of a kernel's argument for a type of Triton's; null: there
/// is none.
static Type argumentType(Type type) {
  if (auto descriptor = dyn_cast<DescriptorType>(type)) {
    Type element = descriptor.getBlock().getElementType();
    // Here a sign belongs to what is done with a number.
    if (element.isInteger())
      element =
          IntegerType::get(type.getContext(), element.getIntOrFloatBitWidth());
    return tile::PtrType::get(element);
  }
  if (isa<tile::PtrType>(type) || tile::isScalarArgument(type))
    return type;
  return {};
}

namespace {
struct TritonToTile : greta::impl::TritonToTilePassBase<TritonToTile> {
  using TritonToTilePassBase::TritonToTilePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(structureFunctions(module)))
      return signalPassFailure();
    replacePointers(module);
    for (auto func : llvm::make_early_inc_range(module.getOps<FuncOp>())) {
      if (func.isPublic() && failed(convertKernel(func)))
        return signalPassFailure();
      func.erase();
    }
    module->removeDiscardableAttr(numWarpsName);
  }

private:
  static constexpr StringLiteral numWarpsName = "ttg.num-warps";

  unsigned waves() {
    auto attr = getOperation()->getAttrOfType<IntegerAttr>(numWarpsName);
    return numWarps ? numWarps : attr ? attr.getInt() : 4;
  }

  LogicalResult convertKernel(FuncOp func) {
    if (func.isExternal())
      return func.emitError("kernel '")
             << func.getSymName() << "' has no body; kernels are defined";
    if (!func.getResultTypes().empty())
      return func.emitError("kernel '")
             << func.getSymName()
             << "' returns values; kernels store their results";
    Block &entry = func.getBody().front();
    ImplicitLocOpBuilder b(func.getLoc(), func.getContext());
    b.setInsertionPointToStart(&entry);
    SmallVector<DictionaryAttr> attrs;
    for (BlockArgument argument : entry.getArguments())
      if (failed(convertArgument(func, argument, attrs, b)))
        return failure();
    b.setInsertionPoint(func);
    auto kernel = tile::FuncOp::create(
        b, b.getStringAttr(func.getSymName() + "_0"),
        TypeAttr::get(b.getFunctionType(entry.getArgumentTypes(), {})),
        b.getI32IntegerAttr(waves()), /*wave_size=*/IntegerAttr(),
        /*arg_attrs=*/ArrayAttr(), /*res_attrs=*/ArrayAttr());
    if (numStages)
      kernel->setAttr(tile::stagesName, b.getI32IntegerAttr(numStages));
    kernel.getBody().takeBody(func.getBody());
    if (failed(handOnDescriptors(kernel.getBody())))
      return failure();
    OpConverter converter(kernel.getBody(), b);
    if (failed(converter.run()))
      return failure();
    kernel.setAllArgAttrs(attrs);
    return addLaunch(kernel, func.getSymName(), grid);
  }

  /// Converts an argument's type and attributes, and its uses in the body.
  LogicalResult convertArgument(FuncOp func, BlockArgument argument,
                                SmallVectorImpl<DictionaryAttr> &attrs,
                                ImplicitLocOpBuilder &b) {
    Type type = argument.getType(), taken = argumentType(type);
    if (!taken)
      return emitError(argument.getLoc(), "argument '")
             << sourceName(argument) << "' is of type " << type
             << "; kernels take pointers, integers of 1, 8, 16, 32 and 64 "
                "bits, f16, bf16, f32 and f64";
    if (isa<DescriptorType>(type)) {
      argument.setType(taken);
      auto cast = UnrealizedConversionCastOp::create(b, type, argument);
      argument.replaceAllUsesExcept(cast.getResult(0), cast);
      if (Attribute padding =
              func.getArgAttr(argument.getArgNumber(), "tt.padding"))
        cast->setAttr(paddingName, padding);
    }
    if (auto name = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      "greta.name"))
      argument.setLoc(NameLoc::get(name, argument.getLoc()));
    NamedAttrList kept;
    auto divisibility = func.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(), "tt.divisibility");
    if (divisibility)
      kept.append(tile::divisibilityName,
                  b.getI64IntegerAttr(divisibility.getInt()));
    // Its only value: offsets of 32 bits.
    if (func.getArgAttr(argument.getArgNumber(), "tt.pointer_range"))
      kept.append(tile::pointerRangeName, b.getUnitAttr());
    attrs.push_back(kept.getDictionary(b.getContext()));
    return success();
  }
};
} // namespace
