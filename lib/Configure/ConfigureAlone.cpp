//===- ConfigureAlone.cpp - tiles of attention and of updates -------------===//
//
// In: the space of an op that has its kernel to itself, and a target row. Out:
// the tiles to choose from.
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

/// The one tile of an update.
static KernelKind updateKind(const Space &space, const Limits &limits) {
  KernelKind kind{Rows};
  kind.candidates = [&](VisitTile visit) {
    Tile tile;
    tile.waves = std::max<int64_t>(1, limits.shareBlock / lanesOf(1, limits));
    tile.n = llvm::PowerOf2Ceil(
        cast<AffineConstantExpr>(space.shape.back()).getValue());
    int64_t elements = lanesOf(tile.waves, limits) * elementsOfUpdate;
    tile.m = std::max<int64_t>(1, elements / tile.n);
    visit(tile, 0);
  };
  return kind;
}

/// Counts what is computed of each logit at a time, in f32: itself, what it is
/// compared by where some are left out, and scales where keys or values have
/// their own.
static int64_t partsOfLogit(Operation *op) {
  auto count = [&](auto attention, bool hasMask) -> int64_t {
    bool hasScales = differByKey(op, attention.getKScale()) ||
                     differByKey(op, attention.getVScale());
    return 1 + 2 * hasMask + hasScales;
  };
  bool hasWindow = op->hasAttr("window");
  if (auto attention = dyn_cast<AttentionOp>(op))
    return count(attention, hasWindow || attention.getMask());
  return count(cast<PagedAttentionOp>(op), hasWindow);
}

/// The columns of a block that has a head's elements in each row: whole tiles
/// of every instruction, and lanes in a square without any. Large heads take
/// multiples of 64, since other sizes spilled registers on gfx942.
static int64_t columnsOf(RankedTensorType queries) {
  int64_t size = queries.getDimSize(3);
  return llvm::alignTo(size, size <= largeHead ? 16 : 64);
}

namespace {
/// The rows that attention or its gradients keep, those that their loop goes
/// over, and what a workgroup needs for both.
struct Blocks {
  const Limits &limits;
  const AttentionFacts &facts;
  int64_t size, bits;         // of a head, of an element
  int64_t leastRows = 0;      // of the smallest instruction; 0: there is none
  int64_t copies = 1;         // that lanes have of its operands' elements
  bool isLoadedWhole = false; // by drivers
  bool isWide;                // matrix instructions on a GPU
  int64_t own = 0, others, lanes;
  int64_t operands = 1, sums = 1; // own tensors, what is added up for own rows
  int64_t perLogit = 1;           // what is computed at a time, in f32
  int64_t orders = 2;             // of other rows in shared memory
  int64_t loaded = 2;             // blocks of other rows in registers
  int64_t loadedByWave = 0;       // and those for each wave
  bool weightsMeet = false;       // in shared memory, where lanes have no sums
  bool ownAreShared = false;      // in shared memory, not in registers
  double share;                   // of a lane's registers that may be taken
  double over = 1; // times those, before own rows go to shared memory

  /// `inRegisters`: operands come there, as those of few queries do.
  Blocks(Operation *op, const Limits &limits, bool inRegisters = false)
      : limits(limits), facts(limits.row.tiles.attention),
        size(columnsOf(queryTypeOf(op))), share(facts.vgprs) {
    Type element = queryTypeOf(op).getElementType();
    bits = element.getIntOrFloatBitWidth();
    for (const MatrixInstruction *mi : instructionsFor(
             element, element, limits.matrix, limits.row, inRegisters)) {
      if (!mi->accLayout.isKnown() || size % mi->n || size % mi->k ||
          (leastRows && mi->m >= leastRows))
        continue;
      leastRows = mi->m;
      copies = copiesInLanes(*mi);
      isLoadedWhole = mi->name == "coopmat" && !limits.row.loadsElements(*mi);
    }
    isWide = limits.wide && leastRows;
    others = leastRows ? leastOfMatrix : leastOfSimt;
    lanes = lanesOf(isWide ? wavesOfMatrix : wavesOfSimt, limits);
  }

  int64_t waves() const { return lanes / lanesOf(1, limits); }
  /// Registers of a lane that may be taken.
  int64_t available() const {
    return (limits.wide ? int64_t(limits.row.vgprs.perWave * share)
                        : registersOfCpu) -
           limits.spareRegisters;
  }
  /// Registers of a lane, of 32 bits.
  int64_t registers() const {
    int64_t columns = llvm::PowerOf2Ceil(size);
    int64_t kept = ownAreShared ? 0 : operands;
    // One sum at a time where own rows are in shared memory.
    int64_t atOnce = ownAreShared ? 1 : sums;
    int64_t wide = own * (atOnce * columns + perLogit * others);
    int64_t narrow = copies * own * (kept * columns + atOnce * others) +
                     (loaded + loadedByWave * waves()) * others * columns;
    return (wide + narrow * bits / 32) / lanes;
  }
  /// Bytes of shared memory with the padding of rows.
  int64_t bytes() const {
    int64_t rows = orders * others + (ownAreShared ? operands * own : 0);
    int64_t elements = rows * size + (weightsMeet ? own * others : 0);
    return elements * bits / 8 * 17 / 16;
  }
  bool fitsMemory() const { return bytes() <= limits.ldsBytes; }
  /// The blocks with own rows in shared memory: they and their lanes are halved
  /// down to `least` until it suffices.
  Blocks shared(int64_t least) const {
    Blocks blocks = *this;
    blocks.ownAreShared = true;
    for (; blocks.own > least && !blocks.fitsMemory(); blocks.own /= 2)
      blocks.lanes /= 2;
    return blocks;
  }
  /// Time for each of the other rows: what an iteration costs beside is that of
  /// some.
  double iteration() const { return 1 + 4.0 / others; }
  /// Registers that are spilled cost more where own rows were to stay in them.
  double time() const {
    constexpr double spill = 1000;
    double spilled = std::max<int64_t>(0, registers() - available());
    return iteration() + (ownAreShared
                              ? 1 + spill * (over - 1) * available() + spilled
                              : spill * spilled);
  }
  Tile take(Tile tile) const {
    tile.m = own;
    tile.n = size;
    tile.k = others;
    tile.loop = ownAreShared;
    return tile;
  }
  /// Visits the tiles of these and of more other rows, up to `most` as far as
  /// memory suffices.
  void forEachOthers(const Tile &tile, int64_t most, VisitTile visit) const {
    Blocks next = *this;
    do {
      visit(next.take(tile), next.time());
      next.others *= 2;
    } while (next.others <= most && next.fitsMemory());
  }
};
} // namespace

/// Visits tiles whose waves have keys of their own, as many as their registers
/// take, if the fewest fit and results can meet in shared memory.
static void forEachOfWaves(const Blocks &blocks, Tile tile, bool areBytes,
                           VisitTile visit) {
  const Limits &limits = blocks.limits;
  const AttentionFacts &facts = blocks.facts;
  Blocks ofWave = blocks;
  ofWave.lanes = lanesOf(1, limits);
  ofWave.loaded *= ofWave.copies;
  // Results of f32 meet, with a row's sums.
  int64_t meeting = 4 * blocks.own * (blocks.size + 8);
  tile.waves = tile.unroll = std::min<int64_t>(
      wavesThatMeet, llvm::bit_floor<uint64_t>(limits.ldsBytes / meeting));
  if (!blocks.isWide || tile.waves <= 1)
    return;
  for (double share : {facts.vgprsOfFewest,
                       areBytes ? facts.vgprsOfBytes : facts.vgprsOfWave}) {
    if (ofWave.registers() > share * limits.row.vgprs.perWave)
      return;
    visit(ofWave.take(tile), ofWave.iteration() / tile.waves);
    ofWave.others *= 2;
  }
}

/// Heads that read the same keys.
static int64_t sharedHeads(Operation *op, RankedTensorType keys) {
  int64_t ofKeys = keys.getDimSize(isa<PagedAttentionOp>(op) ? 2 : 1);
  return queryTypeOf(op).getDimSize(1) / ofKeys;
}

/// Returns the rows of a tile of few queries, which are those of `heads` heads
/// that read the same keys; 0 if queries are many.
static int64_t fewRows(Operation *op, RankedTensorType keys, int64_t &heads) {
  int64_t count = expectedQueries(op);
  if (ShapedType::isDynamic(count) || count > mostFewQueries)
    return 0;
  heads = llvm::PowerOf2Ceil(sharedHeads(op, keys));
  return heads * llvm::PowerOf2Ceil(std::max<int64_t>(1, count));
}

static KernelKind attentionKind(const Space &space, const Limits &limits) {
  Operation *op = space.alone;
  auto keys = cast<RankedTensorType>(op->getOperand(1).getType());
  Tile tile;
  int64_t few = fewRows(op, keys, tile.heads);
  bool isSmall = few && few <= leastOfSimt;
  Blocks blocks(op, limits, /*inRegisters=*/isSmall);
  const int64_t leastRows = blocks.leastRows;
  const int64_t least =
      isSmall && leastRows <= leastOfSimt ? leastOfSimt : blocks.others;
  // A sequence may have one row, whose keys are then loaded once for all heads;
  // an eighth of the rows may stay empty for that.
  if (hasBegins(op)) {
    int64_t shared = sharedHeads(op, keys);
    int64_t heads = llvm::PowerOf2Ceil(shared);
    if (heads <= least && heads * 7 <= shared * 8)
      tile.heads = heads;
  }
  blocks.own = rowsOfSimt;
  if (blocks.isWide) {
    blocks.own = blocks.lanes / 2;
    blocks.lanes /= blocks.size <= smallHead ? blocks.facts.tilesOfSmall : 1;
  }
  if (few) {
    blocks.own = std::min(blocks.own, few);
    blocks.lanes = std::min(blocks.lanes, lanesOf(wavesThatMeet, limits));
  }
  blocks.own = std::max(blocks.own, least);
  blocks.perLogit = partsOfLogit(op);
  blocks.weightsMeet = blocks.bits == 32;
  while (blocks.own > least && !blocks.fitsMemory())
    blocks.own /= 2;
  int64_t mostKeys = blocks.isWide ? keysOfMatrix : keysOfSimt;
  tile.waves = blocks.waves();
  KernelKind kind{Attention};
  kind.candidates = [=, &limits](VisitTile visit) {
    if (few) {
      auto visitSplit = [&](Tile tile, double time) {
        tile.split = std::clamp<int64_t>(
            blocks.facts.wavesOfFew * limits.simds / tile.waves, 1, mostSplit);
        visit(tile, time);
      };
      forEachOfWaves(blocks, tile, keys.getElementType().isInteger(),
                     visitSplit);
      blocks.forEachOthers(tile,
                           std::min<int64_t>(mostKeys, blocks.facts.keysOfFew),
                           visitSplit);
      return;
    }
    auto visitBlocks = [&](const Blocks &blocks) {
      // Waves have rows of their own.
      Tile next = tile;
      if (leastRows)
        next.waves = std::clamp<int64_t>(blocks.own / leastRows, 1, tile.waves);
      blocks.forEachOthers(next, mostKeys, visit);
    };
    visitBlocks(blocks);
    if (blocks.isWide && blocks.facts.wholeOperands && !blocks.isLoadedWhole)
      visitBlocks(blocks.shared(leastRows));
  };
  return kind;
}

/// Rows that a workgroup adds up, as many to a wave as an instruction has: they
/// stay in its registers with the sums. Then the largest tile of others, of
/// which shared memory has both orders.
static KernelKind gradientsKind(const Space &space, const Limits &limits) {
  Blocks blocks(space.alone, limits);
  const int64_t leastRows = blocks.leastRows;
  const AttentionFacts &facts = blocks.facts;
  blocks.operands = blocks.perLogit = 2;
  blocks.sums = isOfKeys(space.alone) ? 2 : 1;
  blocks.orders = 2 + blocks.sums;
  blocks.weightsMeet = !leastRows;
  blocks.own = blocks.isWide ? blocks.waves() * leastRows : rowsOfSimt;
  if (leastRows) {
    // The kernel of keys' gradients has too many sums for more rows a wave.
    int64_t ofWave =
        blocks.sums == 1 && blocks.size <= smallHead ? facts.tilesOfSmall : 1;
    blocks.lanes =
        lanesOf(std::clamp<int64_t>(blocks.own / (ofWave * leastRows), 1,
                                    blocks.waves()),
                limits);
  }
  // Each wave has what is on its way, and the operand of a dot.
  blocks.loadedByWave = facts.wholeOperands ? blocks.copies : 0;
  if (blocks.isWide)
    blocks.share = facts.vgprsOfGradients;
  // A few spilled registers cost less than rows in shared memory.
  blocks.over = facts.overGradients;
  KernelKind kind{AttentionGradients};
  kind.candidates = [=](VisitTile visit) {
    auto visitBlocks = [&](const Blocks &blocks) {
      Tile tile;
      tile.waves = blocks.waves();
      blocks.forEachOthers(tile, blocks.isWide ? keysOfMatrix : keysOfSimt,
                           visit);
    };
    visitBlocks(blocks);
    // They are only more code if registers do not suffice then either.
    if (blocks.isWide && blocks.facts.wholeOperands &&
        blocks.shared(blocks.own).registers() <=
            blocks.available() * blocks.over)
      visitBlocks(blocks.shared(blocks.own / blocks.waves()));
  };
  return kind;
}

KernelKind greta::aloneKind(const Space &space, const Limits &limits) {
  KernelKind kind = getUpdatedCache(space.alone) ? updateKind(space, limits)
                    : isa<AttentionBackwardOp>(space.alone)
                        ? gradientsKind(space, limits)
                        : attentionKind(space, limits);
  // Blocks say how much shared memory they have once all of them are known.
  kind.whyNot = [&](const Tile &tile) -> std::optional<std::string> {
    if (lanesOf(tile.waves, limits) > limits.row.maxWorkgroupSize)
      return "its waves are more than a workgroup takes";
    return std::nullopt;
  };
  return kind;
}
