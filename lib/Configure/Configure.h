//===- Configure.h - what the parts of greta-configure share ----*- C++ -*-===//
#ifndef GRETA_LIB_CONFIGURE_CONFIGURE_H
#define GRETA_LIB_CONFIGURE_CONFIGURE_H

#include "greta/Fuse/Space.h"
#include "greta/Layout/Waves.h"
#include "greta/Target/Target.h"
#include "llvm/Support/JSON.h"
#include <memory>

namespace greta {

struct Problem;
struct TuningDatabase;
struct TuningEntry;
struct Tile;

/// The facts about a target that the choice needs.
struct Limits {
  Limits(const TargetRow &row, bool useMatrix,
         const TuningDatabase *tuning = nullptr, int64_t spareRegisters = 0);
  int64_t wave;
  int64_t maxBlock;
  int64_t shareBlock;  // of a workgroup that several rows share
  int64_t maxElements; // per lane
  int64_t ldsBytes;
  int64_t simds;                            // of the whole device
  llvm::ArrayRef<MatrixInstruction> matrix; // none where they are not wanted
  const TargetRow &row;
  // For a GEMM that shares its launch (ConfigureTogether.cpp):
  int64_t columns = 0;        // of all of them; 0: it is alone
  int64_t waves = 0;          // of the workgroup, where one has decided
  const Tile *tile = nullptr; // likewise
  bool wide; // a GPU: lanes are many and registers wait to be filled
  const TuningDatabase *tuning; // what was measured; null: nothing
  int64_t spareRegisters;       // of a lane that a chosen tile leaves free
};

/// The configuration of one space and the workgroup it would like.
struct Choice {
  int64_t block = 0;
  std::shared_ptr<const Tile> tile; // of a GEMM with matrix instructions
  /// The cycles of a GEMM with so many rows, by the model.
  std::function<double(int64_t)> cycles;
  SpaceSchedule space;
};

/// The cycles in which workgroups of a grouped GEMM find that they have no
/// rows: slots for tiles of `tileRows` rows that `rows` rows leave empty,
/// `across` workgroups of so many waves for each.
double cyclesOfEmptySlots(int64_t groups, int64_t rows, int64_t tileRows,
                          double across, int64_t waves, const Limits &limits);

inline std::optional<int64_t> constantOf(mlir::AffineExpr expr) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue();
  return std::nullopt;
}

/// The space's schedule; a workgroup of `fixedBlock` lanes where that is not 0.
mlir::FailureOr<Choice> choose(const Space &space, const Limits &limits,
                               int64_t fixedBlock, mlir::MLIRContext *context);

/// Schedules for GEMMs of one A in a launch: workgroups of one size, no
/// parts along K. None where they have to be apart.
mlir::FailureOr<std::optional<Schedule>>
chooseTogether(llvm::ArrayRef<Space> spaces, Limits limits,
               mlir::MLIRContext *context);

/// Replaces a kernel by one for each of its spaces.
llvm::SmallVector<KernelOp> separateSpaces(KernelOp kernel);

/// How many lanes hold each element of an instruction's operands, where that is
/// known: two on gfx11, else one.
int64_t copiesInLanes(const MatrixInstruction &mi);

/// Queries that attention takes as few: loading keys is what they wait for.
constexpr int64_t mostFewQueries = 16;

/// The block program of an op that has its kernel to itself.
mlir::FailureOr<Schedule> chooseAlone(const Space &space, const Limits &limits);

/// The entry of an op's `greta.config` for `row`; null: none.
mlir::FailureOr<mlir::DictionaryAttr> configFor(mlir::Operation *op,
                                                const TargetRow &row);

/// Takes what `config` has in place of the choice of attention or of its
/// gradients; why it cannot be.
std::optional<std::string>
applyConfig(Schedule &attention, mlir::DictionaryAttr config, bool isBackward);

mlir::FailureOr<Choice> chooseGemm(const Space &space, const Limits &limits,
                                   mlir::MLIRContext *context);

/// The schedule for skinny GEMMs, which is limited by memory, by the model;
/// none where the GEMM does not suit it.
std::optional<Choice> chooseSkinny(const Space &space, const Limits &limits);

/// Such a choice, with the GEMM's rows and columns, for a space whose
/// columns are heads.
Choice withHeads(const Space &space, Choice choice);

/// Blocks for SIMT FMAs, by the model.
mlir::FailureOr<Choice> chooseSimt(const Space &space, const Problem &problem,
                                   const Limits &limits);

/// Why blocks of skinny GEMMs, or for SIMT FMAs, cannot be; none: they can.
using WhyNot = llvm::function_ref<std::optional<std::string>(const Choice &)>;
std::optional<std::string>
whyNotSkinny(const Space &space, const Limits &limits, const Choice &choice);
std::optional<std::string>
whyNotSimt(const Problem &problem, const Limits &limits, const Choice &choice);

/// The measured tile of a space's GEMM: from the tuning database asked for,
/// else from the one that ships; null: none.
const TuningEntry *measuredFor(const Space &space, const Limits &limits);

/// Parts of a GEMM that may be asked for.
constexpr int64_t mostSplit = 1024;

/// Takes the configuration of a GEMM's `greta.config`, else of the tuning
/// database, in place of a choice: `apply` takes it, or says why it cannot be,
/// as "whose .." or "that does not fit: ..", which is an error in a source and
/// a remark about the database. Returns whether one was taken.
mlir::FailureOr<bool> applyAsked(
    const Space &space, const Limits &limits,
    llvm::function_ref<std::optional<std::string>(mlir::DictionaryAttr)> apply);

/// `choice`, which has no matrix instruction, with what is asked for.
mlir::FailureOr<Choice> overrideBlocks(const Space &space, const Limits &limits,
                                       const Choice &choice, WhyNot whyNot);

/// Such a choice as a configuration.
llvm::json::Object configOf(const Choice &choice, const Limits &limits);

/// The fewest weights that share a scale where a GEMM computes B by
/// `greta.dequant`; 0 where none does.
int64_t groupOfWeights(const Space &space);

/// Whether blocks of `depth` are made of words of packed weights, if a GEMM
/// has any, and of groups of them, or lie in one.
bool fitsPacked(const Space &space, int64_t depth);

/// Whether `run` and `depth` of a configuration divide the GEMM's depth.
bool fitsSkinny(const Space &space, const SpaceSchedule &config);

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

/// Whether waves of a workgroup may sum parts of K: a known one, no batch, and
/// A as it is stored, as parts of rows have no norm; with heads B, too.
bool hasParts(const Space &space);

/// Whether workgroups may: that, no heads, and room for the parts' buffers.
bool canSplit(const Space &space);

/// Whether each part of a GEMM with `split` in its configuration has blocks.
bool fitsSplit(const Space &space, const SpaceSchedule &config);

} // namespace greta

#endif
