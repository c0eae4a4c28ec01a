//===- Stats.cpp - counting instructions and memory traffic ---------------===//
#include "Timing/Stats.h"
#include "Code/Program.h"
#include "Timing/Timing.h"
#include "greta/Sim/Simulator.h"
#include "llvm/ADT/DenseSet.h"

using namespace greta::sim;

/// Returns the entry of the executing instruction if it is recorded.
static TraceEntry *entryOf(Wave &w) {
  if (!w.timeline || w.timeline->truncated)
    return nullptr;
  return &w.timeline->waves[w.id].back();
}

void greta::sim::countInstruction(Wave &w, const Inst &i) {
  LaunchStats &s = *w.stats;
  ++s.instructions;
  if (GroupTrace *t = w.timeline) {
    ++t->executed;
    t->truncated |= t->waves[w.id].size() >= MaxTrace;
    if (!t->truncated) {
      TraceEntry e;
      e.inst = uint32_t(&i - w.program->code());
      t->waves[w.id].push_back(e);
    }
  }
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

/// Returns the lanes whose 16-byte reads go together on CDNA: the first two
/// halves of each; later ones are these plus 32. Writes and other widths go in
/// order. Source: AMD's notes on LDS bank conflicts of ds_read_b128.
static unsigned laneInGroup(const Wave &w, unsigned group, unsigned k,
                            unsigned size, bool read16) {
  unsigned l = group * size + k;
  if (!read16 || size != 8 || !w.chip->isGfx9())
    return l;
  static const uint8_t start[4][2] = {{0, 20}, {4, 16}, {8, 28}, {12, 24}};
  return group / 4 * 32 + start[group % 4][k / 4] + k % 4;
}

void greta::sim::countLds(Wave &w, const Inst &i, const uint32_t *address,
                          unsigned bytes, uint32_t offset) {
  LaunchStats &s = *w.stats;
  // There are 32 banks of 4 bytes (64 on gfx950). The lanes go in groups that
  // together move one word per bank; a group takes as many cycles as its
  // fullest bank has different words.
  unsigned banks = w.chip->family == Family::GFX950 ? 64 : 32;
  unsigned words = bytes < 4 ? 1 : bytes / 4;
  unsigned size = std::max(1u, banks / words), cycles = 0;
  bool read16 = bytes == 16 && i.dst[0];
  for (unsigned group = 0; group * size < w.lanes; ++group) {
    uint32_t seen[64][16];
    uint8_t count[64] = {};
    unsigned worst = 0;
    for (unsigned n = 0; n < size; ++n) {
      unsigned l = laneInGroup(w, group, n, size, read16);
      if (l >= w.lanes || !(w.exec >> l & 1))
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
    cycles += worst;
    if (worst > 1)
      s.ldsConflictCycles += worst - 1;
  }
  if (TraceEntry *e = entryOf(w))
    e->lds = uint16_t(e->lds + cycles);
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
  if (TraceEntry *e = entryOf(w)) {
    e->lines = uint16_t(e->lines + lines.size());
    for (uint64_t a : lines)
      e->fresh = uint16_t(e->fresh + w.timeline->lines.insert(a).second);
  }
}
