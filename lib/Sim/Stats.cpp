//===- Stats.cpp - counting instructions and memory traffic ---------------===//
#include "Stats.h"
#include "ChecksState.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/DenseSet.h"

using namespace greta::sim;

void greta::sim::countInstruction(Wave &w, const Inst &i) {
  LaunchStats &s = *w.stats;
  ++s.instructions;
  // A gfx9 SIMD issues a wave64 VALU instruction over 4 cycles (CDNA3 ISA), an
  // RDNA SIMD a wave32 one in 1 (RDNA3 ISA); transcendentals run at a quarter.
  unsigned simd = w.id % w.chip->simds;
  unsigned valu = w.chip->isGfx9() ? 4 : w.wave32 ? 1 : 2;
  ++w.wg->busy.issue[simd]; // at most one instruction a cycle
  if (i.unit == Unit::Valu)
    w.wg->busy.valu[simd] += valu;
  else if (i.unit == Unit::Trans)
    w.wg->busy.valu[simd] += 4 * valu;
  else if (i.unit == Unit::Matrix)
    w.wg->busy.matrix[simd] += 4 * matrixPasses(*w.chip, i);
  switch (i.unit) {
  case Unit::Salu:
    ++s.salu;
    break;
  case Unit::Smem:
    ++s.smem;
    break;
  case Unit::Valu:
  case Unit::Trans:
    ++s.valu;
    break;
  case Unit::Matrix:
    ++s.matrix;
    break;
  case Unit::Lds:
    ++s.lds;
    break;
  case Unit::Global:
  case Unit::Flat:
  case Unit::Scratch:
  case Unit::Buffer:
    ++s.vmem;
    break;
  case Unit::Branch:
    ++s.branch;
    break;
  case Unit::Other:
    ++s.other;
    break;
  }
}

void greta::sim::countWorkgroup(const Chip &chip, const Workgroup &g,
                                LaunchStats &s) {
  uint64_t longest = g.busy.lds, matrix = 0;
  for (unsigned k = 0; k < chip.simds; ++k) {
    // On gfx9 matrix and other vector instructions of different waves overlap;
    // RDNA's WMMA occupies the vector unit.
    uint64_t vector = chip.isGfx9() ? std::max(g.busy.valu[k], g.busy.matrix[k])
                                    : g.busy.valu[k] + g.busy.matrix[k];
    longest = std::max({longest, vector, g.busy.issue[k]});
    matrix += g.busy.matrix[k];
  }
  s.estimatedCycles += longest;
  s.matrixCycles += matrix / chip.simds;
}

void greta::sim::countLds(Wave &w, const Inst &i, const uint32_t *address,
                          unsigned bytes, uint32_t offset) {
  LaunchStats &s = *w.stats;
  // 32 banks of 4 bytes (64 on gfx950). The lanes go in groups that together
  // move one word per bank; a group takes as many cycles as its fullest bank
  // has different words.
  unsigned banks = w.chip->family == Family::GFX950 ? 64 : 32;
  unsigned words = bytes < 4 ? 1 : bytes / 4;
  unsigned group = std::max(1u, banks / words);
  for (unsigned first = 0; first < w.lanes; first += group) {
    uint32_t seen[64][16];
    uint8_t count[64] = {};
    unsigned worst = 0;
    for (unsigned l = first; l < first + group && l < w.lanes; ++l) {
      if (!(w.exec >> l & 1))
        continue;
      for (unsigned k = 0; k < words; ++k) {
        uint32_t word = (address[l] + offset) / 4 + k;
        unsigned bank = word % banks;
        bool known = false;
        for (unsigned n = 0; n < count[bank]; ++n)
          known |= seen[bank][n] == word;
        if (!known && count[bank] < 16)
          seen[bank][count[bank]++] = word;
        worst = std::max<unsigned>(worst, count[bank]);
      }
    }
    w.wg->busy.lds += worst;
    if (worst > 1)
      s.ldsConflictCycles += worst - 1;
  }
  s.ldsBytes += uint64_t(bytes) * unsigned(llvm::popcount(w.exec));
}

void greta::sim::countGlobal(Wave &w, const uint64_t *address, unsigned bytes,
                             bool store) {
  LaunchStats &s = *w.stats;
  llvm::SmallDenseSet<uint64_t, 64> lines;
  forLanes(w, [&](unsigned l) {
    for (uint64_t a = address[l] / 128; a <= (address[l] + bytes - 1) / 128;
         ++a)
      lines.insert(a);
  });
  uint64_t total = uint64_t(bytes) * unsigned(llvm::popcount(w.exec));
  (store ? s.globalStoreBytes : s.globalLoadBytes) += total;
  ++s.globalRequests;
  s.globalLines += lines.size();
}
