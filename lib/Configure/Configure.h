//===- Configure.h - what the parts of greta-configure share ----*- C++ -*-===//
#ifndef GRETA_LIB_CONFIGURE_CONFIGURE_H
#define GRETA_LIB_CONFIGURE_CONFIGURE_H

#include "greta/Fuse/Space.h"
#include "greta/Layout/Waves.h"
#include "greta/Names.h"
#include "greta/Target/Target.h"
#include "llvm/Support/JSON.h"
#include <cmath>

namespace greta {

struct TuningDatabase;
struct TuningEntry;

/// The kinds of kernels, as bits. Nobody can ask for tiles of row operators and
/// updates of caches (Rows).
enum TileKind : unsigned {
  Rows = 0,
  MatrixGemm = 1,
  SkinnyGemm = 2,
  SimtGemm = 4,
  AnyGemm = MatrixGemm | SkinnyGemm | SimtGemm,
  Attention = 8,
  AttentionGradients = 16,
};

/// The tile of a kernel and how its workgroup goes over it: the entries that
/// `greta.config` and the tuning database name. Attention has `m` rows of its
/// own and `k` others in an iteration, row operators `m` rows of `n` columns.
struct Tile {
  const MatrixInstruction *instruction = nullptr; // null: SIMT FMAs
  int64_t m = 0, n = 0, k = 0, waves = 0;
  int64_t stages = 1, slice = 0, group = 8, split = 1;
  bool opaque = false; // the instruction's layouts are taken for unknown
  bool direct = false; // the loop loads straight to shared memory
  int64_t run = 0;     // a lane's neighbours along K in a skinny GEMM; else 0
  int64_t unroll = 1;  // a skinny GEMM's blocks along K in an iteration;
                       // attention's waves that have keys of their own
  int64_t heads = 1;   // attention's heads whose own rows share the tile
  bool loop = false;   // a loop goes over pieces of a row; attention's own rows
                       // lie in shared memory
  bool flat = false;   // the space is one row

  TileKind kindOfGemm() const {
    return instruction ? MatrixGemm : run ? SkinnyGemm : SimtGemm;
  }
  /// Waves that share an accumulator: all, but for those that without stages
  /// take slices of their own.
  int64_t wavesOfSlice() const {
    return stages ? waves : std::max<int64_t>(1, waves * slice / k);
  }
};

/// A GEMM as the choice of tiles sees it.
struct Problem {
  int64_t m, n, k;       // extents; guesses for dynamic ones
  int64_t bytes;         // of an element of A and B
  bool rowsOfA, rowsOfB; // the operand is stored with neighbours along K
  int64_t count;         // GEMMs of the same A; a loop's operands beside A
  bool parts;            // waves may sum parts of K (hasParts)
  bool splits;           // workgroups may (canSplit)
  int64_t batch;         // matrices of a batch
  int64_t head;          // a tile's columns are whole heads of these; 1: any
  int64_t within;        // columns that a wave's part stays within; 0: any
  /// The rows of A and of B are multiples of so many bytes, up to 16, in
  /// memory.
  int64_t alignOfA, alignOfB;
  bool isNorm; // A is the result of a norm
  /// Elements of A and of B are computed from so many bits in memory.
  int64_t loaded[2] = {8 * bytes, 8 * bytes};
  int64_t bytesOut = 4;    // of an element of the result
  bool stored = false;     // neither operand is computed
  int64_t group = 0;       // packed weights that share a scale; 0: none packed
  int64_t unit = 0;        // packed weights that are unpacked together
  bool hasZeros = false;   // packed weights also share a zero that is loaded
  bool sharesRows = false; // rows of B share scales
  /// Rope turns pairs of columns: a tile in registers may be a part of a head.
  bool hasPairs = false;
  int64_t rowOfA = 0, rowOfB = 0; // elements between rows in memory
  int64_t channels = 0;           // of an image whose patches A is; 0: none
  bool patchesInB = false;        // B is patches, gathered one by one
  int64_t groups = 0;             // of rows, each with a B of its own; 0: none
  /// Dots of a block, and sums of its size in registers, if these are other
  /// than `count`: bf16x3 has three dots for each GEMM. 0: they are `count`.
  int64_t dots = 0, sums = 0;
  int64_t numDots() const { return dots ? dots : count; }
  int64_t numSums() const { return sums ? sums : count; }

  /// Sets the number of rows, of which each group gets an equal share. With
  /// fewer rows than groups, so many groups have one row each.
  void setRows(int64_t rows) {
    m = groups ? std::max<int64_t>(1, rows / groups) : rows;
    if (groups)
      batch = std::clamp<int64_t>(rows, 1, groups);
  }
};

/// The facts about a target that the choice needs.
struct Limits {
  Limits(const TargetRow &row, bool useMatrix,
         const TuningDatabase *tuning = nullptr, int64_t spareRegisters = 0);
  int64_t wave;
  int64_t maxBlock;
  int64_t shareBlock;  // lanes of a workgroup that several rows share
  int64_t maxElements; // per lane
  int64_t ldsBytes;
  int64_t simds;                      // of the whole device
  ArrayRef<MatrixInstruction> matrix; // empty if they are not to be used
  const TargetRow &row;
  // For a GEMM that shares its launch (ConfigureTogether.cpp):
  int64_t columns = 0;        // of all GEMMs of the launch; 0: it is alone
  const Tile *lead = nullptr; // the first GEMM's tile; null: none has one yet
  bool wide; // the target is a GPU: it has many lanes, with many registers
  const TuningDatabase *tuning; // measured tiles; null: none
  int64_t spareRegisters;       // a chosen tile leaves so many of a lane free
  int64_t block = 0; // lanes of the workgroup; 0: as many as the tile likes

  int64_t blockOr(int64_t lanes) const { return block ? block : lanes; }
  /// Why a workgroup cannot have so many lanes and so much shared memory.
  std::optional<std::string> whyNot(int64_t lanes, int64_t bytes) const;
  bool isLedByMatrix() const { return lead && lead->instruction; }
};

/// The configuration of one space; the tile has the workgroup that it would
/// like.
struct Choice {
  Tile tile;
  /// The cycles of a GEMM with so many rows, by the model.
  std::function<double(int64_t)> cycles;
  SpaceSchedule space;
};

/// The cycles in which workgroups of a grouped GEMM find that they have no
/// rows: slots for tiles of `tileRows` rows that `rows` rows leave empty,
/// `across` workgroups of so many waves for each.
double cyclesOfEmptySlots(int64_t groups, int64_t rows, int64_t tileRows,
                          double across, int64_t waves, const Limits &limits);

inline std::optional<int64_t> constantOf(AffineExpr expr) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

/// The space's schedule.
FailureOr<Choice> choose(const Space &space, const Limits &limits,
                         MLIRContext *context);

/// Schedules for GEMMs of one A in a launch: workgroups of one size, no parts
/// along K. Whether they can be together.
FailureOr<bool> chooseTogether(ArrayRef<Space> spaces, Limits limits,
                               Schedule &schedule);

/// Replaces a kernel by one for each of its spaces.
SmallVector<KernelOp> separateSpaces(KernelOp kernel);

/// How many lanes hold each element of an instruction's operands, where that is
/// known: two on gfx11, else one.
int64_t copiesInLanes(const MatrixInstruction &mi);

/// Attention with up to so many queries waits for keys to be loaded.
constexpr int64_t mostFewQueries = 16;

/// The entry of an op's `greta.config` for `row`; null: none.
FailureOr<mlir::DictionaryAttr> configFor(Operation *op, const TargetRow &row);

/// Is called with a tile that fits, and its time.
using VisitTile = llvm::function_ref<void(const Tile &, double)>;

/// A kind of kernel for a space on a target: the tiles that it may have, and
/// their times. It refers to the space and the limits that it was made from.
struct KernelKind {
  TileKind kind;
  /// Visits the tiles to choose from. Times are cycles of GEMMs; of others they
  /// only compare.
  std::function<void(VisitTile)> candidates = {};
  Tile tile = {};           // the best one
  double cycles = HUGE_VAL; // its time
  /// The cycles of a GEMM with so many rows.
  std::function<double(const Tile &, int64_t)> cyclesOf = {};
  /// The reason why a tile that is asked for is refused; none: it is not.
  std::function<std::optional<std::string>(const Tile &)> whyNot = {};
  SmallVector<const MatrixInstruction *> available = {}; // for its tiles
  /// The fields by which neighbouring tiles differ; empty: tiles are
  /// enumerated.
  ArrayRef<int64_t Tile::*> steps = {};
  Problem problem = {}; // of a GEMM

  /// Takes the candidate of the least time, the first of equals.
  void takeBest() {
    candidates([&](const Tile &next, double time) {
      if (time >= cycles * 0.999)
        return;
      cycles = time;
      tile = next;
    });
  }
};

/// The kind of a space's kernel, with the tile asked for, else one that was
/// measured, else the best.
FailureOr<KernelKind> kindOf(const Space &space, const Limits &limits,
                             MLIRContext *context);

/// An op that has its kernel to itself.
KernelKind aloneKind(const Space &space, const Limits &limits);
FailureOr<KernelKind> gemmKind(const Space &space, const Limits &limits);
/// A skinny GEMM, which is limited by memory; none where the GEMM does not suit
/// it.
std::optional<KernelKind> skinnyKind(const Space &space, const Limits &limits);
/// A GEMM by SIMT FMAs, which every target has.
FailureOr<KernelKind> simtKind(const Space &space, const Problem &problem,
                               const Limits &limits);

/// Columns that rope puts into one lane.
inline int64_t columnsOfPair(const Space &space) {
  return space.pairs == Space::Pairs::None ? 1 : 2;
}

/// The measured tile of a space's GEMM: from the tuning database asked for,
/// else from the one that ships; null: none.
const TuningEntry *measuredFor(const Space &space, const Limits &limits);

/// The most parts along K that a source may ask for.
constexpr int64_t mostSplit = 1024;

/// Gives a choice's schedule the matrix instruction and the pipeline of its
/// tile.
void setLoop(Choice &choice, const Problem &problem, const Limits &limits,
             MLIRContext *context);

/// Replaces parts of a kind's tile by those of the op's `greta.config`, else,
/// of a GEMM, of the tuning database. One that does not fit is an error in a
/// source and a remark about the database.
LogicalResult takeAsked(KernelKind &kind, const Space &space,
                        const Limits &limits);

/// A GEMM's tile as a configuration.
llvm::json::Object configOf(const Tile &tile);

/// The fewest weights that share a scale where a GEMM computes B by
/// `greta.dequant`; 0 where none does.
int64_t groupOfWeights(const Space &space);

/// Whether blocks of `depth` are made of words of packed weights, if a GEMM
/// has any, and of groups of them, or lie in one.
bool fitsPacked(const Space &space, int64_t depth);

/// Whether `run` and `depth` of a skinny GEMM divide its depth.
bool fitsSkinny(const Space &space, int64_t run, int64_t depth);

/// The parts that `blocks` blocks along K make where up to `split` are wanted:
/// none is empty.
inline int64_t partsOf(int64_t blocks, int64_t split) {
  blocks = std::max<int64_t>(blocks, 1);
  return llvm::divideCeil(blocks, llvm::divideCeil(blocks, split));
}

/// Bytes of shared memory through which a workgroup's lanes learn how many
/// parts have come to their tile.
constexpr int64_t meetingBytes = 16;

/// Cycles that `split` parts add to a workgroup's time, where a compute unit
/// has tiles of this many elements at a time: to meet at a counter in memory,
/// with fences on both sides, and to move the parts.
double splitCycles(const TargetRow &row, int64_t split, double elements);

/// Whether waves of a workgroup may sum parts of K. This takes a static K, no
/// batch, and an A that is stored, since parts of a row have no norm. With
/// heads B must be stored, too, or be packed weights of more than a few rows.
bool hasParts(const Space &space);

/// Whether workgroups may sum parts of K. This takes all of that, no heads, and
/// room for the buffers of partial sums.
bool canSplit(const Space &space);

/// Whether each part of a GEMM with `split` in its configuration has blocks.
bool fitsSplit(const Space &space, const SpaceSchedule &config);

} // namespace greta

#endif
