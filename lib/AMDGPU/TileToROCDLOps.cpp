//===- TileToROCDLOps.cpp - ids, memory and barriers on AMDGPU ------------===//
//
// Addresses. A kernel's pointer is uniform: it lives in scalar registers, and
// so does what ptr_add makes of it. A lane's offset is 32 bits wide, counts
// elements and is not negative; its byte offset stays below 2^32. The access
// is formed as
//
//   base + zext(offset * size)
//
// which is what the "saddr" form of global loads and stores takes: a scalar
// base, one 32-bit vector register, and the constant part of the offset as an
// immediate. The multiplication carries nuw, without which the constant part
// could not be moved out of the zero extension.
//
// In pipelined loops loads take other forms: TileToROCDLBuffer.cpp.
//
// Barriers. Only shared memory is ordered (the memory model annotation
// "amdgpu-synchronize-as:local"), so loads from global memory stay in flight
// across a barrier, unless it is `global`. LLVM would have a release by the
// workgroup and reads of shared memory wait for all loads straight to it. A
// barrier that leaves some in flight waits with an s_waitcnt of its own, and
// between releases by the wave, which cost nothing; and these loads are no
// alias (Kernel::direct) of what is read.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

Value greta::rocdl::constantI32(ImplicitLocOpBuilder &b, int32_t value) {
  return LLVM::ConstantOp::create(b, b.getI32Type(), value);
}

Value greta::rocdl::byteOffset(ImplicitLocOpBuilder &b, Value offset,
                               Type element) {
  unsigned bytes = tile::bytesInMemory(element);
  if (bytes == 1)
    return offset;
  return LLVM::ShlOp::create(b, offset, constantI32(b, llvm::Log2_32(bytes)),
                             LLVM::IntegerOverflowFlags::nuw);
}

Value greta::rocdl::laneAddress(ImplicitLocOpBuilder &b, Value base,
                                Value offset, Type element) {
  Value wide =
      LLVM::ZExtOp::create(b, b.getI64Type(), byteOffset(b, offset, element));
  return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base, wide,
                             LLVM::GEPNoWrapFlags::nusw |
                                 LLVM::GEPNoWrapFlags::nuw);
}

Value greta::rocdl::sharedAddress(ImplicitLocOpBuilder &b, Value array,
                                  Value index, tile::SharedType type) {
  auto move = [&](Value pointer, Value by) -> Value {
    return LLVM::GEPOp::create(
        b, array.getType(), type.getElementType(), pointer, by,
        LLVM::GEPNoWrapFlags::inbounds | LLVM::GEPNoWrapFlags::nuw);
  };
  // A constant comes last: LLVM would add it to the array's place, and could
  // not share what else there is to add.
  APInt constant;
  auto sum = index.getDefiningOp<LLVM::AddOp>();
  if (sum && matchPattern(sum.getRhs(), m_ConstantInt(&constant)) &&
      constant.isNonNegative())
    return move(move(array, sum.getLhs()), sum.getRhs());
  return move(array, index);
}

/// Returns the index of the lane in the workgroup, which has one axis.
static Value threadId(ImplicitLocOpBuilder &b, int32_t block) {
  auto range = LLVM::ConstantRangeAttr::get(b.getContext(), APInt(32, 0),
                                            APInt(32, block));
  return ROCDL::ThreadIdXOp::create(b, b.getI32Type(), range);
}

static void buildBarrier(tile::BarrierOp op, ImplicitLocOpBuilder &b) {
  // One fence for both memories: of two that differ only in this tag LLVM's
  // InstCombine drops one.
  Attribute localOnly =
      op.getGlobal() ? Attribute()
                     : LLVM::MMRATagAttr::get(b.getContext(),
                                              "amdgpu-synchronize-as", "local");
  std::optional<uint32_t> inFlight = op.getInFlight();
  auto fence = [&](LLVM::AtomicOrdering ordering) {
    auto fenceOp = LLVM::FenceOp::create(
        b, ordering, inFlight && localOnly ? "wavefront" : "workgroup");
    if (localOnly)
      fenceOp->setDiscardableAttr(LLVM::LLVMDialect::getMmraAttrName(),
                                  localOnly);
  };
  fence(LLVM::AtomicOrdering::release);
  if (inFlight) {
    // gfx9: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8.
    uint32_t count = std::min<uint32_t>(*inFlight, 63);
    ROCDL::SWaitcntOp::create(b, 0x70 | (count & 15) | (count >> 4) << 14);
  }
  ROCDL::SBarrierOp::create(b);
  fence(LLVM::AtomicOrdering::acquire);
}

/// Masks of llvm.amdgcn.sched.group.barrier, AMDGPUUsage.rst, in the order of
/// ScheduleKind.
static constexpr uint32_t scheduleMasks[] = {0x8, 0x100, 0x200, 0x20};

/// Converts an operand of a matrix instruction to the type that the intrinsic
/// takes. An MFMA that is older than LLVM's bfloat takes 16-bit integers.
static Value matrixOperand(StringRef name, Value value,
                           ImplicitLocOpBuilder &b) {
  auto type = cast<VectorType>(value.getType());
  bool isWmma = name.starts_with("wmma");
  bool takesBits =
      name.contains("bf16.1k") || (isWmma && name.contains("bf16"));
  Type to;
  // Bytes travel in words; MFMA takes eight of them as one integer.
  if (type.getElementTypeBitWidth() == 8) {
    unsigned bits = type.getNumElements() * 8;
    to = bits == 32              ? Type(b.getI32Type())
         : bits == 64 && !isWmma ? Type(b.getI64Type())
                                 : VectorType::get(bits / 32, b.getI32Type());
  } else if (type.getNumElements() == 1) {
    return LLVM::ExtractElementOp::create(b, value, constantI32(b, 0));
  } else if (takesBits && type.getElementType().isBF16()) {
    to = VectorType::get(type.getShape(), b.getI16Type());
  }
  return to ? LLVM::BitcastOp::create(b, to, value).getResult() : value;
}

static Value callIntrinsic(ImplicitLocOpBuilder &b, Type type,
                           const Twine &name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(
             b, type, b.getStringAttr("llvm.amdgcn." + name), operands)
      .getResult(0);
}

static void addIds(Lowerings &lowerings, const Kernel &kernel) {
  lowerings.add<tile::ProgramIdOp>([](auto op, auto, auto &b) -> Value {
    Type type = b.getI32Type();
    switch (op.getAxis()) {
    case 0:
      return ROCDL::BlockIdXOp::create(b, type);
    case 1:
      return ROCDL::BlockIdYOp::create(b, type);
    default:
      return ROCDL::BlockIdZOp::create(b, type);
    }
  });
  lowerings.add<tile::LaneIdOp>([&](auto op, auto, auto &b) -> Value {
    Value id = threadId(b, kernel.blockSize);
    if (kernel.blockSize == kernel.waveSize)
      return id;
    return LLVM::AndOp::create(b, id, constantI32(b, kernel.waveSize - 1));
  });
  lowerings.add<tile::WaveIdOp>([&](auto op, auto, auto &b) -> Value {
    Location loc = op.getLoc();
    if (kernel.blockSize == kernel.waveSize)
      return constantI32(b, 0);
    // The backend does not see that the quotient is the same in all lanes of
    // a wave; readfirstlane says so, and moves it to a scalar register.
    Value id = threadId(b, kernel.blockSize);
    id = LLVM::LShrOp::create(b, id,
                              constantI32(b, llvm::Log2_32(kernel.waveSize)));
    return ROCDL::ReadfirstlaneOp::create(b, b.getI32Type(), id);
  });
}

static void addSharedMemory(Lowerings &lowerings, const Kernel &kernel) {
  lowerings.add<tile::SharedAllocOp>([&](auto op, auto, auto &b) -> Value {
    auto [global, offset] = kernel.shared.at(op);
    Value begin = LLVM::AddressOfOp::create(b, global);
    if (!offset)
      return begin;
    return LLVM::GEPOp::create(b, begin.getType(), b.getI8Type(), begin,
                               ArrayRef<LLVM::GEPArg>{int32_t(offset)},
                               LLVM::GEPNoWrapFlags::inbounds |
                                   LLVM::GEPNoWrapFlags::nuw);
  });
  lowerings.add<tile::SharedStageOp>(
      [](auto, auto x, auto &) { return x.getArray(); });
  auto place = [](auto op, auto x, ImplicitLocOpBuilder &b) {
    return sharedAddress(b, x.getArray(), x.getIndex(),
                         op.getArray().getType());
  };
  lowerings.add<tile::SharedLoadOp>([&, place](auto op, auto x, auto &b) {
    if (op.getTransposed())
      return loadTransposed<ROCDL::ds_read_tr16_b64, ROCDL::ds_read_tr8_b64>(
          b, op.getResult().getType(), place(op, x, b),
          [&](auto load) { kernel.setUndirect(load); });
    auto load =
        LLVM::LoadOp::create(b, op.getResult().getType(), place(op, x, b));
    kernel.setUndirect(load);
    return Value(load);
  });
  lowerings.add<tile::SharedStoreOp>([&, place](auto op, auto x, auto &b) {
    kernel.setUndirect(LLVM::StoreOp::create(b, x.getValue(), place(op, x, b)));
    return Value();
  });
  lowerings.add<tile::SharedAddOp>([place](auto op, auto x, auto &b) {
    LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::add, place(op, x, b),
                              x.getValue(), LLVM::AtomicOrdering::monotonic,
                              "workgroup");
    return Value();
  });
}

/// Instructions of all of a wave's lanes, and of the workgroup.
static void addWaveInstructions(Lowerings &lowerings, const Kernel &kernel) {
  lowerings.add<tile::AnyOp>([&](auto op, auto x, auto &b) -> Value {
    Type mask = b.getIntegerType(kernel.waveSize);
    Value lanes = ROCDL::BallotOp::create(b, mask, x.getCondition());
    Value none = LLVM::ConstantOp::create(b, mask, 0);
    Value any = LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ne, lanes, none);
    Value rare = LLVM::ConstantOp::create(b, b.getI1Type(), false);
    return LLVM::ExpectOp::create(b, any, rare);
  });
  lowerings.add<tile::BarrierOp>([](auto op, auto, auto &b) -> Value {
    buildBarrier(op, b);
    return {};
  });
  lowerings.add<tile::ScheduleGroupOp>([](auto op, auto, auto &b) -> Value {
    ROCDL::SchedGroupBarrier::create(b, scheduleMasks[int(op.getKind())],
                                     op.getCount(), 0);
    return {};
  });
  lowerings.add<tile::MmaOp>([](auto op, auto x, auto &b) -> Value {
    StringRef name = op.getIntrinsic();
    SmallVector<Value> operands = {matrixOperand(name, x.getA(), b),
                                   matrixOperand(name, x.getB(), b),
                                   x.getAcc()};
    auto flag = [&](bool value) -> Value {
      return LLVM::ConstantOp::create(b, b.getI1Type(), value);
    };
    // MFMA takes three immediates that permute blocks (ISA guides of CDNA,
    // "MFMA broadcast"): none here.
    if (name.starts_with("mfma"))
      operands.append(3, constantI32(b, 0));
    else if (name.contains("iu8")) // signed A, signed B, no clamp
      operands = {flag(true),  operands[0], flag(true),
                  operands[1], operands[2], flag(false)};
    return callIntrinsic(b, x.getAcc().getType(), name, operands);
  });
  lowerings.add<tile::VectorDotOp>([](auto, auto x, auto &b) -> Value {
    Value saturates = LLVM::ConstantOp::create(b, b.getI1Type(), false);
    return callIntrinsic(b, b.getF32Type(), "fdot2",
                         {x.getA(), x.getB(), x.getAcc(), saturates});
  });
}

namespace {
/// Chooses between bytes of up to two registers as integers. Between vectors
/// LLVM may choose for the larger vector that they become a part of, which
/// gfx11's instruction selection gets wrong (docs/internals/
/// llvm-workarounds.md).
struct SelectBytes : ConvertOpToLLVMPattern<arith::SelectOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(arith::SelectOp op, OpAdaptor x,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(x.getTrueValue().getType());
    if (!type || !type.getElementType().isInteger(8) || type.getRank() != 1 ||
        type.getNumElements() > 8 ||
        isa<VectorType>(x.getCondition().getType()))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto whole = b.getIntegerType(8 * type.getNumElements());
    auto bits = [&](Value value) {
      return LLVM::BitcastOp::create(b, whole, value);
    };
    Value chosen = LLVM::SelectOp::create(
        b, x.getCondition(), bits(x.getTrueValue()), bits(x.getFalseValue()));
    rewriter.replaceOpWithNewOp<LLVM::BitcastOp>(op, type, chosen);
    return success();
  }
};
} // namespace

void greta::rocdl::populateLanePatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const Kernel &kernel) {
  Lowerings lowerings(converter, patterns);
  addIds(lowerings, kernel);
  addSharedMemory(lowerings, kernel);
  addWaveInstructions(lowerings, kernel);
  patterns.add<SelectBytes>(converter, /*benefit=*/2);
  lowerings.add<tile::PtrStoreOp>([](auto op, auto x, auto &b) -> Value {
    Value address = laneAddress(b, x.getBase(), x.getOffset(),
                                op.getBase().getType().getElementType());
    LLVM::StoreOp::create(b, x.getValue(), address, op.getAlign());
    return {};
  });
  lowerings.add<tile::ReturnOp>([](auto, auto, auto &b) -> Value {
    LLVM::ReturnOp::create(b, ValueRange());
    return {};
  });
}
