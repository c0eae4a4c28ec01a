//===- ChecksMemory.cpp - races and uninitialised LDS ---------------------===//
#include "Checks/ChecksState.h"
#include "Checks/Programs.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/StringExtras.h"

using namespace greta::sim;
using llvm::Twine;

void Checker::State::access(Wave &w, const Inst &i, unsigned lane,
                            uint64_t address, Shadow &s, uint8_t bytes,
                            Access kind, bool isLds) {
  const std::vector<uint32_t> &clock = waves[w.id].clock;
  auto race = [&](const char *what, unsigned other) {
    w.fault(i,
            Twine(isLds ? "LDS" : "global memory") + " race: this " +
                (kind == Access::Write    ? "write"
                 : kind == Access::Atomic ? "atomic"
                                          : "read") +
                " of address 0x" + Twine::utohexstr(address) + " and a" + what +
                " by wave " + Twine(other) + " are not ordered by a barrier",
            int(lane));
  };
  bool write = kind == Access::Write || kind == Access::Atomic;
  bool atomic = kind == Access::Atomic || kind == Access::AtomicRead;
  if (s.writeClock && s.writer != w.id && (s.writeBytes & bytes) &&
      s.writeClock > clock[s.writer] && !(atomic && s.atomic))
    return race(s.atomic ? "n atomic" : " write", s.writer);
  if (write) {
    // Only plain reads are noted, as atomics and atomic loads do not race.
    uint32_t others = s.readers & ~(1u << w.id);
    if (others && (s.readBytes & bytes))
      for (uint32_t m = others; m; m &= m - 1) {
        unsigned r = unsigned(llvm::countr_zero(m));
        if (s.readClock > clock[r])
          return race(" read", r);
      }
    // Writes of one wave to parts of a word add up within an interval.
    bool same = s.writer == w.id && s.writeClock == clock[w.id];
    s.writeBytes = same ? s.writeBytes | bytes : bytes;
    s.writer = uint8_t(w.id);
    s.writeClock = clock[w.id];
    s.atomic = kind == Access::Atomic;
  }
  if (kind == Access::Read) {
    if (s.readClock < clock[w.id]) {
      s.readClock = clock[w.id];
      s.readers = 0;
      s.readBytes = 0;
    }
    s.readers |= 1u << w.id;
    s.readBytes |= bytes;
  }
}

static bool isDirectToLds(const Inst &i) {
  return i.unit == Unit::Global || i.unit == Unit::Buffer;
}

/// Notes the words of a read that nobody wrote. `defined` has a flag for each
/// byte; null: all are written. Scalar reads have no lane.
void Checker::State::markRead(Wave &w, const Inst &i, unsigned lane,
                              const uint8_t *defined, unsigned bytes,
                              uint64_t address, bool isLds) {
  bool isScalar = lane == ~0u;
  bool movesWords = !isLds && isAtomic(i);
  sawMemory = true;
  for (unsigned k = 0; k < bytes; k += 4) {
    bool all = true;
    if (defined && k + 4 <= bytes) { // the usual case, without a loop
      uint32_t flags;
      std::memcpy(&flags, defined + k, 4);
      all = movesWords ? flags != 0 : flags == 0x01010101;
    }
    for (unsigned b = k; defined && k + 4 > bytes && b < bytes; ++b)
      all &= defined[b];
    unsigned word = isScalar ? wordsSeen[0]++ : wordsSeen[lane]++ & 3;
    if (all)
      continue;
    if (!undefinedScalar && !undefinedWord[0] && !undefinedWord[word & 3]) {
      std::string what = isLds ? "LDS address " + std::to_string(address + k)
                               : programs->describe(address + k);
      waves[w.id].origin = programs ? "uninitialised memory: " + what +
                                          ", which nobody wrote, is read at " +
                                          programs->place(i) + " and"
                                    : "; the value comes from " + what +
                                          ", never written, read at 0x" +
                                          llvm::utohexstr(i.address);
    }
    if (isScalar)
      undefinedScalar |= 1u << word;
    else
      undefinedWord[word] |= uint64_t(1) << lane;
  }
}

bool Checker::isBeyondArgument(Wave &w, const Inst &i, int lane,
                               uint64_t address, unsigned bytes, bool write) {
  return state->programs &&
         !state->programs->inBounds(w, i, lane, address, bytes, write);
}

void Checker::lds(Wave &w, const Inst &i, unsigned lane, uint32_t address,
                  unsigned bytes, Access kind) {
  State &s = *state;
  bool rewrite = kind == Access::Rewrite;
  if (rewrite)
    kind = Access::Write;
  if (s.checks & CheckAlign)
    s.alignment(w, i, lane, address, bytes, true);
  if (address % 4 && isDirectToLds(i))
    return w.fault(i,
                   "direct-to-LDS load to the misaligned address " +
                       Twine(address) + ": the hardware ignores the low bits",
                   int(lane));
  if (s.checks & CheckWaits)
    s.delivered(w, i, lane, address, bytes, kind);
  if (s.checks & CheckUninit) {
    uint8_t *defined = s.ldsDefined.data() + address;
    if (kind == Access::Write) {
      std::memset(defined, 1, bytes);
    } else {
      s.markRead(w, i, lane, defined, bytes, address, /*isLds=*/true);
      if (kind == Access::Atomic)
        std::memset(defined, 1, bytes);
    }
  }
  if (!(s.checks & CheckRaces) || s.waves.size() < 2 || rewrite)
    return;
  for (unsigned k = 0; k < bytes && w.state != RunState::Fault;) {
    unsigned in = (address + k) & 3, part = std::min(bytes - k, 4 - in);
    s.access(w, i, lane, address + k, s.ldsShadow[(address + k) / 4],
             uint8_t(((1u << part) - 1) << in), kind, true);
    k += part;
  }
}

void Checker::global(Wave &w, const Inst &i, unsigned lane, uint64_t address,
                     unsigned bytes, Access kind) {
  State &s = *state;
  if (s.checks & CheckAlign)
    s.alignment(w, i, lane, address, bytes, false);
  bool read = kind == Access::Read || kind == Access::AtomicRead;
  if (s.programs && !ProgramChecker::isScratch(w, i, address)) {
    if (!s.programs->inBounds(w, i, int(lane), address, bytes, !read) ||
        !s.programs->inOrder(w, i, int(lane), address, bytes, kind))
      return;
    const Region *r = w.lastRegion;
    uint8_t *defined = r->defined ? r->defined + (address - r->base) : nullptr;
    if (s.checks & CheckUninit && (read || kind == Access::Atomic))
      s.markRead(w, i, lane, defined, bytes, address, /*isLds=*/false);
    if (defined && !read)
      std::memset(defined, 1, bytes);
  }
  if (!(s.checks & CheckRaces) || s.waves.size() < 2 || kind == Access::Rewrite)
    return;
  if (i.has(Coherent))
    kind = kind == Access::Read ? Access::AtomicRead : Access::Atomic;
  std::array<Shadow, 64> *page = nullptr;
  for (unsigned k = 0; k < bytes && w.state != RunState::Fault;) {
    uint64_t a = address + k;
    unsigned in = a & 3, part = std::min(bytes - k, 4 - in);
    if (!page || a % 256 == 0)
      page = &s.globalShadow[a / 256];
    s.access(w, i, lane, a, (*page)[a / 4 % 64],
             uint8_t(((1u << part) - 1) << in), kind, false);
    k += part;
  }
}

/// Checks that the data of direct-to-LDS loads has arrived: for the wave that
/// loads it, when it has waited for vmcnt; for others, when it did so before a
/// barrier that they passed. A barrier alone is not enough.
void Checker::State::delivered(Wave &w, const Inst &i, unsigned lane,
                               uint32_t address, unsigned bytes, Access kind) {
  bool load = isDirectToLds(i);
  if (load && deliveries.empty())
    deliveries.resize((group.ldsBytes + 3) / 4);
  if (deliveries.empty())
    return;
  for (unsigned k = address / 4; k <= (address + bytes - 1) / 4; ++k) {
    Delivery &d = deliveries[k];
    if (load) {
      // The load is counted after it has executed.
      d.wave = uint8_t(w.id + 1);
      d.sequence = waves[w.id].issued[CountLoad] + 1;
      continue;
    }
    if (!d.wave)
      continue;
    const WaveState &loader = waves[d.wave - 1u];
    uint32_t known = waves[w.id].clock[d.wave - 1u];
    uint32_t back = d.wave == w.id + 1 ? loader.done[CountLoad]
                    : known < loader.backAtBarrier.size()
                        ? loader.backAtBarrier[known]
                        : 0;
    if (d.sequence > back && group.waves[d.wave - 1u].state != RunState::Done) {
      return w.fault(i,
                     Twine("LDS address ") + Twine(4 * k) + " is " +
                         (kind == Access::Read ? "read" : "written") +
                         " before an s_waitcnt vmcnt of wave " +
                         Twine(d.wave - 1u) +
                         " covers the direct-to-LDS load that fills it",
                     int(lane));
    }
  }
}

/// Checks the rules of the aligned access modes: natural alignment, 16 bytes
/// for 96 bits of LDS, and dwords of global memory.
void Checker::State::alignment(Wave &w, const Inst &i, unsigned lane,
                               uint64_t address, unsigned bytes, bool lds) {
  unsigned need = bytes > 8 ? (lds ? 16 : 4)
                  : lds     ? bytes
                            : std::min(bytes, 4u);
  if (address % need)
    w.fault(i,
            Twine(lds ? "LDS" : "global") + " access of " + Twine(bytes) +
                " bytes at " + (lds ? "address " : "0x") +
                (lds ? Twine(address).str() : llvm::utohexstr(address)) +
                " is not aligned to " + Twine(need) +
                ": only the unaligned access mode allows it",
            int(lane));
}

void Checker::signal(Wave &w, const Inst &i) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  for (size_t k = 0; k < ws.clock.size(); ++k)
    s.barrierClock[k] = std::max(s.barrierClock[k], ws.clock[k]);
  ws.backAtBarrier.resize(ws.clock[w.id] + 1);
  ws.backAtBarrier.back() = ws.done[CountLoad];
  ++ws.clock[w.id];
  // A barrier counts waves, whichever lanes are on, and compilers enable lanes
  // in front of it or behind it. A lane misses it if its wave comes to it only
  // because other lanes are on. Lanes that are off for good have ended.
  if (s.checks & CheckRaces) {
    ws.missedBarrier = 0;
    for (const auto &[branch, guarded] : ws.guards)
      if (guarded.begin <= i.address && i.address < guarded.end)
        ws.missedBarrier |= guarded.off & ~w.exec;
    ws.barrierAddress = i.address;
  }
}

/// Notes the code that a branch on EXEC lets the wave run although it would be
/// skipped with every lane off: the code behind a forward s_cbranch_execz, and
/// the loop that s_cbranch_execnz closes.
void Checker::State::guard(const Wave &w, WaveState &s, const Inst &i) {
  bool whenNone = llvm::StringRef(i.op->name) == "s_cbranch_execz";
  uint32_t target = uint32_t(i.imm2), next = i.address + i.bytes;
  bool forward = target >= next;
  uint64_t off = w.exec ? ~w.exec & w.fullMask : 0;
  if (forward == whenNone)
    s.guards[i.address] = {forward ? next : target, forward ? target : next,
                           off};
}

void Checker::State::missed(Wave &w, WaveState &s, const Inst &i) {
  uint64_t lanes = s.missedBarrier & w.exec;
  w.fault(i,
          Twine("divergent barrier: the lane missed the barrier at 0x") +
              Twine::utohexstr(s.barrierAddress) +
              " that others of its wave passed, and runs on",
          int(llvm::countr_zero(lanes)));
}

/// Waves that go on early may arrive at the next barrier, or end, before others
/// have left this one. This barrier does not order what they did meanwhile.
void Checker::completed() { state->passedClock = state->barrierClock; }

void Checker::wait(Wave &w) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  for (size_t k = 0; k < s.passedClock.size(); ++k)
    ws.clock[k] = std::max(ws.clock[k], s.passedClock[k]);
}

/// Every later barrier is behind the accesses of a wave that has ended.
void Checker::ended(Wave &w) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  for (size_t k = 0; k < ws.clock.size(); ++k)
    s.barrierClock[k] = std::max(s.barrierClock[k], ws.clock[k]);
}
