//===- Dispatch.cpp - from compute registers to a launch ------------------===//
//
// Comes in: the registers COMPUTE_* and the size of a dispatch. A dispatch
// whose edge workgroups are partial is several launches, each of whole ones.
// Code is decoded once, as long as the memory that holds it does not change.
//
//===----------------------------------------------------------------------===//
#include "CommandProcessor.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>

using namespace greta::radeon;
using namespace greta;
using namespace llvm;

namespace {
enum Register : unsigned {
  START = 0xb810,
  NUM_THREAD = 0xb81c,
  PGM_LO = 0xb830,
  PGM_HI = 0xb834,
  PGM_RSRC1 = 0xb848,
  PGM_RSRC2 = 0xb84c,
  TMPRING_SIZE = 0xb860,
  PGM_RSRC3 = 0xb8a0,
  USER_DATA = 0xb900,
};
enum Initiator : uint32_t {
  PartialGroups = 1u << 1,
  StartAtZero = 1u << 2,
  ThreadDimensions = 1u << 5,
  Wave32 = 1u << 15,
};

/// Code that has run. Drivers put new code where freed code was: the memory is
/// compared before each use.
struct Known {
  std::shared_ptr<sim::Module> module;
  std::vector<uint8_t> memory;
};
} // namespace

/// By everything that makes a kernel of the simulator; of the one Machine.
using KnownCode =
    std::map<std::tuple<uint64_t, uint32_t, uint32_t, uint32_t, uint32_t, bool>,
             Known>;
static KnownCode &knownCode() {
  static auto *known = new KnownCode; // the card's thread outlives main()
  return *known;
}

/// Bytes that the driver has reserved for each wave's scratch.
static uint32_t scratchOfWave(uint32_t tmpring, const Chip &chip) {
  bool isGfx10 = chip.ip >> 16 == 10;
  return isGfx10 ? (tmpring >> 12 & 0x1fff) * 1024
                 : (tmpring >> 12 & 0x3ffff) * 256;
}

Expected<const sim::Kernel *> CommandProcessor::kernel(bool wave32) {
  uint64_t entry = uint64_t(reg(PGM_HI) & 0xff) << 40 | uint64_t(reg(PGM_LO))
                                                            << 8;
  uint32_t scratch = 0;
  if (reg(PGM_RSRC2) & 1)
    scratch =
        scratchOfWave(reg(TMPRING_SIZE), machine.chip()) / (wave32 ? 32 : 64);
  auto code = memory(entry, 4, "a compute shader");
  if (!code)
    return code.takeError();
  auto [base, bytes] = machine.device().allocationOf(*code);
  bytes -= entry - reinterpret_cast<uint64_t>(base);
  Known &known = knownCode()[{entry, reg(PGM_RSRC1), reg(PGM_RSRC2),
                              reg(PGM_RSRC3), scratch, wave32}];
  if (!known.module || known.memory.size() > bytes ||
      std::memcmp(known.memory.data(), *code, known.memory.size())) {
    sim::MachineCode from;
    from.name = "compute shader at 0x" + utohexstr(entry, true);
    from.entry = entry;
    from.memory = {*code, bytes};
    from.rsrc1 = reg(PGM_RSRC1);
    from.rsrc2 = reg(PGM_RSRC2);
    from.rsrc3 = reg(PGM_RSRC3);
    from.wave32 = wave32;
    from.scratchBytes = scratch;
    auto module = machine.device().load(from);
    if (!module)
      return module.takeError();
    known.module = *module;
    ArrayRef<uint8_t> text = known.module->text();
    known.memory.assign(text.begin(), text.end());
  }
  return &known.module->kernels().front();
}

Error CommandProcessor::launch(const Piece &piece, uint32_t initiator) {
  auto k = kernel(initiator & Wave32);
  if (!k)
    return k.takeError();
  uint32_t user[16];
  for (unsigned i = 0; i < 16; ++i)
    user[i] = reg(USER_DATA + 4 * i);
  sim::LaunchConfig config;
  config.grid = piece.grid;
  config.block = piece.block;
  llvm::copy(piece.first, config.first);
  config.userSgprs =
      ArrayRef<uint32_t>(user).take_front(reg(PGM_RSRC2) >> 1 & 31);
  config.checks = machine.checks();
  config.instructionBudget = machine.waveBudget;
  sim::CycleEstimate estimate;
  config.estimate = &estimate;
  uint64_t lanes = initiator & Wave32 ? 32 : 64;
  uint64_t waves = (piece.block.count() + lanes - 1) / lanes;
  config.estimateOnly = machine.isEstimateOnly() &&
                        waves * piece.grid.count() > Machine::fewWaves;
  if (machine.isTraced())
    say((*k)->info().name + ", " + Twine(piece.grid.x) + "x" +
        Twine(piece.grid.y) + "x" + Twine(piece.grid.z) + " workgroups of " +
        Twine(piece.block.x) + "x" + Twine(piece.block.y) + "x" +
        Twine(piece.block.z));
  if (Error e = machine.device().launch(**k, config))
    return e;
  machine.record((*k)->info(), config);
  machine.pass(
      std::max<uint64_t>(1, uint64_t(std::ceil(estimate.microseconds * 100))));
  return Error::success();
}

Error CommandProcessor::dispatch(const uint32_t size[3], uint32_t initiator) {
  if (!(initiator & 1)) // COMPUTE_SHADER_EN
    return Error::success();
  // In each direction whole workgroups and perhaps a partial one behind them.
  struct Part {
    uint32_t first, groups, items;
  };
  SmallVector<Part, 2> parts[3];
  bool isGfx12 = machine.chip().ip >> 16 == 12;
  for (unsigned d = 0; d < 3; ++d) {
    uint32_t threads = reg(NUM_THREAD + 4 * d);
    uint32_t full = threads & (isGfx12 && d < 2 ? 0x1fff : 0xffff);
    uint32_t partial = threads >> 16;
    uint32_t start = initiator & StartAtZero ? 0 : reg(START + 4 * d);
    uint32_t end = size[d];
    if (!full)
      return createStringError("a dispatch of workgroups without work items");
    if (initiator & ThreadDimensions) {
      partial = end % full;
      end = (end + full - 1) / full;
    } else if (!(initiator & PartialGroups)) {
      partial = 0;
    }
    if (partial == full)
      partial = 0;
    if (end <= start)
      return Error::success();
    uint32_t whole = end - (partial != 0);
    if (whole > start)
      parts[d].push_back({start, whole - start, full});
    if (partial)
      parts[d].push_back({whole, 1, partial});
  }
  for (const Part &z : parts[2])
    for (const Part &y : parts[1])
      for (const Part &x : parts[0]) {
        Piece piece = {{x.first, y.first, z.first},
                       {x.groups, y.groups, z.groups},
                       {x.items, y.items, z.items}};
        if (Error e = launch(piece, initiator))
          return e;
      }
  return Error::success();
}
