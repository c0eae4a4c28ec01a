//===- Checks.cpp - uninitialised registers and missing waits -------------===//
#include "Checks/Checks.h"
#include "Checks/ChecksState.h"
#include "Isa/Lane.h"
#include "greta/Sim/Simulator.h"

using namespace greta::sim;
using llvm::Twine;

Checker::Checker(Workgroup &group, unsigned checks, ProgramChecker *programs)
    : state(std::make_unique<State>(group, checks, programs)) {}
Checker::~Checker() = default;

void Checker::reset() {
  State &s = *state;
  size_t n = s.group.waves.size();
  s.waves.resize(n);
  for (WaveState &w : s.waves) {
    w.defined.fill(0);
    w.undefined.fill(~0u);
    for (unsigned k = slot::VCC; k < slot::Count; ++k)
      w.undefined[k] = 0;
    w.issued.fill(0);
    w.done.fill(0);
    w.pending.fill({});
    w.earlier.clear();
    w.scalarPending.fill(0);
    w.lastFlat.fill(0);
    w.anyPending = false;
    w.missedBarrier = 0;
    w.guards.clear();
    w.clock.assign(n, 0);
    if (s.checks & CheckHazards)
      w.rows.assign(row::Temp, RowHazard());
    w.sgprWrite.fill(0);
    w.state = 1;
    w.lastValu = w.execWrite = w.m0Write = w.f64Matrix = 0;
    w.matrixUntil = w.quietFrom = 0;
    w.lastMatrix = nullptr;
    w.origin.clear();
  }
  for (size_t k = 0; k < n; ++k)
    s.waves[k].clock[k] = 1;
  s.barrierClock.assign(n, 0);
  s.passedClock.clear();
  if (s.checks & CheckRaces)
    s.ldsShadow.assign((s.group.ldsBytes + 3) / 4, Shadow());
  if (s.checks & CheckUninit)
    s.ldsDefined.assign(s.group.ldsBytes, 0);
  s.globalShadow.clear();
  s.deliveries.clear();
}

void Checker::defineVector(Wave &w, unsigned r) {
  state->waves[w.id].defined[r] |= w.exec;
}
void Checker::defineScalar(Wave &w, unsigned first, unsigned count) {
  for (unsigned k = 0; k < count; ++k)
    state->waves[w.id].undefined[first + k] = 0;
}

void Checker::undefineScalar(Wave &w, unsigned slot) {
  state->waves[w.id].undefined[slot] = ~0u;
}

static bool isMemory(Unit u) {
  return u == Unit::Global || u == Unit::Flat || u == Unit::Scratch ||
         u == Unit::Buffer || u == Unit::Lds || u == Unit::Smem;
}
static bool isVmem(Unit u) {
  return u == Unit::Global || u == Unit::Flat || u == Unit::Scratch ||
         u == Unit::Buffer;
}

static std::string nameOf(const Operand &o) {
  if (o.kind == Operand::Sgpr) {
    if (o.index < slot::VCC)
      return "s" + std::to_string(o.index);
    return o.index < slot::TTMP ? "vcc" : "a special register";
  }
  return o.index < row::Agpr ? "v" + std::to_string(o.index)
                             : "a" + std::to_string(o.index - row::Agpr);
}

//===- uninit -------------------------------------------------------------===//

/// Returns whether a buffer store goes to memory; swizzled ones go to scratch.
static bool isLinear(const Wave &w, const Inst &i) {
  return !(w.s[i.src[2].index + 1] >> 30);
}

void Checker::State::uninitBefore(Wave &w, WaveState &s, const Inst &i) {
  if (!isMemory(i.unit))
    return;
  // Finds the sources that are the address and the data. Loads have no data,
  // buffer and scalar stores begin with it, and all others have it second;
  // stores to two addresses of LDS have more data third.
  bool isLoad =
      i.dst[0] && !(i.op && llvm::StringRef(i.op->types).contains('?'));
  for (unsigned k = 0; k < i.numSrc; ++k) {
    const Operand &o = i.src[k];
    bool first = i.unit == Unit::Buffer || i.unit == Unit::Smem;
    bool data = !isLoad && i.numSrc > 1 &&
                (k == (first ? 0 : 1) || (i.unit == Unit::Lds && k == 2));
    // Work items spill undefined values, and LDS has its own definedness.
    if (data && (i.unit == Unit::Lds || i.unit == Unit::Scratch ||
                 (i.unit == Unit::Buffer && !(programs && isLinear(w, i)))))
      continue;
    if ((i.op->flags & CrossLane) && k)
      continue;
    uint64_t missing = w.exec & ~definedLanes(s, o);
    if (i.unit == Unit::Smem ? o.kind == Operand::Sgpr && missing : missing) {
      int lane = o.isVgpr() ? llvm::countr_zero(missing) : -1;
      const char *use = data ? " is stored" : " is used as an address";
      if (programs && !s.origin.empty())
        return w.fault(i, Twine(s.origin) + use + " (" + nameOf(o) + ")", lane);
      return w.fault(i, Twine("uninitialised ") + nameOf(o) + use + s.origin,
                     lane);
    }
  }
}

uint64_t greta::sim::resultLanes(const WaveState &s, const Wave &w,
                                 const Inst &i, bool low) {
  if (i.op && (i.op->flags & Select)) {
    uint64_t m = w.mask(i.src[2]);
    uint64_t known = ~uint64_t(0);
    if (const Operand &o = i.src[2]; o.kind == Operand::Sgpr)
      known = ~(uint64_t(w.wave32 ? 0 : s.undefined[o.index + 1]) << 32 |
                s.undefined[o.index]);
    return ((definedLanes(s, i.src[0]) & ~m) |
            (definedLanes(s, i.src[1]) & m)) &
           known;
  }
  bool merge = i.op && (i.op->flags & (Merge | Pk16 | Result16));
  uint64_t m = merge ? 0 : ~uint64_t(0);
  for (unsigned k = 0; k < i.numSrc; ++k) {
    Operand o = i.src[k];
    if (low)
      o.words = 1;
    uint64_t d = definedLanes(s, o);
    m = merge ? m | d : m & d;
  }
  return i.numSrc ? m : ~uint64_t(0);
}

void Checker::State::uninitAfter(Wave &w, WaveState &s, const Inst &i) {
  auto define = [&](const Operand &o, unsigned words, uint64_t lanes,
                    uint64_t m) {
    if (o.kind == Operand::Vgpr) {
      for (unsigned k = 0; k < words && o.index + k < row::Temp; ++k)
        s.defined[o.index + k] =
            (s.defined[o.index + k] & ~lanes) | (m & lanes);
    } else if (o.kind == Operand::Sgpr) {
      for (unsigned k = 0; k < words && o.index + k < slot::Count; ++k)
        s.undefined[o.index + k] = m ? 0 : ~0u;
    }
  };
  if (!i.dst[0] || crossAfter(w, s, i))
    return;
  uint64_t all = ~uint64_t(0);
  switch (i.unit) {
  case Unit::Salu: {
    uint64_t m = all;
    for (unsigned k = 0; k < i.numSrc; ++k)
      m &= definedLanes(s, i.src[k]);
    // Logic on masks may mix in undefined bits.
    define(i.dst[0], i.dst[0].words, all, i.dst[0].words == 1 ? m : all);
    break;
  }
  case Unit::Lds:
  case Unit::Global:
  case Unit::Flat:
  case Unit::Buffer:
    for (unsigned k = 0; k < i.dst[0].words; ++k) {
      Operand o = i.dst[0];
      o.index = uint16_t(o.index + k);
      define(o, 1, w.exec, sawMemory ? ~undefinedWord[k & 3] : all);
    }
    break;
  case Unit::Smem:
    for (unsigned k = 0; k < i.dst[0].words; ++k) {
      Operand o = i.dst[0];
      o.index = uint16_t(o.index + k);
      define(o, 1, all, undefinedScalar >> k & 1 ? 0 : all);
    }
    break;
  case Unit::Matrix: {
    uint64_t m = definedLanes(s, i.src[0]) & definedLanes(s, i.src[1]);
    if (w.wave32)
      m |= 0xffffffff00000000ull;
    bool good = m == all;
    uint64_t c = definedLanes(s, i.src[2]);
    define(i.dst[0], i.dst[0].words, all, good ? c : 0);
    break;
  }
  case Unit::Valu:
  case Unit::Trans: {
    if (i.fn == runVopd) {
      const Inst &x = *i.inner, &y = *x.inner;
      uint64_t mx = resultLanes(s, w, x, true), my = resultLanes(s, w, y, true);
      define(i.dst[0], 1, w.exec, mx);
      define(i.dst[1], 1, w.exec, my);
      break;
    }
    uint64_t m = resultLanes(s, w, i, true);
    uint64_t high = resultLanes(s, w, i, false);
    uint64_t compared =
        i.dst[0].kind == Operand::Sgpr && programs && !s.origin.empty()
            ? w.exec & ~(m & high)
            : 0;
    if (i.dst[0].kind == Operand::Sgpr)
      m = all;
    // A 16-bit write does not define the half that it leaves.
    if (i.op && (i.op->flags & Result16) && i.dst[0].isVgpr() &&
        i.dst[0].index < row::Temp)
      m |= s.defined[i.dst[0].index];
    if (i.dst[0].isVgpr() && i.dst[0].words > 1)
      define(i.dst[0], i.dst[0].words, w.exec, high);
    define(i.dst[0], i.dst[0].isVgpr() ? 1 : i.dst[0].words, w.exec, m);
    if (compared) {
      s.undefined[i.dst[0].index] = uint32_t(compared);
      if (!w.wave32)
        s.undefined[i.dst[0].index + 1] = uint32_t(compared >> 32);
    }
    define(i.dst[1], i.dst[1].words, w.exec, all);
    break;
  }
  default:
    define(i.dst[0], i.dst[0].words, w.exec, all);
    define(i.dst[1], i.dst[1].words, w.exec, all);
  }
}

//===- waits --------------------------------------------------------------===//

static void finish(WaveState &s, Counter c, uint32_t left) {
  uint32_t done = s.issued[c] > left ? s.issued[c] - left : 0;
  s.done[c] = std::max(s.done[c], done);
}

static bool isBack(const WaveState &s, const PendingLoad &p) {
  // A flat load may come from LDS, so both counters have to cover it.
  return p.sequence <= s.done[p.counter] && p.lds <= s.done[CountLds];
}

/// Returns the load of some of these lanes that is still under way.
const PendingLoad *Checker::State::pendingLoad(WaveState &s, unsigned row,
                                               uint64_t lanes) {
  if (const PendingLoad &p = s.pending[row]; (p.lanes & lanes) && !isBack(s, p))
    return &p;
  for (const auto &[other, p] : s.earlier)
    if (other == row && (p.lanes & lanes) && !isBack(s, p))
      return &p;
  return nullptr;
}

/// Returns the lanes whose registers the instruction may read or write.
static uint64_t lanesOf(const Wave &w, const Inst &i) {
  constexpr uint64_t All = ~uint64_t(0);
  if (i.has(Dpp))
    return i.has(FetchInactive) ? All : w.exec;
  if (i.unit == Unit::Matrix)
    return All;
  if (!i.op || !(i.op->flags & CrossLane))
    return w.exec;
  llvm::StringRef name = i.op->name;
  if (name == "v_readfirstlane_b32")
    return w.exec ? w.exec & -w.exec : 1;
  if (name == "v_readlane_b32" || name == "v_writelane_b32")
    return uint64_t(1) << (w.scalar(i.src[1]) & (w.lanes - 1u));
  return name.starts_with("v_perm") || name.contains("_fi_") ? All : w.exec;
}

void Checker::State::waitsBefore(Wave &w, WaveState &s, const Inst &i) {
  if (i.op && (i.op->flags & WaitCount)) {
    uint32_t n = uint32_t(i.imm);
    // On gfx9 the data of flat loads comes back in any order.
    bool anyOrder =
        w.chip->isGfx9() && (s.lastFlat[CountLoad] > s.done[CountLoad] ||
                             s.lastFlat[CountLds] > s.done[CountLds]);
    auto finishOrdered = [&](Counter c, uint32_t left) {
      if (left == 0 || !anyOrder)
        finish(s, c, left);
    };
    auto lgkm = [&](uint32_t left) {
      // Scalar loads come back in any order.
      finishOrdered(CountLds, left);
      if (left == 0)
        finish(s, CountSmem, 0);
    };
    switch (i.param) {
    case WaitAll:
      if ((i.waits & 0xff) != 0xff)
        finishOrdered(CountLoad, i.waits & 0xff);
      if ((i.waits >> 16 & 0xff) != 0xff)
        lgkm(i.waits >> 16 & 0xff);
      break;
    case WaitLoad:
      finishOrdered(CountLoad, n);
      break;
    case WaitLgkm:
      lgkm(n);
      break;
    case WaitLds:
      finish(s, CountLds, n);
      break;
    case WaitSmem:
      if (n == 0)
        finish(s, CountSmem, 0);
      break;
    case WaitLoadLds:
      finish(s, CountLoad, n >> 8 & 63);
      finish(s, CountLds, n & 63);
      break;
    case WaitStoreLds:
      finish(s, CountLds, n & 63);
      break;
    case WaitIdle:
      for (Counter c : {CountLoad, CountLds, CountSmem})
        finish(s, c, 0);
      break;
    default:
      break;
    }
    bool any = false;
    for (unsigned c = 0; c < Counters; ++c)
      any |= s.done[c] < s.issued[c];
    s.anyPending = any;
    return;
  }
  if (!s.anyPending)
    return;
  const uint64_t lanes = lanesOf(w, i);
  auto check = [&](const Operand &o, bool write) {
    static const char *const names[] = {"vector memory", "LDS",
                                        "scalar memory"};
    for (unsigned k = 0; k < o.words; ++k) {
      unsigned r = o.index + k;
      unsigned c = Counters;
      if (o.kind == Operand::Vgpr && r < row::Temp) {
        if (const PendingLoad *p = pendingLoad(s, r, lanes))
          c = p->sequence > s.done[p->counter] ? p->counter : CountLds;
      } else if (o.kind == Operand::Sgpr && r < slot::Count &&
                 s.scalarPending[r] > s.done[CountSmem]) {
        c = CountSmem;
      }
      if (c < Counters) {
        Operand at = o;
        at.index = uint16_t(r);
        w.fault(i, Twine(nameOf(at)) + " is " + (write ? "written" : "read") +
                       " before an s_waitcnt covers its " + names[c] + " load");
        return false;
      }
    }
    return true;
  };
  for (unsigned k = 0; k < i.numSrc; ++k)
    if (i.src[k].kind != Operand::Const && !check(i.src[k], false))
      return;
  // Loads into one register return in order; other writers have to wait.
  for (const Operand &d : i.dst)
    if (d && !(isVmem(i.unit) || i.unit == Unit::Lds) && !check(d, true))
      return;
}

void Checker::State::waitsAfter(Wave &w, WaveState &s, const Inst &i) {
  Counter c;
  if (isVmem(i.unit))
    c = CountLoad;
  else if (i.unit == Unit::Lds)
    c = CountLds;
  else if (i.unit == Unit::Smem)
    c = CountSmem;
  else if (i.unit == Unit::Other && i.op &&
           llvm::StringRef(i.op->name) == "global_inv") {
    // gfx12 counts it with the loads, and LLVM relies on that.
    ++s.issued[CountLoad];
    s.anyPending = true;
    return;
  } else
    return;
  // Stores count with the loads on gfx9 and have a counter of their own later.
  // Atomics that return count as loads.
  bool returns = i.dst[0] || i.has(Return) || i.has(ToLds);
  if (c == CountLoad && !returns && !w.chip->isGfx9())
    return;
  ++s.issued[c];
  bool flat = i.unit == Unit::Flat;
  if (flat) {
    s.lastFlat[CountLoad] = s.issued[CountLoad];
    s.lastFlat[CountLds] = ++s.issued[CountLds];
  }
  s.anyPending = true;
  // LLVM relies on waves that stall before they have more under way than the
  // counter can count.
  bool gfx9 = w.chip->isGfx9();
  if (c != CountSmem && !(gfx9 && s.lastFlat[c] > s.done[c]))
    finish(s, c, c == CountLds && gfx9 ? 15 : 63);
  auto mark = [&](const Operand &o) {
    for (unsigned k = 0; k < o.words; ++k) {
      unsigned r = o.index + k;
      if (o.kind == Operand::Vgpr && r < row::Temp) {
        if (const PendingLoad &p = s.pending[r];
            (p.lanes & ~w.exec) && !isBack(s, p)) {
          llvm::erase_if(s.earlier,
                         [&](const auto &e) { return isBack(s, e.second); });
          s.earlier.push_back({r, p});
        }
        s.pending[r] = {w.exec, s.issued[c], flat ? s.issued[CountLds] : 0, c};
      } else if (o.kind == Operand::Sgpr && r < slot::Count && c == CountSmem) {
        s.scalarPending[r] = s.issued[c];
      }
    }
  };
  if (i.dst[0])
    mark(i.dst[0]);
  else if (i.has(Return)) // the result replaces the data
    mark(i.src[0]);
}

//===- the loop's two hooks -----------------------------------------------===//

void Checker::before(Wave &w, const Inst &i) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  if (s.checks & CheckWaits)
    s.waitsBefore(w, ws, i);
  if (s.checks & CheckHazards)
    s.hazardBefore(w, ws, i);
  if (i.unit == Unit::Branch && (i.op->flags & OnExec) &&
      (s.checks & CheckRaces))
    s.guard(w, ws, i);
  // Only memory shows a missed barrier: whole-wave code enables all lanes.
  if (LLVM_UNLIKELY(ws.missedBarrier & w.exec) && isMemory(i.unit) &&
      i.unit != Unit::Scratch && i.unit != Unit::Smem &&
      !(i.op->flags & CrossLane))
    return s.missed(w, ws, i);
  if (s.checks & CheckUninit) {
    s.uninitBefore(w, ws, i);
    s.crossBefore(w, ws, i);
    if (s.programs)
      s.scalarBefore(w, ws, i);
    if (isMemory(i.unit)) {
      std::memset(s.undefinedWord, 0, sizeof(s.undefinedWord));
      std::memset(s.wordsSeen, 0, sizeof(s.wordsSeen));
      s.sawMemory = false;
      s.undefinedScalar = 0;
    }
  }
}

void Checker::after(Wave &w, const Inst &i) {
  State &s = *state;
  WaveState &ws = s.waves[w.id];
  if (s.checks & CheckWaits)
    s.waitsAfter(w, ws, i);
  if (s.checks & CheckHazards)
    s.hazardAfter(w, ws, i);
  if (s.checks & CheckUninit) {
    s.uninitAfter(w, ws, i);
    s.scalarAfter(w, ws, i);
  }
}
