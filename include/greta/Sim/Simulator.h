//===- Simulator.h - run AMDGPU code objects on the CPU ---------*- C++ -*-===//
//
// The public face of the simulator: a Device of one chip owns memory, loads
// code objects and launches kernels. Device addresses are host addresses, so a
// buffer is read and written directly. Everything a code object or a kernel can
// do wrong comes back as an llvm::Error; nothing asserts, crashes or hangs.
//
//   auto device = cantFail(Device::create("gfx942"));
//   auto module = device->load(bytes);             //
//   Expected<shared_ptr<Module>> const Kernel *k = (*module)->find("rms_norm");
//   void *x = device->allocate(4096);
//   LaunchConfig config;
//   config.grid = {16, 1, 1};                      // workgroups
//   config.block = {256, 1, 1};
//   config.kernarg = packedArguments;              // explicit arguments; the
//   Error e = device->launch(*k, config);          // hidden ones are filled in
//
// A Device may be used from several threads; launches are serialised.
//
//===----------------------------------------------------------------------===//
#ifndef GRETA_SIM_SIMULATOR_H
#define GRETA_SIM_SIMULATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace greta::sim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

/// Checks a launch makes. Accesses outside every allocation are refused
/// whatever is chosen; Bounds adds the exact per-allocation report for scratch
/// and LDS. Align is not among All: it reports what is slow and what only the
/// unaligned access mode allows, which is the one AMD's drivers set. Programs
/// (lib/Sim/Checks/Programs.h) runs workgroups one after another; memory that
/// is allocated for it knows what was written.
enum Check : unsigned {
  CheckNone = 0,
  CheckBounds = 1,
  CheckUninit = 2,
  CheckRaces = 4,
  CheckWaits = 8,
  CheckHazards = 16,
  CheckAll = 31,
  CheckAlign = 32,
  CheckPrograms = 64
};
/// Parses a comma-separated list of all, none, bounds, uninit, races, waits,
/// hazards, align, programs; anything else, or nothing, is an error.
llvm::Expected<unsigned> parseChecks(llvm::StringRef text);

struct KernelArgument {
  std::string name;
  std::string
      kind; ///< .value_kind of the metadata: by_value, global_buffer, hidden_*
  uint32_t offset = 0, size = 0;
};

/// The code object's description of a kernel.
struct KernelInfo {
  std::string name;
  uint32_t kernargBytes = 0, explicitKernargBytes = 0;
  uint32_t ldsBytes = 0, scratchBytes = 0;
  uint32_t maxWorkgroupSize = 1024, waveSize = 64;
  uint32_t vgprs = 0, agprs = 0, sgprs = 0, vgprSpills = 0, sgprSpills = 0;
  std::vector<KernelArgument> args;
};

/// The tensor that an argument of a launch points to, for CheckPrograms.
struct ArgumentExtent {
  uint64_t address = 0, bytes = 0;
  uint64_t elementBytes = 0; ///< 0: it is no tensor
  std::string name;
  bool isTensor() const { return elementBytes; }
};

/// Code that a driver's own compiler made and put into memory, without a code
/// object: what a command processor is told of it, in registers.
struct MachineCode {
  std::string name;   ///< for reports
  uint64_t entry = 0; ///< its address, as the code itself sees it
  /// The memory from there on; the text ends where the padding begins that
  /// compilers put behind it (s_code_end), or with the memory.
  llvm::ArrayRef<uint8_t> memory;
  /// COMPUTE_PGM_RSRC1 to 3: they say the LDS too.
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  bool wave32 = false;
  uint32_t scratchBytes = 0; ///< of a work item
};

class Module;
class Program;
class Source;

class Kernel {
public:
  const KernelInfo &info() const { return data; }
  const Module &module() const { return *owner; }
  /// The first instruction's place in the image, in bytes.
  uint64_t entryOffset() const { return entry; }

private:
  friend class Module;
  friend class Device;
  friend struct Loader;
  friend class Launch;
  KernelInfo data;
  Module *owner = nullptr;
  uint64_t entry = 0; ///< offset of the first instruction in the image
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0, preload = 0;
};

class Module {
public:
  ~Module();
  const Kernel *find(llvm::StringRef name) const;
  llvm::ArrayRef<Kernel> kernels() const { return all; }
  llvm::StringRef chip() const { return chipName; }
  /// Address and size of a global variable of the code object.
  llvm::Expected<std::pair<void *, uint64_t>> global(llvm::StringRef n) const;
  /// Decodes a kernel ahead of its first launch; reports unknown instructions
  /// only when they are reached.
  Program *program() const { return code.get(); }
  llvm::ArrayRef<uint8_t> text() const;
  /// Null where the code object has no line table.
  Source *source() const { return lines.get(); }

private:
  friend class Device;
  friend struct Loader;
  friend class Launch;
  Module();
  std::string chipName;
  std::vector<Kernel> all;
  struct Symbol {
    std::string name;
    uint64_t offset, size;
  };
  std::vector<Symbol> symbols;
  uint8_t *image = nullptr;  ///< segments at their virtual addresses
  uint64_t base = 0;         ///< the image's address, as its code sees it
  std::vector<uint8_t> copy; ///< the image of MachineCode
  uint64_t imageBytes = 0, textBegin = 0, textEnd = 0;
  std::unique_ptr<Program> code;
  std::unique_ptr<Source> lines;
};

/// Counts of one launch (LaunchConfig::stats).
struct LaunchStats {
  uint64_t instructions = 0;
  uint64_t salu = 0, valu = 0, matrix = 0, lds = 0, vmem = 0, smem = 0,
           branch = 0, other = 0;
  uint64_t globalLoadBytes = 0, globalStoreBytes = 0;
  uint64_t globalRequests = 0; ///< wave accesses
  uint64_t globalLines = 0;    ///< 128-byte lines these touched
  uint64_t ldsBytes = 0, ldsConflictCycles = 0;
  uint64_t workgroups = 0, waves = 0;
};

/// The issue model's result for a launch (LaunchConfig::estimate): the
/// instruction streams of as many workgroups as one compute unit holds, taken
/// evenly from the grid, replayed with their waves spread over its SIMDs.
/// docs/internals/simulator.md says what is modelled and from which sources.
/// Everything is in clock cycles and the same in every run.
struct CycleEstimate {
  /// The limit of the compute unit: the unit that is busy most, or, when none
  /// is busy for 60 % of the time, what the waves wait for.
  std::string bound;
  uint64_t cycles = 0;       ///< one compute unit, its resident workgroups
  uint64_t launchCycles = 0; ///< the grid on the chip, at least memoryCycles
  uint64_t memoryCycles = 0; ///< distinct lines over the chip's bandwidth
  double microseconds = 0;   ///< launchCycles at the chip's peak clock

  unsigned workgroups = 0;    ///< replayed together
  unsigned simds = 0;         ///< of the compute unit (4 in RDNA's WGP mode)
  double wavesPerSimd = 0;    ///< where there are waves at all
  std::string occupancyLimit; ///< what keeps more workgroups out

  /// Matrix-unit busy cycles over cycles times SIMDs, whole kernel.
  double matrixShare = 0;
  double valuShare = 0, saluShare = 0, ldsShare = 0, vmemShare = 0;
  /// Share of the waves' time by reason; the rest is issue.
  double waitGlobal = 0, waitLds = 0, waitScalar = 0, waitBarrier = 0,
         waitDependency = 0, waitUnit = 0;

  /// Each wave's loop with most of the matrix instructions (of all instructions
  /// when there are none), which may be a copy of its own: addresses of the
  /// first wave's, and the time at least one wave is inside its loop.
  uint64_t loopBegin = 0, loopEnd = 0, loopCycles = 0, loopIterations = 0;
  double loopMatrixShare = 0;
  double loopCyclesPerIteration = 0; ///< of one wave
  double loopMatrixPerIteration = 0; ///< matrix-unit cycles of one wave
  uint64_t matrixCycles = 0;         ///< summed over the replayed waves
  uint64_t replayedInstructions = 0;
  /// A stream was too long and was cut: launchCycles assumes that the rest goes
  /// on like what was replayed.
  bool truncated = false;
};

/// Figures that an estimate assumes instead of the chip table's; 0 keeps the
/// table's. A step of the replay of a compute unit: an instruction that a wave
/// issued, or a wait of a wave for others.
struct TimelineEntry {
  unsigned workgroup, wave, simd; ///< waves by number, from 0
  uint64_t from;      ///< the cycle at which the wave could have issued
  uint64_t ready;     ///< its operands were there
  uint64_t issued;    ///< its unit took it
  uint64_t until;     ///< the wave could go on
  uint64_t busy;      ///< cycles of the unit
  uint64_t arrives;   ///< of a memory operation; else 0
  const char *waited; ///< for what, between `from` and `ready`
  const char *unit;   ///< null: no instruction
  uint64_t address;   ///< of the instruction
};
struct Timeline {
  std::vector<TimelineEntry> entries;
  std::map<uint64_t, std::string> text; ///< assembly, by address
  /// Later steps are left out.
  static constexpr size_t MaxEntries = 200000;
};

struct EstimateOptions {
  /// Latencies in cycles.
  unsigned ldsLatency = 0, scalarLatency = 0, cacheLatency = 0,
           memoryLatency = 0;
  /// Every latency, and the bytes that the LDS moves a cycle, times these: how
  /// far an estimate depends on what the table assumes.
  double latencyScale = 1, ldsRate = 1;
  /// Compute units of the chip: the same chip is sold with fewer (MI308X: 80 of
  /// gfx942).
  unsigned computeUnits = 0;
  /// Workgroups on the compute unit; 0: what occupancy and grid allow.
  unsigned workgroups = 0;
  /// Replays one wave alone on its SIMD, as llvm-mca does: nothing is said
  /// about the launch.
  bool oneWave = false;
  /// The record of the replay.
  Timeline *timeline = nullptr;
};

/// Global memory that operations used, as sorted ranges of addresses that
/// neither overlap nor touch each other.
struct MemoryUse {
  struct Range {
    uint64_t begin, end;
  };
  std::vector<Range> reads, writes, atomics;
};

struct LaunchConfig {
  Dim3 grid;              ///< workgroups
  Dim3 block;             ///< work items
  uint32_t first[3] = {}; ///< id of the first workgroup
  /// The user SGPRs of a kernel of MachineCode, from s0 on.
  llvm::ArrayRef<uint32_t> userSgprs;
  llvm::ArrayRef<uint8_t> kernarg; ///< explicit arguments, packed by the ABI
  uint32_t dynamicLds = 0;
  /// All workgroups run at a time, in turns: they may wait for each other.
  bool resident = false;
  unsigned checks = CheckAll;
  /// The tensor of each explicit argument in order; empty: unknown.
  llvm::ArrayRef<ArgumentExtent> extents;
  /// Instructions one wave may execute before the launch ends with an error.
  uint64_t instructionBudget = 2000000000ull;
  unsigned threads = 0; ///< worker threads; 0: one per core
  LaunchStats *stats = nullptr;
  /// Filled with CheckPrograms; loads that are atomic are left out.
  MemoryUse *touched = nullptr;
  /// Broken hazard rules that AMD's own kernels break as well, one text an
  /// instruction (lib/Sim/Checks/ChecksHazards.cpp); the launch goes on.
  std::vector<std::string> *warnings = nullptr;
  CycleEstimate *estimate = nullptr;
  /// Runs only the workgroups the estimate needs: a fraction of a large grid.
  /// The results of the others stay unwritten.
  bool estimateOnly = false;
  EstimateOptions estimateOptions;
  uint64_t trace = 0; ///< instructions of workgroup 0 to print
  llvm::raw_ostream *traceStream = nullptr;
};

class MemoryMap;

class Device {
public:
  /// One of simulatedChips().
  static llvm::Expected<std::unique_ptr<Device>> create(llvm::StringRef chip);
  ~Device();

  llvm::StringRef chip() const { return chipName; }
  uint32_t waveSize() const;
  uint32_t computeUnits() const;
  uint32_t ldsBytesPerWorkgroup() const;

  /// Zero bytes give a valid, unreadable address. Null when memory is out.
  /// `isFresh`: CheckPrograms reports what is read of it before it is written.
  void *allocate(uint64_t bytes, bool isFresh = false);
  llvm::Error free(void *p);
  /// Makes host memory visible to kernels without owning it.
  llvm::Error registerHost(void *p, uint64_t bytes);
  llvm::Error unregisterHost(void *p);
  /// The host wrote `bytes` bytes at p, or copied them from `from`.
  void wrote(void *p, uint64_t bytes, const void *from = nullptr);
  /// The allocation that holds p: base and size, or {nullptr, 0}.
  std::pair<void *, uint64_t> allocationOf(const void *p) const;

  llvm::Expected<std::shared_ptr<Module>> load(llvm::ArrayRef<uint8_t> hsaco);
  /// A module of one kernel. It keeps a copy of the text.
  llvm::Expected<std::shared_ptr<Module>> load(const MachineCode &code);
  llvm::Error launch(const Kernel &kernel, const LaunchConfig &config);

private:
  friend class Launch;
  Device();
  std::string chipName;
  std::unique_ptr<MemoryMap> memory;
};

/// The chip an ELF code object was compiled for.
llvm::Expected<llvm::StringRef> chipOfCodeObject(llvm::ArrayRef<uint8_t> hsaco);

/// Names of the simulated chips.
std::vector<llvm::StringRef> simulatedChips();

} // namespace greta::sim

#endif
