//===- CheckSchedule.cpp - whether a schedule fits its kernel -------------===//

#include "greta/Configure/CheckSchedule.h"
#include "Configure.h"

using namespace mlir;
using namespace greta;

/// Whether blocks are whole heads, or such a part of one as a skinny GEMM, or
/// rope behind a GEMM whose operands go straight to registers, may have.
static bool takesHeads(const Space &space, const SpaceSchedule &schedule,
                       std::optional<int64_t> columns) {
  if (schedule.run || schedule.columns == columns)
    return true;
  return space.pairs != Space::Pairs::None && schedule.pipeline &&
         !schedule.pipeline.getStages() && schedule.columns > 0 &&
         *columns % schedule.columns == 0 && schedule.rows[1] == 1;
}

/// Why a space cannot have the schedule, behind "has a schedule whose space
/// 0"; none: it can.
static std::optional<std::string> whyNot(const Space &space,
                                         const SpaceSchedule &schedule,
                                         MLIRContext *context) {
  std::optional<int64_t> columns = constantOf(space.columns(context));
  bool rowsFit = schedule.flat ? space.isFlat
                               : schedule.rows.size() == space.groups.size();
  bool hasDepth =
      space.matmul || (space.alone && !getUpdatedCache(space.alone));
  if (!rowsFit || (hasDepth && !schedule.depth) ||
      (space.heads && !takesHeads(space, schedule, columns)))
    return "needs 'rows' for " + std::to_string(space.groups.size()) +
           " groups of row dimensions, and for a GEMM 'depth' and whole heads, "
           "for attention 'depth'";
  if (!schedule.run && !fitsPacked(space, schedule.depth))
    return "has 'depth' " + std::to_string(schedule.depth) +
           "; of packed weights it takes a power of two, 8 to eight groups";
  if (schedule.run && !fitsSkinny(space, schedule.run, schedule.depth))
    return "has 'run' " + std::to_string(schedule.run) +
           "; that is for GEMMs of a static depth, of which it and 'depth' "
           "take whole runs, powers of two";
  if (schedule.split > 1 && !fitsSplit(space, schedule))
    return "does not give each of the " + std::to_string(schedule.split) +
           " parts of its GEMM blocks along a static K";
  // A row that is reduced belongs to one workgroup.
  if (space.hasReduction && !schedule.loop &&
      (!columns || *columns > schedule.columns))
    return "reduces rows longer than its " + std::to_string(schedule.columns) +
           " 'columns'; set 'loop'";
  return std::nullopt;
}

LogicalResult greta::checkSchedule(KernelOp kernel, ArrayRef<Space> spaces) {
  ScheduleAttr schedule = kernel.getScheduleAttr();
  if (!schedule)
    return kernel.emitOpError("has no schedule; run greta-configure first");
  for (auto [i, space, entries] :
       llvm::enumerate(spaces, schedule.getValue().spaces))
    if (std::optional<std::string> why =
            whyNot(space, entries, kernel.getContext()))
      return kernel.emitOpError("has a schedule whose space ")
             << i << " " << *why;
  return success();
}
