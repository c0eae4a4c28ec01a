//===- ChecksHazards.cpp - wait states of gfx9's matrix instructions ------===//
//
// gfx90a to gfx950 do not interlock everything around MFMA; the compiler
// inserts s_nop or other work. Two rules are checked, counting instructions as
// one wait state each and s_nop N as N + 1 (LLVM's GCNHazardRecognizer counts
// alike):
//   VALU writes a VGPR, MFMA reads it:                     2 wait states
//   MFMA writes a VGPR, VALU, memory or another MFMA's A/B
//   reads it or a VALU overwrites it:                      passes + 2 or 3
//
//===----------------------------------------------------------------------===//
#include "ChecksState.h"
#include "greta/Sim/Simulator.h"

using namespace greta::sim;
using llvm::StringRef;
using llvm::Twine;

static void each(const Operand &o, llvm::function_ref<void(unsigned)> fn) {
  if (o.kind == Operand::Vgpr)
    for (unsigned k = 0; k < o.words && o.index + k < row::Temp; ++k)
      fn(o.index + k);
}

void Checker::State::hazardBefore(Wave &w, WaveState &s, const Inst &i) {
  bool matrix = i.unit == Unit::Matrix;
  auto tooSoon = [&](unsigned r, uint64_t need, const char *what) {
    w.fault(i,
            Twine(r < row::Agpr ? "v" : "a") +
                Twine(r < row::Agpr ? r : r - row::Agpr) + " " + what + ": " +
                Twine(need - s.state) +
                " more wait states (s_nop or other instructions) are needed");
  };
  if (matrix)
    for (unsigned k = 0; k < 3; ++k)
      each(i.src[k], [&](unsigned r) {
        if (s.valuWrite[r] && s.valuWrite[r] + 2 > s.state &&
            w.state != RunState::Fault)
          tooSoon(
              r, s.valuWrite[r] + 2,
              "is read by a matrix instruction right after a VALU wrote it");
      });
  if (s.matrixUntil <= s.state)
    return;
  for (unsigned k = 0; k < i.numSrc; ++k) {
    if (matrix && k == 2) // accumulators forward
      continue;
    each(i.src[k], [&](unsigned r) {
      if (s.matrixReady[r] > s.state && w.state != RunState::Fault)
        tooSoon(r, s.matrixReady[r],
                "is read before the matrix instruction that writes it is done");
    });
  }
  if (!matrix)
    each(i.dst[0], [&](unsigned r) {
      if (s.matrixReady[r] > s.state && w.state != RunState::Fault)
        tooSoon(r, s.matrixReady[r],
                "is overwritten before the matrix instruction that writes it "
                "is done");
    });
}

void Checker::State::hazardAfter(Wave &w, WaveState &s, const Inst &i) {
  s.state += i.op && StringRef(i.op->name) == "s_nop" ? uint64_t(i.imm) + 1 : 1;
  if (i.unit == Unit::Matrix) {
    unsigned passes = matrixPasses(*w.chip, i);
    StringRef name = i.op->name;
    bool slow =
        name.ends_with("f32") && !name.contains("xf32"); // not the XDL unit
    unsigned extra = slow && w.chip->family != Family::GFX90A ? 2 : 3;
    // Double precision forwards by its own rules.
    if (name.contains("f64"))
      return;
    uint64_t ready = s.state + passes + extra;
    each(i.dst[0], [&](unsigned r) { s.matrixReady[r] = ready; });
    s.matrixUntil = std::max(s.matrixUntil, ready);
    each(i.dst[0], [&](unsigned r) { s.valuWrite[r] = 0; });
  } else if (i.unit == Unit::Valu || i.unit == Unit::Trans) {
    each(i.dst[0], [&](unsigned r) { s.valuWrite[r] = s.state; });
  } else {
    each(i.dst[0], [&](unsigned r) { s.valuWrite[r] = 0; });
  }
}
