//===- ConfigureAlone.cpp - tiles of attention and of updates -------------===//
//
// In: the space of an op that has its kernel to itself, and a target row. Out:
// how many waves a workgroup has, and its tiles.
//
// Attention takes the largest tile of queries, then of keys, whose blocks leave
// a lane some of its registers: queries, logits and the result are kept, keys
// and values come and go. An update's workgroup takes some rows of 8 elements a
// lane.
//
// Few queries are limited by loading keys. Those of heads that read the same
// keys are one tile; the waves of a workgroup have keys of their own, which go
// straight to their registers, and the keys are split over as many workgroups
// as give every SIMD a wave (on the H200 28.7 microseconds for 16384 keys of
// eight heads, with twice as many 34.5).
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
  int64_t copies;   // that lanes have of an operand's elements
  int64_t perLogit; // what is computed at a time

  /// Of a lane, in 32 bits: the result and logits; queries, keys and values.
  int64_t registers(int64_t lanes, bool ofWave) const {
    int64_t columns = llvm::PowerOf2Ceil(size);
    int64_t wide = queries * (columns + perLogit * keys);
    int64_t narrow =
        columns * (copies * queries + 2 * (ofWave ? copies : 1) * keys);
    return (wide + narrow * bits / 32) / lanes;
  }
  /// Of shared memory, with padding: keys and values pass through it, and
  /// weights of f32, whose operands no lane has where it sums.
  int64_t bytes() const {
    int64_t elements = 2 * keys * size;
    if (bits == 32)
      elements += queries * keys;
    return elements * bits / 8 * 17 / 16;
  }
};
} // namespace

static bool hasMaskOperand(Operation *op) {
  auto attention = dyn_cast<AttentionOp>(op);
  return attention && attention.getMask();
}

namespace {
/// The rows of the smallest instruction, 0: there is none, and the copies that
/// lanes have of its operands' elements.
struct OfInstruction {
  int64_t rows = 0, copies = 1;
};
} // namespace

/// For heads of `size` elements.
static OfInstruction instructionOf(Type element, int64_t size,
                                   const Limits &limits) {
  OfInstruction found;
  for (const MatrixInstruction *mi :
       instructionsFor(element, element, limits.matrix, limits.row))
    if (mi->accLayout.isKnown() && size % mi->n == 0 && size % mi->k == 0 &&
        (!found.rows || mi->m < found.rows))
      found = {mi->m, copiesInLanes(*mi)};
  return found;
}

/// Of a lane's registers; drivers need fewer beside.
static int64_t availableRegisters(const Limits &limits) {
  const RegisterFile &file = limits.row.vgprs;
  int64_t available = !limits.wide               ? 256
                      : limits.row.isVulkan()    ? file.perWave * 19 / 20
                      : limits.row.agprs.perWave ? file.perWave * 3 / 4
                                                 : file.perWave * 13 / 20;
  return available - limits.spareRegisters;
}

static KernelConfig chooseAttention(const Space &space, const Limits &limits) {
  RankedTensorType type = queryTypeOf(space.alone);
  auto keys = cast<RankedTensorType>(space.alone->getOperand(1).getType());
  bool isPaged = isa<PagedAttentionOp>(space.alone);
  int64_t size = type.getDimSize(3);
  int64_t shared = type.getDimSize(1) / keys.getDimSize(isPaged ? 2 : 1);
  Type element = type.getElementType();
  auto [leastRows, copies] = instructionOf(element, size, limits);
  bool hasMatrix = leastRows > 0;
  KernelConfig config;
  config.waves = hasMatrix && limits.wide ? 8 : 4;
  // Lanes stand in a square: eight to a row where columns are odd eighths.
  if (!hasMatrix && size % 16)
    config.waves = std::max<int64_t>(1, 64 / lanesOf(1, limits));
  int64_t lanes = lanesOf(config.waves, limits);
  int64_t available = availableRegisters(limits);
  // On the H200 twice the rows for a wave are faster where heads have 64
  // elements: 291 and 257 TFLOP/s. Multiply-adds are unrolled: larger tiles are
  // too much code.
  int64_t rowsOfLane = limits.row.isVulkan() && size <= 64 ? 2 : 1;
  int64_t mostRows = limits.wide && hasMatrix ? lanes * rowsOfLane / 2 : 16;
  int64_t mostKeys = limits.wide && hasMatrix ? 64 : 16;
  SpaceConfig &chosen = config.spaces.emplace_back();
  // Few queries: heads that read the same keys together.
  int64_t few = type.getDimSize(2), heads = 1;
  bool isFew = !type.isDynamicDim(2) && few <= 16;
  if (isFew) {
    heads = llvm::PowerOf2Ceil(shared);
    mostRows = std::min<int64_t>(mostRows, llvm::PowerOf2Ceil(few) * heads);
    config.waves = std::min<int64_t>(config.waves, 4);
    lanes = lanesOf(config.waves, limits);
  }
  const int64_t least = hasMatrix ? 16 : 8; // what every instruction divides
  mostRows = std::max(mostRows, least);
  // Logits and weights; where some are left out, what they are compared by.
  bool hasMask = space.alone->hasAttr("window") || hasMaskOperand(space.alone);
  int64_t perLogit = 1 + copies + 2 * hasMask;
  Blocks blocks{mostRows, least,   size, type.getElementTypeBitWidth(),
                copies,   perLogit};
  while (blocks.queries > least && blocks.bytes() > limits.ldsBytes)
    blocks.queries /= 2;
  Blocks ofWave = blocks;
  for (Blocks more = blocks; more.keys < mostKeys; blocks = more) {
    more.keys *= 2;
    if (more.registers(lanes, /*ofWave=*/false) > available ||
        more.bytes() > limits.ldsBytes)
      break;
  }
  auto fitsWave = [&](double share) {
    return ofWave.registers(lanesOf(1, limits), /*ofWave=*/true) <=
           share * limits.row.vgprs.perWave;
  };
  // Their results of f32 meet in shared memory, with a row's sums.
  int64_t meeting = 4 * ofWave.queries * (size + 8);
  int64_t together = std::min<int64_t>(
      4, llvm::bit_floor<uint64_t>(limits.ldsBytes / meeting));
  if (isFew && limits.wide && hasMatrix && together > 1 && fitsWave(0.75)) {
    // Waves have keys of their own. Drivers order loads as registers allow: on
    // the H200 32 keys are a quarter faster than 16.
    blocks = ofWave;
    ofWave.keys *= 2;
    if (fitsWave(limits.row.isVulkan() ? 1.05 : 0.375))
      blocks = ofWave;
    config.waves = chosen.unroll = together;
  } else if (hasMatrix && !isFew) {
    // Waves have rows of their own.
    config.waves =
        std::clamp<int64_t>(blocks.queries / leastRows, 1, config.waves);
  }
  if (isFew)
    chosen.split =
        std::clamp<int64_t>(limits.simds / config.waves, 1, mostSplit);
  chosen.rows = {1, heads, std::max<int64_t>(1, blocks.queries / heads)};
  chosen.columns = size;
  chosen.depth = blocks.keys;
  return config;
}

/// Rows that a workgroup adds up, as many to a wave as an instruction has: they
/// stay in its registers with the sums. Then the largest tile of others, of
/// which shared memory has both orders.
static KernelConfig chooseBackward(const Space &space, const Limits &limits) {
  RankedTensorType type = queryTypeOf(space.alone);
  int64_t size = type.getDimSize(3), bits = type.getElementTypeBitWidth();
  OfInstruction instruction =
      instructionOf(type.getElementType(), size, limits);
  int64_t leastRows = instruction.rows, copies = instruction.copies;
  bool hasMatrix = leastRows > 0, isWide = limits.wide && hasMatrix;
  KernelConfig config;
  config.waves = isWide ? 8 : 4;
  if (!hasMatrix && size % 16)
    config.waves = std::max<int64_t>(1, 64 / lanesOf(1, limits));
  const int64_t least = hasMatrix ? 16 : 8;
  int64_t rows = isWide ? config.waves * leastRows : 16, others = least;
  int64_t sums = isOfKeys(space.alone) ? 2 : 1;
  auto bytes = [&](int64_t others) {
    int64_t elements =
        (2 + sums) * others * size + (hasMatrix ? 0 : rows * others);
    return elements * bits / 8 * 17 / 16;
  };
  while (rows > least && bytes(others) > limits.ldsBytes)
    rows /= 2;
  if (hasMatrix)
    config.waves = std::clamp<int64_t>(rows / leastRows, 1, config.waves);
  int64_t lanes = lanesOf(config.waves, limits);
  auto registers = [&](int64_t others) {
    int64_t columns = llvm::PowerOf2Ceil(size);
    int64_t wide = rows * (sums * columns + 2 * others);
    int64_t narrow =
        copies * rows * (2 * columns + sums * others) + 2 * others * columns;
    return (wide + narrow * bits / 32) / lanes;
  };
  int64_t available = availableRegisters(limits);
  while (others < (isWide ? 64 : 16) && registers(2 * others) <= available &&
         bytes(2 * others) <= limits.ldsBytes)
    others *= 2;
  SpaceConfig &chosen = config.spaces.emplace_back();
  chosen.rows = {1, 1, rows};
  chosen.columns = size;
  chosen.depth = others;
  return config;
}

FailureOr<KernelConfig> greta::chooseAlone(const Space &space,
                                           const Limits &limits) {
  if (getUpdatedCache(space.alone))
    return chooseUpdate(space, limits);
  bool isBackward = isa<AttentionBackwardOp>(space.alone);
  KernelConfig config = isBackward ? chooseBackward(space, limits)
                                   : chooseAttention(space, limits);
  // A family's variant without matrix instructions keeps the choice.
  if (limits.matrix.empty() && !limits.row.matrix.empty())
    return config;
  FailureOr<DictionaryAttr> asked = configFor(space.alone, limits.row);
  if (failed(asked))
    return failure();
  if (*asked)
    if (std::optional<std::string> why =
            applyConfig(config, *asked, isBackward))
      return space.alone->emitOpError("has a 'greta.config' ") << *why;
  return config;
}
