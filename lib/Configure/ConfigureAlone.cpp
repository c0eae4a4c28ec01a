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

/// A lane of an update stores so many elements.
static constexpr int64_t elementsOfUpdate = 8;

/// With matrix instructions on a GPU: the waves of a workgroup, the most waves
/// that share a query's keys, and the most keys of an iteration.
static constexpr int64_t wavesOfMatrix = 8, wavesThatMeet = 4,
                         keysOfMatrix = 64;

/// Without matrix instructions, or on a CPU: the waves of a workgroup, its
/// rows, and the most keys of an iteration. The FMAs of a lane are unrolled, so
/// these are few.
static constexpr int64_t wavesOfSimt = 4, rowsOfSimt = 16, keysOfSimt = 16;

/// The least extent of a tile. With matrix instructions each of them divides
/// it.
static constexpr int64_t leastOfMatrix = 16, leastOfSimt = 8;

/// On a CPU, whose driver has no limit, a lane may take so many registers.
static constexpr int64_t registersOfCpu = 256;

/// A head of up to `smallHead` elements is small, of more than `largeHead`
/// large.
static constexpr int64_t smallHead = 64, largeHead = 256;

/// The number of a workgroup's lanes. If lanes exchange nothing, 32 of them
/// stand for a wave.
static int64_t lanesOf(int64_t waves, const Limits &limits) {
  return waves * (limits.wave == 1 ? 32 : limits.wave);
}

/// An update has one tile.
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

/// Counts the values of f32 that a lane holds for each logit: the logit, one to
/// compare it with if some logits are masked, and the scales that differ from
/// key to key.
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
/// The rows that a workgroup of attention, or of its gradients, keeps (`own`),
/// the rows that an iteration takes (`others`), and the registers and memory
/// that both need.
struct Blocks {
  const Limits &limits;
  const AttentionFacts &facts;
  int64_t size, bits;         // columns of a head, bits of an element
  int64_t leastRows = 0;      // of the smallest instruction; 0: there is none
  int64_t copies = 1;         // lanes that hold each element of its operands
  bool isLoadedWhole = false; // drivers load whole matrices
  bool isWide;                // matrix instructions on a GPU
  int64_t own = 0, others, lanes;
  int64_t operands = 1, sums = 1; // tensors, and sums, of own rows
  int64_t perLogit = 1;           // values of f32 for each logit
  int64_t orders = 2;             // blocks of other rows in shared memory
  int64_t loaded = 2;             // blocks of other rows in registers
  int64_t loadedByWave = 0;       // the same, for each wave
  bool weightsMeet = false;       // weights go through shared memory
  bool ownAreShared = false;      // own rows lie in shared memory
  double share;                   // the part of the registers to be taken
  double over = 1; // so many times these may be needed, and spilled

  /// `inRegisters` says that operands go straight to registers, as those of few
  /// queries do.
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
  /// The registers of a lane that may be taken.
  int64_t available() const {
    return (limits.wide ? int64_t(limits.row.vgprs.perWave * share)
                        : registersOfCpu) -
           limits.spareRegisters;
  }
  /// The registers of 32 bits that a lane needs.
  int64_t registers() const {
    int64_t columns = llvm::PowerOf2Ceil(size);
    int64_t kept = ownAreShared ? 0 : operands;
    // If own rows are in shared memory, sums are computed one after another.
    int64_t atOnce = ownAreShared ? 1 : sums;
    int64_t wide = own * (atOnce * columns + perLogit * others);
    int64_t narrow = copies * own * (kept * columns + atOnce * others) +
                     (loaded + loadedByWave * waves()) * others * columns;
    return (wide + narrow * bits / 32) / lanes;
  }
  /// The bytes of shared memory, with padding of rows.
  int64_t bytes() const {
    int64_t rows = orders * others + (ownAreShared ? operands * own : 0);
    int64_t elements = rows * size + (weightsMeet ? own * others : 0);
    return elements * bits / 8 * 17 / 16;
  }
  bool fitsMemory() const { return bytes() <= limits.ldsBytes; }
  /// The same with own rows in shared memory. They and their lanes are halved,
  /// down to `least`, until memory suffices.
  Blocks shared(int64_t least) const {
    Blocks blocks = *this;
    blocks.ownAreShared = true;
    for (; blocks.own > least && !blocks.fitsMemory(); blocks.own /= 2)
      blocks.lanes /= 2;
    return blocks;
  }
  /// The time for each of the other rows. An iteration also costs as much as
  /// four rows.
  double iteration() const { return 1 + 4.0 / others; }
  /// The time with the cost of spills, which is higher if own rows are in
  /// registers.
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
  /// Visits tiles with these and more other rows, up to `most`, as long as
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

/// Visits tiles whose waves have keys of their own, as many as registers take.
/// There are none if the fewest keys do not fit, or if the waves' results
/// cannot meet in shared memory.
static void forEachOfWaves(const Blocks &blocks, Tile tile, bool areBytes,
                           VisitTile visit) {
  const Limits &limits = blocks.limits;
  const AttentionFacts &facts = blocks.facts;
  Blocks ofWave = blocks;
  ofWave.lanes = lanesOf(1, limits);
  ofWave.loaded *= ofWave.copies;
  // The waves' results, in f32, meet with their rows' sums.
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

/// The number of query heads that read the same keys.
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

/// The tiles of gradients. A workgroup adds up its own rows, as many for a wave
/// as an instruction has, which stay in registers with the sums. An iteration
/// takes as many other rows as fit into shared memory in both orders.
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
  // Each wave holds the block that is on its way, and an operand of a dot.
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
    // If registers do not suffice for this either, it is only more code.
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
