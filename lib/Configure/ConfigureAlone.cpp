//===- ConfigureAlone.cpp - tiles of attention and of updates -------------===//
//
// In: the space of an op that has its kernel to itself, and a target row. Out:
// how many waves a workgroup has, and its tiles.
//
// Attention takes the largest tile of queries, then of keys, whose blocks leave
// a lane some of its registers: queries, logits and the result are kept, keys
// and values come and go. Few queries of heads that read the same keys are one
// tile. An update's workgroup takes some rows of 8 elements a lane.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "greta/Tile/MatrixInstructions.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;

/// Lanes of a workgroup: those that stand for waves where lanes exchange
/// nothing are 32 to each.
static int64_t lanesOf(int64_t waves, const Limits &limits) {
  return waves * (limits.wave == 1 ? 32 : limits.wave);
}

static KernelConfig chooseUpdate(const Space &space, const Limits &limits) {
  constexpr int64_t elements = 8;
  KernelConfig config;
  config.waves = std::max<int64_t>(1, limits.shareBlock / lanesOf(1, limits));
  SpaceConfig &chosen = config.spaces.emplace_back();
  chosen.columns = llvm::PowerOf2Ceil(
      cast<AffineConstantExpr>(space.shape.back()).getValue());
  chosen.rows = {std::max<int64_t>(1, lanesOf(config.waves, limits) * elements /
                                          chosen.columns)};
  return config;
}

namespace {
/// A tile of queries and one of keys, of heads of `size` elements.
struct Blocks {
  int64_t queries, keys, size, bits;

  /// Of a lane, in 32 bits.
  int64_t registers(int64_t lanes) const {
    int64_t wide = queries * size + 2 * queries * keys;
    int64_t narrow = queries * size + keys * size;
    return (wide + narrow * bits / 32) / lanes;
  }
  /// Of shared memory, with padding: queries, keys and values pass through it,
  /// and weights of f32, whose operands no lane has where it sums.
  int64_t bytes() const {
    int64_t elements = queries * size + 2 * keys * size;
    if (bits == 32)
      elements += queries * keys;
    return elements * bits / 8 * 17 / 16;
  }
};
} // namespace

static KernelConfig chooseAttention(const Space &space, const Limits &limits) {
  RankedTensorType type = queryTypeOf(space.alone);
  auto keys = cast<RankedTensorType>(space.alone->getOperand(1).getType());
  bool isPaged = isa<PagedAttentionOp>(space.alone);
  int64_t size = type.getDimSize(3);
  int64_t shared = type.getDimSize(1) / keys.getDimSize(isPaged ? 2 : 1);
  Type element = type.getElementType();
  int64_t leastRows = 0; // of an instruction; 0: there is none
  for (const MatrixInstruction *mi :
       instructionsFor(element, element, limits.matrix, limits.row))
    if (mi->accLayout.isKnown() && size % mi->n == 0 && size % mi->k == 0 &&
        (!leastRows || mi->m < leastRows))
      leastRows = mi->m;
  bool hasMatrix = leastRows > 0;
  KernelConfig config;
  config.waves = 4;
  // Lanes stand in a square: eight to a row where columns are odd eighths.
  if (!hasMatrix && size % 16)
    config.waves = std::max<int64_t>(1, 64 / lanesOf(1, limits));
  int64_t lanes = lanesOf(config.waves, limits);
  int64_t available = limits.wide ? limits.row.vgprs.perWave * 3 / 5 : 256;
  // Multiply-adds are unrolled: larger tiles are too much code.
  int64_t mostRows = limits.wide && hasMatrix ? 128 : 16;
  int64_t mostKeys = limits.wide && hasMatrix ? 64 : 16;
  SpaceConfig &chosen = config.spaces.emplace_back();
  // Few queries: heads that read the same keys together.
  int64_t few = type.getDimSize(2), heads = 1;
  if (!type.isDynamicDim(2) && few <= 16) {
    heads = llvm::PowerOf2Ceil(shared);
    mostRows = std::min<int64_t>(mostRows, llvm::PowerOf2Ceil(few) * heads);
  }
  constexpr int64_t least = 16; // what every matrix instruction divides
  mostRows = std::max(mostRows, least);
  Blocks blocks{mostRows, mostKeys, size, type.getElementTypeBitWidth()};
  auto fits = [&](const Blocks &blocks) {
    return blocks.registers(lanes) <= available &&
           blocks.bytes() <= limits.ldsBytes;
  };
  auto withFewestKeys = [&] {
    Blocks fewest = blocks;
    fewest.keys = std::max(least, mostKeys / 2);
    return fewest;
  };
  while (blocks.queries > least && !fits(withFewestKeys()))
    blocks.queries /= 2;
  while (blocks.keys > least && !fits(blocks))
    blocks.keys /= 2;
  // A wave has rows of its own.
  if (hasMatrix)
    config.waves =
        std::clamp<int64_t>(blocks.queries / leastRows, 1, config.waves);
  chosen.rows = {1, heads, std::max<int64_t>(1, blocks.queries / heads)};
  chosen.columns = size;
  chosen.depth = blocks.keys;
  return config;
}

KernelConfig greta::chooseAlone(const Space &space, const Limits &limits) {
  return getUpdatedCache(space.alone) ? chooseUpdate(space, limits)
                                      : chooseAttention(space, limits);
}
