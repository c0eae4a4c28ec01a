//===- TileToROCDLShuffle.cpp - exchange between lanes on AMDGPU ----------===//
//
// shuffle_xor by what each mask costs:
//
//   mask        gfx9                                gfx11, gfx12
//   1..3        quad_perm (DPP)                     quad_perm (DPP)
//   4..15       half_mirror (^7), mirror (^15) or   row_xmask (DPP)
//               ror:8 (^8), then quad_perm
//   16..31      ds_swizzle                          v_permlanex16
//   32          v_permlane32_swap on gfx950,
//               else ds_bpermute
//   33..63      as 32; on gfx950 the rest follows
//
// An op that combines a value with that of the other half of the wave, in
// either order, takes both from v_permlane32_swap as it leaves them.
//
// A DPP move costs one instruction or none (it merges with the arithmetic that
// uses it); ds_* go through the LDS unit without touching memory.
//
//===----------------------------------------------------------------------===//

#include "TileToROCDL.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace greta;
using namespace greta::rocdl;

namespace {

/// DPP controls, as encoded in the instruction.
enum DppControl : uint32_t {
  quadPerm = 0x000,
  rowRor = 0x120,
  rowMirror = 0x140,
  rowHalfMirror = 0x141,
  rowXmask = 0x160,
};

/// Swaps a register with itself by v_permlane32_swap. Returns its low half
/// twice, and its high half twice.
std::pair<Value, Value> bothHalves(ImplicitLocOpBuilder &b, Value word) {
  Type i32Type = b.getI32Type();
  Type pair =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32Type, i32Type});
  Value halves = ROCDL::Permlane32SwapOp::create(
      b, pair, word, word, /*fi=*/false, /*boundControl=*/false);
  return {LLVM::ExtractValueOp::create(b, halves, 0),
          LLVM::ExtractValueOp::create(b, halves, 1)};
}

class WordShuffle {
public:
  WordShuffle(ImplicitLocOpBuilder &b, const LaneExchange &exchange)
      : b(b), exchange(exchange) {}

  /// Returns the 32-bit word of the lane whose id differs by `mask`.
  Value byXor(Value word, uint32_t mask) {
    if (mask >= 32) {
      if (!exchange.permlane32Swap)
        return fromLane(word, LLVM::XOrOp::create(b, laneId(), i32(mask)));
      word = swapHalves(word);
      mask -= 32;
    }
    if (mask == 0)
      return word;
    if (mask >= 16)
      return exchange.rowXmask ? swapRows(word, mask & 15)
                               : swizzle(word, mask);
    if (mask < 4)
      return withinQuad(word, mask);
    if (exchange.rowXmask)
      return dpp(word, rowXmask | mask);
    return withinRow(word, mask);
  }

  /// Returns the word of the lane with the given id.
  Value fromLane(Value word, Value lane) {
    // ds_bpermute counts bytes.
    Value address = LLVM::ShlOp::create(b, lane, i32(2));
    return ROCDL::DsBpermuteOp::create(b, b.getI32Type(), address, word);
  }

private:
  Value i32(int32_t value) { return constantI32(b, value); }

  Value laneId() {
    Value ones = i32(-1);
    Value id = ROCDL::MbcntLoOp::create(b, b.getI32Type(), ones, i32(0),
                                        /*arg_attrs=*/nullptr,
                                        /*res_attrs=*/nullptr);
    if (exchange.waveSize == 64)
      id = ROCDL::MbcntHiOp::create(b, b.getI32Type(), ones, id,
                                    /*arg_attrs=*/nullptr,
                                    /*res_attrs=*/nullptr);
    return id;
  }

  Value dpp(Value word, uint32_t control) {
    Value old = LLVM::PoisonOp::create(b, word.getType());
    return ROCDL::DPPUpdateOp::create(b, word.getType(), old, word, control,
                                      /*rowMask=*/0xf, /*bankMask=*/0xf,
                                      /*boundCtrl=*/true);
  }

  Value withinQuad(Value word, uint32_t mask) {
    uint32_t control = quadPerm;
    for (uint32_t lane = 0; lane < 4; ++lane)
      control |= (lane ^ mask) << (2 * lane);
    return dpp(word, control);
  }

  /// Does masks 4 to 15 on chips without row_xmask.
  Value withinRow(Value word, uint32_t mask) {
    static const std::pair<uint32_t, uint32_t> moves[] = {
        {7, rowHalfMirror}, {8, rowRor | 8}, {15, rowMirror}};
    for (auto [moved, control] : moves)
      if ((moved ^ mask) < 4) {
        word = dpp(word, control);
        return moved == mask ? word : withinQuad(word, moved ^ mask);
      }
    llvm_unreachable("7, 8 and 15 reach every mask from 4 to 15");
  }

  /// Does any mask below 32, by ds_swizzle in bit mode: xor mask << 10, and
  /// mask 31.
  Value swizzle(Value word, uint32_t mask) {
    return ROCDL::DsSwizzleOp::create(b, b.getI32Type(), word,
                                      i32(mask << 10 | 0x1f));
  }

  /// Every lane reads from the other row of its pair of rows; the selectors
  /// name a lane of that row in four bits for each lane.
  Value swapRows(Value word, uint32_t maskInRow) {
    uint64_t selectors = 0;
    for (uint64_t lane = 0; lane < 16; ++lane)
      selectors |= (lane ^ maskInRow) << (4 * lane);
    Value old = LLVM::PoisonOp::create(b, word.getType());
    return ROCDL::PermlaneX16Op::create(
        b, word.getType(), old, word, i32(static_cast<int32_t>(selectors)),
        i32(static_cast<int32_t>(selectors >> 32)), /*fi=*/true,
        /*boundControl=*/false);
  }

  /// Each lane takes the half that it is not in.
  Value swapHalves(Value word) {
    auto [low, high] = bothHalves(b, word);
    Value inLow =
        LLVM::ICmpOp::create(b, LLVM::ICmpPredicate::ult, laneId(), i32(32));
    return LLVM::SelectOp::create(b, inLow, high, low);
  }

  ImplicitLocOpBuilder &b;
  const LaneExchange &exchange;
};

/// Applies `exchange` to a scalar of any type, one 32-bit word at a time.
Value forEachWord(ImplicitLocOpBuilder &b, Value value,
                  llvm::function_ref<Value(Value)> exchange) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Type bits = b.getIntegerType(width);
  if (type != bits)
    value = LLVM::BitcastOp::create(b, bits, value);
  Type word = b.getI32Type();
  Value result;
  if (width < 32) {
    result = exchange(LLVM::ZExtOp::create(b, word, value));
    result = LLVM::TruncOp::create(b, bits, result);
  } else if (width == 32) {
    result = exchange(value);
  } else {
    Type words = VectorType::get(width / 32, word);
    Value vector = LLVM::BitcastOp::create(b, words, value);
    result = LLVM::PoisonOp::create(b, words);
    for (unsigned i = 0; i < width / 32; ++i) {
      Value index = LLVM::ConstantOp::create(b, word, i);
      Value part = LLVM::ExtractElementOp::create(b, vector, index);
      result = LLVM::InsertElementOp::create(b, result, exchange(part), index);
    }
    result = LLVM::BitcastOp::create(b, bits, result);
  }
  if (type != bits)
    result = LLVM::BitcastOp::create(b, type, result);
  return result;
}

} // namespace

void greta::rocdl::combineHalves(Operation *kernel, const TargetRow &row) {
  if (!row.hasFeature("permlane32_swap"))
    return;
  kernel->walk([](tile::ShuffleXorOp shuffle) {
    Value value = shuffle.getValue();
    Operation *user = shuffle->hasOneUse() ? *shuffle->user_begin() : nullptr;
    if (shuffle.getMask() != 32 || !user ||
        value.getType().getIntOrFloatBitWidth() != 32 ||
        !user->hasTrait<OpTrait::IsCommutative>() ||
        user->getNumOperands() != 2 ||
        !llvm::is_contained(user->getOperands(), value))
      return;
    ImplicitLocOpBuilder b(user->getLoc(), user);
    auto [low, high] =
        bothHalves(b, b.createOrFold<arith::BitcastOp>(b.getI32Type(), value));
    user->setOperands(
        {b.createOrFold<arith::BitcastOp>(value.getType(), low),
         b.createOrFold<arith::BitcastOp>(value.getType(), high)});
    shuffle.erase();
  });
}

void greta::rocdl::populateShufflePatterns(const LLVMTypeConverter &converter,
                                           RewritePatternSet &patterns,
                                           const LaneExchange &exchange) {
  Lowerings lowerings(converter, patterns);
  lowerings.add<tile::ShuffleXorOp>([exchange](auto op, auto x, auto &b) {
    return forEachWord(b, x.getValue(), [&](Value word) {
      return WordShuffle(b, exchange).byXor(word, op.getMask());
    });
  });
  lowerings.add<tile::ShuffleOp>([exchange](auto, auto x, auto &b) {
    return forEachWord(b, x.getValue(), [&](Value word) {
      return WordShuffle(b, exchange).fromLane(word, x.getLane());
    });
  });
}
