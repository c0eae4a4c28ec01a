//===- Workgroup.cpp - running the waves of one workgroup -----------------===//
//
// Waves take turns: each runs until it ends, blocks at a barrier, sleeps, or
// has used its turn (so that waves that spin on each other make progress).
//
//===----------------------------------------------------------------------===//
#include "Workgroup.h"
#include "Checks/Checks.h"
#include "Code/Program.h"
#include "Code/Source.h"
#include "Isa/Float.h"
#include "Timing/Stats.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace greta::sim;

void Wave::applyMode() {
  // MODE has rounding f32 0-1, f64/f16 2-3; denormals f32 4-5, f64/f16 6-7;
  // dx10_clamp 8, ieee 9 (gfx12 has neither and behaves as with dx10_clamp).
  csr32 = hostControl(mode & 3, mode >> 4 & 3);
  csr64 = hostControl(mode >> 2 & 3, mode >> 6 & 3);
  dx10Clamp = chip->isGfx12() || (mode >> 8 & 1);
  ieee = mode >> 9 & 1;
  setControl(csr32);
}

static std::string nameOf(const Program &program, const Inst &i) {
  return "; instruction at 0x" + llvm::utohexstr(i.address, true) + " '" +
         program.text(i) + "'";
}

void Wave::warn(const Inst &i, const llvm::Twine &what) {
  auto [at, isNew] = wg->warnings.try_emplace(i.address);
  if (isNew)
    at->second = (what + nameOf(*program, i)).str();
}

void Wave::fault(const Inst &i, const llvm::Twine &what, int lane) {
  if (state == RunState::Fault)
    return;
  state = RunState::Fault;
  if (wg->failed)
    return;
  wg->failed = true;
  llvm::raw_string_ostream os(wg->error);
  llvm::DILineInfo at =
      wg->source ? wg->source->place(i.address) : llvm::DILineInfo();
  if (at.Line)
    os << at.FileName << ":" << at.Line << ":" << at.Column << ": ";
  os << what << nameOf(*program, i)
     << (at.Line ? ", program (" : ", workgroup (") << wg->id[0] << ","
     << wg->id[1] << "," << wg->id[2] << "), wave " << id;
  if (lane >= 0)
    os << ", lane " << lane;
  if (at.Line)
    os << Source::excerpt(at);
}

/// Completes the barrier when everyone who still runs has arrived.
static void completeBarrier(Workgroup &g) {
  unsigned live = 0;
  for (const Wave &w : g.waves)
    live += w.state != RunState::Done;
  if (g.arrived && g.arrived >= live) {
    g.arrived = 0;
    ++g.generation;
    if (Checker *c = g.waves.front().checker)
      c->completed();
  }
}

void greta::sim::signalBarrier(Wave &w, const Inst &i) {
  w.barrierGeneration = w.wg->generation + 1;
  w.signalled = true;
  ++w.wg->arrived;
  if (w.checker)
    w.checker->signal(w, i);
}

void greta::sim::waitBarrier(Wave &w, const Inst &i) {
  if (!w.signalled) // the others wait for its signal
    w.barrierGeneration = w.wg->generation + 1;
  w.signalled = false;
  if (w.barrierGeneration > w.wg->generation)
    completeBarrier(*w.wg);
  if (w.barrierGeneration > w.wg->generation) {
    w.state = RunState::Barrier;
    return;
  }
  if (w.checker)
    w.checker->wait(w);
}

/// Returns whether VSKIP skips it: vector ALU, memory, LDS and matrix units.
static bool isVector(Unit u) {
  return u != Unit::Salu && u != Unit::Smem && u != Unit::Branch &&
         u != Unit::Other;
}

/// Executes one instruction; Full adds counts, checks and the trace.
template <bool Full>
static void step(Wave &w, const Inst &i, RunOptions &options) {
  if (Full) {
    if (options.trace) {
      --options.trace;
      *options.traceStream << "wave " << w.id << " exec ";
      options.traceStream->write_hex(w.exec)
          << "  " << w.program->text(i) << "\n";
    }
    if (w.stats)
      countInstruction(w, i);
    if (w.checker) {
      w.checker->before(w, i);
      if (w.state != RunState::Running)
        return;
    }
  }
  i.fn(w, i);
  if (Full && w.checker && w.state != RunState::Fault)
    w.checker->after(w, i);
}

template <bool Full>
static void runWave(Wave &w, const Inst *code, RunOptions &options) {
  uint64_t turn = options.turn;
  setControl(w.csr32);
  w.state = RunState::Running;
  while (w.state == RunState::Running) {
    const Inst &i = code[w.pc++];
    if (LLVM_LIKELY(!(w.mode & ModeVskip)) || !isVector(i.unit))
      step<Full>(w, i, options);
    if (--turn == 0) {
      if (w.state == RunState::Running)
        w.state = RunState::Yield;
      break;
    }
  }
  uint64_t used = options.turn - turn;
  if (w.budget <= used && w.state != RunState::Fault &&
      w.state != RunState::Done)
    w.fault(code[w.pc],
            "the wave used up its instruction budget: an endless loop?");
  w.budget -= std::min(w.budget, used);
}

bool greta::sim::runTurns(Workgroup &g, RunOptions &options) {
  uint32_t host = currentControl();
  bool full = options.checked || options.trace ||
              (!g.waves.empty() && g.waves[0].stats);
  bool running = false, progress = false;
  for (Wave &w : g.waves) {
    if (w.state == RunState::Done)
      continue;
    running = true;
    if (w.state == RunState::Barrier) {
      if (w.barrierGeneration > g.generation)
        continue;
      if (w.checker)
        w.checker->wait(w);
    }
    progress = true;
    const Inst *code = w.program->code();
    if (full)
      runWave<true>(w, code, options);
    else
      runWave<false>(w, code, options);
    if (w.state == RunState::Done) {
      if (w.checker)
        w.checker->ended(w);
      completeBarrier(g);
    }
    if (g.failed)
      break;
  }
  if (running && !progress && !g.failed) {
    completeBarrier(g);
    bool freed = false;
    for (const Wave &w : g.waves)
      freed |=
          w.state == RunState::Barrier && w.barrierGeneration <= g.generation;
    if (!freed) {
      for (Wave &w : g.waves)
        if (w.state == RunState::Barrier) {
          w.fault(w.program->code()[w.pc - 1],
                  "deadlock: the wave waits at a barrier that others never "
                  "reach");
          break;
        }
    }
  }
  setControl(host);
  return running && !g.failed;
}

bool greta::sim::runWorkgroup(Workgroup &g, RunOptions &options) {
  while (runTurns(g, options))
    ;
  return !g.failed;
}
