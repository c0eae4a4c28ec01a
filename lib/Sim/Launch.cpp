//===- Launch.cpp - runs a kernel over its grid ---------------------------===//
//
// Worker threads take workgroups in order; of the workgroups that fail, the
// first one is reported, whichever thread is faster. One thread runs resident
// workgroups, all in turns.
//
//===----------------------------------------------------------------------===//
#include "Launch.h"
#include "Checks/Checks.h"
#include "Isa/Float.h"
#include "Memory.h"
#include "Timing/Footprint.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <set>
#include <thread>

using namespace greta::sim;
using namespace llvm;

/// Returns how many workgroups run at a time.
uint64_t Launch::mostResident(uint64_t lds) const {
  unsigned waves =
      unsigned((config.block.count() + info.waveSize - 1) / info.waveSize);
  Residency one =
      residency(chip, kernel.rsrc1, wave32, waves, uint32_t(lds), info.sgprs);
  return uint64_t(one.workgroups) * one.units;
}

Error Launch::validate() {
  auto bad = [&](const Twine &t) {
    return createStringError("kernel '" + info.name + "': " + t);
  };
  const Dim3 &b = config.block;
  if (b.x == 0 || b.y == 0 || b.z == 0 || b.x > 1024 || b.y > 1024 ||
      b.z > 1024 || b.count() > info.maxWorkgroupSize)
    return bad("a workgroup of " + Twine(b.x) + "x" + Twine(b.y) + "x" +
               Twine(b.z) + " work items; it was compiled for 1 to " +
               Twine(info.maxWorkgroupSize));
  uint64_t lds = uint64_t(info.ldsBytes) + config.dynamicLds;
  if (lds > chip.ldsBytes)
    return bad(Twine(lds) + " bytes of LDS; " + chip.name + " has " +
               Twine(chip.ldsBytes));
  if (config.resident && config.estimateOnly)
    return bad("an estimate of some workgroups alone, which wait for the "
               "others");
  uint64_t fit = 0;
  if (config.resident)
    fit = mostResident(lds);
  if (config.resident && b.count() && config.grid.count() > fit)
    return bad(Twine(config.grid.count()) +
               " workgroups that wait for each other; " + Twine(fit) +
               " of them run at a time");
  if (config.kernarg.size() > 65536)
    return bad("more than 64 KiB of arguments");
  if (config.kernarg.size() < info.explicitKernargBytes)
    return bad(Twine(config.kernarg.size()) + " bytes of arguments given, " +
               Twine(info.explicitKernargBytes) + " needed");
  for (auto [blocks, items] :
       {std::pair(config.grid.x, b.x), std::pair(config.grid.y, b.y),
        std::pair(config.grid.z, b.z)})
    if (uint64_t(blocks) * items > UINT32_MAX)
      return bad("more than 2^32 work items in one dimension");
  ldsBytes = uint32_t(lds);
  return Error::success();
}

/// Holds a workgroup's waves and the memory that they run on.
struct Launch::Place {
  Workgroup g;
  std::unique_ptr<uint32_t, decltype(&std::free)> rows{nullptr, &std::free};
  std::unique_ptr<Checker> checker;
  LaunchStats stats;
  RunOptions options;
  uint64_t at = 0; ///< the workgroup's number
};

bool Launch::prepare(Place &place) {
  Workgroup &g = place.g;
  g.memory = device.memory.get();
  g.source = kernel.module().source();
  g.programBase = kernel.module().base;
  g.scratchBytes = info.scratchBytes;
  g.ldsBytes = ldsBytes;
  g.lds.resize(ldsBytes + 16);
  g.waves.resize(wavesPerGroup);
  // These are the rows of all waves; untouched ones cost nothing.
  size_t rowWords = size_t(row::Count) * MaxLanes;
  place.rows.reset(
      static_cast<uint32_t *>(std::calloc(rowWords * wavesPerGroup + 16, 4)));
  if (!place.rows) {
    std::lock_guard<std::mutex> lock(errorLock);
    error = "out of memory";
    failed = 0;
    return false;
  }
  uint32_t *aligned = reinterpret_cast<uint32_t *>(
      (reinterpret_cast<uintptr_t>(place.rows.get()) + 63) & ~uintptr_t(63));
  if (config.checks)
    place.checker = std::make_unique<Checker>(g, config.checks, programs.get());
  for (unsigned k = 0; k < wavesPerGroup; ++k) {
    g.waves[k].v =
        reinterpret_cast<uint32_t (*)[MaxLanes]>(aligned + rowWords * k);
    g.waves[k].checker = place.checker.get();
  }
  return true;
}

/// Puts workgroup `at` of the grid there; `number` is its scratch memory.
void Launch::begin(Place &place, uint64_t at, unsigned number) {
  Workgroup &g = place.g;
  place.at = at;
  auto found = llvm::lower_bound(sample, at);
  GroupTrace *timeline = nullptr;
  if (found != sample.end() && *found == at) {
    timeline = &traces[size_t(found - sample.begin())];
    timeline->waves.resize(wavesPerGroup);
  }
  for (Wave &w : g.waves) {
    w.timeline = timeline;
    w.stats = config.stats || timeline ? &place.stats : nullptr;
  }
  g.id[0] = uint32_t(at % config.grid.x) + config.first[0];
  g.id[1] = uint32_t(at / config.grid.x % config.grid.y) + config.first[1];
  g.id[2] = uint32_t(at / config.grid.x / config.grid.y) + config.first[2];
  g.arrived = 0;
  g.generation = 0;
  // LDS starts with unspecified bytes, on which no kernel may rely.
  std::memset(g.lds.data(), 0xfb, g.lds.size());
  if (place.checker)
    place.checker->reset();
  if (programs)
    programs->begin(g.id, uint32_t(at), config.resident);
  uint64_t waveScratch =
      uint64_t(info.scratchBytes + 3) / 4 * 4 * info.waveSize;
  for (unsigned k = 0; k < wavesPerGroup; ++k)
    startWave(g, number, k,
              scratch[number] ? scratch[number] + waveScratch * k : nullptr);
  place.options = RunOptions();
  place.options.checked = config.checks;
  if (at == 0 && config.traceStream) {
    place.options.trace = config.trace;
    place.options.traceStream = config.traceStream;
  }
}

/// Counts a workgroup that has ended.
void Launch::end(Place &place) {
  for (const Wave &w : place.g.waves)
    executed += config.instructionBudget - w.budget;
  ++place.stats.workgroups;
  place.stats.waves += wavesPerGroup;
  if (!place.g.failed)
    return;
  std::lock_guard<std::mutex> lock(errorLock);
  if (place.at < failed) {
    error = place.g.error;
    failed = place.at;
  }
}

/// Adds up what all workgroups of a place did.
void Launch::collect(Place &place) {
  std::lock_guard<std::mutex> lock(errorLock);
  warnings.insert(place.g.warnings.begin(), place.g.warnings.end());
  uint64_t *to = reinterpret_cast<uint64_t *>(&total);
  const uint64_t *from = reinterpret_cast<const uint64_t *>(&place.stats);
  for (size_t k = 0; k < sizeof(LaunchStats) / 8; ++k)
    to[k] += from[k];
}

void Launch::work(unsigned worker) {
  Place place;
  if (!prepare(place))
    return;
  bool only = config.estimate && config.estimateOnly;
  uint64_t groups = only ? sample.size() : config.grid.count();
  while (true) {
    uint64_t at = next.fetch_add(1);
    if (at >= groups)
      break;
    if (only)
      at = sample[at];
    if (at > failed)
      break;
    begin(place, at, worker);
    runWorkgroup(place.g, place.options);
    end(place);
  }
  collect(place);
}

/// Lets all workgroups take turns, which are short because most workgroups look
/// for the others most of the time.
void Launch::workTogether() {
  constexpr uint64_t turn = 4000;
  std::vector<Place> places(config.grid.count());
  for (auto [at, place] : llvm::enumerate(places)) {
    if (!prepare(place))
      return;
    begin(place, at, unsigned(at));
    place.options.turn = turn;
  }
  std::vector<Place *> left;
  for (Place &place : places)
    left.push_back(&place);
  while (!left.empty() && failed == ~uint64_t(0))
    llvm::erase_if(left, [&](Place *place) {
      if (programs)
        programs->resume(uint32_t(place->at));
      if (runTurns(place->g, place->options))
        return false;
      end(*place);
      return true;
    });
  for (Place &place : places)
    collect(place);
}

/// Returns workgroup k of n out of the grid. They lie evenly along its slowest
/// dimension, since causal attention's first ones have the least work and its
/// last ones the most, and anywhere along the others.
static uint64_t sampled(const Dim3 &grid, uint64_t k, uint64_t n) {
  auto anywhere = [&](double step) {
    double x = .5 + double(k) * step;
    return x - std::floor(x);
  };
  auto part = [](double share, uint64_t of) {
    return std::min(uint64_t(share * double(of)), of - 1);
  };
  double evenly = (double(k) + .5) / double(n);
  uint64_t x = 0, y = 0, z = 0;
  if (grid.z > 1)
    z = part(evenly, grid.z);
  if (grid.y > 1)
    y = part(grid.z > 1 ? anywhere(.755) : evenly, grid.y);
  x = part(grid.count() > grid.x ? anywhere(.618) : evenly, grid.x);
  return (z * grid.y + y) * grid.x + x;
}

/// Chooses as many workgroups as share a compute unit.
void Launch::chooseSample() {
  uint64_t groups = config.grid.count();
  where = residency(chip, kernel.rsrc1, wave32, wavesPerGroup, ldsBytes,
                    info.sgprs);
  if (unsigned units = config.estimateOptions.computeUnits)
    where.units = std::max(1u, units * chip.simds / where.simds);
  uint64_t fair = (groups + where.units - 1) / where.units;
  if (config.estimateOptions.workgroups) {
    where.workgroups = config.estimateOptions.workgroups;
    where.limit = "the request";
  } else if (fair < where.workgroups) {
    where.workgroups = unsigned(fair);
    where.limit = "the grid";
  }
  where.workgroups = unsigned(std::min<uint64_t>(where.workgroups, groups));
  std::set<uint64_t> chosen;
  for (uint64_t k = 0; k < where.workgroups; ++k) {
    uint64_t at = sampled(config.grid, k, where.workgroups);
    while (!chosen.insert(at).second)
      at = (at + 1) % groups;
  }
  // Kernels deal their tiles out to chiplets, and even steps through a grid may
  // all meet the same chiplet, whose operands lie together. The ends of the
  // grid tell how far memory reaches.
  isFirstExtra = chosen.insert(0).second;
  chosen.insert(groups - 1);
  sample.assign(chosen.begin(), chosen.end());
  traces.resize(sample.size());
}

/// Returns the workgroup of the sample whose number of instructions is nearest
/// to the mean of those that ran, or null if they are about equal.
static const GroupTrace *typicalOf(ArrayRef<GroupTrace> sample, double mean) {
  auto fewer = [](const GroupTrace &a, const GroupTrace &b) {
    return a.executed < b.executed;
  };
  auto [least, most] = std::minmax_element(sample.begin(), sample.end(), fewer);
  if (double(most->executed) <= 1.1 * double(least->executed))
    return nullptr;
  return &*llvm::min_element(sample, [&](const auto &a, const auto &b) {
    return std::abs(double(a.executed) - mean) <
           std::abs(double(b.executed) - mean);
  });
}

void Launch::estimate() {
  CycleEstimate &e = *config.estimate;
  uint64_t groups = config.grid.count();
  uint64_t ran = config.estimateOnly ? sample.size() : groups;
  ReplayOptions options;
  options.wave32 = wave32;
  options.estimate = config.estimateOptions;
  ArrayRef<GroupTrace> replayed =
      ArrayRef(traces).slice(isFirstExtra, where.workgroups);
  // A unit that always has work holds as many large workgroups as small ones at
  // a time, so the one nearest to the mean replaces unequal ones.
  std::vector<GroupTrace> equal;
  if (auto mean = typicalOf(replayed, double(executed) / double(ran))) {
    equal.assign(replayed.size(), *mean);
    replayed = equal;
  }
  estimateCycles(chip, *kernel.module().program(), replayed, where, options, e);
  e.workgroups = where.workgroups;
  e.occupancyLimit = where.limit;
  if (config.estimateOptions.oneWave) { // one wave is no launch
    e.workgroups = 1;
    e.occupancyLimit = "one wave alone";
    return;
  }
  const TimingRow &row = timingRow(chip);
  double bytes = double(footprint(traces, groups, *device.memory));
  e.memoryCycles = uint64_t(bytes * row.clockMHz / (1e3 * row.memoryGBs));
  uint64_t perRound = uint64_t(where.workgroups) * where.units;
  uint64_t inSample = 0;
  for (const GroupTrace &t : replayed)
    inSample += t.executed;
  double cycles = double(e.cycles);
  if (e.truncated && e.replayedInstructions)
    cycles *= double(inSample) / double(e.replayedInstructions);
  // The sample's workgroups may have more or less to do than others.
  if (inSample)
    cycles *= double(executed) / double(ran) /
              (double(inSample) / double(replayed.size()));
  e.launchCycles = (groups + perRound - 1) / perRound * uint64_t(cycles);
  if (e.memoryCycles >= e.launchCycles) {
    e.launchCycles = e.memoryCycles;
    e.bound = "memory bandwidth";
  }
  e.microseconds = double(e.launchCycles) / row.clockMHz;
}

Error Launch::run() {
  if (Error e = validate())
    return e;
  uint64_t groups = config.grid.count();
  if (config.stats)
    *config.stats = LaunchStats();
  if (!groups)
    return Error::success();
  Program &program = *kernel.module().program();
  if (Error e = program.prepare(wave32))
    return e;
  int64_t entry = program.indexOf(kernel.entry);
  if (entry < 0)
    return createStringError("kernel '" + info.name +
                             "': its entry is not an instruction");
  entryIndex = uint32_t(entry);
  wavesPerGroup =
      unsigned((config.block.count() + info.waveSize - 1) / info.waveSize);

  unsigned threads = config.threads
                         ? config.threads
                         : std::max(1u, std::thread::hardware_concurrency());
  threads = unsigned(std::min<uint64_t>(threads, groups));
  if (config.estimate) {
    *config.estimate = CycleEstimate();
    chooseSample();
  }
  MemoryMap &memory = *device.memory;
  if (config.checks & CheckPrograms)
    programs = std::make_unique<ProgramChecker>(
        memory, kernel.module().source(), config.extents);
  if (config.trace || programs)
    threads = 1;
  std::vector<void *> blocks;
  scope_exit cleanup([&] {
    for (void *p : blocks)
      memory.release(p);
  });
  auto get = [&](uint64_t bytes) {
    uint8_t *p = static_cast<uint8_t *>(memory.allocate(bytes));
    if (p) {
      std::memset(p, 0, bytes);
      blocks.push_back(p);
    }
    return p;
  };
  arguments =
      get(std::max<uint64_t>(info.kernargBytes, config.kernarg.size()) + 16);
  packet = get(64);
  uint64_t scratchBytes =
      uint64_t(info.scratchBytes + 3) / 4 * 4 * info.waveSize * wavesPerGroup;
  bool good = arguments && packet;
  // Resident workgroups keep theirs; a worker's others share one.
  for (uint64_t k = 0; k < (config.resident ? groups : threads); ++k) {
    scratch.push_back(scratchBytes ? get(scratchBytes) : nullptr);
    good &= !scratchBytes || scratch.back();
  }
  if (!good)
    return createStringError("kernel '" + info.name + "': out of memory");
  fillArguments();

  if (config.resident) {
    workTogether();
  } else {
    std::vector<std::thread> pool;
    for (unsigned k = 1; k < threads; ++k)
      pool.emplace_back([this, k] { work(k); });
    work(0);
    for (std::thread &t : pool)
      t.join();
  }
  if (config.stats)
    *config.stats = total;
  if (config.touched && programs)
    *config.touched = programs->touched();
  if (config.warnings)
    for (auto &[address, text] : warnings)
      config.warnings->push_back("kernel '" + info.name + "': " + text);
  if (failed != ~uint64_t(0))
    return createStringError("kernel '" + info.name + "': " + error);
  if (config.estimate)
    estimate();
  return Error::success();
}

Error Device::launch(const Kernel &kernel, const LaunchConfig &config) {
  if (kernel.module().chip() != chipName)
    return createStringError("the kernel was loaded for another chip");
  std::lock_guard<std::mutex> lock(memory->mutex());
  Launch launch(*this, kernel, config);
  return launch.run();
}
