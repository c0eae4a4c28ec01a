//===- Timing.cpp - replaying recorded waves on a compute unit ------------===//
//
// Time advances from event to event. At each, every SIMD goes through its waves
// (higher s_setprio first, then in turn, starting behind the one that issued
// last) and lets each issue its next instruction if its operands are there and
// the port of its unit is free. A wave issues in order; what it waits for at
// s_waitcnt is when the counted memory operations complete.
//
//===----------------------------------------------------------------------===//
#include "Timing/Replay.h"

using namespace greta::sim;

namespace {

/// Reports show these names.
constexpr const char *names[Reasons] = {
    "global memory", "LDS", "scalar loads", "barrier", "dependency", "unit"};
const char *unitName(uint8_t port) {
  switch (port) {
  case Valu:
    return "vector ALU";
  case Trans:
    return "transcendentals";
  case Matrix:
    return "matrix";
  case Salu:
    return "scalar ALU";
  case Jump:
    return "branch";
  case Smem:
    return "scalar memory";
  case Lds:
    return "LDS";
  case Vmem:
    return "vector memory";
  default:
    return "none";
  }
}
} // namespace

const Op &Replay::op(uint32_t index) {
  Op &o = ops[index];
  if (!o.known) {
    o = timedOp(chip, row, options.wave32, program.code()[index]);
  }
  return o;
}

/// Returns a wave's innermost loop with at least half of the matrix work of any
/// loop; without matrix instructions, of all instructions.
Loop Replay::findLoop(const WaveTrace &t, bool matrix) {
  std::vector<std::pair<Loop, uint64_t>> loops; // and their weights
  std::vector<uint64_t> count(program.size());
  for (size_t k = 0; k < t.size(); ++k) {
    const Inst &i = program.code()[t[k].inst];
    count[t[k].inst] += !matrix                  ? 1
                        : i.unit == Unit::Matrix ? op(t[k].inst).busy
                                                 : 0;
    if (i.unit != Unit::Branch || k + 1 == t.size() ||
        t[k + 1].inst != uint32_t(i.imm) || t[k + 1].inst > t[k].inst)
      continue;
    auto same = [&](const auto &l) {
      return l.first.begin == t[k + 1].inst && l.first.end == t[k].inst;
    };
    if (std::none_of(loops.begin(), loops.end(), same))
      loops.push_back({{t[k + 1].inst, t[k].inst}, 0});
  }
  uint64_t most = 0;
  for (auto &[loop, weight] : loops) {
    for (uint32_t k = loop.begin; k <= loop.end; ++k)
      weight += count[k];
    most = std::max(most, weight);
  }
  Loop best;
  for (auto &[loop, weight] : loops)
    if (weight && 2 * weight >= most &&
        (!best || loop.end - loop.begin < best.end - best.begin))
      best = loop;
  // Hints are not issued (see prepare), so iterations are counted behind them.
  while (best && !op(best.begin).pause)
    ++best.begin;
  return best;
}

//===- one wave -----------------------------------------------------------===//

void Replay::prepare(Runner &w) {
  // Hints cost nothing, as they ride on the instruction behind them.
  while (w.at + 1 < w.trace->size() && !op((*w.trace)[w.at].inst).pause)
    ++w.at;
  const Op &o = op((*w.trace)[w.at].inst);
  w.ready = w.next;
  w.reason = OnDependency;
  auto until = [&](uint64_t t, Reason r) {
    if (t > w.ready) {
      w.ready = t;
      w.reason = r;
    }
  };
  for (uint16_t r : o.reads)
    until(w.registers[r], OnDependency);
  for (unsigned k = 0; k < o.accWords; ++k)
    until(w.accumulators[o.acc + k], OnDependency);
  for (uint16_t r : o.writes)
    if (o.port != Matrix && r < row::Temp)
      until(w.registers[r] > o.latency ? w.registers[r] - o.latency : 0,
            OnDependency);
  if (o.wait)
    for (unsigned l = 0; l < Lists; ++l) {
      std::vector<Pending> &list = w.lists[l];
      if (o.limit[l] == 255 || list.size() <= o.limit[l])
        continue;
      const Pending &p = list[list.size() - o.limit[l] - 1];
      until(p.done, p.reason);
    }
  if (o.barrierWait && !o.signal) {
    const GroupState &g = states[w.group];
    if (g.generation < w.target)
      w.blocked = true;
    else
      until(g.released, OnBarrier);
  }
  w.ready = align(w.ready);
}

bool Replay::portFree(const Simd &s, const Op &o, uint64_t t) const {
  return whenFree(s, o) <= t;
}

uint64_t Replay::whenFree(const Simd &s, const Op &o) const {
  if (o.port == Internal)
    return 0;
  uint64_t t = s.free[o.port];
  // Transcendentals and matrix instructions pass through the vector port.
  if (o.port == Trans || o.port == Matrix)
    t = std::max(t, s.free[Valu]);
  return t;
}

/// Queues a memory operation; returns when its counter goes down.
uint64_t Replay::memory(Runner &w, const Op &o, const TraceEntry &e,
                        uint64_t t) {
  unsigned half = simds.size() > chip.simds ? w.simd / chip.simds : 0;
  unsigned lanes = options.wave32 ? 32 : 64;
  auto atLdsRate = [&](unsigned cycles) {
    return std::max(1u, unsigned(cycles / options.estimate.ldsRate + 0.5));
  };
  auto useLds = [&](uint64_t from, unsigned cycles) {
    uint64_t start = std::max(from, ldsFree[half]);
    ldsFree[half] = start + cycles;
    ldsBusy += cycles;
    return start + cycles;
  };
  if (o.port == Lds) {
    unsigned cycles =
        e.lds ? e.lds
              : std::max(1u, lanes * std::max<unsigned>(4, o.bytes) / 128);
    return useLds(t, atLdsRate(cycles)) + row.ldsLatency;
  }
  unsigned bytes = lanes * std::max<unsigned>(4, o.bytes);
  unsigned lines = e.lines ? e.lines : (bytes + 127) / 128;
  // The cache reads each line whole, or each lane's bytes if these are more.
  unsigned cycles = std::max(
      {lanes / row.addressesPerCycle, bytes / row.cacheBytesPerCycle, lines});
  uint64_t start = std::max(t, vmemFree[half]);
  vmemFree[half] = start + cycles;
  vmemBusy += cycles;
  uint64_t done = start + cycles;
  if (e.fresh) {
    unsigned fill = e.fresh * 128u / row.fillBytesPerCycle;
    fillFree[half] = std::max(start, fillFree[half]) + fill;
    fillBusy += fill;
    done = std::max(done, fillFree[half]);
  }
  done += e.fresh ? row.memoryLatency : row.cacheLatency;
  // Data that arrives in the LDS takes its cycles. They are taken now, as the
  // queue does not know when it arrives.
  if (o.toLds) {
    unsigned banks = chip.family == Family::GFX950 ? 64 : 32;
    unsigned cycles = atLdsRate(std::max(1u, bytes / (4 * banks)));
    useLds(t, cycles);
    done += cycles;
  }
  return done;
}

void Replay::leaveLoop(Runner &w, uint64_t t) {
  w.inLoop = false;
  loopWaveTime += t - w.entered;
  if (--inside == 0)
    loopCycles += t - since;
}

void Replay::release(unsigned group, uint64_t t) {
  GroupState &g = states[group];
  if (!g.arrived || g.arrived < g.live)
    return;
  g.arrived = 0;
  ++g.generation;
  g.released = t + row.barrier;
  for (Runner &w : waves)
    if (w.group == group && w.blocked && w.target <= g.generation) {
      w.blocked = false;
      uint64_t before = w.next;
      w.next = std::max(w.next, align(g.released));
      stalls[OnBarrier] += w.next - before;
      note({w.group, unsigned(&w - waves.data()), w.simd, before, w.next,
            w.next, w.next, 0, 0, names[OnBarrier], nullptr, 0});
      prepare(w);
    }
}

void Replay::note(const TimelineEntry &entry) {
  Timeline *to = options.estimate.timeline;
  if (to && to->entries.size() < Timeline::MaxEntries)
    to->entries.push_back(entry);
}

void Replay::finish(Runner &w, uint64_t t) {
  w.done = true;
  w.ended = t;
  if (w.inLoop)
    leaveLoop(w, t);
  --states[w.group].live;
  release(w.group, t);
}

/// Takes the units that an instruction needs. Returns when the data of a memory
/// access arrives, else 0.
uint64_t Replay::occupy(Runner &w, Simd &s, const TraceEntry &e, const Op &o,
                        uint64_t t) {
  uint64_t arrives = 0;
  switch (o.port) {
  case Valu:
    s.free[Valu] = t + o.busy;
    s.valuBusy += o.busy;
    break;
  case Trans:
    // RDNA has a unit of its own; CDNA's vector unit works at a quarter rate.
    s.free[Trans] = t + o.busy;
    s.free[Valu] = t + (chip.isGfx9() ? o.busy : row.slot);
    s.valuBusy += chip.isGfx9() ? o.busy : row.slot;
    break;
  case Matrix:
    s.free[Matrix] = t + o.busy;
    s.free[Valu] = t + (chip.isGfx9() ? row.slot : o.busy);
    s.matrixBusy += o.busy;
    s.valuBusy += chip.isGfx9() ? row.slot : 0;
    if (w.inLoop)
      loopMatrix += o.busy;
    for (uint16_t r : o.writes)
      if (r < row::Temp)
        w.accumulators[r] = t + o.forward;
    break;
  case Salu:
    s.free[Salu] = t + o.busy;
    s.saluBusy += o.busy;
    break;
  case Jump:
    s.free[Jump] = t + o.busy;
    if (w.at + 1 < w.trace->size() && (*w.trace)[w.at + 1].inst != e.inst + 1)
      w.next = t + row.branch;
    break;
  case Smem:
    s.free[Smem] = t + o.busy;
    w.lists[chip.isGfx12() ? Scalars : Shared].push_back(
        {t + row.scalarLatency, OnScalar});
    arrives = t + row.scalarLatency;
    break;
  case Lds:
  case Vmem: {
    s.free[o.port] = t + o.busy;
    List list = o.port == Lds               ? Shared
                : o.store && !chip.isGfx9() ? Stores
                                            : Loads;
    Reason reason = o.port == Lds ? OnLds : OnGlobal;
    uint64_t at = memory(w, o, e, t);
    for (List l : {list, o.flat ? Shared : list}) {
      std::vector<Pending> &to = w.lists[l];
      if (!to.empty() && to.back().done > at)
        at = to.back().done; // counters go down in order
      to.push_back({at, reason});
      if (!o.flat)
        break;
    }
    arrives = at;
    break;
  }
  default:
    break;
  }
  return arrives;
}

void Replay::issue(Runner &w, Simd &s, uint64_t t) {
  const TraceEntry &e = (*w.trace)[w.at];
  const Op &o = op(e.inst);
  stalls[w.reason] += w.ready - w.next;
  stalls[OnUnit] += t - w.ready;
  bool inLoop = e.inst >= w.loop.begin && e.inst <= w.loop.end;
  if (inLoop && !w.inLoop) {
    w.inLoop = true;
    w.entered = t;
    if (inside++ == 0)
      since = t;
  } else if (!inLoop && w.inLoop) {
    leaveLoop(w, t);
  }
  // A loop may have several ways back to its beginning.
  loopIterations += w.loop && e.inst == w.loop.begin;
  uint64_t from = w.next, ready = w.ready;
  Reason reason = w.reason;
  w.next = t + o.pause;
  if (o.priority >= 0)
    w.priority = o.priority;

  uint64_t arrives = occupy(w, s, e, o, t);
  if (o.latency)
    for (uint16_t r : o.writes)
      w.registers[r] = t + o.latency;
  if (Timeline *to = options.estimate.timeline) {
    const Inst &inst = program.code()[e.inst];
    note({w.group, unsigned(&w - waves.data()), w.simd, from, ready, t, w.next,
          o.busy, arrives, names[reason], unitName(o.port), inst.address});
    auto [text, isNew] = to->text.try_emplace(inst.address);
    if (isNew)
      text->second = program.text(inst);
  }
  // Accesses that a wait has covered are dropped.
  if (o.wait)
    for (unsigned l = 0; l < Lists; ++l)
      if (w.lists[l].size() > o.limit[l])
        w.lists[l].erase(w.lists[l].begin(), w.lists[l].end() - o.limit[l]);
  ++w.at;
  if (o.end || w.at == w.trace->size())
    return finish(w, t);
  GroupState &g = states[w.group];
  if (o.signal) {
    w.target = g.generation + 1;
    ++g.arrived;
    w.blocked = o.barrierWait;
    release(w.group, t);
    if (w.blocked)
      return;
  }
  prepare(w);
}

//===- the compute unit ---------------------------------------------------===//

/// Gives the waves to SIMDs.
void Replay::place(llvm::ArrayRef<GroupTrace> groups, const Residency &where,
                   CycleEstimate &out) {
  unsigned count = options.estimate.oneWave ? 1 : unsigned(groups.size());
  unsigned perGroup = options.estimate.oneWave ? 1 : where.waves;
  simds.resize(options.estimate.oneWave ? 1 : where.simds);
  states.resize(count);
  auto isMatrix = [&](const TraceEntry &e) {
    return program.code()[e.inst].unit == Unit::Matrix;
  };
  bool matrix = llvm::any_of(groups[0].waves, [&](const WaveTrace &t) {
    return llvm::any_of(t, isMatrix);
  });
  for (unsigned g = 0; g < count; ++g)
    for (unsigned k = 0; k < perGroup; ++k) {
      Runner w;
      w.trace = &groups[g].waves[k];
      w.loop = findLoop(*w.trace, matrix);
      out.truncated |= groups[g].truncated;
      if (w.trace->empty())
        continue;
      out.replayedInstructions += w.trace->size();
      w.group = g;
      w.simd = unsigned(waves.size() % simds.size());
      w.registers.assign(ScalarBase + slot::Count, 0);
      w.accumulators.assign(row::Temp, 0);
      simds[w.simd].waves.push_back(unsigned(waves.size()));
      ++states[g].live;
      waves.push_back(std::move(w));
    }
  for (Runner &w : waves)
    prepare(w);
}

/// Issues until every wave has ended.
void Replay::replay() {
  uint64_t t = 0, alive = waves.size();
  while (alive) {
    for (Simd &s : simds) {
      unsigned n = unsigned(s.waves.size()), issued = n;
      int highest = 0;
      for (unsigned k : s.waves)
        highest = std::max(highest, waves[k].done ? 0 : waves[k].priority);
      for (int priority = highest; priority >= 0; --priority)
        for (unsigned k = 0; k < n; ++k) {
          unsigned slot = (s.turn + k) % n;
          Runner &w = waves[s.waves[slot]];
          if (w.done || w.blocked || w.ready > t || w.priority != priority ||
              !portFree(s, op((*w.trace)[w.at].inst), t))
            continue;
          issue(w, s, t);
          // A slot issues once at a priority level.
          issued = slot;
          alive -= w.done;
        }
      if (issued != n)
        s.turn = (issued + 1) % n;
    }
    uint64_t soon = Never;
    for (const Runner &w : waves)
      if (!w.done && !w.blocked)
        soon = std::min(
            soon,
            std::max(w.ready, align(whenFree(simds[w.simd],
                                             op((*w.trace)[w.at].inst)))));
    if (soon == Never)
      break; // waves cut short by the trace's limit wait for each other
    t = std::max(soon, t + row.slot);
  }
}

void Replay::run(llvm::ArrayRef<GroupTrace> groups, const Residency &where,
                 CycleEstimate &out) {
  place(groups, where, out);
  replay();
  report(out);
}

void greta::sim::estimateCycles(const Chip &chip, const Program &program,
                                llvm::ArrayRef<GroupTrace> groups,
                                const Residency &where,
                                const ReplayOptions &options,
                                CycleEstimate &out) {
  if (groups.empty() || groups[0].waves.empty() || groups[0].waves[0].empty())
    return;
  Replay(chip, program, options).run(groups, where, out);
}
