//===- ConfigureAlone.cpp - tiles of attention and of updates -------------===//
//
// In: the space of an op that has its kernel to itself, and a target row. Out:
// how many waves a workgroup has, and its tiles.
//
// Attention takes the largest tile of queries, then of keys, whose blocks leave
// a lane some of its registers: queries, logits and the result are kept, keys
// and values come and go. If not even the least tile of keys fits, or spills
// ask for more registers (lib/Package/Hip.cpp), queries are read from shared
// memory where they are multiplied. An update's workgroup takes some rows of 8
// elements a lane.
//
// Few queries are limited by loading keys. Queries of heads that read the same
// keys are one tile; the waves of a workgroup have keys of their own, which go
// straight to their registers, and the keys are split over as many workgroups
// as give every SIMD its waves.
//
//===----------------------------------------------------------------------===//

#include "Configure.h"
#include "greta/Tile/MatrixInstructions.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace greta;

/// An update's elements of a lane.
static constexpr int64_t elementsOfUpdate = 8;

/// With matrix instructions on a GPU: waves of a workgroup, those at most whose
/// keys are parts of a query's, and the keys that it goes over at a time.
static constexpr int64_t wavesOfMatrix = 8, wavesThatMeet = 4,
                         keysOfMatrix = 64;

/// Without matrix instructions, or registers to fill: waves of a workgroup, its
/// rows, and the keys that it goes over at a time. Lanes multiply and add code
/// that is unrolled.
static constexpr int64_t wavesOfSimt = 4, rowsOfSimt = 16, keysOfSimt = 16;

/// The least extent of a tile: with matrix instructions one that each of them
/// divides.
static constexpr int64_t leastOfMatrix = 16, leastOfSimt = 8;

/// Registers of a lane where the device is a CPU, whose driver has no limit.
static constexpr int64_t registersOfCpu = 256;

/// Elements of a head up to which it is small, and from which it is large.
static constexpr int64_t smallHead = 64, largeHead = 256;

/// Lanes of a workgroup: those that stand for waves where lanes exchange
/// nothing are 32 to each.
static int64_t lanesOf(int64_t waves, const Limits &limits) {
  return waves * (limits.wave == 1 ? 32 : limits.wave);
}

/// Bytes of shared memory that elements of so many bits take with the padding
/// of their rows.
static int64_t paddedBytes(int64_t elements, int64_t bits) {
  return elements * bits / 8 * 17 / 16;
}

static Choice chooseUpdate(const Space &space, const Limits &limits) {
  Choice choice;
  choice.tile.waves =
      std::max<int64_t>(1, limits.shareBlock / lanesOf(1, limits));
  choice.space.columns = llvm::PowerOf2Ceil(
      cast<AffineConstantExpr>(space.shape.back()).getValue());
  int64_t elements = lanesOf(choice.tile.waves, limits) * elementsOfUpdate;
  choice.space.rows = {std::max<int64_t>(1, elements / choice.space.columns)};
  return choice;
}

namespace {
/// A tile of queries and one of keys, of heads of `size` elements.
struct Blocks {
  int64_t queries, keys, size, bits;
  int64_t copies;        // that lanes have of an operand's elements
  int64_t perLogit;      // what is computed at a time, in f32
  bool inShared = false; // queries

  /// Registers of a lane, of 32 bits: the result and logits; queries, keys and
  /// values, and weights.
  int64_t registers(int64_t lanes, bool ofWave) const {
    int64_t columns = llvm::PowerOf2Ceil(size);
    int64_t wide = queries * (columns + perLogit * keys);
    int64_t ofQueries = inShared ? 0 : copies * queries;
    int64_t narrow = columns * (ofQueries + 2 * (ofWave ? copies : 1) * keys) +
                     copies * queries * keys;
    return (wide + narrow * bits / 32) / lanes;
  }
  /// Bytes of shared memory, with padding: keys and values pass through it, and
  /// weights of f32, whose operands no lane has where it sums.
  int64_t bytes() const {
    int64_t elements = (2 * keys + (inShared ? queries : 0)) * size;
    if (bits == 32)
      elements += queries * keys;
    return paddedBytes(elements, bits);
  }
};
} // namespace

static bool hasMaskOperand(Operation *op) {
  auto attention = dyn_cast<AttentionOp>(op);
  return attention && attention.getMask();
}

/// Whether each key, or each value, has a scale of its own.
static bool hasScales(Operation *op) {
  auto has = [&](auto attention) {
    return differByKey(op, attention.getKScale()) ||
           differByKey(op, attention.getVScale());
  };
  if (auto attention = dyn_cast<AttentionOp>(op))
    return has(attention);
  return has(cast<PagedAttentionOp>(op));
}

namespace {
/// The rows of the smallest instruction, 0: there is none, and the copies that
/// lanes have of its operands' elements.
struct OfInstruction {
  int64_t rows = 0, copies = 1;
  bool isLoadedWhole = false; // by drivers
};
} // namespace

/// For heads of `size` elements; `inRegisters`: operands come there, as those
/// of few queries do.
static OfInstruction instructionOf(Type element, int64_t size,
                                   const Limits &limits,
                                   bool inRegisters = false) {
  OfInstruction found;
  for (const MatrixInstruction *mi : instructionsFor(
           element, element, limits.matrix, limits.row, inRegisters))
    if (mi->accLayout.isKnown() && size % mi->n == 0 && size % mi->k == 0 &&
        (!found.rows || mi->m < found.rows))
      found = {mi->m, copiesInLanes(*mi),
               mi->name == "coopmat" && !limits.row.loadsElements(*mi)};
  return found;
}

/// The `share` of a lane's registers.
static int64_t availableRegisters(const Limits &limits, double share) {
  int64_t available =
      limits.wide ? limits.row.vgprs.perWave * share : registersOfCpu;
  return available - limits.spareRegisters;
}

/// The columns of a block that has a head's elements in each row: whole tiles
/// of every instruction, and lanes in a square without any. Large heads take
/// powers of two more: 264 as 272 spilled up to 195 registers on gfx942, as 320
/// none.
static int64_t columnsOf(RankedTensorType queries) {
  int64_t size = queries.getDimSize(3);
  return llvm::alignTo(size, size <= largeHead ? 16 : 64);
}

static Choice chooseAttention(const Space &space, const Limits &limits) {
  RankedTensorType type = queryTypeOf(space.alone);
  auto keys = cast<RankedTensorType>(space.alone->getOperand(1).getType());
  bool isPaged = isa<PagedAttentionOp>(space.alone);
  int64_t size = columnsOf(type);
  int64_t shared = type.getDimSize(1) / keys.getDimSize(isPaged ? 2 : 1);
  Type element = type.getElementType();
  // Few queries: heads that read the same keys together.
  int64_t count = expectedQueries(space.alone);
  bool isFew = !ShapedType::isDynamic(count) && count <= mostFewQueries;
  int64_t heads = isFew ? llvm::PowerOf2Ceil(shared) : 1;
  int64_t rowsOfFew = heads;
  if (isFew) // there may be none
    rowsOfFew *= llvm::PowerOf2Ceil(std::max<int64_t>(1, count));
  bool isSmall = isFew && rowsOfFew <= leastOfSimt;
  auto [leastRows, copies, isLoadedWhole] =
      instructionOf(element, size, limits, /*inRegisters=*/isSmall);
  bool isWide = limits.wide && leastRows > 0;
  const AttentionFacts &facts = limits.row.tiles.attention;
  Choice choice;
  Tile &tile = choice.tile;
  // Multiply-adds are unrolled: larger tiles are too much code.
  int64_t tilesOfWave = size <= smallHead ? facts.tilesOfSmall : 1;
  tile.waves = isWide ? wavesOfMatrix / tilesOfWave : wavesOfSimt;
  int64_t lanes = lanesOf(tile.waves, limits);
  int64_t available = availableRegisters(limits, facts.vgprs);
  int64_t mostRows = isWide ? lanes * tilesOfWave / 2 : rowsOfSimt;
  int64_t mostKeys = isWide ? keysOfMatrix : keysOfSimt;
  if (isFew) {
    mostRows = std::min(mostRows, rowsOfFew);
    tile.waves = std::min<int64_t>(tile.waves, wavesThatMeet);
    lanes = lanesOf(tile.waves, limits);
    mostKeys = std::min<int64_t>(mostKeys, facts.keysOfFew);
  }
  const int64_t leastKeys = leastRows ? leastOfMatrix : leastOfSimt;
  const int64_t least =
      isSmall && leastRows <= leastOfSimt ? leastOfSimt : leastKeys;
  mostRows = std::max(mostRows, least);
  // Logits; where some are left out, what they are compared by; where tokens
  // have scales, these.
  bool hasMask = space.alone->hasAttr("window") || hasMaskOperand(space.alone);
  int64_t perLogit = 1 + 2 * hasMask + hasScales(space.alone);
  Blocks blocks{mostRows, leastKeys, size, type.getElementTypeBitWidth(),
                copies,   perLogit};
  while (blocks.queries > least && blocks.bytes() > limits.ldsBytes)
    blocks.queries /= 2;
  Blocks ofWave = blocks;
  // No tile of keys leaves registers for queries.
  if (isWide && !isFew && facts.wholeOperands && !isLoadedWhole &&
      blocks.registers(lanes, /*ofWave=*/false) > available) {
    blocks.inShared = true;
    while (blocks.queries > leastRows && blocks.bytes() > limits.ldsBytes) {
      blocks.queries /= 2;
      lanes /= 2;
    }
  }
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
      wavesThatMeet, llvm::bit_floor<uint64_t>(limits.ldsBytes / meeting));
  if (isFew && isWide && together > 1 && fitsWave(facts.vgprsOfFewest)) {
    // Waves have keys of their own.
    blocks = ofWave;
    ofWave.keys *= 2;
    if (fitsWave(keys.getElementType().isInteger() ? facts.vgprsOfBytes
                                                   : facts.vgprsOfWave))
      blocks = ofWave;
    tile.waves = tile.unroll = together;
  } else if (leastRows && !isFew) {
    // Waves have rows of their own.
    tile.waves = std::clamp<int64_t>(blocks.queries / leastRows, 1, tile.waves);
  }
  if (isFew)
    tile.split = std::clamp<int64_t>(
        facts.wavesOfFew * limits.simds / tile.waves, 1, mostSplit);
  tile.m = blocks.queries;
  tile.n = size;
  tile.k = blocks.keys;
  choice.space.rows = {1, heads, 1};
  choice.space.loop = blocks.inShared;
  return choice;
}

/// Rows that a workgroup adds up, as many to a wave as an instruction has: they
/// stay in its registers with the sums. Then the largest tile of others, of
/// which shared memory has both orders.
static Choice chooseBackward(const Space &space, const Limits &limits) {
  RankedTensorType type = queryTypeOf(space.alone);
  int64_t size = columnsOf(type), bits = type.getElementTypeBitWidth();
  OfInstruction instruction =
      instructionOf(type.getElementType(), size, limits);
  bool hasMatrix = instruction.rows > 0, isWide = limits.wide && hasMatrix;
  const AttentionFacts &facts = limits.row.tiles.attention;
  int64_t sums = isOfKeys(space.alone) ? 2 : 1;
  Choice choice;
  Tile &tile = choice.tile;
  tile.waves = isWide ? wavesOfMatrix : wavesOfSimt;
  int64_t rows = isWide ? tile.waves * instruction.rows : rowsOfSimt;
  if (hasMatrix) {
    // On the H200 316 TFLOP/s in place of 286; keys have too many sums.
    int64_t ofWave = sums == 1 && size <= smallHead ? facts.tilesOfSmall : 1;
    tile.waves =
        std::clamp<int64_t>(rows / (ofWave * instruction.rows), 1, tile.waves);
  }
  int64_t available =
      availableRegisters(limits, isWide ? facts.vgprsOfGradients : facts.vgprs);
  bool inShared = false; // own rows
  // Bytes of shared memory: both orders of what the loop goes over, and weights
  // that no lane has where it multiplies them.
  auto bytes = [&](int64_t others) {
    int64_t elements = (2 + sums) * others * size +
                       (hasMatrix ? 0 : rows * others) +
                       (inShared ? 2 * rows * size : 0);
    return paddedBytes(elements, bits);
  };
  // Sums and logits in f32, one sum at a time where own rows are in shared
  // memory; own rows, weights, what is on its way, and the operand of a dot,
  // which each wave has.
  auto registers = [&](int64_t others) {
    int64_t columns = llvm::PowerOf2Ceil(size), copies = instruction.copies;
    int64_t atOnce = inShared ? 1 : sums;
    int64_t wide = rows * (atOnce * columns + 2 * others);
    int64_t loaded = 2 + (facts.wholeOperands ? copies * tile.waves : 0);
    int64_t narrow =
        copies * rows * ((inShared ? 0 : 2) * columns + atOnce * others) +
        loaded * others * columns;
    return (wide + narrow * bits / 32) / lanesOf(tile.waves, limits);
  };
  int64_t others = hasMatrix ? leastOfMatrix : leastOfSimt;
  // Some spilled registers cost less than rows in shared memory.
  auto spills = [&] {
    return registers(others) > available * facts.overGradients;
  };
  if (isWide && facts.wholeOperands && spills()) {
    inShared = true;
    // If that is not enough either, it is only more code.
    inShared = !spills();
  }
  for (; inShared && tile.waves > 1 && bytes(others) > limits.ldsBytes;
       rows /= 2)
    tile.waves /= 2;
  while (others < (isWide ? keysOfMatrix : keysOfSimt) &&
         bytes(2 * others) <= limits.ldsBytes &&
         registers(2 * others) <= available)
    others *= 2;
  tile.m = rows;
  tile.n = size;
  tile.k = others;
  choice.space.rows = {1, 1, 1};
  choice.space.loop = inShared;
  return choice;
}

FailureOr<Choice> greta::chooseAlone(const Space &space, const Limits &limits) {
  if (getUpdatedCache(space.alone))
    return chooseUpdate(space, limits);
  bool isBackward = isa<AttentionBackwardOp>(space.alone);
  Choice choice = isBackward ? chooseBackward(space, limits)
                             : chooseAttention(space, limits);
  // A family's variant without matrix instructions keeps the choice.
  if (!limits.matrix.empty() || limits.row.matrix.empty()) {
    FailureOr<DictionaryAttr> asked = configFor(space.alone, limits.row);
    if (failed(asked))
      return failure();
    if (*asked)
      if (std::optional<std::string> why = takeAsked(
              choice.tile, *asked, isBackward ? AttentionGradients : Attention))
        return space.alone->emitOpError("has a 'greta.config' ") << *why;
  }
  const Tile &tile = choice.tile;
  SpaceSchedule &blocks = choice.space;
  blocks.rows[2] = std::max<int64_t>(1, tile.m / blocks.rows[1]);
  blocks.columns = tile.n;
  blocks.depth = tile.k;
  blocks.unroll = tile.unroll;
  blocks.split = tile.split;
  return choice;
}
