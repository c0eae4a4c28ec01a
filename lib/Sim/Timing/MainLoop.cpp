//===- MainLoop.cpp - a GEMM's main loop, from its code alone -------------===//
//
// Nothing is executed. In the issue model each wave gets the loop's
// instructions, iteration after iteration.
//
//===----------------------------------------------------------------------===//

#include "greta/Sim/MainLoop.h"
#include "Code/Program.h"
#include "Timing/TimingOps.h"

using namespace greta::sim;
using namespace llvm;

/// The number of iterations that are replayed. The first ones wait for elements
/// that earlier iterations would have loaded.
static constexpr unsigned Iterations = 12;

/// Returns the first and the last instruction of the innermost loop with the
/// most matrix instructions.
static std::optional<std::pair<uint32_t, uint32_t>>
findLoop(const Program &program, unsigned &matrix) {
  std::optional<std::pair<uint32_t, uint32_t>> best;
  std::vector<std::pair<uint32_t, uint32_t>> loops;
  std::vector<uint32_t> before = {0}; // counts matrix instructions
  for (uint32_t k = 0; k < program.size(); ++k)
    before.push_back(before.back() + (program.code()[k].unit == Unit::Matrix));
  matrix = 0;
  for (uint32_t k = 0; k < program.size(); ++k) {
    const Inst &i = program.code()[k];
    if (i.unit != Unit::Branch || i.imm < 0 || i.imm > int64_t(k))
      continue;
    if (before[k + 1] > before[i.imm])
      loops.push_back({uint32_t(i.imm), k});
  }
  for (auto loop : loops) {
    bool isInnermost = none_of(loops, [&](auto other) {
      return other != loop && other.first >= loop.first &&
             other.second <= loop.second;
    });
    uint32_t count = before[loop.second + 1] - before[loop.first];
    if (isInnermost && count > matrix) {
      matrix = count;
      best = loop;
    }
  }
  return best;
}

Expected<std::optional<MainLoop>>
greta::sim::findMainLoop(ArrayRef<uint8_t> codeObject, StringRef name,
                         unsigned waves, unsigned wavesPerSimd) {
  auto chipName = chipOfCodeObject(codeObject);
  if (!chipName)
    return chipName.takeError();
  auto device = Device::create(*chipName);
  if (!device)
    return device.takeError();
  auto module = (*device)->load(codeObject);
  if (!module)
    return module.takeError();
  const Kernel *kernel = (*module)->find(name);
  if (!kernel)
    return createStringError("no kernel '" + name + "'");
  const Chip &chip = *findChip(*chipName);
  Program &program = *(*module)->program();
  ReplayOptions options;
  options.wave32 = kernel->info().waveSize == 32;
  if (Error e = program.prepare(options.wave32))
    return std::move(e);
  MainLoop loop;
  auto bounds = findLoop(program, loop.matrix);
  if (!bounds)
    return std::nullopt;
  auto [begin, end] = *bounds;
  loop.instructions = end - begin + 1;

  const TimingRow &row = timingRow(chip);
  WaveTrace iteration;
  for (uint32_t k = begin; k <= end; ++k) {
    TraceEntry entry;
    entry.inst = k;
    Op op = timedOp(chip, row, options.wave32, program.code()[k]);
    unsigned bytes = op.bytes * (options.wave32 ? 32u : 64u);
    if (op.port == Lds) // gfx950 is twice as wide
      entry.lds = uint16_t(
          std::max(1u, bytes / (chip.family == Family::GFX950 ? 256 : 128)));
    if (op.port == Vmem && !op.store)
      entry.fresh = entry.lines = uint16_t(std::max(1u, bytes / 128));
    iteration.push_back(entry);
  }
  WaveTrace stream;
  for (unsigned k = 0; k < Iterations; ++k)
    stream.insert(stream.end(), iteration.begin(), iteration.end());
  // LLVM compiles for workgroups that spread over both halves of a WGP.
  Residency where;
  where.waves = std::max(1u, waves);
  where.simds = chip.simds * (chip.isGfx9() ? 1 : 2);
  where.workgroups = std::max(1u, wavesPerSimd * where.simds / where.waves);
  GroupTrace group;
  group.waves.assign(where.waves, stream);
  std::vector<GroupTrace> groups(where.workgroups, group);
  CycleEstimate estimate;
  estimateCycles(chip, program, groups, where, options, estimate);
  loop.matrixShare = estimate.loopMatrixShare;
  return loop;
}
