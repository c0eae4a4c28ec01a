//===- ChecksMemory.cpp - races and uninitialised LDS ---------------------===//
#include "ChecksState.h"
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
                (kind == Access::Read ? "read" : "write") + " of address 0x" +
                Twine::utohexstr(address) + " and a " + what + " by wave " +
                Twine(other) + " are not ordered by a barrier",
            int(lane));
  };
  bool write = kind != Access::Read;
  if (s.writeClock && s.writer != w.id && (s.writeBytes & bytes) &&
      s.writeClock > clock[s.writer] && !(kind == Access::Atomic && s.atomic))
    return race("write", s.writer);
  if (write) {
    uint32_t others = s.readers & ~(1u << w.id);
    if (others && (s.readBytes & bytes) && kind != Access::Atomic)
      for (uint32_t m = others; m; m &= m - 1) {
        unsigned r = unsigned(llvm::countr_zero(m));
        if (s.readClock > clock[r])
          return race("read", r);
      }
    // Parts of a word written by one wave in one interval add up.
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

void Checker::lds(Wave &w, const Inst &i, unsigned lane, uint32_t address,
                  unsigned bytes, Access kind) {
  State &s = *state;
  if (s.checks & CheckUninit) {
    uint8_t *defined = s.ldsDefined.data() + address;
    if (kind == Access::Write) {
      std::memset(defined, 1, bytes);
    } else {
      s.sawLds = true;
      for (unsigned k = 0; k < bytes; k += 4) {
        bool all = true;
        for (unsigned b = k; b < bytes && b < k + 4; ++b)
          all &= defined[b];
        unsigned word = s.wordsSeen[lane]++ & 3;
        if (!all) {
          if (!s.undefinedWord[0] && !s.undefinedWord[word])
            s.waves[w.id].origin = "; the value comes from LDS address " +
                                   std::to_string(address + k) +
                                   ", never written, read at 0x" +
                                   llvm::utohexstr(i.address);
          s.undefinedWord[word] |= uint64_t(1) << lane;
        }
      }
      if (kind == Access::Atomic)
        std::memset(defined, 1, bytes);
    }
  }
  if (!(s.checks & CheckRaces) || s.waves.size() < 2)
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
  if (!(s.checks & CheckRaces) || s.waves.size() < 2)
    return;
  for (unsigned k = 0; k < bytes && w.state != RunState::Fault;) {
    uint64_t a = address + k;
    unsigned in = a & 3, part = std::min(bytes - k, 4 - in);
    s.access(w, i, lane, a, s.globalShadow[a / 256][a / 4 % 64],
             uint8_t(((1u << part) - 1) << in), kind, false);
    k += part;
  }
}

void Checker::signal(Wave &w, const Inst &i) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  for (size_t k = 0; k < ws.clock.size(); ++k)
    s.barrierClock[k] = std::max(s.barrierClock[k], ws.clock[k]);
  ++ws.clock[w.id];
  if (!(s.checks & CheckRaces))
    return;
  for (const Wave &other : w.wg->waves)
    if (other.state == RunState::Done)
      return w.fault(i, "divergent barrier: wave " + Twine(other.id) +
                            " has ended and never reaches it");
}

void Checker::wait(Wave &w) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  for (size_t k = 0; k < ws.clock.size(); ++k)
    ws.clock[k] = std::max(ws.clock[k], s.barrierClock[k]);
}

void Checker::ended(Wave &w, const Inst &i) {
  if ((state->checks & CheckRaces) && w.wg->arrived)
    w.fault(i,
            "divergent barrier: the wave ends while others wait at a barrier");
}
